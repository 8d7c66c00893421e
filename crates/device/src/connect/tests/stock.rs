//! The stock adb program and the simulated phone: nothing here is faked. `scripts/setup` installs adb.

use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::time::Duration;

use cmautobuy_phone_sim::{Auth, Fault, Sim, SimConfig, start};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::adb::link::Link;
use crate::adb::wire::ServerLink;
use crate::adb::{AdbKey, ListedState};
use crate::connect::{AdbHost, AdbHub, AdbPlaces, AdbProgram, AdbServer, ConnectError, HubError, Joined, PortUse, port_use};
use crate::doctor::{Doctor, Question, Road};

const SOON: Duration = Duration::from_secs(20);

fn places() -> AdbPlaces {
    AdbPlaces::of_this_computer(None, None)
}

fn program() -> AdbProgram {
    AdbProgram::find(&places()).expect("the stock adb is not on PATH: run ./scripts/setup")
}

/// A port with a few free ones behind it, most likely.
fn free_port() -> u16 {
    StdListener::bind("127.0.0.1:0").and_then(|one| one.local_addr()).expect("a free port").port()
}

async fn sim(config: SimConfig) -> Sim {
    start(SimConfig { dump_time: Duration::from_millis(30), ..config }).await.expect("a free port")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_server_is_started_found_again_and_stopped() {
    let port = free_port();
    let server = AdbServer::start(&program(), port).await.expect("the stock adb starts");
    assert!(server.is_ours() && server.host().address().port() == port, "on the port asked for");
    let version = program().version().await.expect("a version").protocol;
    match port_use(port).await {
        PortUse::AdbServer { version: found, .. } => assert_eq!(found, version, "it speaks the program's version"),
        other => panic!("an adb server must be there, found {other:?}"),
    }
    let second = AdbServer::start(&program(), port).await.expect("the same server serves");
    assert!(!second.is_ours(), "one of the same version is used, not fought");
    second.stop().await;
    assert!(matches!(port_use(port).await, PortUse::AdbServer { .. }), "a server we did not start is not ours to stop");
    server.stop().await;
    assert_eq!(port_use(port).await, PortUse::Free, "nothing is left behind");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_server_dies() {
    let port = free_port();
    drop(AdbServer::start(&program(), port).await.expect("the stock adb starts"));
    let gone = async {
        while port_use(port).await != PortUse::Free {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, gone).await.expect("a server must not outlive its owner");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_port_is_stepped_over_and_named() {
    let holder = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = holder.local_addr().expect("an address").port();
    match port_use(port).await {
        PortUse::Other { holder } => assert_eq!(holder.map(|holder| holder.pid), Some(std::process::id()), "the holder is named"),
        other => panic!("this test holds the port, found {other:?}"),
    }
    let server = AdbServer::start(&program(), port).await.expect("the next port is taken");
    assert_ne!(server.host().address().port(), port, "another program's port is left alone");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_adb_that_fails_is_quoted() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("adb");
    // GBK, as on a Chinese Windows: "failed".
    let script = b"#!/bin/sh\nprintf '\\264\\355\\316\\363: no dll\\n' >&2\nexit 3\n";
    std::fs::write(&path, script).expect("written");
    #[cfg(unix)]
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("executable");
    let program = AdbProgram::find(&AdbPlaces { chosen: Some(path), candidates: Vec::new() }).expect("it is there");
    let error = AdbServer::start(&program, free_port()).await.expect_err("it cannot even tell its version");
    assert_eq!(error.code(), "ADB_FAILED", "{error}");
    assert!(error.to_string().contains("错误: no dll"), "adb's own words are kept, readable: {error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_comes_is_asked_allowed_lost_and_comes_back() {
    let home = AdbServer::start(&program(), free_port()).await.expect("the stock adb starts");
    let host = home.host();
    let phone = sim(SimConfig { auth: Auth::AllowAny { ask: true }, ..SimConfig::default() }).await;
    let watch = crate::connect::DeviceWatch::start(host);
    let mut roster = watch.roster();
    let address = phone.addr().to_string();
    let joined = host.join(phone.addr()).await.expect("adb knows it");
    assert!(matches!(joined, Joined::WaitsForAllow | Joined::Connected), "the phone asks its owner: {joined:?}");
    let level = |state: ListedState| {
        let address = address.clone();
        move |roster: &crate::connect::Roster| roster.find(&address).is_some_and(|phone| *phone.state() == state)
    };
    let asked = tokio::time::timeout(SOON, roster.wait_for(level(ListedState::Unauthorized))).await;
    asked.expect("unauthorized is seen in time").expect("the watch lives");
    phone.answer_key_prompt(true);
    let allowed = tokio::time::timeout(SOON, roster.wait_for(|roster| roster.find("CMSIM0001").is_some_and(|p| p.is_ready()))).await;
    allowed.expect("Allow is seen in time, and the phone is known by its own serial").expect("the watch lives");
    phone.set_fault(Fault::DropConnections);
    let lost = tokio::time::timeout(SOON, roster.wait_for(|roster| !roster.find(&address).is_some_and(|p| p.is_ready()))).await;
    lost.expect("the loss is seen in time").expect("the watch lives");
    phone.clear_faults();
    let _ = host.join(phone.addr()).await;
    let back = tokio::time::timeout(SOON, roster.wait_for(level(ListedState::Device))).await;
    back.expect("it comes back by itself").expect("the watch lives");
    host.leave(&address).await.expect("left");
    host.leave(&address).await.expect("leaving twice is no error");
    drop(watch);
    home.stop().await;
    phone.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_roads_to_the_simulated_phone_are_one_phone() {
    let hub = AdbHub::on_port(places(), free_port());
    let phone = sim(SimConfig::default()).await;
    // A second address of the same phone, as a cable beside Wi-Fi.
    let second = relay(phone.addr()).await;
    let (host, mut roster) = hub.open().await.expect("the stock adb starts");
    host.join(phone.addr()).await.expect("the first road");
    host.join(second).await.expect("the second road");
    let both = roster.wait_for(|roster| roster.find("CMSIM0001").is_some_and(|phone| phone.roads.len() == 2));
    tokio::time::timeout(SOON, both).await.expect("both roads are recognised in time").expect("the watch lives");
    let by_serial = hub.phone("CMSIM0001").await.expect("found by its own serial");
    assert_eq!(by_serial.facts().await.expect("it answers").serial, "CMSIM0001", "whichever road is used");
    let road = Road::OwnServer { port: host.address().port(), serial: "CMSIM0001".to_owned() };
    let report = Doctor::new(places(), road).examine(&Question::default()).await;
    assert!(report.findings.iter().any(|finding| finding.cause.code() == "PHONE_TWO_ROADS"), "the doctor tells: {report:?}");
    hub.stop().await;
    assert_eq!(hub.address().await, None, "and nothing runs any more");
    phone.stop().await;
}

/// Copies bytes both ways.
async fn relay(to: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let addr = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut from, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut to = tokio::net::TcpStream::connect(to).await?;
                tokio::io::copy_bidirectional(&mut from, &mut to).await
            });
        }
    });
    addr
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_rejoins_a_phone_and_restarts_its_server() {
    let hub = AdbHub::on_port(places(), free_port());
    let phone = sim(SimConfig::default()).await;
    let address = phone.addr().to_string();
    hub.phone(&address).await.expect("joined by itself").facts().await.expect("and it answers");
    // Somebody kills the server behind our back.
    let (host, _) = hub.open().await.expect("running");
    let _ = host.ask("host:kill", SOON).await;
    hub.phone(&address).await.expect("started and joined again").facts().await.expect("and it answers");
    let error = hub.phone("NOBODY").await.expect_err("no such phone");
    assert!(matches!(&error, HubError::Phone(error) if error.code() == "DEVICE_GONE"), "typed: {error:?}");
    hub.stop().await;
    phone.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_through_the_stock_server_are_whole_or_an_error() {
    let server = AdbServer::start(&program(), free_port()).await.expect("the stock adb starts");
    let phone = sim(SimConfig::default()).await;
    server.host().join(phone.addr()).await.expect("joined");
    let link = Arc::new(ServerLink::new(server.host().address(), phone.addr().to_string()));
    let output = link.shell("echo out; echo err >&2; exit 7", SOON).await.expect("it runs");
    assert_eq!((output.code, output.stdout.as_slice(), output.stderr.as_slice()), (7, &b"out\n"[..], &b"err\n"[..]), "all three apart");
    let png = link.exec("screencap -p", SOON).await.expect("raw bytes come whole");
    assert!(png.starts_with(&[0x89, b'P', b'N', b'G']) && png.ends_with(&[0xAE, 0x42, 0x60, 0x82]), "byte clean");
    let mut all = tokio::task::JoinSet::new();
    for at in 0..16_u8 {
        let link = Arc::clone(&link);
        all.spawn(async move { (at, link.shell(&format!("echo {at}; exit {at}"), SOON).await) });
    }
    while let Some(done) = all.join_next().await {
        let (at, output) = done.expect("no panic");
        let output = output.expect("each runs");
        assert_eq!((output.code, output.stdout), (at, format!("{at}\n").into_bytes()), "its own answer");
    }
    // The phone goes in the middle of both kinds of command.
    let cut = tokio::join!(link.shell("echo half; sleep 30", SOON), link.exec("echo half; sleep 30", SOON), async {
        link.shell("echo under way", SOON).await.expect("the others are under way");
        phone.set_fault(Fault::DropConnections);
    });
    assert!(cut.0.is_err(), "half an answer is never success: {:?}", cut.0);
    assert!(cut.1.is_err(), "not for raw bytes either, whose end looks like any other: {:?}", cut.1);
    server.stop().await;
    phone.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pairing_and_discovery_need_a_new_enough_adb() {
    let server = AdbServer::start(&program(), free_port()).await.expect("the stock adb starts");
    let major = program().version().await.expect("a version").major();
    let nobody = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let error = server.host().pair(nobody, "123456").await.expect_err("nobody is there to pair with");
    let want = if major < 30 { "ADB_TOO_OLD" } else { "PAIRING_REFUSED" };
    assert_eq!(error.code(), want, "adb {major}: {error}");
    let error = server.host().pair(nobody, "12a456:evil").await.expect_err("not a code");
    assert_eq!(error.code(), "PAIRING_REFUSED", "only digits are put into a request: {error}");
    match server.host().discover().await {
        Ok(_) => assert!(major >= 30, "an old adb cannot have answered"),
        Err(error) => assert!(matches!(error, ConnectError::Unsupported { .. }), "an adb without mDNS says so: {error:?}"),
    }
    server.stop().await;
}

/// Answers one request with these bytes.
async fn canned(answer: &'static [u8]) -> AdbHost {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let addr = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut asked = [0; 512];
            let _ = socket.read(&mut asked).await;
            let _ = socket.write_all(answer).await;
        }
    });
    AdbHost::new(addr)
}

#[tokio::test]
async fn pairing_answers() {
    let rows: [(&str, &'static [u8], Option<&str>); 6] = [
        ("paired", b"OKAY002DSuccessfully paired to 10.0.0.2:41001 [guid=a]", None),
        ("wrong code", b"OKAY0030Failed: Wrong password or connection was dropped", Some("PAIRING_REFUSED")),
        ("old adb", b"FAIL0014unknown host service", Some("ADB_TOO_OLD")),
        ("adb 36", b"OKAYFAIL0027Failed: Unable to start pairing client.", Some("PAIRING_REFUSED")),
        ("refused", b"FAIL0008no route", Some("PAIRING_REFUSED")),
        ("dies", b"OK", Some("ADB_SERVER_DOWN")),
    ];
    let phone = SocketAddr::from(([10, 0, 0, 2], 41001));
    for (name, answer, want) in rows {
        let got = canned(answer).await.pair(phone, "123456").await;
        assert_eq!(got.as_ref().err().map(ConnectError::code), want, "row {name}: {got:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_looks_at_the_simulated_phone_and_fixes_it() {
    let phone = sim(SimConfig::default()).await;
    let key = Arc::new(AdbKey::generate().expect("a key"));
    let doctor = Doctor::new(places(), Road::Direct { address: phone.addr(), key });
    let report = doctor.examine(&Question::default()).await;
    assert!(!report.blocks() || report.findings.iter().all(|f| f.cause.code() == "SCREEN_LOCKED"), "the demo phone works: {report:?}");
    let fix = report.fixes().next().expect("its animations are on").clone();
    let undo = doctor.fix(&fix).await.expect("done").undo.expect("it can be taken back");
    let codes = |report: &crate::doctor::Report| report.findings.iter().map(|f| f.cause.code()).collect::<Vec<_>>();
    assert!(!codes(&doctor.examine(&Question::default()).await).contains(&"ANIMATIONS_ON"), "they are off now");
    doctor.undo(&undo).await.expect("done");
    assert!(codes(&doctor.examine(&Question::default()).await).contains(&"ANIMATIONS_ON"), "and on again, as the owner had them");
    phone.set_fault(Fault::ScreenLocked);
    assert!(codes(&doctor.examine(&Question::default()).await).contains(&"SCREEN_LOCKED"), "a locked screen is seen");
    assert_eq!(phone.journal(), [], "and nothing was pressed on the way");
    phone.stop().await;
}
