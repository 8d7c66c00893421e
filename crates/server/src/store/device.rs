//! Table `devices`: which installation may work for whom, its last accepted heartbeat (T-205 §4) and the last refused one (D19).

use cmautobuy_protocol::device::DeviceHeartbeat;
use cmautobuy_protocol::{DeviceId, InstanceId, UserId, WireTime};
use rusqlite::{OptionalExtension, Row};

use super::{StoreError, Tx, parsed, parsed_opt};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeviceRow {
    pub(crate) device_id: DeviceId,
    pub(crate) user_id: UserId,
    pub(crate) name: String,
    pub(crate) disabled: bool,
    pub(crate) created_at: WireTime,
    pub(crate) heartbeat: Option<Heartbeat>,
    pub(crate) rival: Option<Rival>,
}

/// The last heartbeat that was accepted, at the server's time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Heartbeat {
    pub(crate) at: WireTime,
    pub(crate) instance_id: InstanceId,
    pub(crate) app_version: String,
    pub(crate) android_version: Option<String>,
    pub(crate) pdd_version: Option<String>,
    pub(crate) phone_serial: Option<String>,
    pub(crate) accessibility_connected: bool,
    pub(crate) pdd_installed: bool,
}

/// The last heartbeat that was refused because the device or the phone was in use, and what to tell a person about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rival {
    pub(crate) at: WireTime,
    pub(crate) instance_id: InstanceId,
    pub(crate) text: String,
}

fn decode(row: &Row<'_>) -> rusqlite::Result<DeviceRow> {
    let heartbeat = match parsed_opt(row, "heartbeat_at")? {
        None => None,
        Some(at) => Some(Heartbeat {
            at,
            instance_id: parsed(row, "instance_id")?,
            app_version: row.get("app_version")?,
            android_version: row.get("android_version")?,
            pdd_version: row.get("pdd_version")?,
            phone_serial: row.get("phone_serial")?,
            accessibility_connected: row.get("accessibility_connected")?,
            pdd_installed: row.get("pdd_installed")?,
        }),
    };
    let rival = match parsed_opt(row, "rival_at")? {
        None => None,
        Some(at) => Some(Rival { at, instance_id: parsed(row, "rival_instance_id")?, text: row.get("rival_text")? }),
    };
    Ok(DeviceRow {
        device_id: parsed(row, "device_id")?,
        user_id: parsed(row, "user_id")?,
        name: row.get("name")?,
        disabled: row.get("disabled")?,
        created_at: parsed(row, "created_at")?,
        heartbeat,
        rival,
    })
}

pub(crate) fn device_get(tx: &Tx<'_>, device: DeviceId) -> Result<Option<DeviceRow>, StoreError> {
    let mut read = tx.0.prepare_cached("SELECT * FROM devices WHERE device_id = ?1")?;
    Ok(read.query_row([device.to_string()], decode).optional()?)
}

/// Adds the device, or gives an existing one to `user`.
pub(crate) fn device_authorize(tx: &Tx<'_>, device: DeviceId, user: UserId, name: &str, now: WireTime) -> Result<(), StoreError> {
    tx.run(
        "INSERT INTO devices (device_id, user_id, name, created_at) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (device_id) DO UPDATE SET user_id = excluded.user_id, name = excluded.name, disabled = 0",
        (device.to_string(), user.to_string(), name, now.to_string()),
    )?;
    Ok(())
}

/// Writes name, user and disabled.
pub(crate) fn device_update(tx: &Tx<'_>, device: &DeviceRow) -> Result<(), StoreError> {
    tx.run(
        "UPDATE devices SET user_id = ?2, name = ?3, disabled = ?4 WHERE device_id = ?1",
        (device.device_id.to_string(), device.user_id.to_string(), &device.name, device.disabled),
    )?;
    Ok(())
}

/// By id, from behind `after` on; of one user when given.
pub(crate) fn device_list(tx: &Tx<'_>, user: Option<UserId>, after: Option<DeviceId>, limit: u32) -> Result<Vec<DeviceRow>, StoreError> {
    let mut read = tx.0.prepare_cached(
        "SELECT * FROM devices WHERE device_id > coalesce(?1, '') AND (?2 IS NULL OR user_id = ?2) ORDER BY device_id LIMIT ?3",
    )?;
    let rows = read.query_map((after.map(|id| id.to_string()), user.map(|id| id.to_string()), limit), decode)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Takes a heartbeat at the server's `now`. A refused heartbeat of another instance stays on record; one of this instance is settled by it.
pub(crate) fn device_beat(tx: &Tx<'_>, beat: &DeviceHeartbeat, now: WireTime) -> Result<(), StoreError> {
    let mut write = tx.0.prepare_cached(
        "UPDATE devices SET heartbeat_at = ?2, instance_id = ?3, app_version = ?4, accessibility_connected = ?5, pdd_installed = ?6,
             phone_serial = ?7, android_version = ?8, pdd_version = ?9, reported_task_id = ?10, client_time = ?11,
             rival_at = iif(rival_instance_id = ?3, NULL, rival_at), rival_text = iif(rival_instance_id = ?3, NULL, rival_text),
             rival_instance_id = nullif(rival_instance_id, ?3)
         WHERE device_id = ?1",
    )?;
    write.execute((
        beat.device_id.to_string(),
        now.to_string(),
        beat.instance_id.to_string(),
        &beat.app_version,
        beat.accessibility_connected,
        beat.pdd_installed,
        &beat.phone_serial,
        &beat.android_version,
        &beat.pdd_version,
        beat.active_task_id.map(|id| id.to_string()),
        beat.client_time.to_string(),
    ))?;
    Ok(())
}

pub(crate) fn device_set_rival(tx: &Tx<'_>, device: DeviceId, rival: &Rival) -> Result<(), StoreError> {
    tx.run(
        "UPDATE devices SET rival_at = ?2, rival_instance_id = ?3, rival_text = ?4 WHERE device_id = ?1",
        (device.to_string(), rival.at.to_string(), rival.instance_id.to_string(), &rival.text),
    )?;
    Ok(())
}

/// Forgets heartbeat and rival: the next instance to call is the device.
pub(crate) fn device_forget_instance(tx: &Tx<'_>, device: DeviceId) -> Result<bool, StoreError> {
    let changed = tx.run(
        "UPDATE devices SET heartbeat_at = NULL, instance_id = NULL, app_version = NULL, accessibility_connected = NULL,
             pdd_installed = NULL, phone_serial = NULL, android_version = NULL, pdd_version = NULL, reported_task_id = NULL,
             client_time = NULL, rival_at = NULL, rival_instance_id = NULL, rival_text = NULL
         WHERE device_id = ?1",
        [device.to_string()],
    )?;
    Ok(changed == 1)
}

/// Another device whose heartbeat since `since` named this phone.
pub(crate) fn device_with_phone(tx: &Tx<'_>, serial: &str, other_than: DeviceId, since: WireTime) -> Result<Option<DeviceId>, StoreError> {
    let mut read = tx.0.prepare_cached(
        "SELECT device_id FROM devices WHERE phone_serial = ?1 AND device_id <> ?2 AND heartbeat_at >= ?3 ORDER BY heartbeat_at DESC LIMIT 1",
    )?;
    let found = read.query_row((serial, other_than.to_string(), since.to_string()), |row| parsed(row, "device_id")).optional()?;
    Ok(found)
}
