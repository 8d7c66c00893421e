//! The only place of this crate that reads a clock or makes ids from one. Every expiry uses this server's UTC clock (T-205 §6);
//! it never trusts a time a client sent.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use cmautobuy_protocol::WireTime;
use jiff::Timestamp;
use uuid::{ContextV7, Uuid};

/// Where the server gets its time from.
pub trait Clock: Send + Sync + fmt::Debug {
    fn now(&self) -> WireTime;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> WireTime {
        WireTime::new(Timestamp::now())
    }
}

/// A clock that stands still until it is moved.
#[derive(Debug)]
pub struct TestClock(Mutex<WireTime>);

impl TestClock {
    pub fn new(at: WireTime) -> Self {
        Self(Mutex::new(at))
    }

    pub fn set(&self, at: WireTime) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = at;
    }

    pub fn advance(&self, by: std::time::Duration) {
        let mut at = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *at = at.plus_ms(i64::try_from(by.as_millis()).unwrap_or(i64::MAX));
    }
}

impl Clock for TestClock {
    fn now(&self) -> WireTime {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long something took, on the machine's monotonic clock; for figures only, never for a decision.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(std::time::Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(std::time::Instant::now())
    }

    pub(crate) fn elapsed(self) -> std::time::Duration {
        self.0.elapsed()
    }
}

/// Makes UUIDv7 ids of a given time; ids of one millisecond are still in order, so that "oldest first, smallest id" is creation order.
#[derive(Debug, Default)]
pub(crate) struct Ids(Mutex<ContextV7>);

impl Ids {
    pub(crate) fn next(&self, now: WireTime) -> Uuid {
        let context = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ms = u64::try_from(now.unix_ms()).unwrap_or(0);
        let nanos = u32::try_from(ms % 1000).unwrap_or(0) * 1_000_000;
        Uuid::new_v7(uuid::Timestamp::from_unix(&*context, ms / 1000, nanos))
    }
}
