//! After a start: what the last process left behind (03 §7.3). Run once, before anything else writes.

use cmautobuy_protocol::{TaskType, WireTime};
use cmautobuy_task::{Event, TaskState};

use crate::codec::{CallState, RunStatus};
use crate::table::run::{self, RunFinish};
use crate::table::{claim_attempt, outbox, secret, server_call, task};
use crate::tx::settle::{Report, RunEnd};
use crate::tx::{STEP_PURCHASE_READY, STEP_RECONCILE};
use crate::{LocalTaskId, RunId, StoreError, Tx};

const CODE: &str = "PROGRAM_DIED";
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
    /// The key of an earlier session is gone (no credential store, D6): open claim attempts close as expired, and the sealed secrets are
    /// made anew.
    pub fn sealed_lost(&mut self, now: WireTime) -> Result<(), StoreError> {
        self.whole(|tx| {
            secret::delete_all(tx.conn)?;
            claim_attempt::expire_open(tx.conn, now)
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
                    let failure = Some((CODE, MESSAGE));
                    tx.end_run(&RunEnd { run, events, failure, data: None, step, report: Report::Silent }, now)?.state
                } else {
                    let to = tx.advance(&task, Event::CrashRecovered, now)?;
                    task::set_error(tx.conn, task.id, CODE, MESSAGE)?;
                    task::set_step(tx.conn, task.id, step, now)?;
                    to
                };
                recovered.runs.push(RecoveredRun { task: task.id, run: newest.map(|run| run.id), state });
            }
            // A run whose task already moved on can only be a leftover; it must not look alive.
            for run in run::running(tx.conn)? {
                let finish =
                    RunFinish { status: RunStatus::Failed, step: None, code: Some(CODE), message: Some(MESSAGE), result_data: None };
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
