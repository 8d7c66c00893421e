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

/// The last look of the current step, not yet on disk.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    step: Option<Step>,
    last: Option<(u64, Arc<[u8]>)>,
    files: u32,
}

impl Gate {
    fn evidence(&self) -> std::sync::MutexGuard<'_, Evidence> {
        // Every write leaves the value whole.
        self.evidence.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the last tree of the current step and a picture of the screen now. Called at each change of step and at the end of a run.
    pub(crate) async fn keep_evidence(&self) {
        let (step, last, number) = {
            let mut evidence = self.evidence();
            let Some(step) = evidence.step else { return };
            let last = evidence.last.take();
            evidence.files += 1;
            (step, last, evidence.files)
        };
        let capture_id = last.as_ref().map(|(id, _)| *id);
        if let Some((_, xml)) = last {
            self.keep_file("tree", capture_id, step, &format!("{number:02}-{}.xml", step.as_str()), xml.to_vec()).await;
        }
        match self.phone.screenshot().await {
            Ok(png) => self.keep_file("screenshot", capture_id, step, &format!("{number:02}-{}.png", step.as_str()), png).await,
            Err(error) => tracing::warn!(%error, "no picture of this step"),
        }
    }

    async fn keep_file(&self, kind: &'static str, capture_id: Option<u64>, step: Step, name: &str, bytes: Vec<u8>) {
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
            capture_id: capture_id.map(|id| id.to_string()),
            step: Some(step.as_str().to_owned()),
            relative_path: kept.relative_path,
            sha256: kept.sha256,
            size_bytes: kept.size_bytes,
            summary: String::new(),
            skew_ms: None,
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
            self.keep_evidence().await;
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
        let mut evidence = self.evidence();
        evidence.step = Some(step);
        if !capture.xml.is_empty() {
            evidence.last = Some((capture.id.0, Arc::clone(&capture.xml)));
        }
    }
}
