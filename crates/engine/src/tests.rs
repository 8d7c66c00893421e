//! The worker's decisions on a real store: which intent it commits, and when it leaves the phone alone.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cmautobuy_device::fake::FakePage;
use cmautobuy_device::{FakePhone, Phone};
use cmautobuy_pdd::RulePack;
use cmautobuy_protocol::lifecycle::{ClaimAnswer, Standing};
use cmautobuy_protocol::{AttemptId, DeviceId, ExecutionId, IdempotencyKey, RemoteTaskId, ServerStatus, UserId, WireTime};
use cmautobuy_store::{
    CallKind, CallRecord, Ending, FreshClaim, LocalTaskId, PhoneRef, PrepareOutcome, ReleaseAim, RunRow, SealKey, Settle, Store, TaskRow,
};
use cmautobuy_task::{Clock, Event, LeaseCell, Mono, TaskState};
use serde_json::json;
use tokio::sync::{Notify, watch};

use crate::artifacts::ArtifactStore;
use crate::run::Outcome;
use crate::worker::{Engine, EngineNudges, EngineParts, PhoneSlot, Turn, WorkOrder, WorkState};

#[derive(Debug, Default)]
struct HandClock(Mutex<u64>);

impl HandClock {
    fn pass(&self, time: Duration) {
        *self.0.lock().unwrap() += u64::try_from(time.as_millis()).unwrap();
    }
}

impl Clock for HandClock {
    fn now(&self) -> WireTime {
        WireTime::from_unix_ms(1_764_576_000_000 + i64::try_from(*self.0.lock().unwrap()).unwrap()).unwrap()
    }
    fn mono(&self) -> Mono {
        Mono(Duration::from_millis(*self.0.lock().unwrap()))
    }
}

struct Bench {
    engine: Engine,
    store: Store,
    clock: Arc<HandClock>,
    lease: Arc<LeaseCell>,
    phone: watch::Sender<PhoneSlot>,
    order: watch::Sender<WorkOrder>,
    fake: Arc<FakePhone>,
    _dir: tempfile::TempDir,
}

fn id(n: u8) -> uuid::Uuid {
    uuid::Uuid::from_bytes([n; 16])
}

fn bench() -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("client.db"), SealKey::from_bytes([5; 32])).unwrap();
    let clock = Arc::new(HandClock::default());
    let lease = Arc::new(LeaseCell::default());
    let fake = Arc::new(FakePhone::new("S1", FakePage::pdd("<hierarchy rotation='0'/>")));
    let phone = watch::Sender::new(Some(Arc::clone(&fake) as Arc<dyn Phone>));
    let order = watch::Sender::new(WorkOrder::Run { press: 1 });
    let nudge = || Arc::new(Notify::new());
    let engine = Engine::new(EngineParts {
        store: store.clone(),
        clock: clock.clone(),
        lease: lease.clone(),
        nudges: EngineNudges { engine: nudge(), lease_changed: nudge(), calls: nudge(), lease: nudge(), drain: nudge(), claim: nudge() },
        rules: Arc::new(RulePack::builtin()),
        artifacts: ArtifactStore::new(dir.path()),
        phone: phone.subscribe(),
        order: order.subscribe(),
        client_id: "client".into(),
        max_retries: 1,
    });
    Bench { engine, store, clock, lease, phone, order, fake, _dir: dir }
}

impl Bench {
    fn standing(&self, task: u8, status: ServerStatus) -> Standing {
        Standing {
            task_id: RemoteTaskId::from_uuid(id(task)),
            status,
            version: 2,
            claim_generation: 1,
            execution_id: (status != ServerStatus::Claimed).then(|| ExecutionId::from_uuid(id(task + 100))),
            server_time: self.clock.now(),
            lease_expires_at: Some(self.clock.now().plus_ms(600_000)),
            cancel_requested: false,
        }
    }

    async fn claimed(&self, task: u8) -> LocalTaskId {
        let now = self.clock.now();
        let key = IdempotencyKey::from_uuid(id(task));
        let token = format!("{}A", "t".repeat(42)).parse().unwrap();
        let data = json!({ "task_type": "collect", "execution_mode": "dry_run", "priority": 0,
            "goods_url": "https://mobile.yangkeduo.com/goods.html?goods_id=737116531267" });
        let answer = ClaimAnswer { standing: self.standing(task, ServerStatus::Claimed), task: data };
        let fresh = FreshClaim { key: key.clone(), token };
        let stored = self
            .store
            .write(move |tx| {
                let prepared = tx.claim_prepare(fresh, UserId::from_uuid(id(1)), DeviceId::from_uuid(id(2)), now)?;
                assert!(matches!(prepared, PrepareOutcome::Open(_)), "the desk is free: {prepared:?}");
                tx.claim_store(&key, &answer, "{}", AttemptId::from_uuid(id(99)), now)
            })
            .await
            .unwrap();
        stored.task
    }

    async fn call(&self, task: LocalTaskId) -> Option<CallRecord> {
        self.store.read(move |r| r.call_open_of(task)).await.unwrap()
    }

    /// The server answered the open start or resume.
    async fn answered(&self, task: LocalTaskId, number: u8) {
        let (standing, now) = (self.standing(number, ServerStatus::Running), self.clock.now());
        let call = self.call(task).await.expect("an intent is open").id;
        let phone = PhoneRef { device_address: "S1".into(), phone_serial: Some("S1".into()) };
        self.store.write(move |tx| tx.call_answered_start(call, &standing, &phone, now)).await.unwrap();
    }

    async fn waits_for_retry(&self, number: u8) -> LocalTaskId {
        let task = self.claimed(number).await;
        self.turn().await;
        self.answered(task, number).await;
        let now = self.clock.now();
        let (_, run) = self.store.read(|r| r.running()).await.unwrap().unwrap();
        self.store.write(move |tx| tx.run_suspend_retry(run.id, "NETWORK_PAGE", "busy", 3, now)).await.unwrap();
        task
    }

    async fn turn(&self) -> Turn {
        self.engine.turn().await.expect("a turn on a sound store")
    }

    async fn state(&self, task: LocalTaskId) -> TaskState {
        self.store.read(move |r| r.task_get(task)).await.unwrap().unwrap().state
    }
}

#[tokio::test]
async fn a_claimed_task_is_started_by_one_durable_intent() {
    let b = bench();
    let task = b.claimed(10).await;
    assert_eq!(b.turn().await, Turn::Wait, "the intent is committed; sync performs it");
    let call = b.call(task).await.expect("a start");
    assert_eq!((call.kind, call.attempt.map(|(_, no)| no)), (CallKind::Start, Some(1)), "the first attempt, made with the intent (D3)");
    b.turn().await;
    assert_eq!(b.call(task).await.map(|c| c.id), Some(call.id), "one open intent is enough; a second would be a second key");
    assert_eq!(b.state(task).await, TaskState::Claimed, "nothing runs on a hope (D2)");
    assert!(b.fake.performed().is_empty(), "and nothing is touched");
}

#[tokio::test]
async fn a_running_row_without_its_lease_never_touches_the_phone() {
    let b = bench();
    let task = b.claimed(10).await;
    b.turn().await;
    b.answered(task, 10).await;
    assert_eq!(b.turn().await, Turn::Wait, "the row runs, but its lease is not in this process yet");
    assert_eq!((b.fake.captures_taken(), b.fake.performed().len()), (0, 0), "no lease, no look, no tap (D3)");
}

#[tokio::test]
async fn a_phone_that_is_away_for_a_moment_costs_no_task() {
    let b = bench();
    let task = b.claimed(10).await;
    b.phone.send_replace(None);
    assert_eq!(b.turn().await, Turn::Wait, "a moved cable");
    b.clock.pass(Duration::from_secs(29));
    b.turn().await;
    assert_eq!(b.call(task).await, None, "the task is kept while the phone may come back");
    b.clock.pass(Duration::from_secs(1));
    b.turn().await;
    let call = b.call(task).await.expect("given back");
    assert_eq!(call.kind, CallKind::Release { aim: ReleaseAim::PhoneUnreachable }, "after 30 s somebody else may have it (D2)");
}

#[tokio::test]
async fn a_phone_that_came_back_is_waited_for_anew() {
    let b = bench();
    let task = b.claimed(10).await;
    b.phone.send_replace(None);
    b.turn().await;
    b.clock.pass(Duration::from_secs(29));
    b.phone.send_replace(Some(Arc::clone(&b.fake) as Arc<dyn Phone>));
    b.turn().await;
    assert_eq!(b.call(task).await.map(|c| c.kind), Some(CallKind::Start), "it is back: go on");
}

#[tokio::test]
async fn stop_gives_back_what_was_not_begun() {
    let b = bench();
    let task = b.claimed(10).await;
    b.order.send_replace(WorkOrder::Stop);
    b.turn().await;
    let kind = b.call(task).await.map(|c| c.kind);
    assert_eq!(kind, Some(CallKind::Release { aim: ReleaseAim::OperatorStopped }), "before the first start: release (D2)");
}

#[tokio::test]
async fn starting_again_retries_first_with_a_resume_and_the_next_number() {
    let b = bench();
    let task = b.waits_for_retry(10).await;
    assert_eq!(b.state(task).await, TaskState::RetryWait, "set up");
    b.turn().await;
    let call = b.call(task).await.expect("a resume");
    assert_eq!((call.kind, call.attempt.map(|(_, no)| no)), (CallKind::Resume, Some(2)), "the same execution, a new attempt (D5, 03 §7.2)");
    assert!(call.body_json.contains("\"retry\""), "with its reason: {}", call.body_json);
}

#[tokio::test]
async fn a_run_the_last_process_did_not_end_is_resumed_as_a_restart() {
    let b = bench();
    let task = b.claimed(10).await;
    b.turn().await;
    b.answered(task, 10).await;
    let now = b.clock.now();
    b.store.write(move |tx| tx.recover_after_crash(now)).await.unwrap();
    b.turn().await;
    let call = b.call(task).await.expect("a resume just before the new attempt (D4)");
    assert!(call.body_json.contains("\"restart\""), "the server's events tell a crash from a retry: {}", call.body_json);
}

#[tokio::test]
async fn a_paused_worker_waits_for_the_next_press() {
    let b = bench();
    let task = b.waits_for_retry(10).await;
    b.engine.say(WorkState::Paused(crate::Pause { code: "NETWORK_PAGE".into(), message: "busy".into() }));
    assert_eq!(b.turn().await, Turn::Wait, "no silent retry (03 §7.1)");
    assert_eq!(b.call(task).await, None, "the task waits for a person");
}

#[tokio::test]
async fn a_waiting_task_that_was_cancelled_is_acknowledged_even_while_stopped() {
    let b = bench();
    let task = b.waits_for_retry(10).await;
    b.order.send_replace(WorkOrder::Stop);
    let (remote, now) = (RemoteTaskId::from_uuid(id(10)), b.clock.now());
    b.store.write(move |tx| tx.cancel_requested(&[remote], now).map(drop)).await.unwrap();
    b.turn().await;
    assert_eq!(b.call(task).await.map(|c| c.kind), Some(CallKind::CancelAck), "it needs identity, no lease and no phone (D4)");
}

/// A run under way, with its lease.
async fn under_way(b: &Bench) -> (TaskRow, RunRow) {
    let task = b.claimed(10).await;
    b.turn().await;
    b.answered(task, 10).await;
    let standing = b.standing(10, ServerStatus::Running);
    b.lease.begin(cmautobuy_task::Running {
        task: standing.task_id,
        execution: standing.execution_id.unwrap(),
        generation: 1,
        lease: None,
        cancel_requested: false,
        lost: None,
        step: String::new(),
    });
    b.store.read(|r| r.running()).await.unwrap().expect("set up")
}

#[tokio::test]
async fn data_that_contradicts_itself_goes_to_a_person_and_is_not_collected_again() {
    let b = bench();
    let (task, run) = under_way(&b).await;
    let data = serde_json::from_value(json!({
        "schema_version": 1, "goods": { "goods_id": "737116531267", "url": "u", "title": " " }, "shop": { "name": null },
        "metrics": { "sales": null, "reviews": null }, "dimensions": [], "skus": [], "price_granularity": "color", "purchase": null,
        "captured_at": b.clock.now(), "source": { "client_id": "c", "device_address": "d", "pdd_package": "p" }
    }))
    .unwrap();
    let refused = b.engine.settle(&task, &run, Outcome::Done(Ending::Collected(Box::new(data)))).await;
    assert!(refused.is_err(), "the store takes no document that contradicts itself (03 §9)");
    assert_eq!(b.turn().await, Turn::Again, "the next turn settles it");
    assert_eq!(b.state(task.id).await, TaskState::ManualReview, "a person must look");
    assert_eq!(b.store.read(|r| r.outbox_counts()).await.unwrap().pending, 1, "and the server is told why");
    assert_eq!(b.fake.captures_taken(), 0, "the phone does not do the work again");
}

#[tokio::test]
async fn a_run_the_server_ended_meanwhile_is_left_as_it_is() {
    let b = bench();
    let (task, run) = under_way(&b).await;
    let (id, now) = (run.id, b.clock.now());
    let ending = Ending::Failure { event: Event::PermanentFailure, code: "GOODS_REMOVED".into(), message: "gone".into() };
    b.store.write(move |tx| tx.save_result_and_enqueue(&Settle { run: id, ending }, now)).await.unwrap();
    let late = Outcome::Retry { code: "LEASE_LOST".into(), message: "late".into() };
    assert_eq!(b.engine.settle(&task, &run, late).await.unwrap(), Turn::Again, "a late callback changes nothing (03 §7.2)");
    assert_eq!(b.state(task.id).await, TaskState::Failed, "the first end stands");
    assert_eq!(b.lease.current(), None, "and the phone is free");
}

#[tokio::test]
async fn a_phone_that_never_comes_back_suspends_the_run() {
    let b = bench();
    let (task, _) = under_way(&b).await;
    b.phone.send_replace(None);
    assert_eq!(b.turn().await, Turn::Wait, "it may come back");
    b.clock.pass(Duration::from_secs(31));
    b.turn().await;
    assert_eq!(b.state(task.id).await, TaskState::RetryWait, "a device error of a collect task is worth another run (03 §7.1)");
    assert!(matches!(*b.engine.state().borrow(), WorkState::Paused(_)), "and work pauses until a person has looked");
    assert_eq!(b.lease.current(), None, "the run is over");
}
