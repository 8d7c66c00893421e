//! Lifecycle calls (D5): the intent of the engine, and what a definite answer does to task and run.

use cmautobuy_protocol::lifecycle::Standing;
use cmautobuy_protocol::{AttemptId, IdempotencyKey, OwnTask, WireTime};
use cmautobuy_task::{Event, TaskState, next};

use crate::codec::{CallKind, CallState, ReleaseAim, RunStatus};
use crate::table::run::{self, NewRun};
use crate::table::server_call::{self, CallRecord, CallWrite};
use crate::table::task::{self, TaskRow};
use crate::tx::settle::{Report, RunEnd};
use crate::{CallId, LocalTaskId, RunId, StoreError, Tx};

/// What the engine wants of the server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewCall {
    pub task: LocalTaskId,
    pub kind: CallKind,
    /// A UUIDv7 made for this intent.
    pub key: IdempotencyKey,
    pub body_json: String,
    /// With start and resume, and only with them: the attempt named in the body, numbered by `attempt_no_next`.
    pub attempt: Option<(AttemptId, u32)>,
}

/// The phone a run uses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PhoneRef {
    pub device_address: String,
    pub phone_serial: Option<String>,
}

/// The run that may touch the phone now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Started {
    pub task: LocalTaskId,
    pub run: RunId,
}

/// What a refusal means for the task (D5.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RefusedEffect {
    /// The claim is not ours any more: a claimed row is cancelled.
    ClaimLost,
    EndedOnServerCancelled,
    EndedOnServerFailed,
    /// The claim ran out: the row stays claimed but does not block claiming.
    LeaseExpired,
    /// `VERSION_CONFLICT`: the engine makes a new intent from the version now stored.
    NewIntentNeeded,
    Nothing,
}

impl Tx<'_> {
    /// Commits an intent. Refused when its answer could not be applied, so that an open call can always be settled.
    ///
    /// # Errors
    /// [`StoreError::CallOpen`], [`StoreError::Illegal`], [`StoreError::Unfit`] for an attempt where none belongs or a `release` after
    /// the first start, [`StoreError::NoClaimToken`].
    pub fn call_open(&mut self, call: &NewCall, now: WireTime) -> Result<CallId, StoreError> {
        let task = self.task_must(call.task)?;
        if let Some(open) = self.call_open_of(task.id)? {
            return Err(StoreError::CallOpen { task: task.id, open: open.id });
        }
        // Read now, so that a missing token is the engine's to see and not a call that can never be sent.
        self.claim_token(task.id)?;
        let unfit = |detail: &str| StoreError::Unfit { column: "server_calls", detail: detail.to_owned() };
        let event = match call.kind {
            CallKind::Start | CallKind::Resume => Event::RunStarted,
            CallKind::Release { aim } => aim_event(aim),
            CallKind::CancelAck => Event::CancelRequested,
        };
        let needs_attempt = matches!(call.kind, CallKind::Start | CallKind::Resume);
        if needs_attempt != call.attempt.is_some() {
            return Err(unfit("an attempt goes with start and resume, and only with them"));
        }
        match call.kind {
            CallKind::Release { .. } if task.claim.execution_id.is_some() => return Err(unfit("a started task cannot be released")),
            CallKind::Resume | CallKind::CancelAck if task.claim.execution_id.is_none() => {
                return Err(unfit("the task has no execution yet"));
            }
            CallKind::Start | CallKind::Resume | CallKind::Release { .. } | CallKind::CancelAck => {}
        }
        if !(call.kind == CallKind::Resume && self.is_own_run(&task, call.attempt)?) {
            let facts = self.task_facts(&task)?;
            next(task.state, event, facts).map_err(|source| StoreError::Illegal { task: task.id, source })?;
        }
        let write = CallWrite { task: task.id, kind: call.kind, key: &call.key, body_json: &call.body_json, attempt: call.attempt };
        server_call::insert(self.conn, &write, now)
    }

    /// A `resume(reason=lease_lost)` renews the run that is under way (D3) and starts none.
    fn is_own_run(&self, task: &TaskRow, attempt: Option<(AttemptId, u32)>) -> Result<bool, StoreError> {
        let Some((attempt, _)) = attempt.filter(|_| task.state == TaskState::Running) else { return Ok(false) };
        let run = run::by_attempt(self.conn, attempt)?;
        Ok(run.is_some_and(|run| run.task_id == task.id && run.run_status == RunStatus::Running))
    }

    /// A start or resume was granted: the task runs and its attempt has a run row. Renewing a run that is under way answers that run.
    ///
    /// # Errors
    /// [`StoreError::NotOpen`] for a call already settled; [`StoreError::Unfit`] for an answer without an execution; [`StoreError::Illegal`].
    pub fn call_answered_start(&mut self, id: CallId, standing: &Standing, phone: &PhoneRef, now: WireTime) -> Result<Started, StoreError> {
        self.whole(|tx| {
            let call = tx.call_must_be_open(id)?;
            let Some((attempt, attempt_no)) = call.attempt else {
                return Err(StoreError::Unfit { column: "server_calls.kind", detail: "the call starts no run".to_owned() });
            };
            tx.apply_standing(&call, standing, now)?;
            let task = tx.task_must(call.task)?;
            if task.claim.execution_id.is_none() {
                return Err(StoreError::Unfit { column: "execution_id", detail: "the answer names no execution".to_owned() });
            }
            if tx.is_own_run(&task, call.attempt)? {
                let run = run::by_attempt(tx.conn, attempt)?;
                let run = run.ok_or_else(|| StoreError::NoSuch { what: "run of attempt", id: attempt.to_string() })?;
                return Ok(Started { task: task.id, run: run.id });
            }
            tx.advance(&task, Event::RunStarted, now)?;
            task::mark_started(tx.conn, task.id, now)?;
            let new = NewRun {
                task: task.id,
                attempt,
                attempt_no,
                device_address: &phone.device_address,
                phone_serial: phone.phone_serial.as_deref(),
            };
            let run = run::insert(tx.conn, &new, now)?;
            Ok(Started { task: task.id, run })
        })
    }

    /// The server took the task back: `cancelled` or `retry_wait`, as the release aimed.
    pub fn call_answered_release(&mut self, id: CallId, standing: &Standing, now: WireTime) -> Result<TaskState, StoreError> {
        self.whole(|tx| {
            let call = tx.call_must_be_open(id)?;
            let Some(aim) = call.kind.aim() else {
                return Err(StoreError::Unfit { column: "server_calls.kind", detail: "the call is no release".to_owned() });
            };
            tx.apply_standing(&call, standing, now)?;
            let task = tx.task_must(call.task)?;
            let to = tx.advance(&task, aim_event(aim), now)?;
            task::drop_claim(tx.conn, task.id)?;
            Ok(to)
        })
    }

    /// The server knows that the task stopped: `cancelled`, without a report, for this call was it (D2).
    pub fn call_answered_cancel_ack(&mut self, id: CallId, standing: &Standing, now: WireTime) -> Result<TaskState, StoreError> {
        self.whole(|tx| {
            let call = tx.call_must_be_open(id)?;
            if call.kind != CallKind::CancelAck {
                return Err(StoreError::Unfit { column: "server_calls.kind", detail: "the call is no cancel-ack".to_owned() });
            }
            tx.apply_standing(&call, standing, now)?;
            tx.end_silently(call.task, Event::CancelRequested, ("CANCELLED", "cancelled on the server"), now)
        })
    }

    /// The server refused definitely. `standing` is what the refusal says about the task (D5). Answers where the task stands now; a
    /// state the effect does not concern stays as it is.
    pub fn call_refused(
        &mut self,
        id: CallId,
        code: &str,
        message: &str,
        effect: RefusedEffect,
        standing: Option<&OwnTask>,
        now: WireTime,
    ) -> Result<TaskState, StoreError> {
        self.whole(|tx| {
            let call = tx.call_must_be_open(id)?;
            let answer = standing.map(serde_json::to_string).transpose()?;
            let error = format!("{code}: {message}");
            server_call::settle(tx.conn, id, CallState::Refused, answer.as_deref(), Some(&error), now)?;
            if let Some(own) = standing {
                task::store_own(tx.conn, call.task, own, now)?;
            }
            let task = tx.task_must(call.task)?;
            let ended = match effect {
                RefusedEffect::ClaimLost | RefusedEffect::EndedOnServerCancelled => Event::EndedOnServerCancelled,
                RefusedEffect::EndedOnServerFailed => Event::EndedOnServerFailed,
                RefusedEffect::LeaseExpired => {
                    if task.state == TaskState::Claimed {
                        task::mark_claim_expired(tx.conn, task.id, now)?;
                    }
                    return Ok(task.state);
                }
                RefusedEffect::NewIntentNeeded | RefusedEffect::Nothing => return Ok(task.state),
            };
            match task.state {
                TaskState::Claimed => {
                    let to = tx.advance(&task, Event::ClaimLost, now)?;
                    task::set_error(tx.conn, task.id, code, message)?;
                    task::drop_claim(tx.conn, task.id)?;
                    Ok(to)
                }
                TaskState::Running | TaskState::RetryWait => tx.end_silently(task.id, ended, (code, message), now),
                TaskState::ResultPending | TaskState::ManualReview | TaskState::Succeeded | TaskState::Failed | TaskState::Cancelled => {
                    Ok(task.state)
                }
            }
        })
    }

    /// Ends a task the server already knows the end of, together with its run when one is under way.
    fn end_silently(&mut self, id: LocalTaskId, event: Event, why: (&str, &str), now: WireTime) -> Result<TaskState, StoreError> {
        let newest = self.run_newest(id)?.filter(|run| run.run_status == RunStatus::Running);
        if let Some(run) = newest {
            let end = RunEnd { run: &run, events: &[event], failure: Some(why), data: None, step: None, report: Report::Silent };
            return Ok(self.end_run(&end, now)?.state);
        }
        let task = self.task_must(id)?;
        let to = self.advance(&task, event, now)?;
        task::set_error(self.conn, id, why.0, why.1)?;
        Ok(to)
    }

    fn apply_standing(&mut self, call: &CallRecord, standing: &Standing, now: WireTime) -> Result<(), StoreError> {
        task::store_standing(self.conn, call.task, standing, now)?;
        let answer = serde_json::to_string(standing)?;
        server_call::settle(self.conn, call.id, CallState::Done, Some(&answer), None, now)
    }
}

fn aim_event(aim: ReleaseAim) -> Event {
    match aim {
        ReleaseAim::OperatorStopped => Event::OperatorStopped,
        ReleaseAim::PhoneUnreachable => Event::PhoneUnreachable,
    }
}
