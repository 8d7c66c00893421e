//! Puts the loops together and says what the link to the server is like.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use cmautobuy_protocol::error::chain;
use cmautobuy_protocol::{DeviceId, ErrorCode, InstanceId, UserId};
use cmautobuy_store::{Store, StoreError};
use cmautobuy_task::{Backoff, Clock, LeaseCell};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::api::{Api, ApiError, SessionState};
use crate::beat::PhoneReport;
use crate::turn;

/// "Look": one per loop. A nudge never carries what happened.
#[derive(Debug, Default)]
pub struct Nudges {
    /// To `sync`: device heartbeat now (the phone came or went).
    pub beat: Arc<Notify>,
    /// To `sync`: perhaps a task can be claimed.
    pub claim: Arc<Notify>,
    /// To `sync`: an intent was committed.
    pub calls: Arc<Notify>,
    /// To `sync`: renew the run lease now.
    pub lease: Arc<Notify>,
    /// To `sync`: a result was committed.
    pub drain: Arc<Notify>,
    /// To `engine`: a row may be ready to run.
    pub engine: Arc<Notify>,
    /// To the running flow: the lease changed.
    pub lease_changed: Arc<Notify>,
}

/// How often the loops look without a nudge.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// Between two `claim-next` when there was no task (`automation.poll_interval_seconds`).
    pub poll: Duration,
    /// Run lease and device heartbeat (T-205 §8).
    pub heartbeat: Duration,
    pub backoff: Backoff,
}

impl Default for Timing {
    fn default() -> Self {
        Self { poll: Duration::from_secs(10), heartbeat: Duration::from_secs(30), backoff: Backoff::SERVER }
    }
}

/// The link to the server, for the status bar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkState {
    /// Nothing was asked yet.
    Unknown,
    Good,
    /// Not reachable, or refusing; the code is one of [`ErrorCode`] or `SERVER_UNREACHABLE`.
    Bad {
        code: String,
        detail: String,
    },
}

/// What `app` hands in.
#[derive(Debug, Clone)]
pub struct SyncParts {
    pub store: Store,
    pub api: Arc<Api>,
    pub clock: Arc<dyn Clock>,
    pub lease: Arc<LeaseCell>,
    pub nudges: Arc<Nudges>,
    pub device: DeviceId,
    pub instance: InstanceId,
    /// Earlier processes of this data folder, newest first (D19).
    pub predecessors: Vec<InstanceId>,
    pub app_version: &'static str,
    pub timing: Timing,
    /// What is known of the phone now.
    pub phone: watch::Receiver<PhoneReport>,
    /// Whether tasks may be claimed: the operator pressed start and nothing paused it.
    pub claiming: watch::Receiver<bool>,
}

/// The loops of one client.
#[derive(Debug)]
pub struct Sync {
    pub(crate) parts: SyncParts,
    link: watch::Sender<LinkState>,
    /// Why the last claim brought nothing, for the window.
    pub(crate) claim_refused: watch::Sender<Option<(String, String)>>,
    /// Device heartbeats that failed in a row.
    pub(crate) beat_failures: AtomicU32,
    /// The last claim was answered 204.
    pub(crate) no_task: watch::Sender<bool>,
}

impl Sync {
    pub fn new(parts: SyncParts) -> Self {
        Self {
            parts,
            link: watch::channel(LinkState::Unknown).0,
            claim_refused: watch::channel(None).0,
            no_task: watch::channel(false).0,
            beat_failures: AtomicU32::new(0),
        }
    }

    pub fn link(&self) -> watch::Receiver<LinkState> {
        self.link.subscribe()
    }

    /// Code and message of the refusal that keeps this client from claiming (`DEVICE_BUSY`, ...); `None` while nothing does.
    pub fn claim_refused(&self) -> watch::Receiver<Option<(String, String)>> {
        self.claim_refused.subscribe()
    }

    /// Whether the last claim was answered 204: there is no task for this device now.
    pub fn no_task(&self) -> watch::Receiver<bool> {
        self.no_task.subscribe()
    }

    /// Starts every loop; they end with `stop`.
    pub fn spawn(self: &Arc<Self>, tasks: &mut JoinSet<()>, stop: &CancellationToken) {
        macro_rules! spawn {
            ($name:literal, $nudge:ident, $every:expr, $turn:ident) => {{
                let (sync, stop) = (Arc::clone(self), stop.clone());
                let every = $every;
                tasks.spawn(async move {
                    let sync = &sync;
                    turn::run($name, stop, &sync.parts.nudges.$nudge, every, || sync.$turn()).await;
                });
            }};
        }
        let timing = self.parts.timing;
        spawn!("heartbeat", beat, timing.heartbeat, beat_turn);
        spawn!("claim", claim, timing.poll, claim_turn);
        spawn!("calls", calls, timing.heartbeat, calls_turn);
        spawn!("lease", lease, timing.heartbeat, lease_turn);
        spawn!("drain", drain, timing.heartbeat, drain_turn);
    }

    /// Who is logged in; `None` means every turn that needs the server waits.
    pub(crate) fn user(&self) -> Option<UserId> {
        match &*self.parts.api.session().borrow() {
            SessionState::LoggedIn(session) => Some(session.user_id),
            SessionState::LoggedOut | SessionState::Ended => None,
        }
    }

    /// Notes for the status bar what a call showed of the link.
    pub(crate) fn saw(&self, outcome: Result<(), &ApiError>) {
        let next = match outcome {
            Ok(()) => LinkState::Good,
            Err(ApiError::NotLoggedIn) => return,
            Err(error @ (ApiError::NoAnswer(_) | ApiError::Unreadable { .. } | ApiError::Encode(_))) => {
                LinkState::Bad { code: "SERVER_UNREACHABLE".into(), detail: error.to_string() }
            }
            // An answer with our error body proves the link; only those about the login or the device itself are the light's business.
            Err(ApiError::Refused { detail, status }) => match &detail.code {
                ErrorCode::Unauthenticated | ErrorCode::DeviceInUse | ErrorCode::DeviceNotAuthorized => {
                    LinkState::Bad { code: detail.code.to_string(), detail: detail.message.clone() }
                }
                code if *status >= 500 => {
                    LinkState::Bad { code: "SERVER_UNREACHABLE".into(), detail: format!("{code}: {}", detail.message) }
                }
                _ => LinkState::Good,
            },
        };
        self.link.send_if_modified(|link| {
            let changed = *link != next;
            if changed {
                tracing::info!(from = ?link, to = ?next, "link to the server changed");
                *link = next;
            }
            changed
        });
    }

    /// A random number for the jitter.
    pub(crate) fn dice(&self) -> u32 {
        rand::random()
    }
}

/// A store error inside a loop: said once here, left to the next turn.
pub(crate) fn store_failed(loop_name: &'static str, error: &StoreError) -> turn::Next {
    tracing::error!(loop_name, error = %chain(error), "store failed; trying again at the next turn");
    turn::Next::Wait
}
