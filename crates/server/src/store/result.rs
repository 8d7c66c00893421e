//! Table `results`: what clients reported, byte-hash per key (D8). A row is never changed but for the count of equal resends.

use cmautobuy_protocol::admin::TaskResult;
use cmautobuy_protocol::result::{Disposition, EventType, ResultBody};
use cmautobuy_protocol::{DeviceId, IdempotencyKey, RemoteTaskId, ServerStatus, UserId, WireTime};
use rusqlite::types::Type;
use rusqlite::{OptionalExtension, Row};

use super::{StoreError, Tx, known, parsed};

/// A result as it is stored.
#[derive(Debug, Clone)]
pub(crate) struct NewResult<'a> {
    pub(crate) key: &'a IdempotencyKey,
    pub(crate) task_id: RemoteTaskId,
    pub(crate) user_id: UserId,
    pub(crate) device_id: DeviceId,
    pub(crate) body: &'a ResultBody,
    /// The exact text that came.
    pub(crate) text: &'a str,
    pub(crate) payload_sha256: &'a str,
    pub(crate) late: bool,
    pub(crate) task_status: ServerStatus,
}

/// The first answer to a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FirstAnswer {
    pub(crate) payload_sha256: String,
    pub(crate) late: bool,
    pub(crate) task_status: ServerStatus,
}

pub(crate) fn result_first_answer(tx: &Tx<'_>, key: &IdempotencyKey) -> Result<Option<FirstAnswer>, StoreError> {
    let mut read = tx.0.prepare_cached("SELECT payload_sha256, late, task_status FROM results WHERE idempotency_key = ?1")?;
    let found = read
        .query_row([key.as_str()], |row| {
            Ok(FirstAnswer {
                payload_sha256: row.get("payload_sha256")?,
                late: row.get("late")?,
                task_status: known(row, "task_status", ServerStatus::parse)?,
            })
        })
        .optional()?;
    Ok(found)
}

pub(crate) fn result_count_duplicate(tx: &Tx<'_>, key: &IdempotencyKey) -> Result<(), StoreError> {
    tx.run("UPDATE results SET duplicates = duplicates + 1 WHERE idempotency_key = ?1", [key.as_str()])?;
    Ok(())
}

pub(crate) fn result_insert(tx: &Tx<'_>, new: &NewResult<'_>, now: WireTime) -> Result<(), StoreError> {
    let mut write = tx.0.prepare_cached(
        "INSERT INTO results (idempotency_key, task_id, claim_generation, attempt_id, attempt_no, execution_id, user_id, device_id,
             event_type, disposition, payload_sha256, body, late, task_status, received_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
    )?;
    write.execute((
        new.key.as_str(),
        new.task_id.to_string(),
        new.body.claim_generation,
        new.body.attempt_id.to_string(),
        new.body.attempt_no,
        new.body.execution_id.map(|id| id.to_string()),
        new.user_id.to_string(),
        new.device_id.to_string(),
        new.body.event_type.as_str(),
        new.body.disposition.as_str(),
        new.payload_sha256,
        new.text,
        new.late,
        new.task_status.as_str(),
        now.to_string(),
    ))?;
    Ok(())
}

fn decode(row: &Row<'_>) -> rusqlite::Result<TaskResult> {
    let body: String = row.get("body")?;
    let body = serde_json::from_str(&body).map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(error)))?;
    Ok(TaskResult {
        idempotency_key: row.get("idempotency_key")?,
        payload_sha256: row.get("payload_sha256")?,
        event_type: known(row, "event_type", EventType::parse)?,
        disposition: known(row, "disposition", Disposition::parse)?,
        attempt_id: parsed(row, "attempt_id")?,
        attempt_no: row.get("attempt_no")?,
        claim_generation: row.get("claim_generation")?,
        late: row.get("late")?,
        duplicates: row.get("duplicates")?,
        received_at: parsed(row, "received_at")?,
        body,
    })
}

/// In order of generation, attempt and arrival: the last one is the latest outcome (D3).
pub(crate) fn result_list(tx: &Tx<'_>, task: RemoteTaskId) -> Result<Vec<TaskResult>, StoreError> {
    let mut read =
        tx.0.prepare_cached("SELECT * FROM results WHERE task_id = ?1 ORDER BY claim_generation, attempt_no, received_at, rowid")?;
    Ok(read.query_map([task.to_string()], decode)?.collect::<Result<_, _>>()?)
}
