//! One attempt, from the row that says `running` to the commit that settles it. Exactly one place ends a run.

use std::sync::{Arc, Mutex, PoisonError};

use cmautobuy_pdd::{CollectContext, CollectError, CollectTask, Stop, Verdict, collect};
use cmautobuy_protocol::TaskType;
use cmautobuy_protocol::error::chain;
use cmautobuy_protocol::goods::GoodsId;
use cmautobuy_store::{Ending, RunRow, RunStatus, Settle, StoreError, TaskRow};
use cmautobuy_task::Event;

use crate::artifacts::ArtifactStore;
use crate::clock::FlowTime;
use crate::gate::{Evidence, Gate};
use crate::worker::{Engine, Pause, Turn, TurnError, WorkState};

/// How a run is to be settled.
#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    Done(Ending),
    /// Worth another run: `retry_wait`, and work pauses until the operator starts it again (03 §7.1).
    Retry {
        code: String,
        message: String,
    },
    /// The server asked for a cancel and this is a safe point (D9): acknowledged by a call, the row follows its answer.
    AcknowledgeCancel,
}

impl Engine {
    /// Runs a row that is `running`. Only a run this process began has its lease in the cell; any other was recovered at start-up.
    pub(crate) async fn run_task(&self, task: TaskRow, run: RunRow) -> Result<Turn, TurnError> {
        if task.cancel_requested_at.is_some() && self.state.borrow().ne(&WorkState::Running) {
            // Its acknowledgement was refused for an old version: once more, from the version now stored (D5).
            return self.acknowledge_cancel(&task).await;
        }
        let unsettled = self.unsettled.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((_, outcome)) = unsettled.filter(|(of, _)| *of == run.id) {
            return self.settle(&task, &run, outcome).await;
        }
        let Some(running) = self.parts.lease.current().filter(|r| r.task == task.remote_task_id) else { return Ok(Turn::Wait) };
        let Some(phone) = self.parts.phone.borrow().clone() else {
            if !self.phone_is_lost() {
                return Ok(Turn::Wait);
            }
            let outcome = Outcome::Retry { code: "DEVICE_GONE".into(), message: "the phone went away before the run began".into() };
            return self.settle(&task, &run, outcome).await;
        };
        self.say(WorkState::Running);
        let gate = Gate {
            store: self.parts.store.clone(),
            clock: Arc::clone(&self.parts.clock),
            lease: Arc::clone(&self.parts.lease),
            nudges: self.parts.nudges.clone(),
            phone: Arc::clone(&phone),
            artifacts: self.parts.artifacts.clone(),
            order: self.parts.order.clone(),
            task: task.id,
            run: run.id,
            attempt: (run.attempt_id, run.attempt_no),
            execution: running.execution,
            generation: running.generation,
            directory: ArtifactStore::directory(task.remote_task_id, run.attempt_no, run.started_at),
            evidence: Mutex::new(Evidence::default()),
        };
        tracing::info!(task = %task.remote_task_id, attempt_no = run.attempt_no, "run begins");
        let outcome = match task.task_type {
            TaskType::Collect => self.collect(&task, &gate).await,
            TaskType::Purchase => Outcome::Done(Ending::Failure {
                event: Event::NeedsPerson,
                code: "PURCHASE_UNSUPPORTED".into(),
                message: "this version collects only; a person must place the order".into(),
            }),
        };
        gate.keep_last_look().await;
        self.settle(&task, &run, outcome).await
    }

    async fn collect(&self, task: &TaskRow, gate: &Gate) -> Outcome {
        let goods_id = match GoodsId::from_url(&task.goods_url) {
            Ok(id) => id,
            // Checked when the task was stored; a row changed by hand ends here instead of on the phone.
            Err(error) => return failed(Event::PermanentFailure, "BAD_TASK_DATA", &error),
        };
        let time = FlowTime(Arc::clone(&self.parts.clock));
        let context = CollectContext { phone: gate.phone.as_ref(), rules: &self.parts.rules, clock: &time, gate };
        let wanted = CollectTask { goods_id, client_id: self.parts.client_id.clone() };
        match collect(&context, &wanted).await {
            Ok(data) => Outcome::Done(Ending::Collected(Box::new(data))),
            Err(error) => outcome_of(&error),
        }
    }

    /// Ends a run, whatever it takes: data that cannot be stored goes to a person, and an outcome the disk refuses is kept in memory and
    /// written at a later turn, so that the phone does not do the work again.
    pub(crate) async fn settle(&self, task: &TaskRow, run: &RunRow, outcome: Outcome) -> Result<Turn, TurnError> {
        let error = match self.try_settle(task, run, outcome.clone()).await {
            Ok(turn) => return Ok(turn),
            Err(error) => error,
        };
        let outcome = match &error {
            TurnError::Store(why @ (StoreError::BadResult(_) | StoreError::ResultTooLarge { .. })) => {
                failed(Event::NeedsPerson, "DATA_INVALID", why)
            }
            TurnError::Store(_) | TurnError::Encode(_) => outcome,
        };
        *self.unsettled.lock().unwrap_or_else(PoisonError::into_inner) = Some((run.id, outcome));
        Err(error)
    }

    async fn try_settle(&self, task: &TaskRow, run: &RunRow, outcome: Outcome) -> Result<Turn, TurnError> {
        let (now, id, max_retries) = (self.parts.clock.now(), run.id, self.parts.max_retries);
        let is_open = self.parts.store.read(move |r| r.run_get(id)).await?.is_some_and(|run| run.run_status == RunStatus::Running);
        if !is_open {
            // The server ended the task while the phone was at work, and `sync` closed the run with its word.
            tracing::info!(task = %task.remote_task_id, "run was ended by the server");
            self.parts.lease.end();
            self.say(WorkState::Idle);
            return Ok(Turn::Again);
        }
        let mut next = WorkState::Idle;
        match outcome {
            Outcome::Done(ending) => {
                let settled = self.parts.store.write(move |tx| tx.save_result_and_enqueue(&Settle { run: id, ending }, now)).await?;
                tracing::info!(task = %task.remote_task_id, state = ?settled.state, "run settled");
            }
            Outcome::Retry { code, message } => {
                tracing::warn!(task = %task.remote_task_id, code, message, "run failed; work pauses until it is started again");
                next = WorkState::Paused(Pause { code: code.clone(), message: message.clone() });
                self.parts.store.write(move |tx| tx.run_suspend_retry(id, &code, &message, max_retries, now).map(drop)).await?;
            }
            Outcome::AcknowledgeCancel => {
                // Durable first: a run heartbeat told it, and that is only in memory.
                let remote = task.remote_task_id;
                self.parts.store.write(move |tx| tx.cancel_requested(&[remote], now).map(drop)).await?;
                self.say(WorkState::Idle);
                return self.acknowledge_cancel(task).await;
            }
        }
        self.parts.lease.end();
        self.say(next);
        // The server frees this device with the result: the drain asks for the next claim once it is accepted.
        self.parts.nudges.drain.notify_one();
        Ok(Turn::Again)
    }
}

fn failed(event: Event, code: &str, error: &dyn std::error::Error) -> Outcome {
    Outcome::Done(Ending::Failure { event, code: code.to_owned(), message: chain(error) })
}

fn outcome_of(error: &CollectError) -> Outcome {
    match (error.verdict(), error) {
        (Verdict::Stopped, CollectError::Stopped(Stop::CancelRequested)) => Outcome::AcknowledgeCancel,
        (Verdict::Stopped, CollectError::Stopped(Stop::LeaseLost)) => {
            Outcome::Retry { code: "LEASE_LOST".into(), message: "the run lease could not be renewed".into() }
        }
        (Verdict::Stopped, _) => failed(Event::OperatorStopped, error.code(), error),
        (Verdict::Retry, _) => Outcome::Retry { code: error.code().to_owned(), message: chain(error) },
        (Verdict::ManualReview, _) => failed(Event::NeedsPerson, error.code(), error),
        (Verdict::Failed, _) => failed(Event::PermanentFailure, error.code(), error),
    }
}
