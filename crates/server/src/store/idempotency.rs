//! Table `idempotency`: what a lifecycle call with this key led to, per user, device and operation (T-205 §3). Identity only: where the task
//! stands is read at replay (D3). Refusals are never stored (D5).

use cmautobuy_protocol::{DeviceId, IdempotencyKey, RemoteTaskId, UserId, WireTime};
use rusqlite::OptionalExtension;

use super::{StoreError, Tx, parsed_opt};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    ClaimNext,
    Start,
    Resume,
    Release,
    CancelAck,
}

impl Operation {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::ClaimNext => "claim_next",
            Self::Start => "start",
            Self::Resume => "resume",
            Self::Release => "release",
            Self::CancelAck => "cancel_ack",
        }
    }
}

/// Whose key of which call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyOf<'a> {
    pub(crate) user: UserId,
    pub(crate) device: DeviceId,
    pub(crate) operation: Operation,
    pub(crate) key: &'a IdempotencyKey,
    /// SHA-256 of the request, with the claim token's hash in it (T-205 §3).
    pub(crate) request_sha256: &'a str,
}

/// What the first call with a key led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) task_id: RemoteTaskId,
    pub(crate) claim_generation: u64,
    /// The version right after the call; only `release` repeats it.
    pub(crate) version: u64,
}

/// What is known of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    New,
    /// The same request before; `None` is 204.
    Before(Option<Identity>),
    OtherRequest,
}

pub(crate) fn idempotency_seen(tx: &Tx<'_>, key: KeyOf<'_>) -> Result<Seen, StoreError> {
    let mut read = tx.0.prepare_cached(
        "SELECT request_sha256, task_id, claim_generation, version FROM idempotency
         WHERE user_id = ?1 AND device_id = ?2 AND operation = ?3 AND key = ?4",
    )?;
    let found = read
        .query_row((key.user.to_string(), key.device.to_string(), key.operation.as_str(), key.key.as_str()), |row| {
            let identity = match parsed_opt(row, "task_id")? {
                None => None,
                Some(task_id) => Some(Identity { task_id, claim_generation: row.get("claim_generation")?, version: row.get("version")? }),
            };
            Ok((row.get::<_, String>("request_sha256")?, identity))
        })
        .optional()?;
    Ok(match found {
        None => Seen::New,
        Some((sha256, identity)) if sha256 == key.request_sha256 => Seen::Before(identity),
        Some(_) => Seen::OtherRequest,
    })
}

pub(crate) fn idempotency_insert(tx: &Tx<'_>, key: KeyOf<'_>, identity: Option<Identity>, now: WireTime) -> Result<(), StoreError> {
    tx.run(
        "INSERT INTO idempotency (user_id, device_id, operation, key, request_sha256, task_id, claim_generation, version, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        (
            key.user.to_string(),
            key.device.to_string(),
            key.operation.as_str(),
            key.key.as_str(),
            key.request_sha256,
            identity.map(|i| i.task_id.to_string()),
            identity.map(|i| i.claim_generation),
            identity.map(|i| i.version),
            now.to_string(),
        ),
    )?;
    Ok(())
}

/// Forgets at most `most` keys first seen before `before`; how many.
pub(crate) fn idempotency_prune(tx: &Tx<'_>, before: WireTime, most: u32) -> Result<usize, StoreError> {
    let mut write = tx.0.prepare_cached(
        "DELETE FROM idempotency WHERE (user_id, device_id, operation, key) IN (
             SELECT user_id, device_id, operation, key FROM idempotency WHERE created_at < ?1 ORDER BY created_at LIMIT ?2)",
    )?;
    Ok(write.execute((before.to_string(), most))?)
}
