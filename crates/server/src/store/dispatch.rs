//! Table `dispatches`: which generation of a task was given to whom. Kept for ever; a result is accepted by it (D3).

use cmautobuy_protocol::{DeviceId, RemoteTaskId, UserId, WireTime};

use super::{StoreError, Tx};

pub(crate) fn dispatch_insert(
    tx: &Tx<'_>,
    task: RemoteTaskId,
    generation: u64,
    user: UserId,
    device: DeviceId,
    now: WireTime,
) -> Result<(), StoreError> {
    tx.run(
        "INSERT INTO dispatches (task_id, claim_generation, user_id, device_id, dispatched_at) VALUES (?1, ?2, ?3, ?4, ?5)",
        (task.to_string(), generation, user.to_string(), device.to_string(), now.to_string()),
    )?;
    Ok(())
}

/// Was any generation of this task given to this user and device?
pub(crate) fn dispatch_any(tx: &Tx<'_>, task: RemoteTaskId, user: UserId, device: DeviceId) -> Result<bool, StoreError> {
    let mut read =
        tx.0.prepare_cached("SELECT EXISTS (SELECT 1 FROM dispatches WHERE task_id = ?1 AND user_id = ?2 AND device_id = ?3)")?;
    Ok(read.query_row((task.to_string(), user.to_string(), device.to_string()), |row| row.get(0))?)
}

/// Was this generation of this task given to this user and device?
pub(crate) fn dispatch_exact(tx: &Tx<'_>, task: RemoteTaskId, generation: u64, user: UserId, device: DeviceId) -> Result<bool, StoreError> {
    // A generation no column can hold was given to nobody.
    let Ok(generation) = i64::try_from(generation) else { return Ok(false) };
    let mut read = tx.0.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM dispatches WHERE task_id = ?1 AND claim_generation = ?2 AND user_id = ?3 AND device_id = ?4)",
    )?;
    Ok(read.query_row((task.to_string(), generation, user.to_string(), device.to_string()), |row| row.get(0))?)
}

pub(crate) fn dispatch_release(tx: &Tx<'_>, task: RemoteTaskId, generation: u64, now: WireTime) -> Result<(), StoreError> {
    tx.run(
        "UPDATE dispatches SET released_at = ?3 WHERE task_id = ?1 AND claim_generation = ?2",
        (task.to_string(), generation, now.to_string()),
    )?;
    Ok(())
}
