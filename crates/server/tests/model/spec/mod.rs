//! The rules of T-205 with D3-D5, D8, D10 and D19 as one pure function, [`step`](step::step), written from their text and not from the server's code.
//! The model ([`crate::world`]) runs it among lossy networks and crashing clients; [`crate::agree`] compares the real server with it.
//!
//! Where the text names several refusals and no order among them, the order is: whose task is it, is it this request's key, is it this claim,
//! is it this execution, does the state allow it, does the lease live, is the version the one that was seen, is the device free.

pub(crate) mod step;

use std::collections::BTreeMap;

/// Server time. Milliseconds when compared with the server, coarse ticks in the model.
pub(crate) type Time = i64;
pub(crate) type TaskNo = usize;
pub(crate) type DeviceNo = usize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Status {
    Pending,
    Claimed,
    Running,
    Waiting,
    Succeeded,
    Failed,
    Canceled,
}

impl Status {
    pub(crate) fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Canceled)
    }
    /// RUNNING or WAITING_CONFIRMATION: started and not ended.
    pub(crate) fn is_open(self) -> bool {
        matches!(self, Self::Running | Self::Waiting)
    }
}

/// How an attempt ended (D3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum End {
    Succeeded,
    Failed,
    Cancelled,
    ManualReview,
}

/// Why a run goes on (D4); the reasons the server treats alike are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Reason {
    LeaseLost,
    Recollect,
    Reconcile,
}

/// A definite "no" (T-205 §11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum No {
    NotFound,
    Malformed,
    IdempotencyConflict,
    ClaimReplayExpired,
    DeviceNotReady,
    DeviceBusy,
    DeviceInUse,
    LeaseExpired,
    ClaimLost,
    TaskCanceled,
    VersionConflict,
    ExecutionMismatch,
    IllegalState,
}

/// An idempotency key; `old` ones carry a time more than 30 days back (D5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) n: u16,
    pub(crate) old: bool,
}

/// What shows that a call is about one's own claim: generation and token (T-205 §6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Proof {
    pub(crate) task: TaskNo,
    pub(crate) token: u16,
    pub(crate) generation: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Attempt {
    pub(crate) id: u16,
    pub(crate) no: u32,
}

/// One request. An execution is named by its generation: a generation is started once (T-205 §7).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Ask {
    Beat { instance: u8, predecessor: Option<u8>, serial: u8, ready: bool },
    Claim { key: Key, token: u16 },
    Start { key: Key, proof: Proof, version: u64, attempt: Attempt },
    Heartbeat { proof: Proof, execution: u64, placing: bool },
    Resume { key: Key, proof: Proof, execution: u64, reason: Reason, attempt: Attempt },
    Release { key: Key, proof: Proof, version: u64 },
    CancelAck { key: Key, proof: Proof, execution: u64, version: u64 },
    Report(Report),
    Create { purchase: bool },
    Cancel { task: TaskNo },
    Close { task: TaskNo, version: u64, checked: bool },
}

/// A result (D3, D8). `bytes` stands for everything else in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Report {
    pub(crate) task: TaskNo,
    pub(crate) generation: u64,
    pub(crate) execution: Option<u64>,
    pub(crate) attempt: Attempt,
    pub(crate) end: End,
    pub(crate) bytes: u8,
}

impl Report {
    /// D8: `<task>:<attempt>:result-v1|failure-v1`.
    pub(crate) fn key(&self) -> ResultKey {
        (self.task, self.attempt.id, self.end == End::Succeeded)
    }
}

pub(crate) type ResultKey = (TaskNo, u16, bool);

/// A request and the device whose login it carries; an administrator's has none of its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Call {
    pub(crate) device: DeviceNo,
    pub(crate) ask: Ask,
}

/// T-205 §11: what every lifecycle answer says. Server time is left out, it is the `now` of the step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Standing {
    pub(crate) task: TaskNo,
    pub(crate) status: Status,
    pub(crate) version: u64,
    pub(crate) generation: u64,
    pub(crate) execution: Option<u64>,
    pub(crate) lease: Option<Time>,
    pub(crate) cancel_requested: bool,
}

/// D5: what a refusal says of the caller's own task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Own {
    pub(crate) status: Status,
    pub(crate) version: u64,
    pub(crate) execution: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Answer {
    Beaten {
        active: Option<TaskNo>,
        cancels: Vec<TaskNo>,
        ready: bool,
    },
    NoTask,
    Stands(Standing),
    Reported {
        duplicate: bool,
        late: bool,
        status: Status,
    },
    /// An administrator's view.
    Managed {
        status: Status,
        version: u64,
    },
    No(No, Option<Own>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Holder {
    pub(crate) device: DeviceNo,
    pub(crate) token: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Task {
    pub(crate) purchase: bool,
    pub(crate) status: Status,
    pub(crate) version: u64,
    pub(crate) generation: u64,
    pub(crate) holder: Option<Holder>,
    pub(crate) lease: Option<Time>,
    pub(crate) execution: Option<u64>,
    pub(crate) recollecting: bool,
    pub(crate) cancel_requested: bool,
    pub(crate) order_may_exist: bool,
    /// Outcome of the highest attempt (D3): generation, number, outcome.
    pub(crate) latest: Option<(u64, u32, End)>,
}

impl Task {
    pub(crate) fn new(purchase: bool) -> Self {
        Self {
            purchase,
            status: Status::Pending,
            version: 1,
            generation: 0,
            holder: None,
            lease: None,
            execution: None,
            recollecting: false,
            cancel_requested: false,
            order_may_exist: false,
            latest: None,
        }
    }

    pub(crate) fn lease_lives(&self, now: Time) -> bool {
        self.lease.is_some_and(|end| now < end)
    }

    pub(crate) fn held_by(&self, device: DeviceNo) -> bool {
        self.holder.is_some_and(|holder| holder.device == device)
    }

    /// T-205 §5 as D4 narrows it: a live claim, any RUNNING, a live re-collect.
    pub(crate) fn takes_slot_of(&self, device: DeviceNo, now: Time) -> bool {
        self.held_by(device)
            && (self.status == Status::Running || ((self.status == Status::Claimed || self.recollecting) && self.lease_lives(now)))
    }

    pub(crate) fn own(&self) -> Own {
        Own { status: self.status, version: self.version, execution: self.execution }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Beat {
    pub(crate) at: Time,
    pub(crate) instance: u8,
    pub(crate) serial: u8,
    pub(crate) ready: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Device {
    pub(crate) beat: Option<Beat>,
    /// The last refused heartbeat: when, which instance (D19).
    pub(crate) rival: Option<(Time, u8)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Dispatch {
    pub(crate) device: DeviceNo,
    pub(crate) released: Option<Time>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum OpenedBy {
    Start,
    Resume,
    Recollect,
    Report,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Known {
    pub(crate) no: u32,
    pub(crate) generation: u64,
    pub(crate) opened_by: OpenedBy,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Stored {
    pub(crate) report: Report,
    pub(crate) late: bool,
    pub(crate) status: Status,
    pub(crate) duplicates: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Op {
    Claim,
    Start,
    Resume,
    Release,
    CancelAck,
}

/// What a key led to: task, generation, and the version right after (only `release` repeats that).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Identity {
    pub(crate) task: TaskNo,
    pub(crate) generation: u64,
    pub(crate) version: u64,
}

/// Everything the server knows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    /// In the order of creation, which is "oldest, then smallest id".
    pub(crate) tasks: Vec<Task>,
    pub(crate) devices: Vec<Device>,
    /// The request and what it led to; `None` is 204.
    pub(crate) keys: BTreeMap<(DeviceNo, Op, u16), (Ask, Option<Identity>)>,
    pub(crate) dispatches: BTreeMap<(TaskNo, u64), Dispatch>,
    /// Which generations were started, and how often.
    pub(crate) executions: BTreeMap<(TaskNo, u64), u8>,
    pub(crate) attempts: BTreeMap<(TaskNo, u16), Known>,
    pub(crate) results: BTreeMap<ResultKey, Stored>,
}

/// A rule left out on purpose. Each must be caught by a property of the model ([`crate::world`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Mutation {
    NoGenerationBump,
    TokenNotChecked,
    ReplayClaimsAnew,
    OtherRequestIsReplay,
    NoTaskForgotten,
    RunningIsClaimable,
    LiveClaimIsClaimable,
    ReleaseWithoutProof,
    ReleasedOfferedAgain,
    StartIgnoresVersion,
    StartsTwice,
    ReplayExtendsLease,
    HeartbeatRevives,
    ResumeIgnoresSlot,
    SlotIgnoresRunning,
    CancelStopsRunning,
    AckUnasked,
    RecollectReopens,
    OldGenerationSettles,
    AnyAttemptSettles,
    DuplicateCounts,
    ResultNeedsLease,
    TerminalRegresses,
    CloseUnderLease,
    CloseRequeues,
    AckIgnoresOrder,
    CancelledHidesOrder,
    CloseUnchecked,
    RivalIgnored,
    UnreadyClaims,
    LiveRunIsClaimable,
    VersionStands,
    ResultForgotten,
    LateThrownAway,
}

/// T-205 §12's times, and the one rule that is broken, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Rules {
    pub(crate) claim_lease: Time,
    pub(crate) run_lease: Time,
    pub(crate) heartbeat_ttl: Time,
    /// D5: how long a device is not offered what it released.
    pub(crate) released_for: Time,
    pub(crate) broken: Option<Mutation>,
}

impl Rules {
    /// T-205 §6-§8, D5, in milliseconds.
    pub(crate) const REAL: Self =
        Self { claim_lease: 600_000, run_lease: 90_000, heartbeat_ttl: 120_000, released_for: 600_000, broken: None };

    pub(crate) fn breaks(&self, mutation: Mutation) -> bool {
        self.broken == Some(mutation)
    }
}
