//! Whole database files: copying one that is in use, and telling a whole one from a damaged one.

use std::path::Path;

use cmautobuy_protocol::{ServerId, WireTime};
use rusqlite::{Connection, OpenFlags, OptionalExtension};

use super::{STEPS, Store, StoreError, parsed_opt};

/// What a database file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Checked {
    /// SQLite finds no fault, every reference is kept, and this program can read it.
    Whole {
        server_id: Option<ServerId>,
        tasks: u64,
    },
    Damaged(String),
}

impl Store {
    /// One state of the whole database, written to a file that must not exist. Readers and writers go on meanwhile.
    pub(crate) fn copy_to(&self, path: &Path) -> Result<(), StoreError> {
        let connection = self.take()?;
        // SQLite wants the name as text; a name that is none is refused by it.
        let copied = connection.execute("VACUUM INTO ?1", [path.to_string_lossy()]);
        self.give_back(connection);
        copied?;
        Ok(())
    }
}

/// Writes into a copy when it was taken.
pub(crate) fn stamp_copy(path: &Path, at: WireTime) -> Result<(), StoreError> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.execute("UPDATE meta SET backed_up_at = ?1", [at.to_string()])?;
    connection.close().map_err(|(_, error)| error)?;
    Ok(())
}

/// Reads all of a file. Changes nothing.
pub(crate) fn check_copy(path: &Path) -> Result<Checked, StoreError> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    match usize::try_from(version) {
        Ok(0) | Err(_) => return Ok(Checked::Damaged("it is no database of this server".to_owned())),
        Ok(version) if version > STEPS.len() => {
            return Ok(Checked::Damaged(format!("it is of schema {version}, this program knows {}: use the newer program", STEPS.len())));
        }
        Ok(_) => {}
    }
    let found: String = connection.pragma_query_value(None, "integrity_check", |row| row.get(0))?;
    if found != "ok" {
        return Ok(Checked::Damaged(found));
    }
    let broken: Option<String> = connection.query_row("PRAGMA foreign_key_check", [], |row| row.get(0)).optional()?;
    if let Some(table) = broken {
        return Ok(Checked::Damaged(format!("a row of table {table} points to a row that is not there")));
    }
    let server_id = connection.query_row("SELECT server_id FROM meta", [], |row| parsed_opt(row, "server_id")).optional()?.flatten();
    let tasks = connection.query_row("SELECT count(*) FROM tasks", [], |row| row.get(0))?;
    Ok(Checked::Whole { server_id, tasks })
}

/// Brings everything into the one file, so that it can be moved alone. Nobody else may have it open.
pub(crate) fn settle_file(path: &Path) -> Result<(), StoreError> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // A damaged file cannot be settled; it is moved as it is.
    let settled = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
    if let Err(error) = settled {
        tracing::warn!(%error, path = %path.display(), "the database cannot be settled into one file");
    }
    drop(connection);
    Ok(())
}
