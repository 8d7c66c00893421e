//! Watching phones come and go, live: `track-devices-l`, kept open, opened again with back-off when the server goes.
//!
//! The stream alone is not enough: an adb 29 announces a phone that waits for Allow as `offline` and never corrects it, though its list
//! says `unauthorized`. So while a phone is not ready the list is asked for as well, and now and then anyway.
//!
//! One task owns it and dies with its handle, at once, whatever it waits for (the crate we did not take cannot be stopped, facts A11).
//! The last phone going away is news like any other.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::adb::link::{Link, within};
use crate::adb::wire::{self, ServerLink};
use crate::adb::{AdbError, ListedDevice, ListedState, answers};
use crate::connect::backoff::Backoff;
use crate::connect::roster::{SeenPhone, fold};
use crate::connect::{AdbHost, ConnectError};

/// Opening the stream; after that it may be silent for days.
const OPEN: Duration = Duration::from_secs(5);
/// A phone that cannot say its serial in this time is asked again at the next change.
const IDENTIFY: Duration = Duration::from_secs(5);

/// How often the list is asked for while some phone is not ready, and otherwise.
const ASK_UNREADY: Duration = Duration::from_secs(1);
const ASK_READY: Duration = Duration::from_secs(30);

/// What is known now.
#[derive(Clone, Debug, Default)]
pub struct Roster {
    /// In the server's order.
    pub phones: Vec<SeenPhone>,
    /// Why the list may be out of date: the server is not reachable.
    pub lost: Option<Arc<ConnectError>>,
    /// Counts what was learned; 0 before the first list.
    pub lists: u64,
}

impl Roster {
    /// The phone of that serial, by whichever road.
    pub fn find(&self, serial: &str) -> Option<&SeenPhone> {
        self.phones.iter().find(|phone| phone.serial == serial || phone.roads.iter().any(|road| road.serial == serial))
    }
}

/// Where lists come from; a fake one lets the clock be paused in tests.
#[async_trait]
pub(crate) trait Source: Send + Sync + 'static {
    /// Opens the stream of lists; sends each into `lists` until it breaks, and says why it did.
    async fn follow(&self, lists: mpsc::Sender<Vec<ListedDevice>>) -> ConnectError;

    /// The list now; `None` when it could not be had in time.
    async fn list(&self) -> Option<Vec<ListedDevice>>;

    /// `ro.serialno` of a ready phone.
    async fn serialno(&self, road: &str) -> Option<String>;
}

/// An answer that was asked for on the side.
enum Answer {
    Serial {
        road: String,
        said: Option<String>,
    },
    /// The list, when `after` lists had been received.
    List {
        after: u64,
        list: Option<Vec<ListedDevice>>,
    },
}

/// Watching, until it is dropped.
#[derive(Debug)]
pub struct DeviceWatch {
    roster: watch::Receiver<Roster>,
    task: JoinHandle<()>,
}

impl Drop for DeviceWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl DeviceWatch {
    /// Watches the phones of a running server.
    pub fn start(host: AdbHost) -> DeviceWatch {
        DeviceWatch::of(Arc::new(ServerSource(host)), Backoff::PHONE)
    }

    pub(crate) fn of(source: Arc<dyn Source>, backoff: Backoff) -> DeviceWatch {
        let (publish, roster) = watch::channel(Roster::default());
        let task = tokio::spawn(run(source, publish, backoff));
        DeviceWatch { roster, task }
    }

    pub fn roster(&self) -> watch::Receiver<Roster> {
        self.roster.clone()
    }
}

/// What the task knows of the server's phones.
#[derive(Default)]
struct Known {
    latest: Vec<ListedDevice>,
    serialno: HashMap<String, String>,
    asked: JoinSet<Answer>,
    lists: u64,
}

impl Known {
    fn take(&mut self, list: Vec<ListedDevice>, source: &Arc<dyn Source>) {
        let ready = |road: &str| list.iter().any(|device| device.serial == road && device.state == ListedState::Device);
        // A transport that left may come back as another phone on the same address.
        self.serialno.retain(|road, _| ready(road));
        for device in list.iter().filter(|device| device.state == ListedState::Device && !self.serialno.contains_key(&device.serial)) {
            let (source, road) = (Arc::clone(source), device.serial.clone());
            self.asked.spawn(async move {
                let said = tokio::time::timeout(IDENTIFY, source.serialno(&road)).await.ok().flatten();
                Answer::Serial { road, said }
            });
        }
        self.latest = list;
        self.lists += 1;
    }

    fn ask_list(&mut self, source: &Arc<dyn Source>) {
        let (source, after) = (Arc::clone(source), self.lists);
        self.asked.spawn(async move { Answer::List { after, list: tokio::time::timeout(OPEN, source.list()).await.ok().flatten() } });
    }

    /// Whether anything is new.
    fn learn(&mut self, answer: Answer, source: &Arc<dyn Source>) -> bool {
        match answer {
            Answer::Serial { road, said: Some(said) } => {
                let still = self.latest.iter().any(|device| device.serial == road && device.state == ListedState::Device);
                if still {
                    self.serialno.insert(road, said);
                }
                still
            }
            // The stream was quicker: its list is younger.
            Answer::List { after, list: Some(list) } if after == self.lists && list != self.latest => {
                self.take(list, source);
                true
            }
            Answer::Serial { said: None, .. } | Answer::List { .. } => false,
        }
    }

    fn pause(&self) -> Duration {
        if self.latest.iter().all(|device| device.state == ListedState::Device) { ASK_READY } else { ASK_UNREADY }
    }

    fn publish(&self, to: &watch::Sender<Roster>) {
        let phones = fold(&self.latest, &self.serialno);
        to.send_modify(|roster| *roster = Roster { phones, lost: None, lists: roster.lists + 1 });
    }
}

async fn run(source: Arc<dyn Source>, publish: watch::Sender<Roster>, mut backoff: Backoff) {
    loop {
        let (to, mut lists) = mpsc::channel(16);
        let follow = source.follow(to);
        tokio::pin!(follow);
        let mut known = Known::default();
        let error = loop {
            // Restarted by whatever happens, so it measures quiet.
            let quiet = tokio::time::sleep(known.pause());
            tokio::select! {
                biased;
                Some(list) = lists.recv() => {
                    backoff.reset();
                    known.take(list, &source);
                    known.publish(&publish);
                }
                Some(Ok(answer)) = known.asked.join_next() => if known.learn(answer, &source) {
                    known.publish(&publish);
                },
                error = &mut follow => break error,
                () = quiet => known.ask_list(&source),
            }
        };
        tracing::debug!(%error, failures = backoff.failures(), "watching phones broke off");
        publish.send_modify(|roster| {
            roster.phones.clear();
            roster.lost = Some(Arc::new(error));
        });
        tokio::time::sleep(backoff.next_random()).await;
    }
}

/// A real server.
#[derive(Debug)]
struct ServerSource(AdbHost);

impl ServerSource {
    async fn open(&self) -> Result<TcpStream, AdbError> {
        let mut socket = wire::dial(self.0.address()).await?;
        wire::request(&mut socket, "host:track-devices-l").await?;
        Ok(socket)
    }

    async fn follow(&self, lists: &mpsc::Sender<Vec<ListedDevice>>) -> Result<(), AdbError> {
        let mut socket = within(OPEN, self.open()).await?;
        loop {
            let list = answers::devices(&wire::read_counted(&mut socket).await?);
            if lists.send(list).await.is_err() {
                return Ok(());
            }
        }
    }
}

#[async_trait]
impl Source for ServerSource {
    async fn follow(&self, lists: mpsc::Sender<Vec<ListedDevice>>) -> ConnectError {
        match ServerSource::follow(self, &lists).await {
            Ok(()) => ConnectError::Server(AdbError::BrokeOff),
            Err(error) => ConnectError::Server(error),
        }
    }

    async fn list(&self) -> Option<Vec<ListedDevice>> {
        self.0.devices().await.ok()
    }

    async fn serialno(&self, road: &str) -> Option<String> {
        let link = ServerLink::new(self.0.address(), road.to_owned());
        let output = link.shell("getprop ro.serialno", IDENTIFY).await.ok()?;
        let serial = answers::text(&output.stdout).trim().to_owned();
        (output.code == 0 && !serial.is_empty() && serial != "unknown").then_some(serial)
    }
}
