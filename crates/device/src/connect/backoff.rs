//! Waiting longer after each failure, never at the same moment as everybody else.
//!
//! Ten desks that lost one Wi-Fi must not all knock again in the same second, so half of each wait is chance.

use std::time::Duration;

/// Doubling waits with jitter. Reads no clock and sleeps for nobody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    failures: u32,
}

impl Backoff {
    /// Reconnecting to a phone or a server: a second at first, half a minute at most.
    pub const PHONE: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30));

    pub const fn new(first: Duration, longest: Duration) -> Backoff {
        Backoff { first, longest, failures: 0 }
    }

    /// It worked; the next failure waits shortly again.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// Failures since the last success.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// How long to wait now. `chance` is in 0..1 and decides the second half of the wait.
    #[must_use]
    pub fn next(&mut self, chance: f64) -> Duration {
        let whole = self.first.saturating_mul(1_u32.checked_shl(self.failures).unwrap_or(u32::MAX)).min(self.longest);
        self.failures = self.failures.saturating_add(1);
        whole.mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0)
    }

    /// [`Backoff::next`] with a throw of the dice.
    #[must_use]
    pub fn next_random(&mut self) -> Duration {
        self.next(rand::random::<f64>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30));
        let waits: Vec<u64> = (0..8).map(|_| backoff.next(1.0).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30, 30], "a phone that stays away is asked less and less, never never");
        backoff.reset();
        assert_eq!(backoff.next(1.0), Duration::from_secs(1), "a success makes it eager again");
    }

    #[test]
    fn chance_moves_only_the_second_half() {
        for (chance, want_ms) in [(0.0, 500), (0.5, 750), (1.0, 1000), (7.0, 1000), (-1.0, 500)] {
            let wait = Backoff::PHONE.clone().next(chance);
            assert_eq!(wait, Duration::from_millis(want_ms), "chance {chance} must keep the wait within half and whole");
        }
        let mut worn = Backoff { failures: u32::MAX, ..Backoff::PHONE };
        assert_eq!(worn.next(1.0), Duration::from_secs(30), "weeks of failures must not overflow");
    }
}
