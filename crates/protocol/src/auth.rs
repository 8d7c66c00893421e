//! Login, refresh, logout (D13).

use serde::{Deserialize, Serialize};

use crate::account::{Permission, UserKind, platform};
use crate::{AccessToken, DeviceId, Password, RefreshToken, ServerId, UserId, WireTime};

/// `POST /auth/login`. `device_id` is absent for an administrator's console, which then gets no device calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LoginRequest {
    #[cfg_attr(feature = "openapi", schema(max_length = 64))]
    pub user_name: String,
    pub password: Password,
    pub device_id: Option<DeviceId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Role {
    Admin,
    Buyer,
    Reviewer,
}

impl Role {
    pub const ALL: &[Role] = &[Role::Admin, Role::Buyer, Role::Reviewer];
}

/// Answer to login and refresh.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Session {
    pub access_token: AccessToken,
    pub access_expires_at: WireTime,
    pub refresh_token: RefreshToken,
    pub user_id: UserId,
    pub user_name: String,
    pub roles: Vec<Role>,
    #[serde(default = "platform")]
    pub kind: UserKind,
    /// What the user may do beyond its roles (R26).
    #[serde(default)]
    pub permissions: Vec<Permission>,
    /// The database this session belongs to; the client's store is bound to it (D7).
    pub server_id: ServerId,
    pub server_time: WireTime,
}

/// `POST /auth/refresh`. The old refresh token stays good until its successor is first used (D5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RefreshRequest {
    pub refresh_token: RefreshToken,
}
