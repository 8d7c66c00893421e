//! The guard against random trees: whatever the page and the wish, nothing on or over a payment control reaches the phone.

mod pages;

use std::sync::Arc;

use cmautobuy_device::fake::{FakePage, Performed};
use cmautobuy_device::{
    Action, Bounds, CaptureWant, ExtraPatterns, FakePhone, NodeId, Phone, Point, Quantity, Screen, UiTree, check, check_after_order,
};
use proptest::prelude::*;

use pages::{SIZE, node, page, run};

/// Which door of the guard is tried.
#[derive(Clone, Copy, Debug)]
enum Door {
    Plain(Screen),
    AfterOrder(Screen),
}

/// What arrived on the phone after this wish, if anything.
fn sent(xml: &str, door: Door, action: Action) -> Vec<Performed> {
    run(async {
        let phone = FakePhone::new("fake", FakePage::pdd(xml));
        let capture = phone.capture(&CaptureWant::anything()).await.expect("the fake can be looked at");
        let (now, none) = (capture.dump_ended, ExtraPatterns::none());
        let ticket = match door {
            Door::Plain(screen) => check(capture, screen, action, SIZE, &none, now),
            Door::AfterOrder(screen) => check_after_order(capture, screen, action, SIZE, &none, now),
        };
        if let Ok(ticket) = ticket {
            phone.act(ticket).await.expect("a fresh ticket on an unchanged phone");
        }
        phone.performed()
    })
}

fn door() -> impl Strategy<Value = Door> {
    let screens =
        vec![Screen::Home, Screen::Goods, Screen::SkuSheet, Screen::OrderList, Screen::AbandonPopup, Screen::Popup, Screen::Unknown];
    (prop::sample::select(screens), any::<bool>())
        .prop_map(|(screen, after)| if after { Door::AfterOrder(screen) } else { Door::Plain(screen) })
}

const LABELS: [&str; 16] = [
    "",
    "",
    "",
    "收藏",
    "雾蓝",
    "¥69",
    "待付款",
    "全部",
    "去支付",
    "增加数量",
    "提交订单 ¥69",
    "立即支付",
    "继 续 支 付",
    "更换支付方式",
    "¥2单独购买",
    "减少数量",
];

fn is_money(label: &str) -> bool {
    ["提交订单", "立即支付", "继 续 支 付", "更换支付方式", "去支付"].iter().any(|word| label.contains(word))
}

#[derive(Clone, Debug)]
struct Shape {
    bounds: [i32; 4],
    clickable: bool,
    label: usize,
    in_desc: bool,
    children: Vec<Shape>,
}

impl Shape {
    fn xml(&self) -> String {
        let inner: String = self.children.iter().map(Shape::xml).collect();
        let label = LABELS[self.label];
        let (text, desc) = if self.in_desc { ("", label) } else { (label, "") };
        node(self.bounds, self.clickable, text, desc, &inner)
    }
}

fn shape() -> impl Strategy<Value = Shape> {
    let own = || {
        ((0i32..1080, 0i32..2400, 1i32..700, 1i32..900), any::<bool>(), 0..LABELS.len(), any::<bool>()).prop_map(
            |((l, t, w, h), clickable, label, in_desc)| Shape {
                bounds: [l, t, (l + w).min(1080), (t + h).min(2400)],
                clickable,
                label,
                in_desc,
                children: Vec::new(),
            },
        )
    };
    own().prop_recursive(5, 40, 5, move |inner| {
        (own(), proptest::collection::vec(inner, 0..5)).prop_map(|(mut shape, children)| {
            shape.children = children;
            shape
        })
    })
}

/// D10 said again in the plainest way, without any of the guard's own code: on a paying control, on what it is pressed with, or on
/// something that holds it. The last is the one thing a recognised order list relaxes.
fn on_money(tree: &UiTree, at: Point) -> bool {
    let inside = |b: Bounds| b.contains(at);
    tree.nodes()
        .filter(|n| is_money(n.label()))
        .any(|n| inside(n.bounds()) || n.ancestors().find(|up| up.clickable()).is_some_and(|up| inside(up.bounds())))
}

fn around_money(tree: &UiTree, at: Point) -> bool {
    let inside = |b: Bounds| b.contains(at);
    tree.nodes().any(|n| {
        n.clickable()
            && inside(n.bounds())
            && !n.descendants().any(|d| d.clickable() && inside(d.bounds()))
            && n.descendants().any(|d| is_money(d.label()))
    })
}

/// Closer than 24 dp to a paying control or to what it is pressed with.
fn near_money(tree: &UiTree, at: Point) -> bool {
    let margin = SIZE.dp(24);
    let near = |b: Bounds| {
        !b.is_empty() && at.x >= b.left - margin && at.x < b.right + margin && at.y >= b.top - margin && at.y < b.bottom + margin
    };
    tree.nodes()
        .filter(|n| is_money(n.label()))
        .any(|n| near(n.bounds()) || n.ancestors().find(|up| up.clickable()).is_some_and(|up| near(up.bounds())))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_on_or_over_money_is_ever_sent(
        shapes in proptest::collection::vec(shape(), 1..6),
        tabs in any::<bool>(),
        place in (0i32..1080, 0i32..2400),
        aim in any::<prop::sample::Index>(),
        on_purpose in any::<bool>(),
        other_node in any::<prop::sample::Index>(),
        honest in 0u8..4,
        to in (0i32..1080, 0i32..2400),
        duration_ms in 1u32..2000,
        door in door(),
    ) {
        let mut inner: String = shapes.iter().map(Shape::xml).collect();
        if tabs {
            inner += &(node([0, 0, 90, 40], true, "待付款", "", "") + &node([100, 0, 190, 40], true, "待收货", "", ""));
        }
        let xml = page(&inner);
        let tree = Arc::new(UiTree::parse(xml.as_bytes()).expect("the page is well-formed"));
        // Half of the taps aim at a paying node, or random ones would rarely meet it.
        let money: Vec<_> = tree.nodes().filter(|n| is_money(n.label()) && !n.bounds().is_empty()).collect();
        let at = if on_purpose && !money.is_empty() {
            money[aim.index(money.len())].bounds().center()
        } else {
            Point { x: place.0, y: place.1 }
        };
        // Mostly the node a flow would name, sometimes any.
        let target: NodeId = if honest > 0 {
            tree.deepest_at(at).map_or(tree.node(tree.roots().next().expect("a root").id()).id(), |n| n.id())
        } else {
            tree.nodes().nth(other_node.index(tree.len())).expect("in range").id()
        };
        let row_top = tree.nodes().filter(|n| n.label().contains("更换支付方式") && !n.bounds().is_empty()).map(|n| n.bounds().top).min();
        let below_row = row_top.is_some_and(|top| at.y >= top);
        let list = matches!(door, Door::Plain(Screen::OrderList) | Door::AfterOrder(Screen::OrderList));
        // The relaxation needs the page's name and the page's own tabs, and keeps its distance.
        let around = around_money(&tree, at) && (!list || near_money(&tree, at));
        let forbidden = below_row || on_money(&tree, at) || around;

        for done in sent(&xml, door, Action::Tap { node: target, at }) {
            prop_assert!(!forbidden, "{done:?} reached money through {door:?} in {xml}");
        }

        let to = Point { x: to.0, y: to.1 };
        let short = f64::from(at.x - to.x).hypot(f64::from(at.y - to.y)) < f64::from(SIZE.dp(48));
        let pressed = short || duration_ms > 400;
        for done in sent(&xml, door, Action::Swipe { from: at, to, duration_ms }) {
            prop_assert!(!on_money(&tree, at) && !below_row, "{done:?} began on money through {door:?} in {xml}");
            prop_assert!(!(pressed && around_money(&tree, at)), "{done:?} counts as a touch around money through {door:?} in {xml}");
        }

        let quantity = Quantity::new(3).expect("a small number");
        let typed = sent(&xml, door, Action::TypeQuantity { node: target, quantity });
        prop_assert!(typed.is_empty(), "no random page has a focused quantity field: {typed:?} in {xml}");
    }
}

/// Or the property above would hold of a guard that sends nothing at all.
#[test]
fn harmless_wishes_are_sent() {
    let xml = page(&(node([0, 100, 500, 300], true, "收藏", "", "") + &node([0, 2000, 1080, 2200], true, "提交订单 ¥69", "", "")));
    let tree = UiTree::parse(xml.as_bytes()).expect("the page is well-formed");
    let at = Point { x: 50, y: 150 };
    let node = tree.deepest_at(at).expect("a node").id();
    assert_eq!(sent(&xml, Door::Plain(Screen::SkuSheet), Action::Tap { node, at }), [Performed::Tap(at)], "a harmless tap arrives");
    let (from, to) = (Point { x: 500, y: 1500 }, Point { x: 500, y: 700 });
    let swipe = sent(&xml, Door::Plain(Screen::Goods), Action::Swipe { from, to, duration_ms: 300 });
    assert_eq!(swipe, [Performed::Swipe { from, to, duration_ms: 300 }], "a harmless swipe arrives");
}
