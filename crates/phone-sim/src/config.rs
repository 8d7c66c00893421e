//! What a caller can ask of a simulated phone before and while it runs.
//! It holds no behaviour: the phone, the ADB side and the pages read it.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use crate::catalogue::Catalogue;
use crate::faults::FaultPlan;
use crate::replay::Recording;
use crate::scenario::{GoodsChoice, Scenario};

/// How the simulated phone is set up.
#[derive(Debug, Clone)]
pub struct SimConfig {
    /// Port 0 takes a free one; see [`crate::Sim::addr`].
    pub listen: SocketAddr,
    pub serial: String,
    pub auth: Auth,
    /// How long one `uiautomator dump` takes.
    pub dump_time: Duration,
    pub catalogue: Catalogue,
    pub pdd_installed: bool,
    /// Same seed, same phone: swipe jitter and AUTH tokens come from it.
    pub seed: u64,
    pub scenario: Scenario,
    /// Which faults begin when.
    pub plan: FaultPlan,
    /// Plays a recorded run back instead of the model.
    pub replay: Option<Recording>,
}

impl Default for SimConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            serial: "CMSIM0001".to_owned(),
            auth: Auth::Open,
            dump_time: Duration::from_millis(350),
            catalogue: Catalogue::builtin(),
            pdd_installed: true,
            seed: 7,
            scenario: Scenario::default(),
            plan: FaultPlan::default(),
            replay: None,
        }
    }
}

impl SimConfig {
    /// The phone of a scenario: its goods, seed, pace and faults in place of the defaults.
    #[must_use]
    pub fn with_scenario(mut self, scenario: Scenario) -> Self {
        self.seed = scenario.seed.unwrap_or(self.seed);
        self.dump_time = scenario.dump_ms.map_or(self.dump_time, Duration::from_millis);
        if scenario.goods == GoodsChoice::Seeded {
            self.catalogue = Catalogue::seeded(self.seed);
        }
        self.plan = FaultPlan { rules: scenario.faults.clone(), seed: self.seed };
        self.scenario = scenario;
        self
    }
}

/// Who may connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    /// No AUTH at all, as an emulator.
    Open,
    /// Any key is accepted once it was sent and is remembered. With `ask`, the phone waits for
    /// [`crate::Sim::answer_key_prompt`] first.
    AllowAny { ask: bool },
    /// Only these keys: lines as in `adbkey.pub` (base64 of the Android format, then a comment).
    Only(Vec<String>),
    /// Never accepts anyone; peers stay `unauthorized`.
    Deny,
}

/// One thing done to the phone and what it met, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalEntry {
    pub kind: JournalKind,
    /// Name of the screen before ([`crate::Sim::screen_name`]).
    pub screen: String,
    /// What was under the finger or what the link opened, for people and tests.
    pub hit: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JournalKind {
    Tap {
        x: i32,
        y: i32,
    },
    /// An accessibility click by text, sent by an agent.
    Click(String),
    Swipe {
        from: (i32, i32),
        to: (i32, i32),
        duration_ms: u32,
    },
    Key(u32),
    Text(String),
    Link(String),
    Launch(String),
    ForceStop(String),
}
