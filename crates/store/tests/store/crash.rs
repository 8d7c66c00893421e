//! 03 §7.3, row by row.

use cmautobuy_store::{CallKind, CallState, LocalTaskId, NewCall, OutboxStatus, RunStatus};
use cmautobuy_task::TaskState;

use crate::support::{Bench, LONGEST, at, attempt, device, key, user};

#[derive(Clone, Copy, Debug)]
enum Left {
    CollectRunning,
    PurchaseRunning,
    PurchaseMarked,
    Claimed,
    ResultPending,
    Sending,
}

#[tokio::test]
async fn what_the_last_process_left() {
    struct Row {
        left: Left,
        task: TaskState,
        step: Option<&'static str>,
        run: Option<RunStatus>,
        outbox: Option<OutboxStatus>,
    }
    for row in [
        Row { left: Left::CollectRunning, task: TaskState::RetryWait, step: None, run: Some(RunStatus::Failed), outbox: None },
        Row {
            left: Left::PurchaseRunning,
            task: TaskState::Claimed,
            step: Some("purchase_recovery_ready"),
            run: Some(RunStatus::Failed),
            outbox: None,
        },
        Row {
            left: Left::PurchaseMarked,
            task: TaskState::ManualReview,
            step: Some("reconcile_purchase"),
            run: Some(RunStatus::ManualReview),
            outbox: None,
        },
        Row { left: Left::Claimed, task: TaskState::Claimed, step: None, run: None, outbox: None },
        Row {
            left: Left::ResultPending,
            task: TaskState::ResultPending,
            step: None,
            run: Some(RunStatus::Succeeded),
            outbox: Some(OutboxStatus::Pending),
        },
        Row {
            left: Left::Sending,
            task: TaskState::ResultPending,
            step: None,
            run: Some(RunStatus::Succeeded),
            outbox: Some(OutboxStatus::Pending),
        },
    ] {
        let left = row.left;
        let bench = Bench::new();
        let task: LocalTaskId = match left {
            Left::Claimed => bench.claimed(1).await,
            Left::CollectRunning => bench.running(1).await.0,
            Left::PurchaseRunning => bench.running_purchase(1).await.0,
            Left::PurchaseMarked => {
                let (task, run) = bench.running_purchase(1).await;
                bench.mark(run);
                task
            }
            Left::ResultPending | Left::Sending => {
                let (task, run) = bench.running(1).await;
                let (out, _) = bench.collected(run, 3).await.outbox.expect("reported");
                if matches!(left, Left::Sending) {
                    bench.write(move |tx| tx.outbox_sending(out, at(4))).await;
                }
                task
            }
        };
        let untouched = bench.dump();
        let recovered = bench.write(|tx| tx.recover_after_crash(at(100))).await;
        let detail = bench.store.read(move |r| r.task_detail(task)).await.expect("readable").expect("kept");
        assert_eq!(detail.task.state, row.task, "{left:?}: state");
        assert_eq!(detail.task.current_step.as_deref(), row.step, "{left:?}: step");
        assert_eq!(detail.runs.first().map(|r| r.run_status), row.run, "{left:?}: run");
        assert_eq!(detail.outbox.first().map(|o| o.status), row.outbox, "{left:?}: outbox");
        let was_running = matches!(left, Left::CollectRunning | Left::PurchaseRunning | Left::PurchaseMarked);
        assert_eq!(recovered.runs.len(), usize::from(was_running), "{left:?}: told to the caller");
        assert_eq!(recovered.outbox, usize::from(matches!(left, Left::Sending)), "{left:?}: told to the caller");
        if matches!(left, Left::Claimed | Left::ResultPending) {
            assert_eq!(bench.dump(), untouched, "{left:?}: goes on by itself and is not touched");
        }
        if was_running {
            assert_eq!(detail.runs[0].error_code.as_deref(), Some("PROGRAM_DIED"), "{left:?}: the run says why it ended");
            assert!(detail.runs[0].finished_at.is_some(), "{left:?}: no run looks alive");
        }
        let once = bench.dump();
        let again = bench.write(|tx| tx.recover_after_crash(at(200))).await;
        assert_eq!((again.runs.len(), again.outbox, again.calls), (0, 0, 0), "{left:?}: a second start finds nothing to do");
        assert_eq!(bench.dump(), once, "{left:?}: and changes nothing");
    }
}

#[tokio::test]
async fn a_marked_purchase_never_runs_again() {
    let bench = Bench::new();
    let (task, run) = bench.running_purchase(1).await;
    bench.mark(run);
    bench.write(|tx| tx.recover_after_crash(at(100))).await;
    for (kind, no) in [(CallKind::Start, 2), (CallKind::Resume, 2)] {
        let call = NewCall { task, kind, key: key(800), body_json: "{}".to_owned(), attempt: Some((attempt(800), no)) };
        bench.store.write(move |tx| tx.call_open(&call, at(101))).await.expect_err("irreversible_action_at set: look, never buy (03 §7.3)");
    }
    bench.store.write(move |tx| tx.recollect(task, at(102))).await.expect_err("a purchase is never collected again");
    let next = bench.store.read(|r| Ok((r.retry_next()?, r.claimed_next()?))).await.expect("readable");
    assert_eq!(next, (None, None), "the worker is never handed it");
}

#[tokio::test]
async fn an_open_start_survives_and_a_renewal_of_a_dead_run_does_not() {
    let bench = Bench::new();
    let task = bench.claimed(1).await;
    let start = NewCall { task, kind: CallKind::Start, key: key(800), body_json: "{}".to_owned(), attempt: Some((attempt(11), 1)) };
    let start = bench.write(move |tx| tx.call_open(&start, at(1))).await;
    let recovered = bench.write(|tx| tx.recover_after_crash(at(100))).await;
    assert_eq!(recovered.calls, 0, "its answer is still wanted (D5)");
    let due = bench.store.read(|r| r.call_due(user(1), device(1), at(101), LONGEST)).await.expect("readable");
    assert_eq!(due.map(|c| (c.id, c.key)), Some((start, key(800))), "the same call, the same key");

    let bench = Bench::new();
    let (task, _) = bench.running(1).await;
    let renew = NewCall { task, kind: CallKind::Resume, key: key(801), body_json: "{}".to_owned(), attempt: Some((attempt(11), 1)) };
    let renew = bench.write(move |tx| tx.call_open(&renew, at(2))).await;
    let recovered = bench.write(|tx| tx.recover_after_crash(at(100))).await;
    assert_eq!(recovered.calls, 1, "the run it would renew is over");
    let record = bench.store.read(move |r| r.call_get(renew)).await.expect("readable").expect("kept");
    assert_eq!(record.state, CallState::Refused, "so it is settled and the next attempt makes its own");
    bench.start(task, 1).await;
}
