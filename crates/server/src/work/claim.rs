//! `claim-next` (T-205 §2-§5, D5): who gets which task, exactly once, and what a repeated call gets.

use cmautobuy_protocol::lifecycle::{ClaimAnswer, ClaimRequest, ClaimedTask};
use cmautobuy_protocol::{ClaimToken, ErrorCode, IdempotencyKey, ServerStatus};

use super::heartbeat::{must_be_alone, must_be_ready, this_device};
use super::{Actor, EventKind, Step, request_sha256, standing, transition};
use crate::auth::Buyer;
use crate::config::ms;
use crate::house::Call;
use crate::life::LifeEvent;
use crate::refusal::{CallError, Refusal};
use crate::store::StoreError;
use crate::store::dispatch::dispatch_insert;
use crate::store::idempotency::{Identity, KeyOf, Operation, Seen, idempotency_insert, idempotency_seen};
use crate::store::reference_image::reference_image_any;
use crate::store::task::{Holder, TaskRow, task_claimable, task_get, task_in_slot, task_own_expired_claim};

/// A claim key older than this is refused (D5).
const KEY_LIFE_MS: i64 = 30 * 24 * 3600 * 1000;
/// How long a device is not offered what it released (D5).
pub(crate) const RELEASED_FOR_MS: i64 = 10 * 60 * 1000;

/// `None` is 204: there is no task for this device.
pub(crate) fn claim_next(
    call: Call<'_>,
    buyer: Buyer,
    request: &ClaimRequest,
    token: &ClaimToken,
    key: &IdempotencyKey,
) -> Result<Option<ClaimAnswer>, CallError> {
    buyer.must_be(request.device_id)?;
    must_be_young(call, key)?;
    let token_sha256 = token.sha256_hex();
    let request_sha256 = request_sha256(Operation::ClaimNext, None, &token_sha256, request);
    let key = KeyOf { user: buyer.user, device: buyer.device, operation: Operation::ClaimNext, key, request_sha256: &request_sha256 };
    match idempotency_seen(call.tx, key)? {
        Seen::OtherRequest => return Err(Refusal::key_reused().into()),
        Seen::Before(None) => return Ok(None),
        Seen::Before(Some(identity)) => return replay(call, buyer, identity).map(Some),
        Seen::New => {}
    }
    let device = this_device(call, buyer)?;
    must_be_alone(call, &device)?;
    must_be_ready(call, &device)?;
    if let Some(held) = task_in_slot(call.tx, buyer.device, None, call.now)? {
        let message = format!("this device still holds task {held}; finish or release it first");
        return Err(Refusal::new(ErrorCode::DeviceBusy, message).into());
    }
    let Some(mut task) = choose(call, buyer)? else {
        idempotency_insert(call.tx, key, None, call.now)?;
        return Ok(None);
    };
    take(call, buyer, &mut task, token_sha256)?;
    let identity = Identity { task_id: task.task_id, claim_generation: task.claim_generation, version: task.version };
    idempotency_insert(call.tx, key, Some(identity), call.now)?;
    answer(call, &task).map(Some)
}

fn must_be_young(call: Call<'_>, key: &IdempotencyKey) -> Result<(), Refusal> {
    let made_ms = key.unix_ms().ok_or_else(|| Refusal::malformed("the idempotency key of a claim must be a UUIDv7"))?;
    let made_ms = i64::try_from(made_ms).unwrap_or(i64::MAX);
    if call.now.unix_ms().saturating_sub(made_ms) > KEY_LIFE_MS {
        let message = "this claim was made more than 30 days ago; make a new one (and check this computer's clock)";
        return Err(Refusal::new(ErrorCode::ClaimReplayExpired, message));
    }
    Ok(())
}

/// The same task again while it is still this claim's, before or after its start; status, version and lease are read now (T-205 §3, D3).
fn replay(call: Call<'_>, buyer: Buyer, identity: Identity) -> Result<ClaimAnswer, CallError> {
    let gone = || Refusal::new(ErrorCode::ClaimReplayExpired, "what this claim got was released, cancelled or taken back; claim anew");
    let task = task_get(call.tx, identity.task_id)?.ok_or_else(gone)?;
    let is_held = task.holder.as_ref().is_some_and(|h| h.user_id == buyer.user && h.device_id == buyer.device);
    if !is_held || task.claim_generation != identity.claim_generation || task.status.is_terminal() {
        return Err(gone().into());
    }
    answer(call, &task)
}

/// The device's own claim that ran out first, so that it is never bound to two; else the oldest (T-205 §5).
fn choose(call: Call<'_>, buyer: Buyer) -> Result<Option<TaskRow>, StoreError> {
    match task_own_expired_claim(call.tx, buyer.device, call.now)? {
        Some(own) => Ok(Some(own)),
        None => task_claimable(call.tx, buyer.device, call.now.plus_ms(-RELEASED_FOR_MS), call.now),
    }
}

fn take(call: Call<'_>, buyer: Buyer, task: &mut TaskRow, token_sha256: String) -> Result<(), CallError> {
    if task.status == ServerStatus::Claimed {
        let step = Step { life: LifeEvent::ClaimExpired, kind: EventKind::ClaimExpired, actor: Actor::Server, detail: None };
        transition(call, task, step, |task| {
            task.holder = None;
            task.lease_expires_at = None;
        })?;
    }
    let generation = task.claim_generation + 1;
    dispatch_insert(call.tx, task.task_id, generation, buyer.user, buyer.device, call.now)?;
    let step = Step { life: LifeEvent::Claim, kind: EventKind::TaskClaimed, actor: buyer.into(), detail: None };
    transition(call, task, step, |task| {
        task.claim_generation = generation;
        task.holder = Some(Holder { user_id: buyer.user, device_id: buyer.device, token_sha256 });
        task.lease_expires_at = Some(call.now.plus_ms(ms(call.house.config.claim_lease)));
    })
}

fn answer(call: Call<'_>, task: &TaskRow) -> Result<ClaimAnswer, CallError> {
    let asked = task.asked.clone();
    let has_image = reference_image_any(call.tx, task.task_id)?;
    let reference_image = has_image.then(|| super::image::path(task.task_id, task.claim_generation));
    let claimed = ClaimedTask {
        task_type: asked.task_type,
        execution_mode: asked.execution_mode,
        goods_id: Some(task.goods_id.as_str().to_owned()),
        goods_url: asked.goods_url,
        title: asked.title,
        target_color: asked.target_color,
        target_size: asked.target_size,
        price_cent: asked.price_cent,
        max_price_cent: asked.max_price_cent,
        quantity: asked.quantity,
        priority: asked.priority,
        external_ref: asked.external_ref,
        reference_image,
    };
    let claimed = serde_json::to_value(claimed).map_err(|source| StoreError::Json { table: "tasks", source })?;
    Ok(ClaimAnswer { standing: standing(task, call.now), task: claimed })
}
