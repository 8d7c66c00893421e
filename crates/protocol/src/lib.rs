//! What the two ends say to each other (D13): ids, messages, `pdd_data`, error codes.
//!
//! This crate does no I/O and reads no clock. The wire crosses a deploy boundary, so messages are only ever extended with optional
//! fields; golden JSON in `tests/golden/` is what both sides (and the UI tests) are held to.

pub mod account;
pub mod admin;
pub mod auth;
pub mod device;
pub mod error;
pub mod goods;
pub mod ids;
pub mod lifecycle;
pub mod pdd_data;
pub mod result;
#[cfg(feature = "openapi")]
mod schema;
pub mod secret;
mod time;

pub use error::{ErrorBody, ErrorCode, ErrorDetail, OwnTask};
pub use ids::{AttemptId, DeviceId, EventId, ExecutionId, IdempotencyKey, InstanceId, RemoteTaskId, RequestId, ServerId, UserId};
pub use lifecycle::{ExecutionMode, ServerStatus, TaskType};
pub use secret::{AccessToken, ClaimToken, Password, RefreshToken};
pub use time::WireTime;

/// Base path of the task API (D13).
pub const API_BASE: &str = "/api/v1";
/// Header carrying the client-made claim token (T-205 §2).
pub const HEADER_CLAIM_TOKEN: &str = "x-claim-token";
/// Header carrying the idempotency key of a call that changes the server (D5).
pub const HEADER_IDEMPOTENCY_KEY: &str = "idempotency-key";
/// Header every request carries and every answer repeats (D13).
pub const HEADER_REQUEST_ID: &str = "x-request-id";
/// Largest result body the server takes, in bytes; above it answers 413.
pub const MAX_RESULT_BYTES: usize = 2 * 1024 * 1024;
