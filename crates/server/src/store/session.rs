//! Table `sessions`: one login. Deleting it deletes its tokens.

use cmautobuy_protocol::{DeviceId, UserId, WireTime};
use uuid::Uuid;

use super::{StoreError, Tx};

pub(crate) fn session_insert(tx: &Tx<'_>, session: Uuid, user: UserId, device: Option<DeviceId>, now: WireTime) -> Result<(), StoreError> {
    tx.0.execute(
        "INSERT INTO sessions (session_id, user_id, device_id, created_at) VALUES (?1, ?2, ?3, ?4)",
        (session.to_string(), user.to_string(), device.map(|id| id.to_string()), now.to_string()),
    )?;
    Ok(())
}

pub(crate) fn session_delete(tx: &Tx<'_>, session: Uuid) -> Result<(), StoreError> {
    tx.0.execute("DELETE FROM sessions WHERE session_id = ?1", [session.to_string()])?;
    Ok(())
}

/// Ends every login of a user (new password).
pub(crate) fn session_delete_of_user(tx: &Tx<'_>, user: UserId) -> Result<(), StoreError> {
    tx.0.execute("DELETE FROM sessions WHERE user_id = ?1", [user.to_string()])?;
    Ok(())
}

/// Ends every login of a device by anyone but `user` (the device was moved).
pub(crate) fn session_delete_of_device_not(tx: &Tx<'_>, device: DeviceId, user: UserId) -> Result<(), StoreError> {
    tx.0.execute("DELETE FROM sessions WHERE device_id = ?1 AND user_id <> ?2", [device.to_string(), user.to_string()])?;
    Ok(())
}
