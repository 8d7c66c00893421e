//! Lifecycle calls (D5).

use cmautobuy_protocol::{OwnTask, ServerStatus};
use cmautobuy_store::{CallKind, CallState, NewCall, RefusedEffect, ReleaseAim, RunStatus, StoreError};
use cmautobuy_task::{Event, TaskState};

use crate::support::{Bench, LONGEST, at, attempt, device, execution, key, phone, remote, standing, token, user};

fn call(task: cmautobuy_store::LocalTaskId, kind: CallKind, n: u128, attempt_no: Option<(u128, u32)>) -> NewCall {
    NewCall { task, kind, key: key(n), body_json: format!("{{\"n\":{n}}}"), attempt: attempt_no.map(|(a, no)| (attempt(a), no)) }
}

#[tokio::test]
async fn an_intent_is_performed_by_its_owner_until_answered() {
    let bench = Bench::new();
    let task = bench.claimed(1).await;
    let id = bench.write(move |tx| tx.call_open(&call(task, CallKind::Start, 70, Some((11, 1))), at(1))).await;
    let due = |u: u128, seconds: i64| {
        let store = bench.store.clone();
        async move { store.read(move |r| r.call_due(user(u), device(1), at(seconds), LONGEST)).await.expect("readable") }
    };
    let row = due(1, 1).await.expect("due at once");
    assert_eq!((row.id, row.key, row.body_json.as_str(), row.attempt), (id, key(70), "{\"n\":70}", Some((attempt(11), 1))), "as intended");
    assert_eq!((row.remote_task_id, row.token, row.generation), (remote(1), token(1), 1), "with all its request needs");
    assert_eq!(due(2, 1).await, None, "another login leaves it alone");
    bench.write(move |tx| tx.call_retry_later(id, at(60), "timeout", at(2))).await;
    for (seconds, is_due, why) in [
        (59, false, "a second early"),
        (60, true, "its time has come"),
        (-241, true, "further away than the longest back-off: the clock was set back (D8)"),
        (-240, false, "exactly the longest back-off is believed"),
    ] {
        assert_eq!(due(1, seconds).await.is_some(), is_due, "{why}");
    }
    let error = bench
        .store
        .write(move |tx| tx.call_open(&call(task, CallKind::Release { aim: ReleaseAim::OperatorStopped }, 71, None), at(3)))
        .await
        .expect_err("one at a time");
    assert!(matches!(error, StoreError::CallOpen { open, .. } if open == id), "the open call is named: {error:?}");
    bench.write(move |tx| tx.call_answered_start(id, &standing(remote(1), 1, Some(execution(1))), &phone(), at(61))).await;
    assert_eq!(due(1, 1000).await, None, "answered calls are over");
    let record = bench.store.read(move |r| r.call_get(id)).await.expect("readable").expect("kept");
    assert_eq!((record.state, record.attempt_count), (CallState::Done, 1), "the record stays");
    let error = bench
        .store
        .write(move |tx| tx.call_answered_start(id, &standing(remote(1), 1, Some(execution(1))), &phone(), at(62)))
        .await
        .expect_err("a second answer");
    assert!(matches!(error, StoreError::NotOpen { .. }), "an answer is applied once: {error:?}");
}

#[tokio::test]
async fn a_granted_start_makes_the_run() {
    let bench = Bench::new();
    let (task, run) = bench.running(1).await;
    let row = bench.task(task).await;
    assert_eq!(
        (row.state, row.claim.execution_id, row.claim.server_version),
        (TaskState::Running, Some(execution(1)), 3),
        "running only now (D2)"
    );
    assert_eq!(row.started_at, Some(at(1)), "started");
    let (_, now) = bench.store.read(|r| r.running()).await.expect("readable").expect("one runs");
    assert_eq!(
        (now.id, now.attempt_id, now.attempt_no, now.run_status),
        (run, attempt(11), 1, RunStatus::Running),
        "with the attempt of the call"
    );
    assert_eq!((now.device_address.as_str(), now.phone_serial.as_deref()), ("127.0.0.1:5555", Some("SIM-1")), "and the phone (D19)");
}

#[tokio::test]
async fn an_answer_without_execution_is_not_applied() {
    let bench = Bench::new();
    let task = bench.claimed(1).await;
    let id = bench.write(move |tx| tx.call_open(&call(task, CallKind::Start, 70, Some((11, 1))), at(1))).await;
    bench
        .store
        .write(move |tx| tx.call_answered_start(id, &standing(remote(1), 1, None), &phone(), at(2)))
        .await
        .expect_err("a start without an execution is no start");
    assert_eq!(bench.state(task).await, TaskState::Claimed, "nothing moved");
    let open = bench.store.read(move |r| r.call_open_of(task)).await.expect("readable");
    assert_eq!(open.map(|c| c.id), Some(id), "and the call is asked again");
}

#[tokio::test]
async fn a_lease_lost_resume_renews_the_run_under_way() {
    let bench = Bench::new();
    let (task, run) = bench.running(1).await;
    let started = bench
        .write(move |tx| {
            let id = tx.call_open(&call(task, CallKind::Resume, 71, Some((11, 1))), at(5))?;
            tx.call_answered_start(id, &standing(remote(1), 1, Some(execution(1))), &phone(), at(6))
        })
        .await;
    assert_eq!(started.run, run, "the same attempt goes on (D3)");
    let runs = bench.store.read(move |r| r.run_list(task)).await.expect("readable");
    assert_eq!(runs.len(), 1, "no second run row");
}

#[tokio::test]
async fn what_cannot_be_answered_is_not_opened() {
    let bench = Bench::new();
    let claimed = bench.claimed(1).await;
    for (kind, attempt, why) in [
        (CallKind::Start, None, "a start without attempt"),
        (CallKind::Release { aim: ReleaseAim::OperatorStopped }, Some((11, 1)), "a release with one"),
        (CallKind::Resume, Some((11, 1)), "a resume before any start"),
        (CallKind::CancelAck, None, "a cancel-ack before any start"),
    ] {
        bench.store.write(move |tx| tx.call_open(&call(claimed, kind, 70, attempt), at(1))).await.expect_err(why);
    }
    let run = bench.start(claimed, 1).await;
    for (kind, attempt, why) in [
        (CallKind::Start, Some((12, 2)), "a second start while one runs"),
        (CallKind::Release { aim: ReleaseAim::OperatorStopped }, None, "a release after the start (D2)"),
    ] {
        bench.store.write(move |tx| tx.call_open(&call(claimed, kind, 70, attempt), at(1))).await.expect_err(why);
    }
    bench.collected(run, 3).await;
    bench
        .store
        .write(move |tx| tx.call_open(&call(claimed, CallKind::Resume, 70, Some((12, 2))), at(1)))
        .await
        .expect_err("a task with a result waiting does not run");
}

#[tokio::test]
async fn releases_and_cancels_end_as_aimed() {
    for (aim, want) in [(ReleaseAim::OperatorStopped, TaskState::Cancelled), (ReleaseAim::PhoneUnreachable, TaskState::RetryWait)] {
        let bench = Bench::new();
        let task = bench.claimed(1).await;
        let state = bench
            .write(move |tx| {
                let id = tx.call_open(&call(task, CallKind::Release { aim }, 70, None), at(1))?;
                tx.call_answered_release(id, &standing(remote(1), 1, None), at(2))
            })
            .await;
        assert_eq!(state, want, "{aim:?} (D2)");
        let error = bench.store.read(move |r| r.claim_token(task)).await.expect_err("given back");
        assert!(matches!(error, StoreError::NoClaimToken(_)), "a token given back does not lie about: {error:?}");
        assert_eq!(bench.store.read(|r| r.retry_next()).await.expect("readable"), None, "without an execution it waits for a new claim");
        assert_eq!(bench.store.read(|r| r.outbox_counts()).await.expect("readable").unsent(), 0, "the call itself was the message");
    }
    // cancel-ack of a running task ends its run without a report.
    let bench = Bench::new();
    let (task, run) = bench.running(1).await;
    assert_eq!(bench.write(|tx| tx.cancel_requested(&[remote(1), remote(99)], at(3))).await, 1, "only the task that is here learns it");
    assert_eq!(bench.write(|tx| tx.cancel_requested(&[remote(1)], at(4))).await, 0, "once");
    assert_eq!(bench.task(task).await.cancel_requested_at, Some(at(3)), "noted with its time");
    let state = bench
        .write(move |tx| {
            let id = tx.call_open(&call(task, CallKind::CancelAck, 71, None), at(5))?;
            tx.call_answered_cancel_ack(id, &standing(remote(1), 1, Some(execution(1))), at(6))
        })
        .await;
    assert_eq!(state, TaskState::Cancelled, "the server asked (D9)");
    let run = bench.store.read(move |r| r.run_get(run)).await.expect("readable").expect("kept");
    assert_eq!((run.run_status, run.finished_at), (RunStatus::Cancelled, Some(at(6))), "its run is over");
    assert_eq!(bench.store.read(|r| r.outbox_counts()).await.expect("readable").unsent(), 0, "no second report");
}

#[tokio::test]
async fn a_refusal_moves_what_it_concerns() {
    use RefusedEffect as E;
    #[derive(Clone, Copy, Debug)]
    enum From {
        Claimed,
        RetryWait,
        Running,
    }
    for (from, effect, want) in [
        (From::Claimed, E::ClaimLost, TaskState::Cancelled),
        (From::Claimed, E::EndedOnServerCancelled, TaskState::Cancelled),
        (From::Claimed, E::EndedOnServerFailed, TaskState::Cancelled),
        (From::Claimed, E::LeaseExpired, TaskState::Claimed),
        (From::Claimed, E::NewIntentNeeded, TaskState::Claimed),
        (From::Claimed, E::Nothing, TaskState::Claimed),
        (From::RetryWait, E::ClaimLost, TaskState::Cancelled),
        (From::RetryWait, E::EndedOnServerCancelled, TaskState::Cancelled),
        (From::RetryWait, E::EndedOnServerFailed, TaskState::Failed),
        (From::RetryWait, E::LeaseExpired, TaskState::RetryWait),
        (From::Running, E::ClaimLost, TaskState::Cancelled),
        (From::Running, E::EndedOnServerCancelled, TaskState::Cancelled),
        (From::Running, E::EndedOnServerFailed, TaskState::Failed),
        (From::Running, E::Nothing, TaskState::Running),
    ] {
        let bench = Bench::new();
        let task = bench.claimed(1).await;
        let (kind, attempt) = match from {
            From::Claimed => (CallKind::Start, (11, 1)),
            From::RetryWait => {
                let run = bench.start(task, 1).await;
                bench.write(move |tx| tx.run_suspend_retry(run, "TIMEOUT", "page", 3, at(2))).await;
                (CallKind::Resume, (12, 2))
            }
            From::Running => {
                bench.start(task, 1).await;
                (CallKind::Resume, (11, 1))
            }
        };
        let own = OwnTask { status: ServerStatus::Failed, version: 9, execution_id: None };
        let state = bench
            .write(move |tx| {
                let id = tx.call_open(&call(task, kind, 80, Some(attempt)), at(3))?;
                tx.call_refused(id, "CODE", "message", effect, Some(&own), at(4))
            })
            .await;
        assert_eq!(state, want, "{from:?} refused with {effect:?} (D5.5)");
        let row = bench.task(task).await;
        assert_eq!((row.state, row.claim.server_version), (want, 9), "{from:?} x {effect:?}: the row says the same and knows the version");
        assert_eq!(bench.store.read(|r| r.outbox_counts()).await.expect("readable").unsent(), 0, "{from:?} x {effect:?}: no report (D5.5)");
        let running = bench.store.read(|r| r.running()).await.expect("readable");
        assert_eq!(running.is_some(), want == TaskState::Running, "{from:?} x {effect:?}: an ended task has no living run");
        assert!(!bench.store.read(|r| r.any_call_open()).await.expect("readable"), "{from:?} x {effect:?}: the call is settled");
    }
}

#[tokio::test]
async fn a_marked_purchase_refused_by_the_server_goes_to_a_person() {
    let bench = Bench::new();
    let (task, run) = bench.running_purchase(1).await;
    let state = bench.write(move |tx| tx.call_open(&call(task, CallKind::Resume, 80, Some((11, 1))), at(3))).await;
    bench.mark(run);
    let state =
        bench.write(move |tx| tx.call_refused(state, "TASK_CANCELED", "gone", RefusedEffect::EndedOnServerCancelled, None, at(4))).await;
    assert_eq!(state, TaskState::ManualReview, "an order may exist: look, never forget (D9)");
    assert_eq!(bench.task(task).await.current_step.as_deref(), Some("reconcile_purchase"), "the step says what is to be done");
}

#[tokio::test]
async fn a_version_conflict_needs_a_new_intent() {
    let bench = Bench::new();
    let task = bench.claimed(1).await;
    let own = OwnTask { status: ServerStatus::Claimed, version: 12, execution_id: None };
    bench
        .write(move |tx| {
            let id = tx.call_open(&call(task, CallKind::Start, 80, Some((11, 1))), at(3))?;
            tx.call_refused(id, "VERSION_CONFLICT", "read again", RefusedEffect::NewIntentNeeded, Some(&own), at(4))
        })
        .await;
    let no = bench.store.read(move |r| r.attempt_no_next(task)).await.expect("readable");
    assert_eq!(no, 2, "a number once sent is never given to another attempt (D3)");
    assert_eq!(bench.task(task).await.claim.server_version, 12, "the new intent is made from the version the refusal told");
    bench.write(move |tx| tx.call_open(&call(task, CallKind::Start, 81, Some((12, 2))), at(5))).await;
}

#[tokio::test]
async fn a_heartbeat_answer_is_remembered_for_its_generation_only() {
    let bench = Bench::new();
    let (task, _) = bench.running(1).await;
    let mut now = standing(remote(1), 1, Some(execution(1)));
    (now.version, now.cancel_requested) = (8, true);
    bench.write(move |tx| tx.standing_seen(task, &now, at(5))).await;
    let row = bench.task(task).await;
    assert_eq!((row.claim.server_version, row.cancel_requested_at), (8, Some(at(5))), "version and cancel are kept");
    let mut late = standing(remote(1), 0, Some(execution(9)));
    late.version = 99;
    bench.write(move |tx| tx.standing_seen(task, &late, at(6))).await;
    let row = bench.task(task).await;
    assert_eq!(
        (row.claim.server_version, row.claim.execution_id),
        (8, Some(execution(1))),
        "an answer about another generation is ignored"
    );
}

#[tokio::test]
async fn a_task_refused_its_state_keeps_it() {
    let bench = Bench::new();
    let (task, run) = bench.running(1).await;
    bench.failed(run, Event::NeedsPerson, 3).await;
    bench
        .write(move |tx| {
            let id = tx.call_open(&call(task, CallKind::CancelAck, 80, None), at(4))?;
            tx.call_refused(id, "ILLEGAL_STATE", "no", RefusedEffect::EndedOnServerFailed, None, at(5))
        })
        .await;
    assert_eq!(bench.state(task).await, TaskState::ManualReview, "what waits for a person stays with the person");
}
