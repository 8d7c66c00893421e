//! Reading a request: who calls, which task, which key, what body. Every failure is one of our own error bodies. Bodies are never logged.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use cmautobuy_protocol::auth::Role;
use cmautobuy_protocol::{
    AccessToken, ClaimToken, DeviceId, ErrorCode, HEADER_CLAIM_TOKEN, HEADER_IDEMPOTENCY_KEY, IdempotencyKey, RemoteTaskId, UserId,
};
use serde::de::DeserializeOwned;

use super::answer::Fault;
use crate::auth;
use crate::house::House;
use crate::refusal::{Refusal, must_be_object};
use crate::store::access_token::TokenOwner;
use crate::work::Actor;

/// Largest body of every call but results, in bytes.
const MAX_BODY_BYTES: usize = 64 * 1024;

/// Whoever shows a live access token.
#[derive(Debug)]
pub(crate) struct SignedIn(pub(crate) TokenOwner);

impl FromRequestParts<Arc<House>> for SignedIn {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, house: &Arc<House>) -> Result<Self, Fault> {
        let header = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let bearer = header.and_then(|text| text.split_once(' ')).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let Some((_, token)) = bearer else {
            return Err(Refusal::new(ErrorCode::Unauthenticated, "this call needs a login: Authorization: Bearer <access token>").into());
        };
        let token = AccessToken::new(token.trim());
        // On this thread (ADR 0007): a look-up by key that waits for nobody costs less than handing it to another thread and back.
        let owner = house.read(|call| auth::owner(call, &token))?;
        Ok(Self(owner))
    }
}

/// A buyer on a pre-authorised device (T-205 §1).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Buyer(pub(crate) auth::Buyer);

impl FromRequestParts<Arc<House>> for Buyer {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, house: &Arc<House>) -> Result<Self, Fault> {
        let SignedIn(owner) = SignedIn::from_request_parts(parts, house).await?;
        Ok(Self(auth::Buyer::of(&owner)?))
    }
}

/// An administrator.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ByAdmin(pub(crate) Actor);

impl FromRequestParts<Arc<House>> for ByAdmin {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, house: &Arc<House>) -> Result<Self, Fault> {
        let SignedIn(owner) = SignedIn::from_request_parts(parts, house).await?;
        if owner.roles.contains(&Role::Admin) {
            return Ok(Self(Actor::Admin(owner.user_id)));
        }
        Err(Refusal::new(ErrorCode::Forbidden, "this call is for administrators").into())
    }
}

/// The `{id}` of the path. What is no id is nothing we have.
macro_rules! path_ids {
    ($($(#[$doc:meta])* $name:ident($id:ty) or $missing:expr;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct $name(pub(crate) $id);

        impl FromRequestParts<Arc<House>> for $name {
            type Rejection = Fault;

            async fn from_request_parts(parts: &mut Parts, house: &Arc<House>) -> Result<Self, Fault> {
                let path = Path::<String>::from_request_parts(parts, house).await.ok();
                let id = path.and_then(|Path(text)| text.parse().ok());
                Ok(Self(id.ok_or_else(|| $missing)?))
            }
        }
    )+};
}

path_ids! {
    TaskPath(RemoteTaskId) or Refusal::not_found();
    UserPath(UserId) or Refusal::new(ErrorCode::NotFound, "no such user");
    DevicePath(DeviceId) or Refusal::new(ErrorCode::NotFound, "no such device");
}

/// The query string, with our own error body when it cannot be understood.
#[derive(Debug)]
pub(crate) struct Ask<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Arc<House>> for Ask<T> {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, house: &Arc<House>) -> Result<Self, Fault> {
        let query = Query::<T>::from_request_parts(parts, house).await;
        let Query(asked) = query.map_err(|error| Refusal::malformed(format!("the query cannot be understood: {}", error.body_text())))?;
        Ok(Self(asked))
    }
}

/// `Idempotency-Key`.
#[derive(Debug, Clone)]
pub(crate) struct Key(pub(crate) IdempotencyKey);

impl FromRequestParts<Arc<House>> for Key {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<House>) -> Result<Self, Fault> {
        let header = parts.headers.get(HEADER_IDEMPOTENCY_KEY).and_then(|value| value.to_str().ok());
        let key = header.and_then(|text| text.parse().ok());
        Ok(Self(key.ok_or_else(|| Refusal::malformed("this call needs the header Idempotency-Key: 1 to 200 visible characters"))?))
    }
}

/// `Idempotency-Key`, when there is one; one that cannot be a key is refused, never passed over.
#[derive(Debug, Clone)]
pub(crate) struct OptionalKey(pub(crate) Option<IdempotencyKey>);

impl FromRequestParts<Arc<House>> for OptionalKey {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, house: &Arc<House>) -> Result<Self, Fault> {
        if parts.headers.contains_key(HEADER_IDEMPOTENCY_KEY) {
            let Key(key) = Key::from_request_parts(parts, house).await?;
            return Ok(Self(Some(key)));
        }
        Ok(Self(None))
    }
}

/// `X-Claim-Token` (T-205 §2). Never repeated in an answer.
#[derive(Debug, Clone)]
pub(crate) struct Token(pub(crate) ClaimToken);

impl FromRequestParts<Arc<House>> for Token {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<House>) -> Result<Self, Fault> {
        let header = parts.headers.get(HEADER_CLAIM_TOKEN).and_then(|value| value.to_str().ok());
        let token = header.and_then(|text| text.parse().ok());
        Ok(Self(token.ok_or_else(|| Refusal::malformed("this call needs the header X-Claim-Token: 43 characters of base64url"))?))
    }
}

/// The caller's address, when the call came over a socket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) Option<IpAddr>);

impl FromRequestParts<Arc<House>> for Peer {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<House>) -> Result<Self, Fault> {
        Ok(Self(parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip())))
    }
}

/// A JSON body of at most 64 KiB. Four kinds: what it may hold beside what is known, and whether the refusal may repeat what stood there.
macro_rules! bodies {
    ($($(#[$doc:meta])* $name:ident: $extra:expr, $blame:expr;)+) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $name<T>(pub(crate) T);

        impl<T: DeserializeOwned> FromRequest<Arc<House>> for $name<T> {
            type Rejection = Fault;

            async fn from_request(request: Request, _: &Arc<House>) -> Result<Self, Fault> {
                let bytes = read(request, MAX_BODY_BYTES).await?;
                Ok(Self(parse(&bytes, $extra, $blame)?))
            }
        }
    )+};
}

bodies! {
    /// What a client says. Its fields are only ever added to, so one this server does not know yet is passed over.
    Body: Extra::PassedOver, Blame::Quoting;
    /// What an administrator orders. A field nobody knows is a wish nobody would fulfil - a misspelt price limit - so it is refused.
    Order: Extra::Refused, Blame::Quoting;
    /// Like [`Body`] for what holds a secret: the answer says where it broke, never what stood there.
    SecretBody: Extra::PassedOver, Blame::Silent;
    /// Like [`Order`] for what holds a secret.
    SecretOrder: Extra::Refused, Blame::Silent;
}

/// What becomes of a field that is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extra {
    PassedOver,
    Refused,
}

/// How a refusal speaks of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blame {
    Quoting,
    Silent,
}

fn parse<T: DeserializeOwned>(bytes: &[u8], extra: Extra, blame: Blame) -> Result<T, Refusal> {
    must_be_object(bytes)?;
    let mut unknown = None;
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let parsed = serde_ignored::deserialize(&mut json, |path| {
        unknown.get_or_insert_with(|| path.to_string());
    });
    let parsed = parsed.and_then(|parsed| json.end().map(|()| parsed)).map_err(|error| {
        Refusal::malformed(match blame {
            Blame::Quoting => format!("the body cannot be understood: {error}"),
            Blame::Silent => format!("the body cannot be understood at line {} column {}", error.line(), error.column()),
        })
    })?;
    match (extra, unknown) {
        (Extra::Refused, Some(name)) => Err(Refusal::malformed(match blame {
            Blame::Quoting => format!("this call knows no field `{name}`; remove it or correct its name"),
            Blame::Silent => "the body has a field this call does not know; remove it or correct its name".to_owned(),
        })),
        (Extra::PassedOver | Extra::Refused, _) => Ok(parsed),
    }
}

/// At most `MOST` bytes, exactly as they came.
#[derive(Debug)]
pub(crate) struct Bytes<const MOST: usize>(pub(crate) axum::body::Bytes);

impl<const MOST: usize> FromRequest<Arc<House>> for Bytes<MOST> {
    type Rejection = Fault;

    async fn from_request(request: Request, _: &Arc<House>) -> Result<Self, Fault> {
        read(request, MOST).await.map(Self)
    }
}

async fn read(request: Request, most: usize) -> Result<axum::body::Bytes, Fault> {
    axum::body::to_bytes(request.into_body(), most).await.map_err(|error| {
        if error.source().is_some_and(|cause| cause.is::<http_body_util::LengthLimitError>()) {
            return Refusal::new(ErrorCode::TooLarge, format!("the body is larger than {most} bytes")).into();
        }
        Refusal::malformed("the body did not arrive whole; send it again").into()
    })
}
