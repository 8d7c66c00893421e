//! Results (D3, D8): accepted by identity, whatever the lease. A key's bytes never change; only the current generation's highest attempt moves
//! the status; everything else is kept as late. Nothing is ever thrown away.

use cmautobuy_protocol::error::chain;
use cmautobuy_protocol::result::{Disposition, EventType, ResultAnswer, ResultBody, result_key};
use cmautobuy_protocol::secret::sha256_hex;
use cmautobuy_protocol::{ErrorCode, IdempotencyKey, RemoteTaskId, TaskType};
use serde_json::json;

use super::{EventKind, Step, transition};
use crate::auth::Buyer;
use crate::house::Call;
use crate::life::{LifeEvent, next};
use crate::refusal::{CallError, Refusal, must_be_object};
use crate::store::attempt::{NewAttempt, Noted, OpenedBy, attempt_highest, attempt_note};
use crate::store::dispatch::dispatch_exact;
use crate::store::execution::{execution_exists, execution_finish};
use crate::store::reported_order::reported_order_note;
use crate::store::result::{NewResult, result_count_duplicate, result_first_answer, result_insert};
use crate::store::task::{TaskRow, task_get, task_save};

/// `bytes` is what came over the wire, at most [`cmautobuy_protocol::MAX_RESULT_BYTES`] long.
pub(crate) fn accept(
    call: Call<'_>,
    buyer: Buyer,
    task: RemoteTaskId,
    key: &IdempotencyKey,
    bytes: &[u8],
) -> Result<ResultAnswer, CallError> {
    must_be_object(bytes)?;
    let text = std::str::from_utf8(bytes).map_err(|_| Refusal::malformed("the result is not UTF-8 text"))?;
    let body: ResultBody =
        serde_json::from_str(text).map_err(|error| Refusal::malformed(format!("the result cannot be understood: {error}")))?;
    // D3: 404 for whatever was not dispatched to this user and device, existing or not.
    if !dispatch_exact(call.tx, task, body.claim_generation, buyer.user, buyer.device)? {
        return Err(Refusal::not_found().into());
    }
    let mut row = task_get(call.tx, task)?.ok_or_else(Refusal::not_found)?;
    let wanted = result_key(task, body.attempt_id, body.event_type);
    if *key != wanted {
        return Err(Refusal::malformed(format!("the idempotency key of this result must be {wanted}")).into());
    }
    let payload_sha256 = sha256_hex(bytes);
    if let Some(first) = result_first_answer(call.tx, key)? {
        if first.payload_sha256 != payload_sha256 {
            return Err(Refusal::key_reused().into());
        }
        result_count_duplicate(call.tx, key)?;
        return Ok(ResultAnswer { accepted: true, duplicate: true, late: first.late, task_status: first.task_status });
    }
    check(&row, &body)?;
    let opened_by = note_attempt(call, &row, &body)?;
    note_order(call, &row, &body)?;
    let late = !settle(call, buyer, &mut row, &body, opened_by)?;
    let new = NewResult {
        key,
        task_id: task,
        user_id: buyer.user,
        device_id: buyer.device,
        body: &body,
        text,
        payload_sha256: &payload_sha256,
        late,
        task_status: row.status,
    };
    result_insert(call.tx, &new, call.now)?;
    tracing::info!(task_id = %task, disposition = %body.disposition, attempt_no = body.attempt_no, late, "result accepted");
    Ok(ResultAnswer { accepted: true, duplicate: false, late, task_status: row.status })
}

fn check(task: &TaskRow, body: &ResultBody) -> Result<(), Refusal> {
    body.validate().map_err(|fault| Refusal::malformed(format!("the result contradicts itself: {}", chain(&fault))))?;
    let fits = match body.event_type {
        EventType::CollectResult => task.asked.task_type == TaskType::Collect,
        EventType::PurchaseResult => task.asked.task_type == TaskType::Purchase,
        EventType::TaskFailure => true,
    };
    if fits { Ok(()) } else { Err(Refusal::malformed(format!("a {} task has no {}", task.asked.task_type, body.event_type))) }
}

/// A result may be the first the server hears of an attempt (D2, D3).
fn note_attempt(call: Call<'_>, task: &TaskRow, body: &ResultBody) -> Result<OpenedBy, CallError> {
    let known_execution = match body.execution_id {
        Some(execution) if execution_exists(call.tx, execution, task.task_id, body.claim_generation)? => Some(execution),
        Some(_) | None => None,
    };
    let attempt = NewAttempt {
        task_id: task.task_id,
        attempt_id: body.attempt_id,
        attempt_no: body.attempt_no,
        claim_generation: body.claim_generation,
        execution_id: known_execution,
        opened_by: OpenedBy::Result,
    };
    match attempt_note(call.tx, &attempt, call.now)? {
        Noted::New => Ok(OpenedBy::Result),
        Noted::Known(opened_by) => Ok(opened_by),
        Noted::Contradicts => Err(Refusal::malformed("this attempt_id was named before with another number or generation").into()),
    }
}

/// D10: an order number belongs to one task.
fn note_order(call: Call<'_>, task: &TaskRow, body: &ResultBody) -> Result<(), CallError> {
    let purchase = body.pdd_data.as_ref().and_then(|data| data.purchase.as_ref());
    let Some(order_no) = purchase.and_then(|purchase| purchase.order_no.as_deref()) else { return Ok(()) };
    match reported_order_note(call.tx, order_no, task.task_id, call.now)? {
        None => Ok(()),
        Some(_) => Err(Refusal::new(ErrorCode::OrderAlreadyReported, "another task reported this order; a person must look").into()),
    }
}

/// Moves the status if this result may; `false` is late (D3).
fn settle(call: Call<'_>, buyer: Buyer, task: &mut TaskRow, body: &ResultBody, opened_by: OpenedBy) -> Result<bool, CallError> {
    let is_current = body.claim_generation == task.claim_generation
        && body.execution_id.is_none_or(|execution| task.execution_id == Some(execution))
        && body.attempt_no >= attempt_highest(call.tx, task.task_id, body.claim_generation)?;
    if !is_current {
        return Ok(false);
    }
    // D10: a cancel must never hide an order that may exist; a person looks instead.
    let disposition = match body.disposition {
        Disposition::Cancelled if task.order_may_exist => Disposition::ManualReview,
        Disposition::Succeeded | Disposition::Failed | Disposition::Cancelled | Disposition::ManualReview => body.disposition,
    };
    let life = LifeEvent::Settle(disposition);
    if next(task.status, life).is_err() {
        // The result a re-collect was for is expected, once, though the terminal status stays (D4).
        let is_waited_for = task.status.is_terminal() && task.recollecting && opened_by == OpenedBy::Recollect;
        if is_waited_for {
            task.recollecting = false;
            task.lease_expires_at = None;
            task_save(call.tx, task, task.version, call.now)?;
            finish(call, task)?;
        }
        return Ok(is_waited_for);
    }
    let detail = json!({"event_type": body.event_type, "disposition": body.disposition, "attempt_no": body.attempt_no});
    let step = Step { life, kind: EventKind::ResultAccepted, actor: buyer.into(), detail: Some(detail) };
    transition(call, task, step, |task| {
        if task.status.is_terminal() {
            task.lease_expires_at = None;
        }
    })?;
    if task.status.is_terminal() {
        finish(call, task)?;
    }
    Ok(true)
}

fn finish(call: Call<'_>, task: &TaskRow) -> Result<(), CallError> {
    match task.execution_id {
        Some(execution) => Ok(execution_finish(call.tx, execution, call.now)?),
        None => Ok(()),
    }
}
