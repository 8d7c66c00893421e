//! `start`, run heartbeat, `resume`, `release`, `cancel-ack` (T-205 §6-§10, D4). Every check is made at the server's time inside the
//! transaction that writes; a replayed key repeats identity and never extends a lease (D3).

use cmautobuy_protocol::lifecycle::{CancelAckRequest, ReleaseRequest, ResumeReason, ResumeRequest, RunHeartbeat, Standing, StartRequest};
use cmautobuy_protocol::{ClaimToken, ErrorCode, ExecutionId, IdempotencyKey, RemoteTaskId, ServerStatus, TaskType};
use serde::Serialize;
use serde_json::json;

use super::heartbeat::{must_be_alone, this_device};
use super::{EventKind, Proof, Step, own_task, request_sha256, standing, transition};
use crate::auth::Buyer;
use crate::config::ms;
use crate::house::Call;
use crate::life::LifeEvent;
use crate::refusal::{CallError, Refusal};
use crate::store::attempt::{NewAttempt, Noted, OpenedBy, attempt_note};
use crate::store::dispatch::dispatch_release;
use crate::store::execution::{NewExecution, execution_finish, execution_insert, execution_seen};
use crate::store::idempotency::{Identity, KeyOf, Operation, Seen, idempotency_insert, idempotency_seen};
use crate::store::task::{TaskRow, task_in_slot, task_save};

/// From this step on an order may exist, for ever (D10).
pub(crate) const PLACING_ORDER: &str = "placing_order";
const MAX_STEP_CHARS: usize = 64;

/// A lifecycle call: whose, of which task, with what key and token.
#[derive(Debug, Clone)]
pub(crate) struct Asked<'a, T> {
    pub(crate) buyer: Buyer,
    pub(crate) task: RemoteTaskId,
    pub(crate) token: &'a ClaimToken,
    pub(crate) key: &'a IdempotencyKey,
    pub(crate) body: &'a T,
}

impl<T: Serialize> Asked<'_, T> {
    fn proof(&self, generation: u64) -> Proof {
        Proof { generation, token_sha256: self.token.sha256_hex() }
    }

    fn request_sha256(&self, operation: Operation) -> String {
        request_sha256(operation, Some(self.task), &self.token.sha256_hex(), self.body)
    }

    fn key_of<'k>(&'k self, operation: Operation, request_sha256: &'k str) -> KeyOf<'k> {
        KeyOf { user: self.buyer.user, device: self.buyer.device, operation, key: self.key, request_sha256 }
    }
}

/// What this key led to before, if it did.
fn seen_before(call: Call<'_>, key: KeyOf<'_>) -> Result<Option<Identity>, CallError> {
    match idempotency_seen(call.tx, key)? {
        Seen::New => Ok(None),
        Seen::Before(identity) => Ok(identity),
        Seen::OtherRequest => Err(Refusal::key_reused().into()),
    }
}

fn remember(call: Call<'_>, key: KeyOf<'_>, task: &TaskRow) -> Result<(), CallError> {
    let identity = Identity { task_id: task.task_id, claim_generation: task.claim_generation, version: task.version };
    Ok(idempotency_insert(call.tx, key, Some(identity), call.now)?)
}

/// T-205 §7. `CLAIMED -> RUNNING` with one execution; a repeated key gets the same execution.
pub(crate) fn start(call: Call<'_>, asked: &Asked<'_, StartRequest>) -> Result<Standing, CallError> {
    let sha256 = asked.request_sha256(Operation::Start);
    let key = asked.key_of(Operation::Start, &sha256);
    let is_replay = seen_before(call, key)?.is_some();
    let mut task = own_task(call, asked.buyer, asked.task, &asked.proof(asked.body.claim_generation))?;
    if is_replay {
        return Ok(standing(&task, call.now));
    }
    must_be_claimed(call, &task, asked.body.expected_version)?;
    let device = this_device(call, asked.buyer)?;
    must_be_alone(call, &device)?;
    must_have_slot(call, asked.buyer, &task)?;
    let execution_id = ExecutionId::from_uuid(call.new_id());
    let execution = NewExecution {
        execution_id,
        task_id: task.task_id,
        claim_generation: task.claim_generation,
        user_id: asked.buyer.user,
        device_id: asked.buyer.device,
        phone_serial: device.heartbeat.and_then(|last| last.phone_serial),
    };
    execution_insert(call.tx, &execution, call.now)?;
    let attempt = NewAttempt {
        task_id: task.task_id,
        attempt_id: asked.body.attempt_id,
        attempt_no: asked.body.attempt_no,
        claim_generation: task.claim_generation,
        execution_id: Some(execution_id),
        opened_by: OpenedBy::Start,
    };
    note_attempt(call, &attempt)?;
    let detail = Some(json!({"attempt_id": asked.body.attempt_id, "attempt_no": asked.body.attempt_no}));
    let step = Step { life: LifeEvent::Start, kind: EventKind::RunStarted, actor: asked.buyer.into(), detail };
    let lease_end = call.now.plus_ms(ms(call.house.config.run_lease));
    transition(call, &mut task, step, |task| {
        task.execution_id = Some(execution_id);
        task.lease_expires_at = Some(lease_end);
    })?;
    remember(call, key, &task)?;
    Ok(standing(&task, call.now))
}

/// T-205 §8. Renews a live lease and notes the step; a lease that ran out is not renewed, and the task never goes back to the queue.
pub(crate) fn run_heartbeat(
    call: Call<'_>,
    buyer: Buyer,
    task: RemoteTaskId,
    token: &ClaimToken,
    body: &RunHeartbeat,
) -> Result<Standing, CallError> {
    if body.step.is_empty() || body.step.chars().count() > MAX_STEP_CHARS {
        return Err(Refusal::malformed(format!("step must be 1 to {MAX_STEP_CHARS} characters")).into());
    }
    let proof = Proof { generation: body.claim_generation, token_sha256: token.sha256_hex() };
    let mut task = own_task(call, buyer, task, &proof)?;
    must_be_execution(&task, body.execution_id)?;
    match task.status {
        ServerStatus::Running | ServerStatus::WaitingConfirmation => {}
        ServerStatus::Succeeded | ServerStatus::Failed | ServerStatus::Canceled if task.recollecting => {}
        ServerStatus::Canceled => return Err(canceled(&task).into()),
        ServerStatus::Pending | ServerStatus::Claimed | ServerStatus::Succeeded | ServerStatus::Failed => {
            return Err(illegal(&task, "the task is not running").into());
        }
    }
    must_have_lease(call, &task)?;
    // D10: the answer that lets an order be placed is the one that says no cancel was asked for.
    if body.step == PLACING_ORDER && task.asked.task_type == TaskType::Purchase && task.cancel_requested_at.is_none() {
        task.order_may_exist = true;
    }
    task.lease_expires_at = Some(call.now.plus_ms(ms(call.house.config.run_lease)));
    task_save(call.tx, &task, task.version, call.now)?;
    execution_seen(call.tx, body.execution_id, Some(&body.step), call.now)?;
    Ok(standing(&task, call.now))
}

/// D4. Goes on with the same execution under a fresh lease; `recollect` looks at a finished collect task again.
pub(crate) fn resume(call: Call<'_>, asked: &Asked<'_, ResumeRequest>) -> Result<Standing, CallError> {
    let sha256 = asked.request_sha256(Operation::Resume);
    let key = asked.key_of(Operation::Resume, &sha256);
    let is_replay = seen_before(call, key)?.is_some();
    let mut task = own_task(call, asked.buyer, asked.task, &asked.proof(asked.body.claim_generation))?;
    if is_replay {
        return Ok(standing(&task, call.now));
    }
    must_be_execution(&task, asked.body.execution_id)?;
    let life = resume_event(&task, asked.body.reason)?;
    if task.order_may_exist && asked.body.reason != ResumeReason::Reconcile {
        return Err(illegal(&task, "an order may exist for this task; it can only be resumed to reconcile").into());
    }
    must_be_alone(call, &this_device(call, asked.buyer)?)?;
    must_have_slot(call, asked.buyer, &task)?;
    let attempt = NewAttempt {
        task_id: task.task_id,
        attempt_id: asked.body.attempt_id,
        attempt_no: asked.body.attempt_no,
        claim_generation: task.claim_generation,
        execution_id: Some(asked.body.execution_id),
        opened_by: if life == LifeEvent::Recollect { OpenedBy::Recollect } else { OpenedBy::Resume },
    };
    note_attempt(call, &attempt)?;
    let detail = json!({"reason": asked.body.reason, "attempt_id": asked.body.attempt_id, "attempt_no": asked.body.attempt_no});
    let step = Step { life, kind: EventKind::RunResumed, actor: asked.buyer.into(), detail: Some(detail) };
    let lease_end = call.now.plus_ms(ms(call.house.config.run_lease));
    transition(call, &mut task, step, |task| {
        task.recollecting = life == LifeEvent::Recollect;
        task.lease_expires_at = Some(lease_end);
    })?;
    execution_seen(call.tx, asked.body.execution_id, None, call.now)?;
    remember(call, key, &task)?;
    Ok(standing(&task, call.now))
}

/// D4: RUNNING and WAITING_CONFIRMATION go on for any reason; a finished collect task only to be looked at again.
fn resume_event(task: &TaskRow, reason: ResumeReason) -> Result<LifeEvent, Refusal> {
    let may_recollect = reason == ResumeReason::Recollect && task.asked.task_type == TaskType::Collect;
    match task.status {
        ServerStatus::Running | ServerStatus::WaitingConfirmation => Ok(LifeEvent::Resume),
        ServerStatus::Succeeded | ServerStatus::Failed | ServerStatus::Canceled if may_recollect => Ok(LifeEvent::Recollect),
        ServerStatus::Canceled => Err(canceled(task)),
        ServerStatus::Succeeded | ServerStatus::Failed => Err(illegal(task, "the task has ended")),
        ServerStatus::Pending | ServerStatus::Claimed => Err(illegal(task, "the task was not started; start it")),
    }
}

/// T-205 §9. `CLAIMED -> PENDING` under a live lease; user, device, token and lease go. This device is not offered it again for 10 min (D5).
pub(crate) fn release(call: Call<'_>, asked: &Asked<'_, ReleaseRequest>) -> Result<Standing, CallError> {
    let sha256 = asked.request_sha256(Operation::Release);
    let key = asked.key_of(Operation::Release, &sha256);
    if let Some(done) = seen_before(call, key)? {
        // The task may be another's by now; only what this call did is repeated (T-205 §11).
        return Ok(Standing {
            task_id: done.task_id,
            status: ServerStatus::Pending,
            version: done.version,
            claim_generation: done.claim_generation,
            execution_id: None,
            server_time: call.now,
            lease_expires_at: None,
            cancel_requested: false,
        });
    }
    let mut task = own_task(call, asked.buyer, asked.task, &asked.proof(asked.body.claim_generation))?;
    must_be_claimed(call, &task, asked.body.expected_version)?;
    let step = Step { life: LifeEvent::Release, kind: EventKind::ClaimReleased, actor: asked.buyer.into(), detail: None };
    transition(call, &mut task, step, |task| {
        task.holder = None;
        task.lease_expires_at = None;
    })?;
    dispatch_release(call.tx, task.task_id, task.claim_generation, call.now)?;
    remember(call, key, &task)?;
    Ok(standing(&task, call.now))
}

/// T-205 §10 and D4: the device has stopped at a safe point. Needs identity, not a live lease.
pub(crate) fn cancel_ack(call: Call<'_>, asked: &Asked<'_, CancelAckRequest>) -> Result<Standing, CallError> {
    let sha256 = asked.request_sha256(Operation::CancelAck);
    let key = asked.key_of(Operation::CancelAck, &sha256);
    let is_replay = seen_before(call, key)?.is_some();
    let mut task = own_task(call, asked.buyer, asked.task, &asked.proof(asked.body.claim_generation))?;
    if is_replay {
        return Ok(standing(&task, call.now));
    }
    must_be_execution(&task, asked.body.execution_id)?;
    match task.status {
        ServerStatus::Running | ServerStatus::WaitingConfirmation => {}
        ServerStatus::Canceled => return Err(canceled(&task).into()),
        ServerStatus::Pending | ServerStatus::Claimed | ServerStatus::Succeeded | ServerStatus::Failed => {
            return Err(illegal(&task, "the task is not running").into());
        }
    }
    if task.cancel_requested_at.is_none() {
        return Err(illegal(&task, "nobody asked to cancel this task; report a cancelled result instead").into());
    }
    if task.order_may_exist {
        return Err(illegal(&task, "an order may exist for this task; reconcile it").into());
    }
    must_be_version(&task, asked.body.expected_version)?;
    let step = Step { life: LifeEvent::CancelAck, kind: EventKind::CancelAcked, actor: asked.buyer.into(), detail: None };
    transition(call, &mut task, step, |task| task.lease_expires_at = None)?;
    execution_finish(call.tx, asked.body.execution_id, call.now)?;
    remember(call, key, &task)?;
    Ok(standing(&task, call.now))
}

fn note_attempt(call: Call<'_>, attempt: &NewAttempt) -> Result<(), CallError> {
    if attempt.attempt_no == 0 {
        return Err(Refusal::malformed("attempt_no starts at 1").into());
    }
    match attempt_note(call.tx, attempt, call.now)? {
        Noted::New | Noted::Known(_) => Ok(()),
        Noted::Contradicts => Err(Refusal::malformed("this attempt_id was named before with another number or generation").into()),
    }
}

fn must_be_claimed(call: Call<'_>, task: &TaskRow, expected_version: u64) -> Result<(), Refusal> {
    match task.status {
        ServerStatus::Claimed => {}
        ServerStatus::Canceled => return Err(canceled(task)),
        ServerStatus::Pending
        | ServerStatus::Running
        | ServerStatus::WaitingConfirmation
        | ServerStatus::Succeeded
        | ServerStatus::Failed => return Err(illegal(task, "the task is not waiting to be started")),
    }
    must_have_lease(call, task)?;
    must_be_version(task, expected_version)
}

fn must_have_lease(call: Call<'_>, task: &TaskRow) -> Result<(), Refusal> {
    if task.lease_lives(call.now) {
        return Ok(());
    }
    let message = match task.status {
        ServerStatus::Claimed => "the claim ran out; claim again",
        ServerStatus::Pending
        | ServerStatus::Running
        | ServerStatus::WaitingConfirmation
        | ServerStatus::Succeeded
        | ServerStatus::Failed
        | ServerStatus::Canceled => "the run's lease ran out; stop automatic operation and resume",
    };
    Err(Refusal::new(ErrorCode::LeaseExpired, message).about(task.own()))
}

fn must_be_version(task: &TaskRow, expected: u64) -> Result<(), Refusal> {
    if task.version == expected {
        return Ok(());
    }
    let message = format!("expected version {expected}, the task is at {}; decide anew with a new key", task.version);
    Err(Refusal::new(ErrorCode::VersionConflict, message).about(task.own()))
}

fn must_be_execution(task: &TaskRow, given: ExecutionId) -> Result<(), Refusal> {
    if task.execution_id == Some(given) {
        return Ok(());
    }
    Err(Refusal::new(ErrorCode::ExecutionMismatch, "this execution is not the task's current one").about(task.own()))
}

/// T-205 §5: one task a device. The task itself does not count.
fn must_have_slot(call: Call<'_>, buyer: Buyer, task: &TaskRow) -> Result<(), CallError> {
    match task_in_slot(call.tx, buyer.device, Some(task.task_id), call.now)? {
        None => Ok(()),
        Some(held) => {
            let message = format!("this device still holds task {held}; finish or release it first");
            Err(Refusal::new(ErrorCode::DeviceBusy, message).about(task.own()).into())
        }
    }
}

fn canceled(task: &TaskRow) -> Refusal {
    Refusal::new(ErrorCode::TaskCanceled, "the task was cancelled; stop at a safe point").about(task.own())
}

fn illegal(task: &TaskRow, why: &str) -> Refusal {
    Refusal::new(ErrorCode::IllegalState, format!("{why} (it is {})", task.status)).about(task.own())
}
