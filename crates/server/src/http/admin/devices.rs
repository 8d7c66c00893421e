//! `/admin/devices`.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use cmautobuy_protocol::account::{ChangeDevice, Device, DevicePage};
use cmautobuy_protocol::admin::AuthorizeDevice;
use cmautobuy_protocol::{DeviceId, UserId};
use serde::Deserialize;

use crate::admin::Admin;
use crate::http::App;
use crate::http::answer::Fault;
use crate::http::extract::{Ask, ByAdmin, DevicePath, Order};

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Devices {
    /// Only this user's.
    user_id: Option<UserId>,
    /// `next` of the page before.
    cursor: Option<String>,
    /// Devices on the page: 50 when absent.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// Lets a device work for a user (D13).
#[utoipa::path(post, path = "/admin/devices", tag = "admin", request_body = AuthorizeDevice, responses((status = 204)))]
pub(crate) async fn authorize_device(
    State(house): App,
    ByAdmin(actor): ByAdmin,
    Order(new): Order<AuthorizeDevice>,
) -> Result<StatusCode, Fault> {
    house.blocking(move |house| Admin::new(house, actor).authorize_device(&new)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Devices with what they said last, by id.
#[utoipa::path(get, path = "/admin/devices", tag = "admin", params(Devices), responses((status = 200, body = DevicePage)))]
pub(crate) async fn list_devices(State(house): App, ByAdmin(actor): ByAdmin, Ask(asked): Ask<Devices>) -> Result<Json<DevicePage>, Fault> {
    let work = move |house: &crate::house::House| Admin::new(house, actor).devices(asked.user_id, asked.cursor.as_deref(), asked.limit);
    Ok(Json(house.blocking(work).await?))
}

/// One device.
#[utoipa::path(get, path = "/admin/devices/{id}", tag = "admin", params(("id" = DeviceId, Path)), responses((status = 200, body = Device)))]
pub(crate) async fn device(State(house): App, ByAdmin(actor): ByAdmin, DevicePath(device): DevicePath) -> Result<Json<Device>, Fault> {
    Ok(Json(house.blocking(move |house| Admin::new(house, actor).device(device)).await?))
}

/// Renames, moves or disables a device. What is absent stays.
#[utoipa::path(patch, path = "/admin/devices/{id}", tag = "admin", request_body = ChangeDevice, params(("id" = DeviceId, Path)), responses((status = 200, body = Device)))]
pub(crate) async fn change_device(
    State(house): App,
    ByAdmin(actor): ByAdmin,
    DevicePath(device): DevicePath,
    Order(change): Order<ChangeDevice>,
) -> Result<Json<Device>, Fault> {
    Ok(Json(house.blocking(move |house| Admin::new(house, actor).change_device(device, &change)).await?))
}

/// Forgets which instance was heard last (D19). Only when the old one is surely gone.
#[utoipa::path(delete, path = "/admin/devices/{id}/instance", tag = "admin", params(("id" = DeviceId, Path)), responses((status = 204)))]
pub(crate) async fn forget_instance(
    State(house): App,
    ByAdmin(actor): ByAdmin,
    DevicePath(device): DevicePath,
) -> Result<StatusCode, Fault> {
    house.blocking(move |house| Admin::new(house, actor).forget_instance(device)).await?;
    Ok(StatusCode::NO_CONTENT)
}
