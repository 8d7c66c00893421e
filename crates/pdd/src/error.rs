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

    /// One sentence for the person at the desk.
    pub fn next_step(&self) -> &'static str {
        match self {
            CollectError::Stopped(Stop::LeaseLost) => "Nothing to do; the server has given the task to someone else or taken it back.",
            CollectError::Stopped(Stop::CancelRequested) => "Nothing to do; the task was cancelled on the server.",
            CollectError::Stopped(Stop::OperatorStop) => "Start it again when you are ready.",
            CollectError::Phone { source, .. } => source.next_step(),
            CollectError::Refused { .. } => "Look at the phone; the page is not what the step expected. Nothing was touched.",
            CollectError::LoginWall => "Log in to Pinduoduo on the phone, then confirm the task.",
            CollectError::RiskWall { .. } => "Complete the verification on the phone yourself, then confirm the task.",
            CollectError::GoodsSoldOut { .. } => "Nothing to do; create a new task when the goods are back in stock.",
            CollectError::GoodsRemoved { .. } => "Check the goods link; the shop has taken the goods off the shelf.",
            CollectError::WrongGoods { .. } => "Open the goods link on the phone and see which goods it leads to, then try again.",
            CollectError::UnknownScreen { .. } => "Look at the last picture; close what covers the page or report the new page.",
            CollectError::PageUnreadable { .. } => "Open the goods on the phone and see whether the page loads fully, then try again.",
            CollectError::NoSkuEntry => "Open the choices on the phone by hand and see what stands in the way.",
            CollectError::SheetUnreadable { .. } => "Look at the last picture; the choices look different from what the rule pack knows.",
            CollectError::SheetUnsteady | CollectError::SheetLost => "Nothing to do; it is tried again.",
            CollectError::NetworkPage { .. } => "Check the phone's Wi-Fi and that Pinduoduo loads, then try again.",
            CollectError::Timeout { .. } => "See that the phone is unlocked and responds, then try again.",
            CollectError::Invalid { .. } => "Report this goods link with the run's files; the data was not sent.",
        }
    }
}
