//! What can go wrong while remembering, and whether trying again helps.

use std::path::PathBuf;

use cmautobuy_protocol::result::ResultFault;
use cmautobuy_task::{IllegalTransition, TaskState};

use crate::seal::SealError;
use crate::{CallId, LocalTaskId};

/// Why one task may not be hidden (03 §3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeleteBlock {
    Missing,
    NotEnded(TaskState),
    Unsent,
    /// An order may exist; the record guards against a second one.
    Marked,
}

/// One task that kept the whole selection from being hidden.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Blocked {
    pub task: LocalTaskId,
    pub why: DeleteBlock,
}

/// A failure of the client's memory. `Display` reads after "failed to ...".
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("database is of version {found} but this program knows only up to {known}; update the program")]
    NewerDatabase { found: i64, known: i64 },
    #[error("database file {path} is damaged; close the program, keep the file, and restore the data folder from a backup")]
    Corrupt {
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
    #[error("folder {path} cannot be written; move the program to a folder you may write to, such as D:\\CMAutoBuy")]
    Unwritable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("database file {path} cannot be opened for writing; check that no other program holds it and that the disk is not full")]
    CannotOpen {
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
    #[error("database could not be brought to the current version")]
    Migrate(#[source] rusqlite_migration::Error),
    #[error("database refused a statement")]
    Sql(#[from] rusqlite::Error),
    #[error("column {column} holds the unknown text `{text}`")]
    UnknownText { column: &'static str, text: String },
    #[error("column {column} holds a value that cannot be read: {detail}")]
    BadValue { column: &'static str, detail: String },
    #[error("value does not fit column {column}: {detail}")]
    Unfit { column: &'static str, detail: String },
    #[error("task {task} cannot move")]
    Illegal {
        task: LocalTaskId,
        #[source]
        source: IllegalTransition,
    },
    #[error("there is no {what} {id}")]
    NoSuch { what: &'static str, id: String },
    #[error("{what} {id} is not open any more")]
    NotOpen { what: &'static str, id: String },
    #[error("task {task} already waits for the answer to call {open}")]
    CallOpen { task: LocalTaskId, open: CallId },
    #[error("task {0} was never started on this client, so the server will not let it be collected again; create a new task")]
    NeverStarted(LocalTaskId),
    #[error("task {0} has no claim token any more")]
    NoClaimToken(LocalTaskId),
    #[error("a secret could not be sealed or opened")]
    Seal(#[from] SealError),
    #[error("result contradicts itself")]
    BadResult(#[from] ResultFault),
    #[error("result is {bytes} bytes, more than the server takes")]
    ResultTooLarge { bytes: usize },
    #[error("an ending that leaves task {task} in {to:?} is not reported to the server; suspend the run instead")]
    EndingWithoutReport { task: LocalTaskId, to: TaskState },
    #[error("server did not accept the result")]
    NotAccepted,
    #[error("document has no integer schema_version")]
    NoSchemaVersion,
    #[error("value could not be turned into JSON or back")]
    Json(#[from] serde_json::Error),
    #[error("{} of the chosen tasks may not be removed", blocked.len())]
    NotDeletable { blocked: Vec<Blocked> },
    #[error("store is closed")]
    Closed,
    #[error("a write panicked and was rolled back: {message}")]
    Panicked { message: String },
}

impl StoreError {
    /// Whether doing the same again later cannot help.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Sql(source) | Self::CannotOpen { source, .. } => !is_passing(source),
            Self::Unwritable { .. } => false,
            Self::NewerDatabase { .. }
            | Self::Corrupt { .. }
            | Self::Migrate(_)
            | Self::UnknownText { .. }
            | Self::BadValue { .. }
            | Self::Unfit { .. }
            | Self::Illegal { .. }
            | Self::NoSuch { .. }
            | Self::NotOpen { .. }
            | Self::CallOpen { .. }
            | Self::NeverStarted(_)
            | Self::NoClaimToken(_)
            | Self::Seal(_)
            | Self::BadResult(_)
            | Self::ResultTooLarge { .. }
            | Self::EndingWithoutReport { .. }
            | Self::NotAccepted
            | Self::NoSchemaVersion
            | Self::Json(_)
            | Self::NotDeletable { .. }
            | Self::Closed
            | Self::Panicked { .. } => true,
        }
    }
}

/// Another process holds the file, or the disk is full for now.
fn is_passing(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode as C;
    matches!(
        error.sqlite_error_code(),
        Some(C::DatabaseBusy | C::DatabaseLocked | C::DiskFull | C::SystemIoFailure | C::CannotOpen | C::OutOfMemory | C::ReadOnly)
    )
}
