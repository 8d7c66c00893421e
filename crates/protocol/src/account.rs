//! Users, devices and the audit trail, as an administrator sees them (D13), and what a login may do (R26).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::auth::Role;
use crate::lifecycle::text_enum;
use crate::{DeviceId, EventId, InstanceId, Password, RemoteTaskId, UserId, WireTime};

text_enum! {
    /// Whose side a user is on (R26). A CUSTOMER never sees the analytics, whatever else it may.
    UserKind { Platform = "PLATFORM", Customer = "CUSTOMER", }
}
text_enum! {
    /// What a PLATFORM user may do beyond its roles (R26). Looking also needs a [`WarehouseGrant`] for the warehouse asked about.
    Permission {
        AnalyticsList = "platform:self-operated-analytics:list",
        AnalyticsSync = "platform:self-operated-analytics:sync",
    }
}

/// The kind a message of an older program means.
pub(crate) fn platform() -> UserKind {
    UserKind::Platform
}

/// One warehouse of one collection account a user may look at (R26).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WarehouseGrant {
    /// 1 to 64 characters.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 64))]
    pub account: String,
    /// 1 to 64 characters.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 64))]
    pub warehouse: String,
}

/// `GET /admin/users/{id}`. Never holds a password or its hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct User {
    pub user_id: UserId,
    pub user_name: String,
    pub kind: UserKind,
    pub roles: Vec<Role>,
    pub permissions: Vec<Permission>,
    pub grants: Vec<WarehouseGrant>,
    pub disabled: bool,
    pub created_at: WireTime,
}

/// `GET /admin/users`: by name; `next` is the cursor of the following page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UserPage {
    pub users: Vec<User>,
    pub next: Option<String>,
}

/// `PATCH /admin/users/{id}`: what is absent stays. Disabling ends every login of the user at once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChangeUser {
    #[serde(default)]
    pub kind: Option<UserKind>,
    /// The whole new set; at least one.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(min_items = 1))]
    pub roles: Option<Vec<Role>>,
    /// The whole new set.
    #[serde(default)]
    pub permissions: Option<Vec<Permission>>,
    /// The whole new set.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(max_items = 1000))]
    pub grants: Option<Vec<WarehouseGrant>>,
    #[serde(default)]
    pub disabled: Option<bool>,
}

/// `PUT /admin/users/{id}/password`: a new password; every login of the user ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SetPassword {
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = Password, min_length = 8, max_length = 200))]
    pub password: Password,
}

/// What a device said last (T-205 §4), at the server's time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeviceSeen {
    pub at: WireTime,
    /// Not older than the heartbeat TTL.
    pub live: bool,
    pub instance_id: InstanceId,
    pub app_version: String,
    pub phone_serial: Option<String>,
    pub android_version: Option<String>,
    pub pdd_version: Option<String>,
    pub accessibility_connected: bool,
    pub pdd_installed: bool,
}

/// `GET /admin/devices/{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Device {
    pub device_id: DeviceId,
    pub name: String,
    pub user_id: UserId,
    pub user_name: String,
    pub disabled: bool,
    pub created_at: WireTime,
    /// `None` before the first heartbeat, or after the instance was forgotten.
    pub seen: Option<DeviceSeen>,
    /// The task that takes the device's slot (T-205 §5).
    pub held_task: Option<RemoteTaskId>,
    /// Why a heartbeat was refused within the TTL (D19).
    pub in_use: Option<String>,
}

/// `GET /admin/devices`: by id; `next` is the cursor of the following page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DevicePage {
    pub devices: Vec<Device>,
    pub next: Option<String>,
}

/// `PATCH /admin/devices/{id}`: what is absent stays. Disabling or moving ends its logins at once; a task it runs stays RUNNING (T-205 §8).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChangeDevice {
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 64))]
    pub name: Option<String>,
    #[serde(default)]
    pub user_id: Option<UserId>,
    #[serde(default)]
    pub disabled: Option<bool>,
}

/// One change an administrator made to accounts, for ever.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditEntry {
    pub entry_id: EventId,
    pub at: WireTime,
    /// As in a task's events: `admin:<user>` or `console`.
    pub actor: String,
    /// Such as `USER_CREATED`, `DEVICE_DISABLED`.
    pub action: String,
    /// `user:<id>` or `device:<id>`.
    pub target: String,
    /// What was asked for; never a secret.
    pub detail: Option<Value>,
}

/// `GET /admin/audit`: newest first; `next` is the cursor of the following page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditPage {
    pub entries: Vec<AuditEntry>,
    pub next: Option<String>,
}

/// `GET /auth/me`: who this access token is, and what it may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Me {
    pub user_id: UserId,
    pub user_name: String,
    pub kind: UserKind,
    pub roles: Vec<Role>,
    pub permissions: Vec<Permission>,
    pub grants: Vec<WarehouseGrant>,
    /// `None` for a login without a device.
    pub device_id: Option<DeviceId>,
    pub access_expires_at: WireTime,
}
