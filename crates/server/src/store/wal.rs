//! Moves what was committed from the WAL into the database file, beside the calls and not inside one of them: left to itself, SQLite does it
//! within every so-many-th COMMIT, which then takes many times as long as the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rusqlite::Connection;
use tokio::runtime::Handle;

use super::{Store, StoreError};

/// Frames (pages of 4 KiB, so 250 MiB) in the WAL from which on it is emptied. A page changed often is then copied once for many commits, and
/// the flush of the copy comes seldom beside those of the calls; much more would make every read search longer.
const FRAMES_DUE: u64 = 64_000;
/// From here on the next COMMIT empties it itself, whoever is late.
pub(super) const FRAMES_AT_MOST: u64 = 128_000;

#[derive(Debug, Default)]
pub(super) struct Wal {
    /// Not yet in the database file, as of the last COMMIT.
    frames: AtomicU64,
    is_emptied: AtomicBool,
}

impl Wal {
    /// Looks at the WAL after a transaction.
    pub(super) fn note(&self, connection: &Connection) {
        let frames = connection.prepare_cached("PRAGMA wal_checkpoint(NOOP)").and_then(|mut look| {
            look.query_row([], |row| Ok(u64::saturating_sub(row.get::<_, u64>("log")?, row.get::<_, u64>("checkpointed")?)))
        });
        // Not knowing only makes the next look decide.
        self.frames.store(frames.unwrap_or(0), Ordering::Relaxed);
    }
}

/// Starts emptying the WAL when it is time, on a blocking thread of its own where there is a runtime.
pub(super) fn checkpoint_if_due(store: &Arc<Store>) {
    if store.wal.frames.load(Ordering::Relaxed) < FRAMES_DUE || store.wal.is_emptied.swap(true, Ordering::Acquire) {
        return;
    }
    let store = Arc::clone(store);
    let work = move || {
        if let Err(error) = empty(&store) {
            tracing::warn!(error = &error as &dyn std::error::Error, "the write-ahead log could not be emptied; it grows until it can");
        }
        store.wal.is_emptied.store(false, Ordering::Release);
    };
    match Handle::try_current() {
        // Nobody waits for it.
        Ok(runtime) => drop(runtime.spawn_blocking(work)),
        Err(_) => work(),
    }
}

/// The bulk of it while calls go on; then the little that came in meanwhile, with writers held off, so that the WAL begins anew.
fn empty(store: &Store) -> Result<(), StoreError> {
    let connection = store.take()?;
    passive(&connection)?;
    store.give_back(connection);
    store.writer.with(|slot| slot.as_ref().map_or(Ok(()), passive))
}

fn passive(connection: &Connection) -> Result<(), StoreError> {
    Ok(connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emptied_wal_begins_anew() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("server.sqlite3");
        let (store, ()) = Store::open(&path, |_| Ok::<_, StoreError>(())).expect("a store in an empty folder");
        let store = Arc::new(store);
        let fill = "CREATE TABLE filling AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
                    SELECT i, zeroblob(4000) AS page FROM n";
        let write = |sql: &str, n: u64| store.write(|tx| Ok::<_, StoreError>(tx.0.execute(sql, [n])?)).expect("a plain write");
        write(fill, 1_000);
        assert!(store.wal.frames.load(Ordering::Relaxed) >= 1_000, "what was committed must be seen to wait in the WAL");
        // As if it were many more; there is no runtime here, so it is done when this returns.
        store.wal.frames.store(FRAMES_DUE, Ordering::Relaxed);
        checkpoint_if_due(&store);
        write("DELETE FROM filling WHERE i = ?1", 1);
        let frames = store.wal.frames.load(Ordering::Relaxed);
        assert!((1..100).contains(&frames), "the first write after it must begin the WAL anew, it holds {frames} frames");
        let is_emptied = store.wal.is_emptied.load(Ordering::Relaxed);
        assert!(!is_emptied, "or it would never be emptied again");
    }
}
