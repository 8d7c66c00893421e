//! Devices (D13, D19): authorised, moved, disabled. Each change and its audit row are one transaction.

use cmautobuy_protocol::account::{ChangeDevice, Device, DevicePage, DeviceSeen};
use cmautobuy_protocol::admin::AuthorizeDevice;
use cmautobuy_protocol::{DeviceId, UserId};
use serde_json::json;

use super::{Admin, MAX_NAME_CHARS, checked_limit, no_such, noted};
use crate::house::Call;
use crate::refusal::{CallError, Refusal};
use crate::store::StoreError;
use crate::store::device::{DeviceRow, device_authorize, device_forget_instance, device_get, device_list, device_update};
use crate::store::session::{session_delete_of_device, session_delete_of_device_not};
use crate::store::task::task_in_slot;
use crate::store::user::user_by_id;
use crate::work::heartbeat::lives;

impl Admin<'_> {
    /// Pre-authorises a device for a user (D13). A device of another user is moved and its logins there end (D7).
    ///
    /// # Errors
    /// 404 for an unknown user, 422 for an empty or long name.
    pub fn authorize_device(&self, new: &AuthorizeDevice) -> Result<(), CallError> {
        let name = checked_name(&new.name)?;
        self.house.write(|call| {
            user_by_id(call.tx, new.user_id)?.ok_or_else(|| no_such("user"))?;
            device_authorize(call.tx, new.device_id, new.user_id, name, call.now)?;
            session_delete_of_device_not(call.tx, new.device_id, new.user_id)?;
            let detail = json!({"user_id": new.user_id, "name": name});
            noted(call, self.actor, "DEVICE_AUTHORIZED", &about(new.device_id), Some(detail))
        })
    }

    /// # Errors
    /// 404 for an unknown device.
    pub fn device(&self, device: DeviceId) -> Result<Device, CallError> {
        self.house.read(|call| Ok(view(call, get(call, device)?)?))
    }

    /// By id; of one user when given.
    ///
    /// # Errors
    /// 422 for a cursor this server did not make or a limit outside 1..=200.
    pub fn devices(&self, user: Option<UserId>, cursor: Option<&str>, limit: Option<u32>) -> Result<DevicePage, CallError> {
        let limit = checked_limit(limit)?;
        let after: Option<DeviceId> = cursor.map(str::parse).transpose().map_err(|_| Refusal::unknown_cursor())?;
        self.house.read(|call| {
            let mut rows = device_list(call.tx, user, after, limit + 1)?;
            let has_more = rows.len() > limit as usize;
            rows.truncate(limit as usize);
            let next = rows.last().filter(|_| has_more).map(|last| last.device_id.to_string());
            let devices = rows.into_iter().map(|row| view(call, row)).collect::<Result<_, _>>()?;
            Ok(DevicePage { devices, next })
        })
    }

    /// Changes what is given. A disabled or moved device is logged out at once; a task it runs stays RUNNING (T-205 §8).
    ///
    /// # Errors
    /// 404 for an unknown device or user, 422 for an empty or long name.
    pub fn change_device(&self, device: DeviceId, change: &ChangeDevice) -> Result<Device, CallError> {
        let name = change.name.as_deref().map(checked_name).transpose()?;
        self.house.write(|call| {
            let mut row = get(call, device)?;
            if let Some(user) = change.user_id {
                user_by_id(call.tx, user)?.ok_or_else(|| no_such("user"))?;
                session_delete_of_device_not(call.tx, device, user)?;
                row.user_id = user;
            }
            if let Some(name) = name {
                name.clone_into(&mut row.name);
            }
            if let Some(disabled) = change.disabled {
                row.disabled = disabled;
                if disabled {
                    session_delete_of_device(call.tx, device)?;
                }
            }
            device_update(call.tx, &row)?;
            let detail = serde_json::to_value(change).expect("a ChangeDevice is a plain struct, which always becomes JSON");
            noted(call, self.actor, "DEVICE_CHANGED", &about(device), Some(detail))?;
            Ok(view(call, row)?)
        })
    }

    /// Forgets which instance of a device was heard last, so that a new one need not wait out the TTL (D19). Only for a person who knows that
    /// the old instance is gone.
    ///
    /// # Errors
    /// 404 for an unknown device.
    pub fn forget_instance(&self, device: DeviceId) -> Result<(), CallError> {
        self.house.write(|call| {
            if !device_forget_instance(call.tx, device)? {
                return Err(no_such("device").into());
            }
            noted(call, self.actor, "DEVICE_INSTANCE_FORGOTTEN", &about(device), None)
        })
    }
}

fn get(call: Call<'_>, device: DeviceId) -> Result<DeviceRow, CallError> {
    Ok(device_get(call.tx, device)?.ok_or_else(|| no_such("device"))?)
}

fn view(call: Call<'_>, row: DeviceRow) -> Result<Device, StoreError> {
    let user = user_by_id(call.tx, row.user_id)?;
    let in_use = row.rival.filter(|rival| lives(call, rival.at)).map(|rival| rival.text);
    let seen = row.heartbeat.map(|last| DeviceSeen {
        at: last.at,
        live: lives(call, last.at),
        instance_id: last.instance_id,
        app_version: last.app_version,
        phone_serial: last.phone_serial,
        android_version: last.android_version,
        pdd_version: last.pdd_version,
        accessibility_connected: last.accessibility_connected,
        pdd_installed: last.pdd_installed,
    });
    Ok(Device {
        held_task: task_in_slot(call.tx, row.device_id, None, call.now)?,
        device_id: row.device_id,
        name: row.name,
        user_id: row.user_id,
        user_name: user.map(|user| user.user_name).unwrap_or_default(),
        disabled: row.disabled,
        created_at: row.created_at,
        seen,
        in_use,
    })
}

fn about(device: DeviceId) -> String {
    format!("device:{device}")
}

fn checked_name(name: &str) -> Result<&str, Refusal> {
    let given = name.chars().count();
    let name = name.trim();
    if name.is_empty() || given > MAX_NAME_CHARS || name.chars().any(char::is_control) {
        return Err(Refusal::malformed(format!("name must be 1 to {MAX_NAME_CHARS} visible characters")));
    }
    Ok(name)
}
