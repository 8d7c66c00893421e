//! After a start: what the last process left behind (03 §7.3). Run once, before anything else writes.

use cmautobuy_protocol::{AttemptId, TaskType, WireTime};
use cmautobuy_task::{Event, TaskState};

use crate::codec::{CallState, RunStatus};
use crate::table::run::{self, RunFinish};
use crate::table::task::TaskRow;
use crate::table::{claim_attempt, outbox, secret, server_call, task};
use crate::tx::settle::{Report, RunEnd};
use crate::tx::{STEP_PURCHASE_READY, STEP_RECONCILE};
use crate::{LocalTaskId, RunId, StoreError, Tx};

/// `last_error_code` of a task whose run the last process did not end.
pub const PROGRAM_DIED: &str = "PROGRAM_DIED";
const MESSAGE: &str = "the program stopped while this run was under way";

/// A run the last process did not end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecoveredRun {
    pub task: LocalTaskId,
    /// `None` for a running task without a run row.
    pub run: Option<RunId>,
    /// Where the task stands now: `RetryWait`, `Claimed` or `ManualReview`.
    pub state: TaskState,
}

/// What was put in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Recovered {
    pub runs: Vec<RecoveredRun>,
    /// Reports that were being sent and wait again.
    pub outbox: usize,
    /// Renewals of runs that are over; the next attempt makes its own call.
    pub calls: usize,
}

impl Tx<'_> {
    /// The key of an earlier session is gone (no credential store, D6), and with it every claim token: open claim attempts close as
    /// expired, tasks not begun are let go, and tasks that were begun end as failed with a report, which needs no token (D3, D7). Run after
    /// [`Tx::recover_after_crash`]. `attempt` makes the ids those reports are sent under.
    pub fn sealed_lost(&mut self, mut attempt: impl FnMut() -> AttemptId, now: WireTime) -> Result<(), StoreError> {
        const LOST: (&str, &str) = ("SECRETS_LOST", "the claim's token ended with the last session");
        self.whole(|tx| {
            secret::delete_all(tx.conn)?;
            claim_attempt::expire_open(tx.conn, now)?;
            let claimed = task::in_state(tx.conn, TaskState::Claimed)?;
            // One without an execution was given back already; it may come again by a new claim.
            let begun = task::in_state(tx.conn, TaskState::RetryWait)?.into_iter().filter(|task| task.claim.execution_id.is_some());
            let begun: Vec<TaskRow> = begun.collect();
            for task in claimed.iter().chain(&begun) {
                if let Some(call) = tx.call_open_of(task.id)? {
                    server_call::settle(tx.conn, call.id, CallState::Refused, None, Some(LOST.1), now)?;
                }
            }
            for task in &claimed {
                tx.advance(task, Event::ClaimLost, now)?;
                task::set_error(tx.conn, task.id, LOST.0, LOST.1)?;
            }
            for task in &begun {
                tx.settle_without_phone(task.id, attempt(), Event::RetriesExhausted, LOST, now)?;
            }
            Ok(())
        })
    }

    /// 03 §7.3. `claimed`, `result_pending` and open calls stay as they are: they go on by themselves.
    pub fn recover_after_crash(&mut self, now: WireTime) -> Result<Recovered, StoreError> {
        self.whole(|tx| {
            let mut recovered = Recovered { outbox: outbox::sending_to_pending(tx.conn, now)?, ..Recovered::default() };
            for task in task::in_state(tx.conn, TaskState::Running)? {
                let is_marked = tx.task_facts(&task)?.marked;
                // The step is for the reader of the list; where the task goes is `next`'s answer. No report for a marked purchase
                // here: its reconcile run makes one.
                let step = match (task.task_type, is_marked) {
                    (_, true) => Some(STEP_RECONCILE),
                    (TaskType::Purchase, false) => Some(STEP_PURCHASE_READY),
                    (TaskType::Collect, false) => None,
                };
                let newest = tx.run_newest(task.id)?.filter(|run| run.run_status == RunStatus::Running);
                let state = if let Some(run) = &newest {
                    let events = &[Event::CrashRecovered];
                    let failure = Some((PROGRAM_DIED, MESSAGE));
                    tx.end_run(&RunEnd { run, events, failure, data: None, step, report: Report::Silent }, now)?.state
                } else {
                    let to = tx.advance(&task, Event::CrashRecovered, now)?;
                    task::set_error(tx.conn, task.id, PROGRAM_DIED, MESSAGE)?;
                    task::set_step(tx.conn, task.id, step, now)?;
                    to
                };
                recovered.runs.push(RecoveredRun { task: task.id, run: newest.map(|run| run.id), state });
            }
            // A run whose task already moved on can only be a leftover; it must not look alive.
            for run in run::running(tx.conn)? {
                let finish = RunFinish {
                    status: RunStatus::Failed,
                    step: None,
                    code: Some(PROGRAM_DIED),
                    message: Some(MESSAGE),
                    result_data: None,
                };
                run::finish(tx.conn, run.id, &finish, now)?;
            }
            // A lease renewal of a run that just ended: answering it later would start an attempt that is over.
            for call in server_call::open_of_ended_runs(tx.conn)? {
                server_call::settle(tx.conn, call, CallState::Refused, None, Some(MESSAGE), now)?;
                recovered.calls += 1;
            }
            Ok(recovered)
        })
    }
}
