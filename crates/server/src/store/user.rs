//! Tables `users`, `user_permissions` and `warehouse_grants`: who may log in, as what, and what they may see (R26).

use cmautobuy_protocol::account::{Permission, User, UserKind, WarehouseGrant};
use cmautobuy_protocol::auth::Role;
use cmautobuy_protocol::{UserId, WireTime};
use rusqlite::{OptionalExtension, Row};

use super::{StoreError, Tx, known, parsed};
use crate::secret::StoredPassword;

#[derive(Debug, Clone)]
pub(crate) struct UserRow {
    pub(crate) user_id: UserId,
    pub(crate) user_name: String,
    pub(crate) password: StoredPassword,
    pub(crate) kind: UserKind,
    pub(crate) roles: Vec<Role>,
    pub(crate) disabled: bool,
    pub(crate) created_at: WireTime,
}

/// Which users a list shows; `None` is any.
#[derive(Debug, Clone, Default)]
pub(crate) struct UserFilter<'a> {
    /// Part of the name.
    pub(crate) name: Option<&'a str>,
    pub(crate) kind: Option<UserKind>,
    pub(crate) role: Option<Role>,
    pub(crate) disabled: Option<bool>,
}

/// The roles of a row with the three flag columns.
pub(super) fn roles(row: &Row<'_>) -> rusqlite::Result<Vec<Role>> {
    let mut roles = Vec::new();
    for (column, role) in [("is_admin", Role::Admin), ("is_buyer", Role::Buyer), ("is_reviewer", Role::Reviewer)] {
        if row.get(column)? {
            roles.push(role);
        }
    }
    Ok(roles)
}

fn decode(row: &Row<'_>) -> rusqlite::Result<UserRow> {
    Ok(UserRow {
        user_id: parsed(row, "user_id")?,
        user_name: row.get("user_name")?,
        password: StoredPassword::from_column(row.get("password_hash")?),
        kind: known(row, "kind", UserKind::parse)?,
        roles: roles(row)?,
        disabled: row.get("disabled")?,
        created_at: parsed(row, "created_at")?,
    })
}

pub(crate) fn user_insert(tx: &Tx<'_>, user: &UserRow) -> Result<(), StoreError> {
    let has = |role| user.roles.contains(&role);
    tx.run(
        "INSERT INTO users (user_id, user_name, password_hash, kind, is_admin, is_buyer, is_reviewer, disabled, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        (
            user.user_id.to_string(),
            &user.user_name,
            user.password.as_column(),
            user.kind.as_str(),
            has(Role::Admin),
            has(Role::Buyer),
            has(Role::Reviewer),
            user.disabled,
            user.created_at.to_string(),
        ),
    )?;
    Ok(())
}

/// Writes kind, roles and disabled. A CUSTOMER must have no permission and no grant by then.
pub(crate) fn user_update(tx: &Tx<'_>, user: &UserRow) -> Result<(), StoreError> {
    let has = |role| user.roles.contains(&role);
    tx.run(
        "UPDATE users SET kind = ?2, is_admin = ?3, is_buyer = ?4, is_reviewer = ?5, disabled = ?6 WHERE user_id = ?1",
        (user.user_id.to_string(), user.kind.as_str(), has(Role::Admin), has(Role::Buyer), has(Role::Reviewer), user.disabled),
    )?;
    Ok(())
}

/// Upper and lower case are the same name.
pub(crate) fn user_by_name(tx: &Tx<'_>, name: &str) -> Result<Option<UserRow>, StoreError> {
    let mut read = tx.0.prepare_cached("SELECT * FROM users WHERE user_name = ?1")?;
    Ok(read.query_row([name], decode).optional()?)
}

pub(crate) fn user_by_id(tx: &Tx<'_>, user: UserId) -> Result<Option<UserRow>, StoreError> {
    let mut read = tx.0.prepare_cached("SELECT * FROM users WHERE user_id = ?1")?;
    Ok(read.query_row([user.to_string()], decode).optional()?)
}

pub(crate) fn user_any(tx: &Tx<'_>) -> Result<bool, StoreError> {
    Ok(tx.0.query_row("SELECT EXISTS (SELECT 1 FROM users)", [], |row| row.get(0))?)
}

/// Whether an enabled administrator other than this user exists.
pub(crate) fn user_other_admin(tx: &Tx<'_>, than: UserId) -> Result<bool, StoreError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM users WHERE is_admin = 1 AND disabled = 0 AND user_id <> ?1)";
    Ok(tx.0.query_row(sql, [than.to_string()], |row| row.get(0))?)
}

/// By name, from behind `after` on.
pub(crate) fn user_list(tx: &Tx<'_>, filter: &UserFilter<'_>, after: Option<&str>, limit: u32) -> Result<Vec<UserRow>, StoreError> {
    let mut read = tx.0.prepare_cached(
        "SELECT * FROM users
         WHERE user_name > coalesce(?1, '') AND (?2 IS NULL OR instr(lower(user_name), lower(?2)) > 0)
           AND (?3 IS NULL OR kind = ?3) AND (?4 IS NULL OR disabled = ?4)
           AND (?5 IS NULL OR CASE ?5 WHEN 'admin' THEN is_admin WHEN 'buyer' THEN is_buyer ELSE is_reviewer END)
         ORDER BY user_name LIMIT ?6",
    )?;
    let role = filter.role.map(|role| match role {
        Role::Admin => "admin",
        Role::Buyer => "buyer",
        Role::Reviewer => "reviewer",
    });
    let rows = read.query_map((after, filter.name, filter.kind.map(UserKind::as_str), filter.disabled, role, limit), decode)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The row as an administrator sees it.
pub(crate) fn user_view(tx: &Tx<'_>, user: UserRow) -> Result<User, StoreError> {
    Ok(User {
        permissions: user_permissions(tx, user.user_id)?,
        grants: user_grants(tx, user.user_id)?,
        user_id: user.user_id,
        user_name: user.user_name,
        kind: user.kind,
        roles: user.roles,
        disabled: user.disabled,
        created_at: user.created_at,
    })
}

pub(crate) fn user_set_password(tx: &Tx<'_>, user: UserId, password: &StoredPassword) -> Result<(), StoreError> {
    tx.run("UPDATE users SET password_hash = ?2 WHERE user_id = ?1", (user.to_string(), password.as_column()))?;
    Ok(())
}

pub(crate) fn user_permissions(tx: &Tx<'_>, user: UserId) -> Result<Vec<Permission>, StoreError> {
    let mut read = tx.0.prepare_cached("SELECT permission FROM user_permissions WHERE user_id = ?1 ORDER BY permission")?;
    let rows = read.query_map([user.to_string()], |row| known(row, "permission", Permission::parse))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The whole new set.
pub(crate) fn user_set_permissions(tx: &Tx<'_>, user: UserId, permissions: &[Permission]) -> Result<(), StoreError> {
    tx.run("DELETE FROM user_permissions WHERE user_id = ?1", [user.to_string()])?;
    let mut write = tx.0.prepare_cached("INSERT OR IGNORE INTO user_permissions (user_id, permission) VALUES (?1, ?2)")?;
    for permission in permissions {
        write.execute((user.to_string(), permission.as_str()))?;
    }
    Ok(())
}

pub(crate) fn user_grants(tx: &Tx<'_>, user: UserId) -> Result<Vec<WarehouseGrant>, StoreError> {
    let mut read = tx.0.prepare_cached("SELECT account, warehouse FROM warehouse_grants WHERE user_id = ?1 ORDER BY account, warehouse")?;
    let rows =
        read.query_map([user.to_string()], |row| Ok(WarehouseGrant { account: row.get("account")?, warehouse: row.get("warehouse")? }))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The whole new set.
pub(crate) fn user_set_grants(tx: &Tx<'_>, user: UserId, grants: &[WarehouseGrant]) -> Result<(), StoreError> {
    tx.run("DELETE FROM warehouse_grants WHERE user_id = ?1", [user.to_string()])?;
    let mut write = tx.0.prepare_cached("INSERT OR IGNORE INTO warehouse_grants (user_id, account, warehouse) VALUES (?1, ?2, ?3)")?;
    for grant in grants {
        write.execute((user.to_string(), &grant.account, &grant.warehouse))?;
    }
    Ok(())
}
