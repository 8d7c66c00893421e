//! One desk: server, simulated phone and a client's data folder, with a gate on the wire that can lose requests and answers.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use cmautobuy_phone_sim::{Sim, SimConfig};
use cmautobuy_protocol::admin::{AuthorizeDevice, CreateTask, CreateUser, TaskDetail};
use cmautobuy_protocol::auth::Role;
use cmautobuy_protocol::{Password, RemoteTaskId};
use cmautobuy_server::{Config, Server, SystemClock};
use tokio::process::{Child, Command};

pub(crate) const USER: &str = "operator-one";
pub(crate) const PASSWORD: &str = "a-long-password-of-the-desk";
/// Long enough for a loaded two-core machine; every wait ends as soon as its level is reached.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// What happens to requests whose path ends with the gate's suffix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Pass,
    /// Never reaches the server; never answered.
    LoseRequest,
    /// The server acts, but its answer is lost.
    LoseAnswer,
    /// 503, as a proxy in front of a server that is down.
    Outage,
}

#[derive(Debug)]
struct GateState {
    suffix: &'static str,
    fate: Fate,
    seen: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Gate(Arc<Mutex<GateState>>);

impl Gate {
    pub(crate) fn set(&self, suffix: &'static str, fate: Fate) {
        *self.0.lock().unwrap() = GateState { suffix, fate, seen: 0 };
    }
    /// How many requests met the gate since it was set.
    pub(crate) fn seen(&self) -> u32 {
        self.0.lock().unwrap().seen
    }
    fn meet(&self, path: &str) -> Fate {
        let mut state = self.0.lock().unwrap();
        if path.ends_with(state.suffix) {
            state.seen += 1;
            state.fate
        } else {
            Fate::Pass
        }
    }
}

async fn pass(gate: Gate, request: Request, next: Next) -> Response {
    match gate.meet(request.uri().path()) {
        Fate::Pass => next.run(request).await,
        Fate::LoseRequest => std::future::pending().await,
        Fate::LoseAnswer => {
            // On its own: a client that dies meanwhile must not take the server's work with it.
            let acted = tokio::spawn(next.run(request));
            acted.await.expect("the server answers");
            std::future::pending().await
        }
        Fate::Outage => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

pub(crate) struct Desk {
    pub(crate) admin: Arc<Server>,
    pub(crate) server: SocketAddr,
    pub(crate) sim: Sim,
    pub(crate) gate: Gate,
    dir: tempfile::TempDir,
    serving: tokio::task::JoinHandle<()>,
}

impl Desk {
    pub(crate) async fn new() -> Self {
        Self::with(SimConfig { dump_time: Duration::from_millis(20), ..SimConfig::default() }, |_| {}).await
    }

    pub(crate) async fn with(sim: SimConfig, tune: impl FnOnce(&mut Config)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut config = Config { data_dir: dir.path().join("server"), ..Config::default() };
        tune(&mut config);
        let admin = Arc::new(Server::open(config, Arc::new(SystemClock)).expect("the server opens"));
        let gate = Gate(Arc::new(Mutex::new(GateState { suffix: "(none)", fate: Fate::Pass, seen: 0 })));
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let server = listener.local_addr().unwrap();
        let at_gate = gate.clone();
        let router = admin.router().layer(middleware::from_fn(move |request, next| pass(at_gate.clone(), request, next)));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let sim = cmautobuy_phone_sim::start(sim).await.expect("the phone starts");
        Self { admin, server, sim, gate, dir, serving }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }
    pub(crate) fn secret_file(&self) -> PathBuf {
        self.dir.path().join("secrets.json")
    }
    pub(crate) fn server_data(&self) -> PathBuf {
        self.dir.path().join("server")
    }

    /// Stops answering, as a server that is switched off.
    pub(crate) fn switch_off_server(&self) {
        self.serving.abort();
    }

    /// A client program with this desk's folder, secrets and phone.
    pub(crate) fn client(&self, args: &[&str]) -> Command {
        self.client_at(&self.sim.addr().to_string(), args)
    }

    /// The same, with the phone reached as `phone` says.
    pub(crate) fn client_at(&self, phone: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program("cmautobuy-cli"));
        command
            .args(["--data-dir".as_ref(), self.data().as_os_str(), "--secret-file".as_ref(), self.secret_file().as_os_str()])
            .args(["--phone", phone])
            .args(args)
            .env("CMAUTOBUY_PASSWORD", PASSWORD)
            .env_remove("CMAUTOBUY_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Runs a client program to its end.
    pub(crate) async fn run(&self, args: &[&str]) -> Said {
        Self::said(self.client(args)).await
    }

    pub(crate) async fn said(mut command: Command) -> Said {
        let output = tokio::time::timeout(PATIENCE, command.output()).await.expect("the client ends in time").unwrap();
        Said {
            ok: output.status.success(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// A client process that goes on working.
    pub(crate) fn spawn(&self, args: &[&str]) -> Child {
        self.client(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    pub(crate) fn create_user(&self) {
        let user = CreateUser::new(USER, Password::new(PASSWORD), vec![Role::Buyer]);
        self.admin.admin().create_user(&user).expect("the user is new");
    }

    pub(crate) async fn authorize(&self) {
        let device = self.run(&["device"]).await;
        let user_id = self.admin.admin().user_id(USER).unwrap().expect("the user exists");
        let device_id = device.out.trim().parse().expect("`device` prints the device id");
        self.admin.admin().authorize_device(&AuthorizeDevice { device_id, user_id, name: "desk".into() }).unwrap();
    }

    /// User, device, login: ready to work.
    pub(crate) async fn ready(&self) {
        self.create_user();
        self.authorize().await;
        let said = self.login().await;
        assert!(said.ok, "a right password on an authorised device logs in: {said:?}");
    }

    pub(crate) async fn login(&self) -> Said {
        self.run(&["--lang", "en", "login", "--server", &format!("http://{}", self.server), "--user", USER]).await
    }

    pub(crate) fn collect_task(&self, goods_id: &str) -> RemoteTaskId {
        let url = format!("https://mobile.yangkeduo.com/goods.html?goods_id={goods_id}");
        let task = CreateTask::collect(url);
        self.admin.admin().create_task(&task, None).expect("a well-formed task is created").task_id
    }

    pub(crate) fn on_server(&self, task: RemoteTaskId) -> TaskDetail {
        self.admin.admin().detail(task).expect("the task exists")
    }

    /// One value out of the client's database, read beside the running client.
    pub(crate) fn local(&self, sql: &str) -> Option<String> {
        let conn = rusqlite::Connection::open(self.data().join("client.db")).ok()?;
        conn.busy_timeout(Duration::from_secs(5)).ok()?;
        conn.query_row(sql, [], |row| row.get::<_, rusqlite::types::Value>(0)).ok().and_then(|value| match value {
            rusqlite::types::Value::Null => None,
            rusqlite::types::Value::Integer(n) => Some(n.to_string()),
            rusqlite::types::Value::Real(n) => Some(n.to_string()),
            rusqlite::types::Value::Text(text) => Some(text),
            rusqlite::types::Value::Blob(bytes) => Some(format!("{} bytes", bytes.len())),
        })
    }

    /// Waits for a level, not an edge.
    pub(crate) async fn until(&self, what: &str, mut level: impl FnMut() -> bool) {
        let reached = async {
            let mut tick = tokio::time::interval(Duration::from_millis(25));
            while !level() {
                tick.tick().await;
            }
        };
        if tokio::time::timeout(PATIENCE, reached).await.is_err() {
            eprintln!("{}", newest_log(&self.data()));
            panic!("{what} was not reached within {PATIENCE:?}; the phone shows {}", self.sim.screen_name());
        }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// What a program printed.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) ok: bool,
    pub(crate) out: String,
    pub(crate) err: String,
}

fn newest_log(data: &Path) -> String {
    let logs = std::fs::read_dir(data.join("logs")).into_iter().flatten().flatten().map(|entry| entry.path());
    let text = logs.max().and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}

/// A program of this workspace, built beside the tests.
pub(crate) fn program(name: &str) -> PathBuf {
    let tests = std::env::current_exe().expect("the test program has a path");
    let folder = tests.parent().and_then(Path::parent).expect("target/<profile>/deps");
    let path = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(path.exists(), "{} is missing: run ./scripts/test, which builds the programs first", path.display());
    path
}
