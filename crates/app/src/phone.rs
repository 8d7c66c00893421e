//! Keeps the phone connected and knows whether it is fit to work (D19). Never taps: that is the worker's.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use cmautobuy_device::connect::{AdbHost, AdbHub, Backoff, ConnectError, DeviceWatch, HubError, Roster};
use cmautobuy_device::{
    AdbKey, Capture, CaptureWant, Foreground, Measured, Phone, PhoneError, PhoneFacts, ReadersAllowed, Ticket, Verdict, connect_direct,
    connect_server,
};
use cmautobuy_engine::PhoneSlot;
use cmautobuy_protocol::error::chain;
use cmautobuy_store::{PhoneSeen, Store};
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
    async fn measure(&self, allowed: &ReadersAllowed) -> Result<Vec<Measured>, PhoneError> {
        self.inner.measure(allowed).await
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
    /// Our own adb server, started only when an address needs it.
    pub(crate) hub: Arc<AdbHub>,
    /// Where phones are remembered; demo's simulated one is not worth it, but its own store takes it.
    pub(crate) store: Store,
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
        let mut backoff = Backoff::PHONE;
        // A named server is watched too: a pulled cable is then seen at once, and a plugged one ends the wait.
        let named = match address {
            PhoneAddress::Server { server, .. } => Some(DeviceWatch::start(AdbHost::new(*server))),
            PhoneAddress::Direct(_) | PhoneAddress::OwnServer { .. } => None,
        };
        loop {
            let mut sight = Sight { serial: serial_of(address), roster: named.as_ref().map(DeviceWatch::roster) };
            let failed = match self.connect(address, &mut sight).await {
                Ok(inner) => {
                    let phone: Arc<dyn Phone> =
                        Arc::new(Watched { inner, clock: Arc::clone(&self.clock), last_look: Arc::clone(&last_look) });
                    let error = match phone.facts().await {
                        Ok(facts) => {
                            backoff.reset();
                            tracing::info!(serial = facts.serial, model = facts.model, android = facts.android_version, "phone connected");
                            self.remember(&facts, &name).await;
                            tokio::select! {
                                error = self.stay(&phone, &facts, &last_look, &name) => error,
                                () = sight.lost() => PhoneError::DeviceGone { serial: facts.serial.clone() },
                            }
                        }
                        Err(error) => error,
                    };
                    HubError::Phone(error)
                }
                Err(error) => error,
            };
            tracing::warn!(error = %failed, source = ?std::error::Error::source(&failed), "phone not usable");
            self.publish(None, &name, Some(hub_problem(&failed)));
            tokio::select! {
                () = tokio::time::sleep(backoff.next_random()) => {}
                () = sight.appeared() => {}
            }
        }
    }

    async fn connect(&self, address: &PhoneAddress, sight: &mut Sight) -> Result<Arc<dyn Phone>, HubError> {
        match address {
            PhoneAddress::Direct(at) => Ok(connect_direct(*at, Arc::clone(&self.key))),
            PhoneAddress::Server { server, serial } => Ok(connect_server(*server, serial.clone())),
            PhoneAddress::OwnServer { serial } => {
                sight.roster = Some(self.hub.open().await.map_err(HubError::Connect)?.1);
                self.hub.phone(serial).await
            }
        }
    }

    /// Best effort: a phone that works but cannot be remembered is still a phone that works.
    async fn remember(&self, facts: &PhoneFacts, name: &str) {
        let seen = PhoneSeen {
            serial: facts.serial.clone(),
            model: facts.model.clone(),
            android_version: facts.android_version.clone(),
            address: name.to_owned(),
        };
        let now = self.clock.now();
        if let Err(error) = self.store.write(move |tx| tx.phone_seen(&seen, now)).await {
            tracing::warn!(%error, "the phone could not be remembered");
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

/// What an adb server shows of this phone; nothing where there is no server.
struct Sight {
    serial: String,
    roster: Option<watch::Receiver<Roster>>,
}

impl Sight {
    fn is_ready(roster: &Roster, serial: &str) -> bool {
        roster.find(serial).is_some_and(|phone| phone.is_ready())
    }

    /// The phone left the list. A list that is out of date says nothing.
    async fn lost(&mut self) {
        self.until(|roster, serial| roster.lost.is_none() && roster.lists > 0 && !Sight::is_ready(roster, serial)).await;
    }

    /// The phone is not ready now and then is: plugged in or allowed.
    async fn appeared(&mut self) {
        self.until(|roster, serial| !Sight::is_ready(roster, serial)).await;
        self.until(Sight::is_ready).await;
    }

    async fn until(&mut self, met: impl Fn(&Roster, &str) -> bool) {
        let serial = self.serial.clone();
        let seen = match &mut self.roster {
            Some(roster) => roster.wait_for(|roster| met(roster, &serial)).await.is_ok(),
            None => false,
        };
        // Nothing to watch, or the watch has ended: the ping and the back-off are all there is.
        if !seen {
            std::future::pending::<()>().await;
        }
    }
}

fn serial_of(address: &PhoneAddress) -> String {
    match address {
        PhoneAddress::Direct(at) => at.to_string(),
        PhoneAddress::OwnServer { serial } | PhoneAddress::Server { serial, .. } => serial.clone(),
    }
}

/// As a person would type it.
pub(crate) fn describe(address: Option<&PhoneAddress>) -> String {
    match address {
        None => String::new(),
        Some(PhoneAddress::Direct(at)) => at.to_string(),
        Some(PhoneAddress::OwnServer { serial }) => format!("adb:{serial}"),
        Some(PhoneAddress::Server { server, serial }) => format!("adb:{server}/{serial}"),
    }
}

fn hub_problem(error: &HubError) -> Problem {
    match error {
        HubError::Connect(error) => connect_problem(error),
        HubError::Phone(error) => problem_of(error),
    }
}

pub(crate) fn connect_problem(error: &ConnectError) -> Problem {
    Problem::from_code(error.code(), &chain(error))
}

pub(crate) fn problem_of(error: &PhoneError) -> Problem {
    Problem::from_code(error.code(), &chain(error))
}

#[cfg(test)]
mod tests {
    use cmautobuy_device::connect::SeenPhone;
    use cmautobuy_device::{ListedDevice, ListedState};

    use super::*;

    fn roster(state: Option<ListedState>, lists: u64) -> Roster {
        let road = |state| ListedDevice { serial: "A".into(), state, model: None, product: None, usb: None, transport_id: None };
        let phones = state.map(|state| SeenPhone { serial: "A".into(), model: None, roads: vec![road(state)] });
        Roster { phones: phones.into_iter().collect(), lost: None, lists }
    }

    async fn is_over(work: impl Future<Output = ()>) -> bool {
        // The clock is paused, so this waits exactly until nothing else can happen.
        tokio::time::timeout(Duration::from_secs(1), work).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_pulled_cable_is_seen_and_a_lost_server_is_not_one() {
        let ready = || Some(ListedState::Device);
        let gone = Roster { lost: Some(Arc::new(ConnectError::NoAdb { looked: String::new() })), ..roster(None, 3) };
        for (name, now, want) in [
            ("ready", roster(ready(), 1), false),
            ("pulled", roster(None, 2), true),
            ("offline", roster(Some(ListedState::Offline), 2), true),
            ("no list yet", roster(None, 0), false),
            ("the server went away", gone, false),
        ] {
            let (_keep, seen) = watch::channel(now);
            let mut sight = Sight { serial: "A".into(), roster: Some(seen) };
            assert_eq!(is_over(sight.lost()).await, want, "row {name}");
        }
        assert!(!is_over(Sight { serial: "A".into(), roster: None }.lost()).await, "without a server only the ping tells");
    }

    #[tokio::test(start_paused = true)]
    async fn a_plugged_phone_ends_the_wait() {
        let (tell, seen) = watch::channel(roster(Some(ListedState::Device), 1));
        let mut sight = Sight { serial: "A".into(), roster: Some(seen) };
        assert!(!is_over(sight.appeared()).await, "a phone that was ready all along failed for another reason: back off");
        tell.send_replace(roster(Some(ListedState::Unauthorized), 2));
        assert!(!is_over(sight.appeared()).await, "not allowed yet");
        tell.send_replace(roster(Some(ListedState::Unauthorized), 3));
        let (appeared, ()) = tokio::join!(is_over(sight.appeared()), async {
            tell.send_replace(roster(Some(ListedState::Device), 4));
        });
        assert!(appeared, "Allow was pressed: connect now, not after half a minute");
    }
}
