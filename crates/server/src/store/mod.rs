//! What the server remembers: one SQLite file, one module a table, SQL nowhere else.
//!
//! Every call of a client is one savepoint of an immediate transaction it may share with others ([`Store::queue`]), or a transaction of its
//! own ([`Store::write`]); no transaction outlives the closure it is given, so none is ever held over an await. One connection writes, and
//! whoever writes waits for it in line. Two processes on one file are safe: WAL, a busy timeout, and immediate transactions.

pub(crate) mod access_token;
pub(crate) mod admin_idempotency;
pub(crate) mod attempt;
pub(crate) mod audit;
mod batch;
pub(crate) mod copy;
pub(crate) mod device;
pub(crate) mod dispatch;
pub(crate) mod event;
pub(crate) mod execution;
mod fair;
pub(crate) mod figures;
pub(crate) mod idempotency;
pub(crate) mod import;
pub(crate) mod meta;
pub(crate) mod reference_image;
pub(crate) mod refresh_token;
pub(crate) mod reported_order;
pub(crate) mod result;
pub(crate) mod session;
pub(crate) mod task;
pub(crate) mod task_list;
pub(crate) mod user;
mod wal;

use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::types::Type;
use rusqlite::{Connection, OpenFlags, Params, Row, Transaction, TransactionBehavior};
use rusqlite_migration::{M, Migrations};

use batch::Lane;
use fair::Fair;
use wal::Wal;

/// Reading connections kept open between calls, and calls that may run at the same time.
pub(crate) const POOL: usize = 4;
const BUSY_TIMEOUT: Duration = Duration::from_millis(5_000);
const STEPS: &[M<'_>] = &[
    M::up(include_str!("../../migrations/0001_initial.sql")).down(include_str!("../../migrations/0001_initial.down.sql")),
    M::up(include_str!("../../migrations/0002_accounts.sql")).down(include_str!("../../migrations/0002_accounts.down.sql")),
    M::up(include_str!("../../migrations/0003_tasks.sql")).down(include_str!("../../migrations/0003_tasks.down.sql")),
    M::up(include_str!("../../migrations/0004_operations.sql")).down(include_str!("../../migrations/0004_operations.down.sql")),
];
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
    /// The call was fine; the transaction it shared with others was not.
    #[error("commit the transaction this call was part of")]
    NotCommitted(#[source] Arc<StoreError>),
    #[error("keep a transaction open that the database gave up by itself, as it does when the disk is full")]
    Undone,
    #[error("finish a call; it panicked, see the log before this line")]
    Panicked,
    #[error("take one more call: too many are waiting")]
    Overloaded,
    #[error("run a call while the server stops")]
    Stopping,
}

impl StoreError {
    /// Another process held the file longer than the busy timeout, or too many calls wait: trying again helps.
    pub fn is_busy(&self) -> bool {
        match self {
            Self::Sqlite(error) => {
                matches!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked))
            }
            Self::NotCommitted(why) => why.is_busy(),
            Self::Overloaded | Self::Stopping => true,
            Self::Folder { .. } | Self::Migrate(_) | Self::Damaged { .. } | Self::Json { .. } | Self::Undone | Self::Panicked => false,
        }
    }
}

/// The open database: one connection that writes and a few that read.
#[derive(Debug)]
pub(crate) struct Store {
    path: PathBuf,
    /// `None` until it is needed, and after it broke.
    writer: Fair<Option<Connection>>,
    idle: Mutex<Vec<Connection>>,
    lane: Lane,
    wal: Wal,
}

/// An open transaction; the tables' functions take it. Committed by [`Store::write`] only.
#[derive(Debug)]
pub(crate) struct Tx<'c>(Transaction<'c>);

impl Tx<'_> {
    /// A statement that answers no rows; how many it changed. Kept prepared.
    fn run(&self, sql: &str, params: impl Params) -> Result<usize, rusqlite::Error> {
        self.0.prepare_cached(sql)?.execute(params)
    }
}

impl Store {
    /// Opens the file, brings it to this version's schema and runs `first` once per process, all under a file lock, so that two processes
    /// starting on an empty folder do not both fill it.
    pub(crate) fn open<T, E: From<StoreError>>(path: &Path, first: impl FnOnce(&Self) -> Result<T, E>) -> Result<(Self, T), E> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let at_folder = |source| StoreError::Folder { path: folder.to_owned(), source };
        std::fs::create_dir_all(folder).map_err(at_folder)?;
        let lock = File::create(folder.join("open.lock")).map_err(at_folder)?;
        lock.lock().map_err(at_folder)?;
        let store = Self {
            path: path.to_owned(),
            writer: Fair::default(),
            idle: Mutex::new(Vec::with_capacity(POOL)),
            lane: Lane::default(),
            wal: Wal::default(),
        };
        let mut connection = store.connect()?;
        connection.pragma_update(None, "journal_mode", "WAL").map_err(StoreError::from)?;
        MIGRATIONS.to_latest(&mut connection).map_err(StoreError::from)?;
        store.give_back(connection);
        let made = first(&store)?;
        // The lock file goes unlocked when it is dropped; the file itself stays, it holds nothing.
        drop(lock);
        Ok((store, made))
    }

    /// Runs `call` in one immediate transaction; commits when it answers `Ok`, else leaves everything as it was. Waits in line for the one
    /// connection that writes. Blocks: never call it on an async thread, and never inside another one.
    pub(crate) fn write<T, E: From<StoreError>>(&self, call: impl FnOnce(&Tx<'_>) -> Result<T, E>) -> Result<T, E> {
        self.writer.with(|slot| {
            let mut connection = slot.take().map_or_else(|| self.connect(), Ok)?;
            let outcome = Self::settle(&mut connection, TransactionBehavior::Immediate, call);
            if connection.is_autocommit() {
                self.wal.note(&connection);
                *slot = Some(connection);
            }
            outcome
        })
    }

    /// Like [`Self::write`] for calls that only read: sees one state of the database and waits for nobody.
    pub(crate) fn read<T, E: From<StoreError>>(&self, call: impl FnOnce(&Tx<'_>) -> Result<T, E>) -> Result<T, E> {
        let mut connection = self.take()?;
        let outcome = Self::settle(&mut connection, TransactionBehavior::Deferred, call);
        if connection.is_autocommit() {
            self.give_back(connection);
        }
        outcome
    }

    /// Reads a database of this version's schema without opening it for work: nothing is made, migrated or locked.
    pub(crate) fn look_at<T>(path: &Path, call: impl FnOnce(&Tx<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        Self::settle(&mut connection, TransactionBehavior::Deferred, call)
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
        connection.pragma_update(None, "wal_autocheckpoint", wal::FRAMES_AT_MOST)?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(connection)
    }
}

/// `path` with `end` behind its name: SQLite's own files beside a database are named so.
pub(crate) fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
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
            assert_eq!(usize::try_from(pragma("user_version")), Ok(STEPS.len()), "round {round}: user_version tells which migrations ran");
            assert_eq!(pragma("foreign_keys"), 1, "round {round}: without it REFERENCES is a comment");
            assert_eq!(pragma("synchronous"), 2, "round {round}: FULL, an answered claim must survive a power cut");
            let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).expect("a known pragma");
            assert_eq!(mode, "wal", "round {round}: readers must not block the claim");
        }
    }

    /// Every row of every table, as text, without the columns and tables of later schemas.
    fn rows(connection: &Connection, known: &[(String, Vec<String>)]) -> Vec<String> {
        let mut all = Vec::new();
        for (table, columns) in known {
            let list = columns.iter().map(|column| format!("quote({column})")).collect::<Vec<_>>().join(" || ',' || ");
            let mut read = connection.prepare(&format!("SELECT {list} FROM {table} ORDER BY 1")).expect("a table of this schema");
            let found = read.query_map([], |row| row.get::<_, String>(0)).expect("its rows");
            all.extend(found.map(|row| format!("{table}: {}", row.expect("a row"))));
        }
        all
    }

    fn schema(connection: &Connection) -> Vec<(String, Vec<String>)> {
        let mut read = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").expect("the schema");
        let tables: Vec<String> = read.query_map([], |row| row.get(0)).expect("tables").map(|name| name.expect("a name")).collect();
        let columns = |table: &String| {
            let mut read = connection.prepare(&format!("SELECT name FROM pragma_table_info('{table}')")).expect("the table");
            let names = read.query_map([], |row| row.get(0)).expect("columns");
            names.map(|name| name.expect("a name")).collect()
        };
        tables.iter().map(|table| (table.clone(), columns(table))).collect()
    }

    /// One row of everything, made by the server's own calls where there is one.
    fn fill(path: &Path) {
        use std::sync::Arc;

        use cmautobuy_protocol::admin::{AuthorizeDevice, CreateTask, CreateUser};
        use cmautobuy_protocol::auth::Role;
        use cmautobuy_protocol::{DeviceId, Password};

        let config = crate::Config { data_dir: path.to_owned(), ..crate::Config::default() };
        let server = crate::Server::open(config, Arc::new(crate::SystemClock)).expect("a server on an empty folder");
        let admin = server.admin();
        let ann = admin.create_user(&CreateUser::new("ann", Password::new("a long password"), vec![Role::Buyer])).expect("a user").user_id;
        let device_id = DeviceId::from_uuid(uuid::Uuid::from_u128(7));
        admin.authorize_device(&AuthorizeDevice { device_id, user_id: ann, name: "pc".to_owned() }).expect("a device");
        let asked = CreateTask::collect("https://mobile.yangkeduo.com/goods.html?goods_id=1".to_owned());
        let task = admin.create_task(&asked, Some(&"key-1".parse().expect("a key"))).expect("a task").task_id;
        admin.import_tasks(b"goods_url\n2\n", false, None).expect("a list");
        let (path, task, ann, device) = (path.join("server.sqlite3"), task.to_string(), ann.to_string(), device_id.to_string());
        drop(server);
        let connection = Connection::open(path).expect("the database");
        let sha = "a".repeat(64);
        let by_hand = format!(
            "INSERT INTO sessions VALUES ('s', '{ann}', '{device}', 't');
             INSERT INTO access_tokens VALUES ('{sha}', 's', 't');
             INSERT INTO refresh_tokens VALUES ('{sha}', 's', NULL, 't');
             INSERT INTO dispatches VALUES ('{task}', 1, '{ann}', '{device}', 't', NULL);
             INSERT INTO executions VALUES ('e', '{task}', 1, '{ann}', '{device}', NULL, 't', 't', NULL, NULL);
             INSERT INTO attempts VALUES ('{task}', 'a', 1, 1, 'e', 'start', 't');
             INSERT INTO idempotency VALUES ('{ann}', '{device}', 'claim_next', 'k', '{sha}', '{task}', 1, 2, 't');
             INSERT INTO results VALUES ('k', '{task}', 1, 'a', 1, 'e', '{ann}', '{device}', 'collect_result', 'succeeded', '{sha}', '{{}}', 0,
                                         'SUCCEEDED', 0, 't');
             INSERT INTO reported_orders VALUES ('o', '{task}', 't');
             INSERT INTO user_permissions VALUES ('{ann}', 'platform:self-operated-analytics:list');
             INSERT INTO warehouse_grants VALUES ('{ann}', 'A', 'W');
             INSERT INTO reference_images VALUES ('{task}', x'ff', '{sha}', 1, 1, 'console', 't');"
        );
        connection.execute_batch(&by_hand).expect("rows of the tables that need a client");
    }

    #[test]
    fn migrations_go_up_down_and_up_again_with_the_rows_in_them() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        fill(dir.path());
        let mut connection = Connection::open(dir.path().join("server.sqlite3")).expect("the database");
        let newest = schema(&connection);
        for (table, _) in newest.iter().filter(|(table, _)| table != "sqlite_sequence") {
            let count: u64 = connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).expect("a count");
            assert!(count > 0, "{table} must have a row, or this test says nothing about it");
        }
        for version in (0..STEPS.len()).rev() {
            let before = rows(&connection, &newest);
            MIGRATIONS.to_version(&mut connection, version).expect("every migration has a way back");
            let older = schema(&connection);
            let kept = rows(&connection, &older);
            MIGRATIONS.to_latest(&mut connection).expect("and forth again");
            assert_eq!(schema(&connection), newest, "schema {version} and back must give the same tables");
            assert_eq!(rows(&connection, &older), kept, "what schema {version} knows must come through unchanged");
            assert!(kept.len() <= before.len(), "a way back makes no rows");
            let broken = connection.prepare("PRAGMA foreign_key_check").expect("a pragma").exists([]).expect("its answer");
            assert!(!broken, "and every reference is kept");
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
