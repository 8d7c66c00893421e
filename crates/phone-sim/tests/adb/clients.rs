//! Other clients than Debian's adb: the adb that PyPI's `adbutils` carries, and the Rust crate `adb_client` straight over TCP.

use std::path::PathBuf;
use std::process::Command;

use crate::support::{Adb, out, parses, phone};
use adb_client::ADBDeviceExt;
use adb_client::tcp::ADBTcpDevice;
use cmautobuy_phone_sim::{Auth, SimConfig};

/// The adb inside an installed `adbutils`: named by `CMAUTOBUY_ADBUTILS_ADB`, else asked of Python.
fn adbutils() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("CMAUTOBUY_ADBUTILS_ADB") {
        return Some(named.into());
    }
    let asked = "import adbutils, os; print(os.path.join(os.path.dirname(adbutils.__file__), 'binaries', 'adb'))";
    let said = Command::new("python3").args(["-c", asked]).output().ok()?;
    let path = PathBuf::from(String::from_utf8(said.stdout).ok()?.trim());
    path.is_file().then_some(path)
}

#[expect(clippy::print_stderr, reason = "a test that proved nothing must say so")]
#[tokio::test(flavor = "multi_thread")]
async fn the_adb_of_adbutils_works() {
    let Some(program) = adbutils() else {
        eprintln!("NOT RUN: no adbutils here. `pip install adbutils`, or name its adb in CMAUTOBUY_ADBUTILS_ADB.");
        return;
    };
    let adb = Adb::of(program);
    let sim = phone(SimConfig { auth: Auth::AllowAny { ask: false }, ..SimConfig::default() }).await;
    adb.connect(&sim);
    adb.wait_for_state(&sim, "device");
    let said = adb.on(&sim, &["shell", "echo 出错 >&2; echo 好; exit 7"]);
    assert_eq!((out(&said).as_str(), said.status.code()), ("好\n", Some(7)), "output and status arrive");
    assert_eq!(String::from_utf8_lossy(&said.stderr), "出错\n", "stderr separately");
    let tty = adb.on(&sim, &["exec-out", "uiautomator", "dump", "/dev/tty"]).stdout;
    assert!(parses(&tty) > 5, "a tree comes through");
    let png = adb.on(&sim, &["exec-out", "screencap", "-p"]).stdout;
    assert!(image::load_from_memory(&png).is_ok(), "and a picture");
    let bytes: Vec<u8> = (0..400_000_u32).map(|at| (at % 251) as u8).collect();
    let (there, back) = (adb.home.path().join("a.bin"), adb.home.path().join("b.bin"));
    std::fs::write(&there, &bytes).expect("a file to push");
    let path = |path: &std::path::Path| path.to_str().expect("a plain path").to_owned();
    assert!(adb.on(&sim, &["push", &path(&there), "/data/local/tmp/a.bin"]).status.success(), "push works");
    assert!(adb.on(&sim, &["pull", "/data/local/tmp/a.bin", &path(&back)]).status.success(), "pull works");
    assert!(std::fs::read(&back).expect("it is here") == bytes, "unchanged");
    sim.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_crate_adb_client_works_over_tcp() {
    let sim = phone(SimConfig { auth: Auth::AllowAny { ask: false }, ..SimConfig::default() }).await;
    let addr = sim.addr();
    let (said, png) = tokio::task::spawn_blocking(move || {
        let mut device = ADBTcpDevice::new(addr).expect("it connects with a key of its own");
        let mut said = Vec::new();
        device.shell_command(&"echo 好; getprop ro.serialno", Some(&mut said), None).expect("a command runs");
        let mut pushed: &[u8] = b"pushed by the crate";
        device.push(&mut pushed, &"/data/local/tmp/c.txt").expect("push ends although its last write is not acknowledged");
        let mut png = Vec::new();
        device.shell_command(&"screencap -p /sdcard/s.png", Some(&mut Vec::new()), None).expect("a picture is taken");
        device.pull(&"/sdcard/s.png", &mut png).expect("and pulled");
        (said, png)
    })
    .await
    .expect("the client ends");
    let said = String::from_utf8_lossy(&said).replace('\r', "");
    assert_eq!(said, "好\nCMSIM0001\n", "the old shell is a terminal, so only the line ends differ");
    assert!(image::load_from_memory(&png).is_ok(), "a whole picture");
    sim.stop().await;
}
