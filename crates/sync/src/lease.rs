//! Keeps the run lease alive (T-205 §8, D3). An ambiguous answer changes nothing; only a definite refusal loses the lease.

use cmautobuy_protocol::lifecycle::{RunHeartbeat, Standing};
use cmautobuy_protocol::{ErrorCode, ServerStatus};
use cmautobuy_task::{Lease, LostReason, Running};

use crate::api::ApiError;
use crate::house::{Sync, store_failed};
use crate::turn::Next;

impl Sync {
    pub(crate) async fn lease_turn(&self) -> Next {
        let Some(running) = self.parts.lease.current().filter(|r| r.lost.is_none()) else { return Next::Wait };
        let task = running.task;
        let token = match self.parts.store.read(move |reader| reader.claim_token_of(task)).await {
            Ok(token) => token,
            Err(error) => return store_failed("lease", &error),
        };
        let beat = RunHeartbeat { claim_generation: running.generation, execution_id: running.execution, step: running.step.clone() };
        let (sent_mono, sent_wall) = (self.parts.clock.mono(), self.parts.clock.now());
        let answer = self.parts.api.run_heartbeat(task, &token, &beat).await;
        self.saw(answer.as_ref().map(|_| ()));
        match answer {
            Ok(standing) => {
                self.renewed(&running, &standing, Lease::from_standing(&standing, sent_mono, sent_wall));
                Next::Wait
            }
            Err(error) => {
                self.not_renewed(&running, &error);
                // Every second counts while a lease is running out; the wait is bounded by the normal interval anyway.
                Next::Within(self.parts.timing.backoff.delay(1, self.dice()))
            }
        }
    }

    fn renewed(&self, running: &Running, standing: &Standing, lease: Option<Lease>) {
        match standing.status {
            ServerStatus::Running | ServerStatus::WaitingConfirmation => {
                self.parts.lease.renew(running.execution, lease, standing.cancel_requested);
            }
            // A re-collect runs on an ended task with a renewable lease (D4): the answer's lease decides, not its status.
            ServerStatus::Succeeded | ServerStatus::Failed | ServerStatus::Canceled if lease.is_some() => {
                self.parts.lease.renew(running.execution, lease, standing.cancel_requested);
            }
            ServerStatus::Pending | ServerStatus::Claimed | ServerStatus::Succeeded | ServerStatus::Failed | ServerStatus::Canceled => {
                self.parts.lease.lose(running.execution, LostReason::Ended);
            }
        }
        self.parts.nudges.lease_changed.notify_one();
    }

    fn not_renewed(&self, running: &Running, error: &ApiError) {
        let reason = match error.code() {
            Some(ErrorCode::LeaseExpired | ErrorCode::ExecutionMismatch | ErrorCode::ClaimLost) => LostReason::Refused,
            Some(ErrorCode::TaskCanceled | ErrorCode::IllegalState | ErrorCode::NotFound) => LostReason::Ended,
            Some(_) | None => {
                tracing::warn!(%error, "run lease not renewed; trying again");
                return;
            }
        };
        tracing::warn!(task = %running.task, %error, ?reason, "run lease lost");
        self.parts.lease.lose(running.execution, reason);
        self.parts.nudges.lease_changed.notify_one();
    }
}
