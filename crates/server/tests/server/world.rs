//! A server on a temporary folder and the people who call it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::response::Parts;
use axum::http::{HeaderMap, Request, StatusCode};
use cmautobuy_protocol::admin::{AuthorizeDevice, CreateTask, CreateUser, TaskDetail, TaskSummary};
use cmautobuy_protocol::auth::{LoginRequest, Role, Session};
use cmautobuy_protocol::device::DeviceHeartbeat;
use cmautobuy_protocol::lifecycle::{
    CancelAckRequest, ClaimAnswer, ClaimRequest, ReleaseRequest, ResumeReason, ResumeRequest, RunHeartbeat, Standing, StartRequest,
};
use cmautobuy_protocol::{
    AccessToken, AttemptId, ClaimToken, DeviceId, ErrorBody, ErrorCode, ExecutionMode, IdempotencyKey, InstanceId, Password, RemoteTaskId,
    TaskType, UserId, WireTime,
};
use cmautobuy_server::{Clock, Config, Server, TestClock};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::TempDir;
use tower::ServiceExt;
use uuid::Uuid;

pub(crate) const PASSWORD: &str = "buyers-own-password";

pub(crate) struct World {
    pub(crate) dir: TempDir,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) server: Server,
    pub(crate) router: Router,
    pub(crate) admin_password: Password,
    pub(crate) goods: AtomicU64,
}

/// What came back: status, headers, body text.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    #[track_caller]
    pub(crate) fn ok<T: DeserializeOwned>(&self) -> T {
        assert_eq!(self.status, StatusCode::OK, "this call must succeed, it answered: {}", self.text);
        serde_json::from_str(&self.text).expect("a 200 must carry the message the protocol names")
    }

    /// The code of a refusal, with the status it must travel under.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16) -> ErrorBody {
        assert_eq!(self.status.as_u16(), status, "the refusal must have this status, it answered: {}", self.text);
        serde_json::from_str(&self.text).expect("a refusal must carry the one error body")
    }

    #[track_caller]
    pub(crate) fn is(&self, status: u16, code: ErrorCode, why: &str) -> ErrorBody {
        let body = self.refused(status);
        assert_eq!(body.error.code, code, "{why}");
        body
    }
}

pub(crate) fn time(text: &str) -> WireTime {
    text.parse().expect("the test's time must be a time")
}

pub(crate) fn token() -> ClaimToken {
    use base64::Engine;
    let bytes: [u8; 32] = rand::random();
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes).parse().expect("32 bytes are 43 characters")
}

/// Any id a client might have made.
fn random_uuid() -> Uuid {
    Uuid::from_bytes(rand::random())
}

pub(crate) fn key_at(at: WireTime) -> IdempotencyKey {
    let ms = u64::try_from(at.unix_ms()).expect("tests live after 1970");
    let at = uuid::Timestamp::from_unix(uuid::NoContext, ms / 1000, u32::try_from(ms % 1000).expect("below 1000") * 1_000_000);
    IdempotencyKey::from_uuid(Uuid::new_v7(at))
}

pub(crate) fn attempt_id() -> AttemptId {
    AttemptId::from_uuid(random_uuid())
}

pub(crate) fn collect(goods_id: u64) -> CreateTask {
    CreateTask {
        task_type: TaskType::Collect,
        execution_mode: ExecutionMode::DryRun,
        goods_url: format!("https://mobile.yangkeduo.com/goods.html?goods_id={goods_id}"),
        title: None,
        target_color: None,
        target_size: None,
        price_cent: None,
        max_price_cent: None,
        quantity: None,
        priority: 0,
        external_ref: None,
    }
}

/// What came back, as bytes.
pub(crate) async fn exchange(router: &Router, request: Request<Body>) -> (Parts, Bytes) {
    let response = router.clone().oneshot(request).await.expect("the router never fails");
    let (parts, body) = response.into_parts();
    (parts, axum::body::to_bytes(body, 64 << 20).await.expect("the answer's body must be readable"))
}

pub(crate) async fn call(router: &Router, request: Request<Body>) -> Answer {
    let (parts, bytes) = exchange(router, request).await;
    Answer { status: parts.status, headers: parts.headers, text: String::from_utf8(bytes.to_vec()).expect("answers are UTF-8") }
}

pub(crate) fn post(path: &str) -> axum::http::request::Builder {
    Request::post(format!("/api/v1{path}")).header("content-type", "application/json")
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Config::default())
    }

    pub(crate) fn with(config: Config) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let clock = Arc::new(TestClock::new(time("2026-03-02T08:00:00.000Z")));
        let config = Config { data_dir: dir.path().to_owned(), ..config };
        let mut server = Server::open(config, Arc::clone(&clock) as Arc<dyn Clock>).expect("a server on an empty folder");
        let admin_password = server.first_admin_password().expect("the first start makes an administrator");
        let router = server.router();
        Self { dir, clock, server, router, admin_password, goods: AtomicU64::new(1000) }
    }

    pub(crate) fn now(&self) -> WireTime {
        self.clock.now()
    }

    pub(crate) fn advance_s(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// A new collect task of its own goods, a second after the one before.
    pub(crate) fn task(&self) -> RemoteTaskId {
        self.clock.advance(Duration::from_millis(1));
        let goods = self.goods.fetch_add(1, Ordering::Relaxed);
        self.server.admin().create_task(&collect(goods), None).expect("a collect task").task_id
    }

    pub(crate) fn detail(&self, task: RemoteTaskId) -> TaskDetail {
        self.server.admin().detail(task).expect("the task must be there")
    }

    pub(crate) fn summary(&self, task: RemoteTaskId) -> TaskSummary {
        self.detail(task).task
    }

    pub(crate) fn event_kinds(&self, task: RemoteTaskId) -> Vec<String> {
        self.detail(task).events.into_iter().map(|event| event.kind).collect()
    }

    pub(crate) fn add_user(&self, name: &str, roles: &[Role]) -> UserId {
        let new = CreateUser::new(name, Password::new(PASSWORD), roles.to_vec());
        self.server.admin().create_user(&new).expect("a new user").user_id
    }

    pub(crate) fn add_device(&self, user: UserId) -> DeviceId {
        let device = DeviceId::from_uuid(random_uuid());
        let new = AuthorizeDevice { device_id: device, user_id: user, name: "test pc".to_owned() };
        self.server.admin().authorize_device(&new).expect("a new device");
        device
    }

    pub(crate) async fn login_answer(&self, name: &str, password: &str, device: Option<DeviceId>) -> Answer {
        let body = LoginRequest { user_name: name.to_owned(), password: Password::new(password), device_id: device };
        self.send("/auth/login", None, &[], &body).await
    }

    pub(crate) async fn login(&self, name: &str, password: &str, device: Option<DeviceId>) -> Session {
        self.login_answer(name, password, device).await.ok()
    }

    pub(crate) async fn admin(&self) -> Session {
        self.login("admin", self.admin_password.reveal(), None).await
    }

    /// A buyer on a device whose heartbeat says it is ready.
    pub(crate) async fn buyer(&self, name: &str) -> Client<'_> {
        let user = self.add_user(name, &[Role::Buyer]);
        let device = self.add_device(user);
        let client = self.client(name, user, device).await;
        client.beat().await.ok::<serde_json::Value>();
        client
    }

    pub(crate) async fn client(&self, name: &str, user: UserId, device: DeviceId) -> Client<'_> {
        let session = self.login(name, PASSWORD, Some(device)).await;
        let instance = InstanceId::from_uuid(random_uuid());
        Client {
            world: self,
            router: self.router.clone(),
            user,
            device,
            instance,
            serial: Some(format!("phone of {device}")),
            access: session.access_token.clone(),
        }
    }

    pub(crate) async fn send(&self, path: &str, access: Option<&AccessToken>, headers: &[(&str, &str)], body: &impl Serialize) -> Answer {
        send(&self.router, path, access, headers, body).await
    }

    pub(crate) async fn get(&self, path: &str, access: &AccessToken) -> Answer {
        let request = Request::get(format!("/api/v1{path}")).header("authorization", format!("Bearer {}", access.reveal()));
        call(&self.router, request.body(Body::empty()).expect("a request")).await
    }

    /// Bytes of every file of the database, as a thief would read them.
    pub(crate) fn database_bytes(&self) -> Vec<u8> {
        let files = std::fs::read_dir(self.dir.path()).expect("the data folder");
        files.flat_map(|file| std::fs::read(file.expect("a file").path()).unwrap_or_default()).collect()
    }
}

pub(crate) async fn send(
    router: &Router,
    path: &str,
    access: Option<&AccessToken>,
    headers: &[(&str, &str)],
    body: &impl Serialize,
) -> Answer {
    let mut request = post(path);
    if let Some(access) = access {
        request = request.header("authorization", format!("Bearer {}", access.reveal()));
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = serde_json::to_vec(body).expect("a message always becomes JSON");
    call(router, request.body(Body::from(body)).expect("a request")).await
}

#[derive(Clone)]
pub(crate) struct Client<'w> {
    pub(crate) world: &'w World,
    pub(crate) router: Router,
    pub(crate) user: UserId,
    pub(crate) device: DeviceId,
    pub(crate) instance: InstanceId,
    pub(crate) serial: Option<String>,
    pub(crate) access: AccessToken,
}

/// A claim the client holds: what it must keep to go on.
#[derive(Debug, Clone)]
pub(crate) struct Claim {
    pub(crate) task: RemoteTaskId,
    pub(crate) token: ClaimToken,
    pub(crate) key: IdempotencyKey,
    pub(crate) standing: Standing,
    pub(crate) attempt: AttemptId,
}

impl Client<'_> {
    pub(crate) fn heartbeat(&self) -> DeviceHeartbeat {
        DeviceHeartbeat {
            device_id: self.device,
            instance_id: self.instance,
            predecessors: Vec::new(),
            phone_serial: self.serial.clone(),
            app_version: "0.1.0".to_owned(),
            android_version: Some("14".to_owned()),
            pdd_version: Some("7.30.0".to_owned()),
            accessibility_connected: true,
            pdd_installed: true,
            active_task_id: None,
            client_time: self.world.now(),
        }
    }

    pub(crate) async fn post(&self, path: &str, headers: &[(&str, &str)], body: &impl Serialize) -> Answer {
        send(&self.router, path, Some(&self.access), headers, body).await
    }

    pub(crate) async fn beat(&self) -> Answer {
        self.post("/devices/heartbeat", &[], &self.heartbeat()).await
    }

    pub(crate) async fn claim_with(&self, token: &ClaimToken, key: &IdempotencyKey) -> Answer {
        let headers = [("x-claim-token", token.reveal()), ("idempotency-key", key.as_str())];
        self.post("/tasks/claim-next", &headers, &ClaimRequest { device_id: self.device }).await
    }

    pub(crate) async fn try_claim(&self) -> Answer {
        self.claim_with(&token(), &key_at(self.world.now())).await
    }

    pub(crate) async fn claim(&self) -> Claim {
        let (token, key) = (token(), key_at(self.world.now()));
        let answer: ClaimAnswer = self.claim_with(&token, &key).await.ok();
        Claim { task: answer.standing.task_id, token, key, standing: answer.standing, attempt: attempt_id() }
    }

    async fn keyed(&self, claim: &Claim, call: &str, key: &IdempotencyKey, body: &impl Serialize) -> Answer {
        let headers = [("x-claim-token", claim.token.reveal()), ("idempotency-key", key.as_str())];
        self.post(&format!("/tasks/{}/{call}", claim.task), &headers, body).await
    }

    pub(crate) fn start_body(claim: &Claim) -> StartRequest {
        StartRequest {
            claim_generation: claim.standing.claim_generation,
            expected_version: claim.standing.version,
            attempt_id: claim.attempt,
            attempt_no: 1,
        }
    }

    pub(crate) async fn start_with(&self, claim: &Claim, key: &IdempotencyKey) -> Answer {
        self.keyed(claim, "start", key, &Self::start_body(claim)).await
    }

    pub(crate) async fn start(&self, claim: &Claim) -> Answer {
        self.start_with(claim, &key_at(self.world.now())).await
    }

    /// Claims the next task and starts it.
    pub(crate) async fn running(&self) -> Claim {
        let mut claim = self.claim().await;
        claim.standing = self.start(&claim).await.ok();
        claim
    }

    pub(crate) async fn run_beat(&self, claim: &Claim, step: &str) -> Answer {
        let Some(execution_id) = claim.standing.execution_id else { panic!("only a started claim has heartbeats") };
        let body = RunHeartbeat { claim_generation: claim.standing.claim_generation, execution_id, step: step.to_owned() };
        let headers = [("x-claim-token", claim.token.reveal())];
        self.post(&format!("/tasks/{}/heartbeat", claim.task), &headers, &body).await
    }

    pub(crate) async fn resume_with(&self, claim: &Claim, reason: ResumeReason, attempt: (AttemptId, u32), key: &IdempotencyKey) -> Answer {
        let Some(execution_id) = claim.standing.execution_id else { panic!("only a started claim can be resumed") };
        let body = ResumeRequest {
            claim_generation: claim.standing.claim_generation,
            execution_id,
            reason,
            attempt_id: attempt.0,
            attempt_no: attempt.1,
        };
        self.keyed(claim, "resume", key, &body).await
    }

    pub(crate) async fn resume(&self, claim: &Claim, reason: ResumeReason, attempt: (AttemptId, u32)) -> Answer {
        self.resume_with(claim, reason, attempt, &key_at(self.world.now())).await
    }

    pub(crate) async fn release_with(&self, claim: &Claim, key: &IdempotencyKey) -> Answer {
        let body = ReleaseRequest { claim_generation: claim.standing.claim_generation, expected_version: claim.standing.version };
        self.keyed(claim, "release", key, &body).await
    }

    pub(crate) async fn release(&self, claim: &Claim) -> Answer {
        self.release_with(claim, &key_at(self.world.now())).await
    }

    pub(crate) async fn cancel_ack(&self, claim: &Claim, expected_version: u64) -> Answer {
        let Some(execution_id) = claim.standing.execution_id else { panic!("only a started claim can be acknowledged") };
        let body = CancelAckRequest { claim_generation: claim.standing.claim_generation, execution_id, expected_version };
        self.keyed(claim, "cancel-ack", &key_at(self.world.now()), &body).await
    }

    pub(crate) async fn send_result(&self, task: RemoteTaskId, key: &IdempotencyKey, bytes: Vec<u8>) -> Answer {
        let request = post(&format!("/tasks/{task}/results"))
            .header("authorization", format!("Bearer {}", self.access.reveal()))
            .header("idempotency-key", key.as_str());
        call(&self.router, request.body(Body::from(bytes)).expect("a request")).await
    }
}
