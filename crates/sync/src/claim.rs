//! Claims the next task with a token made here (D5). One attempt at a time; an unanswered one is replayed, also after a restart.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cmautobuy_protocol::ids::uuid_at;
use cmautobuy_protocol::{AttemptId, ClaimToken, ErrorCode, IdempotencyKey};
use cmautobuy_store::{ClaimEnd, FreshClaim, OpenClaim, PrepareOutcome};

use crate::api::ApiError;
use crate::house::{Sync, store_failed};
use crate::turn::Next;

/// What a refused or unanswered claim means for its attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// Nothing was claimed under this key and never will be.
    Close(ClaimEnd),
    /// Not answered, or not now: the *same* attempt is replayed later.
    Replay,
}

/// D5.3 as a table.
fn verdict(error: &ApiError) -> Verdict {
    match error {
        ApiError::Refused { status: 409, detail } => match &detail.code {
            ErrorCode::ClaimReplayExpired => Verdict::Close(ClaimEnd::Expired),
            ErrorCode::IdempotencyConflict => Verdict::Close(ClaimEnd::Refused),
            // DEVICE_NOT_READY, DEVICE_BUSY, DEVICE_IN_USE, and whatever a newer server adds: nothing was stored under the key.
            _ => Verdict::Replay,
        },
        ApiError::Refused { status: 422, .. } => Verdict::Close(ClaimEnd::Refused),
        ApiError::Refused { .. } | ApiError::NoAnswer(_) | ApiError::Unreadable { .. } | ApiError::NotLoggedIn | ApiError::Encode(_) => {
            Verdict::Replay
        }
    }
}

impl Sync {
    pub(crate) async fn claim_turn(&self) -> Next {
        let Some(user) = self.user() else { return Next::Wait };
        // An attempt that may have been answered is settled even while claiming is off: the task behind it may be ours.
        let may_open = *self.parts.claiming.borrow() && self.parts.phone.borrow().serial.is_some();
        let device = self.parts.device;
        let now = self.parts.clock.now();
        if !may_open {
            return match self.parts.store.read(|r| r.claim_open()).await {
                Ok(Some((open, owner, of))) if (owner, of) == (user, device) => self.claim_with(open).await,
                Ok(_) => Next::Wait,
                Err(error) => store_failed("claim", &error),
            };
        }
        let fresh = FreshClaim { key: IdempotencyKey::from_uuid(uuid_at(now)), token: new_token() };
        let open = match self.parts.store.write(move |tx| tx.claim_prepare(fresh, user, device, now)).await {
            Ok(PrepareOutcome::Open(open)) => open,
            Ok(PrepareOutcome::LocalTaskNeedsPhone(_) | PrepareOutcome::OtherOwner { .. }) => return Next::Wait,
            Err(error) => return store_failed("claim", &error),
        };
        self.claim_with(open).await
    }

    async fn claim_with(&self, open: OpenClaim) -> Next {
        let answer = self.parts.api.claim_next(&open.key, &open.token, self.parts.device).await;
        self.saw(answer.as_ref().map(|_| ()));
        let now = self.parts.clock.now();
        let is_none = matches!(answer, Ok(None));
        self.no_task.send_if_modified(|old| std::mem::replace(old, is_none) != is_none);
        match answer {
            Ok(Some((answer, raw))) => {
                let attempt = AttemptId::from_uuid(uuid_at(now));
                let task = answer.standing.task_id;
                let stored = self.parts.store.write(move |tx| tx.claim_store(&open.key, &answer, &raw, attempt, now)).await;
                match stored {
                    Ok(stored) => {
                        tracing::info!(%task, faults = stored.faults.len(), "task claimed");
                        self.claim_refused.send_replace(None);
                        self.parts.nudges.engine.notify_one();
                        self.parts.nudges.drain.notify_one();
                        // A task with bad data is already over; the next one need not wait for the poll.
                        if stored.faults.is_empty() { Next::Wait } else { Next::Again }
                    }
                    Err(error) => store_failed("claim", &error),
                }
            }
            Ok(None) => {
                self.claim_refused.send_replace(None);
                self.close(open, ClaimEnd::NoTask).await
            }
            Err(error) => {
                let said = error.code().map(|code| (code.to_string(), error.to_string()));
                self.claim_refused.send_if_modified(|old| {
                    let changed = *old != said;
                    if changed {
                        tracing::info!(%error, "nothing claimed");
                        *old = said;
                    }
                    changed
                });
                match verdict(&error) {
                    Verdict::Close(end) => self.close(open, end).await,
                    Verdict::Replay => Next::Wait,
                }
            }
        }
    }

    async fn close(&self, open: OpenClaim, end: ClaimEnd) -> Next {
        let now = self.parts.clock.now();
        match self.parts.store.write(move |tx| tx.claim_close(&open.key, end, now)).await {
            Ok(()) => Next::Wait,
            Err(error) => store_failed("claim", &error),
        }
    }
}

/// 256 random bits (T-205 §2).
fn new_token() -> ClaimToken {
    let bytes: [u8; 32] = rand::random();
    URL_SAFE_NO_PAD.encode(bytes).parse().expect("32 bytes are 43 characters of canonical base64url")
}

#[cfg(test)]
mod tests {
    use cmautobuy_protocol::ErrorDetail;

    use super::*;

    #[test]
    fn what_ends_a_claim_attempt() {
        let refused = |status, code: &str| ApiError::Refused {
            status,
            detail: ErrorDetail { code: code.into(), message: String::new(), request_id: None, task: None },
        };
        for (error, want, why) in [
            (refused(409, "CLAIM_REPLAY_EXPIRED"), Verdict::Close(ClaimEnd::Expired), "the claim behind the key is over"),
            (refused(409, "IDEMPOTENCY_CONFLICT"), Verdict::Close(ClaimEnd::Refused), "this key can never claim"),
            (refused(422, "MALFORMED"), Verdict::Close(ClaimEnd::Refused), "the same bytes will never be understood"),
            (refused(409, "DEVICE_NOT_READY"), Verdict::Replay, "nothing is stored under the key; the phone may come back"),
            (refused(409, "DEVICE_BUSY"), Verdict::Replay, "the other task may end"),
            (refused(409, "DEVICE_IN_USE"), Verdict::Replay, "the other copy may be closed"),
            (refused(409, "SOMETHING_NEW"), Verdict::Replay, "an unknown refusal must not lose a claim that may exist"),
            (refused(401, "UNAUTHENTICATED"), Verdict::Replay, "logging in again mends it"),
            (refused(403, "FORBIDDEN"), Verdict::Replay, "rights can be given back"),
            (refused(429, "RATE_LIMITED"), Verdict::Replay, "waiting mends it"),
            (refused(500, "INTERNAL"), Verdict::Replay, "the server may have claimed before it failed"),
            (ApiError::NoAnswer(String::new()), Verdict::Replay, "nobody knows whether the server claimed"),
            (
                ApiError::Unreadable { status: 200, reason: String::new() },
                Verdict::Replay,
                "a claim may be in the answer we could not read",
            ),
            (ApiError::NotLoggedIn, Verdict::Replay, "the attempt waits for the login"),
        ] {
            assert_eq!(verdict(&error), want, "{error}: {why}");
        }
    }

    #[test]
    fn tokens_are_well_formed_and_differ() {
        assert_ne!(new_token(), new_token(), "256 random bits do not repeat");
    }
}
