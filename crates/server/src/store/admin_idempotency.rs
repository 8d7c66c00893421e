//! Table `admin_idempotency`: which task a create with this key made (D19).

use cmautobuy_protocol::{IdempotencyKey, RemoteTaskId, WireTime};
use rusqlite::OptionalExtension;

use super::{StoreError, Tx, parsed};
use crate::work::Actor;

/// The task made by this key before, with the hash of that request.
pub(crate) fn admin_idempotency_get(tx: &Tx<'_>, actor: Actor, key: &IdempotencyKey) -> Result<Option<(String, RemoteTaskId)>, StoreError> {
    let mut read = tx.0.prepare_cached("SELECT request_sha256, task_id FROM admin_idempotency WHERE actor = ?1 AND key = ?2")?;
    let found =
        read.query_row((actor.to_string(), key.as_str()), |row| Ok((row.get("request_sha256")?, parsed(row, "task_id")?))).optional()?;
    Ok(found)
}

pub(crate) fn admin_idempotency_insert(
    tx: &Tx<'_>,
    actor: Actor,
    key: &IdempotencyKey,
    request_sha256: &str,
    task: RemoteTaskId,
    now: WireTime,
) -> Result<(), StoreError> {
    tx.run(
        "INSERT INTO admin_idempotency (actor, key, request_sha256, task_id, created_at) VALUES (?1, ?2, ?3, ?4, ?5)",
        (actor.to_string(), key.as_str(), request_sha256, task.to_string(), now.to_string()),
    )?;
    Ok(())
}
