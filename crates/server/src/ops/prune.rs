//! Forgetting what nobody can ask for any more: answers to keys older than any key that is still taken, and logins that ran out. Tasks,
//! dispatches, results and events are kept for ever (D3).

use std::sync::Arc;
use std::time::Duration;

use cmautobuy_protocol::WireTime;

use crate::house::House;
use crate::refusal::CallError;
use crate::store::idempotency::idempotency_prune;
use crate::store::session::session_prune;

/// Between two prunings of a server that runs.
const EVERY: Duration = Duration::from_secs(3600);
/// A day more than the 30 a claim key lives (D5), so that a key is refused as too old before what it led to is forgotten.
const KEPT_MS: i64 = 31 * 24 * 3600 * 1000;
/// Rows in one transaction: claims wait for no more than that.
const AT_ONCE: u32 = 500;

/// Rows that were forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Pruned {
    /// Answers to lifecycle keys more than 31 days old.
    pub keys: u64,
    /// Logins whose tokens have all run out.
    pub logins: u64,
}

/// Blocks. Each step is a short transaction of its own, so it can be stopped anywhere.
pub(crate) fn prune(house: &House) -> Result<Pruned, CallError> {
    let mut pruned = Pruned::default();
    let before = |now: WireTime| now.plus_ms(-KEPT_MS);
    pruned.keys = until_none(|| house.write(|call| Ok(idempotency_prune(call.tx, before(call.now), AT_ONCE)?)))?;
    pruned.logins = until_none(|| house.write(|call| Ok(session_prune(call.tx, call.now, AT_ONCE)?)))?;
    Ok(pruned)
}

fn until_none(mut step: impl FnMut() -> Result<usize, CallError>) -> Result<u64, CallError> {
    let mut all = 0;
    loop {
        match step()? {
            0 => return Ok(all),
            some => all += some as u64,
        }
    }
}

/// For as long as the server runs.
pub(crate) async fn now_and_then(house: Arc<House>) {
    loop {
        tokio::time::sleep(EVERY).await;
        match house.blocking(prune).await {
            Ok(Pruned { keys, logins }) => tracing::info!(keys, logins, "pruned"),
            Err(error) => tracing::warn!(error = &error as &dyn std::error::Error, "pruning did not come to its end; it is tried again"),
        }
    }
}
