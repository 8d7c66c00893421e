//! What can go wrong with the phone, by name, and when it does: at a counted moment, by chance, or because somebody said so over the
//! control call. It only says which fault begins; the phone, the model and the ADB side act it out.

use serde::{Deserialize, Serialize};

use crate::dice::Dice;

/// A misbehaviour to switch on. Those with `times` wear off; the others stay until [`crate::Sim::clear_faults`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// `uiautomator dump` never ends (until cleared, or `pkill`).
    HangDump,
    /// Every dump takes this much longer.
    SlowDump { ms: u32 },
    /// `uiautomator dump` dies with 137 and says nothing.
    DumpExit137 {
        #[serde(default = "once")]
        times: u32,
    },
    /// `could not get idle state` after about 28 dump times (at most 10 s), exit 0.
    NeverIdle,
    /// `null root node`, exit 0, no file.
    NullRoot {
        #[serde(default = "once")]
        times: u32,
    },
    /// The first dumps after each time the app comes to the front hold a root and nothing in it.
    EmptyTree {
        #[serde(default = "once")]
        times: u32,
    },
    /// The file ends in the middle.
    TruncatedXml {
        #[serde(default = "once")]
        times: u32,
    },
    /// Raw `&` and `<` in labels and a tag that closes another.
    MalformedXml {
        #[serde(default = "once")]
        times: u32,
    },
    /// Characters beyond the basic plane come as two references to surrogates, which no XML may hold.
    EmojiSurrogates,
    /// A page with such a character kills the dump with a stack trace, as old Android does.
    EmojiKills,
    /// The dump holds another package's window only, with texts that look like walls and prices.
    WrongWindow {
        #[serde(default = "once")]
        times: u32,
    },
    /// The tree carries a second window: system icons whose descriptions are notification texts.
    SystemUiNotification,
    /// The dump says it succeeded but leaves the previous tree in the file.
    StaleFile,
    /// No space: the dump says it succeeded and writes nothing.
    FullStorage,
    /// Another program holds the only UiAutomation connection.
    OtherClient,
    /// Every picture is black, as for a secure window.
    BlackScreen,
    /// `screencap -p` puts a warning before the picture.
    PngWarning,
    /// The picture ends in the middle.
    TruncatedPng {
        #[serde(default = "once")]
        times: u32,
    },
    /// Every connection is closed, and new ones are too.
    DropConnections,
    /// Connections are accepted and nothing is ever answered: `offline`.
    Offline,
    /// The phone forgot every key and accepts none: `unauthorized`.
    Unauthorized,
    /// The phone restarts in the middle of the next commands.
    RebootMidCommand {
        #[serde(default = "once")]
        times: u32,
    },
    /// A stream ends in the middle of its output, without an exit status.
    DropStream {
        #[serde(default = "once")]
        times: u32,
    },
    /// Taps succeed and do nothing.
    DeadTaps {
        #[serde(default = "once")]
        times: u32,
    },
    /// `input` is refused until USB debugging (security settings) is on: INJECT_EVENTS.
    InputDenied,
    /// The next taps end Pinduoduo and leave the system's question behind.
    AppCrash {
        #[serde(default = "once")]
        times: u32,
    },
    /// The screen lies on its side.
    Rotation,
    /// A goods link opens other goods.
    WrongGoods {
        #[serde(default = "once")]
        times: u32,
    },
    /// Prices differ at every look.
    PriceChanging,
    /// After opening or choosing, so many looks have no price yet.
    LazyPrices { looks: u32 },
    /// Goods links end on 安全验证.
    CaptchaOnGoods,
    /// Goods links end on a notice that the account is limited.
    RiskNotice,
    /// Goods links end on a request to confirm who one is.
    RealName,
    /// Everything in Pinduoduo ends on the login page.
    LoginWall,
    /// Goods links end on a network error.
    NetworkError,
    /// The screen is off behind a keyguard that WAKEUP alone does not open.
    ScreenLocked,
    /// Ends every fault that is on; for rules, so that trouble can pass.
    Clear,
}

fn once() -> u32 {
    1
}

/// What is counted until a fault begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// The phone starts; counted once.
    Start,
    /// A dump begins, by either back end.
    Dump,
    /// A tap, swipe or key.
    Action,
    /// A link is opened.
    Link,
    /// A shell command begins.
    Command,
    /// A picture is taken.
    Screenshot,
}

/// One line of a schedule: at the `nth` such moment, or at `percent` of them, on screens whose name starts so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultRule {
    pub on: Moment,
    /// The first is 1; without it and without `percent`, every one.
    pub nth: Option<u32>,
    /// Chance in a hundred at each moment.
    pub percent: Option<u32>,
    /// Only on screens whose name starts with it, see [`crate::Sim::screen_name`].
    pub screen: Option<String>,
    pub fault: Fault,
}

impl FaultRule {
    pub fn at(on: Moment, nth: u32, fault: Fault) -> Self {
        Self { on, nth: Some(nth), percent: None, screen: None, fault }
    }
}

/// A schedule of faults for one run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FaultPlan {
    pub rules: Vec<FaultRule>,
    /// Decides the rules with `percent`.
    pub seed: u64,
}

impl FaultPlan {
    /// One to four faults out of all of them at random early moments; the same seed gives the same plan for ever. Faults that do not wear
    /// off are followed by [`Fault::Clear`] half the time, so that recovery is met as often as giving up.
    pub fn random(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let all = Fault::samples();
        let mut rules = Vec::new();
        for _ in 0..dice.between(1, 4) {
            let Some((fault, wears_off)) = dice.pick(&all).copied() else { continue };
            let on = [Moment::Start, Moment::Dump, Moment::Dump, Moment::Action, Moment::Action, Moment::Command][dice.below(6) as usize];
            let nth = if on == Moment::Start { 1 } else { dice.between(1, 14) as u32 };
            rules.push(FaultRule::at(on, nth, fault));
            if !wears_off && dice.percent(50) {
                rules.push(FaultRule::at(Moment::Command, nth + dice.between(4, 30) as u32, Fault::Clear));
            }
        }
        Self { rules, seed }
    }
}

impl Fault {
    /// One of each kind with mild numbers, and whether it wears off by itself. `Clear` is none.
    pub fn samples() -> Vec<(Fault, bool)> {
        vec![
            (Fault::HangDump, false),
            (Fault::SlowDump { ms: 40 }, false),
            (Fault::DumpExit137 { times: 2 }, true),
            (Fault::NeverIdle, false),
            (Fault::NullRoot { times: 2 }, true),
            (Fault::EmptyTree { times: 2 }, false),
            (Fault::TruncatedXml { times: 2 }, true),
            (Fault::MalformedXml { times: 2 }, true),
            (Fault::EmojiSurrogates, false),
            (Fault::EmojiKills, false),
            (Fault::WrongWindow { times: 2 }, true),
            (Fault::SystemUiNotification, false),
            (Fault::StaleFile, false),
            (Fault::FullStorage, false),
            (Fault::OtherClient, false),
            (Fault::BlackScreen, false),
            (Fault::PngWarning, false),
            (Fault::TruncatedPng { times: 1 }, true),
            (Fault::DropConnections, false),
            (Fault::Offline, false),
            (Fault::Unauthorized, false),
            (Fault::RebootMidCommand { times: 1 }, true),
            (Fault::DropStream { times: 1 }, true),
            (Fault::DeadTaps { times: 2 }, true),
            (Fault::InputDenied, false),
            (Fault::AppCrash { times: 1 }, true),
            (Fault::Rotation, false),
            (Fault::WrongGoods { times: 1 }, true),
            (Fault::PriceChanging, false),
            (Fault::LazyPrices { looks: 2 }, false),
            (Fault::CaptchaOnGoods, false),
            (Fault::RiskNotice, false),
            (Fault::RealName, false),
            (Fault::LoginWall, false),
            (Fault::NetworkError, false),
            (Fault::ScreenLocked, false),
        ]
    }
}

/// A plan being played: counts moments and says what begins.
#[derive(Debug)]
pub(crate) struct Playing {
    rules: Vec<FaultRule>,
    /// How often each moment came, by [`Moment`] as index.
    counts: [u32; 6],
    dice: Dice,
}

impl Playing {
    pub(crate) fn new(plan: FaultPlan) -> Self {
        Self { rules: plan.rules, counts: [0; 6], dice: Dice::new(plan.seed) }
    }

    pub(crate) fn meet(&mut self, moment: Moment, screen: &str) -> Vec<Fault> {
        let count = &mut self.counts[moment as usize];
        *count += 1;
        let count = *count;
        let mut begun = Vec::new();
        for rule in self.rules.iter().filter(|rule| rule.on == moment) {
            let here = rule.screen.as_deref().is_none_or(|start| screen.starts_with(start));
            let now = match (rule.nth, rule.percent) {
                (Some(nth), _) => nth == count,
                (None, Some(percent)) => self.dice.percent(percent),
                (None, None) => true,
            };
            if here && now {
                begun.push(rule.fault);
            }
        }
        begun
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_begins_at_its_moment_only() {
        let plan = FaultPlan {
            rules: vec![
                FaultRule::at(Moment::Dump, 2, Fault::NeverIdle),
                FaultRule {
                    on: Moment::Action,
                    nth: None,
                    percent: None,
                    screen: Some("sheet".into()),
                    fault: Fault::DeadTaps { times: 1 },
                },
            ],
            seed: 1,
        };
        let mut playing = Playing::new(plan);
        assert!(playing.meet(Moment::Dump, "home").is_empty(), "the first dump is not the second");
        assert_eq!(playing.meet(Moment::Dump, "home"), [Fault::NeverIdle], "the second is");
        assert!(playing.meet(Moment::Dump, "home").is_empty(), "and only once");
        assert!(playing.meet(Moment::Action, "goods:1").is_empty(), "another screen is spared");
        assert_eq!(playing.meet(Moment::Action, "sheet:1"), [Fault::DeadTaps { times: 1 }], "the named one is not");
    }

    #[test]
    fn a_seed_schedules_the_same_faults_for_ever() {
        assert_eq!(FaultPlan::random(9), FaultPlan::random(9), "a failing schedule must be playable again");
        let kinds: std::collections::BTreeSet<String> =
            (0..600).flat_map(|seed| FaultPlan::random(seed).rules).map(|rule| format!("{:?}", rule.fault)).collect();
        assert!(kinds.len() > Fault::samples().len(), "every fault and Clear come up, got {}", kinds.len());
    }

    #[test]
    fn faults_are_written_by_name() {
        let read = |text: &str| serde_json::from_str::<Fault>(text);
        assert_eq!(read(r#"{"name":"null_root","times":3}"#).ok(), Some(Fault::NullRoot { times: 3 }), "with its number");
        assert_eq!(read(r#"{"name":"null_root"}"#).ok(), Some(Fault::NullRoot { times: 1 }), "once when nothing is said");
        assert!(read(r#"{"name":"nul_root"}"#).is_err(), "a misspelt name is refused");
        for (fault, _) in Fault::samples() {
            let text = serde_json::to_string(&fault).expect("a fault can be written");
            assert_eq!(read(&text).ok(), Some(fault), "what is written can be read: {text}");
        }
    }
}
