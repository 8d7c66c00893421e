//! Reads over several tables.

use cmautobuy_task::TaskState;

use crate::codec::RunStatus;
use crate::table::artifact::ArtifactRow;
use crate::table::outbox::OutboxRow;
use crate::table::run::{self, RunRow};
use crate::table::server_call;
use crate::table::task::{self, TaskRow};
use crate::{LocalTaskId, Reader, StoreError};

/// Everything about one task.
#[derive(Clone, PartialEq, Debug)]
pub struct TaskDetailRow {
    pub task: TaskRow,
    /// Newest first.
    pub runs: Vec<RunRow>,
    /// Oldest first.
    pub outbox: Vec<OutboxRow>,
    /// Oldest first.
    pub artifacts: Vec<ArtifactRow>,
}

impl Reader<'_> {
    pub fn task_detail(&self, id: LocalTaskId) -> Result<Option<TaskDetailRow>, StoreError> {
        let Some(task) = self.task_get(id)? else { return Ok(None) };
        Ok(Some(TaskDetailRow { runs: self.run_list(id)?, outbox: self.outbox_of_task(id)?, artifacts: self.artifact_list(id)?, task }))
    }

    /// The task that runs, with its run; there is at most one phone and so at most one.
    pub fn running(&self) -> Result<Option<(TaskRow, RunRow)>, StoreError> {
        for task in task::in_state(self.conn, TaskState::Running)? {
            if let Some(run) = self.run_newest(task.id)?.filter(|run| run.run_status == RunStatus::Running) {
                return Ok(Some((task, run)));
            }
        }
        Ok(None)
    }

    /// The number of the task's next attempt: above every run and every number ever sent to the server, which lets only the highest
    /// one move the status (D3).
    pub fn attempt_no_next(&self, id: LocalTaskId) -> Result<u32, StoreError> {
        Ok(run::highest_no(self.conn, id)?.max(server_call::highest_no(self.conn, id)?).saturating_add(1))
    }
}
