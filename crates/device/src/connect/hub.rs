//! The one place that owns our adb server and the watch over its phones; it starts both when first needed and again after a loss.
//!
//! It decides nothing about a phone: it answers which road leads to one now.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, watch};

use crate::adb::{ListedState, connect_server};
use crate::connect::server::PRIVATE_PORT;
use crate::connect::track::{DeviceWatch, Roster};
use crate::connect::{AdbHost, AdbPlaces, AdbProgram, AdbServer, ConnectError, DiscoveredKind, Joined};
use crate::error::PhoneError;
use crate::phone::Phone;

/// A freshly started server finds the phones on its cables within this time.
const FIRST_LIST: Duration = Duration::from_secs(4);

#[derive(Debug)]
struct Running {
    server: AdbServer,
    watch: DeviceWatch,
}

/// Our adb server, on demand.
#[derive(Debug)]
pub struct AdbHub {
    places: AdbPlaces,
    first_port: u16,
    running: Mutex<Option<Running>>,
}

impl AdbHub {
    /// Starts nothing yet: a desk whose phone is reached directly needs no adb at all.
    pub fn new(places: AdbPlaces) -> AdbHub {
        AdbHub::on_port(places, PRIVATE_PORT)
    }

    pub fn on_port(places: AdbPlaces, first_port: u16) -> AdbHub {
        AdbHub { places, first_port, running: Mutex::new(None) }
    }

    pub fn places(&self) -> &AdbPlaces {
        &self.places
    }

    /// Our server, started if it does not run, and the live list of its phones.
    ///
    /// # Errors
    /// What keeps adb from starting, with its own words.
    pub async fn open(&self) -> Result<(AdbHost, watch::Receiver<Roster>), ConnectError> {
        let mut slot = self.running.lock().await;
        if let Some(running) = slot.as_mut() {
            let host = running.server.host();
            // A child that lives may still hang, and a server we found may have left: the socket decides.
            if running.server.is_running() && host.version().await.is_ok() {
                return Ok((host, running.watch.roster()));
            }
            tracing::warn!(said = running.server.last_words(), "our adb server is gone and is started again");
            *slot = None;
        }
        let program = AdbProgram::find(&self.places)?;
        let server = AdbServer::start(&program, self.first_port).await?;
        let host = server.host();
        let watch = DeviceWatch::start(host);
        let roster = watch.roster();
        *slot = Some(Running { server, watch });
        Ok((host, roster))
    }

    /// Where our server is, if it runs; starts nothing.
    pub async fn address(&self) -> Option<SocketAddr> {
        self.running.lock().await.as_ref().map(|running| running.server.host().address())
    }

    /// The phone of that serial over its best road. A phone that was joined by `address` and got lost is joined again.
    ///
    /// # Errors
    /// [`PhoneError::Unauthorized`], [`PhoneError::DeviceGone`], or what [`AdbHub::open`] says.
    pub async fn phone(&self, serial: &str) -> Result<Arc<dyn Phone>, HubError> {
        let (host, mut roster) = self.open().await.map_err(HubError::Connect)?;
        if let Ok(address) = serial.parse::<SocketAddr>()
            && !roster.borrow().find(serial).is_some_and(|phone| phone.is_ready())
        {
            match host.join(address).await.map_err(HubError::Connect)? {
                Joined::WaitsForAllow => return Err(HubError::Phone(PhoneError::Unauthorized { serial: serial.to_owned() })),
                Joined::Connected | Joined::Already => {}
            }
        }
        if serial.parse::<SocketAddr>().is_err() && roster.borrow().lists > 0 && roster.borrow().find(serial).is_none() {
            rejoin_announced(host, serial).await;
        }
        let ready = roster.wait_for(|roster| roster.find(serial).is_some_and(|phone| phone.is_ready()));
        // An error is the watch ending, which is the server ending.
        let _ = tokio::time::timeout(FIRST_LIST, ready).await;
        let seen = roster.borrow().find(serial).cloned();
        let gone = || HubError::Phone(PhoneError::DeviceGone { serial: serial.to_owned() });
        let seen = seen.ok_or_else(gone)?;
        match seen.state() {
            ListedState::Device => Ok(connect_server(host.address(), seen.best().serial.clone())),
            ListedState::Unauthorized => Err(HubError::Phone(PhoneError::Unauthorized { serial: serial.to_owned() })),
            ListedState::Offline => {
                host.reconnect_offline().await.map_err(HubError::Connect)?;
                Err(gone())
            }
            ListedState::NoPermissions | ListedState::Other(_) => Err(gone()),
        }
    }

    /// Ends what was started.
    pub async fn stop(&self) {
        if let Some(running) = self.running.lock().await.take() {
            drop(running.watch);
            running.server.stop().await;
        }
    }
}

/// A phone on Wi-Fi has another port after each restart, but it announces itself under its serial. Best effort: most are on cables.
async fn rejoin_announced(host: AdbHost, serial: &str) {
    let Ok(announced) = host.discover().await else { return };
    let it = announced.iter().find(|one| one.kind != DiscoveredKind::Pairing && one.serial() == Some(serial));
    if let Some(one) = it {
        let joined = host.join(one.address).await;
        tracing::info!(serial, address = %one.address, ?joined, "joined a phone by its announcement");
    }
}

/// Why there is no phone.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    #[error(transparent)]
    Connect(ConnectError),
    #[error(transparent)]
    Phone(PhoneError),
}

impl HubError {
    pub fn code(&self) -> &'static str {
        match self {
            HubError::Connect(error) => error.code(),
            HubError::Phone(error) => error.code(),
        }
    }
}
