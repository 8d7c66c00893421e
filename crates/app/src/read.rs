//! Rows into what a person is shown. Converts and words things; decides nothing.

use cmautobuy_protocol::pdd_data::{Metric, PddData};
use cmautobuy_protocol::{ExecutionMode, TaskType, WireTime};
use cmautobuy_store::{ArtifactRow, LocalTaskId, OutboxRow, OutboxStatus, RunRow, RunStatus, TaskDetailRow, TaskSummaryRow};
use cmautobuy_task::TaskState;

use crate::problem::{Kind, Problem};
use crate::view::{
    ArtifactKindView, ArtifactView, DimensionValueView, DimensionView, ExecutionModeView, GoodsView, MetricView, OutboxStatusView,
    OutboxView, RunStatusView, RunView, SkuView, TaskDetail, TaskItem, TaskStateView, TaskTypeView,
};

pub(crate) fn state(state: TaskState) -> TaskStateView {
    match state {
        TaskState::Claimed => TaskStateView::Claimed,
        TaskState::Running => TaskStateView::Running,
        TaskState::ResultPending => TaskStateView::ResultPending,
        TaskState::RetryWait => TaskStateView::RetryWait,
        TaskState::ManualReview => TaskStateView::ManualReview,
        TaskState::Succeeded => TaskStateView::Succeeded,
        TaskState::Failed => TaskStateView::Failed,
        TaskState::Cancelled => TaskStateView::Cancelled,
    }
}

pub(crate) fn state_asked(view: TaskStateView) -> TaskState {
    match view {
        TaskStateView::Claimed => TaskState::Claimed,
        TaskStateView::Running => TaskState::Running,
        TaskStateView::ResultPending => TaskState::ResultPending,
        TaskStateView::RetryWait => TaskState::RetryWait,
        TaskStateView::ManualReview => TaskState::ManualReview,
        TaskStateView::Succeeded => TaskState::Succeeded,
        TaskStateView::Failed => TaskState::Failed,
        TaskStateView::Cancelled => TaskState::Cancelled,
    }
}

fn task_type(kind: TaskType) -> TaskTypeView {
    match kind {
        TaskType::Collect => TaskTypeView::Collect,
        TaskType::Purchase => TaskTypeView::Purchase,
    }
}

fn mode(mode: ExecutionMode) -> ExecutionModeView {
    match mode {
        ExecutionMode::DryRun => ExecutionModeView::DryRun,
        ExecutionMode::Live => ExecutionModeView::Live,
    }
}

/// Row ids are small and made here; one that does not fit is a broken database, not a wrap-around.
pub(crate) fn id(row: i64) -> u32 {
    u32::try_from(row).unwrap_or(u32::MAX)
}

/// Fen that do not fit are unknown to the page (over 42 million yuan), never another number.
fn cents(cent: Option<u64>) -> Option<u32> {
    cent.and_then(|cent| u32::try_from(cent).ok())
}

fn time(at: Option<WireTime>) -> Option<String> {
    at.map(|at| at.to_string())
}

pub(crate) fn item(row: TaskSummaryRow) -> TaskItem {
    TaskItem {
        id: id(row.id.0),
        remote_task_id: row.remote_task_id.to_string(),
        task_type: task_type(row.task_type),
        execution_mode: mode(row.execution_mode),
        title: row.title,
        goods_id: row.goods_id,
        target_color: row.target_color,
        target_size: row.target_size,
        price_cent: cents(row.price_cent),
        quantity: row.quantity,
        state: state(row.state),
        step: row.current_step,
        error_code: row.last_error_code,
        error_message: row.last_error_message,
        received_at: row.received_at.to_string(),
        updated_at: row.updated_at.to_string(),
    }
}

fn metric(metric: Metric) -> MetricView {
    MetricView { value: u32::try_from(metric.value).ok(), raw: metric.raw, approximate: metric.approximate }
}

fn goods(data: PddData) -> GoodsView {
    let keys: Vec<String> = data.dimensions.iter().map(|d| d.key.clone()).collect();
    let dimensions = data
        .dimensions
        .into_iter()
        .map(|d| DimensionView {
            key: d.key,
            name: d.name,
            values: d.values.into_iter().map(|v| DimensionValueView { text: v.text, available: v.available }).collect(),
        })
        .collect();
    let skus = data
        .skus
        .into_iter()
        .map(|sku| SkuView {
            options: keys.iter().map(|key| sku.options.get(key).cloned().unwrap_or_default()).collect(),
            price_cent: cents(sku.price_cent),
            list_price_cent: cents(sku.list_price_cent),
            available: sku.available,
            raw_price: sku.raw_price,
        })
        .collect();
    GoodsView {
        goods_id: data.goods.goods_id,
        url: data.goods.url,
        title: data.goods.title,
        shop: data.shop.name,
        sales: data.metrics.sales.map(metric),
        reviews: data.metrics.reviews.map(metric),
        dimensions,
        skus,
        captured_at: data.captured_at.to_string(),
    }
}

fn run(row: &RunRow, artifacts: &[ArtifactRow]) -> RunView {
    RunView {
        attempt_no: row.attempt_no,
        status: match row.run_status {
            RunStatus::Running => RunStatusView::Running,
            RunStatus::Succeeded => RunStatusView::Succeeded,
            RunStatus::Failed => RunStatusView::Failed,
            RunStatus::Cancelled => RunStatusView::Cancelled,
            RunStatus::ManualReview => RunStatusView::ManualReview,
        },
        phone: row.phone_serial.clone().unwrap_or_else(|| row.device_address.clone()),
        step: row.current_step.clone(),
        started_at: row.started_at.to_string(),
        finished_at: time(row.finished_at),
        error_code: row.error_code.clone(),
        error_message: row.error_message.clone(),
        artifacts: artifacts.iter().filter(|a| a.run_id == row.id).map(artifact).collect(),
    }
}

fn artifact(row: &ArtifactRow) -> ArtifactView {
    ArtifactView {
        id: id(row.id.0),
        kind: if row.kind == "screenshot" { ArtifactKindView::Screenshot } else { ArtifactKindView::Tree },
        step: row.step.clone().unwrap_or_default(),
        path: row.relative_path.clone(),
        size_bytes: u32::try_from(row.size_bytes).unwrap_or(u32::MAX),
        created_at: row.created_at.to_string(),
        deleted: row.deleted_at.is_some(),
    }
}

fn outbox(row: &OutboxRow) -> OutboxView {
    OutboxView {
        id: id(row.id.0),
        event_type: row.event_type.to_string(),
        idempotency_key: row.key.to_string(),
        status: outbox_status(row.status),
        attempts: row.attempt_count,
        next_retry_at: time(row.next_retry_at),
        last_error: row.last_error.clone(),
        created_at: row.created_at.to_string(),
        sent_at: time(row.sent_at),
    }
}

pub(crate) fn outbox_status(status: OutboxStatus) -> OutboxStatusView {
    match status {
        OutboxStatus::Pending => OutboxStatusView::Pending,
        OutboxStatus::Sending => OutboxStatusView::Sending,
        OutboxStatus::Sent => OutboxStatusView::Sent,
        OutboxStatus::Failed => OutboxStatusView::Failed,
    }
}

/// # Errors
/// `DATABASE_BROKEN` when the stored `pdd_data` cannot be read: showing half of it would look like the whole.
pub(crate) fn detail(row: &TaskDetailRow) -> Result<TaskDetail, Problem> {
    let data = row.task.pdd_data.as_deref().map(serde_json::from_str::<PddData>).transpose();
    let data = data.map_err(|error| Kind::DatabaseBroken.with(format!("pdd_data of task {}: {error}", row.task.id)))?;
    Ok(TaskDetail {
        item: item(TaskSummaryRow::from(&row.task)),
        goods_url: row.task.goods_url.clone(),
        goods: data.map(goods),
        runs: row.runs.iter().map(|r| run(r, &row.artifacts)).collect(),
        outbox: row.outbox.iter().map(outbox).collect(),
    })
}

/// `<updated_at>/<id>`: where the next page begins.
pub(crate) fn cursor(row: &TaskItem) -> String {
    format!("{}/{}", row.updated_at, row.id)
}

/// # Errors
/// `NOT_FOUND` for a cursor this program did not make.
pub(crate) fn parse_cursor(text: &str) -> Result<(WireTime, LocalTaskId), Problem> {
    let parsed = text.split_once('/').and_then(|(at, id)| Some((at.parse().ok()?, LocalTaskId(id.parse().ok()?))));
    parsed.ok_or_else(|| Kind::NotFound.with(format!("cursor `{text}`")))
}
