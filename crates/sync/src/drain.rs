//! Empties the outbox (03 §5, D8): the stored bytes, under the stored key, until the server says `accepted`. For days if need be.

use cmautobuy_store::OutboxRow;

use crate::api::ApiError;
use crate::house::{Sync, store_failed};
use crate::turn::Next;

impl Sync {
    pub(crate) async fn drain_turn(&self) -> Next {
        let Some(user) = self.user() else { return Next::Wait };
        let (device, now, longest) = (self.parts.device, self.parts.clock.now(), self.parts.timing.backoff.longest);
        let row = self
            .parts
            .store
            .write(move |tx| {
                let due = tx.outbox_due(user, device, now, longest)?;
                if let Some(row) = &due {
                    tx.outbox_sending(row.id, now)?;
                }
                Ok(due)
            })
            .await;
        match row {
            Ok(Some(row)) => self.send_row(row).await,
            Ok(None) => Next::Wait,
            Err(error) => store_failed("drain", &error),
        }
    }

    async fn send_row(&self, row: OutboxRow) -> Next {
        let answer = self.parts.api.result(row.remote_task_id, &row.key, row.payload.clone().into_bytes()).await;
        self.saw(answer.as_ref().map(|_| ()));
        let now = self.parts.clock.now();
        let id = row.id;
        match answer {
            Ok(answer) if answer.accepted => {
                tracing::info!(task = %row.remote_task_id, duplicate = answer.duplicate, late = answer.late, "result accepted");
                match self.parts.store.write(move |tx| tx.outbox_accepted(id, &answer, now).map(drop)).await {
                    Ok(()) => {
                        self.parts.nudges.claim.notify_one();
                        Next::Again
                    }
                    Err(error) => store_failed("drain", &error),
                }
            }
            // A 200 that does not accept is no answer this protocol knows; keep the row.
            Ok(_) => self.later(&row, "the server answered without accepting").await,
            Err(error) if refused_for_good(&error) => {
                tracing::error!(task = %row.remote_task_id, %error, "result refused; a person must look");
                let text = error.to_string();
                match self.parts.store.write(move |tx| tx.outbox_refused(id, &text, now).map(drop)).await {
                    Ok(()) => Next::Again,
                    Err(error) => store_failed("drain", &error),
                }
            }
            Err(error) => self.later(&row, &error.to_string()).await,
        }
    }

    async fn later(&self, row: &OutboxRow, why: &str) -> Next {
        let now = self.parts.clock.now();
        let wait = self.parts.timing.backoff.delay(row.attempt_count + 1, self.dice());
        let at = now.plus_ms(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX));
        tracing::info!(task = %row.remote_task_id, why, wait_ms = wait.as_millis(), "result waits");
        let (id, why) = (row.id, why.to_owned());
        match self.parts.store.write(move |tx| tx.outbox_later(id, at, &why, now)).await {
            Ok(()) => Next::Within(wait),
            Err(error) => store_failed("drain", &error),
        }
    }
}

/// D8: only these refuse a result for good. The row belongs to the logged-in user and device (`outbox_due`), so 404 counts.
fn refused_for_good(error: &ApiError) -> bool {
    match error {
        ApiError::Refused { status: 404 | 413 | 422, .. } => true,
        ApiError::Refused { status: 409, detail } => detail.code == cmautobuy_protocol::ErrorCode::IdempotencyConflict,
        ApiError::Refused { .. } | ApiError::NoAnswer(_) | ApiError::Unreadable { .. } | ApiError::NotLoggedIn | ApiError::Encode(_) => {
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use cmautobuy_protocol::ErrorDetail;

    use super::*;

    #[test]
    fn outage_is_not_refusal() {
        let refused = |status, code: &str| ApiError::Refused {
            status,
            detail: ErrorDetail { code: code.into(), message: String::new(), request_id: None, task: None },
        };
        for (error, for_good, why) in [
            (refused(409, "IDEMPOTENCY_CONFLICT"), true, "the same key holds other bytes; resending cannot mend it"),
            (refused(413, "TOO_LARGE"), true, "the bytes will not shrink"),
            (refused(422, "MALFORMED"), true, "the bytes will not change"),
            (refused(404, "NOT_FOUND"), true, "not dispatched to this user and device"),
            (refused(409, "ILLEGAL_STATE"), false, "any other 409 may pass"),
            (refused(401, "UNAUTHENTICATED"), false, "a login mends it"),
            (refused(403, "FORBIDDEN"), false, "rights can be given back"),
            (refused(429, "RATE_LIMITED"), false, "waiting mends it"),
            (refused(500, "INTERNAL"), false, "an outage"),
            (ApiError::NoAnswer(String::new()), false, "an outage"),
            (ApiError::Unreadable { status: 200, reason: String::new() }, false, "a proxy's page is not the server's word"),
        ] {
            assert_eq!(refused_for_good(&error), for_good, "{error}: {why}");
        }
    }
}
