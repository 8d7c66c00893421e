//! The outside of the doctor: everything it can ask or start. A test answers from a table instead.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::OnceCell;

use crate::adb::direct::DirectLink;
use crate::adb::link::{Link, ShellOutput};
use crate::adb::wire::ServerLink;
use crate::adb::{AdbError, ListedDevice};
use crate::connect::{AdbHost, AdbPlaces, AdbProgram, AdbServer, AdbVersion, ConnectError, PortUse, port_use};
use crate::doctor::Road;

#[async_trait]
pub(crate) trait Edge: Send + Sync + Debug {
    /// The adb program's version.
    async fn program(&self) -> Result<AdbVersion, ConnectError>;

    async fn port(&self, port: u16) -> PortUse;

    async fn devices(&self, server: SocketAddr) -> Result<Vec<ListedDevice>, ConnectError>;

    /// A command in the shell of the phone the road leads to; `through` names server and transport where there is one.
    async fn shell(&self, through: Option<(SocketAddr, &str)>, cmd: &str, limit: Duration) -> Result<ShellOutput, AdbError>;

    async fn start_server(&self, port: u16) -> Result<(), ConnectError>;

    async fn reconnect_offline(&self, server: SocketAddr) -> Result<(), ConnectError>;

    async fn rejoin(&self, server: SocketAddr, phone: SocketAddr) -> Result<(), ConnectError>;
}

/// This computer.
#[derive(Debug)]
pub(crate) struct SystemEdge {
    places: AdbPlaces,
    direct: Option<DirectLink>,
    /// One the doctor had to start; ends with the doctor unless the house starts its own on the same port first.
    started: OnceCell<AdbServer>,
}

impl SystemEdge {
    pub(crate) fn new(places: AdbPlaces, road: &Road) -> SystemEdge {
        let direct = match road {
            Road::Direct { address, key } => Some(DirectLink::new(*address, key.clone())),
            Road::OwnServer { .. } | Road::NamedServer { .. } => None,
        };
        SystemEdge { places, direct, started: OnceCell::new() }
    }
}

#[async_trait]
impl Edge for SystemEdge {
    async fn program(&self) -> Result<AdbVersion, ConnectError> {
        AdbProgram::find(&self.places)?.version().await
    }

    async fn port(&self, port: u16) -> PortUse {
        port_use(port).await
    }

    async fn devices(&self, server: SocketAddr) -> Result<Vec<ListedDevice>, ConnectError> {
        AdbHost::new(server).devices().await
    }

    async fn shell(&self, through: Option<(SocketAddr, &str)>, cmd: &str, limit: Duration) -> Result<ShellOutput, AdbError> {
        match (through, &self.direct) {
            (Some((server, serial)), _) => ServerLink::new(server, serial.to_owned()).shell(cmd, limit).await,
            (None, Some(direct)) => direct.shell(cmd, limit).await,
            (None, None) => Err(AdbError::Refused("no road to a phone".to_owned())),
        }
    }

    async fn start_server(&self, port: u16) -> Result<(), ConnectError> {
        let start = async { AdbServer::start(&AdbProgram::find(&self.places)?, port).await };
        self.started.get_or_try_init(|| start).await.map(drop)
    }

    async fn reconnect_offline(&self, server: SocketAddr) -> Result<(), ConnectError> {
        AdbHost::new(server).reconnect_offline().await
    }

    async fn rejoin(&self, server: SocketAddr, phone: SocketAddr) -> Result<(), ConnectError> {
        AdbHost::new(server).join(phone).await.map(drop)
    }
}
