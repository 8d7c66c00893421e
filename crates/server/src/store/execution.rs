//! Table `executions`: one start of a task (T-205 §7), with the step last heard of.

use cmautobuy_protocol::admin::TaskExecution;
use cmautobuy_protocol::{DeviceId, ExecutionId, RemoteTaskId, UserId, WireTime};
use rusqlite::OptionalExtension;

use super::{StoreError, Tx, parsed, parsed_opt};

/// A start, before it is stored.
#[derive(Debug, Clone)]
pub(crate) struct NewExecution {
    pub(crate) execution_id: ExecutionId,
    pub(crate) task_id: RemoteTaskId,
    pub(crate) claim_generation: u64,
    pub(crate) user_id: UserId,
    pub(crate) device_id: DeviceId,
    pub(crate) phone_serial: Option<String>,
}

pub(crate) fn execution_insert(tx: &Tx<'_>, new: &NewExecution, now: WireTime) -> Result<(), StoreError> {
    tx.run(
        "INSERT INTO executions (execution_id, task_id, claim_generation, user_id, device_id, phone_serial, started_at, last_seen_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)",
        (
            new.execution_id.to_string(),
            new.task_id.to_string(),
            new.claim_generation,
            new.user_id.to_string(),
            new.device_id.to_string(),
            &new.phone_serial,
            now.to_string(),
        ),
    )?;
    Ok(())
}

/// A sign of life; `step` only when it names one.
pub(crate) fn execution_seen(tx: &Tx<'_>, execution: ExecutionId, step: Option<&str>, now: WireTime) -> Result<(), StoreError> {
    let mut write = tx.0.prepare_cached("UPDATE executions SET last_seen_at = ?2, step = coalesce(?3, step) WHERE execution_id = ?1")?;
    write.execute((execution.to_string(), now.to_string(), step))?;
    Ok(())
}

pub(crate) fn execution_finish(tx: &Tx<'_>, execution: ExecutionId, now: WireTime) -> Result<(), StoreError> {
    tx.run("UPDATE executions SET finished_at = ?2 WHERE execution_id = ?1", (execution.to_string(), now.to_string()))?;
    Ok(())
}

/// Is it an execution of this task and generation?
pub(crate) fn execution_exists(tx: &Tx<'_>, execution: ExecutionId, task: RemoteTaskId, generation: u64) -> Result<bool, StoreError> {
    let mut read = tx.0.prepare_cached("SELECT 1 FROM executions WHERE execution_id = ?1 AND task_id = ?2 AND claim_generation = ?3")?;
    Ok(read.query_row((execution.to_string(), task.to_string(), generation), |_| Ok(())).optional()?.is_some())
}

pub(crate) fn execution_list(tx: &Tx<'_>, task: RemoteTaskId) -> Result<Vec<TaskExecution>, StoreError> {
    let mut read = tx.0.prepare_cached("SELECT * FROM executions WHERE task_id = ?1 ORDER BY claim_generation")?;
    let rows = read.query_map([task.to_string()], |row| {
        Ok(TaskExecution {
            execution_id: parsed(row, "execution_id")?,
            claim_generation: row.get("claim_generation")?,
            device_id: parsed(row, "device_id")?,
            user_id: parsed(row, "user_id")?,
            started_at: parsed(row, "started_at")?,
            last_seen_at: parsed(row, "last_seen_at")?,
            finished_at: parsed_opt(row, "finished_at")?,
            step: row.get("step")?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
