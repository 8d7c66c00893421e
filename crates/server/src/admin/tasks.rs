//! Tasks (D4, D13, D19): create, list, detail, cancel, close.

use cmautobuy_protocol::admin::{CreateTask, TaskDetail, TaskEvent, TaskPage, TaskSummary};
use cmautobuy_protocol::goods::GoodsId;
use cmautobuy_protocol::secret::sha256_hex;
use cmautobuy_protocol::{
    DeviceId, ErrorCode, EventId, ExecutionMode, IdempotencyKey, RemoteTaskId, ServerStatus, TaskType, UserId, WireTime,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Admin, checked_limit, images, no_such};
use crate::house::Call;
use crate::life::LifeEvent;
use crate::refusal::{CallError, Refusal};
use crate::store::admin_idempotency::{admin_idempotency_get, admin_idempotency_insert};
use crate::store::event::{event_insert, event_list};
use crate::store::execution::{execution_finish, execution_list};
use crate::store::result::result_list;
use crate::store::task::{TaskRow, task_by_external_ref, task_created_by, task_get, task_insert, task_summary};
use crate::store::task_list::{TaskFilter, task_list};
use crate::work::{Actor, EventKind, Step, transition};

const MAX_URL_CHARS: usize = 2_000;
const MAX_TEXT_CHARS: usize = 500;

/// `POST /admin/tasks/{id}/close` (D4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CloseTask {
    /// Kept in the task's events.
    #[schema(min_length = 1, max_length = 500)]
    pub reason: String,
    pub expected_version: u64,
    /// A person looked through the order list; needed when an order may exist.
    #[serde(default)]
    pub order_checked: bool,
}

/// Which tasks [`Admin::list`] lists; `None` is any.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct TaskQuery {
    pub status: Option<ServerStatus>,
    pub task_type: Option<TaskType>,
    pub execution_mode: Option<ExecutionMode>,
    /// Who holds it or held it last.
    pub device_id: Option<DeviceId>,
    /// Who holds it or held it last.
    pub user_id: Option<UserId>,
    /// The whole of it.
    pub external_ref: Option<String>,
    #[param(pattern = "^[0-9]{1,20}$")]
    pub goods_id: Option<String>,
    /// Part of the title; upper and lower case are the same.
    pub title: Option<String>,
    /// Created at this time or later.
    pub created_from: Option<WireTime>,
    /// Created before this time.
    pub created_before: Option<WireTime>,
    pub cancel_requested: Option<bool>,
    pub order_may_exist: Option<bool>,
    /// Kept from being claimed since a restore (D7).
    pub held: Option<bool>,
    /// `next` of the page before.
    pub cursor: Option<String>,
    /// Tasks on the page: 50 when absent.
    #[param(minimum = 1, maximum = 200)]
    pub limit: Option<u32>,
}

/// `POST /admin/tasks/{id}/release-hold` (D7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ReleaseHold {
    pub expected_version: u64,
    /// A person looked through the order list: what the task would buy was not bought after the backup.
    pub order_checked: bool,
}

impl Admin<'_> {
    /// Creates a task. The same key again gives the same task as it stands now; a taken `external_ref` names the task that has it (D19).
    ///
    /// # Errors
    /// 422 `MALFORMED`, 409 `IDEMPOTENCY_CONFLICT`, 409 `ALREADY_EXISTS`.
    pub fn create_task(&self, asked: &CreateTask, key: Option<&IdempotencyKey>) -> Result<TaskSummary, CallError> {
        let goods = check_task(asked)?;
        let request = serde_json::to_string(asked).expect("a CreateTask is a plain struct, which always becomes JSON");
        let request_sha256 = sha256_hex(request.as_bytes());
        self.house.write(|call| {
            let before = key.map(|key| admin_idempotency_get(call.tx, self.actor, key)).transpose()?.flatten();
            if let Some((sha256, task)) = before {
                return if sha256 == request_sha256 { summary(call, task) } else { Err(Refusal::key_reused().into()) };
            }
            let taken = asked.external_ref.as_deref().map(|text| task_by_external_ref(call.tx, text)).transpose()?.flatten();
            if let Some(task) = taken {
                return Err(Refusal::new(ErrorCode::AlreadyExists, format!("this external_ref exists as task {task}")).into());
            }
            let task = insert(call, self.actor, asked, &goods)?;
            if let Some(key) = key {
                admin_idempotency_insert(call.tx, self.actor, key, &request_sha256, task, call.now)?;
            }
            tracing::info!(task_id = %task, actor = %self.actor, "task created");
            summary(call, task)
        })
    }

    /// Newest first.
    ///
    /// # Errors
    /// 422 for a cursor this server did not make, a limit outside 1..=200, or a goods number that is none.
    pub fn list(&self, asked: &TaskQuery) -> Result<TaskPage, CallError> {
        let limit = checked_limit(asked.limit)?;
        let after = asked.cursor.as_deref().map(|text| read_cursor(text).ok_or_else(Refusal::unknown_cursor)).transpose()?;
        let goods_id = asked.goods_id.as_deref().map(str::parse::<GoodsId>).transpose();
        let filter = TaskFilter {
            status: asked.status,
            task_type: asked.task_type,
            execution_mode: asked.execution_mode,
            device: asked.device_id,
            user: asked.user_id,
            external_ref: asked.external_ref.as_deref(),
            goods_id: goods_id.map_err(|fault| Refusal::malformed(format!("goods_id: {fault}")))?,
            title: asked.title.as_deref(),
            created_from: asked.created_from,
            created_before: asked.created_before,
            cancel_requested: asked.cancel_requested,
            order_may_exist: asked.order_may_exist,
            held: asked.held,
        };
        self.house.read(|call| {
            let mut tasks = task_list(call.tx, &filter, after, limit + 1)?;
            let has_more = tasks.len() > limit as usize;
            tasks.truncate(limit as usize);
            let next = tasks.last().filter(|_| has_more).map(|last| format!("{}_{}", last.created_at, last.task_id));
            Ok(TaskPage { tasks, next })
        })
    }

    /// # Errors
    /// 404 for an unknown task.
    pub fn detail(&self, task: RemoteTaskId) -> Result<TaskDetail, CallError> {
        self.house.read(|call| {
            Ok(TaskDetail {
                asked: Some(get(call, task)?.asked),
                created_by: task_created_by(call.tx, task)?,
                reference_image: images::about(call, task)?,
                task: summary(call, task)?,
                events: event_list(call.tx, task)?,
                executions: execution_list(call.tx, task)?,
                results: result_list(call.tx, task)?,
            })
        })
    }

    /// T-205 §10: at once before the start, a request for a safe stop after it. Asking twice changes nothing.
    ///
    /// # Errors
    /// 404 for an unknown task, 409 `ILLEGAL_STATE` for one that has ended.
    pub fn cancel(&self, task: RemoteTaskId) -> Result<TaskSummary, CallError> {
        self.house.write(|call| {
            let mut row = get(call, task)?;
            let is_repeat = row.cancel_requested_at.is_some() && !row.status.is_terminal();
            if !is_repeat {
                let kind = match row.status {
                    ServerStatus::Running | ServerStatus::WaitingConfirmation => EventKind::CancelRequested,
                    ServerStatus::Pending
                    | ServerStatus::Claimed
                    | ServerStatus::Succeeded
                    | ServerStatus::Failed
                    | ServerStatus::Canceled => EventKind::TaskCanceled,
                };
                let step = Step { life: LifeEvent::Cancel, kind, actor: self.actor, detail: None };
                transition(call, &mut row, step, |row| {
                    row.cancel_requested_at = Some(call.now);
                    if row.status.is_terminal() {
                        row.lease_expires_at = None;
                    }
                })?;
            }
            summary(call, task)
        })
    }

    /// D4: ends a task whose device is lost. Never puts it back into the queue.
    ///
    /// # Errors
    /// 404 for an unknown task; 409 `ILLEGAL_STATE` when it is not RUNNING or WAITING_CONFIRMATION, its lease lives, or an order may exist and
    /// nobody checked; 409 `VERSION_CONFLICT`; 422 for an empty reason.
    pub fn close(&self, task: RemoteTaskId, close: &CloseTask) -> Result<TaskSummary, CallError> {
        let reason = close.reason.trim();
        if reason.is_empty() || close.reason.chars().count() > MAX_TEXT_CHARS {
            return Err(Refusal::malformed(format!("reason must be 1 to {MAX_TEXT_CHARS} characters")).into());
        }
        self.house.write(|call| {
            let mut row = get(call, task)?;
            must_be_at(&row, close.expected_version)?;
            let illegal = |why| Err(Refusal::new(ErrorCode::IllegalState, why).about(row.own()).into());
            if row.lease_lives(call.now) {
                return illegal("the device still holds a live lease; cancel the task or wait until the lease runs out");
            }
            if row.order_may_exist && !close.order_checked {
                return illegal("an order may exist; check the order list on the phone, then close with order_checked");
            }
            let detail = json!({"reason": reason, "order_checked": close.order_checked});
            let step = Step { life: LifeEvent::AdminClose, kind: EventKind::AdminClosed, actor: self.actor, detail: Some(detail) };
            transition(call, &mut row, step, |row| row.lease_expires_at = None)?;
            if let Some(execution) = row.execution_id {
                execution_finish(call.tx, execution, call.now)?;
            }
            summary(call, task)
        })
    }

    /// D7: lets a live purchase that a restore held go on as it stands.
    ///
    /// # Errors
    /// 404 for an unknown task; 409 `VERSION_CONFLICT`; 409 `ILLEGAL_STATE` when it is not held or has ended, or nobody looked through the
    /// order list.
    pub fn release_hold(&self, task: RemoteTaskId, asked: &ReleaseHold) -> Result<TaskSummary, CallError> {
        self.house.write(|call| {
            let mut row = get(call, task)?;
            must_be_at(&row, asked.expected_version)?;
            let illegal = |why| Err(Refusal::new(ErrorCode::IllegalState, why).about(row.own()).into());
            if row.held_at.is_none() {
                return illegal("the task is not held");
            }
            if !asked.order_checked {
                return illegal("it may have been bought after the backup; look through the order list, then say order_checked");
            }
            let step = Step { life: LifeEvent::ReleaseHold, kind: EventKind::HoldReleased, actor: self.actor, detail: None };
            transition(call, &mut row, step, |row| row.held_at = None)?;
            summary(call, task)
        })
    }
}

/// Makes a checked task with its first event.
pub(super) fn insert(call: Call<'_>, actor: Actor, asked: &CreateTask, goods: &GoodsId) -> Result<RemoteTaskId, CallError> {
    let task = RemoteTaskId::from_uuid(call.new_id());
    task_insert(call.tx, task, goods, asked, actor, call.now)?;
    let event = TaskEvent {
        kind: EventKind::TaskCreated.as_str().to_owned(),
        actor: actor.to_string(),
        from_status: None,
        to_status: ServerStatus::Pending,
        version: 1,
        claim_generation: 0,
        execution_id: None,
        detail: None,
        at: call.now,
    };
    event_insert(call.tx, EventId::from_uuid(call.new_id()), task, &event)?;
    Ok(task)
}

pub(super) fn get(call: Call<'_>, task: RemoteTaskId) -> Result<TaskRow, CallError> {
    Ok(task_get(call.tx, task)?.ok_or_else(|| no_such("task"))?)
}

fn must_be_at(row: &TaskRow, expected: u64) -> Result<(), CallError> {
    if row.version == expected {
        return Ok(());
    }
    let message = format!("expected version {expected}, the task is at {}; look again", row.version);
    Err(Refusal::new(ErrorCode::VersionConflict, message).about(row.own()).into())
}

fn summary(call: Call<'_>, task: RemoteTaskId) -> Result<TaskSummary, CallError> {
    Ok(task_summary(call.tx, task)?.ok_or_else(|| no_such("task"))?)
}

fn read_cursor(text: &str) -> Option<(WireTime, RemoteTaskId)> {
    let (at, id) = text.split_once('_')?;
    Some((at.parse().ok()?, id.parse().ok()?))
}

/// What a client could never work on is refused here, where a person can still mend it.
pub(super) fn check_task(asked: &CreateTask) -> Result<GoodsId, Refusal> {
    if asked.goods_url.chars().count() > MAX_URL_CHARS {
        return Err(Refusal::malformed(format!("goods_url must be at most {MAX_URL_CHARS} characters")));
    }
    let goods = GoodsId::from_url(&asked.goods_url).map_err(|fault| Refusal::malformed(format!("goods_url: {fault}")))?;
    let texts = [
        ("title", &asked.title),
        ("target_color", &asked.target_color),
        ("target_size", &asked.target_size),
        ("external_ref", &asked.external_ref),
    ];
    for (name, text) in texts {
        if text.as_ref().is_some_and(|t| t.is_empty() || t.chars().count() > MAX_TEXT_CHARS) {
            return Err(Refusal::malformed(format!("{name} must be absent or 1 to {MAX_TEXT_CHARS} characters")));
        }
    }
    for (name, cent) in [("price_cent", asked.price_cent), ("max_price_cent", asked.max_price_cent)] {
        if cent.is_some_and(|cent| i64::try_from(cent).is_err()) {
            return Err(Refusal::malformed(format!("{name} is too large")));
        }
    }
    if asked.quantity == Some(0) {
        return Err(Refusal::malformed("quantity must be above zero"));
    }
    match asked.task_type {
        TaskType::Collect => Ok(goods),
        TaskType::Purchase if asked.external_ref.is_none() => {
            Err(Refusal::malformed("a purchase task needs an external_ref, so that a list sent twice buys once"))
        }
        TaskType::Purchase if asked.quantity.is_none() => Err(Refusal::malformed("a purchase task needs a quantity")),
        TaskType::Purchase => Ok(goods),
    }
}
