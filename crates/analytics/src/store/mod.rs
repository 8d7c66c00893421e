//! One SQLite file of its own (R11), one module a table, SQL nowhere else. One connection writes, a few read; a read sees one state of the file
//! for as long as its closure runs, and neither is ever held over an await.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, Transaction, TransactionBehavior};
use rusqlite_migration::{M, Migrations};

/// Reading connections kept open between calls.
const POOL: usize = 8;
const BUSY_TIMEOUT: Duration = Duration::from_millis(5_000);
const STEPS: &[M<'_>] = &[];
const MIGRATIONS: Migrations<'_> = Migrations::from_slice(STEPS);

/// Why the database could not be opened or used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("prepare the folder of {}", path.display())]
    Folder {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("bring the analytics database to this version's schema; a database of a newer version needs that newer program")]
    Migrate(#[from] rusqlite_migration::Error),
    #[error("run a database statement")]
    Sqlite(#[from] rusqlite::Error),
    /// A row contradicts itself. The file was edited, or this is a bug.
    #[error("row {row} of table {table} is damaged: {what}")]
    Damaged { table: &'static str, row: String, what: &'static str },
}

/// The open database.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    writer: Mutex<Connection>,
    idle: Mutex<Vec<Connection>>,
}

/// An open transaction; the tables' functions take it.
#[derive(Debug)]
pub struct Tx<'c>(pub(crate) Transaction<'c>);

impl Store {
    /// Opens the file, made when absent, and brings it to this version's schema.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let folder = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(|source| StoreError::Folder { path: path.to_owned(), source })?;
        let mut writer = connect(path)?;
        writer.pragma_update(None, "journal_mode", "WAL")?;
        MIGRATIONS.to_latest(&mut writer)?;
        Ok(Self { path: path.to_owned(), writer: Mutex::new(writer), idle: Mutex::new(Vec::with_capacity(POOL)) })
    }

    /// Runs `call` in one immediate transaction; commits when it answers `Ok`, else leaves everything as it was. Blocks.
    pub fn write<T, E: From<StoreError>>(&self, call: impl FnOnce(&Tx<'_>) -> Result<T, E>) -> Result<T, E> {
        let mut connection = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        settle(&mut connection, TransactionBehavior::Immediate, call)
    }

    /// Runs `call` on one state of the database; waits for nobody. Blocks.
    pub fn read<T, E: From<StoreError>>(&self, call: impl FnOnce(&Tx<'_>) -> Result<T, E>) -> Result<T, E> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut connection = idle.map_or_else(|| connect(&self.path), Ok)?;
        let outcome = settle(&mut connection, TransactionBehavior::Deferred, call);
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if connection.is_autocommit() && idle.len() < POOL {
            idle.push(connection);
        }
        outcome
    }
}

/// An early return drops the transaction, which rolls it back.
fn settle<T, E: From<StoreError>>(
    connection: &mut Connection,
    how: TransactionBehavior,
    call: impl FnOnce(&Tx<'_>) -> Result<T, E>,
) -> Result<T, E> {
    let tx = Tx(connection.transaction_with_behavior(how).map_err(StoreError::from)?);
    let answer = call(&tx)?;
    tx.0.commit().map_err(StoreError::from)?;
    Ok(answer)
}

fn connect(path: &Path) -> Result<Connection, StoreError> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}
