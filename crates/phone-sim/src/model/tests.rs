//! The model as a reader meets it: taps at places read from the tree, results read from the tree.

use proptest::prelude::*;

use super::*;
use crate::catalogue::{ChipStyle, DimensionKind};
use crate::render;

fn model() -> Model {
    Model::new(Catalogue::builtin(), true, 7)
}

fn at_goods(at: usize) -> (Model, Goods) {
    let mut model = model();
    let goods = model.catalogue.goods[at].clone();
    open(&mut model, &goods.goods_id);
    (model, goods)
}

pub(super) fn open(model: &mut Model, id: &str) {
    model.open_link(&format!("https://mobile.yangkeduo.com/goods.html?goods_id={id}"), Some(PDD));
}

pub(super) fn walk<'v>(view: &'v View, out: &mut Vec<&'v View>) {
    if view.ghost {
        return;
    }
    out.push(view);
    for child in &view.children {
        walk(child, out);
    }
}

/// Runs `look` over every view that is really on the screen.
pub(super) fn find<T>(model: &Model, look: impl Fn(&View) -> Option<T>) -> Option<T> {
    let windows = model.windows();
    let mut all = Vec::new();
    for window in &windows {
        walk(&window.root, &mut all);
    }
    all.into_iter().find_map(look)
}

pub(super) fn shows(model: &Model, says: &str) -> bool {
    find(model, |view| (view.text == says || view.desc == says).then_some(())).is_some()
}

pub(super) fn place(model: &Model, wanted: impl Fn(&View) -> bool) -> Option<(i32, i32)> {
    find(model, |view| {
        // The lower middle, clear of 打开大图 in a chip's upper right corner.
        wanted(view).then(|| ((view.bounds.l + view.bounds.r) / 2, view.bounds.b - view.bounds.height() / 4))
    })
}

pub(super) fn tap_on(model: &mut Model, says: &str) -> bool {
    match place(model, |view| view.text == says || view.desc == says) {
        Some((x, y)) => {
            model.tap(x, y);
            true
        }
        None => false,
    }
}

pub(super) fn open_sheet(model: &mut Model) {
    for says in ["选择规格", "请选择"] {
        if tap_on(model, says) {
            return;
        }
    }
    // A single-SKU goods has only its buy buttons.
    let (x, y) = place(model, |view| view.desc.ends_with("发起拼单")).expect("a buy button is always there");
    model.tap(x, y);
}

fn header(model: &Model) -> String {
    let windows = model.windows();
    let mut all = Vec::new();
    walk(&windows[0].root, &mut all);
    let found = all.iter().find(|view| view.class == crate::view::TEXT && view.frame == rect_of_header()).map(|view| view.text.clone());
    found.unwrap_or_default()
}

fn rect_of_header() -> crate::view::Rect {
    crate::view::rect(393, 510, 1054, 582)
}

/// Scrolls the panel and the chip list until the value is comfortably visible.
fn bring(model: &mut Model, value: &str) -> Option<(i32, i32)> {
    let spot = |model: &Model| {
        find(model, |view| {
            let named = view.desc == value && view.class == crate::view::GROUP
                || view.text.trim_end().starts_with(value) && view.class == crate::view::TEXT && view.clickable;
            let (wide, tall) = (view.bounds.width(), view.bounds.height());
            (named && wide * 2 > view.frame.width() && tall * 2 > view.frame.height())
                .then(|| ((view.bounds.l + view.bounds.r) / 2, view.bounds.b - tall / 8))
        })
    };
    for _ in 0..8 {
        if let Some(spot) = spot(model) {
            return Some(spot);
        }
        model.swipe((800, 1300), (300, 1300), 300);
        if let Some(spot) = spot(model) {
            return Some(spot);
        }
        model.swipe((20, 1900), (20, 1400), 300);
    }
    None
}

#[test]
fn every_value_of_every_goods_shows_its_price_in_the_header() {
    let many = Catalogue::builtin().goods.len();
    let mut read = 0;
    for at in 0..many {
        let (mut model, goods) = at_goods(at);
        let Some(dimension) = goods.price_dimension() else {
            continue;
        };
        if goods.sold_out || goods.removed {
            continue;
        }
        open_sheet(&mut model);
        assert_eq!(model.screen_name(), format!("sheet:{}", goods.goods_id), "the row opens the sheet");
        if !goods.preselected {
            assert!(header(&model).contains(['-', '起']), "before a choice the header has no single price");
        }
        for value in &goods.dimensions[dimension].values {
            let before = header(&model);
            // Back to the start, then forward as far as needed.
            for _ in 0..6 {
                model.swipe((300, 1300), (900, 1300), 300);
                model.swipe((20, 1300), (20, 1900), 300);
            }
            let (x, y) = bring(&mut model, &value.text).unwrap_or_else(|| panic!("{} must be reachable", value.text));
            model.tap(x, y);
            let got = header(&model);
            if value.sold_out {
                assert_eq!(got, before, "a sold-out chip changes nothing: {}", value.text);
                continue;
            }
            match goods.price_of(&value.text) {
                Some(cent) => {
                    let want = format!("¥{}", parts::yuan(cent));
                    assert!(got.ends_with(&want), "{} of {}: header `{got}`, catalogue {want}", value.text, goods.title);
                    read += 1;
                }
                None => assert!(!got.contains('¥'), "a hidden price is not shown: {got}"),
            }
            assert!(find(&model, |view| view.text.starts_with("已选: #").then_some(())).is_some(), "the header repeats the choice");
        }
    }
    assert!(read > 50, "prices were really read, got {read}");
    assert_eq!(model().counts.orders, 0, "reading creates no order");
}

#[test]
fn the_goods_page_has_what_a_reader_looks_for() {
    for at in 0..Catalogue::builtin().goods.len() {
        let (mut model, goods) = at_goods(at);
        if goods.sold_out || goods.removed {
            continue;
        }
        let title = find(&model, |view| (view.id.ends_with("tv_title")).then(|| (view.text.clone(), view.desc.clone())));
        assert_eq!(title, Some((String::new(), goods.title.clone())), "the title is in the description only");
        let root = model.windows()[0].root.desc.clone();
        assert_eq!(root, "分享", "the root carries the leaked label");
        for says in ["店铺", "收藏", "客服"] {
            assert!(shows(&model, says), "the bottom bar has {says}");
        }
        match &goods.glued {
            Some(glued) => assert!(shows(&model, glued), "the price line is glued"),
            None => assert!(shows(&model, &goods.sales_text), "the sales text stands alone"),
        }
        let mut seen_reviews = shows(&model, &goods.reviews_text);
        let mut seen_shop = shows(&model, &goods.shop);
        assert!(!seen_shop, "the shop is below the fold");
        for _ in 0..6 {
            model.swipe((540, 1800), (540, 900), 300);
            seen_reviews |= shows(&model, &goods.reviews_text);
            seen_shop |= shows(&model, &goods.shop) && shows(&model, "进店");
        }
        assert!(seen_reviews && seen_shop, "swiping brings reviews and shop of {}", goods.title);
    }
}

#[test]
fn chips_say_what_real_ones_say() {
    let (mut model, goods) = at_goods(0);
    open_sheet(&mut model);
    let sold = goods.dimensions[0].values.iter().find(|value| value.sold_out).expect("one is sold out");
    let chip = find(&model, |view| (view.desc == sold.text && view.class == crate::view::GROUP).then(|| view.clone()));
    let chip = chip.expect("the sold-out chip is in the tree");
    assert!(chip.clickable && !chip.selected, "it still looks clickable");
    let mut below = Vec::new();
    walk(&chip, &mut below);
    assert!(below.iter().any(|view| view.text.ends_with("... 刚刚抢光")), "only its text tells");
    assert!(!below.iter().any(|view| view.desc == "打开大图"), "it has no picture button");

    let first = goods.dimensions[0].values[0].text.clone();
    let corner = find(&model, |view| (view.desc == "打开大图").then_some((view.bounds.r - 20, view.bounds.t + 20)));
    let (x, y) = corner.expect("a sellable chip has one");
    model.tap(x, y);
    assert_eq!(model.screen_name(), "gallery", "the corner is a trap");
    model.key(4);
    assert!(tap_on(&mut model, &first), "the chip is there");
    let mut seen = 0;
    find(&model, |view| (view.desc == first && view.selected).then_some(())).inspect(|()| seen += 1);
    assert_eq!(seen, 1, "selected is set on the chip");

    let (mut model, goods) = at_goods(1);
    assert_eq!(goods.chip, ChipStyle::Text, "the second goods has text chips");
    open_sheet(&mut model);
    let value = goods.dimensions[0].values[1].text.clone();
    assert!(tap_on(&mut model, &value), "the text chip is there");
    let (label, parent) = find(&model, |view| {
        let child = view.children.iter().find(|child| child.text == value)?;
        Some((child.selected, view.selected || !view.desc.is_empty()))
    })
    .expect("the chip is there");
    assert!(label && !parent, "selected sits on the text, the chip itself says nothing");
}

#[test]
fn submitting_creates_an_order_and_opens_the_payment_layer() {
    let (mut model, goods) = at_goods(5);
    open_sheet(&mut model);
    assert_eq!(model.screen_name(), format!("sheet:{}", goods.goods_id), "a single-SKU goods opens its checkout");
    let says = format!("提交订单 ¥{}", parts::yuan(goods.price_of("").expect("it has a price")));
    assert!(tap_on(&mut model, &says), "the submit button names the amount");
    assert_eq!(model.counts.orders, 1, "the tap made an order");
    assert_eq!(model.focus().map(|(package, _)| package), Some(PAYMENT), "and the payment layer is in front");
    assert_eq!((model.counts.payments_opened, model.counts.payments), (1, 0), "which is no payment yet");
    model.key(4);
    model.open_link("https://mobile.yangkeduo.com/orders.html?type=1", Some(PDD));
    assert!(shows(&model, "待付款"), "the order waits unpaid");
}

#[test]
fn submit_waits_for_every_dimension_and_takes_the_balance_off() {
    let (mut model, _) = at_goods(0);
    open_sheet(&mut model);
    assert!(tap_on(&mut model, "选择颜色分类后，立即支付"), "the button says what is missing");
    assert_eq!(model.counts.orders, 0, "and does nothing");
    let (mut model, goods) = at_goods(1);
    open_sheet(&mut model);
    let value = &goods.dimensions[0].values[0];
    assert!(tap_on(&mut model, &value.text), "chosen");
    let want = parts::yuan(goods.price_of(&value.text).expect("priced") - goods.balance_cent);
    assert!(shows(&model, &format!("提交订单 ¥{want}")), "the submit amount is not the unit price");
}

#[test]
fn closing_asks_when_the_goods_says_so() {
    let rows = [(0, false, "goods"), (0, true, "abandon"), (1, false, "abandon"), (5, false, "goods")];
    for (at, choose, want) in rows {
        for by_key in [true, false] {
            let (mut model, goods) = at_goods(at);
            open_sheet(&mut model);
            if choose {
                let value = goods.dimensions[0].values[0].text.clone();
                assert!(tap_on(&mut model, &value), "a chip is chosen");
            }
            if by_key {
                model.key(4);
            } else {
                assert!(tap_on(&mut model, "关闭"), "the sheet has a close button");
            }
            assert!(model.screen_name().starts_with(want), "goods {at}, chosen {choose}: {}", model.screen_name());
            if want == "abandon" {
                assert!(shows(&model, "确定放弃吗?") && shows(&model, "继续支付"), "the popup asks");
                assert!(tap_on(&mut model, "先去逛逛"), "and lets go");
                assert!(model.screen_name().starts_with("goods:"), "back on the goods page");
            }
            assert_eq!(model.counts.orders, 0, "closing orders nothing");
        }
    }
}

#[test]
fn walls_and_states_have_their_texts() {
    let mut model = model();
    let id = |at: usize| Catalogue::builtin().goods[at].goods_id.clone();
    open(&mut model, &id(6));
    assert!(shows(&model, "商品已售罄，推荐以下相似商品"), "sold-out goods");
    open(&mut model, &id(7));
    assert!(shows(&model, "商品已下架"), "removed goods");
    open(&mut model, "999999");
    assert_eq!(model.screen_name(), "removed", "an unknown goods is gone too");
    model.walls.captcha = true;
    open(&mut model, &id(0));
    assert!(shows(&model, "安全验证") && model.goods_on_top().is_none(), "the captcha hides the goods");
    model.walls = Walls { network: true, ..Walls::default() };
    open(&mut model, &id(0));
    assert!(shows(&model, "网络异常，请稍后再试"), "a network error");
    model.walls = Walls { login: true, ..Walls::default() };
    open(&mut model, &id(0));
    assert_eq!(model.focus().map(|(_, activity)| activity.ends_with("LoginActivity")), Some(true), "login");
    model.walls = Walls { notification: true, ..Walls::default() };
    open(&mut model, &id(0));
    let windows = model.windows();
    assert_eq!(windows[1].package, SYSTEM_UI, "a second window belongs to the system");
    model.walls = Walls { locked: true, ..Walls::default() };
    model.awake = false;
    assert!(model.windows().is_empty(), "a dark screen has no root");
    model.key(224);
    assert_eq!(model.windows()[0].package, SYSTEM_UI, "waking shows the keyguard, not the app");
}

#[test]
fn the_same_seed_gives_the_same_phone() {
    let run = |seed| {
        let mut model = Model::new(Catalogue::builtin(), true, seed);
        open(&mut model, &Catalogue::builtin().goods[0].goods_id);
        for step in 0..4 {
            model.swipe((540, 1800), (540, 1300 - step * 37), 300);
        }
        crate::xml::dump(&model.windows(), crate::xml::Style::default())
    };
    assert_eq!(run(1), run(1), "one seed, one tree");
    assert_ne!(run(1), run(2), "swipes differ a little between seeds");
}

#[test]
fn trees_stand_on_the_screen_and_links_reach_only_our_app() {
    for at in 0..Catalogue::builtin().goods.len() {
        let (mut model, _) = at_goods(at);
        for _ in 0..2 {
            for window in model.windows() {
                let mut all = Vec::new();
                walk(&window.root, &mut all);
                for view in all {
                    let bounds = view.bounds;
                    assert!(!bounds.is_empty(), "no empty node: {view:?}");
                    let whole = bounds.l >= 0 && bounds.t >= 0 && bounds.r <= WIDTH && bounds.b <= HEIGHT;
                    assert!(whole, "inside the screen: {bounds:?} {}", view.caption());
                }
            }
            if model.screen_name().starts_with("goods") {
                open_sheet(&mut model);
            }
        }
    }
    let mut model = model();
    for (url, package) in [("https://example.com/", None), ("https://mobile.yangkeduo.com/goods.html?goods_id=1", Some("com.other"))] {
        assert_eq!(model.open_link(url, package), Opened::Unresolved, "{url} for {package:?}");
    }
    let native = format!("pinduoduo://com.xunmeng.pinduoduo/goods.html?goods_id={}", model.catalogue.goods[0].goods_id);
    assert!(matches!(model.open_link(&native, None), Opened::Yes(_)), "the native scheme works");
}

#[test]
fn every_character_a_page_prints_has_a_glyph() {
    let mut missing = std::collections::BTreeSet::new();
    let mut check = |model: &Model| {
        for window in model.windows() {
            collect(&window.root, &mut missing);
        }
    };
    for at in 0..Catalogue::builtin().goods.len() {
        let (mut model, _) = at_goods(at);
        check(&model);
        for _ in 0..5 {
            model.swipe((540, 1800), (540, 900), 300);
            check(&model);
        }
        open(&mut model, &Catalogue::builtin().goods[at].goods_id);
        if model.screen_name().starts_with("goods") {
            open_sheet(&mut model);
            check(&model);
            model.stack.push(Page::Abandon);
            check(&model);
        }
    }
    let mut model = model();
    check(&model);
    let pages = [
        Page::Home { scroll: 0 },
        Page::Captcha,
        Page::Risk,
        Page::RealName,
        Page::Login,
        Page::NetworkError { goods_id: String::new() },
        Page::Removed,
        Page::Gallery,
        Page::Orders { tab: 0, scroll: 0 },
        Page::Promo,
    ];
    for page in pages {
        model.show(page);
        check(&model);
    }
    // Emoji are in no text face; phones draw them from another font.
    missing.retain(|one| (*one as u32) < 0x10000 && *one != '\n');
    assert!(missing.is_empty(), "cut the font again with these: {missing:?}");
}

pub(super) fn collect(view: &View, missing: &mut std::collections::BTreeSet<char>) {
    if let Some(label) = &view.paint.label {
        missing.extend(label.text.chars().filter(|one| !render::has_glyph(*one)));
    }
    for child in &view.children {
        collect(child, missing);
    }
}

#[test]
fn the_picture_shows_what_the_tree_says() {
    let (mut model, goods) = at_goods(0);
    open_sheet(&mut model);
    let before = pixels(&model);
    let value = goods.dimensions[0].values[1].text.clone();
    let at = find(&model, |view| (view.desc == value && view.class == crate::view::GROUP).then_some(view.bounds));
    let at = at.expect("the chip is on screen");
    assert!(tap_on(&mut model, &value), "chosen");
    let after = pixels(&model);
    let edge = ((at.t + 100) * WIDTH + at.l + 1) as usize * 3;
    assert_eq!(after[edge..edge + 3], parts::RED, "a chosen chip has a red border");
    assert_ne!(before[edge..edge + 3], parts::RED, "an unchosen one has not");
    let mut ink = 0;
    for y in 510..582 {
        for x in 393..700 {
            let spot = ((y * WIDTH + x) * 3) as usize;
            ink += u32::from(after[spot..spot + 3] == parts::RED);
        }
    }
    assert!(ink > 500, "the price is written in red where the tree has it, got {ink} pixels");
    let colours: std::collections::HashSet<&[u8]> = after.chunks(3 * 97).map(|chunk| &chunk[..3]).collect();
    assert!(colours.len() > 40, "the page is not blank: {} colours sampled", colours.len());
}

fn pixels(model: &Model) -> Vec<u8> {
    let png = render::png(&model.windows(), false);
    let image = image::load_from_memory(&png).expect("a valid PNG").into_rgb8();
    assert_eq!(image.dimensions(), (1080, 2400), "the size of the screen");
    image.into_raw()
}

#[test]
fn dimension_kinds_are_told_by_the_catalogue() {
    let goods = &Catalogue::builtin().goods[2];
    assert_eq!(goods.dimensions[0].kind, DimensionKind::Other, "the third demo goods is priced by its first dimension");
    assert_eq!(goods.price_dimension(), Some(0), "which carries the price");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn random_fingers_never_break_the_phone(
        start in 0..13_usize,
        moves in proptest::collection::vec((0..5_u8, 0..1080_i32, 0..2400_i32, 0..1080_i32, 0..2400_i32), 1..60),
    ) {
        let (mut model, _) = at_goods(start);
        for (what, x, y, to_x, to_y) in moves {
            match what {
                0 | 1 => { model.tap(x, y); }
                2 => { model.swipe((x, y), (to_x, to_y), 300); }
                3 => { model.key(4); }
                _ => open(&mut model, &Catalogue::builtin().goods[(x % 13) as usize].goods_id),
            }
            let name = model.screen_name();
            prop_assert!(!name.is_empty(), "some screen is always there");
            let xml = crate::xml::dump(&model.windows(), crate::xml::Style::default());
            prop_assert!(xml.ends_with("</hierarchy>"), "the tree is whole on {name}");
        }
    }
}
