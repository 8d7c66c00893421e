//! Reading a request: who calls, which task, which key, what body. Every failure is one of our own error bodies. Bodies are never logged.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{ConnectInfo, FromRequest, FromRequestParts, Path, Request};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use cmautobuy_protocol::auth::Role;
use cmautobuy_protocol::{
    AccessToken, ClaimToken, ErrorCode, HEADER_CLAIM_TOKEN, HEADER_IDEMPOTENCY_KEY, IdempotencyKey, MAX_RESULT_BYTES, RemoteTaskId,
};
use serde::de::DeserializeOwned;

use super::answer::Fault;
use crate::auth;
use crate::house::House;
use crate::refusal::Refusal;
use crate::store::access_token::TokenOwner;
use crate::work::Actor;

/// Largest body of every call but results, in bytes.
const MAX_BODY_BYTES: usize = 64 * 1024;

/// Whoever shows a live access token.
#[derive(Debug)]
pub(crate) struct SignedIn(pub(crate) TokenOwner);

impl FromRequestParts<Arc<House>> for SignedIn {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, house: &Arc<House>) -> Result<Self, Fault> {
        let header = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let bearer = header.and_then(|text| text.split_once(' ')).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let Some((_, token)) = bearer else {
            return Err(Refusal::new(ErrorCode::Unauthenticated, "this call needs a login: Authorization: Bearer <access token>").into());
        };
        let token = AccessToken::new(token.trim());
        let owner = house.blocking(move |house| house.read(|call| auth::owner(call, &token))).await?;
        Ok(Self(owner))
    }
}

/// A buyer on a pre-authorised device (T-205 §1).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Buyer(pub(crate) auth::Buyer);

impl FromRequestParts<Arc<House>> for Buyer {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, house: &Arc<House>) -> Result<Self, Fault> {
        let SignedIn(owner) = SignedIn::from_request_parts(parts, house).await?;
        Ok(Self(auth::Buyer::of(&owner)?))
    }
}

/// An administrator.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ByAdmin(pub(crate) Actor);

impl FromRequestParts<Arc<House>> for ByAdmin {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, house: &Arc<House>) -> Result<Self, Fault> {
        let SignedIn(owner) = SignedIn::from_request_parts(parts, house).await?;
        if owner.roles.contains(&Role::Admin) {
            return Ok(Self(Actor::Admin(owner.user_id)));
        }
        Err(Refusal::new(ErrorCode::Forbidden, "this call is for administrators").into())
    }
}

/// The `{id}` of the path. What is no id is no task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskPath(pub(crate) RemoteTaskId);

impl FromRequestParts<Arc<House>> for TaskPath {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, house: &Arc<House>) -> Result<Self, Fault> {
        let path = Path::<String>::from_request_parts(parts, house).await.ok();
        let id = path.and_then(|Path(text)| text.parse().ok());
        Ok(Self(id.ok_or_else(Refusal::not_found)?))
    }
}

/// `Idempotency-Key`.
#[derive(Debug, Clone)]
pub(crate) struct Key(pub(crate) IdempotencyKey);

impl FromRequestParts<Arc<House>> for Key {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<House>) -> Result<Self, Fault> {
        let header = parts.headers.get(HEADER_IDEMPOTENCY_KEY).and_then(|value| value.to_str().ok());
        let key = header.and_then(|text| text.parse().ok());
        Ok(Self(key.ok_or_else(|| Refusal::malformed("this call needs the header Idempotency-Key: 1 to 200 visible characters"))?))
    }
}

/// `X-Claim-Token` (T-205 §2). Never repeated in an answer.
#[derive(Debug, Clone)]
pub(crate) struct Token(pub(crate) ClaimToken);

impl FromRequestParts<Arc<House>> for Token {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<House>) -> Result<Self, Fault> {
        let header = parts.headers.get(HEADER_CLAIM_TOKEN).and_then(|value| value.to_str().ok());
        let token = header.and_then(|text| text.parse().ok());
        Ok(Self(token.ok_or_else(|| Refusal::malformed("this call needs the header X-Claim-Token: 43 characters of base64url"))?))
    }
}

/// The caller's address, when the call came over a socket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) Option<IpAddr>);

impl FromRequestParts<Arc<House>> for Peer {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<House>) -> Result<Self, Fault> {
        Ok(Self(parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip())))
    }
}

/// A JSON body of at most 64 KiB.
#[derive(Debug)]
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<House>> for Body<T> {
    type Rejection = Fault;

    async fn from_request(request: Request, _: &Arc<House>) -> Result<Self, Fault> {
        let bytes = read(request, MAX_BODY_BYTES).await?;
        let parsed = serde_json::from_slice(&bytes);
        Ok(Self(parsed.map_err(|error| Refusal::malformed(format!("the body cannot be understood: {error}")))?))
    }
}

/// Like [`Body`] for bodies that hold a secret: the answer says where it broke, never what stood there.
#[derive(Debug)]
pub(crate) struct SecretBody<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<House>> for SecretBody<T> {
    type Rejection = Fault;

    async fn from_request(request: Request, _: &Arc<House>) -> Result<Self, Fault> {
        let bytes = read(request, MAX_BODY_BYTES).await?;
        let parsed = serde_json::from_slice(&bytes);
        let blame = |error: serde_json::Error| {
            Refusal::malformed(format!("the body cannot be understood at line {} column {}", error.line(), error.column()))
        };
        Ok(Self(parsed.map_err(blame)?))
    }
}

/// The bytes of a result, at most 2 MiB, exactly as they came (D8).
#[derive(Debug)]
pub(crate) struct ResultBytes(pub(crate) Bytes);

impl FromRequest<Arc<House>> for ResultBytes {
    type Rejection = Fault;

    async fn from_request(request: Request, _: &Arc<House>) -> Result<Self, Fault> {
        read(request, MAX_RESULT_BYTES).await.map(Self)
    }
}

async fn read(request: Request, most: usize) -> Result<Bytes, Fault> {
    axum::body::to_bytes(request.into_body(), most).await.map_err(|error| {
        if error.source().is_some_and(|cause| cause.is::<http_body_util::LengthLimitError>()) {
            return Refusal::new(ErrorCode::TooLarge, format!("the body is larger than {most} bytes")).into();
        }
        Refusal::malformed("the body did not arrive whole; send it again").into()
    })
}
