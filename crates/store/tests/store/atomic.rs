//! Nothing is ever half-written: a failure at every statement, at the commit, and a process death before it.

use std::sync::Arc;

use cmautobuy_protocol::lifecycle::ClaimAnswer;
use cmautobuy_store::{CallKind, Ending, LocalTaskId, NewCall, RunId, SealKey, Settle, Store, StoreError, Tx};
use cmautobuy_task::{Event, TaskState};
use serde_json::json;

use crate::support::{Bench, KEY, accepted, at, attempt, dump, execution, key, pdd_data, phone, remote, standing};

type Write = Arc<dyn Fn(&mut Tx<'_>) -> Result<(), StoreError> + Send + Sync>;

/// Makes the n-th written row of every transaction fail, counted over all tables. Rolled back with the transaction, so it counts anew.
fn arm(bench: &Bench) {
    let raw = bench.raw();
    raw.execute_batch("CREATE TABLE fault (seen INTEGER NOT NULL, at INTEGER NOT NULL); INSERT INTO fault VALUES (0, 0);").expect("armed");
    for table in ["pdd_tasks", "task_runs", "outbox_events", "claim_attempts", "server_calls", "run_artifacts"] {
        for when in ["BEFORE", "AFTER"] {
            for what in ["INSERT", "UPDATE", "DELETE"] {
                raw.execute_batch(&format!(
                    "CREATE TRIGGER fault_{table}_{when}_{what} {when} {what} ON {table} BEGIN \
                     UPDATE fault SET seen = seen + 1; \
                     SELECT RAISE(ABORT, 'injected') WHERE (SELECT seen = at FROM fault); END;"
                ))
                .expect("armed");
            }
        }
    }
}

fn set(bench: &Bench, nth: i64) {
    bench.raw().execute("UPDATE fault SET seen = 0, at = ?1", [nth]).expect("set");
}

/// Fails `write` at every statement in turn, with and without the closure noticing; then lets it through. Answers how many points there were.
async fn fails_whole(name: &str, bench: &Bench, write: Write) -> i64 {
    arm(bench);
    let before = bench.dump();
    let mut nth = 1;
    loop {
        set(bench, nth);
        let honest = Arc::clone(&write);
        let done = bench.store.write(move |tx| honest(tx)).await;
        if done.is_ok() {
            break;
        }
        let error = format!("{:?}", done.expect_err("checked above"));
        assert!(error.contains("injected"), "{name}, point {nth}: only the injected failure is expected: {error}");
        assert_eq!(bench.dump(), before, "{name}, point {nth}: a failed write leaves nothing");
        // A caller that goes on after the error and commits must find nothing of it either.
        set(bench, nth);
        let careless = Arc::clone(&write);
        let failed = bench.write(move |tx| Ok(careless(tx).is_err())).await;
        assert!(failed, "{name}, point {nth}: the same failure again");
        assert_eq!(bench.dump(), before, "{name}, point {nth}: nothing half-written, even when the error is swallowed");
        nth += 1;
        assert!(nth < 200, "{name}: a write of this size has fewer statements");
    }
    assert_ne!(bench.dump(), before, "{name}: without the failure it is written");
    nth - 1
}

fn settle(run: RunId) -> Write {
    Arc::new(move |tx| tx.save_result_and_enqueue(&Settle { run, ending: Ending::Collected(Box::new(pdd_data())) }, at(5)).map(drop))
}

#[tokio::test]
async fn every_compound_write_is_whole() {
    let failure = || Ending::Failure { event: Event::NeedsPerson, code: "CAPTCHA".to_owned(), message: "m".to_owned() };
    let open = |task: LocalTaskId, kind: CallKind, attempt_no: Option<u32>| NewCall {
        task,
        kind,
        key: key(900),
        body_json: "{}".to_owned(),
        attempt: attempt_no.map(|no| (attempt(900), no)),
    };

    let bench = Bench::new();
    let (_, run) = bench.running(1).await;
    let points = fails_whole("result", &bench, settle(run)).await;
    assert!(points >= 8, "task, run and outbox are each written: {points} points");

    let bench = Bench::new();
    let (_, run) = bench.running(1).await;
    let ending = failure();
    fails_whole(
        "failure",
        &bench,
        Arc::new(move |tx| tx.save_result_and_enqueue(&Settle { run, ending: ending.clone() }, at(5)).map(drop)),
    )
    .await;

    let bench = Bench::new();
    let (_, run) = bench.running(1).await;
    fails_whole("last retry", &bench, Arc::new(move |tx| tx.run_suspend_retry(run, "T", "m", 0, at(5)).map(drop))).await;

    let bench = Bench::new();
    let claim = bench.prepare(1).await;
    fails_whole(
        "claim with bad data",
        &bench,
        Arc::new(move |tx| {
            let answer = ClaimAnswer { standing: standing(remote(1), 1, None), task: json!({"task_type": "collect"}) };
            tx.claim_store(&claim.key, &answer, "{}", attempt(1), at(5)).map(drop)
        }),
    )
    .await;

    let bench = Bench::new();
    let (_, run) = bench.running(1).await;
    bench.failed(run, Event::PermanentFailure, 3).await;
    let claim = bench.prepare(2).await;
    fails_whole(
        "reclaim",
        &bench,
        Arc::new(move |tx| {
            let answer = ClaimAnswer { standing: standing(remote(1), 2, None), task: crate::support::collect_json() };
            tx.claim_store(&claim.key, &answer, "{}", attempt(1), at(5)).map(drop)
        }),
    )
    .await;

    let bench = Bench::new();
    let task = bench.claimed(1).await;
    let call = open(task, CallKind::Start, Some(1));
    let call = bench.write(move |tx| tx.call_open(&call, at(1))).await;
    fails_whole(
        "start answered",
        &bench,
        Arc::new(move |tx| tx.call_answered_start(call, &standing(remote(1), 1, Some(execution(1))), &phone(), at(2)).map(drop)),
    )
    .await;

    let bench = Bench::new();
    let (task, _) = bench.running(1).await;
    let call = open(task, CallKind::CancelAck, None);
    let call = bench.write(move |tx| tx.call_open(&call, at(1))).await;
    fails_whole(
        "cancel-ack answered",
        &bench,
        Arc::new(move |tx| tx.call_answered_cancel_ack(call, &standing(remote(1), 1, Some(execution(1))), at(2)).map(drop)),
    )
    .await;

    let bench = Bench::new();
    let (_, run) = bench.running(1).await;
    let (out, _) = bench.collected(run, 3).await.outbox.expect("reported");
    fails_whole("accepted", &bench, Arc::new(move |tx| tx.outbox_accepted(out, &accepted(), at(5)).map(drop))).await;

    let bench = Bench::new();
    let (_, run) = bench.running(1).await;
    let (out, _) = bench.collected(run, 3).await.outbox.expect("reported");
    fails_whole("refused", &bench, Arc::new(move |tx| tx.outbox_refused(out, "422", at(5)).map(drop))).await;

    let bench = Bench::new();
    let (_, run) = bench.running(1).await;
    let (out, _) = bench.collected(run, 3).await.outbox.expect("reported");
    bench.write(move |tx| tx.outbox_sending(out, at(3))).await;
    bench.running(2).await;
    fails_whole("crash recovery", &bench, Arc::new(move |tx| tx.recover_after_crash(at(5)).map(drop))).await;
}

#[tokio::test]
async fn a_refused_commit_leaves_nothing() {
    let bench = Bench::new();
    let (task, run) = bench.running(1).await;
    // A foreign key checked only at commit: every statement succeeds and the commit itself fails.
    bench
        .raw()
        .execute_batch(
            "CREATE TABLE fault_later (task INTEGER REFERENCES pdd_tasks(id) DEFERRABLE INITIALLY DEFERRED); \
             CREATE TRIGGER fault_commit AFTER INSERT ON outbox_events BEGIN INSERT INTO fault_later VALUES (-1); END;",
        )
        .expect("armed");
    let before = bench.dump();
    let write = settle(run);
    bench.store.write(move |tx| write(tx)).await.expect_err("the commit fails");
    assert_eq!(bench.dump(), before, "what could not be committed is not there");
    bench.raw().execute_batch("DROP TRIGGER fault_commit").expect("disarmed");
    let write = settle(run);
    bench.store.write(move |tx| write(tx)).await.expect("and the next try succeeds");
    assert_eq!(bench.state(task).await, TaskState::ResultPending, "whole this time");
}

#[tokio::test]
async fn death_just_before_and_just_after_the_commit() {
    let bench = Bench::new();
    let (task, run) = bench.running(1).await;
    let before = bench.dump();
    let (from, early) = (bench.dir.path().to_owned(), tempfile::tempdir().expect("a temporary folder"));
    let early_path = early.path().to_owned();
    bench
        .write(move |tx| {
            tx.save_result_and_enqueue(&Settle { run, ending: Ending::Collected(Box::new(pdd_data())) }, at(5))?;
            copy(&from, &early_path);
            Ok(())
        })
        .await;
    let late = tempfile::tempdir().expect("a temporary folder");
    copy(bench.dir.path(), late.path());

    let died_before = rusqlite::Connection::open(early.path().join("client.db")).expect("opens");
    assert_eq!(dump(&died_before), before, "everything done, nothing committed: the run is still under way and nothing was queued");
    drop(died_before);
    let store = Store::open(&early.path().join("client.db"), SealKey::from_bytes(KEY)).expect("opens after the crash");
    let recovered = store.write(|tx| tx.recover_after_crash(at(9))).await.expect("recovers");
    assert_eq!(
        recovered.runs.iter().map(|r| (r.task, r.state)).collect::<Vec<_>>(),
        [(task, TaskState::RetryWait)],
        "it is collected again"
    );

    let store = Store::open(&late.path().join("client.db"), SealKey::from_bytes(KEY)).expect("opens after the crash");
    let recovered = store.write(|tx| tx.recover_after_crash(at(9))).await.expect("recovers");
    assert_eq!(recovered.runs, [], "committed: the run is over");
    let counts = store.read(|r| r.outbox_counts()).await.expect("readable");
    assert_eq!(counts.pending, 1, "and its report is waiting");
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    for name in ["client.db", "client.db-wal"] {
        if from.join(name).exists() {
            std::fs::copy(from.join(name), to.join(name)).expect("copied");
        }
    }
}
