//! Recognition and reading of pages, on small trees with invented texts and on shared dumps where there are any.

use std::path::PathBuf;

use crate::support::{
    N, PDD, abandon_popup, goods_page, group, image_chip, name_row, node, pdd_front, screen, sheet, text, text_chip, tree, windows,
};
use cmautobuy_device::{Foreground, Point, Screen, UiTree};
use cmautobuy_pdd::goods_page::read_goods;
use cmautobuy_pdd::price::HeaderPrice;
use cmautobuy_pdd::sku_sheet::{SheetFault, SkuSheet, read_sheet};
use cmautobuy_pdd::{RulePack, Unavailable, recognise, recognise_in_full};

fn a_sheet() -> String {
    sheet(
        &["最后11件 ¥69"],
        "已选: #雾蓝",
        [name_row("颜色", 872), image_chip("雾蓝", "雾蓝", true, (35, 979)), image_chip("豆沙", "豆沙", false, (381, 979))],
    )
}

fn notice(label: &str) -> N {
    node("android.widget.FrameLayout", (0, 0, 1080, 95))
        .package("com.android.systemui")
        .child(node("android.widget.ImageView", (200, 20, 260, 80)).desc(label).package("com.android.systemui"))
}

#[test]
fn screens() {
    let rules = RulePack::builtin();
    let whole = |children: Vec<N>| screen(children);
    let at = |label: &str| text(label, (100, 900, 980, 980));
    let elsewhere = Foreground { package: "com.android.launcher3".into(), activity: ".Launcher".into() };
    let login = Foreground { package: PDD.into(), activity: "com.xunmeng.pinduoduo.login.LoginActivity".into() };
    let goods = goods_page("测试扳手", "¥19.9", Some("选择规格"));
    let over_goods = |label: &str| goods.replace("</hierarchy>", &format!("{}</hierarchy>", inner(&whole(vec![at(label)]))));
    let rows: Vec<(&str, String, Foreground, Screen)> = vec![
        ("launcher", whole(vec![at("安全验证")]), elsewhere.clone(), Screen::Elsewhere),
        ("goods", goods.clone(), pdd_front(), Screen::Goods),
        ("bar labels at the top are no goods page", whole(vec![at("收藏"), at("客服"), at("店铺")]), pdd_front(), Screen::Unknown),
        ("sheet", a_sheet(), pdd_front(), Screen::SkuSheet),
        ("leaving question", abandon_popup(), pdd_front(), Screen::AbandonPopup),
        ("verification", whole(vec![at("安全验证")]), pdd_front(), Screen::RiskWall),
        ("verification, decorated", whole(vec![at(" 请完成\u{200b}安全验证 ")]), pdd_front(), Screen::RiskWall),
        ("verification over the goods", over_goods("安全验证"), pdd_front(), Screen::RiskWall),
        ("account limited", whole(vec![at("检测到账户存在风险，为了安全，已限制部分操作")]), pdd_front(), Screen::RiskWall),
        ("a review that mentions a code is no wall", over_goods("客服让我输入验证码，异常访问"), pdd_front(), Screen::Goods),
        (
            "a notification is no wall",
            windows([inner_root(&[]), notice("短信：验证码 3141，请完成安全验证"), notice("安全验证")]),
            pdd_front(),
            Screen::Unknown,
        ),
        ("login text", whole(vec![at("登录拼多多")]), pdd_front(), Screen::LoginWall),
        ("login activity", whole(vec![at("欢迎")]), login, Screen::LoginWall),
        ("sold out", whole(vec![at("商品已售罄，推荐以下相似商品")]), pdd_front(), Screen::Unavailable),
        ("removed", whole(vec![at("商品已下架")]), pdd_front(), Screen::Unavailable),
        ("network", whole(vec![at("网络异常，请稍后再试")]), pdd_front(), Screen::Unavailable),
        ("a review about the network", over_goods("加载失败了三次才付上款"), pdd_front(), Screen::Goods),
        ("teen mode", over_goods2(&goods, &[at("青少年模式"), at("我知道了")]), pdd_front(), Screen::Popup),
        ("orders", whole(vec![at("我的订单"), at("待付款"), at("待收货")]), pdd_front(), Screen::OrderList),
        ("home", whole(vec![at("首页"), at("聊天"), at("个人中心")]), pdd_front(), Screen::Home),
        ("loading", whole(vec![]), pdd_front(), Screen::Unknown),
    ];
    for (name, xml, front, want) in rows {
        assert_eq!(recognise(&tree(&xml), &front, &rules), want, "the page decides what may be done: {name}");
    }
    let why = recognise_in_full(&tree(&whole(vec![at("商品已下架")])), &pdd_front(), &rules);
    assert_eq!((why.unavailable, why.text.as_deref()), (Some(Unavailable::Removed), Some("商品已下架")), "a person reads why");
}

/// The roots inside a page's hierarchy.
fn inner(xml: &str) -> String {
    xml.split_once("<hierarchy rotation=\"0\">").map(|(_, rest)| rest.trim_end_matches("</hierarchy>").to_owned()).expect("a page")
}

fn inner_root(children: &[N]) -> N {
    node("android.widget.FrameLayout", (0, 0, 1080, 2400)).all(children.to_vec())
}

fn over_goods2(goods: &str, more: &[N]) -> String {
    goods.replace("</hierarchy>", &format!("{}</hierarchy>", inner(&screen(more.to_vec()))))
}

#[test]
fn goods_pages() {
    let rules = RulePack::builtin();
    let page = read_goods(&tree(&goods_page(" 测试扳手 活动款\n", "¥19.9", Some("选择规格"))), &rules);
    assert_eq!(page.title.as_deref(), Some("测试扳手 活动款"), "the title is in the description (facts/pdd §2)");
    assert_eq!(page.shop.as_deref(), Some("测试五金旗舰店"), "the name beside 进店, not the shop's sales");
    assert_eq!(page.sales.as_ref().map(|m| (m.value, m.approximate)), Some((12_000, true)), "the goods' sales, not the shop's");
    assert_eq!(page.reviews.as_ref().map(|m| m.value), Some(4_949), "商品评价(n)");
    assert_eq!(page.certain_price.as_ref().map(|p| p.cent), Some(1_990), "a whole price needs no second source");
    assert_eq!(page.entry.as_ref().map(|e| e.at), Some(Point { x: 167, y: 1585 }), "the row's own label is touched");

    let rows: [(&str, &str, Option<u64>, Option<u64>); 5] = [
        ("one reading", "¥70已拼44件最后6件", Some(7_000), Some(12_000)),
        ("several readings, a button agrees with one", "¥19.92人付款", Some(1_990), Some(12_000)),
        ("several readings, no second source", "¥4162人付款", None, Some(12_000)),
        ("from", "¥19.9起", None, Some(12_000)),
        ("named price", "券后¥2.99", Some(299), Some(12_000)),
    ];
    for (name, line, price, sales) in rows {
        let page = read_goods(&tree(&goods_page("测试扳手", line, None)), &rules);
        assert_eq!(page.certain_price.map(|p| p.cent), price, "right or not at all: {name}");
        assert_eq!(page.sales.map(|m| m.value), sales, "the stated sales win over the line: {name}");
        assert_eq!(page.entry, None, "a buy button is never the row: {name}");
    }
    for label in ["请选择收货地址", "免拼购买", "¥19.9发起拼单", "选好了"] {
        let page = read_goods(&tree(&goods_page("测试扳手", "¥1", Some(label))), &rules);
        assert_eq!(page.entry, None, "not the row that opens the choices: {label}");
    }
}

fn read(xml: &str) -> SkuSheet {
    read_sheet(&tree(xml), &RulePack::builtin()).expect("the sheet under test has a header and a payment row")
}

#[test]
fn a_sheet_of_pictures() {
    let sheet = read(&a_sheet());
    let HeaderPrice::Single { price, list } = &sheet.header else { panic!("one price: {:?}", sheet.header) };
    assert_eq!((price.cent, list), (6_900, &None), "the header's price, never the submit amount");
    assert_eq!(sheet.payment_top, 2118, "nothing at or below the payment row may be touched");
    let color = &sheet.dimensions[0];
    assert_eq!((sheet.dimensions.len(), color.name.as_str()), (1, "颜色"), "one choice");
    let chips: Vec<_> = color.chips.iter().map(|c| (c.text.as_str(), c.selected, c.available)).collect();
    assert_eq!(chips, [("雾蓝", true, Some(true)), ("豆沙", false, Some(true))], "chosen is what says so, '#' or not");
    assert_eq!(color.chips[1].tap.map(|(_, at)| at), Some(Point { x: 539, y: 1338 }), "the caption, never 打开大图");
    let rules = RulePack::builtin();
    assert!(sheet.confirms("颜色", &color.chips[0], &rules), "chip and selection line agree");
    assert!(!sheet.confirms("颜色", &color.chips[1], &rules), "a chip that is not chosen is not confirmed");
}

#[test]
fn a_sheet_of_texts_with_extra_rows() {
    let discount = group((0, 872, 1080, 1002))
        .click()
        .child(text("优惠", (35, 908, 121, 965)))
        .child(text("用多多支付减7.53元", (641, 910, 996, 963)));
    let title = node("android.widget.LinearLayout", (35, 1014, 1045, 1092)).click().child(text("款式", (35, 1024, 121, 1081)));
    let xml = sheet(
        &["¥19.7", "单独购买¥25.9"],
        "请选择：尺码",
        [
            discount,
            title,
            text_chip("标准款  ¥51", Some("最后3件"), true, (35, 1104, 400)),
            text_chip("加长...", Some("刚刚抢光"), false, (430, 1104, 800)),
            text("多人说“很好用”", (35, 1230, 500, 1280)),
            name_row("尺码", 1300),
            text_chip("M", None, false, (35, 1410, 190)),
            text_chip("L", None, false, (220, 1410, 370)),
        ],
    );
    let sheet = read(&xml);
    let HeaderPrice::Single { price, list } = &sheet.header else { panic!("two prices: {:?}", sheet.header) };
    assert_eq!((price.cent, list.as_ref().map(|p| p.cent)), (1_970, Some(2_590)), "the undiscounted price is the list price");
    let names: Vec<&str> = sheet.dimensions.iter().map(|d| d.name.as_str()).collect();
    assert_eq!(names, ["款式", "尺码"], "neither the discount row nor the bubble is a choice");
    let chips: Vec<_> = sheet.dimensions[0].chips.iter().map(|c| (c.text.as_str(), c.truncated, c.selected, c.available)).collect();
    assert_eq!(chips, [("标准款", false, true, Some(true)), ("加长", true, false, Some(false))], "without price and stock hints");
    assert!(sheet.confirms("款式", &sheet.dimensions[0].chips[0], &RulePack::builtin()), "the line names only what is still missing");
}

#[test]
fn chips_at_the_edges() {
    let cut = group((1004, 979, 1080, 1392))
        .desc("薄荷")
        .click()
        .child(node("android.widget.ImageView", (1004, 979, 1080, 1296)).desc("薄荷").click());
    let sold = image_chip("琥珀色长名字", "琥珀... 刚刚抢光", false, (381, 979));
    let list = node("android.support.v7.widget.RecyclerView", (35, 979, 1080, 1392)).scroll().all([
        image_chip("即将卖完的好色", "即将卖完的好色", false, (35, 979)),
        sold,
        cut,
    ]);
    let sheet = read(&sheet(&["¥39.9-59.9"], "请选择：颜色", [name_row("颜色", 872), list]));
    assert_eq!(sheet.header.single(), None, "a range is no price");
    let chips: Vec<_> = sheet.dimensions[0].chips.iter().map(|c| (c.text.as_str(), c.available, c.tap.is_some())).collect();
    let want = [("即将卖完的好色", Some(true), true), ("琥珀色长名字", Some(false), true), ("薄荷", None, false)];
    assert_eq!(chips, want, "nearly gone is not gone; a cut chip is known but not touched");
    let list = sheet.dimensions[0].list.expect("the chips' own list");
    assert!(list.scrollable && list.cut_sideways, "more is to be found sideways: {list:?}");
}

#[test]
fn a_sheet_that_cannot_be_trusted_is_an_error() {
    let rules = RulePack::builtin();
    let no_payment = a_sheet().replace("更换支付方式", "别的").replace("提交订单", "别的");
    assert_eq!(read_sheet(&tree(&no_payment), &rules), Err(SheetFault::NoPaymentRow), "nobody knows where it is safe to touch");
    let no_header = a_sheet().replace("商品主图", "").replace("iv_goods_img", "x").replace("tv_select_sku", "y").replace("已选", "其他");
    assert_eq!(read_sheet(&tree(&no_header), &rules), Err(SheetFault::NoHeader), "the price would be a guess");
}

fn shared() -> Option<PathBuf> {
    let given = std::env::var_os("CMAUTOBUY_SHARED").map(PathBuf::from);
    let dir = given.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared")).join("dumps/pdd");
    dir.is_dir().then_some(dir)
}

#[test]
fn shared_dumps_read_as_their_dossier_says() {
    let Some(dir) = shared() else { return };
    let rules = RulePack::builtin();
    let load = |name: &str| std::fs::read(dir.join(name)).ok().and_then(|raw| UiTree::parse(&raw).ok());
    // Name, choices, chips, sold out, chosen, price in fen.
    let rows = [
        ("sku_panel_image_chips_cart1.xml", "色号", 5, 0, 1, 6_900),
        ("sku_panel_soldout_chips_cart3.xml", "颜色", 3, 3, 0, 8_800),
        ("sku_panel_text_chip_cart.xml", "款式", 1, 0, 1, 26_900),
    ];
    for (file, name, chips, sold, chosen, cent) in rows {
        let Some(tree) = load(file) else { continue };
        assert_eq!(recognise(&tree, &pdd_front(), &rules), Screen::SkuSheet, "{file}");
        let sheet = read_sheet(&tree, &rules).unwrap_or_else(|why| panic!("a real sheet must read: {file}: {why}"));
        assert_eq!(sheet.header.single().map(|p| p.cent), Some(cent), "the header's price: {file}");
        assert_eq!(sheet.payment_top, 2118, "the payment row: {file}");
        assert_eq!(sheet.dimensions.len(), 1, "one choice: {file}");
        let got = &sheet.dimensions[0];
        let count = |test: &dyn Fn(&cmautobuy_pdd::sku_sheet::Chip) -> bool| got.chips.iter().filter(|chip| test(chip)).count();
        assert_eq!((got.name.as_str(), got.chips.len()), (name, chips), "every chip: {file}");
        assert_eq!(count(&|c| c.available == Some(false)), sold, "sold out by its text: {file}");
        assert_eq!(count(&|c| c.selected && sheet.confirms(name, c, &rules)), chosen, "chosen and confirmed: {file}");
        assert_eq!(count(&|c| c.tap.is_some()), chips, "every chip shows where to touch it: {file}");
    }
    let screens = [("popup_abandon_payment.xml", Screen::AbandonPopup), ("goods_detail_RECONSTRUCTED.xml", Screen::Goods)];
    for (file, want) in screens {
        let Some(tree) = load(file) else { continue };
        assert_eq!(recognise(&tree, &pdd_front(), &rules), want, "{file}");
    }
}
