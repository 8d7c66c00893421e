//! Phones one can choose from: seen now, announced in the network, remembered; and pairing with a new one.
//!
//! Two transports of one phone are one line.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use cmautobuy_device::ListedState;
use cmautobuy_device::connect::{AdbHost, ConnectError, DiscoveredKind, Roster};
use cmautobuy_protocol::error::chain;
use serde::Serialize;

use crate::house::App;
use crate::phone::connect_problem;
use crate::problem::{Kind, Problem};

/// A freshly started server needs a moment to find the phones on its cables.
const FIRST_LOOK: Duration = Duration::from_secs(3);

/// One phone.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedPhone {
    pub serial: String,
    pub model: String,
    /// adb's word: `device`, `unauthorized`, `offline`; `None` when it is not connected to our adb.
    pub state: Option<String>,
    /// Addresses to choose from, best first, each as a person would type it.
    pub roads: Vec<String>,
}

/// What is known, and what kept the rest from being known.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PhoneList {
    pub phones: Vec<ListedPhone>,
    pub problems: Vec<Problem>,
}

fn word(state: &ListedState) -> &str {
    match state {
        ListedState::Device => "device",
        ListedState::Offline => "offline",
        ListedState::Unauthorized => "unauthorized",
        ListedState::NoPermissions => "no permissions",
        ListedState::Other(other) => other,
    }
}

impl App {
    /// Starts our adb server when it can be started; without adb the remembered phones are still listed.
    ///
    /// # Errors
    /// `DATABASE_BROKEN`.
    pub async fn phones(&self) -> Result<PhoneList, Problem> {
        let mut found: BTreeMap<String, ListedPhone> = BTreeMap::new();
        let mut problems = Vec::new();
        match self.inner().hub.open().await {
            Ok((host, mut roster)) => {
                let _ = tokio::time::timeout(FIRST_LOOK, roster.wait_for(|roster| !roster.phones.is_empty())).await;
                add_seen(&mut found, &roster.borrow());
                if let Some(problem) = add_discovered(&mut found, host).await {
                    problems.push(problem);
                }
            }
            Err(error) => problems.push(connect_problem(&error)),
        }
        for phone in self.inner().store.read(|r| r.phone_list()).await? {
            let entry = found.entry(phone.serial.clone()).or_insert_with(|| ListedPhone { serial: phone.serial, ..ListedPhone::default() });
            if entry.model.is_empty() {
                entry.model = phone.model;
            }
            if !entry.roads.contains(&phone.address) {
                entry.roads.push(phone.address);
            }
        }
        Ok(PhoneList { phones: found.into_values().collect(), problems })
    }

    /// Pairs by the code of the phone's own window; then the phone shows up by itself.
    ///
    /// # Errors
    /// `SETTING_INVALID` for an address that is none, `ADB_TOO_OLD`, `PAIRING_REFUSED`, `ADB_MISSING`.
    pub async fn pair_phone(&self, address: &str, code: &str) -> Result<(), Problem> {
        let address: SocketAddr = address.trim().parse().map_err(|error| Kind::SettingInvalid.with(format!("`{address}`: {error}")))?;
        let (host, _) = self.inner().hub.open().await.map_err(|error| connect_problem(&error))?;
        host.pair(address, code.trim()).await.map_err(|error| connect_problem(&error))
    }
}

fn add_seen(found: &mut BTreeMap<String, ListedPhone>, roster: &Roster) {
    for phone in &roster.phones {
        found.insert(
            phone.serial.clone(),
            ListedPhone {
                serial: phone.serial.clone(),
                model: phone.model.clone().unwrap_or_default(),
                state: Some(word(phone.state()).to_owned()),
                roads: vec![format!("adb:{}", phone.serial)],
            },
        );
    }
}

/// An adb without mDNS is no problem: it is the usual one.
async fn add_discovered(found: &mut BTreeMap<String, ListedPhone>, host: AdbHost) -> Option<Problem> {
    match host.discover().await {
        Ok(all) => {
            for one in all.iter().filter(|one| one.kind != DiscoveredKind::Pairing) {
                let serial = one.serial().unwrap_or(&one.name).to_owned();
                let entry = found.entry(serial.clone()).or_insert_with(|| ListedPhone { serial, ..ListedPhone::default() });
                // Wireless debugging speaks TLS, which only adb does; the plain port we reach ourselves.
                let road = match one.kind {
                    DiscoveredKind::Plain => one.address.to_string(),
                    DiscoveredKind::WirelessDebugging | DiscoveredKind::Pairing => format!("adb:{}", one.address),
                };
                if !entry.roads.contains(&road) {
                    entry.roads.push(road);
                }
            }
            None
        }
        Err(ConnectError::Unsupported { .. }) => None,
        Err(error) => {
            tracing::debug!(detail = chain(&error), "phones could not be discovered");
            Some(connect_problem(&error))
        }
    }
}
