//! What a goods page says: title, shop, sales, reviews, the price line, and where the SKU row is.
//!
//! It only reads. A figure that is not on the page stays `None`; shop-wide sales are never taken for the goods' own.

use cmautobuy_device::{Bounds, Node, NodeId, Point, UiTree};
use cmautobuy_protocol::pdd_data::Metric;

use crate::count::parse_count;
use crate::price::{HeaderPrice, Price, glued_splits, parse_price, read_header};
use crate::recognise::{app_nodes, extent};
use crate::rules::RulePack;
use crate::text::{fold, trimmed};

/// The row that opens the SKU sheet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkuEntry {
    pub node: NodeId,
    pub at: Point,
    pub label: String,
}

/// One look at a goods page; several looks are merged with [`GoodsPage::merge`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GoodsPage {
    pub title: Option<String>,
    pub shop: Option<String>,
    pub sales: Option<Metric>,
    pub reviews: Option<Metric>,
    /// The price line as shown, such as `¥70已拼44件最后6件`.
    pub price_line: Option<String>,
    /// The price of goods without a choice, when the page leaves no doubt.
    pub certain_price: Option<Price>,
    pub entry: Option<SkuEntry>,
}

impl GoodsPage {
    /// Adds what another look at the same page found; what is known stays. The entry is the other look's: places move when scrolling.
    pub fn merge(&mut self, later: GoodsPage) {
        let GoodsPage { title, shop, sales, reviews, price_line, certain_price, entry } = later;
        self.title = self.title.take().or(title);
        self.shop = self.shop.take().or(shop);
        self.sales = self.sales.take().or(sales);
        self.reviews = self.reviews.take().or(reviews);
        // A price and its line belong together.
        if self.price_line.is_none() {
            self.price_line = price_line;
            self.certain_price = certain_price;
        } else if self.certain_price.is_none() && self.price_line == price_line {
            self.certain_price = certain_price;
        }
        self.entry = entry;
    }

    /// The same facts, wherever the row is: what two looks must agree on.
    pub(crate) fn agrees(&self, other: &GoodsPage) -> bool {
        let facts = |page: &GoodsPage| (page.title.clone(), page.shop.clone(), page.sales.clone(), page.reviews.clone());
        facts(self) == facts(other)
            && self.price_line == other.price_line
            && self.entry.as_ref().map(|e| e.at) == other.entry.as_ref().map(|e| e.at)
    }
}

/// Reads a tree that is recognised as a goods page.
pub fn read_goods(tree: &UiTree, rules: &RulePack) -> GoodsPage {
    let page = extent(tree, rules);
    let bar_top = bottom_bar_top(tree, rules, page);
    let body: Vec<Node<'_>> =
        app_nodes(tree, rules).filter(|node| node.bounds().center().y < bar_top && !node.bounds().is_empty()).collect();
    let price_line = price_line(&body, rules);
    let sales = sales(&body, price_line, rules);
    GoodsPage {
        title: title(&body, rules),
        shop: shop(&body, page, rules),
        sales,
        reviews: reviews(&body, rules),
        price_line: price_line.map(|line| trimmed(line.label()).to_owned()),
        certain_price: price_line.and_then(|line| certain_price(tree, line.label(), bar_top, rules)),
        entry: entry(&body, page, bar_top, rules),
    }
}

/// Top of the bar with 店铺 收藏 客服 and the buy buttons; nothing at or below it is page content.
fn bottom_bar_top(tree: &UiTree, rules: &RulePack, page: Bounds) -> i32 {
    let line = page.top + page.height() / 3 * 2;
    rules
        .screens
        .goods
        .iter()
        .flatten()
        .flat_map(|group| {
            app_nodes(tree, rules).filter(move |node| {
                node.bounds().center().y > line && (group.matches(&fold(node.text())) || group.matches(&fold(node.desc())))
            })
        })
        .map(|node| node.bounds().top)
        .min()
        .unwrap_or(page.bottom)
}

fn title(body: &[Node<'_>], rules: &RulePack) -> Option<String> {
    let titles = || body.iter().filter(|node| has_id(node, &rules.goods.title_ids));
    // The page's own title keeps its text in the description; a recommended card's is a text (facts/pdd §2).
    let own = titles().find(|node| node.text().is_empty() && !trimmed(node.desc()).is_empty());
    let node = own.or_else(|| titles().find(|node| !trimmed(node.label()).is_empty()))?;
    let shown = if node.desc().chars().count() > node.text().chars().count() { node.desc() } else { node.text() };
    Some(trimmed(shown).to_owned())
}

fn price_line<'t>(body: &[Node<'t>], rules: &RulePack) -> Option<Node<'t>> {
    let amount = |node: &&Node<'t>| {
        let folded = fold(node.label());
        let behind = folded.strip_prefix('¥').or_else(|| {
            folded.find('¥').filter(|at| rules.price.price_before.ends(&folded[..*at])).map(|at| &folded[at + '¥'.len_utf8()..])
        });
        behind.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let first_title = body.iter().find(|node| has_id(node, &rules.goods.title_ids)).map(|node| node.bounds().top);
    // The line stands above the title; prices further down belong to other goods.
    body.iter().filter(|node| first_title.is_none_or(|top| node.bounds().top <= top)).find(amount).copied()
}

fn sales(body: &[Node<'_>], price_line: Option<Node<'_>>, rules: &RulePack) -> Option<Metric> {
    let goods = &rules.goods;
    let stated = goods.sales.iter().find_map(|pattern| {
        body.iter().find_map(|node| {
            let folded = fold(node.label());
            let fits = !goods.not_sales.found_in(&folded) && pattern.is_match(&folded);
            if fits { parse_count(node.label()) } else { None }
        })
    });
    stated.or_else(|| {
        let folded = fold(price_line?.label());
        let glued = goods.sales_glued.find(&folded)?.as_str();
        if goods.not_sales.found_in(&folded) { None } else { parse_count(glued) }
    })
}

fn reviews(body: &[Node<'_>], rules: &RulePack) -> Option<Metric> {
    body.iter().find_map(|node| {
        let folded = fold(node.label());
        // 商品评价(4,949)查看全部 is one label on some builds.
        let hit = rules.goods.reviews.iter().find_map(|pattern| pattern.find(&folded))?;
        let label = trimmed(node.label());
        if hit.as_str().len() == folded.len() { parse_count(label) } else { parse_count(hit.as_str()) }
    })
}

fn shop(body: &[Node<'_>], page: Bounds, rules: &RulePack) -> Option<String> {
    let goods = &rules.goods;
    let enter = body.iter().find(|node| has_id(node, &goods.enter_shop_ids) || goods.enter_shop.has(&fold(node.label())))?.bounds();
    let reach = page.height() / 12;
    // The name stands beside the button; on some builds a little above or below it.
    let beside = |slack: i32| -> Option<String> {
        let names: Vec<&str> = body
            .iter()
            .filter(|node| {
                let b = node.bounds();
                b.bottom > enter.top - slack && b.top < enter.bottom + slack && b.left < enter.left && b.height() <= reach
            })
            .filter_map(|node| {
                let label = trimmed(node.label());
                let folded = fold(label);
                let fits = !folded.is_empty() && folded.chars().count() <= 40 && !folded.contains('¥') && !label.contains('\n');
                (fits && !goods.not_shop.iter().any(|pattern| pattern.is_match(&folded))).then_some(label)
            })
            .collect();
        names.iter().find(|name| goods.shop_suffixes.ends(&fold(name))).or(names.first()).map(|name| (*name).to_owned())
    };
    beside(0).or_else(|| beside(reach / 2))
}

/// The price of goods without a choice: the line alone when it can be read in one way, else the reading a group button repeats.
fn certain_price(tree: &UiTree, line: &str, bar_top: i32, rules: &RulePack) -> Option<Price> {
    if let Some(price) = parse_price(line) {
        return (price.cent > 0).then_some(price);
    }
    let splits = glued_splits(line, rules.price_words());
    if let [one] = splits.as_slice() {
        return Some(one.price.clone());
    }
    if splits.is_empty() {
        let header = read_header([line], rules.price_words());
        return header.single().cloned();
    }
    let buttons: Vec<u64> = app_nodes(tree, rules)
        .filter(|node| node.bounds().center().y >= bar_top)
        .filter_map(|node| {
            let folded = fold(node.label());
            if !rules.goods.group_buttons.found_in(&folded) || rules.goods.single_buttons.found_in(&folded) {
                return None;
            }
            match read_header([node.label()], rules.price_words()) {
                HeaderPrice::Single { price, .. } => Some(price.cent),
                HeaderPrice::Missing | HeaderPrice::Open { .. } | HeaderPrice::Ambiguous { .. } => None,
            }
        })
        .collect();
    let mut confirmed = splits.into_iter().filter(|split| buttons.contains(&split.price.cent));
    let first = confirmed.next()?;
    confirmed.next().is_none().then_some(first.price)
}

fn entry(body: &[Node<'_>], page: Bounds, bar_top: i32, rules: &RulePack) -> Option<SkuEntry> {
    body.iter().find_map(|node| {
        let b = node.bounds();
        let starts = |label: &str| {
            let folded = fold(label);
            rules.goods.sku_entry.starts(&folded) && !rules.goods.not_entry.found_in(&folded)
        };
        // A row, not a card: anything taller could hide another control under the finger.
        let is_row = b.height() <= page.height() / 10 && b.bottom <= bar_top && b.top >= page.top;
        if !is_row || !(starts(node.text()) || starts(node.desc())) {
            return None;
        }
        Some(SkuEntry { node: node.id(), at: b.center(), label: trimmed(node.label()).to_owned() })
    })
}

pub(crate) fn has_id(node: &Node<'_>, names: &[String]) -> bool {
    let id = node.resource_id();
    let name = id.rsplit_once('/').map_or(id, |(_, name)| name);
    !name.is_empty() && names.iter().any(|one| one == name)
}
