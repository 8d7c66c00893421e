//! Our own adb server on its own port, started and stopped by us.
//!
//! It runs as our child (`nodaemon`), so nothing is left behind and its last words can be shown. On a private port no phone assistant
//! or emulator can kill it for being another version (facts/adb, recommendation of A). We never stop a server we did not start.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStderr};

use crate::adb::text;
use crate::connect::holder::{Holder, holder_of};
use crate::connect::{AdbHost, AdbProgram, ConnectError};

/// Where every adb looks by default, and every phone assistant too.
pub const DEFAULT_PORT: u16 = 5037;
/// Ours; the next few are tried when it is taken.
pub const PRIVATE_PORT: u16 = 15037;
const PORTS_TRIED: u16 = 10;

/// A local port answers or refuses at once.
const PROBE: Duration = Duration::from_secs(1);
/// A cold adb.exe under a virus scanner takes seconds.
const START: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(50);
const STOP: Duration = Duration::from_secs(3);
/// Last words kept.
const TAIL: usize = 4096;

/// What is on a local port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortUse {
    Free,
    AdbServer { version: u32, holder: Option<Holder> },
    Other { holder: Option<Holder> },
}

/// Looks at a port of this computer. Connects, asks the version, says nothing else.
pub async fn port_use(port: u16) -> PortUse {
    let addr = local(port);
    match tokio::time::timeout(PROBE, TcpStream::connect(addr)).await {
        Ok(Ok(socket)) => drop(socket),
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused => return PortUse::Free,
        // A local port that neither refuses nor accepts is somebody's.
        Ok(Err(_)) | Err(_) => return PortUse::Other { holder: holder_of(port).await },
    }
    let host = AdbHost::new(addr);
    let (version, holder) = tokio::join!(tokio::time::timeout(PROBE, host.version()), holder_of(port));
    match version {
        Ok(Ok(version)) => PortUse::AdbServer { version, holder },
        Ok(Err(_)) | Err(_) => PortUse::Other { holder },
    }
}

pub(crate) fn local(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// A server this process may use. Dropping it ends the one we started.
#[derive(Debug)]
pub struct AdbServer {
    host: AdbHost,
    version: u32,
    child: Option<Running>,
}

#[derive(Debug)]
struct Running {
    child: Child,
    tail: Arc<Mutex<VecDeque<u8>>>,
}

impl AdbServer {
    /// Starts one on the first free port from `first_port`, or takes the one an earlier run of ours left there.
    ///
    /// # Errors
    /// [`ConnectError::AdbFailed`] with its last words, [`ConnectError::Timeout`], [`ConnectError::PortHeld`] when ten ports are taken.
    pub async fn start(program: &AdbProgram, first_port: u16) -> Result<AdbServer, ConnectError> {
        let wanted = program.version().await?;
        let mut taken = None;
        for port in (0..PORTS_TRIED).filter_map(|step| first_port.checked_add(step)) {
            match port_use(port).await {
                PortUse::Free => match AdbServer::spawn(program, port).await {
                    Ok(server) => return Ok(server),
                    // Somebody was quicker on this port; any other failure is the program's own and the next port cures nothing.
                    Err(ConnectError::AdbFailed { said, .. }) if said.to_ascii_lowercase().contains("address already in use") => {
                        taken = Some(ConnectError::PortHeld { port, holder: holder_of(port).await });
                    }
                    Err(error) => return Err(error),
                },
                PortUse::AdbServer { version, .. } if version == wanted.protocol => {
                    tracing::info!(port, version, "using the adb server that is already on our port");
                    return Ok(AdbServer { host: AdbHost::new(local(port)), version, child: None });
                }
                PortUse::AdbServer { holder, .. } | PortUse::Other { holder } => taken = Some(ConnectError::PortHeld { port, holder }),
            }
        }
        Err(taken.unwrap_or(ConnectError::PortHeld { port: first_port, holder: None }))
    }

    /// A server the operator named; it is used, never started and never stopped.
    ///
    /// # Errors
    /// [`ConnectError::Server`] when nothing answers there.
    pub async fn existing(addr: SocketAddr) -> Result<AdbServer, ConnectError> {
        let host = AdbHost::new(addr);
        Ok(AdbServer { host, version: host.version().await?, child: None })
    }

    async fn spawn(program: &AdbProgram, port: u16) -> Result<AdbServer, ConnectError> {
        const WHAT: &str = "start its server";
        let mut command = program.command(port);
        command.args(["nodaemon", "server"]).stdout(Stdio::null());
        let mut child = command.spawn().map_err(|error| ConnectError::AdbFailed { what: WHAT, said: error.to_string() })?;
        let tail = Arc::new(Mutex::new(VecDeque::new()));
        if let Some(stderr) = child.stderr.take() {
            // Ends with the pipe, that is with the child.
            tokio::spawn(keep_tail(stderr, Arc::clone(&tail)));
        }
        let mut running = Running { child, tail };
        let host = AdbHost::new(local(port));
        let ready = async {
            loop {
                match host.version().await {
                    Ok(version) => return Ok(version),
                    Err(error) => {
                        if let Ok(Some(status)) = running.child.try_wait() {
                            return Err(ConnectError::AdbFailed { what: WHAT, said: format!("{status}: {}", running.last_words()) });
                        }
                        tracing::trace!(%error, "the adb server is not up yet");
                        tokio::time::sleep(POLL).await;
                    }
                }
            }
        };
        let version = tokio::time::timeout(START, ready).await.unwrap_or(Err(ConnectError::Timeout { what: WHAT, limit: START }))?;
        tracing::info!(port, version, program = %program.path().display(), "started our adb server");
        Ok(AdbServer { host, version, child: Some(running) })
    }

    pub fn host(&self) -> AdbHost {
        self.host
    }

    /// Protocol number, for example 41.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Whether this process started it.
    pub fn is_ours(&self) -> bool {
        self.child.is_some()
    }

    /// False when the child has ended; a server that is not our child is asked by its socket only.
    pub fn is_running(&mut self) -> bool {
        self.child.as_mut().is_none_or(|running| matches!(running.child.try_wait(), Ok(None)))
    }

    /// What it printed last, for the log and the support bundle.
    pub fn last_words(&self) -> String {
        self.child.as_ref().map(Running::last_words).unwrap_or_default()
    }

    /// Ends the server we started and waits for it; leaves any other alone.
    pub async fn stop(mut self) {
        let Some(mut running) = self.child.take() else { return };
        // Asked nicely first: it then lets go of USB phones properly.
        let asked = self.host.ask("host:kill", STOP).await;
        if tokio::time::timeout(STOP, running.child.wait()).await.is_err() {
            tracing::warn!(?asked, "the adb server did not end by itself");
            if let Err(error) = running.child.kill().await {
                tracing::warn!(%error, "the adb server could not be ended");
            }
        }
    }
}

impl Running {
    fn last_words(&self) -> String {
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = tail.iter().copied().collect();
        text(&bytes).trim().to_owned()
    }
}

/// Reads to the end, so that the child never blocks on a full pipe, and keeps the last of it.
async fn keep_tail(mut from: ChildStderr, tail: Arc<Mutex<VecDeque<u8>>>) {
    let mut chunk = [0u8; 1024];
    while let Ok(read @ 1..) = from.read(&mut chunk).await {
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend(&chunk[..read]);
        let over = tail.len().saturating_sub(TAIL);
        tail.drain(..over);
    }
}
