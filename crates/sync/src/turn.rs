//! How a loop runs: on a timer *and* a nudge, no input, idempotent; a failed turn is left to the next one (architecture §3 rule 18).

use std::future::Future;
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// What a turn asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// There may be more to do at once.
    Again,
    /// Look again at the timer or at a nudge.
    Wait,
    /// Look again no later than this.
    Within(Duration),
}

/// Runs `turn` until `stop`.
pub(crate) async fn run<F, Fut>(name: &'static str, stop: CancellationToken, nudge: &Notify, every: Duration, mut turn: F)
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Next>,
{
    loop {
        let wait = tokio::select! {
            () = stop.cancelled() => break,
            next = turn() => match next {
                Next::Again => continue,
                Next::Wait => every,
                Next::Within(wait) => wait.min(every),
            },
        };
        tokio::select! {
            () = stop.cancelled() => break,
            () = nudge.notified() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
    tracing::debug!(name, "loop ended");
}
