//! A scenario: how the shop, the app and its troubles are set up, read from a data file. It holds no behaviour.
//!
//! The shipped ones are in `resources/phone-sim/scenarios/`; their README explains every key.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::faults::FaultRule;

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        /// Name and text of every shipped scenario.
        const SHIPPED: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../resources/phone-sim/scenarios/", $name, ".toml")))),*];
    };
}

shipped![
    "plain",
    "first_start",
    "popups_everywhere",
    "unpaid_order",
    "older_checkout",
    "pays_without_asking",
    "busy_pages",
    "bad_cable",
    "lying_trees",
    "moving_prices",
    "walls",
    "worst_day",
];

/// One set-up of the phone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    pub schema_version: u32,
    /// One sentence for people.
    pub about: String,
    pub goods: GoodsChoice,
    /// Of the catalogue, the fingers and the chances of `faults`; `None` keeps the caller's.
    pub seed: Option<u64>,
    pub dump_ms: Option<u64>,
    /// A link that is open from the beginning, such as `orders.html?type=1`.
    pub open: Option<String>,
    pub behaviour: Behaviour,
    pub popups: Vec<PopupRule>,
    pub orders: Vec<OrderBefore>,
    pub faults: Vec<FaultRule>,
}

/// What the shop sells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoodsChoice {
    /// Whatever the caller set up.
    #[default]
    Given,
    /// The named ones and 200 by seed.
    Seeded,
}

/// How the app differs from the usual build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Behaviour {
    /// The sheet ends in 确定, and a page 确认订单 follows.
    pub older_flow: bool,
    /// Pages with a countdown or a video never come to rest: `could not get idle state`.
    pub busy_countdown: bool,
    /// 提交订单 pays at once, as with 免密支付.
    pub pays_without_asking: bool,
    /// Two copies of the app, and the system asks which one takes a link.
    pub app_chooser: bool,
}

/// A layer that comes up by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PopupRule {
    /// One of `resources/phone-sim/popups.toml`.
    pub name: String,
    pub on: Trigger,
    /// The first such event that raises it; 1 when not said.
    #[serde(default = "once")]
    pub from: u32,
    /// How many times in all.
    #[serde(default = "once")]
    pub times: u32,
}

fn once() -> u32 {
    1
}

/// What brings a layer up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    Launch,
    Link,
    Goods,
    Sheet,
    Chip,
    Submit,
    Screenshot,
}

/// An order that existed before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderBefore {
    pub goods_id: String,
    #[serde(default)]
    pub spec: String,
    #[serde(default = "once")]
    pub quantity: u32,
    pub amount_cent: u64,
    #[serde(default)]
    pub status: OrderStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderStatus {
    #[default]
    Unpaid,
    ToShare,
    ToReceive,
    Done,
}

#[derive(Debug, Error)]
pub enum ScenarioError {
    #[error("failed to read the scenario")]
    Toml(#[source] toml::de::Error),
    #[error("the scenario has schema_version {0}; this build reads 1")]
    Version(u32),
    #[error("the scenario names the layer {0}, which popups.toml does not have")]
    Popup(String),
}

impl Scenario {
    /// Reads a scenario file.
    pub fn from_toml(text: &str) -> Result<Self, ScenarioError> {
        let read: Self = toml::from_str(text).map_err(ScenarioError::Toml)?;
        if read.schema_version != 1 {
            return Err(ScenarioError::Version(read.schema_version));
        }
        if let Some(unknown) = read.popups.iter().find(|rule| crate::model::popup(&rule.name).is_none()) {
            return Err(ScenarioError::Popup(unknown.name.clone()));
        }
        Ok(read)
    }

    /// A shipped scenario by name.
    pub fn named(name: &str) -> Option<Self> {
        let (_, text) = SHIPPED.iter().find(|(known, _)| *known == name)?;
        Some(Self::from_toml(text).expect("the shipped scenarios are tested"))
    }

    /// Names of the shipped scenarios.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SHIPPED.iter().map(|(name, _)| *name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_scenario_can_be_read_and_says_what_it_is() {
        for (name, text) in SHIPPED {
            let read = Scenario::from_toml(text);
            assert!(read.as_ref().is_ok_and(|one| !one.about.is_empty()), "{name} must be readable and explain itself: {read:?}");
        }
        assert_eq!(Scenario::named("no such thing"), None, "an unknown name is no scenario");
    }

    #[test]
    fn a_scenario_with_a_mistake_is_refused() {
        let rows = [
            ("no version", "about = 'x'"),
            ("a later version", "schema_version = 2"),
            ("a misspelt key", "schema_version = 1\nfault = []"),
            ("an unknown fault", "schema_version = 1\n[[faults]]\non = 'dump'\nfault = { name = 'no_such' }"),
            ("an unknown layer", "schema_version = 1\n[[popups]]\nname = 'no_such'\non = 'launch'"),
        ];
        for (what, text) in rows {
            assert!(Scenario::from_toml(text).is_err(), "must be refused: {what}");
        }
    }
}
