//! Claiming (D5).

use cmautobuy_protocol::TaskType;
use cmautobuy_protocol::lifecycle::ClaimAnswer;
use cmautobuy_protocol::result::{EventType, ResultBody};
use cmautobuy_store::{
    AttemptState, CallKind, ClaimEnd, ClaimKind, FreshClaim, NewCall, OpenClaim, PrepareOutcome, RefusedEffect, ReleaseAim, SealKey, Store,
    StoreError,
};
use cmautobuy_task::{Event, TaskState};
use serde_json::{Value, json};

use crate::support::{Bench, at, attempt, collect_json, device, fresh, key, purchase_json, remote, standing, token, user};

#[tokio::test]
async fn one_attempt_is_open_and_handed_out_again() {
    let bench = Bench::new();
    let first = bench.prepare(1).await;
    let again = bench.prepare(2).await;
    assert_eq!((&again.key, &again.token), (&key(1), &token(1)), "an unanswered claim is replayed, never doubled (D5.3)");
    assert_eq!(first, again, "same key, same token");
    drop(bench.store.clone());
    let reopened = Store::open(&bench.path(), SealKey::from_bytes(crate::support::KEY)).expect("reopens");
    let outcome = reopened.write(|tx| tx.claim_prepare(fresh(3), user(1), device(1), at(9))).await.expect("writable");
    assert_eq!(outcome, PrepareOutcome::Open(first), "also after a restart");
    let outcome = reopened.write(|tx| tx.claim_prepare(fresh(3), user(2), device(1), at(9))).await.expect("writable");
    assert_eq!(outcome, PrepareOutcome::OtherOwner { user: user(1), device: device(1) }, "another login cannot settle it");
    let open = reopened.read(|r| r.claim_open()).await.expect("readable").expect("still open");
    assert_eq!(open, (OpenClaim { key: key(1), token: token(1) }, user(1), device(1)), "it can be looked at");
}

#[tokio::test]
async fn definite_answers_close_it() {
    for (end, want, why) in [
        (ClaimEnd::NoTask, None, "no task leaves no row: polling must not fill the table"),
        (ClaimEnd::Expired, Some(AttemptState::Expired), "an expired replay is kept for the record"),
        (ClaimEnd::Refused, Some(AttemptState::Refused), "a refusal is kept for the record"),
    ] {
        let bench = Bench::new();
        let open = bench.prepare(1).await;
        let closed = open.key.clone();
        bench.write(move |tx| tx.claim_close(&open.key, end, at(1))).await;
        let again = closed.clone();
        let state = bench.store.read(move |r| r.claim_state(&closed)).await.expect("readable");
        assert_eq!(state, want, "{why}");
        let error = bench.store.write(move |tx| tx.claim_close(&again, end, at(2))).await.expect_err("settled once");
        assert!(matches!(error, StoreError::NotOpen { .. }), "a settled claim cannot be settled again: {error:?}");
        let next = bench.prepare(2).await;
        assert_eq!(next.key, key(2), "the next claim is a fresh one");
    }
}

#[tokio::test]
async fn an_attempt_no_longer_readable_expires_by_itself() {
    let bench = Bench::new();
    bench.prepare(1).await;
    let other = Store::open(&bench.path(), SealKey::from_bytes([9; 32])).expect("opens with any key");
    let outcome = other.write(|tx| tx.claim_prepare(fresh(2), user(1), device(1), at(1))).await.expect("writable");
    let fresh = FreshClaim { key: key(2), token: token(2) };
    assert_eq!(outcome, PrepareOutcome::Open(OpenClaim { key: fresh.key, token: fresh.token }), "claiming goes on with a new attempt (D6)");
    let state = other.read(|r| r.claim_state(&key(1))).await.expect("readable");
    assert_eq!(state, Some(AttemptState::Expired), "the old one can never be replayed and is closed");
}

#[tokio::test]
async fn lost_keys_expire_open_attempts() {
    let bench = Bench::new();
    bench.prepare(1).await;
    bench.write(|tx| tx.secret_put("adb", b"k", at(0))).await;
    assert_eq!(bench.store.read(|r| r.secret_get("adb")).await.expect("readable").as_deref(), Some(&b"k"[..]), "sealed and opened");
    bench.write(|tx| tx.sealed_lost(|| unreachable!("no task was begun"), at(1))).await;
    assert_eq!(bench.store.read(|r| r.claim_state(&key(1))).await.expect("readable"), Some(AttemptState::Expired), "nothing can replay it");
    assert_eq!(bench.store.read(|r| r.secret_get("adb")).await.expect("readable"), None, "a secret nobody can open is made anew");
}

#[tokio::test]
async fn lost_keys_end_what_was_begun_with_a_report_and_let_go_of_the_rest() {
    let bench = Bench::new();
    let begun = bench.claimed(1).await;
    let run = bench.start(begun, 1).await;
    bench.write(move |tx| tx.run_suspend_retry(run, "TIMEOUT", "page", 3, at(6))).await;
    bench.write(|tx| tx.sealed_lost(|| attempt(77), at(7))).await;
    let detail = bench.store.read(move |r| r.task_detail(begun)).await.expect("readable").expect("kept");
    assert_eq!(detail.task.state, TaskState::Failed, "its token is gone: no call can ever carry it on (D7)");
    assert_eq!(detail.outbox.len(), 1, "the server is told, for a result needs identity and no token (D3)");
    assert_eq!(detail.runs.len(), 2, "under an attempt of its own");

    let waiting = bench.claimed(2).await;
    bench.write(|tx| tx.sealed_lost(|| unreachable!("nothing else was begun"), at(8))).await;
    let row = bench.store.read(move |r| r.task_get(waiting)).await.expect("readable").expect("kept");
    assert_eq!(row.state, TaskState::Cancelled, "not begun: the server takes it back when the claim runs out (D5.5)");
}

#[tokio::test]
async fn a_local_task_that_needs_the_phone_comes_first() {
    let needs = |outcome: PrepareOutcome| matches!(outcome, PrepareOutcome::LocalTaskNeedsPhone(_));
    let bench = Bench::new();
    let task = bench.claimed(1).await;
    let ask = || bench.write(|tx| tx.claim_prepare(fresh(90), user(1), device(1), at(5)));
    assert!(needs(ask().await), "claimed: it is next");
    let run = bench.start(task, 1).await;
    assert!(needs(ask().await), "running: the phone is taken");
    bench.write(move |tx| tx.run_suspend_retry(run, "TIMEOUT", "page", 3, at(6))).await;
    assert!(needs(ask().await), "retry_wait with an execution keeps the device's slot (D2)");
    let run = bench.start(task, 1).await;
    bench.collected(run, 7).await;
    assert!(!needs(ask().await), "result_pending needs the network only");
}

#[tokio::test]
async fn a_released_or_expired_claim_does_not_block() {
    let bench = Bench::new();
    let task = bench.claimed(1).await;
    let release = NewCall {
        task,
        kind: CallKind::Release { aim: ReleaseAim::PhoneUnreachable },
        key: key(50),
        body_json: "{}".to_owned(),
        attempt: None,
    };
    let state = bench
        .write(move |tx| {
            let call = tx.call_open(&release, at(1))?;
            tx.call_answered_release(call, &standing(remote(1), 1, None), at(1))
        })
        .await;
    assert_eq!(state, TaskState::RetryWait, "the phone was not there (D2)");
    let stored = bench.claim_json(2, collect_json()).await;
    assert_eq!(stored.kind, ClaimKind::New, "a released row comes back by a new claim and does not block one");

    let start =
        NewCall { task: stored.task, kind: CallKind::Start, key: key(51), body_json: "{}".to_owned(), attempt: Some((attempt(1), 1)) };
    bench
        .write(move |tx| {
            let call = tx.call_open(&start, at(2))?;
            tx.call_refused(call, "LEASE_EXPIRED", "too late", RefusedEffect::LeaseExpired, None, at(2))
        })
        .await;
    assert_eq!(bench.state(stored.task).await, TaskState::Claimed, "it stays claimed (D5.5)");
    let next = bench.store.read(|r| r.claimed_next()).await.expect("readable");
    assert!(next.is_none(), "but it is not run: its start would be refused again");
    let open = bench.prepare(3).await;
    let answer = ClaimAnswer { standing: standing(remote(2), 2, None), task: collect_json() };
    let again = bench.write(move |tx| tx.claim_store(&open.key, &answer, "{}", attempt(2), at(3))).await;
    assert_eq!(
        (again.task, again.kind, again.state),
        (stored.task, ClaimKind::Reclaimed, TaskState::Claimed),
        "the new claim revives the row"
    );
    let row = bench.task(stored.task).await;
    assert_eq!((row.claim.generation, row.claim_expired_at), (2, None), "with the new generation and without the old flag");
}

#[tokio::test]
async fn a_new_task_is_stored_whole() {
    let bench = Bench::new();
    let stored = bench.claim_json(1, purchase_json()).await;
    assert_eq!((stored.kind, stored.state), (ClaimKind::New, TaskState::Claimed), "born claimed (03 §3.1)");
    assert_eq!(stored.faults, [], "nothing is wrong with it");
    let row = bench.task(stored.task).await;
    assert_eq!(row.remote_task_id, remote(1), "the stable number");
    assert_eq!(
        (row.task_type, row.quantity, row.price_cent, row.max_price_cent),
        (TaskType::Purchase, Some(2), Some(3990), Some(4200)),
        "as sent"
    );
    assert_eq!((row.claim.generation, row.claim.execution_id, row.claim.server_version), (1, None, 3), "what start will need");
    assert_eq!((row.owner_user_id, row.owner_device_id), (user(1), device(1)), "whose claim it was");
    let task = stored.task;
    let raw = bench.store.read(move |r| r.task_admin_payload(task)).await.expect("readable").expect("kept");
    assert_eq!(serde_json::from_str::<Value>(&raw).expect("JSON"), purchase_json(), "the raw task is kept for audit");
    assert_eq!(bench.store.read(move |r| r.claim_token(task)).await.expect("sealed"), token(1), "the token moved to the row");
    assert_eq!(
        bench.store.read(|r| r.claim_state(&key(1))).await.expect("readable"),
        Some(AttemptState::Claimed),
        "the attempt is settled"
    );
}

#[tokio::test]
async fn a_200_is_storable_whatever_it_holds() {
    for (name, task) in [
        ("null", json!(null)),
        ("a number", json!(7)),
        ("a list", json!([1, 2])),
        ("empty", json!({})),
        (
            "wrong kinds",
            json!({"task_type": 1, "execution_mode": [], "goods_url": {}, "title": 5, "price_cent": "x", "quantity": 1.5, "priority": "p"}),
        ),
        ("zero quantity", json!({"task_type": "purchase", "execution_mode": "live", "goods_url": "https://x/?goods_id=1", "quantity": 0})),
        (
            "negative money",
            json!({"task_type": "collect", "execution_mode": "dry_run", "goods_url": "https://x/?goods_id=1", "price_cent": -1}),
        ),
        (
            "huge numbers",
            json!({"task_type": "collect", "execution_mode": "dry_run", "goods_url": "https://x/?goods_id=1", "price_cent": u64::MAX, "quantity": u64::MAX, "priority": u64::MAX}),
        ),
        ("unknown type", json!({"task_type": "look", "execution_mode": "yolo", "goods_url": "https://x/?goods_id=1"})),
        ("no goods id", json!({"task_type": "collect", "execution_mode": "dry_run", "goods_url": "https://x/"})),
        (
            "nul and quotes",
            json!({"task_type": "collect", "execution_mode": "dry_run", "goods_url": "\u{0}'\"; DROP TABLE pdd_tasks", "title": "\u{0}"}),
        ),
    ] {
        let bench = Bench::new();
        let open = bench.prepare(1).await;
        let mut standing = standing(remote(1), u64::MAX, None);
        standing.version = 0;
        let answer = ClaimAnswer { standing, task };
        let stored = bench
            .store
            .write(move |tx| tx.claim_store(&open.key, &answer, &answer.task.to_string(), attempt(77), at(1)))
            .await
            .unwrap_or_else(|e| panic!("{name}: a claimed task must never be lost (D5.4): {e:?}"));
        assert_eq!(stored.state, TaskState::Failed, "{name}: bad data fails at once (03 §7.1)");
        assert!(!stored.faults.is_empty(), "{name}: and says what is wrong");
        let id = stored.task;
        let detail = bench.store.read(move |r| r.task_detail(id)).await.expect("readable").expect("stored");
        assert_eq!(detail.runs.len(), 1, "{name}: the report needs an attempt");
        assert_eq!((detail.runs[0].attempt_id, detail.runs[0].attempt_no), (attempt(77), 1), "{name}: the caller's attempt");
        assert_eq!(detail.outbox.len(), 1, "{name}: the server hears of it");
        let body: ResultBody = serde_json::from_str(&detail.outbox[0].payload).expect("a result body");
        body.validate().expect("what is queued is valid");
        assert_eq!(
            (body.event_type, body.execution_id),
            (EventType::TaskFailure, None),
            "{name}: a result from CLAIMED has no execution (D3)"
        );
        assert_eq!(body.failure.expect("failure").code, "BAD_TASK_DATA", "{name}: with its code");
        bench.store.read(|r| r.counts()).await.expect("and the row reads back");
    }
}

#[tokio::test]
async fn reclaiming_moves_what_may_move() {
    let reclaim = |bench: &Bench, n: u128| {
        let answer = ClaimAnswer { standing: standing(remote(n), 5, None), task: collect_json() };
        let store = bench.store.clone();
        async move {
            store
                .write(move |tx| {
                    let outcome = tx.claim_prepare(fresh(500), user(2), device(1), at(9))?;
                    assert!(matches!(outcome, PrepareOutcome::Open(_)), "nothing blocks: {outcome:?}");
                    tx.claim_store(&key(500), &answer, "{}", attempt(500), at(9))
                })
                .await
                .expect("always storable")
        }
    };
    // Failed: comes back, with a clean slate, under its new owner.
    let bench = Bench::new();
    let (task, run) = bench.running(1).await;
    bench.failed(run, Event::PermanentFailure, 3).await;
    let stored = reclaim(&bench, 1).await;
    assert_eq!((stored.task, stored.kind, stored.state), (task, ClaimKind::Reclaimed, TaskState::Claimed), "failed -> claimed (D5.4)");
    let row = bench.task(task).await;
    assert_eq!((row.claim.generation, row.claim.execution_id), (5, None), "a new generation has no execution yet");
    assert_eq!((row.owner_user_id, row.last_error_code, row.finished_at), (user(2), None, None), "it is the new owner's, unfinished");
    assert_eq!(bench.store.read(move |r| r.attempt_no_next(task)).await.expect("readable"), 2, "history stays, so numbers go on");

    // Result pending: the result will be accepted by identity; the row is not taken back.
    let bench = Bench::new();
    let (task, run) = bench.running(1).await;
    bench.collected(run, 3).await;
    let stored = reclaim(&bench, 1).await;
    assert_eq!((stored.kind, stored.state), (ClaimKind::Kept, TaskState::ResultPending), "a result is never thrown away by a claim");
    assert_eq!(bench.task(task).await.claim.generation, 5, "but the claim columns are the newest");

    // A marked purchase goes to a person, whatever its state was.
    let bench = Bench::new();
    let (task, run) = bench.running_purchase(1).await;
    bench.mark(run);
    bench.write(|tx| tx.recover_after_crash(at(3))).await;
    bench.raw().execute("UPDATE pdd_tasks SET status = 'failed' WHERE id = ?1", [task.0]).expect("as after a restored backup");
    let stored = reclaim(&bench, 1).await;
    assert_eq!(stored.state, TaskState::ManualReview, "irreversible_action_at set: look, never buy (D5.4)");
    assert_eq!(bench.task(task).await.current_step.as_deref(), Some("reconcile_purchase"), "and the step says so");
}
