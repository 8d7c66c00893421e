//! The flow's clock, and the only place of this room that reads one.
//!
//! The flow asks for wall time once (`captured_at`), for monotonic time to keep budgets, and for pauses, so that tests can make them free.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use cmautobuy_protocol::WireTime;

/// Time as the flow needs it.
#[async_trait]
pub trait FlowClock: Send + Sync {
    /// Wall clock, for `captured_at`.
    fn now(&self) -> WireTime;

    /// Monotonic; compared with the end of a dump (D10).
    fn instant(&self) -> Instant;

    /// Waits. Dropping the future ends the wait.
    async fn pause(&self, time: Duration);
}

/// The machine's clocks and tokio's timer.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

#[async_trait]
impl FlowClock for SystemClock {
    fn now(&self) -> WireTime {
        WireTime::new(jiff::Timestamp::now())
    }

    fn instant(&self) -> Instant {
        Instant::now()
    }

    async fn pause(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}
