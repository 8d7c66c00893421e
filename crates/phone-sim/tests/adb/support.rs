//! A private adb server and a phone, for the tests that use a real client. The server is killed at the end.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use cmautobuy_phone_sim::{Sim, SimConfig, start};

pub(crate) struct Adb {
    program: PathBuf,
    pub(crate) port: u16,
    pub(crate) home: tempfile::TempDir,
}

impl Adb {
    /// A private server of the stock adb on a free port with its own key.
    pub(crate) fn new() -> Self {
        assert!(Command::new("adb").arg("version").output().is_ok(), "the stock adb is not on PATH: run ./scripts/setup");
        Self::of("adb".into())
    }

    /// The same with another adb.
    pub(crate) fn of(program: PathBuf) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|one| one.local_addr()).expect("a free port").port();
        Self { program, port, home: tempfile::tempdir().expect("a directory for the key") }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("-P").arg(self.port.to_string()).args(arguments).stdin(Stdio::null());
        command.env("HOME", self.home.path()).env("ADB_MDNS", "0").env_remove("ANDROID_ADB_SERVER_PORT");
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("adb runs")
    }

    pub(crate) fn on(&self, sim: &Sim, arguments: &[&str]) -> Output {
        let serial = sim.addr().to_string();
        let mut all = vec!["-s", serial.as_str()];
        all.extend(arguments);
        self.run(&all)
    }

    pub(crate) fn connect(&self, sim: &Sim) -> String {
        String::from_utf8_lossy(&self.run(&["connect", &sim.addr().to_string()]).stdout).into_owned()
    }

    pub(crate) fn state(&self, sim: &Sim) -> String {
        let all = self.run(&["devices"]);
        let all = String::from_utf8_lossy(&all.stdout).into_owned();
        let serial = sim.addr().to_string();
        all.lines().find_map(|line| line.strip_prefix(&serial)).unwrap_or_default().trim().to_owned()
    }

    /// Waits for a level, not for an edge.
    pub(crate) fn wait_for_state(&self, sim: &Sim, wanted: &str) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.state(sim) != wanted {
            assert!(Instant::now() < deadline, "the device must become {wanted}, is `{}`", self.state(sim));
            std::thread::park_timeout(Duration::from_millis(50));
        }
    }
}

impl Drop for Adb {
    fn drop(&mut self) {
        drop(self.command(&["kill-server"]).output());
    }
}

pub(crate) fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) async fn phone(config: SimConfig) -> Sim {
    start(SimConfig { dump_time: Duration::from_millis(30), ..config }).await.expect("a free port")
}

/// Number of nodes of a whole, well-formed tree.
pub(crate) fn parses(xml: &[u8]) -> usize {
    let text = std::str::from_utf8(xml).expect("UTF-8");
    let end = text.find("</hierarchy>").expect("a whole tree") + "</hierarchy>".len();
    let mut reader = quick_xml::Reader::from_str(&text[..end]);
    let mut nodes = 0;
    loop {
        match reader.read_event().expect("well-formed XML") {
            quick_xml::events::Event::Start(_) | quick_xml::events::Event::Empty(_) => nodes += 1,
            quick_xml::events::Event::Eof => return nodes,
            _ => {}
        }
    }
}
