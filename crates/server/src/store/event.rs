//! Table `task_events`: every transition with who caused it (T-205 §11). Only ever appended to.

use cmautobuy_protocol::admin::TaskEvent;
use cmautobuy_protocol::{EventId, RemoteTaskId, ServerStatus};
use rusqlite::Row;
use rusqlite::types::Type;

use super::{StoreError, Tx, known, parsed, parsed_opt};

pub(crate) fn event_insert(tx: &Tx<'_>, id: EventId, task: RemoteTaskId, event: &TaskEvent) -> Result<(), StoreError> {
    let mut write = tx.0.prepare_cached(
        "INSERT INTO task_events (event_id, task_id, version, kind, actor, from_status, to_status, claim_generation, execution_id, detail, at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?;
    write.execute((
        id.to_string(),
        task.to_string(),
        event.version,
        &event.kind,
        &event.actor,
        event.from_status.map(ServerStatus::as_str),
        event.to_status.as_str(),
        event.claim_generation,
        event.execution_id.map(|id| id.to_string()),
        event.detail.as_ref().map(ToString::to_string),
        event.at.to_string(),
    ))?;
    Ok(())
}

fn decode(row: &Row<'_>) -> rusqlite::Result<TaskEvent> {
    let from_status = match row.get::<_, Option<String>>("from_status")? {
        None => None,
        Some(_) => Some(known(row, "from_status", ServerStatus::parse)?),
    };
    let detail: Option<String> = row.get("detail")?;
    let detail = detail.map(|text| serde_json::from_str(&text)).transpose();
    Ok(TaskEvent {
        kind: row.get("kind")?,
        actor: row.get("actor")?,
        from_status,
        to_status: known(row, "to_status", ServerStatus::parse)?,
        version: row.get("version")?,
        claim_generation: row.get("claim_generation")?,
        execution_id: parsed_opt(row, "execution_id")?,
        detail: detail.map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(error)))?,
        at: parsed(row, "at")?,
    })
}

/// Oldest first.
pub(crate) fn event_list(tx: &Tx<'_>, task: RemoteTaskId) -> Result<Vec<TaskEvent>, StoreError> {
    let mut read = tx.0.prepare_cached("SELECT * FROM task_events WHERE task_id = ?1 ORDER BY version")?;
    Ok(read.query_map([task.to_string()], decode)?.collect::<Result<_, _>>()?)
}
