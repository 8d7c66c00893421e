//! Reaching a real phone over ADB, through an adb server or straight to adbd.
//!
//! Nothing here is public but the constructors and the key: a shell or an input event outside the guard
//! must not be expressible in another crate (D10). Every call has a deadline; a stream that dies early is an
//! error, never a short answer (facts/adb A1-A4).

mod error;
mod key;

pub use error::AdbError;
pub use key::{AdbKey, BadKey};
