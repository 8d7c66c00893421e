//! Lease arithmetic (D3): elapsed monotonic time from when the request was *sent*, and the server's own difference
//! `lease_expires_at - server_time`. The local wall clock is only used to notice that the machine slept or was set.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cmautobuy_protocol::lifecycle::Standing;
use cmautobuy_protocol::{ExecutionId, RemoteTaskId, WireTime};

use crate::{Clock, Mono};

/// Wall and monotonic time may part by this much before a lease counts as unknown.
pub const MAX_CLOCK_DRIFT: Duration = Duration::from_secs(2);

/// One answer's lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lease {
    sent_mono: Mono,
    sent_wall: WireTime,
    length: Duration,
}

/// What a lease is worth now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeaseState {
    Live {
        left: Duration,
    },
    /// The clocks moved apart (sleep, resume, clock set): heartbeat before the next tap.
    Unknown,
    Expired,
}

impl Lease {
    /// The lease in `standing`, whose request was sent at (`sent_mono`, `sent_wall`). `None` when it grants none.
    pub fn from_standing(standing: &Standing, sent_mono: Mono, sent_wall: WireTime) -> Option<Self> {
        let left_ms = standing.lease_expires_at?.ms_since(standing.server_time);
        let length = Duration::from_millis(u64::try_from(left_ms).ok().filter(|ms| *ms > 0)?);
        Some(Self { sent_mono, sent_wall, length })
    }

    pub fn state(&self, mono: Mono, wall: WireTime) -> LeaseState {
        let elapsed = mono.since(self.sent_mono);
        let wall_elapsed_ms = i128::from(wall.ms_since(self.sent_wall));
        let drift = (wall_elapsed_ms - elapsed.as_millis() as i128).unsigned_abs();
        if elapsed >= self.length {
            LeaseState::Expired
        } else if drift > MAX_CLOCK_DRIFT.as_millis() {
            LeaseState::Unknown
        } else {
            LeaseState::Live { left: self.length - elapsed }
        }
    }
}

/// Why the run lease is gone for good.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LostReason {
    /// The server refused to renew.
    Refused,
    /// The task ended on the server (closed or cancelled by an administrator).
    Ended,
}

/// The one run of this process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Running {
    pub task: RemoteTaskId,
    pub execution: ExecutionId,
    pub generation: u64,
    pub lease: Option<Lease>,
    pub cancel_requested: bool,
    pub lost: Option<LostReason>,
    /// What the next heartbeat reports as `step`.
    pub step: String,
}

/// Shared by `sync` (writes the lease) and `engine` (reads it, says its step). Owned by `app`.
///
/// Not in SQLite because a monotonic lease cannot live there. Empty while nothing runs.
#[derive(Debug, Default)]
pub struct LeaseCell(Mutex<Option<Running>>);

impl LeaseCell {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Running>> {
        // Every write below leaves the value whole, so a poisoned lock still holds a consistent one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn current(&self) -> Option<Running> {
        self.lock().clone()
    }

    /// A start or resume was answered: this run holds the phone now.
    pub fn begin(&self, running: Running) {
        *self.lock() = Some(running);
    }

    /// The run is over, or the process gave it up.
    pub fn end(&self) {
        *self.lock() = None;
    }

    pub fn say_step(&self, step: &str) {
        if let Some(running) = self.lock().as_mut() {
            step.clone_into(&mut running.step);
        }
    }

    /// Applies the answer to a heartbeat of `execution`; an answer for another execution is ignored.
    pub fn renew(&self, execution: ExecutionId, lease: Option<Lease>, cancel_requested: bool) {
        if let Some(running) = self.lock().as_mut().filter(|r| r.execution == execution) {
            running.lease = lease;
            running.cancel_requested |= cancel_requested;
        }
    }

    pub fn lose(&self, execution: ExecutionId, reason: LostReason) {
        if let Some(running) = self.lock().as_mut().filter(|r| r.execution == execution) {
            running.lost = Some(reason);
            running.lease = None;
        }
    }

    pub fn request_cancel(&self, task: RemoteTaskId) {
        if let Some(running) = self.lock().as_mut().filter(|r| r.task == task) {
            running.cancel_requested = true;
        }
    }

    /// State of the lease now; `None` while nothing runs.
    pub fn state(&self, clock: &dyn Clock) -> Option<LeaseState> {
        let (mono, wall) = (clock.mono(), clock.now());
        self.lock().as_ref().map(|r| r.lease.map_or(LeaseState::Expired, |lease| lease.state(mono, wall)))
    }
}

#[cfg(test)]
mod tests {
    use cmautobuy_protocol::ServerStatus;

    use super::*;

    fn at(ms: i64) -> WireTime {
        WireTime::from_unix_ms(1_760_000_000_000 + ms).expect("test time")
    }
    fn mono(ms: u64) -> Mono {
        Mono(Duration::from_millis(ms))
    }
    fn standing(server_now: i64, expires: Option<i64>) -> Standing {
        Standing {
            task_id: RemoteTaskId::from_uuid(uuid_of(1)),
            status: ServerStatus::Running,
            version: 1,
            claim_generation: 1,
            execution_id: Some(ExecutionId::from_uuid(uuid_of(2))),
            server_time: at(server_now),
            lease_expires_at: expires.map(at),
            cancel_requested: false,
        }
    }
    fn uuid_of(n: u8) -> uuid::Uuid {
        uuid::Uuid::from_bytes([n; 16])
    }

    #[test]
    fn a_lease_counts_from_when_the_request_was_sent() {
        // The server's clock is an hour ahead; only its own difference (90 s) matters.
        let lease = Lease::from_standing(&standing(3_600_000, Some(3_690_000)), mono(10_000), at(0)).expect("90 s lease");
        for (mono_ms, wall_ms, want, why) in [
            (10_000, 0, LeaseState::Live { left: Duration::from_secs(90) }, "just sent: all of it is left"),
            (99_999, 89_999, LeaseState::Live { left: Duration::from_millis(1) }, "the answer's travel time is already spent"),
            (100_000, 90_000, LeaseState::Expired, "90 s after sending it is over"),
            (20_000, 12_000, LeaseState::Live { left: Duration::from_secs(80) }, "exactly 2 s of drift is tolerated"),
            (20_000, 12_001, LeaseState::Unknown, "more than 2 s of drift means sleep or a set clock"),
            (20_000, 5_000, LeaseState::Unknown, "a clock set back is drift too"),
            (200_000, 5_000, LeaseState::Expired, "expired wins over unknown"),
        ] {
            assert_eq!(lease.state(mono(mono_ms), at(wall_ms)), want, "{why}");
        }
    }

    #[test]
    fn an_answer_without_time_left_is_no_lease() {
        for (expires, why) in
            [(None, "no lease in the answer"), (Some(0), "zero length"), (Some(-1), "already over: a replay never extends a lease")]
        {
            assert_eq!(Lease::from_standing(&standing(0, expires), mono(0), at(0)), None, "{why}");
        }
    }

    #[test]
    fn an_answer_for_another_execution_changes_nothing() {
        let cell = LeaseCell::default();
        let running = Running {
            task: RemoteTaskId::from_uuid(uuid_of(1)),
            execution: ExecutionId::from_uuid(uuid_of(2)),
            generation: 1,
            lease: None,
            cancel_requested: false,
            lost: None,
            step: String::new(),
        };
        cell.begin(running.clone());
        cell.renew(ExecutionId::from_uuid(uuid_of(9)), None, true);
        cell.lose(ExecutionId::from_uuid(uuid_of(9)), LostReason::Refused);
        assert_eq!(cell.current(), Some(running), "a late answer of an earlier run must not touch this one");
        cell.renew(ExecutionId::from_uuid(uuid_of(2)), None, true);
        cell.renew(ExecutionId::from_uuid(uuid_of(2)), None, false);
        assert!(cell.current().expect("still running").cancel_requested, "a cancel request is never taken back by a later answer");
    }
}
