//! The life of a task as the server runs it: claims, leases, results (T-205, D3-D5, D19). Each call is one transaction given as [`Call`]; this
//! module knows no HTTP and no SQL text, and moves a status only through [`life::next`](crate::life::next).

pub(crate) mod claim;
pub(crate) mod heartbeat;
pub(crate) mod image;
pub(crate) mod lifecycle;
pub(crate) mod result;

use std::fmt;

use cmautobuy_protocol::admin::TaskEvent;
use cmautobuy_protocol::lifecycle::Standing;
use cmautobuy_protocol::secret::sha256_hex;
use cmautobuy_protocol::{DeviceId, ErrorCode, EventId, RemoteTaskId, UserId, WireTime};
use serde::Serialize;
use serde_json::Value;

use crate::auth::Buyer;
use crate::house::Call;
use crate::life::{LifeEvent, next};
use crate::refusal::{CallError, Refusal};
use crate::secret;
use crate::store::dispatch::dispatch_any;
use crate::store::event::event_insert;
use crate::store::idempotency::Operation;
use crate::store::task::{TaskRow, task_get, task_save};

/// Who causes a transition (T-205 §11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Actor {
    Buyer {
        user: UserId,
        device: DeviceId,
    },
    Admin(UserId),
    /// The program that has the database file: the command line, or the demo that embeds the server.
    Console,
    /// Nobody asked: a claim that had run out was found.
    Server,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Buyer { user, device } => write!(f, "buyer:{user}@{device}"),
            Self::Admin(user) => write!(f, "admin:{user}"),
            Self::Console => f.write_str("console"),
            Self::Server => f.write_str("server"),
        }
    }
}

impl From<Buyer> for Actor {
    fn from(buyer: Buyer) -> Self {
        Self::Buyer { user: buyer.user, device: buyer.device }
    }
}

/// The name of a row in a task's event list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventKind {
    TaskCreated,
    TaskClaimed,
    ClaimExpired,
    ClaimReleased,
    RunStarted,
    RunResumed,
    CancelRequested,
    TaskCanceled,
    CancelAcked,
    ResultAccepted,
    AdminClosed,
    Restored,
    HoldReleased,
}

impl EventKind {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::TaskCreated => "TASK_CREATED",
            Self::TaskClaimed => "TASK_CLAIMED",
            Self::ClaimExpired => "CLAIM_EXPIRED",
            Self::ClaimReleased => "CLAIM_RELEASED",
            Self::RunStarted => "RUN_STARTED",
            Self::RunResumed => "RUN_RESUMED",
            Self::CancelRequested => "CANCEL_REQUESTED",
            Self::TaskCanceled => "TASK_CANCELED",
            Self::CancelAcked => "CANCEL_ACKED",
            Self::ResultAccepted => "RESULT_ACCEPTED",
            Self::AdminClosed => "ADMIN_CLOSED",
            Self::Restored => "RESTORED",
            Self::HoldReleased => "HOLD_RELEASED",
        }
    }
}

/// What is about to happen to a task.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) life: LifeEvent,
    pub(crate) kind: EventKind,
    pub(crate) actor: Actor,
    pub(crate) detail: Option<Value>,
}

/// Moves the task: the status by [`next`], the rest by `change`; version + 1, one event row (T-205 §11). The only place a version rises.
pub(crate) fn transition(call: Call<'_>, task: &mut TaskRow, step: Step, change: impl FnOnce(&mut TaskRow)) -> Result<(), CallError> {
    let (from, read_at) = (task.status, task.version);
    task.status = next(from, step.life)
        .map_err(|illegal| Refusal::new(ErrorCode::IllegalState, format!("{illegal}; read the task and decide anew")).about(task.own()))?;
    task.version += 1;
    change(task);
    task_save(call.tx, task, read_at, call.now)?;
    let event = TaskEvent {
        kind: step.kind.as_str().to_owned(),
        actor: step.actor.to_string(),
        from_status: Some(from),
        to_status: task.status,
        version: task.version,
        claim_generation: task.claim_generation,
        execution_id: task.execution_id,
        detail: step.detail,
        at: call.now,
    };
    event_insert(call.tx, EventId::from_uuid(call.new_id()), task.task_id, &event)?;
    tracing::info!(task_id = %task.task_id, kind = step.kind.as_str(), from = %from, to = %task.status, version = task.version, "task moved");
    Ok(())
}

/// Where the task stands now, as every lifecycle answer says it (T-205 §11).
pub(crate) fn standing(task: &TaskRow, now: WireTime) -> Standing {
    Standing {
        task_id: task.task_id,
        status: task.status,
        version: task.version,
        claim_generation: task.claim_generation,
        execution_id: task.execution_id,
        server_time: now,
        lease_expires_at: task.lease_expires_at,
        cancel_requested: task.cancel_requested_at.is_some(),
    }
}

/// The caller's task: given to this user and device, still theirs, of this generation, with this token's hash (T-205 §6).
///
/// # Errors
/// 404 when it never was theirs; `CLAIM_LOST` without a word about the task when it no longer is or the token is another;
/// `EXECUTION_MISMATCH` with where it stands when only the generation is old.
pub(crate) fn own_task(call: Call<'_>, buyer: Buyer, task: RemoteTaskId, proof: &Proof) -> Result<TaskRow, CallError> {
    let row = task_get(call.tx, task)?.ok_or_else(Refusal::not_found)?;
    if !dispatch_any(call.tx, task, buyer.user, buyer.device)? {
        return Err(Refusal::not_found().into());
    }
    let lost = || Refusal::new(ErrorCode::ClaimLost, "this task is no longer held by this device; drop it and claim again");
    let holder = row.holder.as_ref().filter(|h| h.user_id == buyer.user && h.device_id == buyer.device).ok_or_else(lost)?;
    if row.claim_generation != proof.generation {
        let message = format!("claim generation {} is not the current one ({})", proof.generation, row.claim_generation);
        return Err(Refusal::new(ErrorCode::ExecutionMismatch, message).about(row.own()).into());
    }
    if !secret::same(&holder.token_sha256, &proof.token_sha256) {
        return Err(lost().into());
    }
    Ok(row)
}

/// What a caller shows to prove a claim: its generation and the hash of its token.
#[derive(Debug, Clone)]
pub(crate) struct Proof {
    pub(crate) generation: u64,
    pub(crate) token_sha256: String,
}

/// The hash two requests with one key are compared by; the claim token's hash is part of it (T-205 §3).
pub(crate) fn request_sha256(operation: Operation, task: Option<RemoteTaskId>, token_sha256: &str, body: &impl Serialize) -> String {
    let task = task.map(|id| id.to_string());
    let text = serde_json::to_string(&(operation.as_str(), task, token_sha256, body));
    sha256_hex(text.expect("request bodies are plain structs, which always become JSON").as_bytes())
}
