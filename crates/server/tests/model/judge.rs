//! What must hold across one call, said from outside: the judge compares what was before with what is after and remembers what was promised.
//! It shares no code with [`crate::spec::step`].

use std::collections::BTreeMap;

use crate::spec::{Answer, Ask, Call, DeviceNo, Key, No, Op, Proof, Report, Rules, State, Status, Task, TaskNo, Time};

macro_rules! flaws {
    ($($(#[$doc:meta])* $flaw:ident = $rule:literal,)+) => {
        /// A rule that one call broke.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum Flaw { $($(#[$doc])* $flaw,)+ }

        impl Flaw {
            pub(crate) const ALL: &[Self] = &[$(Self::$flaw,)+];
            pub(crate) const fn rule(self) -> &'static str { match self { $(Self::$flaw => $rule,)+ } }
        }

        /// One invariant for each flaw.
        pub(crate) fn invariants() -> Vec<stateright::Property<crate::world::World>> {
            vec![$(stateright::Property::always($rule, |_, scene: &crate::world::Scene| scene.flaw != Some(Flaw::$flaw)),)+]
        }
    };
}

flaws! {
    /// T-205 §3.
    SecondTask = "a claim key never leads to a second task",
    /// T-205 §3.
    NoTaskTurned = "204 stays 204",
    /// T-205 §3.
    KeyMeansTwo = "a key never means two requests",
    /// D3.
    ReplayActed = "a replay changes nothing and extends no lease",
    /// T-205 §3, §5.
    GenerationStood = "claim_generation rises with every claim and never falls",
    /// T-205 §11.
    VersionStood = "a new status has a new version",
    /// T-205 §11.
    TerminalRegressed = "a terminal status never changes",
    /// T-205 §8, D3.
    Requeued = "a started task never returns to the queue",
    /// T-205 §5.
    LiveClaimTaken = "a live claim is taken by nobody else",
    /// T-205 §6.
    ForeignTouched = "only generation and token of the claim move its task",
    /// T-205 §7, §9.
    UnseenVersion = "start and release need the version that was seen",
    /// T-205 §8.
    DeadLeaseRenewed = "a heartbeat renews no lease that ran out",
    /// T-205 §10.
    StoppedWhileRunning = "an administrator's cancel of a started task is only a request",
    /// T-205 §10.
    AckedUnasked = "a cancel is acknowledged only when it was asked for",
    /// D4.
    ClosedUnderLease = "close waits for the lease to run out",
    /// D5.
    OfferedAgain = "a device is not offered again what it released",
    /// T-205 §4.
    ClaimedUnready = "a device without a fresh ready heartbeat claims nothing",
    /// D19.
    BesideRival = "two live instances of a device both stand still",
    /// D3.
    ResultRefused = "a dispatched result is never refused for a lease or a state",
    /// D8.
    ResultLost = "a result that was accepted is kept as it was",
    /// D8.
    CountedTwice = "an equal resend counts nothing twice",
    /// D3.
    OldResultMoved = "only the current generation's highest attempt moves the status",
    /// D10.
    OrderHidden = "an order that may exist is never hidden by a cancel or an unchecked close",
}

/// What was promised to whom: the request of a key and the task it led to. Kept apart from the server's own table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Witness {
    promised: BTreeMap<(DeviceNo, Op, u16), (Ask, Option<TaskNo>)>,
}

/// One call as the judge sees it.
pub(crate) struct Case<'a> {
    pub(crate) rules: &'a Rules,
    pub(crate) now: Time,
    pub(crate) before: &'a State,
    pub(crate) after: &'a State,
    pub(crate) call: &'a Call,
    pub(crate) answer: &'a Answer,
}

impl Witness {
    pub(crate) fn judge(&mut self, case: &Case<'_>) -> Option<Flaw> {
        let by_key = self.key_flaw(case);
        by_key.or_else(|| case.result_flaw()).or_else(|| case.claim_flaw()).or_else(|| case.tasks_flaw())
    }

    fn key_flaw(&mut self, case: &Case<'_>) -> Option<Flaw> {
        let (op, key) = key_of(&case.call.ask)?;
        let place = (case.call.device, op, key.n);
        let Some((asked, promised)) = self.promised.get(&place) else {
            let led_to = match case.answer {
                Answer::Stands(standing) => Some(standing.task),
                Answer::NoTask => None,
                _ => return None,
            };
            self.promised.insert(place, (case.call.ask.clone(), led_to));
            return None;
        };
        if *asked != case.call.ask {
            let is_refused = matches!(case.answer, Answer::No(No::IdempotencyConflict, _));
            return if is_refused { None } else { Some(Flaw::KeyMeansTwo) };
        }
        match (promised, case.answer) {
            (None, Answer::NoTask) => {}
            (None, _) => return Some(Flaw::NoTaskTurned),
            (Some(task), Answer::Stands(standing)) if standing.task == *task => {}
            (Some(_), Answer::No(No::ClaimReplayExpired, _)) => {}
            (Some(_), Answer::No(..)) if op != Op::Claim => {}
            (Some(_), _) => return Some(Flaw::SecondTask),
        }
        (case.before.tasks != case.after.tasks).then_some(Flaw::ReplayActed)
    }
}

impl Case<'_> {
    /// D3, D8.
    fn result_flaw(&self) -> Option<Flaw> {
        let kept = |(key, was): (&_, &crate::spec::Stored)| {
            self.after.results.get(key).is_some_and(|is| is.report == was.report && is.late == was.late)
        };
        if !self.before.results.iter().all(kept) {
            return Some(Flaw::ResultLost);
        }
        let Ask::Report(report) = &self.call.ask else { return None };
        let is_mine = self.before.dispatches.get(&(report.task, report.generation)).is_some_and(|to| to.device == self.call.device);
        let known = self.before.results.get(&report.key());
        match self.answer {
            Answer::Reported { duplicate, .. } => {
                let stored = self.after.results.get(&report.key()).is_some_and(|stored| stored.report == *report);
                let new = self.after.results.len() - self.before.results.len();
                let right = *duplicate == known.is_some() && new == usize::from(!*duplicate);
                let moved = self.before.tasks != self.after.tasks;
                if !stored {
                    Some(Flaw::ResultLost)
                } else if !right || (*duplicate && moved) {
                    Some(Flaw::CountedTwice)
                } else if self.is_old(report) && self.status_moved(report.task) {
                    Some(Flaw::OldResultMoved)
                } else {
                    None
                }
            }
            Answer::No(No::IdempotencyConflict | No::Malformed, _) => None,
            _ => is_mine.then_some(Flaw::ResultRefused),
        }
    }

    fn is_old(&self, report: &Report) -> bool {
        let newer = |((task, _), known): (&(TaskNo, u16), &crate::spec::Known)| {
            *task == report.task && known.generation == report.generation && known.no > report.attempt.no
        };
        self.before.tasks[report.task].generation != report.generation || self.before.attempts.iter().any(newer)
    }

    fn status_moved(&self, task: TaskNo) -> bool {
        let (was, is) = (&self.before.tasks[task], &self.after.tasks[task]);
        (was.status, was.version) != (is.status, is.version)
    }

    /// T-205 §4-§5, D5, D19: who may be given a task at all.
    fn claim_flaw(&self) -> Option<Flaw> {
        let device = &self.before.devices[self.call.device];
        let is_gated = matches!(self.call.ask, Ask::Claim { .. } | Ask::Start { .. } | Ask::Resume { .. });
        if !is_gated || self.before.tasks == self.after.tasks {
            return None;
        }
        if device.rival.is_some_and(|(at, _)| self.now - at <= self.rules.heartbeat_ttl) {
            return Some(Flaw::BesideRival);
        }
        let (Ask::Claim { .. }, Answer::Stands(standing)) = (&self.call.ask, self.answer) else { return None };
        if !device.beat.as_ref().is_some_and(|beat| beat.ready && self.now - beat.at <= self.rules.heartbeat_ttl) {
            return Some(Flaw::ClaimedUnready);
        }
        let mut given = self.before.dispatches.iter().filter(|((task, _), to)| *task == standing.task && to.device == self.call.device);
        let rests = |at: Time| self.now - at < self.rules.released_for;
        given.any(|(_, to)| to.released.is_some_and(rests)).then_some(Flaw::OfferedAgain)
    }

    fn tasks_flaw(&self) -> Option<Flaw> {
        let pairs = self.before.tasks.iter().zip(&self.after.tasks).enumerate();
        pairs.filter(|(_, (was, is))| was != is).find_map(|(task, (was, is))| self.task_flaw(task, was, is))
    }

    fn task_flaw(&self, task: TaskNo, was: &Task, is: &Task) -> Option<Flaw> {
        let ask = &self.call.ask;
        let new_holder = is.holder.is_some() && is.holder != was.holder;
        let by_holder = |proof: &Proof| {
            let holds = was.holder.is_some_and(|holder| holder.device == self.call.device && holder.token == proof.token);
            holds && proof.task == task && proof.generation == was.generation
        };
        let seen_version = match ask {
            Ask::Start { version, .. } | Ask::Release { version, .. } | Ask::CancelAck { version, .. } => Some(*version),
            _ => None,
        };
        let ended_by = |status| was.status != status && is.status == status;
        let hides = match ask {
            Ask::Close { checked, .. } => !checked,
            _ => is.status == Status::Canceled,
        };
        let rules = [
            (Flaw::TerminalRegressed, was.status.is_terminal() && is.status != was.status),
            (Flaw::Requeued, was.status.is_open() && !is.status.is_open() && !is.status.is_terminal()),
            (Flaw::GenerationStood, is.generation < was.generation || (new_holder && is.generation == was.generation)),
            (Flaw::LiveClaimTaken, new_holder && was.status == Status::Claimed && was.lease_lives(self.now)),
            (Flaw::VersionStood, is.status != was.status && is.version <= was.version),
            (Flaw::ForeignTouched, proof_of(ask).is_some_and(|proof| !by_holder(&proof))),
            (Flaw::UnseenVersion, seen_version.is_some_and(|seen| seen != was.version)),
            (Flaw::DeadLeaseRenewed, matches!(ask, Ask::Heartbeat { .. }) && !was.lease_lives(self.now)),
            (Flaw::OrderHidden, was.order_may_exist && is.status.is_terminal() && !was.status.is_terminal() && hides),
            (Flaw::StoppedWhileRunning, matches!(ask, Ask::Cancel { .. }) && was.status.is_open() && is.status != was.status),
            (Flaw::AckedUnasked, matches!(ask, Ask::CancelAck { .. }) && ended_by(Status::Canceled) && !was.cancel_requested),
            (Flaw::ClosedUnderLease, matches!(ask, Ask::Close { .. }) && was.lease_lives(self.now)),
        ];
        rules.into_iter().find(|(_, broken)| *broken).map(|(flaw, _)| flaw)
    }
}

fn key_of(ask: &Ask) -> Option<(Op, Key)> {
    match ask {
        Ask::Claim { key, .. } => Some((Op::Claim, *key)),
        Ask::Start { key, .. } => Some((Op::Start, *key)),
        Ask::Resume { key, .. } => Some((Op::Resume, *key)),
        Ask::Release { key, .. } => Some((Op::Release, *key)),
        Ask::CancelAck { key, .. } => Some((Op::CancelAck, *key)),
        Ask::Beat { .. } | Ask::Heartbeat { .. } | Ask::Report(_) | Ask::Create { .. } | Ask::Cancel { .. } | Ask::Close { .. } => None,
    }
}

fn proof_of(ask: &Ask) -> Option<Proof> {
    match ask {
        Ask::Start { proof, .. }
        | Ask::Heartbeat { proof, .. }
        | Ask::Resume { proof, .. }
        | Ask::Release { proof, .. }
        | Ask::CancelAck { proof, .. } => Some(*proof),
        Ask::Beat { .. } | Ask::Claim { .. } | Ask::Report(_) | Ask::Create { .. } | Ask::Cancel { .. } | Ask::Close { .. } => None,
    }
}
