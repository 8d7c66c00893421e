//! The only place of this crate that reads the monotonic clock.
//!
//! It never reads the wall clock: ages and deadlines are elapsed time (D3). It is tokio's clock, which is the system's except in tests
//! that stop it.

use std::time::Instant;

pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
