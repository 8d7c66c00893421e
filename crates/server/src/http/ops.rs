//! What whoever runs the server asks it.

use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use cmautobuy_protocol::ErrorCode;
use cmautobuy_protocol::secret::sha256_hex;

use super::App;
use super::answer::Fault;
use super::extract::ByAdmin;
use crate::house::House;
use crate::ops::metrics::{free_bytes, human, text};
use crate::refusal::Refusal;
use crate::secret;
use crate::store::meta::meta_server_id;

/// The process answers.
#[utoipa::path(get, path = "/healthz", tag = "operations", security(()), responses((status = 200, body = String, content_type = "text/plain")))]
pub(super) async fn healthz() -> &'static str {
    "ok"
}

/// The database answers and there is disk for what comes.
#[utoipa::path(get, path = "/readyz", tag = "operations", security(()), responses((status = 200, body = String, content_type = "text/plain")))]
pub(super) async fn readyz(State(house): App) -> Result<&'static str, Fault> {
    let not_ready = |why: String| Fault::from(Refusal::new(ErrorCode::Unavailable, why));
    match house.blocking(|house| house.read(|call| Ok(meta_server_id(call.tx)?))).await {
        Ok(Some(_)) => {}
        Ok(None) | Err(_) => return Err(not_ready("the database does not answer; see the server's log".to_owned())),
    }
    match free_bytes(&house.config.data_dir) {
        Some(free) if free < house.config.min_free_bytes => {
            Err(not_ready(format!("only {} of disk are free; make room in the data folder", human(free))))
        }
        _ => Ok("ready"),
    }
}

/// Whoever shows the token of the settings, or an administrator.
#[derive(Debug)]
pub(super) struct Watcher;

impl FromRequestParts<Arc<House>> for Watcher {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, house: &Arc<House>) -> Result<Self, Fault> {
        if let Some(wanted) = &house.metrics_token_sha256 {
            let header = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
            let token = header.and_then(|text| text.strip_prefix("Bearer "));
            if token.is_some_and(|token| secret::same(&sha256_hex(token.as_bytes()), wanted)) {
                return Ok(Self);
            }
        }
        ByAdmin::from_request_parts(parts, house).await.map(|_| Self)
    }
}

/// Figures for Prometheus: with the token of `metrics_token_file`, or an administrator's login.
#[utoipa::path(get, path = "/metrics", tag = "operations", responses((status = 200, body = String, content_type = "application/openmetrics-text")))]
pub(super) async fn metrics(State(house): App, _: Watcher) -> Result<Response, Fault> {
    let text = house.blocking(text).await?;
    Ok(([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text).into_response())
}
