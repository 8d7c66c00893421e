//! How a run ends. Task, run and outbox are written together here and nowhere else (03 §5.1, architecture §1 fact 3).

use cmautobuy_protocol::pdd_data::PddData;
use cmautobuy_protocol::result::{Disposition, EventType, Failure, ResultBody, result_key};
use cmautobuy_protocol::{AttemptId, IdempotencyKey, MAX_RESULT_BYTES, TaskType, WireTime};
use cmautobuy_task::{Event, TaskState, next};

use crate::codec::RunStatus;
use crate::table::outbox::{self, NewEvent};
use crate::table::run::{self, NewRun, RunFinish, RunRow};
use crate::table::task::{self, ResultWrite, TaskRow};
use crate::tx::STEP_RECONCILE;
use crate::{LocalTaskId, OutboxId, RunId, StoreError, Tx};

/// What a run came to.
#[derive(Clone, PartialEq, Debug)]
pub enum Ending {
    /// The result of a collect or purchase task.
    Collected(Box<PddData>),
    /// `event` is one of `NeedsPerson`, `PermanentFailure`, `OperatorStopped`, `CancelRequested`.
    Failure { event: Event, code: String, message: String },
}

/// The end of one run, to be saved and reported.
///
/// Owned, for a write closure is `'static`; the data is boxed because it is large.
#[derive(Clone, PartialEq, Debug)]
pub struct Settle {
    pub run: RunId,
    pub ending: Ending,
}

/// What the database says after a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settled {
    pub task: LocalTaskId,
    pub state: TaskState,
    /// The event that reports it; `None` where the server knows already or is not told.
    pub outbox: Option<(OutboxId, IdempotencyKey)>,
}

/// Whether the server learns of an ending by an outbox event.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    Enqueue,
    /// The server asked for it, said it, or must not be told (D2: `retry_wait`).
    Silent,
}

pub(crate) struct RunEnd<'a> {
    pub(crate) run: &'a RunRow,
    /// Applied in turn; more than one where a failure is also the last one allowed.
    pub(crate) events: &'a [Event],
    pub(crate) failure: Option<(&'a str, &'a str)>,
    pub(crate) data: Option<&'a PddData>,
    pub(crate) step: Option<&'a str>,
    pub(crate) report: Report,
}

impl Tx<'_> {
    /// Saves what a run came to and queues its report: task, run and outbox in one piece (03 §5.1).
    ///
    /// # Errors
    /// [`StoreError::BadResult`] when the data contradicts itself, [`StoreError::ResultTooLarge`], [`StoreError::Illegal`],
    /// [`StoreError::EndingWithoutReport`], [`StoreError::NotOpen`] when the run is over. Nothing is written then.
    pub fn save_result_and_enqueue(&mut self, settle: &Settle, now: WireTime) -> Result<Settled, StoreError> {
        let run = self.run_must(settle.run)?;
        let end = match &settle.ending {
            Ending::Collected(data) => {
                RunEnd { run: &run, events: &[Event::ResultSaved], failure: None, data: Some(data), step: None, report: Report::Enqueue }
            }
            Ending::Failure { event, code, message } => RunEnd {
                run: &run,
                events: std::slice::from_ref(event),
                failure: Some((code, message)),
                data: None,
                step: None,
                report: Report::Enqueue,
            },
        };
        self.end_run(&end, now)
    }

    /// A failure worth another run (03 §7.1): the run ends, the task waits; beyond `max_retries` it fails for good and says so.
    /// A purchase goes to a person instead (03 §7.3).
    pub fn run_suspend_retry(
        &mut self,
        run: RunId,
        code: &str,
        message: &str,
        max_retries: u32,
        now: WireTime,
    ) -> Result<TaskState, StoreError> {
        let run = self.run_must(run)?;
        let task = self.task_must(run.task_id)?;
        let to = next(task.state, Event::RecoverableFailure, self.task_facts(&task)?)
            .map_err(|source| StoreError::Illegal { task: task.id, source })?;
        let is_last = to == TaskState::RetryWait && task.retry_count >= max_retries;
        let events: &[Event] = if is_last { &[Event::RecoverableFailure, Event::RetriesExhausted] } else { &[Event::RecoverableFailure] };
        let report = if to == TaskState::RetryWait && !is_last { Report::Silent } else { Report::Enqueue };
        self.whole(|tx| {
            if to == TaskState::RetryWait {
                task::add_retry(tx.conn, task.id)?;
            }
            let end = RunEnd { run: &run, events, failure: Some((code, message)), data: None, step: None, report };
            Ok(tx.end_run(&end, now)?.state)
        })
    }

    /// A person stopped a claimed task that already has an execution (a re-collect): it is reported as cancelled, for there is
    /// nothing to release any more (D2). Before the first start use a `release` call.
    pub fn stop_claimed(&mut self, task: LocalTaskId, attempt: AttemptId, now: WireTime) -> Result<Settled, StoreError> {
        self.whole(|tx| {
            let failure = ("OPERATOR_STOPPED", "stopped by a person before the phone was used");
            tx.settle_without_phone(task, attempt, Event::OperatorStopped, failure, now)
        })
    }

    /// A run row made only so that its attempt can be reported: the phone was never used.
    pub(crate) fn settle_without_phone(
        &mut self,
        task: LocalTaskId,
        attempt: AttemptId,
        event: Event,
        failure: (&str, &str),
        now: WireTime,
    ) -> Result<Settled, StoreError> {
        let attempt_no = self.attempt_no_next(task)?;
        let run = run::insert(self.conn, &NewRun { task, attempt, attempt_no, device_address: "", phone_serial: None }, now)?;
        let run = self.run_must(run)?;
        let end = RunEnd { run: &run, events: &[event], failure: Some(failure), data: None, step: None, report: Report::Enqueue };
        self.end_run(&end, now)
    }

    /// Every run ends here. All that can be refused is decided before the first write.
    pub(crate) fn end_run(&mut self, end: &RunEnd<'_>, now: WireTime) -> Result<Settled, StoreError> {
        let task = self.task_must(end.run.task_id)?;
        let facts = self.task_facts(&task)?;
        let mut to = task.state;
        for event in end.events {
            to = next(to, *event, facts).map_err(|source| StoreError::Illegal { task: task.id, source })?;
        }
        let report = match end.report {
            Report::Enqueue => Some(compose(&task, end, to, now)?),
            Report::Silent => None,
        };
        let data = end.data.map(serde_json::to_string).transpose()?;
        let step = if to == TaskState::ManualReview && facts.marked { Some(STEP_RECONCILE) } else { end.step };
        self.whole(|tx| {
            let finish = RunFinish {
                status: run_status(to),
                step,
                code: end.failure.map(|(code, _)| code),
                message: end.failure.map(|(_, message)| message),
                result_data: data.as_deref(),
            };
            if !run::finish(tx.conn, end.run.id, &finish, now)? {
                return Err(StoreError::NotOpen { what: "run", id: end.run.id.to_string() });
            }
            let mut moving = task.clone();
            for event in end.events {
                moving.state = tx.advance(&moving, *event, now)?;
            }
            if let (Some(seen), Some(text)) = (end.data, data.as_deref()) {
                let result = ResultWrite {
                    pdd_data: text,
                    goods_id: &seen.goods.goods_id,
                    title: &seen.goods.title,
                    price_cent: seen.summary_price_cent(),
                };
                task::set_result(tx.conn, task.id, &result)?;
            }
            if let Some((code, message)) = end.failure {
                task::set_error(tx.conn, task.id, code, message)?;
            }
            if step.is_some() {
                task::set_step(tx.conn, task.id, step, now)?;
            }
            let outbox = match report {
                None => None,
                Some(report) => {
                    let event = NewEvent {
                        task: task.id,
                        event_type: report.event_type,
                        key: &report.key,
                        payload: &report.payload,
                        user: task.owner_user_id,
                        device: task.owner_device_id,
                        attempt: end.run.attempt_id,
                    };
                    Some((outbox::insert(tx.conn, &event, now)?, report.key))
                }
            };
            Ok(Settled { task: task.id, state: moving.state, outbox })
        })
    }
}

struct Composed {
    event_type: EventType,
    key: IdempotencyKey,
    payload: String,
}

/// The report, checked and turned into bytes once; nobody puts it together again (03 §5.3 rule 2).
fn compose(task: &TaskRow, end: &RunEnd<'_>, to: TaskState, now: WireTime) -> Result<Composed, StoreError> {
    let disposition = match to {
        TaskState::ResultPending => Disposition::Succeeded,
        TaskState::Failed => Disposition::Failed,
        TaskState::Cancelled => Disposition::Cancelled,
        TaskState::ManualReview => Disposition::ManualReview,
        TaskState::Claimed | TaskState::Running | TaskState::RetryWait | TaskState::Succeeded => {
            return Err(StoreError::EndingWithoutReport { task: task.id, to });
        }
    };
    let event_type = match (disposition, task.task_type) {
        (Disposition::Succeeded, TaskType::Collect) => EventType::CollectResult,
        (Disposition::Succeeded, TaskType::Purchase) => EventType::PurchaseResult,
        (Disposition::Failed | Disposition::Cancelled | Disposition::ManualReview, TaskType::Collect | TaskType::Purchase) => {
            EventType::TaskFailure
        }
    };
    let body = ResultBody {
        schema_version: ResultBody::SCHEMA_VERSION,
        event_type,
        disposition,
        claim_generation: task.claim.generation,
        execution_id: task.claim.execution_id,
        attempt_id: end.run.attempt_id,
        attempt_no: end.run.attempt_no,
        pdd_data: end.data.cloned(),
        failure: end.failure.map(|(code, message)| Failure { code: code.to_owned(), message: message.to_owned() }),
        finished_at: now,
    };
    body.validate()?;
    let payload = serde_json::to_string(&body)?;
    if payload.len() > MAX_RESULT_BYTES {
        return Err(StoreError::ResultTooLarge { bytes: payload.len() });
    }
    Ok(Composed { event_type, key: result_key(task.remote_task_id, end.run.attempt_id, event_type), payload })
}

fn run_status(task: TaskState) -> RunStatus {
    match task {
        TaskState::ResultPending | TaskState::Succeeded => RunStatus::Succeeded,
        TaskState::Cancelled => RunStatus::Cancelled,
        TaskState::ManualReview => RunStatus::ManualReview,
        // A run that ends with its task waiting or claimed again came to nothing (03 §7.3).
        TaskState::Failed | TaskState::RetryWait | TaskState::Claimed | TaskState::Running => RunStatus::Failed,
    }
}
