//! Table `meta`: which database this is (D7: a client's store is bound to it).

use cmautobuy_protocol::{ServerId, WireTime};
use rusqlite::OptionalExtension;

use super::{StoreError, Tx, parsed};

pub(crate) fn meta_server_id(tx: &Tx<'_>) -> Result<Option<ServerId>, StoreError> {
    let mut read = tx.0.prepare_cached("SELECT server_id FROM meta WHERE id = 1")?;
    Ok(read.query_row([], |row| parsed(row, "server_id")).optional()?)
}

pub(crate) fn meta_insert(tx: &Tx<'_>, server: ServerId, now: WireTime) -> Result<(), StoreError> {
    tx.0.execute("INSERT INTO meta (id, server_id, created_at) VALUES (1, ?1, ?2)", (server.to_string(), now.to_string()))?;
    Ok(())
}
