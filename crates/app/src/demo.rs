//! The whole product with no phone and no server (D15): an embedded companion server, a simulated phone and three sample tasks.
//!
//! Each start begins from nothing: the demo's folder is its own and holds nobody's work.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cmautobuy_phone_sim::{Catalogue, Sim, SimConfig};
use cmautobuy_protocol::admin::{AuthorizeDevice, CreateTask, CreateUser};
use cmautobuy_protocol::auth::Role;
use cmautobuy_protocol::error::chain;
use cmautobuy_protocol::goods::GoodsId;
use cmautobuy_protocol::{DeviceId, Password, RemoteTaskId, ServerStatus};
use cmautobuy_server::Server;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::problem::{Kind, Problem};
use crate::view::{OutboxStatusView, TaskDetail, TaskStateView};

/// How many goods of the catalogue become sample tasks.
const SAMPLES: usize = 3;
const USER: &str = "demo";

/// The other ends, running in this process.
#[derive(Debug)]
pub(crate) struct Demo {
    pub(crate) server: SocketAddr,
    pub(crate) phone: SocketAddr,
    pub(crate) user: String,
    pub(crate) password: Password,
    pub(crate) samples: Vec<RemoteTaskId>,
    admin: Arc<Server>,
    sim: Sim,
}

fn failed(what: &str, error: &dyn std::error::Error) -> Problem {
    Kind::Internal.with(format!("demo: {what}: {}", chain(error)))
}

/// Removes what an earlier demo left. Only ever called with the demo's own folder.
pub(crate) fn wipe(data_dir: &Path) -> Result<(), Problem> {
    for name in ["client.db", "client.db-wal", "client.db-shm"] {
        remove(std::fs::remove_file(data_dir.join(name)), data_dir)?;
    }
    for name in ["artifacts", "server"] {
        remove(std::fs::remove_dir_all(data_dir.join(name)), data_dir)?;
    }
    Ok(())
}

fn remove(done: std::io::Result<()>, folder: &Path) -> Result<(), Problem> {
    match done {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Kind::FolderUnwritable.with(format!("{}: {error}", folder.display())))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

impl Demo {
    /// Starts the other ends and creates the sample tasks for `device`.
    pub(crate) async fn start(data_dir: &Path, device: DeviceId, stop: CancellationToken) -> Result<Self, Problem> {
        let catalogue = Catalogue::builtin();
        let goods: Vec<String> = catalogue.goods.iter().take(SAMPLES).map(|g| g.goods_id.clone()).collect();
        let sim =
            cmautobuy_phone_sim::start(SimConfig { catalogue, ..SimConfig::default() }).await.map_err(|e| failed("simulated phone", &e))?;

        let config = cmautobuy_server::Config { data_dir: data_dir.join("server"), ..cmautobuy_server::Config::default() };
        // Two on one database are safe: one serves, the other is the administrator's console.
        let open = |config| Server::open(config, Arc::new(cmautobuy_server::SystemClock)).map_err(|e| failed("server", &e));
        let serving = open(config.clone())?;
        let admin = Arc::new(open(config)?);
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(|e| failed("server port", &e))?;
        let address = listener.local_addr().map_err(|e| failed("server port", &e))?;
        tokio::spawn(async move {
            if let Err(error) = serving.serve(listener, stop.cancelled_owned()).await {
                tracing::error!(%error, "demo server ended");
            }
        });

        let password = Password::new(random_text());
        let (for_user, samples, console) = (password.clone(), goods.clone(), Arc::clone(&admin));
        let samples = tokio::task::spawn_blocking(move || -> Result<Vec<RemoteTaskId>, cmautobuy_server::CallError> {
            let admin = console.admin();
            let user = CreateUser::new(USER, for_user, vec![Role::Buyer]);
            let user_id = admin.create_user(&user)?.user_id;
            admin.authorize_device(&AuthorizeDevice { device_id: device, user_id, name: "demo".to_owned() })?;
            samples.iter().map(|id| Ok(admin.create_task(&sample(id), None)?.task_id)).collect()
        })
        .await
        .map_err(|e| failed("sample tasks", &e))?
        .map_err(|e| failed("sample tasks", &e))?;
        tracing::info!(server = %address, phone = %sim.addr(), tasks = samples.len(), "demo is ready");
        Ok(Self { server: address, phone: sim.addr(), user: USER.to_owned(), password, samples, admin, sim })
    }

    /// What the server says of a sample task.
    async fn server_status(&self, task: RemoteTaskId) -> Option<ServerStatus> {
        let server = Arc::clone(&self.admin);
        let detail = tokio::task::spawn_blocking(move || server.admin().detail(task)).await.ok()?;
        detail.ok().map(|detail| detail.task.status)
    }

    /// The report for `scripts/run`, or `None` while a sample task is still under way.
    pub(crate) async fn report(&self, details: &BTreeMap<RemoteTaskId, TaskDetail>, seconds: f64) -> Option<Report> {
        let mut tasks = Vec::new();
        for sample in &self.samples {
            let detail = details.get(sample)?;
            let waits = detail.outbox.iter().any(|row| matches!(row.status, OutboxStatusView::Pending | OutboxStatusView::Sending));
            let settled = match detail.item.state {
                TaskStateView::Succeeded | TaskStateView::Failed | TaskStateView::Cancelled | TaskStateView::ManualReview => !waits,
                TaskStateView::Claimed | TaskStateView::Running | TaskStateView::ResultPending | TaskStateView::RetryWait => false,
            };
            if !settled {
                return None;
            }
            let on_server = self.server_status(*sample).await;
            tasks.push(ReportTask::of(*sample, detail, on_server));
        }
        let all_as_expected = tasks.iter().all(|t| t.as_expected) && self.sim.payments_accepted() == 0 && self.sim.orders_created() == 0;
        Some(Report {
            tasks,
            all_as_expected,
            orders_created: self.sim.orders_created(),
            payments_accepted: self.sim.payments_accepted(),
            seconds,
        })
    }
}

fn sample(goods_id: &str) -> CreateTask {
    let goods_url = goods_id.parse::<GoodsId>().map(|id| id.url()).unwrap_or_default();
    CreateTask { external_ref: Some(format!("demo-{goods_id}")), ..CreateTask::collect(goods_url) }
}

fn random_text() -> String {
    let bytes: [u8; 16] = rand::random();
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// One sample task, as the report tells it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReportTask {
    pub remote_task_id: String,
    pub title: String,
    pub goods_id: String,
    pub state: TaskStateView,
    pub expected_state: TaskStateView,
    /// The server's own word.
    pub server_status: Option<String>,
    pub skus_read: usize,
    pub skus_priced: usize,
    pub price_min_cent: Option<u32>,
    pub price_max_cent: Option<u32>,
    pub outbox: String,
    pub seconds: f64,
    pub as_expected: bool,
}

/// What the demo did, for `scripts/run` without a display.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    pub tasks: Vec<ReportTask>,
    pub all_as_expected: bool,
    pub orders_created: u32,
    pub payments_accepted: u32,
    pub seconds: f64,
}

impl ReportTask {
    fn of(task: RemoteTaskId, detail: &TaskDetail, on_server: Option<ServerStatus>) -> Self {
        let skus = detail.goods.as_ref().map(|g| g.skus.as_slice()).unwrap_or_default();
        let prices = || skus.iter().filter_map(|s| s.price_cent);
        let sent = detail.outbox.iter().filter(|row| row.status == OutboxStatusView::Sent).count();
        let as_expected = detail.item.state == TaskStateView::Succeeded
            && on_server == Some(ServerStatus::Succeeded)
            && sent == 1
            && detail.outbox.len() == 1
            && prices().count() > 0;
        Self {
            remote_task_id: task.to_string(),
            title: detail.item.title.clone().unwrap_or_default(),
            goods_id: detail.item.goods_id.clone().unwrap_or_default(),
            state: detail.item.state,
            expected_state: TaskStateView::Succeeded,
            server_status: on_server.map(|status| status.to_string()),
            skus_read: skus.len(),
            skus_priced: prices().count(),
            price_min_cent: prices().min(),
            price_max_cent: prices().max(),
            outbox: format!("{sent}/{} sent", detail.outbox.len()),
            seconds: seconds_of(detail),
            as_expected,
        }
    }
}

/// From the first run's start to the newest run's end.
fn seconds_of(detail: &TaskDetail) -> f64 {
    let parse = |text: &str| text.parse::<cmautobuy_protocol::WireTime>().ok();
    let began = detail.runs.iter().filter_map(|r| parse(&r.started_at)).min();
    let ended = detail.runs.iter().filter_map(|r| r.finished_at.as_deref().and_then(parse)).max();
    match (began, ended) {
        #[expect(clippy::cast_precision_loss, reason = "a duration for a person to read")]
        (Some(began), Some(ended)) => ended.ms_since(began) as f64 / 1000.0,
        (None, _) | (_, None) => 0.0,
    }
}

impl Report {
    /// Writes the report whole: a reader never sees half of it.
    pub(crate) fn write(&self, path: &Path) -> std::io::Result<()> {
        let text = serde_json::to_string_pretty(self).map_err(std::io::Error::other)?;
        let part: PathBuf = path.with_extension("part");
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&part, text)?;
        std::fs::rename(&part, path)
    }

    /// A table for a terminal.
    pub fn table(&self) -> String {
        use std::fmt::Write;
        let mut out = String::new();
        let yuan = |cent: Option<u32>| cent.map_or_else(|| "-".to_owned(), |c| format!("¥{}.{:02}", c / 100, c % 100));
        let header = ["task", "goods", "state", "server", "SKUs", "priced", "prices", "outbox", "time", "title"];
        let mut rows = vec![header.map(str::to_owned)];
        for t in &self.tasks {
            let state = serde_json::to_value(t.state).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default();
            rows.push([
                t.remote_task_id.chars().skip(t.remote_task_id.len().saturating_sub(8)).collect(),
                t.goods_id.clone(),
                state,
                t.server_status.clone().unwrap_or_else(|| "-".into()),
                t.skus_read.to_string(),
                t.skus_priced.to_string(),
                if t.price_min_cent == t.price_max_cent {
                    yuan(t.price_min_cent)
                } else {
                    format!("{} - {}", yuan(t.price_min_cent), yuan(t.price_max_cent))
                },
                t.outbox.clone(),
                format!("{:.1} s", t.seconds),
                t.title.chars().take(28).collect(),
            ]);
        }
        let widths: Vec<usize> = (0..header.len()).map(|i| rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0)).collect();
        for row in &rows {
            for (cell, width) in row.iter().zip(&widths) {
                let _ = write!(out, "{cell}{}  ", " ".repeat(width - cell.chars().count()));
            }
            out.truncate(out.trim_end().len());
            out.push('\n');
        }
        let good = self.tasks.iter().filter(|t| t.as_expected).count();
        let _ = writeln!(
            out,
            "{good} of {} tasks as expected; orders created {}, payments accepted {}; {:.1} s",
            self.tasks.len(),
            self.orders_created,
            self.payments_accepted,
            self.seconds
        );
        out
    }
}
