//! The HTTP door (D13): routes, request ids, limits, one error body. It parses, calls, converts; every rule is behind it.

mod admin;
mod answer;
mod auth;
mod device;
mod docs;
mod extract;
mod ops;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use cmautobuy_protocol::{ErrorCode, HEADER_REQUEST_ID, RequestId};
use tracing::Instrument;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::clock::Stopwatch;
use crate::house::House;
use crate::refusal::Refusal;
use answer::Fault;

/// The longest a call may take, from its last header byte to its answer.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) type App = State<Arc<House>>;

pub(crate) fn router(house: Arc<House>) -> Router {
    let (router, document) = routes().split_for_parts();
    docs::mount(router, document)
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(from_fn_with_state(Arc::clone(&house), around))
        .with_state(house)
}

/// Every call with its description. A handler that is not here with `routes!` is neither served nor documented.
fn routes() -> OpenApiRouter<Arc<House>> {
    let api = OpenApiRouter::new()
        .routes(routes!(auth::login))
        .routes(routes!(auth::refresh))
        .routes(routes!(auth::logout))
        .routes(routes!(auth::me))
        .routes(routes!(device::heartbeat))
        .routes(routes!(device::claim_next))
        .routes(routes!(device::start))
        .routes(routes!(device::run_heartbeat))
        .routes(routes!(device::resume))
        .routes(routes!(device::release))
        .routes(routes!(device::cancel_ack))
        .routes(routes!(device::results))
        .routes(routes!(device::reference_image))
        .routes(routes!(admin::tasks::create_task, admin::tasks::list_tasks))
        .routes(routes!(admin::tasks::import_tasks))
        .routes(routes!(admin::tasks::put_image, admin::tasks::image, admin::tasks::delete_image))
        .routes(routes!(admin::tasks::task_detail))
        .routes(routes!(admin::tasks::cancel_task))
        .routes(routes!(admin::tasks::close_task))
        .routes(routes!(admin::tasks::release_hold))
        .routes(routes!(admin::users::create_user, admin::users::list_users))
        .routes(routes!(admin::users::user, admin::users::change_user))
        .routes(routes!(admin::users::set_password))
        .routes(routes!(admin::users::end_sessions))
        .routes(routes!(admin::users::audit))
        .routes(routes!(admin::devices::authorize_device, admin::devices::list_devices))
        .routes(routes!(admin::devices::device, admin::devices::change_device))
        .routes(routes!(admin::devices::forget_instance));
    OpenApiRouter::with_openapi(docs::head())
        .nest(cmautobuy_protocol::API_BASE, api)
        .routes(routes!(ops::healthz))
        .routes(routes!(ops::readyz))
        .routes(routes!(ops::metrics))
}

/// Around every call: the request id in and out, one log line, the time limit, and the one error body.
async fn around(State(house): App, mut request: Request, next: Next) -> Response {
    let name = HeaderName::from_static(HEADER_REQUEST_ID);
    let given = request.headers().get(&name).and_then(|value| value.to_str().ok()).and_then(|text| text.parse().ok());
    let id: RequestId = given.unwrap_or_else(|| RequestId::from_uuid(house.new_id()));
    request.extensions_mut().insert(id);
    let method = request.method().clone();
    // The route's pattern, not the path: a path may hold what a person typed.
    let route = request.extensions().get::<MatchedPath>().map_or("-", |path| path.as_str()).to_owned();
    let (verb, pattern) = (verb(&method), route.clone());
    let span = tracing::info_span!("call", request_id = %id, %method, route);
    async move {
        let began = Stopwatch::start();
        let mut response = match tokio::time::timeout(CALL_TIMEOUT, next.run(request)).await {
            Ok(response) => response,
            Err(_) => {
                Fault::from(Refusal::new(ErrorCode::Unavailable, "the call took too long; repeat it with the same key")).into_response()
            }
        };
        response = answer::finish(response, id);
        if let Ok(value) = HeaderValue::from_str(&id.to_string()) {
            response.headers_mut().insert(name, value);
        }
        let status = response.status().as_u16();
        house.metrics.answered(verb, &pattern, status, began);
        tracing::info!(status, took_ms = began.elapsed().as_millis(), "answered");
        response
    }
    .instrument(span)
    .await
}

async fn no_route() -> Fault {
    Refusal::new(ErrorCode::NotFound, "there is no such call").into()
}

async fn no_method() -> Fault {
    Fault::with_status(StatusCode::METHOD_NOT_ALLOWED, Refusal::new(ErrorCode::Malformed, "this call has another HTTP method"))
}

/// A method as a label: a caller may invent others, which must not become series of their own.
fn verb(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}
