//! The flow's clock, as a trait: this room reads none itself.
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
