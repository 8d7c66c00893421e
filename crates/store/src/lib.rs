//! What the client remembers: the only SQLite on the client side.
//!
//! Rows in, rows out, and the few writes that touch several tables as one immediate transaction (`tx`). State changes are decided
//! by `cmautobuy_task::next` and only recorded here. Never talks to a phone or a server, and reads no clock: `now` is an argument.

mod codec;
mod error;
mod ids;
mod open;
mod seal;
mod store;
mod table;
mod tx;

pub use codec::{AttemptState, CallKind, CallState, OutboxStatus, ReleaseAim, RunStatus};
pub use error::{Blocked, DeleteBlock, StoreError};
pub use ids::{ArtifactId, CallId, LocalTaskId, OutboxId, RunId};
pub use open::{SCHEMA_VERSION, peek_device};
pub use seal::{SealError, SealKey};
pub use store::{Reader, Store, Tx};
pub use table::artifact::{ArtifactRow, NewArtifact};
pub use table::identity::{BindServer, Identity};
pub use table::outbox::{OutboxCounts, OutboxListRow, OutboxRow};
pub use table::remembered_phone::{PhoneSeen, RememberedPhone};
pub use table::run::RunRow;
pub use table::server_call::{CallRecord, CallRow};
pub use table::task::{ClaimRef, Page, TaskFilter, TaskRow, TaskSummaryRow};
pub use tx::call::{NewCall, PhoneRef, RefusedEffect, Started};
pub use tx::claim::{ClaimEnd, ClaimKind, ClaimStored, FreshClaim, OpenClaim, PrepareOutcome};
pub use tx::outbox::OutboxMoved;
pub use tx::recover::{PROGRAM_DIED, Recovered, RecoveredRun};
pub use tx::settle::{Ending, Settle, Settled};
pub use tx::view::TaskDetailRow;
