//! One run's hold on the phone: looks, actions and how many of each are left.
//!
//! Every action consumes a fresh look and goes through the tap guard (D10). Nothing here repeats an action: after a refusal the caller
//! looks again and decides anew. Every loop of the flow draws on these budgets, so none can run for ever.

use std::time::{Duration, Instant};

use cmautobuy_device::Verdict as LookVerdict;
use cmautobuy_device::{
    Action, Agreement, Bounds, Capture, CaptureWant, Key, NodeId, PhoneError, Point, Refused, Screen, ScreenSize, UiTree, check,
};

use crate::collect::{CollectContext, Step};
use crate::error::CollectError;
use crate::goods_page::{GoodsPage, read_goods};
use crate::recognise::{Recognised, abandon_leave, popup_close, recognise_in_full};
use crate::sku_sheet::{SkuSheet, read_sheet};

const MAX_LOOKS: u32 = 600;
const MAX_ACTIONS: u32 = 250;
const MAX_RUN: Duration = Duration::from_secs(15 * 60);
const MAX_REFUSALS: u32 = 15;
const MAX_LAYERS: u32 = 6;
/// Bad looks in a row before the phone is reported.
const MAX_BAD_LOOKS: u32 = 4;
/// Looks until two in a row must have agreed.
const SETTLE_LOOKS: u32 = 12;

/// Swipes in a row that move nothing until it is the end: a phone loses touches.
pub(crate) const STILL_SWIPES: u32 = 3;
/// How often the connection may break under one question. Asking again is harmless and connects anew; an action is never done again.
const MAX_BREAKS: u32 = 3;
const AFTER_BREAK: Duration = Duration::from_secs(1);

/// Between two looks that must agree.
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);
/// After an action, before the first look.
const AFTER_ACTION: Duration = Duration::from_millis(350);

/// How long a swipe takes: under the 400 ms from which it would count as a touch (D10).
const SWIPE_MS: u32 = 380;

/// A look that may become one action.
pub(crate) struct Look {
    capture: Capture,
    pub(crate) page: Recognised,
}

impl Look {
    pub(crate) fn tree(&self) -> &UiTree {
        &self.capture.tree
    }

    pub(crate) fn screen(&self) -> Screen {
        self.page.screen
    }
}

/// A swipe's direction, as the content moves on: `Down` shows what is below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Toward {
    Down,
    Up,
    Right,
    Left,
}

pub(crate) struct Session<'a> {
    pub(crate) ctx: &'a CollectContext<'a>,
    pub(crate) step: Step,
    size: ScreenSize,
    started: Instant,
    looks: u32,
    actions: u32,
    refusals: u32,
    layers: u32,
}

impl<'a> Session<'a> {
    pub(crate) async fn begin(ctx: &'a CollectContext<'a>) -> Result<Self, CollectError> {
        let step = Step::OpenGoods;
        ctx.gate.step(step).await.map_err(CollectError::Stopped)?;
        let facts = read_again(ctx, || ctx.phone.facts()).await.map_err(|source| CollectError::Phone { step, source })?;
        if facts.pdd_version.is_none() {
            return Err(CollectError::Phone { step, source: PhoneError::PddMissing });
        }
        Ok(Self { ctx, step, size: facts.screen, started: ctx.clock.instant(), looks: 0, actions: 0, refusals: 0, layers: 0 })
    }

    pub(crate) async fn enter(&mut self, step: Step) -> Result<(), CollectError> {
        self.step = step;
        self.ctx.gate.step(step).await.map_err(CollectError::Stopped)
    }

    pub(crate) fn phone_error(&self, source: PhoneError) -> CollectError {
        CollectError::Phone { step: self.step, source }
    }

    pub(crate) fn unknown(&self) -> CollectError {
        CollectError::UnknownScreen { step: self.step }
    }

    pub(crate) async fn pause(&self, time: Duration) {
        self.ctx.clock.pause(time).await;
    }

    /// Looks once at whatever is there. A wall is an error everywhere: only a person may pass it (D10).
    pub(crate) async fn look(&mut self) -> Result<Look, CollectError> {
        let mut bad = 0;
        loop {
            let capture = self.capture(false).await?;
            match capture.verdict {
                LookVerdict::Ok => {
                    let page = recognise_in_full(&capture.tree, &capture.foreground, self.ctx.rules);
                    return match page.screen {
                        Screen::RiskWall => Err(CollectError::RiskWall { text: page.text.unwrap_or_default() }),
                        Screen::LoginWall => Err(CollectError::LoginWall),
                        Screen::Elsewhere
                        | Screen::Home
                        | Screen::Goods
                        | Screen::SkuSheet
                        | Screen::OrderList
                        | Screen::AbandonPopup
                        | Screen::Popup
                        | Screen::Unavailable
                        | Screen::Unknown => Ok(Look { capture, page }),
                    };
                }
                LookVerdict::RiskWall => return Err(CollectError::RiskWall { text: String::new() }),
                LookVerdict::LoginWall => return Err(CollectError::LoginWall),
                LookVerdict::NeverIdle
                | LookVerdict::TreeEmpty
                | LookVerdict::TreeStale
                | LookVerdict::SecureOrBlack
                | LookVerdict::WrongApp
                | LookVerdict::Popup
                | LookVerdict::DeviceGone => {
                    bad += 1;
                    if bad >= MAX_BAD_LOOKS || capture.verdict == LookVerdict::DeviceGone {
                        let source = capture.ensure_ok().err().unwrap_or(PhoneError::BadScreen { verdict: capture.verdict });
                        return Err(self.phone_error(source));
                    }
                    self.pause(BETWEEN_LOOKS).await;
                }
            }
        }
    }

    /// A look with a picture for the record; it is never acted on, so a failure to take it changes nothing.
    pub(crate) async fn snapshot(&mut self) -> Result<(), CollectError> {
        match self.capture(true).await {
            Ok(_) | Err(CollectError::Phone { .. }) => Ok(()),
            Err(other) => Err(other),
        }
    }

    async fn capture(&mut self, screenshot: bool) -> Result<Capture, CollectError> {
        self.looks += 1;
        let spent = self.ctx.clock.instant().saturating_duration_since(self.started);
        if self.looks > MAX_LOOKS || spent > MAX_RUN {
            return Err(CollectError::Timeout { step: self.step });
        }
        self.ctx.gate.before_action().await.map_err(CollectError::Stopped)?;
        let want = CaptureWant { screenshot, ..CaptureWant::anything() };
        let capture = read_again(self.ctx, || self.ctx.phone.capture(&want)).await.map_err(|source| self.phone_error(source))?;
        self.ctx.gate.captured(self.step, &capture).await;
        Ok(capture)
    }

    /// The goods the page on top names.
    pub(crate) async fn goods_on_top(&self) -> Result<Option<String>, CollectError> {
        read_again(self.ctx, || self.ctx.phone.goods_on_top()).await.map_err(|source| self.phone_error(source))
    }

    /// Why the goods page is not there: another app that came to the front goes away by itself or with the next link, an unknown page is a
    /// person's.
    pub(crate) fn astray(&self, seen: Screen) -> CollectError {
        match seen {
            Screen::Elsewhere | Screen::Home => self.phone_error(PhoneError::BadScreen { verdict: LookVerdict::WrongApp }),
            Screen::Goods
            | Screen::SkuSheet
            | Screen::OrderList
            | Screen::AbandonPopup
            | Screen::Popup
            | Screen::LoginWall
            | Screen::RiskWall
            | Screen::Unavailable
            | Screen::Unknown => self.unknown(),
        }
    }

    /// Does one action on this look. `Ok(Err(refused))`: the guard said no and the phone was not touched; look again before deciding.
    pub(crate) async fn try_act(&mut self, look: Look, action: Action) -> Result<Result<(), Refused>, CollectError> {
        self.actions += 1;
        if self.actions > MAX_ACTIONS {
            return Err(CollectError::Timeout { step: self.step });
        }
        self.ctx.gate.before_action().await.map_err(CollectError::Stopped)?;
        let now = self.ctx.clock.instant();
        let ticket = match check(look.capture, look.page.screen, action, self.size, self.ctx.rules.extra_patterns(), now) {
            Ok(ticket) => ticket,
            Err(refused) => return self.refused(refused),
        };
        match self.ctx.phone.act(ticket).await {
            Ok(()) => {
                self.pause(AFTER_ACTION).await;
                Ok(Ok(()))
            }
            Err(PhoneError::GuardRefused(refused)) => self.refused(refused),
            // Whether it was done is unknown, so the run ends rather than does it twice.
            Err(source) => Err(self.phone_error(source)),
        }
    }

    fn refused(&mut self, refused: Refused) -> Result<Result<(), Refused>, CollectError> {
        self.refusals += 1;
        tracing::debug!(step = self.step.as_str(), %refused, "the tap guard refused");
        if self.refusals > MAX_REFUSALS { Err(CollectError::Refused { step: self.step, refused }) } else { Ok(Err(refused)) }
    }

    /// Like [`Self::try_act`], where only an aged look or a changed foreground may be answered by looking again: `false` means do so.
    pub(crate) async fn act(&mut self, look: Look, action: Action) -> Result<bool, CollectError> {
        match self.try_act(look, action).await? {
            Ok(()) => Ok(true),
            Err(refused) if refused.is_recoverable() => Ok(false),
            Err(refused) => Err(CollectError::Refused { step: self.step, refused }),
        }
    }

    pub(crate) async fn tap(&mut self, look: Look, node: NodeId, at: Point) -> Result<bool, CollectError> {
        self.act(look, Action::Tap { node, at }).await
    }

    /// Swipes over half of `area`; `None` when the area is too small to swipe in safely.
    pub(crate) fn swipe_in(&self, area: Bounds, toward: Toward) -> Option<Action> {
        let (w, h) = (area.width(), area.height());
        let center = area.center();
        let far = |from: i32, size: i32, percent: i32| from + (i64::from(size) * i64::from(percent) / 100) as i32;
        let (from, to, travel) = match toward {
            Toward::Down => (Point { x: center.x, y: far(area.top, h, 82) }, Point { x: center.x, y: far(area.top, h, 34) }, h),
            Toward::Up => (Point { x: center.x, y: far(area.top, h, 22) }, Point { x: center.x, y: far(area.top, h, 70) }, h),
            Toward::Right => (Point { x: far(area.left, w, 85), y: center.y }, Point { x: far(area.left, w, 37), y: center.y }, w),
            Toward::Left => (Point { x: far(area.left, w, 22), y: center.y }, Point { x: far(area.left, w, 70), y: center.y }, w),
        };
        // 48 dp and a margin: a shorter swipe counts as a touch (D10).
        (travel * 48 / 100 > self.size.dp(56)).then_some(Action::Swipe { from, to, duration_ms: SWIPE_MS })
    }

    /// Closes a known layer: 先去逛逛 on the leaving question (the other button pays), the layer's own button or BACK elsewhere.
    pub(crate) async fn clear_layer(&mut self, look: Look) -> Result<(), CollectError> {
        self.layers += 1;
        if self.layers > MAX_LAYERS {
            return Err(self.unknown());
        }
        let action = match look.screen() {
            Screen::AbandonPopup => {
                let (node, at) = abandon_leave(look.tree(), self.ctx.rules).ok_or_else(|| self.unknown())?;
                Action::Tap { node, at }
            }
            _ if look.page.popup.is_some() => {
                let name = look.page.popup.clone().unwrap_or_default();
                match popup_close(look.tree(), &name, self.ctx.rules) {
                    Some((node, at)) => Action::Tap { node, at },
                    None => Action::Key(Key::Back),
                }
            }
            _ => Action::Key(Key::Back),
        };
        self.act(look, action).await?;
        Ok(())
    }

    /// Two looks in a row at the goods page that say the same.
    pub(crate) async fn settled_goods(&mut self) -> Result<(Look, GoodsPage), CollectError> {
        let mut rest = Agreement::within(SETTLE_LOOKS);
        let mut misses = 0;
        while rest.may_look() {
            let look = self.look().await?;
            match look.screen() {
                Screen::Goods => {
                    let page = read_goods(look.tree(), self.ctx.rules);
                    if let Some(page) = rest.offer(page, GoodsPage::agrees) {
                        return Ok((look, page));
                    }
                }
                Screen::AbandonPopup | Screen::Popup => {
                    self.clear_layer(look).await?;
                    rest.disturbed();
                }
                Screen::Elsewhere
                | Screen::Home
                | Screen::SkuSheet
                | Screen::OrderList
                | Screen::LoginWall
                | Screen::RiskWall
                | Screen::Unavailable
                | Screen::Unknown => {
                    misses += 1;
                    rest.disturbed();
                    if misses > 4 {
                        return Err(self.astray(look.screen()));
                    }
                }
            }
            self.pause(BETWEEN_LOOKS).await;
        }
        // What is read must have been seen twice; a page that never says the same twice is left to another run.
        Err(CollectError::PageUnreadable { what: "a moment of rest" })
    }

    /// Two looks in a row at the sheet that say the same.
    pub(crate) async fn settled_sheet(&mut self) -> Result<(Look, SkuSheet), CollectError> {
        let mut rest = Agreement::within(SETTLE_LOOKS);
        let mut fault = None;
        let mut misses = 0;
        while rest.may_look() {
            let look = self.look().await?;
            match look.screen() {
                Screen::SkuSheet => match read_sheet(look.tree(), self.ctx.rules) {
                    Ok(sheet) => {
                        if let Some(sheet) = rest.offer(sheet, SkuSheet::agrees) {
                            return Ok((look, sheet));
                        }
                        fault = None;
                    }
                    Err(why) => {
                        fault = Some(why);
                        rest.disturbed();
                    }
                },
                Screen::AbandonPopup | Screen::Popup => {
                    self.clear_layer(look).await?;
                    rest.disturbed();
                }
                Screen::Elsewhere
                | Screen::Home
                | Screen::Goods
                | Screen::OrderList
                | Screen::LoginWall
                | Screen::RiskWall
                | Screen::Unavailable
                | Screen::Unknown => {
                    misses += 1;
                    rest.disturbed();
                    if misses > 3 {
                        return Err(CollectError::SheetLost);
                    }
                }
            }
            self.pause(BETWEEN_LOOKS).await;
        }
        Err(fault.map_or(CollectError::SheetUnsteady, |source| CollectError::SheetUnreadable { source }))
    }
}

/// Asks the phone something, again when the connection broke under the question.
async fn read_again<T, F>(ctx: &CollectContext<'_>, ask: impl Fn() -> F) -> Result<T, PhoneError>
where
    F: Future<Output = Result<T, PhoneError>>,
{
    for _ in 1..MAX_BREAKS {
        match ask().await {
            Err(PhoneError::Link { what, source }) => tracing::info!(what, %source, "the phone broke off; asking again"),
            answered => return answered,
        }
        ctx.clock.pause(AFTER_BREAK).await;
    }
    ask().await
}
