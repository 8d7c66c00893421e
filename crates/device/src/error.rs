//! What can go wrong between us and the phone, in words an operator can act on.
//!
//! Codes are stable: the engine stores them and the UI branches on them. Display never repeats the source.

use std::time::Duration;

use crate::adb::AdbError;
use crate::capture::Verdict;
use crate::guard::Refused;
use crate::tree::TreeError;

/// Why the phone did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum PhoneError {
    #[error("phone {serial} is gone")]
    DeviceGone { serial: String },
    #[error("phone {serial} has not allowed this computer")]
    Unauthorized { serial: String },
    #[error("{endpoint} cannot be reached")]
    AdbUnreachable {
        endpoint: String,
        #[source]
        source: AdbError,
    },
    #[error("the phone broke off while doing {what}")]
    Link {
        what: &'static str,
        #[source]
        source: AdbError,
    },
    #[error("{what} took longer than {limit:?}")]
    Timeout { what: &'static str, limit: Duration },
    #[error("{what} was cancelled")]
    Cancelled { what: &'static str },
    #[error("the screen could not be read: {reason}")]
    DumpFailed {
        reason: String,
        #[source]
        source: Option<TreeError>,
    },
    #[error("another program holds the phone's accessibility connection: {client}")]
    AccessibilityTaken { client: String },
    #[error("the screen never came to rest")]
    NeverIdle,
    #[error("the screen cannot be acted on: {verdict}")]
    BadScreen { verdict: Verdict },
    #[error("the phone refused the touch: {message}")]
    InputRefused { message: String },
    #[error("pinduoduo cannot be opened on this phone")]
    PddMissing,
    #[error("the phone answered {what} with something unexpected: {detail}")]
    BadAnswer { what: &'static str, detail: String },
    #[error("the tap guard refused: {0}")]
    GuardRefused(Refused),
}

impl From<Refused> for PhoneError {
    fn from(refused: Refused) -> Self {
        PhoneError::GuardRefused(refused)
    }
}

impl PhoneError {
    /// Stable word for storage and the wire.
    pub fn code(&self) -> &'static str {
        match self {
            PhoneError::DeviceGone { .. } | PhoneError::Link { .. } => "DEVICE_GONE",
            PhoneError::Unauthorized { .. } => "UNAUTHORIZED",
            PhoneError::AdbUnreachable { .. } => "ADB_UNREACHABLE",
            PhoneError::Timeout { .. } => "TIMEOUT",
            PhoneError::Cancelled { .. } => "CANCELLED",
            PhoneError::DumpFailed { .. } => "DUMP_FAILED",
            PhoneError::AccessibilityTaken { .. } => "ACCESSIBILITY_TAKEN",
            PhoneError::NeverIdle => "NEVER_IDLE",
            PhoneError::BadScreen { .. } => "BAD_SCREEN",
            PhoneError::InputRefused { .. } => "INPUT_REFUSED",
            PhoneError::PddMissing => "PDD_MISSING",
            PhoneError::BadAnswer { .. } => "BAD_ANSWER",
            PhoneError::GuardRefused(_) => "GUARD_REFUSED",
        }
    }

    /// Whether the same step may succeed later without a person changing anything.
    pub fn is_recoverable(&self) -> bool {
        match self {
            PhoneError::DeviceGone { .. }
            | PhoneError::Link { .. }
            | PhoneError::AdbUnreachable { .. }
            | PhoneError::Timeout { .. }
            | PhoneError::Cancelled { .. }
            | PhoneError::DumpFailed { .. }
            | PhoneError::NeverIdle
            | PhoneError::BadScreen { .. } => true,
            PhoneError::Unauthorized { .. }
            | PhoneError::AccessibilityTaken { .. }
            | PhoneError::InputRefused { .. }
            | PhoneError::PddMissing
            | PhoneError::BadAnswer { .. } => false,
            PhoneError::GuardRefused(refused) => refused.is_recoverable(),
        }
    }

    /// One sentence for the person at the desk.
    pub fn next_step(&self) -> &'static str {
        match self {
            PhoneError::DeviceGone { .. } | PhoneError::Link { .. } => "Check the cable or Wi-Fi and that the phone is on, then try again.",
            PhoneError::Unauthorized { .. } => "Unlock the phone, tick 'Always allow from this computer' and press Allow.",
            PhoneError::AdbUnreachable { .. } => "Check the phone's address and that USB or wireless debugging is on.",
            PhoneError::Timeout { .. } => "Wait until the phone responds to touch again, then try again.",
            PhoneError::Cancelled { .. } => "Nothing to do; start it again when you are ready.",
            PhoneError::DumpFailed { .. } => "Unlock the phone and leave it on the page, then try again.",
            PhoneError::AccessibilityTaken { .. } => "Close the other automation program on the phone, then try again.",
            PhoneError::NeverIdle => "Turn off the phone's animations in Developer options, then try again.",
            PhoneError::BadScreen { .. } => "Look at the phone, close what covers the page and log in if asked.",
            PhoneError::InputRefused { .. } => "Turn on 'USB debugging (Security settings)' in Developer options and restart the phone.",
            PhoneError::PddMissing => "Install Pinduoduo on the phone or enable it again.",
            PhoneError::BadAnswer { .. } => "Send a support bundle; this phone answers in a way we do not know.",
            PhoneError::GuardRefused(_) => "Look at the phone; the page is not what the step expected.",
        }
    }
}
