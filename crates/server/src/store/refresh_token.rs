//! Table `refresh_tokens`: SHA-256 of what renews a login. The old one stays good until its successor is first used, so a lost answer costs
//! nothing (D5).

use cmautobuy_protocol::{DeviceId, UserId, WireTime};
use rusqlite::OptionalExtension;
use uuid::Uuid;

use super::{StoreError, Tx, parsed, parsed_opt};

#[derive(Debug, Clone)]
pub(crate) struct RefreshRow {
    pub(crate) session_id: Uuid,
    pub(crate) user_id: UserId,
    pub(crate) device_id: Option<DeviceId>,
    pub(crate) predecessor_sha256: Option<String>,
}

pub(crate) fn refresh_token_insert(
    tx: &Tx<'_>,
    sha256: &str,
    session: Uuid,
    predecessor: Option<&str>,
    expires: WireTime,
) -> Result<(), StoreError> {
    tx.run(
        "INSERT INTO refresh_tokens (token_sha256, session_id, predecessor_sha256, expires_at) VALUES (?1, ?2, ?3, ?4)",
        (sha256, session.to_string(), predecessor, expires.to_string()),
    )?;
    Ok(())
}

/// A token that is known, not expired, and whose user and device are still allowed.
pub(crate) fn refresh_token_get(tx: &Tx<'_>, sha256: &str, now: WireTime) -> Result<Option<RefreshRow>, StoreError> {
    let mut read = tx.0.prepare_cached(
        "SELECT s.session_id, s.user_id, s.device_id, t.predecessor_sha256
         FROM refresh_tokens t
         JOIN sessions s ON s.session_id = t.session_id
         JOIN users u ON u.user_id = s.user_id AND u.disabled = 0
         LEFT JOIN devices d ON d.device_id = s.device_id
         WHERE t.token_sha256 = ?1 AND t.expires_at > ?2
           AND (s.device_id IS NULL OR (d.disabled = 0 AND d.user_id = s.user_id))",
    )?;
    let found = read
        .query_row((sha256, now.to_string()), |row| {
            Ok(RefreshRow {
                session_id: parsed(row, "session_id")?,
                user_id: parsed(row, "user_id")?,
                device_id: parsed_opt(row, "device_id")?,
                predecessor_sha256: row.get("predecessor_sha256")?,
            })
        })
        .optional()?;
    Ok(found)
}

/// `used` was used for the first time: its predecessor and that one's other successors are good no longer.
pub(crate) fn refresh_token_retire(tx: &Tx<'_>, used: &str, predecessor: &str) -> Result<(), StoreError> {
    tx.run("DELETE FROM refresh_tokens WHERE token_sha256 = ?2 OR (predecessor_sha256 = ?2 AND token_sha256 <> ?1)", [used, predecessor])?;
    tx.run("UPDATE refresh_tokens SET predecessor_sha256 = NULL WHERE token_sha256 = ?1", [used])?;
    Ok(())
}

/// Expired tokens go, and with the last one its session.
pub(crate) fn refresh_token_delete_expired(tx: &Tx<'_>, now: WireTime) -> Result<(), StoreError> {
    tx.run("DELETE FROM refresh_tokens WHERE expires_at <= ?1", [now.to_string()])?;
    tx.run(
        "DELETE FROM sessions WHERE NOT EXISTS (SELECT 1 FROM refresh_tokens r WHERE r.session_id = sessions.session_id)
           AND NOT EXISTS (SELECT 1 FROM access_tokens a WHERE a.session_id = sessions.session_id)",
        [],
    )?;
    Ok(())
}
