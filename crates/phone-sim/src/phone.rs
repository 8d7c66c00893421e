//! The phone around the model: files, settings, faults, journal. Everything ADB can reach goes
//! through here under one lock that is never held across an await.

mod files;
mod trouble;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::{oneshot, watch};

use crate::clock;
use crate::config::{Auth, JournalEntry, JournalKind, SimConfig};
use crate::faults::{FaultPlan, Moment, Playing};
use crate::model::{DENSITY, HEIGHT, Model, Opened, PDD, WIDTH};
use crate::replay::Replay;
use crate::scenario::{Scenario, Trigger};
use crate::view::Window;
use crate::{render, xml};
pub(crate) use trouble::{Fate, Faults};

/// What every connection watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Control {
    pub(crate) stop: bool,
    /// While true, connections are closed as soon as they exist.
    pub(crate) dropping: bool,
    /// While true, new connections are never answered.
    pub(crate) silent: bool,
    /// While true, no key opens the phone.
    pub(crate) locked_out: bool,
    /// Counts events that close every connection (a reboot).
    pub(crate) hangups: u64,
    /// Counts events that end running dumps (`pkill`, cleared faults).
    pub(crate) kills: u64,
    /// Counts events that end a resident agent.
    pub(crate) agent_kills: u64,
}

/// The resident agent, while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Agent {
    pub(crate) port: u16,
    /// As the agent's configurator has it; 10,000 until somebody says otherwise.
    pub(crate) idle_ms: u64,
}

#[derive(Debug)]
struct State {
    model: Model,
    files: BTreeMap<String, Vec<u8>>,
    settings: BTreeMap<String, String>,
    faults: Faults,
    plan: Playing,
    replay: Option<Replay>,
    agent: Option<Agent>,
    journal: Vec<JournalEntry>,
    dumping: bool,
    last_dump: String,
    keys: Vec<String>,
    prompts: Vec<oneshot::Sender<bool>>,
    rng: StdRng,
    next_pid: u32,
}

#[derive(Debug)]
pub(crate) struct Phone {
    pub(crate) serial: String,
    pub(crate) auth: Auth,
    pub(crate) dump_time: std::time::Duration,
    pub(crate) control: watch::Sender<Control>,
    state: Mutex<State>,
}

/// Size of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Screen {
    pub(crate) width: i32,
    pub(crate) height: i32,
    pub(crate) density: u32,
}

/// How one `uiautomator dump` will go; decided when it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DumpPlan {
    Normal,
    Hang,
    Exit137,
    /// Dies with a stack trace about a character.
    Emoji,
    NeverIdle,
    /// Another program holds the only UiAutomation connection.
    Taken,
}

/// What a dump found when its time was over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Dumped {
    NullRoot,
    Xml(Vec<u8>),
    /// Says it succeeded, writes nothing.
    Stale(Vec<u8>),
    /// The same, and there never was a file.
    Lost,
}

/// Waits for a change of the control that every connection watches.
pub(crate) async fn until(control: &mut watch::Receiver<Control>, met: impl FnMut(&Control) -> bool) {
    // An error means the phone is gone, which ends the wait as well.
    drop(control.wait_for(met).await);
}

impl Phone {
    pub(crate) fn new(config: SimConfig) -> Self {
        let keys = match &config.auth {
            Auth::Only(lines) => lines.iter().map(|line| line.split_whitespace().next().unwrap_or_default().to_owned()).collect(),
            Auth::Open | Auth::AllowAny { .. } | Auth::Deny => Vec::new(),
        };
        let settings = [
            ("global window_animation_scale", "1.0"),
            ("global transition_animation_scale", "1.0"),
            ("global animator_duration_scale", "1.0"),
            ("global adb_enabled", "1"),
            ("system screen_off_timeout", "60000"),
            ("secure default_input_method", "com.android.inputmethod.latin/.LatinIME"),
        ];
        let mut model = Model::new(config.catalogue, config.pdd_installed, config.seed);
        model.now = clock::epoch_seconds();
        model.set_up(&config.scenario);
        let state = State {
            model,
            files: BTreeMap::new(),
            settings: settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
            faults: Faults::default(),
            plan: Playing::new(config.plan),
            replay: config.replay.map(Replay::new),
            agent: None,
            journal: Vec::new(),
            dumping: false,
            last_dump: String::new(),
            keys,
            prompts: Vec::new(),
            rng: StdRng::seed_from_u64(config.seed ^ 0xadb),
            next_pid: 9000,
        };
        let phone = Self {
            serial: config.serial,
            auth: config.auth,
            dump_time: config.dump_time,
            control: watch::Sender::new(Control::default()),
            state: Mutex::new(state),
        };
        phone.meet(Moment::Start);
        phone
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic in one command must not take the whole phone down.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn with_model<T>(&self, ask: impl FnOnce(&Model) -> T) -> T {
        ask(&self.state().model)
    }

    pub(crate) fn journal(&self) -> Vec<JournalEntry> {
        self.state().journal.clone()
    }

    pub(crate) fn next_pid(&self) -> u32 {
        let mut state = self.state();
        state.next_pid += 1;
        state.next_pid
    }

    /// Replaces the scenario while the phone runs: its orders are added, layers and behaviour replaced, its faults begin counting anew.
    /// Goods, seed and pace stay, because what is open must not change under a reader.
    pub(crate) fn set_up(&self, scenario: &Scenario) {
        {
            let mut state = self.state();
            state.model.now = clock::epoch_seconds();
            state.model.set_up(scenario);
        }
        self.play(FaultPlan { rules: scenario.faults.clone(), seed: scenario.seed.unwrap_or_default() });
    }

    /// Begins a schedule of faults; what is on stays on.
    pub(crate) fn play(&self, plan: FaultPlan) {
        self.state().plan = Playing::new(plan);
        self.meet(Moment::Start);
    }

    pub(crate) fn raise(&self, name: &str) -> bool {
        self.state().model.raise(name)
    }

    pub(crate) fn screen_name(&self) -> String {
        let state = self.state();
        state.replay.as_ref().map_or_else(|| state.model.screen_name(), Replay::screen_name)
    }

    // --- what a finger and a shell do -------------------------------------------------------

    fn act(&self, kind: JournalKind, apply: impl FnOnce(&mut Model) -> String) {
        self.meet(Moment::Action);
        let mut state = self.state();
        let state = &mut *state;
        if let Some(replay) = &mut state.replay {
            let screen = replay.screen_name();
            let hit = replay.act();
            state.journal.push(JournalEntry { kind, screen, hit });
            return;
        }
        state.model.now = clock::epoch_seconds();
        let screen = state.model.screen_name();
        let touch = matches!(kind, JournalKind::Tap { .. } | JournalKind::Swipe { .. });
        let in_app = touch && state.model.focus().is_some_and(|(package, _)| package == PDD);
        let hit = if touch && state.faults.dead_taps > 0 {
            state.faults.dead_taps -= 1;
            "nothing: the touch was lost".to_owned()
        } else if in_app && state.faults.crashes > 0 {
            state.faults.crashes -= 1;
            state.model.crash();
            "the app crashed".to_owned()
        } else {
            apply(&mut state.model)
        };
        if state.model.focus().is_some_and(|(package, _)| package == PDD) && screen == "launcher" {
            state.faults.entered();
        }
        tracing::debug!(?kind, screen, hit, "input");
        state.journal.push(JournalEntry { kind, screen, hit });
    }

    /// Where a touch lands on the page, which stays upright when the phone lies on its side.
    fn upright(&self, at: (i32, i32)) -> (i32, i32) {
        if self.with_model(|model| model.walls.rotated) { xml::from_side(at) } else { at }
    }

    pub(crate) fn tap(&self, x: i32, y: i32) {
        let (page_x, page_y) = self.upright((x, y));
        self.act(JournalKind::Tap { x, y }, |model| model.tap(page_x, page_y));
    }

    pub(crate) fn swipe(&self, from: (i32, i32), to: (i32, i32), duration_ms: u32) {
        let (page_from, page_to) = (self.upright(from), self.upright(to));
        self.act(JournalKind::Swipe { from, to, duration_ms }, |model| model.swipe(page_from, page_to, duration_ms));
    }

    pub(crate) fn key(&self, code: u32) {
        self.act(JournalKind::Key(code), |model| model.key(code));
    }

    pub(crate) fn text(&self, typed: &str) {
        self.act(JournalKind::Text(typed.to_owned()), |_| "no field takes text".to_owned());
    }

    /// An accessibility click by text; false when no such view is there.
    pub(crate) fn click(&self, says: &str) -> bool {
        let mut found = false;
        self.act(JournalKind::Click(says.to_owned()), |model| {
            let hit = model.click_by_text(says);
            found = hit.is_some();
            hit.unwrap_or_else(|| "nothing of that name".to_owned())
        });
        found
    }

    pub(crate) fn open_link(&self, url: &str, package: Option<&str>) -> Opened {
        self.meet(Moment::Link);
        let mut opened = Opened::Unresolved;
        if self.replaying() {
            opened = Opened::Yes("replay".to_owned());
        }
        self.act(JournalKind::Link(url.to_owned()), |model| {
            opened = model.open_link(url, package);
            match &opened {
                Opened::Yes(screen) => screen.clone(),
                Opened::Unresolved => "no activity takes it".to_owned(),
            }
        });
        self.state().faults.entered();
        opened
    }

    pub(crate) fn launch(&self, package: &str) -> bool {
        let mut done = self.replaying();
        self.act(JournalKind::Launch(package.to_owned()), |model| {
            done = package == PDD && model.launch();
            model.screen_name()
        });
        self.state().faults.entered();
        done
    }

    pub(crate) fn force_stop(&self, package: &str) {
        self.act(JournalKind::ForceStop(package.to_owned()), |model| {
            if package == PDD {
                model.force_stop();
            }
            model.screen_name()
        });
    }

    pub(crate) fn reboot(&self) {
        {
            let mut state = self.state();
            state.model.force_stop();
            state.model.key(3);
            state.agent = None;
        }
        self.control.send_modify(|control| {
            control.hangups += 1;
            control.agent_kills += 1;
        });
    }

    // --- looking ----------------------------------------------------------------------------

    fn replaying(&self) -> bool {
        self.state().replay.is_some()
    }

    pub(crate) fn screen(&self) -> Screen {
        let state = self.state();
        state.replay.as_ref().map_or(Screen { width: WIDTH, height: HEIGHT, density: DENSITY }, Replay::screen)
    }

    /// What is on the screen, as a PNG, without any fault of the picture.
    pub(crate) fn screenshot(&self) -> Vec<u8> {
        let (windows, rotated) = {
            let state = self.state();
            if let Some(replay) = &state.replay {
                return replay.png().unwrap_or_else(|| render::blank(replay.screen(), 232));
            }
            (state.model.windows(), state.model.walls.rotated)
        };
        render::png(&windows, rotated)
    }

    /// What `screencap -p` writes.
    pub(crate) fn screencap(&self) -> Vec<u8> {
        self.meet(Moment::Screenshot);
        let (black, warning, cut) = {
            let mut state = self.state();
            let cut = state.faults.cut_pngs > 0;
            state.faults.cut_pngs = state.faults.cut_pngs.saturating_sub(1);
            (state.faults.black, state.faults.png_warning, cut)
        };
        let mut png = if black { render::blank(self.screen(), 0) } else { self.screenshot() };
        // What notices a picture comes up behind it.
        self.state().model.trigger(Trigger::Screenshot);
        if cut {
            png.truncate(png.len() / 2);
        }
        if warning {
            let mut all = b"[Warning] Multiple displays were found, but no display id was specified! Defaulting to the first display found, however this default is not guaranteed to be consistent across captures.\nA display id can be specified with the [-d display-id] option.\nSee \"dumpsys SurfaceFlinger --display-id\" for valid display IDs.\n".to_vec();
            all.append(&mut png);
            return all;
        }
        png
    }

    /// How long a dump takes now.
    pub(crate) fn dump_time(&self) -> std::time::Duration {
        self.dump_time + std::time::Duration::from_millis(u64::from(self.state().faults.slow_ms))
    }

    pub(crate) fn begin_dump(&self) -> DumpPlan {
        self.meet(Moment::Dump);
        let mut state = self.state();
        if state.dumping || state.faults.other_client || state.agent.is_some() {
            return DumpPlan::Taken;
        }
        if state.faults.exit_137 > 0 {
            state.faults.exit_137 -= 1;
            return DumpPlan::Exit137;
        }
        state.dumping = true;
        if state.faults.hang {
            DumpPlan::Hang
        } else if state.faults.never_idle || state.model.restless() {
            DumpPlan::NeverIdle
        } else if state.faults.emoji_kills && xml::has_emoji(&state.model.windows()) {
            DumpPlan::Emoji
        } else {
            DumpPlan::Normal
        }
    }

    pub(crate) fn finish_dump(&self, compressed: bool) -> Dumped {
        let mut state = self.state();
        let state = &mut *state;
        state.dumping = false;
        if state.faults.null_root > 0 {
            state.faults.null_root -= 1;
            return Dumped::NullRoot;
        }
        if let Some(replay) = &mut state.replay {
            return replay.look().map_or(Dumped::NullRoot, |xml| Dumped::Xml(xml.into_bytes()));
        }
        let windows = state.seen_windows();
        if windows.is_empty() {
            return Dumped::NullRoot;
        }
        let style = xml::Style { compressed, rotated: state.model.walls.rotated, surrogates: state.faults.surrogates, indented: false };
        let whole = xml::dump(&windows, style);
        if state.faults.full_storage {
            return Dumped::Lost;
        }
        if state.faults.truncated > 0 {
            state.faults.truncated -= 1;
            let cut = whole.len() * 3 / 5;
            return Dumped::Xml(whole.as_bytes()[..cut].to_vec());
        }
        if state.faults.malformed > 0 {
            state.faults.malformed -= 1;
            return Dumped::Xml(xml::spoilt(&whole).into_bytes());
        }
        if state.faults.stale && !state.last_dump.is_empty() {
            return Dumped::Stale(state.last_dump.clone().into_bytes());
        }
        state.last_dump.clone_from(&whole);
        Dumped::Xml(whole.into_bytes())
    }

    pub(crate) fn abandon_dump(&self) {
        self.state().dumping = false;
    }

    /// Package and activity in front.
    pub(crate) fn front(&self) -> Option<(String, String)> {
        let state = self.state();
        match &state.replay {
            Some(replay) => replay.front(),
            None => state.model.focus().map(|(package, activity)| (package.to_owned(), activity.to_owned())),
        }
    }

    /// The goods id the page on top leaks.
    pub(crate) fn goods_on_top(&self) -> Option<String> {
        let state = self.state();
        match &state.replay {
            Some(replay) => replay.goods_id(),
            None => state.model.goods_on_top().map(|goods| goods.goods_id.clone()),
        }
    }

    /// `mCurrentFocus` as `package/activity`; the keyguard has one too.
    pub(crate) fn focus(&self) -> String {
        match self.front() {
            Some((package, activity)) => format!("Window{{5c1d2e8 u0 {package}/{activity}}}"),
            None if self.with_model(|model| model.walls.locked) => "Window{41ab9f0 u0 NotificationShade}".to_owned(),
            None => "null".to_owned(),
        }
    }

    // --- the agent --------------------------------------------------------------------------

    /// False when its port or the UiAutomation connection is taken.
    pub(crate) fn start_agent(&self, port: u16) -> bool {
        let mut state = self.state();
        if state.agent.is_some() || state.dumping || state.faults.other_client {
            return false;
        }
        state.agent = Some(Agent { port, idle_ms: 10_000 });
        true
    }

    pub(crate) fn end_agent(&self) {
        self.state().agent = None;
    }

    pub(crate) fn agent(&self) -> Option<Agent> {
        self.state().agent
    }

    pub(crate) fn set_agent_idle(&self, idle_ms: u64) {
        if let Some(agent) = &mut self.state().agent {
            agent.idle_ms = idle_ms;
        }
    }

    /// Whether the screen never rests now.
    pub(crate) fn restless(&self) -> bool {
        let state = self.state();
        state.faults.never_idle || state.model.restless()
    }

    /// All windows, as the agent sees them: also the system's, and emoji as two dots. `None` = no root.
    pub(crate) fn agent_dump(&self, compressed: bool) -> Option<String> {
        let mut state = self.state();
        let state = &mut *state;
        if state.faults.null_root > 0 {
            state.faults.null_root -= 1;
            return None;
        }
        if let Some(replay) = &mut state.replay {
            return replay.look();
        }
        let mut windows = state.seen_windows();
        if windows.is_empty() {
            return None;
        }
        if !state.model.walls.notification {
            windows.push(crate::model::status_icons());
        }
        let style = xml::Style { compressed, rotated: state.model.walls.rotated, surrogates: false, indented: true };
        Some(xml::dump(&windows, style))
    }

    // --- keys -------------------------------------------------------------------------------

    pub(crate) fn token(&self) -> [u8; 20] {
        self.state().rng.random()
    }

    pub(crate) fn known_keys(&self) -> Vec<String> {
        self.state().keys.clone()
    }

    pub(crate) fn remember_key(&self, base64: &str) {
        self.state().keys.push(base64.to_owned());
    }

    pub(crate) fn ask_for_key(&self) -> oneshot::Receiver<bool> {
        let (answer, asked) = oneshot::channel();
        self.state().prompts.push(answer);
        asked
    }

    pub(crate) fn answer_key_prompt(&self, allow: bool) {
        for prompt in std::mem::take(&mut self.state().prompts) {
            // The peer may have gone; then nobody is waiting for the answer.
            let _ = prompt.send(allow);
        }
    }
}

impl State {
    /// Looks once: counts it, and puts in the place of the windows what a fault shows instead.
    fn seen_windows(&mut self) -> Vec<Window> {
        self.model.looks += 1;
        let windows = self.model.windows();
        if windows.is_empty() {
            return windows;
        }
        if self.faults.wrong_window > 0 {
            self.faults.wrong_window -= 1;
            return vec![crate::model::notification_window()];
        }
        if self.faults.empty_left > 0 && windows[0].package == PDD {
            self.faults.empty_left -= 1;
            let mut bare = windows;
            bare[0].root.children.clear();
            bare.truncate(1);
            return bare;
        }
        windows
    }
}
