//! Decides what the phone does next. One turn: look at the rows, do the one thing they ask for, look again.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cmautobuy_device::Phone;
use cmautobuy_pdd::RulePack;
use cmautobuy_protocol::ids::uuid_at;
use cmautobuy_protocol::lifecycle::{CancelAckRequest, ReleaseRequest, ResumeReason, ResumeRequest, StartRequest};
use cmautobuy_protocol::{AttemptId, IdempotencyKey};
use cmautobuy_store::{CallKind, NewCall, PROGRAM_DIED, ReleaseAim, RunId, Store, StoreError, TaskRow};
use cmautobuy_task::{Clock, LeaseCell, Mono, TaskState};
use serde::Serialize;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::artifacts::ArtifactStore;
use crate::run::Outcome;

/// How long a missing phone is waited for before its task is given up.
const PHONE_PATIENCE: Duration = Duration::from_secs(30);

/// What the operator wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkOrder {
    Stop,
    /// Every press on Start has its own number, so that a worker that paused itself sees that it was started again.
    Run {
        press: u32,
    },
}

impl WorkOrder {
    pub const fn is_run(self) -> bool {
        match self {
            Self::Run { .. } => true,
            Self::Stop => false,
        }
    }
}

/// Why work paused by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    pub code: String,
    pub message: String,
}

/// What the worker is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkState {
    Idle,
    Running,
    /// A recoverable collect error stopped it (03 §7.1); a new start retries first.
    Paused(Pause),
}

/// The phone in use; `None` while there is none.
pub type PhoneSlot = Option<Arc<dyn Phone>>;

/// "Look": shared with the loops of `sync` by `app`.
#[derive(Debug, Clone)]
pub struct EngineNudges {
    /// To this worker.
    pub engine: Arc<Notify>,
    pub lease_changed: Arc<Notify>,
    /// To `sync`.
    pub calls: Arc<Notify>,
    pub lease: Arc<Notify>,
    pub drain: Arc<Notify>,
    pub claim: Arc<Notify>,
}

/// What `app` hands in.
#[derive(Debug, Clone)]
pub struct EngineParts {
    pub store: Store,
    pub clock: Arc<dyn Clock>,
    pub lease: Arc<LeaseCell>,
    pub nudges: EngineNudges,
    pub rules: Arc<RulePack>,
    pub artifacts: ArtifactStore,
    pub phone: watch::Receiver<PhoneSlot>,
    pub order: watch::Receiver<WorkOrder>,
    /// `admin.client_id`, written into `pdd_data.source` (03 §8.1).
    pub client_id: String,
    /// `automation.max_retries`.
    pub max_retries: u32,
}

/// The worker of one client: there is one phone and one worker.
#[derive(Debug)]
pub struct Engine {
    pub(crate) parts: EngineParts,
    pub(crate) state: watch::Sender<WorkState>,
    /// Since when there is no phone; `None` while there is one.
    gone_since: Mutex<Option<Mono>>,
    /// What a run came to, while it could not be written.
    pub(crate) unsettled: Mutex<Option<(RunId, Outcome)>>,
}

/// What a turn found to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Something was done; look again.
    Again,
    /// Nothing until a nudge or the timer.
    Wait,
}

/// An error of a turn: said once by the loop, left to the next turn.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TurnError {
    #[error("use the store")]
    Store(#[from] StoreError),
    #[error("encode an intent")]
    Encode(#[from] serde_json::Error),
}

impl Engine {
    pub fn new(parts: EngineParts) -> Self {
        Self { parts, state: watch::channel(WorkState::Idle).0, gone_since: Mutex::new(None), unsettled: Mutex::new(None) }
    }

    pub fn state(&self) -> watch::Receiver<WorkState> {
        self.state.subscribe()
    }

    pub(crate) fn say(&self, state: WorkState) {
        self.state.send_if_modified(|old| {
            let changed = *old != state;
            *old = state;
            changed
        });
    }

    /// Runs until `stop`. A flow that is running when `stop` comes is dropped where it stands: the next start recovers it (03 §7.3).
    pub async fn run(&self, stop: CancellationToken) {
        let mut order = self.parts.order.clone();
        let mut was = WorkOrder::Stop;
        loop {
            let now = *order.borrow_and_update();
            if now.is_run() && now != was {
                self.say(WorkState::Idle);
            }
            was = now;
            let turned = tokio::select! {
                () = stop.cancelled() => return,
                turned = self.turn() => turned,
            };
            match turned {
                Ok(Turn::Again) => continue,
                Ok(Turn::Wait) => {}
                Err(error) => tracing::error!(%error, source = ?std::error::Error::source(&error), "worker turn failed; trying again"),
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.parts.nudges.engine.notified() => {}
                _ = order.changed() => {}
                () = tokio::time::sleep(Duration::from_secs(5)) => {}
            }
        }
    }

    /// Whether there has been no phone for so long that waiting for it is over. At start-up, and when a cable is moved, it is back within
    /// seconds; giving a task back for that would keep it from this device for ten minutes (D5.4).
    pub(crate) fn phone_is_lost(&self) -> bool {
        let mut since = self.gone_since.lock().unwrap_or_else(PoisonError::into_inner);
        if self.parts.phone.borrow().is_some() {
            *since = None;
            return false;
        }
        let now = self.parts.clock.mono();
        now.since(*since.get_or_insert(now)) >= PHONE_PATIENCE
    }

    pub(crate) async fn turn(&self) -> Result<Turn, TurnError> {
        let look = self
            .parts
            .store
            .read(|r| {
                Ok(Look {
                    running: r.running()?,
                    retry: r.retry_next()?,
                    claimed: r.claimed_next()?,
                    call_open: r.any_call_open()?,
                    cancelled: r.cancel_waiting()?,
                })
            })
            .await?;
        if look.call_open {
            // `sync` is on it; its answer nudges.
            return Ok(Turn::Wait);
        }
        if let Some((task, run)) = look.running {
            return self.run_task(task, run).await;
        }
        if let Some(task) = look.cancelled {
            return self.acknowledge_cancel(&task).await;
        }
        let working = self.parts.order.borrow().is_run() && !matches!(*self.state.borrow(), WorkState::Paused(_));
        if !working {
            return self.stop_claimed(look.claimed).await;
        }
        // Starting again runs `retry_wait` first (03 §7.1).
        match (look.retry, look.claimed) {
            (Some(task), _) => {
                let died = task.last_error_code.as_deref() == Some(PROGRAM_DIED);
                self.begin(&task, if died { ResumeReason::Restart } else { ResumeReason::Retry }).await
            }
            (None, Some(task)) => self.begin(&task, ResumeReason::Recollect).await,
            (None, None) => {
                self.say(WorkState::Idle);
                Ok(Turn::Wait)
            }
        }
    }

    /// Commits `start` (no execution yet) or `resume`. Without a phone a task that was never started goes back to the server.
    async fn begin(&self, task: &TaskRow, reason: ResumeReason) -> Result<Turn, TurnError> {
        let is_lost = self.phone_is_lost();
        let has_phone = self.parts.phone.borrow().is_some();
        match (has_phone, task.claim.execution_id) {
            (false, None) if task.state == TaskState::Claimed && is_lost => self.release(task, ReleaseAim::PhoneUnreachable).await,
            (false, _) => Ok(Turn::Wait),
            (true, execution) => {
                let id = task.id;
                let attempt_no = self.parts.store.read(move |r| r.attempt_no_next(id)).await?;
                let attempt = (AttemptId::from_uuid(uuid_at(self.parts.clock.now())), attempt_no);
                let claim_generation = task.claim.generation;
                match execution {
                    None => {
                        let expected_version = task.claim.server_version;
                        let body = StartRequest { claim_generation, expected_version, attempt_id: attempt.0, attempt_no };
                        self.intend(task, CallKind::Start, &body, Some(attempt)).await
                    }
                    Some(execution_id) => {
                        let body = ResumeRequest { claim_generation, execution_id, reason, attempt_id: attempt.0, attempt_no };
                        self.intend(task, CallKind::Resume, &body, Some(attempt)).await
                    }
                }
            }
        }
    }

    /// The operator stopped: a claimed task that was never started goes back, so that another device can have it (D2).
    async fn stop_claimed(&self, claimed: Option<TaskRow>) -> Result<Turn, TurnError> {
        let stopped = *self.parts.order.borrow() == WorkOrder::Stop;
        match claimed {
            Some(task) if stopped && task.claim.execution_id.is_none() => self.release(&task, ReleaseAim::OperatorStopped).await,
            Some(_) | None => Ok(Turn::Wait),
        }
    }

    async fn release(&self, task: &TaskRow, aim: ReleaseAim) -> Result<Turn, TurnError> {
        let body = ReleaseRequest { claim_generation: task.claim.generation, expected_version: task.claim.server_version };
        self.intend(task, CallKind::Release { aim }, &body, None).await
    }

    /// A waiting task whose cancel was asked for (D4, D9).
    pub(crate) async fn acknowledge_cancel(&self, task: &TaskRow) -> Result<Turn, TurnError> {
        let Some(execution_id) = task.claim.execution_id else { return Ok(Turn::Wait) };
        let body = CancelAckRequest { claim_generation: task.claim.generation, execution_id, expected_version: task.claim.server_version };
        self.intend(task, CallKind::CancelAck, &body, None).await
    }

    /// One intent, durable before anybody acts on it (D5).
    async fn intend(
        &self,
        task: &TaskRow,
        kind: CallKind,
        body: &(impl Serialize + Sync),
        attempt: Option<(AttemptId, u32)>,
    ) -> Result<Turn, TurnError> {
        let now = self.parts.clock.now();
        let call =
            NewCall { task: task.id, kind, key: IdempotencyKey::from_uuid(uuid_at(now)), body_json: serde_json::to_string(body)?, attempt };
        self.parts.store.write(move |tx| tx.call_open(&call, now)).await?;
        tracing::info!(task = %task.remote_task_id, ?kind, "intent committed");
        self.parts.nudges.calls.notify_one();
        Ok(Turn::Wait)
    }
}

/// What the rows say.
struct Look {
    running: Option<(TaskRow, cmautobuy_store::RunRow)>,
    retry: Option<TaskRow>,
    claimed: Option<TaskRow>,
    call_open: bool,
    cancelled: Option<TaskRow>,
}
