//! What the server says when it does not do what was asked: a stable code, a sentence with the next step, and for the caller's own task
//! where it stands (D5, D13). Knows nothing of HTTP.

use std::fmt;

use cmautobuy_protocol::{ErrorCode, OwnTask};

use crate::store::StoreError;

/// A definite "no". Whoever gets it can act on `code`; `message` is for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub code: ErrorCode,
    pub message: String,
    /// Only ever the caller's own task (T-205 §11: no answer tells anything of another's).
    pub task: Option<OwnTask>,
}

impl Refusal {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), task: None }
    }

    pub(crate) fn about(self, task: OwnTask) -> Self {
        Self { task: Some(task), ..self }
    }

    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Malformed, message)
    }

    pub(crate) fn unknown_cursor() -> Self {
        Self::malformed("unknown cursor; start from the first page")
    }

    /// One text for "unknown" and "not yours", so that it cannot be told which (D3).
    pub(crate) fn not_found() -> Self {
        Self::new(ErrorCode::NotFound, "no such task was given to this user and device")
    }

    pub(crate) fn key_reused() -> Self {
        Self::new(ErrorCode::IdempotencyConflict, "this idempotency key was used for a different request; make a new key")
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}
impl std::error::Error for Refusal {}

/// How a call ends when it does not end well.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The rules say no; nothing was changed.
    #[error("refused")]
    Refused(#[source] Box<Refusal>),
    /// The store failed; nothing was changed.
    #[error("use the server's database")]
    Store(#[from] StoreError),
    /// The operating system's random numbers or the password hash failed.
    #[error("hash a password")]
    Password(#[from] crate::secret::PasswordError),
    /// A blocking task did not come back.
    #[error("run a call to its end")]
    Lost(#[from] tokio::task::JoinError),
}

impl From<Refusal> for CallError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}

impl From<rusqlite::Error> for CallError {
    fn from(source: rusqlite::Error) -> Self {
        Self::Store(source.into())
    }
}

impl CallError {
    /// The refusal, when it is one.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::Store(_) | Self::Password(_) | Self::Lost(_) => None,
        }
    }

    /// What goes outward: detail of a failure stays in the log (D13).
    pub fn outward(&self) -> Refusal {
        match self {
            Self::Refused(refusal) => (**refusal).clone(),
            Self::Store(error) if error.is_busy() => Refusal::new(ErrorCode::Unavailable, "the server is busy; try again in a moment"),
            Self::Store(_) | Self::Password(_) | Self::Lost(_) => {
                Refusal::new(ErrorCode::Internal, "the server failed; its log has this request id")
            }
        }
    }
}

/// The messages are objects, and serde would take a list of their values in order as well.
pub(crate) fn must_be_object(bytes: &[u8]) -> Result<(), Refusal> {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if first.is_none_or(|byte| *byte == b'{') { Ok(()) } else { Err(Refusal::malformed("the body must be a JSON object: {\"...\": ...}")) }
}
