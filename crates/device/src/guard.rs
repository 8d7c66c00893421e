//! The tap guard: the one function between a decision and the glass (D10).
//!
//! Every tap, swipe, key, text and link of the product becomes a [`Ticket`] here or is refused with a reason.
//! Paying is refused whatever the caller believes about the page; ordering needs an [`OrderPermit`], which is good for one tap.
//! It reads no clock and touches no phone.

mod action;
mod patterns;
mod permit;
mod sheet;
mod zones;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use action::{Action, BadGoodsId, GoodsId, Key, OrderList, Quantity, Screen};
pub use patterns::ExtraPatterns;
pub use permit::{Beat, Evidence, LiveBinding, Mark, Mode, NoPermit, OrderPermit, permit};

use crate::capture::{Capture, CaptureId, Foreground, Verdict};
use crate::phone::{PDD_PACKAGE, PDD_PACKAGE_HOS, ScreenSize};
use crate::tree::{Node, NodeId, Point, UiTree};
use patterns::Kind;
use zones::Zones;

/// A look older than this, counted from the end of its dump, is not acted on.
pub const MAX_CAPTURE_AGE: Duration = Duration::from_secs(3);
/// A swipe shorter than this can be taken for a tap.
const TAP_LIKE_DP: u32 = 48;
/// A swipe held longer than this can be taken for a long press.
const TAP_LIKE_MS: u32 = 400;
/// Nothing useful is slower, and the phone is blocked meanwhile.
const MAX_SWIPE_MS: u32 = 5_000;
/// How far from everything that pays a card of the order list may be touched.
const CARD_MARGIN_DP: u32 = 24;

/// Leave to do one action on one phone, good until 3 s after the look it was decided on.
/// Not `Clone`, made only by [`check`], consumed by `Phone::act`.
#[derive(Debug)]
#[must_use = "a ticket does nothing until Phone::act takes it"]
pub struct Ticket {
    capture: CaptureId,
    serial: Arc<str>,
    /// `None` for the two ways out after an order: a payment layer that comes in front must not bar them.
    foreground: Option<Foreground>,
    dump_ended: Instant,
    command: Command,
}

/// What the phone is told. Private to the crate: nobody else can make one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Tap(Point),
    Swipe { from: Point, to: Point, duration_ms: u32 },
    Key(Key),
    TypeQuantity(Quantity),
    OpenGoods(GoodsId),
    OpenOrders(OrderList),
}

impl Ticket {
    /// The look this action was decided on.
    pub fn capture(&self) -> CaptureId {
        self.capture
    }

    /// The last moment at which it may be used.
    pub fn deadline(&self) -> Instant {
        self.dump_ended + MAX_CAPTURE_AGE
    }

    pub(crate) fn command(&self) -> &Command {
        &self.command
    }

    /// The second half of the guard, run by the phone just before sending.
    ///
    /// The serial is compared by identity, not by text: a look at another phone object of the same name,
    /// a scripted one above all, is not a look at this one.
    pub(crate) fn still_valid(&self, serial: &Arc<str>, foreground: &Foreground, now: Instant) -> Result<(), Refused> {
        let refuse = |reason| Err(Refused { reason, capture: self.capture, node: None });
        if !Arc::ptr_eq(&self.serial, serial) {
            return refuse(RefusedReason::WrongPhone);
        }
        if let Some(expected) = self.foreground.as_ref().filter(|expected| *expected != foreground) {
            return refuse(RefusedReason::ForegroundChanged { expected: expected.to_string(), found: foreground.to_string() });
        }
        let age = now.saturating_duration_since(self.dump_ended);
        if age > MAX_CAPTURE_AGE {
            return refuse(RefusedReason::TooOld { age_ms: age.as_millis() as u64 });
        }
        Ok(())
    }
}

/// Why an action was not allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefusedReason {
    #[error("the look is {age_ms} ms old, more than 3 s")]
    TooOld { age_ms: u64 },
    #[error("the look has verdict {0}")]
    BadVerdict(Verdict),
    #[error("the page {0} allows no such action")]
    ActionNotForScreen(Screen),
    #[error("{package} is in front, not pinduoduo")]
    ForeignApp { package: String },
    #[error("the node is not part of the look")]
    NoSuchNode,
    #[error("the node belongs to {package}, not to pinduoduo")]
    ForeignNode { package: String },
    #[error("the point lies outside the node it was meant for")]
    OutsideNode,
    #[error("the point lies outside the screen")]
    OffScreen,
    #[error("a payment control is there: {label:?}")]
    PaymentNode { label: String },
    #[error("an order-submit control is there: {label:?}")]
    SubmitNode { label: String },
    #[error("a buy button is there: {label:?}")]
    BuyButton { label: String },
    #[error("the point is at or below the payment row of the checkout sheet (from y {top})")]
    CheckoutZone { top: i32 },
    #[error("a payment or submit control without bounds is on the page, so no point is safe: {label:?}")]
    UnplacedPaymentNode { label: String },
    #[error("digits may only go into the focused quantity field of the checkout sheet")]
    NotTheQuantityField,
    #[error("an order may exist: only HOME and the order list are open")]
    OnlyTheWayOut,
    #[error("the order permit is for another look")]
    PermitForAnotherLook,
    #[error("a swipe must last 1 to 5000 ms")]
    SwipeDuration,
    #[error("the foreground changed from {expected} to {found}")]
    ForegroundChanged { expected: String, found: String },
    #[error("the ticket is for another phone")]
    WrongPhone,
}

/// A refusal, with what it was decided on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub reason: RefusedReason,
    pub capture: CaptureId,
    /// The node that caused it, when one did.
    pub node: Option<NodeId>,
}

impl Refused {
    /// Whether looking again may help. A forbidden control stays forbidden.
    pub fn is_recoverable(&self) -> bool {
        match self.reason {
            RefusedReason::TooOld { .. }
            | RefusedReason::BadVerdict(_)
            | RefusedReason::ForeignApp { .. }
            | RefusedReason::ForegroundChanged { .. } => true,
            RefusedReason::ActionNotForScreen(_)
            | RefusedReason::NoSuchNode
            | RefusedReason::ForeignNode { .. }
            | RefusedReason::OutsideNode
            | RefusedReason::OffScreen
            | RefusedReason::PaymentNode { .. }
            | RefusedReason::SubmitNode { .. }
            | RefusedReason::BuyButton { .. }
            | RefusedReason::CheckoutZone { .. }
            | RefusedReason::UnplacedPaymentNode { .. }
            | RefusedReason::NotTheQuantityField
            | RefusedReason::OnlyTheWayOut
            | RefusedReason::PermitForAnotherLook
            | RefusedReason::SwipeDuration
            | RefusedReason::WrongPhone => false,
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.reason, self.capture)
    }
}

impl std::error::Error for Refused {}

/// Decides whether `action` may follow from `capture`, which is used up either way.
///
/// `screen` is what the recogniser made of the tree; the payment rules do not depend on it.
/// `extra` only adds patterns. `now` comes from the caller's clock.
pub fn check(
    capture: Capture,
    screen: Screen,
    action: Action,
    size: ScreenSize,
    extra: &ExtraPatterns,
    now: Instant,
) -> Result<Ticket, Refused> {
    issue(capture, action, |capture, action| decide(capture, screen, action, size, extra, now))
}

/// The same for a phone on which an order may exist (D10): HOME and the order list are open under any verdict and from any page;
/// touching waits until the order list is recognised, and nothing leads back to goods.
pub fn check_after_order(
    capture: Capture,
    screen: Screen,
    action: Action,
    size: ScreenSize,
    extra: &ExtraPatterns,
    now: Instant,
) -> Result<Ticket, Refused> {
    issue(capture, action, |capture, action| match action {
        Action::Key(Key::Home) => fresh(capture, now).map(|()| Command::Key(Key::Home)),
        Action::OpenOrders(list) => fresh(capture, now).map(|()| Command::OpenOrders(list)),
        Action::Key(Key::Wakeup) => decide(capture, screen, action, size, extra, now),
        Action::Tap { .. } | Action::Swipe { .. } | Action::Key(Key::Back) if screen == Screen::OrderList => {
            decide(capture, screen, action, size, extra, now)
        }
        Action::Tap { .. } | Action::Swipe { .. } | Action::Key(Key::Back) | Action::TypeQuantity { .. } | Action::OpenGoods(_) => {
            Err((RefusedReason::OnlyTheWayOut, None))
        }
    })
    .map(|ticket| match ticket.command {
        Command::Key(Key::Home) | Command::OpenOrders(_) => Ticket { foreground: None, ..ticket },
        Command::Tap(_) | Command::Swipe { .. } | Command::Key(_) | Command::TypeQuantity(_) | Command::OpenGoods(_) => ticket,
    })
}

/// The one tap that creates an order, on the look its permit was made for. Where it goes down is the permit's, not the caller's.
pub fn check_submit(
    capture: Capture,
    permit: OrderPermit,
    size: ScreenSize,
    extra: &ExtraPatterns,
    now: Instant,
) -> Result<Ticket, Refused> {
    issue(capture, permit, |capture, permit| {
        if permit.capture() != capture.id || !Arc::ptr_eq(permit.serial(), &capture.serial) {
            return Err((RefusedReason::PermitForAnotherLook, None));
        }
        fresh(capture, now)?;
        if capture.verdict != Verdict::Ok {
            return Err((RefusedReason::BadVerdict(capture.verdict), None));
        }
        in_pinduoduo(&capture.foreground)?;
        let at = permit.at();
        on_screen(size, &capture.tree, at)?;
        let zones = Zones::of(&capture.tree, size, extra);
        zones.placed()?;
        zones.submit_at(&capture.tree, permit.node(), at)?;
        Ok(Command::Tap(at))
    })
}

type Refusal = (RefusedReason, Option<NodeId>);

/// Makes the ticket or the refusal; the capture is gone either way.
fn issue<A>(capture: Capture, what: A, decide: impl FnOnce(&Capture, A) -> Result<Command, Refusal>) -> Result<Ticket, Refused> {
    let id = capture.id;
    let command = decide(&capture, what).map_err(|(reason, node)| Refused { reason, capture: id, node })?;
    let foreground = Some(capture.foreground);
    Ok(Ticket { capture: id, serial: capture.serial, foreground, dump_ended: capture.dump_ended, command })
}

fn fresh(capture: &Capture, now: Instant) -> Result<(), Refusal> {
    let age = now.saturating_duration_since(capture.dump_ended);
    if age > MAX_CAPTURE_AGE { Err((RefusedReason::TooOld { age_ms: age.as_millis() as u64 }, None)) } else { Ok(()) }
}

fn decide(
    capture: &Capture,
    screen: Screen,
    action: Action,
    size: ScreenSize,
    extra: &ExtraPatterns,
    now: Instant,
) -> Result<Command, Refusal> {
    fresh(capture, now)?;
    // A sleeping phone has no tree, and WAKEUP presses nothing; without this it could never be woken (D19).
    let waking = matches!(action, Action::Key(Key::Wakeup))
        && matches!(capture.verdict, Verdict::TreeEmpty | Verdict::SecureOrBlack | Verdict::NeverIdle | Verdict::WrongApp);
    if capture.verdict != Verdict::Ok && !waking {
        return Err((RefusedReason::BadVerdict(capture.verdict), None));
    }
    if !screen.allows(&action) {
        return Err((RefusedReason::ActionNotForScreen(screen), None));
    }
    match action {
        Action::Key(Key::Back) => {
            in_pinduoduo(&capture.foreground)?;
            Ok(Command::Key(Key::Back))
        }
        Action::Key(key @ (Key::Home | Key::Wakeup)) => Ok(Command::Key(key)),
        Action::OpenGoods(goods) => Ok(Command::OpenGoods(goods)),
        Action::OpenOrders(list) => Ok(Command::OpenOrders(list)),
        Action::TypeQuantity { node, quantity } => {
            let target = pinduoduo_node(capture, node)?;
            if !sheet::is_quantity_field(target) {
                return Err((RefusedReason::NotTheQuantityField, Some(node)));
            }
            Ok(Command::TypeQuantity(quantity))
        }
        Action::Tap { node, at } => {
            let target = pinduoduo_node(capture, node)?;
            if !target.bounds().contains(at) {
                return Err((RefusedReason::OutsideNode, Some(node)));
            }
            on_screen(size, &capture.tree, at)?;
            let zones = Zones::of(&capture.tree, size, extra);
            zones.placed()?;
            if screen == Screen::OrderList && zones.is_order_list() && zones::is_card_part(target, at) {
                zones.card_at(&capture.tree, at, size.dp(CARD_MARGIN_DP))?;
            } else {
                zones.tap_at(&capture.tree, at)?;
            }
            Ok(Command::Tap(at))
        }
        Action::Swipe { from, to, duration_ms } => {
            in_pinduoduo(&capture.foreground)?;
            if duration_ms == 0 || duration_ms > MAX_SWIPE_MS {
                return Err((RefusedReason::SwipeDuration, None));
            }
            on_screen(size, &capture.tree, from)?;
            on_screen(size, &capture.tree, to)?;
            let zones = Zones::of(&capture.tree, size, extra);
            zones.placed()?;
            zones.start_at(&capture.tree, from)?;
            let length = f64::from(from.x - to.x).hypot(f64::from(from.y - to.y));
            if length < f64::from(size.dp(TAP_LIKE_DP)) || duration_ms > TAP_LIKE_MS {
                zones.tap_at(&capture.tree, from)?;
            }
            Ok(Command::Swipe { from, to, duration_ms })
        }
    }
}

/// The node, when Pinduoduo is in front and the node is its own.
fn pinduoduo_node(capture: &Capture, node: NodeId) -> Result<Node<'_>, Refusal> {
    in_pinduoduo(&capture.foreground)?;
    let target = capture.tree.get(node).ok_or((RefusedReason::NoSuchNode, Some(node)))?;
    let package = target.package();
    if !package.is_empty() && !is_pinduoduo(package) {
        return Err((RefusedReason::ForeignNode { package: package.to_owned() }, Some(node)));
    }
    Ok(target)
}

fn is_pinduoduo(package: &str) -> bool {
    package == PDD_PACKAGE || package == PDD_PACKAGE_HOS
}

fn in_pinduoduo(foreground: &Foreground) -> Result<(), Refusal> {
    if is_pinduoduo(&foreground.package) { Ok(()) } else { Err((RefusedReason::ForeignApp { package: foreground.package.clone() }, None)) }
}

fn on_screen(size: ScreenSize, tree: &UiTree, at: Point) -> Result<(), Refusal> {
    if size.contains(at, tree.rotation()) { Ok(()) } else { Err((RefusedReason::OffScreen, None)) }
}

impl Kind {
    fn refusal(self, label: &str) -> RefusedReason {
        // A label may be a whole page joined together; the reason is for reading.
        let label: String = label.chars().take(40).collect();
        match self {
            Kind::Payment => RefusedReason::PaymentNode { label },
            Kind::Submit => RefusedReason::SubmitNode { label },
            Kind::Buy => RefusedReason::BuyButton { label },
        }
    }
}
