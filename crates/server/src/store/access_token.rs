//! Table `access_tokens`: SHA-256 of what a caller shows on every call (D6).

use cmautobuy_protocol::auth::Role;
use cmautobuy_protocol::{DeviceId, UserId, WireTime};
use rusqlite::{OptionalExtension, Row};
use uuid::Uuid;

use super::user::roles;
use super::{StoreError, Tx, parsed, parsed_opt};

/// Who a live access token belongs to.
#[derive(Debug, Clone)]
pub(crate) struct TokenOwner {
    pub(crate) session_id: Uuid,
    pub(crate) user_id: UserId,
    pub(crate) device_id: Option<DeviceId>,
    pub(crate) roles: Vec<Role>,
    pub(crate) expires_at: WireTime,
}

fn decode(row: &Row<'_>) -> rusqlite::Result<TokenOwner> {
    Ok(TokenOwner {
        session_id: parsed(row, "session_id")?,
        user_id: parsed(row, "user_id")?,
        device_id: parsed_opt(row, "device_id")?,
        roles: roles(row)?,
        expires_at: parsed(row, "expires_at")?,
    })
}

pub(crate) fn access_token_insert(tx: &Tx<'_>, sha256: &str, session: Uuid, expires: WireTime) -> Result<(), StoreError> {
    tx.run(
        "INSERT INTO access_tokens (token_sha256, session_id, expires_at) VALUES (?1, ?2, ?3)",
        (sha256, session.to_string(), expires.to_string()),
    )?;
    Ok(())
}

/// The owner of a token that is known, not expired, and whose user and device are still allowed. Looking up by hash leaks no timing of the token.
pub(crate) fn access_token_owner(tx: &Tx<'_>, sha256: &str, now: WireTime) -> Result<Option<TokenOwner>, StoreError> {
    let mut read = tx.0.prepare_cached(
        "SELECT s.session_id, s.user_id, s.device_id, t.expires_at, u.is_admin, u.is_buyer, u.is_reviewer
         FROM access_tokens t
         JOIN sessions s ON s.session_id = t.session_id
         JOIN users u ON u.user_id = s.user_id AND u.disabled = 0
         LEFT JOIN devices d ON d.device_id = s.device_id
         WHERE t.token_sha256 = ?1 AND t.expires_at > ?2
           AND (s.device_id IS NULL OR (d.disabled = 0 AND d.user_id = s.user_id))",
    )?;
    Ok(read.query_row((sha256, now.to_string()), decode).optional()?)
}

pub(crate) fn access_token_delete_expired(tx: &Tx<'_>, now: WireTime) -> Result<(), StoreError> {
    tx.run("DELETE FROM access_tokens WHERE expires_at <= ?1", [now.to_string()])?;
    Ok(())
}
