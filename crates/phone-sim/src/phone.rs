//! The phone around the model: files, settings, faults, journal. Everything ADB can reach goes
//! through here under one lock that is never held across an await.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::{oneshot, watch};

use crate::config::{Auth, Fault, JournalEntry, JournalKind, SimConfig};
use crate::model::{Model, Opened};
use crate::view::Window;
use crate::{render, xml};

/// What every connection watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Control {
    pub(crate) stop: bool,
    /// While true, connections are closed as soon as they exist.
    pub(crate) dropping: bool,
    /// Counts events that close every connection (a reboot).
    pub(crate) hangups: u64,
    /// Counts events that end running dumps (`pkill`, cleared faults).
    pub(crate) kills: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Faults {
    hang: bool,
    exit_137: u32,
    never_idle: bool,
    null_root: u32,
    truncated: u32,
    stale: bool,
}

#[derive(Debug)]
struct State {
    model: Model,
    files: BTreeMap<String, Vec<u8>>,
    settings: BTreeMap<String, String>,
    faults: Faults,
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

/// How one `uiautomator dump` will go; decided when it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DumpPlan {
    Normal,
    Hang,
    Exit137,
    NeverIdle,
    /// Another dump holds the only UiAutomation connection.
    Taken,
}

/// What a dump found when its time was over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Dumped {
    NullRoot,
    Xml(Vec<u8>),
    /// Says it succeeded, writes nothing.
    Stale(Vec<u8>),
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
        let state = State {
            model: Model::new(config.catalogue, config.pdd_installed, config.seed),
            files: BTreeMap::new(),
            settings: settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
            faults: Faults::default(),
            journal: Vec::new(),
            dumping: false,
            last_dump: String::new(),
            keys,
            prompts: Vec::new(),
            rng: StdRng::seed_from_u64(config.seed ^ 0xadb),
            next_pid: 9000,
        };
        Self {
            serial: config.serial,
            auth: config.auth,
            dump_time: config.dump_time,
            control: watch::Sender::new(Control::default()),
            state: Mutex::new(state),
        }
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

    // --- what a finger and a shell do -------------------------------------------------------

    fn act(&self, kind: JournalKind, apply: impl FnOnce(&mut Model) -> String) {
        let mut state = self.state();
        let screen = state.model.screen_name();
        let hit = apply(&mut state.model);
        tracing::debug!(?kind, screen, hit, "input");
        state.journal.push(JournalEntry { kind, screen, hit });
    }

    pub(crate) fn tap(&self, x: i32, y: i32) {
        self.act(JournalKind::Tap { x, y }, |model| model.tap(x, y));
    }

    pub(crate) fn swipe(&self, from: (i32, i32), to: (i32, i32), duration_ms: u32) {
        self.act(JournalKind::Swipe { from, to, duration_ms }, |model| model.swipe(from, to, duration_ms));
    }

    pub(crate) fn key(&self, code: u32) {
        self.act(JournalKind::Key(code), |model| model.key(code));
    }

    pub(crate) fn text(&self, typed: &str) {
        self.act(JournalKind::Text(typed.to_owned()), |_| "no field takes text".to_owned());
    }

    pub(crate) fn open_link(&self, url: &str, package: Option<&str>) -> Opened {
        let mut opened = Opened::Unresolved;
        self.act(JournalKind::Link(url.to_owned()), |model| {
            opened = model.open_link(url, package);
            match &opened {
                Opened::Yes(screen) => screen.clone(),
                Opened::Unresolved => "no activity takes it".to_owned(),
            }
        });
        opened
    }

    pub(crate) fn launch(&self, package: &str) -> bool {
        let mut done = false;
        self.act(JournalKind::Launch(package.to_owned()), |model| {
            done = package == crate::model::PDD && model.launch();
            model.screen_name()
        });
        done
    }

    pub(crate) fn force_stop(&self, package: &str) {
        self.act(JournalKind::ForceStop(package.to_owned()), |model| {
            if package == crate::model::PDD {
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
        }
        self.control.send_modify(|control| control.hangups += 1);
    }

    // --- faults -----------------------------------------------------------------------------

    pub(crate) fn set_fault(&self, fault: Fault) {
        let mut state = self.state();
        match fault {
            Fault::HangDump => state.faults.hang = true,
            Fault::DumpExit137 { times } => state.faults.exit_137 = times,
            Fault::NeverIdle => state.faults.never_idle = true,
            Fault::NullRoot { times } => state.faults.null_root = times,
            Fault::TruncatedXml { times } => state.faults.truncated = times,
            Fault::StaleFile => state.faults.stale = true,
            Fault::CaptchaOnGoods => state.model.walls.captcha = true,
            Fault::LoginWall => state.model.walls.login = true,
            Fault::NetworkError => state.model.walls.network = true,
            Fault::SystemUiNotification => state.model.walls.notification = true,
            Fault::ScreenLocked => {
                state.model.walls.locked = true;
                state.model.awake = false;
            }
            Fault::DropConnections => {
                drop(state);
                self.control.send_modify(|control| control.dropping = true);
            }
        }
    }

    pub(crate) fn clear_faults(&self) {
        {
            let mut state = self.state();
            state.faults = Faults::default();
            if state.model.walls.locked {
                state.model.awake = true;
            }
            state.model.walls = crate::model::Walls::default();
        }
        self.control.send_modify(|control| {
            control.dropping = false;
            control.kills += 1;
        });
    }

    pub(crate) fn kill_dumps(&self) -> bool {
        let running = self.state().dumping;
        self.control.send_modify(|control| control.kills += 1);
        running
    }

    // --- looking ----------------------------------------------------------------------------

    fn windows(&self) -> Vec<Window> {
        self.with_model(Model::windows)
    }

    pub(crate) fn screenshot(&self) -> Vec<u8> {
        render::png(&self.windows())
    }

    pub(crate) fn begin_dump(&self) -> DumpPlan {
        let mut state = self.state();
        if state.dumping {
            return DumpPlan::Taken;
        }
        if state.faults.exit_137 > 0 {
            state.faults.exit_137 -= 1;
            return DumpPlan::Exit137;
        }
        state.dumping = true;
        if state.faults.hang {
            DumpPlan::Hang
        } else if state.faults.never_idle {
            DumpPlan::NeverIdle
        } else {
            DumpPlan::Normal
        }
    }

    pub(crate) fn finish_dump(&self, compressed: bool) -> Dumped {
        let mut state = self.state();
        state.dumping = false;
        if state.faults.null_root > 0 {
            state.faults.null_root -= 1;
            return Dumped::NullRoot;
        }
        let windows = state.model.windows();
        if windows.is_empty() {
            return Dumped::NullRoot;
        }
        let whole = xml::dump(&windows, compressed);
        if state.faults.truncated > 0 {
            state.faults.truncated -= 1;
            let cut = whole.len() * 3 / 5;
            return Dumped::Xml(whole.as_bytes()[..cut].to_vec());
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

    /// `mCurrentFocus` as `package/activity`; the keyguard has one too.
    pub(crate) fn focus(&self) -> String {
        self.with_model(|model| match model.focus() {
            Some((package, activity)) => format!("Window{{5c1d2e8 u0 {package}/{activity}}}"),
            None if model.walls.locked => "Window{41ab9f0 u0 NotificationShade}".to_owned(),
            None => "null".to_owned(),
        })
    }

    // --- files and settings -----------------------------------------------------------------

    pub(crate) fn read_file(&self, path: &str) -> Option<Vec<u8>> {
        self.state().files.get(&clean(path)).cloned()
    }

    /// False where a shell may not write.
    pub(crate) fn write_file(&self, path: &str, bytes: Vec<u8>) -> bool {
        let path = clean(path);
        if !writable(&path) {
            return false;
        }
        self.state().files.insert(path, bytes);
        true
    }

    pub(crate) fn append_file(&self, path: &str, bytes: &[u8]) -> bool {
        let path = clean(path);
        if !writable(&path) {
            return false;
        }
        self.state().files.entry(path).or_default().extend_from_slice(bytes);
        true
    }

    pub(crate) fn remove_file(&self, path: &str) -> bool {
        self.state().files.remove(&clean(path)).is_some()
    }

    pub(crate) fn is_dir(&self, path: &str) -> bool {
        let path = clean(path);
        let below = format!("{}/", path.trim_end_matches('/'));
        DIRS.contains(&path.as_str()) || self.state().files.keys().any(|file| file.starts_with(&below))
    }

    /// Names and sizes directly in a directory; directories have no size.
    pub(crate) fn list(&self, path: &str) -> Vec<(String, Option<usize>)> {
        let below = format!("{}/", clean(path).trim_end_matches('/'));
        let mut found = BTreeMap::new();
        for dir in DIRS {
            if let Some(rest) = dir.strip_prefix(&below).filter(|rest| !rest.is_empty() && !rest.contains('/')) {
                found.insert(rest.to_owned(), None);
            }
        }
        for (file, bytes) in &self.state().files {
            if let Some(rest) = file.strip_prefix(&below) {
                match rest.split_once('/') {
                    None => found.insert(rest.to_owned(), Some(bytes.len())),
                    Some((dir, _)) => found.insert(dir.to_owned(), None),
                };
            }
        }
        found.into_iter().collect()
    }

    pub(crate) fn setting(&self, key: &str) -> Option<String> {
        self.state().settings.get(key).cloned()
    }

    pub(crate) fn set_setting(&self, key: String, value: Option<String>) {
        let mut state = self.state();
        match value {
            Some(value) => state.settings.insert(key, value),
            None => state.settings.remove(&key),
        };
    }

    pub(crate) fn settings(&self, namespace: &str) -> Vec<String> {
        let start = format!("{namespace} ");
        let state = self.state();
        let own = state.settings.iter().filter_map(|(key, value)| Some(format!("{}={value}", key.strip_prefix(&start)?)));
        own.collect()
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

const DIRS: [&str; 9] = ["/", "/sdcard", "/sdcard/Download", "/sdcard/DCIM", "/data", "/data/local", "/data/local/tmp", "/system", "/proc"];

fn writable(path: &str) -> bool {
    path.starts_with("/sdcard/") || path.starts_with("/data/local/tmp/")
}

/// One name per place: aliases of the shared storage, doubled slashes and dots.
fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    let joined = format!("/{}", parts.join("/"));
    for alias in ["/storage/emulated/0", "/storage/self/primary", "/mnt/sdcard"] {
        if let Some(rest) = joined.strip_prefix(alias) {
            return format!("/sdcard{rest}");
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_place_has_one_name() {
        let rows = [
            ("/sdcard//a.png", "/sdcard/a.png"),
            ("/storage/emulated/0/a", "/sdcard/a"),
            ("/data/local/tmp/../tmp/x", "/data/local/tmp/x"),
            ("/", "/"),
        ];
        for (raw, want) in rows {
            assert_eq!(clean(raw), want, "{raw} must be the same file however it is spelt");
        }
    }

    #[test]
    fn a_shell_writes_only_where_it_may() {
        let phone = Phone::new(SimConfig::default());
        assert!(phone.write_file("/sdcard/a", vec![1]), "shared storage is writable");
        assert!(phone.write_file("/data/local/tmp/a", vec![1]), "and so is the shell's own directory");
        assert!(!phone.write_file("/system/a", vec![1]), "the system is not");
    }
}
