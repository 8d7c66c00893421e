//! Table `audit`: what administrators changed in accounts. Append-only; the table itself refuses anything else.

use cmautobuy_protocol::EventId;
use cmautobuy_protocol::account::AuditEntry;
use rusqlite::types::Type;

use super::{StoreError, Tx, parsed};

pub(crate) fn audit_insert(tx: &Tx<'_>, entry: &AuditEntry) -> Result<(), StoreError> {
    tx.run(
        "INSERT INTO audit (entry_id, at, actor, action, target, detail) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        (
            entry.entry_id.to_string(),
            entry.at.to_string(),
            &entry.actor,
            &entry.action,
            &entry.target,
            entry.detail.as_ref().map(ToString::to_string),
        ),
    )?;
    Ok(())
}

/// Newest first, from below `before` on; of one target when given.
pub(crate) fn audit_list(tx: &Tx<'_>, target: Option<&str>, before: Option<EventId>, limit: u32) -> Result<Vec<AuditEntry>, StoreError> {
    // Two statements, so that each is served by its index.
    let sql = match target {
        None => "SELECT * FROM audit WHERE ?1 IS NULL AND (?2 IS NULL OR entry_id < ?2) ORDER BY entry_id DESC LIMIT ?3",
        Some(_) => "SELECT * FROM audit WHERE target = ?1 AND (?2 IS NULL OR entry_id < ?2) ORDER BY entry_id DESC LIMIT ?3",
    };
    let mut read = tx.0.prepare_cached(sql)?;
    let rows = read.query_map((target, before.map(|id| id.to_string()), limit), |row| {
        let detail: Option<String> = row.get("detail")?;
        let detail = detail.map(|text| serde_json::from_str(&text)).transpose();
        Ok(AuditEntry {
            entry_id: parsed(row, "entry_id")?,
            at: parsed(row, "at")?,
            actor: row.get("actor")?,
            action: row.get("action")?,
            target: row.get("target")?,
            detail: detail.map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(error)))?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
