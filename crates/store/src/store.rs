//! The open store: one write connection, a few read connections, and a nudge after every commit.
//!
//! SQLite runs on tokio's blocking threads (architecture §3, note on rule 37): a paused test clock must not jump while a commit is
//! under way, which it would with a thread tokio does not know of. Writers queue first-come first-served for the one connection.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::{Semaphore, watch};

use crate::open::{open_reader, open_writer};
use crate::{SealKey, StoreError};

const READERS: usize = 4;

/// The client's memory. Cheap to clone; all clones are one store.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    path: PathBuf,
    key: SealKey,
    /// `None` once closed. The async lock is fair, so no writer starves.
    writer: Arc<tokio::sync::Mutex<Option<Connection>>>,
    readers: Mutex<Vec<Connection>>,
    reading: Arc<Semaphore>,
    changes: watch::Sender<u64>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("path", &self.0.path).finish_non_exhaustive()
    }
}

/// Looks at committed rows; all reads of one handle see the same moment.
pub struct Reader<'c> {
    pub(crate) conn: &'c Connection,
    pub(crate) key: &'c SealKey,
}

impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reader")
    }
}

/// An immediate transaction. Everything done through it is committed together or not at all. Reads as [`Reader`] does.
pub struct Tx<'c>(Reader<'c>);

impl fmt::Debug for Tx<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tx")
    }
}

impl<'c> Deref for Tx<'c> {
    type Target = Reader<'c>;
    fn deref(&self) -> &Reader<'c> {
        &self.0
    }
}

impl Store {
    /// Opens or creates the database at `path`, making its folder when missing.
    ///
    /// # Errors
    /// [`StoreError::NewerDatabase`], [`StoreError::Corrupt`], [`StoreError::Unwritable`], [`StoreError::CannotOpen`], [`StoreError::Migrate`].
    pub fn open(path: &Path, key: SealKey) -> Result<Self, StoreError> {
        let writer = open_writer(path)?;
        // One reader is opened at once, so that a store that opened can also be read.
        let reader = open_reader(path)?;
        Ok(Self(Arc::new(Inner {
            path: path.to_owned(),
            key,
            writer: Arc::new(tokio::sync::Mutex::new(Some(writer))),
            readers: Mutex::new(vec![reader]),
            reading: Arc::new(Semaphore::new(READERS)),
            changes: watch::Sender::new(0),
        })))
    }

    /// Runs `f` in one immediate transaction: committed when it answers `Ok`, rolled back on `Err` or panic.
    ///
    /// A future dropped after `f` began does not stop it: the transaction still ends one way or the other.
    ///
    /// # Errors
    /// What `f` answers; [`StoreError::Sql`] from begin or commit; [`StoreError::Panicked`] (the store goes on); [`StoreError::Closed`].
    pub async fn write<T: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let guard = Arc::clone(&self.0.writer).lock_owned().await;
        let inner = Arc::clone(&self.0);
        blocking(move || {
            let conn = guard.as_ref().ok_or(StoreError::Closed)?;
            let done = catch_unwind(AssertUnwindSafe(|| {
                let sql = Transaction::new_unchecked(conn, TransactionBehavior::Immediate)?;
                // Dropped without commit, the transaction rolls back: on `?` and while a panic unwinds.
                let value = f(&mut Tx(Reader { conn: &sql, key: &inner.key }))?;
                sql.commit()?;
                Ok(value)
            }))
            .unwrap_or_else(|panic| Err(StoreError::Panicked { message: panic_text(panic.as_ref()) }));
            drop(guard);
            if done.is_ok() {
                inner.changes.send_modify(|n| *n += 1);
            }
            done
        })
        .await
    }

    /// Runs `f` on one consistent view of what is committed.
    ///
    /// # Errors
    /// What `f` answers; [`StoreError::Sql`]; [`StoreError::Closed`] after [`Store::close`].
    pub async fn read<T: Send + 'static>(
        &self,
        f: impl FnOnce(&Reader<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let permit = Arc::clone(&self.0.reading).acquire_owned().await.map_err(|_| StoreError::Closed)?;
        let inner = Arc::clone(&self.0);
        blocking(move || {
            let idle = inner.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let conn = idle.map_or_else(|| open_reader(&inner.path), Ok)?;
            let done = catch_unwind(AssertUnwindSafe(|| {
                let sql = Transaction::new_unchecked(&conn, TransactionBehavior::Deferred)?;
                f(&Reader { conn: &sql, key: &inner.key })
            }))
            .unwrap_or_else(|panic| Err(StoreError::Panicked { message: panic_text(panic.as_ref()) }));
            inner.readers.lock().unwrap_or_else(PoisonError::into_inner).push(conn);
            drop(permit);
            done
        })
        .await
    }

    /// Changes after every commit. It says *look*, never *what*.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// Waits for the running write, folds the log into the file and closes it. Clones answer [`StoreError::Closed`] from then on.
    ///
    /// Dropping without closing loses nothing: every commit is already on the disk.
    pub async fn close(self) {
        self.0.reading.close();
        let mut guard = Arc::clone(&self.0.writer).lock_owned().await;
        let inner = Arc::clone(&self.0);
        let closed = blocking(move || {
            inner.readers.lock().unwrap_or_else(PoisonError::into_inner).clear();
            if let Some(conn) = guard.take() {
                conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
            }
            Ok(())
        })
        .await;
        if let Err(error) = closed {
            tracing::warn!(error = &error as &dyn std::error::Error, "could not fold the write-ahead log; it is read at the next start");
        }
    }
}

async fn blocking<T: Send + 'static>(f: impl FnOnce() -> Result<T, StoreError> + Send + 'static) -> Result<T, StoreError> {
    // Panics of the closure are caught inside; what is left is a runtime that is shutting down.
    tokio::task::spawn_blocking(f).await.unwrap_or(Err(StoreError::Closed))
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
