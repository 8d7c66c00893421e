//! What the server remembers: one SQLite file, one module a table, SQL nowhere else.
//!
//! Every call of a client is one immediate transaction ([`Store::write`]); no transaction outlives the closure it is given, so none is ever
//! held over an await. Two processes on one file are safe: WAL, a busy timeout, and immediate transactions.

pub(crate) mod access_token;
pub(crate) mod admin_idempotency;
pub(crate) mod attempt;
pub(crate) mod device;
pub(crate) mod dispatch;
pub(crate) mod event;
pub(crate) mod execution;
pub(crate) mod idempotency;
pub(crate) mod meta;
pub(crate) mod refresh_token;
pub(crate) mod reported_order;
pub(crate) mod result;
pub(crate) mod session;
pub(crate) mod task;
pub(crate) mod user;

use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::types::Type;
use rusqlite::{Connection, Row, Transaction, TransactionBehavior};
use rusqlite_migration::{M, Migrations};

/// Connections kept open between calls, and calls that may run at the same time.
pub(crate) const POOL: usize = 4;
const BUSY_TIMEOUT: Duration = Duration::from_millis(5_000);
const STEPS: &[M<'_>] = &[M::up(include_str!("../../migrations/0001_initial.sql"))];
const MIGRATIONS: Migrations<'_> = Migrations::from_slice(STEPS);

/// Why the database could not be opened or used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("prepare the data folder {}", path.display())]
    Folder {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("bring the database to this version's schema; a database of a newer version needs that newer program")]
    Migrate(#[from] rusqlite_migration::Error),
    #[error("run a database statement")]
    Sqlite(#[from] rusqlite::Error),
    /// A row contradicts itself. The file was edited, or this is a bug.
    #[error("row {row} of table {table} is damaged: {what}")]
    Damaged { table: &'static str, row: String, what: &'static str },
    #[error("write json for table {table}")]
    Json {
        table: &'static str,
        #[source]
        source: serde_json::Error,
    },
}

impl StoreError {
    /// Another process held the file longer than the busy timeout: trying again helps.
    pub fn is_busy(&self) -> bool {
        match self {
            Self::Sqlite(error) => {
                matches!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked))
            }
            Self::Folder { .. } | Self::Migrate(_) | Self::Damaged { .. } | Self::Json { .. } => false,
        }
    }
}

/// The open database: a few connections to one file.
#[derive(Debug)]
pub(crate) struct Store {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

/// An open transaction; the tables' functions take it. Committed by [`Store::write`] only.
#[derive(Debug)]
pub(crate) struct Tx<'c>(Transaction<'c>);

impl Store {
    /// Opens the file, brings it to this version's schema and runs `first` once per process, all under a file lock, so that two processes
    /// starting on an empty folder do not both fill it.
    pub(crate) fn open<T, E: From<StoreError>>(path: &Path, first: impl FnOnce(&Self) -> Result<T, E>) -> Result<(Self, T), E> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let at_folder = |source| StoreError::Folder { path: folder.to_owned(), source };
        std::fs::create_dir_all(folder).map_err(at_folder)?;
        let lock = File::create(folder.join("open.lock")).map_err(at_folder)?;
        lock.lock().map_err(at_folder)?;
        let store = Self { path: path.to_owned(), idle: Mutex::new(Vec::with_capacity(POOL)) };
        let mut connection = store.connect()?;
        connection.pragma_update(None, "journal_mode", "WAL").map_err(StoreError::from)?;
        MIGRATIONS.to_latest(&mut connection).map_err(StoreError::from)?;
        store.give_back(connection);
        let made = first(&store)?;
        // The lock file goes unlocked when it is dropped; the file itself stays, it holds nothing.
        drop(lock);
        Ok((store, made))
    }

    /// Runs `call` in one immediate transaction; commits when it answers `Ok`, else leaves everything as it was. Blocks: never call it on an
    /// async thread.
    pub(crate) fn write<T, E: From<StoreError>>(&self, call: impl FnOnce(&Tx<'_>) -> Result<T, E>) -> Result<T, E> {
        self.run(TransactionBehavior::Immediate, call)
    }

    /// Like [`Self::write`] for calls that only read: sees one state of the database and waits for nobody.
    pub(crate) fn read<T, E: From<StoreError>>(&self, call: impl FnOnce(&Tx<'_>) -> Result<T, E>) -> Result<T, E> {
        self.run(TransactionBehavior::Deferred, call)
    }

    fn run<T, E: From<StoreError>>(&self, how: TransactionBehavior, call: impl FnOnce(&Tx<'_>) -> Result<T, E>) -> Result<T, E> {
        let mut connection = self.take()?;
        let outcome = Self::settle(Tx(connection.transaction_with_behavior(how).map_err(StoreError::from)?), call);
        if connection.is_autocommit() {
            self.give_back(connection);
        }
        outcome
    }

    /// An early return drops the transaction, which rolls it back.
    fn settle<T, E: From<StoreError>>(tx: Tx<'_>, call: impl FnOnce(&Tx<'_>) -> Result<T, E>) -> Result<T, E> {
        let answer = call(&tx)?;
        tx.0.commit().map_err(StoreError::from)?;
        Ok(answer)
    }

    fn take(&self) -> Result<Connection, StoreError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(|| self.connect(), Ok)
    }

    fn give_back(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < POOL {
            idle.push(connection);
        }
    }

    fn connect(&self) -> Result<Connection, StoreError> {
        let connection = Connection::open(&self.path)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        // A stored 200 must survive a power cut: the client deletes its intent on it (D5).
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(connection)
    }
}

/// Reads a text column through the type's own parser; unknown text is an error, never a default.
fn parsed<T>(row: &Row<'_>, column: &str) -> rusqlite::Result<T>
where
    T: FromStr,
    T::Err: Error + Send + Sync + 'static,
{
    let text: String = row.get(column)?;
    text.parse().map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(error)))
}

fn parsed_opt<T>(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<T>>
where
    T: FromStr,
    T::Err: Error + Send + Sync + 'static,
{
    let text: Option<String> = row.get(column)?;
    let parse = |text: String| text.parse().map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(error)));
    text.map(parse).transpose()
}

/// Reads a text column through a codec of `protocol`.
fn known<T>(row: &Row<'_>, column: &str, codec: impl FnOnce(&str) -> Option<T>) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    codec(&text).ok_or_else(|| {
        let what = format!("column {column} holds the unknown word `{text}`");
        rusqlite::Error::FromSqlConversionFailure(0, Type::Text, what.into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn migrations_apply_from_empty_and_set_user_version() {
        MIGRATIONS.validate().expect("every migration must apply to an empty database");
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("server.sqlite3");
        for round in ["empty", "again"] {
            let (store, ()) =
                Store::open(&path, |_| Ok::<_, StoreError>(())).expect("opening must work on an empty folder and on its own file");
            let connection = store.take().expect("a connection");
            let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).expect("a known pragma");
            assert_eq!(pragma("user_version"), 1, "round {round}: user_version tells which migrations ran");
            assert_eq!(pragma("foreign_keys"), 1, "round {round}: without it REFERENCES is a comment");
            assert_eq!(pragma("synchronous"), 2, "round {round}: FULL, an answered claim must survive a power cut");
            let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).expect("a known pragma");
            assert_eq!(mode, "wal", "round {round}: readers must not block the claim");
        }
    }

    #[test]
    fn a_newer_database_is_refused() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("server.sqlite3");
        let newer = Connection::open(&path).expect("a database file");
        newer.pragma_update(None, "user_version", 99).expect("set user_version");
        drop(newer);
        let opened = Store::open(&path, |_| Ok::<_, StoreError>(()));
        assert!(matches!(opened, Err(StoreError::Migrate(_))), "an older program must not write into a newer schema");
    }
}
