//! The causes, as data. Each has a stable code; the sentences for people are written in `app`.

use std::fmt;
use std::net::SocketAddr;

use crate::connect::Holder;

/// Where on the way to a working phone it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rung {
    Program,
    Server,
    Phone,
    Screen,
    Pinduoduo,
    Comfort,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Weight {
    /// No task can run.
    Blocks,
    /// Tasks run, slower or less surely.
    Advice,
}

/// What can be done without a person, because it can be taken back or harms nobody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AutoFix {
    StartServer,
    /// Kicks offline transports of this server.
    ReconnectOffline {
        server: SocketAddr,
    },
    /// Joins a phone again whose TCP transport went away.
    Rejoin {
        server: SocketAddr,
        address: SocketAddr,
    },
    /// The three scales to 0; what they were is kept.
    AnimationsOff {
        scales: [Option<String>; 3],
    },
}

/// Why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    AdbMissing {
        looked: String,
    },
    AdbBroken {
        said: String,
    },
    PortHeld {
        port: u16,
        holder: Option<Holder>,
    },
    ServerDown {
        server: SocketAddr,
        said: String,
    },
    VersionClash {
        server: u32,
        program: u32,
        holder: Option<Holder>,
    },
    /// Another adb server is running; it and ours fight for USB phones.
    OtherServer {
        port: u16,
        holder: Option<Holder>,
    },
    /// The phone is there, but the other server has it.
    HeldByOtherServer {
        port: u16,
        holder: Option<Holder>,
    },
    NoPhone {
        serial: String,
    },
    Unreachable {
        address: SocketAddr,
        said: String,
    },
    Unauthorized,
    Offline,
    NoPermissions,
    WrongMode {
        mode: String,
    },
    Silent {
        said: String,
    },
    TwoRoads {
        roads: Vec<String>,
        used: String,
    },
    InputRefused {
        said: String,
    },
    ScreenOff,
    ScreenLocked,
    PddMissing {
        hos: bool,
    },
    PddDisabled,
    PddOld {
        version: String,
        oldest: String,
    },
    PddLoggedOut,
    AccessibilityTaken {
        client: String,
    },
    StorageLow {
        free_mb: u64,
    },
    AnimationsOn {
        scales: [Option<String>; 3],
    },
    /// Positive: the phone is ahead.
    ClockOff {
        seconds: i64,
    },
}

impl Cause {
    /// Stable word for the interface.
    pub fn code(&self) -> &'static str {
        match self {
            Cause::AdbMissing { .. } => "ADB_MISSING",
            Cause::AdbBroken { .. } => "ADB_FAILED",
            Cause::PortHeld { .. } => "ADB_PORT_HELD",
            Cause::ServerDown { .. } => "ADB_SERVER_DOWN",
            Cause::VersionClash { .. } => "ADB_VERSION_CLASH",
            Cause::OtherServer { .. } => "ADB_OTHER_SERVER",
            Cause::HeldByOtherServer { .. } => "PHONE_HELD",
            Cause::NoPhone { .. } => "PHONE_NOT_FOUND",
            Cause::Unreachable { .. } => "ADB_UNREACHABLE",
            Cause::Unauthorized => "UNAUTHORIZED",
            Cause::Offline => "PHONE_OFFLINE",
            Cause::NoPermissions => "USB_NO_PERMISSIONS",
            Cause::WrongMode { .. } => "PHONE_WRONG_MODE",
            Cause::Silent { .. } => "TIMEOUT",
            Cause::TwoRoads { .. } => "PHONE_TWO_ROADS",
            Cause::InputRefused { .. } => "INPUT_REFUSED",
            Cause::ScreenOff => "SCREEN_OFF",
            Cause::ScreenLocked => "SCREEN_LOCKED",
            Cause::PddMissing { .. } => "PDD_MISSING",
            Cause::PddDisabled => "PDD_DISABLED",
            Cause::PddOld { .. } => "PDD_OLD",
            Cause::PddLoggedOut => "LOGIN_WALL",
            Cause::AccessibilityTaken { .. } => "ACCESSIBILITY_TAKEN",
            Cause::StorageLow { .. } => "PHONE_STORAGE_LOW",
            Cause::AnimationsOn { .. } => "ANIMATIONS_ON",
            Cause::ClockOff { .. } => "PHONE_CLOCK_OFF",
        }
    }

    pub fn rung(&self) -> Rung {
        match self {
            Cause::AdbMissing { .. } | Cause::AdbBroken { .. } => Rung::Program,
            Cause::PortHeld { .. } | Cause::ServerDown { .. } | Cause::VersionClash { .. } | Cause::OtherServer { .. } => Rung::Server,
            Cause::HeldByOtherServer { .. }
            | Cause::NoPhone { .. }
            | Cause::Unreachable { .. }
            | Cause::Unauthorized
            | Cause::Offline
            | Cause::NoPermissions
            | Cause::WrongMode { .. }
            | Cause::Silent { .. }
            | Cause::TwoRoads { .. } => Rung::Phone,
            Cause::InputRefused { .. } | Cause::ScreenOff | Cause::ScreenLocked | Cause::AccessibilityTaken { .. } => Rung::Screen,
            Cause::PddMissing { .. } | Cause::PddDisabled | Cause::PddOld { .. } | Cause::PddLoggedOut => Rung::Pinduoduo,
            Cause::StorageLow { .. } | Cause::AnimationsOn { .. } | Cause::ClockOff { .. } => Rung::Comfort,
        }
    }

    pub(crate) fn weight(&self) -> Weight {
        match self {
            Cause::VersionClash { .. }
            | Cause::OtherServer { .. }
            | Cause::TwoRoads { .. }
            // Woken before each run (D19).
            | Cause::ScreenOff
            | Cause::PddOld { .. }
            | Cause::StorageLow { .. }
            | Cause::AnimationsOn { .. }
            | Cause::ClockOff { .. } => Weight::Advice,
            Cause::AdbMissing { .. }
            | Cause::AdbBroken { .. }
            | Cause::PortHeld { .. }
            | Cause::ServerDown { .. }
            | Cause::HeldByOtherServer { .. }
            | Cause::NoPhone { .. }
            | Cause::Unreachable { .. }
            | Cause::Unauthorized
            | Cause::Offline
            | Cause::NoPermissions
            | Cause::WrongMode { .. }
            | Cause::Silent { .. }
            | Cause::InputRefused { .. }
            | Cause::ScreenLocked
            | Cause::PddMissing { .. }
            | Cause::PddDisabled
            | Cause::PddLoggedOut
            | Cause::AccessibilityTaken { .. } => Weight::Blocks,
        }
    }
}

fn who(holder: Option<&Holder>) -> String {
    holder.map_or_else(|| "an unknown program".to_owned(), ToString::to_string)
}

/// The technical detail beside the sentence; names programs, numbers and adb's own words.
impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::AdbMissing { looked } => write!(f, "looked at {looked}"),
            Cause::AdbBroken { said } | Cause::Silent { said } | Cause::InputRefused { said } => f.write_str(said),
            Cause::PortHeld { port, holder } => write!(f, "port {port}: {}", who(holder.as_ref())),
            Cause::ServerDown { server, said } => write!(f, "{server}: {said}"),
            Cause::VersionClash { server, program, holder } => {
                write!(f, "server {server}, our adb {program}, server run by {}", who(holder.as_ref()))
            }
            Cause::OtherServer { port, holder } | Cause::HeldByOtherServer { port, holder } => {
                write!(f, "adb server on port {port}: {}", who(holder.as_ref()))
            }
            Cause::NoPhone { serial } => f.write_str(serial),
            Cause::Unreachable { address, said } => write!(f, "{address}: {said}"),
            Cause::Unauthorized
            | Cause::Offline
            | Cause::NoPermissions
            | Cause::ScreenOff
            | Cause::ScreenLocked
            | Cause::PddDisabled
            | Cause::PddLoggedOut => Ok(()),
            Cause::WrongMode { mode } => f.write_str(mode),
            Cause::TwoRoads { roads, used } => write!(f, "{} (using {used})", roads.join(", ")),
            Cause::PddMissing { hos } => f.write_str(if *hos { "only the HarmonyOS build is installed" } else { "" }),
            Cause::PddOld { version, oldest } => write!(f, "{version}, older than {oldest}"),
            Cause::AccessibilityTaken { client } => f.write_str(client),
            Cause::StorageLow { free_mb } => write!(f, "{free_mb} MB free"),
            Cause::AnimationsOn { scales } => {
                let shown: Vec<&str> = scales.iter().map(|scale| scale.as_deref().unwrap_or("1")).collect();
                f.write_str(&shown.join(" / "))
            }
            Cause::ClockOff { seconds } => write!(f, "{seconds:+} s"),
        }
    }
}

/// One thing found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub cause: Cause,
    pub weight: Weight,
    pub fix: Option<AutoFix>,
}
