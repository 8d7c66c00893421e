//! A client as the server sees it (D2, D3, D5): what it keeps on disk, what it forgets in a crash, what it may ask next. Everything that must
//! survive is written before it is sent.

use std::collections::{BTreeMap, BTreeSet};

use crate::spec::{Answer, Ask, Attempt, DeviceNo, End, Key, No, Proof, Reason, Report, ResultKey, Standing, Status, TaskNo, Time};

/// What a client may decide to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Doing {
    Claim,
    Start,
    Heartbeat { placing: bool },
    Resume,
    Recollect,
    Release,
    Ack,
    Report(End),
}

/// A call no correct client makes: a program with a fault, one that lost its disk, or a stranger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Slip {
    /// Another token than that of the claim.
    Token,
    /// A version the task never had.
    Version,
    /// The key of the last claim with another token.
    Key,
    /// A new claim although a task needs the phone.
    Forgetful,
    /// A second start of a running task, with a new key.
    Again,
    /// An acknowledgement nobody asked for.
    Ack,
}

/// The client's row of a task.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Row {
    pub(crate) proof: Proof,
    pub(crate) version: u64,
    pub(crate) execution: Option<u64>,
    pub(crate) attempt: Attempt,
    pub(crate) status: Status,
    pub(crate) cancel: bool,
    pub(crate) recollecting: bool,
}

impl Row {
    fn needs_phone(&self) -> bool {
        matches!(self.status, Status::Claimed | Status::Running)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    /// Keys made so far; tokens and attempts are numbered with them.
    pub(crate) made: u16,
    pub(crate) last_claim: Option<u16>,
    /// The one call that waits for a definite answer (D5).
    pub(crate) open: Option<Ask>,
    pub(crate) rows: BTreeMap<TaskNo, Row>,
    pub(crate) outbox: BTreeSet<Report>,
    /// Results the server said it has.
    pub(crate) delivered: BTreeSet<ResultKey>,
    /// In memory only: the task it operates and until when it may (D3).
    pub(crate) operates: Option<(TaskNo, Time)>,
}

impl Client {
    pub(crate) fn operates(&self, task: TaskNo, now: Time) -> bool {
        self.operates.is_some_and(|(on, until)| on == task && now < until)
    }

    fn key(&mut self) -> Key {
        self.made += 1;
        Key { n: self.made, old: false }
    }

    fn find(&self, fits: impl Fn(&Row) -> bool) -> Option<TaskNo> {
        self.rows.iter().find(|(_, row)| fits(row)).map(|(task, _)| *task)
    }

    /// Decides, writes it down, and returns what is to be sent; `None` when this cannot be done now.
    pub(crate) fn begin(&mut self, me: DeviceNo, doing: Doing, now: Time) -> Option<Ask> {
        if let Doing::Heartbeat { placing } = doing {
            let row = &self.rows[&self.find(|row| row.status == Status::Running || row.recollecting)?];
            return Some(Ask::Heartbeat { proof: row.proof, execution: row.execution?, placing });
        }
        if let Doing::Report(end) = doing {
            return self.report(me, end);
        }
        if self.open.is_some() {
            return None;
        }
        let idle = self.operates.is_none_or(|(_, until)| now >= until);
        let ask = match doing {
            Doing::Claim => {
                if self.find(Row::needs_phone).is_some() {
                    return None;
                }
                let key = self.key();
                self.last_claim = Some(key.n);
                Ask::Claim { key, token: key.n }
            }
            Doing::Start => {
                let task = self.find(|row| row.status == Status::Claimed)?;
                let key = self.key();
                let row = self.rows.get_mut(&task)?;
                row.attempt = Attempt { id: attempt_id(me, key), no: row.attempt.no + 1 };
                Ask::Start { key, proof: row.proof, version: row.version, attempt: row.attempt }
            }
            Doing::Resume => {
                let task = self.find(|row| row.status == Status::Waiting || (row.status == Status::Running && idle))?;
                let key = self.key();
                let row = self.rows.get_mut(&task)?;
                // A lost lease may go on with its attempt; after a person looked it is another one (D2, D3).
                if row.status == Status::Waiting {
                    row.attempt = Attempt { id: attempt_id(me, key), no: row.attempt.no + 1 };
                }
                Ask::Resume { key, proof: row.proof, execution: row.execution?, reason: Reason::LeaseLost, attempt: row.attempt }
            }
            Doing::Recollect => {
                let task = self.find(|row| row.status.is_terminal() && !row.recollecting && row.execution.is_some())?;
                let key = self.key();
                let row = self.rows.get_mut(&task)?;
                row.attempt = Attempt { id: attempt_id(me, key), no: row.attempt.no + 1 };
                Ask::Resume { key, proof: row.proof, execution: row.execution?, reason: Reason::Recollect, attempt: row.attempt }
            }
            Doing::Release => {
                let task = self.find(|row| row.status == Status::Claimed)?;
                let key = self.key();
                let row = &self.rows[&task];
                Ask::Release { key, proof: row.proof, version: row.version }
            }
            Doing::Ack => {
                let task = self.find(|row| row.status.is_open() && row.cancel && row.execution.is_some())?;
                let key = self.key();
                self.operates = None;
                let row = &self.rows[&task];
                Ask::CancelAck { key, proof: row.proof, execution: row.execution?, version: row.version }
            }
            Doing::Heartbeat { .. } | Doing::Report(_) => return None,
        };
        self.open = Some(ask.clone());
        Some(ask)
    }

    /// Task, run and outbox row in one transaction (D2). From CLAIMED only "bad task data" can be said (D3).
    fn report(&mut self, me: DeviceNo, end: End) -> Option<Ask> {
        let fits = |row: &Row| match row.status {
            Status::Claimed => end == End::Failed,
            Status::Running => true,
            _ => row.recollecting && end == End::Succeeded,
        };
        let task = self.find(fits)?;
        // The call that was to go on with this task is moot once its result is on disk.
        if self.open.as_ref().is_some_and(|open| !matches!(open, Ask::Claim { .. })) {
            return None;
        }
        let from_claimed = self.rows[&task].status == Status::Claimed;
        let key = from_claimed.then(|| self.key());
        let row = self.rows.get_mut(&task)?;
        if let Some(key) = key {
            row.attempt = Attempt { id: attempt_id(me, key), no: row.attempt.no + 1 };
        }
        let report = Report { task, generation: row.proof.generation, execution: row.execution, attempt: row.attempt, end, bytes: 0 };
        if !row.recollecting {
            row.status = match end {
                End::Succeeded => Status::Succeeded,
                End::Failed => Status::Failed,
                End::Cancelled => Status::Canceled,
                End::ManualReview => Status::Waiting,
            };
        }
        row.recollecting = false;
        self.operates = None;
        self.outbox.insert(report.clone());
        Some(Ask::Report(report))
    }

    /// A call outside the rules of a client, when there is anything to make it from.
    pub(crate) fn slip(&self, slip: Slip) -> Option<Ask> {
        let key = |n| Key { n, old: false };
        let attempt = Attempt { id: 900, no: 1 };
        let row = self.rows.values().next();
        let wrong = |proof: Proof| Proof { token: 900, ..proof };
        match slip {
            Slip::Token => match row? {
                Row { status: Status::Claimed, proof, version, .. } => {
                    Some(Ask::Start { key: key(901), proof: wrong(*proof), version: *version, attempt })
                }
                Row { proof, execution, .. } => Some(Ask::Heartbeat { proof: wrong(*proof), execution: (*execution)?, placing: false }),
            },
            Slip::Version => {
                let row = row.filter(|row| row.status == Status::Claimed)?;
                Some(Ask::Start { key: key(902), proof: row.proof, version: row.version + 7, attempt })
            }
            Slip::Key => Some(Ask::Claim { key: key(self.last_claim?), token: 903 }),
            Slip::Forgetful => Some(Ask::Claim { key: key(904), token: 904 }),
            Slip::Again => {
                let row = row.filter(|row| row.status == Status::Running)?;
                Some(Ask::Start { key: key(905), proof: row.proof, version: row.version, attempt })
            }
            Slip::Ack => {
                let row = row.filter(|row| row.status.is_open())?;
                Some(Ask::CancelAck { key: key(906), proof: row.proof, execution: row.execution?, version: row.version })
            }
        }
    }

    /// An answer to what was sent at `sent`; the server had `answered` on its clock.
    pub(crate) fn hear(&mut self, ask: &Ask, sent: Time, answer: &Answer, answered: Time) {
        match ask {
            Ask::Report(report) => {
                if let Answer::Reported { .. } = answer {
                    self.delivered.insert(report.key());
                }
                self.outbox.remove(report);
                return;
            }
            Ask::Heartbeat { proof, .. } => return self.hear_heartbeat(*proof, sent, answer, answered),
            _ if self.open.as_ref() != Some(ask) => return,
            _ => {}
        }
        match (ask, answer) {
            // Not now: the same call stays and is sent again (D5).
            (_, Answer::No(No::DeviceNotReady | No::DeviceInUse, _)) | (Ask::Claim { .. }, Answer::No(No::DeviceBusy, _)) => return,
            (Ask::Claim { token, .. }, Answer::Stands(standing)) => self.store_claim(*token, standing),
            (Ask::Release { proof, .. } | Ask::CancelAck { proof, .. }, Answer::Stands(_)) => {
                self.rows.remove(&proof.task);
            }
            (Ask::Start { proof, .. } | Ask::Resume { proof, .. }, Answer::Stands(standing)) => {
                let recollects = matches!(ask, Ask::Resume { reason: Reason::Recollect, .. });
                if let Some(row) = self.rows.get_mut(&proof.task) {
                    row.version = standing.version;
                    row.execution = standing.execution;
                    row.status = standing.status;
                    row.cancel |= standing.cancel_requested;
                    row.recollecting = recollects;
                    self.operate(standing, sent, answered);
                }
            }
            (
                Ask::Start { proof, .. } | Ask::Resume { proof, .. } | Ask::Release { proof, .. } | Ask::CancelAck { proof, .. },
                Answer::No(no, own),
            ) => self.refused(proof.task, *no, own.map(|own| own.version)),
            _ => {}
        }
        self.open = None;
    }

    /// D5.4: a 200 is always storable, also over a row that is known.
    fn store_claim(&mut self, token: u16, standing: &Standing) {
        let row = Row {
            proof: Proof { task: standing.task, token, generation: standing.generation },
            version: standing.version,
            execution: standing.execution,
            attempt: Attempt { id: 0, no: 0 },
            status: standing.status,
            cancel: standing.cancel_requested,
            recollecting: false,
        };
        self.rows.insert(standing.task, row);
    }

    fn hear_heartbeat(&mut self, proof: Proof, sent: Time, answer: &Answer, answered: Time) {
        let Some(row) = self.rows.get_mut(&proof.task) else { return };
        if row.proof != proof || !(row.status == Status::Running || row.recollecting) {
            return;
        }
        match answer {
            Answer::Stands(standing) => {
                row.version = row.version.max(standing.version);
                row.cancel |= standing.cancel_requested;
                self.operate(standing, sent, answered);
            }
            Answer::No(No::ClaimLost | No::TaskCanceled | No::NotFound, _) => {
                self.rows.remove(&proof.task);
                self.operates = None;
            }
            _ => self.operates = None,
        }
    }

    /// Measured from the moment the request was sent, so that it never outlives the server's lease (D3).
    fn operate(&mut self, standing: &Standing, sent: Time, answered: Time) {
        let Some(lease) = standing.lease else { return };
        let until = sent + (lease - answered);
        let so_far = self.operates.filter(|(task, _)| *task == standing.task).map_or(until, |(_, until)| until);
        self.operates = Some((standing.task, until.max(so_far)));
    }

    fn refused(&mut self, task: TaskNo, no: No, version: Option<u64>) {
        match (no, version) {
            (No::VersionConflict, Some(version)) => {
                if let Some(row) = self.rows.get_mut(&task) {
                    row.version = version;
                }
            }
            (No::DeviceBusy, _) => {}
            _ => {
                self.rows.remove(&task);
                self.operates = self.operates.filter(|(on, _)| *on != task);
            }
        }
    }

    /// Memory is gone; the disk stays.
    pub(crate) fn crash(&mut self) {
        self.operates = None;
    }
}

fn attempt_id(me: DeviceNo, key: Key) -> u16 {
    u16::try_from(me).unwrap_or(0) * 100 + key.n
}
