//! Writes and reads that span tables. Each public write is whole: it happens entirely or leaves nothing, even when its caller goes on
//! after an error. Where a task goes is decided by `cmautobuy_task::next`; this module only asks it and records the answer.

pub(crate) mod call;
pub(crate) mod claim;
pub(crate) mod look;
pub(crate) mod outbox;
pub(crate) mod person;
pub(crate) mod recover;
pub(crate) mod settle;
pub(crate) mod view;

use cmautobuy_protocol::WireTime;
use cmautobuy_task::{Event, Facts, TaskState, next};

use crate::table::task::{self, TaskRow};
use crate::{Reader, StoreError, Tx};

/// `current_step` of a purchase that may only be looked at (03 §7.3).
pub(crate) const STEP_RECONCILE: &str = "reconcile_purchase";
/// `current_step` of a purchase whose rehearsal died before the mark (03 §7.3).
pub(crate) const STEP_PURCHASE_READY: &str = "purchase_recovery_ready";

impl Reader<'_> {
    /// What `next` wants to know beside the state.
    pub fn task_facts(&self, task: &TaskRow) -> Result<Facts, StoreError> {
        Ok(Facts { task_type: task.task_type, marked: self.run_marked(task.id)?, unsent: self.outbox_unsent(task.id)? })
    }
}

impl Tx<'_> {
    /// The only way a stored task changes its state. `task` must be the row as it is now.
    fn advance(&mut self, task: &TaskRow, event: Event, now: WireTime) -> Result<TaskState, StoreError> {
        let facts = self.task_facts(task)?;
        let to = next(task.state, event, facts).map_err(|source| StoreError::Illegal { task: task.id, source })?;
        if task::move_state(self.conn, task.id, task.state, to, now)? {
            Ok(to)
        } else {
            Err(StoreError::NotOpen { what: "state of task", id: task.id.to_string() })
        }
    }

    /// Runs `f` as one unit inside the transaction, so that an error a caller swallows leaves nothing half-written.
    fn whole<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.conn.execute_batch("SAVEPOINT whole")?;
        let done = f(self);
        match &done {
            Ok(_) => self.conn.execute_batch("RELEASE whole")?,
            // A failed rollback means SQLite already rolled the whole transaction back (disk full): the first error says why.
            Err(_) => drop(self.conn.execute_batch("ROLLBACK TO whole; RELEASE whole")),
        }
        done
    }
}
