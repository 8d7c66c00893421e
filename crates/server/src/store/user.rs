//! Table `users`: who may log in, with what roles.

use cmautobuy_protocol::auth::Role;
use cmautobuy_protocol::{UserId, WireTime};
use rusqlite::{OptionalExtension, Row};

use super::{StoreError, Tx, parsed};
use crate::secret::StoredPassword;

#[derive(Debug, Clone)]
pub(crate) struct UserRow {
    pub(crate) user_id: UserId,
    pub(crate) user_name: String,
    pub(crate) password: StoredPassword,
    pub(crate) roles: Vec<Role>,
    pub(crate) disabled: bool,
}

const COLUMNS: &str = "user_id, user_name, password_hash, is_admin, is_buyer, is_reviewer, disabled";

fn decode(row: &Row<'_>) -> rusqlite::Result<UserRow> {
    let mut roles = Vec::new();
    for (column, role) in [("is_admin", Role::Admin), ("is_buyer", Role::Buyer), ("is_reviewer", Role::Reviewer)] {
        if row.get(column)? {
            roles.push(role);
        }
    }
    Ok(UserRow {
        user_id: parsed(row, "user_id")?,
        user_name: row.get("user_name")?,
        password: StoredPassword::from_column(row.get("password_hash")?),
        roles,
        disabled: row.get("disabled")?,
    })
}

pub(crate) fn user_insert(tx: &Tx<'_>, user: &UserRow, now: WireTime) -> Result<(), StoreError> {
    let has = |role| user.roles.contains(&role);
    tx.0.execute(
        "INSERT INTO users (user_id, user_name, password_hash, is_admin, is_buyer, is_reviewer, disabled, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        (
            user.user_id.to_string(),
            &user.user_name,
            user.password.as_column(),
            has(Role::Admin),
            has(Role::Buyer),
            has(Role::Reviewer),
            user.disabled,
            now.to_string(),
        ),
    )?;
    Ok(())
}

/// Upper and lower case are the same name.
pub(crate) fn user_by_name(tx: &Tx<'_>, name: &str) -> Result<Option<UserRow>, StoreError> {
    let mut read = tx.0.prepare_cached(&format!("SELECT {COLUMNS} FROM users WHERE user_name = ?1"))?;
    Ok(read.query_row([name], decode).optional()?)
}

pub(crate) fn user_by_id(tx: &Tx<'_>, user: UserId) -> Result<Option<UserRow>, StoreError> {
    let mut read = tx.0.prepare_cached(&format!("SELECT {COLUMNS} FROM users WHERE user_id = ?1"))?;
    Ok(read.query_row([user.to_string()], decode).optional()?)
}

pub(crate) fn user_any(tx: &Tx<'_>) -> Result<bool, StoreError> {
    Ok(tx.0.query_row("SELECT EXISTS (SELECT 1 FROM users)", [], |row| row.get(0))?)
}

pub(crate) fn user_set_password(tx: &Tx<'_>, user: UserId, password: &StoredPassword) -> Result<(), StoreError> {
    tx.0.execute("UPDATE users SET password_hash = ?2 WHERE user_id = ?1", (user.to_string(), password.as_column()))?;
    Ok(())
}
