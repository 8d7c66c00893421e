//! The real server, through its routes and on a real database, answers random histories exactly as [`crate::spec`] does.
//!
//! A history is a list of small numbers; what they mean is read off the specification's state, so that most calls are about something that
//! exists and shrinking keeps a history meaningful.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use cmautobuy_protocol::admin::{CreateTask, TaskDetail, TaskSummary};
use cmautobuy_protocol::device::DeviceHeartbeatAnswer;
use cmautobuy_protocol::lifecycle::{ClaimAnswer, Standing as RealStanding};
use cmautobuy_protocol::result::{Disposition, EventType, ResultAnswer, result_key};
use cmautobuy_protocol::{
    AccessToken, AttemptId, DeviceId, ErrorBody, ErrorCode, ExecutionId, IdempotencyKey, RemoteTaskId, ServerStatus, TaskType, WireTime,
};
use cmautobuy_server::{Clock, Config, Server, TestClock};
use proptest::prelude::*;
use proptest::test_runner::{Config as Runs, RngAlgorithm, TestRng, TestRunner};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::real;
use crate::spec::step::step;
use crate::spec::{
    Answer, Ask, Attempt, Call, Device, DeviceNo, End, Key, No, Own, Proof, Reason, Report, Rules, Standing, State, Status, TaskNo, Time,
};

const DEVICES: usize = 3;
const START: &str = "2026-03-02T08:00:00.000Z";
const HISTORIES: u32 = 256;
const DAY: Duration = Duration::from_secs(24 * 3600);
/// Clock jumps in milliseconds, around every limit of T-205 §12 and D5.
const JUMPS: [Time; 10] = [1, 999, 30_000, 89_999, 90_000, 90_001, 120_000, 120_001, 599_999, 600_001];
/// Most jumps leave the leases alive.
const SMALL: [Time; 4] = [1, 999, 29_000, 45_000];

const COLLECT: &str = include_str!("../../../protocol/tests/golden/result_collect.json");
const PURCHASE: &str = include_str!("../../../protocol/tests/golden/result_purchase_dry_run.json");
const FAILURE: &str = include_str!("../../../protocol/tests/golden/result_task_failure.json");

/// One step of a history, not yet tied to any state.
#[derive(Debug, Clone)]
struct Move {
    kind: u8,
    device: usize,
    pick: usize,
    /// Zero is what a correct client sends; anything else bends one field.
    twist: u8,
    fresh: bool,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let twist = prop_oneof![5 => Just(0_u8), 2 => 1..12_u8];
    let one = (0..40_u8, 0..DEVICES, 0..64_usize, twist, prop::bool::weighted(0.85));
    let one = one.prop_map(|(kind, device, pick, twist, fresh)| Move { kind, device, pick, twist, fresh });
    prop::collection::vec(one, 10..64)
}

/// Where a history stands: the specification's state and the calls so far.
#[derive(Default)]
struct Story {
    state: State,
    now: Time,
    keys: u16,
    told: Vec<Call>,
}

impl Story {
    /// What this move means here; `None` is a jump of the clock, already made.
    fn call(&mut self, a_move: &Move) -> Option<Call> {
        let Move { kind, device, pick, twist, fresh } = *a_move;
        let tasks = self.state.tasks.len();
        let ask = match kind {
            0..=3 => {
                self.now += if twist == 0 { SMALL[pick % SMALL.len()] } else { JUMPS[pick % JUMPS.len()] };
                return None;
            }
            _ if tasks == 0 => Ask::Create { purchase: pick % 3 == 0 },
            4 => Ask::Create { purchase: pick % 3 == 0 },
            5..=9 => self.beat(device, pick, twist),
            10..=13 => return Some(self.claim(device, pick, twist, fresh)),
            14..=16 if !self.told.is_empty() => return Some(self.told[pick % self.told.len()].clone()),
            17 => Ask::Cancel { task: pick % tasks },
            18 => {
                let task = pick % tasks;
                let version = self.state.tasks[task].version - u64::from(twist == 1);
                Ask::Close { task, version, checked: twist % 2 == 0 }
            }
            _ => return Some(self.lifecycle(kind, device, pick, twist, fresh)),
        };
        Some(Call { device, ask })
    }

    fn key(&mut self, pick: usize, fresh: bool) -> Key {
        if fresh || self.keys == 0 {
            self.keys += 1;
            return Key { n: self.keys, old: false };
        }
        Key { n: u16::try_from(pick).unwrap_or(0) % self.keys + 1, old: false }
    }

    fn beat(&self, device: DeviceNo, pick: usize, twist: u8) -> Ask {
        let at = u8::try_from(device).unwrap_or(0);
        let instance = u8::from(twist == 1 || twist == 2);
        let serial = if twist == 3 { (at + 1) % 3 } else { at };
        let predecessor = (twist == 2).then(|| u8::try_from(pick % 2).unwrap_or(0));
        Ask::Beat { instance, predecessor, serial, ready: twist != 4 }
    }

    /// A correct client says it is ready before it claims.
    fn claim(&mut self, device: DeviceNo, pick: usize, twist: u8, fresh: bool) -> Call {
        let said = self.state.devices[device].beat.as_ref();
        let is_ready = said.is_some_and(|beat| beat.ready && self.now - beat.at <= Rules::REAL.heartbeat_ttl);
        if !is_ready && twist == 0 {
            return Call { device, ask: self.beat(device, pick, 0) };
        }
        let key = self.key(pick, fresh);
        let token = if twist == 1 { 900 } else { key.n };
        Call { device, ask: Ask::Claim { key: Key { old: twist == 2, ..key }, token } }
    }

    /// A call about a task, mostly by its holder and about what the holder would ask next.
    fn lifecycle(&mut self, kind: u8, device: DeviceNo, pick: usize, twist: u8, fresh: bool) -> Call {
        let held = (0..self.state.tasks.len()).filter(|n| self.state.tasks[*n].holder.is_some()).collect::<Vec<_>>();
        if held.is_empty() && twist != 11 {
            return self.claim(device, pick, twist, fresh);
        }
        let key = self.key(pick, fresh);
        let task = if held.is_empty() || twist == 11 { pick % self.state.tasks.len() } else { held[pick % held.len()] };
        let row = &self.state.tasks[task];
        let device = if twist == 1 { device } else { row.holder.map_or(device, |holder| holder.device) };
        let token = if twist == 2 { 901 } else { row.holder.map_or(0, |holder| holder.token) };
        let generation = if twist == 3 { row.generation.saturating_sub(1) } else { row.generation };
        let version = if twist == 4 { row.version + 1 } else { row.version };
        let execution = if twist == 5 { generation + 1 } else { row.execution.unwrap_or(generation) };
        let proof = Proof { task, token, generation };
        let id = u16::try_from(pick % 7).unwrap_or(0) + 10 * u16::try_from(generation).unwrap_or(0);
        let no = if twist == 6 { 0 } else { u32::from(id % 10) / 2 + 1 + u32::from(twist == 7) };
        let attempt = Attempt { id, no };
        let reason = match twist {
            8 => Reason::Reconcile,
            0 if row.status.is_terminal() => Reason::Recollect,
            9 => Reason::Recollect,
            _ => Reason::LeaseLost,
        };
        let likely = match (kind, row.status) {
            (19..=22, _) => kind,
            (23..=26, _) => 23,
            (_, Status::Claimed) => 19,
            (_, Status::Running) => 20,
            (_, Status::Waiting) => 21,
            _ => 23,
        };
        let ask = match likely {
            19 => Ask::Start { key, proof, version, attempt },
            20 => Ask::Heartbeat { proof, execution, placing: pick.is_multiple_of(5) },
            21 => Ask::Resume { key, proof, execution, reason, attempt },
            22 if row.cancel_requested || row.status != Status::Claimed => Ask::CancelAck { key, proof, execution, version },
            22 => Ask::Release { key, proof, version },
            _ => {
                let end = [End::Succeeded, End::Failed, End::Cancelled, End::ManualReview][(pick / 7) % 4];
                let execution = if twist == 5 { Some(execution) } else { row.execution };
                // Half of the results are about an attempt the server has heard of.
                let known = self.state.attempts.iter().filter(|((of, _), known)| *of == task && known.generation == generation);
                let newest = known.map(|((_, id), known)| Attempt { id: *id, no: known.no }).max_by_key(|attempt| attempt.no);
                let attempt = newest.filter(|_| twist != 7 && pick.is_multiple_of(2)).unwrap_or(attempt);
                Ask::Report(Report { task, generation, execution, attempt, end, bytes: u8::from(twist == 8) })
            }
        };
        Call { device, ask }
    }
}

/// A server with its users, devices and logins, made once: each history starts from a copy of its database.
struct Template {
    world: real::World,
    devices: Vec<(DeviceId, AccessToken)>,
    admin: AccessToken,
}

impl Template {
    fn get() -> &'static Self {
        static MADE: OnceLock<Template> = OnceLock::new();
        MADE.get_or_init(|| runtime().block_on(Self::make()))
    }

    async fn make() -> Self {
        let world = real::World::with(config(Path::new("")));
        let roles = [cmautobuy_protocol::auth::Role::Buyer];
        // The first two devices have one user, so that a device is told from a user.
        let (ann, bob) = (world.add_user("ann", &roles), world.add_user("bob", &roles));
        let mut devices = Vec::new();
        for (name, user) in [("ann", ann), ("ann", ann), ("bob", bob)] {
            let device = world.add_device(user);
            devices.push((device, world.login(name, real::PASSWORD, Some(device)).await.access_token));
        }
        let admin = world.admin().await.access_token;
        Self { world, devices, admin }
    }
}

fn config(data_dir: &Path) -> Config {
    // No history lasts longer than a login.
    Config { data_dir: data_dir.to_owned(), access_ttl: DAY, ..Config::default() }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime for the calls")
}

/// The real server of one history and the names both sides use.
struct Real {
    _dir: tempfile::TempDir,
    _server: Server,
    router: Router,
    clock: Arc<TestClock>,
    start: WireTime,
    tasks: Vec<RemoteTaskId>,
    purchases: Vec<bool>,
    executions: BTreeMap<(TaskNo, u64), ExecutionId>,
}

fn uuid(kind: u8, n: u64) -> Uuid {
    Uuid::from_u64_pair(0x018f_0000_0000_7000 | u64::from(kind) << 32, 0x8000_0000_0000_0000 | n)
}

fn token(n: u16) -> String {
    use base64::Engine;
    let mut bytes = [7_u8; 32];
    bytes[..2].copy_from_slice(&n.to_be_bytes());
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)
}

impl Real {
    fn open() -> Self {
        let template = Template::get();
        let dir = tempfile::tempdir().expect("a temporary folder");
        for file in std::fs::read_dir(template.world.dir.path()).expect("the template's folder") {
            let file = file.expect("a file of the template");
            std::fs::copy(file.path(), dir.path().join(file.file_name())).expect("the template's files can be copied");
        }
        let start = real::time(START);
        let clock = Arc::new(TestClock::new(start));
        let server = Server::open(config(dir.path()), Arc::clone(&clock) as Arc<dyn Clock>).expect("a server on a copy of the template");
        let router = server.router();
        Self { _dir: dir, _server: server, router, clock, start, tasks: Vec::new(), purchases: Vec::new(), executions: BTreeMap::new() }
    }

    fn key(&self, key: Key) -> IdempotencyKey {
        let age: Time = if key.old { 31 * 24 * 3_600_000 } else { 0 };
        let ms = u64::try_from(self.start.unix_ms() - age).expect("tests live after 1970");
        let mut bytes = [0_u8; 10];
        bytes[8..].copy_from_slice(&key.n.to_be_bytes());
        IdempotencyKey::from_uuid(uuid::Builder::from_unix_timestamp_millis(ms, &bytes).into_uuid())
    }

    fn attempt(attempt: Attempt) -> AttemptId {
        AttemptId::from_uuid(uuid(1, u64::from(attempt.id)))
    }

    /// A generation that was never started has no execution; any id will do.
    fn execution(&self, task: TaskNo, generation: u64) -> ExecutionId {
        let unknown = || ExecutionId::from_uuid(uuid(2, 1000 * u64::try_from(task).unwrap_or(0) + generation));
        self.executions.get(&(task, generation)).copied().unwrap_or_else(unknown)
    }

    async fn post(&self, who: &AccessToken, path: &str, headers: &[(&str, &str)], body: &Value) -> real::Answer {
        real::send(&self.router, path, Some(who), headers, body).await
    }

    async fn ask(&mut self, call: &Call) -> Answer {
        let template = Template::get();
        let (device, access) = &template.devices[call.device];
        let admin = &template.admin;
        match &call.ask {
            Ask::Beat { instance, predecessor, serial, ready } => {
                let instance_id = |n: u8| uuid(3, 10 * u64::try_from(call.device).unwrap_or(0) + u64::from(n));
                let body = json!({
                    "device_id": device, "instance_id": instance_id(*instance),
                    "predecessors": predecessor.iter().map(|n| instance_id(*n)).collect::<Vec<_>>(),
                    "phone_serial": format!("phone {serial}"), "app_version": "1", "android_version": null, "pdd_version": null,
                    "accessibility_connected": ready, "pdd_installed": true, "active_task_id": null, "client_time": self.start,
                });
                let answer = self.post(access, "/devices/heartbeat", &[], &body).await;
                self.read(&answer, |real, beat: DeviceHeartbeatAnswer| Answer::Beaten {
                    active: beat.active_task_id.map(|id| real.task_no(id)),
                    cancels: beat.cancel_requested_tasks.into_iter().map(|id| real.task_no(id)).collect(),
                    ready: beat.not_ready.is_empty(),
                })
            }
            Ask::Claim { key, token: n } => {
                let (key, token) = (self.key(*key), token(*n));
                let headers = [("x-claim-token", token.as_str()), ("idempotency-key", key.as_str())];
                let answer = self.post(access, "/tasks/claim-next", &headers, &json!({"device_id": device})).await;
                if answer.status == 204 {
                    return Answer::NoTask;
                }
                self.read(&answer, |real, claim: ClaimAnswer| real.standing(&claim.standing))
            }
            Ask::Start { key, proof, version, attempt } => {
                let body = json!({
                    "claim_generation": proof.generation, "expected_version": version,
                    "attempt_id": Self::attempt(*attempt), "attempt_no": attempt.no,
                });
                self.lifecycle(access, "start", Some(*key), *proof, &body).await
            }
            Ask::Heartbeat { proof, execution, placing } => {
                let step = if *placing { "placing_order" } else { "looking" };
                let execution = self.execution(proof.task, *execution);
                let body = json!({"claim_generation": proof.generation, "execution_id": execution, "step": step});
                self.lifecycle(access, "heartbeat", None, *proof, &body).await
            }
            Ask::Resume { key, proof, execution, reason, attempt } => {
                let reason = match reason {
                    // All these are one reason to the server.
                    Reason::LeaseLost => ["lease_lost", "restart", "retry", "operator"][usize::from(key.n % 4)],
                    Reason::Recollect => "recollect",
                    Reason::Reconcile => "reconcile",
                };
                let body = json!({
                    "claim_generation": proof.generation, "execution_id": self.execution(proof.task, *execution), "reason": reason,
                    "attempt_id": Self::attempt(*attempt), "attempt_no": attempt.no,
                });
                self.lifecycle(access, "resume", Some(*key), *proof, &body).await
            }
            Ask::Release { key, proof, version } => {
                let body = json!({"claim_generation": proof.generation, "expected_version": version});
                self.lifecycle(access, "release", Some(*key), *proof, &body).await
            }
            Ask::CancelAck { key, proof, execution, version } => {
                let execution = self.execution(proof.task, *execution);
                let body = json!({"claim_generation": proof.generation, "execution_id": execution, "expected_version": version});
                self.lifecycle(access, "cancel-ack", Some(*key), *proof, &body).await
            }
            Ask::Report(report) => self.report(access, report).await,
            Ask::Create { purchase } => {
                let mut asked: CreateTask = real::collect(1000 + u64::try_from(self.tasks.len()).unwrap_or(0));
                if *purchase {
                    asked.task_type = TaskType::Purchase;
                    asked.quantity = Some(1);
                    asked.external_ref = Some(format!("order {}", self.tasks.len()));
                }
                let key = self.key(Key { n: 60_000 + u16::try_from(self.tasks.len()).unwrap_or(0), old: false });
                let asked = serde_json::to_value(asked).expect("a task becomes JSON");
                let answer = self.post(admin, "/admin/tasks", &[("idempotency-key", key.as_str())], &asked).await;
                let made: TaskSummary = answer.ok();
                self.tasks.push(made.task_id);
                self.purchases.push(*purchase);
                Answer::Managed { status: status(made.status), version: made.version }
            }
            Ask::Cancel { task } => {
                let answer = self.post(admin, &format!("/admin/tasks/{}/cancel", self.tasks[*task]), &[], &json!({})).await;
                self.managed(&answer)
            }
            Ask::Close { task, version, checked } => {
                let body = json!({"reason": "lost", "expected_version": version, "order_checked": checked});
                let answer = self.post(admin, &format!("/admin/tasks/{}/close", self.tasks[*task]), &[], &body).await;
                self.managed(&answer)
            }
        }
    }

    async fn lifecycle(&mut self, access: &AccessToken, call: &str, key: Option<Key>, proof: Proof, body: &Value) -> Answer {
        let token = token(proof.token);
        let key = key.map(|key| self.key(key));
        let mut headers = vec![("x-claim-token", token.as_str())];
        headers.extend(key.as_ref().map(|key| ("idempotency-key", key.as_str())));
        let answer = self.post(access, &format!("/tasks/{}/{call}", self.tasks[proof.task]), &headers, body).await;
        self.read(&answer, |real, standing: RealStanding| {
            assert_eq!(standing.server_time, real.clock.now(), "every lifecycle answer says the server's time (T-205 §11)");
            if let Some(execution) = standing.execution_id {
                real.executions.entry((proof.task, standing.claim_generation)).or_insert(execution);
            }
            real.standing(&standing)
        })
    }

    async fn report(&self, access: &AccessToken, report: &Report) -> Answer {
        let is_purchase = self.purchases[report.task];
        let (golden, event) = match (report.end, is_purchase) {
            (End::Succeeded, false) => (COLLECT, EventType::CollectResult),
            (End::Succeeded, true) => (PURCHASE, EventType::PurchaseResult),
            _ => (FAILURE, EventType::TaskFailure),
        };
        let disposition = match report.end {
            End::Succeeded => Disposition::Succeeded,
            End::Failed => Disposition::Failed,
            End::Cancelled => Disposition::Cancelled,
            End::ManualReview => Disposition::ManualReview,
        };
        let mut body: Value = serde_json::from_str(golden).expect("a golden message is JSON");
        body["disposition"] = json!(disposition);
        body["claim_generation"] = json!(report.generation);
        body["execution_id"] = json!(report.execution.map(|execution| self.execution(report.task, execution)));
        body["attempt_id"] = json!(Self::attempt(report.attempt));
        body["attempt_no"] = json!(report.attempt.no);
        body["finished_at"] = json!(self.start.plus_ms(i64::from(report.bytes)));
        let task = self.tasks[report.task];
        let key = result_key(task, Self::attempt(report.attempt), event);
        let answer = self.post(access, &format!("/tasks/{task}/results"), &[("idempotency-key", key.as_str())], &body).await;
        match serde_json::from_str::<ResultAnswer>(&answer.text) {
            Ok(said) => {
                assert!(said.accepted, "a result that is answered with 200 is accepted");
                Answer::Reported { duplicate: said.duplicate, late: said.late, status: status(said.task_status) }
            }
            Err(_) => refusal(&answer, |_| unreachable!("a result's refusal says nothing of the task")),
        }
    }

    async fn detail(&self, task: TaskNo) -> TaskDetail {
        let request = axum::http::Request::get(format!("/api/v1/admin/tasks/{}", self.tasks[task]))
            .header("authorization", format!("Bearer {}", Template::get().admin.reveal()))
            .body(axum::body::Body::empty())
            .expect("a request");
        real::call(&self.router, request).await.ok()
    }

    fn read<T: DeserializeOwned>(&mut self, answer: &real::Answer, told: impl FnOnce(&mut Self, T) -> Answer) -> Answer {
        if answer.status == 200 {
            let said = answer.ok();
            return told(self, said);
        }
        refusal(answer, |id| self.generation_of(id))
    }

    fn managed(&mut self, answer: &real::Answer) -> Answer {
        self.read(answer, |_, task: TaskSummary| Answer::Managed { status: status(task.status), version: task.version })
    }

    fn standing(&self, standing: &RealStanding) -> Answer {
        Answer::Stands(Standing {
            task: self.task_no(standing.task_id),
            status: status(standing.status),
            version: standing.version,
            generation: standing.claim_generation,
            execution: standing.execution_id.map(|id| self.generation_of(id)),
            lease: standing.lease_expires_at.map(|at| at.ms_since(self.start)),
            cancel_requested: standing.cancel_requested,
        })
    }

    fn task_no(&self, id: RemoteTaskId) -> TaskNo {
        self.tasks.iter().position(|known| *known == id).expect("the server names only tasks it was given")
    }

    fn generation_of(&self, id: ExecutionId) -> u64 {
        let found = self.executions.iter().find(|(_, known)| **known == id);
        found.expect("an execution is first named by the start that made it").0.1
    }
}

fn status(status: ServerStatus) -> Status {
    match status {
        ServerStatus::Pending => Status::Pending,
        ServerStatus::Claimed => Status::Claimed,
        ServerStatus::Running => Status::Running,
        ServerStatus::WaitingConfirmation => Status::Waiting,
        ServerStatus::Succeeded => Status::Succeeded,
        ServerStatus::Failed => Status::Failed,
        ServerStatus::Canceled => Status::Canceled,
    }
}

fn refusal(answer: &real::Answer, execution: impl Fn(ExecutionId) -> u64) -> Answer {
    let ErrorBody { error } = serde_json::from_str(&answer.text).expect("a refusal carries the one error body (D13)");
    let (no, code) = match error.code {
        ErrorCode::NotFound => (No::NotFound, 404),
        ErrorCode::Malformed => (No::Malformed, 422),
        ErrorCode::IdempotencyConflict => (No::IdempotencyConflict, 409),
        ErrorCode::ClaimReplayExpired => (No::ClaimReplayExpired, 409),
        ErrorCode::DeviceNotReady => (No::DeviceNotReady, 409),
        ErrorCode::DeviceBusy => (No::DeviceBusy, 409),
        ErrorCode::DeviceInUse => (No::DeviceInUse, 409),
        ErrorCode::LeaseExpired => (No::LeaseExpired, 409),
        ErrorCode::ClaimLost => (No::ClaimLost, 409),
        ErrorCode::TaskCanceled => (No::TaskCanceled, 409),
        ErrorCode::VersionConflict => (No::VersionConflict, 409),
        ErrorCode::ExecutionMismatch => (No::ExecutionMismatch, 409),
        ErrorCode::IllegalState => (No::IllegalState, 409),
        other => panic!("no history may be answered with {other}: {}", answer.text),
    };
    assert_eq!(answer.status.as_u16(), code, "{} travels under its status", error.code);
    let own = error.task.map(|own| Own { status: status(own.status), version: own.version, execution: own.execution_id.map(execution) });
    Answer::No(no, own)
}

/// A short name of an answer, to see that the histories reach all of them.
fn kind(answer: &Answer) -> String {
    match answer {
        Answer::Beaten { active, cancels, .. } => format!("beaten, active {}, cancels {}", active.is_some(), !cancels.is_empty()),
        Answer::NoTask => "no task".to_owned(),
        Answer::Stands(standing) => format!("stands {:?}", standing.status),
        Answer::Reported { duplicate, late, .. } => format!("reported, duplicate {duplicate}, late {late}"),
        Answer::Managed { status, .. } => format!("managed {status:?}"),
        Answer::No(no, _) => format!("no {no:?}"),
    }
}

/// What every run of the default length must have met.
const MET: [&str; 32] = [
    "beaten, active false, cancels false",
    "beaten, active true, cancels false",
    "beaten, active true, cancels true",
    "no task",
    "stands Pending",
    "stands Claimed",
    "stands Running",
    "stands Waiting",
    "stands Succeeded",
    "stands Failed",
    "stands Canceled",
    "reported, duplicate false, late false",
    "reported, duplicate false, late true",
    "reported, duplicate true, late false",
    "reported, duplicate true, late true",
    "managed Pending",
    "managed Running",
    "managed Failed",
    "managed Canceled",
    "no NotFound",
    "no Malformed",
    "no IdempotencyConflict",
    "no ClaimReplayExpired",
    "no DeviceNotReady",
    "no DeviceBusy",
    "no DeviceInUse",
    "no LeaseExpired",
    "no ClaimLost",
    "no TaskCanceled",
    "no VersionConflict",
    "no ExecutionMismatch",
    "no IllegalState",
];

/// What is left when a history is over, beyond its answers.
async fn same_end(story: &Story, real: &Real) -> Result<(), TestCaseError> {
    for (n, row) in story.state.tasks.iter().enumerate() {
        let detail = real.detail(n).await;
        let outcome = row.latest.map(|(_, _, end)| match end {
            End::Succeeded => Disposition::Succeeded,
            End::Failed => Disposition::Failed,
            End::Cancelled => Disposition::Cancelled,
            End::ManualReview => Disposition::ManualReview,
        });
        let is = (status(detail.task.status), detail.task.version, detail.task.claim_generation, detail.task.latest_outcome);
        prop_assert_eq!(is, (row.status, row.version, row.generation, outcome), "task {} must end as the specification says", n);
        let stored = story.state.results.iter().filter(|((task, ..), _)| *task == n);
        let wanted = stored.fold((0, 0_u64), |(count, again), (_, stored)| (count + 1, again + u64::from(stored.duplicates)));
        let duplicates = detail.results.iter().map(|result| u64::from(result.duplicates)).sum::<u64>();
        prop_assert_eq!((detail.results.len(), duplicates), wanted, "every result of task {} is kept once and its resends are counted", n);
        let versions = detail.events.iter().map(|event| event.version).collect::<Vec<_>>();
        prop_assert_eq!(versions, (1..=row.version).collect::<Vec<_>>(), "every version of task {} has its one event (T-205 §11)", n);
    }
    Ok(())
}

fn play(runtime: &tokio::runtime::Runtime, history: &[Move], met: &RefCell<BTreeMap<String, u32>>) -> Result<(), TestCaseError> {
    let devices = vec![Device::default(); DEVICES];
    let mut story = Story { state: State { devices, ..State::default() }, ..Story::default() };
    let mut real = Real::open();
    runtime.block_on(async {
        for a_move in history {
            let Some(call) = story.call(a_move) else { continue };
            // Tasks of one millisecond would be told apart by their ids only.
            if matches!(call.ask, Ask::Create { .. }) {
                story.now += 1;
            }
            real.clock.set(real.start.plus_ms(story.now));
            let (after, wanted) = step(&story.state, &Rules::REAL, story.now, &call);
            let got = real.ask(&call).await;
            prop_assert_eq!(&got, &wanted, "at {} ms the server must answer {:?} as T-205 says; before: {:?}", story.now, call, story.told);
            *met.borrow_mut().entry(kind(&got)).or_default() += 1;
            story.state = after;
            story.told.push(call);
        }
        same_end(&story, &real).await
    })
}

#[test]
fn the_server_agrees_with_the_specification() {
    let histories = match std::env::var("CMAUTOBUY_HISTORIES") {
        Ok(text) => text.parse().expect("CMAUTOBUY_HISTORIES must be a number"),
        Err(_) => HISTORIES,
    };
    // The same histories in every run: a failure here is a failure everywhere.
    let runs = Runs { cases: histories, failure_persistence: None, max_shrink_iters: 2_000, ..Runs::default() };
    let mut runner = TestRunner::new_with_rng(runs, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let runtime = runtime();
    // Made before any runtime is entered, because it needs one of its own.
    Template::get();
    let met = RefCell::default();
    if let Err(error) = runner.run(&moves(), |history| play(&runtime, &history, &met)) {
        panic!("the server and the specification must agree on every history: {error}");
    }
    let met = met.into_inner();
    let missing = MET.iter().filter(|kind| !met.contains_key(**kind)).collect::<Vec<_>>();
    assert!(histories < HISTORIES || missing.is_empty(), "histories that never meet {missing:?} prove little; met was {met:#?}");
}
