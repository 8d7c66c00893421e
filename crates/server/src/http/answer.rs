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

/// Gives a fault its body; everything else goes through as it is.
pub(crate) fn finish(mut response: Response, id: RequestId) -> Response {
    let Some(fault) = response.extensions_mut().remove::<Fault>() else { return response };
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
