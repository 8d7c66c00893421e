//! What can go wrong before there is a phone to talk to. adb's own words are kept as detail, decoded from whatever it printed.

use std::time::Duration;

use crate::adb::AdbError;
use crate::connect::holder::Holder;

/// Why a road to phones could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("no adb program was found (looked at {looked})")]
    NoAdb { looked: String },
    #[error("adb failed to {what}: {said}")]
    AdbFailed { what: &'static str, said: String },
    #[error("adb did not {what} within {limit:?}")]
    Timeout { what: &'static str, limit: Duration },
    #[error("port {port} is used by {}", .holder.as_ref().map_or_else(|| "an unknown program".to_owned(), ToString::to_string))]
    PortHeld { port: u16, holder: Option<Holder> },
    #[error("this adb cannot {what}: {said}")]
    Unsupported { what: &'static str, said: String },
    #[error("the phone refused the pairing code: {said}")]
    PairingRefused { said: String },
    #[error("the phone at {address} could not be joined: {said}")]
    NotJoined { address: String, said: String },
    #[error("the adb server does not answer")]
    Server(#[source] AdbError),
}

impl ConnectError {
    /// Stable word for the interface.
    pub fn code(&self) -> &'static str {
        match self {
            ConnectError::NoAdb { .. } => "ADB_MISSING",
            ConnectError::AdbFailed { .. } | ConnectError::Timeout { .. } => "ADB_FAILED",
            ConnectError::PortHeld { .. } => "ADB_PORT_HELD",
            ConnectError::Unsupported { .. } => "ADB_TOO_OLD",
            ConnectError::PairingRefused { .. } => "PAIRING_REFUSED",
            ConnectError::NotJoined { .. } => "ADB_UNREACHABLE",
            ConnectError::Server(AdbError::Unauthorized) => "UNAUTHORIZED",
            ConnectError::Server(_) => "ADB_SERVER_DOWN",
        }
    }

    /// Whether the same call may succeed later without a person changing anything.
    pub fn is_recoverable(&self) -> bool {
        match self {
            ConnectError::Timeout { .. }
            | ConnectError::AdbFailed { .. }
            | ConnectError::NotJoined { .. }
            | ConnectError::Server(_)
            | ConnectError::PortHeld { .. } => true,
            ConnectError::NoAdb { .. } | ConnectError::Unsupported { .. } | ConnectError::PairingRefused { .. } => false,
        }
    }
}
