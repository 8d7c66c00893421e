//! The running client: what the window and the console ask of it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cmautobuy_device::AdbKey;
use cmautobuy_device::connect::AdbHub;
use cmautobuy_engine::{WorkOrder, WorkState};
use cmautobuy_protocol::{DeviceId, Password};
use cmautobuy_store::{BindServer, LocalTaskId, Page, Store, TaskFilter};
use cmautobuy_sync::{Api, LinkState, Nudges, SessionState, Sync};
use cmautobuy_task::{Clock, LeaseCell, LeaseState, Mono};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::demo::Demo;
use crate::folder::Folder;
use crate::phone::PhoneStatus;
use crate::problem::{Kind, Problem};
use crate::read;
use crate::secrets::LoginKeeper;
use crate::settings::{self, PhoneAddress, Settings, parse_phone};
use crate::start::wire;
use crate::view::{
    CurrentRun, Level, Light, LoginForm, Overview, Preferences, StateCount, TaskDetail, TaskItem, TaskPage, TaskQuery, WorkMode,
};

/// Most rows one page of the list carries.
const MAX_PAGE: u32 = 500;

/// The running client. Cheap to clone.
#[derive(Debug, Clone)]
pub struct App(Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) folder: Folder,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) store: Store,
    pub(crate) api: Arc<Api>,
    pub(crate) keeper: Arc<LoginKeeper>,
    pub(crate) sync: Arc<Sync>,
    pub(crate) work: watch::Receiver<WorkState>,
    pub(crate) order: watch::Sender<WorkOrder>,
    pub(crate) lease: Arc<LeaseCell>,
    pub(crate) nudges: Arc<Nudges>,
    pub(crate) device: DeviceId,
    pub(crate) phone: watch::Receiver<PhoneStatus>,
    pub(crate) hub: Arc<AdbHub>,
    pub(crate) key: Arc<AdbKey>,
    pub(crate) address: watch::Sender<Option<PhoneAddress>>,
    pub(crate) base_url: Mutex<String>,
    pub(crate) settings: Mutex<Settings>,
    pub(crate) session_only: bool,
    pub(crate) demo: Option<Demo>,
    pub(crate) began: Mono,
    pub(crate) presses: AtomicU32,
    pub(crate) changes: watch::Sender<u64>,
    pub(crate) stop: CancellationToken,
    pub(crate) tasks: tokio::sync::Mutex<JoinSet<()>>,
}

fn locked<T: Clone>(value: &Mutex<T>) -> T {
    value.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

impl App {
    pub(crate) fn of(inner: Arc<Inner>) -> Self {
        Self(inner)
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.0
    }

    /// Says *look* whenever something a person sees may have changed; never what.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// The loops that belong to the house itself: joining all the nudges into one, and the demo's report.
    pub(crate) async fn spawn_own_loops(&self, claiming: watch::Sender<bool>, report: Option<PathBuf>) {
        let mut tasks = self.0.tasks.lock().await;
        let (inner, stop) = (Arc::clone(&self.0), self.0.stop.clone());
        tasks.spawn(async move { inner.join_changes(claiming, stop).await });
        if let Some(path) = report {
            let (inner, stop) = (Arc::clone(&self.0), self.0.stop.clone());
            tasks.spawn(async move { inner.write_report(path, stop).await });
        }
    }

    pub(crate) async fn log_in_to_demo(&self) -> Result<(), Problem> {
        let Some(demo) = &self.0.demo else { return Ok(()) };
        self.log_in(&demo.user, demo.password.clone()).await
    }

    /// # Errors
    /// `DATABASE_BROKEN`.
    pub async fn overview(&self) -> Result<Overview, Problem> {
        let inner = &self.0;
        let (counts, outbox) = inner.store.read(|r| Ok((r.counts()?, r.outbox_counts()?))).await?;
        let session = inner.api.session().borrow().clone();
        let settings = locked(&inner.settings);
        let (work, work_problem) = inner.work_state(&session);
        let counts: Vec<StateCount> = counts
            .into_iter()
            .map(|(state, n)| StateCount { state: read::state(state), count: u32::try_from(n).unwrap_or(u32::MAX) })
            .collect();
        let waiting = u32::try_from(outbox.unsent()).unwrap_or(u32::MAX);
        Ok(Overview {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            demo: inner.demo.is_some(),
            dry_run: settings.dry_run,
            data_dir: inner.folder.root.display().to_string(),
            session_only_secrets: inner.session_only,
            logged_in_as: match &session {
                SessionState::LoggedIn(session) => Some(session.user_name.clone()),
                SessionState::LoggedOut | SessionState::Ended => None,
            },
            device_id: inner.device.to_string(),
            server: inner.server_light(&session),
            phone: inner.phone_light(),
            pinduoduo: inner.pinduoduo_light(),
            outbox: inner.outbox_light(waiting, outbox.failed),
            outbox_waiting: waiting,
            work,
            work_problem,
            current: inner.current().await?,
            total: counts.iter().map(|c| c.count).sum(),
            counts,
        })
    }

    /// Newest first, by keyset: a page costs the page, not the history.
    ///
    /// # Errors
    /// `NOT_FOUND` for a foreign cursor, `DATABASE_BROKEN`.
    pub async fn task_list(&self, query: TaskQuery) -> Result<TaskPage, Problem> {
        let before = query.cursor.as_deref().map(read::parse_cursor).transpose()?;
        let limit = query.limit.clamp(1, MAX_PAGE);
        let filter = TaskFilter {
            text: query.text.map(|t| t.trim().to_owned()).filter(|t| !t.is_empty()),
            states: query.states.into_iter().map(read::state_asked).collect(),
            task_type: None,
        };
        // One more than asked tells whether there is a next page.
        let rows = self.0.store.read(move |r| r.task_list(&filter, Page { limit: limit + 1, before })).await?;
        let more = rows.len() > limit as usize;
        let items: Vec<TaskItem> = rows.into_iter().take(limit as usize).map(read::item).collect();
        let next = items.last().filter(|_| more).map(read::cursor);
        Ok(TaskPage { items, next })
    }

    /// # Errors
    /// `NOT_FOUND`, `DATABASE_BROKEN`.
    pub async fn task_detail(&self, id: u32) -> Result<TaskDetail, Problem> {
        let row = self.0.store.read(move |r| r.task_detail(LocalTaskId(id.into()))).await?;
        row.as_ref().map_or_else(|| Err(Kind::NotFound.with(format!("task {id}"))), read::detail)
    }

    /// A screenshot as a `data:` address.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such picture or retention took it.
    pub async fn artifact_image(&self, id: u32) -> Result<String, Problem> {
        let found = self.0.store.read(move |r| r.artifact_get(cmautobuy_store::ArtifactId(id.into()))).await?;
        let missing = || Kind::NotFound.with(format!("artifact {id}"));
        let row = found.filter(|a| a.kind == "screenshot" && a.deleted_at.is_none()).ok_or_else(missing)?;
        let bytes = tokio::fs::read(self.0.folder.root.join(&row.relative_path))
            .await
            .map_err(|error| Kind::NotFound.with(format!("{}: {error}", row.relative_path)))?;
        Ok(format!("data:image/png;base64,{}", STANDARD.encode(bytes)))
    }

    /// Claims and runs tasks from now on; a task that waits for a retry goes first (03 §7.1).
    ///
    /// # Errors
    /// `UNAUTHENTICATED` when nobody is logged in.
    #[expect(clippy::unused_async, reason = "every command of the house is async to its callers")]
    pub async fn start_work(&self) -> Result<(), Problem> {
        if !matches!(*self.0.api.session().borrow(), SessionState::LoggedIn(_)) {
            return Err(Kind::LoginNeeded.with(""));
        }
        let press = self.0.presses.fetch_add(1, Ordering::Relaxed) + 1;
        self.0.order.send_replace(WorkOrder::Run { press });
        self.0.nudge();
        Ok(())
    }

    /// The current run goes on to its next safe point, then nothing more is begun.
    ///
    /// # Errors
    /// None today.
    #[expect(clippy::unused_async, reason = "every command of the house is async to its callers")]
    pub async fn stop_work(&self) -> Result<(), Problem> {
        self.0.order.send_replace(WorkOrder::Stop);
        self.0.nudge();
        Ok(())
    }

    /// # Errors
    /// `SERVER_UNREACHABLE`, `LOGIN_REFUSED`, `DEVICE_NOT_AUTHORIZED`, `RATE_LIMITED`, `OTHER_SERVER`, `SETTING_INVALID`.
    pub async fn login(&self, form: LoginForm) -> Result<(), Problem> {
        if self.0.demo.is_some() {
            // The demo can reach only its own server (D7).
            return Err(Kind::OtherServer.with("demo"));
        }
        let base_url = form.base_url.trim().trim_end_matches('/').to_owned();
        let timeout = locked(&self.0.settings).request_timeout;
        let before = locked(&self.0.base_url);
        if base_url.is_empty() {
            return Err(Kind::SettingInvalid.with("https://..."));
        }
        let changed = base_url != before;
        if changed {
            self.0.api.set_wire(wire(&base_url, timeout)?);
            self.0.keeper.set_name(LoginKeeper::entry_name(self.0.device, &base_url));
        }
        let logged_in = self.log_in(form.user_name.trim(), Password::new(form.password)).await;
        if logged_in.is_err() {
            if changed {
                self.0.api.set_wire(wire(&before, timeout)?);
                self.0.keeper.set_name(LoginKeeper::entry_name(self.0.device, &before));
            }
            return logged_in;
        }
        *self.0.base_url.lock().unwrap_or_else(PoisonError::into_inner) = base_url.clone();
        self.save_setting(settings::BASE_URL, base_url).await
    }

    async fn log_in(&self, user: &str, password: Password) -> Result<(), Problem> {
        let session = self.0.api.login(user, password, self.0.device).await?;
        let server = session.server_id;
        let bound = self.0.store.write(move |tx| tx.bind_server(server)).await?;
        if let BindServer::Other(bound) = bound {
            self.0.api.logout().await;
            return Err(Kind::OtherServer.with(format!("bound to {bound}, this is {server}")));
        }
        self.0.nudge();
        Ok(())
    }

    /// # Errors
    /// None today: the login is forgotten here even if the server cannot be told.
    pub async fn logout(&self) -> Result<(), Problem> {
        self.0.order.send_replace(WorkOrder::Stop);
        self.0.api.logout().await;
        self.0.nudge();
        Ok(())
    }

    /// Collects an ended collect task once more; the caller asked the person first (03 §7.1).
    ///
    /// # Errors
    /// `DATABASE_BROKEN` with the refused transition as detail.
    pub async fn recollect(&self, id: u32) -> Result<(), Problem> {
        let now = self.0.clock.now();
        self.0.store.write(move |tx| tx.recollect(LocalTaskId(id.into()), now)).await?;
        self.0.nudge();
        Ok(())
    }

    /// [`App::recollect`] by the number the server gave.
    ///
    /// # Errors
    /// `NOT_FOUND` for a number this client does not hold.
    pub async fn recollect_remote(&self, remote: &str) -> Result<(), Problem> {
        let missing = || Kind::NotFound.with(format!("task {remote}"));
        let number = remote.parse().map_err(|_| missing())?;
        let row = self.0.store.read(move |r| r.task_by_remote(number)).await?.ok_or_else(missing)?;
        self.recollect(read::id(row.id.0)).await
    }

    /// # Errors
    /// `DATABASE_BROKEN`.
    #[expect(clippy::unused_async, reason = "every command of the house is async to its callers")]
    pub async fn phone_address(&self) -> Result<String, Problem> {
        Ok(locked(&self.0.settings).phone)
    }

    /// # Errors
    /// `SETTING_INVALID` with the accepted forms; `DEVICE_BUSY` while a run uses the phone (D19).
    pub async fn set_phone_address(&self, address: String) -> Result<(), Problem> {
        let parsed = parse_phone(&address)?;
        if self.0.lease.current().is_some() {
            return Err(Kind::DeviceBusy.with("a task is running"));
        }
        let address = address.trim().to_owned();
        self.save_setting(settings::PHONE_ADDRESS, address.clone()).await?;
        self.0.settings.lock().unwrap_or_else(PoisonError::into_inner).phone = address;
        if self.0.demo.is_none() {
            self.0.address.send_replace(parsed);
        }
        Ok(())
    }

    /// # Errors
    /// None today.
    #[expect(clippy::unused_async, reason = "every command of the house is async to its callers")]
    pub async fn preferences(&self) -> Result<Preferences, Problem> {
        Ok(locked(&self.0.settings).preferences)
    }

    /// # Errors
    /// `DATABASE_BROKEN`.
    pub async fn set_preferences(&self, preferences: Preferences) -> Result<(), Problem> {
        self.save_setting(settings::LANGUAGE, preferences.language).await?;
        self.save_setting(settings::THEME, preferences.theme).await?;
        self.0.settings.lock().unwrap_or_else(PoisonError::into_inner).preferences = preferences;
        Ok(())
    }

    /// Whether the last claim was answered "no task", so that nothing more is to be expected now.
    pub fn nothing_to_claim(&self) -> bool {
        *self.0.sync.no_task().borrow()
    }

    /// Waits until server and phone have said something, at most `patience`.
    pub async fn settle_lights(&self, patience: std::time::Duration) {
        let mut changes = self.changes();
        let settled = async {
            while let Ok(overview) = self.overview().await {
                let busy = |light: &Light| light.level == Level::Busy;
                if !busy(&overview.server) && !busy(&overview.phone) || changes.changed().await.is_err() {
                    return;
                }
            }
        };
        // Running out of patience is an answer too.
        let _ = tokio::time::timeout(patience, settled).await;
    }

    /// Ends the loops and closes the store. A run that goes on is dropped where it stands; the next start recovers it.
    pub async fn shutdown(&self) {
        self.0.stop.cancel();
        let mut tasks = self.0.tasks.lock().await;
        while let Some(ended) = tasks.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "a loop ended badly");
            }
        }
        self.0.hub.stop().await;
        self.0.store.clone().close().await;
        tracing::info!("stopped");
    }
}

impl Inner {
    /// Every loop looks.
    fn nudge(&self) {
        for nudge in [&self.nudges.beat, &self.nudges.claim, &self.nudges.calls, &self.nudges.drain, &self.nudges.engine] {
            nudge.notify_one();
        }
        self.changes.send_modify(|n| *n += 1);
    }

    async fn join_changes(self: Arc<Self>, claiming: watch::Sender<bool>, stop: CancellationToken) {
        let (mut store, mut work, mut order) = (self.store.changes(), self.work.clone(), self.order.subscribe());
        let (mut link, mut refused, mut no_task) = (self.sync.link(), self.sync.claim_refused(), self.sync.no_task());
        let (mut session, mut phone) = (self.api.session(), self.phone.clone());
        loop {
            let now = App::is_claiming(*order.borrow_and_update(), &work.borrow_and_update());
            claiming.send_if_modified(|old| std::mem::replace(old, now) != now);
            let alive = tokio::select! {
                () = stop.cancelled() => return,
                changed = store.changed() => changed.is_ok(),
                changed = work.changed() => changed.is_ok(),
                changed = order.changed() => changed.is_ok(),
                changed = link.changed() => changed.is_ok(),
                changed = refused.changed() => changed.is_ok(),
                changed = no_task.changed() => changed.is_ok(),
                changed = session.changed() => changed.is_ok(),
                changed = phone.changed() => changed.is_ok(),
            };
            if !alive {
                return;
            }
            self.changes.send_modify(|n| *n += 1);
        }
    }

    async fn write_report(self: Arc<Self>, path: PathBuf, stop: CancellationToken) {
        let Some(demo) = &self.demo else { return };
        let mut store = self.store.changes();
        loop {
            let samples = demo.samples.clone();
            let rows = self
                .store
                .read(move |r| {
                    let mut found = Vec::new();
                    for sample in samples {
                        let task = r.task_by_remote(sample)?;
                        found.push((sample, task.map(|t| r.task_detail(t.id)).transpose()?.flatten()));
                    }
                    Ok(found)
                })
                .await;
            match rows {
                Ok(rows) => {
                    let details: BTreeMap<_, _> = rows.into_iter().filter_map(|(id, row)| Some((id, read::detail(&row?).ok()?))).collect();
                    let seconds = self.clock.mono().since(self.began).as_secs_f64();
                    if let Some(report) = demo.report(&details, seconds).await {
                        if let Err(error) = report.write(&path) {
                            tracing::error!(%error, path = %path.display(), "report not written");
                        }
                        return;
                    }
                }
                Err(error) => tracing::error!(%error, "report waits"),
            }
            tokio::select! {
                () = stop.cancelled() => return,
                changed = store.changed() => if changed.is_err() { return },
            }
        }
    }

    fn server_light(&self, session: &SessionState) -> Light {
        let subject = locked(&self.base_url);
        let (level, problem) = match (session, &*self.sync.link().borrow()) {
            (SessionState::LoggedOut, _) => (Level::Off, None),
            (SessionState::Ended, _) => (Level::Error, Some(Kind::LoginNeeded.with(""))),
            (SessionState::LoggedIn(_), LinkState::Bad { code, detail }) => (Level::Error, Some(Problem::from_code(code, detail))),
            (SessionState::LoggedIn(_), LinkState::Good) => (Level::Ok, None),
            (SessionState::LoggedIn(_), LinkState::Unknown) => (Level::Busy, None),
        };
        Light { level, subject, problem }
    }

    fn phone_light(&self) -> Light {
        let status = self.phone.borrow().clone();
        let subject =
            status.facts.as_ref().map_or_else(|| status.address.clone(), |f| format!("{} · Android {}", f.model, f.android_version));
        let is_pdd = |p: &Problem| p.code == Kind::PddMissing.code();
        match (status.facts, status.problem) {
            (Some(_), None) => Light { level: Level::Ok, subject, problem: None },
            (Some(_), Some(problem)) if is_pdd(&problem) => Light { level: Level::Ok, subject, problem: None },
            (Some(_), Some(problem)) => Light { level: Level::Warn, subject, problem: Some(problem) },
            (None, Some(problem)) => Light { level: Level::Error, subject, problem: Some(problem) },
            (None, None) if subject.is_empty() => Light { level: Level::Off, subject, problem: None },
            (None, None) => Light { level: Level::Busy, subject, problem: None },
        }
    }

    fn pinduoduo_light(&self) -> Light {
        let status = self.phone.borrow().clone();
        match status.facts {
            None => Light { level: Level::Off, subject: String::new(), problem: None },
            Some(facts) => match facts.pdd_version {
                Some(version) => Light { level: Level::Ok, subject: version, problem: None },
                None => Light { level: Level::Error, subject: String::new(), problem: Some(Kind::PddMissing.with("")) },
            },
        }
    }

    fn outbox_light(&self, waiting: u32, failed: u64) -> Light {
        let unreachable = matches!(*self.sync.link().borrow(), LinkState::Bad { .. });
        let (level, problem) = match (failed, waiting) {
            (1.., _) => (Level::Error, Some(Kind::ResultRefused.with(""))),
            (0, 0) => (Level::Ok, None),
            (0, _) if unreachable => (Level::Warn, Some(Kind::ServerUnreachable.with(""))),
            (0, _) => (Level::Busy, None),
        };
        Light { level, subject: waiting.to_string(), problem }
    }

    fn work_state(&self, session: &SessionState) -> (WorkMode, Option<Problem>) {
        let order = *self.order.borrow();
        let running = self.lease.current().is_some();
        let work = self.work.borrow().clone();
        match (order, work) {
            (WorkOrder::Run { .. }, WorkState::Paused(pause)) => {
                (WorkMode::RetryPaused, Some(Problem::from_code(&pause.code, &pause.message)))
            }
            (WorkOrder::Run { .. }, WorkState::Idle | WorkState::Running) => (WorkMode::Running, self.why_idle(session, running)),
            (WorkOrder::Stop, _) if running => (WorkMode::Stopping, None),
            (WorkOrder::Stop, _) => (WorkMode::Stopped, None),
        }
    }

    /// Why nothing is being claimed although work is on.
    fn why_idle(&self, session: &SessionState, running: bool) -> Option<Problem> {
        if running {
            return None;
        }
        if !matches!(session, SessionState::LoggedIn(_)) {
            return Some(Kind::LoginNeeded.with(""));
        }
        if let LinkState::Bad { code, detail } = &*self.sync.link().borrow() {
            return Some(Problem::from_code(code, detail));
        }
        if let Some(problem) = self.phone.borrow().problem.clone() {
            return Some(problem);
        }
        self.sync.claim_refused().borrow().as_ref().map(|(code, message)| Problem::from_code(code, message))
    }

    async fn current(&self) -> Result<Option<CurrentRun>, Problem> {
        let Some(running) = self.lease.current() else { return Ok(None) };
        let task = running.task;
        let Some(row) = self.store.read(move |r| r.task_by_remote(task)).await? else { return Ok(None) };
        let lease_left_ms = match self.lease.state(self.clock.as_ref()) {
            Some(LeaseState::Live { left }) => u32::try_from(left.as_millis()).ok(),
            Some(LeaseState::Unknown | LeaseState::Expired) | None => None,
        };
        Ok(Some(CurrentRun {
            task_id: read::id(row.id.0),
            title: row.title,
            goods_id: row.goods_id,
            step: row.current_step.or(Some(running.step)),
            lease_left_ms,
        }))
    }
}
