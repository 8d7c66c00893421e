//! What a flow may ask for, and the pages a recogniser may name.
//!
//! Keys are three, links are built here from a goods id or a kind of order list, text is a small number; there is no free text and no
//! free intent (D10).

use std::fmt;

use crate::tree::{NodeId, Point};

/// The page a recogniser sees. `Unknown` is the honest default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Screen {
    /// Another app or the launcher is in front.
    Elsewhere,
    /// Pinduoduo's front page.
    Home,
    Goods,
    /// The colour and size sheet, which on today's Pinduoduo is also the checkout.
    SkuSheet,
    OrderList,
    /// "Really leave?" after closing the sheet; one of its buttons pays.
    AbandonPopup,
    /// Any other overlay of Pinduoduo.
    Popup,
    LoginWall,
    /// Captcha, risk control, real name: a person takes over.
    RiskWall,
    /// Sold out, removed, network error.
    Unavailable,
    Unknown,
}

impl Screen {
    /// Which kinds of action a page allows at all.
    pub(crate) fn allows(self, action: &Action) -> bool {
        match action {
            // HOME and WAKEUP press nothing inside an app, so they are the way out of every page.
            Action::Key(Key::Home | Key::Wakeup) => true,
            // Digits go into the quantity field and nowhere else.
            Action::TypeQuantity { .. } => self == Screen::SkuSheet,
            Action::Tap { .. } | Action::Swipe { .. } => self.is_a_page(),
            Action::Key(Key::Back) => self.is_a_page() || self == Screen::Unavailable,
            Action::OpenGoods(_) | Action::OpenOrders(_) => self.is_a_page() || matches!(self, Screen::Unavailable | Screen::Elsewhere),
        }
    }

    /// A page of Pinduoduo that was recognised and is not a wall.
    fn is_a_page(self) -> bool {
        match self {
            Screen::Home | Screen::Goods | Screen::SkuSheet | Screen::OrderList | Screen::AbandonPopup | Screen::Popup => true,
            Screen::Elsewhere | Screen::LoginWall | Screen::RiskWall | Screen::Unavailable | Screen::Unknown => false,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Screen::Elsewhere => "elsewhere",
            Screen::Home => "home",
            Screen::Goods => "goods",
            Screen::SkuSheet => "sku_sheet",
            Screen::OrderList => "order_list",
            Screen::AbandonPopup => "abandon_popup",
            Screen::Popup => "popup",
            Screen::LoginWall => "login_wall",
            Screen::RiskWall => "risk_wall",
            Screen::Unavailable => "unavailable",
            Screen::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Screen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The only keys there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    Home,
    Back,
    Wakeup,
}

impl Key {
    /// Android `KeyEvent` code.
    pub(crate) fn code(self) -> u16 {
        match self {
            Key::Home => 3,
            Key::Back => 4,
            Key::Wakeup => 224,
        }
    }
}

/// One thing to do on the phone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// `at` must lie inside `node`.
    Tap {
        node: NodeId,
        at: Point,
    },
    Swipe {
        from: Point,
        to: Point,
        duration_ms: u32,
    },
    Key(Key),
    /// Replaces the number in the sheet's quantity field, which must have the focus.
    TypeQuantity {
        node: NodeId,
        quantity: Quantity,
    },
    OpenGoods(GoodsId),
    OpenOrders(OrderList),
}

/// How many pieces: 1 to 999, so that what is typed is digits by construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity(u16);

impl Quantity {
    /// `None` for nothing and for more than any task may ask for.
    pub fn new(pieces: u16) -> Option<Quantity> {
        (1..=999).contains(&pieces).then_some(Quantity(pieces))
    }

    pub fn pieces(self) -> u16 {
        self.0
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The lists of orders that may be opened (facts/pdd 1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OrderList {
    All,
    Unpaid,
}

impl OrderList {
    /// Built here from nothing but the kind (D10).
    pub fn link(self) -> &'static str {
        match self {
            OrderList::All => "pinduoduo://com.xunmeng.pinduoduo/orders.html?type=0",
            OrderList::Unpaid => "pinduoduo://com.xunmeng.pinduoduo/orders.html?type=1",
        }
    }
}

/// Why a text is not a goods id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadGoodsId {
    #[error("a goods id is 1 to 20 digits, not {0:?}")]
    NotDigits(String),
    #[error("the link is not a pinduoduo goods link")]
    NotAGoodsLink,
    #[error("the link names {0} goods ids instead of one")]
    NotExactlyOne(usize),
}

/// A Pinduoduo goods id: 1 to 20 ASCII digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GoodsId(String);

impl GoodsId {
    /// Reads the id out of a goods link; anything but exactly one numeric id is a data error (D10).
    pub fn from_goods_url(url: &str) -> Result<GoodsId, BadGoodsId> {
        let rest = ["https://", "http://", "pinduoduo://"]
            .iter()
            .find_map(|scheme| url.trim().strip_prefix(scheme))
            .ok_or(BadGoodsId::NotAGoodsLink)?;
        let (host, rest) = rest.split_once('/').ok_or(BadGoodsId::NotAGoodsLink)?;
        let known = host == "com.xunmeng.pinduoduo"
            || ["yangkeduo.com", "pinduoduo.com"]
                .iter()
                .any(|domain| host.strip_suffix(domain).is_some_and(|front| front.is_empty() || front.ends_with('.')));
        let (path, query) = rest.split_once('?').ok_or(BadGoodsId::NotAGoodsLink)?;
        let goods_page = path.starts_with("goods") && path.ends_with(".html");
        if !known || !goods_page {
            return Err(BadGoodsId::NotAGoodsLink);
        }
        let query = query.split('#').next().unwrap_or_default();
        let ids: Vec<&str> = query.split('&').filter_map(|pair| pair.strip_prefix("goods_id=")).collect();
        match ids.as_slice() {
            [id] => GoodsId::try_from(*id),
            other => Err(BadGoodsId::NotExactlyOne(other.len())),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The canonical link (facts/pdd 1.2). Digits only, so it needs no quoting anywhere.
    pub fn link(&self) -> String {
        format!("https://mobile.yangkeduo.com/goods.html?goods_id={}", self.0)
    }
}

impl TryFrom<&str> for GoodsId {
    type Error = BadGoodsId;

    fn try_from(text: &str) -> Result<GoodsId, BadGoodsId> {
        if (1..=20).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit()) {
            Ok(GoodsId(text.to_owned()))
        } else {
            Err(BadGoodsId::NotDigits(text.chars().take(40).collect()))
        }
    }
}

impl TryFrom<String> for GoodsId {
    type Error = BadGoodsId;

    fn try_from(text: String) -> Result<GoodsId, BadGoodsId> {
        GoodsId::try_from(text.as_str())
    }
}

impl std::str::FromStr for GoodsId {
    type Err = BadGoodsId;

    fn from_str(text: &str) -> Result<GoodsId, BadGoodsId> {
        GoodsId::try_from(text)
    }
}

impl fmt::Display for GoodsId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
