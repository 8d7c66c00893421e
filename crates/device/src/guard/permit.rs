//! The one leave to create an order, and everything that must hold for it (D10).
//!
//! Only the live gate of `engine` may name [`Evidence`]. What the screen can say is read here from both looks, not believed; what only the
//! engine knows is stated field by field. The permit is not `Clone`, is good for 3 s and one tap, and never for a control that pays.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::patterns::normalise;
use super::sheet::{Sheet, Unreadable};
use super::{GoodsId, MAX_CAPTURE_AGE, Quantity, in_pinduoduo};
use crate::capture::{Capture, CaptureId, Verdict};
use crate::tree::{NodeId, Point};

/// The lease must outlive the tap, the answer and the report.
const MIN_LEASE: Duration = Duration::from_secs(20);
/// A heartbeat older than this may hide a cancel.
const MAX_BEAT_AGE: Duration = Duration::from_secs(5);
/// The look that must be agreed with may not be of another time.
const MAX_BETWEEN_LOOKS: Duration = Duration::from_secs(10);
/// Ways to pay without a further question, or to order without paying now. None may be anywhere on the screen.
const FORBIDDEN: [&str; 6] = ["免密", "余额", "多多支付", "先用后付", "0元下单", "确认收货后付款"];

/// `execution_mode` of the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    DryRun,
    Live,
}

/// `purchase.live_enabled`, as the operator confirmed it.
#[derive(Clone, Copy, Debug)]
pub struct LiveBinding<'a> {
    pub client_id: &'a str,
    pub phone_serial: &'a str,
    /// The ceremony recorded that 免密 and 先用后付 are off in Pinduoduo, WeChat and Alipay.
    pub ceremony_recorded: bool,
}

/// The heartbeat with `step=placing_order`.
#[derive(Clone, Copy, Debug)]
pub struct Beat {
    pub answered_at: Instant,
    pub cancel_requested: bool,
}

/// Where the mark "an order may exist" was committed.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    pub in_database: bool,
    pub in_credential_store: bool,
}

/// Everything a permit is decided on.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// An earlier look at the same sheet, which must agree.
    pub first: &'a Capture,
    /// The look that will be acted on.
    pub second: &'a Capture,
    pub mode: Mode,
    /// `automation.dry_run`.
    pub automation_dry_run: bool,
    pub client_id: &'a str,
    pub live_enabled: Option<LiveBinding<'a>>,
    pub goods_id: &'a GoodsId,
    /// Every option's wanted value.
    pub options: &'a [&'a str],
    pub quantity: Quantity,
    /// `safety.max_quantity`.
    pub max_quantity: u16,
    /// Of the selected value, as the flow read it from the header.
    pub unit_price_cent: u64,
    /// The task's.
    pub price_cent: u64,
    /// `safety.price_tolerance_cent`.
    pub price_tolerance_cent: u64,
    /// `None` is a refusal, not "any".
    pub max_price_cent: Option<u64>,
    /// Texts of payment rows the operator allows.
    pub allowed_payment_rows: &'a [&'a str],
    pub lease_left: Duration,
    pub beat: Option<Beat>,
    /// The unpaid list was read and its order numbers are stored.
    pub unpaid_orders_stored: bool,
    pub mark: Mark,
    pub now: Instant,
}

/// Why there is no permit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPermit {
    #[error("the task is not live")]
    NotLive,
    #[error("the client runs dry")]
    AutomationDryRun,
    #[error("live purchases are not enabled for this client and phone")]
    NotEnabledHere,
    #[error("the operator's confirmation is not recorded")]
    CeremonyMissing,
    #[error("the two looks are not of this sheet, one after the other")]
    LooksUnusable,
    #[error("the look is older than 3 s")]
    LookTooOld,
    #[error("the sheet cannot be read: {0}")]
    SheetUnreadable(&'static str),
    #[error("the two looks do not agree")]
    LooksDisagree,
    #[error("the page is of other goods: {found:?}")]
    OtherGoods { found: Option<String> },
    #[error("no option is stated")]
    NoOptions,
    #[error("option {value:?} is not chosen")]
    OptionNotChosen { value: String },
    #[error("the sheet says {found} pieces")]
    OtherQuantity { found: u64 },
    #[error("more pieces than allowed")]
    TooManyPieces,
    #[error("the task has no highest price")]
    NoHighestPrice,
    #[error("the unit price {cent} fen is above the highest")]
    TooExpensive { cent: u64 },
    #[error("the unit price {cent} fen is not within the tolerance")]
    PriceMoved { cent: u64 },
    #[error("the total {cent} fen is more than the pieces cost")]
    TotalTooHigh { cent: u64 },
    #[error("the total is nothing")]
    TotalIsZero,
    #[error("the payment row is not allowed: {row}")]
    PaymentRowNotAllowed { row: String },
    #[error("{word} is on the screen")]
    ForbiddenWord { word: &'static str },
    #[error("the lease has less than 20 s left")]
    LeaseShort,
    #[error("no fresh heartbeat says that the order is being placed")]
    NoFreshBeat,
    #[error("a cancel was requested")]
    CancelRequested,
    #[error("the unpaid orders are not stored")]
    UnpaidNotStored,
    #[error("the mark is not committed in both places")]
    MarkMissing,
}

/// Leave for one tap on one submit button, on one look.
#[derive(Debug)]
#[must_use = "a permit does nothing until check_submit takes it"]
pub struct OrderPermit {
    capture: CaptureId,
    serial: Arc<str>,
    node: NodeId,
    at: Point,
    total_cent: u64,
}

impl OrderPermit {
    /// Fen the button shows.
    pub fn total_cent(&self) -> u64 {
        self.total_cent
    }

    pub(super) fn capture(&self) -> CaptureId {
        self.capture
    }

    pub(super) fn serial(&self) -> &Arc<str> {
        &self.serial
    }

    pub(super) fn node(&self) -> NodeId {
        self.node
    }

    pub(super) fn at(&self) -> Point {
        self.at
    }
}

/// Gives the permit when every condition of D10 holds, else the first that does not.
///
/// # Errors
/// [`NoPermit`]; nothing was touched.
pub fn permit(evidence: Evidence<'_>) -> Result<OrderPermit, NoPermit> {
    may_order_at_all(&evidence)?;
    let sheet = agreed_sheet(&evidence)?;
    wanted_goods(&evidence, &sheet)?;
    price(&evidence, &sheet)?;
    way_of_paying(&evidence, &sheet)?;
    safe_to_lose_contact(&evidence)?;
    Ok(OrderPermit {
        capture: evidence.second.id,
        serial: Arc::clone(&evidence.second.serial),
        node: sheet.submit,
        at: sheet.submit_bounds.center(),
        total_cent: sheet.total_cent,
    })
}

fn ensure(holds: bool, otherwise: NoPermit) -> Result<(), NoPermit> {
    if holds { Ok(()) } else { Err(otherwise) }
}

fn may_order_at_all(evidence: &Evidence<'_>) -> Result<(), NoPermit> {
    ensure(evidence.mode == Mode::Live, NoPermit::NotLive)?;
    ensure(!evidence.automation_dry_run, NoPermit::AutomationDryRun)?;
    let binding = evidence.live_enabled.ok_or(NoPermit::NotEnabledHere)?;
    let here = binding.client_id == evidence.client_id && *binding.phone_serial == *evidence.second.serial;
    ensure(here && !binding.client_id.is_empty(), NoPermit::NotEnabledHere)?;
    ensure(binding.ceremony_recorded, NoPermit::CeremonyMissing)
}

fn agreed_sheet(evidence: &Evidence<'_>) -> Result<Sheet, NoPermit> {
    let (first, second) = (evidence.first, evidence.second);
    let usable = first.id < second.id
        && first.verdict == Verdict::Ok
        && second.verdict == Verdict::Ok
        && Arc::ptr_eq(&first.serial, &second.serial)
        && in_pinduoduo(&second.foreground).is_ok()
        && second.dump_ended.saturating_duration_since(first.dump_ended) <= MAX_BETWEEN_LOOKS;
    ensure(usable, NoPermit::LooksUnusable)?;
    ensure(evidence.now.saturating_duration_since(second.dump_ended) <= MAX_CAPTURE_AGE, NoPermit::LookTooOld)?;
    let read = |capture: &Capture| Sheet::read(&capture.tree).map_err(|what| NoPermit::SheetUnreadable(what.as_str()));
    let (before, now) = (read(first)?, read(second)?);
    ensure(before == now && first.foreground == second.foreground && first.goods_id == second.goods_id, NoPermit::LooksDisagree)?;
    Ok(now)
}

fn wanted_goods(evidence: &Evidence<'_>, sheet: &Sheet) -> Result<(), NoPermit> {
    let found = evidence.second.goods_id.clone();
    ensure(found.as_deref() == Some(evidence.goods_id.as_str()), NoPermit::OtherGoods { found })?;
    ensure(!evidence.options.is_empty(), NoPermit::NoOptions)?;
    if let Some(value) = evidence.options.iter().find(|value| !sheet.has_chosen(value)) {
        return Err(NoPermit::OptionNotChosen { value: (*value).to_owned() });
    }
    ensure(sheet.quantity == u64::from(evidence.quantity.pieces()), NoPermit::OtherQuantity { found: sheet.quantity })?;
    ensure(evidence.quantity.pieces() <= evidence.max_quantity, NoPermit::TooManyPieces)
}

fn price(evidence: &Evidence<'_>, sheet: &Sheet) -> Result<(), NoPermit> {
    let cent = evidence.unit_price_cent;
    let highest = evidence.max_price_cent.ok_or(NoPermit::NoHighestPrice)?;
    ensure(cent <= highest, NoPermit::TooExpensive { cent })?;
    ensure(cent.abs_diff(evidence.price_cent) <= evidence.price_tolerance_cent, NoPermit::PriceMoved { cent })?;
    let pieces_cost = cent.checked_mul(u64::from(evidence.quantity.pieces()));
    ensure(pieces_cost.is_some_and(|cost| sheet.total_cent <= cost), NoPermit::TotalTooHigh { cent: sheet.total_cent })?;
    // Something else than money would pay: a balance, a coupon, a later bill.
    ensure(sheet.total_cent > 0, NoPermit::TotalIsZero)
}

fn way_of_paying(evidence: &Evidence<'_>, sheet: &Sheet) -> Result<(), NoPermit> {
    let allowed = evidence.allowed_payment_rows.iter().map(|row| normalise(row)).any(|row| !row.is_empty() && row == sheet.payment_row);
    ensure(allowed, NoPermit::PaymentRowNotAllowed { row: sheet.payment_row.clone() })?;
    for capture in [evidence.first, evidence.second] {
        for text in capture.tree.distinct_texts().map(normalise) {
            if let Some(word) = FORBIDDEN.into_iter().find(|word| text.contains(word)) {
                return Err(NoPermit::ForbiddenWord { word });
            }
        }
    }
    Ok(())
}

fn safe_to_lose_contact(evidence: &Evidence<'_>) -> Result<(), NoPermit> {
    ensure(evidence.lease_left >= MIN_LEASE, NoPermit::LeaseShort)?;
    let beat = evidence.beat.ok_or(NoPermit::NoFreshBeat)?;
    ensure(evidence.now.saturating_duration_since(beat.answered_at) <= MAX_BEAT_AGE, NoPermit::NoFreshBeat)?;
    ensure(!beat.cancel_requested, NoPermit::CancelRequested)?;
    ensure(evidence.unpaid_orders_stored, NoPermit::UnpaidNotStored)?;
    ensure(evidence.mark.in_database && evidence.mark.in_credential_store, NoPermit::MarkMissing)
}

impl Unreadable {
    fn as_str(self) -> &'static str {
        match self {
            Unreadable::Submit => "the submit button",
            Unreadable::Amount => "the amount",
            Unreadable::PaymentRow => "the payment row",
            Unreadable::Quantity => "the quantity",
            Unreadable::Chosen => "what is chosen",
        }
    }
}
