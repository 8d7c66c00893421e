//! The adb server's socket: four hex digits and a request, OKAY or FAIL, then bytes.
//!
//! One TCP connection per command, as adb does; closing it is the cancel.

use std::net::SocketAddr;
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;

use crate::adb::AdbError;
use crate::adb::link::{Link, MAX_OUTPUT_BYTES, ShellOutput, ShellPackets, Whole, split_trailer, with_trailer, within};

pub(crate) const ASK_LIMIT: Duration = Duration::from_secs(5);
/// Longest answer of a `host:` query.
const MAX_ANSWER: usize = 0xFFFF;

#[derive(Debug)]
pub(crate) struct ServerLink {
    server: SocketAddr,
    serial: String,
    /// Learned once per phone; a failure is not remembered.
    shell_v2: OnceCell<bool>,
}

impl ServerLink {
    pub(crate) fn new(server: SocketAddr, serial: String) -> ServerLink {
        ServerLink { server, serial, shell_v2: OnceCell::new() }
    }

    async fn open(&self, service: &str) -> Result<TcpStream, AdbError> {
        let mut socket = dial(self.server).await?;
        request(&mut socket, &format!("host:transport:{}", self.serial)).await?;
        request(&mut socket, service).await?;
        Ok(socket)
    }

    async fn has_shell_v2(&self) -> Result<bool, AdbError> {
        self.shell_v2
            .get_or_try_init(|| async {
                let features = query(self.server, &format!("host-serial:{}:features", self.serial)).await?;
                Ok(features.split(',').any(|feature| feature.trim() == "shell_v2"))
            })
            .await
            .copied()
    }

    async fn raw(&self, cmd: &str) -> Result<Vec<u8>, AdbError> {
        let mut socket = self.open(&format!("exec:{cmd}")).await?;
        let mut out = Vec::new();
        while read_some(&mut socket, &mut out).await? {}
        Ok(out)
    }
}

#[async_trait]
impl Link for ServerLink {
    fn serial(&self) -> &str {
        &self.serial
    }

    async fn shell(&self, cmd: &str, limit: Duration) -> Result<ShellOutput, AdbError> {
        within(limit, async {
            if !self.has_shell_v2().await? {
                return split_trailer(self.raw(&with_trailer(cmd)).await?);
            }
            let mut socket = self.open(&format!("shell,v2,raw:{cmd}")).await?;
            let mut packets = ShellPackets::default();
            let mut chunk = Vec::new();
            while !packets.exited() && read_some(&mut socket, &mut chunk).await? {
                packets.feed(&chunk)?;
                chunk.clear();
            }
            packets.finish()
        })
        .await
    }

    async fn exec(&self, cmd: &str, limit: Duration) -> Result<Vec<u8>, AdbError> {
        // The end of this socket may be the end of the command or of the cable; only the trailer tells.
        within(limit, async { Ok(split_trailer(self.raw(&with_trailer(cmd)).await?)?.stdout) }).await
    }

    async fn talk(&self, port: u16, request: &[u8], whole: Whole, limit: Duration) -> Result<Vec<u8>, AdbError> {
        within(limit, async {
            let mut socket = self.open(&format!("tcp:{port}")).await?;
            socket.write_all(request).await?;
            let mut answer = Vec::new();
            while !whole(&answer) && read_some(&mut socket, &mut answer).await? {}
            Ok(answer)
        })
        .await
    }
}

/// A `host:` query with a length-prefixed answer.
pub(crate) async fn ask(server: SocketAddr, question: &str, limit: Duration) -> Result<String, AdbError> {
    within(limit, query(server, question)).await
}

async fn query(server: SocketAddr, question: &str) -> Result<String, AdbError> {
    let mut socket = dial(server).await?;
    request(&mut socket, question).await?;
    read_answer(&mut socket).await
}

/// A counted answer, or the reason why there is none: `host:pair` says OKAY to the request and FAIL to the pairing (adb 36, measured).
async fn read_answer(socket: &mut TcpStream) -> Result<String, AdbError> {
    let mut digits = [0u8; 4];
    read_exact(socket, &mut digits).await?;
    if &digits == b"FAIL" {
        return Err(AdbError::Refused(read_counted(socket).await?));
    }
    read_body(socket, digits).await
}

pub(crate) async fn dial(server: SocketAddr) -> Result<TcpStream, AdbError> {
    let socket = TcpStream::connect(server)
        .await
        .map_err(|source| AdbError::Unreachable { endpoint: format!("the adb server at {server}"), source })?;
    socket.set_nodelay(true)?;
    Ok(socket)
}

pub(crate) async fn request(socket: &mut TcpStream, text: &str) -> Result<(), AdbError> {
    if text.len() > MAX_ANSWER {
        return Err(AdbError::TooLarge { cap: MAX_ANSWER });
    }
    socket.write_all(format!("{:04x}{text}", text.len()).as_bytes()).await?;
    let mut status = [0u8; 4];
    read_exact(socket, &mut status).await?;
    match &status {
        b"OKAY" => Ok(()),
        b"FAIL" => {
            let reason = read_counted(socket).await?;
            if reason.contains("unauthorized") || reason.contains("authorizing") {
                Err(AdbError::Unauthorized)
            } else {
                Err(AdbError::Refused(reason))
            }
        }
        other => Err(AdbError::Protocol(format!("status {:?}", String::from_utf8_lossy(other)))),
    }
}

pub(crate) async fn read_counted(socket: &mut TcpStream) -> Result<String, AdbError> {
    let mut digits = [0u8; 4];
    read_exact(socket, &mut digits).await?;
    read_body(socket, digits).await
}

async fn read_body(socket: &mut TcpStream, digits: [u8; 4]) -> Result<String, AdbError> {
    let len = std::str::from_utf8(&digits)
        .ok()
        .and_then(|text| usize::from_str_radix(text, 16).ok())
        .ok_or_else(|| AdbError::Protocol(format!("length {:?}", String::from_utf8_lossy(&digits))))?;
    let mut body = vec![0u8; len];
    read_exact(socket, &mut body).await?;
    Ok(crate::adb::answers::text(&body))
}

async fn read_exact(socket: &mut TcpStream, buffer: &mut [u8]) -> Result<(), AdbError> {
    match socket.read_exact(buffer).await {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Err(AdbError::BrokeOff),
        Err(error) => Err(AdbError::Io(error)),
    }
}

/// Appends what is there; false at the end of the stream.
async fn read_some(socket: &mut TcpStream, into: &mut Vec<u8>) -> Result<bool, AdbError> {
    if into.len() > MAX_OUTPUT_BYTES {
        return Err(AdbError::TooLarge { cap: MAX_OUTPUT_BYTES });
    }
    into.reserve(64 * 1024);
    Ok(socket.read_buf(into).await? > 0)
}
