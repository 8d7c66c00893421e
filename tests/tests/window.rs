//! The real window, driven through WebKitWebDriver as a person would: click, type, read. Needs a display; `scripts/test` provides one.

#![cfg(target_os = "linux")]

use std::fs::OpenOptions;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use cmautobuy_phone_sim::{Catalogue, SimConfig};
use cmautobuy_protocol::admin::{AuthorizeDevice, CreateTask, CreateUser};
use cmautobuy_protocol::auth::Role;
use cmautobuy_protocol::{Password, ServerStatus};
use cmautobuy_server::{Config, Server, SystemClock};
use fantoccini::elements::Element;
use fantoccini::key::Key;
use fantoccini::{Client, ClientBuilder, Locator};
use serde_json::json;
use tokio::process::{Child, Command};

const PATIENCE: Duration = Duration::from_secs(150);

/// The driver leads a process group that the program and the web view's helpers inherit; all of it ends with the test.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        let Some(leader) = self.0.id() else { return };
        for signal in ["-TERM", "-KILL"] {
            // `kill` of procps: the tests need no unsafe code for one signal.
            let _ = std::process::Command::new("kill").args([signal, "--", &format!("-{leader}")]).stderr(Stdio::null()).status();
        }
    }
}

struct Window {
    client: Client,
    dir: tempfile::TempDir,
    _driver: Group,
}

fn program(name: &str) -> PathBuf {
    let tests = std::env::current_exe().expect("the test program has a path");
    let path = tests.parent().and_then(Path::parent).expect("target/<profile>/deps").join(name);
    assert!(path.exists(), "{} is missing: run ./scripts/test, which builds the programs first", path.display());
    path
}

/// Where pictures go: `screens` in the target folder, for a person to look at.
fn screens() -> PathBuf {
    let tests = std::env::current_exe().expect("the test program has a path");
    let folder = tests.ancestors().nth(3).expect("target/<profile>/deps/<test>").join("screens");
    std::fs::create_dir_all(&folder).expect("the target folder is writable");
    folder
}

impl Window {
    /// Opens the window on a fresh data folder; `prepare` may put something there first.
    async fn open(args: &[&str], prepare: impl FnOnce(&Path)) -> Self {
        assert!(std::env::var_os("DISPLAY").is_some(), "no display: run ./scripts/test, which starts one");
        let dir = tempfile::tempdir().expect("temp dir");
        prepare(dir.path());
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port").local_addr().expect("bound").port();
        let driver = Command::new("WebKitWebDriver")
            .args([format!("--port={port}"), "--host=127.0.0.1".into()])
            .env("TAURI_WEBVIEW_AUTOMATION", "true")
            .env("HOME", dir.path())
            .env("CMAUTOBUY_DATA_DIR", dir.path().join("data"))
            .env("CMAUTOBUY_SECRET_FILE", dir.path().join("secrets.json"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("WebKitWebDriver starts (Debian package webkit2gtk-driver)");
        let driver = Group(driver);
        until("the driver's port", async || tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_ok()).await;
        let options = json!({ "webkitgtk:browserOptions": { "binary": program("cmautobuy"), "args": args } });
        let client = ClientBuilder::new(hyper_util::client::legacy::connect::HttpConnector::new())
            .capabilities(options.as_object().expect("an object").clone())
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .expect("the window opens");
        Self { client, dir, _driver: driver }
    }

    async fn find(&self, css: &str) -> Option<Element> {
        self.client.find(Locator::Css(css)).await.ok()
    }

    /// The element, once it is there.
    async fn wait(&self, css: &str) -> Element {
        let mut found = None;
        let reached = tokio::time::timeout(PATIENCE, async {
            let mut tick = tokio::time::interval(Duration::from_millis(50));
            while found.is_none() {
                tick.tick().await;
                found = self.find(css).await;
            }
        });
        if reached.await.is_err() {
            self.picture("failed").await;
            panic!("{css} did not appear; the page says: {}", self.text("body").await);
        }
        found.expect("the loop ends with an element")
    }

    async fn text(&self, css: &str) -> String {
        match self.find(css).await {
            Some(element) => element.text().await.unwrap_or_default(),
            None => String::new(),
        }
    }

    async fn count(&self, css: &str) -> usize {
        self.client.find_all(Locator::Css(css)).await.map_or(0, |all| all.len())
    }

    async fn click(&self, css: &str) {
        self.wait(css).await.click().await.unwrap_or_else(|error| panic!("click {css}: {error}"));
    }

    /// Replaces what is in a field, as a person does: WebKit's own Clear tells Vue nothing.
    async fn fill(&self, css: &str, text: &str) {
        let field = self.wait(css).await;
        let select_all = format!("{}a{}{}", char::from(Key::Control), char::from(Key::Null), char::from(Key::Backspace));
        field.send_keys(&select_all).await.expect("the field takes keys");
        field.send_keys(text).await.expect("the field takes text");
    }

    async fn scroll_to(&self, css: &str) {
        self.wait(css).await;
        let script = "document.querySelector(arguments[0]).scrollIntoView({ block: 'nearest' })";
        self.client.execute(script, vec![json!(css)]).await.unwrap_or_else(|error| panic!("scroll to {css}: {error}"));
    }

    async fn picture(&self, name: &str) {
        if let Ok(png) = self.client.screenshot().await {
            let _ = std::fs::write(screens().join(format!("{name}.png")), png);
        }
    }

    async fn close(self) {
        let _ = self.client.clone().close().await;
    }
}

/// Waits for a level, not an edge.
async fn until(what: &str, mut level: impl AsyncFnMut() -> bool) {
    let reached = tokio::time::timeout(PATIENCE, async {
        let mut tick = tokio::time::interval(Duration::from_millis(50));
        while !level().await {
            tick.tick().await;
        }
    });
    assert!(reached.await.is_ok(), "{what} was not reached within {PATIENCE:?}");
}

fn id(name: &str) -> String {
    format!("[data-testid='{name}']")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_collects_and_shows_its_three_tasks() {
    let window = Window::open(&["--demo"], |_| {}).await;
    window.wait(&id("demo-badge")).await;
    until("a run in the top bar", async || !window.text(&id("current-run")).await.trim().is_empty()).await;
    let done = "[data-testid='task-row'][data-state='succeeded']";
    until("three succeeded rows", async || window.count(done).await == 3).await;
    assert_eq!(window.count(&id("task-row")).await, 3, "the sample tasks, and nothing else");

    let goods = &Catalogue::builtin().goods[0];
    for row in window.client.find_all(Locator::Css(done)).await.expect("rows") {
        if row.text().await.expect("row text").contains(&goods.goods_id) || row.text().await.expect("row text").contains(&goods.title[..12])
        {
            row.click().await.expect("a row opens its task");
            break;
        }
    }
    window.wait(&id("task-detail")).await;
    let detail = async || window.text(&id("task-detail")).await;
    until("the goods in the detail", async || detail().await.contains(&goods.shop)).await;
    let matrix = window.wait(&id("sku-table")).await.text().await.expect("table text");
    for value in &goods.dimensions[0].values {
        assert!(matrix.contains(value.text.trim()), "every colour is a line of the table: {matrix}");
        if let Some(cent) = goods.prices.get(&value.text).copied().flatten().filter(|_| !value.sold_out) {
            let yuan = format!("{}.{:02}", cent / 100, cent % 100);
            assert!(matrix.contains(&yuan), "{}: the price the phone showed ({yuan}) is in the table: {matrix}", value.text);
        }
    }
    window.picture("demo-detail-zh").await;
    window.scroll_to(&id("screenshot")).await;
    let picture = "[data-testid='screenshot'][data-loaded='true'] img";
    window.wait(picture).await;
    let script = "return document.querySelector(arguments[0]).naturalWidth";
    let width = async || window.client.execute(script, vec![json!(picture)]).await.ok().and_then(|width| width.as_u64());
    until("a loaded screenshot", async || width().await.is_some_and(|width| width > 0)).await;
    assert_eq!(window.count("[data-testid='outbox-row'][data-status='sent']").await, 1, "its result was accepted");

    assert!(window.text("body").await.contains("任务"), "Chinese is the default");
    window.click(&id("switch-language")).await;
    until("English", async || window.text(&id("status-bar")).await.to_lowercase().contains("server")).await;
    window.picture("demo-detail-en").await;
    window.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_copy_says_what_is_in_the_way() {
    let mut held = None;
    let window = Window::open(&[], |dir| {
        let data = dir.join("data");
        std::fs::create_dir_all(&data).expect("the data folder");
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(data.join("lock")).expect("the lock file");
        lock.lock().expect("free");
        held = Some(lock);
    })
    .await;
    window.wait("[data-testid='start-failed'][data-code='SECOND_INSTANCE']").await;
    let said = window.text("body").await;
    assert!(said.contains("另一个正在运行的程序") && said.contains("请切换到已打开的窗口"), "cause and next step are said: {said}");
    window.picture("second-instance").await;
    drop(held);
    window.click(&id("start-retry")).await;
    window.wait(&id("login-card")).await;
    window.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_logs_in_and_works_a_task_off() {
    let server_dir = tempfile::tempdir().expect("temp dir");
    let config = Config { data_dir: server_dir.path().to_path_buf(), ..Config::default() };
    let server = Arc::new(Server::open(config, Arc::new(SystemClock)).expect("the server opens"));
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let router = server.router();
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    let sim =
        cmautobuy_phone_sim::start(SimConfig { dump_time: Duration::from_millis(20), ..SimConfig::default() }).await.expect("a phone");
    let phone = sim.addr().to_string();
    let user = CreateUser::new("operator", Password::new("a-good-password"), vec![Role::Buyer]);
    let user_id = server.admin().create_user(&user).expect("the user is new").user_id;

    let window = Window::open(&["--phone", &phone], |_| {}).await;
    window.wait(&id("login-card")).await;
    // The title holds the whole id however narrow the card is; it is empty until the house has answered.
    window.wait("[data-testid='device-id'] [title]:not([title=''])").await;
    let device = window.wait(&format!("{} .mono", id("device-id"))).await.attr("title").await.expect("readable").expect("a title");
    let log_in = async |password: &str| {
        window.fill(&id("login-base-url"), &format!("http://{address}")).await;
        window.fill(&id("login-user"), "operator").await;
        window.fill(&id("login-password"), password).await;
        window.click(&id("login-submit")).await;
    };
    log_in("wrong-password").await;
    until("the refusal", async || window.text("body").await.contains("用户名或密码不对")).await;
    window.picture("login-refused").await;
    log_in("a-good-password").await;
    until("the device refusal", async || window.text("body").await.contains("还没有授权")).await;
    let device_id = device.parse().expect("the shown device id is whole");
    server.admin().authorize_device(&AuthorizeDevice { device_id, user_id, name: "window".into() }).expect("authorised");
    log_in("a-good-password").await;
    // Nobody can start work before the window knows of the login.
    window.wait("[data-testid='start-work']:not([disabled])").await;
    window.picture("empty-list").await;

    let goods = &Catalogue::builtin().goods[1];
    let task = CreateTask::collect(format!("https://mobile.yangkeduo.com/goods.html?goods_id={}", goods.goods_id));
    let task = server.admin().create_task(&task, None).expect("created").task_id;
    window.click(&id("start-work")).await;
    window.wait("[data-testid='task-row'][data-state='succeeded']").await;
    assert_eq!(server.admin().detail(task).expect("known").task.status, ServerStatus::Succeeded, "the server says so too");
    window.click(&id("stop-work")).await;
    window.wait("[data-testid='work-mode'][data-mode='stopped']").await;
    assert_eq!((sim.orders_created(), sim.payments_accepted()), (0, 0), "nothing was ordered or paid");
    let kept = std::fs::read_to_string(window.dir.path().join("secrets.json")).expect("the injected secret store");
    assert!(!kept.contains("a-good-password"), "the password is not kept once it was exchanged for tokens");
    window.close().await;
    serving.abort();
}
