//! 03 §7.1 as a pure function, with the additions of contract D2 and D5 (docs/adr/0002).

use std::fmt;

use cmautobuy_protocol::TaskType;

/// Where a task stands on this client (D2). Its text exists only in `store`'s codec.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TaskState {
    Claimed,
    Running,
    ResultPending,
    RetryWait,
    ManualReview,
    Succeeded,
    Failed,
    Cancelled,
}

impl TaskState {
    pub const ALL: [Self; 8] = [
        Self::Claimed,
        Self::Running,
        Self::ResultPending,
        Self::RetryWait,
        Self::ManualReview,
        Self::Succeeded,
        Self::Failed,
        Self::Cancelled,
    ];

    /// Ended on this client; only a person or a new claim moves it again.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Succeeded | Self::Failed | Self::Cancelled => true,
            Self::Claimed | Self::Running | Self::ResultPending | Self::RetryWait | Self::ManualReview => false,
        }
    }

    /// Still needs the phone, so no further task may be claimed (D5.3).
    pub const fn needs_phone(self) -> bool {
        match self {
            Self::Claimed | Self::Running | Self::RetryWait => true,
            Self::ResultPending | Self::ManualReview | Self::Succeeded | Self::Failed | Self::Cancelled => false,
        }
    }
}

/// What happened to a task.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Event {
    /// `claim-next` answered 200 for a task already known (D5.4).
    Reclaimed,
    /// `start` or `resume` was answered definitely; the worker may touch the phone.
    RunStarted,
    /// The phone could not be reached and was not touched.
    PhoneUnreachable,
    /// The task's own data is unusable.
    BadTaskData,
    /// A person stopped it, at a safe point.
    OperatorStopped,
    /// The claim is gone on the server (D5.5).
    ClaimLost,
    /// The result is in the database with its outbox row (03 §5.1).
    ResultSaved,
    /// Page time-out, network trouble: worth another run.
    RecoverableFailure,
    /// Captcha, login, price above the limit, unsure options.
    NeedsPerson,
    /// Goods gone, link dead.
    PermanentFailure,
    /// The server answered `accepted: true`.
    Accepted,
    /// The server refused the result for good (D8).
    ResultRefused,
    /// More runs failed than `automation.max_retries` allows.
    RetriesExhausted,
    /// A person confirmed collecting again.
    Recollect,
    /// A person settled it as failed (D2).
    PersonDecidedFailed,
    /// The server asked for a cancel, and this is a safe point (D9).
    CancelRequested,
    /// A `resume` was answered with "ended as cancelled" (D5.5).
    EndedOnServerCancelled,
    /// A `resume` was answered with "ended as failed" (D5.5).
    EndedOnServerFailed,
    /// The program died while this task was running (03 §7.3).
    CrashRecovered,
}

impl Event {
    pub const ALL: [Self; 19] = [
        Self::Reclaimed,
        Self::RunStarted,
        Self::PhoneUnreachable,
        Self::BadTaskData,
        Self::OperatorStopped,
        Self::ClaimLost,
        Self::ResultSaved,
        Self::RecoverableFailure,
        Self::NeedsPerson,
        Self::PermanentFailure,
        Self::Accepted,
        Self::ResultRefused,
        Self::RetriesExhausted,
        Self::Recollect,
        Self::PersonDecidedFailed,
        Self::CancelRequested,
        Self::EndedOnServerCancelled,
        Self::EndedOnServerFailed,
        Self::CrashRecovered,
    ];
}

/// What a transition depends on beside the state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    pub task_type: TaskType,
    /// Any run of this task has `irreversible_action_at` (D10): look, never buy.
    pub marked: bool,
    /// Some outbox row of this task is not settled.
    pub unsent: bool,
}

/// A transition 03 §7.1 does not list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub struct IllegalTransition {
    pub from: TaskState,
    pub event: Event,
}

impl fmt::Display for IllegalTransition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "event {:?} is not allowed in state {:?}", self.event, self.from)
    }
}

/// The state of a task that has no row yet: a claim succeeded (03 §3.1). There is no `pending`.
pub const fn first_state() -> TaskState {
    TaskState::Claimed
}

/// Where `event` takes a task.
///
/// # Errors
/// [`IllegalTransition`] for every pair 03 §7.1 and D2 do not list.
pub fn next(state: TaskState, event: Event, facts: Facts) -> Result<TaskState, IllegalTransition> {
    use TaskState as S;
    let collect = facts.task_type == TaskType::Collect;
    let allow = |from: &[S], to: S| if from.contains(&state) { Ok(to) } else { Err(IllegalTransition { from: state, event }) };
    match event {
        // A marked purchase never goes back to the start of the road to the buy button (D5.4).
        Event::Reclaimed if facts.marked => allow(&[S::Claimed, S::RetryWait, S::Cancelled, S::Failed], S::ManualReview),
        Event::Reclaimed => allow(&[S::Claimed, S::RetryWait, S::Cancelled, S::Failed], S::Claimed),
        // A purchase cannot be re-run; a marked one can only be looked at (03 §7.2, D10).
        Event::RunStarted if facts.marked => allow(&[], S::Running),
        Event::RunStarted if collect => allow(&[S::Claimed, S::RetryWait], S::Running),
        Event::RunStarted => allow(&[S::Claimed], S::Running),
        Event::PhoneUnreachable if facts.marked => allow(&[], S::RetryWait),
        Event::PhoneUnreachable => allow(&[S::Claimed], S::RetryWait),
        Event::BadTaskData => allow(&[S::Claimed], S::Failed),
        Event::OperatorStopped if facts.marked => allow(&[], S::Cancelled),
        Event::OperatorStopped => allow(&[S::Claimed, S::Running], S::Cancelled),
        Event::ClaimLost if facts.marked => allow(&[S::Claimed], S::ManualReview),
        Event::ClaimLost => allow(&[S::Claimed], S::Cancelled),
        // From manual_review only the read-only reconcile of a marked purchase brings a result.
        Event::ResultSaved if facts.marked => allow(&[S::Running, S::ManualReview], S::ResultPending),
        Event::ResultSaved => allow(&[S::Running], S::ResultPending),
        // Only collecting is retried by itself; a purchase goes to a person even for a device error (03 §7.3).
        Event::RecoverableFailure if collect && !facts.marked => allow(&[S::Running], S::RetryWait),
        Event::RecoverableFailure => allow(&[S::Running], S::ManualReview),
        Event::NeedsPerson => allow(&[S::Running], S::ManualReview),
        Event::PermanentFailure if facts.marked => allow(&[S::Running], S::ManualReview),
        Event::PermanentFailure => allow(&[S::Running], S::Failed),
        Event::Accepted => allow(&[S::ResultPending], S::Succeeded),
        Event::ResultRefused => allow(&[S::ResultPending], S::ManualReview),
        Event::RetriesExhausted if facts.marked => allow(&[S::RetryWait], S::ManualReview),
        Event::RetriesExhausted => allow(&[S::RetryWait], S::Failed),
        Event::Recollect if collect && !facts.unsent => allow(&[S::ManualReview, S::Succeeded, S::Failed, S::Cancelled], S::Claimed),
        Event::Recollect => allow(&[], S::Claimed),
        Event::PersonDecidedFailed => allow(&[S::ManualReview], S::Failed),
        // Past the irreversible mark a cancel is ignored and the run ends by reconciling (D9).
        Event::CancelRequested if facts.marked => allow(&[], S::Cancelled),
        Event::CancelRequested => allow(&[S::Running, S::RetryWait, S::ManualReview], S::Cancelled),
        Event::EndedOnServerCancelled if facts.marked => allow(&[S::Running, S::RetryWait], S::ManualReview),
        Event::EndedOnServerCancelled => allow(&[S::Running, S::RetryWait], S::Cancelled),
        Event::EndedOnServerFailed if facts.marked => allow(&[S::Running, S::RetryWait], S::ManualReview),
        Event::EndedOnServerFailed => allow(&[S::Running, S::RetryWait], S::Failed),
        Event::CrashRecovered if facts.marked => allow(&[S::Running], S::ManualReview),
        Event::CrashRecovered if collect => allow(&[S::Running], S::RetryWait),
        Event::CrashRecovered => allow(&[S::Running], S::Claimed),
    }
}
