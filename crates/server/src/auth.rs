//! Login, refresh, logout (D5, D6, D13) and whose token a call carries. Never tells whether a user exists, never stores a token.

use std::net::IpAddr;
use std::sync::Arc;

use cmautobuy_protocol::account::Me;
use cmautobuy_protocol::auth::{LoginRequest, RefreshRequest, Role, Session};
use cmautobuy_protocol::secret::sha256_hex;
use cmautobuy_protocol::{AccessToken, DeviceId, ErrorCode, RefreshToken, UserId};
use uuid::Uuid;

use crate::admin::MAX_NAME_CHARS;
use crate::config::ms;
use crate::house::{Call, House};
use crate::refusal::{CallError, Refusal};
use crate::secret::{hash_password, is_outdated, password_fits, random_token};
use crate::store::access_token::{TokenOwner, access_token_delete_expired, access_token_insert, access_token_owner};
use crate::store::device::{device_forget_instance, device_get};
use crate::store::refresh_token::{refresh_token_delete_expired, refresh_token_get, refresh_token_insert, refresh_token_retire};
use crate::store::session::{session_delete, session_insert};
use crate::store::user::{UserRow, user_by_id, user_by_name, user_grants, user_permissions, user_set_password};

pub(crate) async fn login(house: &Arc<House>, request: LoginRequest, peer: Option<IpAddr>) -> Result<Session, CallError> {
    // No user has such a name, and the limit's memory must not be filled with them.
    if request.user_name.chars().count() > MAX_NAME_CHARS {
        return Err(Refusal::malformed(format!("user_name must be at most {MAX_NAME_CHARS} characters")).into());
    }
    if !house.logins.may_try(&request.user_name, peer, house.now()) {
        return Err(Refusal::new(ErrorCode::RateLimited, "too many logins for this name; wait a minute and try again").into());
    }
    let name = request.user_name.clone();
    let user = house.blocking(move |house| house.read(|call| Ok(user_by_name(call.tx, &name)?))).await?;
    let password = request.password.clone();
    // An unknown user costs the same hash as a wrong password, and gets the same answer.
    let check = move |_: &House| {
        let fits = password_fits(user.as_ref().map(|u| &u.password), &password)?;
        Ok(user.filter(|u| fits && !u.disabled))
    };
    let Some(user) = house.hashing(check).await? else {
        return Err(Refusal::new(ErrorCode::LoginRefused, "user name and password do not match").into());
    };
    if is_outdated(&user.password) {
        let (user_id, password) = (user.user_id, request.password.clone());
        let renewed = house.hashing(move |_| Ok(hash_password(&password)?)).await?;
        house.commit(move |call| Ok(user_set_password(call.tx, user_id, &renewed)?)).await?;
    }
    house.logins.forgive(&request.user_name, peer);
    let session = house.commit(move |call| open_session(call, &user, request.device_id)).await?;
    tracing::info!(user_id = %session.user_id, device_id = request.device_id.map(tracing::field::display), "logged in");
    Ok(session)
}

fn open_session(call: Call<'_>, user: &UserRow, device: Option<DeviceId>) -> Result<Session, CallError> {
    if let Some(device) = device {
        let known = device_get(call.tx, device)?.filter(|d| d.user_id == user.user_id && !d.disabled);
        if known.is_none() || !user.roles.contains(&Role::Buyer) {
            let message = format!("device {device} is not authorised for this user as a buyer; ask an administrator to authorise it");
            return Err(Refusal::new(ErrorCode::DeviceNotAuthorized, message).into());
        }
    }
    access_token_delete_expired(call.tx, call.now)?;
    refresh_token_delete_expired(call.tx, call.now)?;
    let session = call.new_id();
    session_insert(call.tx, session, user.user_id, device, call.now)?;
    give_tokens(call, session, user, None)
}

/// `predecessor` stays good until the refresh token given here is first used (D5).
fn give_tokens(call: Call<'_>, session: Uuid, user: &UserRow, predecessor: Option<&str>) -> Result<Session, CallError> {
    let (access, refresh) = (AccessToken::new(random_token()), RefreshToken::new(random_token()));
    let access_expires_at = call.now.plus_ms(ms(call.house.config.access_ttl));
    access_token_insert(call.tx, &sha256_hex(access.reveal().as_bytes()), session, access_expires_at)?;
    let refresh_expires_at = call.now.plus_ms(ms(call.house.config.refresh_ttl));
    refresh_token_insert(call.tx, &sha256_hex(refresh.reveal().as_bytes()), session, predecessor, refresh_expires_at)?;
    Ok(Session {
        access_token: access,
        access_expires_at,
        refresh_token: refresh,
        user_id: user.user_id,
        user_name: user.user_name.clone(),
        roles: user.roles.clone(),
        kind: user.kind,
        permissions: user_permissions(call.tx, user.user_id)?,
        server_id: call.house.server_id,
        server_time: call.now,
    })
}

pub(crate) fn refresh(call: Call<'_>, request: &RefreshRequest) -> Result<Session, CallError> {
    let refused = || Refusal::new(ErrorCode::Unauthenticated, "this login has ended; log in again");
    let sha256 = sha256_hex(request.refresh_token.reveal().as_bytes());
    let row = refresh_token_get(call.tx, &sha256, call.now)?.ok_or_else(refused)?;
    if let Some(predecessor) = &row.predecessor_sha256 {
        refresh_token_retire(call.tx, &sha256, predecessor)?;
    }
    let user = user_by_id(call.tx, row.user_id)?.ok_or_else(refused)?;
    access_token_delete_expired(call.tx, call.now)?;
    tracing::debug!(user_id = %row.user_id, device_id = row.device_id.map(tracing::field::display), "login renewed");
    give_tokens(call, row.session_id, &user, Some(&sha256))
}

/// Ends the login. A device that says goodbye is not live any more, so the next instance need not wait out the TTL (D19).
pub(crate) fn logout(call: Call<'_>, owner: &TokenOwner) -> Result<(), CallError> {
    session_delete(call.tx, owner.session_id)?;
    if let Some(device) = owner.device_id {
        device_forget_instance(call.tx, device)?;
    }
    Ok(())
}

/// Who the caller is and what it may do (R26).
pub(crate) fn me(call: Call<'_>, owner: &TokenOwner) -> Result<Me, CallError> {
    let gone = || Refusal::new(ErrorCode::Unauthenticated, "this login has ended; log in again");
    let user = user_by_id(call.tx, owner.user_id)?.ok_or_else(gone)?;
    Ok(Me {
        permissions: user_permissions(call.tx, user.user_id)?,
        grants: user_grants(call.tx, user.user_id)?,
        user_id: user.user_id,
        user_name: user.user_name,
        kind: user.kind,
        roles: user.roles,
        device_id: owner.device_id,
        access_expires_at: owner.expires_at,
    })
}

/// Whose access token this is.
pub(crate) fn owner(call: Call<'_>, token: &AccessToken) -> Result<TokenOwner, CallError> {
    let found = access_token_owner(call.tx, &sha256_hex(token.reveal().as_bytes()), call.now)?;
    found.ok_or_else(|| Refusal::new(ErrorCode::Unauthenticated, "the access token is unknown or has expired; refresh or log in").into())
}

/// A buyer on a pre-authorised device: the identity every device call is checked against (T-205 §1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Buyer {
    pub(crate) user: UserId,
    pub(crate) device: DeviceId,
}

impl Buyer {
    pub(crate) fn of(owner: &TokenOwner) -> Result<Self, Refusal> {
        match owner.device_id {
            Some(device) if owner.roles.contains(&Role::Buyer) => Ok(Self { user: owner.user_id, device }),
            Some(_) | None => Err(Refusal::new(ErrorCode::Forbidden, "this call is for a buyer logged in on an authorised device")),
        }
    }

    /// T-205 §1: a request may name its device, but only its own.
    pub(crate) fn must_be(self, named: DeviceId) -> Result<(), Refusal> {
        let message = "the request names another device than the one this login belongs to";
        if named == self.device { Ok(()) } else { Err(Refusal::new(ErrorCode::Forbidden, message)) }
    }
}
