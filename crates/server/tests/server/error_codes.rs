//! A code exists only if somebody can get it (D13): each is met here by a real request.

use std::collections::HashSet;

use axum::http::{Method, Request};
use cmautobuy_protocol::lifecycle::ResumeReason;
use cmautobuy_protocol::result::{Disposition, EventType};
use cmautobuy_protocol::{ErrorCode, IdempotencyKey, InstanceId, WireTime};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::world::{Answer, Claim, Client, PASSWORD, World, attempt_id, call, key_at, token};

#[derive(Default)]
struct Seen(HashSet<ErrorCode>);

impl Seen {
    /// The answer must be this refusal.
    #[track_caller]
    fn note(&mut self, answer: &Answer, status: u16, code: ErrorCode) {
        answer.is(status, code.clone(), "the request is made for this code");
        self.0.insert(code);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d13_every_code_is_met_by_a_request() {
    let world = World::new();
    let mut seen = Seen::default();
    logins(&world, &mut seen).await;
    claims(&world, &mut seen).await;
    runs(&world, &mut seen).await;
    orders(&world, &mut seen).await;
    // Last: it breaks the database.
    failures(&world, &mut seen).await;
    let missing: Vec<_> = ErrorCode::ALL.iter().filter(|code| !seen.0.contains(code)).collect();
    assert!(missing.is_empty(), "nobody can get {missing:?}: either there is a request for it, or the code must go");
}

async fn logins(world: &World, seen: &mut Seen) {
    let ann = world.buyer("ann").await;
    let admin = world.admin().await.access_token;
    seen.note(&world.login_answer("ann", "wrong password", None).await, 401, ErrorCode::LoginRefused);
    let strange = cmautobuy_protocol::DeviceId::from_uuid(Uuid::nil());
    seen.note(&world.login_answer("ann", PASSWORD, Some(strange)).await, 403, ErrorCode::DeviceNotAuthorized);
    let nobody = Request::get("/api/v1/auth/me").body(axum::body::Body::empty()).expect("a request");
    seen.note(&call(&world.router, nobody).await, 401, ErrorCode::Unauthenticated);
    seen.note(&world.get("/admin/tasks", &ann.access).await, 403, ErrorCode::Forbidden);
    seen.note(&world.get("/admin/tasks/7", &admin).await, 404, ErrorCode::NotFound);
    seen.note(&world.get("/admin/tasks?limit=0", &admin).await, 422, ErrorCode::Malformed);
    seen.note(&world.send("/auth/login", None, &[], &"x".repeat(70_000)).await, 413, ErrorCode::TooLarge);
    for _ in 0..10 {
        world.login_answer("mallory", "guess", None).await.is(401, ErrorCode::LoginRefused, "inside the limit");
    }
    seen.note(&world.login_answer("mallory", "guess", None).await, 429, ErrorCode::RateLimited);
}

async fn claims(world: &World, seen: &mut Seen) {
    let bob = world.buyer("bob").await;
    let long_ago = WireTime::from_unix_ms(world.now().unix_ms() - 31 * 24 * 3600 * 1000).expect("a time");
    seen.note(&bob.claim_with(&token(), &key_at(long_ago)).await, 409, ErrorCode::ClaimReplayExpired);
    let mut locked = bob.heartbeat();
    locked.accessibility_connected = false;
    bob.post("/devices/heartbeat", &[], &locked).await.ok::<Value>();
    seen.note(&bob.try_claim().await, 409, ErrorCode::DeviceNotReady);
    let second = Client { instance: InstanceId::from_uuid(Uuid::from_u128(2)), ..bob.clone() };
    seen.note(&second.beat().await, 409, ErrorCode::DeviceInUse);
}

async fn runs(world: &World, seen: &mut Seen) {
    let cy = world.buyer("cy").await;
    let task = world.task();
    let mut claim = cy.claim().await;
    seen.note(&cy.try_claim().await, 409, ErrorCode::DeviceBusy);
    let key = key_at(world.now());
    let wrong = Claim { token: token(), ..claim.clone() };
    seen.note(&cy.start_with(&wrong, &key).await, 409, ErrorCode::ClaimLost);
    let mut stale = claim.clone();
    stale.standing.version += 1;
    seen.note(&cy.start(&stale).await, 409, ErrorCode::VersionConflict);
    claim.standing = cy.start_with(&claim, &key).await.ok();
    let other = Claim { attempt: attempt_id(), ..claim.clone() };
    seen.note(&cy.start_with(&other, &key).await, 409, ErrorCode::IdempotencyConflict);
    seen.note(&cy.release(&claim).await, 409, ErrorCode::IllegalState);
    let mut old = claim.clone();
    old.standing.claim_generation += 1;
    seen.note(&cy.run_beat(&old, "look").await, 409, ErrorCode::ExecutionMismatch);
    world.advance_s(91);
    seen.note(&cy.run_beat(&claim, "look").await, 409, ErrorCode::LeaseExpired);
    world.server.admin().cancel(task).expect("a request to stop");
    let standing = world.summary(task);
    cy.cancel_ack(&claim, standing.version).await.ok::<Value>();
    seen.note(&cy.resume(&claim, ResumeReason::Retry, (claim.attempt, 1)).await, 409, ErrorCode::TaskCanceled);
}

async fn orders(world: &World, seen: &mut Seen) {
    let dee = world.buyer("dee").await;
    for reference in ["first", "second"] {
        let mut asked = crate::world::collect(5);
        (asked.task_type, asked.quantity) = (cmautobuy_protocol::TaskType::Purchase, Some(1));
        asked.external_ref = Some(reference.to_owned());
        world.server.admin().create_task(&asked, None).expect("a purchase task");
        if reference == "second" {
            let error = world.admin().await;
            let again = world.send("/admin/tasks", Some(&error.access_token), &[("idempotency-key", "k")], &asked).await;
            seen.note(&again, 409, ErrorCode::AlreadyExists);
        }
    }
    let first = dee.running().await;
    let (key, body) = purchase(&first);
    dee.send_result(first.task, &key, body).await.ok::<Value>();
    let second = dee.running().await;
    let (key, body) = purchase(&second);
    seen.note(&dee.send_result(second.task, &key, body).await, 409, ErrorCode::OrderAlreadyReported);
}

/// A success that reports order 42.
fn purchase(claim: &Claim) -> (IdempotencyKey, Vec<u8>) {
    let body = json!({
        "schema_version": 1, "event_type": EventType::PurchaseResult, "disposition": Disposition::Succeeded,
        "claim_generation": claim.standing.claim_generation, "execution_id": claim.standing.execution_id,
        "attempt_id": claim.attempt, "attempt_no": 1, "failure": null, "finished_at": "2026-03-02T08:01:00.000Z",
        "pdd_data": {
            "schema_version": 1, "goods": {"goods_id": "5", "url": "", "title": "cup"}, "shop": {"name": null},
            "metrics": {"sales": null, "reviews": null}, "dimensions": [], "skus": [], "price_granularity": "color",
            "captured_at": "2026-03-02T08:00:59.000Z", "source": {"client_id": "c", "device_address": "d", "pdd_package": "p"},
            "purchase": {
                "mode": "live", "requested": {"options": {}, "quantity": 1, "max_price_cent": null}, "confirmed": null,
                "confirmation_reached": true, "order_submitted": true, "payment_attempted": false, "payment_status": null,
                "order_no": "42", "ordered_at": null, "ordered_at_raw": null, "match_status": "matched",
            },
        },
    });
    let key = format!("{}:{}:result-v1", claim.task, claim.attempt).parse().expect("a key");
    (key, serde_json::to_vec(&body).expect("a result is JSON"))
}

async fn failures(world: &World, seen: &mut Seen) {
    let admin = world.admin().await.access_token;
    let database = rusqlite::Connection::open(world.dir.path().join("server.sqlite3")).expect("the database file");
    // Another process that holds the file for longer than the server waits.
    database.execute_batch("BEGIN IMMEDIATE").expect("the write lock");
    let logout = || {
        let request = Request::builder().method(Method::POST).uri("/api/v1/auth/logout");
        request.header("authorization", format!("Bearer {}", admin.reveal())).body(axum::body::Body::empty()).expect("a request")
    };
    seen.note(&call(&world.router, logout()).await, 503, ErrorCode::Unavailable);
    database.execute_batch("ROLLBACK; DROP TABLE audit").expect("a table gone");
    seen.note(&world.get("/admin/audit", &admin).await, 500, ErrorCode::Internal);
}
