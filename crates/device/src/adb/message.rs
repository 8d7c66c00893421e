//! The 24-byte header and payload that adbd speaks.
//!
//! Encoding always fills in the checksum: an old peer wants it, a new one ignores it (facts C1).

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::adb::AdbError;

pub(crate) const CNXN: u32 = u32::from_le_bytes(*b"CNXN");
pub(crate) const AUTH: u32 = u32::from_le_bytes(*b"AUTH");
pub(crate) const OPEN: u32 = u32::from_le_bytes(*b"OPEN");
pub(crate) const OKAY: u32 = u32::from_le_bytes(*b"OKAY");
pub(crate) const WRTE: u32 = u32::from_le_bytes(*b"WRTE");
pub(crate) const CLSE: u32 = u32::from_le_bytes(*b"CLSE");
pub(crate) const STLS: u32 = u32::from_le_bytes(*b"STLS");

pub(crate) const VERSION: u32 = 0x0100_0001;
pub(crate) const MAX_PAYLOAD: u32 = 1024 * 1024;

pub(crate) const AUTH_TOKEN: u32 = 1;
pub(crate) const AUTH_SIGNATURE: u32 = 2;
pub(crate) const AUTH_RSAPUBLICKEY: u32 = 3;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) command: u32,
    pub(crate) arg0: u32,
    pub(crate) arg1: u32,
    pub(crate) payload: Vec<u8>,
}

impl Message {
    pub(crate) fn new(command: u32, arg0: u32, arg1: u32, payload: impl Into<Vec<u8>>) -> Message {
        Message { command, arg0, arg1, payload: payload.into() }
    }

    /// Header and payload in one buffer, so that it leaves in one write (facts A5).
    pub(crate) fn encode(&self) -> Vec<u8> {
        let sum = self.payload.iter().fold(0u32, |sum, byte| sum.wrapping_add(u32::from(*byte)));
        let mut out = Vec::with_capacity(24 + self.payload.len());
        for word in [self.command, self.arg0, self.arg1, self.payload.len() as u32, sum, !self.command] {
            out.extend(word.to_le_bytes());
        }
        out.extend(&self.payload);
        out
    }

    pub(crate) async fn read(from: &mut (impl AsyncRead + Unpin)) -> Result<Message, AdbError> {
        let mut head = [0u8; 24];
        from.read_exact(&mut head).await.map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => AdbError::BrokeOff,
            _ => AdbError::Io(error),
        })?;
        let word = |i: usize| u32::from_le_bytes([head[4 * i], head[4 * i + 1], head[4 * i + 2], head[4 * i + 3]]);
        let command = word(0);
        if word(5) != !command {
            return Err(AdbError::Protocol(format!("a header with magic {:#010x}", word(5))));
        }
        let len = word(3);
        if len > MAX_PAYLOAD {
            return Err(AdbError::Protocol(format!("a payload of {len} bytes")));
        }
        let mut payload = vec![0u8; len as usize];
        from.read_exact(&mut payload).await.map_err(|_| AdbError::BrokeOff)?;
        Ok(Message { command, arg0: word(1), arg1: word(2), payload })
    }
}
