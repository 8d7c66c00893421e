//! A real phone: shell commands behind the [`Phone`] trait.
//!
//! The only module that writes `input` and `am start`, and it writes them only from a [`Ticket`]. It decides
//! by bytes and exit codes, never by stderr alone: linker warnings are not failures (facts B).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Mutex;

use crate::adb::AdbError;
use crate::adb::answers;
use crate::adb::link::{Link, ShellOutput};
use crate::capture::{Capture, CaptureId, CaptureWant, Foreground, Screenshot, Verdict};
use crate::clock;
use crate::error::PhoneError;
use crate::guard::{Command, Ticket};
use crate::phone::{Measured, PDD_PACKAGE, Phone, PhoneFacts, ReadersAllowed, ScreenSize};
use crate::tree::UiTree;

mod agent;
mod dump;

use dump::Reading;

/// Small questions: getprop, wm, date.
const QUICK: Duration = Duration::from_secs(5);
/// `dumpsys` takes up to 5 s on slow phones (facts B).
const DUMPSYS: Duration = Duration::from_secs(10);
/// `screencap -p` takes 1-2 s on old phones.
const PICTURE: Duration = Duration::from_secs(15);
/// `input` starts a Java process; a swipe adds its own length.
const INPUT: Duration = Duration::from_secs(8);
const START: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub(crate) struct AdbPhone<L> {
    link: L,
    serial: Arc<str>,
    /// Makes dump file names unlike those of another client of the same phone.
    nonce: u32,
    /// Android has one accessibility connection, and one finger is enough: looks and actions take turns.
    turn: Mutex<Reading>,
}

impl<L: Link> AdbPhone<L> {
    pub(crate) fn new(link: L) -> AdbPhone<L> {
        let serial = Arc::from(link.serial());
        AdbPhone { link, serial, nonce: rand::random(), turn: Mutex::new(Reading::default()) }
    }

    async fn shell(&self, cmd: &str, what: &'static str, limit: Duration) -> Result<ShellOutput, PhoneError> {
        self.link.shell(cmd, limit).await.map_err(|error| explain(error, &self.serial, what, limit))
    }

    /// The trimmed stdout of a small command.
    async fn ask(&self, cmd: &str, what: &'static str, limit: Duration) -> Result<String, PhoneError> {
        let output = self.shell(cmd, what, limit).await?;
        Ok(answers::text(&output.stdout).trim().to_owned())
    }

    async fn screen(&self) -> Result<ScreenSize, PhoneError> {
        let size = self.ask("wm size", "wm size", QUICK).await?;
        let density = self.ask("wm density", "wm density", QUICK).await?;
        let bad = |what, detail: &str| PhoneError::BadAnswer { what, detail: detail.chars().take(80).collect() };
        let (width, height) = answers::screen_size(&size).ok_or_else(|| bad("wm size", &size))?;
        let density_dpi = answers::density(&density).ok_or_else(|| bad("wm density", &density))?;
        Ok(ScreenSize { width, height, density_dpi })
    }

    async fn pdd_version(&self) -> Result<Option<String>, PhoneError> {
        let text = self.ask(&format!("dumpsys package {PDD_PACKAGE}"), "dumpsys package", DUMPSYS).await?;
        Ok(answers::version_name(&text))
    }

    async fn picture(&self) -> Result<Vec<u8>, PhoneError> {
        let raw =
            self.link.exec("screencap -p", PICTURE).await.map_err(|error| explain(error, &self.serial, "taking a screenshot", PICTURE))?;
        let bytes = raw.len();
        answers::png(raw).ok_or_else(|| PhoneError::BadAnswer { what: "screencap", detail: format!("{bytes} bytes, no whole png") })
    }

    async fn send(&self, command: &Command) -> Result<(), PhoneError> {
        match command {
            Command::Tap(at) => self.input(&format!("input tap {} {}", at.x, at.y), INPUT).await,
            Command::Swipe { from, to, duration_ms } => {
                let cmd = format!("input swipe {} {} {} {} {duration_ms}", from.x, from.y, to.x, to.y);
                self.input(&cmd, INPUT + Duration::from_millis(u64::from(*duration_ms))).await
            }
            Command::Key(key) => self.input(&format!("input keyevent {}", key.code()), INPUT).await,
            // To the end of the field, four characters away, then the number: `input text` alone would append.
            Command::TypeQuantity(quantity) => self.input(&format!("input keyevent 123 67 67 67 67 && input text {quantity}"), INPUT).await,
            Command::OpenGoods(goods) => self.open(&goods.link()).await,
            Command::OpenOrders(list) => self.open(list.link()).await,
        }
    }

    /// Both links are built by the guard's own types, so they need no quoting.
    async fn open(&self, link: &str) -> Result<(), PhoneError> {
        let cmd = format!("am start -a android.intent.action.VIEW -d '{link}' -p {PDD_PACKAGE}");
        started(&self.shell(&cmd, "opening a link", START).await?)
    }

    async fn input(&self, cmd: &str, limit: Duration) -> Result<(), PhoneError> {
        let output = self.shell(cmd, "input", limit).await?;
        let said = said(&output);
        // MIUI and its relatives reject injected touches until a second switch is on (facts 0.9).
        if said.contains("INJECT_EVENTS") || said.contains("SecurityException") {
            return Err(PhoneError::InputRefused { message: first_line(&said) });
        }
        if output.code != 0 {
            return Err(PhoneError::BadAnswer { what: "input", detail: format!("exit {}: {}", output.code, first_line(&said)) });
        }
        Ok(())
    }
}

#[async_trait]
impl<L: Link> Phone for AdbPhone<L> {
    fn serial(&self) -> &str {
        &self.serial
    }

    async fn facts(&self) -> Result<PhoneFacts, PhoneError> {
        let (serialno, model, manufacturer, android_version, sdk, screen, pdd_version) = tokio::try_join!(
            self.ask("getprop ro.serialno", "getprop", QUICK),
            self.ask("getprop ro.product.model", "getprop", QUICK),
            self.ask("getprop ro.product.manufacturer", "getprop", QUICK),
            self.ask("getprop ro.build.version.release", "getprop", QUICK),
            self.ask("getprop ro.build.version.sdk", "getprop", QUICK),
            self.screen(),
            self.pdd_version(),
        )?;
        Ok(PhoneFacts {
            // The phone's own word: the same by cable and by Wi-Fi, and the one a task is bound to (D10, D19).
            serial: if matches!(serialno.as_str(), "" | "unknown") { self.serial.to_string() } else { serialno },
            model,
            manufacturer,
            android_version,
            // A phone that does not say is treated as the oldest there is.
            sdk: sdk.parse().unwrap_or(0),
            screen,
            pdd_version,
        })
    }

    async fn foreground(&self) -> Result<Foreground, PhoneError> {
        let windows = self.ask("dumpsys window | grep mCurrentFocus", "dumpsys window", DUMPSYS).await?;
        if let Some(focus) = answers::current_focus(&windows) {
            return Ok(focus);
        }
        let activities = self.ask("dumpsys activity activities", "dumpsys activity", DUMPSYS).await?;
        // Nothing resumed: the screen is off or between two windows. An empty foreground matches nothing.
        Ok(answers::resumed_activity(&activities).unwrap_or_default())
    }

    async fn goods_on_top(&self) -> Result<Option<String>, PhoneError> {
        let text = self.ask("dumpsys activity top", "dumpsys activity top", DUMPSYS).await?;
        Ok(answers::goods_on_top(&text))
    }

    async fn capture(&self, want: &CaptureWant) -> Result<Capture, PhoneError> {
        let mut turn = self.turn.lock().await;
        let before = self.foreground().await?;
        let began = clock::now();
        let dumped = self.dump(&mut turn).await?;
        let dump_ended = clock::now();
        let dump_ms = dump_ended.saturating_duration_since(began).as_millis().min(u128::from(u32::MAX)) as u32;
        let picture = async {
            if !want.screenshot {
                return Ok(None);
            }
            let png = self.picture().await?;
            let skew_ms = clock::now().saturating_duration_since(dump_ended).as_millis() as i64;
            let (png, black) = off_thread(png).await;
            Ok(Some((Screenshot { png, skew_ms }, black)))
        };
        let goods = async { if want.goods { self.goods_on_top().await } else { Ok(None) } };
        // Side by side: the three seconds of this look are already running.
        let (after, picture, goods_id) = tokio::try_join!(self.foreground(), picture, goods)?;
        let black = picture.as_ref().is_some_and(|(_, black)| *black);
        let verdict = match dumped.verdict {
            Some(verdict) => verdict,
            None if before != after || !shows(&dumped.tree, &after) => Verdict::TreeStale,
            None if want.expect_package.as_ref().is_some_and(|package| *package != after.package) => Verdict::WrongApp,
            // The tree of a secured window is whole, but a person could not check what is done on it.
            None if black => Verdict::SecureOrBlack,
            None => Verdict::Ok,
        };
        let id = CaptureId::next();
        tracing::debug!(capture = id.0, %verdict, nodes = dumped.tree.len(), dump_ms, foreground = %after, "looked");
        Ok(Capture {
            id,
            tree: Arc::new(dumped.tree),
            xml: Arc::from(dumped.xml),
            foreground: after,
            goods_id,
            verdict,
            dump_ended,
            dump_ms,
            screenshot: picture.map(|(screenshot, _)| screenshot),
            serial: Arc::clone(&self.serial),
        })
    }

    async fn measure(&self, allowed: &ReadersAllowed) -> Result<Vec<Measured>, PhoneError> {
        let mut turn = self.turn.lock().await;
        self.measure_readers(&mut turn, allowed).await
    }

    async fn act(&self, ticket: Ticket) -> Result<(), PhoneError> {
        let _turn = self.turn.lock().await;
        let foreground = self.foreground().await?;
        ticket.still_valid(&self.serial, &foreground, clock::now())?;
        tracing::debug!(capture = ticket.capture().0, action = ?ticket.command(), "acting");
        self.send(ticket.command()).await
    }

    async fn screenshot(&self) -> Result<Vec<u8>, PhoneError> {
        self.picture().await
    }

    async fn clock(&self) -> Result<i64, PhoneError> {
        let text = self.ask("date +%s", "date", QUICK).await?;
        text.parse::<i64>()
            .map(|seconds| seconds * 1000)
            .map_err(|_| PhoneError::BadAnswer { what: "date", detail: text.chars().take(40).collect() })
    }
}

/// Judges a picture where it does not hold up the other streams. A picture that cannot be decoded is not called black.
async fn off_thread(png: Vec<u8>) -> (Vec<u8>, bool) {
    let kept = png.clone();
    let judged = tokio::task::spawn_blocking(move || {
        let black = answers::is_black(&png);
        (png, black)
    });
    judged.await.unwrap_or((kept, false))
}

/// Whether the dump can be of the Pinduoduo page in front: a dump of another window is not (facts B).
fn shows(tree: &UiTree, foreground: &Foreground) -> bool {
    if foreground.package != PDD_PACKAGE {
        return true;
    }
    let mut stated = tree.nodes().map(|node| node.package()).filter(|package| !package.is_empty()).peekable();
    stated.peek().is_none() || stated.any(|package| package == PDD_PACKAGE)
}

/// Everything a command printed, both streams.
fn said(output: &ShellOutput) -> String {
    format!("{}\n{}", answers::text(&output.stderr), answers::text(&output.stdout))
}

fn first_line(text: &str) -> String {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no message").chars().take(200).collect()
}

/// `am start` exits 0 on some failures, so its words count.
fn started(output: &ShellOutput) -> Result<(), PhoneError> {
    let said = said(output);
    let lower = said.to_ascii_lowercase();
    if lower.contains("unable to resolve intent") || lower.contains("does not exist") {
        return Err(PhoneError::PddMissing);
    }
    let error = said.lines().map(str::trim).find(|line| line.starts_with("Error"));
    if error.is_some() || output.code != 0 {
        let detail = error.map_or_else(|| format!("exit {}: {}", output.code, first_line(&said)), str::to_owned);
        return Err(PhoneError::BadAnswer { what: "am start", detail });
    }
    Ok(())
}

/// A wire failure in an operator's words.
pub(crate) fn explain(error: AdbError, who: &str, what: &'static str, limit: Duration) -> PhoneError {
    match error {
        AdbError::Timeout => PhoneError::Timeout { what, limit },
        AdbError::Unauthorized => PhoneError::Unauthorized { serial: who.to_owned() },
        AdbError::Unreachable { .. } => PhoneError::AdbUnreachable { endpoint: who.to_owned(), source: error },
        AdbError::Refused(ref reason) if reason.contains("not found") || reason.contains("offline") => {
            PhoneError::DeviceGone { serial: who.to_owned() }
        }
        AdbError::Refused(reason) => PhoneError::BadAnswer { what, detail: reason },
        AdbError::Io(_) | AdbError::BrokeOff | AdbError::Protocol(_) | AdbError::TooLarge { .. } => {
            PhoneError::Link { what, source: error }
        }
    }
}
