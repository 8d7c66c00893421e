//! Which page is on the screen, by anchor sets and never by the activity: one activity shows them all (facts/pdd §1.1, §8.2).
//!
//! Only nodes of Pinduoduo's own packages are looked at, so that a notification in the status bar can look neither like a captcha nor
//! like a price (facts/pdd §1.4). It never decides what to do about a page.

use cmautobuy_device::{Bounds, Foreground, Node, NodeId, Point, Screen, UiTree};

use crate::rules::{AnchorSets, PopupRule, RulePack, Texts};
use crate::text::{fold, trimmed};

/// Longest label that can be an anchor: beyond it we are reading a seller's prose.
const ANCHOR_CHARS: usize = 60;

/// A page and what decided it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recognised {
    pub screen: Screen,
    /// Set for [`Screen::Unavailable`].
    pub unavailable: Option<Unavailable>,
    /// The label that decided a wall or an unavailable page, as shown.
    pub text: Option<String>,
    /// For [`Screen::Popup`]: which known layer.
    pub popup: Option<String>,
}

/// Why goods cannot be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unavailable {
    SoldOut,
    Removed,
    Network,
}

/// The page, for the tap guard.
pub fn recognise(tree: &UiTree, foreground: &Foreground, rules: &RulePack) -> Screen {
    recognise_in_full(tree, foreground, rules).screen
}

/// The page with what decided it.
pub fn recognise_in_full(tree: &UiTree, foreground: &Foreground, rules: &RulePack) -> Recognised {
    let plain = |screen| Recognised { screen, unavailable: None, text: None, popup: None };
    if !rules.is_pdd(&foreground.package) {
        return plain(Screen::Elsewhere);
    }
    let labels = Labels::of(tree, rules);
    let goods = rules.screens.goods.iter().any(|set| labels.hits_all(set)) && labels.bar_is_low(&rules.screens.goods);
    let sheet = labels.hits_any(&rules.screens.sku_sheet);

    if let Some(label) = labels.first(|folded| rules.walls.risk.exact.has(folded)) {
        return Recognised { text: Some(label), ..plain(Screen::RiskWall) };
    }
    let settled_page = goods || sheet;
    if !settled_page {
        if let Some(label) = labels.first(|folded| rules.walls.risk.contains.found_in(folded)) {
            return Recognised { text: Some(label), ..plain(Screen::RiskWall) };
        }
        let login_activity = rules.walls.login_activities.iter().any(|one| foreground.activity.ends_with(one.as_str()));
        if let Some(label) = labels.first(|folded| rules.walls.login.matches(folded)) {
            return Recognised { text: Some(label), ..plain(Screen::LoginWall) };
        }
        if login_activity {
            return plain(Screen::LoginWall);
        }
    }
    if labels.hits_any(&rules.screens.abandon_popup) {
        return plain(Screen::AbandonPopup);
    }
    if let Some(popup) = rules.popups.iter().find(|popup| labels.hits_all(&popup.all)) {
        return Recognised { popup: Some(popup.name.clone()), ..plain(Screen::Popup) };
    }
    if sheet {
        return plain(Screen::SkuSheet);
    }
    if !goods {
        let kinds = [
            (Unavailable::SoldOut, &rules.unavailable.sold_out),
            (Unavailable::Removed, &rules.unavailable.removed),
            (Unavailable::Network, &rules.unavailable.network),
        ];
        for (kind, texts) in kinds {
            if let Some(label) = labels.first(|folded| texts.matches(folded)) {
                return Recognised { unavailable: Some(kind), text: Some(label), ..plain(Screen::Unavailable) };
            }
        }
    }
    if goods {
        return plain(Screen::Goods);
    }
    if labels.hits_any(&rules.screens.order_list) {
        return plain(Screen::OrderList);
    }
    if labels.hits_any(&rules.screens.home) {
        return plain(Screen::Home);
    }
    plain(Screen::Unknown)
}

/// The node that closes a known layer, and where to touch it; `None` means BACK.
pub(crate) fn popup_close(tree: &UiTree, name: &str, rules: &RulePack) -> Option<(NodeId, Point)> {
    let popup: &PopupRule = rules.popups.iter().find(|popup| popup.name == name)?;
    app_nodes(tree, rules).find_map(|node| {
        let hit = popup.close.has(&fold(node.text())) || popup.close.has(&fold(node.desc()));
        (hit && !node.bounds().is_empty()).then(|| (node.id(), node.bounds().center()))
    })
}

/// Where 先去逛逛 is: the only button of the leaving question that does not pay (facts/pdd §1.6).
pub(crate) fn abandon_leave(tree: &UiTree, rules: &RulePack) -> Option<(NodeId, Point)> {
    app_nodes(tree, rules).find_map(|node| {
        let hit = rules.leave.has(&fold(node.text())) || rules.leave.has(&fold(node.desc()));
        (hit && !node.bounds().is_empty()).then(|| (node.id(), node.bounds().center()))
    })
}

/// The app's own nodes. A fragment without package names counts as the app's, since nothing else could have been meant.
pub(crate) fn app_nodes<'t>(tree: &'t UiTree, rules: &'t RulePack) -> impl Iterator<Item = Node<'t>> + 't {
    tree.nodes().filter(move |node| node.package().is_empty() || rules.is_pdd(node.package()))
}

/// Everything the app's nodes span.
pub(crate) fn extent(tree: &UiTree, rules: &RulePack) -> Bounds {
    app_nodes(tree, rules).filter(|node| !node.bounds().is_empty()).fold(Bounds::default(), |all, node| {
        let b = node.bounds();
        if all.is_empty() {
            b
        } else {
            Bounds::new(all.left.min(b.left), all.top.min(b.top), all.right.max(b.right), all.bottom.max(b.bottom))
        }
    })
}

struct Label<'t> {
    folded: String,
    shown: &'t str,
    bounds: Bounds,
}

struct Labels<'t> {
    labels: Vec<Label<'t>>,
    extent: Bounds,
}

impl<'t> Labels<'t> {
    fn of(tree: &'t UiTree, rules: &'t RulePack) -> Self {
        let mut labels = Vec::new();
        for node in app_nodes(tree, rules) {
            for shown in [node.text(), node.desc()] {
                if shown.is_empty() || shown.chars().count() > ANCHOR_CHARS {
                    continue;
                }
                let folded = fold(shown);
                if !folded.is_empty() {
                    labels.push(Label { folded, shown, bounds: node.bounds() });
                }
            }
        }
        Self { labels, extent: extent(tree, rules) }
    }

    fn first(&self, test: impl Fn(&str) -> bool) -> Option<String> {
        self.labels.iter().find(|label| test(&label.folded)).map(|label| trimmed(label.shown).to_owned())
    }

    fn hits_all(&self, set: &[Texts]) -> bool {
        set.iter().all(|group| self.labels.iter().any(|label| group.matches(&label.folded)))
    }

    fn hits_any(&self, sets: &AnchorSets) -> bool {
        sets.iter().any(|set| self.hits_all(set))
    }

    /// The goods page is told by its bottom bar, so its anchors must be in the lower third.
    fn bar_is_low(&self, sets: &AnchorSets) -> bool {
        let line = self.extent.top + self.extent.height() / 3 * 2;
        sets.iter().any(|set| {
            set.iter().all(|group| self.labels.iter().any(|label| group.matches(&label.folded) && label.bounds.center().y > line))
        })
    }
}
