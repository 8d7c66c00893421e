//! The stock `adb` client against the simulated phone, on a private adb server that is killed at
//! the end. `scripts/setup` installs `adb`.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::{Adb, out, parses, phone};
use cmautobuy_phone_sim::{Auth, Catalogue, Fault, JournalKind, SimConfig};

#[tokio::test(flavor = "multi_thread")]
async fn the_stock_client_works() {
    let adb = Adb::new();
    let sim = phone(SimConfig::default()).await;
    assert!(adb.connect(&sim).starts_with("connected to"), "adb connects");
    let listed = out(&adb.run(&["devices", "-l"]));
    assert!(listed.contains("product:cmsim model:CM_Sim_Phone device:cmsim"), "the banner is understood: {listed}");
    assert_eq!(out(&adb.on(&sim, &["shell", "getprop", "ro.serialno"])), "CMSIM0001\n", "a command answers");
    let failed = adb.on(&sim, &["shell", "echo 出错 >&2; exit 7"]);
    assert_eq!(failed.status.code(), Some(7), "the exit code arrives");
    assert_eq!(String::from_utf8_lossy(&failed.stderr), "出错\n", "and stderr separately");

    let png = adb.on(&sim, &["exec-out", "screencap", "-p"]).stdout;
    let picture = image::load_from_memory_with_format(&png, image::ImageFormat::Png).expect("a PNG");
    assert_eq!((picture.width(), picture.height()), (1080, 2400), "of the whole screen");

    let id = Catalogue::builtin().goods[0].goods_id.clone();
    let link = format!(
        "am start -a android.intent.action.VIEW -d 'https://mobile.yangkeduo.com/goods.html?goods_id={id}' -p com.xunmeng.pinduoduo"
    );
    assert!(adb.on(&sim, &["shell", &link]).status.success(), "the link opens");
    assert_eq!(sim.screen_name(), format!("goods:{id}"), "the goods page is there");
    assert!(
        sim.journal().iter().any(|entry| matches!(&entry.kind, JournalKind::Link(url) if url.contains(&id))),
        "and the journal has the link"
    );

    let tty = adb.on(&sim, &["exec-out", "uiautomator", "dump", "/dev/tty"]).stdout;
    assert!(parses(&tty) > 30, "the tree comes through a raw terminal");
    assert!(tty.ends_with(b"UI hierchary dumped to: /dev/tty\n"), "with its status line behind");
    let v2 = out(&adb.on(&sim, &["shell", "uiautomator dump /dev/tty"]));
    assert_eq!(v2, "UI hierchary dumped to: /dev/tty\n", "without a terminal there is no tree, as on a phone");
    let v1 = out(&adb.on(&sim, &["shell", "-x", "uiautomator dump /dev/tty"]));
    assert!(v1.contains("</hierarchy>"), "the old shell has a terminal");

    let said = out(&adb.on(&sim, &["shell", "uiautomator", "dump"]));
    assert_eq!(said, "UI hierchary dumped to: /sdcard/window_dump.xml\n", "the default file is named");
    let target = adb.home.path().join("dump.xml");
    let pulled = adb.on(&sim, &["pull", "/sdcard/window_dump.xml", target.to_str().expect("a plain path")]);
    assert!(pulled.status.success(), "the file can be pulled: {pulled:?}");
    assert!(parses(&std::fs::read(&target).expect("it is here")) > 30, "and is a tree");
    sim.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_travel_both_ways() {
    let adb = Adb::new();
    let sim = phone(SimConfig::default()).await;
    adb.connect(&sim);
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let (there, back) = (adb.home.path().join("a.bin"), adb.home.path().join("b.bin"));
    std::fs::write(&there, &bytes).expect("a file to push");
    let path = |path: &std::path::Path| path.to_str().expect("a plain path").to_owned();
    let pushed = adb.on(&sim, &["push", &path(&there), "/data/local/tmp/a.bin"]);
    assert!(pushed.status.success(), "push works: {pushed:?}");
    assert_eq!(out(&adb.on(&sim, &["shell", "wc -c < /data/local/tmp/a.bin"])).trim(), "3000000", "all of it arrived");
    assert!(adb.on(&sim, &["pull", "/data/local/tmp/a.bin", &path(&back)]).status.success(), "pull works");
    assert!(std::fs::read(&back).expect("it is here") == bytes, "3 MB come back unchanged");
    assert!(out(&adb.on(&sim, &["ls", "/data/local/tmp"])).contains("a.bin"), "ls lists it");
    let refused = adb.on(&sim, &["push", &path(&there), "/system/a.bin"]);
    assert!(!refused.status.success(), "the system is not writable");
    sim.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_run_beside_each_other() {
    let adb = Adb::new();
    let sim = phone(SimConfig::default()).await;
    adb.connect(&sim);
    let serial = sim.addr().to_string();
    let slow = adb.command(&["-s", &serial, "shell", "sleep 20; echo slow"]).stdout(Stdio::piped()).spawn();
    let mut slow = slow.expect("adb runs");
    let began = Instant::now();
    let all: Vec<_> = (0..4)
        .map(|at| {
            let line = format!("echo {at}; exit {at}");
            adb.command(&["-s", &serial, "shell", &line]).stdout(Stdio::piped()).spawn().expect("adb runs")
        })
        .collect();
    for (at, one) in all.into_iter().enumerate() {
        let done = one.wait_with_output().expect("ends");
        assert_eq!((out(&done), done.status.code()), (format!("{at}\n"), Some(at as i32)), "its own answer");
    }
    assert!(began.elapsed() < Duration::from_secs(15), "none waited for the slow one");
    slow.kill().expect("the slow one is ours to end");
    drop(slow.wait());
    sim.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_asked_for_and_remembered() {
    let adb = Adb::new();
    let sim = phone(SimConfig { auth: Auth::AllowAny { ask: true }, ..SimConfig::default() }).await;
    adb.connect(&sim);
    adb.wait_for_state(&sim, "unauthorized");
    sim.answer_key_prompt(true);
    adb.wait_for_state(&sim, "device");
    assert_eq!(out(&adb.on(&sim, &["shell", "echo in"])), "in\n", "allowed means usable");
    adb.run(&["disconnect"]);
    adb.connect(&sim);
    adb.wait_for_state(&sim, "device");
    sim.stop().await;

    let key = std::fs::read_to_string(adb.home.path().join(".android/adbkey.pub")).expect("adb made a key");
    let known = phone(SimConfig { auth: Auth::Only(vec![key]), ..SimConfig::default() }).await;
    adb.connect(&known);
    adb.wait_for_state(&known, "device");
    known.stop().await;
    let deny = phone(SimConfig { auth: Auth::Deny, ..SimConfig::default() }).await;
    adb.connect(&deny);
    adb.wait_for_state(&deny, "unauthorized");
    deny.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_phone_comes_back() {
    let adb = Adb::new();
    let sim = phone(SimConfig::default()).await;
    adb.connect(&sim);
    adb.wait_for_state(&sim, "device");
    sim.set_fault(Fault::DropConnections);
    let deadline = Instant::now() + Duration::from_secs(20);
    while adb.state(&sim) == "device" {
        assert!(Instant::now() < deadline, "adb must notice");
        std::thread::park_timeout(Duration::from_millis(50));
    }
    sim.clear_faults();
    adb.connect(&sim);
    adb.wait_for_state(&sim, "device");
    assert_eq!(out(&adb.on(&sim, &["shell", "echo back"])), "back\n", "and works again");
    sim.stop().await;
}
