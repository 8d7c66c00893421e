//! From "what happened" to an HTTP answer. The request id is known only outside the handlers, so a fault travels in the response's extensions
//! and becomes the error body there.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use cmautobuy_protocol::{ErrorBody, ErrorCode, ErrorDetail, RequestId};

use crate::refusal::{CallError, Refusal};

/// A call that did not end well.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    status: StatusCode,
    refusal: Refusal,
}

impl Fault {
    pub(crate) fn with_status(status: StatusCode, refusal: Refusal) -> Self {
        Self { status, refusal }
    }
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Self { status: status_of(&refusal.code), refusal }
    }
}

impl From<CallError> for Fault {
    fn from(error: CallError) -> Self {
        if error.refusal().is_none() {
            // Logged once, here, with its causes; outward goes only that it failed (D13).
            tracing::error!(error = &error as &dyn std::error::Error, "call failed");
        }
        error.outward().into()
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// A picture only the asker may see and nobody may keep (T-205 §13).
#[derive(Debug)]
pub(crate) struct Jpeg(pub(crate) Vec<u8>);

impl IntoResponse for Jpeg {
    fn into_response(self) -> Response {
        let headers = [
            (header::CONTENT_TYPE, HeaderValue::from_static("image/jpeg")),
            (header::CACHE_CONTROL, HeaderValue::from_static("private, no-store")),
            (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
            (header::CONTENT_DISPOSITION, HeaderValue::from_static("inline; filename=\"reference.jpg\"")),
        ];
        (headers, self.0).into_response()
    }
}

fn status_of(code: &ErrorCode) -> StatusCode {
    match code {
        ErrorCode::Unauthenticated | ErrorCode::LoginRefused => StatusCode::UNAUTHORIZED,
        ErrorCode::DeviceNotAuthorized | ErrorCode::Forbidden => StatusCode::FORBIDDEN,
        ErrorCode::NotFound => StatusCode::NOT_FOUND,
        ErrorCode::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorCode::Malformed => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorCode::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::IdempotencyConflict
        | ErrorCode::ClaimReplayExpired
        | ErrorCode::DeviceNotReady
        | ErrorCode::DeviceBusy
        | ErrorCode::DeviceInUse
        | ErrorCode::LeaseExpired
        | ErrorCode::ClaimLost
        | ErrorCode::TaskCanceled
        | ErrorCode::VersionConflict
        | ErrorCode::ExecutionMismatch
        | ErrorCode::IllegalState
        | ErrorCode::OrderAlreadyReported
        | ErrorCode::AlreadyExists => StatusCode::CONFLICT,
        ErrorCode::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::Internal | ErrorCode::Other(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// What a part that is not ours refused, such as the page of the API: its words are not for a person, so ours stand in.
fn foreign(status: StatusCode) -> Fault {
    let refusal = match status {
        StatusCode::NOT_FOUND => Refusal::new(ErrorCode::NotFound, "there is nothing at this address; check it"),
        status if status.is_server_error() => Refusal::new(ErrorCode::Internal, "the server failed; its log has this request id"),
        _ => Refusal::malformed("the request cannot be understood; check its address"),
    };
    Fault::with_status(status, refusal)
}

/// Gives a fault its body; everything else goes through as it is.
pub(crate) fn finish(mut response: Response, id: RequestId) -> Response {
    let fault = match response.extensions_mut().remove::<Fault>() {
        Some(fault) => fault,
        None if response.status().is_client_error() || response.status().is_server_error() => foreign(response.status()),
        None => return response,
    };
    let Refusal { code, message, task } = fault.refusal;
    tracing::info!(%code, %message, "refused");
    let mut answer = Json(ErrorBody { error: ErrorDetail { code, message, request_id: Some(id), task } }).into_response();
    *answer.status_mut() = fault.status;
    if fault.status == StatusCode::TOO_MANY_REQUESTS {
        answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("60"));
    }
    // What axum found out itself, such as `Allow` on 405.
    if let Some(allow) = response.headers().get(header::ALLOW) {
        answer.headers_mut().insert(header::ALLOW, allow.clone());
    }
    answer
}
