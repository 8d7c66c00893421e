//! The process's clock, as a flow sees it. The monotonic side is tokio's, so that paused tests govern a flow's budgets too.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use cmautobuy_pdd::FlowClock;
use cmautobuy_protocol::WireTime;
use cmautobuy_task::Clock;

#[derive(Debug)]
pub(crate) struct FlowTime(pub(crate) Arc<dyn Clock>);

#[async_trait]
impl FlowClock for FlowTime {
    fn now(&self) -> WireTime {
        self.0.now()
    }

    fn instant(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }

    async fn pause(&self, wait: Duration) {
        tokio::time::sleep(wait).await;
    }
}
