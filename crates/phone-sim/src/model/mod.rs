//! Which page is on the screen and what a finger, a key or a link does to it.
//! It knows no ADB and no clock. It counts the orders and payments that would have been made, and nothing else comes of them.

mod act;
mod goods;
mod home;
mod links;
mod orders;
mod parts;
mod popups;
mod sheet;
mod walls;

use std::borrow::Cow;

use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::catalogue::{Catalogue, Goods};
use crate::scenario::{Behaviour, OrderStatus, PopupRule, Scenario, Trigger};
use crate::view::{View, Window};
use popups::{Own, Popup};
pub(crate) use popups::{popup, popup_names};

pub(crate) const WIDTH: i32 = 1080;
pub(crate) const HEIGHT: i32 = 2400;
pub(crate) const DENSITY: u32 = 440;

pub(crate) const PDD: &str = "com.xunmeng.pinduoduo";
pub(crate) const LAUNCHER: &str = "com.android.launcher3";
pub(crate) const SYSTEM_UI: &str = "com.android.systemui";
pub(crate) const PAYMENT: &str = "com.tencent.mm";
pub(crate) const MARKET: &str = "com.heytap.market";

const PAGE_ACTIVITY: &str = "com.xunmeng.pinduoduo.activity.NewPageActivity";

/// What a clickable view does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hit {
    /// Clickable, but nothing we model happens.
    Nothing,
    Launch,
    /// Feed card of one goods.
    Card(usize),
    Back,
    Favourite,
    /// 选择规格 row or a buy button.
    OpenSheet,
    CloseSheet,
    Chip {
        dimension: usize,
        value: usize,
    },
    Picture,
    Fewer,
    More,
    Submit,
    /// 确定 of the older sheet.
    Sure,
    /// 提交订单 of the older confirm page.
    SubmitConfirmed,
    KeepPaying,
    LeaveSheet,
    ClosePopup,
    PopupButton(usize),
    PopupCross,
    CloseVideo,
    /// Tab of the order list.
    Tab(u32),
    Order(usize),
    /// 去支付 on a card.
    PayOrder(usize),
    /// 去支付 on the open order.
    PayOpened,
    MoreInfo,
    /// The button of the payment layer.
    PayNow,
    PaidDone,
    Retry,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Page {
    Home { scroll: i32 },
    Goods(GoodsPage),
    Sheet(Sheet),
    Confirm(Sheet),
    Abandon,
    Gallery,
    Orders { tab: u32, scroll: i32 },
    OrderDetail { order: usize, unfolded: bool },
    Promo,
    SoldOut { goods: usize },
    Removed,
    Captcha,
    Risk,
    RealName,
    Login,
    NetworkError { goods_id: String },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GoodsPage {
    pub(crate) goods: usize,
    pub(crate) scroll: i32,
    pub(crate) favourite: bool,
    /// The video still floats.
    pub(crate) video: bool,
    /// Chosen value per dimension, remembered while the page lives.
    pub(crate) chosen: Vec<Option<usize>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sheet {
    pub(crate) goods: usize,
    pub(crate) chosen: Vec<Option<usize>>,
    pub(crate) quantity: u32,
    pub(crate) scroll: i32,
    pub(crate) sideways: Vec<i32>,
    /// A chip was tapped since it opened.
    pub(crate) touched: bool,
    /// 确定放弃吗? was already shown for this sheet.
    pub(crate) asked: bool,
    /// Ends in 确定, as in older builds.
    pub(crate) older: bool,
}

/// What differs from one look to the next on an unchanged page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Glance {
    /// Prices are not there yet.
    pub(crate) unbound: bool,
    /// Looks so far: countdowns move with them, so that a test needs no clock.
    pub(crate) tick: u32,
}

/// Which app is in front.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Front {
    Launcher,
    Pdd,
    /// The payment layer for one order.
    Payment {
        order: usize,
        paid: bool,
    },
    Market,
}

/// Where links into Pinduoduo are diverted to, and what else is switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Walls {
    pub(crate) captcha: bool,
    pub(crate) risk: bool,
    pub(crate) real_name: bool,
    pub(crate) login: bool,
    pub(crate) network: bool,
    pub(crate) notification: bool,
    pub(crate) locked: bool,
    pub(crate) rotated: bool,
    /// Prices differ at every look.
    pub(crate) moving_prices: bool,
    /// So many looks after opening or choosing have no price.
    pub(crate) lazy_looks: u32,
    /// The next so many goods links open other goods.
    pub(crate) wrong_goods: u32,
}

/// An order the submit button made, or one from before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) sn: String,
    pub(crate) goods: usize,
    pub(crate) spec: String,
    pub(crate) quantity: u32,
    pub(crate) amount_cent: u64,
    pub(crate) status: OrderStatus,
    pub(crate) placed: String,
}

/// What would have happened in the real world: the ground truth of every safety test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    pub(crate) orders: u32,
    /// How often a payment layer came up, or would have.
    pub(crate) payments_opened: u32,
    pub(crate) payments: u32,
    pub(crate) paid_cent: u64,
}

#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) catalogue: Catalogue,
    pub(crate) installed: bool,
    pub(crate) walls: Walls,
    pub(crate) awake: bool,
    pub(crate) counts: Counts,
    /// Seconds since 1970; whoever acts sets it before, because the model reads no clock.
    pub(crate) now: u64,
    /// How often somebody looked.
    pub(crate) looks: u32,
    behaviour: Behaviour,
    /// Rules that still have layers to raise, and how often their trigger came.
    popup_rules: Vec<(PopupRule, u32)>,
    /// Layers over the page, the last on top.
    layers: Vec<&'static Popup>,
    front: Front,
    /// Pinduoduo's back stack; empty = not running.
    stack: Vec<Page>,
    orders: Vec<Order>,
    /// Up to this look prices are not bound.
    unbound_until: u32,
    rng: StdRng,
}

/// What a link led to, as `am start` needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Opened {
    Yes(String),
    /// No activity takes it.
    Unresolved,
}

impl Model {
    pub(crate) fn new(catalogue: Catalogue, installed: bool, seed: u64) -> Self {
        Self {
            catalogue,
            installed,
            walls: Walls::default(),
            awake: true,
            counts: Counts::default(),
            now: 0,
            looks: 0,
            behaviour: Behaviour::default(),
            popup_rules: Vec::new(),
            layers: Vec::new(),
            front: Front::Launcher,
            stack: Vec::new(),
            orders: Vec::new(),
            unbound_until: 0,
            rng: StdRng::seed_from_u64(seed),
        }
    }

    /// Puts a scenario's state in place: what it does not name stays.
    pub(crate) fn set_up(&mut self, scenario: &Scenario) {
        self.behaviour = scenario.behaviour;
        self.popup_rules = scenario.popups.iter().map(|rule| (rule.clone(), 0)).collect();
        for before in &scenario.orders {
            if let Some(goods) = self.catalogue.goods.iter().position(|one| one.goods_id == before.goods_id) {
                let at = self.orders.len() as u64;
                // Placed on the days before, one an hour.
                let placed = crate::clock::local(self.now.saturating_sub(90_000 - at * 3600));
                self.orders.push(Order {
                    sn: order_number(placed, at + 100),
                    goods,
                    spec: before.spec.clone(),
                    quantity: before.quantity,
                    amount_cent: before.amount_cent,
                    status: before.status,
                    placed: placed.as_stamp(),
                });
            }
        }
        if let Some(link) = &scenario.open {
            self.open_link(&format!("https://mobile.yangkeduo.com/{link}"), None);
        }
    }

    /// Number, amount and state of every order, the oldest first.
    pub(crate) fn orders(&self) -> &[Order] {
        &self.orders
    }

    /// Stable name of the screen for tests and the journal.
    pub(crate) fn screen_name(&self) -> String {
        if !self.awake {
            return "screen_off".into();
        }
        if self.walls.locked {
            return "locked".into();
        }
        if let Some(layer) = self.layers.last() {
            return format!("popup:{}", layer.name);
        }
        let named = |kind: &str, goods: usize| format!("{kind}:{}", self.catalogue.goods[goods].goods_id);
        match self.front {
            Front::Launcher => "launcher".into(),
            Front::Market => "market".into(),
            Front::Payment { paid: false, .. } => "payment".into(),
            Front::Payment { paid: true, .. } => "paid".into(),
            Front::Pdd => match self.top() {
                None => "launcher".into(),
                Some(Page::Home { .. }) => "home".into(),
                Some(Page::Goods(page)) => named("goods", page.goods),
                Some(Page::Sheet(sheet)) => named("sheet", sheet.goods),
                Some(Page::Confirm(sheet)) => named("confirm", sheet.goods),
                Some(Page::Abandon) => "abandon".into(),
                Some(Page::Gallery) => "gallery".into(),
                Some(Page::Orders { .. }) => "orders".into(),
                Some(Page::OrderDetail { order, .. }) => format!("order:{}", self.orders[*order].sn),
                Some(Page::Promo) => "promo".into(),
                Some(Page::SoldOut { .. }) => "sold_out".into(),
                Some(Page::Removed) => "removed".into(),
                Some(Page::Captcha) => "captcha".into(),
                Some(Page::Risk) => "risk".into(),
                Some(Page::RealName) => "real_name".into(),
                Some(Page::Login) => "login".into(),
                Some(Page::NetworkError { .. }) => "network_error".into(),
            },
        }
    }

    /// Package and activity with the focus, as `dumpsys window` names them.
    pub(crate) fn focus(&self) -> Option<(&'static str, &'static str)> {
        if !self.awake || self.walls.locked {
            return None;
        }
        if let Some(layer) = self.layers.last() {
            return Some((&layer.package, &layer.activity));
        }
        let launcher = (LAUNCHER, "com.android.launcher3.Launcher");
        Some(match self.front {
            Front::Launcher => launcher,
            Front::Market => (MARKET, "com.heytap.market.DetailActivity"),
            Front::Payment { .. } => (PAYMENT, "com.tencent.mm.plugin.wallet_index.ui.WalletIndexUI"),
            Front::Pdd => match self.top() {
                None => launcher,
                Some(Page::Home { .. }) => (PDD, "com.xunmeng.pinduoduo.ui.activity.MainFrameActivity"),
                Some(Page::Login) => (PDD, "com.xunmeng.pinduoduo.login.LoginActivity"),
                Some(Page::Gallery) => (PDD, "com.xunmeng.pinduoduo.goods.gallery.GoodsDetailGalleryActivity"),
                Some(_) => (PDD, PAGE_ACTIVITY),
            },
        })
    }

    /// Goods whose page is open in Pinduoduo, whatever lies over it.
    pub(crate) fn goods_on_top(&self) -> Option<&Goods> {
        let at = self.stack.iter().rev().find_map(|page| match page {
            Page::Goods(page) => Some(page.goods),
            Page::SoldOut { goods } => Some(*goods),
            _ => None,
        })?;
        let covered = matches!(
            self.top(),
            Some(
                Page::Captcha
                    | Page::Risk
                    | Page::RealName
                    | Page::Login
                    | Page::NetworkError { .. }
                    | Page::Orders { .. }
                    | Page::OrderDetail { .. }
            )
        );
        if covered { None } else { self.catalogue.goods.get(at) }
    }

    pub(crate) fn running(&self) -> bool {
        !self.stack.is_empty()
    }

    /// The page keeps moving, so the stock dump never finds a quiet second.
    pub(crate) fn restless(&self) -> bool {
        let moving = |goods: usize, video: bool| self.catalogue.goods[goods].offer == crate::catalogue::Offer::Limited || video;
        self.behaviour.busy_countdown
            && self.front == Front::Pdd
            && match self.top() {
                Some(Page::Goods(page)) => moving(page.goods, page.video),
                Some(Page::Sheet(one)) => moving(one.goods, false),
                _ => false,
            }
    }

    fn top(&self) -> Option<&Page> {
        self.stack.last()
    }

    fn glance(&self) -> Glance {
        Glance { unbound: self.walls.lazy_looks > 0 && self.looks <= self.unbound_until, tick: self.looks }
    }

    /// Prices must be bound again; the next looks have none.
    fn unbind(&mut self) {
        if self.walls.lazy_looks > 0 {
            self.unbound_until = self.looks + self.walls.lazy_looks;
        }
    }

    /// The goods as the screen has them at this look.
    fn shown(&self, at: usize) -> Cow<'_, Goods> {
        let goods = &self.catalogue.goods[at];
        if !self.walls.moving_prices {
            return Cow::Borrowed(goods);
        }
        let mut moved = goods.clone();
        for price in moved.prices.values_mut().flatten() {
            *price += u64::from(self.looks % 50) * 10;
        }
        Cow::Owned(moved)
    }

    /// The windows a dump sees; none = no root node.
    pub(crate) fn windows(&self) -> Vec<Window> {
        if !self.awake {
            return Vec::new();
        }
        if self.walls.locked {
            return vec![Window { package: SYSTEM_UI, root: home::keyguard() }];
        }
        let (package, mut root) = match (self.front, self.top()) {
            (Front::Launcher, _) | (Front::Pdd, None) => (LAUNCHER, home::launcher(self.installed)),
            (Front::Market, _) => (MARKET, orders::market()),
            (Front::Payment { paid: true, .. }, _) => (PAYMENT, orders::paid()),
            (Front::Payment { order, .. }, _) => (PAYMENT, orders::payment(self.orders.get(order).map_or(0, |order| order.amount_cent))),
            (Front::Pdd, Some(page)) => (PDD, self.page(page)),
        };
        let mut windows = Vec::new();
        let mut package: &'static str = package;
        for layer in &self.layers {
            match layer.window {
                Own::Same if layer.package == package => root = layer.over(root),
                // A small window of somebody else over ours: both are there.
                Own::Same => {
                    windows.push(Window { package: &layer.package, root: layer.over(crate::view::ghost(crate::view::rect(0, 0, 1, 1))) })
                }
                Own::Own => {
                    root = layer.over(root);
                    package = &layer.package;
                }
            }
        }
        windows.insert(0, Window { package, root });
        if self.walls.notification {
            windows.push(Window { package: SYSTEM_UI, root: home::notification_icons() });
        }
        windows
    }

    fn page(&self, page: &Page) -> View {
        match page {
            Page::Home { scroll } => home::feed(&self.catalogue, *scroll),
            Page::Goods(page) => goods::page(&self.shown(page.goods), page, self.glance()),
            Page::Sheet(one) => {
                let shown = self.shown(one.goods);
                let below = self.goods_below().map(|page| goods::page(&shown, page, self.glance()));
                sheet::page(&shown, one, below, self.glance())
            }
            Page::Confirm(one) => orders::confirm(&self.shown(one.goods), one),
            Page::Abandon => {
                let below = self.stack.len().checked_sub(2).map(|at| &self.stack[at]);
                let amount = if let Some(Page::Sheet(one)) = below { sheet::amount(&self.shown(one.goods), one) } else { None };
                walls::abandon(amount, below.map(|page| self.page(page)))
            }
            Page::Gallery => walls::gallery(),
            Page::Orders { tab, scroll } => orders::list(&self.orders, &self.catalogue, *tab, *scroll),
            Page::OrderDetail { order, unfolded } => {
                let one = &self.orders[*order];
                orders::detail(one, &self.catalogue.goods[one.goods], *unfolded)
            }
            Page::Promo => orders::promo(),
            Page::SoldOut { goods } => walls::sold_out(&self.catalogue, *goods),
            Page::Removed => walls::removed(),
            Page::Captcha => walls::captcha(),
            Page::Risk => walls::risk(),
            Page::RealName => walls::real_name(),
            Page::Login => walls::login(),
            Page::NetworkError { .. } => walls::network_error(),
        }
    }

    /// The goods page a sheet lies over.
    fn goods_below(&self) -> Option<&GoodsPage> {
        self.stack.iter().rev().find_map(|page| if let Page::Goods(page) = page { Some(page) } else { None })
    }

    /// Brings up the layers whose rule waits for this.
    pub(crate) fn trigger(&mut self, trigger: Trigger) {
        for (rule, seen) in &mut self.popup_rules {
            if rule.on != trigger {
                continue;
            }
            *seen += 1;
            let due = *seen >= rule.from && *seen - rule.from < rule.times;
            if let Some(layer) = popup(&rule.name).filter(|_| due) {
                self.layers.push(layer);
            }
        }
    }

    /// Raises a layer at once; false when there is none of that name.
    pub(crate) fn raise(&mut self, name: &str) -> bool {
        let found = popup(name);
        self.layers.extend(found);
        found.is_some()
    }
}

/// The status bar as another window, which agents see and the stock dump does not.
pub(crate) fn status_icons() -> Window {
    Window { package: SYSTEM_UI, root: home::status_icons() }
}

/// Somebody else's window in place of ours.
pub(crate) fn notification_window() -> Window {
    Window { package: SYSTEM_UI, root: home::notification_window() }
}

/// As Pinduoduo numbers orders: the day, then fifteen digits.
fn order_number(placed: crate::clock::Local, at: u64) -> String {
    format!("{:02}{:02}{:02}-{:015}", placed.year % 100, placed.month, placed.day, 400_000_000_000_u64 + at * 7919)
}

#[cfg(test)]
mod scenario_tests;
#[cfg(test)]
mod tests;
