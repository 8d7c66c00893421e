//! The OpenAPI document (D13): written from the handlers, committed as `crates/server/openapi.json`, served at `/openapi.json`, and readable as a
//! page at `/docs`.
//!
//! To describe a new call: put `#[utoipa::path(..)]` on its handler (method, path below the API base, `tag`, `request_body`, headers and path in
//! `params`, the good answers in `responses`; `security(())` when it needs no login), add it to `routes` in `http/mod.rs` with `routes!`, and
//! rewrite the committed file: `UPDATE_OPENAPI=1 cargo nextest run -p cmautobuy-server openapi`. What every call has in common - the request id,
//! the error body, the login - is added here, once.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use cmautobuy_protocol::{ClaimToken, ErrorBody, IdempotencyKey, RemoteTaskId};
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn};
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::schema::{AdditionalProperties, Array, ArrayItems, KnownFormat, Object, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Content, OpenApi, PathItem, Ref, RefOr, Schema};
use utoipa::{Modify, ToSchema};

use crate::house::House;

const BEARER: &str = "bearer";

/// Title, tags and the login; the paths are added by the router.
pub(super) fn head() -> OpenApi {
    #[derive(utoipa::OpenApi)]
    #[openapi(
        info(title = "CMAutoBuy companion server", description = "Task lifecycle (T-205) and administration. Every answer repeats X-Request-Id."),
        tags(
            (name = "auth", description = "Login, refresh, logout"),
            (name = "device", description = "Calls of a buyer on an authorised device"),
            (name = "admin", description = "Calls of an administrator"),
            (name = "operations", description = "For whoever runs the server")
        ),
        components(schemas(ErrorBody, ClaimToken, IdempotencyKey, RemoteTaskId))
    )]
    struct Head;
    <Head as utoipa::OpenApi>::openapi()
}

/// Serves the document and, unless left out at build time, the page.
pub(super) fn mount(router: Router<Arc<House>>, mut document: OpenApi) -> Router<Arc<House>> {
    Common.modify(&mut document);
    let text: Arc<str> = to_text(&document).into();
    let json = get(move || std::future::ready(([(CONTENT_TYPE, "application/json")], text.to_string())));
    let router = router.route("/openapi.json", json);
    #[cfg(feature = "docs-page")]
    let router = router.merge(page());
    router
}

/// Everything the page needs comes from this server, and it may talk to this server only.
#[cfg(feature = "docs-page")]
fn page() -> Router<Arc<House>> {
    use axum::http::HeaderValue;
    use axum::http::header::CONTENT_SECURITY_POLICY;
    use axum::middleware::map_response;
    use axum::response::Response;
    use utoipa_swagger_ui::{Config, SwaggerUi};

    // Swagger UI styles its parts inline and draws its icons from data links.
    const POLICY: HeaderValue = HeaderValue::from_static(
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; \
         frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    );
    let page: Router<Arc<House>> = SwaggerUi::new("/docs").config(Config::from("/openapi.json").validator_url("none")).into();
    page.layer(map_response(async |mut response: Response| {
        response.headers_mut().insert(CONTENT_SECURITY_POLICY, POLICY);
        response
    }))
}

/// The document as it is committed and served.
pub(crate) fn to_text(document: &OpenApi) -> String {
    let mut text = document.to_pretty_json().expect("a document made of plain structs always becomes JSON");
    text.push('\n');
    text
}

struct Common;

impl Modify for Common {
    fn modify(&self, document: &mut OpenApi) {
        let components = document.components.get_or_insert_default();
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some("access_token of /auth/login")).build();
        components.add_security_scheme(BEARER, SecurityScheme::Http(bearer));
        let mut orders = Vec::new();
        for item in document.paths.paths.values_mut() {
            for operation in operations(item) {
                finish(operation);
                if operation.tags.iter().flatten().any(|tag| tag == "admin") {
                    orders.extend(json_of(operation).and_then(name_of));
                }
            }
        }
        if let Some(components) = &mut document.components {
            close(&mut components.schemas, orders);
        }
    }
}

fn id_text() -> Object {
    ObjectBuilder::new().schema_type(Type::String).format(Some(SchemaFormat::KnownFormat(KnownFormat::Uuid))).build()
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.post, &mut item.put, &mut item.patch, &mut item.delete].into_iter().flatten()
}

/// The shape of an operation's JSON body.
fn json_of(operation: &Operation) -> Option<&RefOr<Schema>> {
    let Some(RefOr::T(body)) = &operation.request_body else { return None };
    match body.content.get("application/json")? {
        RefOr::T(content) => content.schema.as_ref(),
        RefOr::Ref(_) => None,
    }
}

/// The component a reference names.
fn name_of(schema: &RefOr<Schema>) -> Option<String> {
    let RefOr::Ref(reference) = schema else { return None };
    reference.ref_location.rsplit('/').next().map(str::to_owned)
}

/// Says of these and of what they are made of that they have no other fields: an administrator's order is refused otherwise.
fn close(schemas: &mut BTreeMap<String, RefOr<Schema>>, mut names: Vec<String>) {
    while let Some(name) = names.pop() {
        let Some(RefOr::T(Schema::Object(object))) = schemas.get_mut(&name) else { continue };
        if object.properties.is_empty() || object.additional_properties.is_some() {
            continue;
        }
        object.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(false)));
        for property in object.properties.values() {
            names.extend(name_of(property));
            if let RefOr::T(Schema::Array(Array { items: ArrayItems::RefOrSchema(items), .. })) = property {
                names.extend(name_of(items));
            }
        }
    }
}

/// utoipa knows bytes only as a list of numbers.
fn as_bytes(content: &mut Content) {
    content.schema =
        Some(ObjectBuilder::new().schema_type(Type::String).format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary))).into());
}

fn finish(operation: &mut Operation) {
    let sent = operation.request_body.iter_mut().filter_map(|body| match body {
        RefOr::T(body) => Some(&mut body.content),
        RefOr::Ref(_) => None,
    });
    let answered = operation.responses.responses.values_mut().filter_map(|response| match response {
        RefOr::T(response) => Some(&mut response.content),
        RefOr::Ref(_) => None,
    });
    for (kind, content) in sent.flatten().chain(answered.flatten()) {
        if let RefOr::T(content) = content
            && kind != "application/json"
            && !kind.starts_with("text/")
        {
            as_bytes(content);
        }
    }

    let id = ParameterBuilder::new()
        .name("X-Request-Id")
        .parameter_in(ParameterIn::Header)
        .description(Some("Names this request in the answer and in the log; made by the server when absent or no UUID."))
        .schema(Some(Object::with_type(Type::String)))
        .build();
    operation.parameters.get_or_insert_default().push(id.into());
    let body = || Content::new(Some(RefOr::Ref(Ref::from_schema_name(ErrorBody::name()))));
    let refused = ResponseBuilder::new().description("refused; nothing was changed").content("application/json", body()).build();
    let failed = ResponseBuilder::new().description("failed; repeat it with the same key").content("application/json", body()).build();
    operation.responses.responses.insert("4XX".to_owned(), refused.into());
    operation.responses.responses.insert("5XX".to_owned(), failed.into());
    for response in operation.responses.responses.values_mut() {
        if let RefOr::T(response) = response {
            let header = HeaderBuilder::new().schema(Some(id_text())).description(Some("Names this request.")).build();
            response.headers.insert("X-Request-Id".to_owned(), header.into());
        }
    }
    if operation.security.is_none() {
        operation.security = Some(vec![SecurityRequirement::new(BEARER, Vec::<String>::new())]);
    }
}
