//! How the types whose JSON is one text look in the OpenAPI document (D13). Structs and enums derive theirs beside their definition.

use std::borrow::Cow;

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::goods::GoodsId;
use crate::{
    AccessToken, AttemptId, ClaimToken, DeviceId, ErrorCode, EventId, ExecutionId, IdempotencyKey, InstanceId, Password, RefreshToken,
    RemoteTaskId, RequestId, ServerId, UserId, WireTime,
};

macro_rules! text_schema {
    ($($name:ident: $build:expr;)+) => {$(
        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let build: fn(ObjectBuilder) -> ObjectBuilder = $build;
                build(ObjectBuilder::new().schema_type(Type::String)).into()
            }
        }
        impl ToSchema for $name {
            fn name() -> Cow<'static, str> { Cow::Borrowed(stringify!($name)) }
        }
    )+};
}

fn uuid(text: ObjectBuilder) -> ObjectBuilder {
    text.format(Some(SchemaFormat::KnownFormat(KnownFormat::Uuid)))
}

fn secret(text: ObjectBuilder) -> ObjectBuilder {
    text.format(Some(SchemaFormat::KnownFormat(KnownFormat::Password)))
}

text_schema! {
    RemoteTaskId: |text| uuid(text).description(Some("A task's number, the same on server, client and in logs."));
    DeviceId: |text| uuid(text).description(Some("One installation (D19)."));
    UserId: uuid;
    ExecutionId: |text| uuid(text).description(Some("One server-side execution (T-205 §7)."));
    AttemptId: |text| uuid(text).description(Some("One client-side run (D8)."));
    InstanceId: |text| uuid(text).description(Some("One process of an installation (D19)."));
    ServerId: |text| uuid(text).description(Some("The server database a client's store is bound to (D7)."));
    RequestId: uuid;
    EventId: uuid;
    IdempotencyKey: |text| text.min_length(Some(1)).max_length(Some(IdempotencyKey::MAX_LEN)).pattern(Some("^[!-~]{1,200}$"));
    ClaimToken: |text| secret(text)
        .pattern(Some("^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$"))
        .description(Some("43 characters of unpadded base64url the client made (T-205 §2)."));
    AccessToken: secret;
    RefreshToken: secret;
    Password: secret;
    GoodsId: |text| text.pattern(Some("^[0-9]{1,20}$"));
    WireTime: |text| text
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
        .description(Some("RFC 3339 UTC with three fraction digits (D1)."));
    ErrorCode: |text| text.enum_values(Some(ErrorCode::ALL.iter().map(|code| code.as_str().to_owned())));
}
