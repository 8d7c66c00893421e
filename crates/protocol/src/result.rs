//! What the client reports (D3, D8). The bytes are made once, stored, and resent byte for byte.

use serde::{Deserialize, Serialize};

use crate::ids::BadIdempotencyKey;
use crate::lifecycle::text_enum;
use crate::pdd_data::{PddData, PddFault};
use crate::{AttemptId, ExecutionId, IdempotencyKey, RemoteTaskId, ServerStatus, WireTime};

text_enum! {
    /// 03 §5 `event_type`.
    EventType { CollectResult = "collect_result", PurchaseResult = "purchase_result", TaskFailure = "task_failure", }
}
text_enum! {
    /// How an attempt ended.
    Disposition { Succeeded = "succeeded", Failed = "failed", Cancelled = "cancelled", ManualReview = "manual_review", }
}

impl EventType {
    /// The last part of the idempotency key (03 §5.2).
    pub const fn key_suffix(self) -> &'static str {
        match self {
            Self::CollectResult | Self::PurchaseResult => "result-v1",
            Self::TaskFailure => "failure-v1",
        }
    }
}

/// The key of a result: `<remote_task_id>:<attempt_id>:result-v1|failure-v1` (03 §5.2, D8). Made once, then only read from the store.
pub fn result_key(task: RemoteTaskId, attempt: AttemptId, event: EventType) -> IdempotencyKey {
    let made: Result<IdempotencyKey, BadIdempotencyKey> = format!("{task}:{attempt}:{}", event.key_suffix()).parse();
    made.expect("two UUIDs and a fixed suffix are visible ASCII below the limit")
}

/// What went wrong, for `task_failure`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Failure {
    /// Stable code such as `GOODS_REMOVED`, `CAPTCHA`, `DEVICE_GONE`.
    pub code: String,
    pub message: String,
}

/// Body of `POST /tasks/{id}/results`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ResultBody {
    pub schema_version: u32,
    pub event_type: EventType,
    pub disposition: Disposition,
    pub claim_generation: u64,
    /// `None` for a result from CLAIMED (bad task data, D3).
    pub execution_id: Option<ExecutionId>,
    pub attempt_id: AttemptId,
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub attempt_no: u32,
    pub pdd_data: Option<PddData>,
    pub failure: Option<Failure>,
    pub finished_at: WireTime,
}

/// Why a result body contradicts itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResultFault {
    #[error("unknown schema_version {0}")]
    SchemaVersion(u32),
    #[error("event {event} cannot carry disposition {disposition}")]
    Disposition { event: EventType, disposition: Disposition },
    #[error("event {0} needs pdd_data and no failure")]
    NeedsData(EventType),
    #[error("purchase_result needs pdd_data.purchase")]
    NeedsPurchase,
    #[error("task_failure needs a failure with a code")]
    NeedsFailure,
    #[error("attempt_no starts at 1")]
    AttemptNo,
    #[error("pdd_data is invalid")]
    Data(#[from] PddFault),
}

impl ResultBody {
    pub const SCHEMA_VERSION: u32 = 1;

    /// # Errors
    /// The first [`ResultFault`] found; the server answers it as 422.
    pub fn validate(&self) -> Result<(), ResultFault> {
        if self.schema_version != Self::SCHEMA_VERSION {
            return Err(ResultFault::SchemaVersion(self.schema_version));
        }
        if self.attempt_no == 0 {
            return Err(ResultFault::AttemptNo);
        }
        let is_success = self.disposition == Disposition::Succeeded;
        match self.event_type {
            EventType::CollectResult | EventType::PurchaseResult => {
                if !is_success {
                    return Err(ResultFault::Disposition { event: self.event_type, disposition: self.disposition });
                }
                match (&self.pdd_data, &self.failure) {
                    (Some(data), None) => {
                        data.validate()?;
                        if self.event_type == EventType::PurchaseResult && data.purchase.is_none() {
                            return Err(ResultFault::NeedsPurchase);
                        }
                    }
                    (None, _) | (Some(_), Some(_)) => return Err(ResultFault::NeedsData(self.event_type)),
                }
            }
            EventType::TaskFailure => {
                if is_success {
                    return Err(ResultFault::Disposition { event: self.event_type, disposition: self.disposition });
                }
                if self.failure.as_ref().is_none_or(|f| f.code.is_empty()) {
                    return Err(ResultFault::NeedsFailure);
                }
                // What was read before the failure may come along, but not unchecked.
                if let Some(data) = &self.pdd_data {
                    data.validate()?;
                }
            }
        }
        Ok(())
    }
}

/// Answer to a result: accepted by identity, whatever the lease (D3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ResultAnswer {
    pub accepted: bool,
    /// The same bytes were already here; this is the first answer again.
    pub duplicate: bool,
    /// Stored, but it did not move the status: not the current generation's highest attempt.
    pub late: bool,
    pub task_status: ServerStatus,
}
