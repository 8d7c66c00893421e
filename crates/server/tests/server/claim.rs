//! `claim-next`: readiness, order, exactly one winner, replays (T-205 §3-§5, D5).

use axum::http::StatusCode;
use cmautobuy_protocol::lifecycle::{ClaimAnswer, ClaimedTask};
use cmautobuy_protocol::{ErrorCode, ServerStatus, TaskType};
use cmautobuy_server::{Config, Server};

use crate::world::{World, key_at, token};

#[tokio::test]
async fn t205_4_only_a_fresh_and_ready_heartbeat_lets_a_device_claim() {
    let world = World::new();
    let mut ann = world.buyer("ann").await;
    let task = world.task();
    let mut off = ann.heartbeat();
    off.accessibility_connected = false;
    ann.post("/devices/heartbeat", &[], &off).await.ok::<serde_json::Value>();
    ann.try_claim().await.is(409, ErrorCode::DeviceNotReady, "the phone's screen cannot be read");
    let mut missing = ann.heartbeat();
    missing.pdd_installed = false;
    ann.post("/devices/heartbeat", &[], &missing).await.ok::<serde_json::Value>();
    ann.try_claim().await.is(409, ErrorCode::DeviceNotReady, "Pinduoduo is not installed");
    ann.beat().await.ok::<serde_json::Value>();
    world.advance_s(121);
    ann.try_claim().await.is(409, ErrorCode::DeviceNotReady, "a heartbeat older than 2 min says nothing");
    ann.beat().await.ok::<serde_json::Value>();
    world.advance_s(120);
    assert_eq!(ann.claim().await.task, task, "a heartbeat of exactly 2 min is still good");
    ann.serial = None;
    ann.beat().await.ok::<serde_json::Value>();
}

#[tokio::test]
async fn d5_a_refused_claim_is_not_stored_under_its_key() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let task = world.task();
    world.advance_s(121);
    let (token, key) = (token(), key_at(world.now()));
    ann.claim_with(&token, &key).await.is(409, ErrorCode::DeviceNotReady, "no recent heartbeat");
    ann.beat().await.ok::<serde_json::Value>();
    let answer: ClaimAnswer = ann.claim_with(&token, &key).await.ok();
    assert_eq!(answer.standing.task_id, task, "the same attempt must be able to succeed once the device is ready");
}

#[tokio::test]
async fn t205_5_the_oldest_task_is_given_first_and_whole() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let (first, second) = (world.task(), world.task());
    let (token, key) = (token(), key_at(world.now()));
    let answer: ClaimAnswer = ann.claim_with(&token, &key).await.ok();
    assert_eq!(answer.standing.task_id, first, "the oldest goes first");
    assert_eq!((answer.standing.status, answer.standing.claim_generation), (ServerStatus::Claimed, 1), "the first claim is generation 1");
    let lease_ms = answer.standing.lease_expires_at.map(|end| end.ms_since(answer.standing.server_time));
    assert_eq!(lease_ms, Some(600_000), "T-205 §6: a claim lives 10 min");
    let (task, faults) = ClaimedTask::read(&answer.task);
    assert!(faults.is_empty(), "a client must be able to read the task without a fault, found {faults:?}");
    assert_eq!((task.task_type, task.goods_id.as_deref()), (TaskType::Collect, Some("1000")), "the task must be the one that was created");
    ann.try_claim().await.is(409, ErrorCode::DeviceBusy, "one live claim a device");
    let bob = world.buyer("bob").await;
    assert_eq!(bob.claim().await.task, second, "another device gets another task");
}

#[tokio::test]
async fn t205_5_tasks_of_one_millisecond_are_given_in_the_order_they_were_made() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let admin = world.server.admin();
    let made: Vec<_> = (0..5).map(|n| admin.create_task(&crate::world::collect(n + 1), None).expect("a task").task_id).collect();
    let mut given = Vec::new();
    for _ in 0..made.len() {
        let claim = ann.claim().await;
        given.push(claim.task);
        world.advance_s(1);
        ann.release(&claim).await.ok::<serde_json::Value>();
    }
    assert_eq!(given, made, "ids of one millisecond must keep their order");
}

/// Two server instances on one database file, as the command line next to a running server.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn t205_5_of_many_claims_at_once_exactly_one_wins() {
    let world = World::new();
    let config = Config { data_dir: world.dir.path().to_owned(), ..Config::default() };
    let second = Server::open(config, world.clock.clone()).expect("a second instance on the same file");
    let mut clients = Vec::new();
    for n in 0..8 {
        let mut client = world.buyer(&format!("buyer{n}")).await;
        if n % 2 == 1 {
            client.router = second.router();
        }
        clients.push(client);
    }
    for round in 0..3 {
        let task = world.task();
        let claims = clients.iter().map(|client| {
            let (router, access, device, at) = (client.router.clone(), client.access.clone(), client.device, world.now());
            tokio::spawn(async move {
                let (token, key) = (token(), key_at(at));
                let headers = [("x-claim-token", token.reveal()), ("idempotency-key", key.as_str())];
                let body = cmautobuy_protocol::lifecycle::ClaimRequest { device_id: device };
                crate::world::send(&router, "/tasks/claim-next", Some(&access), &headers, &body).await
            })
        });
        let mut statuses = Vec::new();
        for claim in claims.collect::<Vec<_>>() {
            statuses.push(claim.await.expect("a call must not panic").status);
        }
        let winners = statuses.iter().filter(|status| **status == StatusCode::OK).count();
        assert_eq!(winners, 1, "round {round}: one task has one holder, got {statuses:?}");
        let losers = statuses.iter().filter(|status| **status == StatusCode::NO_CONTENT || **status == StatusCode::CONFLICT).count();
        assert_eq!(losers, clients.len() - 1, "round {round}: everybody else is told so, got {statuses:?}");
        assert_eq!(world.summary(task).claim_generation, 1, "round {round}: the task was given once");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn t205_5_one_device_claiming_many_times_at_once_gets_one_task() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let tasks = [world.task(), world.task(), world.task()];
    let calls = (0..6).map(|_| {
        let (router, access, device, at) = (ann.router.clone(), ann.access.clone(), ann.device, world.now());
        tokio::spawn(async move {
            let (token, key) = (token(), key_at(at));
            let headers = [("x-claim-token", token.reveal()), ("idempotency-key", key.as_str())];
            let body = cmautobuy_protocol::lifecycle::ClaimRequest { device_id: device };
            crate::world::send(&router, "/tasks/claim-next", Some(&access), &headers, &body).await.status
        })
    });
    let mut statuses = Vec::new();
    for call in calls.collect::<Vec<_>>() {
        statuses.push(call.await.expect("a call must not panic"));
    }
    assert_eq!(statuses.iter().filter(|s| **s == StatusCode::OK).count(), 1, "a device holds one task, got {statuses:?}");
    let claimed = tasks.iter().filter(|task| world.summary(**task).status == ServerStatus::Claimed).count();
    assert_eq!(claimed, 1, "the database must say the same");
}

#[tokio::test]
async fn t205_3_a_lost_answer_is_had_again_by_the_same_key_and_token() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let claim = {
        world.task();
        ann.claim().await
    };
    world.advance_s(300);
    let again: ClaimAnswer = ann.claim_with(&claim.token, &claim.key).await.ok();
    assert_eq!(again.standing.task_id, claim.task, "the same key must get the same task");
    assert_eq!(again.standing.claim_generation, claim.standing.claim_generation, "and the same generation");
    assert_eq!(again.standing.lease_expires_at, claim.standing.lease_expires_at, "D3: a replay never extends a lease");
    assert_eq!(again.standing.server_time.ms_since(claim.standing.server_time), 300_000, "D3: the time is read now");
    ann.claim_with(&token(), &claim.key).await.is(
        409,
        ErrorCode::IdempotencyConflict,
        "the same key with another token is another request",
    );
    ann.start(&claim).await.ok::<serde_json::Value>();
    let started: ClaimAnswer = ann.claim_with(&claim.token, &claim.key).await.ok();
    assert_eq!(started.standing.status, ServerStatus::Running, "a replay after the start is still that claim, read now");
    assert!(started.standing.execution_id.is_some(), "and names the execution");
    world.advance_s(121);
    ann.claim_with(&claim.token, &claim.key).await.ok::<ClaimAnswer>();
}

#[tokio::test]
async fn t205_3_keys_are_apart_per_user_and_device() {
    let world = World::new();
    let (ann, bob) = (world.buyer("ann").await, world.buyer("bob").await);
    let (first, second) = (world.task(), world.task());
    let (token, key) = (token(), key_at(world.now()));
    let to_ann: ClaimAnswer = ann.claim_with(&token, &key).await.ok();
    let to_bob: ClaimAnswer = bob.claim_with(&token, &key).await.ok();
    assert_eq!((to_ann.standing.task_id, to_bob.standing.task_id), (first, second), "a key must never reach into another device's calls");
}

#[tokio::test]
async fn t205_3_no_task_stays_no_task() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let (token, key) = (token(), key_at(world.now()));
    assert_eq!(ann.claim_with(&token, &key).await.status, StatusCode::NO_CONTENT, "there is no task");
    let task = world.task();
    assert_eq!(ann.claim_with(&token, &key).await.status, StatusCode::NO_CONTENT, "a later task must not change an old answer");
    assert_eq!(ann.claim().await.task, task, "a new claim gets it");
}

#[tokio::test]
async fn t205_3_a_claim_that_was_released_cancelled_or_taken_back_is_not_replayed() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    world.task();
    let released = ann.claim().await;
    ann.release(&released).await.ok::<serde_json::Value>();
    ann.claim_with(&released.token, &released.key).await.is(409, ErrorCode::ClaimReplayExpired, "released");

    world.advance_s(601);
    ann.beat().await.ok::<serde_json::Value>();
    let canceled = ann.claim().await;
    world.server.admin().cancel(canceled.task).expect("an administrator may cancel a claimed task");
    ann.claim_with(&canceled.token, &canceled.key).await.is(409, ErrorCode::ClaimReplayExpired, "cancelled");

    let task = world.task();
    let ran_out = ann.claim().await;
    world.advance_s(600);
    let still: ClaimAnswer = ann.claim_with(&ran_out.token, &ran_out.key).await.ok();
    assert_eq!(still.standing.task_id, task, "a claim that ran out but was not taken back is repeated with its old lease");
    let bob = world.buyer("bob").await;
    assert_eq!(bob.claim().await.task, task, "a claim that ran out may be taken by another device");
    ann.claim_with(&ran_out.token, &ran_out.key).await.is(409, ErrorCode::ClaimReplayExpired, "taken back");
    ann.claim_with(&ran_out.token, &ran_out.key).await.is(409, ErrorCode::ClaimReplayExpired, "the answer must be stable");
}

#[tokio::test]
async fn d5_claim_keys_are_young_uuidv7() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    world.task();
    let day_ms = 86_400_000;
    let old = key_at(world.now().plus_ms(-30 * day_ms - 1));
    ann.claim_with(&token(), &old).await.is(409, ErrorCode::ClaimReplayExpired, "a key older than 30 days is refused");
    for text in ["not-a-uuid", "0f0e0d0c-0b0a-4908-8706-050403020100"] {
        let key = text.parse().expect("visible ASCII");
        ann.claim_with(&token(), &key).await.is(422, ErrorCode::Malformed, "only a UUIDv7 tells its age");
    }
    let young = key_at(world.now().plus_ms(-30 * day_ms));
    ann.claim_with(&token(), &young).await.ok::<ClaimAnswer>();
}

#[tokio::test]
async fn t205_5_an_own_claim_that_ran_out_comes_back_first() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let older = world.task();
    let bob = world.buyer("bob").await;
    assert_eq!(bob.claim().await.task, older, "bob takes the oldest");
    let own = world.task();
    assert_eq!(ann.claim().await.task, own, "ann takes the next");
    world.advance_s(600);
    ann.beat().await.ok::<serde_json::Value>();
    let again = ann.claim().await;
    assert_eq!(again.task, own, "both claims ran out, but ann's own is taken back first");
    assert_eq!(again.standing.claim_generation, 2, "every successful claim is a new generation");
    let kinds = world.event_kinds(own);
    assert_eq!(kinds, ["TASK_CREATED", "TASK_CLAIMED", "CLAIM_EXPIRED", "TASK_CLAIMED"], "the way back is on record");
}

#[tokio::test]
async fn d5_a_device_is_not_offered_again_for_10_min_what_it_released() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let task = world.task();
    let claim = ann.claim().await;
    ann.release(&claim).await.ok::<serde_json::Value>();
    assert_eq!(ann.try_claim().await.status, StatusCode::NO_CONTENT, "not at once");
    world.advance_s(599);
    ann.beat().await.ok::<serde_json::Value>();
    assert_eq!(ann.try_claim().await.status, StatusCode::NO_CONTENT, "not within 10 min");
    let bob = world.buyer("bob").await;
    let taken = bob.claim().await;
    assert_eq!(taken.task, task, "another device may have it at once");
    bob.release(&taken).await.ok::<serde_json::Value>();
    world.advance_s(1);
    assert_eq!(ann.claim().await.task, task, "after 10 min it comes back");
}
