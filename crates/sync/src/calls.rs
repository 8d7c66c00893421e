//! Performs the intents the engine committed: start, resume, release, cancel-ack (D5). Replayed with the same key and bytes until the
//! answer is definite; the answer and its effect on the row are one transaction.

use cmautobuy_protocol::ErrorCode;
use cmautobuy_protocol::lifecycle::Standing;
use cmautobuy_store::{CallKind, CallRow, PhoneRef, RefusedEffect};
use cmautobuy_task::{Lease, Running};

use crate::api::ApiError;
use crate::house::{Sync, store_failed};
use crate::turn::Next;

/// What a definite refusal does to the row (D5.5). `None`: not definite, the call is replayed.
fn effect(kind: CallKind, error: &ApiError) -> Option<RefusedEffect> {
    use cmautobuy_protocol::ServerStatus as S;
    let ApiError::Refused { status, detail } = error else { return None };
    if !matches!(status, 404 | 409 | 422) {
        return None;
    }
    let ended = detail.task.as_ref().map(|task| task.status).and_then(|status| match status {
        S::Canceled => Some(RefusedEffect::EndedOnServerCancelled),
        S::Succeeded | S::Failed => Some(RefusedEffect::EndedOnServerFailed),
        S::Pending | S::Claimed | S::Running | S::WaitingConfirmation => None,
    });
    let effect = match (kind, &detail.code) {
        // Another copy or another task in the way passes; the intent stays.
        (_, ErrorCode::DeviceInUse | ErrorCode::DeviceBusy | ErrorCode::DeviceNotReady | ErrorCode::Unavailable) => return None,
        (_, ErrorCode::VersionConflict) => RefusedEffect::NewIntentNeeded,
        (CallKind::Start, ErrorCode::LeaseExpired) => RefusedEffect::LeaseExpired,
        // Whatever a release is refused with, this device no longer has the claim.
        (CallKind::Start | CallKind::Release { .. }, _) => RefusedEffect::ClaimLost,
        (CallKind::Resume | CallKind::CancelAck, ErrorCode::TaskCanceled) => RefusedEffect::EndedOnServerCancelled,
        (CallKind::Resume | CallKind::CancelAck, _) => ended.unwrap_or(RefusedEffect::EndedOnServerFailed),
    };
    Some(effect)
}

const fn verb(kind: CallKind) -> &'static str {
    match kind {
        CallKind::Start => "start",
        CallKind::Resume => "resume",
        CallKind::Release { .. } => "release",
        CallKind::CancelAck => "cancel-ack",
    }
}

impl Sync {
    pub(crate) async fn calls_turn(&self) -> Next {
        let Some(user) = self.user() else { return Next::Wait };
        let device = self.parts.device;
        let (now, longest) = (self.parts.clock.now(), self.parts.timing.backoff.longest);
        let call = match self.parts.store.read(move |reader| reader.call_due(user, device, now, longest)).await {
            Ok(Some(call)) => call,
            Ok(None) => return Next::Wait,
            Err(error) => return store_failed("calls", &error),
        };
        let (sent_mono, sent_wall) = (self.parts.clock.mono(), self.parts.clock.now());
        let body = call.body_json.clone().into_bytes();
        let answer = self.parts.api.lifecycle(call.remote_task_id, verb(call.kind), &call.key, &call.token, body).await;
        self.saw(answer.as_ref().map(|_| ()));
        match answer {
            Ok(standing) => {
                let lease = Lease::from_standing(&standing, sent_mono, sent_wall);
                self.answered(call, standing, lease).await
            }
            Err(error) => self.refused_or_later(call, error).await,
        }
    }

    async fn answered(&self, call: CallRow, standing: Standing, lease: Option<Lease>) -> Next {
        let now = self.parts.clock.now();
        let (id, kind) = (call.id, call.kind);
        let answer = standing.clone();
        let stored = match kind {
            CallKind::Start | CallKind::Resume => {
                let serial = self.parts.phone.borrow().serial.clone();
                let phone = PhoneRef { device_address: serial.clone().unwrap_or_default(), phone_serial: serial };
                self.parts.store.write(move |tx| tx.call_answered_start(id, &answer, &phone, now).map(drop)).await
            }
            CallKind::Release { .. } => self.parts.store.write(move |tx| tx.call_answered_release(id, &answer, now).map(drop)).await,
            CallKind::CancelAck => self.parts.store.write(move |tx| tx.call_answered_cancel_ack(id, &answer, now).map(drop)).await,
        };
        if let Err(error) = stored {
            return store_failed("calls", &error);
        }
        match kind {
            CallKind::Start | CallKind::Resume => self.begin(&standing, lease),
            CallKind::Release { .. } | CallKind::CancelAck => self.parts.lease.end(),
        }
        tracing::info!(task = %call.remote_task_id, verb = verb(kind), "server call answered");
        self.parts.nudges.engine.notify_one();
        self.parts.nudges.claim.notify_one();
        Next::Again
    }

    /// The row is `running` now; the worker may move once it sees this run in the lease cell. A replayed answer whose lease is over
    /// begins a run without one: the flow then resumes before any tap (D3).
    fn begin(&self, standing: &Standing, lease: Option<Lease>) {
        let Some(execution) = standing.execution_id else { return };
        let step = self.parts.lease.current().filter(|r| r.execution == execution).map_or_else(|| "starting".to_owned(), |r| r.step);
        self.parts.lease.begin(Running {
            task: standing.task_id,
            execution,
            generation: standing.claim_generation,
            lease,
            cancel_requested: standing.cancel_requested,
            lost: None,
            step,
        });
        self.parts.nudges.lease_changed.notify_one();
    }

    async fn refused_or_later(&self, call: CallRow, error: ApiError) -> Next {
        let now = self.parts.clock.now();
        let (id, failures) = (call.id, call.attempt_count + 1);
        let Some(effect) = effect(call.kind, &error) else {
            let wait = self.parts.timing.backoff.delay(failures, self.dice());
            let at = now.plus_ms(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX));
            tracing::debug!(task = %call.remote_task_id, verb = verb(call.kind), %error, "server call waits");
            let text = error.to_string();
            return match self.parts.store.write(move |tx| tx.call_retry_later(id, at, &text, now)).await {
                Ok(()) => Next::Within(wait),
                Err(error) => store_failed("calls", &error),
            };
        };
        tracing::warn!(task = %call.remote_task_id, verb = verb(call.kind), %error, ?effect, "server call refused");
        let (code, message, own) = match error {
            ApiError::Refused { detail, .. } => (detail.code.to_string(), detail.message, detail.task),
            other => ("SERVER_REFUSED".to_owned(), other.to_string(), None),
        };
        match self.parts.store.write(move |tx| tx.call_refused(id, &code, &message, effect, own.as_ref(), now)).await {
            Ok(_) => {
                // A new intent for the same run follows: the run is not over.
                let goes_on = matches!(effect, RefusedEffect::NewIntentNeeded | RefusedEffect::Nothing);
                if !goes_on && self.parts.lease.current().is_some_and(|running| running.task == call.remote_task_id) {
                    self.parts.lease.end();
                    self.parts.nudges.lease_changed.notify_one();
                }
                self.parts.nudges.engine.notify_one();
                self.parts.nudges.claim.notify_one();
                Next::Again
            }
            Err(error) => store_failed("calls", &error),
        }
    }
}

#[cfg(test)]
mod tests {
    use cmautobuy_protocol::{ErrorDetail, OwnTask, ServerStatus};
    use cmautobuy_store::ReleaseAim;

    use super::*;

    #[test]
    fn what_a_refusal_does_to_the_row() {
        let refused = |status, code: &str, own: Option<ServerStatus>| ApiError::Refused {
            status,
            detail: ErrorDetail {
                code: code.into(),
                message: String::new(),
                request_id: None,
                task: own.map(|status| OwnTask { status, version: 3, execution_id: None }),
            },
        };
        use RefusedEffect as E;
        for (kind, error, want, why) in [
            (CallKind::Start, refused(409, "LEASE_EXPIRED", None), Some(E::LeaseExpired), "the claim ran out: claim again at once (D5.5)"),
            (CallKind::Start, refused(409, "CLAIM_LOST", None), Some(E::ClaimLost), "the claim is another's"),
            (CallKind::Start, refused(409, "TASK_CANCELED", None), Some(E::ClaimLost), "cancelled before it began: nothing to report"),
            (
                CallKind::Start,
                refused(409, "VERSION_CONFLICT", None),
                Some(E::NewIntentNeeded),
                "read the version, then a new intent with a new key",
            ),
            (CallKind::Start, refused(409, "DEVICE_IN_USE", None), None, "the other copy may be closed; the intent stays"),
            (CallKind::Start, refused(503, "UNAVAILABLE", None), None, "an outage is not a refusal"),
            (CallKind::Start, refused(401, "UNAUTHENTICATED", None), None, "logging in again mends it"),
            (CallKind::Start, ApiError::NoAnswer(String::new()), None, "the server may have started it: replay with the same key"),
            (
                CallKind::Release { aim: ReleaseAim::OperatorStopped },
                refused(409, "ILLEGAL_STATE", None),
                Some(E::ClaimLost),
                "any 409 on release means the claim is gone (D5.5)",
            ),
            (
                CallKind::Resume,
                refused(409, "ILLEGAL_STATE", Some(ServerStatus::Canceled)),
                Some(E::EndedOnServerCancelled),
                "ended there: end here, no outbox",
            ),
            (
                CallKind::Resume,
                refused(409, "ILLEGAL_STATE", Some(ServerStatus::Failed)),
                Some(E::EndedOnServerFailed),
                "closed by an administrator",
            ),
            (CallKind::Resume, refused(409, "DEVICE_BUSY", None), None, "the other task may end"),
            (CallKind::CancelAck, refused(409, "TASK_CANCELED", None), Some(E::EndedOnServerCancelled), "it is cancelled already"),
        ] {
            assert_eq!(effect(kind, &error), want, "{kind:?} {error}: {why}");
        }
    }
}
