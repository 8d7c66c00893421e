//! The worker: rows in, phone, rows out.
//!
//! Looks for the one task that may use the phone, commits the intent to start or resume it, waits until the row says `running`, runs the
//! Pinduoduo flow under the run lease, and settles it in one transaction. It speaks no HTTP and writes no SQL; what it wants from the
//! server it commits as an intent, and `sync` performs it (ARCHITECTURE.md, river WORK).

mod artifacts;
mod clock;
mod gate;
mod run;
#[cfg(test)]
mod tests;
mod worker;

pub use artifacts::{ArtifactError, ArtifactStore};
pub use worker::{Engine, EngineNudges, EngineParts, Pause, PhoneSlot, WorkOrder, WorkState};
