//! One look at the phone: the tree, what was in front, and whether it may be acted on (D11).
//!
//! A capture is consumed by one action (D10), so it is not `Clone`, and only this crate can make one.
//! It never decides which page is shown; that is the recogniser's work in `pdd`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::error::PhoneError;
use crate::tree::UiTree;

/// Names a capture within this process; tree and screenshot of one look share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CaptureId(pub u64);

impl CaptureId {
    pub(crate) fn next() -> CaptureId {
        static LAST: AtomicU64 = AtomicU64::new(0);
        CaptureId(LAST.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

impl fmt::Display for CaptureId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "capture {}", self.0)
    }
}

/// The window that has the focus.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Foreground {
    pub package: String,
    /// As the phone prints it: `.activity.NewPageActivity` or the full class name. Empty for a window without one.
    pub activity: String,
}

impl fmt::Display for Foreground {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.package, self.activity)
    }
}

/// May this capture be acted on? Only `Ok` may (D11).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    Ok,
    NeverIdle,
    TreeEmpty,
    TreeStale,
    SecureOrBlack,
    WrongApp,
    Popup,
    LoginWall,
    RiskWall,
    DeviceGone,
}

impl Verdict {
    /// The word of D11.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::NeverIdle => "never_idle",
            Verdict::TreeEmpty => "tree_empty",
            Verdict::TreeStale => "tree_stale",
            Verdict::SecureOrBlack => "secure_or_black",
            Verdict::WrongApp => "wrong_app",
            Verdict::Popup => "popup",
            Verdict::LoginWall => "login_wall",
            Verdict::RiskWall => "risk_wall",
            Verdict::DeviceGone => "device_gone",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The picture that belongs to a capture.
#[derive(Clone, PartialEq, Eq)]
pub struct Screenshot {
    pub png: Vec<u8>,
    /// Milliseconds from the end of the dump to the end of the picture.
    pub skew_ms: i64,
}

impl fmt::Debug for Screenshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Screenshot").field("bytes", &self.png.len()).field("skew_ms", &self.skew_ms).finish()
    }
}

/// One look at the phone. Keep `tree` and `xml` (they are shared) before handing it to the guard.
pub struct Capture {
    pub id: CaptureId,
    pub tree: Arc<UiTree>,
    /// The dump exactly as it arrived; empty when there was none.
    pub xml: Arc<[u8]>,
    pub foreground: Foreground,
    /// The goods of the page in front, when they were asked for and the page has some.
    pub goods_id: Option<String>,
    pub verdict: Verdict,
    pub dump_ended: Instant,
    /// Milliseconds the dump took, retries included.
    pub dump_ms: u32,
    pub screenshot: Option<Screenshot>,
    /// The phone it was taken on. Private, so that no other crate can make a capture up.
    pub(crate) serial: Arc<str>,
}

impl Capture {
    /// `Ok(())` when it may be acted on, else the error a flow reports.
    pub fn ensure_ok(&self) -> Result<(), PhoneError> {
        match self.verdict {
            Verdict::Ok => Ok(()),
            Verdict::NeverIdle => Err(PhoneError::NeverIdle),
            Verdict::DeviceGone => Err(PhoneError::DeviceGone { serial: self.serial.to_string() }),
            Verdict::TreeEmpty
            | Verdict::TreeStale
            | Verdict::SecureOrBlack
            | Verdict::WrongApp
            | Verdict::Popup
            | Verdict::LoginWall
            | Verdict::RiskWall => Err(PhoneError::BadScreen { verdict: self.verdict }),
        }
    }

    /// Serial of the phone it was taken on.
    pub fn serial(&self) -> &str {
        &self.serial
    }
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture")
            .field("id", &self.id.0)
            .field("nodes", &self.tree.len())
            .field("foreground", &self.foreground)
            .field("verdict", &self.verdict)
            .field("dump_ms", &self.dump_ms)
            .finish_non_exhaustive()
    }
}

/// What a capture should contain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaptureWant {
    /// Another app in front gives [`Verdict::WrongApp`].
    pub expect_package: Option<String>,
    pub screenshot: bool,
    /// Also ask which goods the page shows.
    pub goods: bool,
}

impl CaptureWant {
    /// The tree of whatever is in front.
    pub fn anything() -> CaptureWant {
        CaptureWant::default()
    }

    /// The tree of this app, `wrong_app` otherwise.
    pub fn of(package: impl Into<String>) -> CaptureWant {
        CaptureWant { expect_package: Some(package.into()), ..CaptureWant::default() }
    }

    /// Also ask which goods the page shows.
    #[must_use]
    pub fn with_goods(mut self) -> CaptureWant {
        self.goods = true;
        self
    }

    /// Also take a picture.
    #[must_use]
    pub fn with_screenshot(mut self) -> CaptureWant {
        self.screenshot = true;
        self
    }
}
