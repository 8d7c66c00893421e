//! The administrator's side (D13, D19): users, devices, tasks. The same code serves the HTTP routes, the command line and the demo that embeds
//! the server. It never sees a claim token or its hash.

use cmautobuy_protocol::admin::{AuthorizeDevice, CreateTask, CreateUser, TaskDetail, TaskEvent, TaskPage, TaskSummary, UserCreated};
use cmautobuy_protocol::goods::GoodsId;
use cmautobuy_protocol::secret::sha256_hex;
use cmautobuy_protocol::{DeviceId, ErrorCode, EventId, IdempotencyKey, Password, RemoteTaskId, ServerStatus, TaskType, UserId, WireTime};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::house::{Call, House};
use crate::life::LifeEvent;
use crate::refusal::{CallError, Refusal};
use crate::secret::hash_password;
use crate::store::admin_idempotency::{admin_idempotency_get, admin_idempotency_insert};
use crate::store::device::{device_authorize, device_forget_instance};
use crate::store::event::{event_insert, event_list};
use crate::store::execution::{execution_finish, execution_list};
use crate::store::result::result_list;
use crate::store::session::{session_delete_of_device_not, session_delete_of_user};
use crate::store::task::{TaskRow, task_by_external_ref, task_get, task_insert, task_list, task_summary};
use crate::store::user::{UserRow, user_by_id, user_by_name, user_insert, user_set_password};
use crate::work::{Actor, EventKind, Step, transition};

const PASSWORD_CHARS: std::ops::RangeInclusive<usize> = 8..=200;
const MAX_NAME_CHARS: usize = 64;
const MAX_URL_CHARS: usize = 2_000;
const MAX_TEXT_CHARS: usize = 500;
/// Tasks on one page when the caller does not say.
pub const DEFAULT_PAGE: u32 = 50;
/// Most tasks on one page.
pub const MAX_PAGE: u32 = 200;

/// `POST /admin/tasks/{id}/close` (D4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloseTask {
    /// Kept in the task's events.
    pub reason: String,
    pub expected_version: u64,
    /// A person looked through the order list; needed when an order may exist.
    #[serde(default)]
    pub order_checked: bool,
}

/// What an administrator may do. Every call is one transaction on the calling thread and blocks for it: from async code, call it on a
/// blocking thread.
#[derive(Debug, Clone, Copy)]
pub struct Admin<'a> {
    house: &'a House,
    actor: Actor,
}

impl<'a> Admin<'a> {
    pub(crate) fn new(house: &'a House, actor: Actor) -> Self {
        Self { house, actor }
    }

    /// # Errors
    /// 422 `MALFORMED` for a name or password out of bounds or no role; 409 `ALREADY_EXISTS` when the name is taken.
    pub fn create_user(&self, new: &CreateUser) -> Result<UserCreated, CallError> {
        let name = new.user_name.trim();
        if name.is_empty() || name.chars().count() > MAX_NAME_CHARS || name.chars().any(char::is_control) {
            return Err(Refusal::malformed(format!("user_name must be 1 to {MAX_NAME_CHARS} visible characters")).into());
        }
        if new.roles.is_empty() {
            return Err(Refusal::malformed("a user needs at least one role").into());
        }
        check_password(&new.password)?;
        // Hashing takes its time: not inside the transaction.
        let password = hash_password(&new.password)?;
        self.house.write(|call| {
            if user_by_name(call.tx, name)?.is_some() {
                return Err(Refusal::new(ErrorCode::AlreadyExists, format!("user {name} exists")).into());
            }
            let user_id = UserId::from_uuid(call.new_id());
            let user = UserRow { user_id, user_name: name.to_owned(), password, roles: new.roles.clone(), disabled: false };
            user_insert(call.tx, &user, call.now)?;
            tracing::info!(%user_id, actor = %self.actor, "user created");
            Ok(UserCreated { user_id })
        })
    }

    /// The id of a user by name.
    ///
    /// # Errors
    /// [`CallError::Store`] only.
    pub fn user_id(&self, user_name: &str) -> Result<Option<UserId>, CallError> {
        self.house.read(|call| Ok(user_by_name(call.tx, user_name)?.map(|user| user.user_id)))
    }

    /// Sets a new password and ends every login of the user.
    ///
    /// # Errors
    /// 404 for an unknown name, 422 for a password out of bounds.
    pub fn set_password(&self, user_name: &str, password: &Password) -> Result<(), CallError> {
        check_password(password)?;
        let password = hash_password(password)?;
        self.house.write(|call| {
            let user = user_by_name(call.tx, user_name)?.ok_or_else(|| no_such("user"))?;
            user_set_password(call.tx, user.user_id, &password)?;
            session_delete_of_user(call.tx, user.user_id)?;
            tracing::info!(user_id = %user.user_id, actor = %self.actor, "password set");
            Ok(())
        })
    }

    /// Pre-authorises a device for a user (D13). A device of another user is moved and its logins there end (D7).
    ///
    /// # Errors
    /// 404 for an unknown user, 422 for an empty or long name.
    pub fn authorize_device(&self, new: &AuthorizeDevice) -> Result<(), CallError> {
        let name = new.name.trim();
        if name.is_empty() || name.chars().count() > MAX_NAME_CHARS {
            return Err(Refusal::malformed(format!("name must be 1 to {MAX_NAME_CHARS} characters")).into());
        }
        self.house.write(|call| {
            user_by_id(call.tx, new.user_id)?.ok_or_else(|| no_such("user"))?;
            device_authorize(call.tx, new.device_id, new.user_id, name, call.now)?;
            session_delete_of_device_not(call.tx, new.device_id, new.user_id)?;
            tracing::info!(device_id = %new.device_id, user_id = %new.user_id, actor = %self.actor, "device authorised");
            Ok(())
        })
    }

    /// Forgets which instance of a device was heard last, so that a new one need not wait out the TTL (D19). Only for a person who knows that
    /// the old instance is gone.
    ///
    /// # Errors
    /// 404 for an unknown device.
    pub fn forget_instance(&self, device: DeviceId) -> Result<(), CallError> {
        self.house.write(|call| if device_forget_instance(call.tx, device)? { Ok(()) } else { Err(no_such("device").into()) })
    }

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
            let task = RemoteTaskId::from_uuid(call.new_id());
            task_insert(call.tx, task, &goods, asked, self.actor, call.now)?;
            let event = TaskEvent {
                kind: EventKind::TaskCreated.as_str().to_owned(),
                actor: self.actor.to_string(),
                from_status: None,
                to_status: ServerStatus::Pending,
                version: 1,
                claim_generation: 0,
                execution_id: None,
                detail: None,
                at: call.now,
            };
            event_insert(call.tx, EventId::from_uuid(call.new_id()), task, &event)?;
            if let Some(key) = key {
                admin_idempotency_insert(call.tx, self.actor, key, &request_sha256, task, call.now)?;
            }
            tracing::info!(task_id = %task, actor = %self.actor, "task created");
            summary(call, task)
        })
    }

    /// Newest first. `cursor` is [`TaskPage::next`] of the page before.
    ///
    /// # Errors
    /// 422 for a cursor this server did not make or a limit outside 1..=200.
    pub fn list(&self, cursor: Option<&str>, limit: Option<u32>) -> Result<TaskPage, CallError> {
        let limit = limit.unwrap_or(DEFAULT_PAGE);
        if !(1..=MAX_PAGE).contains(&limit) {
            return Err(Refusal::malformed(format!("limit must be 1 to {MAX_PAGE}")).into());
        }
        let after = cursor.map(|text| read_cursor(text).ok_or_else(|| Refusal::malformed("unknown cursor; start from the first page")));
        let after = after.transpose()?;
        self.house.read(|call| {
            let mut tasks = task_list(call.tx, after, limit + 1)?;
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
        if reason.is_empty() || reason.chars().count() > MAX_TEXT_CHARS {
            return Err(Refusal::malformed(format!("reason must be 1 to {MAX_TEXT_CHARS} characters")).into());
        }
        self.house.write(|call| {
            let mut row = get(call, task)?;
            if row.version != close.expected_version {
                let message = format!("expected version {}, the task is at {}; look again", close.expected_version, row.version);
                return Err(Refusal::new(ErrorCode::VersionConflict, message).about(row.own()).into());
            }
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
}

fn get(call: Call<'_>, task: RemoteTaskId) -> Result<TaskRow, CallError> {
    Ok(task_get(call.tx, task)?.ok_or_else(|| no_such("task"))?)
}

fn summary(call: Call<'_>, task: RemoteTaskId) -> Result<TaskSummary, CallError> {
    Ok(task_summary(call.tx, task)?.ok_or_else(|| no_such("task"))?)
}

fn no_such(what: &str) -> Refusal {
    Refusal::new(ErrorCode::NotFound, format!("no such {what}"))
}

fn read_cursor(text: &str) -> Option<(WireTime, RemoteTaskId)> {
    let (at, id) = text.split_once('_')?;
    Some((at.parse().ok()?, id.parse().ok()?))
}

fn check_password(password: &Password) -> Result<(), Refusal> {
    if PASSWORD_CHARS.contains(&password.reveal().chars().count()) {
        return Ok(());
    }
    Err(Refusal::malformed(format!("a password must be {} to {} characters", PASSWORD_CHARS.start(), PASSWORD_CHARS.end())))
}

/// What a client could never work on is refused here, where a person can still mend it.
fn check_task(asked: &CreateTask) -> Result<GoodsId, Refusal> {
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
