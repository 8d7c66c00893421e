//! Opening the database file: version check, migration, connection settings. Never deletes or rebuilds an existing file (03 §2.3).

use std::path::Path;

use cmautobuy_protocol::DeviceId;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use rusqlite_migration::{M, Migrations};

use crate::StoreError;
use crate::table::identity;

/// The `PRAGMA user_version` this program writes.
pub const SCHEMA_VERSION: i64 = 2;

/// Above the number of different statements one connection meets, so that none is prepared twice.
const STATEMENTS: usize = 128;

const MIGRATIONS: &[&str] = &[include_str!("../migrations/0001_initial.sql"), include_str!("../migrations/0002_remembered_phones.sql")];

fn migrations() -> Migrations<'static> {
    Migrations::new(MIGRATIONS.iter().map(|sql| M::up(sql)).collect())
}

/// The one connection that writes, on a database of the current version.
pub(crate) fn open_writer(path: &Path) -> Result<Connection, StoreError> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|source| StoreError::Unwritable { path: folder.to_owned(), source })?;
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let place = |source| at_open(path, source);
    let mut conn = Connection::open_with_flags(path, flags).map_err(place)?;
    conn.pragma_update(None, "busy_timeout", 5000).map_err(place)?;
    // Asked before anything is written: a file of a newer program must stay exactly as it is.
    let found: i64 = conn.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(place)?;
    if found > SCHEMA_VERSION {
        return Err(StoreError::NewerDatabase { found, known: SCHEMA_VERSION });
    }
    let mode: String = conn.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0)).map_err(place)?;
    if !mode.eq_ignore_ascii_case("wal") {
        return Err(StoreError::Unfit { column: "journal_mode", detail: mode });
    }
    // FULL, not NORMAL: an intent must be on the disk before its call is on the wire (D5).
    conn.pragma_update(None, "synchronous", "FULL").map_err(place)?;
    migrations().to_latest(&mut conn).map_err(StoreError::Migrate)?;
    conn.pragma_update(None, "foreign_keys", true).map_err(place)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(conn)
}

/// A connection that can only look.
pub(crate) fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    let place = |source| at_open(path, source);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags).map_err(place)?;
    conn.pragma_update(None, "busy_timeout", 5000).map_err(place)?;
    conn.pragma_update(None, "foreign_keys", true).map_err(place)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    conn.pragma_update(None, "query_only", true).map_err(place)?;
    Ok(conn)
}

/// Whose installation the database at `path` is, before its key is known; `None` when there is no database yet (D6, D7).
///
/// # Errors
/// [`StoreError::NewerDatabase`], [`StoreError::Corrupt`], [`StoreError::CannotOpen`].
pub fn peek_device(path: &Path) -> Result<Option<DeviceId>, StoreError> {
    if !path.exists() {
        return Ok(None);
    }
    let conn = open_reader(path)?;
    let found: i64 = conn.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(|source| at_open(path, source))?;
    if found > SCHEMA_VERSION {
        return Err(StoreError::NewerDatabase { found, known: SCHEMA_VERSION });
    }
    if found == 0 {
        return Ok(None);
    }
    Ok(identity::read(&conn)?.map(|identity| identity.device_id))
}

fn at_open(path: &Path, source: rusqlite::Error) -> StoreError {
    match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => StoreError::Corrupt { path: path.to_owned(), source },
        _ => StoreError::CannotOpen { path: path.to_owned(), source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn migrations_are_sound_and_counted() {
        migrations().validate().expect("every migration must apply to an empty database");
        assert_eq!(MIGRATIONS.len() as i64, SCHEMA_VERSION, "user_version counts the migrations");
    }
}
