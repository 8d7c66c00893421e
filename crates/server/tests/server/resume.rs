//! Resume and re-collect (D4).

use cmautobuy_protocol::lifecycle::{ResumeReason, Standing};
use cmautobuy_protocol::result::Disposition;
use cmautobuy_protocol::{ErrorCode, ServerStatus};

use crate::results::{Report, report};
use crate::world::{World, attempt_id, key_at};

#[tokio::test]
async fn d4_every_reason_resumes_a_running_task_under_a_fresh_lease() {
    for &reason in ResumeReason::ALL {
        let world = World::new();
        let ann = world.buyer("ann").await;
        let task = world.task();
        let claim = ann.running().await;
        world.advance_s(100);
        let key = key_at(world.now());
        let resumed: Standing = ann.resume_with(&claim, reason, (attempt_id(), 2), &key).await.ok();
        assert_eq!(resumed.status, ServerStatus::Running, "{reason}: RUNNING goes on");
        assert_eq!(resumed.version, claim.standing.version + 1, "{reason}: a resume is a transition");
        assert_eq!(resumed.execution_id, claim.standing.execution_id, "{reason}: one execution, several attempts (D5)");
        assert_eq!(resumed.lease_expires_at.map(|end| end.ms_since(world.now())), Some(90_000), "{reason}: a fresh 90 s");
        let last = world.detail(task).events.pop().expect("events");
        let named = last.detail.as_ref().and_then(|detail| detail.get("reason")).and_then(|text| text.as_str());
        assert_eq!((last.kind.as_str(), named), ("RUN_RESUMED", Some(reason.as_str())), "{reason}: the event names the reason");
    }
}

#[tokio::test]
async fn d3_a_replayed_resume_extends_nothing() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    world.task();
    let claim = ann.running().await;
    let (key, attempt) = (key_at(world.now()), (attempt_id(), 2));
    let first: Standing = ann.resume_with(&claim, ResumeReason::Restart, attempt, &key).await.ok();
    world.advance_s(300);
    let again: Standing = ann.resume_with(&claim, ResumeReason::Restart, attempt, &key).await.ok();
    assert_eq!((again.version, again.lease_expires_at), (first.version, first.lease_expires_at), "only a new key gives a new lease");
    ann.resume_with(&claim, ResumeReason::Retry, attempt, &key).await.is(
        409,
        ErrorCode::IdempotencyConflict,
        "another reason is another request",
    );
    let same_attempt: Standing = ann.resume(&claim, ResumeReason::LeaseLost, attempt).await.ok();
    assert_eq!(same_attempt.version, first.version + 1, "D3: the same attempt may re-enter its step after a lost lease");
    ann.resume(&claim, ResumeReason::Retry, (attempt.0, 3)).await.is(422, ErrorCode::Malformed, "an attempt never changes its number");
}

#[tokio::test]
async fn d4_waiting_by_a_result_frees_the_device_and_can_be_resumed() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let (first, second) = (world.task(), world.task());
    let claim = ann.running().await;
    let answer = report(&ann, &claim, Report { disposition: Disposition::ManualReview, ..Report::of(&claim) }).await;
    assert_eq!(answer.task_status, ServerStatus::WaitingConfirmation, "manual_review waits for a person");
    let beat: Standing = ann.run_beat(&claim, "waiting").await.ok();
    assert_eq!(beat.status, ServerStatus::WaitingConfirmation, "T-205 §8: a waiting task's live lease may be renewed");
    let other = ann.running().await;
    assert_eq!(other.task, second, "D4: a task that waits does not occupy the device");
    let attempt = (attempt_id(), 2);
    let body = ann.resume(&claim, ResumeReason::Operator, attempt).await.is(409, ErrorCode::DeviceBusy, "the device runs another task");
    assert_eq!(body.error.task.map(|task| task.status), Some(ServerStatus::WaitingConfirmation), "D5: with where the task stands");
    report(&ann, &other, Report::of(&other)).await;
    let asked = world.server.admin().cancel(first).expect("ask to cancel a waiting task");
    assert_eq!(asked.status, ServerStatus::WaitingConfirmation, "a waiting task only gets the request");
    let resumed: Standing = ann.resume(&claim, ResumeReason::Operator, attempt).await.ok();
    assert_eq!((resumed.status, resumed.cancel_requested), (ServerStatus::Running, true), "it runs again and is told of the request");
}

#[tokio::test]
async fn d4_a_finished_collect_task_may_be_looked_at_again() {
    for ended in [Disposition::Succeeded, Disposition::Failed, Disposition::Cancelled] {
        let world = World::new();
        let ann = world.buyer("ann").await;
        let (task, _next) = (world.task(), world.task());
        let claim = ann.running().await;
        let status = report(&ann, &claim, Report { disposition: ended, ..Report::of(&claim) }).await.task_status;
        let attempt = (attempt_id(), 2);
        let code = if status == ServerStatus::Canceled { ErrorCode::TaskCanceled } else { ErrorCode::IllegalState };
        ann.resume(&claim, ResumeReason::Retry, attempt).await.is(409, code, "only a re-collect reopens what has ended");
        world.advance_s(50);
        let looked: Standing = ann.resume(&claim, ResumeReason::Recollect, attempt).await.ok();
        assert_eq!(looked.status, status, "{ended}: the terminal status stays");
        assert!(looked.lease_expires_at.is_some(), "{ended}: it gives a lease");
        world.advance_s(50);
        let beat: Standing = ann.run_beat(&claim, "read_title").await.ok();
        assert_eq!(beat.lease_expires_at.map(|end| end.ms_since(world.now())), Some(90_000), "{ended}: a renewable one");
        ann.try_claim().await.is(409, ErrorCode::DeviceBusy, "it takes the device's slot");
        let again = Report { attempt: attempt.0, attempt_no: 2, ..Report::of(&claim) };
        let answer = report(&ann, &claim, again).await;
        assert_eq!((answer.task_status, answer.late), (status, false), "{ended}: the expected result, though the status stays");
        assert_eq!(world.summary(task).latest_outcome, Some(Disposition::Succeeded), "{ended}: D3, the detail shows the newest outcome");
        ann.run_beat(&claim, "x").await.refused(409);
        ann.claim().await;
    }
}

#[tokio::test]
async fn d3_a_second_result_of_a_recollect_is_late() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let task = world.task();
    let claim = ann.running().await;
    report(&ann, &claim, Report::of(&claim)).await;
    let attempt = attempt_id();
    ann.resume(&claim, ResumeReason::Recollect, (attempt, 2)).await.ok::<Standing>();
    let looked = Report { attempt, attempt_no: 2, ..Report::of(&claim) };
    assert!(!report(&ann, &claim, looked).await.late, "the result the re-collect was for is the one waited for");
    let second = Report { attempt, attempt_no: 2, disposition: Disposition::Failed, ..Report::of(&claim) };
    let answer = report(&ann, &claim, second).await;
    assert_eq!((answer.duplicate, answer.late), (false, true), "nobody waits for a second one: everything else is late");
    assert_eq!(world.detail(task).results.iter().filter(|result| result.late).count(), 1, "and is counted so");
}

#[tokio::test]
async fn d4_a_recollect_that_died_frees_the_device_with_its_lease() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let (_task, next) = (world.task(), world.task());
    let claim = ann.running().await;
    report(&ann, &claim, Report::of(&claim)).await;
    ann.resume(&claim, ResumeReason::Recollect, (attempt_id(), 2)).await.ok::<Standing>();
    world.advance_s(90);
    assert_eq!(ann.claim().await.task, next, "nothing is lost by leaving a look at a finished task");
    ann.run_beat(&claim, "x").await.is(409, ErrorCode::LeaseExpired, "and the look may not go on");
}

#[tokio::test]
async fn d4_only_the_holder_resumes() {
    let world = World::new();
    let (ann, bob) = (world.buyer("ann").await, world.buyer("bob").await);
    world.task();
    let claim = ann.running().await;
    bob.resume(&claim, ResumeReason::Restart, (attempt_id(), 2)).await.is(404, ErrorCode::NotFound, "bob never had it");
    let mut forged = claim.clone();
    forged.token = crate::world::token();
    ann.resume(&forged, ResumeReason::Restart, (attempt_id(), 2)).await.is(409, ErrorCode::ClaimLost, "the same claim token is needed");
    let mut other = claim.clone();
    other.standing.execution_id = Some(cmautobuy_protocol::ExecutionId::from_uuid(uuid::Uuid::from_bytes([1; 16])));
    ann.resume(&other, ResumeReason::Restart, (attempt_id(), 2)).await.is(
        409,
        ErrorCode::ExecutionMismatch,
        "the same execution is needed",
    );
    ann.resume(&claim, ResumeReason::Restart, (attempt_id(), 0)).await.is(422, ErrorCode::Malformed, "attempts count from 1");
}
