//! What one call does: the checks in the order of [`super`], then the change.

use super::{
    Answer, Ask, Attempt, Beat, Call, DeviceNo, Dispatch, End, Holder, Identity, Key, Known, Mutation, No, Op, OpenedBy, Own, Proof,
    Reason, Report, Rules, Standing, State, Status, Stored, Task, TaskNo, Time,
};

type Refused = (No, Option<Own>);

/// One call at server time `now`. A refusal changes nothing, except that a refused device heartbeat is remembered (D19).
pub(crate) fn step(state: &State, rules: &Rules, now: Time, call: &Call) -> (State, Answer) {
    let mut after = state.clone();
    let done = Desk { state: &mut after, rules, now, device: call.device }.take(&call.ask);
    match done {
        Ok(answer) => (after, answer),
        Err((no, own)) => (state.clone(), Answer::No(no, own)),
    }
}

/// The server while it handles one call.
struct Desk<'a> {
    state: &'a mut State,
    rules: &'a Rules,
    now: Time,
    device: DeviceNo,
}

impl Desk<'_> {
    fn take(&mut self, ask: &Ask) -> Result<Answer, Refused> {
        match ask {
            Ask::Beat { instance, predecessor, serial, ready } => Ok(self.beat(*instance, *predecessor, *serial, *ready)),
            Ask::Claim { key, token } => self.claim(ask, *key, *token),
            Ask::Start { key, proof, version, attempt } => self.start(ask, *key, *proof, *version, *attempt),
            Ask::Heartbeat { proof, execution, placing } => self.heartbeat(*proof, *execution, *placing),
            Ask::Resume { key, proof, execution, reason, attempt } => self.resume(ask, *key, *proof, *execution, *reason, *attempt),
            Ask::Release { key, proof, version } => self.release(ask, *key, *proof, *version),
            Ask::CancelAck { key, proof, execution, version } => self.cancel_ack(ask, *key, *proof, *execution, *version),
            Ask::Report(report) => self.report(report),
            Ask::Create { purchase } => {
                self.state.tasks.push(Task::new(*purchase));
                Ok(Answer::Managed { status: Status::Pending, version: 1 })
            }
            Ask::Cancel { task } => self.cancel(*task),
            Ask::Close { task, version, checked } => self.close(*task, *version, *checked),
        }
    }

    /// T-205 §4, D19.
    fn beat(&mut self, instance: u8, predecessor: Option<u8>, serial: u8, ready: bool) -> Answer {
        let live = |beat: &Beat| self.now - beat.at <= self.rules.heartbeat_ttl;
        let me = &self.state.devices[self.device];
        let other_instance =
            me.beat.as_ref().is_some_and(|last| live(last) && last.instance != instance && predecessor != Some(last.instance));
        let phone_elsewhere = self
            .state
            .devices
            .iter()
            .enumerate()
            .any(|(n, other)| n != self.device && other.beat.as_ref().is_some_and(|beat| live(beat) && beat.serial == serial));
        let me = &mut self.state.devices[self.device];
        if other_instance || phone_elsewhere {
            me.rival = Some((self.now, instance));
            return Answer::No(No::DeviceInUse, None);
        }
        me.beat = Some(Beat { at: self.now, instance, serial, ready });
        // What was refused to this very instance is settled by its being accepted.
        me.rival = me.rival.filter(|(_, rival)| *rival != instance);
        let cancels = (0..self.state.tasks.len())
            .filter(|n| {
                let task = &self.state.tasks[*n];
                task.held_by(self.device) && task.cancel_requested && task.status.is_open()
            })
            .collect();
        Answer::Beaten { active: self.in_slot(None), cancels, ready }
    }

    fn alone(&self) -> Result<(), Refused> {
        let is_rival = self.state.devices[self.device].rival.is_some_and(|(at, _)| self.now - at <= self.rules.heartbeat_ttl);
        if is_rival && !self.rules.breaks(Mutation::RivalIgnored) { Err((No::DeviceInUse, None)) } else { Ok(()) }
    }

    fn in_slot(&self, other_than: Option<TaskNo>) -> Option<TaskNo> {
        let takes = |n: &TaskNo| {
            let task = &self.state.tasks[*n];
            let ignored = self.rules.breaks(Mutation::SlotIgnoresRunning) && task.status == Status::Running;
            Some(*n) != other_than && task.takes_slot_of(self.device, self.now) && !ignored
        };
        (0..self.state.tasks.len()).find(takes)
    }

    /// T-205 §3: the same key means the same request, or it is refused.
    fn seen(&self, op: Op, key: Key, ask: &Ask) -> Result<Option<Option<Identity>>, Refused> {
        match self.state.keys.get(&(self.device, op, key.n)) {
            None => Ok(None),
            Some((before, led_to)) if before == ask || self.rules.breaks(Mutation::OtherRequestIsReplay) => Ok(Some(*led_to)),
            Some(_) => Err((No::IdempotencyConflict, None)),
        }
    }

    fn remember(&mut self, op: Op, key: Key, ask: &Ask, led_to: Option<TaskNo>) {
        let identity = led_to.map(|task| {
            let row = &self.state.tasks[task];
            Identity { task, generation: row.generation, version: row.version }
        });
        self.state.keys.insert((self.device, op, key.n), (ask.clone(), identity));
    }

    fn standing(&self, task: TaskNo) -> Answer {
        let row = &self.state.tasks[task];
        Answer::Stands(Standing {
            task,
            status: row.status,
            version: row.version,
            generation: row.generation,
            execution: row.execution,
            lease: row.lease,
            cancel_requested: row.cancel_requested,
        })
    }

    /// T-205 §2-§5, D5.
    fn claim(&mut self, ask: &Ask, key: Key, token: u16) -> Result<Answer, Refused> {
        if key.old {
            return Err((No::ClaimReplayExpired, None));
        }
        match self.seen(Op::Claim, key, ask)? {
            Some(_) if self.rules.breaks(Mutation::ReplayClaimsAnew) => {}
            Some(None) => return Ok(Answer::NoTask),
            Some(Some(identity)) => {
                // §3: the same task while it is this device's in this generation; released, cancelled, taken back or over: never another.
                let row = &self.state.tasks[identity.task];
                let is_mine = row.held_by(self.device) && row.generation == identity.generation && !row.status.is_terminal();
                return if is_mine { Ok(self.standing(identity.task)) } else { Err((No::ClaimReplayExpired, None)) };
            }
            None => {}
        }
        self.alone()?;
        let beat = self.state.devices[self.device].beat.as_ref();
        let is_ready = beat.is_some_and(|beat| beat.ready && self.now - beat.at <= self.rules.heartbeat_ttl);
        if !is_ready && !self.rules.breaks(Mutation::UnreadyClaims) {
            return Err((No::DeviceNotReady, None));
        }
        if self.in_slot(None).is_some() {
            return Err((No::DeviceBusy, None));
        }
        let Some(chosen) = self.choose() else {
            if !self.rules.breaks(Mutation::NoTaskForgotten) {
                self.remember(Op::Claim, key, ask, None);
            }
            return Ok(Answer::NoTask);
        };
        let row = &mut self.state.tasks[chosen];
        if row.status != Status::Pending {
            // §9, §11: taking back what ran out is a transition of its own.
            row.version += 1;
        }
        row.version += 1;
        row.status = Status::Claimed;
        if !self.rules.breaks(Mutation::NoGenerationBump) {
            row.generation += 1;
        }
        row.holder = Some(Holder { device: self.device, token });
        row.lease = Some(self.now + self.rules.claim_lease);
        let generation = row.generation;
        self.state.dispatches.insert((chosen, generation), Dispatch { device: self.device, released: None });
        self.remember(Op::Claim, key, ask, Some(chosen));
        Ok(self.standing(chosen))
    }

    fn choose(&self) -> Option<TaskNo> {
        let ran_out = |row: &Task| row.status == Status::Claimed && !row.lease_lives(self.now);
        let own = (0..self.state.tasks.len()).find(|n| ran_out(&self.state.tasks[*n]) && self.state.tasks[*n].held_by(self.device));
        let rests = |task: TaskNo| {
            let mut dispatches = self.state.dispatches.iter().filter(|((of, _), dispatch)| *of == task && dispatch.device == self.device);
            let is_fresh = |released: Time| released > self.now - self.rules.released_for;
            dispatches.any(|(_, dispatch)| dispatch.released.is_some_and(is_fresh)) && !self.rules.breaks(Mutation::ReleasedOfferedAgain)
        };
        let claimable = |row: &Task| {
            let running = self.rules.breaks(Mutation::RunningIsClaimable) && row.status == Status::Running && !row.lease_lives(self.now);
            let claimed = self.rules.breaks(Mutation::LiveClaimIsClaimable) && row.status == Status::Claimed;
            let live = self.rules.breaks(Mutation::LiveRunIsClaimable) && row.status == Status::Running;
            row.status == Status::Pending || ran_out(row) || running || claimed || live
        };
        own.or_else(|| (0..self.state.tasks.len()).find(|n| claimable(&self.state.tasks[*n]) && !rests(*n)))
    }

    /// T-205 §6: this device's, in this generation, with this token. Nothing is told of a task that is another's (§11).
    fn own_task(&self, proof: Proof) -> Result<TaskNo, Refused> {
        let dispatched = self.state.dispatches.iter().any(|((task, _), to)| *task == proof.task && to.device == self.device);
        if !dispatched {
            return Err((No::NotFound, None));
        }
        let row = &self.state.tasks[proof.task];
        let Some(holder) = row.holder.filter(|holder| holder.device == self.device) else { return Err((No::ClaimLost, None)) };
        if row.generation != proof.generation {
            return Err((No::ExecutionMismatch, Some(row.own())));
        }
        if holder.token != proof.token && !self.rules.breaks(Mutation::TokenNotChecked) {
            return Err((No::ClaimLost, None));
        }
        Ok(proof.task)
    }

    fn refuse<T>(&self, task: TaskNo, no: No) -> Result<T, Refused> {
        Err((no, Some(self.state.tasks[task].own())))
    }

    /// Still CLAIMED, under a live lease, at the version that was seen (§6, §7, §9).
    fn must_be_claimed(&self, task: TaskNo, version: u64) -> Result<(), Refused> {
        let row = &self.state.tasks[task];
        match row.status {
            Status::Claimed => {}
            Status::Running if self.rules.breaks(Mutation::StartsTwice) => return Ok(()),
            Status::Canceled => return self.refuse(task, No::TaskCanceled),
            _ => return self.refuse(task, No::IllegalState),
        }
        if !row.lease_lives(self.now) {
            return self.refuse(task, No::LeaseExpired);
        }
        if row.version != version && !self.rules.breaks(Mutation::StartIgnoresVersion) {
            return self.refuse(task, No::VersionConflict);
        }
        Ok(())
    }

    fn must_be_execution(&self, task: TaskNo, execution: u64) -> Result<(), Refused> {
        if self.state.tasks[task].execution == Some(execution) { Ok(()) } else { self.refuse(task, No::ExecutionMismatch) }
    }

    fn must_have_slot(&self, task: TaskNo) -> Result<(), Refused> {
        if self.in_slot(Some(task)).is_some() { self.refuse(task, No::DeviceBusy) } else { Ok(()) }
    }

    /// An attempt is named once; its number and generation never change (D3).
    fn note(&mut self, task: TaskNo, attempt: Attempt, generation: u64, opened_by: OpenedBy) -> Result<OpenedBy, Refused> {
        let known = self.state.attempts.entry((task, attempt.id)).or_insert(Known { no: attempt.no, generation, opened_by });
        let same = known.no == attempt.no && known.generation == generation;
        if same && attempt.no > 0 { Ok(known.opened_by) } else { Err((No::Malformed, None)) }
    }

    /// T-205 §7.
    fn start(&mut self, ask: &Ask, key: Key, proof: Proof, version: u64, attempt: Attempt) -> Result<Answer, Refused> {
        let seen = self.seen(Op::Start, key, ask)?;
        let task = self.own_task(proof)?;
        if seen.is_some() {
            return Ok(self.replayed(task));
        }
        self.must_be_claimed(task, version)?;
        self.alone()?;
        self.must_have_slot(task)?;
        self.note(task, attempt, proof.generation, OpenedBy::Start)?;
        *self.state.executions.entry((task, proof.generation)).or_insert(0) += 1;
        let row = &mut self.state.tasks[task];
        row.status = Status::Running;
        row.version += u64::from(!self.rules.breaks(Mutation::VersionStands));
        row.execution = Some(proof.generation);
        row.lease = Some(self.now + self.rules.run_lease);
        self.remember(Op::Start, key, ask, Some(task));
        Ok(self.standing(task))
    }

    /// D3: identity again, all else read now, no lease extended.
    fn replayed(&mut self, task: TaskNo) -> Answer {
        if self.rules.breaks(Mutation::ReplayExtendsLease) {
            self.state.tasks[task].lease = Some(self.now + self.rules.run_lease);
        }
        self.standing(task)
    }

    /// T-205 §8, D4 (a re-collect's lease is renewable), D10 (`placing`).
    fn heartbeat(&mut self, proof: Proof, execution: u64, placing: bool) -> Result<Answer, Refused> {
        let task = self.own_task(proof)?;
        self.must_be_execution(task, execution)?;
        let row = &self.state.tasks[task];
        let may_beat = row.status.is_open() || (row.status.is_terminal() && row.recollecting);
        if !may_beat {
            return self.refuse(task, if row.status == Status::Canceled { No::TaskCanceled } else { No::IllegalState });
        }
        if !row.lease_lives(self.now) && !self.rules.breaks(Mutation::HeartbeatRevives) {
            return self.refuse(task, No::LeaseExpired);
        }
        let row = &mut self.state.tasks[task];
        row.order_may_exist |= placing && row.purchase && !row.cancel_requested;
        row.lease = Some(self.now + self.rules.run_lease);
        Ok(self.standing(task))
    }

    /// D4.
    fn resume(&mut self, ask: &Ask, key: Key, proof: Proof, execution: u64, reason: Reason, attempt: Attempt) -> Result<Answer, Refused> {
        let seen = self.seen(Op::Resume, key, ask)?;
        let task = self.own_task(proof)?;
        if seen.is_some() {
            return Ok(self.replayed(task));
        }
        self.must_be_execution(task, execution)?;
        let row = &self.state.tasks[task];
        let recollects = row.status.is_terminal() && reason == Reason::Recollect && !row.purchase;
        if !row.status.is_open() && !recollects {
            return self.refuse(task, if row.status == Status::Canceled { No::TaskCanceled } else { No::IllegalState });
        }
        if row.order_may_exist && reason != Reason::Reconcile {
            return self.refuse(task, No::IllegalState);
        }
        self.alone()?;
        if !self.rules.breaks(Mutation::ResumeIgnoresSlot) {
            self.must_have_slot(task)?;
        }
        self.note(task, attempt, proof.generation, if recollects { OpenedBy::Recollect } else { OpenedBy::Resume })?;
        let row = &mut self.state.tasks[task];
        row.version += 1;
        row.recollecting = recollects;
        if !recollects || self.rules.breaks(Mutation::RecollectReopens) {
            row.status = Status::Running;
        }
        row.lease = Some(self.now + self.rules.run_lease);
        self.remember(Op::Resume, key, ask, Some(task));
        Ok(self.standing(task))
    }

    /// T-205 §9.
    fn release(&mut self, ask: &Ask, key: Key, proof: Proof, version: u64) -> Result<Answer, Refused> {
        if let Some(Some(done)) = self.seen(Op::Release, key, ask)? {
            // The task may be another's by now: only what this call did is said again (§11).
            return Ok(Answer::Stands(Standing {
                task: done.task,
                status: Status::Pending,
                version: done.version,
                generation: done.generation,
                execution: None,
                lease: None,
                cancel_requested: false,
            }));
        }
        let task = if self.rules.breaks(Mutation::ReleaseWithoutProof) {
            proof.task
        } else {
            let task = self.own_task(proof)?;
            self.must_be_claimed(task, version)?;
            task
        };
        let row = &mut self.state.tasks[task];
        row.status = Status::Pending;
        row.version += 1;
        row.holder = None;
        row.lease = None;
        if let Some(dispatch) = self.state.dispatches.get_mut(&(task, proof.generation)) {
            dispatch.released = Some(self.now);
        }
        self.remember(Op::Release, key, ask, Some(task));
        Ok(self.standing(task))
    }

    /// T-205 §10; D4: identity, no live lease.
    fn cancel_ack(&mut self, ask: &Ask, key: Key, proof: Proof, execution: u64, version: u64) -> Result<Answer, Refused> {
        let seen = self.seen(Op::CancelAck, key, ask)?;
        let task = self.own_task(proof)?;
        if seen.is_some() {
            return Ok(self.replayed(task));
        }
        self.must_be_execution(task, execution)?;
        let row = &self.state.tasks[task];
        if row.status == Status::Canceled {
            return self.refuse(task, No::TaskCanceled);
        }
        let asked = row.cancel_requested || self.rules.breaks(Mutation::AckUnasked);
        let is_marked = row.order_may_exist && !self.rules.breaks(Mutation::AckIgnoresOrder);
        if !row.status.is_open() || !asked || is_marked {
            return self.refuse(task, No::IllegalState);
        }
        if row.version != version {
            return self.refuse(task, No::VersionConflict);
        }
        let row = &mut self.state.tasks[task];
        row.status = Status::Canceled;
        row.version += 1;
        row.lease = None;
        self.remember(Op::CancelAck, key, ask, Some(task));
        Ok(self.standing(task))
    }

    /// D3, D8.
    fn report(&mut self, report: &Report) -> Result<Answer, Refused> {
        let to_me = self.state.dispatches.get(&(report.task, report.generation)).is_some_and(|to| to.device == self.device);
        if !to_me {
            return Err((No::NotFound, None));
        }
        if let Some(stored) = self.state.results.get_mut(&report.key()) {
            if stored.report != *report {
                return Err((No::IdempotencyConflict, None));
            }
            stored.duplicates += 1;
            let (late, status) = (stored.late, stored.status);
            if self.rules.breaks(Mutation::DuplicateCounts) {
                self.settle(report, OpenedBy::Report);
            }
            return Ok(Answer::Reported { duplicate: true, late, status });
        }
        let opened_by = self.note(report.task, report.attempt, report.generation, OpenedBy::Report)?;
        if self.rules.breaks(Mutation::ResultNeedsLease) && !self.state.tasks[report.task].lease_lives(self.now) {
            return self.refuse(report.task, No::LeaseExpired);
        }
        let late = !self.settle(report, opened_by);
        let row = &mut self.state.tasks[report.task];
        if row.latest.is_none_or(|(generation, no, _)| (generation, no) <= (report.generation, report.attempt.no)) {
            row.latest = Some((report.generation, report.attempt.no, report.end));
        }
        let status = row.status;
        let is_dropped = self.rules.breaks(Mutation::ResultForgotten) || (late && self.rules.breaks(Mutation::LateThrownAway));
        if !is_dropped {
            self.state.results.insert(report.key(), Stored { report: report.clone(), late, status, duplicates: 0 });
        }
        Ok(Answer::Reported { duplicate: false, late, status })
    }

    /// D3: only the current generation and its highest known attempt move the status; `false` is late.
    fn settle(&mut self, report: &Report, opened_by: OpenedBy) -> bool {
        let attempts =
            self.state.attempts.iter().filter(|((task, _), known)| *task == report.task && known.generation == report.generation);
        let highest = attempts.map(|(_, known)| known.no).max().unwrap_or(0);
        let row = &mut self.state.tasks[report.task];
        let is_current = (report.generation == row.generation || self.rules.breaks(Mutation::OldGenerationSettles))
            && report.execution.is_none_or(|execution| row.execution == Some(execution))
            && (report.attempt.no >= highest || self.rules.breaks(Mutation::AnyAttemptSettles));
        if !is_current || row.status == Status::Pending {
            return false;
        }
        if row.status.is_terminal() && !self.rules.breaks(Mutation::TerminalRegresses) {
            // D4: a re-collect leaves the status; its result is the one that was waited for, once.
            let was_waited_for = row.recollecting && opened_by == OpenedBy::Recollect;
            if was_waited_for {
                row.recollecting = false;
                row.lease = None;
            }
            return was_waited_for;
        }
        row.version += 1;
        row.status = match report.end {
            End::Succeeded => Status::Succeeded,
            End::Failed => Status::Failed,
            // D10: a cancel never hides an order that may exist.
            End::Cancelled if !row.order_may_exist || self.rules.breaks(Mutation::CancelledHidesOrder) => Status::Canceled,
            End::Cancelled | End::ManualReview => Status::Waiting,
        };
        if row.status.is_terminal() {
            row.lease = None;
        }
        true
    }

    /// T-205 §10.
    fn cancel(&mut self, task: TaskNo) -> Result<Answer, Refused> {
        let row = &mut self.state.tasks[task];
        if row.status.is_terminal() {
            return self.refuse(task, No::IllegalState);
        }
        // Asked twice changes nothing.
        if !row.cancel_requested {
            row.cancel_requested = true;
            row.version += 1;
            if !row.status.is_open() || self.rules.breaks(Mutation::CancelStopsRunning) {
                row.status = Status::Canceled;
                row.lease = None;
            }
        }
        Ok(Answer::Managed { status: row.status, version: row.version })
    }

    /// D4.
    fn close(&mut self, task: TaskNo, version: u64, checked: bool) -> Result<Answer, Refused> {
        let row = &mut self.state.tasks[task];
        if row.version != version {
            return self.refuse(task, No::VersionConflict);
        }
        let under_lease = row.lease_lives(self.now) && !self.rules.breaks(Mutation::CloseUnderLease);
        let unchecked = row.order_may_exist && !checked && !self.rules.breaks(Mutation::CloseUnchecked);
        if !row.status.is_open() || under_lease || unchecked {
            return self.refuse(task, No::IllegalState);
        }
        row.status = if self.rules.breaks(Mutation::CloseRequeues) { Status::Pending } else { Status::Failed };
        row.version += 1;
        row.lease = None;
        Ok(Answer::Managed { status: row.status, version: row.version })
    }
}
