//! The HTTP door (D13): routes, request ids, limits, one error body. It parses, calls, converts; every rule is behind it.

mod admin;
mod answer;
mod auth;
mod device;
mod extract;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use cmautobuy_protocol::{ErrorCode, HEADER_REQUEST_ID, RequestId};
use tracing::Instrument;

use crate::house::House;
use crate::refusal::Refusal;
use crate::store::meta::meta_server_id;
use answer::Fault;

/// The longest a call may take, from its last header byte to its answer.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) type App = State<Arc<House>>;

pub(crate) fn router(house: Arc<House>) -> Router {
    let api = Router::new()
        .route("/auth/login", post(auth::login))
        .route("/auth/refresh", post(auth::refresh))
        .route("/auth/logout", post(auth::logout))
        .route("/devices/heartbeat", post(device::heartbeat))
        .route("/tasks/claim-next", post(device::claim_next))
        .route("/tasks/{id}/start", post(device::start))
        .route("/tasks/{id}/heartbeat", post(device::run_heartbeat))
        .route("/tasks/{id}/resume", post(device::resume))
        .route("/tasks/{id}/release", post(device::release))
        .route("/tasks/{id}/cancel-ack", post(device::cancel_ack))
        .route("/tasks/{id}/results", post(device::results))
        .route("/admin/tasks", post(admin::create_task).get(admin::list_tasks))
        .route("/admin/tasks/{id}", get(admin::task_detail))
        .route("/admin/tasks/{id}/cancel", post(admin::cancel_task))
        .route("/admin/tasks/{id}/close", post(admin::close_task))
        .route("/admin/users", post(admin::create_user))
        .route("/admin/devices", post(admin::authorize_device));
    Router::new()
        .nest(cmautobuy_protocol::API_BASE, api)
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(from_fn_with_state(Arc::clone(&house), around))
        .with_state(house)
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
    let span = tracing::info_span!("call", request_id = %id, %method, route);
    async move {
        let began = house.now();
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
        tracing::info!(status = response.status().as_u16(), took_ms = house.now().ms_since(began), "answered");
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

/// The process answers.
async fn healthz() -> &'static str {
    "ok"
}

/// The database answers.
async fn readyz(State(house): App) -> Result<&'static str, Fault> {
    match house.blocking(|house| house.read(|call| Ok(meta_server_id(call.tx)?))).await {
        Ok(Some(_)) => Ok("ready"),
        Ok(None) | Err(_) => Err(Refusal::new(ErrorCode::Unavailable, "the database does not answer; see the server's log").into()),
    }
}
