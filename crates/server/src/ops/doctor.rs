//! Looks at everything a server stands on and says what to do about what is wrong. It changes nothing and needs no running server.

use std::net::TcpListener;
use std::path::Path;

use cmautobuy_protocol::error::chain;
use cmautobuy_protocol::{ServerStatus, WireTime};
use serde::Serialize;

use super::metrics::{free_bytes, human};
use super::tls;
use crate::clock::Clock;
use crate::config::{Config, ms};
use crate::store::copy::{Checked, check_copy};
use crate::store::figures::{Figures, Standing, figures, standing};
use crate::store::{Store, StoreError};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Ok,
    /// It works; a person should know.
    Warn,
    /// A server on this would not work, or must not.
    Fail,
}

/// One thing looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    pub name: &'static str,
    pub verdict: Verdict,
    /// What was found and, unless all is well, what to do.
    pub says: String,
}

struct Checks(Vec<Check>);

impl Checks {
    fn ok(&mut self, name: &'static str, says: impl Into<String>) {
        self.0.push(Check { name, verdict: Verdict::Ok, says: says.into() });
    }
    fn warn(&mut self, name: &'static str, says: impl Into<String>) {
        self.0.push(Check { name, verdict: Verdict::Warn, says: says.into() });
    }
    fn fail(&mut self, name: &'static str, says: impl Into<String>) {
        self.0.push(Check { name, verdict: Verdict::Fail, says: says.into() });
    }
}

/// Blocks; reads the whole database.
pub(crate) fn doctor(config: &Config, clock: &dyn Clock) -> Vec<Check> {
    let mut checks = Checks(Vec::new());
    match config.validate() {
        Ok(()) => checks.ok("settings", "every value is inside its bounds"),
        Err(error) => checks.fail("settings", format!("{error}; see docs/server.example.toml")),
    }
    folder(&mut checks, config);
    network(&mut checks, config);
    if let Err(error) = config.metrics_token() {
        checks.fail("metrics", error.to_string());
    }
    database(&mut checks, config, clock.now());
    checks.0
}

fn folder(checks: &mut Checks, config: &Config) {
    let folder = &config.data_dir;
    if !folder.is_dir() {
        return checks.warn("data folder", format!("{} is not there yet; the first start makes it", folder.display()));
    }
    let probe = folder.join("doctor.probe");
    let written = std::fs::write(&probe, b"x").and_then(|()| std::fs::remove_file(&probe));
    match written {
        Ok(()) => checks.ok("data folder", format!("{} can be written", folder.display())),
        Err(error) => checks.fail("data folder", format!("{} cannot be written ({error}); give this user the right to", folder.display())),
    }
    match free_bytes(folder) {
        Some(free) if free < config.min_free_bytes => {
            checks.fail("disk", format!("{} free, below min_free_mib; make room, or /readyz keeps saying no", human(free)));
        }
        Some(free) => checks.ok("disk", format!("{} free", human(free))),
        None => checks.warn("disk", "the system does not tell how much is free"),
    }
}

fn network(checks: &mut Checks, config: &Config) {
    let listen = config.listen;
    match TcpListener::bind(listen) {
        Ok(_) => checks.ok("address", format!("{listen} is free")),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            checks.warn(
                "address",
                format!("{listen} is taken: by this server when it runs, else by a program to stop, or choose another `listen`"),
            );
        }
        Err(error) => checks.fail("address", format!("{listen} cannot be listened on ({error}); choose another `listen`")),
    }
    match (&config.tls, listen.ip().is_loopback(), config.allow_plain_http) {
        (Some(files), ..) => match tls::load(files) {
            Ok(_) => checks.ok("tls", "certificate and key fit together"),
            Err(error) => checks.fail("tls", chain(&error)),
        },
        (None, true, _) => checks.ok("tls", "off; only this computer can connect"),
        (None, false, true) => checks.warn("tls", "off, and others can connect: a TLS proxy must stand in front (allow_plain_http)"),
        (None, false, false) => checks.fail("tls", "off, and others could connect: set tls_certificate and tls_key"),
    }
}

fn database(checks: &mut Checks, config: &Config, now: WireTime) {
    let path = config.database();
    if !path.is_file() {
        return checks.warn("database", format!("{} is not there yet; the first start makes it", path.display()));
    }
    match check_copy(&path) {
        Ok(Checked::Whole { tasks, server_id: Some(id) }) => checks.ok("database", format!("whole; server {id}, {tasks} tasks")),
        Ok(Checked::Whole { server_id: None, .. }) => return checks.fail("database", "it belongs to no server; restore a backup"),
        Ok(Checked::Damaged(problem)) => return checks.fail("database", format!("{problem}; stop the server and restore a backup")),
        Err(error) => {
            return checks.fail("database", format!("{}; stop the server and restore a backup", chain(&error)));
        }
    }
    match look(&path, now, now.plus_ms(-ms(config.heartbeat_ttl))) {
        Ok((figures, standing)) => work(checks, &figures, &standing, now),
        // It may be of an older schema, which the next start brings up to date.
        Err(error) => checks.warn("work", format!("{}; start the server once and look again", chain(&error))),
    }
}

fn look(path: &Path, now: WireTime, heard_since: WireTime) -> Result<(Figures, Standing), StoreError> {
    Store::look_at(path, |tx| Ok((figures(tx, now, heard_since)?, standing(tx)?)))
}

fn work(checks: &mut Checks, figures: &Figures, standing: &Standing, now: WireTime) {
    match standing.admins {
        0 => checks.fail("administrators", "none is enabled; `autobuy-server user enable`, or `user create --role admin`"),
        some => checks.ok("administrators", format!("{some} enabled")),
    }
    match standing.last_event {
        Some(last) if last > now => {
            checks.fail("clock", format!("the last event was at {last}, this computer says {now}: its clock was set back; set it right"));
        }
        _ => checks.ok("clock", now.to_string()),
    }
    let count = |status| figures.tasks.iter().find(|(is, _)| *is == status).map_or(0, |(_, count)| *count);
    let (pending, running) = (count(ServerStatus::Pending), count(ServerStatus::Running));
    checks.ok("work", format!("{pending} pending, {running} running, {} devices live", figures.devices_live));
    if figures.devices_silent > 0 {
        checks.warn("devices", format!("{} not heard of lately; `autobuy-server device list` shows which", figures.devices_silent));
    }
    if figures.stalled > 0 {
        let says =
            "running without a living lease: their devices are silent; wait for them, or `task close` once it is sure that they are gone";
        checks.warn("stalled", format!("{} {says}", figures.stalled));
    }
    if figures.held > 0 {
        let says = "live purchases are held since a restore; look through the order list, then `task release-hold`";
        checks.warn("held", format!("{} {says}", figures.held));
    }
    if !standing.in_doubt.is_empty() {
        let ids: Vec<_> = standing.in_doubt.iter().map(|(id, status)| format!("{id} ({status})")).collect();
        checks.warn("orders", format!("an order may exist for {}; look on the phone before anything else", ids.join(", ")));
    }
}
