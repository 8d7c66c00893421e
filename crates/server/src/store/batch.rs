//! Group commit (ADR 0007): calls that wait at the same time share one immediate transaction and one flush to the disk.
//!
//! Each call still runs alone and whole, one after the other, in a savepoint of its own (T-205 §5); nobody is answered before the COMMIT.
//! An error or a panic undoes its own savepoint only; a COMMIT that fails fails all of the batch. There is no thread of its own: whoever
//! finds nobody leading leads, on one of tokio's blocking threads, until nothing waits any more (a paused test clock knows of those).

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use super::{Store, StoreError, Tx, wal};

/// Calls run before one COMMIT; more would make the first of them wait too long.
const MOST_TOGETHER: usize = 32;
/// Calls waiting; beyond it the server says that it is busy.
const MOST_WAITING: usize = 4096;

/// Calls that wait for the next transaction.
#[derive(Default)]
pub(crate) struct Lane(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Box<dyn Waiting>>,
    is_led: bool,
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("Lane").field("waiting", &queue.waiting.len()).field("is_led", &queue.is_led).finish()
    }
}

/// One call in the lane: run inside its savepoint, then answered when it is known whether that was committed.
pub(super) trait Waiting: Send {
    /// `true` keeps what it wrote.
    fn run(&mut self, tx: &Tx<'_>) -> bool;
    /// After the COMMIT, or with why there was none.
    fn answer(self: Box<Self>, end: Result<(), StoreError>);
}

struct Caller<T, E, W> {
    work: Option<W>,
    outcome: Option<Result<T, E>>,
    reply: oneshot::Sender<Result<T, E>>,
}

impl<T, E, W> Waiting for Caller<T, E, W>
where
    T: Send,
    E: From<StoreError> + Send,
    W: FnOnce(&Tx<'_>) -> Result<T, E> + Send,
{
    fn run(&mut self, tx: &Tx<'_>) -> bool {
        // Whoever stopped waiting repeats the call with the same key; a call that did not begin need not begin.
        let Some(work) = self.work.take().filter(|_| !self.reply.is_closed()) else { return false };
        let outcome = catch_unwind(AssertUnwindSafe(|| work(tx))).unwrap_or_else(|_| Err(StoreError::Panicked.into()));
        let keep = outcome.is_ok();
        self.outcome = Some(outcome);
        keep
    }

    fn answer(mut self: Box<Self>, end: Result<(), StoreError>) {
        let outcome = match (self.outcome.take(), end) {
            // A refusal may rest on what a call before it in the batch wrote: it holds only when that was committed too.
            (_, Err(error)) => Err(error.into()),
            (Some(outcome), Ok(())) => outcome,
            (None, Ok(())) => return,
        };
        // An error here says that nobody waits any more.
        let _nobody = self.reply.send(outcome);
    }
}

/// The duty to run what waits. Dropped without having run, it gives the calls back unanswered, so that the lane never stands still.
#[must_use = "somebody must run the waiting calls"]
pub(crate) struct Lead {
    store: Arc<Store>,
    is_over: bool,
}

impl Drop for Lead {
    fn drop(&mut self) {
        if !self.is_over {
            let mut queue = self.store.lane.0.lock().unwrap_or_else(PoisonError::into_inner);
            queue.is_led = false;
            let left = std::mem::take(&mut queue.waiting);
            drop(queue);
            drop(left);
        }
    }
}

/// Where a call's answer comes.
pub(crate) type Answer<T, E> = oneshot::Receiver<Result<T, E>>;

/// Those of a batch that ran in one transaction.
type Ran = Vec<Box<dyn Waiting>>;

impl Store {
    /// Puts a call into the lane. The answer comes over the channel; whoever gets a [`Lead`] must run it on a blocking thread.
    pub(crate) fn queue<T, E>(
        self: &Arc<Self>,
        work: impl FnOnce(&Tx<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<(Answer<T, E>, Option<Lead>), StoreError>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let caller = Caller { work: Some(work), outcome: None, reply };
        let mut queue = self.lane.0.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.waiting.len() >= MOST_WAITING {
            return Err(StoreError::Overloaded);
        }
        queue.waiting.push_back(Box::new(caller));
        let lead = !std::mem::replace(&mut queue.is_led, true);
        drop(queue);
        Ok((answer, lead.then(|| Lead { store: Arc::clone(self), is_over: false })))
    }

    fn next_batch(&self) -> VecDeque<Box<dyn Waiting>> {
        let mut queue = self.lane.0.lock().unwrap_or_else(PoisonError::into_inner);
        let many = queue.waiting.len().min(MOST_TOGETHER);
        let batch: VecDeque<_> = queue.waiting.drain(..many).collect();
        queue.is_led = !batch.is_empty();
        batch
    }

    /// One transaction over as much of `batch` as it can hold; what it could not run stays in `batch`.
    fn run_batch(&self, batch: &mut VecDeque<Box<dyn Waiting>>) -> (Ran, Result<(), StoreError>) {
        let mut ran = Ran::with_capacity(batch.len());
        let end = self.write(|tx| {
            while let Some(mut caller) = batch.pop_front() {
                let kept = in_savepoint(tx, &mut *caller);
                ran.push(caller);
                kept?;
            }
            Ok(())
        });
        if end.is_err() && ran.is_empty() {
            // No transaction could be begun: all of them hear it.
            ran.extend(batch.drain(..));
        }
        (ran, end)
    }
}

/// An error is one of the whole transaction: the savepoint could not be made, kept or undone.
fn in_savepoint(tx: &Tx<'_>, caller: &mut dyn Waiting) -> Result<(), StoreError> {
    tx.0.prepare_cached("SAVEPOINT one_call")?.execute([])?;
    if !caller.run(tx) {
        // A full disk makes SQLite undo the whole transaction by itself.
        if tx.0.is_autocommit() {
            return Err(StoreError::Undone);
        }
        tx.0.prepare_cached("ROLLBACK TO one_call")?.execute([])?;
    }
    tx.0.prepare_cached("RELEASE one_call")?.execute([])?;
    Ok(())
}

impl Lead {
    /// Runs batches until nothing waits. Blocks.
    pub(crate) fn run(mut self) {
        loop {
            let mut batch = self.store.next_batch();
            if batch.is_empty() {
                self.is_over = true;
                return;
            }
            while !batch.is_empty() {
                let (ran, end) = self.store.run_batch(&mut batch);
                let failed = end.err().map(Arc::new);
                if let Some(error) = &failed {
                    tracing::error!(error = &**error as &dyn std::error::Error, calls = ran.len(), "nothing of these calls was committed");
                }
                for caller in ran {
                    caller.answer(failed.clone().map_or(Ok(()), |error| Err(StoreError::NotCommitted(error))));
                }
            }
            wal::checkpoint_if_due(&self.store);
        }
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;
    use tokio::sync::oneshot::error::TryRecvError;

    use super::*;

    fn store() -> (TempDir, Arc<Store>) {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let rows = "CREATE TABLE parents (n INTEGER PRIMARY KEY); CREATE TABLE rows (n INTEGER PRIMARY KEY, parent REFERENCES parents (n))";
        let first = |store: &Store| store.write(|tx| Ok::<_, StoreError>(tx.0.execute_batch(rows)?));
        let (store, ()) = Store::open(&dir.path().join("server.sqlite3"), first).expect("a store in an empty folder");
        (dir, Arc::new(store))
    }

    fn insert(tx: &Tx<'_>, n: usize) -> Result<(), StoreError> {
        tx.0.execute("INSERT INTO rows (n) VALUES (?1)", [n])?;
        Ok(())
    }

    fn rows(store: &Store) -> Vec<usize> {
        let all = |tx: &Tx<'_>| {
            let mut read = tx.0.prepare("SELECT n FROM rows ORDER BY rowid")?;
            Ok::<_, StoreError>(read.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
        };
        store.read(all).expect("the rows must be readable")
    }

    fn queue(
        store: &Arc<Store>,
        work: impl FnOnce(&Tx<'_>) -> Result<(), StoreError> + Send + 'static,
    ) -> (Answer<(), StoreError>, Option<Lead>) {
        store.queue(work).expect("the lane has room")
    }

    fn now(mut answer: Answer<(), StoreError>) -> Result<(), StoreError> {
        answer.try_recv().expect("the lead has run, so the call must be answered")
    }

    #[test]
    fn a_failing_call_undoes_only_itself() {
        let (_dir, store) = store();
        let (first, lead) = queue(&store, |tx| insert(tx, 1));
        let (refused, second_lead) = queue(&store, |tx| insert(tx, 2).and(Err(StoreError::Overloaded)));
        let (panicked, _) = queue(&store, |tx| {
            insert(tx, 3)?;
            panic!("on purpose")
        });
        let (constraint, _) = queue(&store, |tx| insert(tx, 4).and(insert(tx, 1)));
        let (last, _) = queue(&store, |tx| insert(tx, 5));
        assert!(second_lead.is_none(), "two leaders would only wait for each other");
        lead.expect("the first to come leads").run();
        now(first).expect("a call must not fail because of another");
        assert!(matches!(now(refused), Err(StoreError::Overloaded)), "a refusal must reach its own caller as it was said");
        assert!(matches!(now(panicked), Err(StoreError::Panicked)), "a panic must become an error, not an endless wait");
        assert!(matches!(now(constraint), Err(StoreError::Sqlite(_))), "a broken constraint must reach its own caller");
        now(last).expect("what comes after a failure must not fail with it");
        assert_eq!(rows(&store), [1, 5], "what failed must leave nothing behind, what did not must be kept");
    }

    #[test]
    fn a_commit_that_fails_fails_all_of_its_calls() {
        let (_dir, store) = store();
        let (fine, lead) = queue(&store, |tx| insert(tx, 1));
        let (refused, _) = queue(&store, |_| Err(StoreError::Overloaded));
        // A deferred foreign key is looked at by COMMIT only.
        let (orphan, _) = queue(&store, |tx| {
            tx.0.execute_batch("PRAGMA defer_foreign_keys = ON; INSERT INTO rows (n, parent) VALUES (2, 99)").map_err(StoreError::from)
        });
        lead.expect("the first to come leads").run();
        for (name, answer) in [("fine", fine), ("refused because of what the fine one wrote", refused), ("orphan", orphan)] {
            let error = now(answer).expect_err("nothing was committed, so nobody may hear that it was");
            assert!(matches!(error, StoreError::NotCommitted(_)), "call `{name}` must hear why: {error}");
        }
        assert_eq!(rows(&store), [0_usize; 0], "a failed COMMIT must leave nothing behind");
        let (again, lead) = queue(&store, |tx| insert(tx, 1));
        lead.expect("the lane must be free again").run();
        now(again).expect("a failed COMMIT must not stop the store");
    }

    #[test]
    fn nobody_is_answered_before_the_commit() {
        let (_dir, store) = store();
        let (first, lead) = queue(&store, |tx| insert(tx, 1));
        let first = Arc::new(Mutex::new(first));
        let (seen, early) = (Arc::clone(&first), Arc::clone(&store));
        let (second, _) = queue(&store, move |tx| {
            insert(tx, 2)?;
            let answer = seen.lock().expect("nobody panics with it").try_recv();
            assert!(matches!(answer, Err(TryRecvError::Empty)), "an answer before the COMMIT may be lost to a power cut");
            assert_eq!(rows(&early), [0_usize; 0], "nobody else may see it before the COMMIT");
            Ok(())
        });
        lead.expect("the first to come leads").run();
        first.lock().expect("nobody panics with it").try_recv().expect("answered after the COMMIT").expect("and well");
        now(second).expect("what it looked at must have been as it should");
        assert_eq!(rows(&store), [1, 2], "both must be kept");
    }

    #[test]
    fn a_write_of_its_own_waits_for_one_batch_and_not_for_all_that_wait() {
        let (_dir, store) = store();
        let other = Arc::clone(&store);
        let admin = Arc::new(Mutex::new(None));
        let started = Arc::clone(&admin);
        let (_first, lead) = queue(&store, move |tx| {
            let line = Arc::clone(&other);
            let thread = std::thread::spawn(move || other.write(|tx| insert(tx, 5_000)));
            *started.lock().expect("nobody panics with it") = Some(thread);
            while line.writer.waiting() == 0 {
                std::thread::yield_now();
            }
            insert(tx, 1)
        });
        let answers: Vec<_> = (2..=3 * MOST_TOGETHER).map(|n| queue(&store, move |tx| count_then_insert(tx, n)).0).collect();
        lead.expect("the first to come leads").run();
        let thread = admin.lock().expect("nobody panics with it").take().expect("the first call started it");
        thread.join().expect("it only writes").expect("a write of its own must work beside the lane");
        answers.into_iter().for_each(|answer| now(answer).expect("every call that waited must be run"));
        let before = rows(&store).into_iter().find(|n| *n > 10_000).expect("a call of a later batch noted how many came before the write");
        assert_eq!(before - 10_000, MOST_TOGETHER, "the write must come right after the batch that was under way");
    }

    /// Notes, once, how many rows there were before the row 5000 was seen first.
    fn count_then_insert(tx: &Tx<'_>, n: usize) -> Result<(), StoreError> {
        tx.0.execute("INSERT INTO rows (n) SELECT 10000 + count(*) - 1 FROM rows HAVING max(n) = 5000 AND count(*) > 1", [])?;
        insert(tx, n)
    }

    #[test]
    fn a_lead_that_never_runs_frees_the_lane() {
        let (_dir, store) = store();
        let (mut lost, lead) = queue(&store, |tx| insert(tx, 1));
        drop(lead.expect("the first to come leads"));
        assert!(matches!(lost.try_recv(), Err(TryRecvError::Closed)), "who waits must hear that nothing will come");
        let (answer, lead) = queue(&store, |tx| insert(tx, 2));
        lead.expect("the next to come leads").run();
        now(answer).expect("the lane must go on");
        assert_eq!(rows(&store), [2], "a call that was given back must not run later");
    }

    #[test]
    fn a_caller_that_went_away_before_its_turn_is_left_out() {
        let (_dir, store) = store();
        let (gone, lead) = queue(&store, |tx| insert(tx, 1));
        drop(gone);
        let (answer, _) = queue(&store, |tx| insert(tx, 2));
        lead.expect("the first to come leads").run();
        now(answer).expect("the others must be run");
        assert_eq!(rows(&store), [2], "it repeats the call with the same key, so it need not begin");
    }

    #[test]
    fn a_full_lane_refuses_instead_of_growing() {
        let (_dir, store) = store();
        let mut waiting: Vec<_> = (0..MOST_WAITING).map(|n| queue(&store, move |tx| insert(tx, n))).collect();
        let refused = store.queue(|tx| insert(tx, MOST_WAITING)).map(|_| ()).expect_err("there is no more room");
        assert!(refused.is_busy(), "the caller must hear that trying again helps: {refused}");
        let lead = waiting.first_mut().and_then(|(_, lead)| lead.take());
        lead.expect("the first to come leads").run();
        assert_eq!(rows(&store).len(), MOST_WAITING, "all that wait must be run");
    }
}
