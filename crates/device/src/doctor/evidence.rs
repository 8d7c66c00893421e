//! Gathering: which questions are put to the edge, and in which order. It judges nothing.
//!
//! Questions to the phone go side by side; each has its deadline, and one that fails leaves a gap, not an error.

use std::net::SocketAddr;
use std::time::Duration;

use crate::adb::{AdbError, ListedDevice, ListedState, answers};
use crate::clock;
use crate::connect::{AdbVersion, ConnectError, DEFAULT_PORT, PortUse, SeenPhone};
use crate::doctor::edge::Edge;
use crate::doctor::{Question, Road, reading};
use crate::phone::{PDD_PACKAGE, PDD_PACKAGE_HOS};

const QUICK: Duration = Duration::from_secs(5);
const DUMPSYS: Duration = Duration::from_secs(10);

pub(crate) const SCALES: [&str; 3] = ["window_animation_scale", "transition_animation_scale", "animator_duration_scale"];

#[derive(Debug)]
pub(super) struct Evidence {
    pub(super) program: Result<AdbVersion, ConnectError>,
    /// The port everyone else uses; `None` when the road does not care.
    pub(super) default_port: Option<PortUse>,
    /// The port of the road's own server.
    pub(super) server: Option<(SocketAddr, PortUse)>,
    pub(super) devices: Option<Result<Vec<ListedDevice>, ConnectError>>,
    /// What the server on the default port has, when ours lacks the phone.
    pub(super) others: Vec<ListedDevice>,
    /// The road's phone among them.
    pub(super) seen: Option<SeenPhone>,
    pub(super) phone: Option<Result<PhoneAnswers, AdbError>>,
}

/// `None`: the phone could not or would not say.
#[derive(Debug, Default)]
pub(super) struct PhoneAnswers {
    pub(super) name: String,
    pub(super) xiaomi_input: Option<String>,
    pub(super) power: Option<String>,
    pub(super) window: Option<String>,
    pub(super) package: Option<String>,
    pub(super) hos: Option<String>,
    pub(super) processes: Option<String>,
    pub(super) storage: Option<String>,
    pub(super) scales: Option<[Option<String>; 3]>,
    /// The phone's clock minus ours, in milliseconds.
    pub(super) clock_ahead_ms: Option<i64>,
}

pub(super) async fn gather(edge: &dyn Edge, road: &Road, question: &Question) -> Evidence {
    let server = match road {
        Road::Direct { .. } => None,
        Road::OwnServer { port, .. } => Some(SocketAddr::from(([127, 0, 0, 1], *port))),
        Road::NamedServer { server, .. } => Some(*server),
    };
    let mut evidence = Evidence {
        program: edge.program().await,
        default_port: None,
        server: None,
        devices: None,
        others: Vec::new(),
        seen: None,
        phone: None,
    };
    let Some(server) = server else {
        evidence.phone = Some(ask_phone(edge, None, question).await);
        return evidence;
    };
    let (Road::OwnServer { serial, .. } | Road::NamedServer { serial, .. }) = road else { return evidence };
    let own = edge.port(server.port()).await;
    evidence.default_port = Some(if server.port() == DEFAULT_PORT { own.clone() } else { edge.port(DEFAULT_PORT).await });
    evidence.server = Some((server, own));
    let devices = edge.devices(server).await;
    if let Ok(list) = &devices {
        evidence.seen = find(edge, server, list, serial).await;
    }
    let other = SocketAddr::from(([127, 0, 0, 1], DEFAULT_PORT));
    if evidence.seen.is_none() && other != server && matches!(evidence.default_port, Some(PortUse::AdbServer { .. })) {
        evidence.others = edge.devices(other).await.unwrap_or_default();
    }
    evidence.devices = Some(devices);
    if let Some(seen) = evidence.seen.as_ref().filter(|seen| seen.is_ready()) {
        evidence.phone = Some(ask_phone(edge, Some((server, &seen.best().serial)), question).await);
    }
    evidence
}

/// Server and transport of the road's phone; `None` when the road has no server.
pub(super) type Through = Option<(SocketAddr, String)>;

/// The way to the road's phone now.
pub(super) async fn through(edge: &dyn Edge, road: &Road) -> Result<Through, ConnectError> {
    let (server, serial) = match road {
        Road::Direct { .. } => return Ok(None),
        Road::OwnServer { port, serial } => (SocketAddr::from(([127, 0, 0, 1], *port)), serial),
        Road::NamedServer { server, serial } => (*server, serial),
    };
    let list = edge.devices(server).await?;
    let seen = find(edge, server, &list, serial).await.filter(SeenPhone::is_ready);
    let seen = seen.ok_or_else(|| ConnectError::NotJoined { address: serial.clone(), said: "the phone is not ready".to_owned() })?;
    Ok(Some((server, seen.best().serial.clone())))
}

/// The phone called `serial`, by its transport or by its own word, with all its roads.
async fn find(edge: &dyn Edge, server: SocketAddr, list: &[ListedDevice], serial: &str) -> Option<SeenPhone> {
    let mut serialno = std::collections::HashMap::new();
    for road in list.iter().filter(|road| road.state == ListedState::Device) {
        if let Some(own) = ask(edge, Some((server, &road.serial)), "getprop ro.serialno", QUICK).await.filter(|own| !own.is_empty()) {
            serialno.insert(road.serial.clone(), own);
        }
    }
    let phones = crate::connect::fold(list, &serialno);
    phones.into_iter().find(|phone| phone.serial == serial || phone.roads.iter().any(|road| road.serial == serial))
}

/// Trimmed stdout of a command that succeeded.
async fn ask(edge: &dyn Edge, through: Option<(SocketAddr, &str)>, cmd: &str, limit: Duration) -> Option<String> {
    let output = edge.shell(through, cmd, limit).await.ok()?;
    (output.code == 0).then(|| answers::text(&output.stdout).trim().to_owned())
}

async fn ask_phone(edge: &dyn Edge, through: Option<(SocketAddr, &str)>, question: &Question) -> Result<PhoneAnswers, AdbError> {
    // The first question decides whether the phone talks at all; ten time-outs in a row would tell no more than one.
    let maker = edge.shell(through, "getprop ro.product.manufacturer", QUICK).await?;
    let maker = answers::text(&maker.stdout).trim().to_owned();
    let ask = |cmd: &'static str, limit| ask(edge, through, cmd, limit);
    let scale = |name: &'static str| async move { edge.shell(through, &format!("settings get global {name}"), QUICK).await.ok() };
    let package_of = |package: &str| format!("dumpsys package {package}");
    let (mainland, hos) = (package_of(PDD_PACKAGE), package_of(PDD_PACKAGE_HOS));
    let asked = clock::now();
    let clock_ahead = async {
        let sent = clock::now();
        let wall_ms = question.wall_ms?;
        let said = ask("date +%s", QUICK).await?;
        let phone_ms = said.parse::<i64>().ok()? * 1000 + 500;
        // The phone's second was read somewhere in the round trip; its middle is the best guess.
        let middle = sent.saturating_duration_since(asked) + clock::now().saturating_duration_since(sent) / 2;
        Some(phone_ms - wall_ms - middle.as_millis() as i64)
    };
    // First alone: the others load the phone, and the clock is the one answer that load falsifies.
    let clock_ahead_ms = clock_ahead.await;
    let (model, android, xiaomi_input, power, window) = tokio::join!(
        ask("getprop ro.product.model", QUICK),
        ask("getprop ro.build.version.release", QUICK),
        ask("getprop persist.security.adbinput", QUICK),
        ask("dumpsys power", DUMPSYS),
        ask("dumpsys window", DUMPSYS),
    );
    let (package, hos, processes, storage, scales) = tokio::join!(
        edge.shell(through, &mainland, DUMPSYS),
        edge.shell(through, &hos, DUMPSYS),
        ask("ps -A", QUICK),
        ask("df -k /data", QUICK),
        async { tokio::join!(scale(SCALES[0]), scale(SCALES[1]), scale(SCALES[2])) },
    );
    let text = |output: Result<crate::adb::link::ShellOutput, AdbError>| output.ok().map(|output| answers::text(&output.stdout));
    let scales = match scales {
        (Some(a), Some(b), Some(c)) if [&a, &b, &c].iter().all(|output| output.code == 0) => {
            Some([a, b, c].map(|output| reading::setting(&answers::text(&output.stdout))))
        }
        _ => None,
    };
    Ok(PhoneAnswers {
        name: format!("{maker} {}, Android {}", model.unwrap_or_default(), android.unwrap_or_default()),
        xiaomi_input,
        power,
        window,
        package: text(package),
        hos: text(hos),
        processes,
        storage,
        scales,
        clock_ahead_ms,
    })
}
