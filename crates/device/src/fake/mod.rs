//! A phone made of a script, for the tests of other rooms.
//!
//! It shows the pages it was given and writes down what was done to it. Actions go through the same
//! [`Ticket`] as on a real phone: the fake cannot be touched around the guard either.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use crate::capture::{Capture, CaptureId, CaptureWant, Foreground, Screenshot, Verdict};
use crate::clock;
use crate::error::PhoneError;
use crate::guard::{Command, GoodsId, Key, OrderList, Quantity, Ticket};
use crate::phone::{PDD_PACKAGE, Phone, PhoneFacts, ScreenSize};
use crate::tree::{Point, UiTree};

/// One page the fake can show.
#[derive(Clone, Debug)]
pub struct FakePage {
    pub xml: Vec<u8>,
    pub foreground: Foreground,
    pub goods_id: Option<String>,
    /// Overrides the verdict the xml would get.
    pub verdict: Option<Verdict>,
}

impl FakePage {
    /// A page of Pinduoduo's shared activity.
    pub fn pdd(xml: impl AsRef<[u8]>) -> FakePage {
        FakePage {
            xml: xml.as_ref().to_vec(),
            foreground: Foreground { package: PDD_PACKAGE.to_owned(), activity: ".activity.NewPageActivity".to_owned() },
            goods_id: None,
            verdict: None,
        }
    }

    /// A page of another app.
    pub fn of(package: &str, activity: &str, xml: impl AsRef<[u8]>) -> FakePage {
        FakePage { foreground: Foreground { package: package.to_owned(), activity: activity.to_owned() }, ..FakePage::pdd(xml) }
    }

    #[must_use]
    pub fn with_goods(mut self, goods_id: &str) -> FakePage {
        self.goods_id = Some(goods_id.to_owned());
        self
    }

    #[must_use]
    pub fn with_verdict(mut self, verdict: Verdict) -> FakePage {
        self.verdict = Some(verdict);
        self
    }
}

/// What was done to the fake, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Performed {
    Tap(Point),
    Swipe { from: Point, to: Point, duration_ms: u32 },
    Key(Key),
    TypeQuantity(Quantity),
    OpenGoods(GoodsId),
    OpenOrders(OrderList),
}

/// Decides the next page from the action just done; `None` leaves the page.
pub type Reaction = Box<dyn FnMut(&Performed) -> Option<FakePage> + Send>;

struct State {
    page: FakePage,
    /// Pages shown one after the other: each action moves to the next.
    queue: VecDeque<FakePage>,
    reaction: Option<Reaction>,
    performed: Vec<Performed>,
    failures: VecDeque<PhoneError>,
    captures: usize,
    age: Duration,
    facts: PhoneFacts,
    now_ms: i64,
}

/// A scripted [`Phone`].
pub struct FakePhone {
    serial: Arc<str>,
    state: Mutex<State>,
}

impl std::fmt::Debug for FakePhone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakePhone").field("serial", &self.serial).finish_non_exhaustive()
    }
}

impl FakePhone {
    /// A phone showing `page`, 1080 x 2400 at 440 dpi, with Pinduoduo installed.
    pub fn new(serial: &str, page: FakePage) -> FakePhone {
        let facts = PhoneFacts {
            serial: serial.to_owned(),
            model: "Fake 1".to_owned(),
            manufacturer: "CMAutoBuy".to_owned(),
            android_version: "14".to_owned(),
            sdk: 34,
            screen: ScreenSize { width: 1080, height: 2400, density_dpi: 440 },
            pdd_version: Some("7.50.0".to_owned()),
        };
        FakePhone {
            serial: Arc::from(serial),
            state: Mutex::new(State {
                page,
                queue: VecDeque::new(),
                reaction: None,
                performed: Vec::new(),
                failures: VecDeque::new(),
                captures: 0,
                age: Duration::ZERO,
                facts,
                now_ms: 1_780_000_000_000,
            }),
        }
    }

    /// Pages to move through, one per action.
    pub fn then(self, pages: impl IntoIterator<Item = FakePage>) -> FakePhone {
        self.state().queue.extend(pages);
        self
    }

    /// A function from action to next page; wins over the queue when it answers `Some`.
    pub fn reacting(self, reaction: impl FnMut(&Performed) -> Option<FakePage> + Send + 'static) -> FakePhone {
        self.state().reaction = Some(Box::new(reaction));
        self
    }

    /// Changes what [`Phone::facts`] answers.
    pub fn with_facts(self, change: impl FnOnce(&mut PhoneFacts)) -> FakePhone {
        change(&mut self.state().facts);
        self
    }

    /// The page changes by itself.
    pub fn show(&self, page: FakePage) {
        self.state().page = page;
    }

    /// The next call of any kind fails with this.
    pub fn fail_next(&self, error: PhoneError) {
        self.state().failures.push_back(error);
    }

    /// From now on captures are this old when they are handed out.
    pub fn age_captures(&self, age: Duration) {
        self.state().age = age;
    }

    /// Everything done so far.
    pub fn performed(&self) -> Vec<Performed> {
        self.state().performed.clone()
    }

    /// How many captures were taken.
    pub fn captures_taken(&self) -> usize {
        self.state().captures
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn step(&self) -> Result<MutexGuard<'_, State>, PhoneError> {
        let mut state = self.state();
        match state.failures.pop_front() {
            Some(error) => Err(error),
            None => Ok(state),
        }
    }
}

#[async_trait]
impl Phone for FakePhone {
    fn serial(&self) -> &str {
        &self.serial
    }

    async fn facts(&self) -> Result<PhoneFacts, PhoneError> {
        Ok(self.step()?.facts.clone())
    }

    async fn foreground(&self) -> Result<Foreground, PhoneError> {
        Ok(self.step()?.page.foreground.clone())
    }

    async fn goods_on_top(&self) -> Result<Option<String>, PhoneError> {
        Ok(self.step()?.page.goods_id.clone())
    }

    async fn capture(&self, want: &CaptureWant) -> Result<Capture, PhoneError> {
        let mut state = self.step()?;
        state.captures += 1;
        let page = &state.page;
        let parsed = UiTree::parse(&page.xml);
        let other_app = want.expect_package.as_ref().is_some_and(|expected| *expected != page.foreground.package);
        let verdict = match (&page.verdict, &parsed) {
            (Some(verdict), _) => *verdict,
            (None, Err(_)) => Verdict::TreeEmpty,
            (None, Ok(_)) if other_app => Verdict::WrongApp,
            (None, Ok(_)) => Verdict::Ok,
        };
        let now = clock::now();
        Ok(Capture {
            id: CaptureId::next(),
            tree: Arc::new(parsed.unwrap_or_default()),
            xml: Arc::from(page.xml.as_slice()),
            foreground: page.foreground.clone(),
            goods_id: page.goods_id.clone(),
            verdict,
            dump_ended: now.checked_sub(state.age).unwrap_or(now),
            dump_ms: 1,
            screenshot: want.screenshot.then(|| Screenshot { png: PIXEL.to_vec(), skew_ms: 0 }),
            serial: Arc::clone(&self.serial),
        })
    }

    async fn act(&self, ticket: Ticket) -> Result<(), PhoneError> {
        let mut state = self.step()?;
        ticket.still_valid(&self.serial, &state.page.foreground, clock::now())?;
        let performed = match ticket.command().clone() {
            Command::Tap(at) => Performed::Tap(at),
            Command::Swipe { from, to, duration_ms } => Performed::Swipe { from, to, duration_ms },
            Command::Key(key) => Performed::Key(key),
            Command::TypeQuantity(quantity) => Performed::TypeQuantity(quantity),
            Command::OpenOrders(list) => Performed::OpenOrders(list),
            Command::OpenGoods(goods) => {
                if state.facts.pdd_version.is_none() {
                    return Err(PhoneError::PddMissing);
                }
                Performed::OpenGoods(goods)
            }
        };
        state.performed.push(performed.clone());
        let reacted = state.reaction.as_mut().and_then(|reaction| reaction(&performed));
        let next = reacted.or_else(|| state.queue.pop_front());
        if let Some(page) = next {
            state.page = page;
        }
        Ok(())
    }

    async fn screenshot(&self) -> Result<Vec<u8>, PhoneError> {
        drop(self.step()?);
        Ok(PIXEL.to_vec())
    }

    async fn clock(&self) -> Result<i64, PhoneError> {
        Ok(self.step()?.now_ms)
    }
}

/// A valid 1 x 1 grey PNG.
const PIXEL: &[u8] = &[
    0x89, b'P', b'N', b'G', 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0, 0x3A, 0x7E,
    0x9B, 0x55, 0, 0, 0, 10, b'I', b'D', b'A', b'T', 0x78, 0x9C, 0x63, 0x68, 0, 0, 0, 0x82, 0, 0x81, 0x77, 0xCD, 0x72, 0xB6, 0, 0, 0, 0,
    b'I', b'E', b'N', b'D', 0xAE, 0x42, 0x60, 0x82,
];
