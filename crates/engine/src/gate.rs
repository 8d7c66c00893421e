//! Stands between the flow and the phone: before every action it checks stop, cancel and lease (D3, D9), and it keeps the evidence of
//! each step (D12).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use cmautobuy_device::{Capture, Phone};
use cmautobuy_pdd::{Step, StepGate, Stop};
use cmautobuy_protocol::ids::uuid_at;
use cmautobuy_protocol::lifecycle::{ResumeReason, ResumeRequest};
use cmautobuy_protocol::{AttemptId, ExecutionId, IdempotencyKey};
use cmautobuy_store::{CallKind, LocalTaskId, NewArtifact, NewCall, RunId, Store};
use cmautobuy_task::{Clock, LeaseCell, LeaseState, LostReason};
use tokio::sync::watch;

use crate::artifacts::ArtifactStore;
use crate::worker::{EngineNudges, WorkOrder};

/// Below this much lease no further action is begun: a tap must land while the lease lives.
const LEASE_MARGIN: Duration = Duration::from_secs(5);
/// How long a paused attempt waits for its lease before it gives up (D3).
const LEASE_PATIENCE: Duration = Duration::from_secs(600);

/// What the gate of one attempt knows.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) lease: Arc<LeaseCell>,
    pub(crate) nudges: EngineNudges,
    pub(crate) phone: Arc<dyn Phone>,
    pub(crate) artifacts: ArtifactStore,
    pub(crate) order: watch::Receiver<WorkOrder>,
    pub(crate) task: LocalTaskId,
    pub(crate) run: RunId,
    pub(crate) attempt: (AttemptId, u32),
    pub(crate) execution: ExecutionId,
    pub(crate) generation: u64,
    pub(crate) directory: String,
    pub(crate) evidence: Mutex<Evidence>,
}

/// What is not on disk yet.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    step: Option<Step>,
    /// The newest look without a picture.
    last: Option<Look>,
    files: u32,
}

/// One look at the phone, as far as it is evidence.
#[derive(Debug)]
struct Look {
    step: Step,
    capture: u64,
    xml: Arc<[u8]>,
    summary: String,
}

impl Gate {
    fn evidence(&self) -> std::sync::MutexGuard<'_, Evidence> {
        // Every write leaves the value whole.
        self.evidence.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last look of the run, if no picture was kept of it yet: its tree, and the screen as it is now. Every run leaves them (D12),
    /// also one that was stopped.
    pub(crate) async fn keep_last_look(&self) {
        let Some(look) = self.evidence().last.take() else { return };
        match self.phone.screenshot().await {
            Ok(png) => self.keep(look, Some((png, None))).await,
            Err(error) => {
                tracing::warn!(%error, "no picture of the last look");
                self.keep(look, None).await;
            }
        }
    }

    /// Tree and picture of one look, under one number. `skew_ms` is how far apart they were taken, where that is known (D11).
    async fn keep(&self, look: Look, picture: Option<(Vec<u8>, Option<i64>)>) {
        let number = {
            let mut evidence = self.evidence();
            evidence.files += 1;
            evidence.files
        };
        let name = |kind: &str| format!("{number:02}-{}.{kind}", look.step.as_str());
        if !look.xml.is_empty() {
            self.keep_file("tree", &look, &name("xml"), look.xml.to_vec(), None).await;
        }
        if let Some((png, skew_ms)) = picture {
            self.keep_file("screenshot", &look, &name("png"), png, skew_ms).await;
        }
    }

    async fn keep_file(&self, kind: &'static str, look: &Look, name: &str, bytes: Vec<u8>, skew_ms: Option<i64>) {
        let kept = match self.artifacts.keep(&self.directory, name, bytes).await {
            Ok(kept) => kept,
            Err(error) => {
                tracing::error!(%error, source = ?error.source, "evidence not kept");
                return;
            }
        };
        let row = NewArtifact {
            run: self.run,
            kind: kind.to_owned(),
            capture_id: Some(look.capture.to_string()),
            step: Some(look.step.as_str().to_owned()),
            relative_path: kept.relative_path,
            sha256: kept.sha256,
            size_bytes: kept.size_bytes,
            summary: look.summary.clone(),
            skew_ms,
        };
        let now = self.clock.now();
        if let Err(error) = self.store.write(move |tx| tx.artifact_add(&row, now).map(drop)).await {
            tracing::error!(%error, "evidence not recorded");
        }
    }

    /// Stop and cancel, without looking at the lease.
    fn asked_to_stop(&self) -> Option<Stop> {
        let cancelled = self.lease.current().is_some_and(|running| running.execution == self.execution && running.cancel_requested);
        if cancelled {
            Some(Stop::CancelRequested)
        } else if *self.order.borrow() == WorkOrder::Stop {
            Some(Stop::OperatorStop)
        } else {
            None
        }
    }

    /// `Ok` once the lease lives with a margin. Waits for a renewal or a resume, at most [`LEASE_PATIENCE`] (D3).
    async fn live_lease(&self) -> Result<(), Stop> {
        let began = self.clock.mono();
        let mut resumed = false;
        loop {
            if let Some(stop) = self.asked_to_stop() {
                return Err(stop);
            }
            let mine = self.lease.current().filter(|running| running.execution == self.execution);
            // Ended by `sync`: the server closed the task, or refused the resume.
            let Some(running) = mine else { return Err(Stop::LeaseLost) };
            match (running.lost, self.lease.state(self.clock.as_ref())) {
                (Some(LostReason::Ended), _) => return Err(Stop::LeaseLost),
                (None, Some(LeaseState::Live { left })) if left >= LEASE_MARGIN => return Ok(()),
                (None, Some(LeaseState::Live { .. } | LeaseState::Unknown)) => self.nudges.lease.notify_one(),
                (Some(LostReason::Refused), _) | (None, Some(LeaseState::Expired) | None) => {
                    if !resumed {
                        resumed = true;
                        tracing::warn!("run lease lost; the phone is left alone while it is resumed");
                        self.resume().await;
                    }
                }
            }
            if self.clock.mono().since(began) >= LEASE_PATIENCE {
                return Err(Stop::LeaseLost);
            }
            let mut order = self.order.clone();
            tokio::select! {
                () = self.nudges.lease_changed.notified() => {}
                _ = order.changed() => {}
                () = tokio::time::sleep(Duration::from_secs(1)) => {}
            }
        }
    }

    /// Commits the intent to go on with the same attempt (D3, D4). Already open is fine: one is enough.
    async fn resume(&self) {
        let request = ResumeRequest {
            claim_generation: self.generation,
            execution_id: self.execution,
            reason: ResumeReason::LeaseLost,
            attempt_id: self.attempt.0,
            attempt_no: self.attempt.1,
        };
        let Ok(body_json) = serde_json::to_string(&request) else { return };
        let now = self.clock.now();
        let call = NewCall {
            task: self.task,
            kind: CallKind::Resume,
            key: IdempotencyKey::from_uuid(uuid_at(now)),
            body_json,
            attempt: Some(self.attempt),
        };
        match self.store.write(move |tx| tx.call_open(&call, now)).await {
            Ok(_) => self.nudges.calls.notify_one(),
            Err(error) => tracing::warn!(%error, "resume not committed"),
        }
    }
}

#[async_trait]
impl StepGate for Gate {
    async fn step(&self, step: Step) -> Result<(), Stop> {
        let changed = self.evidence().step != Some(step);
        if changed {
            self.evidence().step = Some(step);
            self.lease.say_step(step.as_str());
            let (run, now) = (self.run, self.clock.now());
            if let Err(error) = self.store.write(move |tx| tx.run_step(run, step.as_str(), now)).await {
                tracing::error!(%error, "step not recorded");
            }
        }
        self.asked_to_stop().map_or(Ok(()), Err)
    }

    async fn before_action(&self) -> Result<(), Stop> {
        self.live_lease().await
    }

    async fn captured(&self, step: Step, capture: &Capture) {
        let summary = format!("{} {} ({} ms)", capture.verdict, capture.foreground, capture.dump_ms);
        let look = Look { step, capture: capture.id.0, xml: Arc::clone(&capture.xml), summary };
        match &capture.screenshot {
            Some(picture) => {
                self.evidence().last = None;
                self.keep(look, Some((picture.png.clone(), Some(picture.skew_ms)))).await;
            }
            None => self.evidence().last = Some(look),
        }
    }
}
