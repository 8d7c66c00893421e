//! The screen page and the control call, and a recorded run played back: what a person and a test do beside ADB.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use cmautobuy_phone_sim::{Fault, JournalKind, Reach, Recording, Sim, SimConfig, start};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const GOODS: &str = "618203947511";

struct Answer {
    status: u16,
    kind: String,
    body: Vec<u8>,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

async fn send(at: SocketAddr, raw: &str) -> Answer {
    let exchange = async {
        let mut socket = TcpStream::connect(at).await.expect("it listens");
        socket.write_all(raw.as_bytes()).await.expect("it reads");
        let mut all = Vec::new();
        loop {
            let mut chunk = vec![0; 65_536];
            let size = socket.read(&mut chunk).await.expect("it answers");
            all.extend_from_slice(&chunk[..size]);
            let end = all.windows(4).position(|four| four == b"\r\n\r\n");
            let Some(end) = end else {
                assert!(size > 0, "an answer comes before the end");
                continue;
            };
            let head = String::from_utf8_lossy(&all[..end]).into_owned();
            let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim().to_owned();
            let length: usize = field("Content-Length:").parse().expect("a length");
            if all.len() >= end + 4 + length {
                let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
                return Answer { status, kind: field("Content-Type:"), body: all[end + 4..end + 4 + length].to_vec() };
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), exchange).await.expect("an answer in time")
}

async fn get(at: SocketAddr, path: &str) -> Answer {
    send(at, &format!("GET {path} HTTP/1.1\r\nHost: {at}\r\n\r\n")).await
}

async fn post(at: SocketAddr, path: &str, body: Value) -> Answer {
    let body = body.to_string();
    let length = body.len();
    send(at, &format!("POST {path} HTTP/1.1\r\nHost: {at}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"))
        .await
}

async fn served() -> (Sim, SocketAddr) {
    let sim = start(SimConfig { dump_time: Duration::from_millis(5), ..SimConfig::default() }).await.expect("a free port");
    let at = sim.serve_screen(([127, 0, 0, 1], 0).into(), Reach::ThisComputer).await.expect("a free port");
    (sim, at)
}

#[tokio::test]
async fn a_person_sees_the_screen_and_taps() {
    let (sim, at) = served().await;
    let page = get(at, "/").await;
    assert_eq!((page.status, page.kind.as_str()), (200, "text/html; charset=utf-8"), "the page is there");
    let outside = ["src=\"http", "href=\"http", "url(http", "@import", "//cdn"];
    assert!(outside.iter().all(|word| !page.text().contains(word)), "it needs nothing from elsewhere");
    let picture = get(at, "/screen.png").await;
    let drawn = image::load_from_memory(&picture.body).expect("a PNG");
    assert_eq!((drawn.width(), drawn.height()), (1080, 2400), "of the whole screen");
    // The icon of the app on the launcher.
    let after = post(at, "/tap", json!({"x": 900, "y": 1840})).await;
    assert_eq!(after.json()["screen"], "home", "a tap on the picture is a tap on the phone: {}", after.text());
    post(at, "/swipe", json!({"from": [540, 1800], "to": [540, 900], "ms": 200})).await;
    post(at, "/key", json!({"code": 3})).await;
    let journal = get(at, "/journal").await.json();
    assert_eq!(journal.as_array().map(Vec::len), Some(3), "everything is in the journal: {journal}");
    assert_eq!(sim.screen_name(), "launcher", "HOME went home");
    sim.stop().await;
}

#[tokio::test]
async fn faults_layers_and_scenarios_can_be_switched_while_it_runs() {
    let (sim, at) = served().await;
    let link = json!({"url": format!("https://mobile.yangkeduo.com/goods.html?goods_id={GOODS}")});
    assert_eq!(post(at, "/fault", json!({"name": "captcha_on_goods"})).await.status, 200, "a fault begins");
    assert_eq!(post(at, "/link", link.clone()).await.json()["screen"], "captcha", "and works");
    post(at, "/clear", json!({})).await;
    assert_eq!(post(at, "/link", link.clone()).await.json()["screen"], format!("goods:{GOODS}"), "until it is cleared");
    assert_eq!(post(at, "/popup", json!({"name": "red_packet"})).await.json()["screen"], "popup:red_packet", "a layer comes up");
    post(at, "/scenario", json!({"name": "unpaid_order"})).await;
    assert_eq!(sim.orders().len(), 4, "a scenario adds its orders");
    let plan = json!({"seed": 3, "rules": [{"on": "action", "nth": 1, "fault": {"name": "dead_taps", "times": 1}}]});
    assert_eq!(post(at, "/faults", plan).await.status, 200, "a schedule begins");
    post(at, "/tap", json!({"x": 100, "y": 100})).await;
    assert!(sim.journal().last().is_some_and(|entry| entry.hit.contains("lost")), "and takes effect at its moment");
    let rows = [
        ("/fault", json!({"name": "no_such"})),
        ("/fault", json!({})),
        ("/popup", json!({"name": "no_such"})),
        ("/scenario", json!({"name": "no_such"})),
        ("/tap", json!({"x": 1})),
        ("/no_such_call", json!({})),
        ("/link", json!({"url": "https://example.com/"})),
    ];
    for (path, body) in rows {
        let answer = post(at, path, body.clone()).await;
        assert!(answer.status == 400 && !answer.body.is_empty(), "{path} {body} must be refused with a reason: {}", answer.status);
    }
    sim.stop().await;
}

#[tokio::test]
async fn other_sites_and_other_computers_reach_nothing() {
    let (sim, at) = served().await;
    let rows = [
        ("another site's name for us", "GET /state HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_owned(), 403),
        ("no host", "GET /state HTTP/1.1\r\n\r\n".to_owned(), 403),
        (
            "a form of another page",
            format!("POST /tap HTTP/1.1\r\nHost: {at}\r\nContent-Type: text/plain\r\nContent-Length: 15\r\n\r\n{{\"x\":1,\"y\":1}}  "),
            415,
        ),
        ("rubbish", "hello\r\n\r\n".to_owned(), 400),
        ("a huge body", format!("POST /tap HTTP/1.1\r\nHost: {at}\r\nContent-Length: 99999999\r\n\r\n"), 413),
    ];
    for (what, raw, want) in rows {
        assert_eq!(send(at, &raw).await.status, want, "{what}");
    }
    assert!(sim.journal().is_empty(), "nothing of it touched the phone");
    let refused = sim.serve_screen(([0, 0, 0, 0], 0).into(), Reach::ThisComputer).await;
    assert!(refused.is_err(), "an address for everybody must be asked for");
    let control = sim.serve_control(([127, 0, 0, 1], 0).into(), Reach::ThisComputer).await.expect("a free port");
    assert_eq!(get(control, "/").await.status, 404, "the control call has no page");
    assert_eq!(get(control, "/state").await.status, 200, "but answers");
    sim.stop().await;
}

#[tokio::test]
async fn a_recorded_run_is_played_back() {
    let folder = tempfile::tempdir().expect("a directory");
    let (sim, _) = served().await;
    std::fs::write(folder.path().join("one.png"), sim.screenshot_png()).expect("a picture");
    sim.stop().await;
    let tree = |says: &str| format!("<hierarchy rotation=\"0\"><node text=\"{says}\" bounds=\"[0,0][720,1600]\" /></hierarchy>");
    let capture = |activity: &str, says: &str| json!({"kind": "capture", "package": "com.xunmeng.pinduoduo", "activity": activity, "goods_id": GOODS, "xml": tree(says), "png_path": "one.png"});
    let lines = [
        json!({"kind": "recording", "schema_version": 1, "width": 720, "height": 1600, "density": 320}),
        capture(".ui.activity.MainFrameActivity", "first"),
        json!({"kind": "action", "what": "tap 10,10"}),
        capture(".activity.NewPageActivity", "second"),
    ];
    let file = folder.path().join("run.jsonl");
    std::fs::write(&file, lines.map(|line| line.to_string()).join("\n")).expect("a recording");
    let recording = Recording::open(Path::new(&file)).expect("a good recording");
    let sim = start(SimConfig { replay: Some(recording), ..SimConfig::default() }).await.expect("a free port");
    let at = sim.serve_screen(([127, 0, 0, 1], 0).into(), Reach::ThisComputer).await.expect("a free port");
    let state = get(at, "/state").await.json();
    assert_eq!((&state["screen"], &state["width"]), (&json!("replay:1"), &json!(720)), "the recorded phone's first page: {state}");
    let picture = get(at, "/screen.png").await;
    assert!(image::load_from_memory(&picture.body).is_ok(), "with its picture");
    let state = post(at, "/tap", json!({"x": 10, "y": 10})).await.json();
    assert_eq!((&state["screen"], &state["activity"]), (&json!("replay:2"), &json!(".activity.NewPageActivity")), "a tap moves on");
    let last = sim.journal();
    assert_eq!(
        last.last().map(|entry| (&entry.kind, entry.hit.as_str())),
        Some((&JournalKind::Tap { x: 10, y: 10 }, "recorded: tap 10,10")),
        "the journal compares"
    );
    sim.set_fault(Fault::NullRoot { times: 1 });
    assert_eq!((sim.orders_created(), sim.payments_accepted()), (0, 0), "a recording buys nothing");
    sim.stop().await;
}
