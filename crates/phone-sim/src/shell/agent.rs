//! `app_process` with the resident agent of openatx: it holds the UiAutomation connection and answers on a port until it is killed. What
//! it answers is in [`crate::agent`].

use std::sync::Arc;

use crate::phone::{Phone, until};
use crate::shell::Io;

const MAIN: &str = "com.wetest.uia2.Main";
const PORT: u16 = 9008;

pub(super) async fn run(phone: &Arc<Phone>, class_path: &str, arguments: &[String], io: &Io) -> i32 {
    let jar = class_path.split(':').find(|one| !one.is_empty()).unwrap_or_default();
    let there = phone.read_file(jar).is_some_and(|bytes| !bytes.is_empty());
    if !there || !arguments.iter().any(|one| one == MAIN) {
        let main = arguments.iter().find(|one| one.contains('.')).map_or("", String::as_str);
        io.complain(phone, format!("Error: could not find class '{main}'\nAborted\n"));
        return 134;
    }
    let port =
        arguments.iter().position(|one| one == "-p").and_then(|at| arguments.get(at + 1)).and_then(|one| one.parse().ok()).unwrap_or(PORT);
    if phone.agent().is_some() {
        io.complain(phone, "java.net.BindException: bind failed: EADDRINUSE (Address already in use)\n");
        return 1;
    }
    if !phone.start_agent(port) {
        io.complain(phone, "java.lang.IllegalStateException: UiAutomationService already registered!\nKilled\n");
        return 1;
    }
    let mut control = phone.control.subscribe();
    let kills = control.borrow_and_update().agent_kills;
    io.say(phone, format!("uiautomator2 server started, port {port}\n"));
    // Its own task: closing the stream ends the shell, not this one (adb facts, fact 7).
    let own = phone.clone();
    let running = tokio::spawn(async move {
        until(&mut control, |now| now.stop || now.agent_kills != kills).await;
        own.end_agent();
    });
    drop(running.await);
    137
}
