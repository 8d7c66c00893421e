//! The control call and the screen page: a small HTTP server for a person who watches and taps, and for a test that switches faults on
//! while the phone runs. It takes requests from this computer only, unless its owner says otherwise, and a page of another site can send
//! it nothing: the host must be ours, and a change needs a content type that such a page may not use.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::config::JournalEntry;
use crate::faults::{Fault, FaultPlan, FaultRule};
use crate::http::{self, BadRequest, Request};
use crate::model::popup_names;
use crate::phone::{Phone, until};
use crate::scenario::Scenario;

const PAGE: &str = include_str!("../../../resources/phone-sim/screen.html");
/// A peer that says nothing is not waited for.
const SILENCE: Duration = Duration::from_secs(60);

/// What is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Serve {
    /// The page, its pictures and the control call.
    Screen,
    /// The control call alone.
    Control,
}

/// Who may reach it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Only addresses of this computer are accepted to listen on.
    ThisComputer,
    Network,
}

/// Starts listening and returns where; ends with the phone.
pub(crate) async fn start(phone: Arc<Phone>, at: SocketAddr, serve: Serve, reach: Reach) -> io::Result<SocketAddr> {
    if reach == Reach::ThisComputer && !at.ip().is_loopback() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "this address can be reached from other computers"));
    }
    let listener = TcpListener::bind(at).await?;
    let addr = listener.local_addr()?;
    tokio::spawn(listen(phone, listener, serve));
    Ok(addr)
}

async fn listen(phone: Arc<Phone>, listener: TcpListener, serve: Serve) {
    let mut control = phone.control.subscribe();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = until(&mut control, |now| now.stop) => return,
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => {
                    connections.spawn(connection(phone.clone(), socket, serve));
                }
                Err(error) => tracing::warn!(%error, "could not accept a request"),
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(phone: Arc<Phone>, mut socket: TcpStream, serve: Serve) {
    let Ok(own) = socket.local_addr() else { return };
    let mut buffer = Vec::new();
    let mut chunk = vec![0; 16 * 1024];
    loop {
        let answer = match http::take(&mut buffer) {
            Ok(Some(request)) => answer(&phone, &request, own, serve).await,
            Ok(None) => match tokio::time::timeout(SILENCE, socket.read(&mut chunk)).await {
                Ok(Ok(size)) if size > 0 => {
                    buffer.extend_from_slice(&chunk[..size]);
                    continue;
                }
                _ => return,
            },
            Err(error) => {
                let status = if error == BadRequest::TooLarge { 413 } else { 400 };
                drop(socket.write_all(&http::answer(status, "text/plain", error.to_string().as_bytes())).await);
                return;
            }
        };
        if socket.write_all(&answer).await.is_err() {
            return;
        }
    }
}

/// The host a browser believes to talk to must be ours: another site's name that leads here is refused.
fn knows(own: SocketAddr, host: &str) -> bool {
    let name = host.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()).map_or(host, |(name, _)| name);
    name == "localhost" || name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|ip| ip == own.ip() || ip.is_loopback())
}

async fn answer(phone: &Arc<Phone>, request: &Request, own: SocketAddr, serve: Serve) -> Vec<u8> {
    if !knows(own, request.header("host")) {
        return http::answer(403, "text/plain", b"this host name is not the phone's");
    }
    match (request.method.as_str(), request.path.as_str(), serve) {
        ("GET", "/", Serve::Screen) => http::answer(200, "text/html; charset=utf-8", PAGE.as_bytes()),
        ("GET", "/screen.png", _) => {
            let drawn = phone.clone();
            match tokio::task::spawn_blocking(move || drawn.screenshot()).await {
                Ok(png) => http::answer(200, "image/png", &png),
                Err(_) => http::answer(500, "text/plain", b"the picture could not be drawn"),
            }
        }
        ("GET", "/state", _) => reply(&state(phone)),
        ("GET", "/journal", _) => reply(&Value::Array(phone.journal().iter().map(entry).collect())),
        ("POST", path, _) => {
            if !request.header("content-type").starts_with("application/json") {
                return http::answer(415, "text/plain", b"send JSON");
            }
            match serde_json::from_slice(&request.body).map_err(|error| error.to_string()).and_then(|body| change(phone, path, body)) {
                Ok(()) => reply(&state(phone)),
                Err(problem) => http::answer(400, "text/plain; charset=utf-8", problem.as_bytes()),
            }
        }
        _ => http::answer(404, "text/plain", b"there is no such thing here"),
    }
}

fn reply(value: &Value) -> Vec<u8> {
    http::answer(200, "application/json", value.to_string().as_bytes())
}

fn entry(one: &JournalEntry) -> Value {
    json!({"kind": format!("{:?}", one.kind), "screen": one.screen, "hit": one.hit})
}

fn state(phone: &Phone) -> Value {
    let (counts, looks) = phone.with_model(|model| (model.counts, model.looks));
    let (package, activity) = phone.front().unwrap_or_default();
    let screen = phone.screen();
    let rotated = phone.with_model(|model| model.walls.rotated);
    let (width, height) = if rotated { (screen.height, screen.width) } else { (screen.width, screen.height) };
    json!({
        "screen": phone.screen_name(), "package": package, "activity": activity, "width": width, "height": height, "looks": looks,
        "orders_created": counts.orders, "payments_opened": counts.payments_opened, "payments_made": counts.payments,
        "paid_cent": counts.paid_cent, "popups": popup_names().collect::<Vec<_>>(), "scenarios": Scenario::names().collect::<Vec<_>>(),
    })
}

/// Bodies of the calls that change something.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tap {
    x: i32,
    y: i32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Swipe {
    from: (i32, i32),
    to: (i32, i32),
    #[serde(default)]
    ms: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Key {
    code: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Link {
    url: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    name: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Prompt {
    allow: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Plan {
    #[serde(default)]
    rules: Vec<FaultRule>,
    #[serde(default)]
    seed: u64,
}

fn change(phone: &Phone, path: &str, body: Value) -> Result<(), String> {
    fn read<T: for<'de> Deserialize<'de>>(body: Value) -> Result<T, String> {
        serde_json::from_value(body).map_err(|error| error.to_string())
    }
    match path {
        "/tap" => {
            let Tap { x, y } = read(body)?;
            phone.tap(x, y);
        }
        "/swipe" => {
            let Swipe { from, to, ms } = read(body)?;
            phone.swipe(from, to, ms);
        }
        "/key" => phone.key(read::<Key>(body)?.code),
        "/link" => {
            if phone.open_link(&read::<Link>(body)?.url, None) == crate::model::Opened::Unresolved {
                return Err("no app takes this link".into());
            }
        }
        "/fault" => phone.set_fault(read::<Fault>(body)?),
        "/faults" => {
            let Plan { rules, seed } = read(body)?;
            phone.play(FaultPlan { rules, seed });
        }
        "/clear" => phone.clear_faults(),
        "/popup" => {
            let Named { name } = read(body)?;
            if !phone.raise(&name) {
                return Err(format!("there is no layer {name}"));
            }
        }
        "/scenario" => {
            let Named { name } = read(body)?;
            let scenario = Scenario::named(&name).ok_or_else(|| format!("there is no scenario {name}"))?;
            phone.set_up(&scenario);
        }
        "/key_prompt" => phone.answer_key_prompt(read::<Prompt>(body)?.allow),
        other => return Err(format!("there is no call {other}")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_names_are_ours() {
        let own: SocketAddr = "127.0.0.1:15580".parse().expect("an address");
        for host in ["127.0.0.1:15580", "localhost:15580", "localhost", "[::1]:15580"] {
            assert!(knows(own, host), "{host} is this computer");
        }
        for host in ["", "evil.example:15580", "127.0.0.1.evil.example", "10.0.0.9:15580"] {
            assert!(!knows(own, host), "{host} is somebody else's name for us");
        }
    }
}
