//! `/admin/users` and `/admin/audit`.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use cmautobuy_protocol::account::{AuditPage, ChangeUser, SetPassword, User, UserKind, UserPage};
use cmautobuy_protocol::admin::{CreateUser, UserCreated};
use cmautobuy_protocol::auth::Role;
use cmautobuy_protocol::{ErrorCode, UserId};
use serde::Deserialize;

use crate::admin::{Admin, UserQuery};
use crate::http::App;
use crate::http::answer::Fault;
use crate::http::extract::{Ask, ByAdmin, Order, SecretOrder, UserPath};
use crate::refusal::Refusal;
use crate::work::Actor;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Users {
    /// Part of the name.
    name: Option<String>,
    kind: Option<UserKind>,
    role: Option<Role>,
    disabled: Option<bool>,
    /// `next` of the page before.
    cursor: Option<String>,
    /// Users on the page: 50 when absent.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Changes {
    /// `user:<id>` or `device:<id>`.
    target: Option<String>,
    /// `next` of the page before.
    cursor: Option<String>,
    /// Entries on the page: 50 when absent.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// Creates a user.
#[utoipa::path(post, path = "/admin/users", tag = "admin", request_body = CreateUser, responses((status = 200, body = UserCreated)))]
pub(crate) async fn create_user(
    State(house): App,
    ByAdmin(actor): ByAdmin,
    SecretOrder(new): SecretOrder<CreateUser>,
) -> Result<Json<UserCreated>, Fault> {
    Ok(Json(house.hashing(move |house| Admin::new(house, actor).create_user(&new)).await?))
}

/// Users, by name.
#[utoipa::path(get, path = "/admin/users", tag = "admin", params(Users), responses((status = 200, body = UserPage)))]
pub(crate) async fn list_users(State(house): App, ByAdmin(actor): ByAdmin, Ask(asked): Ask<Users>) -> Result<Json<UserPage>, Fault> {
    let Users { name, kind, role, disabled, cursor, limit } = asked;
    let query = UserQuery { name, kind, role, disabled, cursor, limit };
    Ok(Json(house.blocking(move |house| Admin::new(house, actor).users(&query)).await?))
}

/// One user with its permissions and warehouse grants.
#[utoipa::path(get, path = "/admin/users/{id}", tag = "admin", params(("id" = UserId, Path)), responses((status = 200, body = User)))]
pub(crate) async fn user(State(house): App, ByAdmin(actor): ByAdmin, UserPath(user): UserPath) -> Result<Json<User>, Fault> {
    Ok(Json(house.blocking(move |house| Admin::new(house, actor).user(user)).await?))
}

/// Changes roles, kind, permissions, grants, or disables. What is absent stays.
#[utoipa::path(patch, path = "/admin/users/{id}", tag = "admin", request_body = ChangeUser, params(("id" = UserId, Path)), responses((status = 200, body = User)))]
pub(crate) async fn change_user(
    State(house): App,
    ByAdmin(actor): ByAdmin,
    UserPath(user): UserPath,
    Order(change): Order<ChangeUser>,
) -> Result<Json<User>, Fault> {
    if actor == Actor::Admin(user) && change.disabled == Some(true) {
        return Err(Refusal::new(ErrorCode::IllegalState, "an administrator cannot disable itself; ask another one").into());
    }
    Ok(Json(house.blocking(move |house| Admin::new(house, actor).change_user(user, &change)).await?))
}

/// Sets a new password and ends every login of the user.
#[utoipa::path(put, path = "/admin/users/{id}/password", tag = "admin", request_body = SetPassword, params(("id" = UserId, Path)), responses((status = 204)))]
pub(crate) async fn set_password(
    State(house): App,
    ByAdmin(actor): ByAdmin,
    UserPath(user): UserPath,
    SecretOrder(new): SecretOrder<SetPassword>,
) -> Result<StatusCode, Fault> {
    house.hashing(move |house| Admin::new(house, actor).set_password(user, &new.password)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Ends every login of the user.
#[utoipa::path(delete, path = "/admin/users/{id}/sessions", tag = "admin", params(("id" = UserId, Path)), responses((status = 204)))]
pub(crate) async fn end_sessions(State(house): App, ByAdmin(actor): ByAdmin, UserPath(user): UserPath) -> Result<StatusCode, Fault> {
    house.blocking(move |house| Admin::new(house, actor).end_sessions(user)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What administrators changed in accounts, newest first.
#[utoipa::path(get, path = "/admin/audit", tag = "admin", params(Changes), responses((status = 200, body = AuditPage)))]
pub(crate) async fn audit(State(house): App, ByAdmin(actor): ByAdmin, Ask(asked): Ask<Changes>) -> Result<Json<AuditPage>, Fault> {
    let work =
        move |house: &crate::house::House| Admin::new(house, actor).audit(asked.target.as_deref(), asked.cursor.as_deref(), asked.limit);
    Ok(Json(house.blocking(work).await?))
}
