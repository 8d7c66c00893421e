//! `/auth/*`. Tokens go out only here, and never into a cache.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use cmautobuy_protocol::auth::{LoginRequest, RefreshRequest};

use super::App;
use super::answer::Fault;
use super::extract::{Peer, SecretBody, SignedIn};
use crate::auth;

const NO_STORE: [(header::HeaderName, &str); 1] = [(header::CACHE_CONTROL, "no-store")];

pub(crate) async fn login(
    State(house): App,
    Peer(peer): Peer,
    SecretBody(request): SecretBody<LoginRequest>,
) -> Result<impl IntoResponse, Fault> {
    Ok((NO_STORE, Json(auth::login(&house, request, peer).await?)))
}

pub(crate) async fn refresh(State(house): App, SecretBody(request): SecretBody<RefreshRequest>) -> Result<impl IntoResponse, Fault> {
    let session = house.blocking(move |house| house.write(|call| auth::refresh(call, &request))).await?;
    Ok((NO_STORE, Json(session)))
}

pub(crate) async fn logout(State(house): App, SignedIn(owner): SignedIn) -> Result<StatusCode, Fault> {
    house.blocking(move |house| house.write(|call| auth::logout(call, &owner))).await?;
    Ok(StatusCode::NO_CONTENT)
}
