//! The watch over phones, with the clock paused and a source that plays a script.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};

use crate::adb::{AdbError, ListedDevice, ListedState};
use crate::connect::track::Source;
use crate::connect::{Backoff, Change, ConnectError, DeviceWatch, changes};

fn road(serial: &str, state: ListedState) -> ListedDevice {
    ListedDevice { serial: serial.to_owned(), state, model: None, product: None, usb: None, transport_id: None }
}

/// One opened stream: these lists, then broken off, or silence when `stays`.
struct Play {
    lists: Vec<Vec<ListedDevice>>,
    stays: bool,
}

struct Script {
    plays: Mutex<VecDeque<Play>>,
    opened: Mutex<Vec<tokio::time::Instant>>,
    /// Serials by road; a road that is not here never answers.
    serials: Vec<(&'static str, &'static str)>,
    ended: Mutex<Option<oneshot::Sender<()>>>,
    /// What the list says when it is asked for.
    list: Mutex<Option<Vec<ListedDevice>>>,
}

impl Script {
    fn new(plays: Vec<Play>, serials: &[(&'static str, &'static str)]) -> Arc<Script> {
        Arc::new(Script {
            plays: Mutex::new(plays.into()),
            opened: Mutex::default(),
            serials: serials.to_vec(),
            ended: Mutex::default(),
            list: Mutex::default(),
        })
    }
}

/// Says when the stream is dropped.
struct Ends(Option<oneshot::Sender<()>>);

impl Drop for Ends {
    fn drop(&mut self) {
        if let Some(ended) = self.0.take() {
            let _ = ended.send(());
        }
    }
}

#[async_trait]
impl Source for Script {
    async fn follow(&self, lists: mpsc::Sender<Vec<ListedDevice>>) -> ConnectError {
        self.opened.lock().expect("lock").push(tokio::time::Instant::now());
        let _ends = Ends(self.ended.lock().expect("lock").take());
        let play = self.plays.lock().expect("lock").pop_front();
        if let Some(play) = play {
            for list in play.lists {
                let _ = lists.send(list).await;
                // As real lists do: a moment apart.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            if play.stays {
                std::future::pending::<()>().await;
            }
        }
        ConnectError::Server(AdbError::BrokeOff)
    }

    async fn list(&self) -> Option<Vec<ListedDevice>> {
        self.list.lock().expect("lock").clone()
    }

    async fn serialno(&self, road: &str) -> Option<String> {
        match self.serials.iter().find(|(name, _)| *name == road) {
            Some((_, serial)) => Some((*serial).to_owned()),
            None => std::future::pending().await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn plugging_and_unplugging_is_seen_in_order() {
    let lists = vec![
        vec![],
        vec![road("A", ListedState::Unauthorized)],
        vec![road("A", ListedState::Device)],
        vec![road("A", ListedState::Offline)],
        vec![],
    ];
    let watch = DeviceWatch::of(Script::new(vec![Play { lists, stays: true }], &[("A", "A")]), Backoff::PHONE);
    let mut roster = watch.roster();
    let (mut seen, mut before) = (Vec::new(), Vec::new());
    while seen.last() != Some(&Change::Unplugged { serial: "A".to_owned() }) {
        roster.changed().await.expect("the watch lives");
        let now = roster.borrow_and_update().phones.clone();
        seen.extend(changes(&before, &now));
        before = now;
    }
    let a = || "A".to_owned();
    let want = [
        Change::Plugged { serial: a(), state: ListedState::Unauthorized },
        Change::State { serial: a(), from: ListedState::Unauthorized, to: ListedState::Device },
        Change::State { serial: a(), from: ListedState::Device, to: ListedState::Offline },
        Change::Unplugged { serial: a() },
    ];
    assert_eq!(seen, want, "each change once, the last phone leaving included (facts A11)");
}

#[tokio::test(start_paused = true)]
async fn two_transports_become_one_phone_when_they_say_who_they_are() {
    let both = vec![road("10.0.0.2:5555", ListedState::Device), road("R58", ListedState::Device), road("mute", ListedState::Device)];
    let script = Script::new(vec![Play { lists: vec![both], stays: true }], &[("10.0.0.2:5555", "R58"), ("R58", "R58")]);
    let watch = DeviceWatch::of(script, Backoff::PHONE);
    let mut roster = watch.roster();
    let roster = roster.wait_for(|roster| roster.lists > 0 && roster.phones.len() == 2).await.expect("the watch lives");
    let phone = roster.find("R58").expect("the phone is found by its serial");
    assert_eq!(phone.roads.len(), 2, "cable and Wi-Fi of one phone");
    assert_eq!(roster.find("10.0.0.2:5555").map(|phone| phone.serial.as_str()), Some("R58"), "and by either road");
    assert!(roster.find("mute").is_some(), "a phone that does not answer is listed all the same");
}

#[tokio::test(start_paused = true)]
async fn a_lost_server_is_asked_again_with_back_off() {
    let mut plays: Vec<Play> = (0..5).map(|_| Play { lists: vec![], stays: false }).collect();
    plays.push(Play { lists: vec![vec![road("A", ListedState::Device)]], stays: false });
    plays.push(Play { lists: vec![vec![]], stays: true });
    let script = Script::new(plays, &[("A", "A")]);
    let watch = DeviceWatch::of(Arc::clone(&script) as Arc<dyn Source>, Backoff::new(Duration::from_secs(1), Duration::from_secs(8)));
    let mut roster = watch.roster();
    {
        let lost = roster.wait_for(|roster| roster.lost.is_some()).await.expect("the watch lives");
        assert_eq!(lost.lost.as_ref().map(|error| error.code()), Some("ADB_SERVER_DOWN"), "the loss is shown with its reason");
    }
    roster.wait_for(|roster| roster.lists > 1 && roster.lost.is_none() && roster.phones.is_empty()).await.expect("it comes back by itself");
    let opened = script.opened.lock().expect("lock").clone();
    let waits: Vec<Duration> = opened.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (at, (wait, whole)) in waits.iter().zip([1, 2, 4, 8, 8]).enumerate() {
        let whole = Duration::from_secs(whole);
        assert!(
            *wait >= whole / 2 && *wait <= whole + Duration::from_millis(10),
            "wait {at} of {waits:?} must be between half and {whole:?}"
        );
    }
    // The sixth stream gave a list before it broke: the waits start over.
    assert!(waits[5] <= Duration::from_millis(1200), "a success makes it eager again: {waits:?}");
}

#[tokio::test(start_paused = true)]
async fn dropping_the_watch_ends_it_at_once() {
    let (ended, has_ended) = oneshot::channel();
    let script = Script::new(vec![Play { lists: vec![vec![]], stays: true }], &[]);
    *script.ended.lock().expect("lock") = Some(ended);
    let watch = DeviceWatch::of(script, Backoff::PHONE);
    watch.roster().wait_for(|roster| roster.lists == 1).await.expect("it runs");
    drop(watch);
    tokio::time::timeout(Duration::from_secs(1), has_ended).await.expect("the stream is dropped in time").expect("by its owner");
}

#[tokio::test(start_paused = true)]
async fn a_state_the_stream_never_tells_is_asked_for() {
    // adb 29, measured: `offline` on the stream for ever, `unauthorized` in the list.
    let script = Script::new(vec![Play { lists: vec![vec![road("A", ListedState::Offline)]], stays: true }], &[("A", "A")]);
    *script.list.lock().expect("lock") = Some(vec![road("A", ListedState::Unauthorized)]);
    let watch = DeviceWatch::of(Arc::clone(&script) as Arc<dyn Source>, Backoff::PHONE);
    let began = tokio::time::Instant::now();
    let mut roster = watch.roster();
    let asks = roster.wait_for(|roster| roster.find("A").is_some_and(|phone| *phone.state() == ListedState::Unauthorized));
    asks.await.expect("the watch lives");
    assert!(began.elapsed() <= Duration::from_secs(2), "a person who waits for the question is told in time");
    *script.list.lock().expect("lock") = Some(vec![road("A", ListedState::Device)]);
    roster.wait_for(|roster| roster.find("A").is_some_and(|phone| phone.is_ready())).await.expect("Allow is seen too");
}
