//! Why a collection ended without data, what that means for the task, and what a person should do.
//!
//! Codes are stable: the engine stores them and the interface branches on them.

use cmautobuy_device::{PhoneError, Refused};
use cmautobuy_protocol::pdd_data::PddFault;

use crate::collect::{Step, Stop};
use crate::sku_sheet::SheetFault;

/// What the engine should do with the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Try again later; nothing has to be changed by a person.
    Retry,
    /// A person looks at the phone first.
    ManualReview,
    /// The goods cannot be collected; trying again gives the same.
    Failed,
    /// The engine itself asked to stop.
    Stopped,
}

impl Verdict {
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Retry => "retry",
            Verdict::ManualReview => "manual_review",
            Verdict::Failed => "failed",
            Verdict::Stopped => "stopped",
        }
    }
}

/// Why there is no data.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    #[error("the run was stopped: {0}")]
    Stopped(Stop),
    #[error("the phone failed during {step}")]
    Phone {
        step: Step,
        #[source]
        source: PhoneError,
    },
    #[error("the tap guard refused an action during {step}: {refused}")]
    Refused { step: Step, refused: Refused },
    #[error("pinduoduo asks to log in")]
    LoginWall,
    #[error("pinduoduo asks for a verification: {text}")]
    RiskWall { text: String },
    #[error("the goods are sold out: {text}")]
    GoodsSoldOut { text: String },
    #[error("the goods are gone: {text}")]
    GoodsRemoved { text: String },
    #[error("the page shows goods {}, not {want}", got.as_deref().unwrap_or("without an id"))]
    WrongGoods { want: String, got: Option<String> },
    #[error("the page is not known during {step}")]
    UnknownScreen { step: Step },
    #[error("the goods page could not be read: {what} is missing")]
    PageUnreadable { what: &'static str },
    #[error("the row that opens the choices does not open them")]
    NoSkuEntry,
    #[error("the choices could not be read")]
    SheetUnreadable {
        #[source]
        source: SheetFault,
    },
    #[error("the choices never came to rest")]
    SheetUnsteady,
    #[error("the choices closed by themselves")]
    SheetLost,
    #[error("pinduoduo shows a network error: {text}")]
    NetworkPage { text: String },
    #[error("{step} took too long")]
    Timeout { step: Step },
    #[error("what was read contradicts itself")]
    Invalid {
        #[source]
        source: PddFault,
    },
}

impl CollectError {
    /// Stable word for storage and the wire.
    pub fn code(&self) -> &'static str {
        match self {
            CollectError::Stopped(stop) => stop.code(),
            CollectError::Phone { source, .. } => source.code(),
            CollectError::Refused { .. } => "GUARD_REFUSED",
            CollectError::LoginWall => "LOGIN_WALL",
            CollectError::RiskWall { .. } => "RISK_WALL",
            CollectError::GoodsSoldOut { .. } => "GOODS_SOLD_OUT",
            CollectError::GoodsRemoved { .. } => "GOODS_REMOVED",
            CollectError::WrongGoods { .. } => "WRONG_GOODS",
            CollectError::UnknownScreen { .. } => "UNKNOWN_SCREEN",
            CollectError::PageUnreadable { .. } => "PAGE_UNREADABLE",
            CollectError::NoSkuEntry => "NO_SKU_ENTRY",
            CollectError::SheetUnreadable { .. } => "SHEET_UNREADABLE",
            CollectError::SheetUnsteady => "SHEET_UNSTEADY",
            CollectError::SheetLost => "SHEET_LOST",
            CollectError::NetworkPage { .. } => "NETWORK_PAGE",
            CollectError::Timeout { .. } => "STEP_TIMEOUT",
            CollectError::Invalid { .. } => "DATA_INVALID",
        }
    }

    /// What the engine should do with the task.
    pub fn verdict(&self) -> Verdict {
        match self {
            CollectError::Stopped(_) => Verdict::Stopped,
            CollectError::Phone { source, .. } => {
                if source.is_recoverable() {
                    Verdict::Retry
                } else {
                    Verdict::ManualReview
                }
            }
            CollectError::Refused { refused, .. } => {
                if refused.is_recoverable() {
                    Verdict::Retry
                } else {
                    Verdict::ManualReview
                }
            }
            CollectError::LoginWall
            | CollectError::RiskWall { .. }
            | CollectError::UnknownScreen { .. }
            | CollectError::NoSkuEntry
            | CollectError::SheetUnreadable { .. }
            | CollectError::Invalid { .. } => Verdict::ManualReview,
            CollectError::GoodsSoldOut { .. } | CollectError::GoodsRemoved { .. } => Verdict::Failed,
            CollectError::WrongGoods { .. }
            | CollectError::PageUnreadable { .. }
            | CollectError::SheetUnsteady
            | CollectError::SheetLost
            | CollectError::NetworkPage { .. }
            | CollectError::Timeout { .. } => Verdict::Retry,
        }
    }
}
