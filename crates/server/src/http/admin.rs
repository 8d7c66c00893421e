//! What an administrator calls.

use axum::Json;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use cmautobuy_protocol::admin::{AuthorizeDevice, CreateTask, CreateUser, TaskDetail, TaskPage, TaskSummary, UserCreated};
use serde::Deserialize;

use super::App;
use super::answer::Fault;
use super::extract::{Body, ByAdmin, Key, SecretBody, TaskPath};
use crate::admin::{Admin, CloseTask};
use crate::refusal::Refusal;

#[derive(Debug, Deserialize)]
pub(crate) struct Page {
    cursor: Option<String>,
    limit: Option<u32>,
}

pub(crate) async fn create_task(
    State(house): App,
    ByAdmin(actor): ByAdmin,
    Key(key): Key,
    Body(asked): Body<CreateTask>,
) -> Result<Json<TaskSummary>, Fault> {
    Ok(Json(house.blocking(move |house| Admin::new(house, actor).create_task(&asked, Some(&key))).await?))
}

pub(crate) async fn list_tasks(
    State(house): App,
    ByAdmin(actor): ByAdmin,
    page: Result<Query<Page>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<TaskPage>, Fault> {
    let Query(page) = page.map_err(|_| Refusal::malformed("cursor must be text and limit a number"))?;
    Ok(Json(house.blocking(move |house| Admin::new(house, actor).list(page.cursor.as_deref(), page.limit)).await?))
}

pub(crate) async fn task_detail(State(house): App, ByAdmin(actor): ByAdmin, TaskPath(task): TaskPath) -> Result<Json<TaskDetail>, Fault> {
    Ok(Json(house.blocking(move |house| Admin::new(house, actor).detail(task)).await?))
}

pub(crate) async fn cancel_task(State(house): App, ByAdmin(actor): ByAdmin, TaskPath(task): TaskPath) -> Result<Json<TaskSummary>, Fault> {
    Ok(Json(house.blocking(move |house| Admin::new(house, actor).cancel(task)).await?))
}

pub(crate) async fn close_task(
    State(house): App,
    ByAdmin(actor): ByAdmin,
    TaskPath(task): TaskPath,
    Body(close): Body<CloseTask>,
) -> Result<Json<TaskSummary>, Fault> {
    Ok(Json(house.blocking(move |house| Admin::new(house, actor).close(task, &close)).await?))
}

pub(crate) async fn create_user(
    State(house): App,
    ByAdmin(actor): ByAdmin,
    SecretBody(new): SecretBody<CreateUser>,
) -> Result<Json<UserCreated>, Fault> {
    Ok(Json(house.hashing(move |house| Admin::new(house, actor).create_user(&new)).await?))
}

pub(crate) async fn authorize_device(
    State(house): App,
    ByAdmin(actor): ByAdmin,
    Body(new): Body<AuthorizeDevice>,
) -> Result<StatusCode, Fault> {
    house.blocking(move |house| Admin::new(house, actor).authorize_device(&new)).await?;
    Ok(StatusCode::NO_CONTENT)
}
