//! `claim_attempts` (D5): a claim is on the disk before it is on the wire, so that a lost answer is asked for again.

use cmautobuy_protocol::{DeviceId, IdempotencyKey, RemoteTaskId, UserId, WireTime};
use rusqlite::{Connection, named_params, params};

use crate::codec::{AttemptState, Text, parsed, text};
use crate::{Reader, StoreError};

/// The one open attempt.
pub(crate) struct OpenAttempt {
    pub(crate) key: IdempotencyKey,
    pub(crate) sealed_token: Vec<u8>,
    pub(crate) user: UserId,
    pub(crate) device: DeviceId,
}

const OPEN: &str = "SELECT idempotency_key, sealed_token, user_id, device_id FROM claim_attempts WHERE state = 'prepared'";

pub(crate) fn open(conn: &Connection) -> Result<Option<OpenAttempt>, StoreError> {
    let mut statement = conn.prepare_cached(OPEN)?;
    let mut rows = statement.query_and_then([], |row| {
        Ok(OpenAttempt {
            key: parsed(row, "idempotency_key")?,
            sealed_token: row.get("sealed_token")?,
            user: parsed(row, "user_id")?,
            device: parsed(row, "device_id")?,
        })
    })?;
    rows.next().transpose()
}

pub(crate) fn insert(conn: &Connection, attempt: &OpenAttempt, token_sha256: &str, now: WireTime) -> Result<(), StoreError> {
    conn.prepare_cached(
        "INSERT INTO claim_attempts (idempotency_key, token_sha256, sealed_token, state, user_id, device_id, created_at, updated_at) \
         VALUES (:key, :sha256, :sealed, :state, :user, :device, :now, :now)",
    )?
    .execute(named_params! {
        ":key": attempt.key.as_str(),
        ":sha256": token_sha256,
        ":sealed": attempt.sealed_token,
        ":state": AttemptState::Prepared.text(),
        ":user": attempt.user.to_string(),
        ":device": attempt.device.to_string(),
        ":now": now.to_string(),
    })?;
    Ok(())
}

/// Settles the open attempt and forgets its token. `false` when it is not open.
pub(crate) fn close(
    conn: &Connection,
    key: &IdempotencyKey,
    state: AttemptState,
    task: Option<RemoteTaskId>,
    now: WireTime,
) -> Result<bool, StoreError> {
    let closed = conn
        .prepare_cached(
            "UPDATE claim_attempts SET state = ?2, remote_task_id = ?3, sealed_token = NULL, updated_at = ?4 \
             WHERE idempotency_key = ?1 AND state = 'prepared'",
        )?
        .execute(params![key.as_str(), state.text(), task.map(|t| t.to_string()), now.to_string()])?;
    Ok(closed == 1)
}

/// The key that sealed the open attempt's token is gone (D6): it can never be replayed.
pub(crate) fn expire_open(conn: &Connection, now: WireTime) -> Result<(), StoreError> {
    conn.execute(
        "UPDATE claim_attempts SET state = 'expired', sealed_token = NULL, updated_at = ?1 WHERE state = 'prepared'",
        params![now.to_string()],
    )?;
    Ok(())
}

/// An attempt answered with "no task" leaves no row: idle polling must not fill the table.
pub(crate) fn delete_open(conn: &Connection, key: &IdempotencyKey) -> Result<bool, StoreError> {
    let deleted = conn
        .prepare_cached("DELETE FROM claim_attempts WHERE idempotency_key = ?1 AND state = 'prepared'")?
        .execute(params![key.as_str()])?;
    Ok(deleted == 1)
}

impl Reader<'_> {
    /// How a claim attempt stands; `None` for one that left no row (204).
    pub fn claim_state(&self, key: &IdempotencyKey) -> Result<Option<AttemptState>, StoreError> {
        let mut statement = self.conn.prepare_cached("SELECT state FROM claim_attempts WHERE idempotency_key = ?1")?;
        let mut rows = statement.query_and_then(params![key.as_str()], |row| text(row, "state"))?;
        rows.next().transpose()
    }
}
