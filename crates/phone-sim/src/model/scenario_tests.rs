//! Layers, orders and the other screens a scenario brings, as a reader meets them.

use std::collections::BTreeSet;

use super::tests::{collect, find, open, open_sheet, place, shows, tap_on, walk};
use super::*;
use crate::catalogue::Offer;
use crate::xml::{Style, dump};

const FIRST: &str = "618203947511";

fn with(name: &str) -> Model {
    let scenario = Scenario::named(name).expect("a shipped scenario");
    let mut model = Model::new(Catalogue::seeded(7), true, 7);
    model.now = 1_796_111_260;
    model.set_up(&scenario);
    model
}

/// Walks the model through every screen there is and shows each to `look`.
fn every_screen(mut look: impl FnMut(&str, &Model)) {
    let mut model = with("unpaid_order");
    look("launcher", &model);
    let mut show = |model: &mut Model, page: Page| {
        model.front = Front::Pdd;
        model.layers.clear();
        model.stack = vec![Page::Home { scroll: 0 }, page];
        look(&model.screen_name(), model);
    };
    let older = Sheet {
        goods: 0,
        chosen: vec![Some(0), Some(0)],
        quantity: 2,
        scroll: 0,
        sideways: vec![0, 0],
        touched: true,
        asked: false,
        older: true,
    };
    let sold_out = model.catalogue.goods.iter().position(|one| one.sold_out).expect("the shop has sold-out goods");
    let pages = [
        Page::Home { scroll: 900 },
        Page::Sheet(older.clone()),
        Page::Confirm(older),
        Page::Abandon,
        Page::Gallery,
        Page::Promo,
        Page::SoldOut { goods: sold_out },
        Page::Removed,
        Page::Captcha,
        Page::Risk,
        Page::RealName,
        Page::Login,
        Page::NetworkError { goods_id: FIRST.into() },
    ];
    for page in pages {
        show(&mut model, page);
    }
    for tab in 0..5 {
        show(&mut model, Page::Orders { tab, scroll: 0 });
    }
    for order in 0..model.orders.len() {
        for unfolded in [false, true] {
            show(&mut model, Page::OrderDetail { order, unfolded });
        }
    }
    for at in 0..model.catalogue.goods.len() {
        let id = model.catalogue.goods[at].goods_id.clone();
        open(&mut model, &id);
        for step in 0..4 {
            look(&model.screen_name(), &model);
            model.swipe((540, 1800), (540, 700 + step * 100), 300);
        }
        open(&mut model, &id);
        if model.screen_name().starts_with("goods") {
            if model.stack.last().is_some_and(|page| matches!(page, Page::Goods(page) if page.video)) {
                assert!(tap_on(&mut model, "关闭"), "a floating video can be closed");
            }
            open_sheet(&mut model);
            for _ in 0..3 {
                look(&model.screen_name(), &model);
                model.swipe((800, 1300), (200, 1300), 300);
                model.swipe((20, 1900), (20, 1300), 300);
            }
        }
    }
    for name in popup_names() {
        open(&mut model, FIRST);
        model.raise(name);
        look(&model.screen_name(), &model);
    }
    model.layers.clear();
    model.front = Front::Payment { order: 0, paid: false };
    look("payment", &model);
    model.front = Front::Payment { order: 0, paid: true };
    look("paid", &model);
    model.front = Front::Market;
    look("market", &model);
    model.walls.locked = true;
    look("locked", &model);
    model.walls = Walls { notification: true, ..Walls::default() };
    look("notifications", &model);
}

fn nodes(xml: &str) -> usize {
    let mut reader = quick_xml::Reader::from_str(xml);
    let mut nodes = 0;
    loop {
        match reader.read_event().expect("every tree is well-formed XML") {
            quick_xml::events::Event::Start(_) | quick_xml::events::Event::Empty(_) => nodes += 1,
            quick_xml::events::Event::Eof => return nodes,
            _ => {}
        }
    }
}

#[test]
fn every_screen_is_a_parseable_tree_that_stands_on_the_screen() {
    let mut names = BTreeSet::new();
    every_screen(|name, model| {
        let windows = model.windows();
        let kinds = [
            Style::default(),
            Style { compressed: true, ..Style::default() },
            Style { rotated: true, ..Style::default() },
            Style { indented: true, ..Style::default() },
        ];
        // The dear ones once per kind of screen, the rest for every goods.
        let first = names.insert(name.split(':').next().unwrap_or_default().to_owned());
        for style in kinds.into_iter().take(if first { 4 } else { 1 }) {
            assert!(nodes(&dump(&windows, style)) >= 2, "{name} has more than its frame: {style:?}");
        }
        for window in &windows {
            let mut all = Vec::new();
            walk(&window.root, &mut all);
            for view in all {
                let at = view.bounds;
                assert!(!at.is_empty(), "{name}: no empty node: {view:?}");
                assert!(at.l >= 0 && at.t >= 0 && at.r <= WIDTH && at.b <= HEIGHT, "{name}: on the screen: {at:?} {}", view.caption());
                let mut taken = BTreeSet::new();
                for child in view.children.iter().filter(|child| !child.ghost && child.clickable) {
                    let own = (child.bounds.l, child.bounds.t, child.bounds.r, child.bounds.b);
                    assert!(taken.insert(own), "{name}: two things to touch at one place: {own:?} {}", child.caption());
                }
            }
        }
    });
    let wanted = [
        "launcher",
        "home",
        "goods",
        "sheet",
        "confirm",
        "abandon",
        "gallery",
        "promo",
        "sold_out",
        "removed",
        "captcha",
        "risk",
        "real_name",
        "login",
        "network_error",
        "orders",
        "order",
        "popup",
        "payment",
        "paid",
        "market",
        "locked",
    ];
    for name in wanted {
        assert!(names.contains(name), "the walk met {name}");
    }
}

#[test]
fn every_text_of_every_screen_can_be_drawn() {
    let mut missing = BTreeSet::new();
    every_screen(|_, model| {
        for window in model.windows() {
            collect(&window.root, &mut missing);
        }
    });
    missing.retain(|one| (*one as u32) < 0x10000 && *one != '\n');
    assert!(missing.is_empty(), "cut the font again with these: {missing:?}");
}

#[test]
fn every_layer_covers_the_page_and_lets_it_go_again() {
    for name in popup_names() {
        let mut model = with("plain");
        open(&mut model, FIRST);
        let shield = model.screen_name();
        assert!(model.raise(name), "{name} comes up");
        assert_eq!(model.screen_name(), format!("popup:{name}"), "and is what the screen shows");
        let layer = popup(name).expect("it exists");
        let (package, _) = model.focus().expect("something has the focus");
        assert_eq!(package, layer.package, "{name} takes the focus");
        if layer.window == popups::Own::Own {
            assert!(!shows(&model, "收藏"), "{name} hides the page's nodes");
        } else if layer.package == PDD {
            assert!(shows(&model, "收藏"), "{name} leaves the page's nodes in the tree");
            let before = model.clone_stack();
            model.tap(195, 2270);
            assert_eq!(model.clone_stack(), before, "but not under the finger");
        }
        if layer.back {
            model.key(4);
            assert_eq!(model.screen_name(), shield, "BACK closes {name}");
        } else {
            let closing = layer.buttons.iter().position(|button| button.does == popups::Does::Close).expect("a button closes it");
            model.key(4);
            assert_eq!(model.screen_name(), format!("popup:{name}"), "BACK does not close {name}");
            let at = find(&model, |view| (view.hit == Some(Hit::PopupButton(closing))).then(|| view.bounds.centre()));
            let (x, y) = at.expect("the button is in the tree");
            model.tap(x, y);
            assert_eq!(model.screen_name(), shield, "its button closes {name}");
        }
        assert_eq!(model.counts, Counts::default(), "closing {name} costs nothing");
    }
}

#[test]
fn rules_raise_layers_at_their_moment() {
    let mut model = with("first_start");
    model.launch();
    assert_eq!(model.screen_name(), "popup:splash", "the splash is on top");
    assert!(tap_on(&mut model, "跳过"), "it can be skipped");
    assert_eq!(model.screen_name(), "popup:notifications", "the next one lies below");
    model.force_stop();
    model.launch();
    assert_eq!(model.screen_name(), "popup:splash", "a fresh start shows the splash again");
    tap_on(&mut model, "跳过");
    assert_eq!(model.screen_name(), "home", "and the others only once");
    open(&mut model, FIRST);
    assert_eq!(model.screen_name(), "popup:close_button", "a link raises its own");
}

#[test]
fn an_unpaid_card_is_a_trap_and_paying_is_counted() {
    let mut model = with("unpaid_order");
    model.open_link("pinduoduo://com.xunmeng.pinduoduo/orders.html?type=1", Some(PDD));
    assert_eq!((model.screen_name().as_str(), model.counts.orders), ("orders", 0), "orders from before are not ours");
    assert!(shows(&model, "我的订单") && shows(&model, "去支付"), "the list has its anchors");
    assert!(!shows(&model, "查看物流"), "the tab shows unpaid ones only");
    let card = find(&model, |view| matches!(view.hit, Some(Hit::Order(_))).then(|| view.clone())).expect("a card");
    let mut below = Vec::new();
    walk(&card, &mut below);
    assert!(card.clickable && below.iter().any(|view| view.text == "去支付"), "the whole card is clickable and carries 去支付");
    model.tap(400, card.bounds.t + 130);
    assert!(model.screen_name().starts_with("order:"), "its title opens the order");
    assert!(find(&model, |view| view.text.starts_with("订单编号").then_some(())).is_none(), "the number is folded away");
    assert!(model.click_by_text("查看更多订单信息").is_some(), "an accessibility click is taken");
    assert!(shows(&model, "查看更多订单信息"), "and ignored, as in a WebView");
    assert!(tap_on(&mut model, "查看更多订单信息"), "a finger");
    let number = find(&model, |view| view.text.strip_prefix("订单编号：").map(str::to_owned)).expect("unfolds it");
    let (day, rest) = number.split_once('-').expect("a day and digits");
    assert!(day.len() == 6 && rest.len() == 15 && rest.bytes().all(|byte| byte.is_ascii_digit()), "as Pinduoduo numbers orders: {number}");

    model.key(4);
    assert!(tap_on(&mut model, "去支付"), "the button of a card");
    assert_eq!((model.screen_name().as_str(), model.counts.payments_opened, model.counts.payments), ("payment", 1, 0), "opens the layer");
    assert!(tap_on(&mut model, "立即支付"), "whose button");
    assert_eq!(
        (model.screen_name().as_str(), model.counts.payments, model.counts.paid_cent),
        ("paid", 1, 1245),
        "is counted, with the money"
    );
    assert!(tap_on(&mut model, "完成"), "and back");
    assert_eq!(model.screen_name(), "orders", "in the list");
    assert_eq!(orders::of_tab(model.orders(), 1).len(), 1, "one is unpaid still");
}

#[test]
fn money_can_go_without_a_question_and_that_is_counted_too() {
    let mut model = with("pays_without_asking");
    let single = model.catalogue.goods.iter().find(|one| one.dimensions.is_empty() && !one.sold_out && !one.removed).expect("single goods");
    let (id, price) = (single.goods_id.clone(), single.price_of("").expect("a price") - single.balance_cent);
    open(&mut model, &id);
    open_sheet(&mut model);
    let (x, y) = place(&model, |view| view.text.starts_with("提交订单")).expect("the submit button");
    model.tap(x, y);
    let want = Counts { orders: 1, payments_opened: 1, payments: 1, paid_cent: price };
    assert_eq!(model.counts, want, "one touch ordered and paid");
    assert_eq!(model.screen_name(), "popup:ordered", "and the app is glad");
}

#[test]
fn an_older_build_orders_on_a_second_page() {
    let mut model = with("older_checkout");
    open(&mut model, FIRST);
    open_sheet(&mut model);
    assert!(find(&model, |view| view.text.contains("提交订单").then_some(())).is_none(), "the sheet has no submit button");
    assert!(tap_on(&mut model, "确定"), "but 确定");
    assert!(model.screen_name().starts_with("sheet:"), "which waits for the choices");
    for dimension in 0..2 {
        model.apply_for_test(Hit::Chip { dimension, value: 0 });
    }
    assert!(tap_on(&mut model, "确定"), "all chosen");
    assert_eq!(model.screen_name(), format!("confirm:{FIRST}"), "the confirm page comes");
    assert_eq!(model.counts.orders, 0, "no order yet");
    assert!(shows(&model, "确认订单") && shows(&model, "手动添加收货地址"), "with its own texts");
    assert!(tap_on(&mut model, "提交订单 ¥19.9"), "its button");
    assert_eq!((model.counts.orders, model.screen_name().as_str()), (1, "payment"), "orders and opens the payment layer");
}

#[test]
fn prices_bind_late_or_move() {
    let price =
        |model: &Model| find(model, |view| (view.desc.starts_with('¥') && view.desc.ends_with("发起拼单")).then(|| view.desc.clone()));
    let mut model = with("plain");
    model.walls.lazy_looks = 2;
    open(&mut model, FIRST);
    for look in 1..=4 {
        model.looks += 1;
        assert_eq!(price(&model).is_some(), look > 2, "look {look}: two looks have no price");
    }
    model.walls = Walls { moving_prices: true, ..Walls::default() };
    let first = price(&model);
    model.looks += 1;
    assert_ne!(price(&model), first, "a price that moves differs at every look");
}

#[test]
fn offers_are_worded_and_a_countdown_moves() {
    let mut model = with("busy_pages");
    for (offer, word) in [(Offer::Coupon, "券后¥"), (Offer::Subsidised, "补贴价¥"), (Offer::Limited, "秒杀价¥"), (Offer::Range, "-")]
    {
        let ranged = |one: &&Goods| one.price_range().is_some_and(|(low, high)| low != high);
        let found = model.catalogue.goods.iter().filter(ranged).find(|one| one.offer == offer && !one.sold_out && !one.removed);
        let id = found.expect("the seeded shop has every offer").goods_id.clone();
        open(&mut model, &id);
        let line = find(&model, |view| (view.desc.contains('¥') && view.desc.contains(word)).then_some(()));
        assert!(line.is_some(), "{offer:?} is worded with {word}");
        let left = |model: &Model| find(model, |view| view.text.strip_prefix("距结束").map(str::to_owned));
        if offer == Offer::Limited {
            let first = left(&model);
            model.looks += 1;
            assert!(first.is_some() && left(&model) != first, "the countdown runs");
            assert!(model.restless(), "and the page never rests");
        }
    }
    let id =
        model.catalogue.goods.iter().find(|one| one.video && !one.sold_out && !one.removed).expect("goods with a video").goods_id.clone();
    open(&mut model, &id);
    assert!(shows(&model, "tronplayer_view") && model.restless(), "a video floats");
    assert!(tap_on(&mut model, "关闭"), "until it is closed");
    assert!(!shows(&model, "tronplayer_view"), "then it is gone");
}

#[test]
fn the_wrong_goods_and_a_crash() {
    let mut model = with("plain");
    model.walls.wrong_goods = 1;
    open(&mut model, FIRST);
    let shown = model.goods_on_top().map(|one| one.goods_id.clone());
    assert!(shown.is_some_and(|id| id != FIRST), "another goods is open");
    open(&mut model, FIRST);
    assert_eq!(model.screen_name(), format!("goods:{FIRST}"), "only once");
    model.crash();
    assert_eq!(model.focus().map(|(package, _)| package), Some("android"), "the system asks");
    assert!(!model.running(), "the app is gone");
    assert!(tap_on(&mut model, "关闭应用"), "and can be dismissed");
    assert_eq!(model.screen_name(), "launcher", "back home");
}

impl Model {
    fn clone_stack(&self) -> Vec<Page> {
        self.stack.clone()
    }

    fn apply_for_test(&mut self, hit: Hit) {
        let at = find(self, |view| (view.hit == Some(hit)).then(|| (view.bounds.l + 20, view.bounds.b - 20))).expect("it is on screen");
        self.tap(at.0, at.1);
    }
}
