//! The calls of D13: builds requests, carries the login, reads answers and the one error body.
//!
//! Never retries by itself except the one token refresh: who repeats what, and when, is each loop's decision.

use std::sync::{Arc, Mutex, PoisonError};

use cmautobuy_protocol::auth::{LoginRequest, RefreshRequest, Session};
use cmautobuy_protocol::device::{DeviceHeartbeat, DeviceHeartbeatAnswer};
use cmautobuy_protocol::ids::uuid_at;
use cmautobuy_protocol::lifecycle::{ClaimAnswer, ClaimRequest, RunHeartbeat, Standing};
use cmautobuy_protocol::result::ResultAnswer;
use cmautobuy_protocol::{
    API_BASE, ClaimToken, DeviceId, ErrorBody, ErrorCode, ErrorDetail, HEADER_CLAIM_TOKEN, HEADER_IDEMPOTENCY_KEY, HEADER_REQUEST_ID,
    IdempotencyKey, Password, RemoteTaskId,
};
use cmautobuy_task::Clock;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use crate::wire::{Method, Wire, WireRequest, WireResponse};

/// Why a call brought no answer to act on.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ApiError {
    /// No answer at all: the server may or may not have acted (D5).
    #[error("reach the server: {0}")]
    NoAnswer(String),
    /// The server refused with its error body.
    #[error("server refused with {status} {}: {}", .detail.code, .detail.message)]
    Refused { status: u16, detail: ErrorDetail },
    /// Something that is not our server, or an answer this version cannot read.
    #[error("read the answer with status {status}: {reason}")]
    Unreadable { status: u16, reason: String },
    /// Nobody is logged in on this client.
    #[error("not logged in")]
    NotLoggedIn,
    #[error("encode the request")]
    Encode(#[source] Arc<serde_json::Error>),
}

impl ApiError {
    pub fn code(&self) -> Option<&ErrorCode> {
        match self {
            Self::Refused { detail, .. } => Some(&detail.code),
            Self::NoAnswer(_) | Self::Unreadable { .. } | Self::NotLoggedIn | Self::Encode(_) => None,
        }
    }
}

/// Where the login is kept between runs: the OS credential store (D6). Blocking; called off the async threads.
pub trait SessionKeeper: Send + Sync + std::fmt::Debug {
    fn load(&self) -> Option<Session>;
    fn save(&self, session: &Session);
    fn clear(&self);
}

/// Whether somebody is logged in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionState {
    LoggedOut,
    /// The server no longer takes the stored login; unsent results wait for a new one.
    Ended,
    LoggedIn(Session),
}

/// The server, as this client's user and device.
#[derive(Debug)]
pub struct Api {
    wire: Mutex<Arc<dyn Wire>>,
    clock: Arc<dyn Clock>,
    keeper: Arc<dyn SessionKeeper>,
    session: watch::Sender<SessionState>,
    refreshing: tokio::sync::Mutex<()>,
}

impl Api {
    pub fn new(wire: Arc<dyn Wire>, clock: Arc<dyn Clock>, keeper: Arc<dyn SessionKeeper>) -> Self {
        let first = keeper.load().map_or(SessionState::LoggedOut, SessionState::LoggedIn);
        Self { wire: Mutex::new(wire), clock, keeper, session: watch::channel(first).0, refreshing: tokio::sync::Mutex::new(()) }
    }

    /// Talks to another address from now on. The session stays: the caller logs in anew.
    pub fn set_wire(&self, wire: Arc<dyn Wire>) {
        *self.wire.lock().unwrap_or_else(PoisonError::into_inner) = wire;
    }

    pub fn session(&self) -> watch::Receiver<SessionState> {
        self.session.subscribe()
    }

    fn logged_in(&self) -> Result<Session, ApiError> {
        match &*self.session.borrow() {
            SessionState::LoggedIn(session) => Ok(session.clone()),
            SessionState::LoggedOut | SessionState::Ended => Err(ApiError::NotLoggedIn),
        }
    }

    /// # Errors
    /// [`ApiError`]; `LOGIN_REFUSED` and `DEVICE_NOT_AUTHORIZED` are the ones a person can mend.
    pub async fn login(&self, user_name: &str, password: Password, device: DeviceId) -> Result<Session, ApiError> {
        let request = LoginRequest { user_name: user_name.to_owned(), password, device_id: Some(device) };
        let session: Session = read(self.send("/auth/login", Vec::new(), Some(encode(&request)?)).await?)?;
        self.adopt(session.clone()).await;
        Ok(session)
    }

    /// Forgets the login here first, then tells the server as well as it can.
    pub async fn logout(&self) {
        let Ok(session) = self.logged_in() else { return };
        let keeper = Arc::clone(&self.keeper);
        let _ = tokio::task::spawn_blocking(move || keeper.clear()).await;
        self.session.send_replace(SessionState::LoggedOut);
        let headers = vec![("authorization", format!("Bearer {}", session.access_token.reveal()))];
        if let Err(error) = self.send("/auth/logout", headers, None).await {
            tracing::info!(%error, "server not told of the logout; its token runs out by itself");
        }
    }

    async fn adopt(&self, session: Session) {
        let (keeper, kept) = (Arc::clone(&self.keeper), session.clone());
        let _ = tokio::task::spawn_blocking(move || keeper.save(&kept)).await;
        self.session.send_replace(SessionState::LoggedIn(session));
    }

    /// One refresh at a time; a caller that waited finds the work done. `stale` is the token that was refused.
    async fn refresh(&self, stale: &Session) -> Result<Session, ApiError> {
        let _one = self.refreshing.lock().await;
        let current = self.logged_in()?;
        if current.access_token != stale.access_token {
            return Ok(current);
        }
        let request = RefreshRequest { refresh_token: current.refresh_token.clone() };
        let answer = self.send("/auth/refresh", Vec::new(), Some(encode(&request)?)).await?;
        match read::<Session>(answer) {
            Ok(session) => {
                self.adopt(session.clone()).await;
                Ok(session)
            }
            Err(error) => {
                if matches!(error, ApiError::Refused { status: 401 | 403, .. }) {
                    tracing::warn!("login ended; a person must log in again");
                    self.session.send_replace(SessionState::Ended);
                }
                Err(error)
            }
        }
    }

    pub async fn device_heartbeat(&self, beat: &DeviceHeartbeat) -> Result<DeviceHeartbeatAnswer, ApiError> {
        read(self.authorized("/devices/heartbeat", Vec::new(), encode(beat)?).await?)
    }

    /// `Ok(None)` is 204: there is no task. The raw text comes along because it is stored as it came (D5.4).
    pub async fn claim_next(
        &self,
        key: &IdempotencyKey,
        token: &ClaimToken,
        device: DeviceId,
    ) -> Result<Option<(ClaimAnswer, String)>, ApiError> {
        let body = encode(&ClaimRequest { device_id: device })?;
        let response = self.authorized("/tasks/claim-next", with_claim(key, token), body).await?;
        if response.status == 204 {
            return Ok(None);
        }
        let raw = String::from_utf8_lossy(&response.body).into_owned();
        read(response).map(|answer| Some((answer, raw)))
    }

    /// `start`, `resume`, `release`, `cancel-ack`: all answer with where the task stands. `body` is the stored intent.
    pub async fn lifecycle(
        &self,
        task: RemoteTaskId,
        verb: &str,
        key: &IdempotencyKey,
        token: &ClaimToken,
        body: Vec<u8>,
    ) -> Result<Standing, ApiError> {
        read(self.authorized(&format!("/tasks/{task}/{verb}"), with_claim(key, token), body).await?)
    }

    pub async fn run_heartbeat(&self, task: RemoteTaskId, token: &ClaimToken, beat: &RunHeartbeat) -> Result<Standing, ApiError> {
        let headers = vec![(HEADER_CLAIM_TOKEN, token.reveal().to_owned())];
        read(self.authorized(&format!("/tasks/{task}/heartbeat"), headers, encode(beat)?).await?)
    }

    /// `payload` is sent byte for byte as stored (D8).
    pub async fn result(&self, task: RemoteTaskId, key: &IdempotencyKey, payload: Vec<u8>) -> Result<ResultAnswer, ApiError> {
        let headers = vec![(HEADER_IDEMPOTENCY_KEY, key.to_string())];
        read(self.authorized(&format!("/tasks/{task}/results"), headers, payload).await?)
    }

    /// Sends with the access token; on 401 refreshes once and sends again (safe: every call here is idempotent by key or by nature).
    async fn authorized(&self, path: &str, headers: Vec<(&'static str, String)>, body: Vec<u8>) -> Result<WireResponse, ApiError> {
        let session = self.logged_in()?;
        let send = |session: Session| {
            let mut headers = headers.clone();
            headers.push(("authorization", format!("Bearer {}", session.access_token.reveal())));
            self.send(path, headers, Some(body.clone()))
        };
        let response = send(session.clone()).await?;
        if response.status != 401 {
            return Ok(response);
        }
        let renewed = self.refresh(&session).await?;
        send(renewed).await
    }

    async fn send(&self, path: &str, mut headers: Vec<(&'static str, String)>, body: Option<Vec<u8>>) -> Result<WireResponse, ApiError> {
        headers.push((HEADER_REQUEST_ID, uuid_at(self.clock.now()).to_string()));
        let request = WireRequest { method: Method::Post, path: format!("{API_BASE}{path}"), headers, body };
        let wire = Arc::clone(&*self.wire.lock().unwrap_or_else(PoisonError::into_inner));
        wire.send(request).await.map_err(|error| ApiError::NoAnswer(error.0))
    }
}

fn with_claim(key: &IdempotencyKey, token: &ClaimToken) -> Vec<(&'static str, String)> {
    vec![(HEADER_IDEMPOTENCY_KEY, key.to_string()), (HEADER_CLAIM_TOKEN, token.reveal().to_owned())]
}

fn encode(message: &impl Serialize) -> Result<Vec<u8>, ApiError> {
    serde_json::to_vec(message).map_err(|error| ApiError::Encode(Arc::new(error)))
}

/// A 2xx body as `T`, anything else as the error it is. A 5xx without our error body is an outage like any other.
fn read<T: DeserializeOwned>(response: WireResponse) -> Result<T, ApiError> {
    let WireResponse { status, body } = response;
    if (200..300).contains(&status) {
        return serde_json::from_slice(&body).map_err(|error| ApiError::Unreadable { status, reason: error.to_string() });
    }
    match serde_json::from_slice::<ErrorBody>(&body) {
        Ok(body) => Err(ApiError::Refused { status, detail: body.error }),
        Err(error) => Err(ApiError::Unreadable { status, reason: error.to_string() }),
    }
}
