//! Pinduoduo as read from the phone: rule pack, page recognition, numbers, and the collect flow.
//!
//! The room looks through `device::Phone` and touches only with tickets of the tap guard (D10). It opens the SKU sheet only through the
//! 选择 row, never through a buy button, and it knows no database, no server and no order.

mod clock;
mod collect;
pub mod count;
mod error;
pub mod goods_page;
pub mod price;
mod recognise;
mod rules;
mod session;
mod sheet_walk;
pub mod sku_sheet;
mod skus;
mod text;

pub use clock::FlowClock;
pub use collect::{CollectContext, CollectTask, Step, StepGate, Stop, collect};
pub use error::{CollectError, Verdict};
pub use recognise::{Recognised, Unavailable, recognise, recognise_in_full};
pub use rules::{PriceWords, RulePack, RulePackError};
pub use text::fold;
