//! The resident agent and the choice between readers, against a phone that has or has not got one. The clock is stopped, so the fake
//! phone's waiting is what is measured.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;

use crate::adb::AdbError;
use crate::adb::link::{Link, ShellOutput, Whole};
use crate::adb::phone::AdbPhone;
use crate::capture::{CaptureWant, Verdict};
use crate::phone::{AgentFile, Phone, Reader, ReadersAllowed};

const PIN: &str = "aa11";
const TREE: &str = "<hierarchy rotation=\"0\"><node text=\"x\" package=\"com.xunmeng.pinduoduo\" bounds=\"[0,0][9,9]\"/></hierarchy>";

/// A phone with two speeds of dumping and perhaps an agent.
#[derive(Clone, Debug)]
struct State {
    stock: Result<u64, &'static str>,
    compressed: Result<u64, &'static str>,
    agent: Option<u64>,
    file: Option<&'static str>,
    starts: bool,
    running: bool,
    configured: usize,
    sent: Vec<String>,
}

impl State {
    fn new() -> State {
        State {
            stock: Ok(2000),
            compressed: Ok(1500),
            agent: Some(100),
            file: Some(PIN),
            starts: true,
            running: false,
            configured: 0,
            sent: Vec::new(),
        }
    }
}

#[derive(Clone, Debug)]
struct FakeLink(Arc<Mutex<State>>);

impl FakeLink {
    fn with(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.lock().expect("no test panics while holding it"));
    }

    fn see(&self) -> State {
        self.0.lock().expect("no test panics while holding it").clone()
    }
}

fn output(code: u8, stdout: &str, stderr: &str) -> Result<ShellOutput, AdbError> {
    Ok(ShellOutput { code, stdout: stdout.into(), stderr: stderr.into() })
}

#[async_trait]
impl Link for FakeLink {
    fn serial(&self) -> &str {
        "S1"
    }

    async fn shell(&self, cmd: &str, _limit: Duration) -> Result<ShellOutput, AdbError> {
        self.with(|state| state.sent.push(cmd.to_owned()));
        let state = self.see();
        if cmd.starts_with("dumpsys window") {
            return output(0, "mCurrentFocus=Window{1 u0 com.xunmeng.pinduoduo/.activity.NewPageActivity}", "");
        }
        if cmd.starts_with("f=") {
            if state.running {
                return output(1, "", "IllegalStateException: UiAutomationService already registered!");
            }
            let plan = if cmd.contains("--compressed") { state.compressed } else { state.stock };
            return match plan {
                Ok(ms) => {
                    tokio::time::sleep(Duration::from_millis(ms)).await;
                    output(0, TREE, "")
                }
                Err(said) => output(0, "", said),
            };
        }
        if cmd.starts_with("sha256sum") {
            return match state.file {
                Some(sum) => output(0, &format!("{sum}  /data/local/tmp/x.jar\n"), ""),
                None => output(1, "", "sha256sum: No such file or directory"),
            };
        }
        if cmd.starts_with("CLASSPATH=") {
            self.with(|state| state.running = state.starts);
        }
        if cmd.starts_with("pkill -f 'com.wetest") {
            self.with(|state| state.running = false);
        }
        output(0, "", "")
    }

    async fn exec(&self, _cmd: &str, _limit: Duration) -> Result<Vec<u8>, AdbError> {
        Err(AdbError::BrokeOff)
    }

    async fn talk(&self, _port: u16, request: &[u8], whole: Whole, _limit: Duration) -> Result<Vec<u8>, AdbError> {
        let state = self.see();
        if !state.running {
            return Err(AdbError::Refused("connection refused".to_owned()));
        }
        let request = String::from_utf8(request.to_vec()).expect("requests are text");
        let body = if request.starts_with("GET /ping") {
            "pong".to_owned()
        } else if request.contains("\"setConfigurator\"") {
            assert!(request.contains("\"waitForIdleTimeout\":0"), "a page that never rests must not be waited for");
            self.with(|state| state.configured += 1);
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned()
        } else {
            assert!(request.contains("\"dumpWindowHierarchy\""), "the agent is asked for trees and nothing else: {request}");
            let Some(ms) = state.agent else {
                let body = r#"{"error":{"code":-32001,"message":"UiAutomation not connected"}}"#;
                return Ok(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes());
            };
            tokio::time::sleep(Duration::from_millis(ms)).await;
            serde_json::json!({ "jsonrpc": "2.0", "id": 1, "result": TREE }).to_string()
        };
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes();
        assert!(whole(&answer), "an answer with its length is whole");
        Ok(answer)
    }
}

fn phone(change: impl FnOnce(&mut State)) -> (AdbPhone<FakeLink>, FakeLink) {
    let link = FakeLink(Arc::new(Mutex::new(State::new())));
    link.with(change);
    (AdbPhone::new(link.clone()), link)
}

fn allowed(compressed: bool, agent: bool) -> ReadersAllowed {
    ReadersAllowed { compressed, agent: agent.then(|| AgentFile { sha256: PIN.to_owned() }) }
}

#[tokio::test(start_paused = true)]
async fn the_fastest_allowed_reader_wins() {
    const IDLE: &str = "ERROR: could not get idle state.";
    type Row = (&'static str, fn(&mut State), ReadersAllowed, Option<Reader>, u32);
    // name, the phone, what is allowed, who wins, milliseconds of the look that follows
    let rows: Vec<Row> = vec![
        ("nothing else allowed", |_| {}, allowed(false, false), Some(Reader::Stock), 2000),
        ("compressed allowed", |_| {}, allowed(true, false), Some(Reader::Compressed), 1500),
        ("compressed slower", |s| s.compressed = Ok(2500), allowed(true, false), Some(Reader::Stock), 2000),
        ("agent allowed", |_| {}, allowed(true, true), Some(Reader::Agent), 100),
        ("agent slow", |s| s.agent = Some(4000), allowed(false, true), Some(Reader::Stock), 2000),
        ("agent missing", |s| s.file = None, allowed(true, true), Some(Reader::Compressed), 1500),
        ("another file in its place", |s| s.file = Some("bb22"), allowed(false, true), Some(Reader::Stock), 2000),
        ("agent does not start", |s| s.starts = false, allowed(false, true), Some(Reader::Stock), 2000),
        ("agent gives no tree", |s| s.agent = None, allowed(false, true), Some(Reader::Stock), 2000),
        ("a page that never rests", |s| s.stock = Err(IDLE), allowed(true, true), Some(Reader::Agent), 100),
        ("only compressed reads it", |s| s.stock = Err(IDLE), allowed(true, false), Some(Reader::Compressed), 1500),
    ];
    for (name, change, allow, want, ms) in rows {
        let (phone, link) = phone(change);
        let measured = phone.measure(&allow).await.unwrap_or_else(|error| panic!("row {name}: {error}"));
        let tried = 1 + usize::from(allow.compressed) + usize::from(allow.agent.is_some());
        assert_eq!(measured.len(), tried, "row {name}: every allowed reader is tried and no other");
        let fastest = measured.iter().filter(|one| one.result.is_ok()).min_by_key(|one| one.result.clone().ok()).map(|one| one.reader);
        assert_eq!(fastest, want, "row {name}: {measured:?}");
        let capture = phone.capture(&CaptureWant::anything()).await.unwrap_or_else(|error| panic!("row {name}: {error}"));
        assert_eq!((capture.verdict, capture.dump_ms), (Verdict::Ok, ms), "row {name}: the look that follows uses the winner");
        assert_eq!(link.see().running, want == Some(Reader::Agent), "row {name}: a loser must not keep the accessibility connection");
        let wrong = link.see().sent.iter().any(|cmd| cmd.starts_with("CLASSPATH=")) && link.see().file != Some(PIN);
        assert!(!wrong, "row {name}: a file that is not the pinned one is never run");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failing_agent_is_replaced_by_itself() {
    let (phone, link) = phone(|_| {});
    phone.measure(&allowed(false, true)).await.expect("measured");
    assert_eq!(link.see().configured, 1, "configured once, when it started");
    let look = || async { phone.capture(&CaptureWant::anything()).await.expect("a look").dump_ms };
    assert_eq!(look().await, 100, "the agent reads");

    link.with(|state| state.agent = None);
    assert_eq!(look().await, 2000, "the same look is read by the phone's own dump: the caller notices nothing");
    assert!(!link.see().running, "a broken agent must let go of the accessibility connection");
    link.with(|state| state.agent = Some(100));
    assert_eq!(look().await, 2000, "it rests for a while and is not asked for every look");
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(look().await, 100, "then it gets another chance");

    link.with(|state| state.running = false);
    assert_eq!(look().await, 100, "one that died is started again within the look");
    assert_eq!(link.see().configured, 3, "and configured at every start");
}

#[tokio::test(start_paused = true)]
async fn a_busy_screen_is_remembered() {
    let idle = Err("ERROR: could not get idle state.");
    let (phone, link) = phone(|state| (state.stock, state.compressed) = (idle, idle));
    let look = || async {
        link.with(|state| state.sent.clear());
        let verdict = phone.capture(&CaptureWant::anything()).await.expect("a look").verdict;
        (verdict, link.see().sent.iter().filter(|cmd| cmd.starts_with("f=")).count())
    };
    assert_eq!(look().await, (Verdict::NeverIdle, 2), "one retry without the decoration");
    assert_eq!(look().await, (Verdict::NeverIdle, 1), "known to be busy: only the form that may work");
    tokio::time::advance(Duration::from_secs(21)).await;
    link.with(|state| state.stock = Ok(2000));
    assert_eq!(look().await, (Verdict::Ok, 1), "after a while the full tree is tried again");
}
