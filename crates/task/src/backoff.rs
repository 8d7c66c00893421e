//! When to try again (D8): capped exponential with full jitter, for days if need be.

use std::time::Duration;

use cmautobuy_protocol::WireTime;

/// Shape of a retry schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Backoff {
    pub first: Duration,
    pub longest: Duration,
}

impl Backoff {
    /// For calls to the server.
    pub const SERVER: Self = Self { first: Duration::from_secs(1), longest: Duration::from_secs(300) };

    /// How long to wait after `failures` failures in a row (1 = after the first).
    ///
    /// `dice` is a random number in `0..=u32::MAX`; full jitter keeps a fleet from knocking in step after an outage. Never zero.
    pub fn delay(self, failures: u32, dice: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let ceiling = self.first.saturating_mul(1 << doublings).min(self.longest);
        let share = ceiling.as_millis() * (u128::from(dice) + 1) / (u128::from(u32::MAX) + 1);
        Duration::from_millis(u64::try_from(share).unwrap_or(u64::MAX).max(100))
    }
}

/// Whether a stored retry time has come. One further away than the longest back-off is due now: the clock was set back (D8).
pub fn is_due(next_retry_at: Option<WireTime>, now: WireTime, longest: Duration) -> bool {
    let longest_ms = i64::try_from(longest.as_millis()).unwrap_or(i64::MAX);
    next_retry_at.is_none_or(|at| at <= now || at.ms_since(now) > longest_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> WireTime {
        WireTime::from_unix_ms(ms).expect("small test time")
    }

    #[test]
    fn delay_grows_and_is_capped() {
        let b = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(60) };
        for (failures, dice, want_ms, why) in [
            (1, u32::MAX, 1_000, "the first wait may reach its ceiling"),
            (2, u32::MAX, 2_000, "each failure doubles the ceiling"),
            (7, u32::MAX, 60_000, "the ceiling is capped"),
            (4_000_000, u32::MAX, 60_000, "days of failures do not overflow"),
            (3, 0, 100, "jitter may be short but never zero, or a dead server is hammered"),
            (0, u32::MAX, 1_000, "no failure counts as the first"),
        ] {
            assert_eq!(b.delay(failures, dice).as_millis(), want_ms, "{why}");
        }
    }

    #[test]
    fn due_times() {
        let longest = Duration::from_secs(300);
        for (next, now, due, why) in [
            (None, at(0), true, "never tried is due"),
            (Some(at(1_000)), at(1_000), true, "the moment itself is due"),
            (Some(at(2_000)), at(1_000), false, "a second early is not due"),
            (Some(at(301_000)), at(1_000), false, "exactly the longest wait is believed"),
            (Some(at(301_001)), at(1_000), true, "further away than any back-off means the clock was set back"),
        ] {
            assert_eq!(is_due(next, now, longest), due, "{why}");
        }
    }
}
