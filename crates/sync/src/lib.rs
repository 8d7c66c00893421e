//! The road to the server: claim, calls, lease, drain, device heartbeat. The only HTTP client on the client side.
//!
//! `sync` and `engine` never call each other. The engine commits intents to the store; the loops here perform them, replay them until
//! the answer is definite, and write the answer back (D5). A nudge says *look*, never *what*, so a crash, a lost message and a restart
//! are one case.

mod api;
mod beat;
mod calls;
mod claim;
mod drain;
mod house;
mod lease;
#[cfg(test)]
mod tests;
mod turn;
pub mod wire;

pub use api::{Api, ApiError, SessionKeeper, SessionState};
pub use beat::PhoneReport;
pub use house::{LinkState, Nudges, Sync, SyncParts, Timing};
