//! Which faults are on, and how each begins and ends.

use super::Phone;
use crate::faults::{Fault, Moment};
use crate::model::Walls;

/// Faults that are not the model's. Counters wear off.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Faults {
    pub(super) hang: bool,
    pub(super) slow_ms: u32,
    pub(super) exit_137: u32,
    pub(super) never_idle: bool,
    pub(super) null_root: u32,
    pub(super) truncated: u32,
    pub(super) malformed: u32,
    pub(super) surrogates: bool,
    pub(super) emoji_kills: bool,
    pub(super) wrong_window: u32,
    pub(super) stale: bool,
    pub(super) full_storage: bool,
    pub(super) other_client: bool,
    pub(super) black: bool,
    pub(super) png_warning: bool,
    pub(super) cut_pngs: u32,
    pub(super) dead_taps: u32,
    pub(super) input_denied: bool,
    pub(super) crashes: u32,
    /// Bare trees after each entry, and how many are left of this one.
    empty_times: u32,
    pub(super) empty_left: u32,
    dropped_streams: u32,
    reboots: u32,
}

impl Faults {
    /// The app came to the front.
    pub(super) fn entered(&mut self) {
        self.empty_left = self.empty_times;
    }
}

/// What becomes of a stream that begins now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Whole,
    /// Ends in the middle.
    Cut,
    /// Ends in the middle because the phone restarts.
    Reboot,
}

impl Phone {
    pub(crate) fn set_fault(&self, fault: Fault) {
        if fault == Fault::Clear {
            self.clear_faults();
            return;
        }
        {
            let mut state = self.state();
            let state = &mut *state;
            let (faults, walls) = (&mut state.faults, &mut state.model.walls);
            match fault {
                Fault::HangDump => faults.hang = true,
                Fault::SlowDump { ms } => faults.slow_ms = ms,
                Fault::DumpExit137 { times } => faults.exit_137 = times,
                Fault::NeverIdle => faults.never_idle = true,
                Fault::NullRoot { times } => faults.null_root = times,
                Fault::EmptyTree { times } => {
                    faults.empty_times = times;
                }
                Fault::TruncatedXml { times } => faults.truncated = times,
                Fault::MalformedXml { times } => faults.malformed = times,
                Fault::EmojiSurrogates => faults.surrogates = true,
                Fault::EmojiKills => faults.emoji_kills = true,
                Fault::WrongWindow { times } => faults.wrong_window = times,
                Fault::StaleFile => faults.stale = true,
                Fault::FullStorage => faults.full_storage = true,
                Fault::OtherClient => faults.other_client = true,
                Fault::BlackScreen => faults.black = true,
                Fault::PngWarning => faults.png_warning = true,
                Fault::TruncatedPng { times } => faults.cut_pngs = times,
                Fault::RebootMidCommand { times } => faults.reboots = times,
                Fault::DropStream { times } => faults.dropped_streams = times,
                Fault::DeadTaps { times } => faults.dead_taps = times,
                Fault::InputDenied => faults.input_denied = true,
                Fault::AppCrash { times } => faults.crashes = times,
                Fault::Rotation => walls.rotated = true,
                Fault::WrongGoods { times } => walls.wrong_goods = times,
                Fault::PriceChanging => walls.moving_prices = true,
                Fault::LazyPrices { looks } => walls.lazy_looks = looks,
                Fault::CaptchaOnGoods => walls.captcha = true,
                Fault::RiskNotice => walls.risk = true,
                Fault::RealName => walls.real_name = true,
                Fault::LoginWall => walls.login = true,
                Fault::NetworkError => walls.network = true,
                Fault::SystemUiNotification => walls.notification = true,
                Fault::ScreenLocked => {
                    walls.locked = true;
                    state.model.awake = false;
                }
                Fault::DropConnections | Fault::Offline | Fault::Unauthorized | Fault::Clear => {}
            }
            if fault == Fault::Unauthorized {
                state.keys.clear();
            }
        }
        match fault {
            Fault::DropConnections => self.control.send_modify(|control| control.dropping = true),
            Fault::Offline => self.control.send_modify(|control| {
                control.silent = true;
                control.hangups += 1;
            }),
            Fault::Unauthorized => self.control.send_modify(|control| {
                control.locked_out = true;
                control.hangups += 1;
            }),
            _ => {}
        }
    }

    pub(crate) fn clear_faults(&self) {
        {
            let mut state = self.state();
            state.faults = Faults::default();
            if state.model.walls.locked {
                state.model.awake = true;
            }
            state.model.walls = Walls::default();
        }
        self.control.send_modify(|control| {
            // A connection that was never answered must start again.
            control.hangups += u64::from(control.silent || control.locked_out);
            control.dropping = false;
            control.silent = false;
            control.locked_out = false;
            control.kills += 1;
        });
    }

    /// Counts a moment and begins what is due.
    pub(crate) fn meet(&self, moment: Moment) {
        let due = {
            let mut state = self.state();
            let screen = state.model.screen_name();
            state.plan.meet(moment, &screen)
        };
        for fault in due {
            tracing::debug!(?fault, ?moment, "a fault begins");
            self.set_fault(fault);
        }
    }

    /// What becomes of the command that begins now.
    pub(crate) fn fate(&self) -> Fate {
        self.meet(Moment::Command);
        let mut state = self.state();
        if state.faults.reboots > 0 {
            state.faults.reboots -= 1;
            Fate::Reboot
        } else if state.faults.dropped_streams > 0 {
            state.faults.dropped_streams -= 1;
            Fate::Cut
        } else {
            Fate::Whole
        }
    }

    pub(crate) fn input_denied(&self) -> bool {
        self.state().faults.input_denied
    }

    pub(crate) fn other_client(&self) -> bool {
        self.state().faults.other_client
    }

    pub(crate) fn kill_dumps(&self) -> bool {
        let running = self.state().dumping;
        self.control.send_modify(|control| control.kills += 1);
        running
    }

    /// False when none ran.
    pub(crate) fn kill_agent(&self) -> bool {
        let running = self.agent().is_some();
        self.control.send_modify(|control| control.agent_kills += 1);
        running
    }
}
