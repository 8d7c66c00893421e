//! Start, heartbeat, release, cancel (T-205 §6-§11, D4).

use std::collections::HashSet;

use axum::http::StatusCode;
use cmautobuy_protocol::lifecycle::{ClaimAnswer, RunHeartbeat, Standing};
use cmautobuy_protocol::{ErrorCode, ExecutionId, ServerStatus};
use uuid::Uuid;

use crate::world::{Claim, Client, World, key_at, token};

#[tokio::test]
async fn t205_7_start_makes_one_execution_under_a_run_lease() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let task = world.task();
    let claim = ann.claim().await;
    let key = key_at(world.now());
    let started: Standing = ann.start_with(&claim, &key).await.ok();
    assert_eq!((started.status, started.version), (ServerStatus::Running, claim.standing.version + 1), "one transition, one version");
    assert_eq!(started.lease_expires_at.map(|end| end.ms_since(started.server_time)), Some(90_000), "the run lease is 90 s");
    let detail = world.detail(task);
    assert_eq!(detail.executions.len(), 1, "exactly one execution");
    assert_eq!(Some(detail.executions[0].execution_id), started.execution_id, "the one that was answered");
    ann.start(&claim).await.is(409, ErrorCode::IllegalState, "another key must not start it twice");
    assert_eq!(world.detail(task).executions.len(), 1, "still one execution");
}

#[tokio::test]
async fn d3_a_replayed_start_repeats_the_execution_and_extends_nothing() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    world.task();
    let claim = ann.claim().await;
    let key = key_at(world.now());
    let first: Standing = ann.start_with(&claim, &key).await.ok();
    world.advance_s(300);
    let again: Standing = ann.start_with(&claim, &key).await.ok();
    assert_eq!(again.execution_id, first.execution_id, "after 5 min the same key still names the same execution");
    assert_eq!(again.lease_expires_at, first.lease_expires_at, "the lease ran out and stays so: resume before any tap");
    let mut other = claim.clone();
    other.standing.version += 1;
    ann.start_with(&other, &key).await.is(409, ErrorCode::IdempotencyConflict, "the same key with another body is another request");
}

#[tokio::test]
async fn t205_6_only_the_holder_with_its_token_and_a_live_lease_may_start_or_release() {
    let world = World::new();
    let (ann, bob) = (world.buyer("ann").await, world.buyer("bob").await);
    world.task();
    let claim = ann.claim().await;
    let body = bob.start(&claim).await.is(404, ErrorCode::NotFound, "bob never had this task");
    assert_eq!(body.error.task, None, "nothing of it may be told");
    bob.release(&claim).await.is(404, ErrorCode::NotFound, "nor may he release it");
    let forged = Claim { token: token(), ..claim.clone() };
    let body = ann.start(&forged).await.is(409, ErrorCode::ClaimLost, "the wrong token proves nothing");
    assert_eq!(body.error.task, None, "and is told nothing");
    ann.release(&forged).await.is(409, ErrorCode::ClaimLost, "the wrong token releases nothing");
    let mut old = claim.clone();
    old.standing.claim_generation = 7;
    let body = ann.start(&old).await.is(409, ErrorCode::ExecutionMismatch, "another generation is another claim");
    assert!(body.error.task.is_some(), "D5: the caller's own task says where it stands");
    let mut stale = claim.clone();
    stale.standing.version = 99;
    let body = ann.start(&stale).await.is(409, ErrorCode::VersionConflict, "the version must be the current one");
    assert_eq!(body.error.task.map(|task| task.version), Some(claim.standing.version), "D5: so that no second call is needed");
    ann.release(&stale).await.is(409, ErrorCode::VersionConflict, "release checks it too");
    world.advance_s(600);
    ann.start(&claim).await.is(409, ErrorCode::LeaseExpired, "a claim ends at its 10 min");
    ann.release(&claim).await.is(409, ErrorCode::LeaseExpired, "nothing to release any more");
    bob.beat().await.ok::<serde_json::Value>();
    bob.claim().await;
    let body = ann.start(&claim).await.is(409, ErrorCode::ClaimLost, "bob has it now");
    assert_eq!(body.error.task, None, "T-205 §11: another's task is not told");
}

#[tokio::test]
async fn t205_8_heartbeats_renew_a_live_lease_and_note_the_step() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let task = world.task();
    let claim = ann.running().await;
    for (n, step) in ["open_goods", "read_title", "read_prices"].into_iter().enumerate() {
        world.advance_s(80);
        let standing: Standing = ann.run_beat(&claim, step).await.ok();
        assert_eq!(standing.lease_expires_at.map(|end| end.ms_since(world.now())), Some(90_000), "beat {n} renews the full 90 s");
        assert_eq!(standing.version, claim.standing.version, "beat {n}: T-205 §11, a heartbeat is no transition");
        assert_eq!(world.summary(task).current_step.as_deref(), Some(step), "beat {n}: the step is shown");
    }
    assert_eq!(world.event_kinds(task), ["TASK_CREATED", "TASK_CLAIMED", "RUN_STARTED"], "T-205 §11: heartbeats append no events");
    let wrong = RunHeartbeat { claim_generation: 1, execution_id: ExecutionId::from_uuid(Uuid::from_bytes([3; 16])), step: "x".to_owned() };
    let headers = [("x-claim-token", claim.token.reveal())];
    let path = format!("/tasks/{task}/heartbeat");
    ann.post(&path, &headers, &wrong).await.is(409, ErrorCode::ExecutionMismatch, "another execution must not renew this one");
    ann.run_beat(&claim, "").await.is(422, ErrorCode::Malformed, "a step has a name");
}

#[tokio::test]
async fn t205_8_a_run_that_ran_out_is_not_renewed_and_never_given_to_another() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let task = world.task();
    let claim = ann.running().await;
    world.advance_s(90);
    let body = ann.run_beat(&claim, "late").await.is(409, ErrorCode::LeaseExpired, "90 s are over");
    assert_eq!(body.error.task.map(|task| task.status), Some(ServerStatus::Running), "the task stays where it was");
    world.advance_s(100 * 24 * 3600);
    let bob = world.buyer("bob").await;
    assert_eq!(
        bob.try_claim().await.status,
        StatusCode::NO_CONTENT,
        "a started task never goes back to the queue, not even after 100 days"
    );
    assert_eq!(world.summary(task).status, ServerStatus::Running, "nothing moved it");
    let again = world.client("ann", ann.user, ann.device).await;
    again.beat().await.ok::<serde_json::Value>();
    world.task();
    again.try_claim().await.is(409, ErrorCode::DeviceBusy, "T-205 §5: any RUNNING keeps the device's slot");
}

#[tokio::test]
async fn t205_9_release_gives_the_task_back_and_forgets_the_holder() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let task = world.task();
    let claim = ann.claim().await;
    let key = key_at(world.now());
    let released: Standing = ann.release_with(&claim, &key).await.ok();
    assert_eq!((released.status, released.lease_expires_at), (ServerStatus::Pending, None), "back in the queue without a lease");
    let summary = world.summary(task);
    assert_eq!((summary.user_id, summary.device_id, summary.claim_generation), (None, None, 1), "user and device are cleared");
    ann.start(&claim).await.is(409, ErrorCode::ClaimLost, "what was released is no longer held");
    let bob = world.buyer("bob").await;
    let taken = bob.running().await;
    assert_eq!(taken.task, task, "another device takes it");
    let replay: Standing = ann.release_with(&claim, &key).await.ok();
    assert_eq!(
        (replay.status, replay.version, replay.execution_id),
        (ServerStatus::Pending, released.version, None),
        "a replay tells nothing of bob's run"
    );
    bob.release(&taken).await.is(409, ErrorCode::IllegalState, "a started task cannot be released");
}

#[tokio::test]
async fn t205_10_cancel_before_the_start_is_at_once() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let pending = world.task();
    assert_eq!(world.server.admin().cancel(pending).expect("cancel").status, ServerStatus::Canceled, "nobody had it");
    let task = world.task();
    let claim = ann.claim().await;
    assert_eq!(claim.task, task, "a cancelled task is not given out");
    assert_eq!(world.server.admin().cancel(task).expect("cancel").status, ServerStatus::Canceled, "it was not started");
    let body = ann.start(&claim).await.is(409, ErrorCode::TaskCanceled, "the holder learns it at its next call");
    assert_eq!(body.error.task.map(|task| task.status), Some(ServerStatus::Canceled), "with where its task stands");
    ann.release(&claim).await.is(409, ErrorCode::TaskCanceled, "release learns it too");
    let next = world.task();
    assert_eq!(ann.claim().await.task, next, "the device is free again");
    let refused = world.server.admin().cancel(pending).expect_err("a cancelled task cannot be cancelled");
    assert_eq!(refused.refusal().map(|r| r.code.clone()), Some(ErrorCode::IllegalState), "T-205 §11: terminal states never regress");
}

#[tokio::test]
async fn t205_10_cancel_of_a_run_is_a_request_until_the_device_acknowledges() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let task = world.task();
    let claim = ann.running().await;
    ann.cancel_ack(&claim, claim.standing.version).await.is(409, ErrorCode::IllegalState, "nobody asked yet");
    let asked = world.server.admin().cancel(task).expect("ask to cancel");
    assert_eq!((asked.status, asked.cancel_requested), (ServerStatus::Running, true), "it does not pretend to have stopped");
    let twice = world.server.admin().cancel(task).expect("asking twice is fine");
    assert_eq!(twice.version, asked.version, "and changes nothing");
    let standing: Standing = ann.run_beat(&claim, "read_prices").await.ok();
    assert!(standing.cancel_requested, "the run learns it at its heartbeat");
    ann.cancel_ack(&claim, claim.standing.version).await.is(409, ErrorCode::VersionConflict, "the ack names the version it saw");
    world.advance_s(3600);
    let again = world.client("ann", ann.user, ann.device).await;
    let done: Standing = again.cancel_ack(&claim, standing.version).await.ok();
    assert_eq!(done.status, ServerStatus::Canceled, "D4: identity is enough, the lease ran out long ago");
    let detail = world.detail(task);
    assert!(detail.executions[0].finished_at.is_some(), "T-205 §10: the execution ends");
    let kinds = world.event_kinds(task);
    assert_eq!(kinds, ["TASK_CREATED", "TASK_CLAIMED", "RUN_STARTED", "CANCEL_REQUESTED", "CANCEL_ACKED"], "every step is on record");
    again.cancel_ack(&claim, done.version).await.is(409, ErrorCode::TaskCanceled, "another key finds it cancelled");
}

#[tokio::test]
async fn t205_11_every_transition_has_its_own_version_and_actor() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let task = world.task();
    ann.running().await;
    world.server.admin().cancel(task).expect("ask to cancel");
    let detail = world.detail(task);
    let versions: HashSet<u64> = detail.events.iter().map(|event| event.version).collect();
    assert_eq!(versions.len(), detail.events.len(), "a version names one event");
    assert_eq!(detail.events.last().map(|event| event.version), Some(detail.task.version), "the last event is the task's version");
    let actor = format!("buyer:{}@{}", ann.user, ann.device);
    let actors: Vec<_> = detail.events.iter().map(|event| event.actor.as_str()).collect();
    assert_eq!(actors, ["console", &actor, &actor, "console"], "every event says who caused it");
}

#[tokio::test]
async fn d4_close_ends_a_lost_run_but_never_requeues_it() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let task = world.task();
    let claim = ann.running().await;
    let admin = world.admin().await;
    let path = format!("/admin/tasks/{task}/close");
    let close = |version: u64| serde_json::json!({"reason": "the computer is gone", "expected_version": version});
    let version = claim.standing.version;
    world.send(&path, Some(&admin.access_token), &[], &close(version)).await.is(409, ErrorCode::IllegalState, "its lease lives");
    world.advance_s(90);
    world.send(&path, Some(&admin.access_token), &[], &close(9)).await.is(409, ErrorCode::VersionConflict, "look again first");
    let empty = serde_json::json!({"reason": " ", "expected_version": version});
    world.send(&path, Some(&admin.access_token), &[], &empty).await.is(422, ErrorCode::Malformed, "a close needs its reason");
    let closed: cmautobuy_protocol::admin::TaskSummary = world.send(&path, Some(&admin.access_token), &[], &close(version)).await.ok();
    assert_eq!(closed.status, ServerStatus::Failed, "closed is FAILED, never PENDING");
    let last = world.detail(task).events.pop().expect("events");
    assert_eq!((last.kind.as_str(), last.actor), ("ADMIN_CLOSED", format!("admin:{}", admin.user_id)), "with the administrator's name");
    ann.run_beat(&claim, "late").await.is(409, ErrorCode::IllegalState, "the run has ended");
    world.task();
    ann.claim().await;
}

#[tokio::test]
async fn d10_once_an_order_may_exist_only_reconcile_goes_on() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let mut purchase = crate::world::collect(77);
    purchase.task_type = cmautobuy_protocol::TaskType::Purchase;
    (purchase.quantity, purchase.external_ref) = (Some(1), Some("ref-1".to_owned()));
    let task = world.server.admin().create_task(&purchase, None).expect("a purchase").task_id;
    let claim = ann.running().await;
    ann.run_beat(&claim, "placing_order").await.ok::<Standing>();
    let asked = world.server.admin().cancel(task).expect("ask to cancel");
    ann.cancel_ack(&claim, asked.version).await.is(409, ErrorCode::IllegalState, "a cancel must not hide an order");
    world.advance_s(100);
    ann.beat().await.ok::<serde_json::Value>();
    let (retry, reconcile) = (cmautobuy_protocol::lifecycle::ResumeReason::Retry, cmautobuy_protocol::lifecycle::ResumeReason::Reconcile);
    ann.resume(&claim, retry, (crate::world::attempt_id(), 2)).await.is(409, ErrorCode::IllegalState, "never buy again");
    let standing: Standing = ann.resume(&claim, reconcile, (crate::world::attempt_id(), 2)).await.ok();
    world.advance_s(100);
    let close =
        |order_checked| cmautobuy_server::CloseTask { reason: "lost".to_owned(), expected_version: standing.version, order_checked };
    let refused = world.server.admin().close(task, &close(false)).expect_err("nobody looked at the order list");
    assert_eq!(refused.refusal().map(|r| r.code.clone()), Some(ErrorCode::IllegalState), "D4: close needs order_checked");
    assert_eq!(world.server.admin().close(task, &close(true)).expect("a person looked").status, ServerStatus::Failed, "then it may end");
}

/// The claim of a client whose body is built by hand must be readable to it after any state.
#[tokio::test]
async fn a_whole_life_keeps_generation_and_versions_in_step() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    world.task();
    let claim = ann.claim().await;
    let body = Client::start_body(&claim);
    assert_eq!((body.claim_generation, body.expected_version), (1, 2), "created is version 1, claimed is 2");
    let replay: ClaimAnswer = ann.claim_with(&claim.token, &claim.key).await.ok();
    assert_eq!(replay.standing.version, 2, "reading changes nothing");
}
