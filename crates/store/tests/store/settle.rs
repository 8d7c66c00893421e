//! How a run ends (03 §5.1, D2).

use cmautobuy_protocol::pdd_data::PddData;
use cmautobuy_protocol::result::{Disposition, EventType, ResultBody, result_key};
use cmautobuy_store::{Ending, NewArtifact, RunStatus, Settle, StoreError};
use cmautobuy_task::{Event, TaskState};
use serde_json::json;

use crate::support::{Bench, at, attempt, device, execution, pdd_data, remote, user};

#[tokio::test]
async fn a_collected_result_is_in_all_three_tables() {
    let bench = Bench::new();
    let (task, run) = bench.running(1).await;
    let settled = bench.collected(run, 5).await;
    let detail = bench.store.read(move |r| r.task_detail(task)).await.expect("readable").expect("stored");
    let (row, run_row, out) = (&detail.task, &detail.runs[0], &detail.outbox[0]);
    assert_eq!(
        (settled.state, row.state),
        (TaskState::ResultPending, TaskState::ResultPending),
        "only the server makes it succeeded (03 §7.2)"
    );
    assert_eq!(row.title.as_deref(), Some("seen title"), "what the page called it");
    assert_eq!(row.goods_id.as_deref(), Some("737116531267"), "the goods id that was seen");
    assert_eq!(row.price_cent, Some(3590), "the lowest available SKU price (03 §3)");
    assert_eq!(row.finished_at, None, "it is not ended before the server says so");
    assert_eq!((run_row.run_status, run_row.finished_at, run_row.has_result), (RunStatus::Succeeded, Some(at(5)), true), "the run is over");
    let run_data = bench.store.read(move |r| r.run_result(run)).await.expect("readable").expect("kept");
    assert_eq!(Some(&run_data), row.pdd_data.as_ref(), "task and run hold the same result (03 §4)");
    assert_eq!(serde_json::from_str::<PddData>(&run_data).expect("reads back"), pdd_data(), "unknown fields included (03 §9)");
    assert_eq!(out.key, result_key(remote(1), attempt(11), EventType::CollectResult), "the key of 03 §5.2");
    assert_eq!(settled.outbox, Some((out.id, out.key.clone())), "and the caller is told");
    assert_eq!((out.user_id, out.device_id, out.attempt_id), (user(1), device(1), attempt(11)), "whose it is (D8)");
    let body: ResultBody = serde_json::from_str(&out.payload).expect("a result body");
    body.validate().expect("what is queued is valid");
    assert_eq!(
        (body.event_type, body.disposition, body.claim_generation, body.execution_id, body.attempt_id, body.attempt_no, body.finished_at),
        (EventType::CollectResult, Disposition::Succeeded, 1, Some(execution(1)), attempt(11), 1, at(5)),
        "identity, by which the server accepts it (D3)"
    );
    assert_eq!(body.pdd_data, Some(pdd_data()), "and the data");
    let error = bench
        .store
        .write(move |tx| tx.save_result_and_enqueue(&Settle { run, ending: Ending::Collected(Box::new(pdd_data())) }, at(6)))
        .await
        .expect_err("a run ends once");
    assert!(matches!(error, StoreError::Illegal { .. }), "a late callback must not end it twice: {error:?}");
}

#[tokio::test]
async fn every_reported_failure_lands_where_next_says() {
    for (event, state, run_status, disposition) in [
        (Event::NeedsPerson, TaskState::ManualReview, RunStatus::ManualReview, Disposition::ManualReview),
        (Event::PermanentFailure, TaskState::Failed, RunStatus::Failed, Disposition::Failed),
        (Event::OperatorStopped, TaskState::Cancelled, RunStatus::Cancelled, Disposition::Cancelled),
        (Event::CancelRequested, TaskState::Cancelled, RunStatus::Cancelled, Disposition::Cancelled),
    ] {
        let bench = Bench::new();
        let (task, run) = bench.running(1).await;
        let settled = bench.failed(run, event, 5).await;
        assert_eq!(settled.state, state, "{event:?} (D2)");
        let detail = bench.store.read(move |r| r.task_detail(task)).await.expect("readable").expect("stored");
        assert_eq!((detail.task.state, detail.runs[0].run_status), (state, run_status), "{event:?}: task and run agree");
        assert_eq!(detail.task.finished_at.is_some(), state.is_terminal(), "{event:?}: finished means ended");
        assert_eq!(
            (detail.task.last_error_code.as_deref(), detail.runs[0].error_code.as_deref()),
            (Some("CODE"), Some("CODE")),
            "{event:?}"
        );
        let body: ResultBody = serde_json::from_str(&detail.outbox[0].payload).expect("a result body");
        assert_eq!((body.event_type, body.disposition), (EventType::TaskFailure, disposition), "{event:?}: as the server must read it");
        assert_eq!(detail.outbox[0].key, result_key(remote(1), attempt(11), EventType::TaskFailure), "{event:?}: failure-v1");
    }
}

#[tokio::test]
async fn what_may_not_be_reported_is_refused_whole() {
    let bench = Bench::new();
    let (_, run) = bench.running(1).await;
    let before = bench.dump();
    let mut untitled = pdd_data();
    untitled.goods.title.clear();
    let mut huge = pdd_data();
    huge.extra.insert("padding".to_owned(), json!("x".repeat(cmautobuy_protocol::MAX_RESULT_BYTES)));
    let failure = |event, code: &str| Ending::Failure { event, code: code.to_owned(), message: "m".to_owned() };
    for (name, ending) in [
        ("invalid data", Ending::Collected(Box::new(untitled))),
        ("too large", Ending::Collected(Box::new(huge))),
        ("a retry is not reported", failure(Event::RecoverableFailure, "TIMEOUT")),
        ("not an ending", failure(Event::RunStarted, "X")),
        ("success is the server's word", failure(Event::Accepted, "X")),
        ("no code", failure(Event::NeedsPerson, "")),
    ] {
        // The error is swallowed on purpose: even then nothing may be half-written.
        let refused = bench.write(move |tx| Ok(tx.save_result_and_enqueue(&Settle { run, ending }, at(5)).is_err())).await;
        assert!(refused, "{name}");
        assert_eq!(bench.dump(), before, "{name}: nothing is written");
    }
    bench.collected(run, 6).await;
}

#[tokio::test]
async fn a_result_of_a_purchase_keeps_the_price_it_was_ordered_at() {
    let bench = Bench::new();
    let (task, run) = bench.running_purchase(1).await;
    let mut data = pdd_data();
    data.purchase = serde_json::from_value(json!({
        "mode": "dry_run", "requested": {"options": {"color": "黑"}, "quantity": 1, "max_price_cent": 4200}, "confirmed": null,
        "confirmation_reached": true, "order_submitted": false, "payment_attempted": false, "payment_status": null,
        "order_no": null, "ordered_at": null, "ordered_at_raw": null, "match_status": "not_submitted"
    }))
    .expect("03 §8.2");
    bench.write(move |tx| tx.save_result_and_enqueue(&Settle { run, ending: Ending::Collected(Box::new(data)) }, at(5))).await;
    let detail = bench.store.read(move |r| r.task_detail(task)).await.expect("readable").expect("stored");
    assert_eq!(detail.outbox[0].event_type, EventType::PurchaseResult, "the event follows the task");
    assert_eq!(detail.task.price_cent, Some(3990), "safety limits are measured from the price the task came with (D10)");
}

#[tokio::test]
async fn retries_wait_and_then_fail_with_a_report() {
    let bench = Bench::new();
    let task = bench.claimed(1).await;
    for (n, want) in [(1, TaskState::RetryWait), (2, TaskState::RetryWait), (3, TaskState::Failed)] {
        let run = bench.start(task, 1).await;
        let state = bench.write(move |tx| tx.run_suspend_retry(run, "TIMEOUT", "page did not load", 2, at(10 * n))).await;
        assert_eq!(state, want, "run {n} of a task that may be retried twice");
        let next = bench.store.read(|r| r.retry_next()).await.expect("readable");
        assert_eq!(next.map(|t| t.id), (want == TaskState::RetryWait).then_some(task), "run {n}: the worker finds it again");
        let unsent = bench.store.read(|r| r.outbox_counts()).await.expect("readable").unsent();
        assert_eq!(unsent, u64::from(want == TaskState::Failed), "run {n}: only the end is reported (D2)");
    }
    let row = bench.task(task).await;
    assert_eq!((row.retry_count, row.last_error_code.as_deref()), (3, Some("TIMEOUT")), "each failure counted");
    let runs = bench.store.read(move |r| r.run_list(task)).await.expect("readable");
    assert_eq!(runs.iter().map(|r| r.attempt_no).collect::<Vec<_>>(), [3, 2, 1], "each run kept (03 §7.2)");
}

#[tokio::test]
async fn a_purchase_is_not_retried_by_itself() {
    let bench = Bench::new();
    let (task, run) = bench.running_purchase(1).await;
    let state = bench.write(move |tx| tx.run_suspend_retry(run, "DEVICE_GONE", "cable", 5, at(5))).await;
    assert_eq!(state, TaskState::ManualReview, "even for a device error (03 §7.3)");
    let out = bench.store.read(move |r| r.outbox_of_task(task)).await.expect("readable");
    assert_eq!(out.len(), 1, "and the reviewers hear of it (D2)");
}

#[tokio::test]
async fn a_marked_purchase_only_goes_to_a_person() {
    let bench = Bench::new();
    let (task, run) = bench.running_purchase(1).await;
    bench.mark(run);
    let stop = move |event| Settle { run, ending: Ending::Failure { event, code: "X".to_owned(), message: "m".to_owned() } };
    for event in [Event::OperatorStopped, Event::CancelRequested] {
        bench
            .store
            .write(move |tx| tx.save_result_and_enqueue(&stop(event), at(4)))
            .await
            .expect_err("past the mark a stop is ignored (D9)");
    }
    let settled = bench.failed(run, Event::PermanentFailure, 5).await;
    assert_eq!(settled.state, TaskState::ManualReview, "an order may exist");
    assert_eq!(bench.task(task).await.current_step.as_deref(), Some("reconcile_purchase"), "the step says what is to be done");
}

#[tokio::test]
async fn steps_artifacts_and_diagnostics_belong_to_their_run() {
    let bench = Bench::new();
    let (task, run) = bench.running(1).await;
    bench.write(move |tx| tx.run_step(run, "open_goods", at(3))).await;
    assert_eq!(bench.task(task).await.current_step.as_deref(), Some("open_goods"), "shown in the list");
    let artifact = |path: &str| NewArtifact {
        run,
        kind: "tree".to_owned(),
        capture_id: Some("c1".to_owned()),
        step: Some("open_goods".to_owned()),
        relative_path: path.to_owned(),
        sha256: "a".repeat(64),
        size_bytes: 12,
        summary: "goods page".to_owned(),
        skew_ms: Some(-40),
    };
    let good = artifact("artifacts/2026-08-06/t/1/tree-1.xml");
    let id = bench.write(move |tx| tx.artifact_add(&good, at(3))).await;
    for bad in ["", "/etc/passwd", "../x", "a/../b", "a//b", "C:/x", "a\\b", "a/what?.xml", "a/\u{0}"] {
        let bad = artifact(bad);
        bench.store.write(move |tx| tx.artifact_add(&bad, at(3))).await.expect_err("a path must stay below the folder and suit NTFS (D12)");
    }
    bench.write(move |tx| tx.run_diagnostics(run, &json!({"schema_version": 1, "dumps": 4}), at(4))).await;
    bench
        .store
        .write(move |tx| tx.run_diagnostics(run, &json!({"dumps": 4}), at(4)))
        .await
        .expect_err("every JSON root has a version (03 §9)");
    let old = bench.store.read(|r| r.artifact_expired(at(10), 5)).await.expect("readable");
    assert_eq!(old.iter().map(|a| a.id).collect::<Vec<_>>(), [id], "retention finds it");
    bench.write(move |tx| tx.artifact_deleted(id, at(20))).await;
    assert_eq!(bench.store.read(|r| r.artifact_expired(at(10), 5)).await.expect("readable"), [], "once");
    bench.collected(run, 30).await;
    let detail = bench.store.read(move |r| r.task_detail(task)).await.expect("readable").expect("stored");
    assert_eq!(
        (detail.artifacts[0].size_bytes, detail.artifacts[0].deleted_at),
        (12, Some(at(20))),
        "the tombstone keeps size and hash (D12)"
    );
    assert_eq!(detail.runs[0].artifact_directory.as_deref(), Some("artifacts/2026-08-06/t/1"), "the run knows its folder");
    assert_eq!(detail.runs[0].diagnostics_json.as_deref(), Some("{\"schema_version\":1,\"dumps\":4}"), "diagnostics kept");
    let error = bench.store.write(move |tx| tx.run_step(run, "late", at(40))).await.expect_err("over");
    assert!(matches!(error, StoreError::NotOpen { .. }), "a late step of a dead worker is not written: {error:?}");
}

#[tokio::test]
async fn collecting_again_keeps_history_and_asks_the_server_first() {
    let bench = Bench::new();
    let (task, run) = bench.running(1).await;
    let settled = bench.collected(run, 5).await;
    let again = || bench.store.write(move |tx| tx.recollect(task, at(6)));
    again().await.expect_err("the result has not reached the server (03 §7.1)");
    bench.deliver(&settled, 6).await;
    again().await.expect("a person may ask for a fresh look");
    let row = bench.task(task).await;
    assert_eq!(
        (row.state, row.claim.execution_id, row.finished_at),
        (TaskState::Claimed, Some(execution(1)), None),
        "claimed with its execution"
    );
    assert!(row.pdd_data.is_some(), "the last result stays visible meanwhile");
    let next = bench.store.read(|r| r.claimed_next()).await.expect("readable");
    assert_eq!(next.map(|t| t.id), Some(task), "the worker finds it");
    let second = bench.start(task, 1).await;
    bench.collected(second, 9).await;
    let runs = bench.store.read(move |r| r.run_list(task)).await.expect("readable");
    assert_eq!(
        runs.iter().map(|r| (r.attempt_no, r.has_result)).collect::<Vec<_>>(),
        [(2, true), (1, true)],
        "both results are kept (03 §4)"
    );

    let never = bench.claim_json(2, json!({"task_type": "collect"})).await.task;
    let out = bench.store.read(move |r| r.outbox_of_task(never)).await.expect("readable")[0].id;
    bench.write(move |tx| tx.outbox_accepted(out, &crate::support::accepted(), at(9))).await;
    let error = bench.store.write(move |tx| tx.recollect(never, at(10))).await.expect_err("never started");
    assert!(matches!(error, StoreError::NeverStarted(_)), "the server would refuse to resume it (D4): {error:?}");
}

#[tokio::test]
async fn a_recollect_can_be_stopped_before_it_starts() {
    let bench = Bench::new();
    let (task, run) = bench.running(1).await;
    let settled = bench.collected(run, 5).await;
    bench.deliver(&settled, 6).await;
    bench.write(move |tx| tx.recollect(task, at(7))).await;
    let stopped = bench.write(move |tx| tx.stop_claimed(task, attempt(12), at(8))).await;
    assert_eq!(stopped.state, TaskState::Cancelled, "a person stopped it");
    let out = bench.store.read(move |r| r.outbox_of_task(task)).await.expect("readable");
    let body: ResultBody = serde_json::from_str(&out[1].payload).expect("a result body");
    assert_eq!((body.disposition, body.attempt_no), (Disposition::Cancelled, 2), "after the first start a stop is a report (D2)");
}
