//! What a caller can ask of a simulated phone before and while it runs.
//! It holds no behaviour: the phone, the ADB side and the pages read it.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use crate::catalogue::Catalogue;

/// How the simulated phone is set up.
#[derive(Debug, Clone)]
pub struct SimConfig {
    /// Port 0 takes a free one; see [`crate::Sim::addr`].
    pub listen: SocketAddr,
    pub serial: String,
    pub auth: Auth,
    /// How long one `uiautomator dump` takes.
    pub dump_time: Duration,
    pub catalogue: Catalogue,
    pub pdd_installed: bool,
    /// Same seed, same phone: swipe jitter and AUTH tokens come from it.
    pub seed: u64,
}

impl Default for SimConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            serial: "CMSIM0001".to_owned(),
            auth: Auth::Open,
            dump_time: Duration::from_millis(350),
            catalogue: Catalogue::builtin(),
            pdd_installed: true,
            seed: 7,
        }
    }
}

/// Who may connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    /// No AUTH at all, as an emulator.
    Open,
    /// Any key is accepted once it was sent and is remembered. With `ask`, the phone waits for
    /// [`crate::Sim::answer_key_prompt`] first.
    AllowAny { ask: bool },
    /// Only these keys: lines as in `adbkey.pub` (base64 of the Android format, then a comment).
    Only(Vec<String>),
    /// Never accepts anyone; peers stay `unauthorized`.
    Deny,
}

/// A misbehaviour to switch on. Those with `times` wear off; the others stay until
/// [`crate::Sim::clear_faults`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// `uiautomator dump` never ends (until cleared, or `pkill`).
    HangDump,
    /// `uiautomator dump` dies with 137 and says nothing.
    DumpExit137 { times: u32 },
    /// `could not get idle state` after about 28 dump times (at most 10 s), exit 0.
    NeverIdle,
    /// `null root node`, exit 0, no file.
    NullRoot { times: u32 },
    /// The file ends in the middle.
    TruncatedXml { times: u32 },
    /// Every connection is closed, and new ones are too.
    DropConnections,
    /// Goods links end on 安全验证.
    CaptchaOnGoods,
    /// Everything in Pinduoduo ends on the login page.
    LoginWall,
    /// Goods links end on a network error.
    NetworkError,
    /// The dump says it succeeded but leaves the previous tree in the file.
    StaleFile,
    /// The screen is off behind a keyguard that WAKEUP alone does not open.
    ScreenLocked,
    /// The tree carries a second window: system icons whose descriptions are notification texts.
    SystemUiNotification,
}

/// One thing done to the phone and what it met, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalEntry {
    pub kind: JournalKind,
    /// Name of the screen before ([`crate::Sim::screen_name`]).
    pub screen: String,
    /// What was under the finger or what the link opened, for people and tests.
    pub hit: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JournalKind {
    Tap { x: i32, y: i32 },
    Swipe { from: (i32, i32), to: (i32, i32), duration_ms: u32 },
    Key(u32),
    Text(String),
    Link(String),
    Launch(String),
    ForceStop(String),
}
