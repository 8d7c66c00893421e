//! Reaching a real phone over ADB, through an adb server or straight to adbd.
//!
//! Nothing here is public but the constructors and the key: a shell or an input event outside the guard
//! must not be expressible in another crate (D10). Every call has a deadline; a stream that dies early is an
//! error, never a short answer (facts/adb A1-A4).

pub(crate) mod answers;
pub(crate) mod direct;
mod error;
mod key;
pub(crate) mod link;
mod message;
pub(crate) mod phone;
pub(crate) mod wire;

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;

pub(crate) use answers::text;
pub use answers::{ListedDevice, ListedState};
pub use error::AdbError;
pub use key::{AdbKey, BadKey};

use crate::error::PhoneError;
use crate::phone::Phone;

/// A phone reached straight over TCP, without adb.exe.
///
/// Connects at the first call and again after a loss. Until the person pressed Allow every call answers
/// [`PhoneError::Unauthorized`]; the request stays on the phone's screen, so poll with [`Phone::facts`].
pub fn connect_direct(addr: SocketAddr, key: impl Into<Arc<AdbKey>>) -> Arc<dyn Phone> {
    Arc::new(phone::AdbPhone::new(direct::DirectLink::new(addr, key.into())))
}

/// A phone known to an adb server. Connects anew for every call, as adb itself does.
pub fn connect_server(server: SocketAddr, serial: impl Into<String>) -> Arc<dyn Phone> {
    Arc::new(phone::AdbPhone::new(wire::ServerLink::new(server, serial.into())))
}

/// Phones an adb server knows, in its order. A line we cannot read is kept, never fatal.
pub async fn list_devices(server: SocketAddr) -> Result<Vec<ListedDevice>, PhoneError> {
    let text = wire::ask(server, "host:devices-l", wire::ASK_LIMIT)
        .await
        .map_err(|error| phone::explain(error, &server.to_string(), "listing devices", wire::ASK_LIMIT))?;
    Ok(answers::devices(&text))
}

/// The adb server's protocol version, for example 41.
pub async fn server_version(server: SocketAddr) -> Result<u32, PhoneError> {
    let text = wire::ask(server, "host:version", wire::ASK_LIMIT)
        .await
        .map_err(|error| phone::explain(error, &server.to_string(), "asking adb's version", wire::ASK_LIMIT))?;
    u32::from_str_radix(text.trim(), 16)
        .map_err(|_| PhoneError::BadAnswer { what: "host:version", detail: text.chars().take(40).collect() })
}
