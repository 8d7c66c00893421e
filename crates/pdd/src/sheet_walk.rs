//! Walking the SKU sheet: every chip of every choice is seen, every colour is chosen once, and its price is read.
//!
//! A chip that is chosen already is not touched again, that would undo it. A colour that cannot be chosen or shows no single price keeps
//! none (03 §8.1). Sizes are only read.

use std::time::Duration;

use cmautobuy_device::{Action, Bounds, Point};

use crate::error::CollectError;
use crate::price::{HeaderPrice, Price};
use crate::rules::RulePack;
use crate::session::{STILL_SWIPES, Session, Toward};
use crate::sku_sheet::{Chip, SheetFault, SkuSheet};
use crate::text::fold;

/// Touches per colour and round; each on a look of its own.
const CHIP_TAPS: u32 = 3;
/// Settled looks at a chosen colour until its price is given up: headers bind late (facts/pdd §6).
const PRICE_LOOKS: u32 = 3;
const MAX_SWIPES: u32 = 90;
const PRICE_PAUSE: Duration = Duration::from_millis(300);

/// Everything the sheet offers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Choices {
    pub(crate) dimensions: Vec<Choice>,
    /// Which choice the price hangs on: the colour, else the first.
    pub(crate) priced: Option<usize>,
    /// The price when there is no choice at all.
    pub(crate) plain: Option<Seen>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) name: String,
    pub(crate) values: Vec<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) text: String,
    pub(crate) truncated: bool,
    pub(crate) available: Option<bool>,
    pub(crate) price: Quest,
}

/// How far the search for a value's price is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Quest {
    Open {
        taps: u32,
        looks: u32,
    },
    Found(Seen),
    /// Touched and never seen chosen: the touches may have been lost.
    Refused,
    /// Chosen, and the header never showed an amount.
    Blank,
    GivenUp,
}

/// A price as seen with its value chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) price: Price,
    pub(crate) list: Option<Price>,
}

impl Choices {
    /// Goods without a choice.
    pub(crate) fn none(price: Option<Price>) -> Self {
        Self { plain: price.map(|price| Seen { price, list: None }), ..Self::default() }
    }

    /// Adds what a look shows. Returns whether any choice had chips known before: looks that share nothing may have skipped some.
    fn merge(&mut self, sheet: &SkuSheet) -> bool {
        let mut overlaps = self.dimensions.is_empty();
        for shown in &sheet.dimensions {
            let at = self.index_of(&shown.name, &shown.chips);
            let at = at.unwrap_or_else(|| {
                self.dimensions.push(Choice { name: shown.name.clone(), values: Vec::new() });
                self.dimensions.len() - 1
            });
            for chip in &shown.chips {
                overlaps |= self.dimensions[at].add(chip);
            }
        }
        overlaps
    }

    fn index_of(&self, name: &str, chips: &[Chip]) -> Option<usize> {
        if !name.is_empty() {
            let named = self.dimensions.iter().position(|one| fold(&one.name) == fold(name));
            // The title of a list first met half scrolled away may come into sight later.
            return named.or_else(|| {
                self.dimensions.iter().position(|one| one.name.is_empty() && chips.iter().any(|chip| one.find(chip).is_some()))
            });
        }
        let sharing = self.dimensions.iter().position(|one| chips.iter().any(|chip| one.find(chip).is_some()));
        sharing.or(self.dimensions.len().checked_sub(1))
    }

    /// The colour by name, best pattern first, else the first choice.
    fn choose_priced(&self, rules: &RulePack) -> Option<usize> {
        self.color(rules).or(if self.dimensions.is_empty() { None } else { Some(0) })
    }

    /// Opens the search again for values that were touched and never seen chosen; `false` when there are none.
    fn reopen(&mut self) -> bool {
        let mut any = false;
        for value in self.dimensions.iter_mut().flat_map(|one| &mut one.values).filter(|value| value.price == Quest::Refused) {
            value.price = Quest::Open { taps: 0, looks: 0 };
            any = true;
        }
        any
    }

    pub(crate) fn any_refused(&self) -> bool {
        self.dimensions.iter().flat_map(|one| &one.values).any(|value| value.price == Quest::Refused)
    }

    /// Something could be chosen, and every attempt came to nothing at all.
    fn is_mute(&self) -> bool {
        let values = || self.priced.iter().flat_map(|at| &self.dimensions[*at].values);
        values().any(|value| matches!(value.price, Quest::Refused | Quest::Blank))
            && values().all(|value| matches!(value.price, Quest::Refused | Quest::Blank | Quest::Open { .. }))
    }

    fn any_price(&self) -> bool {
        self.dimensions.iter().flat_map(|one| &one.values).any(|value| matches!(value.price, Quest::Found(_)))
    }

    pub(crate) fn color(&self, rules: &RulePack) -> Option<usize> {
        by_patterns(&self.dimensions, &rules.sheet.color_names)
    }
}

/// The first choice that matches the first pattern that matches any.
pub(crate) fn by_patterns(dimensions: &[Choice], patterns: &[regex::Regex]) -> Option<usize> {
    patterns.iter().find_map(|pattern| dimensions.iter().position(|one| pattern.is_match(&fold(&one.name))))
}

impl Choice {
    fn find(&self, chip: &Chip) -> Option<usize> {
        let text = fold(&chip.text);
        self.values.iter().position(|value| {
            let known = fold(&value.text);
            known == text || (chip.truncated && known.starts_with(&text)) || (value.truncated && text.starts_with(&known))
        })
    }

    /// `true` when the value was known.
    fn add(&mut self, chip: &Chip) -> bool {
        match self.find(chip) {
            Some(at) => {
                let value = &mut self.values[at];
                if value.truncated && !chip.truncated {
                    value.text.clone_from(&chip.text);
                    value.truncated = false;
                }
                // One combination may be sold out while the value is not: available once is available.
                value.available = match (value.available, chip.available) {
                    (Some(a), Some(b)) => Some(a || b),
                    (known, None) => known,
                    (None, seen) => seen,
                };
                true
            }
            None => {
                self.values.push(Value {
                    text: chip.text.clone(),
                    truncated: chip.truncated,
                    available: chip.available,
                    price: Quest::Open { taps: 0, looks: 0 },
                });
                false
            }
        }
    }
}

/// What the walk is doing. With a colour in sight it collects at once; otherwise it looks through the whole sheet first, because a
/// colour further down would carry the price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Discover,
    Rewind,
    Collect,
}

/// A place to swipe and what is known about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lane {
    /// A choice's own list, by index.
    List(usize),
    Panel,
}

/// How often in a row each lane stood still after a swipe.
#[derive(Debug, Default)]
struct Exhausted(Vec<(Lane, Toward, u32)>);

impl Exhausted {
    fn has(&self, lane: Lane, toward: Toward) -> bool {
        self.0.iter().any(|(of, way, still)| (*of, *way) == (lane, toward) && *still >= STILL_SWIPES)
    }

    fn moved(&mut self, lane: Lane, toward: Toward) {
        self.0.retain(|(of, way, _)| (*of, *way) != (lane, toward));
    }

    fn stood_still(&mut self, lane: Lane, toward: Toward, times: u32) {
        match self.0.iter_mut().find(|(of, way, _)| (*of, *way) == (lane, toward)) {
            Some((_, _, still)) => *still += times,
            None => self.0.push((lane, toward, times)),
        }
    }
}

type View = Vec<(String, Bounds)>;

/// Walks an open sheet. The sheet stays open.
pub(crate) async fn walk(session: &mut Session<'_>) -> Result<Choices, CollectError> {
    let mut choices = Choices::default();
    let mut phase = None;
    let mut done = Exhausted::default();
    let mut swiped: Option<(Lane, Toward, View)> = None;
    let mut swipes = 0;
    let mut forbidden = None;
    let mut second_round = false;
    // Each turn looks, taps or swipes once; the session's budgets end it if nothing else does.
    loop {
        let (look, sheet) = session.settled_sheet().await?;
        let overlaps = choices.merge(&sheet);
        let view = view_of(&sheet);
        if let Some((lane, toward, before)) = swiped.take() {
            if before == view {
                done.stood_still(lane, toward, 1);
            } else {
                done.moved(lane, toward);
            }
            if before != view && !overlaps {
                // Nothing in common with the look before: go back half a step, what was skipped lies there.
                let back = opposite(toward);
                tracing::debug!(?lane, ?toward, "a swipe went further than one view");
                let allowed = !done.has(lane, back) && swipes < MAX_SWIPES;
                if allowed && let Some(action) = short_swipe(session, &sheet, lane, back, &choices) {
                    swipes += 1;
                    if let Err(refused) = session.try_act(look, action).await? {
                        tracing::debug!(%refused, "no way back");
                    }
                    continue;
                }
            }
        }
        let current = *phase.get_or_insert_with(|| first_phase(&choices, &sheet, session.ctx.rules));
        if current == Phase::Collect {
            choices.priced = choices.choose_priced(session.ctx.rules);
            if choices.dimensions.is_empty() {
                if sheet.asks_to_choose(session.ctx.rules) {
                    return Err(CollectError::SheetUnreadable { source: SheetFault::NoChoices });
                }
                choices.plain = seen(&sheet.header);
                return Ok(choices);
            }
            match next_touch(&mut choices, &sheet, session.ctx.rules) {
                Touch::Wait => {
                    session.pause(PRICE_PAUSE).await;
                    continue;
                }
                Touch::Chip { at, action } => {
                    match session.try_act(look, action).await? {
                        Ok(()) => {}
                        // The guard's word on this spot is final; an old look is not.
                        Err(refused) => {
                            give_back(&mut choices, at, refused.is_recoverable());
                            forbidden = (!refused.is_recoverable()).then_some(refused).or(forbidden);
                        }
                    }
                    continue;
                }
                Touch::Nothing => {}
            }
        }
        match next_swipe(session, current, &sheet, &choices, &done) {
            Some((lane, toward, action)) if swipes < MAX_SWIPES => {
                swipes += 1;
                match session.try_act(look, action).await? {
                    Ok(()) => swiped = Some((lane, toward, view)),
                    Err(refused) if refused.is_recoverable() => {}
                    // Something forbidden lies where the finger would start: this lane stays as it is.
                    Err(_) => done.stood_still(lane, toward, STILL_SWIPES),
                }
            }
            Some(_) => return Err(CollectError::Timeout { step: session.step }),
            None => match current {
                Phase::Discover => phase = Some(Phase::Rewind),
                Phase::Rewind => {
                    phase = Some(Phase::Collect);
                    done = Exhausted::default();
                }
                // Touches may have been lost: once more for what was never seen chosen.
                Phase::Collect if !second_round && choices.reopen() => {
                    second_round = true;
                    phase = Some(Phase::Rewind);
                    done = Exhausted::default();
                }
                // A phone whose touches, trees or prices do not arrive, not a sheet without prices.
                Phase::Collect if choices.is_mute() => return Err(CollectError::Timeout { step: session.step }),
                Phase::Collect => {
                    return match forbidden {
                        // One odd chip costs its price; a sheet where every touch is forbidden is not the sheet we know.
                        Some(refused) if !choices.any_price() => Err(CollectError::Refused { step: session.step, refused }),
                        Some(_) | None => Ok(choices),
                    };
                }
            },
        }
    }
}

fn first_phase(choices: &Choices, sheet: &SkuSheet, rules: &RulePack) -> Phase {
    if choices.color(rules).is_some() || !sheet.reaches_bottom { Phase::Collect } else { Phase::Discover }
}

fn view_of(sheet: &SkuSheet) -> View {
    sheet.dimensions.iter().flat_map(|d| d.chips.iter()).map(|chip| (chip.text.clone(), chip.bounds)).collect()
}

fn opposite(toward: Toward) -> Toward {
    match toward {
        Toward::Down => Toward::Up,
        Toward::Up => Toward::Down,
        Toward::Right => Toward::Left,
        Toward::Left => Toward::Right,
    }
}

fn seen(header: &HeaderPrice) -> Option<Seen> {
    match header {
        HeaderPrice::Single { price, list } => Some(Seen { price: price.clone(), list: list.clone() }),
        HeaderPrice::Missing | HeaderPrice::Open { .. } | HeaderPrice::Ambiguous { .. } => None,
    }
}

enum Touch {
    /// Look again: the header may still be binding.
    Wait,
    Chip {
        at: (usize, usize),
        action: Action,
    },
    Nothing,
}

/// Records what the look proves about the priced choice, and says which chip to touch next.
fn next_touch(choices: &mut Choices, sheet: &SkuSheet, rules: &RulePack) -> Touch {
    let Some(priced) = choices.priced else { return Touch::Nothing };
    for shown in &sheet.dimensions {
        if choices.index_of(&shown.name, &shown.chips) != Some(priced) {
            continue;
        }
        let choice = &mut choices.dimensions[priced];
        for chip in shown.chips.iter().filter(|chip| chip.selected) {
            let Some(at) = choice.find(chip) else { continue };
            let value = &mut choice.values[at];
            let Quest::Open { taps, looks } = value.price else { continue };
            let proven = if sheet.confirms(&choice.name, chip, rules) { seen(&sheet.header) } else { None };
            match proven {
                Some(seen) => value.price = Quest::Found(seen),
                None if looks + 1 < PRICE_LOOKS => {
                    value.price = Quest::Open { taps, looks: looks + 1 };
                    return Touch::Wait;
                }
                None if sheet.header == HeaderPrice::Missing => value.price = Quest::Blank,
                None => value.price = Quest::GivenUp,
            }
        }
        for chip in shown.chips.iter().filter(|chip| !chip.selected) {
            let Some(at) = choice.find(chip) else { continue };
            let value = &mut choice.values[at];
            let Quest::Open { taps, looks } = value.price else { continue };
            // Sold out is not selectable; on some builds touching it asks to be notified.
            if chip.available == Some(false) {
                continue;
            }
            let Some((node, point)) = chip.tap.filter(|(_, point)| point.y < sheet.payment_top) else { continue };
            if taps >= CHIP_TAPS {
                value.price = Quest::Refused;
                continue;
            }
            value.price = Quest::Open { taps: taps + 1, looks };
            return Touch::Chip { at: (priced, at), action: Action::Tap { node, at: point } };
        }
    }
    Touch::Nothing
}

/// The chip was not touched after all.
fn give_back(choices: &mut Choices, (dimension, value): (usize, usize), again: bool) {
    let value = &mut choices.dimensions[dimension].values[value];
    value.price = match value.price {
        Quest::Open { taps, looks } if again => Quest::Open { taps: taps.saturating_sub(1), looks },
        Quest::Open { .. } | Quest::Refused | Quest::Blank | Quest::GivenUp => Quest::GivenUp,
        Quest::Found(ref seen) => Quest::Found(seen.clone()),
    };
}

fn next_swipe(
    session: &Session<'_>,
    phase: Phase,
    sheet: &SkuSheet,
    choices: &Choices,
    done: &Exhausted,
) -> Option<(Lane, Toward, Action)> {
    let panel = |toward: Toward| {
        if done.has(Lane::Panel, toward) {
            return None;
        }
        session.swipe_in(panel_area(sheet), toward).map(|action| (Lane::Panel, toward, action))
    };
    match phase {
        Phase::Discover => panel(Toward::Down),
        Phase::Rewind => panel(Toward::Up),
        Phase::Collect => {
            for shown in &sheet.dimensions {
                let Some(at) = choices.index_of(&shown.name, &shown.chips) else { continue };
                let Some(list) = shown.list.filter(|list| list.scrollable || list.cut_sideways) else { continue };
                let lane = Lane::List(at);
                let sideways = [Toward::Right, Toward::Left];
                let along = [Toward::Down];
                // Only a list that says it scrolls is also tried downward; the panel moves anyway.
                let ways = sideways.iter().chain(if list.scrollable { along.iter() } else { [].iter() });
                for toward in ways {
                    if done.has(lane, *toward) {
                        continue;
                    }
                    if let Some(action) = session.swipe_in(list.bounds, *toward) {
                        return Some((lane, *toward, action));
                    }
                }
            }
            if sheet.reaches_bottom { panel(Toward::Down) } else { None }
        }
    }
}

fn panel_area(sheet: &SkuSheet) -> Bounds {
    let region = sheet.region;
    // A margin above the payment row: a finger that slips must not land on it.
    Bounds::new(region.left, region.top, region.right, region.bottom - region.height() / 20)
}

/// Half of an ordinary swipe in the lane's area.
fn short_swipe(session: &Session<'_>, sheet: &SkuSheet, lane: Lane, toward: Toward, choices: &Choices) -> Option<Action> {
    let area = match lane {
        Lane::Panel => panel_area(sheet),
        Lane::List(at) => sheet.dimensions.iter().find(|shown| choices.index_of(&shown.name, &shown.chips) == Some(at))?.list?.bounds,
    };
    let Action::Swipe { from, to, duration_ms } = session.swipe_in(area, toward)? else { return None };
    let half = Point { x: from.x + (to.x - from.x) * 3 / 5, y: from.y + (to.y - from.y) * 3 / 5 };
    Some(Action::Swipe { from, to: half, duration_ms })
}
