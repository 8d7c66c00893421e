//! `/admin/tasks`.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use cmautobuy_protocol::admin::{CreateTask, ImportReport, ReferenceImage, TaskDetail, TaskPage, TaskSummary};
use cmautobuy_protocol::{IdempotencyKey, RemoteTaskId};
use serde::Deserialize;

use crate::admin::{Admin, CloseTask, MAX_IMAGE_BYTES, MAX_LIST_BYTES, ReleaseHold, TaskQuery};
use crate::http::App;
use crate::http::answer::{Fault, Jpeg};
use crate::http::extract::{Ask, ByAdmin, Bytes, Key, OptionalKey, Order, TaskPath};

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct How {
    /// Check everything, keep nothing.
    #[serde(default)]
    dry_run: bool,
}

/// Creates a task; the same key again gives the same task as it stands now (D19).
#[utoipa::path(post, path = "/admin/tasks", tag = "admin", request_body = CreateTask,
    params(("Idempotency-Key" = IdempotencyKey, Header, description = "Repeating the call with the same key does it once.")),
    responses((status = 200, body = TaskSummary)))]
pub(crate) async fn create_task(
    State(house): App,
    ByAdmin(actor): ByAdmin,
    Key(key): Key,
    Order(asked): Order<CreateTask>,
) -> Result<Json<TaskSummary>, Fault> {
    Ok(Json(house.blocking(move |house| Admin::new(house, actor).create_task(&asked, Some(&key))).await?))
}

/// Makes all tasks of a CSV or XLSX list, or none when any row is refused; see `autobuy-server task template` for its columns. Without a key the
/// list's own bytes are the key (D19).
#[utoipa::path(post, path = "/admin/tasks/import", tag = "admin", request_body(content = Vec<u8>, content_type = "application/octet-stream", description = "CSV or XLSX, told apart by its bytes"),
    params(How, ("Idempotency-Key" = Option<IdempotencyKey>, Header, description = "Repeating the call with the same key does it once.")),
    responses((status = 200, body = ImportReport)))]
pub(crate) async fn import_tasks(
    State(house): App,
    ByAdmin(actor): ByAdmin,
    key: OptionalKey,
    Ask(how): Ask<How>,
    Bytes(list): Bytes<MAX_LIST_BYTES>,
) -> Result<Json<ImportReport>, Fault> {
    Ok(Json(house.blocking(move |house| Admin::new(house, actor).import_tasks(&list, how.dry_run, key.0.as_ref())).await?))
}

/// Tasks, newest first.
#[utoipa::path(get, path = "/admin/tasks", tag = "admin", params(TaskQuery), responses((status = 200, body = TaskPage)))]
pub(crate) async fn list_tasks(State(house): App, ByAdmin(actor): ByAdmin, Ask(asked): Ask<TaskQuery>) -> Result<Json<TaskPage>, Fault> {
    Ok(Json(house.blocking(move |house| Admin::new(house, actor).list(&asked)).await?))
}

/// One task with its events, executions and results.
#[utoipa::path(get, path = "/admin/tasks/{id}", tag = "admin", params(("id" = RemoteTaskId, Path)), responses((status = 200, body = TaskDetail)))]
pub(crate) async fn task_detail(State(house): App, ByAdmin(actor): ByAdmin, TaskPath(task): TaskPath) -> Result<Json<TaskDetail>, Fault> {
    Ok(Json(house.blocking(move |house| Admin::new(house, actor).detail(task)).await?))
}

/// Cancels an unstarted task; asks a running one's device to stop at a safe point (T-205 §10).
#[utoipa::path(post, path = "/admin/tasks/{id}/cancel", tag = "admin", params(("id" = RemoteTaskId, Path)), responses((status = 200, body = TaskSummary)))]
pub(crate) async fn cancel_task(State(house): App, ByAdmin(actor): ByAdmin, TaskPath(task): TaskPath) -> Result<Json<TaskSummary>, Fault> {
    Ok(Json(house.blocking(move |house| Admin::new(house, actor).cancel(task)).await?))
}

/// Ends a task whose device is lost; it never goes back to the queue (D4).
#[utoipa::path(post, path = "/admin/tasks/{id}/close", tag = "admin", request_body = CloseTask, params(("id" = RemoteTaskId, Path)), responses((status = 200, body = TaskSummary)))]
pub(crate) async fn close_task(
    State(house): App,
    ByAdmin(actor): ByAdmin,
    TaskPath(task): TaskPath,
    Order(close): Order<CloseTask>,
) -> Result<Json<TaskSummary>, Fault> {
    Ok(Json(house.blocking(move |house| Admin::new(house, actor).close(task, &close)).await?))
}

/// Lets a live purchase that a restore held go on, once a person has looked through the order list (D7).
#[utoipa::path(post, path = "/admin/tasks/{id}/release-hold", tag = "admin", request_body = ReleaseHold, params(("id" = RemoteTaskId, Path)), responses((status = 200, body = TaskSummary)))]
pub(crate) async fn release_hold(
    State(house): App,
    ByAdmin(actor): ByAdmin,
    TaskPath(task): TaskPath,
    Order(asked): Order<ReleaseHold>,
) -> Result<Json<TaskSummary>, Fault> {
    Ok(Json(house.blocking(move |house| Admin::new(house, actor).release_hold(task, &asked)).await?))
}

/// Puts the picture of a PENDING task: a JPEG of at most 5 MiB and 40 million pixels.
#[utoipa::path(put, path = "/admin/tasks/{id}/reference-image", tag = "admin", request_body(content = Vec<u8>, content_type = "image/jpeg"),
    params(("id" = RemoteTaskId, Path)), responses((status = 200, body = ReferenceImage)))]
pub(crate) async fn put_image(
    State(house): App,
    ByAdmin(actor): ByAdmin,
    TaskPath(task): TaskPath,
    Bytes(jpeg): Bytes<MAX_IMAGE_BYTES>,
) -> Result<Json<ReferenceImage>, Fault> {
    Ok(Json(house.hashing(move |house| Admin::new(house, actor).put_reference_image(task, &jpeg)).await?))
}

/// The picture of a task.
#[utoipa::path(get, path = "/admin/tasks/{id}/reference-image", tag = "admin", params(("id" = RemoteTaskId, Path)),
    responses((status = 200, body = Vec<u8>, content_type = "image/jpeg")))]
pub(crate) async fn image(State(house): App, ByAdmin(actor): ByAdmin, TaskPath(task): TaskPath) -> Result<Jpeg, Fault> {
    Ok(Jpeg(house.blocking(move |house| Admin::new(house, actor).reference_image(task)).await?))
}

/// Removes the picture of a PENDING task.
#[utoipa::path(delete, path = "/admin/tasks/{id}/reference-image", tag = "admin", params(("id" = RemoteTaskId, Path)), responses((status = 204)))]
pub(crate) async fn delete_image(State(house): App, ByAdmin(actor): ByAdmin, TaskPath(task): TaskPath) -> Result<StatusCode, Fault> {
    house.blocking(move |house| Admin::new(house, actor).delete_reference_image(task)).await?;
    Ok(StatusCode::NO_CONTENT)
}
