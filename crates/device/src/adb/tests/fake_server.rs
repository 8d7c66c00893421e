//! Through an adb server: one that can be told how to behave.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Barrier;

use super::{SOON, commands_behave, commands_overlap, many_streams_at_once, ports_answer};
use crate::adb::link::Link;
use crate::adb::wire::ServerLink;
use crate::adb::{AdbError, ListedState};

async fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let addr = listener.local_addr().expect("an address");
    let meet = Arc::new(Barrier::new(2));
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(serve(socket, Arc::clone(&meet)));
        }
    });
    addr
}

async fn request(socket: &mut TcpStream) -> Option<String> {
    let mut digits = [0; 4];
    socket.read_exact(&mut digits).await.ok()?;
    let len = usize::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?;
    let mut body = vec![0; len];
    socket.read_exact(&mut body).await.ok()?;
    String::from_utf8(body).ok()
}

async fn say(socket: &mut TcpStream, status: &str, body: &str) -> Option<()> {
    socket.write_all(format!("{status}{:04x}{body}", body.len()).as_bytes()).await.ok()
}

async fn serve(mut socket: TcpStream, meet: Arc<Barrier>) -> Option<()> {
    let first = request(&mut socket).await?;
    match first.as_str() {
        "host:version" => return say(&mut socket, "OKAY", "0029").await,
        "host:devices-l" => {
            let list = "good device product:p model:M_1 transport_id:1\n\u{1}odd line\nadb-X (2)._tcp device\n";
            return say(&mut socket, "OKAY", list).await;
        }
        "host-serial:good:features" => return say(&mut socket, "OKAY", "shell_v2,cmd").await,
        "host-serial:old:features" => return say(&mut socket, "OKAY", "cmd").await,
        "host-serial:locked:features" => {
            return say(&mut socket, "FAIL", "device unauthorized.\nThis adb server's $ADB_VENDOR_KEYS is not set").await;
        }
        "host:transport:good" | "host:transport:old" => socket.write_all(b"OKAY").await.ok()?,
        _ => return say(&mut socket, "FAIL", "device 'gone' not found").await,
    }
    let service = request(&mut socket).await?;
    let (_, cmd) = service.split_once(':')?;
    socket.write_all(b"OKAY").await.ok()?;
    if service == "tcp:7" {
        // Answers in two pieces and then keeps the stream open: the reader must know when it has enough.
        let mut asked = vec![0; 3];
        socket.read_exact(&mut asked).await.ok()?;
        socket.write_all(&[b"got ", &asked[..]].concat()).await.ok()?;
        socket.write_all(b"!").await.ok()?;
        let _ = socket.read(&mut [0; 1]).await;
        return None;
    }
    let packet = |id: u8, body: &[u8]| [&[id][..], &(body.len() as u32).to_le_bytes(), body].concat();
    let out = match cmd {
        "seven" => [packet(1, b"out"), packet(2, b"err"), packet(3, &[7])].concat(),
        "( bytes ); printf '\\036%d\\036' $?" => (0..=255).chain(*b"\x1e0\x1e").collect(),
        "( no-exit ); printf '\\036%d\\036' $?" => b"half".to_vec(),
        "big" => [packet(1, &vec![b'x'; 3_000_000]), packet(3, &[0])].concat(),
        "no-exit" => packet(1, b"half"),
        "die" => packet(1, b"half")[..7].to_vec(),
        "meet left" | "meet right" => {
            meet.wait().await;
            [packet(1, b"met"), packet(3, &[0])].concat()
        }
        "hang" => {
            // Until the client hangs up.
            let _ = socket.read(&mut [0; 1]).await;
            return None;
        }
        "( seven ); printf '\\036%d\\036' $?" => b"outerr\x1e7\x1e".to_vec(),
        _ => [packet(2, b"sh: not found"), packet(3, &[127])].concat(),
    };
    socket.write_all(&out).await.ok()
}

#[tokio::test]
async fn server_commands_behave() {
    let link = ServerLink::new(server().await, "good".to_owned());
    commands_behave(&link).await;
    commands_overlap(&link).await;
    ports_answer(&link).await;
    many_streams_at_once(Arc::new(link)).await;
}

#[tokio::test]
async fn a_phone_without_shell_v2_behind_a_server() {
    let link = ServerLink::new(server().await, "old".to_owned());
    let output = link.shell("seven", SOON).await.expect("the trailer is there");
    assert_eq!((output.code, output.stdout), (7, b"outerr".to_vec()), "code from the trailer");
}

#[tokio::test]
async fn failures_are_typed() {
    let addr = server().await;
    let error = ServerLink::new(addr, "locked".to_owned()).shell("seven", SOON).await.expect_err("locked");
    assert!(matches!(error, AdbError::Unauthorized), "{error}");
    let rows = [("locked", "UNAUTHORIZED"), ("gone", "DEVICE_GONE")];
    for (serial, code) in rows {
        let error = crate::adb::connect_server(addr, serial).foreground().await.expect_err("not usable");
        assert_eq!(error.code(), code, "phone {serial}: {error}");
    }
}

#[tokio::test]
async fn listing_and_version() {
    let addr = server().await;
    assert_eq!(crate::adb::server_version(addr).await.expect("an answer"), 0x29, "hex");
    let list = crate::adb::list_devices(addr).await.expect("one odd line must not fail the list");
    let serials: Vec<&str> = list.iter().map(|d| d.serial.as_str()).collect();
    assert_eq!(serials, ["good", "\u{1}odd", "adb-X (2)._tcp"], "in order, odd ones included");
    assert_eq!(list[2].state, ListedState::Device, "a serial with a space is a phone like any other");
}
