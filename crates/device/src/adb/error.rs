//! What can go wrong on the wire, before it is put into an operator's words.

use std::io;

/// A failure of the ADB conversation.
#[derive(Debug, thiserror::Error)]
pub enum AdbError {
    #[error("cannot connect to {endpoint}")]
    Unreachable {
        endpoint: String,
        #[source]
        source: io::Error,
    },
    #[error("the connection failed")]
    Io(#[from] io::Error),
    #[error("the connection ended before the answer was complete")]
    BrokeOff,
    #[error("no answer in time")]
    Timeout,
    #[error("adb refused: {0}")]
    Refused(String),
    #[error("the phone has not allowed this computer")]
    Unauthorized,
    #[error("the peer does not speak adb as expected: {0}")]
    Protocol(String),
    #[error("the answer is larger than {cap} bytes")]
    TooLarge { cap: usize },
}
