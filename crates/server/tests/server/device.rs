//! Device heartbeat and who is live (T-205 §4, D4, D19).

use cmautobuy_protocol::device::{DeviceHeartbeatAnswer, NotReady};
use cmautobuy_protocol::lifecycle::ResumeReason;
use cmautobuy_protocol::{ErrorCode, InstanceId};
use uuid::Uuid;

use crate::world::{World, attempt_id};

#[tokio::test]
async fn t205_4_the_answer_says_what_is_missing_and_what_the_server_holds() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let mut beat = ann.heartbeat();
    (beat.accessibility_connected, beat.pdd_installed) = (false, false);
    let answer: DeviceHeartbeatAnswer = ann.post("/devices/heartbeat", &[], &beat).await.ok();
    assert_eq!(answer.not_ready, [NotReady::AccessibilityOff, NotReady::PddMissing], "both reasons must be named");
    assert_eq!((answer.ttl_ms, answer.active_task_id), (120_000, None), "2 min, and no task yet");
    ann.beat().await.ok::<DeviceHeartbeatAnswer>();
    let task = world.task();
    ann.running().await;
    let mut wrong = ann.heartbeat();
    wrong.active_task_id = None;
    let answer: DeviceHeartbeatAnswer = ann.post("/devices/heartbeat", &[], &wrong).await.ok();
    assert_eq!(answer.active_task_id, Some(task), "the server's own record is the authority, whatever the client reports");
    assert!(answer.cancel_requested_tasks.is_empty(), "nobody asked to cancel");
    world.server.admin().cancel(task).expect("ask to cancel");
    let answer: DeviceHeartbeatAnswer = ann.beat().await.ok();
    assert_eq!(answer.cancel_requested_tasks, [task], "D4: the device learns of the cancel here too");
}

#[tokio::test]
async fn t205_4_texts_are_bounded() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let long = "9".repeat(200);
    let mut rows = [ann.heartbeat(), ann.heartbeat(), ann.heartbeat(), ann.heartbeat()];
    rows[0].app_version = String::new();
    rows[1].app_version = long.clone();
    rows[2].pdd_version = Some(long.clone());
    rows[3].phone_serial = Some(long);
    for (n, row) in rows.iter().enumerate() {
        ann.post("/devices/heartbeat", &[], row).await.is(422, ErrorCode::Malformed, &format!("row {n} is out of bounds"));
    }
}

#[tokio::test]
async fn d19_a_second_live_instance_is_refused_and_blocks_claim_start_and_resume() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let task = world.task();
    let claim = ann.claim().await;
    let mut copy = ann.clone();
    copy.instance = InstanceId::from_uuid(Uuid::from_bytes([9; 16]));
    let body = copy.beat().await.is(409, ErrorCode::DeviceInUse, "the first instance was heard within the TTL");
    assert!(body.error.message.contains(&ann.instance.short()), "the refusal must name the live instance");
    ann.start(&claim).await.is(409, ErrorCode::DeviceInUse, "start names no instance, so neither copy may go on");
    ann.beat().await.ok::<DeviceHeartbeatAnswer>();
    ann.start(&claim).await.is(409, ErrorCode::DeviceInUse, "the first one's heartbeat does not make the copy go away");
    world.advance_s(121);
    ann.beat().await.ok::<DeviceHeartbeatAnswer>();
    let mut claim = claim;
    claim.standing = ann.start(&claim).await.ok();
    copy.beat().await.is(409, ErrorCode::DeviceInUse, "the copy is back");
    let attempt = (attempt_id(), 2);
    ann.resume(&claim, ResumeReason::Restart, attempt).await.is(409, ErrorCode::DeviceInUse, "resume is blocked too");
    ann.run_beat(&claim, "open").await.ok::<serde_json::Value>();
    assert_eq!(world.summary(task).current_step.as_deref(), Some("open"), "a run under way keeps its lease");
    world.advance_s(121);
    copy.beat().await.ok::<DeviceHeartbeatAnswer>();
    copy.resume(&claim, ResumeReason::Restart, attempt).await.ok::<serde_json::Value>();
}

#[tokio::test]
async fn d19_a_phone_live_under_another_device_is_refused_there_only() {
    let world = World::new();
    let (ann, mut bob) = (world.buyer("ann").await, world.buyer("bob").await);
    world.task();
    bob.serial.clone_from(&ann.serial);
    let body = bob.beat().await.is(409, ErrorCode::DeviceInUse, "the phone is ann's");
    assert!(body.error.message.contains(&ann.device.to_string()), "the refusal must name the device that has the phone");
    bob.try_claim().await.is(409, ErrorCode::DeviceInUse, "bob must not work on ann's phone");
    bob.serial = Some("bobs own".to_owned());
    bob.beat().await.ok::<DeviceHeartbeatAnswer>();
    ann.claim().await;
    assert_eq!(bob.try_claim().await.status.as_u16(), 204, "with a phone of its own bob is no longer blocked");
}

#[tokio::test]
async fn d19_an_administrator_may_forget_an_instance_that_is_gone() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let mut restarted = ann.clone();
    restarted.instance = InstanceId::from_uuid(Uuid::from_bytes([9; 16]));
    restarted.beat().await.is(409, ErrorCode::DeviceInUse, "the old instance was heard a moment ago");
    world.server.admin().forget_instance(ann.device).expect("the device is known");
    restarted.beat().await.ok::<DeviceHeartbeatAnswer>();
}

#[tokio::test]
async fn d19_a_restarted_process_takes_over_from_the_one_it_names() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let mut restarted = ann.clone();
    restarted.instance = InstanceId::from_uuid(Uuid::from_bytes([9; 16]));
    let mut beat = restarted.heartbeat();
    beat.predecessors = vec![ann.instance];
    restarted.post("/devices/heartbeat", &[], &beat).await.ok::<DeviceHeartbeatAnswer>();
    ann.beat().await.is(409, ErrorCode::DeviceInUse, "the successor is the live one now; the older process does not name it");
}

#[tokio::test]
async fn d19_an_instance_that_logged_out_is_not_live() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let mut restarted = world.client("ann", ann.user, ann.device).await;
    restarted.beat().await.is(409, ErrorCode::DeviceInUse, "the old instance was heard a moment ago");
    ann.post("/auth/logout", &[], &serde_json::Value::Null).await;
    restarted.instance = InstanceId::from_uuid(Uuid::from_bytes([9; 16]));
    restarted.beat().await.ok::<DeviceHeartbeatAnswer>();
}
