//! How a phone is reached: our own adb server, pairing, discovery, and a live list of what is plugged in.
//!
//! Everything here ends: a call has a deadline, a task dies with its handle, and a server we started is ours to stop.
//! It never touches a server it did not start, and never the default port unless the operator named it (facts/adb A10).

mod backoff;
mod error;
mod holder;
mod host;
mod hub;
mod program;
mod roster;
mod server;
mod track;
#[cfg(feature = "usb")]
mod usb;

#[cfg(test)]
mod tests;

pub use backoff::Backoff;
pub use error::ConnectError;
pub use holder::{Holder, holder_of};
pub use host::{AdbHost, Discovered, DiscoveredKind, Joined};
pub use hub::{AdbHub, HubError};
pub use program::{AdbPlaces, AdbProgram, AdbVersion};
pub(crate) use roster::fold;
pub use roster::{Change, SeenPhone, changes};
pub use server::{AdbServer, DEFAULT_PORT, PRIVATE_PORT, PortUse, port_use};
pub use track::{DeviceWatch, Roster};
#[cfg(feature = "usb")]
pub use usb::connect_usb;
