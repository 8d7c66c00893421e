//! Login, refresh, logout (D13).

use serde::{Deserialize, Serialize};

use crate::{AccessToken, DeviceId, Password, RefreshToken, ServerId, UserId, WireTime};

/// `POST /auth/login`. `device_id` is absent for an administrator's console, which then gets no device calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginRequest {
    pub user_name: String,
    pub password: Password,
    pub device_id: Option<DeviceId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Role {
    Admin,
    Buyer,
    Reviewer,
}

/// Answer to login and refresh.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    pub access_token: AccessToken,
    pub access_expires_at: WireTime,
    pub refresh_token: RefreshToken,
    pub user_id: UserId,
    pub user_name: String,
    pub roles: Vec<Role>,
    /// The database this session belongs to; the client's store is bound to it (D7).
    pub server_id: ServerId,
    pub server_time: WireTime,
}

/// `POST /auth/refresh`. The old refresh token stays good until its successor is first used (D5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefreshRequest {
    pub refresh_token: RefreshToken,
}
