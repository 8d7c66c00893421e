//! The guard, row by row and against random trees.

mod pages;

use std::sync::Arc;
use std::time::{Duration, Instant};

use cmautobuy_device::fake::{FakePage, Performed};
use cmautobuy_device::{
    Action, Capture, CaptureWant, ExtraPatterns, FakePhone, GoodsId, Key, OrderList, Phone, PhoneError, Point, Quantity, RefusedReason,
    Screen, Ticket, UiTree, Verdict, check, check_after_order,
};

use pages::{PDD, SIZE, node, page, run};

fn look_at(page: FakePage) -> Capture {
    run(FakePhone::new("fake", page).capture(&CaptureWant::anything())).expect("the fake can be looked at")
}

fn look(xml: &str) -> Capture {
    look_at(FakePage::pdd(xml))
}

/// A tap at the point, meant for the innermost node there.
fn tap(tree: &UiTree, x: i32, y: i32) -> Action {
    let at = Point { x, y };
    let node = tree.nodes().filter(|n| n.bounds().contains(at)).last().expect("a node at the point").id();
    Action::Tap { node, at }
}

fn decide(capture: Capture, screen: Screen, action: Action) -> Result<Ticket, RefusedReason> {
    let now = capture.dump_ended;
    check(capture, screen, action, SIZE, &ExtraPatterns::none(), now).map_err(|refused| refused.reason)
}

fn tap_on(xml: &str, screen: Screen, x: i32, y: i32) -> Result<Ticket, RefusedReason> {
    let capture = look(xml);
    let action = tap(&capture.tree, x, y);
    decide(capture, screen, action)
}

fn word(result: &Result<Ticket, RefusedReason>) -> &'static str {
    match result {
        Ok(_) => "ok",
        Err(RefusedReason::TooOld { .. }) => "too old",
        Err(RefusedReason::BadVerdict(_)) => "verdict",
        Err(RefusedReason::ActionNotForScreen(_)) => "screen",
        Err(RefusedReason::ForeignApp { .. }) => "foreign app",
        Err(RefusedReason::NoSuchNode) => "no node",
        Err(RefusedReason::ForeignNode { .. }) => "foreign node",
        Err(RefusedReason::OutsideNode) => "outside node",
        Err(RefusedReason::OffScreen) => "off screen",
        Err(RefusedReason::PaymentNode { .. }) => "payment",
        Err(RefusedReason::SubmitNode { .. }) => "submit",
        Err(RefusedReason::BuyButton { .. }) => "buy",
        Err(RefusedReason::CheckoutZone { .. }) => "checkout",
        Err(RefusedReason::UnplacedPaymentNode { .. }) => "unplaced",
        Err(RefusedReason::SwipeDuration) => "duration",
        Err(RefusedReason::ForegroundChanged { .. }) => "foreground",
        Err(RefusedReason::WrongPhone) => "wrong phone",
        Err(RefusedReason::NotTheQuantityField) => "not the field",
        Err(RefusedReason::OnlyTheWayOut) => "way out",
        Err(RefusedReason::PermitForAnotherLook) => "permit",
    }
}

fn sheet() -> String {
    let stepper = node([393, 764, 468, 836], true, "", "减少数量", "") + &node([558, 764, 633, 836], true, "", "增加数量", "");
    let chip = node([35, 979, 352, 1392], true, "", "雾蓝", &node([35, 1285, 352, 1392], true, "雾蓝", "", ""));
    let row = node([0, 2118, 1080, 2213], true, "", "", &node([223, 2138, 819, 2192], false, "使用#某支付，更换支付方式", "", ""));
    let add = node([0, 2213, 334, 2354], true, "", "", &node([0, 2213, 334, 2354], false, "添加", "", ""));
    let submit = node([334, 2213, 1080, 2354], true, "", "", &node([562, 2251, 851, 2316], false, "提交订单 ¥69", "", ""));
    page(&node([0, 95, 1080, 2354], true, "", "", &(stepper + &chip + &row + &add + &submit)))
}

#[test]
fn taps_on_the_checkout_sheet() {
    let sheet = sheet();
    // The page name must not matter: a recogniser that is wrong opens nothing.
    for screen in [Screen::SkuSheet, Screen::Goods, Screen::Home, Screen::Popup, Screen::OrderList] {
        let rows = [
            ("chip", 190, 1300, "ok"),
            ("plus", 600, 800, "ok"),
            ("submit text", 700, 2280, "submit"),
            ("submit button beside the text", 400, 2300, "submit"),
            ("payment row text", 500, 2160, "payment"),
            ("payment row edge", 5, 2120, "payment"),
            ("add", 100, 2300, "checkout"),
            ("below the sheet", 500, 2390, "checkout"),
            ("sheet background", 700, 1700, "submit"),
        ];
        for (name, x, y, want) in rows {
            assert_eq!(word(&tap_on(&sheet, screen, x, y)), want, "{name} with the page taken for {screen}");
        }
    }
}

#[test]
fn checkout_zone_of_other_sheets() {
    let steppers = node([0, 700, 50, 750], true, "", "减少数量", "") + &node([60, 700, 110, 750], true, "", "增加数量", "");
    let drawn =
        page(&(steppers.clone() + &node([100, 1000, 300, 1100], true, "大", "", "") + &node([0, 2200, 1080, 2390], true, "", "", "")));
    assert_eq!(word(&tap_on(&drawn, Screen::SkuSheet, 200, 1050)), "ok", "a chip of a sheet with a drawn button");
    assert_eq!(word(&tap_on(&drawn, Screen::SkuSheet, 500, 2300)), "checkout", "a button without text is still the checkout");

    let no_row = page(&(steppers + &node([0, 1900, 1080, 2000], true, "", "", &node([300, 1920, 600, 1980], false, "提交订单", "", ""))));
    assert_eq!(word(&tap_on(&no_row, Screen::SkuSheet, 900, 2200)), "checkout", "below the submit button when there is no row");

    let only_row = page(&(node([0, 2000, 1080, 2100], true, "更换支付方式", "", "") + &node([0, 2110, 1080, 2200], true, "x", "", "")));
    assert_eq!(word(&tap_on(&only_row, Screen::Goods, 500, 2150)), "checkout", "a payment row alone makes it a checkout");

    let goods = page(&node([0, 2110, 1080, 2200], true, "客服", "", ""));
    assert_eq!(word(&tap_on(&goods, Screen::Goods, 500, 2150)), "ok", "no checkout, no zone");
}

#[test]
fn taps_near_money() {
    let text = |s: &str| node([400, 1330, 560, 1410], false, s, "", "");
    let rows = [
        ("payment text", page(&text("继续支付")), 450, 1350, "payment"),
        ("payment description", page(&node([400, 1330, 560, 1410], false, "", "去支付", "")), 450, 1350, "payment"),
        ("nearest clickable", page(&node([168, 1307, 911, 1436], true, "", "", &text("继续支付"))), 200, 1400, "payment"),
        (
            "clickable around a clickable",
            page(&node([0, 1200, 1080, 1500], true, "", "", &node([168, 1307, 911, 1436], true, "", "", &text("立即支付")))),
            20,
            1210,
            "payment",
        ),
        (
            "sibling inside the same card",
            page(&node([0, 1200, 1080, 1500], true, "", "", &(text("去支付") + &node([0, 1200, 300, 1300], true, "标题", "", "")))),
            100,
            1250,
            "payment",
        ),
        ("button not marked clickable", page(&node([168, 1307, 911, 1436], false, "", "", &text("提交订单"))), 200, 1320, "submit"),
        (
            "word over two nodes",
            page(&node(
                [168, 1307, 911, 1436],
                true,
                "",
                "",
                &(node([200, 1310, 300, 1400], false, "提交", "", "") + &node([300, 1310, 400, 1400], false, "订单", "", "")),
            )),
            800,
            1400,
            "submit",
        ),
        ("full width and spaces", page(&text("立　即 支 付")), 450, 1350, "payment"),
        ("placeholder", page(&text("选择颜色后，立即支付")), 450, 1350, "payment"),
        ("buy in description", page(&node([310, 2185, 590, 2290], true, "", "¥221单独购买", "")), 400, 2200, "buy"),
        (
            "buy text in a clickable",
            page(&node([310, 2185, 590, 2290], true, "", "", &node([320, 2200, 400, 2250], false, "免拼购买", "", ""))),
            580,
            2285,
            "buy",
        ),
        ("price-only bottom button", page(&node([310, 2185, 590, 2290], true, "", "¥76", "")), 400, 2200, "buy"),
        ("price higher up", page(&node([310, 1185, 590, 1290], true, "", "¥76", "")), 400, 1200, "ok"),
        (
            "leave the popup",
            page(
                &(node([168, 1307, 911, 1436], true, "", "", &text("继续支付"))
                    + &node([171, 1477, 909, 1543], true, "", "", &node([454, 1482, 626, 1539], false, "先去逛逛", "", ""))),
            ),
            500,
            1500,
            "ok",
        ),
        ("people paid", page(&node([10, 400, 500, 450], true, "", "¥4162人付款", "")), 100, 420, "ok"),
        (
            "page behind buy buttons",
            page(&node(
                [0, 0, 1080, 2400],
                true,
                "",
                "分享",
                &(node([0, 900, 1080, 980], false, "请选择 颜色", "", "") + &node([310, 2185, 590, 2290], false, "", "¥2单独购买", "")),
            )),
            300,
            940,
            "ok",
        ),
    ];
    for (name, xml, x, y, want) in rows {
        assert_eq!(word(&tap_on(&xml, Screen::Goods, x, y)), want, "row {name}");
    }
}

/// Buttons too large for their labels to be joined: here each rule of D10 has to hold by itself.
#[test]
fn taps_near_money_in_large_cards() {
    let filler: String = (0..20).map(|i| node([0, 1000 + i, 10, 1001 + i], false, "字", "", "")).collect();
    let text = node([400, 1330, 560, 1410], false, "立即支付", "", "");
    let wrap = |inner: &str| node([300, 1300, 700, 1450], false, "", "", inner);
    let inner = node([200, 1300, 900, 1450], true, "", "", &(filler.clone() + &wrap(&wrap(&text))));
    let title = node([0, 1200, 150, 1300], true, "标题", "", "");
    let outer = page(&node([0, 1000, 1080, 1500], true, "", "", &(filler.clone() + &title + &wrap(&inner))));
    let card = page(&node([0, 1000, 1080, 1500], true, "", "", &(filler + &title + &text)));
    let rows = [
        ("inside the button, beside the text", &outer, 210, 1440, "payment"),
        ("around the button: it is below the deepest clickable", &outer, 1000, 1480, "payment"),
        ("title beside the button, clickable itself", &outer, 100, 1250, "ok"),
        ("title in a card that pays: inside the nearest clickable", &card, 100, 1250, "payment"),
        ("anywhere in a card that pays", &card, 1000, 1480, "payment"),
        ("outside the card", &card, 1000, 1600, "ok"),
    ];
    for (name, xml, x, y, want) in rows {
        assert_eq!(word(&tap_on(xml, Screen::OrderList, x, y)), want, "row {name}");
    }
}

#[test]
fn a_paying_node_without_a_place_stops_everything() {
    let xml = format!("<hierarchy>{}<node text=\"立即支付\" package=\"{PDD}\"/></hierarchy>", node([0, 0, 1080, 2400], true, "", "", ""));
    assert_eq!(word(&tap_on(&xml, Screen::Goods, 5, 5)), "unplaced", "it could be anywhere");
    let capture = look(&xml);
    let swipe = Action::Swipe { from: Point { x: 500, y: 1800 }, to: Point { x: 500, y: 600 }, duration_ms: 300 };
    assert_eq!(word(&decide(capture, Screen::Goods, swipe)), "unplaced", "for a swipe too");
}

#[test]
fn what_a_tap_needs() {
    let xml = page(&node([100, 100, 200, 200], true, "a", "", ""));
    let tree = UiTree::parse(xml.as_bytes()).expect("well-formed");
    let id = tree.nodes().last().expect("a node").id();
    let root = tree.roots().next().expect("a root").id();
    let big = UiTree::parse(page(&"<node/>".repeat(50)).as_bytes()).expect("well-formed");
    let alien = big.nodes().last().expect("a node").id();
    let at = |x, y| Point { x, y };
    let rows = [
        ("inside", id, at(150, 150), "ok"),
        ("last pixel", id, at(199, 199), "ok"),
        ("right edge is outside", id, at(200, 150), "outside node"),
        ("elsewhere", id, at(500, 500), "outside node"),
        ("node of another tree", alien, at(150, 150), "no node"),
        ("root", root, at(500, 500), "ok"),
    ];
    for (name, node, at, want) in rows {
        assert_eq!(word(&decide(look(&xml), Screen::Goods, Action::Tap { node, at })), want, "row {name}");
    }
    let wide = format!("<hierarchy>{}</hierarchy>", node([0, 0, 3000, 5000], true, "", "", ""));
    assert_eq!(word(&tap_on(&wide, Screen::Goods, 2000, 100)), "off screen", "a node may be larger than the screen");
    let turned = wide.replace("<hierarchy>", "<hierarchy rotation=\"1\">");
    assert_eq!(word(&tap_on(&turned, Screen::Goods, 2000, 100)), "ok", "in landscape x reaches 2400");
    let foreign = page("<node text=\"允许\" package=\"com.android.permissioncontroller\" clickable=\"true\" bounds=\"[0,0][9,9]\"/>");
    assert_eq!(word(&tap_on(&foreign, Screen::Popup, 5, 5)), "foreign node", "another app's dialog is not ours to press");
}

#[test]
fn what_each_page_allows() {
    let goods = GoodsId::try_from("123456").expect("digits");
    let swipe = Action::Swipe { from: Point { x: 500, y: 1800 }, to: Point { x: 500, y: 600 }, duration_ms: 300 };
    let xml = page(&node([100, 100, 200, 200], true, "a", "", ""));
    let tap = tap(&UiTree::parse(xml.as_bytes()).expect("well-formed"), 150, 150);
    let orders = Action::OpenOrders(OrderList::Unpaid);
    let actions = [tap, swipe, Action::Key(Key::Back), Action::OpenGoods(goods), orders, Action::Key(Key::Home), Action::Key(Key::Wakeup)];
    // tap, swipe, back, goods link, order link, home, wakeup
    let rows = [
        (Screen::Home, [true; 7]),
        (Screen::Goods, [true; 7]),
        (Screen::SkuSheet, [true; 7]),
        (Screen::OrderList, [true; 7]),
        (Screen::AbandonPopup, [true; 7]),
        (Screen::Popup, [true; 7]),
        (Screen::Unavailable, [false, false, true, true, true, true, true]),
        (Screen::Elsewhere, [false, false, false, true, true, true, true]),
        (Screen::LoginWall, [false, false, false, false, false, true, true]),
        (Screen::RiskWall, [false, false, false, false, false, true, true]),
        (Screen::Unknown, [false, false, false, false, false, true, true]),
    ];
    for (screen, allowed) in rows {
        for (action, allowed) in actions.iter().zip(allowed) {
            let got = decide(look(&xml), screen, action.clone());
            assert_eq!(got.is_ok(), allowed, "{action:?} on {screen}: {got:?}");
            if !allowed {
                assert_eq!(word(&got), "screen", "{action:?} on {screen} is refused for the page");
            }
        }
    }
    // The same pages with another app in front: the recogniser may be wrong, the foreground is not.
    for action in &actions[..3] {
        let capture = look_at(FakePage::of("com.tencent.mm", ".ui.X", &xml));
        assert_eq!(word(&decide(capture, Screen::Goods, action.clone())), "foreign app", "{action:?} with a payment app in front");
    }
}

#[test]
fn age_and_verdict() {
    let xml = page(&node([100, 100, 200, 200], true, "a", "", ""));
    for (ms, want) in [(0, "ok"), (3000, "ok"), (3001, "too old"), (60_000, "too old")] {
        let capture = look(&xml);
        let now = capture.dump_ended + Duration::from_millis(ms);
        let action = tap(&capture.tree, 150, 150);
        let got = check(capture, Screen::Goods, action, SIZE, &ExtraPatterns::none(), now).map_err(|r| r.reason);
        assert_eq!(word(&got), want, "a look {ms} ms old");
    }
    let bad = [
        Verdict::NeverIdle,
        Verdict::TreeEmpty,
        Verdict::TreeStale,
        Verdict::SecureOrBlack,
        Verdict::WrongApp,
        Verdict::Popup,
        Verdict::LoginWall,
        Verdict::RiskWall,
        Verdict::DeviceGone,
    ];
    for verdict in bad {
        for key in [Key::Home, Key::Back, Key::Wakeup] {
            let capture = look_at(FakePage::pdd(&xml).with_verdict(verdict));
            let wakes = key == Key::Wakeup
                && matches!(verdict, Verdict::TreeEmpty | Verdict::SecureOrBlack | Verdict::NeverIdle | Verdict::WrongApp);
            let got = decide(capture, Screen::Goods, Action::Key(key));
            assert_eq!(got.is_ok(), wakes, "{key:?} under {verdict}: only waking a dark phone is allowed");
        }
    }
}

#[test]
fn swipes() {
    let sheet = sheet();
    let p = |x, y| Point { x, y };
    let dp48 = SIZE.dp(48);
    let rows = [
        ("scroll the chips", p(500, 1700), p(500, 900), 300, "ok"),
        ("slow from the background", p(700, 1700), p(700, 900), 401, "submit"),
        ("short from the background", p(700, 1700), p(700, 1700 - dp48 + 1), 200, "submit"),
        ("just long enough", p(700, 1700), p(700, 1700 - dp48), 400, "ok"),
        ("slow from a chip", p(190, 1300), p(190, 900), 900, "ok"),
        ("starts on submit", p(700, 2280), p(700, 900), 300, "submit"),
        ("starts on the payment row", p(20, 2150), p(700, 900), 300, "payment"),
        ("starts in the zone", p(20, 2300), p(700, 900), 300, "checkout"),
        ("ends in the zone", p(500, 900), p(500, 2300), 300, "ok"),
        ("no time", p(500, 1700), p(500, 900), 0, "duration"),
        ("too long", p(500, 1700), p(500, 900), 5001, "duration"),
        ("off screen", p(500, 1700), p(500, -1), 300, "off screen"),
        ("from off screen", p(1080, 1700), p(500, 900), 300, "off screen"),
    ];
    for (name, from, to, duration_ms, want) in rows {
        let action = Action::Swipe { from, to, duration_ms };
        assert_eq!(word(&decide(look(&sheet), Screen::SkuSheet, action)), want, "row {name}");
    }
}

#[test]
fn extra_patterns_only_forbid_more() {
    let xml = page(&node([100, 100, 200, 200], true, "神秘按钮", "", ""));
    let decide = |extra: &ExtraPatterns| {
        let capture = look(&xml);
        let now = capture.dump_ended;
        let action = tap(&capture.tree, 150, 150);
        word(&check(capture, Screen::Goods, action, SIZE, extra, now).map_err(|r| r.reason))
    };
    assert_eq!(decide(&ExtraPatterns::none()), "ok", "unknown to the base");
    assert_eq!(decide(&ExtraPatterns::none().with_payment(["神秘"])), "payment", "added as payment");
    assert_eq!(decide(&ExtraPatterns::none().with_submit(["神秘"])), "submit", "added as submit");
    assert_eq!(decide(&ExtraPatterns::none().with_buy(["按钮"])), "buy", "added as buy");
}

#[test]
fn a_ticket_is_for_one_phone_one_foreground_and_three_seconds() {
    let xml = page(&node([100, 100, 200, 200], true, "a", "", ""));
    run(async {
        let phone = FakePhone::new("one", FakePage::pdd(&xml));
        let ticket = |capture: Capture, now: Instant| {
            let action = tap(&capture.tree, 150, 150);
            check(capture, Screen::Goods, action, SIZE, &ExtraPatterns::none(), now).expect("a plain tap is allowed")
        };
        let want = CaptureWant::anything();
        let look = || phone.capture(&want);
        let capture = look().await.expect("a look");
        let now = capture.dump_ended;
        phone.act(ticket(capture, now)).await.expect("a fresh ticket works");
        assert_eq!(phone.performed(), [Performed::Tap(Point { x: 150, y: 150 })], "the tap arrived");

        let capture = look().await.expect("a look");
        let now = capture.dump_ended;
        let held = ticket(capture, now);
        phone.show(FakePage::of("com.tencent.mm", ".pay.X", &xml));
        let refused = phone.act(held).await.expect_err("another app came in front");
        assert_eq!(refused.code(), "GUARD_REFUSED", "{refused}");
        assert!(refused.is_recoverable(), "looking again may help");

        phone.show(FakePage::pdd(&xml));
        phone.age_captures(Duration::from_secs(10));
        let capture = look().await.expect("a look");
        let then = capture.dump_ended;
        let refused = phone.act(ticket(capture, then)).await.expect_err("the ticket is old by the time it is used");
        assert!(matches!(&refused, PhoneError::GuardRefused(r) if matches!(r.reason, RefusedReason::TooOld { .. })), "{refused}");

        phone.age_captures(Duration::ZERO);
        let capture = look().await.expect("a look");
        let now = capture.dump_ended;
        // Even one of the same name: a scripted look must not open a real phone.
        let other = FakePhone::new("one", FakePage::pdd(&xml));
        let refused = other.act(ticket(capture, now)).await.expect_err("a ticket of another phone");
        assert!(matches!(&refused, PhoneError::GuardRefused(r) if r.reason == RefusedReason::WrongPhone), "{refused}");
        assert_eq!(phone.performed().len(), 1, "nothing but the first tap was done");
        assert!(other.performed().is_empty(), "and nothing on the other phone");
    });
}

#[test]
fn the_fake_plays_its_script() {
    run(async {
        let goods = GoodsId::try_from("123456").expect("digits");
        let home = FakePage::of("com.launcher", ".Home", page(""));
        let phone = Arc::new(FakePhone::new("s", home).reacting(|done| match done {
            Performed::OpenGoods(id) => Some(FakePage::pdd(page("")).with_goods(id.as_str())),
            Performed::Key(_) | Performed::Tap(_) | Performed::Swipe { .. } | Performed::TypeQuantity(_) | Performed::OpenOrders(_) => None,
        }));
        let capture = phone.capture(&CaptureWant::of(PDD)).await.expect("a look");
        assert_eq!(capture.verdict, Verdict::WrongApp, "the launcher is not pinduoduo");
        let capture = phone.capture(&CaptureWant::anything()).await.expect("a look");
        let now = capture.dump_ended;
        let ticket = check(capture, Screen::Elsewhere, Action::OpenGoods(goods), SIZE, &ExtraPatterns::none(), now)
            .expect("a link may be opened from the launcher");
        phone.act(ticket).await.expect("it opens");
        assert_eq!(phone.goods_on_top().await.expect("readable").as_deref(), Some("123456"), "the page followed");
        phone.fail_next(PhoneError::NeverIdle);
        assert_eq!(phone.facts().await.expect_err("scripted").code(), "NEVER_IDLE", "the failure is played once");
        assert!(phone.facts().await.is_ok(), "and only once");
    });
}

#[test]
fn goods_ids_and_links() {
    for bad in ["", "12a", "１２", " 1", "123456789012345678901", "1;reboot", "'"] {
        assert!(GoodsId::try_from(bad).is_err(), "{bad:?} must not become part of a shell command");
    }
    let rows = [
        ("https://mobile.yangkeduo.com/goods.html?goods_id=959747943297", Some("959747943297")),
        ("http://mobile.pinduoduo.com/goods2.html?a=1&goods_id=42&x=y#top", Some("42")),
        ("pinduoduo://com.xunmeng.pinduoduo/goods.html?goods_id=7", Some("7")),
        ("https://mobile.yangkeduo.com/goods.html?goods_id=1&goods_id=2", None),
        ("https://mobile.yangkeduo.com/goods.html?goods_id=abc", None),
        ("https://mobile.yangkeduo.com/goods.html?xgoods_id=1", None),
        ("https://mobile.yangkeduo.com/order.html?goods_id=1", None),
        ("https://evilyangkeduo.com/goods.html?goods_id=1", None),
        ("https://yangkeduo.com.evil.com/goods.html?goods_id=1", None),
        ("goods_id=1", None),
        ("", None),
    ];
    for (url, want) in rows {
        assert_eq!(GoodsId::from_goods_url(url).ok().as_ref().map(|id| id.as_str()), want, "link {url:?}");
    }
}

/// Two orders: one whose card holds a button of its own, one whose card is the button.
fn order_list() -> String {
    let tabs: String = ["全部", "待付款", "待收货"]
        .iter()
        .enumerate()
        .map(|(i, tab)| {
            let x = i as i32 * 300;
            node([x, 200, x + 200, 280], true, tab, "", "")
        })
        .collect();
    let pay = node([800, 700, 1040, 780], true, "", "", &node([840, 715, 1000, 765], false, "去支付", "", ""));
    let title = node([300, 420, 1000, 480], false, "四件套", "", "");
    let near = node([300, 690, 780, 760], false, "蓝色", "", "");
    let picture = node([40, 420, 280, 660], false, "", "商品图片", "");
    let safe = node([0, 400, 1080, 800], true, "", "", &(picture + &title + &near + &pay));
    let whole = node(
        [0, 820, 1080, 1200],
        true,
        "",
        "",
        &(node([300, 860, 900, 900], false, "床单", "", "") + &node([800, 1100, 1000, 1160], false, "去支付", "", "")),
    );
    page(&(tabs + &safe + &whole))
}

#[test]
fn cards_of_the_order_list() {
    let list = order_list();
    let rows = [
        ("title of a card that holds a button", 500, 450, "ok"),
        ("picture", 100, 500, "ok"),
        ("the button", 900, 740, "payment"),
        ("beside its text", 810, 705, "payment"),
        ("a text within 24 dp of the button", 770, 740, "payment"),
        ("the same text further away", 600, 740, "ok"),
        ("empty part of the card", 700, 550, "payment"),
        ("title of a card that is itself the button", 500, 880, "payment"),
        ("a tab", 350, 240, "ok"),
    ];
    for (name, x, y, want) in rows {
        assert_eq!(word(&tap_on(&list, Screen::OrderList, x, y)), want, "row {name}");
    }
    for screen in [Screen::Goods, Screen::Home, Screen::SkuSheet] {
        assert_eq!(word(&tap_on(&list, screen, 500, 450)), "payment", "only a recognised order list relaxes the rule, not {screen}");
    }
    let no_tabs = list.replace("待付款", "别的");
    assert_eq!(word(&tap_on(&no_tabs, Screen::OrderList, 500, 450)), "payment", "the recogniser's word alone relaxes nothing");
    let sheet = sheet().replace("雾蓝", "待付款").replace("添加", "全部");
    assert_eq!(word(&tap_on(&sheet, Screen::OrderList, 700, 1700)), "submit", "a checkout is never an order list");
}

#[test]
fn digits_go_into_the_quantity_field_only() {
    let build = |focused: &str, class: &str, at: [i32; 4], minus: &str| {
        let field = node(at, true, "1", "", "").replace("class=\"v\"", &format!("class=\"{class}\" focused=\"{focused}\""));
        sheet_page(&(node([393, 764, 468, 836], true, "", minus, "") + &field + &node([558, 764, 633, 836], true, "", "增加数量", "")))
    };
    const FIELD: [i32; 4] = [470, 764, 556, 836];
    let edit = "android.widget.EditText";
    let rows = [
        ("the field", build("true", edit, FIELD, "减少数量"), Screen::SkuSheet, "ok"),
        ("without the focus", build("false", edit, FIELD, "减少数量"), Screen::SkuSheet, "not the field"),
        ("another class", build("true", "android.widget.TextView", FIELD, "减少数量"), Screen::SkuSheet, "not the field"),
        ("a search box above", build("true", edit, [470, 100, 556, 170], "减少数量"), Screen::SkuSheet, "not the field"),
        ("left of the steppers", build("true", edit, [10, 764, 90, 836], "减少数量"), Screen::SkuSheet, "not the field"),
        ("no steppers", build("true", edit, FIELD, "别的"), Screen::SkuSheet, "not the field"),
        ("another page", build("true", edit, FIELD, "减少数量"), Screen::Goods, "screen"),
    ];
    for (name, xml, screen, want) in rows {
        let capture = look(&xml);
        let field = capture.tree.nodes().find(|n| n.text() == "1").expect("the field").id();
        let quantity = Quantity::new(12).expect("a small number");
        assert_eq!(word(&decide(capture, screen, Action::TypeQuantity { node: field, quantity })), want, "row {name}");
    }
    assert!(Quantity::new(0).is_none() && Quantity::new(1000).is_none(), "nothing and too much are no quantity");
}

fn sheet_page(inner: &str) -> String {
    page(&node([0, 95, 1080, 2354], false, "", "", inner))
}

#[test]
fn after_an_order_only_the_way_out_is_open() {
    let list = order_list();
    let goods = || Action::OpenGoods(GoodsId::try_from("123456").expect("digits"));
    let orders = || Action::OpenOrders(OrderList::Unpaid);
    let title = || tap(&look(&order_list()).tree, 500, 450);
    let pay = || tap(&look(&order_list()).tree, 900, 740);
    let swipe = || Action::Swipe { from: Point { x: 500, y: 1800 }, to: Point { x: 500, y: 900 }, duration_ms: 300 };
    let rows = [
        ("home", Screen::Unknown, Action::Key(Key::Home), "ok"),
        ("the order list", Screen::RiskWall, orders(), "ok"),
        ("back", Screen::SkuSheet, Action::Key(Key::Back), "way out"),
        ("goods", Screen::OrderList, goods(), "way out"),
        ("tap elsewhere", Screen::Goods, title(), "way out"),
        ("swipe elsewhere", Screen::Goods, swipe(), "way out"),
        ("a card on the list", Screen::OrderList, title(), "ok"),
        ("paying on the list", Screen::OrderList, pay(), "payment"),
        ("swiping the list", Screen::OrderList, swipe(), "ok"),
        ("back from the list", Screen::OrderList, Action::Key(Key::Back), "ok"),
    ];
    for (name, screen, action, want) in rows {
        let capture = look(&list);
        let now = capture.dump_ended;
        let got = check_after_order(capture, screen, action, SIZE, &ExtraPatterns::none(), now).map_err(|r| r.reason);
        assert_eq!(word(&got), want, "row {name}");
    }
    for verdict in [Verdict::TreeEmpty, Verdict::WrongApp, Verdict::NeverIdle, Verdict::SecureOrBlack, Verdict::RiskWall] {
        for (action, want) in [(Action::Key(Key::Home), "ok"), (orders(), "ok"), (swipe(), "verdict")] {
            let capture = look_at(FakePage::pdd(&list).with_verdict(verdict));
            let now = capture.dump_ended;
            let got = check_after_order(capture, Screen::OrderList, action, SIZE, &ExtraPatterns::none(), now).map_err(|r| r.reason);
            assert_eq!(word(&got), want, "under {verdict} only the two ways out are open");
        }
    }
    let late = look(&list);
    let then = late.dump_ended + Duration::from_millis(3001);
    let got = check_after_order(late, Screen::Unknown, Action::Key(Key::Home), SIZE, &ExtraPatterns::none(), then).map_err(|r| r.reason);
    assert_eq!(word(&got), "too old", "an old look decides nothing, not even the way out");
    run(async {
        let phone = FakePhone::new("one", FakePage::pdd(&list));
        let capture = phone.capture(&CaptureWant::anything()).await.expect("a look");
        let now = capture.dump_ended;
        let ticket = check_after_order(capture, Screen::Unknown, Action::Key(Key::Home), SIZE, &ExtraPatterns::none(), now).expect("open");
        phone.show(FakePage::of("com.tencent.mm", ".pay.X", &list));
        phone.act(ticket).await.expect("a payment layer that came in front must not bar the way out");
        assert_eq!(phone.performed(), [Performed::Key(Key::Home)], "HOME was pressed");
    });
}
