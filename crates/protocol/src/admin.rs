//! The administrator's side of tasks: create, list, detail (D13).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::result::{Disposition, EventType};
use crate::{AttemptId, DeviceId, ExecutionId, ExecutionMode, RemoteTaskId, ServerStatus, TaskType, UserId, WireTime};

/// `POST /admin/tasks`, with `Idempotency-Key`. Purchase tasks require `external_ref` (D19).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateTask {
    pub task_type: TaskType,
    #[serde(default = "dry_run")]
    pub execution_mode: ExecutionMode,
    pub goods_url: String,
    #[serde(default)]
    pub title: Option<String>,
    #[serde(default)]
    pub target_color: Option<String>,
    #[serde(default)]
    pub target_size: Option<String>,
    #[serde(default)]
    pub price_cent: Option<u64>,
    #[serde(default)]
    pub max_price_cent: Option<u64>,
    #[serde(default)]
    pub quantity: Option<u32>,
    #[serde(default)]
    pub priority: i64,
    #[serde(default)]
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
    pub created_at: WireTime,
    pub updated_at: WireTime,
}

/// `GET /admin/tasks`: newest first; `next` is the cursor of the following page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskPage {
    pub tasks: Vec<TaskSummary>,
    pub next: Option<String>,
}

/// One transition, with who caused it (T-205 §11).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
pub struct TaskDetail {
    pub task: TaskSummary,
    pub events: Vec<TaskEvent>,
    pub executions: Vec<TaskExecution>,
    pub results: Vec<TaskResult>,
}

/// `POST /admin/users`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateUser {
    pub user_name: String,
    pub password: crate::Password,
    pub roles: Vec<crate::auth::Role>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserCreated {
    pub user_id: UserId,
}

/// `POST /admin/devices`: pre-authorises a device for a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthorizeDevice {
    pub device_id: DeviceId,
    pub user_id: UserId,
    pub name: String,
}
