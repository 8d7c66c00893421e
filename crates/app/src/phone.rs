//! Keeps the phone connected and knows whether it is fit to work (D19). Never taps: that is the worker's.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use cmautobuy_device::{
    AdbKey, Capture, CaptureWant, Foreground, Phone, PhoneError, PhoneFacts, Ticket, Verdict, connect_direct, connect_server,
};
use cmautobuy_engine::PhoneSlot;
use cmautobuy_protocol::error::chain;
use cmautobuy_sync::PhoneReport;
use cmautobuy_task::{Clock, LeaseCell, Mono};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::problem::Problem;
use crate::settings::PhoneAddress;

/// How often a quiet phone is asked whether it is still there.
const PING: Duration = Duration::from_secs(10);
/// How often a quiet phone's screen is read, to know that it can be (D19).
const LOOK: Duration = Duration::from_secs(60);
/// A successful look counts this long: the server's heartbeat TTL (D19).
const FRESH: Duration = Duration::from_secs(120);
/// Between two tries to connect.
const RETRY: [Duration; 4] = [Duration::from_secs(1), Duration::from_secs(3), Duration::from_secs(10), Duration::from_secs(30)];

/// What is known of the phone now.
#[derive(Debug, Clone, Default)]
pub(crate) struct PhoneStatus {
    pub(crate) address: String,
    pub(crate) facts: Option<PhoneFacts>,
    /// Why it is not fit to work.
    pub(crate) problem: Option<Problem>,
}

/// A phone that remembers when its screen was last read, whoever read it.
#[derive(Debug)]
struct Watched {
    inner: Arc<dyn Phone>,
    clock: Arc<dyn Clock>,
    last_look: Arc<Mutex<Option<Mono>>>,
}

#[async_trait]
impl Phone for Watched {
    fn serial(&self) -> &str {
        self.inner.serial()
    }
    async fn facts(&self) -> Result<PhoneFacts, PhoneError> {
        self.inner.facts().await
    }
    async fn foreground(&self) -> Result<Foreground, PhoneError> {
        self.inner.foreground().await
    }
    async fn goods_on_top(&self) -> Result<Option<String>, PhoneError> {
        self.inner.goods_on_top().await
    }
    async fn capture(&self, want: &CaptureWant) -> Result<Capture, PhoneError> {
        let capture = self.inner.capture(want).await?;
        if !capture.tree.is_empty() {
            *self.last_look.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.clock.mono());
        }
        Ok(capture)
    }
    async fn act(&self, ticket: Ticket) -> Result<(), PhoneError> {
        self.inner.act(ticket).await
    }
    async fn screenshot(&self) -> Result<Vec<u8>, PhoneError> {
        self.inner.screenshot().await
    }
    async fn clock(&self) -> Result<i64, PhoneError> {
        self.inner.clock().await
    }
}

/// The loop that owns the connection.
#[derive(Debug)]
pub(crate) struct PhoneLoop {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) lease: Arc<LeaseCell>,
    pub(crate) key: Arc<AdbKey>,
    pub(crate) address: watch::Receiver<Option<PhoneAddress>>,
    pub(crate) slot: watch::Sender<PhoneSlot>,
    pub(crate) report: watch::Sender<PhoneReport>,
    pub(crate) status: watch::Sender<PhoneStatus>,
    /// To `sync`: tell the server.
    pub(crate) beat: Arc<Notify>,
    pub(crate) engine: Arc<Notify>,
    pub(crate) claim: Arc<Notify>,
}

impl PhoneLoop {
    pub(crate) async fn run(self, stop: CancellationToken) {
        let mut watched = self.address.clone();
        loop {
            let address = watched.borrow_and_update().clone();
            self.publish(None, &describe(address.as_ref()), None);
            tokio::select! {
                () = stop.cancelled() => break,
                changed = watched.changed() => if changed.is_err() { break },
                () = self.hold(address.as_ref()) => {}
            }
        }
        self.slot.send_replace(None);
    }

    /// Connects, stays connected and connects again. Never comes back.
    async fn hold(&self, address: Option<&PhoneAddress>) {
        let Some(address) = address else { return std::future::pending().await };
        let name = describe(Some(address));
        let last_look = Arc::new(Mutex::new(None));
        let mut failures = 0_usize;
        loop {
            let inner = match address {
                PhoneAddress::Direct(at) => connect_direct(*at, Arc::clone(&self.key)),
                PhoneAddress::Server { server, serial } => connect_server(SocketAddr::clone(server), serial.clone()),
            };
            let phone: Arc<dyn Phone> = Arc::new(Watched { inner, clock: Arc::clone(&self.clock), last_look: Arc::clone(&last_look) });
            let error = match phone.facts().await {
                Ok(facts) => {
                    failures = 0;
                    tracing::info!(serial = facts.serial, model = facts.model, android = facts.android_version, "phone connected");
                    self.stay(&phone, &facts, &last_look, &name).await
                }
                Err(error) => error,
            };
            tracing::warn!(%error, source = ?std::error::Error::source(&error), "phone not usable");
            self.publish(None, &name, Some(problem_of(&error)));
            tokio::time::sleep(RETRY[failures.min(RETRY.len() - 1)]).await;
            failures += 1;
        }
    }

    /// Watches a connected phone until it fails.
    async fn stay(&self, phone: &Arc<dyn Phone>, facts: &PhoneFacts, last_look: &Mutex<Option<Mono>>, name: &str) -> PhoneError {
        let mut facts = facts.clone();
        let mut unreadable = None;
        loop {
            let since = |at: Option<Mono>| at.map(|at| self.clock.mono().since(at));
            let looked = since(*last_look.lock().unwrap_or_else(PoisonError::into_inner));
            let busy = self.lease.current().is_some();
            if !busy && looked.is_none_or(|ago| ago >= LOOK) {
                unreadable = match phone.capture(&CaptureWant::anything()).await {
                    Ok(capture) => match capture.verdict {
                        Verdict::DeviceGone => return PhoneError::DeviceGone { serial: facts.serial },
                        _ if !capture.tree.is_empty() => None,
                        verdict => Some(PhoneError::DumpFailed { reason: verdict.to_string(), source: None }),
                    },
                    Err(error @ (PhoneError::DumpFailed { .. } | PhoneError::NeverIdle | PhoneError::AccessibilityTaken { .. })) => {
                        Some(error)
                    }
                    Err(error) => return error,
                };
            } else if !busy {
                if let Err(error) = phone.foreground().await {
                    return error;
                }
                // Pinduoduo may be installed or removed at any time; nothing else changes while connected.
                match phone.facts().await {
                    Ok(now) => facts = now,
                    Err(error) => return error,
                }
            }
            let looked = since(*last_look.lock().unwrap_or_else(PoisonError::into_inner));
            let readable = looked.is_some_and(|ago| ago < FRESH);
            let missing = facts.pdd_version.is_none().then_some(PhoneError::PddMissing);
            let problem = missing.as_ref().or(if readable { None } else { unreadable.as_ref() }).map(problem_of);
            self.connected(phone, &facts, readable, name, problem);
            // A phone that cannot be read is looked at again soon: the operator may be unlocking it right now.
            tokio::time::sleep(if readable { PING } else { PING / 3 }).await;
        }
    }

    fn connected(&self, phone: &Arc<dyn Phone>, facts: &PhoneFacts, readable: bool, name: &str, problem: Option<Problem>) {
        let report = PhoneReport {
            serial: Some(facts.serial.clone()),
            android_version: Some(facts.android_version.clone()),
            pdd_version: facts.pdd_version.clone(),
            accessibility_connected: readable,
            pdd_installed: facts.pdd_version.is_some(),
        };
        let was_gone = self.slot.borrow().is_none();
        if was_gone {
            self.slot.send_replace(Some(Arc::clone(phone)));
        }
        let changed = self.report.send_if_modified(|old| {
            let changed = *old != report;
            *old = report;
            changed
        });
        self.status.send_replace(PhoneStatus { address: name.to_owned(), facts: Some(facts.clone()), problem });
        if changed || was_gone {
            self.beat.notify_one();
            self.engine.notify_one();
            self.claim.notify_one();
        }
    }

    fn publish(&self, phone: PhoneSlot, name: &str, problem: Option<Problem>) {
        self.slot.send_replace(phone);
        self.report.send_replace(PhoneReport::default());
        self.status.send_replace(PhoneStatus { address: name.to_owned(), facts: None, problem });
        self.beat.notify_one();
        self.engine.notify_one();
    }
}

fn describe(address: Option<&PhoneAddress>) -> String {
    match address {
        None => String::new(),
        Some(PhoneAddress::Direct(at)) => at.to_string(),
        Some(PhoneAddress::Server { serial, .. }) => serial.clone(),
    }
}

pub(crate) fn problem_of(error: &PhoneError) -> Problem {
    Problem::from_code(error.code(), &chain(error))
}
