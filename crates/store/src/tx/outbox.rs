//! Answers to reports, and reporting again (03 §5.3, D8).

use cmautobuy_protocol::WireTime;
use cmautobuy_protocol::result::{EventType, ResultAnswer};
use cmautobuy_task::{Event, TaskState};

use crate::codec::OutboxStatus;
use crate::table::outbox::{self, OutboxRow};
use crate::table::task;
use crate::{LocalTaskId, OutboxId, StoreError, Tx};

/// What an answer did to the task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutboxMoved {
    pub task: LocalTaskId,
    pub state: TaskState,
    /// Whether this answer moved it there.
    pub moved: bool,
}

impl Tx<'_> {
    /// The server accepted a report, first time or again. Only a first acceptance of the newest run's result moves the task
    /// (03 §5.3 rules 3 and 4).
    ///
    /// # Errors
    /// [`StoreError::NotAccepted`] when the answer says otherwise: keep the row and ask again later.
    pub fn outbox_accepted(&mut self, id: OutboxId, answer: &ResultAnswer, now: WireTime) -> Result<OutboxMoved, StoreError> {
        if !answer.accepted {
            return Err(StoreError::NotAccepted);
        }
        self.whole(|tx| {
            let row = tx.outbox_must(id)?;
            outbox::mark_sent(tx.conn, id, now)?;
            let event = if row.sent_at.is_none() { Some(Event::Accepted) } else { None };
            tx.outbox_moves(&row, event, now)
        })
    }

    /// The server refused a report for good (D8): a result's task goes to a person, and no further event is made for it.
    ///
    /// # Errors
    /// [`StoreError::NotOpen`] when the row is settled already.
    pub fn outbox_refused(&mut self, id: OutboxId, error: &str, now: WireTime) -> Result<OutboxMoved, StoreError> {
        self.whole(|tx| {
            let row = tx.outbox_must(id)?;
            if !outbox::mark_refused(tx.conn, id, error, now)? {
                return Err(StoreError::NotOpen { what: "outbox row", id: id.to_string() });
            }
            let moved = tx.outbox_moves(&row, Some(Event::ResultRefused), now)?;
            if moved.moved {
                task::set_error(tx.conn, moved.task, "RESULT_REFUSED", error)?;
            }
            Ok(moved)
        })
    }

    fn outbox_moves(&mut self, row: &OutboxRow, event: Option<Event>, now: WireTime) -> Result<OutboxMoved, StoreError> {
        let task = self.task_must(row.task_id)?;
        let is_newest = self.run_newest(task.id)?.is_some_and(|run| run.attempt_id == row.attempt_id);
        // A failure report has already put the task where it belongs; only a result waits for the server's word.
        let waits = match row.event_type {
            EventType::CollectResult | EventType::PurchaseResult => task.state == TaskState::ResultPending,
            EventType::TaskFailure => false,
        };
        match event {
            Some(event) if is_newest && waits => {
                let state = self.advance(&task, event, now)?;
                Ok(OutboxMoved { task: task.id, state, moved: true })
            }
            Some(_) | None => Ok(OutboxMoved { task: task.id, state: task.state, moved: false }),
        }
    }

    /// "Report again" (03 §5.3): the earliest unsent event of the task, else its newest result, goes back in line unchanged.
    /// `None` when the task has no event, or its earliest one is being sent right now.
    pub fn outbox_resend(&mut self, task: LocalTaskId, now: WireTime) -> Result<Option<OutboxId>, StoreError> {
        let rows = self.outbox_of_task(task)?;
        let unsent = rows.iter().find(|row| row.status != OutboxStatus::Sent && row.abandoned_at.is_none());
        let is_result = |row: &&OutboxRow| row.event_type != EventType::TaskFailure;
        let chosen = unsent.or_else(|| rows.iter().rev().find(is_result)).or_else(|| rows.last());
        let Some(row) = chosen.filter(|row| row.status != OutboxStatus::Sending) else { return Ok(None) };
        outbox::requeue(self.conn, row.id, now)?;
        Ok(Some(row.id))
    }
}
