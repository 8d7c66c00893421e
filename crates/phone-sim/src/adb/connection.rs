//! One connection: handshake, keys, and many streams at once. As in adbd, output is queued and no
//! service ever waits for the peer's OKAY; on close with nothing queued CLSE goes out even if the
//! last WRTE is unacknowledged (adb facts C.4).

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::adb::services;
use crate::adb::wire::{self, AUTH, CLSE, CNXN, MAX_PAYLOAD, OKAY, OLD_VERSION, OPEN, Packet, VERSION, WRTE};
use crate::adb::{auth, services::Pipe};
use crate::config::Auth;
use crate::phone::{Control, Phone, until};

/// Serves one peer until it leaves or the phone hangs up.
pub(crate) async fn serve(phone: Arc<Phone>, socket: TcpStream) {
    let mut control = phone.control.subscribe();
    let start = *control.borrow_and_update();
    if start.stop || start.dropping {
        return;
    }
    drop(socket.set_nodelay(true));
    let (read, mut write) = socket.into_split();
    let (packets, mut outgoing) = mpsc::unbounded_channel::<Packet>();
    let writer = tokio::spawn(async move {
        while let Some(packet) = outgoing.recv().await {
            if wire::write(&mut write, &packet).await.is_err() {
                break;
            }
        }
    });
    let mut connection = Connection {
        phone,
        packets,
        streams: HashMap::new(),
        next_stream: 0,
        payload: MAX_PAYLOAD as usize,
        version: VERSION,
        open: false,
        token: [0; 20],
        asked: None,
        silent: start.silent,
        locked_out: start.locked_out,
    };
    if let Err(error) = connection.run(read, &mut control, start).await {
        tracing::debug!(%error, "an ADB peer was dropped");
    }
    connection.streams.clear();
    drop(connection);
    writer.abort();
}

struct Connection {
    phone: Arc<Phone>,
    packets: mpsc::UnboundedSender<Packet>,
    streams: HashMap<u32, Stream>,
    next_stream: u32,
    payload: usize,
    version: u32,
    open: bool,
    token: [u8; 20],
    /// The phone shows `Allow USB debugging?` for this key.
    asked: Option<(oneshot::Receiver<bool>, String)>,
    /// Nothing is ever answered.
    silent: bool,
    /// No key opens it.
    locked_out: bool,
}

struct Stream {
    inbox: mpsc::UnboundedSender<Vec<u8>>,
    acknowledged: mpsc::UnboundedSender<()>,
    running: JoinHandle<()>,
    /// Our CLSE is out; the peer's is its answer and gets none back.
    closed: Arc<AtomicBool>,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.running.abort();
    }
}

impl Connection {
    async fn run(&mut self, read: OwnedReadHalf, control: &mut watch::Receiver<Control>, start: Control) -> io::Result<()> {
        let (to_us, mut incoming) = mpsc::channel(64);
        // Reading is its own task so that a half-read packet is never lost to the select below.
        let reader = tokio::spawn(pump(read, to_us));
        let ended = loop {
            let answer = async {
                match &mut self.asked {
                    Some((asked, _)) => asked.await.unwrap_or(false),
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = until(control, |now| now.stop || now.dropping || now.hangups != start.hangups) => break Ok(()),
                allowed = answer => {
                    if let Some((_, key)) = self.asked.take().filter(|_| allowed) {
                        self.phone.remember_key(&key);
                        self.welcome();
                    }
                }
                packet = incoming.recv() => match packet {
                    None => break Ok(()),
                    Some(Err(error)) => break Err(error),
                    Some(Ok(packet)) => {
                        if let Err(error) = self.handle(packet) {
                            break Err(error);
                        }
                    }
                },
            }
        };
        reader.abort();
        ended
    }

    fn send(&self, packet: Packet) {
        // The writer is gone only when the socket is; the reader then ends us.
        drop(self.packets.send(packet));
    }

    fn handle(&mut self, packet: Packet) -> io::Result<()> {
        if self.version == OLD_VERSION && packet.command != CNXN && !packet.intact() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the packet's checksum is wrong"));
        }
        if self.silent {
            return Ok(());
        }
        match packet.command {
            CNXN => {
                self.version = VERSION.min(packet.arg0);
                self.payload = packet.arg1.clamp(4096, MAX_PAYLOAD) as usize;
                self.streams.clear();
                match self.phone.auth {
                    Auth::Open if !self.locked_out => self.welcome(),
                    Auth::Open => self.challenge(),
                    Auth::AllowAny { .. } | Auth::Only(_) | Auth::Deny => self.challenge(),
                }
            }
            AUTH => self.authenticate(&packet),
            OPEN if self.open => self.open_stream(&packet),
            OKAY => {
                if let Some(stream) = self.streams.get(&packet.arg1) {
                    let _ = stream.acknowledged.send(());
                }
            }
            WRTE => {
                // Late data for a closed stream is ignored, as adbd does.
                if let Some(stream) = self.streams.get(&packet.arg1) {
                    drop(stream.inbox.send(packet.data));
                    self.send(Packet::new(OKAY, packet.arg1, packet.arg0, []));
                }
            }
            CLSE => {
                if let Some(stream) = self.streams.remove(&packet.arg1)
                    && !stream.closed.load(Ordering::Acquire)
                {
                    self.send(Packet::new(CLSE, packet.arg1, packet.arg0, []));
                }
            }
            other => tracing::debug!(command = other, "an ADB packet nobody asked for"),
        }
        Ok(())
    }

    fn welcome(&mut self) {
        self.open = true;
        let banner = "device::ro.product.name=cmsim;ro.product.model=CM Sim Phone;ro.product.device=cmsim;features=shell_v2,cmd";
        self.send(Packet::new(CNXN, VERSION, MAX_PAYLOAD, banner));
    }

    fn challenge(&mut self) {
        self.token = self.phone.token();
        self.send(Packet::new(AUTH, auth::TOKEN, 0, self.token));
    }

    fn authenticate(&mut self, packet: &Packet) {
        match packet.arg0 {
            auth::SIGNATURE => {
                let known = self.phone.known_keys();
                if self.phone.auth != Auth::Deny && !self.locked_out && auth::signed_by(&known, &self.token, &packet.data) {
                    self.welcome();
                } else {
                    self.challenge();
                }
            }
            auth::PUBLIC_KEY => {
                let Some(key) = auth::key_text(&packet.data).filter(|_| !self.locked_out) else {
                    return;
                };
                match &self.phone.auth {
                    Auth::Open => self.welcome(),
                    Auth::AllowAny { ask: false } => {
                        self.phone.remember_key(&key);
                        self.welcome();
                    }
                    Auth::AllowAny { ask: true } => self.asked = Some((self.phone.ask_for_key(), key)),
                    // A refused key gets silence: the peer stays `unauthorized`.
                    Auth::Only(_) | Auth::Deny => {}
                }
            }
            _ => {}
        }
    }

    fn open_stream(&mut self, packet: &Packet) {
        let name = String::from_utf8_lossy(&packet.data).trim_end_matches('\0').to_owned();
        let remote = packet.arg0;
        let (inbox, input) = mpsc::unbounded_channel();
        let (output, queued) = mpsc::unbounded_channel();
        let pipe = Pipe { input, output };
        let Some(service) = services::start(self.phone.clone(), &name, pipe) else {
            tracing::debug!(name, "an ADB service we do not have");
            self.send(Packet::new(CLSE, 0, remote, []));
            return;
        };
        self.next_stream += 1;
        let local = self.next_stream;
        let closed = Arc::new(AtomicBool::new(false));
        let (acknowledged, acks) = mpsc::unbounded_channel();
        self.send(Packet::new(OKAY, local, remote, []));
        let sender = Sender { local, remote, payload: self.payload, packets: self.packets.clone(), closed: closed.clone() };
        let running = tokio::spawn(async move {
            // Both end together: dropping the service closes the queue, which closes the stream.
            tokio::join!(service, sender.run(queued, acks));
        });
        self.streams.insert(local, Stream { inbox, acknowledged, running, closed });
    }
}

async fn pump(mut read: OwnedReadHalf, to: mpsc::Sender<io::Result<Packet>>) {
    loop {
        let packet = match wire::read(&mut read).await {
            Ok(Some(packet)) => Ok(packet),
            Ok(None) => return,
            Err(error) => Err(error),
        };
        let failed = packet.is_err();
        if to.send(packet).await.is_err() || failed {
            return;
        }
    }
}

/// Sends one stream's queue, one WRTE at a time.
struct Sender {
    local: u32,
    remote: u32,
    payload: usize,
    packets: mpsc::UnboundedSender<Packet>,
    closed: Arc<AtomicBool>,
}

impl Sender {
    async fn run(self, mut queued: mpsc::UnboundedReceiver<Vec<u8>>, mut acks: mpsc::UnboundedReceiver<()>) {
        let mut waiting = false;
        while let Some(mut bytes) = queued.recv().await {
            while let Ok(more) = queued.try_recv() {
                bytes.extend(more);
            }
            for chunk in bytes.chunks(self.payload) {
                if waiting && acks.recv().await.is_none() {
                    return;
                }
                waiting = true;
                drop(self.packets.send(Packet::new(WRTE, self.local, self.remote, chunk)));
            }
        }
        self.closed.store(true, Ordering::Release);
        drop(self.packets.send(Packet::new(CLSE, self.local, self.remote, [])));
    }
}
