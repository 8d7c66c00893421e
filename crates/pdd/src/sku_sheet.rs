//! What the SKU sheet says: the header's price, what is chosen, and every choice with its chips.
//!
//! The sheet is also the checkout, so nothing at or below the payment row is ever read as a chip (facts/pdd §3). Selling out is told by
//! text alone, never by enabled or clickable; being chosen by the chip or anything in it (facts/pdd §3.2).

use cmautobuy_device::{Bounds, Node, NodeId, Point, UiTree};

use crate::goods_page::has_id;
use crate::price::{HeaderPrice, read_header};
use crate::recognise::{app_nodes, extent};
use crate::rules::{RulePack, SheetRules};
use crate::text::{fold, half_width, trimmed};

/// Longest name of a choice, in characters; longer texts above chips are prose.
const NAME_CHARS: usize = 16;

/// Why a sheet cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SheetFault {
    #[error("the sheet shows neither its picture nor its selection line")]
    NoHeader,
    #[error("the sheet shows no payment row, so nobody knows where it is safe to touch")]
    NoPaymentRow,
    #[error("the sheet asks to choose but shows nothing to choose from")]
    NoChoices,
}

/// One look at the sheet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkuSheet {
    pub header: HeaderPrice,
    /// The selection line as shown: `已选: 雾霾蓝` or `请选择：颜色分类 尺码`.
    pub selected_text: Option<String>,
    pub dimensions: Vec<SheetDimension>,
    /// Between the header and the payment row.
    pub region: Bounds,
    /// Nothing at or below this may be touched.
    pub payment_top: i32,
    pub close: Option<(NodeId, Point)>,
    /// Content reaches the payment row, so there may be more below.
    pub reaches_bottom: bool,
}

/// A choice such as colour. `name` is empty when its title is scrolled out of sight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SheetDimension {
    pub name: String,
    pub chips: Vec<Chip>,
    /// The list the chips are in, when it has its own bounds.
    pub list: Option<ChipList>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChipList {
    pub bounds: Bounds,
    pub scrollable: bool,
    /// A chip is cut off at the right or left edge.
    pub cut_sideways: bool,
}

/// One value of a choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chip {
    /// The full value, without stock and price hints.
    pub text: String,
    /// The value was cut with `...` by the app, so `text` is only its start.
    pub truncated: bool,
    /// `None` when the chip is cut off and its caption not visible.
    pub available: Option<bool>,
    pub selected: bool,
    pub bounds: Bounds,
    pub node: NodeId,
    /// Where to touch it (its caption); `None` when the caption is not visible.
    pub tap: Option<(NodeId, Point)>,
}

impl SkuSheet {
    /// Whether two looks agree on everything that is read. Node ids may differ: a ticker adds and removes nodes.
    pub fn agrees(&self, other: &SkuSheet) -> bool {
        let chips = |sheet: &SkuSheet| -> Vec<_> {
            let of = |d: &SheetDimension| -> Vec<_> {
                d.chips.iter().map(|c| (c.text.clone(), c.available, c.selected, c.bounds, c.tap.map(|t| t.1))).collect()
            };
            sheet.dimensions.iter().map(|d| (d.name.clone(), of(d))).collect()
        };
        self.header == other.header
            && self.selected_text == other.selected_text
            && self.region == other.region
            && chips(self) == chips(other)
    }

    /// Whether the sheet wants a choice: the selection line asks for one, or the price still depends on it.
    pub fn asks_to_choose(&self, rules: &RulePack) -> bool {
        let asks = self.selected_text.as_ref().is_some_and(|line| rules.sheet.choose_prefixes.starts(&fold(line)));
        asks || matches!(self.header, HeaderPrice::Open { .. })
    }

    /// Whether `chip` is chosen: it says so itself, and the selection line confirms it (facts/pdd §8.5).
    pub fn confirms(&self, dimension: &str, chip: &Chip, rules: &RulePack) -> bool {
        if !chip.selected {
            return false;
        }
        let Some(line) = &self.selected_text else { return false };
        let line = fold(line);
        let value = fold(&chip.text);
        if let Some(chosen) = rules.sheet.chosen_prefixes.strip_start(&line) {
            return chosen.contains(&value);
        }
        // While another choice is open some builds name only what is still missing.
        let missing = rules.sheet.choose_prefixes.strip_start(&line);
        missing.is_some_and(|rest| rest.contains(&value) || (!dimension.is_empty() && !rest.contains(&fold(dimension))))
    }
}

/// Reads a tree that is recognised as the SKU sheet.
///
/// # Errors
/// [`SheetFault`] when the header or the payment row is not there; reading on would be guessing.
pub fn read_sheet(tree: &UiTree, rules: &RulePack) -> Result<SkuSheet, SheetFault> {
    let sheet = &rules.sheet;
    let page = extent(tree, rules);
    let nodes: Vec<Node<'_>> = app_nodes(tree, rules).filter(|node| !node.bounds().is_empty()).collect();
    let payment_top = payment_top(&nodes, page, sheet).ok_or(SheetFault::NoPaymentRow)?;
    let select = nodes
        .iter()
        .find(|node| has_id(node, &sheet.select_ids))
        .or_else(|| nodes.iter().find(|node| sheet.select_prefixes.starts(&fold(node.label())) && node.bounds().top < payment_top));
    let image = nodes.iter().find(|node| has_id(node, &sheet.image_ids) || sheet.image.has(&fold(node.desc())));
    let header = match (image, select) {
        (None, None) => return Err(SheetFault::NoHeader),
        (Some(one), None) | (None, Some(one)) => one.bounds(),
        (Some(image), Some(select)) => {
            let (a, b) = (image.bounds(), select.bounds());
            Bounds::new(page.left, a.top.min(b.top), page.right, a.bottom.max(b.bottom))
        }
    };
    // The price may stand a little above the picture's edge.
    let header_top = if image.is_some() { header.top - header.height() / 6 } else { header.top - page.height() / 12 };
    let region = Bounds::new(page.left, header.bottom, page.right, payment_top);
    let header_texts = nodes.iter().filter(|node| {
        let y = node.bounds().center().y;
        y >= header_top && y < header.bottom && node.bounds().height() <= header.height() && Some(node.id()) != select.map(|s| s.id())
    });
    let header_price = read_header(header_texts.map(|node| node.label()), rules.price_words());
    let (dimensions, reaches_bottom) = read_dimensions(&nodes, region, rules);
    Ok(SkuSheet {
        header: header_price,
        selected_text: select.map(|node| trimmed(node.label()).to_owned()),
        dimensions,
        region,
        payment_top,
        close: close(&nodes, header.top, sheet),
        reaches_bottom,
    })
}

/// Top of the payment row, else of the submit button.
fn payment_top(nodes: &[Node<'_>], page: Bounds, sheet: &SheetRules) -> Option<i32> {
    let top_of = |test: &dyn Fn(&str) -> bool| {
        nodes
            .iter()
            .filter(|node| test(&fold(node.text())) || test(&fold(node.desc())))
            .map(|node| {
                let row = std::iter::once(*node)
                    .chain(node.ancestors())
                    .find(|up| up.clickable())
                    .map(|up| up.bounds())
                    .filter(|b| !b.is_empty() && b.height() * 4 <= page.height());
                row.map_or(node.bounds().top, |b| b.top.min(node.bounds().top))
            })
            .min()
    };
    [top_of(&|label| sheet.payment_row.found_in(label)), top_of(&|label| sheet.submit.found_in(label))].into_iter().flatten().min()
}

/// The sheet's own X: above the header, the one furthest to the right.
fn close(nodes: &[Node<'_>], header_top: i32, sheet: &SheetRules) -> Option<(NodeId, Point)> {
    nodes
        .iter()
        .filter(|node| sheet.close.has(&fold(node.label())) && node.bounds().center().y < header_top)
        .max_by_key(|node| node.bounds().right)
        .map(|node| (node.id(), node.bounds().center()))
}

enum Item<'t> {
    Name(Node<'t>),
    Chip { chip: Chip, node: Node<'t> },
}

fn read_dimensions(nodes: &[Node<'_>], region: Bounds, rules: &RulePack) -> (Vec<SheetDimension>, bool) {
    let sheet = &rules.sheet;
    let mut items: Vec<Item<'_>> = Vec::new();
    let mut lowest = region.top;
    let mut skip_until: Option<NodeId> = None;
    for node in nodes {
        let b = node.bounds();
        if b.top < region.top || b.bottom > region.bottom || skip_until.is_some_and(|last| node.id() <= last) {
            continue;
        }
        let labelled = !trimmed(node.label()).is_empty();
        if labelled || node.clickable() {
            lowest = lowest.max(b.bottom);
        }
        if let Some(chip) = read_chip(*node, region, sheet) {
            skip_until = node.descendants().last().map(|last| last.id());
            items.push(Item::Chip { chip, node: *node });
        } else if labelled && is_name(*node, sheet) {
            items.push(Item::Name(*node));
        }
    }
    let reaches_bottom = lowest >= region.bottom - region.height() / 20;
    (group(items, region, sheet), reaches_bottom)
}

fn is_name(node: Node<'_>, sheet: &SheetRules) -> bool {
    let folded = fold(node.label());
    let short = folded.chars().count() <= NAME_CHARS && !folded.is_empty();
    short
        && !folded.contains('¥')
        && !sheet.not_names.found_in(&folded)
        && !sheet.not_chip.has(&folded)
        && !sheet.stock_hint.is_match(&folded)
}

/// A chip is an outermost clickable node inside the region with a clickable label of its own in it, or a clickable text (facts/pdd §3.2).
fn read_chip(node: Node<'_>, region: Bounds, sheet: &SheetRules) -> Option<Chip> {
    if !node.clickable() {
        return None;
    }
    let own = fold(node.label());
    if sheet.not_chip.has(&own) {
        return None;
    }
    let below: Vec<Node<'_>> = node.descendants().collect();
    let caption = below
        .iter()
        .find(|n| has_id(n, &sheet.content_ids))
        .or_else(|| below.iter().find(|n| n.clickable() && !trimmed(n.text()).is_empty()))
        .copied();
    let clickable_label = below.iter().any(|n| n.clickable() && !trimmed(n.label()).is_empty() && !sheet.not_chip.has(&fold(n.label())));
    let is_text = below.iter().all(|n| trimmed(n.label()).is_empty()) && !trimmed(node.text()).is_empty();
    let named = caption.is_some() && !own.is_empty();
    if !(is_text || clickable_label || named || is_cut_chip(node, &below, region, sheet)) {
        return None;
    }
    // Two captions: a row that holds several chips, not a chip.
    let captions = below.iter().filter(|n| has_id(n, &sheet.content_ids)).count();
    let clickable_texts = below.iter().filter(|n| n.clickable() && !trimmed(n.text()).is_empty()).count();
    if captions > 1 || (captions == 0 && clickable_texts > 1) {
        return None;
    }
    let caption = if is_text { Some(node) } else { caption };
    let full = [
        node.desc(),
        below.iter().filter(|n| !sheet.enlarge.has(&fold(n.desc()))).map(|n| n.desc()).find(|d| !trimmed(d).is_empty()).unwrap_or(""),
    ]
    .into_iter()
    .map(trimmed)
    .find(|d| !d.is_empty());
    let shown = caption.map(|n| trimmed(n.label()));
    let (text, truncated) = value(full, shown, sheet)?;
    let selected = node.selected() || below.iter().any(Node::selected);
    let all_labels = std::iter::once(node).chain(below.iter().copied());
    let sold_out = all_labels.flat_map(|n| [n.text(), n.desc()]).any(|label| sheet.says_sold_out(&fold(label)));
    let tap = caption.and_then(|n| tap_point(node, n, &below, region, sheet));
    let available = if sold_out { Some(false) } else { caption.map(|_| true) };
    Some(Chip { text, truncated, available, selected, bounds: node.bounds(), node: node.id(), tap })
}

/// A picture chip cut off at an edge keeps its description but loses children.
fn is_cut_chip(node: Node<'_>, below: &[Node<'_>], region: Bounds, sheet: &SheetRules) -> bool {
    let b = node.bounds();
    let at_edge = b.left <= region.left + 40 || b.right >= region.right - 1;
    let desc = fold(node.desc());
    !desc.is_empty()
        && at_edge
        && below
            .iter()
            .all(|n| trimmed(n.text()).is_empty() || sheet.stock_hint.is_match(&fold(n.text())) || sheet.says_sold_out(&fold(n.text())))
}

/// The value's text: the description is complete, the caption may be cut and carry 刚刚抢光 or a price.
fn value(full: Option<&str>, shown: Option<&str>, sheet: &SheetRules) -> Option<(String, bool)> {
    let bare = |text: &str| -> String {
        let mut text = text;
        loop {
            let before = text;
            for word in sheet.sold_out.iter() {
                if let Some(front) = text.strip_suffix(word) {
                    text = trimmed(front);
                }
            }
            text = without_price(text);
            if text == before || text.is_empty() {
                return text.to_owned();
            }
        }
    };
    if let Some(full) = full {
        let text = bare(full);
        if !text.is_empty() {
            return Some((text, false));
        }
    }
    let text = bare(shown?);
    for dots in ["...", "…", "⋯"] {
        if let Some(front) = text.strip_suffix(dots) {
            let front = trimmed(front);
            return (!front.is_empty()).then(|| (front.to_owned(), true));
        }
    }
    (!text.is_empty()).then_some((text, false))
}

/// `丝杠组合  ¥51` without its price.
fn without_price(text: &str) -> &str {
    let Some(at) = text.rfind(['¥', '￥']) else { return text };
    let sign = text[at..].chars().next().map_or(0, char::len_utf8);
    let amount = half_width(&text[at + sign..]);
    let amount = amount.trim();
    let is_amount = !amount.is_empty() && amount.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ','));
    if is_amount { trimmed(&text[..at]) } else { text }
}

/// The middle of the caption, kept clear of 打开大图 and inside the region.
fn tap_point(chip: Node<'_>, caption: Node<'_>, below: &[Node<'_>], region: Bounds, sheet: &SheetRules) -> Option<(NodeId, Point)> {
    let b = caption.bounds().intersect(&region).intersect(&chip.bounds());
    // A caption cut to a sliver may belong to a chip under something else.
    if b.width() < 12 || b.height() < 12 {
        return None;
    }
    let mut at = b.center();
    let traps: Vec<Bounds> = below.iter().filter(|n| sheet.enlarge.has(&fold(n.label()))).map(|n| n.bounds()).collect();
    if traps.iter().any(|trap| trap.contains(at)) {
        at = Point { x: b.left + b.width() / 4, y: b.bottom - b.height() / 4 - 1 };
    }
    (!traps.iter().any(|trap| trap.contains(at)) && caption.bounds().contains(at)).then_some((caption.id(), at))
}

fn group(items: Vec<Item<'_>>, region: Bounds, sheet: &SheetRules) -> Vec<SheetDimension> {
    let mut dimensions: Vec<(SheetDimension, Vec<Node<'_>>)> = Vec::new();
    let mut names: Vec<Node<'_>> = Vec::new();
    for item in items {
        match item {
            Item::Name(node) => names.push(node),
            Item::Chip { chip, node } => {
                let title = pick_name(&names, chip.bounds, sheet);
                if title.is_some() || dimensions.is_empty() {
                    let name = title.map(|n| trimmed(n.label()).to_owned()).unwrap_or_default();
                    dimensions.push((SheetDimension { name, chips: Vec::new(), list: None }, Vec::new()));
                }
                names.clear();
                if let Some((dimension, nodes)) = dimensions.last_mut() {
                    let seen = dimension.chips.iter().any(|known| fold(&known.text) == fold(&chip.text));
                    if !seen {
                        dimension.chips.push(chip);
                        nodes.push(node);
                    }
                }
            }
        }
    }
    dimensions
        .into_iter()
        .map(|(mut dimension, nodes)| {
            dimension.list = list_of(&nodes, region);
            dimension
        })
        .collect()
}

/// Which of the texts since the last chip names the choice: a known name, else the nearest one above that starts at the left.
fn pick_name<'t>(names: &[Node<'t>], chip: Bounds, sheet: &SheetRules) -> Option<Node<'t>> {
    let above = || names.iter().filter(|node| node.bounds().top <= chip.top);
    let is_known = |node: &&Node<'t>| sheet.known_names.has(&bare_name(node.label()));
    let at_left = |node: &&Node<'t>| node.bounds().left <= chip.left.max(0) + chip.width();
    above().rfind(is_known).or_else(|| above().rfind(at_left)).copied()
}

fn bare_name(label: &str) -> String {
    fold(label).trim_end_matches([':', '：']).to_owned()
}

fn list_of(chips: &[Node<'_>], region: Bounds) -> Option<ChipList> {
    let first = chips.first()?;
    let list = first.ancestors().find(|up| {
        let class = up.class();
        let b = up.bounds();
        (up.scrollable() || class.contains("RecyclerView") || class.contains("ScrollView") || class.contains("ListView"))
            && b.top >= region.top
            && b.bottom <= region.bottom
    })?;
    let bounds = list.bounds();
    let typical = chips.iter().map(|chip| chip.bounds().width()).max().unwrap_or(0);
    let cut_sideways = chips.iter().any(|chip| {
        let b = chip.bounds();
        (b.right >= bounds.right || b.left <= bounds.left) && b.width() * 10 < typical * 9
    }) || hidden_edge(list, bounds, typical);
    Some(ChipList { bounds, scrollable: list.scrollable(), cut_sideways })
}

/// A clickable sliver at the side that was not even readable as a chip.
fn hidden_edge(list: Node<'_>, bounds: Bounds, typical: i32) -> bool {
    list.children().any(|child| {
        let b = child.bounds();
        child.clickable() && !b.is_empty() && b.width() * 2 < typical && (b.right >= bounds.right || b.left <= bounds.left)
    })
}
