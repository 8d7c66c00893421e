//! What a finger and a key do. Every order and every payment that would come of it is counted here and nowhere else.

use rand::RngExt;

use super::{Front, GoodsPage, Hit, Model, Order, Page, Sheet, goods, home, order_number, orders, sheet};
use crate::catalogue::Abandon;
use crate::model::popups::Does;
use crate::scenario::{OrderStatus, Trigger};
use crate::view::{Scroll, View};

impl Model {
    /// A finger goes down and up at one place. Returns what it met.
    pub(crate) fn tap(&mut self, x: i32, y: i32) -> String {
        let windows = self.windows();
        if windows.is_empty() {
            return "screen is off".into();
        }
        // Small windows of other packages lie on top; the icons of the status bar take no touch.
        let Some(met) = windows.iter().rev().find_map(|window| window.root.touched(x, y)) else {
            return "nothing".into();
        };
        let caption = met.caption();
        let hit = met.hit.unwrap_or(Hit::Nothing);
        self.apply(hit);
        if caption.is_empty() { format!("{hit:?}") } else { caption }
    }

    /// An accessibility click on the first view of that text, as an agent can do it; `None` when there is none. Views in a WebView take it
    /// and do nothing.
    pub(crate) fn click_by_text(&mut self, says: &str) -> Option<String> {
        let windows = self.windows();
        let found = windows.iter().find_map(|window| named(&window.root, says))?;
        let hit = found.hit.filter(|_| !found.deaf).unwrap_or(Hit::Nothing);
        self.apply(hit);
        Some(format!("{hit:?}"))
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
            Hit::Sure => self.confirm(),
            Hit::SubmitConfirmed => {
                if let Some(Page::Confirm(_)) = self.stack.last() {
                    self.stack.pop();
                    self.submit();
                }
            }
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
            Hit::PopupButton(at) => self.press(at),
            Hit::PopupCross => {
                self.layers.pop();
            }
            Hit::CloseVideo => {
                if let Some(Page::Goods(page)) = self.stack.last_mut() {
                    page.video = false;
                }
            }
            Hit::Tab(tab) => {
                if let Some(Page::Orders { tab: own, scroll }) = self.stack.last_mut() {
                    (*own, *scroll) = (tab, 0);
                }
            }
            Hit::Order(order) => self.stack.push(Page::OrderDetail { order, unfolded: false }),
            Hit::PayOrder(order) => self.open_payment(order),
            Hit::PayOpened => {
                if let Some(Page::OrderDetail { order, .. }) = self.stack.last() {
                    self.open_payment(*order);
                }
            }
            Hit::MoreInfo => {
                if let Some(Page::OrderDetail { unfolded, .. }) = self.stack.last_mut() {
                    *unfolded = true;
                }
            }
            Hit::PayNow => {
                if let Front::Payment { order, paid: false } = self.front {
                    self.pay(order);
                    self.front = Front::Payment { order, paid: true };
                }
            }
            Hit::PaidDone => self.front = Front::Pdd,
            Hit::Retry => {
                if let Some(Page::NetworkError { goods_id }) = self.stack.last() {
                    let id = goods_id.clone();
                    self.open_goods(&id);
                }
            }
        }
    }

    fn press(&mut self, at: usize) {
        let Some(does) = self.layers.last().and_then(|layer| layer.buttons.get(at)).map(|button| button.does) else {
            return;
        };
        match does {
            Does::Nothing => {}
            Does::Close => {
                self.layers.pop();
            }
            Does::Promo => {
                self.layers.pop();
                self.stack.push(Page::Promo);
                self.front = Front::Pdd;
            }
            Does::Market => {
                self.layers.pop();
                self.front = Front::Market;
            }
            Does::Home => {
                self.layers.clear();
                self.front = Front::Launcher;
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
        let sheet = Sheet {
            goods: page.goods,
            sideways: vec![0; chosen.len()],
            chosen,
            quantity: 1,
            scroll: 0,
            touched: false,
            asked: false,
            older: self.behaviour.older_flow,
        };
        self.stack.push(Page::Sheet(sheet));
        self.unbind();
        self.trigger(Trigger::Sheet);
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
            self.unbind();
            self.trigger(Trigger::Chip);
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

    /// 确定 of an older sheet: the confirm page, once everything is chosen.
    fn confirm(&mut self) {
        let Some(Page::Sheet(one)) = self.stack.last() else {
            return;
        };
        if sheet::amount(&self.shown(one.goods), one).is_some() {
            let one = one.clone();
            self.stack.push(Page::Confirm(one));
        }
    }

    /// Creates the order and brings the payment layer forward, or pays at once where no password is asked for.
    fn submit(&mut self) {
        let Some(Page::Sheet(one)) = self.stack.last() else {
            return;
        };
        let goods = self.shown(one.goods);
        let Some(amount_cent) = sheet::amount(&goods, one) else {
            return;
        };
        let placed = crate::clock::local(self.now);
        let order = Order {
            sn: order_number(placed, self.orders.len() as u64 + 200),
            goods: one.goods,
            spec: sheet::chosen_text(&goods, one).unwrap_or_default(),
            quantity: one.quantity,
            amount_cent,
            status: OrderStatus::Unpaid,
            placed: placed.as_stamp(),
        };
        self.orders.push(order);
        self.counts.orders += 1;
        self.leave_sheet();
        let order = self.orders.len() - 1;
        if self.behaviour.pays_without_asking {
            self.counts.payments_opened += 1;
            self.pay(order);
        } else {
            self.open_payment(order);
        }
        self.trigger(Trigger::Submit);
    }

    fn open_payment(&mut self, order: usize) {
        self.counts.payments_opened += 1;
        self.front = Front::Payment { order, paid: false };
    }

    fn pay(&mut self, order: usize) {
        if let Some(one) = self.orders.get_mut(order).filter(|one| one.status == OrderStatus::Unpaid) {
            one.status = OrderStatus::ToReceive;
            self.counts.payments += 1;
            self.counts.paid_cent += one.amount_cent;
        }
    }

    fn back(&mut self) {
        if let Some(layer) = self.layers.last() {
            if layer.back {
                self.layers.pop();
            }
            return;
        }
        match self.front {
            Front::Launcher => {}
            Front::Payment { .. } | Front::Market => self.front = Front::Pdd,
            Front::Pdd => match self.stack.last() {
                None => self.front = Front::Launcher,
                // Real: a toast 再按一次返回退回桌面; the model leaves at once.
                Some(Page::Home { .. }) => self.front = Front::Launcher,
                Some(Page::Sheet(_)) => self.close_sheet(),
                Some(_) => {
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
                    self.layers.clear();
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
            (Scroll::Page, Some(Page::Orders { tab, scroll })) => {
                *scroll = (*scroll + moved(dy)).clamp(0, orders::max_scroll(&self.orders, *tab));
                "orders".into()
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

    /// A goods page just opened.
    pub(super) fn fresh_page(&self, goods: usize) -> Page {
        let one = &self.catalogue.goods[goods];
        Page::Goods(GoodsPage { goods, scroll: 0, favourite: false, video: one.video, chosen: vec![None; one.dimensions.len()] })
    }
}

fn named<'v>(view: &'v View, says: &str) -> Option<&'v View> {
    if view.ghost {
        return None;
    }
    let own = (view.text == says || view.desc == says) && view.hit.is_some();
    if own { Some(view) } else { view.children.iter().find_map(|child| named(child, says)) }
}
