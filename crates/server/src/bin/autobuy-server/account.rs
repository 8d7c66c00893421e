//! `user` and `device` commands. People name users, the calls want ids; nothing else happens here.

use std::error::Error;

use cmautobuy_protocol::UserId;
use cmautobuy_protocol::account::{ChangeDevice, ChangeUser, WarehouseGrant};
use cmautobuy_protocol::admin::{AuthorizeDevice, CreateUser};
use cmautobuy_server::{Admin, Server, UserQuery};

use crate::cli::{DeviceCommand, Grant, UserCommand};
use crate::out;

type Done = Result<(), Box<dyn Error>>;

pub(crate) fn user(server: &Server, command: UserCommand) -> Done {
    let admin = server.admin();
    let change = |name: &str, change: ChangeUser| out::json(&admin.change_user(named(admin, name)?, &change)?);
    match command {
        UserCommand::Create { name, role, kind, permission } => {
            let roles = role.into_iter().map(Into::into).collect();
            let new = CreateUser { kind: kind.into(), permissions: permission, ..CreateUser::new(name, out::read_password()?, roles) };
            out::json(&admin.create_user(&new)?)
        }
        UserCommand::List { name, kind, role, disabled, page } => {
            let (kind, role) = (kind.map(Into::into), role.map(Into::into));
            out::json(&admin.users(&UserQuery { name, kind, role, disabled, cursor: page.cursor, limit: Some(page.limit) })?)
        }
        UserCommand::Show { name } => out::json(&admin.user(named(admin, &name)?)?),
        UserCommand::Change { name, kind, role, permission, no_permission } => {
            let roles = (!role.is_empty()).then(|| role.into_iter().map(Into::into).collect());
            let permissions = (no_permission || !permission.is_empty()).then_some(permission);
            change(&name, ChangeUser { kind: kind.map(Into::into), roles, permissions, ..ChangeUser::default() })
        }
        UserCommand::Grant(grant) => {
            let (user, grant) = (admin.user(named(admin, &grant.name)?)?, asked(grant));
            let mut grants = user.grants;
            grants.push(grant);
            out::json(&admin.change_user(user.user_id, &ChangeUser { grants: Some(grants), ..ChangeUser::default() })?)
        }
        UserCommand::Revoke(grant) => {
            let (user, grant) = (admin.user(named(admin, &grant.name)?)?, asked(grant));
            let grants = user.grants.into_iter().filter(|has| *has != grant).collect();
            out::json(&admin.change_user(user.user_id, &ChangeUser { grants: Some(grants), ..ChangeUser::default() })?)
        }
        UserCommand::Disable { name } => change(&name, ChangeUser { disabled: Some(true), ..ChangeUser::default() }),
        UserCommand::Enable { name } => change(&name, ChangeUser { disabled: Some(false), ..ChangeUser::default() }),
        UserCommand::EndSessions { name } => {
            let ended = admin.end_sessions(named(admin, &name)?)?;
            Ok(out::line(&format!("{ended} logins ended"))?)
        }
        UserCommand::SetPassword { name } => Ok(admin.set_password(named(admin, &name)?, &out::read_password()?)?),
    }
}

pub(crate) fn device(server: &Server, command: DeviceCommand) -> Done {
    let admin = server.admin();
    match command {
        DeviceCommand::Authorize { device, user, name } => {
            Ok(admin.authorize_device(&AuthorizeDevice { device_id: device, user_id: named(admin, &user)?, name })?)
        }
        DeviceCommand::List { user, page } => {
            let user = user.map(|name| named(admin, &name)).transpose()?;
            out::json(&admin.devices(user, page.cursor.as_deref(), Some(page.limit))?)
        }
        DeviceCommand::Rename { device, name } => {
            out::json(&admin.change_device(device, &ChangeDevice { name: Some(name), ..ChangeDevice::default() })?)
        }
        DeviceCommand::Disable { device } => {
            out::json(&admin.change_device(device, &ChangeDevice { disabled: Some(true), ..ChangeDevice::default() })?)
        }
        DeviceCommand::Enable { device } => {
            out::json(&admin.change_device(device, &ChangeDevice { disabled: Some(false), ..ChangeDevice::default() })?)
        }
        DeviceCommand::ForgetInstance { device } => Ok(admin.forget_instance(device)?),
    }
}

pub(crate) fn named(admin: Admin<'_>, name: &str) -> Result<UserId, Box<dyn Error>> {
    Ok(admin.user_id(name)?.ok_or_else(|| format!("there is no user {name}; `autobuy-server user list` shows them"))?)
}

fn asked(grant: Grant) -> WarehouseGrant {
    WarehouseGrant { account: grant.account, warehouse: grant.warehouse }
}
