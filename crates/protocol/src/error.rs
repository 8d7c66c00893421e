//! The one error body of every call (D13). A code exists only if someone branches on it.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{ExecutionId, RequestId, ServerStatus};

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal,)+) => {
        /// Stable error code. [`ErrorCode::Other`] keeps a code a newer server may send.
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub enum ErrorCode { $($(#[$doc])* $variant,)+ Other(String) }

        impl ErrorCode {
            pub const ALL: &[ErrorCode] = &[$(ErrorCode::$variant,)+];
            pub fn as_str(&self) -> &str {
                match self { $(Self::$variant => $text,)+ Self::Other(text) => text }
            }
        }
        impl From<&str> for ErrorCode {
            fn from(text: &str) -> Self {
                match text { $($text => Self::$variant,)+ other => Self::Other(other.to_owned()) }
            }
        }
    };
}

codes! {
    /// 401: no, unknown or expired access token. Refresh, then log in again.
    Unauthenticated = "UNAUTHENTICATED",
    /// 401 on login: user and password do not match.
    LoginRefused = "LOGIN_REFUSED",
    /// 403 on login: the device is not pre-authorised for this user. An admin must add it.
    DeviceNotAuthorized = "DEVICE_NOT_AUTHORIZED",
    /// 403: the role does not allow this call, or `device_id` is not the token's (T-205 §1).
    Forbidden = "FORBIDDEN",
    /// 404: unknown, or not dispatched to the caller; the answer does not say which (D3).
    NotFound = "NOT_FOUND",
    /// 413: body above the limit.
    TooLarge = "TOO_LARGE",
    /// 422: the request cannot be understood.
    Malformed = "MALFORMED",
    /// 429: too many logins; wait.
    RateLimited = "RATE_LIMITED",
    /// 409: same key, different request (T-205 §3, D8).
    IdempotencyConflict = "IDEMPOTENCY_CONFLICT",
    /// 409: the claim behind this key was released, cancelled or reclaimed (T-205 §3).
    ClaimReplayExpired = "CLAIM_REPLAY_EXPIRED",
    /// 409: heartbeat too old, or a readiness bit is false (T-205 §4).
    DeviceNotReady = "DEVICE_NOT_READY",
    /// 409: the device already holds a task (T-205 §5).
    DeviceBusy = "DEVICE_BUSY",
    /// 409: another live instance uses this device or this phone (D19).
    DeviceInUse = "DEVICE_IN_USE",
    /// 409: the lease ran out (T-205 §6, §8).
    LeaseExpired = "LEASE_EXPIRED",
    /// 409: the claim is no longer the caller's.
    ClaimLost = "CLAIM_LOST",
    /// 409: the task was cancelled.
    TaskCanceled = "TASK_CANCELED",
    /// 409: `expected_version` is not the current one: read, then a new intent with a new key (D5).
    VersionConflict = "VERSION_CONFLICT",
    /// 409: `execution_id` or `claim_generation` is not the current one.
    ExecutionMismatch = "EXECUTION_MISMATCH",
    /// 409: the task's state does not allow this call.
    IllegalState = "ILLEGAL_STATE",
    /// 409: the order number was reported by another task (D10).
    OrderAlreadyReported = "ORDER_ALREADY_REPORTED",
    /// 409 on create: `external_ref` exists; the message names the task (D19).
    AlreadyExists = "ALREADY_EXISTS",
    /// 503: not now; try again later.
    Unavailable = "UNAVAILABLE",
    /// 500: the server's fault; the log has the request id.
    Internal = "INTERNAL",
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
impl Serialize for ErrorCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
impl<'de> Deserialize<'de> for ErrorCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self::from(text.as_str()))
    }
}

/// `error` and its sources in one line: for a log, or the detail under a sentence for a person.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        source = inner.source();
    }
    text
}

/// The caller's own task as the server sees it; carried by lifecycle 409s (D5) so the client needs no second call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OwnTask {
    pub status: ServerStatus,
    pub version: u64,
    pub execution_id: Option<ExecutionId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ErrorDetail {
    pub code: ErrorCode,
    pub message: String,
    pub request_id: Option<RequestId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<OwnTask>,
}

/// `{"error": {...}}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ErrorBody {
    pub error: ErrorDetail,
}
