//! What the resident agent of openatx answers on its port: HTTP with JSON-RPC at `/jsonrpc/0`, as far as a reader of pages needs it. It
//! sees more than the stock tool: every window, also the system's, and it waits for rest only as long as it is told.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::adb::Pipe;
use crate::faults::Moment;
use crate::http;
use crate::phone::{Phone, until};

/// Answers requests until the peer leaves or the agent ends.
pub(crate) async fn serve(phone: Arc<Phone>, mut pipe: Pipe) {
    let mut control = phone.control.subscribe();
    let kills = control.borrow_and_update().agent_kills;
    let mut buffer = Vec::new();
    loop {
        let answer = match http::take(&mut buffer) {
            Ok(Some(request)) => {
                let answering = answer(&phone, &request);
                tokio::select! {
                    answer = answering => answer,
                    () = until(&mut control, |now| now.agent_kills != kills) => return,
                }
            }
            Ok(None) => {
                tokio::select! {
                    more = pipe.input.recv() => match more {
                        Some(bytes) => buffer.extend(bytes),
                        None => return,
                    },
                    () = until(&mut control, |now| now.agent_kills != kills) => return,
                }
                continue;
            }
            Err(error) => {
                drop(pipe.output.send(http::answer(400, "text/plain", error.to_string().as_bytes())));
                return;
            }
        };
        if pipe.output.send(answer).is_err() {
            return;
        }
    }
}

async fn answer(phone: &Phone, request: &http::Request) -> Vec<u8> {
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/ping") => http::answer(200, "text/plain", b"pong"),
        ("GET" | "POST", "/stop") => {
            phone.kill_agent();
            http::answer(200, "text/plain", b"Server stopped!!!")
        }
        ("POST", "/jsonrpc/0") => {
            let call: Value = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
            let id = call.get("id").cloned().unwrap_or(Value::Null);
            let method = call.get("method").and_then(Value::as_str).unwrap_or_default();
            let params = call.get("params").and_then(Value::as_array).cloned().unwrap_or_default();
            let body = match rpc(phone, method, &params).await {
                Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
                Err((code, message)) => json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message, "data": null}}),
            };
            http::answer(200, "application/json", body.to_string().as_bytes())
        }
        _ => http::answer(404, "text/plain", b"Not Found"),
    }
}

type Refusal = (i64, String);

async fn rpc(phone: &Phone, method: &str, params: &[Value]) -> Result<Value, Refusal> {
    let number = |at: usize| params.get(at).and_then(Value::as_f64).map(|one| one as i32);
    let point = |x: usize, y: usize| number(x).zip(number(y)).ok_or_else(|| (-32602, "Invalid params".to_owned()));
    match method {
        "dumpWindowHierarchy" => dump(phone, params.first().and_then(Value::as_bool).unwrap_or(false)).await,
        "deviceInfo" => {
            let screen = phone.screen();
            let front = phone.front().map_or(Value::Null, |(package, _)| Value::String(package));
            Ok(json!({
                "currentPackageName": front, "displayWidth": screen.width, "displayHeight": screen.height,
                "displayRotation": i32::from(phone.with_model(|model| model.walls.rotated)),
                "displaySizeDpX": 393, "displaySizeDpY": 873, "productName": "cmsim",
                "screenOn": phone.with_model(|model| model.awake), "sdkInt": 33, "naturalOrientation": true,
            }))
        }
        "setConfigurator" => {
            let idle = params.first().and_then(|one| one.get("waitForIdleTimeout")).and_then(Value::as_u64);
            if let Some(idle) = idle {
                phone.set_agent_idle(idle);
            }
            Ok(configurator(phone))
        }
        "getConfigurator" => Ok(configurator(phone)),
        "takeScreenshot" => Ok(Value::String(STANDARD.encode(phone.screencap()))),
        "click" if params.first().is_some_and(Value::is_object) => {
            let says = params[0].get("text").or_else(|| params[0].get("description")).and_then(Value::as_str).unwrap_or_default();
            if phone.click(says) {
                Ok(Value::Bool(true))
            } else {
                Err((-32001, "androidx.test.uiautomator.UiObjectNotFoundException".into()))
            }
        }
        "click" => point(0, 1).map(|(x, y)| {
            phone.tap(x, y);
            Value::Bool(true)
        }),
        "swipe" => {
            let (from, to) = (point(0, 1)?, point(2, 3)?);
            // Steps of five milliseconds each.
            phone.swipe(from, to, number(4).unwrap_or(55).max(0) as u32 * 5);
            Ok(Value::Bool(true))
        }
        "pressKey" | "pressKeyCode" => {
            let code = match params.first() {
                Some(Value::String(name)) if name == "back" => 4,
                Some(Value::String(name)) if name == "home" => 3,
                Some(one) => one.as_u64().unwrap_or(0) as u32,
                None => 0,
            };
            phone.key(code);
            Ok(Value::Bool(true))
        }
        "wakeUp" => {
            phone.key(224);
            Ok(Value::Null)
        }
        other => Err((-32601, format!("Method not found: {other}"))),
    }
}

fn configurator(phone: &Phone) -> Value {
    json!({
        "actionAcknowledgmentTimeout": 3000, "keyInjectionDelay": 0, "scrollAcknowledgmentTimeout": 200,
        "waitForIdleTimeout": phone.agent().map_or(0, |agent| agent.idle_ms), "waitForSelectorTimeout": 0,
    })
}

async fn dump(phone: &Phone, compressed: bool) -> Result<Value, Refusal> {
    phone.meet(Moment::Dump);
    let idle = phone.agent().map_or(0, |agent| agent.idle_ms);
    if phone.restless() {
        // It waits as long as it was told to and then looks anyway.
        tokio::time::sleep(Duration::from_millis(idle)).await;
    }
    tokio::time::sleep(phone.dump_time() / 8).await;
    phone.agent_dump(compressed).map(Value::String).ok_or_else(|| (-32001, "java.lang.NullPointerException: no root node".to_owned()))
}
