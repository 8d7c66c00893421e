//! Table `imports`: the answer to each list of tasks that was taken (D19).

use cmautobuy_protocol::WireTime;
use cmautobuy_protocol::admin::ImportReport;
use rusqlite::OptionalExtension;
use rusqlite::types::Type;

use super::{StoreError, Tx};
use crate::work::Actor;

/// The hash of the list taken with this key before, and what was answered.
pub(crate) fn import_get(tx: &Tx<'_>, actor: Actor, key: &str) -> Result<Option<(String, ImportReport)>, StoreError> {
    let mut read = tx.0.prepare_cached("SELECT request_sha256, report FROM imports WHERE actor = ?1 AND key = ?2")?;
    let found = read.query_row((actor.to_string(), key), |row| {
        let report = serde_json::from_str(&row.get::<_, String>("report")?);
        let report = report.map_err(|error| rusqlite::Error::FromSqlConversionFailure(1, Type::Text, Box::new(error)))?;
        Ok((row.get("request_sha256")?, report))
    });
    Ok(found.optional()?)
}

pub(crate) fn import_insert(
    tx: &Tx<'_>,
    actor: Actor,
    key: &str,
    request_sha256: &str,
    report: &ImportReport,
    now: WireTime,
) -> Result<(), StoreError> {
    let report = serde_json::to_string(report).map_err(|source| StoreError::Json { table: "imports", source })?;
    tx.0.execute(
        "INSERT INTO imports (actor, key, request_sha256, report, created_at) VALUES (?1, ?2, ?3, ?4, ?5)",
        (actor.to_string(), key, request_sha256, report, now.to_string()),
    )?;
    Ok(())
}
