//! Which page is on the screen and what a finger, a key or a link does to it.
//! It knows no ADB and no clock, and it has no path on which a payment succeeds.

mod goods;
mod home;
mod parts;
mod sheet;
mod walls;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::catalogue::{Abandon, Catalogue, Goods};
use crate::view::{Scroll, View, Window};

pub(crate) const WIDTH: i32 = 1080;
pub(crate) const HEIGHT: i32 = 2400;
pub(crate) const DENSITY: u32 = 440;

pub(crate) const PDD: &str = "com.xunmeng.pinduoduo";
pub(crate) const LAUNCHER: &str = "com.android.launcher3";
pub(crate) const SYSTEM_UI: &str = "com.android.systemui";
pub(crate) const PAYMENT: &str = "com.tencent.mm";

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
    KeepPaying,
    LeaveSheet,
    ClosePopup,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Page {
    Home { scroll: i32 },
    Goods(GoodsPage),
    Sheet(Sheet),
    Abandon,
    Gallery,
    Orders,
    SoldOut { goods: usize },
    Removed,
    Captcha,
    Login,
    NetworkError,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GoodsPage {
    pub(crate) goods: usize,
    pub(crate) scroll: i32,
    pub(crate) favourite: bool,
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
}

/// Which app is in front.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Front {
    Launcher,
    Pdd,
    Payment,
}

/// Where links into Pinduoduo are diverted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Walls {
    pub(crate) captcha: bool,
    pub(crate) login: bool,
    pub(crate) network: bool,
    pub(crate) notification: bool,
    pub(crate) locked: bool,
}

/// An order the submit button made. It stays unpaid for ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) sn: String,
    pub(crate) goods: usize,
    pub(crate) spec: String,
    pub(crate) amount_cent: u64,
}

#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) catalogue: Catalogue,
    pub(crate) installed: bool,
    pub(crate) walls: Walls,
    pub(crate) awake: bool,
    front: Front,
    /// Pinduoduo's back stack; empty = not running.
    stack: Vec<Page>,
    orders: Vec<Order>,
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
            front: Front::Launcher,
            stack: Vec::new(),
            orders: Vec::new(),
            rng: StdRng::seed_from_u64(seed),
        }
    }

    pub(crate) fn orders_created(&self) -> u32 {
        self.orders.len() as u32
    }

    /// Stable name of the screen for tests and the journal.
    pub(crate) fn screen_name(&self) -> String {
        if !self.awake {
            return "screen_off".into();
        }
        if self.walls.locked {
            return "locked".into();
        }
        match self.front {
            Front::Launcher => "launcher".into(),
            Front::Payment => "payment".into(),
            Front::Pdd => match self.top() {
                None => "launcher".into(),
                Some(Page::Home { .. }) => "home".into(),
                Some(Page::Goods(page)) => format!("goods:{}", self.catalogue.goods[page.goods].goods_id),
                Some(Page::Sheet(sheet)) => format!("sheet:{}", self.catalogue.goods[sheet.goods].goods_id),
                Some(Page::Abandon) => "abandon".into(),
                Some(Page::Gallery) => "gallery".into(),
                Some(Page::Orders) => "orders".into(),
                Some(Page::SoldOut { .. }) => "sold_out".into(),
                Some(Page::Removed) => "removed".into(),
                Some(Page::Captcha) => "captcha".into(),
                Some(Page::Login) => "login".into(),
                Some(Page::NetworkError) => "network_error".into(),
            },
        }
    }

    /// Package and activity with the focus, as `dumpsys window` names them.
    pub(crate) fn focus(&self) -> Option<(&'static str, &'static str)> {
        if !self.awake || self.walls.locked {
            return None;
        }
        Some(match self.front {
            Front::Launcher => (LAUNCHER, "com.android.launcher3.Launcher"),
            Front::Payment => (PAYMENT, "com.tencent.mm.plugin.wallet_index.ui.WalletIndexUI"),
            Front::Pdd => match self.top() {
                None => (LAUNCHER, "com.android.launcher3.Launcher"),
                Some(Page::Home { .. }) => (PDD, "com.xunmeng.pinduoduo.ui.activity.MainFrameActivity"),
                Some(Page::Login) => (PDD, "com.xunmeng.pinduoduo.login.LoginActivity"),
                Some(Page::Gallery) => (PDD, "com.xunmeng.pinduoduo.goods.gallery.GoodsDetailGalleryActivity"),
                Some(
                    Page::Goods(_)
                    | Page::Sheet(_)
                    | Page::Abandon
                    | Page::Orders
                    | Page::SoldOut { .. }
                    | Page::Removed
                    | Page::Captcha
                    | Page::NetworkError,
                ) => (PDD, "com.xunmeng.pinduoduo.activity.NewPageActivity"),
            },
        })
    }

    /// Goods whose page is open in Pinduoduo, whatever lies over it.
    pub(crate) fn goods_on_top(&self) -> Option<&Goods> {
        let at = self.stack.iter().rev().find_map(|page| match page {
            Page::Goods(page) => Some(page.goods),
            Page::SoldOut { goods } => Some(*goods),
            Page::Home { .. }
            | Page::Sheet(_)
            | Page::Abandon
            | Page::Gallery
            | Page::Orders
            | Page::Removed
            | Page::Captcha
            | Page::Login
            | Page::NetworkError => None,
        })?;
        let covered = matches!(self.top(), Some(Page::Captcha | Page::Login | Page::NetworkError));
        if covered { None } else { self.catalogue.goods.get(at) }
    }

    pub(crate) fn running(&self) -> bool {
        !self.stack.is_empty()
    }

    fn top(&self) -> Option<&Page> {
        self.stack.last()
    }

    /// The windows a dump sees; none = no root node.
    pub(crate) fn windows(&self) -> Vec<Window> {
        if !self.awake {
            return Vec::new();
        }
        if self.walls.locked {
            return vec![Window { package: SYSTEM_UI, root: home::keyguard() }];
        }
        let mut windows = vec![match (self.front, self.top()) {
            (Front::Launcher, _) | (Front::Pdd, None) => Window { package: LAUNCHER, root: home::launcher(self.installed) },
            (Front::Payment, _) => {
                let amount = self.orders.last().map_or(0, |order| order.amount_cent);
                Window { package: PAYMENT, root: walls::payment(amount) }
            }
            (Front::Pdd, Some(page)) => Window { package: PDD, root: self.page(page) },
        }];
        if self.walls.notification {
            windows.push(Window { package: SYSTEM_UI, root: home::notification_icons() });
        }
        windows
    }

    fn page(&self, page: &Page) -> View {
        match page {
            Page::Home { scroll } => home::feed(&self.catalogue, *scroll),
            Page::Goods(page) => goods::page(&self.catalogue.goods[page.goods], page),
            Page::Sheet(one) => {
                let shown = &self.catalogue.goods[one.goods];
                sheet::page(shown, one, self.goods_below().map(|page| goods::page(shown, page)))
            }
            Page::Abandon => {
                let below = self.stack.len().checked_sub(2).map(|at| &self.stack[at]);
                let amount = if let Some(Page::Sheet(one)) = below { sheet::amount(&self.catalogue.goods[one.goods], one) } else { None };
                walls::abandon(amount, below.map(|page| self.page(page)))
            }
            Page::Gallery => walls::gallery(),
            Page::Orders => walls::orders(&self.orders, &self.catalogue),
            Page::SoldOut { goods } => walls::sold_out(&self.catalogue, *goods),
            Page::Removed => walls::removed(),
            Page::Captcha => walls::captcha(),
            Page::Login => walls::login(),
            Page::NetworkError => walls::network_error(),
        }
    }

    /// The goods page a sheet lies over.
    fn goods_below(&self) -> Option<&GoodsPage> {
        self.stack.iter().rev().find_map(|page| if let Page::Goods(page) = page { Some(page) } else { None })
    }

    /// A finger goes down and up at one place. Returns what it met.
    pub(crate) fn tap(&mut self, x: i32, y: i32) -> String {
        let windows = self.windows();
        let Some(window) = windows.first() else {
            return "screen is off".into();
        };
        let Some(met) = window.root.touched(x, y) else {
            return "nothing".into();
        };
        let caption = met.caption();
        let hit = met.hit.unwrap_or(Hit::Nothing);
        self.apply(hit);
        if caption.is_empty() { format!("{hit:?}") } else { caption }
    }

    fn apply(&mut self, hit: Hit) {
        match hit {
            Hit::Nothing => {}
            Hit::Launch => {
                self.launch();
            }
            Hit::Card(goods) => {
                if let Some(one) = self.catalogue.goods.get(goods) {
                    let id = one.goods_id.clone();
                    self.open_goods(&id);
                }
            }
            Hit::Back => self.back(),
            Hit::Favourite => {
                if let Some(Page::Goods(page)) = self.stack.last_mut() {
                    page.favourite = !page.favourite;
                }
            }
            Hit::OpenSheet => self.open_sheet(),
            Hit::CloseSheet => self.close_sheet(),
            Hit::Chip { dimension, value } => self.choose(dimension, value),
            Hit::Picture => self.stack.push(Page::Gallery),
            Hit::Fewer => {
                if let Some(Page::Sheet(one)) = self.stack.last_mut() {
                    one.quantity = one.quantity.saturating_sub(1).max(1);
                }
            }
            Hit::More => {
                if let Some(Page::Sheet(one)) = self.stack.last_mut() {
                    one.quantity = (one.quantity + 1).min(200);
                }
            }
            Hit::Submit => self.submit(),
            Hit::KeepPaying => {
                self.stack.pop();
                self.submit();
            }
            Hit::LeaveSheet => {
                self.stack.pop();
                self.leave_sheet();
            }
            Hit::ClosePopup => {
                self.stack.pop();
            }
        }
    }

    fn open_sheet(&mut self) {
        let Some(Page::Goods(page)) = self.stack.last() else {
            return;
        };
        let goods = &self.catalogue.goods[page.goods];
        let mut chosen = page.chosen.clone();
        if goods.preselected && chosen.iter().all(Option::is_none) {
            chosen = goods.dimensions.iter().map(|one| one.values.iter().position(|value| !value.sold_out)).collect();
        }
        let sheet =
            Sheet { goods: page.goods, sideways: vec![0; chosen.len()], chosen, quantity: 1, scroll: 0, touched: false, asked: false };
        self.stack.push(Page::Sheet(sheet));
    }

    fn choose(&mut self, dimension: usize, value: usize) {
        let Some(Page::Sheet(one)) = self.stack.last_mut() else {
            return;
        };
        let goods = &self.catalogue.goods[one.goods];
        let sellable = goods.dimensions.get(dimension).and_then(|it| it.values.get(value)).is_some_and(|it| !it.sold_out);
        // A sold-out chip only shows a toast, which is in no dump.
        if sellable {
            one.chosen[dimension] = Some(value);
            one.touched = true;
        }
    }

    fn close_sheet(&mut self) {
        let Some(Page::Sheet(one)) = self.stack.last_mut() else {
            return;
        };
        let asks = match self.catalogue.goods[one.goods].abandon {
            Abandon::Never => false,
            Abandon::AfterSelecting => one.touched,
            Abandon::Always => true,
        };
        if asks && !one.asked {
            one.asked = true;
            self.stack.push(Page::Abandon);
        } else {
            self.leave_sheet();
        }
    }

    fn leave_sheet(&mut self) {
        if let Some(Page::Sheet(one)) = self.stack.last() {
            let chosen = one.chosen.clone();
            self.stack.pop();
            if let Some(Page::Goods(page)) = self.stack.last_mut() {
                page.chosen = chosen;
            }
        }
    }

    /// Creates the order and brings the payment layer forward; nothing completes it from there.
    fn submit(&mut self) {
        let Some(Page::Sheet(one)) = self.stack.last() else {
            return;
        };
        let goods = &self.catalogue.goods[one.goods];
        let Some(amount_cent) = sheet::amount(goods, one) else {
            return;
        };
        let order = Order {
            sn: format!("261201-{:015}", 400_000_000_000_u64 + self.orders.len() as u64 * 7919),
            goods: one.goods,
            spec: sheet::chosen_text(goods, one).unwrap_or_default(),
            amount_cent,
        };
        self.orders.push(order);
        self.leave_sheet();
        self.front = Front::Payment;
    }

    fn back(&mut self) {
        match self.front {
            Front::Launcher => {}
            Front::Payment => self.front = Front::Pdd,
            Front::Pdd => match self.stack.last() {
                None => self.front = Front::Launcher,
                // Real: a toast 再按一次返回退回桌面; the model leaves at once.
                Some(Page::Home { .. }) => self.front = Front::Launcher,
                Some(Page::Sheet(_)) => self.close_sheet(),
                Some(
                    Page::Goods(_)
                    | Page::Abandon
                    | Page::Gallery
                    | Page::Orders
                    | Page::SoldOut { .. }
                    | Page::Removed
                    | Page::Captcha
                    | Page::Login
                    | Page::NetworkError,
                ) => {
                    self.stack.pop();
                }
            },
        }
    }

    /// Android key codes; unknown ones do nothing.
    pub(crate) fn key(&mut self, code: u32) -> String {
        match code {
            3 => {
                if self.awake && !self.walls.locked {
                    self.front = Front::Launcher;
                }
                "HOME".into()
            }
            4 => {
                if self.awake && !self.walls.locked {
                    self.back();
                }
                "BACK".into()
            }
            26 => {
                self.awake = !self.awake;
                "POWER".into()
            }
            223 => {
                self.awake = false;
                "SLEEP".into()
            }
            224 => {
                self.awake = true;
                "WAKEUP".into()
            }
            82 => "MENU".into(),
            other => format!("key {other}"),
        }
    }

    pub(crate) fn swipe(&mut self, from: (i32, i32), to: (i32, i32), duration_ms: u32) -> String {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        if dx.abs() < 24 && dy.abs() < 24 {
            return if duration_ms > 400 { "long press".into() } else { self.tap(from.0, from.1) };
        }
        let sideways = dx.abs() > dy.abs();
        let windows = self.windows();
        let Some(scroll) = windows.first().and_then(|window| window.root.scroller(from.0, from.1, sideways)) else {
            return "nothing scrolls here".into();
        };
        // A real finger is never exact: up to 2 % more or less, by seed.
        let jitter: i32 = self.rng.random_range(-20..=20);
        let moved = |delta: i32| -delta - delta * jitter / 1000;
        match (scroll, self.stack.last_mut()) {
            (Scroll::Page, Some(Page::Goods(page))) => {
                page.scroll = (page.scroll + moved(dy)).clamp(0, goods::max_scroll(&self.catalogue.goods[page.goods]));
                "page".into()
            }
            (Scroll::Page, Some(Page::Home { scroll })) => {
                *scroll = (*scroll + moved(dy)).clamp(0, home::max_scroll(&self.catalogue));
                "feed".into()
            }
            (Scroll::Panel, Some(Page::Sheet(one))) => {
                let most = sheet::max_scroll(&self.catalogue.goods[one.goods]);
                one.scroll = (one.scroll + moved(dy)).clamp(0, most);
                "panel".into()
            }
            (Scroll::Chips(dimension), Some(Page::Sheet(one))) => {
                let most = sheet::max_sideways(&self.catalogue.goods[one.goods], dimension);
                one.sideways[dimension] = (one.sideways[dimension] + moved(dx)).clamp(0, most);
                "chips".into()
            }
            (Scroll::Page | Scroll::Panel | Scroll::Chips(_), _) => "nothing scrolls here".into(),
        }
    }

    /// Brings Pinduoduo forward as its icon does; false when it is not installed.
    pub(crate) fn launch(&mut self) -> bool {
        if !self.installed {
            return false;
        }
        self.front = Front::Pdd;
        if self.stack.is_empty() {
            self.stack.push(Page::Home { scroll: 0 });
        }
        if self.walls.login && !matches!(self.top(), Some(Page::Login)) {
            self.stack.push(Page::Login);
        }
        true
    }

    pub(crate) fn force_stop(&mut self) {
        self.stack.clear();
        if self.front == Front::Pdd {
            self.front = Front::Launcher;
        }
    }

    /// Opens a Pinduoduo link; `package` restricts who may take it.
    pub(crate) fn open_link(&mut self, url: &str, package: Option<&str>) -> Opened {
        if !self.installed || package.is_some_and(|package| package != PDD) {
            return Opened::Unresolved;
        }
        let Some(rest) = [
            "https://mobile.yangkeduo.com/",
            "http://mobile.yangkeduo.com/",
            "https://mobile.pinduoduo.com/",
            "pinduoduo://com.xunmeng.pinduoduo/",
        ]
        .iter()
        .find_map(|prefix| url.strip_prefix(prefix)) else {
            return Opened::Unresolved;
        };
        let (page, query) = rest.split_once('?').unwrap_or((rest, ""));
        let asked = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        match page {
            "goods.html" | "goods1.html" | "goods2.html" => {
                let id = asked("goods_id").unwrap_or_default().to_owned();
                self.open_goods(&id);
            }
            "orders.html" => self.show(Page::Orders),
            _ => {
                self.launch();
            }
        }
        Opened::Yes(self.screen_name())
    }

    fn open_goods(&mut self, id: &str) {
        let page = if self.walls.captcha {
            Page::Captcha
        } else if self.walls.network {
            Page::NetworkError
        } else {
            match self.catalogue.goods.iter().position(|one| one.goods_id == id) {
                None => Page::Removed,
                Some(at) if self.catalogue.goods[at].removed => Page::Removed,
                Some(at) if self.catalogue.goods[at].sold_out => Page::SoldOut { goods: at },
                Some(at) => Page::Goods(GoodsPage {
                    goods: at,
                    scroll: 0,
                    favourite: false,
                    chosen: vec![None; self.catalogue.goods[at].dimensions.len()],
                }),
            }
        };
        self.show(page);
    }

    fn show(&mut self, page: Page) {
        self.front = Front::Pdd;
        self.stack = vec![Page::Home { scroll: 0 }, if self.walls.login { Page::Login } else { page }];
    }
}

#[cfg(test)]
mod tests;
