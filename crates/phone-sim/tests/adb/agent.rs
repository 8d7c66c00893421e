//! The resident agent as a client starts and uses it: pushed, run with app_process, reached through `adb forward`.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Adb, out, parses, phone};
use cmautobuy_phone_sim::{Fault, Scenario, Sim, SimConfig};
use serde_json::{Value, json};

const START: &str = "CLASSPATH=/data/local/tmp/u2.jar app_process / com.wetest.uia2.Main -p 9008";

/// One request over a forwarded port.
fn http(port: u16, method: &str, path: &str, body: &str) -> Option<String> {
    let mut socket = TcpStream::connect(("127.0.0.1", port)).ok()?;
    socket.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
    let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    socket.write_all(head.as_bytes()).ok()?;
    let mut all = Vec::new();
    let mut chunk = [0; 65_536];
    loop {
        let size = socket.read(&mut chunk).ok().filter(|size| *size > 0)?;
        all.extend_from_slice(&chunk[..size]);
        let text = String::from_utf8_lossy(&all).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let size: usize = head.lines().find_map(|line| line.strip_prefix("Content-Length: "))?.parse().ok()?;
            if body.len() >= size {
                return Some(body.to_owned());
            }
        }
    }
}

fn rpc(port: u16, method: &str, params: Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let answer = http(port, "POST", "/jsonrpc/0", &body).expect("the agent answers");
    serde_json::from_str(&answer).expect("with JSON")
}

fn tree(port: u16) -> Option<String> {
    rpc(port, "dumpWindowHierarchy", json!([false, 50]))["result"].as_str().map(str::to_owned)
}

struct Running {
    adb: Adb,
    sim: Sim,
    port: u16,
    agent: Child,
}

async fn running(config: SimConfig) -> Running {
    let adb = Adb::new();
    let sim = phone(config).await;
    adb.connect(&sim);
    adb.wait_for_state(&sim, "device");
    let jar = adb.home.path().join("u2.jar");
    std::fs::write(&jar, b"not a real program").expect("a file to push");
    assert!(adb.on(&sim, &["push", jar.to_str().expect("a plain path"), "/data/local/tmp/u2.jar"]).status.success(), "it is pushed");
    let serial = sim.addr().to_string();
    let agent = adb.command(&["-s", &serial, "shell", START]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("adb runs");
    let port = TcpListener::bind("127.0.0.1:0").and_then(|one| one.local_addr()).expect("a free port").port();
    assert!(adb.on(&sim, &["forward", &format!("tcp:{port}"), "tcp:9008"]).status.success(), "a port is forwarded");
    let deadline = Instant::now() + Duration::from_secs(20);
    while http(port, "GET", "/ping", "").as_deref() != Some("pong") {
        assert!(Instant::now() < deadline, "the agent answers on its port");
        std::thread::park_timeout(Duration::from_millis(20));
    }
    Running { adb, sim, port, agent }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agent_sees_more_than_the_stock_tool_and_holds_the_connection() {
    let Running { adb, sim, port, mut agent } = running(SimConfig::default()).await;
    let xml = tree(port).expect("a tree");
    assert!(parses(xml.as_bytes()) > 5, "which is whole");
    assert!(xml.contains("package=\"com.android.systemui\""), "with the system's windows, unlike the stock dump");
    let stock = adb.on(&sim, &["shell", "uiautomator dump /sdcard/a.xml"]);
    assert!(String::from_utf8_lossy(&stock.stderr).contains("already registered!"), "only one can hold the connection");
    assert!(out(&adb.on(&sim, &["shell", "ps -A"])).contains("com.wetest.uia2.Main"), "and it can be found");

    let info = rpc(port, "deviceInfo", json!([]))["result"].clone();
    assert_eq!((&info["displayWidth"], &info["displayHeight"]), (&json!(1080), &json!(2400)), "it knows the screen");
    assert_eq!(rpc(port, "noSuchThing", json!([]))["error"]["code"], json!(-32601), "an unknown method is an error");
    let id = "618203947511";
    adb.on(&sim, &["shell", &format!("am start -a android.intent.action.VIEW -d 'https://mobile.yangkeduo.com/goods.html?goods_id={id}'")]);
    assert_eq!(rpc(port, "click", json!([195, 2270]))["result"], json!(true), "a touch");
    assert!(tree(port).expect("a tree").contains("已收藏"), "arrives");
    assert!(rpc(port, "click", json!([{"text": "没有这个"}])).get("error").is_some(), "a name nobody has is an error");
    rpc(port, "swipe", json!([540, 2000, 540, 600, 60]));
    rpc(port, "swipe", json!([540, 2000, 540, 1300, 60]));
    let xml = tree(port).expect("a tree");
    assert!(xml.contains("会回购..") && !xml.contains("&#128"), "emoji come as two dots");

    assert_eq!(out(&adb.on(&sim, &["shell", "pkill -f com.wetest.uia2.Main; echo $?"])), "0\n", "it can be ended");
    assert!(agent.wait().is_ok(), "its shell ends with it");
    assert!(http(port, "GET", "/ping", "").is_none(), "the port is closed");
    assert!(adb.on(&sim, &["shell", "uiautomator dump /sdcard/a.xml"]).status.success(), "and the stock tool works again");
    sim.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agent_waits_for_rest_as_long_as_it_is_told() {
    let scenario = Scenario::named("busy_pages").expect("a shipped scenario");
    let Running { adb: _adb, sim, port, mut agent } = running(SimConfig::default().with_scenario(scenario)).await;
    sim.set_fault(Fault::NeverIdle);
    let timed = |timeout: u64| {
        rpc(port, "setConfigurator", json!([{"waitForIdleTimeout": timeout}]));
        let began = Instant::now();
        assert!(tree(port).is_some(), "it looks anyway");
        began.elapsed()
    };
    assert!(timed(900) >= Duration::from_millis(900), "with a timeout it waits that long");
    assert!(timed(0) < Duration::from_millis(900), "with none it looks at once");
    sim.set_fault(Fault::NullRoot { times: 1 });
    assert!(rpc(port, "dumpWindowHierarchy", json!([false, 50])).get("error").is_some(), "no root is an error, not an empty answer");
    sim.stop().await;
    agent.kill().expect("ours to end");
    drop(agent.wait());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_file_the_agent_does_not_start() {
    let adb = Adb::new();
    let sim = phone(SimConfig::default()).await;
    adb.connect(&sim);
    adb.wait_for_state(&sim, "device");
    let said = adb.on(&sim, &["shell", START]);
    assert!(!said.status.success() && String::from_utf8_lossy(&said.stderr).contains("could not find class"), "it says why: {said:?}");
    sim.stop().await;
}
