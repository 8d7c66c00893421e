//! What the loops ask: is there work, and whose.

use cmautobuy_protocol::{ClaimToken, RemoteTaskId};

use crate::table::task::TaskRow;
use crate::table::{server_call, task};
use crate::{Reader, StoreError};

impl Reader<'_> {
    /// Whether any call waits for its answer; the worker begins nothing meanwhile.
    pub fn any_call_open(&self) -> Result<bool, StoreError> {
        server_call::any_open(self.conn)
    }

    /// The oldest waiting task whose cancel was asked for and that the server must be told of (D4, D9).
    pub fn cancel_waiting(&self) -> Result<Option<TaskRow>, StoreError> {
        task::cancel_waiting(self.conn)
    }

    /// The claim token of a task known by its number on the server.
    ///
    /// # Errors
    /// As [`Reader::claim_token`]; [`StoreError::NoSuch`] for an unknown task.
    pub fn claim_token_of(&self, remote: RemoteTaskId) -> Result<ClaimToken, StoreError> {
        let task = self.task_by_remote(remote)?.ok_or_else(|| StoreError::NoSuch { what: "task", id: remote.to_string() })?;
        self.claim_token(task.id)
    }
}
