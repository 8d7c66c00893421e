//! What a person asks for, and what the worker says while it runs.

use cmautobuy_protocol::WireTime;
use cmautobuy_task::{Event, TaskState};

use crate::error::{Blocked, DeleteBlock};
use crate::table::{run, task};
use crate::{LocalTaskId, RunId, StoreError, Tx};

impl Tx<'_> {
    /// Where the run is; shown in the list and sent with the next heartbeat.
    ///
    /// # Errors
    /// [`StoreError::NotOpen`] when the run is over.
    pub fn run_step(&mut self, id: RunId, step: &str, now: WireTime) -> Result<(), StoreError> {
        self.whole(|tx| {
            let run = tx.run_must(id)?;
            if !run::set_step(tx.conn, id, step, now)? {
                return Err(StoreError::NotOpen { what: "run", id: id.to_string() });
            }
            task::set_step(tx.conn, run.task_id, Some(step), now)
        })
    }

    /// A person confirmed collecting again (03 §7.1): back to `claimed`; the engine then resumes with reason `recollect` (D4).
    ///
    /// # Errors
    /// [`StoreError::Illegal`] for a purchase, an unsent report or a task that has not ended; [`StoreError::NeverStarted`].
    pub fn recollect(&mut self, id: LocalTaskId, now: WireTime) -> Result<(), StoreError> {
        self.whole(|tx| {
            let task = tx.task_must(id)?;
            let facts = tx.task_facts(&task)?;
            cmautobuy_task::next(task.state, Event::Recollect, facts).map_err(|source| StoreError::Illegal { task: id, source })?;
            // `resume` needs an execution of this user and device (D4).
            if task.claim.execution_id.is_none() {
                return Err(StoreError::NeverStarted(id));
            }
            tx.advance(&task, Event::Recollect, now)?;
            task::reset_for_recollect(tx.conn, id)
        })
    }

    /// Hides ended tasks from the list: all of them or none (03 §3.1). Nothing is deleted. Answers how many were chosen.
    ///
    /// # Errors
    /// [`StoreError::NotDeletable`] naming every task that stands in the way.
    pub fn soft_delete(&mut self, ids: &[LocalTaskId], now: WireTime) -> Result<usize, StoreError> {
        let mut blocked = Vec::new();
        for id in ids {
            if let Some(why) = self.delete_block(*id)? {
                blocked.push(Blocked { task: *id, why });
            }
        }
        if !blocked.is_empty() {
            return Err(StoreError::NotDeletable { blocked });
        }
        self.whole(|tx| {
            for id in ids {
                task::hide(tx.conn, *id, now)?;
            }
            Ok(ids.len())
        })
    }

    fn delete_block(&self, id: LocalTaskId) -> Result<Option<DeleteBlock>, StoreError> {
        let Some(task) = self.task_get(id)? else { return Ok(Some(DeleteBlock::Missing)) };
        let facts = self.task_facts(&task)?;
        Ok(match task.state {
            TaskState::Claimed | TaskState::Running | TaskState::ResultPending | TaskState::RetryWait | TaskState::ManualReview => {
                Some(DeleteBlock::NotEnded(task.state))
            }
            TaskState::Succeeded | TaskState::Failed | TaskState::Cancelled if facts.unsent => Some(DeleteBlock::Unsent),
            TaskState::Succeeded | TaskState::Failed | TaskState::Cancelled if facts.marked => Some(DeleteBlock::Marked),
            TaskState::Succeeded | TaskState::Failed | TaskState::Cancelled => None,
        })
    }
}
