//! The protocol's corners the stock client does not show: a peer of the oldest version, streams
//! left unacknowledged, services that do not exist, keys on the raw wire.

use std::time::Duration;

use cmautobuy_phone_sim::{Auth, Catalogue, Fault, Sim, SimConfig, start};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const OLD: u32 = 0x0100_0000;

struct Peer {
    socket: TcpStream,
}

#[derive(Debug, PartialEq, Eq)]
struct Packet {
    command: [u8; 4],
    arg0: u32,
    arg1: u32,
    data: Vec<u8>,
}

impl Peer {
    async fn new(sim: &Sim) -> Self {
        let mut peer = Self { socket: TcpStream::connect(sim.addr()).await.expect("it listens") };
        peer.send(b"CNXN", OLD, 4096, b"host::features=shell_v2\0").await;
        peer
    }

    async fn send(&mut self, command: &[u8; 4], arg0: u32, arg1: u32, data: &[u8]) {
        let sum = data.iter().map(|byte| u32::from(*byte)).sum::<u32>();
        let code = u32::from_le_bytes(*command);
        let mut bytes = Vec::new();
        for word in [code, arg0, arg1, data.len() as u32, sum, code ^ 0xffff_ffff] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(data);
        self.socket.write_all(&bytes).await.expect("the phone reads");
    }

    /// The next packet, its checksum checked as an old peer does.
    async fn next(&mut self) -> Packet {
        tokio::time::timeout(Duration::from_secs(10), self.read()).await.expect("the phone answers").expect("a packet")
    }

    async fn read(&mut self) -> Option<Packet> {
        let mut head = [0_u8; 24];
        self.socket.read_exact(&mut head).await.ok()?;
        let word = |at: usize| u32::from_le_bytes(head[at * 4..at * 4 + 4].try_into().expect("four bytes"));
        let mut data = vec![0; word(3) as usize];
        self.socket.read_exact(&mut data).await.ok()?;
        let sum = data.iter().map(|byte| u32::from(*byte)).sum::<u32>();
        assert_eq!(word(4), sum, "an old peer drops packets with a wrong checksum");
        assert_eq!(word(5), word(0) ^ 0xffff_ffff, "and with a wrong magic");
        let command = head[..4].try_into().expect("four bytes");
        Some(Packet { command, arg0: word(1), arg1: word(2), data })
    }

    async fn welcome(&mut self) {
        let hello = self.next().await;
        assert_eq!(&hello.command, b"CNXN", "no key is asked for");
        let banner = String::from_utf8_lossy(&hello.data).into_owned();
        assert!(banner.starts_with("device::") && banner.ends_with("features=shell_v2,cmd"), "banner: {banner}");
    }

    /// Opens a service, acknowledging everything, until it closes.
    async fn run(&mut self, local: u32, service: &str) -> Vec<u8> {
        self.send(b"OPEN", local, 0, format!("{service}\0").as_bytes()).await;
        let mut all = Vec::new();
        loop {
            let packet = self.next().await;
            assert_eq!(packet.arg1, local, "it is our stream");
            match &packet.command {
                b"WRTE" => {
                    assert!(packet.data.len() <= 4096, "never more than the peer takes");
                    all.extend(packet.data);
                    self.send(b"OKAY", local, packet.arg0, b"").await;
                }
                b"CLSE" => {
                    self.send(b"CLSE", local, packet.arg0, b"").await;
                    return all;
                }
                _ => {}
            }
        }
    }
}

async fn phone(config: SimConfig) -> Sim {
    start(SimConfig { dump_time: Duration::from_millis(20), ..config }).await.expect("a free port")
}

#[tokio::test]
async fn an_old_peer_gets_checksums_small_packets_and_a_terminal() {
    let sim = phone(SimConfig::default()).await;
    let mut peer = Peer::new(&sim).await;
    peer.welcome().await;
    assert_eq!(peer.run(1, "shell:echo a; echo b >&2").await, b"a\r\nb\r\n", "the old shell is a terminal: merged, CRLF");
    assert_eq!(peer.run(2, "exec:echo a; echo b >&2").await, b"a\nb\n", "exec is raw");
    let v2 = peer.run(3, "shell,v2,TERM=xterm,raw:echo a; echo b >&2; exit 5").await;
    assert_eq!(v2, b"\x01\x02\0\0\0a\n\x02\x02\0\0\0b\n\x03\x01\0\0\0\x05", "v2 splits and tells the status");
    let png = peer.run(4, "exec:screencap '-p'").await;
    assert!(png.starts_with(b"\x89PNG") && png.len() > 20_000, "a picture fits through 4096-byte packets");
    sim.stop().await;
}

#[tokio::test]
async fn close_comes_even_when_the_last_write_is_not_acknowledged() {
    let sim = phone(SimConfig::default()).await;
    let mut peer = Peer::new(&sim).await;
    peer.welcome().await;
    peer.send(b"OPEN", 9, 0, b"exec:echo hi\0").await;
    let kinds = [peer.next().await.command, peer.next().await.command, peer.next().await.command];
    assert_eq!(kinds, [*b"OKAY", *b"WRTE", *b"CLSE"], "adb_client's push hangs for ever otherwise");
    sim.stop().await;
}

#[tokio::test]
async fn unknown_services_are_refused_and_streams_are_independent() {
    let sim = phone(SimConfig::default()).await;
    let mut peer = Peer::new(&sim).await;
    peer.welcome().await;
    peer.send(b"OPEN", 5, 0, b"nonsense:\0").await;
    let refused = peer.next().await;
    assert_eq!(refused, Packet { command: *b"CLSE", arg0: 0, arg1: 5, data: Vec::new() }, "CLSE(0, id)");
    sim.set_fault(Fault::HangDump);
    peer.send(b"OPEN", 6, 0, b"exec:uiautomator dump /dev/tty\0").await;
    assert_eq!(&peer.next().await.command, b"OKAY", "the hung stream opens");
    assert_eq!(peer.run(7, "exec:echo beside").await, b"beside\n", "and the next one is not held up");
    sim.stop().await;
    assert_eq!(peer.read().await, None, "stopping closes the connection");
}

#[tokio::test]
async fn a_stream_that_breaks_off_has_no_exit_status() {
    let sim = phone(SimConfig::default()).await;
    let mut peer = Peer::new(&sim).await;
    peer.welcome().await;
    let line = "shell,v2,TERM=xterm,raw:echo a line that is long enough to be cut; exit 5";
    let whole = peer.run(1, line).await;
    sim.set_fault(Fault::DropStream { times: 1 });
    let cut = peer.run(2, line).await;
    assert!(!cut.is_empty() && cut.len() < whole.len() && whole.starts_with(&cut), "the beginning, to the middle of a packet");
    assert_eq!(peer.run(3, line).await, whole, "the next stream of the same connection is whole");
    sim.set_fault(Fault::RebootMidCommand { times: 1 });
    peer.send(b"OPEN", 4, 0, format!("{line}\0").as_bytes()).await;
    while let Some(packet) = peer.read().await {
        assert_ne!(&packet.command, b"CNXN", "the old connection ends; a new one is the peer's business");
    }
    sim.stop().await;
}

#[tokio::test]
async fn a_phone_can_be_silent_or_forget_its_keys() {
    let sim = phone(SimConfig::default()).await;
    let mut before = Peer::new(&sim).await;
    before.welcome().await;
    sim.set_fault(Fault::Unauthorized);
    assert_eq!(before.read().await, None, "who was connected is thrown out");
    let mut peer = Peer::new(&sim).await;
    assert_eq!(&peer.next().await.command, b"AUTH", "although nobody was asked before");
    sim.set_fault(Fault::Offline);
    let mut silent = Peer::new(&sim).await;
    let answer = tokio::time::timeout(Duration::from_millis(300), silent.read()).await;
    assert!(answer.is_err(), "a silent phone takes the connection and answers nothing");
    sim.clear_faults();
    assert_eq!(silent.read().await, None, "once it is well the peer starts again");
    Peer::new(&sim).await.welcome().await;
    sim.stop().await;
}

#[tokio::test]
async fn a_closed_port_of_the_phone_is_refused() {
    let sim = phone(SimConfig::default()).await;
    let mut peer = Peer::new(&sim).await;
    peer.welcome().await;
    peer.send(b"OPEN", 5, 0, b"tcp:9008\0").await;
    assert_eq!(&peer.next().await.command, b"CLSE", "no agent runs, so nothing listens");
    sim.stop().await;
}

#[tokio::test]
async fn without_a_known_key_nothing_opens() {
    let sim = phone(SimConfig { auth: Auth::Deny, ..SimConfig::default() }).await;
    let mut peer = Peer::new(&sim).await;
    let first = peer.next().await;
    assert_eq!((&first.command, first.arg0, first.data.len()), (b"AUTH", 1, 20), "a token to sign");
    peer.send(b"OPEN", 1, 0, b"shell:id\0").await;
    peer.send(b"AUTH", 2, 0, &[1; 256]).await;
    let second = peer.next().await;
    assert_eq!((&second.command, second.arg0), (b"AUTH", 1), "a wrong signature gets another token; OPEN got nothing");
    assert_ne!(first.data, second.data, "a new one");
    sim.stop().await;
}

#[tokio::test]
async fn a_reader_collects_a_whole_goods_over_the_wire() {
    let sim = phone(SimConfig::default()).await;
    let mut peer = Peer::new(&sim).await;
    peer.welcome().await;
    let goods = Catalogue::builtin().goods[2].clone();
    let link = format!(
        "exec:am start -a android.intent.action.VIEW -d 'https://mobile.yangkeduo.com/goods.html?goods_id={}' -p com.xunmeng.pinduoduo",
        goods.goods_id
    );
    peer.run(1, &link).await;
    let mut id = 1;
    let mut stream = || {
        id += 1;
        id
    };
    let dump = "exec:uiautomator dump /dev/tty";
    let page = String::from_utf8(peer.run(stream(), dump).await).expect("UTF-8");
    for says in [&goods.title, &goods.sales_text] {
        assert!(page.contains(says.as_str()), "the page shows {says}");
    }
    let row = ["选择规格", "请选择"].into_iter().find_map(|says| centre(&page, says)).expect("the row is there");
    peer.run(stream(), &format!("exec:input tap {} {}", row.0, row.1)).await;
    for value in &goods.dimensions[0].values {
        let sheet = String::from_utf8(peer.run(stream(), dump).await).expect("UTF-8");
        let (x, y) = centre(&sheet, &value.text).expect("the chip is there");
        peer.run(stream(), &format!("exec:input tap {x} {y}")).await;
        let sheet = String::from_utf8(peer.run(stream(), dump).await).expect("UTF-8");
        let cent = goods.price_of(&value.text).expect("it has a price");
        let price = format!("¥{}.{}", cent / 100, cent % 100 / 10).replace(".0", "");
        let header = format!("{}{price}\"", value.badge.as_ref().map_or(String::new(), |badge| format!("{badge} ")));
        assert!(sheet.contains(&format!("text=\"{header}")), "{} shows {price}", value.text);
    }
    assert_eq!((sim.orders_created(), sim.payments_accepted()), (0, 0), "reading buys nothing");
    sim.stop().await;
}

/// Centre of the first node with that text.
fn centre(xml: &str, says: &str) -> Option<(i32, i32)> {
    let node = xml.split("<node ").find(|node| node.contains(&format!("text=\"{says}\"")))?;
    let bounds = node.split("bounds=\"").nth(1)?.split('"').next()?;
    let numbers: Vec<i32> = bounds.split(['[', ']', ',']).filter_map(|one| one.parse().ok()).collect();
    Some(((numbers[0] + numbers[2]) / 2, (numbers[1] + numbers[3]) / 2))
}
