//! What a person is shown: plain values for the window and the console. Made here from rows; nothing here decides.
//!
//! Numbers fit a JavaScript number; money is fen, time is RFC 3339 UTC text, formatted by the interface.

use serde::{Deserialize, Serialize};
use specta::Type;

use crate::problem::Problem;

/// State of a task as shown (03 §7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Type)]
#[serde(rename_all = "snake_case")]
pub enum TaskStateView {
    Claimed,
    Running,
    ResultPending,
    RetryWait,
    ManualReview,
    Succeeded,
    Failed,
    Cancelled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "snake_case")]
pub enum TaskTypeView {
    Collect,
    Purchase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionModeView {
    DryRun,
    Live,
}

/// A status light. `Off` means nobody asked for it yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Ok,
    Busy,
    Warn,
    Error,
    Off,
}

/// One light of the status bar. `problem` says why it is not green and what to do next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "camelCase")]
pub struct Light {
    pub level: Level,
    /// What it is about, untranslated: a server address, a phone model, a version.
    pub subject: String,
    pub problem: Option<Problem>,
}

/// Whether tasks are being claimed and run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "snake_case")]
pub enum WorkMode {
    /// Nobody started it, or a person stopped it.
    Stopped,
    Running,
    /// A stop was asked for; the current run goes on to its next safe point.
    Stopping,
    /// Stopped itself after a recoverable collect error (03 §7.1); start again to retry.
    RetryPaused,
}

/// The run going on now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "camelCase")]
pub struct CurrentRun {
    pub task_id: u32,
    pub title: Option<String>,
    pub goods_id: Option<String>,
    pub step: Option<String>,
    /// Milliseconds until the run lease ends; `None` while it is unknown.
    pub lease_left_ms: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "camelCase")]
pub struct StateCount {
    pub state: TaskStateView,
    pub count: u32,
}

/// Everything the frame of the window shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "camelCase")]
pub struct Overview {
    pub version: String,
    pub demo: bool,
    /// `automation.dry_run`: nothing can be ordered.
    pub dry_run: bool,
    pub data_dir: String,
    /// Set when secrets live for this session only (no credential store, D6).
    pub session_only_secrets: bool,
    pub logged_in_as: Option<String>,
    pub device_id: String,
    pub server: Light,
    pub phone: Light,
    pub pinduoduo: Light,
    pub outbox: Light,
    pub outbox_waiting: u32,
    pub work: WorkMode,
    /// Why `work` is not running although it was asked to, or why nothing is claimed.
    pub work_problem: Option<Problem>,
    pub current: Option<CurrentRun>,
    pub counts: Vec<StateCount>,
    pub total: u32,
}

/// Which tasks to list. `cursor` is the `next` of the page before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "camelCase")]
pub struct TaskQuery {
    pub text: Option<String>,
    pub states: Vec<TaskStateView>,
    pub cursor: Option<String>,
    pub limit: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "camelCase")]
pub struct TaskItem {
    pub id: u32,
    pub remote_task_id: String,
    pub task_type: TaskTypeView,
    pub execution_mode: ExecutionModeView,
    pub title: Option<String>,
    pub goods_id: Option<String>,
    pub target_color: Option<String>,
    pub target_size: Option<String>,
    /// Lowest available SKU price in fen.
    pub price_cent: Option<u32>,
    pub quantity: Option<u32>,
    pub state: TaskStateView,
    pub step: Option<String>,
    pub error_code: Option<String>,
    pub error_message: Option<String>,
    pub received_at: String,
    pub updated_at: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "camelCase")]
pub struct TaskPage {
    pub items: Vec<TaskItem>,
    pub next: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "camelCase")]
pub struct MetricView {
    /// `None` only when it does not fit a JavaScript integer.
    pub value: Option<u32>,
    pub raw: String,
    pub approximate: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "camelCase")]
pub struct DimensionView {
    pub key: String,
    pub name: String,
    pub values: Vec<DimensionValueView>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "camelCase")]
pub struct DimensionValueView {
    pub text: String,
    pub available: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "camelCase")]
pub struct SkuView {
    /// One value per dimension, in the order of [`GoodsView::dimensions`].
    pub options: Vec<String>,
    pub price_cent: Option<u32>,
    pub list_price_cent: Option<u32>,
    pub available: bool,
    pub raw_price: Option<String>,
}

/// What was read on Pinduoduo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "camelCase")]
pub struct GoodsView {
    pub goods_id: String,
    pub url: String,
    pub title: String,
    pub shop: Option<String>,
    pub sales: Option<MetricView>,
    pub reviews: Option<MetricView>,
    pub dimensions: Vec<DimensionView>,
    pub skus: Vec<SkuView>,
    pub captured_at: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "snake_case")]
pub enum RunStatusView {
    Running,
    Succeeded,
    Failed,
    Cancelled,
    ManualReview,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "snake_case")]
pub enum ArtifactKindView {
    Screenshot,
    Tree,
}

/// A file a run left (D12). `deleted` keeps the row after retention took the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactView {
    pub id: u32,
    pub kind: ArtifactKindView,
    pub step: String,
    pub path: String,
    pub size_bytes: u32,
    pub created_at: String,
    pub deleted: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "camelCase")]
pub struct RunView {
    pub attempt_no: u32,
    pub status: RunStatusView,
    pub phone: String,
    pub step: Option<String>,
    pub started_at: String,
    pub finished_at: Option<String>,
    pub error_code: Option<String>,
    pub error_message: Option<String>,
    pub artifacts: Vec<ArtifactView>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "snake_case")]
pub enum OutboxStatusView {
    Pending,
    Sending,
    Sent,
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "camelCase")]
pub struct OutboxView {
    pub id: u32,
    pub event_type: String,
    pub idempotency_key: String,
    pub status: OutboxStatusView,
    pub attempts: u32,
    pub next_retry_at: Option<String>,
    pub last_error: Option<String>,
    pub created_at: String,
    pub sent_at: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "camelCase")]
pub struct TaskDetail {
    pub item: TaskItem,
    pub goods_url: String,
    pub goods: Option<GoodsView>,
    /// Newest first.
    pub runs: Vec<RunView>,
    pub outbox: Vec<OutboxView>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "camelCase")]
pub struct LoginForm {
    pub base_url: String,
    pub user_name: String,
    pub password: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Type)]
pub enum Language {
    #[serde(rename = "zh-CN")]
    ZhCn,
    #[serde(rename = "en")]
    En,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "snake_case")]
pub enum Theme {
    System,
    Light,
    Dark,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Type)]
#[serde(rename_all = "camelCase")]
pub struct Preferences {
    pub language: Language,
    pub theme: Theme,
}
