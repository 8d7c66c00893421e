//! Users (D13, R26): made, changed, ended. Each change and its audit row are one transaction.

use cmautobuy_protocol::account::{AuditPage, ChangeUser, Permission, User, UserKind, UserPage, WarehouseGrant};
use cmautobuy_protocol::admin::{CreateUser, UserCreated};
use cmautobuy_protocol::auth::Role;
use cmautobuy_protocol::{ErrorCode, EventId, Password, UserId};
use serde_json::json;

use super::{Admin, MAX_NAME_CHARS, checked_limit, no_such, noted};
use crate::house::Call;
use crate::refusal::{CallError, Refusal};
use crate::secret::hash_password;
use crate::store::audit::audit_list;
use crate::store::session::session_delete_of_user;
use crate::store::user::{
    UserFilter, UserRow, user_by_id, user_by_name, user_insert, user_list, user_other_admin, user_set_grants, user_set_password,
    user_set_permissions, user_update, user_view,
};

const PASSWORD_CHARS: std::ops::RangeInclusive<usize> = 8..=200;
const MAX_GRANT_CHARS: usize = 64;
const MAX_GRANTS: usize = 1_000;

/// Which users [`Admin::users`] lists; `None` is any.
#[derive(Debug, Clone, Default)]
pub struct UserQuery {
    /// Part of the name; upper and lower case are the same.
    pub name: Option<String>,
    pub kind: Option<UserKind>,
    pub role: Option<Role>,
    pub disabled: Option<bool>,
    pub cursor: Option<String>,
    pub limit: Option<u32>,
}

impl Admin<'_> {
    /// # Errors
    /// 422 `MALFORMED` for a name or password out of bounds, no role, or a CUSTOMER with permissions; 409 `ALREADY_EXISTS` when the name is
    /// taken.
    pub fn create_user(&self, new: &CreateUser) -> Result<UserCreated, CallError> {
        let name = new.user_name.trim();
        if name.is_empty() || new.user_name.chars().count() > MAX_NAME_CHARS || name.chars().any(char::is_control) {
            return Err(Refusal::malformed(format!("user_name must be 1 to {MAX_NAME_CHARS} visible characters")).into());
        }
        check_roles(&new.roles)?;
        check_kind(new.kind, &new.permissions, &[])?;
        check_password(&new.password)?;
        // Hashing takes its time: not inside the transaction.
        let password = hash_password(&new.password)?;
        self.house.write(|call| {
            if user_by_name(call.tx, name)?.is_some() {
                return Err(Refusal::new(ErrorCode::AlreadyExists, format!("user {name} exists")).into());
            }
            let user_id = UserId::from_uuid(call.new_id());
            let user = UserRow {
                user_id,
                user_name: name.to_owned(),
                password: password.clone(),
                kind: new.kind,
                roles: new.roles.clone(),
                disabled: false,
                created_at: call.now,
            };
            user_insert(call.tx, &user)?;
            user_set_permissions(call.tx, user_id, &new.permissions)?;
            let detail = json!({"user_name": name, "kind": new.kind, "roles": new.roles, "permissions": new.permissions});
            noted(call, self.actor, "USER_CREATED", &about(user_id), Some(detail))?;
            Ok(UserCreated { user_id })
        })
    }

    /// The id of a user by name.
    ///
    /// # Errors
    /// [`CallError::Store`] only.
    pub fn user_id(&self, user_name: &str) -> Result<Option<UserId>, CallError> {
        self.house.read(|call| Ok(user_by_name(call.tx, user_name)?.map(|user| user.user_id)))
    }

    /// # Errors
    /// 404 for an unknown user.
    pub fn user(&self, user: UserId) -> Result<User, CallError> {
        self.house.read(|call| Ok(user_view(call.tx, get(call, user)?)?))
    }

    /// By name.
    ///
    /// # Errors
    /// 422 for a limit outside 1..=200.
    pub fn users(&self, query: &UserQuery) -> Result<UserPage, CallError> {
        let limit = checked_limit(query.limit)?;
        let filter = UserFilter { name: query.name.as_deref(), kind: query.kind, role: query.role, disabled: query.disabled };
        self.house.read(|call| {
            let mut rows = user_list(call.tx, &filter, query.cursor.as_deref(), limit + 1)?;
            let has_more = rows.len() > limit as usize;
            rows.truncate(limit as usize);
            let next = rows.last().filter(|_| has_more).map(|last| last.user_name.clone());
            let users = rows.into_iter().map(|row| user_view(call.tx, row)).collect::<Result<_, _>>()?;
            Ok(UserPage { users, next })
        })
    }

    /// Changes what is given. Disabling ends the user's logins at once; so does losing a role or a permission, so that no old login keeps it.
    ///
    /// # Errors
    /// 404 for an unknown user; 422 for no role, or a CUSTOMER that would keep permissions or grants; 409 `ILLEGAL_STATE` when no enabled
    /// administrator would be left.
    pub fn change_user(&self, user: UserId, change: &ChangeUser) -> Result<User, CallError> {
        if let Some(roles) = &change.roles {
            check_roles(roles)?;
        }
        check_grants(change.grants.as_deref().unwrap_or_default())?;
        self.house.write(|call| {
            let mut row = get(call, user)?;
            let before = user_view(call.tx, row.clone())?;
            let kind = change.kind.unwrap_or(before.kind);
            let permissions = change.permissions.as_ref().unwrap_or(&before.permissions);
            let grants = change.grants.as_ref().unwrap_or(&before.grants);
            check_kind(kind, permissions, grants)?;
            let roles = change.roles.as_ref().unwrap_or(&before.roles).clone();
            let disabled = change.disabled.unwrap_or(before.disabled);
            let was_admin = before.roles.contains(&Role::Admin) && !before.disabled;
            if was_admin && (disabled || !roles.contains(&Role::Admin)) && !user_other_admin(call.tx, user)? {
                let message = "this is the last enabled administrator; make another one first";
                return Err(Refusal::new(ErrorCode::IllegalState, message).into());
            }
            let keeps_all =
                before.roles.iter().all(|role| roles.contains(role)) && before.permissions.iter().all(|p| permissions.contains(p));
            // In this order the table's own rule holds at every step: a customer-to-be loses first, a customer-no-more gains last.
            if kind == UserKind::Customer {
                user_set_permissions(call.tx, user, &[])?;
                user_set_grants(call.tx, user, &[])?;
            }
            (row.kind, row.roles, row.disabled) = (kind, roles, disabled);
            user_update(call.tx, &row)?;
            user_set_permissions(call.tx, user, permissions)?;
            user_set_grants(call.tx, user, grants)?;
            if disabled || !keeps_all {
                session_delete_of_user(call.tx, user)?;
            }
            let detail = serde_json::to_value(change).expect("a ChangeUser is a plain struct, which always becomes JSON");
            noted(call, self.actor, "USER_CHANGED", &about(user), Some(detail))?;
            Ok(user_view(call.tx, get(call, user)?)?)
        })
    }

    /// Sets a new password and ends every login of the user.
    ///
    /// # Errors
    /// 404 for an unknown user, 422 for a password out of bounds.
    pub fn set_password(&self, user: UserId, password: &Password) -> Result<(), CallError> {
        check_password(password)?;
        let password = hash_password(password)?;
        self.house.write(|call| {
            get(call, user)?;
            user_set_password(call.tx, user, &password)?;
            session_delete_of_user(call.tx, user)?;
            noted(call, self.actor, "PASSWORD_SET", &about(user), None)
        })
    }

    /// Ends every login of the user; how many there were.
    ///
    /// # Errors
    /// 404 for an unknown user.
    pub fn end_sessions(&self, user: UserId) -> Result<usize, CallError> {
        self.house.write(|call| {
            get(call, user)?;
            let ended = session_delete_of_user(call.tx, user)?;
            noted(call, self.actor, "SESSIONS_ENDED", &about(user), Some(json!({"ended": ended})))?;
            Ok(ended)
        })
    }

    /// What administrators changed, newest first; of one `user:<id>` or `device:<id>` when given.
    ///
    /// # Errors
    /// 422 for a cursor this server did not make or a limit outside 1..=200.
    pub fn audit(&self, target: Option<&str>, cursor: Option<&str>, limit: Option<u32>) -> Result<AuditPage, CallError> {
        let limit = checked_limit(limit)?;
        let before: Option<EventId> = cursor.map(str::parse).transpose().map_err(|_| Refusal::unknown_cursor())?;
        self.house.read(|call| {
            let mut entries = audit_list(call.tx, target, before, limit + 1)?;
            let has_more = entries.len() > limit as usize;
            entries.truncate(limit as usize);
            let next = entries.last().filter(|_| has_more).map(|last| last.entry_id.to_string());
            Ok(AuditPage { entries, next })
        })
    }
}

fn get(call: Call<'_>, user: UserId) -> Result<UserRow, CallError> {
    Ok(user_by_id(call.tx, user)?.ok_or_else(|| no_such("user"))?)
}

fn about(user: UserId) -> String {
    format!("user:{user}")
}

fn check_password(password: &Password) -> Result<(), Refusal> {
    if PASSWORD_CHARS.contains(&password.reveal().chars().count()) {
        return Ok(());
    }
    Err(Refusal::malformed(format!("a password must be {} to {} characters", PASSWORD_CHARS.start(), PASSWORD_CHARS.end())))
}

fn check_roles(roles: &[Role]) -> Result<(), Refusal> {
    if roles.is_empty() { Err(Refusal::malformed("a user needs at least one role")) } else { Ok(()) }
}

/// R26: a CUSTOMER never sees the analytics and administers nothing.
fn check_kind(kind: UserKind, permissions: &[Permission], grants: &[WarehouseGrant]) -> Result<(), Refusal> {
    match kind {
        UserKind::Customer if !permissions.is_empty() || !grants.is_empty() => {
            Err(Refusal::malformed("a CUSTOMER has no permissions and no warehouse grants; take them away or make it PLATFORM"))
        }
        UserKind::Platform | UserKind::Customer => Ok(()),
    }
}

fn check_grants(grants: &[WarehouseGrant]) -> Result<(), Refusal> {
    let fits = |text: &str| !text.trim().is_empty() && text.chars().count() <= MAX_GRANT_CHARS && !text.chars().any(char::is_control);
    if grants.len() > MAX_GRANTS || !grants.iter().all(|grant| fits(&grant.account) && fits(&grant.warehouse)) {
        let message = format!("grants must be at most {MAX_GRANTS}, account and warehouse 1 to {MAX_GRANT_CHARS} visible characters");
        return Err(Refusal::malformed(message));
    }
    Ok(())
}
