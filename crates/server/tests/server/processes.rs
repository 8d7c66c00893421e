//! Two real processes on one database file, one of them killed: every task goes to one device, every result counts once.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use cmautobuy_protocol::admin::{AuthorizeDevice, CreateUser};
use cmautobuy_protocol::auth::{LoginRequest, Role, Session};
use cmautobuy_protocol::device::DeviceHeartbeat;
use cmautobuy_protocol::lifecycle::{ClaimAnswer, ClaimRequest, StartRequest};
use cmautobuy_protocol::result::Disposition;
use cmautobuy_protocol::{DeviceId, InstanceId, Password, RemoteTaskId, ServerStatus};
use cmautobuy_server::{Clock, Config, Server, SystemClock, TaskQuery};
use reqwest::{Client, StatusCode};
use serde::Serialize;
use tokio::sync::{Barrier, Semaphore};
use uuid::Uuid;

use crate::results::Report;
use crate::world::{PASSWORD, attempt_id, collect, key_at, token};

const DEVICES: usize = 12;
const TASKS: u64 = 60;

struct Process {
    child: Child,
    url: String,
    /// Held open, so that the process can go on writing.
    _lines: BufReader<std::process::ChildStdout>,
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve(folder: &Path) -> Process {
    let mut child = Command::new(env!("CARGO_BIN_EXE_autobuy-server"))
        .args(["--data-dir".as_ref(), folder.as_os_str(), "serve".as_ref(), "--listen".as_ref(), "127.0.0.1:0".as_ref()])
        .env("AUTOBUY_LOG", "warn")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the server's program");
    let mut lines = BufReader::new(child.stdout.take().expect("its output"));
    let mut line = String::new();
    lines.read_line(&mut line).expect("the line that says where it listens");
    let url = line.trim().strip_prefix("listening on ").expect("an address").to_owned();
    Process { child, url, _lines: lines }
}

async fn post(client: &Client, url: &str, access: &str, headers: &[(&str, &str)], body: &impl Serialize) -> Option<(StatusCode, String)> {
    let mut request = client.post(url).bearer_auth(access).json(body);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.send().await.ok()?;
    let status = answer.status();
    // A connection that dies in the middle is no answer.
    Some((status, answer.text().await.ok()?))
}

/// Asks the servers in turn until one answers: what a client does when its server dies.
async fn persist(
    urls: &[String],
    client: &Client,
    path: &str,
    access: &str,
    headers: &[(&str, &str)],
    body: &impl Serialize,
) -> (StatusCode, String) {
    for round in 0..400 {
        let url = format!("{}/api/v1{path}", urls[round % urls.len()]);
        match post(client, &url, access, headers, body).await {
            Some((status, _)) if status == StatusCode::SERVICE_UNAVAILABLE => {}
            Some(answer) => return answer,
            None => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
        }
    }
    panic!("no server answered {path}");
}

fn logged_in(folder: &Path) -> Vec<DeviceId> {
    let config = Config { data_dir: folder.to_owned(), ..Config::default() };
    let server = Server::open(config, Arc::new(SystemClock)).expect("a server on an empty folder");
    let admin = server.admin();
    let make = |n: usize| {
        let new = CreateUser::new(format!("buyer-{n}"), Password::new(PASSWORD), vec![Role::Buyer]);
        let user_id = admin.create_user(&new).expect("a user").user_id;
        let device_id = DeviceId::from_uuid(Uuid::from_u128(n as u128 + 1));
        admin.authorize_device(&AuthorizeDevice { device_id, user_id, name: "pc".to_owned() }).expect("a device");
        device_id
    };
    let devices = (0..DEVICES).map(make).collect();
    for goods in 0..TASKS {
        admin.create_task(&collect(goods + 1), None).expect("a task");
    }
    devices
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_and_a_kill_give_each_task_to_one_device() {
    // A second test in this process may have installed it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().expect("a data folder");
    let devices = logged_in(folder.path());
    let mut first = serve(folder.path());
    let second = serve(folder.path());
    let urls = [first.url.clone(), second.url.clone()];
    let ready = Arc::new(Barrier::new(DEVICES + 1));
    let done = Arc::new(Semaphore::new(0));
    let mut work = Vec::new();
    for (n, device) in devices.into_iter().enumerate() {
        let mut urls = urls.clone();
        // Half of the devices ask the one first, half the other.
        urls.rotate_left(n % 2);
        let (ready, done) = (Arc::clone(&ready), Arc::clone(&done));
        work.push(tokio::spawn(async move {
            let client = Client::builder().no_proxy().build().expect("a client");
            let login = LoginRequest { user_name: format!("buyer-{n}"), password: Password::new(PASSWORD), device_id: Some(device) };
            let (_, text) = persist(&urls, &client, "/auth/login", "", &[], &login).await;
            let session: Session = serde_json::from_str(&text).unwrap_or_else(|_| panic!("a login must work: {text}"));
            let access = session.access_token.reveal().to_owned();
            let beat = DeviceHeartbeat {
                device_id: device,
                instance_id: InstanceId::from_uuid(Uuid::from_u128(1000 + n as u128)),
                predecessors: Vec::new(),
                phone_serial: Some(format!("phone-{n}")),
                app_version: "0.1.0".to_owned(),
                android_version: None,
                pdd_version: None,
                accessibility_connected: true,
                pdd_installed: true,
                active_task_id: None,
                client_time: SystemClock.now(),
            };
            let (status, text) = persist(&urls, &client, "/devices/heartbeat", &access, &[], &beat).await;
            assert_eq!(status, StatusCode::OK, "the device must be ready: {text}");
            ready.wait().await;
            let mut mine = Vec::new();
            loop {
                let (token, key) = (token(), key_at(SystemClock.now()));
                let headers = [("x-claim-token", token.reveal()), ("idempotency-key", key.as_str())];
                let (status, text) =
                    persist(&urls, &client, "/tasks/claim-next", &access, &headers, &ClaimRequest { device_id: device }).await;
                if status == StatusCode::NO_CONTENT {
                    return mine;
                }
                assert_eq!(status, StatusCode::OK, "a claim gets a task or none: {text}");
                let claim: ClaimAnswer = serde_json::from_str(&text).expect("a claim's answer");
                // The same key at the other process is the same claim (T-205 §3).
                let other: Vec<_> = urls.iter().rev().cloned().collect();
                let (_, again) =
                    persist(&other, &client, "/tasks/claim-next", &access, &headers, &ClaimRequest { device_id: device }).await;
                let replayed: ClaimAnswer = serde_json::from_str(&again).unwrap_or_else(|_| panic!("a replay must be answered: {again}"));
                assert_eq!(replayed.standing.task_id, claim.standing.task_id, "a key is one task at both processes");
                let attempt = attempt_id();
                let start = StartRequest {
                    claim_generation: claim.standing.claim_generation,
                    expected_version: claim.standing.version,
                    attempt_id: attempt,
                    attempt_no: 1,
                };
                let key = key_at(SystemClock.now());
                let headers = [("x-claim-token", token.reveal()), ("idempotency-key", key.as_str())];
                let task = claim.standing.task_id;
                let (status, text) = persist(&urls, &client, &format!("/tasks/{task}/start"), &access, &headers, &start).await;
                assert_eq!(status, StatusCode::OK, "a claim can be started: {text}");
                let started: cmautobuy_protocol::lifecycle::Standing = serde_json::from_str(&text).expect("an answer");
                let report = Report {
                    disposition: Disposition::Failed,
                    generation: claim.standing.claim_generation,
                    execution: started.execution_id,
                    attempt,
                    attempt_no: 1,
                };
                let body = report.body();
                let key = format!("{task}:{attempt}:failure-v1");
                let headers = [("idempotency-key", key.as_str())];
                let (status, text) = persist(&urls, &client, &format!("/tasks/{task}/results"), &access, &headers, &body).await;
                assert_eq!(status, StatusCode::OK, "a result is accepted: {text}");
                mine.push(task);
                done.add_permits(1);
            }
        }));
    }
    ready.wait().await;
    let some = tokio::time::timeout(std::time::Duration::from_secs(60), done.acquire_many(10)).await;
    some.expect("ten results within a minute").expect("nobody closes it").forget();
    first.child.kill().expect("SIGKILL in the middle of the work");
    let mut by_task: BTreeMap<RemoteTaskId, usize> = BTreeMap::new();
    let mut busy = BTreeSet::new();
    for (n, device) in work.into_iter().enumerate() {
        for task in device.await.expect("a device's work") {
            *by_task.entry(task).or_default() += 1;
            busy.insert(n);
        }
    }
    assert_eq!(by_task.len() as u64, TASKS, "every task was done");
    assert!(by_task.values().all(|times| *times == 1), "and by one device, once: {by_task:?}");
    assert!(busy.len() > 1, "by several devices, or this test shows nothing");
    drop((first, second));
    let config = Config { data_dir: folder.path().to_owned(), ..Config::default() };
    let server = Server::open(config, Arc::new(SystemClock)).expect("the database is whole after the kill");
    let page = server.admin().list(&TaskQuery { limit: Some(200), ..TaskQuery::default() }).expect("a list");
    for task in page.tasks {
        assert_eq!((task.status, task.claim_generation), (ServerStatus::Failed, 1), "{}: given out once, ended once", task.task_id);
        let detail = server.admin().detail(task.task_id).expect("the detail");
        assert_eq!((detail.results.len(), detail.executions.len()), (1, 1), "{}: one run, one result", task.task_id);
    }
}

#[test]
fn two_processes_starting_on_an_empty_folder_make_one_server() {
    let folder = tempfile::tempdir().expect("an empty folder");
    let started: Vec<Process> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..4).map(|_| scope.spawn(|| serve(folder.path()))).collect();
        all.into_iter().map(|one| one.join().expect("a server that listens")).collect()
    });
    assert_eq!(started.len(), 4, "all of them serve");
    let config = Config { data_dir: folder.path().to_owned(), ..Config::default() };
    let server = Server::open(config, Arc::new(SystemClock)).expect("the database");
    let users = server.admin().users(&Default::default()).expect("the users").users;
    assert_eq!(users.len(), 1, "one administrator was made, not one a process: {users:?}");
}

#[cfg(unix)]
#[test]
fn a_service_manager_can_stop_it() {
    let folder = tempfile::tempdir().expect("an empty folder");
    let mut process = serve(folder.path());
    let told = Command::new("kill").args(["-TERM", &process.child.id().to_string()]).status().expect("kill is there");
    assert!(told.success(), "the signal must be sent");
    let ended = process.child.wait().expect("it ends");
    assert!(ended.success(), "SIGTERM is a clean stop, not a crash: {ended}");
}
