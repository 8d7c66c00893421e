//! Table `meta`: which database this is (D7: a client's store is bound to it).

use cmautobuy_protocol::{ServerId, WireTime};
use rusqlite::OptionalExtension;

use super::{StoreError, Tx, parsed, parsed_opt};

pub(crate) fn meta_server_id(tx: &Tx<'_>) -> Result<Option<ServerId>, StoreError> {
    let mut read = tx.0.prepare_cached("SELECT server_id FROM meta WHERE id = 1")?;
    Ok(read.query_row([], |row| parsed(row, "server_id")).optional()?)
}

/// When the backup this database came from was taken.
pub(crate) fn meta_backed_up_at(tx: &Tx<'_>) -> Result<Option<WireTime>, StoreError> {
    Ok(tx.0.query_row("SELECT backed_up_at FROM meta WHERE id = 1", [], |row| parsed_opt(row, "backed_up_at")).optional()?.flatten())
}

pub(crate) fn meta_insert(tx: &Tx<'_>, server: ServerId, now: WireTime) -> Result<(), StoreError> {
    tx.run("INSERT INTO meta (id, server_id, created_at) VALUES (1, ?1, ?2)", (server.to_string(), now.to_string()))?;
    Ok(())
}
