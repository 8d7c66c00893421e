//! Direct to a phone: an adbd that can be told how to behave.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rsa::PrivateKey;
use rsa::pkcs8::DecodePrivateKey;
use sha1::Sha1;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Barrier, mpsc, watch};

use super::{SOON, commands_behave, commands_overlap, key, many_streams_at_once, ports_answer};
use crate::adb::direct::DirectLink;
use crate::adb::link::Link;
use crate::adb::message::{AUTH, AUTH_RSAPUBLICKEY, AUTH_SIGNATURE, AUTH_TOKEN, CLSE, CNXN, Message, OKAY, OPEN, WRTE};
use crate::adb::{AdbError, AdbKey};
use crate::error::PhoneError;

/// What the phone asks of a newcomer.
#[derive(Clone)]
enum Door {
    Open,
    /// Lets a key in it already knows.
    Knows(Arc<AdbKey>),
    /// Asks the person, who answers through the channel.
    Asks(watch::Receiver<bool>),
}

#[derive(Clone)]
struct Adbd {
    door: Door,
    banner: &'static [u8],
    meet: Arc<Barrier>,
    /// Every stream the peer closed on us, by command.
    closed: mpsc::UnboundedSender<String>,
    connections: Arc<std::sync::atomic::AtomicUsize>,
}

const V2: &[u8] = b"device::ro.product.name=x;ro.product.model=X;features=shell_v2,cmd";
const V1: &[u8] = b"device::ro.product.name=x;ro.product.model=X;";

async fn adbd(door: Door, banner: &'static [u8]) -> (SocketAddr, Adbd, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let addr = listener.local_addr().expect("an address");
    let (closed, log) = mpsc::unbounded_channel();
    let adbd = Adbd { door, banner, meet: Arc::new(Barrier::new(2)), closed, connections: Arc::default() };
    let serving = adbd.clone();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            serving.connections.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let adbd = serving.clone();
            tokio::spawn(async move { adbd.serve(socket).await });
        }
    });
    (addr, adbd, log)
}

impl Adbd {
    async fn serve(self, socket: TcpStream) -> Option<()> {
        let (mut read, mut write) = socket.into_split();
        let (out, mut queue) = mpsc::channel::<Option<Message>>(64);
        // `None` kills the connection, as a phone leaving the Wi-Fi with a FIN does.
        tokio::spawn(async move {
            while let Some(Some(message)) = queue.recv().await {
                if write.write_all(&message.encode()).await.is_err() {
                    break;
                }
            }
        });
        self.let_in(&mut read, &out).await?;
        let mut streams: HashMap<u32, (String, mpsc::Sender<()>)> = HashMap::new();
        let mut next = 100;
        loop {
            let message = Message::read(&mut read).await.ok()?;
            match message.command {
                OPEN => {
                    let service = String::from_utf8(message.payload).expect("a service is text");
                    let service = service.strip_suffix('\0').expect("android 7 wants the NUL").to_owned();
                    next += 1;
                    let (ack, acks) = mpsc::channel(8);
                    streams.insert(next, (service.clone(), ack));
                    tokio::spawn(self.clone().run(service, next, message.arg0, out.clone(), acks));
                }
                OKAY => {
                    if let Some((_, ack)) = streams.get(&message.arg1) {
                        let _ = ack.try_send(());
                    }
                }
                CLSE => {
                    if let Some((service, _)) = streams.remove(&message.arg1) {
                        let _ = self.closed.send(service);
                    }
                }
                WRTE => {
                    let (service, _) = streams.get(&message.arg1).expect("only an open stream is written to");
                    assert_eq!(service, "tcp:7", "only the port is talked to");
                    let (local, remote) = (message.arg1, message.arg0);
                    let answer = [b"got ", &message.payload[..], b"!"].concat();
                    for one in [Message::new(OKAY, local, remote, []), Message::new(WRTE, local, remote, answer)] {
                        out.send(Some(one)).await.ok()?;
                    }
                }
                other => panic!("unexpected message {other:#x}"),
            }
        }
    }

    async fn let_in(&self, read: &mut tokio::net::tcp::OwnedReadHalf, out: &mpsc::Sender<Option<Message>>) -> Option<()> {
        let hello = Message::read(read).await.ok()?;
        assert_eq!(hello.command, CNXN, "a client greets first");
        assert_eq!(hello.arg0, 0x0100_0001, "the version we speak");
        let token = [7u8; 20];
        match &self.door {
            Door::Open => {}
            Door::Knows(known) => {
                out.send(Some(Message::new(AUTH, AUTH_TOKEN, 0, token))).await.ok()?;
                let answer = Message::read(read).await.ok()?;
                assert_eq!((answer.command, answer.arg0), (AUTH, AUTH_SIGNATURE), "first the signature");
                let known = PrivateKey::from_pkcs8_der(&known.to_pkcs8().expect("der")).expect("a key");
                known
                    .as_public_key()
                    .pkcs1v15_verify_prehash::<Sha1>(&token, &answer.payload)
                    .expect("the signature is over the token as a sha-1 digest");
            }
            Door::Asks(allowed) => {
                out.send(Some(Message::new(AUTH, AUTH_TOKEN, 0, token))).await.ok()?;
                let answer = Message::read(read).await.ok()?;
                assert_eq!((answer.command, answer.arg0), (AUTH, AUTH_SIGNATURE), "first the signature");
                out.send(Some(Message::new(AUTH, AUTH_TOKEN, 0, [8u8; 20]))).await.ok()?;
                let answer = Message::read(read).await.ok()?;
                assert_eq!((answer.command, answer.arg0), (AUTH, AUTH_RSAPUBLICKEY), "then the public key");
                assert_eq!(answer.payload.last(), Some(&0), "the key line ends with NUL");
                allowed.clone().wait_for(|yes| *yes).await.ok()?;
            }
        }
        out.send(Some(Message::new(CNXN, 0x0100_0001, 256 * 1024, self.banner))).await.ok()
    }

    async fn run(self, service: String, local: u32, remote: u32, out: mpsc::Sender<Option<Message>>, mut acks: mpsc::Receiver<()>) {
        let send = |command, payload: Vec<u8>| {
            let out = out.clone();
            async move { out.send(Some(Message::new(command, local, remote, payload))).await.expect("still connected") }
        };
        let Some((kind, cmd)) = service.split_once(':') else { return };
        if service == "tcp:7" {
            return send(OKAY, Vec::new()).await;
        }
        if !["shell,v2,raw", "exec"].contains(&kind) {
            return send(CLSE, Vec::new()).await;
        }
        send(OKAY, Vec::new()).await;
        let packet = |id: u8, body: &[u8]| [&[id][..], &(body.len() as u32).to_le_bytes(), body].concat();
        let pieces: Vec<Vec<u8>> = match cmd {
            "seven" => vec![packet(1, b"out"), packet(2, b"err"), packet(3, &[7])],
            "( bytes ); printf '\\036%d\\036' $?" => vec![(0..=255).collect(), b"\x1e0\x1e".to_vec()],
            "big" => {
                let body = vec![b'x'; 100_000];
                let mut pieces: Vec<Vec<u8>> = (0..30).map(|_| packet(1, &body)).collect();
                pieces.push(packet(3, &[0]));
                pieces
            }
            "no-exit" => vec![packet(1, b"half")],
            "die" => vec![packet(1, b"half")],
            "( seven ); printf '\\036%d\\036' $?" => vec![b"outerr".to_vec(), b"\x1e7\x1e".to_vec()],
            "( no-exit ); printf '\\036%d\\036' $?" => vec![b"half".to_vec()],
            "meet left" | "meet right" => {
                self.meet.wait().await;
                vec![packet(1, b"met"), packet(3, &[0])]
            }
            "hang" => return std::future::pending().await,
            _ => vec![packet(2, b"sh: not found"), packet(3, &[127])],
        };
        for piece in pieces {
            send(WRTE, piece).await;
            // One WRTE in flight per stream: a client that never says OKAY gets no more.
            if acks.recv().await.is_none() {
                return;
            }
        }
        if cmd == "die" {
            let _ = out.send(None).await;
            return;
        }
        send(CLSE, Vec::new()).await;
    }
}

#[tokio::test]
async fn direct_commands_behave() {
    let (addr, _, mut closed) = adbd(Door::Open, V2).await;
    let link = DirectLink::new(addr, key());
    commands_behave(&link).await;
    ports_answer(&link).await;
    let mut seen = Vec::new();
    while !seen.iter().any(|service: &String| service.ends_with(":hang")) {
        let next = tokio::time::timeout(SOON, closed.recv()).await.expect("the phone is told in time");
        seen.push(next.expect("the log is open"));
    }
}

#[tokio::test]
async fn direct_streams_do_not_disturb_each_other() {
    let (addr, adbd, _closed) = adbd(Door::Open, V2).await;
    many_streams_at_once(Arc::new(DirectLink::new(addr, key()))).await;
    let connections = adbd.connections.load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!(connections, 1, "a caller that gives up must not cost the others their connection");
}

#[tokio::test]
async fn a_time_out_does_not_end_other_calls() {
    let (addr, adbd, _closed) = adbd(Door::Open, V2).await;
    let link = Arc::new(DirectLink::new(addr, key()));
    // The very first call of a link times out while another one is under way.
    let (hung, other) = tokio::join!(link.shell("hang", Duration::from_millis(200)), link.shell("big", SOON));
    assert!(matches!(hung, Err(AdbError::Timeout)), "the hanging one times out: {hung:?}");
    assert_eq!(other.expect("the other ends").stdout.len(), 3_000_000, "and the other one is whole");
    link.shell("seven", SOON).await.expect("the link works");
    let connections = adbd.connections.load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!(connections, 1, "a phone that talks to others is not gone");
}

#[tokio::test]
async fn direct_commands_share_one_connection() {
    let (addr, adbd, _closed) = adbd(Door::Open, V2).await;
    let link = DirectLink::new(addr, key());
    for _ in 0..20 {
        commands_overlap(&link).await;
    }
    let connections = adbd.connections.load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!(connections, 1, "streams are multiplexed, not one connection each");
}

#[tokio::test]
async fn a_phone_without_shell_v2_still_reports_exit_codes() {
    let (addr, _, _closed) = adbd(Door::Open, V1).await;
    let link = DirectLink::new(addr, key());
    let output = link.shell("seven", SOON).await.expect("the trailer is there");
    assert_eq!((output.code, output.stdout), (7, b"outerr".to_vec()), "code from the trailer, streams mixed");
    let error = link.shell("no-exit", SOON).await.expect_err("no trailer");
    assert!(matches!(error, AdbError::BrokeOff), "a missing trailer means the command did not finish: {error}");
}

#[tokio::test]
async fn a_known_key_is_let_in_by_signature() {
    let (addr, _, _closed) = adbd(Door::Knows(key()), V2).await;
    let output = DirectLink::new(addr, key()).shell("seven", SOON).await.expect("the key is known");
    assert_eq!(output.code, 7, "and commands run");
}

#[tokio::test]
async fn an_unknown_key_waits_for_the_person() {
    let (allow, allowed) = watch::channel(false);
    let (addr, adbd, _closed) = adbd(Door::Asks(allowed), V2).await;
    let phone = crate::adb::connect_direct(addr, key());
    for _ in 0..2 {
        let error = phone.foreground().await.expect_err("nobody pressed allow yet");
        assert!(matches!(error, PhoneError::Unauthorized { .. }), "typed, so that the window can ask: {error}");
        assert!(!error.next_step().is_empty(), "with a next step");
    }
    allow.send_replace(true);
    let link_works = async {
        // `foreground` gets an unknown-command answer here; anything but Unauthorized means we are in.
        while let Err(PhoneError::Unauthorized { .. }) = phone.foreground().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, link_works).await.expect("allow is noticed by polling");
    let connections = adbd.connections.load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!(connections, 1, "the connection is kept while the question is on the phone's screen");
}

#[tokio::test]
async fn dropping_the_call_closes_the_stream() {
    let (addr, _, mut closed) = adbd(Door::Open, V2).await;
    let link = Arc::new(DirectLink::new(addr, key()));
    link.shell("seven", SOON).await.expect("connected");
    let hanging = tokio::spawn({
        let link = Arc::clone(&link);
        async move { link.shell("hang", Duration::from_secs(3600)).await }
    });
    // Another command afterwards proves that the hanging one was opened.
    link.shell("seven", SOON).await.expect("side by side");
    hanging.abort();
    let mut seen = Vec::new();
    while !seen.contains(&"shell,v2,raw:hang".to_owned()) {
        let next = tokio::time::timeout(SOON, closed.recv()).await.expect("the phone is told in time");
        seen.push(next.expect("the log is open"));
    }
}

#[tokio::test]
async fn nobody_listening_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let addr = listener.local_addr().expect("an address");
    drop(listener);
    let error = crate::adb::connect_direct(addr, key()).facts().await.expect_err("nobody there");
    assert_eq!(error.code(), "ADB_UNREACHABLE", "{error}");
    assert!(error.is_recoverable(), "the phone may come back");
}

#[tokio::test]
async fn a_peer_that_is_not_adbd_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let addr = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").await;
        }
    });
    let error = DirectLink::new(addr, key()).shell("seven", SOON).await.expect_err("not adb");
    assert!(matches!(error, AdbError::Protocol(_)), "{error}");
}
