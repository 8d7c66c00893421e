//! The ladder, row by row, with the whole outside faked at the edge.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;

use super::causes::{AutoFix, Weight};
use super::edge::Edge;
use super::{Doctor, Question, Report, Road, Undo};
use crate::adb::link::ShellOutput;
use crate::adb::{AdbError, AdbKey, ListedDevice, ListedState};
use crate::connect::{AdbVersion, ConnectError, DEFAULT_PORT, Holder, PRIVATE_PORT, PortUse};

const SERIAL: &str = "R58M123";
const WALL_MS: i64 = 1_760_000_000_000;

/// A desk where everything is in order; rows break one thing each.
#[derive(Debug, Clone)]
struct Desk {
    program: Result<u32, &'static str>,
    ports: HashMap<u16, PortUse>,
    /// By port; a server that is not here does not answer.
    devices: HashMap<u16, Vec<(&'static str, ListedState)>>,
    /// By command: exit code and stdout. A command that is not here is not on the phone.
    shell: HashMap<String, (u8, String)>,
    /// Instead of any answer.
    mute: Option<fn() -> AdbError>,
    done: Arc<Mutex<Vec<String>>>,
}

impl Default for Desk {
    fn default() -> Desk {
        let server = PortUse::AdbServer { version: 41, holder: None };
        let mut desk = Desk {
            program: Ok(41),
            ports: HashMap::from([(PRIVATE_PORT, server.clone()), (DEFAULT_PORT, PortUse::Free)]),
            devices: HashMap::from([(PRIVATE_PORT, vec![(SERIAL, ListedState::Device)])]),
            shell: HashMap::new(),
            mute: None,
            done: Arc::default(),
        };
        for (cmd, said) in [
            ("getprop ro.serialno", SERIAL),
            ("getprop ro.product.manufacturer", "Xiaomi"),
            ("getprop ro.product.model", "M2012"),
            ("getprop ro.build.version.release", "13"),
            ("getprop persist.security.adbinput", "1"),
            ("date +%s", "1760000000"),
            ("dumpsys power", "  mWakefulness=Awake"),
            ("dumpsys window", "mCurrentFocus=Window{1 u0 com.miui.home/.Launcher}\n isKeyguardShowing=false mDreamingLockscreen=false"),
            ("dumpsys package com.xunmeng.pinduoduo", "    versionName=7.58.0\n"),
            ("dumpsys package com.xunmeng.pinduoduo.hos", "Unable to find package: com.xunmeng.pinduoduo.hos"),
            ("ps -A", "USER PID NAME\nshell 12 system_server\n"),
            ("df -k /data", "Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/x 1 1 8388608 1% /data\n"),
            ("settings get global window_animation_scale", "0"),
            ("settings get global transition_animation_scale", "0.0"),
            ("settings get global animator_duration_scale", "0"),
            ("settings put global window_animation_scale 0", ""),
            ("settings put global transition_animation_scale 0", ""),
            ("settings put global animator_duration_scale 0", ""),
            ("settings put global window_animation_scale 1.0", ""),
            ("settings put global animator_duration_scale 0.5", ""),
            ("settings delete global transition_animation_scale", ""),
        ] {
            desk.shell.insert(cmd.to_owned(), (0, said.to_owned()));
        }
        desk
    }
}

impl Desk {
    fn says(mut self, cmd: &str, said: &str) -> Desk {
        self.shell.insert(cmd.to_owned(), (0, said.to_owned()));
        self
    }
    fn fails(mut self, cmd: &str) -> Desk {
        self.shell.remove(cmd);
        self
    }
    fn on_port(mut self, port: u16, found: PortUse) -> Desk {
        self.ports.insert(port, found);
        self
    }
    fn lists(mut self, port: u16, roads: &[(&'static str, ListedState)]) -> Desk {
        self.devices.insert(port, roads.to_vec());
        self
    }
    fn without_program(mut self) -> Desk {
        self.program = Err("missing");
        self
    }
    fn mute(mut self, with: fn() -> AdbError) -> Desk {
        self.mute = Some(with);
        self
    }
    fn note(&self, what: String) {
        self.done.lock().expect("lock").push(what);
    }
}

#[async_trait]
impl Edge for Desk {
    async fn program(&self) -> Result<AdbVersion, ConnectError> {
        match self.program {
            Ok(protocol) => Ok(AdbVersion { protocol, release: "36.0.0".to_owned() }),
            Err("missing") => Err(ConnectError::NoAdb { looked: "resources/adb".to_owned() }),
            Err(said) => Err(ConnectError::AdbFailed { what: "tell its version", said: said.to_owned() }),
        }
    }
    async fn port(&self, port: u16) -> PortUse {
        self.ports.get(&port).cloned().unwrap_or(PortUse::Free)
    }
    async fn devices(&self, server: SocketAddr) -> Result<Vec<ListedDevice>, ConnectError> {
        match self.devices.get(&server.port()) {
            Some(list) => Ok(list
                .iter()
                .map(|(serial, state)| ListedDevice {
                    serial: (*serial).to_owned(),
                    state: state.clone(),
                    model: None,
                    product: None,
                    usb: None,
                    transport_id: None,
                })
                .collect()),
            None => Err(ConnectError::Server(AdbError::BrokeOff)),
        }
    }
    async fn shell(&self, _through: Option<(SocketAddr, &str)>, cmd: &str, _limit: Duration) -> Result<ShellOutput, AdbError> {
        assert!(!cmd.contains("input ") && !cmd.contains("am start"), "the doctor never touches: {cmd}");
        if let Some(mute) = self.mute {
            return Err(mute());
        }
        if cmd.starts_with("settings put") || cmd.starts_with("settings delete") {
            self.note(cmd.to_owned());
        }
        let (code, said) = self.shell.get(cmd).cloned().unwrap_or((127, String::new()));
        Ok(ShellOutput { code, stdout: said.into_bytes(), stderr: if code == 0 { Vec::new() } else { b"not found".to_vec() } })
    }
    async fn start_server(&self, port: u16) -> Result<(), ConnectError> {
        self.note(format!("start {port}"));
        Ok(())
    }
    async fn reconnect_offline(&self, server: SocketAddr) -> Result<(), ConnectError> {
        self.note(format!("reconnect {server}"));
        Ok(())
    }
    async fn rejoin(&self, _server: SocketAddr, phone: SocketAddr) -> Result<(), ConnectError> {
        self.note(format!("rejoin {phone}"));
        Ok(())
    }
}

fn own() -> Road {
    Road::OwnServer { port: PRIVATE_PORT, serial: SERIAL.to_owned() }
}

fn named() -> Road {
    Road::NamedServer { server: SocketAddr::from(([127, 0, 0, 1], DEFAULT_PORT)), serial: SERIAL.to_owned() }
}

fn direct() -> Road {
    static KEY: std::sync::OnceLock<Arc<AdbKey>> = std::sync::OnceLock::new();
    let key = Arc::clone(KEY.get_or_init(|| Arc::new(AdbKey::generate().expect("a key"))));
    Road::Direct { address: SocketAddr::from(([192, 168, 0, 20], 5555)), key }
}

fn question() -> Question {
    Question { wall_ms: Some(WALL_MS), oldest_pdd: Some([7, 0]), ..Question::default() }
}

async fn examine(desk: Desk, road: Road, question: &Question) -> Report {
    Doctor { edge: Box::new(desk), road }.examine(question).await
}

fn holder(name: &str) -> Option<Holder> {
    Some(Holder { pid: 7788, name: name.to_owned() })
}

const PHONE_WINDOW: &str = "dumpsys window";

struct Row {
    name: &'static str,
    desk: Desk,
    road: Road,
    question: Question,
    codes: &'static [&'static str],
    /// Part of the first finding's detail.
    detail: &'static str,
}

fn row(name: &'static str, desk: Desk, codes: &'static [&'static str], detail: &'static str) -> Row {
    Row { name, desk, road: own(), question: question(), codes, detail }
}

impl Row {
    fn at(self, road: Road) -> Row {
        Row { road, ..self }
    }
    fn asking(self, question: Question) -> Row {
        Row { question, ..self }
    }
}

#[tokio::test]
async fn every_rung_of_the_ladder() {
    let d = Desk::default;
    let other = |version| PortUse::AdbServer { version, holder: holder("360MobileMgr.exe") };
    let held = PortUse::Other { holder: holder("nginx") };
    let ready = ListedState::Device;
    let on_default = || {
        d().on_port(DEFAULT_PORT, PortUse::AdbServer { version: 41, holder: None }).lists(DEFAULT_PORT, &[(SERIAL, ListedState::Device)])
    };
    let rows = [
        row("all well", d(), &[], ""),
        row("all well, direct", d().without_program(), &[], "").at(direct()),
        row("all well, named server", on_default(), &[], "").at(named()),
        row("no adb", d().without_program(), &["ADB_MISSING"], "resources/adb"),
        row("adb does not start", Desk { program: Err("side-by-side configuration"), ..d() }, &["ADB_FAILED"], "side-by-side"),
        row("our server is not running", d().on_port(PRIVATE_PORT, PortUse::Free), &["ADB_SERVER_DOWN"], "not running"),
        row("our port is held", d().on_port(PRIVATE_PORT, held.clone()), &["ADB_PORT_HELD"], "nginx (pid 7788)"),
        row("5037 held, named server", d().on_port(DEFAULT_PORT, held), &["ADB_PORT_HELD"], "nginx (pid 7788)").at(named()),
        row("named server down", d(), &["ADB_SERVER_DOWN"], "nothing listens").at(named()),
        row("version clash", on_default().on_port(DEFAULT_PORT, other(31)), &["ADB_VERSION_CLASH"], "server 31, our adb 41").at(named()),
        row("no clash without an adb", on_default().on_port(DEFAULT_PORT, other(31)).without_program(), &[], "").at(named()),
        row("another adb server", d().on_port(DEFAULT_PORT, other(40)), &["ADB_OTHER_SERVER"], "360MobileMgr.exe (pid 7788)"),
        row(
            "the other server has the phone",
            d().on_port(DEFAULT_PORT, other(40)).lists(PRIVATE_PORT, &[]).lists(DEFAULT_PORT, &[(SERIAL, ready.clone())]),
            &["PHONE_HELD"],
            "360MobileMgr.exe",
        ),
        row("no list", Desk { devices: HashMap::new(), ..d() }, &["ADB_SERVER_DOWN"], "ended before"),
        row("no phone", d().lists(PRIVATE_PORT, &[]), &["PHONE_NOT_FOUND"], SERIAL),
        row("another phone only", d().lists(PRIVATE_PORT, &[("ZZZ", ListedState::Unauthorized)]), &["PHONE_NOT_FOUND"], SERIAL),
        row("unauthorized", d().lists(PRIVATE_PORT, &[(SERIAL, ListedState::Unauthorized)]), &["UNAUTHORIZED"], ""),
        row("authorizing", d().lists(PRIVATE_PORT, &[(SERIAL, ListedState::Other("authorizing".into()))]), &["UNAUTHORIZED"], ""),
        row("unauthorized, direct", d().mute(|| AdbError::Unauthorized), &["UNAUTHORIZED"], "").at(direct()),
        row("offline", d().lists(PRIVATE_PORT, &[(SERIAL, ListedState::Offline)]), &["PHONE_OFFLINE"], ""),
        row("no permissions", d().lists(PRIVATE_PORT, &[(SERIAL, ListedState::NoPermissions)]), &["USB_NO_PERMISSIONS"], ""),
        row("recovery", d().lists(PRIVATE_PORT, &[(SERIAL, ListedState::Other("recovery".into()))]), &["PHONE_WRONG_MODE"], "recovery"),
        row("listed but silent", d().mute(|| AdbError::Timeout), &["TIMEOUT"], "no answer in time").at(direct()),
        row(
            "unreachable",
            d().mute(|| AdbError::Unreachable { endpoint: "the phone".into(), source: std::io::Error::other("Connection refused") }),
            &["ADB_UNREACHABLE"],
            "Connection refused",
        )
        .at(direct()),
        row(
            "two transports",
            d().lists(PRIVATE_PORT, &[("10.0.0.2:5555", ready.clone()), (SERIAL, ready.clone())]),
            &["PHONE_TWO_ROADS"],
            "using R58M123",
        ),
        row(
            "two transports, cable offline",
            d().lists(PRIVATE_PORT, &[("10.0.0.2:5555", ready.clone()), (SERIAL, ListedState::Offline)]),
            &["PHONE_TWO_ROADS"],
            "using 10.0.0.2:5555",
        ),
        row("security setting off, seen in a refusal", d(), &["INPUT_REFUSED"], "INJECT_EVENTS")
            .asking(Question { input_refused: Some("SecurityException: INJECT_EVENTS".into()), ..question() }),
        row("security setting off, said by the phone", d().says("getprop persist.security.adbinput", "0"), &["INPUT_REFUSED"], "adbinput"),
        row(
            "locked",
            d().says(PHONE_WINDOW, "isKeyguardShowing=true").says("dumpsys power", "mWakefulness=Asleep"),
            &["SCREEN_LOCKED"],
            "",
        ),
        row("screen off", d().says("dumpsys power", "mWakefulness=Asleep"), &["SCREEN_OFF"], ""),
        row(
            "uiautomator client",
            d().says("ps -A", "shell 900 com.github.uiautomator"),
            &["ACCESSIBILITY_TAKEN"],
            "com.github.uiautomator",
        ),
        row("appium", d().says("ps -A", "u0_a1 900 io.appium.uiautomator2.server"), &["ACCESSIBILITY_TAKEN"], "io.appium"),
        row("no pinduoduo", d().says("dumpsys package com.xunmeng.pinduoduo", "Unable to find package"), &["PDD_MISSING"], ""),
        row(
            "only the harmony build",
            d().says("dumpsys package com.xunmeng.pinduoduo", "Unable")
                .says("dumpsys package com.xunmeng.pinduoduo.hos", "versionName=7.1.0"),
            &["PDD_MISSING"],
            "HarmonyOS",
        ),
        row(
            "pinduoduo disabled",
            d().says("dumpsys package com.xunmeng.pinduoduo", "    versionName=7.58.0\n    User 0: installed=true enabled=3 instant=false"),
            &["PDD_DISABLED"],
            "",
        ),
        row("pinduoduo old", d().says("dumpsys package com.xunmeng.pinduoduo", "versionName=5.9.0"), &["PDD_OLD"], "5.9.0, older than 7.0"),
        row("version unreadable", d().says("dumpsys package com.xunmeng.pinduoduo", "versionName=dev"), &[], ""),
        row("logged out, by the last run", d(), &["LOGIN_WALL"], "").asking(Question { login_wall: true, ..question() }),
        row(
            "logged out, by the page in front",
            d().says(PHONE_WINDOW, "mCurrentFocus=Window{1 u0 com.xunmeng.pinduoduo/com.xunmeng.pinduoduo.login.LoginActivity}"),
            &["LOGIN_WALL"],
            "",
        ),
        row("low storage", d().says("df -k /data", "F 1K-blocks Used Available\n/x 1 1 102400\n"), &["PHONE_STORAGE_LOW"], "100 MB"),
        row("no df on the phone", d().fails("df -k /data"), &[], ""),
        row("animations on", d().says("settings get global window_animation_scale", "1.0"), &["ANIMATIONS_ON"], "1.0 / 0.0 / 0"),
        row("animations unset", d().says("settings get global animator_duration_scale", "null"), &["ANIMATIONS_ON"], "/ 1"),
        row("clock ahead", d().says("date +%s", "1760000300"), &["PHONE_CLOCK_OFF"], "+300 s"),
        row("clock behind", d().says("date +%s", "1759999000"), &["PHONE_CLOCK_OFF"], "-9"),
        row("clock a little off", d().says("date +%s", "1760000030"), &[], ""),
        row(
            "several at once, worst rung first",
            d().says("date +%s", "1760000300")
                .says("dumpsys package com.xunmeng.pinduoduo", "Unable")
                .says(PHONE_WINDOW, "isKeyguardShowing=true"),
            &["SCREEN_LOCKED", "PDD_MISSING", "PHONE_CLOCK_OFF"],
            "",
        ),
    ];
    assert!(rows.len() >= 40, "the table is the proof; {} rows", rows.len());
    for Row { name, desk, road, question, codes, detail } in rows {
        let report = examine(desk, road, &question).await;
        let got: Vec<&str> = report.findings.iter().map(|finding| finding.cause.code()).collect();
        assert_eq!(got, codes, "row `{name}`");
        let said = report.findings.first().map(|finding| finding.cause.to_string()).unwrap_or_default();
        assert!(said.contains(detail), "row `{name}`: `{said}` must hold `{detail}`, a person acts on it");
        let blocks = !codes.is_empty() && report.findings.iter().any(|finding| finding.weight == Weight::Blocks);
        assert_eq!(report.blocks(), blocks, "row `{name}`: advice alone must not stop the work");
    }
}

#[tokio::test]
async fn a_phone_that_answers_is_named() {
    let report = examine(Desk::default(), own(), &question()).await;
    assert_eq!(report.phone.as_deref(), Some("Xiaomi M2012, Android 13"), "a person must see that it is the right phone");
}

#[tokio::test]
async fn fixes_do_what_they_say_and_can_be_taken_back() {
    let desk = Desk::default()
        .says("settings get global window_animation_scale", "1.0")
        .says("settings get global transition_animation_scale", "null")
        .says("settings get global animator_duration_scale", "0.5");
    let done = Arc::clone(&desk.done);
    let doctor = Doctor { edge: Box::new(desk), road: own() };
    let report = doctor.examine(&question()).await;
    let fix = report.fixes().next().expect("animations can be turned off by themselves").clone();
    let fixed = doctor.fix(&fix).await.expect("the phone obeys");
    let puts = ["window_animation_scale", "transition_animation_scale", "animator_duration_scale"];
    let want: Vec<String> = puts.iter().map(|name| format!("settings put global {name} 0")).collect();
    assert_eq!(*done.lock().expect("lock"), want, "all three, nothing else");
    done.lock().expect("lock").clear();
    doctor.undo(&fixed.undo.expect("it can be taken back")).await.expect("the phone obeys");
    let want = [
        "settings put global window_animation_scale 1.0",
        "settings delete global transition_animation_scale",
        "settings put global animator_duration_scale 0.5",
    ];
    assert_eq!(*done.lock().expect("lock"), want, "as the owner had them, unset included");
}

#[tokio::test]
async fn other_fixes_reach_the_edge() {
    let server = SocketAddr::from(([127, 0, 0, 1], PRIVATE_PORT));
    let phone = SocketAddr::from(([10, 0, 0, 2], 5555));
    let rows = [
        (AutoFix::StartServer, "start 15037"),
        (AutoFix::ReconnectOffline { server }, "reconnect 127.0.0.1:15037"),
        (AutoFix::Rejoin { server, address: phone }, "rejoin 10.0.0.2:5555"),
    ];
    for (fix, want) in rows {
        let desk = Desk::default();
        let done = Arc::clone(&desk.done);
        let fixed = Doctor { edge: Box::new(desk), road: own() }.fix(&fix).await.expect("done");
        assert_eq!(*done.lock().expect("lock"), [want], "{fix:?}");
        assert_eq!(fixed.undo, None, "{fix:?} leaves nothing to take back");
    }
}

#[tokio::test]
async fn a_strange_scale_is_never_written_into_a_shell() {
    let desk = Desk::default();
    let done = Arc::clone(&desk.done);
    let undo = Undo::Animations { scales: [Some("1; reboot".to_owned()), Some("1.0".to_owned()), None] };
    let _ = Doctor { edge: Box::new(desk), road: own() }.undo(&undo).await;
    assert!(!done.lock().expect("lock").iter().any(|cmd| cmd.contains("reboot")), "only numbers are written back");
}
