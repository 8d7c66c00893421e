//! What a clock is. The only implementation that reads real time lives in `app` (one clock module per process).

use std::time::Duration;

use cmautobuy_protocol::WireTime;

/// Monotonic time since an origin fixed for the process; survives wall clock changes, dies with the process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Mono(pub Duration);

impl Mono {
    /// Time from `earlier` to `self`; zero when `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// Hands out the two kinds of time.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Wall time, for records and the wire.
    fn now(&self) -> WireTime;
    /// Monotonic time, for leases (D3).
    fn mono(&self) -> Mono;
}
