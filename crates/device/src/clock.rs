//! The only place of this crate that reads the monotonic clock.
//!
//! It never reads the wall clock: ages and deadlines are elapsed time (D3).

use std::time::Instant;

pub(crate) fn now() -> Instant {
    Instant::now()
}
