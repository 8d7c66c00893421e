//! Table `sessions`: one login. Deleting it deletes its tokens.

use cmautobuy_protocol::{DeviceId, UserId, WireTime};
use uuid::Uuid;

use super::{StoreError, Tx};

pub(crate) fn session_insert(tx: &Tx<'_>, session: Uuid, user: UserId, device: Option<DeviceId>, now: WireTime) -> Result<(), StoreError> {
    tx.run(
        "INSERT INTO sessions (session_id, user_id, device_id, created_at) VALUES (?1, ?2, ?3, ?4)",
        (session.to_string(), user.to_string(), device.map(|id| id.to_string()), now.to_string()),
    )?;
    Ok(())
}

pub(crate) fn session_delete(tx: &Tx<'_>, session: Uuid) -> Result<(), StoreError> {
    tx.run("DELETE FROM sessions WHERE session_id = ?1", [session.to_string()])?;
    Ok(())
}

/// Ends every login of a user; how many there were.
pub(crate) fn session_delete_of_user(tx: &Tx<'_>, user: UserId) -> Result<usize, StoreError> {
    Ok(tx.run("DELETE FROM sessions WHERE user_id = ?1", [user.to_string()])?)
}

/// Ends every login on a device.
pub(crate) fn session_delete_of_device(tx: &Tx<'_>, device: DeviceId) -> Result<(), StoreError> {
    tx.run("DELETE FROM sessions WHERE device_id = ?1", [device.to_string()])?;
    Ok(())
}

/// Ends every login of a device by anyone but `user` (the device was moved).
pub(crate) fn session_delete_of_device_not(tx: &Tx<'_>, device: DeviceId, user: UserId) -> Result<(), StoreError> {
    tx.run("DELETE FROM sessions WHERE device_id = ?1 AND user_id <> ?2", [device.to_string(), user.to_string()])?;
    Ok(())
}

pub(crate) fn session_delete_all(tx: &Tx<'_>) -> Result<(), StoreError> {
    tx.0.execute("DELETE FROM sessions", [])?;
    Ok(())
}

/// Deletes at most `most` logins all of whose tokens have run out; how many.
pub(crate) fn session_prune(tx: &Tx<'_>, now: WireTime, most: u32) -> Result<usize, StoreError> {
    let mut write = tx.0.prepare_cached(
        "DELETE FROM sessions WHERE session_id IN (
             SELECT s.session_id FROM sessions s
             WHERE NOT EXISTS (SELECT 1 FROM access_tokens t WHERE t.session_id = s.session_id AND t.expires_at > ?1)
               AND NOT EXISTS (SELECT 1 FROM refresh_tokens t WHERE t.session_id = s.session_id AND t.expires_at > ?1)
             LIMIT ?2)",
    )?;
    Ok(write.execute((now.to_string(), most))?)
}
