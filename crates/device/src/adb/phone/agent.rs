//! Talking to the resident agent: the openatx u2 server, started from its pinned file, over a stream to its port on the phone.
//!
//! It is asked for trees only. Its own click and type calls are never made: touching goes through the guard (D10). It gets a port of its
//! own, so that an agent somebody else started is neither used nor disturbed, and no port is opened on this computer.

use std::time::Duration;

use serde_json::{Value, json};

use super::AdbPhone;
use crate::adb::AdbError;
use crate::adb::answers;
use crate::adb::link::Link;
use crate::adb::phone::QUICK;
use crate::phone::AgentFile;
use crate::tree::{MAX_DEPTH, TreeError, UiTree};

const FILE: &str = "/data/local/tmp/cmautobuy-u2.jar";
const MAIN: &str = "com.wetest.uia2.Main";
/// Not the u2 server's usual 9008.
const PORT: u16 = 19_008;
/// A healthy agent needs a tenth of this.
const CALL: Duration = Duration::from_secs(5);
const PING: Duration = Duration::from_secs(1);
/// A Java process has to start.
const START_PINGS: u32 = 25;
const BETWEEN_PINGS: Duration = Duration::from_millis(200);

/// Why the agent gave no tree. Never shown as an error: another reader takes over.
#[derive(Debug, thiserror::Error)]
pub(super) enum AgentProblem {
    #[error("the agent's file is not on the phone")]
    Missing,
    #[error("the agent's file on the phone is not the pinned one")]
    WrongFile,
    #[error("the agent does not start")]
    NotStarting,
    #[error("the agent cannot be reached: {0}")]
    Link(#[from] AdbError),
    #[error("the agent's answer makes no sense: {0}")]
    BadAnswer(String),
    #[error("the agent reports: {0}")]
    Reports(String),
    #[error("the agent's tree is unusable: {0}")]
    Tree(#[from] TreeError),
}

impl<L: Link> AdbPhone<L> {
    /// A tree from the agent, which is started when it does not answer.
    pub(super) async fn agent_tree(&self, file: &AgentFile) -> Result<(UiTree, Vec<u8>), AgentProblem> {
        if !self.agent_answers().await {
            self.start_agent(file).await?;
        }
        // Its own default depth is 50, and a cut tree may have lost the pay button.
        let answer = self.call("dumpWindowHierarchy", json!([false, MAX_DEPTH])).await?;
        let Value::String(xml) = answer else { return Err(AgentProblem::BadAnswer("the tree is no text".to_owned())) };
        let tree = UiTree::parse(xml.as_bytes())?;
        Ok((tree, xml.into_bytes()))
    }

    /// Best effort; the dump that follows tells if it helped.
    pub(super) async fn stop_agent(&self) {
        let stopped = self.link.shell(&format!("pkill -f '{MAIN} -p {PORT}'"), Duration::from_secs(2)).await;
        tracing::debug!(?stopped, "stopped the agent");
    }

    async fn agent_answers(&self) -> bool {
        let ping = format!("GET /ping HTTP/1.1\r\nHost: phone:{PORT}\r\nConnection: close\r\n\r\n");
        let answer = self.link.talk(PORT, ping.as_bytes(), is_whole, PING).await;
        answer.ok().and_then(|raw| body(&raw).ok().map(|body| body.trim_ascii() == b"pong")).unwrap_or(false)
    }

    async fn start_agent(&self, file: &AgentFile) -> Result<(), AgentProblem> {
        // What is run must be what was pinned, whoever put it there.
        let sum = self.link.shell(&format!("sha256sum {FILE}"), QUICK).await?;
        let said = answers::text(&sum.stdout);
        let found = said.split_whitespace().next().filter(|_| sum.code == 0).ok_or(AgentProblem::Missing)?;
        if !found.eq_ignore_ascii_case(&file.sha256) {
            return Err(AgentProblem::WrongFile);
        }
        let start = format!("CLASSPATH={FILE} setsid app_process / {MAIN} -p {PORT} >/dev/null 2>&1 </dev/null &");
        self.link.shell(&start, QUICK).await?;
        for _ in 0..START_PINGS {
            if self.agent_answers().await {
                // 10 s of waiting for rest otherwise, on a page that never rests.
                self.call("setConfigurator", json!([{ "waitForIdleTimeout": 0, "waitForSelectorTimeout": 0 }])).await?;
                return Ok(());
            }
            tokio::time::sleep(BETWEEN_PINGS).await;
        }
        Err(AgentProblem::NotStarting)
    }

    async fn call(&self, method: &str, params: Value) -> Result<Value, AgentProblem> {
        let ask = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let request = format!(
            "POST /jsonrpc/0 HTTP/1.1\r\nHost: phone:{PORT}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{ask}",
            ask.len()
        );
        let raw = self.link.talk(PORT, request.as_bytes(), is_whole, CALL).await?;
        result(body(&raw)?)
    }
}

/// Where the head ends, and the length it states.
fn head(raw: &[u8]) -> Option<(usize, Option<usize>)> {
    let end = raw.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&raw[..end]).ok()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    Some((end + 4, length))
}

/// Whether the answer states its length and has it. One without a length ends with the stream.
fn is_whole(raw: &[u8]) -> bool {
    head(raw).is_some_and(|(start, length)| length.is_some_and(|length| raw.len() - start >= length))
}

/// The body of a complete, successful answer.
fn body(raw: &[u8]) -> Result<&[u8], AgentProblem> {
    let bad = |what: &str| AgentProblem::BadAnswer(what.to_owned());
    let (start, length) = head(raw).ok_or_else(|| bad("no HTTP head"))?;
    let status = raw.split(|b| *b == b' ').nth(1).unwrap_or_default();
    if status != b"200" {
        return Err(bad(&format!("status {}", String::from_utf8_lossy(&status[..status.len().min(8)]))));
    }
    let body = &raw[start..];
    match length {
        Some(length) if body.len() < length => Err(bad("it broke off")),
        Some(length) => Ok(&body[..length]),
        None => Ok(body),
    }
}

fn result(body: &[u8]) -> Result<Value, AgentProblem> {
    let mut answer: Value = serde_json::from_slice(body).map_err(|error| AgentProblem::BadAnswer(error.to_string()))?;
    if let Some(error) = answer.get("error").filter(|error| !error.is_null()) {
        let said = error.get("message").and_then(Value::as_str).map_or_else(|| error.to_string(), str::to_owned);
        return Err(AgentProblem::Reports(said.chars().take(200).collect()));
    }
    match answer.get_mut("result") {
        Some(result) => Ok(result.take()),
        None => Err(AgentProblem::BadAnswer("no result".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_over_http() {
        let http = |head: &str, body: &str| format!("HTTP/1.1 {head}\r\n\r\n{body}").into_bytes();
        let good = r#"{"jsonrpc":"2.0","id":1,"result":"<x/>"}"#;
        let long = format!("200 OK\r\ncontent-LENGTH: {}", good.len());
        let rows: Vec<(&str, Vec<u8>, bool, &str)> = vec![
            ("whole", http(&long, good), true, "\"<x/>\""),
            ("bytes after it", http(&long, &format!("{good}junk")), true, "\"<x/>\""),
            ("no length", http("200 OK", good), false, "\"<x/>\""),
            ("cut", http(&long, &good[..20]), false, "makes no sense: it broke off"),
            ("no head", b"HTTP/1.1 200".to_vec(), false, "makes no sense: no HTTP head"),
            ("server error", http("500 Oops\r\nContent-Length: 0", ""), true, "makes no sense: status 500"),
            ("no json", http("200 OK", "<html>"), false, "makes no sense: expected value"),
            ("no result", http("200 OK", "{}"), false, "makes no sense: no result"),
            (
                "its own error",
                http("200 OK", r#"{"error":{"code":-32001,"message":"UiAutomation not connected"}}"#),
                false,
                "reports: UiAutomation",
            ),
        ];
        for (name, raw, whole, want) in rows {
            assert_eq!(is_whole(&raw), whole, "row {name}: reading goes on exactly until the stated length is there");
            let got = match body(&raw).and_then(result) {
                Ok(value) => value.to_string(),
                Err(problem) => problem.to_string(),
            };
            assert!(got.contains(want), "row {name}: {got}");
        }
    }
}
