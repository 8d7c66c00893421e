//! The collect flow: goods link, goods page, SKU sheet, one price per colour, sheet closed again (T-205, 03 §8.1).
//!
//! The price taken is the one the sheet's header shows when it was opened through the 选择 row: the group price (拼单价), which is what
//! that sheet would order at. `list_price_cent` is the undiscounted price when the same header shows two. No size is ever touched, no
//! buy button, and nothing at or below the payment row (D10).

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use cmautobuy_device::{Action, Bounds, Capture, GoodsId as PhoneGoodsId, Key, PDD_PACKAGE, Phone, Screen};
use cmautobuy_protocol::goods::GoodsId;
use cmautobuy_protocol::pdd_data::PddData;

use crate::clock::FlowClock;
use crate::error::CollectError;
use crate::goods_page::{GoodsPage, read_goods};
use crate::recognise::{Unavailable, extent};
use crate::rules::RulePack;
use crate::session::{Look, STILL_SWIPES, Session, Toward};
use crate::sheet_walk::{Choices, walk};
use crate::sku_sheet::read_sheet;
use crate::skus::{Source, build};

/// How long a goods link may take to show its page.
const OPEN_BUDGET: Duration = Duration::from_secs(20);
const OPEN_LOOKS: u32 = 40;
const OPEN_PAUSE: Duration = Duration::from_millis(400);
/// Looks at an unavailable page until it is believed: the page of the goods before may still be on screen for a moment.
const UNAVAILABLE_LOOKS: u32 = 2;
const UNAVAILABLE_LOOKS_UNNAMED: u32 = 8;
/// Swipes down the goods page for what is below the fold.
const PAGE_SWIPES: u32 = 3;
/// Touches on the row that opens the sheet: a phone loses some.
const ENTRY_TAPS: u32 = 3;
/// Touches on the sheet's X that show nothing until the phone is not believed any more.
const CLOSE_TAPS: u32 = 3;
const ENTRY_LOOKS: u32 = 12;
const CLOSE_LOOKS: u32 = 14;

/// What to collect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectTask {
    pub goods_id: GoodsId,
    pub client_id: String,
}

/// What the flow works with.
pub struct CollectContext<'a> {
    pub phone: &'a dyn Phone,
    pub rules: &'a RulePack,
    pub clock: &'a dyn FlowClock,
    pub gate: &'a dyn StepGate,
}

impl fmt::Debug for CollectContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CollectContext").field("phone", &self.phone.serial()).finish_non_exhaustive()
    }
}

/// The engine's say in a run: lease, cancel and stop are checked here, artifacts are stored here.
#[async_trait]
pub trait StepGate: Send + Sync {
    /// A step begins.
    async fn step(&self, step: Step) -> Result<(), Stop>;

    /// Asked before every look and again before every action.
    async fn before_action(&self) -> Result<(), Stop>;

    /// Every look, before it is acted on. Some carry a picture: one per step and the last of a failed run.
    async fn captured(&self, step: Step, capture: &Capture);
}

/// The steps of a collect run, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    OpenGoods,
    ReadGoods,
    OpenSku,
    CollectSkus,
    CloseSheet,
}

impl Step {
    pub const ALL: [Step; 5] = [Step::OpenGoods, Step::ReadGoods, Step::OpenSku, Step::CollectSkus, Step::CloseSheet];

    /// The word on the wire and in rows.
    pub fn as_str(self) -> &'static str {
        match self {
            Step::OpenGoods => "open_goods",
            Step::ReadGoods => "read_goods",
            Step::OpenSku => "open_sku",
            Step::CollectSkus => "collect_skus",
            Step::CloseSheet => "close_sheet",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why the engine ends a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stop {
    LeaseLost,
    CancelRequested,
    OperatorStop,
}

impl Stop {
    pub fn code(self) -> &'static str {
        match self {
            Stop::LeaseLost => "LEASE_LOST",
            Stop::CancelRequested => "CANCEL_REQUESTED",
            Stop::OperatorStop => "OPERATOR_STOP",
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stop::LeaseLost => "the lease is lost",
            Stop::CancelRequested => "a cancel was requested",
            Stop::OperatorStop => "the operator stopped it",
        })
    }
}

/// Collects one goods. The returned document is valid (`PddData::validate`); its `artifacts` are left to the engine.
///
/// # Errors
/// [`CollectError`]; `verdict()` says what it means for the task.
pub async fn collect(ctx: &CollectContext<'_>, task: &CollectTask) -> Result<PddData, CollectError> {
    let mut session = Session::begin(ctx).await?;
    let result = run(&mut session, task).await;
    if let Err(error) = &result {
        let stopped = matches!(error, CollectError::Stopped(_));
        // A failed or stopped run leaves its last tree and picture (D12); the gate of a stopped run may refuse, which is fine.
        if !stopped {
            let _ = session.snapshot().await;
        }
        tracing::info!(step = session.step.as_str(), code = error.code(), goods_id = %task.goods_id, "collecting ended without data");
    }
    result
}

async fn run(session: &mut Session<'_>, task: &CollectTask) -> Result<PddData, CollectError> {
    open_goods(session, &task.goods_id).await?;
    session.enter(Step::ReadGoods).await?;
    session.snapshot().await?;
    let (page, entry) = read_page(session).await?;
    let choices = match entry {
        Some(look) => {
            session.enter(Step::OpenSku).await?;
            open_sheet(session, look).await?;
            session.enter(Step::CollectSkus).await?;
            session.snapshot().await?;
            let choices = walk(session).await?;
            session.enter(Step::CloseSheet).await?;
            session.snapshot().await?;
            choices
        }
        // No row anywhere on the page: one SKU without a choice, priced by the page alone.
        None => {
            session.enter(Step::CloseSheet).await?;
            Choices::none(page.certain_price.clone())
        }
    };
    let source = Source {
        client_id: task.client_id.clone(),
        device_address: session.ctx.phone.serial().to_owned(),
        pdd_package: PDD_PACKAGE.to_owned(),
    };
    let doubtful = choices.any_refused();
    let data = build(&task.goods_id, page, choices, source, session.ctx.clock.now(), session.ctx.rules)?;
    leave_on_goods(session, &task.goods_id, doubtful).await?;
    Ok(data)
}

async fn open_goods(session: &mut Session<'_>, goods_id: &GoodsId) -> Result<(), CollectError> {
    let link = PhoneGoodsId::try_from(goods_id.as_str()).map_err(|_| CollectError::WrongGoods { want: goods_id.to_string(), got: None })?;
    // An unknown page may be one that is still loading or a one-off layer: one more try, then a person (D11).
    for _ in 0..2 {
        send_link(session, &link).await?;
        if wait_for_goods(session, goods_id).await? {
            return Ok(());
        }
    }
    Err(session.unknown())
}

async fn send_link(session: &mut Session<'_>, link: &PhoneGoodsId) -> Result<(), CollectError> {
    for _ in 0..6 {
        let look = session.look().await?;
        match look.screen() {
            // From here the page of the goods before could be mistaken for this one's; and the guard knows no link from an unknown page.
            Screen::Unavailable | Screen::Unknown => {
                session.act(look, Action::Key(Key::Home)).await?;
            }
            Screen::AbandonPopup | Screen::Popup => session.clear_layer(look).await?,
            Screen::Elsewhere
            | Screen::Home
            | Screen::Goods
            | Screen::SkuSheet
            | Screen::OrderList
            | Screen::LoginWall
            | Screen::RiskWall => {
                if session.act(look, Action::OpenGoods(link.clone())).await? {
                    return Ok(());
                }
            }
        }
    }
    Err(CollectError::Timeout { step: session.step })
}

/// `true`: the wanted goods page is on top. `false`: the budget ended on a page nobody knows.
async fn wait_for_goods(session: &mut Session<'_>, goods_id: &GoodsId) -> Result<bool, CollectError> {
    let started = session.ctx.clock.instant();
    let mut last = Screen::Unknown;
    let mut got: Option<String> = None;
    let mut unavailable_looks = 0;
    let mut sheet_looks = 0;
    for _ in 0..OPEN_LOOKS {
        if session.ctx.clock.instant().saturating_duration_since(started) > OPEN_BUDGET {
            break;
        }
        let look = session.look().await?;
        last = look.screen();
        match look.screen() {
            Screen::Goods => {
                got = session.goods_on_top().await?;
                if got.as_deref() == Some(goods_id.as_str()) {
                    return Ok(true);
                }
            }
            Screen::Unavailable => {
                unavailable_looks += 1;
                got = session.goods_on_top().await?;
                let named = got.as_deref() == Some(goods_id.as_str());
                if unavailable_looks >= if named { UNAVAILABLE_LOOKS } else { UNAVAILABLE_LOOKS_UNNAMED } {
                    let text = look.page.text.unwrap_or_default();
                    return Err(match look.page.unavailable {
                        Some(Unavailable::SoldOut) => CollectError::GoodsSoldOut { text },
                        Some(Unavailable::Removed) => CollectError::GoodsRemoved { text },
                        Some(Unavailable::Network) | None => CollectError::NetworkPage { text },
                    });
                }
            }
            Screen::AbandonPopup | Screen::Popup => session.clear_layer(look).await?,
            Screen::SkuSheet => {
                // A sheet left open by an earlier run lies over the page.
                sheet_looks += 1;
                if sheet_looks % 4 == 0 {
                    session.act(look, Action::Key(Key::Back)).await?;
                }
            }
            Screen::Elsewhere | Screen::Home | Screen::OrderList | Screen::LoginWall | Screen::RiskWall | Screen::Unknown => {}
        }
        session.pause(OPEN_PAUSE).await;
    }
    match last {
        Screen::Goods | Screen::Unavailable => Err(CollectError::WrongGoods { want: goods_id.to_string(), got }),
        Screen::Unknown => Ok(false),
        Screen::Elsewhere
        | Screen::Home
        | Screen::SkuSheet
        | Screen::OrderList
        | Screen::AbandonPopup
        | Screen::Popup
        | Screen::LoginWall
        | Screen::RiskWall => Err(CollectError::Timeout { step: session.step }),
    }
}

/// Reads the page, below the fold too, and returns a look on which the SKU row is visible; without one the goods have no choice.
async fn read_page(session: &mut Session<'_>) -> Result<(GoodsPage, Option<Look>), CollectError> {
    let (mut look, mut view) = session.settled_goods().await?;
    for _ in 0..4 {
        // Pages bind their texts late (facts/pdd §6); the title is the one thing every page has.
        if view.title.is_some() {
            break;
        }
        (look, view) = session.settled_goods().await?;
    }
    let mut page = view.clone();
    if page.title.is_none() {
        return Err(CollectError::PageUnreadable { what: "the title" });
    }
    let mut entry_seen = view.entry.is_some();
    let (mut down, mut still) = (0, 0);
    while down < PAGE_SWIPES && (page.shop.is_none() || page.reviews.is_none() || page.sales.is_none() || !entry_seen) {
        let before = view.clone();
        let swiped;
        (look, view, swiped) = scroll_page(session, look, Toward::Down).await?;
        if !swiped {
            // What cannot be looked for is not known to be missing.
            if !entry_seen && view.entry.is_none() {
                return Err(CollectError::NoSkuEntry);
            }
            break;
        }
        if view.agrees(&before) {
            still += 1;
            if still < STILL_SWIPES {
                continue;
            }
            (look, view) = moved_back(session, look, &view).await?;
            entry_seen |= view.entry.is_some();
            break;
        }
        still = 0;
        down += 1;
        entry_seen |= view.entry.is_some();
        let mut found = view.clone();
        if down > 1 || found.title.is_none() {
            // Further down other goods are recommended with the same words.
            found.price_line = None;
            found.certain_price = None;
        }
        if down > 1 {
            found.sales = None;
        }
        found.title = None;
        page.merge(found);
    }
    let mut up = 0;
    while entry_seen && view.entry.is_none() && up < down + STILL_SWIPES {
        let moved;
        (look, view, moved) = scroll_page(session, look, Toward::Up).await?;
        if !moved {
            return Err(CollectError::NoSkuEntry);
        }
        up += 1;
    }
    page.entry = view.entry;
    match (page.entry.is_some(), entry_seen) {
        (true, _) => Ok((page, Some(look))),
        (false, true) => Err(CollectError::NoSkuEntry),
        (false, false) => {
            tracing::info!(price_line = page.price_line.as_deref(), "the goods page has no row for choices; taken as one SKU");
            Ok((page, None))
        }
    }
}

/// The page stands still. It is its end only if it moves the other way: a phone that loses touches, or shows an old tree, looks the same.
async fn moved_back(session: &mut Session<'_>, look: Look, end: &GoodsPage) -> Result<(Look, GoodsPage), CollectError> {
    let mut look = look;
    for _ in 0..STILL_SWIPES {
        let (next, view, _) = scroll_page(session, look, Toward::Up).await?;
        if !view.agrees(end) {
            return Ok((next, view));
        }
        look = next;
    }
    Err(CollectError::PageUnreadable { what: "a movement" })
}

/// One swipe on the goods page and the settled view after it; `false` when the guard never let it happen.
async fn scroll_page(session: &mut Session<'_>, look: Look, toward: Toward) -> Result<(Look, GoodsPage, bool), CollectError> {
    let mut look = look;
    // A buy button in the way of the middle is passed on the left or the right.
    for (left, right) in [(0, 100), (0, 50), (50, 100)] {
        let all = extent(look.tree(), session.ctx.rules);
        let part = |percent: i32| all.left + all.width() * percent / 100;
        // The middle of the page: clear of the top bar and of the buy buttons.
        let area = Bounds::new(part(left), all.top + all.height() / 10, part(right), all.bottom - all.height() / 5);
        let Some(swipe) = session.swipe_in(area, toward) else { break };
        let done = session.try_act(look, swipe).await?;
        let (next, view) = session.settled_goods().await?;
        if done.is_ok() {
            return Ok((next, view, true));
        }
        look = next;
    }
    let view = read_goods(look.tree(), session.ctx.rules);
    Ok((look, view, false))
}

/// Touches the SKU row, and nothing else, until the sheet is there.
async fn open_sheet(session: &mut Session<'_>, look: Look) -> Result<(), CollectError> {
    let mut look = look;
    let mut taps = 0;
    for _ in 0..6 {
        let view = read_goods(look.tree(), session.ctx.rules);
        let Some(entry) = view.entry else { return Err(CollectError::NoSkuEntry) };
        if session.tap(look, entry.node, entry.at).await? {
            taps += 1;
            if wait_for_sheet(session).await? {
                return Ok(());
            }
            if taps >= ENTRY_TAPS {
                return Err(CollectError::NoSkuEntry);
            }
        }
        (look, _) = session.settled_goods().await?;
    }
    Err(CollectError::NoSkuEntry)
}

/// `false`: still on the goods page.
async fn wait_for_sheet(session: &mut Session<'_>) -> Result<bool, CollectError> {
    let mut last = Screen::Unknown;
    for _ in 0..ENTRY_LOOKS {
        let look = session.look().await?;
        last = look.screen();
        match last {
            Screen::SkuSheet => return Ok(true),
            Screen::AbandonPopup | Screen::Popup => session.clear_layer(look).await?,
            Screen::Elsewhere
            | Screen::Home
            | Screen::Goods
            | Screen::OrderList
            | Screen::LoginWall
            | Screen::RiskWall
            | Screen::Unavailable
            | Screen::Unknown => {}
        }
        session.pause(OPEN_PAUSE).await;
    }
    if last == Screen::Goods { Ok(false) } else { Err(session.astray(last)) }
}

/// Closes the sheet and stays on the goods page. What was read counts only if this last touch is seen to work: a phone that loses every
/// touch, or shows an old tree, would have looked the same all the time. Other trouble costs the data nothing, it is complete here; a wall
/// or a stop still ends the run.
async fn leave_on_goods(session: &mut Session<'_>, goods_id: &GoodsId, doubtful: bool) -> Result<(), CollectError> {
    let mut closes = 0;
    let mut last = Screen::Unknown;
    for _ in 0..CLOSE_LOOKS {
        let look = match session.look().await {
            Ok(look) => look,
            Err(error) => return tolerate(error, doubtful),
        };
        last = look.screen();
        let done = match look.screen() {
            Screen::Goods => {
                let top = session.goods_on_top().await.ok().flatten();
                return match top {
                    Some(other) if other != goods_id.as_str() => {
                        Err(CollectError::WrongGoods { want: goods_id.to_string(), got: Some(other) })
                    }
                    Some(_) | None => Ok(()),
                };
            }
            Screen::SkuSheet => {
                let close = read_sheet(look.tree(), session.ctx.rules).ok().and_then(|sheet| sheet.close);
                let action = match close {
                    Some(_) if closes >= CLOSE_TAPS => return Err(CollectError::Timeout { step: session.step }),
                    Some((node, at)) => Action::Tap { node, at },
                    None => Action::Key(Key::Back),
                };
                closes += 1;
                session.act(look, action).await.map(|_| ())
            }
            Screen::AbandonPopup | Screen::Popup => session.clear_layer(look).await,
            Screen::Elsewhere
            | Screen::Home
            | Screen::OrderList
            | Screen::LoginWall
            | Screen::RiskWall
            | Screen::Unavailable
            | Screen::Unknown => Ok(()),
        };
        if let Err(error) = done {
            return tolerate(error, doubtful);
        }
        session.pause(OPEN_PAUSE).await;
    }
    if last == Screen::SkuSheet {
        return Err(CollectError::Timeout { step: session.step });
    }
    tracing::warn!("the goods page did not come back; the next run opens its own link");
    Ok(())
}

/// `doubtful`: a value was touched and never seen chosen, so without the proof of the last touch it may be the phone's doing.
fn tolerate(error: CollectError, doubtful: bool) -> Result<(), CollectError> {
    match error {
        _ if doubtful => Err(error),
        CollectError::Stopped(_) | CollectError::LoginWall | CollectError::RiskWall { .. } => Err(error),
        other => {
            tracing::warn!(code = other.code(), "the sheet could not be closed; the data is complete");
            Ok(())
        }
    }
}
