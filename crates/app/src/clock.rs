//! The one place of the client that reads a clock.

use std::time::Instant;

use cmautobuy_protocol::WireTime;
use cmautobuy_task::{Clock, Mono};
use jiff::Timestamp;

/// The machine's clocks.
#[derive(Debug)]
pub(crate) struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    pub(crate) fn new() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> WireTime {
        WireTime::new(Timestamp::now())
    }

    fn mono(&self) -> Mono {
        Mono(self.origin.elapsed())
    }
}
