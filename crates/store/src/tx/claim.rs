//! Claiming (D5): on the disk before on the wire, one open attempt at most, and a 200 is always storable.

use cmautobuy_protocol::lifecycle::{ClaimAnswer, ClaimedTask, TaskFault};
use cmautobuy_protocol::{AttemptId, ClaimToken, DeviceId, IdempotencyKey, UserId, WireTime};
use cmautobuy_task::{Event, TaskState, first_state, next};

use crate::codec::{AttemptState, CallState};
use crate::seal::Aad;
use crate::table::claim_attempt::{self, OpenAttempt};
use crate::table::server_call;
use crate::table::task::{self, ClaimWrite};
use crate::tx::STEP_RECONCILE;
use crate::{LocalTaskId, Reader, StoreError, Tx};

/// Code of the failure that reports unusable task data.
const BAD_TASK_DATA: &str = "BAD_TASK_DATA";

/// A key (UUIDv7) and a token made for a claim that is not on the disk yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FreshClaim {
    pub key: IdempotencyKey,
    pub token: ClaimToken,
}

/// The claim to send, or to send again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenClaim {
    pub key: IdempotencyKey,
    pub token: ClaimToken,
}

/// Whether to claim.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub enum PrepareOutcome {
    /// Commit, then send exactly this.
    Open(OpenClaim),
    /// This task comes first (D5.3).
    LocalTaskNeedsPhone(LocalTaskId),
    /// Another login's claim has no answer yet; only that login can settle it.
    OtherOwner { user: UserId, device: DeviceId },
}

/// A definite answer to a claim other than a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClaimEnd {
    /// 204.
    NoTask,
    /// `CLAIM_REPLAY_EXPIRED`.
    Expired,
    /// 422 or `IDEMPOTENCY_CONFLICT`.
    Refused,
}

/// What a claim's 200 met on this computer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClaimKind {
    New,
    /// A known task, claimed again (D5.4).
    Reclaimed,
    /// A known task in a state no claim may move (it has a result, or waits for a person): only the claim columns were updated.
    Kept,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClaimStored {
    pub task: LocalTaskId,
    pub kind: ClaimKind,
    /// `Failed` when the data had faults; the report is queued already.
    pub state: TaskState,
    pub faults: Vec<TaskFault>,
}

impl Reader<'_> {
    /// The claim whose answer is still unknown, with its owner.
    pub fn claim_open(&self) -> Result<Option<(OpenClaim, UserId, DeviceId)>, StoreError> {
        let Some(open) = claim_attempt::open(self.conn)? else { return Ok(None) };
        let token = self.key.open_token(&open.sealed_token, &Aad::ClaimAttempt(&open.key))?;
        Ok(Some((OpenClaim { key: open.key, token }, open.user, open.device)))
    }
}

impl Tx<'_> {
    /// Decides whether to claim and puts the claim on the disk. An attempt without an answer is handed out again instead of `fresh`,
    /// also after a restart. One that this computer's key no longer opens is closed as expired (D6).
    pub fn claim_prepare(
        &mut self,
        fresh: FreshClaim,
        user: UserId,
        device: DeviceId,
        now: WireTime,
    ) -> Result<PrepareOutcome, StoreError> {
        if let Some(task) = self.task_needing_phone()? {
            return Ok(PrepareOutcome::LocalTaskNeedsPhone(task));
        }
        if let Some(open) = claim_attempt::open(self.conn)? {
            match self.key.open_token(&open.sealed_token, &Aad::ClaimAttempt(&open.key)) {
                Ok(_) if (open.user, open.device) != (user, device) => {
                    return Ok(PrepareOutcome::OtherOwner { user: open.user, device: open.device });
                }
                Ok(token) => return Ok(PrepareOutcome::Open(OpenClaim { key: open.key, token })),
                Err(_) => {
                    claim_attempt::close(self.conn, &open.key, AttemptState::Expired, None, now)?;
                }
            }
        }
        let sealed_token = self.key.seal_token(&fresh.token, &Aad::ClaimAttempt(&fresh.key));
        let attempt = OpenAttempt { key: fresh.key.clone(), sealed_token, user, device };
        claim_attempt::insert(self.conn, &attempt, &fresh.token.sha256_hex(), now)?;
        Ok(PrepareOutcome::Open(OpenClaim { key: fresh.key, token: fresh.token }))
    }

    /// Stores a claim's 200: the task row and the settled attempt in one piece. Whatever `answer.task` holds, this succeeds; faults
    /// send the row on to `failed` with a report under `attempt` (D5.4). `raw` is kept as `admin_payload`.
    ///
    /// # Errors
    /// [`StoreError::NotOpen`] when `key` is not the open attempt; [`StoreError::Seal`].
    pub fn claim_store(
        &mut self,
        key: &IdempotencyKey,
        answer: &ClaimAnswer,
        raw: &str,
        attempt: AttemptId,
        now: WireTime,
    ) -> Result<ClaimStored, StoreError> {
        self.whole(|tx| tx.claim_store_parts(key, answer, raw, attempt, now))
    }

    fn claim_store_parts(
        &mut self,
        key: &IdempotencyKey,
        answer: &ClaimAnswer,
        raw: &str,
        attempt: AttemptId,
        now: WireTime,
    ) -> Result<ClaimStored, StoreError> {
        let open = claim_attempt::open(self.conn)?.filter(|open| open.key == *key);
        let open = open.ok_or_else(|| StoreError::NotOpen { what: "claim", id: key.to_string() })?;
        let remote = answer.standing.task_id;
        let token = self.key.open_token(&open.sealed_token, &Aad::ClaimAttempt(key))?;
        let sealed_token = self.key.seal_token(&token, &Aad::ClaimToken(remote));
        let (read, faults) = ClaimedTask::read(&answer.task);
        let write = ClaimWrite {
            task: &read,
            standing: &answer.standing,
            raw,
            sealed_token: &sealed_token,
            user: open.user,
            device: open.device,
            now,
        };
        let (id, kind, mut state) = match self.task_by_remote(remote)? {
            None => (task::insert_claimed(self.conn, first_state(), &write)?, ClaimKind::New, first_state()),
            Some(known) => {
                let facts = self.task_facts(&known)?;
                task::update_claim(self.conn, known.id, &write)?;
                if next(known.state, Event::Reclaimed, facts).is_ok() {
                    if let Some(call) = self.call_open_of(known.id)? {
                        // It names the former generation; its answer could only be a refusal.
                        server_call::settle(self.conn, call.id, CallState::Refused, None, Some("superseded by a new claim"), now)?;
                    }
                    let to = self.advance(&known, Event::Reclaimed, now)?;
                    task::update_reclaimed(self.conn, known.id, &write)?;
                    if to == TaskState::ManualReview {
                        task::set_step(self.conn, known.id, Some(STEP_RECONCILE), now)?;
                    }
                    (known.id, ClaimKind::Reclaimed, to)
                } else {
                    (known.id, ClaimKind::Kept, known.state)
                }
            }
        };
        if !claim_attempt::close(self.conn, key, AttemptState::Claimed, Some(remote), now)? {
            return Err(StoreError::NotOpen { what: "claim", id: key.to_string() });
        }
        if state == TaskState::Claimed && kind != ClaimKind::Kept && !faults.is_empty() {
            let message = faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            state = self.settle_without_phone(id, attempt, Event::BadTaskData, (BAD_TASK_DATA, &message), now)?.state;
        }
        Ok(ClaimStored { task: id, kind, state, faults })
    }

    /// Settles a claim that brought no task.
    ///
    /// # Errors
    /// [`StoreError::NotOpen`] when `key` is not the open attempt.
    pub fn claim_close(&mut self, key: &IdempotencyKey, end: ClaimEnd, now: WireTime) -> Result<(), StoreError> {
        let closed = match end {
            ClaimEnd::NoTask => claim_attempt::delete_open(self.conn, key)?,
            ClaimEnd::Expired => claim_attempt::close(self.conn, key, AttemptState::Expired, None, now)?,
            ClaimEnd::Refused => claim_attempt::close(self.conn, key, AttemptState::Refused, None, now)?,
        };
        if closed { Ok(()) } else { Err(StoreError::NotOpen { what: "claim", id: key.to_string() }) }
    }
}
