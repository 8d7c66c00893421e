//! Where on this tree a finger must not go.
//!
//! Computed from the tree alone, so a wrong page name from the recogniser cannot open anything.

use super::patterns::{ExtraPatterns, Kind, normalise};
use super::{Refusal, RefusedReason};
use crate::phone::ScreenSize;
use crate::tree::{Bounds, Node, NodeId, Point, UiTree};

/// A clickable with more nodes below it than this is a container, not a button; its labels are not joined.
const BUTTON_NODES: usize = 16;

struct Zone {
    bounds: Bounds,
    kind: Kind,
    node: NodeId,
}

pub(super) struct Zones {
    zones: Vec<Zone>,
    /// Everything from this y down is the checkout.
    checkout_top: Option<i32>,
    /// A paying node whose place is unknown.
    unplaced: Option<(NodeId, Kind, String)>,
    /// Per node: the kind it matches, by itself or spelled over the nodes below it.
    kinds: Vec<Option<Kind>>,
    order_list: bool,
}

impl Zones {
    pub(super) fn of(tree: &UiTree, size: ScreenSize, extra: &ExtraPatterns) -> Zones {
        let screen = size.bounds(tree.rotation());
        let words = Words::of(tree, extra);
        let mut kinds: Vec<Option<Kind>> = tree.nodes().map(|node| words.kind(node)).collect();
        let nearest = nearest_clickable(tree);
        let joined = joined_labels(tree, &words, &nearest, extra);
        price_only_buttons(tree, screen, &mut kinds);

        let mut zones = Vec::new();
        let mut unplaced = None;
        for node in tree.nodes() {
            // The button itself, not what it lies in: the word is spread below it, so the box is known.
            if let Some(kind) = joined[node.id().index()].filter(|kind| button_sized(node.bounds(), *kind, screen)) {
                zones.push(Zone { bounds: node.bounds(), kind, node: node.id() });
            }
            let Some(kind) = kinds[node.id().index()] else { continue };
            if !node.bounds_known() && kind != Kind::Buy && unplaced.is_none() {
                unplaced = Some((node.id(), kind, node.label().to_owned()));
            }
            zones.push(Zone { bounds: node.bounds(), kind, node: node.id() });
            if let Some(bounds) = pressed_with(node, nearest[node.id().index()], kind, screen) {
                zones.push(Zone { bounds, kind, node: node.id() });
            }
        }
        let checkout_top = checkout_top(tree, &words, &nearest, screen);
        let kinds = kinds.into_iter().zip(joined).map(|(own, joined)| own.max(joined)).collect();
        let shows = |word: &str| words.normals.iter().any(|normal| normal == word);
        let order_list = checkout_top.is_none() && shows("待付款") && (shows("待收货") || shows("全部"));
        Zones { zones, checkout_top, unplaced, kinds, order_list }
    }

    /// Whether the tree itself looks like the list of orders: the recogniser's word is not enough to relax a rule.
    pub(super) fn is_order_list(&self) -> bool {
        self.order_list
    }

    /// May the title or picture of an order's card be touched here? The card may hold a paying button, but it must be well away, and the
    /// card itself must not be what that button presses (D10).
    pub(super) fn card_at(&self, tree: &UiTree, at: Point, margin: i32) -> Result<(), Refusal> {
        self.start_at(tree, at)?;
        match self.zones.iter().find(|zone| zone.kind != Kind::Buy && zone.bounds.grown(margin).contains(at)) {
            Some(zone) => Err((zone.kind.refusal(tree.node(zone.node).label()), Some(zone.node))),
            None => Ok(()),
        }
    }

    /// With a permit: every forbidden thing at the point must be this very submit button.
    pub(super) fn submit_at(&self, tree: &UiTree, submit: NodeId, at: Point) -> Result<(), Refusal> {
        let other = |zone: &&Zone| zone.bounds.contains(at) && !(zone.kind == Kind::Submit && same_button(tree, zone.node, submit));
        match self.zones.iter().find(other) {
            Some(zone) => Err((zone.kind.refusal(tree.node(zone.node).label()), Some(zone.node))),
            None => Ok(()),
        }
    }

    /// Refuses everything when a paying node could be anywhere.
    pub(super) fn placed(&self) -> Result<(), Refusal> {
        match &self.unplaced {
            None => Ok(()),
            Some((node, _, label)) => Err((RefusedReason::UnplacedPaymentNode { label: label.chars().take(40).collect() }, Some(*node))),
        }
    }

    /// May a finger come down here at all?
    pub(super) fn start_at(&self, tree: &UiTree, at: Point) -> Result<(), Refusal> {
        // The gravest reason first: an operator should read "payment", not "buy".
        let worst = self.zones.iter().filter(|zone| zone.bounds.contains(at)).max_by_key(|zone| zone.kind);
        let refuse = |zone: &Zone| Err((zone.kind.refusal(tree.node(zone.node).label()), Some(zone.node)));
        if let Some(zone) = worst.filter(|zone| zone.kind != Kind::Buy) {
            return refuse(zone);
        }
        if let Some(top) = self.checkout_top.filter(|top| at.y >= *top) {
            return Err((RefusedReason::CheckoutZone { top }, None));
        }
        worst.map_or(Ok(()), refuse)
    }

    /// May a finger come down and up again here?
    pub(super) fn tap_at(&self, tree: &UiTree, at: Point) -> Result<(), Refusal> {
        self.start_at(tree, at)?;
        // Children come after their parent, so one pass from the end sees every subtree before its root.
        let mut clickable_below = vec![false; tree.len()];
        let mut money_below: Vec<Option<(Kind, NodeId)>> = vec![None; tree.len()];
        for index in (0..tree.len()).rev() {
            let node = tree.node(NodeId(index as u32));
            let hit = node.clickable() && node.bounds().contains(at);
            // Whatever the app does with a click on this node, it may do what the control inside it does.
            if hit
                && !clickable_below[index]
                && let Some((kind, below)) = money_below[index]
            {
                return Err((kind.refusal(tree.node(below).label()), Some(below)));
            }
            if let Some(parent) = node.parent() {
                let up = parent.id().index();
                clickable_below[up] |= hit || clickable_below[index];
                let own = self.kinds[index].filter(|kind| *kind != Kind::Buy).map(|kind| (kind, node.id()));
                money_below[up] = money_below[up].max(own).max(money_below[index]);
            }
        }
        Ok(())
    }
}

/// One is the other or lies around it.
fn same_button(tree: &UiTree, one: NodeId, other: NodeId) -> bool {
    one == other || tree.node(one).is_above(other) || tree.node(other).is_above(one)
}

/// A title or a picture, and the deepest clickable thing at the point is it or lies around it.
pub(super) fn is_card_part(target: Node<'_>, at: Point) -> bool {
    let leaf = target.children().next().is_none();
    let shown = !target.label().is_empty() || target.class().contains("Image");
    let pressed = target.tree().nodes().filter(|node| node.clickable() && node.bounds().contains(at)).last();
    leaf && shown && pressed.is_some_and(|node| node.id() == target.id() || node.is_above(target.id()))
}

/// Every distinct text of a tree, normalised and judged once.
struct Words {
    normals: Vec<String>,
    kinds: Vec<Option<Kind>>,
}

impl Words {
    fn of(tree: &UiTree, extra: &ExtraPatterns) -> Words {
        let normals: Vec<String> = tree.distinct_texts().map(normalise).collect();
        let kinds = normals.iter().map(|normal| extra.kind_of(normal)).collect();
        Words { normals, kinds }
    }

    fn kind(&self, node: Node<'_>) -> Option<Kind> {
        node.label_symbols().into_iter().filter_map(|symbol| self.kinds[symbol]).max()
    }

    fn any(&self, node: Node<'_>, test: impl Fn(&str) -> bool) -> bool {
        let [text, desc, _] = node.label_symbols();
        test(&self.normals[text]) || test(&self.normals[desc])
    }

    fn joined(&self, node: Node<'_>) -> &str {
        let [text, desc, _] = node.label_symbols();
        if self.normals[text].is_empty() { &self.normals[desc] } else { &self.normals[text] }
    }
}

/// A button may spell its word over several text nodes (`提交` + `订单`).
fn joined_labels(tree: &UiTree, words: &Words, nearest: &[Option<NodeId>], extra: &ExtraPatterns) -> Vec<Option<Kind>> {
    tree.nodes()
        .map(|node| {
            let below = node.descendants().take(BUTTON_NODES + 1).count();
            if !node.clickable() || below == 0 || below > BUTTON_NODES {
                return None;
            }
            let mut all = words.joined(node).to_owned();
            // What lies in a clickable of its own is pressed with that one, not with this.
            for below in node.descendants().filter(|below| nearest[below.id().index()] == Some(node.id())) {
                all.push_str(words.joined(below));
            }
            extra.kind_of(&all)
        })
        .collect()
}

/// The bottom bar's buy button is sometimes just `¥76` (facts/pdd 2).
fn price_only_buttons(tree: &UiTree, screen: Bounds, kinds: &mut [Option<Kind>]) {
    let line = screen.height() / 5 * 4;
    for node in tree.nodes().filter(|node| node.clickable() && node.bounds().center().y > line) {
        let label = node.label();
        let price = label.contains(['¥', '￥'])
            && label.chars().all(|c| c.is_ascii_digit() || c.is_whitespace() || matches!(c, '¥' | '￥' | '.' | ','));
        if price {
            let slot = &mut kinds[node.id().index()];
            *slot = (*slot).max(Some(Kind::Buy));
        }
    }
}

/// Per node its nearest clickable ancestor, in one pass from the top.
fn nearest_clickable(tree: &UiTree) -> Vec<Option<NodeId>> {
    let mut nearest: Vec<Option<NodeId>> = Vec::with_capacity(tree.len());
    for node in tree.nodes() {
        nearest.push(node.parent().and_then(|up| if up.clickable() { Some(up.id()) } else { nearest[up.id().index()] }));
    }
    nearest
}

/// A whole page that is clickable is not a buy button; for paying words no size is too large.
fn button_sized(bounds: Bounds, kind: Kind, screen: Bounds) -> bool {
    kind != Kind::Buy || bounds.area() * 2 < screen.area()
}

/// What is pressed together with a matching node: its nearest clickable ancestor, or, when the app
/// does not mark its buttons clickable, the box around it if that is small enough to be a button.
fn pressed_with(node: Node<'_>, nearest: Option<NodeId>, kind: Kind, screen: Bounds) -> Option<Bounds> {
    match nearest.map(|id| node.tree().node(id)) {
        Some(up) => Some(up.bounds()).filter(|bounds| button_sized(*bounds, kind, screen)),
        None => node.parent().map(|up| up.bounds()).filter(|bounds| bounds.area() * 4 < screen.area()),
    }
}

/// On anything that looks like the checkout sheet: the top of the payment row, or of the submit
/// button when there is no row, or the last fifth of the screen when neither can be placed.
fn checkout_top(tree: &UiTree, words: &Words, nearest: &[Option<NodeId>], screen: Bounds) -> Option<i32> {
    let has = |word: &str| tree.nodes().any(|node| words.any(node, |label| label.contains(word)));
    let stepper = has("减少数量") && has("增加数量");
    if !stepper && !has("更换支付方式") && !has("提交订单") {
        return None;
    }
    let row = |label: &str| label.contains("支付方式") || (label.starts_with("使用") && label.contains("支付"));
    let submit = |label: &str| ["提交订单", "立即支付", "确认支付", "支付订单", "确认下单"].iter().any(|word| label.contains(word));
    let top_of = |test: &dyn Fn(&str) -> bool| {
        tree.nodes()
            .filter(|node| words.any(*node, test) && !node.bounds().is_empty())
            .map(|node| {
                let around = nearest[node.id().index()]
                    .map(|id| tree.node(id).bounds())
                    .filter(|bounds| !bounds.is_empty() && bounds.height() * 4 <= screen.height());
                around.map_or(node.bounds().top, |bounds| bounds.top.min(node.bounds().top))
            })
            .min()
    };
    let found = [top_of(&row), top_of(&submit)].into_iter().flatten().min();
    Some(found.unwrap_or(screen.bottom / 5 * 4))
}
