//! Claim, start, run heartbeat, resume, release, cancel-ack (T-205 §3-§10, D3-D5).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::goods::{BadGoods, GoodsId};
use crate::{AttemptId, DeviceId, ExecutionId, RemoteTaskId, WireTime};

// The text is a bare token, not a `literal`: utoipa passes over a `rename` it gets as a macro's literal and would document the variant's name.
macro_rules! text_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:tt,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $text)] $variant,)+ }

        impl $name {
            pub const ALL: &[$name] = &[$($name::$variant,)+];
            pub const fn as_str(self) -> &'static str { match self { $(Self::$variant => $text,)+ } }
            /// The reverse of [`Self::as_str`]; unknown text is `None`, never a default.
            pub fn parse(text: &str) -> Option<Self> { match text { $($text => Some(Self::$variant),)+ _ => None } }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str(self.as_str()) }
        }
    };
}
pub(crate) use text_enum;

text_enum! {
    /// 03 §3 `task_type`.
    TaskType { Collect = "collect", Purchase = "purchase", }
}
text_enum! {
    /// 03 §3 `execution_mode`: fixed by the server when the task is made; a client never raises it.
    ExecutionMode { DryRun = "dry_run", Live = "live", }
}
text_enum! {
    /// The server's vocabulary of state (D2, T-205).
    ServerStatus {
        Pending = "PENDING",
        Claimed = "CLAIMED",
        Running = "RUNNING",
        WaitingConfirmation = "WAITING_CONFIRMATION",
        Succeeded = "SUCCEEDED",
        Failed = "FAILED",
        Canceled = "CANCELED",
    }
}
text_enum! {
    /// Why a run goes on (D4).
    ResumeReason {
        Restart = "restart",
        Retry = "retry",
        Operator = "operator",
        LeaseLost = "lease_lost",
        Recollect = "recollect",
        Reconcile = "reconcile",
    }
}

impl ServerStatus {
    /// Terminal states never regress (T-205 §11).
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Succeeded | Self::Failed | Self::Canceled => true,
            Self::Pending | Self::Claimed | Self::Running | Self::WaitingConfirmation => false,
        }
    }
}

/// Where a task stands, as every lifecycle answer says it (T-205 §11).
///
/// A replay repeats identity (task, generation, execution); everything else is read now and a replay never extends a lease (D3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Standing {
    pub task_id: RemoteTaskId,
    pub status: ServerStatus,
    pub version: u64,
    pub claim_generation: u64,
    pub execution_id: Option<ExecutionId>,
    pub server_time: WireTime,
    pub lease_expires_at: Option<WireTime>,
    pub cancel_requested: bool,
}

/// `POST /tasks/claim-next`, with `X-Claim-Token` and `Idempotency-Key`. 204 means there is no task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClaimRequest {
    pub device_id: DeviceId,
}

/// The task as the client needs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClaimedTask {
    pub task_type: TaskType,
    pub execution_mode: ExecutionMode,
    pub goods_id: Option<String>,
    pub goods_url: String,
    pub title: Option<String>,
    pub target_color: Option<String>,
    pub target_size: Option<String>,
    pub price_cent: Option<u64>,
    pub max_price_cent: Option<u64>,
    pub quantity: Option<u32>,
    pub priority: i64,
    pub external_ref: Option<String>,
    /// Path of the task-scoped reference image, when there is one (T-205 §13).
    pub reference_image: Option<String>,
}

/// 200 of `claim-next`. `task` stays raw here: a client must be able to store it whatever it holds (D5.4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClaimAnswer {
    pub standing: Standing,
    pub task: Value,
}

/// What is wrong with a claimed task's data. The row is stored all the same and goes to `failed` (D5.4, 03 §7.1).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskFault {
    #[error("task field `{0}` is missing or of the wrong kind")]
    Field(&'static str),
    #[error("quantity must be above zero")]
    QuantityZero,
    #[error(transparent)]
    Goods(#[from] BadGoods),
    #[error("goods id `{given}` is not the link's `{in_url}`")]
    GoodsIdDiffers { given: String, in_url: String },
}

impl ClaimedTask {
    /// Reads what can be read: a field of the wrong kind becomes `None` or `""` and is named in the faults.
    pub fn read(raw: &Value) -> (Self, Vec<TaskFault>) {
        let mut faults = Vec::new();
        let mut text = |name: &'static str| match raw.get(name) {
            None | Some(Value::Null) => None,
            Some(Value::String(s)) => Some(s.clone()),
            Some(_) => {
                faults.push(TaskFault::Field(name));
                None
            }
        };
        let task_type = text("task_type");
        let execution_mode = text("execution_mode");
        let goods_id = text("goods_id");
        let goods_url = text("goods_url").unwrap_or_default();
        let (title, target_color, target_size) = (text("title"), text("target_color"), text("target_size"));
        let (external_ref, reference_image) = (text("external_ref"), text("reference_image"));
        let mut number = |name: &'static str| match raw.get(name) {
            None | Some(Value::Null) => None,
            Some(value) => {
                let n = value.as_i64();
                if n.is_none() {
                    faults.push(TaskFault::Field(name));
                }
                n
            }
        };
        let (price, max_price) = (number("price_cent"), number("max_price_cent"));
        let (quantity, priority) = (number("quantity"), number("priority"));
        let cents = |value: Option<i64>, name, faults: &mut Vec<TaskFault>| {
            let read = value.and_then(|n| u64::try_from(n).ok());
            if value.is_some() && read.is_none() {
                faults.push(TaskFault::Field(name));
            }
            read
        };
        let price_cent = cents(price, "price_cent", &mut faults);
        let max_price_cent = cents(max_price, "max_price_cent", &mut faults);
        let quantity = match quantity {
            None => None,
            Some(n) => match u32::try_from(n) {
                Ok(0) | Err(_) => {
                    faults.push(TaskFault::QuantityZero);
                    None
                }
                Ok(n) => Some(n),
            },
        };
        let task_type = task_type.as_deref().and_then(TaskType::parse).unwrap_or_else(|| {
            faults.push(TaskFault::Field("task_type"));
            TaskType::Collect
        });
        // Unknown text must never be read as `live`.
        let execution_mode = execution_mode.as_deref().and_then(ExecutionMode::parse).unwrap_or_else(|| {
            faults.push(TaskFault::Field("execution_mode"));
            ExecutionMode::DryRun
        });
        if task_type == TaskType::Purchase && quantity.is_none() && !faults.contains(&TaskFault::QuantityZero) {
            faults.push(TaskFault::Field("quantity"));
        }
        match (GoodsId::from_url(&goods_url), &goods_id) {
            (Err(fault), _) => faults.push(fault.into()),
            (Ok(in_url), Some(given)) if in_url.as_str() != given => {
                faults.push(TaskFault::GoodsIdDiffers { given: given.clone(), in_url: in_url.into() });
            }
            (Ok(_), _) => {}
        }
        // A field of the wrong kind is noticed when it is read and again where it is needed; a person is told once.
        let mut named = Vec::new();
        faults.retain(|fault| {
            let is_new = !named.contains(fault);
            if is_new {
                named.push(fault.clone());
            }
            is_new
        });
        let task = Self {
            task_type,
            execution_mode,
            goods_id,
            goods_url,
            title,
            target_color,
            target_size,
            price_cent,
            max_price_cent,
            quantity,
            priority: priority.unwrap_or(0),
            external_ref,
            reference_image,
        };
        (task, faults)
    }
}

/// `POST /tasks/{id}/start` (T-205 §7). The attempt is made with the intent and sent in it (D3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StartRequest {
    pub claim_generation: u64,
    pub expected_version: u64,
    pub attempt_id: AttemptId,
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub attempt_no: u32,
}

/// `POST /tasks/{id}/heartbeat` (T-205 §8).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunHeartbeat {
    pub claim_generation: u64,
    pub execution_id: ExecutionId,
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 64))]
    pub step: String,
}

/// `POST /tasks/{id}/resume` (D4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ResumeRequest {
    pub claim_generation: u64,
    pub execution_id: ExecutionId,
    pub reason: ResumeReason,
    pub attempt_id: AttemptId,
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub attempt_no: u32,
}

/// `POST /tasks/{id}/release` (T-205 §9).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReleaseRequest {
    pub claim_generation: u64,
    pub expected_version: u64,
}

/// `POST /tasks/{id}/cancel-ack` (T-205 §10; needs identity, not a live lease: D4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CancelAckRequest {
    pub claim_generation: u64,
    pub execution_id: ExecutionId,
    pub expected_version: u64,
}
