//! The administrator's side of tasks: create, list, detail (D13).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::account::{Permission, UserKind};
use crate::lifecycle::text_enum;
use crate::result::{Disposition, EventType};
use crate::{AttemptId, DeviceId, ExecutionId, ExecutionMode, RemoteTaskId, ServerStatus, TaskType, UserId, WireTime};

/// `POST /admin/tasks`, with `Idempotency-Key`. Purchase tasks require `external_ref` (D19).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreateTask {
    pub task_type: TaskType,
    #[serde(default = "dry_run")]
    pub execution_mode: ExecutionMode,
    #[cfg_attr(feature = "openapi", schema(max_length = 2000, pattern = "goods_id="))]
    pub goods_url: String,
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 500))]
    pub title: Option<String>,
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 500))]
    pub target_color: Option<String>,
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 500))]
    pub target_size: Option<String>,
    #[serde(default)]
    pub price_cent: Option<u64>,
    #[serde(default)]
    pub max_price_cent: Option<u64>,
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub quantity: Option<u32>,
    #[serde(default)]
    pub priority: i64,
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 500))]
    pub external_ref: Option<String>,
}

impl CreateTask {
    /// A collect task for a goods link, with nothing else asked.
    pub fn collect(goods_url: String) -> Self {
        Self {
            task_type: TaskType::Collect,
            execution_mode: ExecutionMode::DryRun,
            goods_url,
            title: None,
            target_color: None,
            target_size: None,
            price_cent: None,
            max_price_cent: None,
            quantity: None,
            priority: 0,
            external_ref: None,
        }
    }
}

fn dry_run() -> ExecutionMode {
    ExecutionMode::DryRun
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskSummary {
    pub task_id: RemoteTaskId,
    pub task_type: TaskType,
    pub execution_mode: ExecutionMode,
    pub status: ServerStatus,
    pub version: u64,
    pub claim_generation: u64,
    pub goods_id: String,
    pub goods_url: String,
    pub title: Option<String>,
    pub external_ref: Option<String>,
    pub priority: i64,
    pub cancel_requested: bool,
    pub current_step: Option<String>,
    pub device_id: Option<DeviceId>,
    pub user_id: Option<UserId>,
    pub lease_expires_at: Option<WireTime>,
    /// Outcome of the highest attempt, so that a re-collect after FAILED is visible (D3).
    pub latest_outcome: Option<Disposition>,
    /// A live purchase may have been ordered: look before anything else is done (D10).
    #[serde(default)]
    pub order_may_exist: bool,
    /// A live purchase kept from being claimed since a restore (D7).
    #[serde(default)]
    pub held: bool,
    pub created_at: WireTime,
    pub updated_at: WireTime,
}

/// `GET /admin/tasks`: newest first; `next` is the cursor of the following page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskPage {
    pub tasks: Vec<TaskSummary>,
    pub next: Option<String>,
}

/// One transition, with who caused it (T-205 §11).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskEvent {
    pub kind: String,
    pub actor: String,
    pub from_status: Option<ServerStatus>,
    pub to_status: ServerStatus,
    pub version: u64,
    pub claim_generation: u64,
    pub execution_id: Option<ExecutionId>,
    pub detail: Option<Value>,
    pub at: WireTime,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskExecution {
    pub execution_id: ExecutionId,
    pub claim_generation: u64,
    pub device_id: DeviceId,
    pub user_id: UserId,
    pub started_at: WireTime,
    pub last_seen_at: WireTime,
    pub finished_at: Option<WireTime>,
    pub step: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskResult {
    pub idempotency_key: String,
    pub payload_sha256: String,
    pub event_type: EventType,
    pub disposition: Disposition,
    pub attempt_id: AttemptId,
    pub attempt_no: u32,
    pub claim_generation: u64,
    pub late: bool,
    /// How often the same bytes came again.
    pub duplicates: u32,
    pub received_at: WireTime,
    pub body: Value,
}

/// `GET /admin/tasks/{id}`. Never holds a token or its hash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskDetail {
    pub task: TaskSummary,
    /// What was asked for.
    #[serde(default)]
    pub asked: Option<CreateTask>,
    /// `admin:<user>` or `console`.
    #[serde(default)]
    pub created_by: Option<String>,
    #[serde(default)]
    pub reference_image: Option<ReferenceImage>,
    pub events: Vec<TaskEvent>,
    pub executions: Vec<TaskExecution>,
    pub results: Vec<TaskResult>,
}

/// What is kept of a reference image (T-205 §13); the picture itself has a call of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReferenceImage {
    /// Of the file's bytes, hex.
    pub sha256: String,
    pub bytes: u64,
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    pub uploaded_by: String,
    pub uploaded_at: WireTime,
}

text_enum! {
    /// What became of one row of a list of tasks.
    RowOutcome {
        /// A new task; in a dry run, it would be one.
        Created = "CREATED",
        /// Its `external_ref` has a task that asks for the same: nothing to do (D19).
        Exists = "EXISTS",
        /// It cannot be a task as it is; the whole list makes none.
        Refused = "REFUSED",
    }
}

/// One row of a list of tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ImportRow {
    /// As the sheet counts: the header line is 1 or below.
    pub row: u32,
    pub outcome: RowOutcome,
    /// The new or the present task; `None` when refused or in a dry run.
    pub task_id: Option<RemoteTaskId>,
    pub external_ref: Option<String>,
    /// The header above the cell at fault, as the list has it.
    pub column: Option<String>,
    /// Why it was refused and what to do.
    pub message: Option<String>,
}

/// `POST /admin/tasks/import`: all of a list or nothing of it. Any refused row leaves everything as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ImportReport {
    pub dry_run: bool,
    /// This very list with this key was taken before; this is the answer of then.
    pub repeated: bool,
    /// Tasks made, or that would be made by a dry run's list.
    pub created: u32,
    pub exists: u32,
    pub refused: u32,
    /// Columns nothing is known of; they were passed over.
    pub unknown_columns: Vec<String>,
    pub rows: Vec<ImportRow>,
}

/// `POST /admin/users`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreateUser {
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 64))]
    pub user_name: String,
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = Password, min_length = 8, max_length = 200))]
    pub password: crate::Password,
    #[cfg_attr(feature = "openapi", schema(min_items = 1))]
    pub roles: Vec<crate::auth::Role>,
    #[serde(default = "crate::account::platform")]
    pub kind: UserKind,
    #[serde(default)]
    pub permissions: Vec<Permission>,
}

impl CreateUser {
    /// A PLATFORM user with these roles and no permission beyond them.
    pub fn new(user_name: impl Into<String>, password: crate::Password, roles: Vec<crate::auth::Role>) -> Self {
        Self { user_name: user_name.into(), password, roles, kind: UserKind::Platform, permissions: Vec::new() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UserCreated {
    pub user_id: UserId,
}

/// `POST /admin/devices`: pre-authorises a device for a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuthorizeDevice {
    pub device_id: DeviceId,
    pub user_id: UserId,
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 64))]
    pub name: String,
}
