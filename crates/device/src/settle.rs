//! When a page has come to rest: two looks in a row that say the same about what the caller reads.
//!
//! A dump may be taken in the middle of a movement, so one look is never believed (facts/pdd 6). Every wait has a budget, and nothing is
//! repeated that is known not to help.

use std::time::Duration;

use crate::capture::{Capture, CaptureWant, Verdict};
use crate::error::PhoneError;
use crate::phone::Phone;

/// Remembers the last reading and how many looks are left.
#[derive(Clone, Debug)]
pub struct Agreement<T> {
    last: Option<T>,
    looks_left: u32,
}

impl<T> Agreement<T> {
    pub fn within(looks: u32) -> Agreement<T> {
        Agreement { last: None, looks_left: looks }
    }

    /// Takes one look off the budget; false when none is left.
    pub fn may_look(&mut self) -> bool {
        let left = self.looks_left > 0;
        self.looks_left = self.looks_left.saturating_sub(1);
        left
    }

    /// Gives the reading back when the one before says the same.
    pub fn offer(&mut self, reading: T, same: impl Fn(&T, &T) -> bool) -> Option<T> {
        if self.last.as_ref().is_some_and(|before| same(before, &reading)) {
            return Some(reading);
        }
        self.last = Some(reading);
        None
    }

    /// Something else was on the screen: what was read before it no longer counts.
    pub fn disturbed(&mut self) {
        self.last = None;
    }
}

/// How long a page may take to come to rest.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    pub looks: u32,
    /// For all looks together.
    pub budget: Duration,
    /// Between two looks.
    pub pause: Duration,
}

/// A look that agrees with the one before it. It may still be acted on.
#[derive(Debug)]
pub struct Settled<T> {
    pub capture: Capture,
    pub reading: T,
}

/// Looks until two readings in a row agree; `None` when the budget ends first. `read` answers `None` for a page that is not the one
/// expected.
///
/// # Errors
/// The phone's, at once; and [`PhoneError::NeverIdle`] when it says so twice in a row, because a third time costs as much and says the same.
pub async fn settle<T: PartialEq>(
    phone: &dyn Phone,
    want: &CaptureWant,
    patience: Patience,
    mut read: impl FnMut(&Capture) -> Option<T>,
) -> Result<Option<Settled<T>>, PhoneError> {
    let looking = async {
        let mut agreement = Agreement::within(patience.looks);
        let mut restless = 0;
        while agreement.may_look() {
            let capture = phone.capture(want).await?;
            restless = if capture.verdict == Verdict::NeverIdle { restless + 1 } else { 0 };
            if restless == 2 || capture.verdict == Verdict::DeviceGone {
                capture.ensure_ok()?;
            }
            let reading = if capture.verdict == Verdict::Ok { read(&capture) } else { None };
            match reading {
                Some(reading) => {
                    if let Some(reading) = agreement.offer(reading, T::eq) {
                        return Ok(Some(Settled { capture, reading }));
                    }
                }
                None => agreement.disturbed(),
            }
            tokio::time::sleep(patience.pause).await;
        }
        Ok(None)
    };
    tokio::time::timeout(patience.budget, looking).await.unwrap_or(Ok(None))
}
