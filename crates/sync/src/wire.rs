//! One HTTP exchange, as a trait, so that tests replace the network and nothing else (architecture §3 rule 24).

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use cmautobuy_protocol::error::chain;

/// What is sent. Header values may be secret, so `Debug` does not show them.
#[derive(Clone)]
pub struct WireRequest {
    pub method: Method,
    /// Path below the server's base address, starting with `/`.
    pub path: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: Option<Vec<u8>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
}

impl std::fmt::Debug for WireRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WireRequest").field("method", &self.method).field("path", &self.path).finish_non_exhaustive()
    }
}

/// What came back, whole.
#[derive(Debug, Clone)]
pub struct WireResponse {
    pub status: u16,
    pub body: Vec<u8>,
}

/// No answer: refused, reset, timed out. Nobody knows whether the server acted (D5).
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct NoAnswer(pub String);

/// Sends one request and reads its whole answer.
#[async_trait]
pub trait Wire: Send + Sync + std::fmt::Debug {
    async fn send(&self, request: WireRequest) -> Result<WireResponse, NoAnswer>;
}

/// The real one.
#[derive(Debug)]
pub struct HttpWire {
    client: reqwest::Client,
    base: String,
}

/// Why no HTTP client could be made.
#[derive(Debug, thiserror::Error)]
pub enum WireSetupError {
    #[error("server address `{0}` must start with http:// or https://")]
    Address(String),
    #[error("build the HTTP client")]
    Client(#[from] reqwest::Error),
}

impl HttpWire {
    /// `base` is the server's address, such as `https://desk.example.com`; `timeout` bounds a whole exchange.
    ///
    /// # Errors
    /// [`WireSetupError`] for an address that is not HTTP, or when TLS cannot be set up.
    pub fn new(base: &str, timeout: Duration) -> Result<Self, WireSetupError> {
        let base = base.trim_end_matches('/');
        let rest = base.strip_prefix("https://").or_else(|| base.strip_prefix("http://"));
        if rest.is_none_or(|host| host.is_empty() || host.contains(char::is_whitespace)) {
            return Err(WireSetupError::Address(base.to_owned()));
        }
        // The first caller wins; a second install of the same provider is no error worth reporting.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().timeout(timeout).connect_timeout(timeout.min(Duration::from_secs(10))).build()?;
        Ok(Self { client, base: base.to_owned() })
    }
}

#[async_trait]
impl Wire for HttpWire {
    async fn send(&self, request: WireRequest) -> Result<WireResponse, NoAnswer> {
        let url = format!("{}{}", self.base, request.path);
        let mut builder = match request.method {
            Method::Get => self.client.get(url),
            Method::Post => self.client.post(url),
        };
        for (name, value) in request.headers {
            builder = builder.header(name, value);
        }
        if let Some(body) = request.body {
            builder = builder.header("content-type", "application/json").body(body);
        }
        // reqwest's own text leaves out the reason, which is in its sources.
        let no_answer = |error: reqwest::Error| NoAnswer(chain(&error.without_url()));
        let response = builder.send().await.map_err(no_answer)?;
        let status = response.status().as_u16();
        let body = response.bytes().await.map_err(no_answer)?.to_vec();
        Ok(WireResponse { status, body })
    }
}

/// For a client that was not told its server yet: every request fails with the reason.
#[derive(Debug)]
pub struct NoServer;

#[async_trait]
impl Wire for NoServer {
    async fn send(&self, _request: WireRequest) -> Result<WireResponse, NoAnswer> {
        Err(NoAnswer("no server address is set".into()))
    }
}

/// Answers from a script and keeps what was asked. For tests.
#[derive(Debug, Default)]
pub struct FakeWire {
    script: Mutex<VecDeque<Result<WireResponse, NoAnswer>>>,
    asked: Mutex<Vec<WireRequest>>,
}

impl FakeWire {
    pub fn push(&self, status: u16, body: &serde_json::Value) {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        self.lock().push_back(Ok(WireResponse { status, body }));
    }

    pub fn push_no_answer(&self) {
        self.lock().push_back(Err(NoAnswer("connection reset".into())));
    }

    pub fn asked(&self) -> Vec<WireRequest> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Result<WireResponse, NoAnswer>>> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Wire for FakeWire {
    async fn send(&self, request: WireRequest) -> Result<WireResponse, NoAnswer> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        self.lock().pop_front().unwrap_or_else(|| Err(NoAnswer("the script is over".into())))
    }
}
