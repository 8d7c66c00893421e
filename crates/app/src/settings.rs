//! The settings this version reads (03 §6), with their defaults and bounds.

use std::net::SocketAddr;
use std::time::Duration;

use cmautobuy_protocol::device::MAX_PREDECESSORS;
use cmautobuy_protocol::{InstanceId, WireTime};
use cmautobuy_store::{Store, StoreError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::problem::{Kind, Problem};
use crate::view::{Language, Preferences, Theme};

pub(crate) const BASE_URL: &str = "admin.base_url";
pub(crate) const REQUEST_TIMEOUT: &str = "admin.request_timeout_seconds";
pub(crate) const PHONE_ADDRESS: &str = "device.address";
pub(crate) const ADB_PROGRAM: &str = "device.adb_program";
pub(crate) const POLL_INTERVAL: &str = "automation.poll_interval_seconds";
pub(crate) const MAX_RETRIES: &str = "automation.max_retries";
pub(crate) const DRY_RUN: &str = "automation.dry_run";
const INSTANCES: &str = "device.instances";
pub(crate) const LANGUAGE: &str = "ui.language";
pub(crate) const THEME: &str = "ui.theme";

/// Read once at start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) base_url: String,
    pub(crate) request_timeout: Duration,
    pub(crate) phone: String,
    /// Empty: the one that came with us, or the one on the search path.
    pub(crate) adb_program: String,
    pub(crate) poll: Duration,
    pub(crate) max_retries: u32,
    pub(crate) dry_run: bool,
    pub(crate) preferences: Preferences,
}

/// A value outside its bounds, or unreadable, is the default: a damaged setting must not keep the program from starting.
fn within<T: PartialOrd + Copy>(value: Option<T>, low: T, high: T, default: T) -> T {
    value.filter(|v| *v >= low && *v <= high).unwrap_or(default)
}

impl Settings {
    pub(crate) async fn load(store: &Store) -> Result<Self, StoreError> {
        store
            .read(|r| {
                Ok(Self {
                    base_url: r.setting_get(BASE_URL)?.unwrap_or_default(),
                    request_timeout: Duration::from_secs(within(r.setting_get(REQUEST_TIMEOUT)?, 2, 120, 15)),
                    phone: r.setting_get(PHONE_ADDRESS)?.unwrap_or_default(),
                    adb_program: r.setting_get(ADB_PROGRAM)?.unwrap_or_default(),
                    poll: Duration::from_secs(within(r.setting_get(POLL_INTERVAL)?, 1, 600, 10)),
                    max_retries: within(r.setting_get(MAX_RETRIES)?, 0, 10, 3),
                    dry_run: r.setting_get(DRY_RUN)?.unwrap_or(true),
                    preferences: Preferences {
                        language: r.setting_get(LANGUAGE)?.unwrap_or(Language::ZhCn),
                        theme: r.setting_get(THEME)?.unwrap_or(Theme::System),
                    },
                })
            })
            .await
    }
}

pub(crate) async fn save<T: Serialize + DeserializeOwned + Send + Sync + 'static>(
    store: &Store,
    key: &'static str,
    value: T,
    now: WireTime,
) -> Result<(), StoreError> {
    store.write(move |tx| tx.setting_set(key, &value, now)).await
}

/// Writes `instance` down before the server first hears of it and answers the processes of this folder before it, newest first. A start
/// after a crash names them, so that the server lets it take over at once (D19).
pub(crate) async fn join_instances(store: &Store, instance: InstanceId, now: WireTime) -> Result<Vec<InstanceId>, StoreError> {
    store
        .write(move |tx| {
            let mut before: Vec<InstanceId> = tx.setting_get(INSTANCES)?.unwrap_or_default();
            before.truncate(MAX_PREDECESSORS);
            let all: Vec<InstanceId> = std::iter::once(instance).chain(before.iter().copied()).collect();
            tx.setting_set(INSTANCES, &all, now)?;
            Ok(before)
        })
        .await
}

/// How the phone is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PhoneAddress {
    /// Straight to the phone's debugging port; needs no adb program.
    Direct(SocketAddr),
    /// Through our own adb server, by the phone's serial: `adb:SERIAL`. Never the default port: that is other programs' (issue 4).
    OwnServer { serial: String },
    /// Through an adb server the operator named: `adb:127.0.0.1:5037/SERIAL`.
    Server { server: SocketAddr, serial: String },
}

/// The address a person typed; `None` for an empty one.
///
/// # Errors
/// `SETTING_INVALID` with the accepted forms.
pub(crate) fn parse_phone(text: &str) -> Result<Option<PhoneAddress>, Problem> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let wrong = || Kind::SettingInvalid.with(format!("`{text}`: 192.168.0.20:5555 | adb:SERIAL | adb:127.0.0.1:5037/SERIAL"));
    let Some(rest) = text.strip_prefix("adb:") else { return text.parse().map(|a| Some(PhoneAddress::Direct(a))).map_err(|_| wrong()) };
    let (server, serial) = match rest.split_once('/') {
        Some((server, serial)) => (Some(server.parse().map_err(|_| wrong())?), serial),
        None => (None, rest),
    };
    if serial.is_empty() || serial.contains(char::is_whitespace) {
        return Err(wrong());
    }
    let serial = serial.to_owned();
    Ok(Some(match server {
        Some(server) => PhoneAddress::Server { server, serial },
        None => PhoneAddress::OwnServer { serial },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phone_addresses() {
        let local = |port| SocketAddr::from(([127, 0, 0, 1], port));
        for (text, want, why) in [
            ("", Ok(None), "no phone chosen yet"),
            (" 192.168.0.20:5555 ", Ok(Some(PhoneAddress::Direct(SocketAddr::from(([192, 168, 0, 20], 5555))))), "pasted with spaces"),
            ("adb:R58M123", Ok(Some(PhoneAddress::OwnServer { serial: "R58M123".into() })), "a phone on USB, never by 5037 unasked"),
            (
                "adb:127.0.0.1:5037/R58M123",
                Ok(Some(PhoneAddress::Server { server: local(5037), serial: "R58M123".into() })),
                "5037 because the operator says so",
            ),
            (
                "adb:127.0.0.1:15037/10.0.0.2:5555",
                Ok(Some(PhoneAddress::Server { server: local(15037), serial: "10.0.0.2:5555".into() })),
                "a private adb server",
            ),
            ("192.168.0.20", Err(()), "the port is missing"),
            ("adb:", Err(()), "the serial is missing"),
            ("adb:localhost/x", Err(()), "a name is no address"),
        ] {
            assert_eq!(parse_phone(text).map_err(|problem| assert_eq!(problem.code, "SETTING_INVALID", "{why}")), want, "{text}: {why}");
        }
    }

    #[test]
    fn values_outside_their_bounds_fall_back() {
        for (value, want, why) in [
            (None, 3, "unset"),
            (Some(5), 5, "inside"),
            (Some(10), 10, "the bound itself"),
            (Some(11), 3, "too high"),
            (Some(0), 0, "zero is allowed"),
        ] {
            assert_eq!(within(value, 0, 10, 3), want, "{why}");
        }
    }
}
