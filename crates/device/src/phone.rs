//! The seam every other room sees: a phone that can be looked at and, with a ticket, touched.
//!
//! There is no way to send a tap, key or link without a [`Ticket`], and only the guard makes those (D10).

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;

use crate::capture::{Capture, CaptureWant, Foreground};
use crate::error::PhoneError;
use crate::guard::Ticket;
use crate::tree::{Bounds, Point};

/// Package of the mainland Android app.
pub const PDD_PACKAGE: &str = "com.xunmeng.pinduoduo";
/// Package of the HarmonyOS build (facts/pdd 1.1).
pub const PDD_PACKAGE_HOS: &str = "com.xunmeng.pinduoduo.hos";

/// Size of the screen in its natural orientation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScreenSize {
    /// Pixels.
    pub width: i32,
    /// Pixels.
    pub height: i32,
    /// Dots per inch; 160 means 1 dp is 1 px.
    pub density_dpi: u32,
}

impl ScreenSize {
    /// Density-independent pixels to pixels, rounded up.
    pub fn dp(&self, dp: u32) -> i32 {
        (u64::from(dp) * u64::from(self.density_dpi)).div_ceil(160) as i32
    }

    /// The screen as a rectangle when turned by `rotation` quarters.
    pub fn bounds(&self, rotation: u8) -> Bounds {
        if rotation.is_multiple_of(2) { Bounds::new(0, 0, self.width, self.height) } else { Bounds::new(0, 0, self.height, self.width) }
    }

    pub fn contains(&self, point: Point, rotation: u8) -> bool {
        self.bounds(rotation).contains(point)
    }
}

/// What does not change while the phone is plugged in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhoneFacts {
    pub serial: String,
    pub model: String,
    pub manufacturer: String,
    /// `ro.build.version.release`, for example `14`.
    pub android_version: String,
    /// API level.
    pub sdk: u32,
    pub screen: ScreenSize,
    /// `None` when Pinduoduo is not installed.
    pub pdd_version: Option<String>,
}

/// How the tree of the screen is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reader {
    /// `uiautomator dump`: about two seconds, and not on a screen that never rests.
    Stock,
    /// `uiautomator dump --compressed`: without the nodes that only decorate.
    Compressed,
    /// A program that stays on the phone and answers in a fraction of a second.
    Agent,
}

impl Reader {
    pub fn as_str(self) -> &'static str {
        match self {
            Reader::Stock => "stock",
            Reader::Compressed => "compressed",
            Reader::Agent => "agent",
        }
    }
}

/// The agent's file, as pinned when the product was packaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentFile {
    /// Lower-case hexadecimal.
    pub sha256: String,
}

/// Which readers may be the first choice. The stock one always may, and `--compressed` always serves a screen that does not rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadersAllowed {
    pub compressed: bool,
    /// `None`: not allowed, or not packaged.
    pub agent: Option<AgentFile>,
}

/// What one reader did when it was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    pub reader: Reader,
    /// How long a tree took, or why there was none.
    pub result: Result<Duration, String>,
}

/// A phone. Every call has its own deadline and is cancelled by dropping its future.
#[async_trait]
pub trait Phone: Send + Sync + Debug {
    fn serial(&self) -> &str;

    async fn facts(&self) -> Result<PhoneFacts, PhoneError>;

    async fn foreground(&self) -> Result<Foreground, PhoneError>;

    /// The goods id of the page on top, read passively; `None` when the page has none.
    async fn goods_on_top(&self) -> Result<Option<String>, PhoneError>;

    /// Looks once. A screen that cannot be read is a verdict, a phone that cannot be reached is an error.
    async fn capture(&self, want: &CaptureWant) -> Result<Capture, PhoneError>;

    /// Tries every allowed way to read the screen and uses the fastest from then on. Called once after connecting; without it the
    /// stock reader is used. A reader that fails later is replaced by the next by itself.
    async fn measure(&self, allowed: &ReadersAllowed) -> Result<Vec<Measured>, PhoneError> {
        let _ = allowed;
        Ok(Vec::new())
    }

    /// Does the one action of this ticket, after checking that the foreground is unchanged and the look is fresh.
    async fn act(&self, ticket: Ticket) -> Result<(), PhoneError>;

    /// A PNG of the screen.
    async fn screenshot(&self) -> Result<Vec<u8>, PhoneError>;

    /// The phone's wall clock, milliseconds since 1970 UTC.
    async fn clock(&self) -> Result<i64, PhoneError>;
}
