//! Straight to adbd over TCP: one connection, many streams.
//!
//! A driver task owns the socket; callers own streams. It reconnects at the next call after a loss and
//! keeps the connection while a person decides on Allow, because closing it takes the question off the phone.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::adb::link::{Link, MAX_OUTPUT_BYTES, ShellOutput, ShellPackets, Whole, split_trailer, with_trailer, within};
use crate::adb::message::{
    AUTH, AUTH_RSAPUBLICKEY, AUTH_SIGNATURE, AUTH_TOKEN, CLSE, CNXN, MAX_PAYLOAD, Message, OKAY, OPEN, STLS, VERSION, WRTE,
};
use crate::adb::{AdbError, AdbKey};

/// How long a call waits for a phone that has our public key but no answer yet: an automatic yes comes at once.
const ALLOW_GRACE: Duration = Duration::from_millis(700);
/// Messages waiting to be written; callers wait beyond that.
const OUTGOING: usize = 64;
/// adbd sends one WRTE per stream and waits for OKAY, so this never fills with an honest peer.
const PER_STREAM: usize = 16;

#[derive(Debug)]
pub(crate) struct DirectLink {
    addr: SocketAddr,
    serial: String,
    key: Arc<AdbKey>,
    connection: tokio::sync::Mutex<Option<Arc<Connection>>>,
}

impl DirectLink {
    pub(crate) fn new(addr: SocketAddr, key: Arc<AdbKey>) -> DirectLink {
        DirectLink { addr, serial: addr.to_string(), key, connection: tokio::sync::Mutex::new(None) }
    }

    /// The living connection, made if there is none.
    async fn ready(&self) -> Result<(Arc<Connection>, bool), AdbError> {
        let connection = {
            let mut slot = self.connection.lock().await;
            match slot.as_ref().filter(|connection| !connection.is_dead()) {
                Some(connection) => Arc::clone(connection),
                None => {
                    let fresh = Arc::new(Connection::start(self.addr, Arc::clone(&self.key)));
                    *slot = Some(Arc::clone(&fresh));
                    fresh
                }
            }
        };
        let mut phase = connection.phase.clone();
        let settled =
            phase.wait_for(|phase| !matches!(phase, Phase::Connecting | Phase::Handshaking)).await.map_err(|_| AdbError::BrokeOff)?.clone();
        let settled = match settled {
            Phase::WaitingForAllow => {
                let decided = phase.wait_for(|phase| matches!(phase, Phase::Ready { .. } | Phase::Dead { .. }));
                match tokio::time::timeout(ALLOW_GRACE, decided).await {
                    Err(_) => return Err(AdbError::Unauthorized),
                    Ok(Err(_)) => return Err(AdbError::BrokeOff),
                    Ok(Ok(phase)) => phase.clone(),
                }
            }
            other => other,
        };
        match settled {
            Phase::Ready { shell_v2 } => Ok((connection, shell_v2)),
            Phase::Dead { unreachable: true, reason } => {
                Err(AdbError::Unreachable { endpoint: format!("the phone at {}", self.addr), source: std::io::Error::other(reason) })
            }
            Phase::Dead { unreachable: false, reason } => Err(AdbError::Protocol(reason)),
            Phase::Connecting | Phase::Handshaking | Phase::WaitingForAllow => Err(AdbError::BrokeOff),
        }
    }
}

impl DirectLink {
    /// Runs a call and gives up the connection if it timed out in total silence: a phone that left the
    /// Wi-Fi without a FIN would otherwise keep every later call waiting for the kernel to notice.
    async fn watched<T>(&self, limit: Duration, work: impl Future<Output = Result<T, AdbError>>) -> Result<T, AdbError> {
        let seen = |slot: &Option<Arc<Connection>>| slot.as_ref().map(|connection| (Arc::downgrade(connection), connection.heard()));
        let before = seen(&*self.connection.lock().await);
        let result = within(limit, work).await;
        if matches!(result, Err(AdbError::Timeout)) {
            let mut slot = self.connection.lock().await;
            let silent = match (&before, &seen(&slot)) {
                // The same connection: has it said anything since?
                (Some((then, heard)), Some((now, heard_now))) if then.ptr_eq(now) => heard == heard_now,
                // One made meanwhile: has it ever said anything? Streams of other callers on it must not pay for this one.
                (_, Some((_, heard_now))) => *heard_now == 0,
                (_, None) => false,
            };
            if silent {
                *slot = None;
            }
        }
        result
    }
}

#[async_trait]
impl Link for DirectLink {
    fn serial(&self) -> &str {
        &self.serial
    }

    async fn shell(&self, cmd: &str, limit: Duration) -> Result<ShellOutput, AdbError> {
        self.watched(limit, async {
            let (connection, shell_v2) = self.ready().await?;
            if !shell_v2 {
                let raw = connection.open(&format!("exec:{}", with_trailer(cmd))).await?.read_all().await?;
                return split_trailer(raw);
            }
            let mut stream = connection.open(&format!("shell,v2,raw:{cmd}")).await?;
            let mut packets = ShellPackets::default();
            while let Some(chunk) = stream.next().await? {
                packets.feed(&chunk)?;
                if packets.exited() {
                    break;
                }
            }
            packets.finish()
        })
        .await
    }

    async fn exec(&self, cmd: &str, limit: Duration) -> Result<Vec<u8>, AdbError> {
        self.watched(limit, async {
            let (connection, _) = self.ready().await?;
            // A phone that kills the command closes the stream as properly as one that ends it; only the trailer tells.
            let raw = connection.open(&format!("exec:{}", with_trailer(cmd))).await?.read_all().await?;
            Ok(split_trailer(raw)?.stdout)
        })
        .await
    }

    async fn talk(&self, port: u16, request: &[u8], whole: Whole, limit: Duration) -> Result<Vec<u8>, AdbError> {
        // One message and one acknowledgement: requests are small, and adbd's oldest limit is 4 KiB.
        if request.len() > 4096 {
            return Err(AdbError::TooLarge { cap: 4096 });
        }
        self.watched(limit, async {
            let (connection, _) = self.ready().await?;
            let mut stream = connection.open(&format!("tcp:{port}")).await?;
            stream.send(WRTE, stream.remote.unwrap_or(0), request.to_vec()).await?;
            let mut answer = Vec::new();
            while !whole(&answer) {
                let Some(bytes) = stream.next().await? else { break };
                answer.extend(bytes);
                if answer.len() > MAX_OUTPUT_BYTES {
                    return Err(AdbError::TooLarge { cap: MAX_OUTPUT_BYTES });
                }
            }
            Ok(answer)
        })
        .await
    }
}

#[derive(Clone, Debug)]
enum Phase {
    Connecting,
    Handshaking,
    WaitingForAllow,
    Ready { shell_v2: bool },
    Dead { unreachable: bool, reason: String },
}

enum StreamEvent {
    Opened(u32),
    Data(Vec<u8>),
    Closed,
}

/// Streams by our id. Cleared when the connection dies, which every reader sees as the end.
type Streams = Arc<Mutex<HashMap<u32, mpsc::Sender<StreamEvent>>>>;

fn lock(streams: &Streams) -> MutexGuard<'_, HashMap<u32, mpsc::Sender<StreamEvent>>> {
    streams.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
struct Connection {
    outgoing: mpsc::Sender<Message>,
    /// CLSE of dropped streams. Unbounded because a drop cannot wait; never longer than the streams once open.
    closing: mpsc::UnboundedSender<Message>,
    phase: watch::Receiver<Phase>,
    streams: Streams,
    /// Messages received so far.
    heard: Arc<AtomicU64>,
    next_id: AtomicU32,
    driver: JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    fn start(addr: SocketAddr, key: Arc<AdbKey>) -> Connection {
        let (outgoing, queue) = mpsc::channel(OUTGOING);
        let (closing, closes) = mpsc::unbounded_channel();
        let (phase_tx, phase) = watch::channel(Phase::Connecting);
        let streams = Streams::default();
        let heard = Arc::new(AtomicU64::new(0));
        let driver = Driver { key, phase: phase_tx, streams: Arc::clone(&streams), heard: Arc::clone(&heard), outgoing: outgoing.clone() };
        let driver = tokio::spawn(driver.run(addr, queue, closes));
        Connection { outgoing, closing, phase, streams, heard, next_id: AtomicU32::new(1), driver }
    }

    fn heard(&self) -> u64 {
        self.heard.load(Ordering::Relaxed)
    }

    fn is_dead(&self) -> bool {
        matches!(*self.phase.borrow(), Phase::Dead { .. }) || self.driver.is_finished()
    }

    async fn open(self: &Arc<Self>, service: &str) -> Result<Stream, AdbError> {
        let local = self.next_id.fetch_add(1, Ordering::Relaxed).max(1);
        let (events_tx, events) = mpsc::channel(PER_STREAM);
        lock(&self.streams).insert(local, events_tx);
        let mut stream = Stream { connection: Arc::clone(self), local, remote: None, events, closed: false };
        // Checked after registering: the driver clears the map after it publishes its death.
        if self.is_dead() {
            return Err(AdbError::BrokeOff);
        }
        // Android 7 and older want the NUL (facts A14).
        let payload = [service.as_bytes(), b"\0"].concat();
        stream.send(OPEN, 0, payload).await?;
        match stream.events.recv().await {
            Some(StreamEvent::Opened(remote)) => {
                stream.remote = Some(remote);
                Ok(stream)
            }
            Some(StreamEvent::Closed) => {
                stream.closed = true;
                let name = service.split(':').next().unwrap_or_default();
                Err(AdbError::Refused(format!("the phone offers no {name} service")))
            }
            Some(StreamEvent::Data(_)) => Err(AdbError::Protocol("data before the stream was open".to_owned())),
            None => Err(AdbError::BrokeOff),
        }
    }
}

struct Stream {
    connection: Arc<Connection>,
    local: u32,
    remote: Option<u32>,
    events: mpsc::Receiver<StreamEvent>,
    closed: bool,
}

impl Stream {
    async fn send(&self, command: u32, remote: u32, payload: Vec<u8>) -> Result<(), AdbError> {
        self.connection.outgoing.send(Message::new(command, self.local, remote, payload)).await.map_err(|_| AdbError::BrokeOff)
    }

    /// The next piece; `None` when the phone closed the stream properly. A lost connection is an error.
    async fn next(&mut self) -> Result<Option<Vec<u8>>, AdbError> {
        loop {
            match self.events.recv().await {
                Some(StreamEvent::Data(bytes)) => {
                    // Only now may the phone send more: that is the back pressure.
                    self.send(OKAY, self.remote.unwrap_or(0), Vec::new()).await?;
                    return Ok(Some(bytes));
                }
                Some(StreamEvent::Closed) => {
                    self.closed = true;
                    return Ok(None);
                }
                // The phone's receipt for what we wrote.
                Some(StreamEvent::Opened(remote)) if self.remote == Some(remote) => {}
                Some(StreamEvent::Opened(_)) => return Err(AdbError::Protocol("a stream opened twice".to_owned())),
                None => return Err(AdbError::BrokeOff),
            }
        }
    }

    async fn read_all(mut self) -> Result<Vec<u8>, AdbError> {
        let mut out = Vec::new();
        while let Some(bytes) = self.next().await? {
            out.extend(bytes);
            if out.len() > MAX_OUTPUT_BYTES {
                return Err(AdbError::TooLarge { cap: MAX_OUTPUT_BYTES });
            }
        }
        Ok(out)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        lock(&self.connection.streams).remove(&self.local);
        if let (false, Some(remote)) = (self.closed, self.remote) {
            // Never lost to a full queue: a command nobody waits for must not go on running on the phone. An error is a dead connection.
            let _ = self.connection.closing.send(Message::new(CLSE, self.local, remote, Vec::new()));
        }
    }
}

struct Driver {
    key: Arc<AdbKey>,
    phase: watch::Sender<Phase>,
    streams: Streams,
    heard: Arc<AtomicU64>,
    outgoing: mpsc::Sender<Message>,
}

impl Driver {
    async fn run(self, addr: SocketAddr, queue: mpsc::Receiver<Message>, closes: mpsc::UnboundedReceiver<Message>) {
        let (unreachable, error) = match TcpStream::connect(addr).await {
            Err(error) => (true, AdbError::Io(error)),
            Ok(socket) => {
                self.phase.send_replace(Phase::Handshaking);
                (false, self.talk(socket, queue, closes).await)
            }
        };
        let reason = match &error {
            AdbError::Io(source) => source.to_string(),
            other => other.to_string(),
        };
        tracing::debug!(%addr, %reason, "adb connection ended");
        self.phase.send_replace(Phase::Dead { unreachable, reason });
        lock(&self.streams).clear();
    }

    async fn talk(&self, socket: TcpStream, queue: mpsc::Receiver<Message>, closes: mpsc::UnboundedReceiver<Message>) -> AdbError {
        if let Err(error) = socket.set_nodelay(true) {
            return AdbError::Io(error);
        }
        let (read, write) = socket.into_split();
        // Reading must never wait for a caller and writing must never wait for reading, so they run side by side.
        tokio::select! {
            error = write_all(write, queue, closes) => error,
            error = self.read_all(read) => error,
        }
    }

    async fn read_all(&self, mut read: OwnedReadHalf) -> AdbError {
        let banner = b"host::features=shell_v2,cmd".to_vec();
        let mut step = self.send(Message::new(CNXN, VERSION, MAX_PAYLOAD, banner)).await;
        let mut signed = false;
        loop {
            if let Err(error) = step {
                return error;
            }
            step = match Message::read(&mut read).await {
                Ok(message) => {
                    self.heard.fetch_add(1, Ordering::Relaxed);
                    self.handle(message, &mut signed).await
                }
                Err(error) => Err(error),
            };
        }
    }

    async fn handle(&self, message: Message, signed: &mut bool) -> Result<(), AdbError> {
        let Message { command, arg0, arg1, payload } = message;
        match command {
            CNXN => {
                let banner = String::from_utf8_lossy(&payload);
                let shell_v2 = banner
                    .split([';', ':'])
                    .filter_map(|part| part.strip_prefix("features="))
                    .flat_map(|features| features.split(','))
                    .any(|feature| feature.trim_matches(['\0', ' ']) == "shell_v2");
                // A second CNXN means adbd started over; streams of the first are gone.
                lock(&self.streams).clear();
                self.phase.send_replace(Phase::Ready { shell_v2 });
                Ok(())
            }
            AUTH if arg0 == AUTH_TOKEN => self.authenticate(&payload, signed).await,
            STLS => Err(AdbError::Protocol("the phone wants TLS; pair it over Wi-Fi debugging first".to_owned())),
            OKAY | WRTE | CLSE => self.stream_message(command, arg0, arg1, payload).await,
            // adbd opens streams only for reverse forwards, which we never ask for.
            OPEN => self.send(Message::new(CLSE, 0, arg0, Vec::new())).await,
            other => Err(AdbError::Protocol(format!("message {other:#010x}"))),
        }
    }

    async fn authenticate(&self, token: &[u8], signed: &mut bool) -> Result<(), AdbError> {
        if *signed {
            // The phone does not know the key: offer it, and the person is asked.
            let line = format!("{}\0", self.key.public_line("cmautobuy@host"));
            self.phase.send_replace(Phase::WaitingForAllow);
            return self.send(Message::new(AUTH, AUTH_RSAPUBLICKEY, 0, line)).await;
        }
        *signed = true;
        let signature = self.key.sign(token)?;
        self.send(Message::new(AUTH, AUTH_SIGNATURE, 0, signature)).await
    }

    async fn stream_message(&self, command: u32, remote: u32, local: u32, payload: Vec<u8>) -> Result<(), AdbError> {
        let sender = lock(&self.streams).get(&local).cloned();
        let Some(sender) = sender else {
            // A stream its caller has dropped: the phone may stop.
            if command == CLSE {
                return Ok(());
            }
            return self.send(Message::new(CLSE, local, remote, Vec::new())).await;
        };
        let event = match command {
            OKAY => StreamEvent::Opened(remote),
            WRTE => StreamEvent::Data(payload),
            _ => {
                lock(&self.streams).remove(&local);
                if remote != 0 {
                    self.send(Message::new(CLSE, local, remote, Vec::new())).await?;
                }
                StreamEvent::Closed
            }
        };
        if let Err(mpsc::error::TrySendError::Full(_)) = sender.try_send(event) {
            // The peer ignored flow control; losing the stream is better than losing bytes of it.
            lock(&self.streams).remove(&local);
            return self.send(Message::new(CLSE, local, remote, Vec::new())).await;
        }
        Ok(())
    }

    async fn send(&self, message: Message) -> Result<(), AdbError> {
        self.outgoing.send(message).await.map_err(|_| AdbError::BrokeOff)
    }
}

async fn write_all(
    mut write: OwnedWriteHalf,
    mut queue: mpsc::Receiver<Message>,
    mut closes: mpsc::UnboundedReceiver<Message>,
) -> AdbError {
    loop {
        let message = tokio::select! {
            Some(message) = queue.recv() => message,
            Some(message) = closes.recv() => message,
            else => return AdbError::BrokeOff,
        };
        if let Err(error) = write.write_all(&message.encode()).await {
            return AdbError::Io(error);
        }
    }
}
