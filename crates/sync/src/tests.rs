//! The loops on a real store with the network replaced: D3's and D5's named cases.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cmautobuy_protocol::account::UserKind;
use cmautobuy_protocol::auth::{Role, Session};
use cmautobuy_protocol::ids::uuid_at;
use cmautobuy_protocol::lifecycle::StartRequest;
use cmautobuy_protocol::{
    AccessToken, AttemptId, DeviceId, ExecutionId, HEADER_CLAIM_TOKEN, HEADER_IDEMPOTENCY_KEY, IdempotencyKey, InstanceId, RefreshToken,
    RemoteTaskId, ServerId, UserId, WireTime,
};
use cmautobuy_store::{CallKind, Ending, LocalTaskId, NewCall, SealKey, Settle, Store};
use cmautobuy_task::{Backoff, Clock, Event, LeaseCell, LeaseState, LostReason, Mono};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::api::{Api, SessionKeeper, SessionState};
use crate::beat::PhoneReport;
use crate::house::{LinkState, Nudges, Sync, SyncParts, Timing};
use crate::turn::Next;
use crate::wire::{FakeWire, WireRequest};

/// Wall and monotonic time, moved by hand.
#[derive(Debug)]
struct HandClock(Mutex<(i64, u64)>);

impl HandClock {
    fn pass(&self, ms: u64) {
        let mut now = self.0.lock().unwrap();
        now.0 += ms as i64;
        now.1 += ms;
    }
    /// The machine slept: the wall clock went on, the monotonic one did not.
    fn sleep(&self, ms: i64) {
        self.0.lock().unwrap().0 += ms;
    }
}

impl Clock for HandClock {
    fn now(&self) -> WireTime {
        WireTime::from_unix_ms(self.0.lock().unwrap().0).unwrap()
    }
    fn mono(&self) -> Mono {
        Mono(Duration::from_millis(self.0.lock().unwrap().1))
    }
}

#[derive(Debug)]
struct Keeper(Mutex<Option<Session>>);

impl SessionKeeper for Keeper {
    fn load(&self) -> Option<Session> {
        self.0.lock().unwrap().clone()
    }
    fn save(&self, session: &Session) {
        *self.0.lock().unwrap() = Some(session.clone());
    }
    fn clear(&self) {
        *self.0.lock().unwrap() = None;
    }
}

struct Bench {
    sync: Sync,
    wire: Arc<FakeWire>,
    clock: Arc<HandClock>,
    lease: Arc<LeaseCell>,
    store: Store,
    keeper: Arc<Keeper>,
    claiming: watch::Sender<bool>,
    _phone: watch::Sender<PhoneReport>,
    _dir: tempfile::TempDir,
}

fn id(n: u8) -> uuid::Uuid {
    uuid::Uuid::from_bytes([n; 16])
}

fn session(token: &str) -> Session {
    Session {
        access_token: AccessToken::new(token),
        access_expires_at: "2026-12-01T09:00:00Z".parse().unwrap(),
        refresh_token: RefreshToken::new(format!("refresh-{token}")),
        user_id: UserId::from_uuid(id(1)),
        user_name: "one".into(),
        roles: vec![Role::Buyer],
        kind: UserKind::Platform,
        permissions: Vec::new(),
        server_id: ServerId::from_uuid(id(9)),
        server_time: "2026-12-01T08:00:00Z".parse().unwrap(),
    }
}

const START_MS: i64 = 1_764_576_000_000;

fn bench() -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("client.db"), SealKey::from_bytes([3; 32])).unwrap();
    let clock = Arc::new(HandClock(Mutex::new((START_MS, 0))));
    let wire = Arc::new(FakeWire::default());
    let keeper = Arc::new(Keeper(Mutex::new(Some(session("a1")))));
    let lease = Arc::new(LeaseCell::default());
    let claiming = watch::Sender::new(true);
    let phone = watch::Sender::new(PhoneReport {
        serial: Some("S1".into()),
        accessibility_connected: true,
        pdd_installed: true,
        ..PhoneReport::default()
    });
    let sync = Sync::new(SyncParts {
        store: store.clone(),
        api: Arc::new(Api::new(wire.clone(), clock.clone(), keeper.clone())),
        clock: clock.clone(),
        lease: lease.clone(),
        nudges: Arc::new(Nudges::default()),
        device: DeviceId::from_uuid(id(2)),
        instance: InstanceId::from_uuid(id(3)),
        predecessors: Vec::new(),
        app_version: "test",
        timing: Timing { poll: Duration::from_secs(10), heartbeat: Duration::from_secs(30), backoff: Backoff::SERVER },
        phone: phone.subscribe(),
        claiming: claiming.subscribe(),
    });
    Bench { sync, wire, clock, lease, store, keeper, claiming, _phone: phone, _dir: dir }
}

impl Bench {
    fn now(&self) -> i64 {
        self.clock.now().unix_ms()
    }

    /// Where the task stands, as the server's own clock (an hour ahead) says it.
    fn standing(&self, status: &str, version: u64, lease_s: i64) -> Value {
        let server_now = WireTime::from_unix_ms(self.now() + 3_600_000).unwrap();
        json!({
            "task_id": RemoteTaskId::from_uuid(id(4)), "status": status, "version": version, "claim_generation": 1,
            "execution_id": if status == "CLAIMED" { Value::Null } else { json!(ExecutionId::from_uuid(id(5))) },
            "server_time": server_now, "lease_expires_at": server_now.plus_ms(lease_s * 1000), "cancel_requested": false,
        })
    }

    fn claim_answer(&self) -> Value {
        json!({ "standing": self.standing("CLAIMED", 2, 600), "task": {
            "task_type": "collect", "execution_mode": "dry_run", "goods_id": "737116531267",
            "goods_url": "https://mobile.yangkeduo.com/goods.html?goods_id=737116531267", "priority": 0 } })
    }

    fn refuse(&self, status: u16, code: &str) {
        self.wire.push(status, &json!({ "error": { "code": code, "message": "no", "request_id": null } }));
    }

    async fn claimed(&self) -> LocalTaskId {
        self.wire.push(200, &self.claim_answer());
        assert_eq!(self.sync.claim_turn().await, Next::Wait, "one task at a time");
        self.store.read(|r| r.claimed_next()).await.unwrap().expect("a 200 is stored").id
    }

    async fn intend_start(&self, task: LocalTaskId) {
        let now = self.clock.now();
        let attempt = AttemptId::from_uuid(uuid_at(now));
        let body = StartRequest { claim_generation: 1, expected_version: 2, attempt_id: attempt, attempt_no: 1 };
        let call = NewCall {
            task,
            kind: CallKind::Start,
            key: IdempotencyKey::from_uuid(uuid_at(now)),
            body_json: serde_json::to_string(&body).unwrap(),
            attempt: Some((attempt, 1)),
        };
        self.store.write(move |tx| tx.call_open(&call, now)).await.unwrap();
    }

    async fn running(&self) -> LocalTaskId {
        let task = self.claimed().await;
        self.intend_start(task).await;
        self.wire.push(200, &self.standing("RUNNING", 3, 90));
        self.sync.calls_turn().await;
        task
    }

    fn lease(&self) -> Option<LeaseState> {
        self.lease.state(self.clock.as_ref())
    }

    fn asked(&self, path: &str) -> Vec<WireRequest> {
        self.wire.asked().into_iter().filter(|r| r.path.ends_with(path)).collect()
    }
}

fn header(request: &WireRequest, name: &str) -> String {
    request.headers.iter().find(|(n, _)| *n == name).map(|(_, v)| v.clone()).unwrap_or_default()
}

#[tokio::test]
async fn an_unanswered_claim_is_replayed_with_the_same_key_and_token() {
    let b = bench();
    b.wire.push_no_answer();
    b.refuse(503, "UNAVAILABLE");
    b.refuse(409, "DEVICE_NOT_READY");
    b.wire.push(200, &b.claim_answer());
    for _ in 0..4 {
        b.sync.claim_turn().await;
    }
    let asked = b.asked("/claim-next");
    let same: std::collections::BTreeSet<_> =
        asked.iter().map(|r| (header(r, HEADER_IDEMPOTENCY_KEY), header(r, HEADER_CLAIM_TOKEN))).collect();
    assert_eq!((asked.len(), same.len()), (4, 1), "D5: the same attempt is replayed until it is answered; a new one could claim twice");
    b.sync.claim_turn().await;
    assert_eq!(b.asked("/claim-next").len(), 4, "never a claim while a local task needs the phone");
}

#[tokio::test]
async fn no_task_closes_the_attempt_and_the_next_has_a_new_key() {
    let b = bench();
    b.wire.push(204, &Value::Null);
    b.wire.push(204, &Value::Null);
    b.sync.claim_turn().await;
    assert!(*b.sync.no_task().borrow(), "204 is shown as nothing to do");
    b.sync.claim_turn().await;
    let keys: std::collections::BTreeSet<_> = b.asked("/claim-next").iter().map(|r| header(r, HEADER_IDEMPOTENCY_KEY)).collect();
    assert_eq!(keys.len(), 2, "an answered 204 is over; asking again needs a new key (T-205 §3)");
}

#[tokio::test]
async fn a_stopped_desk_settles_an_open_attempt_but_opens_none() {
    let b = bench();
    b.claiming.send_replace(false);
    b.sync.claim_turn().await;
    assert!(b.asked("/claim-next").is_empty(), "stopped: nothing is claimed");
    b.claiming.send_replace(true);
    b.wire.push_no_answer();
    b.sync.claim_turn().await;
    b.claiming.send_replace(false);
    b.wire.push(200, &b.claim_answer());
    b.sync.claim_turn().await;
    assert!(
        b.store.read(|r| r.claimed_next()).await.unwrap().is_some(),
        "a claim that may have succeeded must be known before anything else"
    );
}

#[tokio::test]
async fn a_task_with_bad_data_is_stored_and_reported() {
    let b = bench();
    let mut answer = b.claim_answer();
    answer["task"] = json!({ "task_type": 7, "goods_url": "https://example.com/", "price_cent": "free" });
    b.wire.push(200, &answer);
    assert_eq!(b.sync.claim_turn().await, Next::Again, "it needs no phone; the next one can be claimed at once");
    b.wire.push(200, &json!({ "accepted": true, "duplicate": false, "late": false, "task_status": "FAILED" }));
    assert_eq!(b.sync.drain_turn().await, Next::Again, "its failure is in the outbox (D5.4)");
    let body: Value = serde_json::from_slice(b.asked("/results")[0].body.as_deref().unwrap()).unwrap();
    assert_eq!(
        (&body["event_type"], &body["failure"]["code"], &body["execution_id"]),
        (&json!("task_failure"), &json!("BAD_TASK_DATA"), &Value::Null),
        "a result from CLAIMED has no execution (D3)"
    );
}

#[tokio::test]
async fn start_answered_and_lost_is_replayed() {
    let b = bench();
    let task = b.claimed().await;
    b.intend_start(task).await;
    b.wire.push_no_answer();
    assert!(matches!(b.sync.calls_turn().await, Next::Within(_)), "no answer: later");
    assert_eq!(b.lease(), None, "the phone may not be touched on a hope (D2)");
    b.clock.pass(1_100);
    b.wire.push(200, &b.standing("RUNNING", 3, 88));
    b.sync.calls_turn().await;
    let asked = b.asked("/start");
    let same: std::collections::BTreeSet<_> = asked.iter().map(|r| (header(r, HEADER_IDEMPOTENCY_KEY), r.body.clone())).collect();
    assert_eq!((asked.len(), same.len()), (2, 1), "the stored intent is sent again byte for byte (D5)");
    assert!(matches!(b.lease(), Some(LeaseState::Live { .. })), "now it runs");
}

#[tokio::test]
async fn a_start_replayed_after_five_minutes_brings_no_lease() {
    let b = bench();
    let task = b.claimed().await;
    b.intend_start(task).await;
    b.wire.push_no_answer();
    b.sync.calls_turn().await;
    b.clock.pass(300_000);
    b.wire.push(200, &b.standing("RUNNING", 3, -210));
    b.sync.calls_turn().await;
    assert!(b.store.read(|r| r.running()).await.unwrap().is_some(), "the identity is known now");
    assert_eq!(b.lease(), Some(LeaseState::Expired), "a replay never extends a lease: resume before any tap (D3)");
}

#[tokio::test]
async fn first_renew_good_and_second_failing() {
    let b = bench();
    b.running().await;
    b.clock.pass(30_000);
    b.wire.push(200, &b.standing("RUNNING", 3, 90));
    assert_eq!(b.sync.lease_turn().await, Next::Wait, "renewed: the next one in 30 s");
    b.clock.pass(30_000);
    b.wire.push_no_answer();
    assert!(matches!(b.sync.lease_turn().await, Next::Within(_)), "not renewed: soon again");
    assert_eq!(
        b.lease(),
        Some(LeaseState::Live { left: Duration::from_secs(60) }),
        "an unanswered renewal takes nothing away from the last one"
    );
    b.clock.pass(60_000);
    assert_eq!(b.lease(), Some(LeaseState::Expired), "and adds nothing to it");
    assert_eq!(b.lease.current().unwrap().lost, None, "silence is not a refusal: it may still be renewed");
}

#[tokio::test]
async fn a_409_on_a_renew_loses_the_lease_at_once() {
    let b = bench();
    b.running().await;
    b.refuse(409, "LEASE_EXPIRED");
    b.sync.lease_turn().await;
    assert_eq!(
        (b.lease.current().unwrap().lost, b.lease()),
        (Some(LostReason::Refused), Some(LeaseState::Expired)),
        "refused: no tap from here on"
    );
    b.wire.push(200, &b.standing("RUNNING", 3, 90));
    b.sync.lease_turn().await;
    assert_eq!(b.asked("/heartbeat").len(), 1, "a lost lease is resumed, not renewed (D3)");
}

#[tokio::test]
async fn a_token_expired_on_a_renew_is_refreshed_and_the_renew_sent_again() {
    let b = bench();
    b.running().await;
    b.refuse(401, "UNAUTHENTICATED");
    b.wire.push(200, &serde_json::to_value(session("a2")).unwrap());
    b.clock.pass(30_000);
    b.wire.push(200, &b.standing("RUNNING", 3, 90));
    assert_eq!(b.sync.lease_turn().await, Next::Wait, "renewed with the new token");
    assert_eq!(b.lease(), Some(LeaseState::Live { left: Duration::from_secs(90) }), "the lease lives on");
    assert_eq!(header(b.asked("/heartbeat").last().unwrap(), "authorization"), "Bearer a2", "with the successor");
    assert_eq!(b.keeper.load().unwrap().access_token, AccessToken::new("a2"), "which is kept for the next start");
}

#[tokio::test]
async fn a_login_that_ended_waits_and_loses_nothing() {
    let b = bench();
    b.running().await;
    b.refuse(401, "UNAUTHENTICATED");
    b.refuse(401, "UNAUTHENTICATED");
    b.sync.lease_turn().await;
    assert_eq!(*b.sync.parts.api.session().borrow(), SessionState::Ended, "a person must log in again");
    assert_eq!(b.lease.current().unwrap().lost, None, "the run is not lost by that");
    let before = b.wire.asked().len();
    assert_eq!((b.sync.drain_turn().await, b.sync.claim_turn().await), (Next::Wait, Next::Wait), "everything waits for the login");
    assert_eq!(b.wire.asked().len(), before, "and the server is not hammered");
}

#[tokio::test]
async fn a_machine_that_slept_does_not_trust_its_lease() {
    let b = bench();
    b.running().await;
    b.clock.sleep(40_000);
    assert_eq!(b.lease(), Some(LeaseState::Unknown), "the monotonic clock stood still: heartbeat before the next tap (D3)");
    b.wire.push(200, &b.standing("RUNNING", 3, 90));
    b.sync.lease_turn().await;
    assert_eq!(b.lease(), Some(LeaseState::Live { left: Duration::from_secs(90) }), "the server's word settles it");
}

#[tokio::test]
async fn a_cancel_is_heard_on_a_renew_and_on_a_device_heartbeat() {
    let b = bench();
    let task = b.running().await;
    let mut standing = b.standing("RUNNING", 4, 90);
    standing["cancel_requested"] = json!(true);
    b.wire.push(200, &standing);
    b.sync.lease_turn().await;
    assert!(b.lease.current().unwrap().cancel_requested, "the run stops at its next safe point (D9)");
    let beat = json!({ "server_time": b.clock.now(), "not_ready": [], "active_task_id": null, "ttl_ms": 120_000,
        "cancel_requested_tasks": [RemoteTaskId::from_uuid(id(4))] });
    b.wire.push(200, &beat);
    b.sync.beat_turn().await;
    let row = b.store.read(move |r| r.task_get(task)).await.unwrap().unwrap();
    assert!(row.cancel_requested_at.is_some(), "a waiting task learns of it too, durably (D4)");
}

#[tokio::test]
async fn results_wait_through_an_outage_and_are_sent_byte_for_byte() {
    let b = bench();
    b.running().await;
    let (_, run) = b.store.read(|r| r.running()).await.unwrap().unwrap();
    let now = b.clock.now();
    let ending = Ending::Failure { event: Event::PermanentFailure, code: "GOODS_REMOVED".into(), message: "gone".into() };
    b.store.write(move |tx| tx.save_result_and_enqueue(&Settle { run: run.id, ending }, now)).await.unwrap();
    for script in 0..3 {
        match script {
            0 => b.wire.push_no_answer(),
            1 => b.refuse(500, "INTERNAL"),
            _ => b.wire.push(200, &json!({ "accepted": true, "duplicate": true, "late": false, "task_status": "FAILED" })),
        }
        b.sync.drain_turn().await;
        b.clock.pass(301_000);
    }
    let asked = b.asked("/results");
    let same: std::collections::BTreeSet<_> = asked.iter().map(|r| (header(r, HEADER_IDEMPOTENCY_KEY), r.body.clone())).collect();
    assert_eq!((asked.len(), same.len()), (3, 1), "the stored bytes under the stored key, every time (D8)");
    assert_eq!(b.store.read(|r| r.outbox_counts()).await.unwrap().unsent(), 0, "a duplicate is accepted as well");
    assert_eq!(*b.sync.link().borrow(), LinkState::Good, "the light is green again");
}

#[tokio::test]
async fn a_refused_result_goes_to_a_person_and_is_kept() {
    let b = bench();
    b.running().await;
    let (_, run) = b.store.read(|r| r.running()).await.unwrap().unwrap();
    let now = b.clock.now();
    let ending = Ending::Failure { event: Event::PermanentFailure, code: "GOODS_REMOVED".into(), message: "gone".into() };
    b.store.write(move |tx| tx.save_result_and_enqueue(&Settle { run: run.id, ending }, now)).await.unwrap();
    b.refuse(422, "MALFORMED");
    b.sync.drain_turn().await;
    let counts = b.store.read(|r| r.outbox_counts()).await.unwrap();
    assert_eq!((counts.failed, counts.pending), (1, 0), "not resent, not dropped");
    b.sync.drain_turn().await;
    assert_eq!(b.asked("/results").len(), 1, "resending the same bytes cannot mend a refusal (D8)");
}

#[tokio::test]
async fn a_server_that_is_back_is_told_everything_at_once() {
    let b = bench();
    b.running().await;
    let (_, run) = b.store.read(|r| r.running()).await.unwrap().unwrap();
    let now = b.clock.now();
    let ending = Ending::Failure { event: Event::PermanentFailure, code: "GOODS_REMOVED".into(), message: "gone".into() };
    b.store.write(move |tx| tx.save_result_and_enqueue(&Settle { run: run.id, ending }, now)).await.unwrap();
    for _ in 0..6 {
        b.wire.push_no_answer();
        b.sync.drain_turn().await;
        b.clock.pass(301_000);
    }
    b.wire.push_no_answer();
    b.sync.drain_turn().await;
    assert_eq!(b.sync.drain_turn().await, Next::Wait, "after a long outage the next try is minutes away");
    b.wire.push_no_answer();
    b.sync.beat_turn().await;
    b.wire.push(
        200,
        &json!({ "server_time": b.clock.now(), "not_ready": [], "active_task_id": null, "ttl_ms": 120_000, "cancel_requested_tasks": [] }),
    );
    b.sync.beat_turn().await;
    b.wire.push(200, &json!({ "accepted": true, "duplicate": false, "late": false, "task_status": "FAILED" }));
    assert_eq!(b.sync.drain_turn().await, Next::Again, "but the first heartbeat that succeeds ends the waiting");
    assert_eq!(b.store.read(|r| r.outbox_counts()).await.unwrap().unsent(), 0, "and the result is there");
}

#[tokio::test]
async fn heartbeats_back_off_from_a_dead_server() {
    let b = bench();
    let mut longest = Duration::ZERO;
    for _ in 0..12 {
        b.wire.push_no_answer();
        let Next::Within(wait) = b.sync.beat_turn().await else { panic!("a failed heartbeat is tried again") };
        longest = longest.max(wait);
    }
    assert!(longest > Duration::from_secs(2), "a fleet must not knock every second: {longest:?}");
}

#[tokio::test]
async fn a_call_that_waited_out_an_outage_is_sent_at_once_too() {
    let b = bench();
    let task = b.claimed().await;
    b.intend_start(task).await;
    for _ in 0..8 {
        b.wire.push_no_answer();
        b.sync.calls_turn().await;
        b.clock.pass(301_000);
    }
    b.wire.push_no_answer();
    b.sync.calls_turn().await;
    assert_eq!(b.sync.calls_turn().await, Next::Wait, "the next replay is minutes away");
    b.wire.push_no_answer();
    b.sync.beat_turn().await;
    b.wire.push(
        200,
        &json!({ "server_time": b.clock.now(), "not_ready": [], "active_task_id": null, "ttl_ms": 120_000, "cancel_requested_tasks": [] }),
    );
    b.sync.beat_turn().await;
    b.wire.push(200, &b.standing("RUNNING", 3, 90));
    assert_eq!(b.sync.calls_turn().await, Next::Again, "a paused run must not wait minutes for a server that is there");
    assert!(matches!(b.lease(), Some(LeaseState::Live { .. })), "and it runs");
}
