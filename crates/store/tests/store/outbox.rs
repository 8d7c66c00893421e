//! Reports on their way (03 §5.2-5.3, D8).

use cmautobuy_protocol::result::{EventType, ResultAnswer};
use cmautobuy_store::{OutboxStatus, StoreError};
use cmautobuy_task::{Event, TaskState, is_due};

use crate::support::{Bench, LONGEST, accepted, at, device, user};

#[tokio::test]
async fn accepted_makes_success() {
    let bench = Bench::new();
    let (task, run) = bench.running(1).await;
    let settled = bench.collected(run, 3).await;
    let (id, _) = settled.outbox.clone().expect("reported");
    let no = ResultAnswer { accepted: false, ..accepted() };
    let error = bench.store.write(move |tx| tx.outbox_accepted(id, &no, at(4))).await.expect_err("not accepted");
    assert!(matches!(error, StoreError::NotAccepted), "only accepted: true makes success (03 §7.2)");
    let moved = bench.deliver(&settled, 5).await;
    assert!(moved.moved, "this answer did it");
    let row = bench.task(task).await;
    assert_eq!((row.state, row.finished_at), (TaskState::Succeeded, Some(at(5))), "done");
    let again = bench.write(move |tx| tx.outbox_accepted(id, &accepted(), at(9))).await;
    assert!(!again.moved && again.state == TaskState::Succeeded, "a duplicate answer changes nothing");
    assert_eq!(bench.task(task).await.finished_at, Some(at(5)), "nor the time");
}

#[tokio::test]
async fn outage_is_not_refusal() {
    let bench = Bench::new();
    let (task, run) = bench.running(1).await;
    let (id, key) = bench.collected(run, 3).await.outbox.expect("reported");
    let first = bench.store.read(move |r| r.outbox_get(id)).await.expect("readable").expect("queued");
    for n in 1..=50 {
        bench
            .write(move |tx| {
                tx.outbox_sending(id, at(n * 300))?;
                tx.outbox_later(id, at((n + 1) * 300), "503", at(n * 300))
            })
            .await;
    }
    let row = bench.store.read(move |r| r.outbox_get(id)).await.expect("readable").expect("queued");
    assert_eq!(
        (row.status, row.attempt_count, row.last_error.as_deref()),
        (OutboxStatus::Pending, 50, Some("503")),
        "for days if need be (D8)"
    );
    assert_eq!((&row.key, &row.payload), (&key, &first.payload), "the same key and the same bytes on every try");
    assert_eq!(bench.state(task).await, TaskState::ResultPending, "no reviewer is bothered");
    bench.write(move |tx| tx.outbox_refused(id, "422 MALFORMED", at(99_999))).await;
    let refused = bench.store.read(move |r| r.outbox_get(id)).await.expect("readable").expect("kept");
    assert_eq!((refused.status, refused.refused_at), (OutboxStatus::Failed, Some(at(99_999))), "a refusal is for good");
    let row = bench.task(task).await;
    assert_eq!(
        (row.state, row.last_error_code.as_deref()),
        (TaskState::ManualReview, Some("RESULT_REFUSED")),
        "then a person decides (D8)"
    );
    let rows = bench.store.read(move |r| r.outbox_of_task(task)).await.expect("readable");
    assert_eq!(rows.len(), 1, "and no event is made for it");
    for _ in 0..2 {
        bench.store.write(move |tx| tx.outbox_later(id, at(1), "x", at(1))).await.expect_err("settled");
        bench.store.write(move |tx| tx.outbox_sending(id, at(1))).await.expect_err("settled");
    }
}

#[tokio::test]
async fn due_is_the_same_rule_as_tasks() {
    let bench = Bench::new();
    let (_, run) = bench.running(1).await;
    let (id, _) = bench.collected(run, 3).await.outbox.expect("reported");
    for (next, now) in [(0, 0), (10, 9), (10, 10), (10, 11), (310, 10), (311, 10), (1_000_000, 10), (-5, 10)] {
        bench.write(move |tx| tx.outbox_later(id, at(next), "503", at(0))).await;
        let due = bench.store.read(move |r| r.outbox_due(user(1), device(1), at(now), LONGEST)).await.expect("readable");
        assert_eq!(due.is_some(), is_due(Some(at(next)), at(now), LONGEST), "next {next} s, now {now} s: SQL and task::is_due must agree");
    }
    for (u, d) in [(2, 1), (1, 2)] {
        let due = bench.store.read(move |r| r.outbox_due(user(u), device(d), at(20), LONGEST)).await.expect("readable");
        assert_eq!(due, None, "another login's rows wait for their own (D8)");
    }
    bench.write(move |tx| tx.outbox_later(id, at(200), "503", at(0))).await;
    assert_eq!(bench.store.read(|r| r.outbox_next_at(user(1), device(1))).await.expect("readable"), Some(at(200)), "for the drain's timer");
    assert_eq!(bench.write(|tx| tx.outbox_hurry(user(1), device(1), at(20))).await, 1, "the network is back");
    let due = bench.store.read(|r| r.outbox_due(user(1), device(1), at(20), LONGEST)).await.expect("readable");
    assert_eq!(due.map(|o| o.id), Some(id), "so it is tried at once");
}

/// 03 §5.3, its four rules.
#[tokio::test]
async fn reporting_again_never_overwrites_what_is_newer() {
    let bench = Bench::new();
    let (task, run) = bench.running(1).await;
    // First run: a failure that stays unsent. Then reported; then collected again with success.
    let failure = bench.failed(run, Event::PermanentFailure, 3).await;
    let (first, first_key) = failure.outbox.clone().expect("reported");
    let resent = bench.write(move |tx| tx.outbox_resend(task, at(4))).await;
    assert_eq!(resent, Some(first), "rule 1: the earliest unsent event, also a failure");
    let payload = bench.store.read(move |r| r.outbox_get(first)).await.expect("readable").expect("queued").payload;
    bench.deliver(&failure, 5).await;
    assert_eq!(bench.state(task).await, TaskState::Failed, "rule 4: the newest failure keeps its state");
    bench.write(move |tx| tx.recollect(task, at(6))).await;
    let second_run = bench.start(task, 1).await;
    let success = bench.collected(second_run, 8).await;
    let (second, _) = success.outbox.clone().expect("reported");

    // An acknowledgement of the old failure comes late.
    let moved = bench.write(move |tx| tx.outbox_accepted(first, &accepted(), at(9))).await;
    assert!(!moved.moved, "rules 3 and 4: an old event does not move the task");
    assert_eq!(bench.state(task).await, TaskState::ResultPending, "the newest run decides");
    assert_eq!(bench.write(move |tx| tx.outbox_resend(task, at(10))).await, Some(second), "rule 1: the unsent one before any sent one");
    bench.deliver(&success, 11).await;
    assert_eq!(bench.state(task).await, TaskState::Succeeded, "rule 4: the newest result does");

    assert_eq!(bench.write(move |tx| tx.outbox_resend(task, at(12))).await, Some(second), "rule 1: all sent, so the newest result");
    bench.store.write(move |tx| tx.recollect(task, at(12))).await.expect_err("while it is on its way again nothing else begins");
    let row = bench.store.read(move |r| r.outbox_get(second)).await.expect("readable").expect("kept");
    assert_eq!((row.status, row.sent_at), (OutboxStatus::Pending, Some(at(11))), "it goes again, and is known to have arrived once");
    let moved = bench.deliver(&success, 13).await;
    assert!(!moved.moved && moved.state == TaskState::Succeeded, "rule 3: only the outbox row is updated");
    let old = bench.store.read(move |r| r.outbox_get(first)).await.expect("readable").expect("kept");
    assert_eq!((old.key, old.payload), (first_key, payload), "rule 2: key and payload are never put together again");
}

#[tokio::test]
async fn an_old_success_does_not_make_a_new_run_succeed() {
    let bench = Bench::new();
    let (task, run) = bench.running(1).await;
    let first = bench.collected(run, 3).await;
    bench.deliver(&first, 4).await;
    bench.write(move |tx| tx.recollect(task, at(5))).await;
    let second_run = bench.start(task, 1).await;
    let second = bench.collected(second_run, 6).await;
    let (old, _) = first.outbox.expect("reported");
    let moved = bench.write(move |tx| tx.outbox_accepted(old, &accepted(), at(7))).await;
    assert_eq!((moved.moved, moved.state), (false, TaskState::ResultPending), "rule 4: another attempt's event");
    let (new, _) = second.outbox.expect("reported");
    bench.write(move |tx| tx.outbox_refused(old, "x", at(8)).map(drop).or(Ok(()))).await;
    assert_eq!(bench.state(task).await, TaskState::ResultPending, "nor does its refusal");
    bench.write(move |tx| tx.outbox_refused(new, "413", at(9))).await;
    assert_eq!(bench.state(task).await, TaskState::ManualReview, "the newest one's refusal does");
}

#[tokio::test]
async fn events_of_one_task_leave_in_order() {
    let bench = Bench::new();
    let (task, run) = bench.running(1).await;
    let success = bench.collected(run, 3).await;
    let (first, _) = success.outbox.expect("reported");
    // A second event of the same task, as a reconcile will make one.
    bench
        .raw()
        .execute(
            "INSERT INTO outbox_events (task_id, event_type, idempotency_key, payload_json, created_at, updated_at, user_id, device_id, attempt_id) \
             SELECT task_id, 'task_failure', 'second', '{}', created_at, updated_at, user_id, device_id, attempt_id FROM outbox_events",
            [],
        )
        .expect("inserted");
    let due = || async { bench.store.read(|r| r.outbox_due(user(1), device(1), at(10), LONGEST)).await.expect("readable") };
    assert_eq!(due().await.map(|o| o.id), Some(first), "the earlier one first");
    bench.write(move |tx| tx.outbox_later(first, at(100), "503", at(10))).await;
    assert_eq!(due().await.map(|o| o.id), None, "while it waits the later one waits too (03 §5.3 rule 1)");
    bench.write(move |tx| tx.outbox_refused(first, "422", at(11))).await;
    let next = due().await.expect("a refused one blocks nobody");
    assert_eq!((next.event_type, next.task_id), (EventType::TaskFailure, task), "then the later one goes");
}

#[tokio::test]
async fn a_person_may_abandon_a_refused_event() {
    let bench = Bench::new();
    let (task, run) = bench.running(1).await;
    let (id, _) = bench.failed(run, Event::PermanentFailure, 3).await.outbox.expect("reported");
    bench.store.write(move |tx| tx.outbox_abandon(id, "note", at(4))).await.expect_err("one that may still arrive cannot be abandoned");
    bench.write(move |tx| tx.outbox_refused(id, "404", at(5))).await;
    assert_eq!(bench.state(task).await, TaskState::Failed, "a refused failure report moves nothing");
    bench.store.write(move |tx| tx.recollect(task, at(6))).await.expect_err("refused is not settled");
    bench.write(move |tx| tx.outbox_abandon(id, "settled by phone", at(7))).await;
    let counts = bench.store.read(|r| r.outbox_counts()).await.expect("readable");
    assert_eq!((counts.failed, counts.abandoned, counts.unsent()), (0, 1, 0), "it counts as settled (D2)");
    let list = bench.store.read(|r| r.outbox_list(10)).await.expect("readable");
    assert_eq!(list[0].last_error.as_deref(), Some("404; settled by phone"), "with the reason");
    assert!(list[0].payload_bytes > 50, "the list knows the size without the payload");
    bench.write(move |tx| tx.recollect(task, at(8))).await;
}
