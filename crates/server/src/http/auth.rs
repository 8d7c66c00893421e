//! `/auth/*`. Tokens go out only here, and never into a cache.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use cmautobuy_protocol::account::Me;
use cmautobuy_protocol::auth::{LoginRequest, RefreshRequest, Session};

use super::App;
use super::answer::Fault;
use super::extract::{Peer, SecretBody, SignedIn};
use crate::auth;

const NO_STORE: [(header::HeaderName, &str); 1] = [(header::CACHE_CONTROL, "no-store")];

/// Logs in; with a device id, as a buyer on that device.
#[utoipa::path(post, path = "/auth/login", tag = "auth", security(()), request_body = LoginRequest, responses((status = 200, body = Session)))]
pub(crate) async fn login(
    State(house): App,
    Peer(peer): Peer,
    SecretBody(request): SecretBody<LoginRequest>,
) -> Result<impl IntoResponse, Fault> {
    Ok((NO_STORE, Json(auth::login(&house, request, peer).await?)))
}

/// A new pair of tokens; the old refresh token stays good until its successor is first used (D5).
#[utoipa::path(post, path = "/auth/refresh", tag = "auth", security(()), request_body = RefreshRequest, responses((status = 200, body = Session)))]
pub(crate) async fn refresh(State(house): App, SecretBody(request): SecretBody<RefreshRequest>) -> Result<impl IntoResponse, Fault> {
    let session = house.commit(move |call| auth::refresh(call, &request)).await?;
    Ok((NO_STORE, Json(session)))
}

/// Who this access token is, and what it may do.
#[utoipa::path(get, path = "/auth/me", tag = "auth", responses((status = 200, body = Me)))]
pub(crate) async fn me(State(house): App, SignedIn(owner): SignedIn) -> Result<Json<Me>, Fault> {
    Ok(Json(house.blocking(move |house| house.read(|call| auth::me(call, &owner))).await?))
}

/// Ends this login.
#[utoipa::path(post, path = "/auth/logout", tag = "auth", responses((status = 204)))]
pub(crate) async fn logout(State(house): App, SignedIn(owner): SignedIn) -> Result<StatusCode, Fault> {
    house.commit(move |call| auth::logout(call, &owner)).await?;
    Ok(StatusCode::NO_CONTENT)
}
