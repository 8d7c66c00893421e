//! Device heartbeat (T-205 §4, D19).

use serde::{Deserialize, Serialize};

use crate::{DeviceId, InstanceId, RemoteTaskId, WireTime};

/// How many earlier processes a heartbeat names.
pub const MAX_PREDECESSORS: usize = 16;

/// `POST /devices/heartbeat`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeviceHeartbeat {
    pub device_id: DeviceId,
    pub instance_id: InstanceId,
    /// Earlier processes of the same data folder, newest first, at most [`MAX_PREDECESSORS`]. A folder has one process at a time (D7), so
    /// this instance takes over from any of them at once; one it does not name is a second live copy (D19).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(max_items = 16))]
    pub predecessors: Vec<InstanceId>,
    /// Serial of the phone in use; `None` while no phone is connected.
    #[cfg_attr(feature = "openapi", schema(max_length = 128))]
    pub phone_serial: Option<String>,
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 64))]
    pub app_version: String,
    #[cfg_attr(feature = "openapi", schema(max_length = 64))]
    pub android_version: Option<String>,
    #[cfg_attr(feature = "openapi", schema(max_length = 64))]
    pub pdd_version: Option<String>,
    /// The last accessibility dump succeeded within the heartbeat TTL (D19).
    pub accessibility_connected: bool,
    pub pdd_installed: bool,
    /// Checked against the server's own record only; the server's is the authority (T-205 §4).
    pub active_task_id: Option<RemoteTaskId>,
    pub client_time: WireTime,
}

/// Why a device may not claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum NotReady {
    AccessibilityOff,
    PddMissing,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeviceHeartbeatAnswer {
    pub server_time: WireTime,
    pub not_ready: Vec<NotReady>,
    /// The task the server holds this device to.
    pub active_task_id: Option<RemoteTaskId>,
    /// Tasks of this device whose cancel was asked for (D4).
    pub cancel_requested_tasks: Vec<RemoteTaskId>,
    /// How long this heartbeat keeps the device ready, in milliseconds.
    pub ttl_ms: u64,
}
