//! Orders and what comes after them: the list whose whole cards are clickable and carry 去支付, the detail page that is a WebView, the
//! older page 确认订单, and the payment layer of another app. Money is counted by the model, never here.

use crate::catalogue::{Catalogue, Goods};
use crate::model::parts::{FADED, GREEN, GREY, INK, LINE, PAGE, PALE_RED, RED, WHITE, status_bar, tint, yuan};
use crate::model::sheet::{self, amount, chosen_text};
use crate::model::{Hit, Order, Sheet, WIDTH, walls};
use crate::scenario::OrderStatus;
use crate::view::{Align, BUTTON, FRAME, GROUP, IMAGE, PLAIN, RECYCLER, Scroll, View, WEB, WEB_IMAGE, ghost, rect, text, view};

const TABS: [(&str, u32); 5] = [("全部", 0), ("待付款", 1), ("待分享", 2), ("待收货", 3), ("评价", 4)];
const CARD: i32 = 480;
const TOP: i32 = 340;
const BOTTOM: i32 = 2354;

/// Which orders a tab shows; `type=N` of the link.
pub(crate) fn of_tab(orders: &[Order], tab: u32) -> Vec<usize> {
    let shown = |order: &Order| match tab {
        0 => true,
        1 => order.status == OrderStatus::Unpaid,
        2 => order.status == OrderStatus::ToShare,
        3 => order.status == OrderStatus::ToReceive,
        _ => order.status == OrderStatus::Done,
    };
    // The newest first.
    (0..orders.len()).rev().filter(|at| shown(&orders[*at])).collect()
}

pub(crate) fn max_scroll(orders: &[Order], tab: u32) -> i32 {
    (of_tab(orders, tab).len() as i32 * CARD - (BOTTOM - TOP)).max(0)
}

pub(crate) fn list(orders: &[Order], catalogue: &Catalogue, tab: u32, scroll: i32) -> View {
    let mut body = Vec::new();
    for (at, (name, own)) in TABS.iter().enumerate() {
        let left = 10 + at as i32 * 212;
        let ink = if *own == tab { RED } else { INK };
        let spot = rect(left, 240, left + 212, 320);
        body.push(view(GROUP, spot).click(Hit::Tab(*own)).child(text(spot, *name, 42.0, ink).select(*own == tab).center()));
    }
    let shown = of_tab(orders, tab);
    if shown.is_empty() {
        body.push(text(rect(0, 1000, WIDTH, 1070), "您还没有相关订单", 46.0, GREY).center());
    }
    let port = rect(0, TOP, WIDTH, BOTTOM);
    let cards = shown.iter().enumerate().filter_map(|(row, at)| {
        let top = TOP + 10 + row as i32 * CARD - scroll;
        card(&orders[*at], *at, &catalogue.goods[orders[*at].goods], top).clipped(port)
    });
    let mut list = view(RECYCLER, port).pdd().fill(PAGE).scrolls(Scroll::Page).all(cards);
    list.scrollable = true;
    body.push(list);
    let mut made = walls::titled("我的订单", body);
    made.paint.fill = Some(PAGE);
    made
}

fn card(order: &Order, at: usize, goods: &Goods, top: i32) -> View {
    let (state, button, hit) = match order.status {
        OrderStatus::Unpaid => ("待付款", "去支付", Hit::PayOrder(at)),
        OrderStatus::ToShare => ("待分享", "邀请好友", Hit::Nothing),
        OrderStatus::ToReceive => ("待收货", "查看物流", Hit::Nothing),
        OrderStatus::Done => ("交易成功", "再次购买", Hit::Nothing),
    };
    let paid = if order.status == OrderStatus::Unpaid { "应付" } else { "实付" };
    let says = format!("{paid}:,{}元,", yuan(order.amount_cent));
    // The card is one clickable thing with the button in it: a touch beside the title may still be the card's own.
    view(GROUP, rect(20, top, WIDTH - 20, top + CARD - 20))
        .pdd()
        .click(Hit::Order(at))
        .fill(WHITE)
        .round(18)
        .child(text(rect(50, top + 24, 700, top + 80), &goods.shop, 40.0, INK).desc(format!("店铺名称：{}", goods.shop)))
        .child(text(rect(820, top + 24, 1030, top + 80), state, 40.0, RED).align(Align::Right))
        .child(view(IMAGE, rect(50, top + 100, 250, top + 300)).desc("商品图片").art(goods.art, tint(&order.spec)).round(12))
        .child(text(rect(280, top + 104, 1030, top + 160), &goods.title, 38.0, INK).desc(format!("商品名称：{}", goods.title)))
        .child(text(rect(280, top + 176, 900, top + 226), &order.spec, 34.0, GREY))
        .child(text(rect(920, top + 176, 1030, top + 226), format!("x{}", order.quantity), 34.0, GREY).align(Align::Right))
        .child(text(rect(280, top + 240, 1030, top + 296), says, 38.0, INK).align(Align::Right))
        .child(text(rect(50, top + 370, 640, top + 420), format!("订单编号：{}", order.sn), 30.0, FADED))
        .child(
            view(GROUP, rect(800, top + 350, 1030, top + 430))
                .click(hit)
                .border(RED, 3)
                .round(40)
                .child(text(rect(800, top + 350, 1030, top + 430), button, 38.0, RED).center()),
        )
}

/// A native title over a WebView; what can be touched in it answers to a finger and not to an accessibility click.
pub(crate) fn detail(order: &Order, goods: &Goods, unfolded: bool) -> View {
    let state = match order.status {
        OrderStatus::Unpaid => "等待买家付款",
        OrderStatus::ToShare => "待分享",
        OrderStatus::ToReceive => "等待收货",
        OrderStatus::Done => "交易成功",
    };
    let mut main = view(PLAIN, rect(0, 225, WIDTH, 2354)).id("main").fill(PAGE);
    let line = |y: i32, says: String| view(PLAIN, rect(60, y, WIDTH - 60, y + 64)).says(says, 38.0, INK);
    main = main
        .child(line(280, "收货人：周** 1**********8，展开".into()))
        .child(view(WEB_IMAGE, rect(60, 420, 260, 620)).says("webp", 1.0, PAGE).art(goods.art, tint(&order.spec)))
        .child(view(PLAIN, rect(290, 420, WIDTH - 60, 540)).says(&goods.title, 38.0, INK).lines(2))
        .child(line(660, order.spec.clone()))
        .child(line(740, format!("x{}", order.quantity)))
        .child(line(820, format!("{}：{}元", if order.status == OrderStatus::Unpaid { "应付" } else { "实付" }, yuan(order.amount_cent))));
    let fold = rect(60, 940, WIDTH - 60, 1020);
    if unfolded {
        main = main
            .child(line(940, format!("订单编号：{}", order.sn)))
            .child(view(BUTTON, rect(900, 940, 1020, 1004)).click(Hit::Nothing).deaf().says("复制", 36.0, GREY))
            .child(line(1020, format!("下单时间：{}", order.placed)));
        if order.status != OrderStatus::Unpaid {
            main = main.child(line(1100, "物流公司：顺路快递".into())).child(line(1180, "快递单号：SL0000000000".into()));
        }
    } else {
        main = main.child(view(BUTTON, fold).click(Hit::MoreInfo).deaf().says("查看更多订单信息", 40.0, GREY).center());
    }
    if order.status == OrderStatus::Unpaid {
        let spot = rect(700, 2220, 1040, 2330);
        main = main.child(view(BUTTON, spot).click(Hit::PayOpened).deaf().fill(RED).round(54).says("去支付", 44.0, WHITE).center());
    }
    let mut web = view(WEB, rect(0, 225, WIDTH, 2354)).child(main);
    web.text = "拼多多".into();
    web.scrollable = true;
    let held = view(FRAME, rect(0, 225, WIDTH, 2354)).pdd().child(view(FRAME, rect(0, 225, WIDTH, 2354)).child(web));
    walls::titled(state, [held])
}

/// A WebView page somebody's button led to. Nothing on it is modelled.
pub(crate) fn promo() -> View {
    let mut web = view(WEB, rect(0, 225, WIDTH, 2354)).child(
        view(PLAIN, rect(0, 225, WIDTH, 2354))
            .id("main")
            .fill(PALE_RED)
            .child(view(PLAIN, rect(60, 500, WIDTH - 60, 600)).says("活动页面", 60.0, RED).center())
            .child(
                view(BUTTON, rect(240, 800, 840, 930)).click(Hit::Nothing).deaf().fill(RED).round(60).says("去抢购", 48.0, WHITE).center(),
            ),
    );
    web.text = "拼多多".into();
    walls::titled("限时活动", [view(FRAME, rect(0, 225, WIDTH, 2354)).pdd().child(web)])
}

/// The separate confirm page of older builds.
pub(crate) fn confirm(goods: &Goods, one: &Sheet) -> View {
    let price = amount(goods, one);
    let says = price.map_or_else(|| "提交订单".to_owned(), |cent| format!("提交订单 ¥{}", yuan(cent)));
    let row = |y: i32, left: &str, right: String| {
        view(GROUP, rect(0, y, WIDTH, y + 120))
            .pdd()
            .fill(WHITE)
            .child(text(rect(40, y + 30, 620, y + 90), left, 40.0, INK))
            .child(text(rect(640, y + 30, 1040, y + 90), right, 38.0, GREY).align(Align::Right))
    };
    let body = [
        row(250, "手动添加收货地址", ">".into()).click(Hit::Nothing),
        view(GROUP, rect(0, 390, WIDTH, 700))
            .pdd()
            .fill(WHITE)
            .child(view(IMAGE, rect(40, 430, 260, 650)).desc("商品图片").art(goods.art, tint(&goods.title)).round(12))
            .child(text(rect(290, 430, 1040, 540), &goods.title, 38.0, INK).lines(2))
            .child(text(rect(290, 560, 900, 620), chosen_text(goods, one).unwrap_or_default(), 34.0, GREY)),
        row(720, "购买数量", one.quantity.to_string()),
        row(860, "领券立减", "领取".into()).click(Hit::Nothing),
        sheet::payment_row(goods),
        view(FRAME, rect(334, 2213, WIDTH, 2354))
            .pdd()
            .click(Hit::SubmitConfirmed)
            .fill(RED)
            .child(text(rect(400, 2251, 1014, 2316), says, 46.0, WHITE).center().bold()),
    ];
    walls::titled("确认订单", body)
}

/// The payment layer of another app. Its button is counted; nothing leaves this program.
pub(crate) fn payment(amount_cent: u64) -> View {
    let body = [
        text(rect(0, 420, WIDTH, 490), "拼多多平台商户", 44.0, INK).center(),
        text(rect(0, 510, WIDTH, 640), format!("¥{}", yuan(amount_cent)), 108.0, INK).center().bold(),
        text(rect(80, 760, 400, 820), "支付方式", 42.0, GREY),
        text(rect(700, 760, 1000, 820), "零钱", 42.0, INK).align(Align::Right),
        view(BUTTON, rect(140, 1980, 940, 2110)).click(Hit::PayNow).fill(GREEN).round(16).says("立即支付", 50.0, WHITE).center(),
        text(rect(0, 2150, WIDTH, 2210), "模拟手机：这里不会发生任何支付", 36.0, FADED).center(),
    ];
    other_app(body)
}

/// What the payment layer shows once somebody touched its button.
pub(crate) fn paid() -> View {
    other_app([
        text(rect(0, 620, WIDTH, 700), "支付成功", 60.0, GREEN).center().bold(),
        view(BUTTON, rect(290, 1980, 790, 2110)).click(Hit::PaidDone).border(GREEN, 4).round(16).says("完成", 50.0, GREEN).center(),
        text(rect(0, 2150, WIDTH, 2210), "模拟手机：这里不会发生任何支付", 36.0, FADED).center(),
    ])
}

fn other_app(body: impl IntoIterator<Item = View>) -> View {
    let frame = view(FRAME, rect(0, 0, WIDTH, 2400)).id("android:id/content").all(body);
    view(FRAME, rect(0, 0, WIDTH, 2400))
        .fill(WHITE)
        .order(0)
        .child(frame)
        .child(status_bar(INK))
        .child(view(IMAGE, rect(30, 110, 130, 210)).desc("返回").click(Hit::Back).shows("×", 70.0, INK).center())
}

/// Another app that took the screen, such as a market for an update.
pub(crate) fn market() -> View {
    other_app([
        text(rect(0, 420, WIDTH, 490), "应用市场", 48.0, INK).center(),
        view(BUTTON, rect(290, 700, 790, 820)).click(Hit::Nothing).border(GREEN, 4).round(16).says("更新", 46.0, GREEN).center(),
    ])
}

/// The older sheet's foot: 确定 instead of a payment row and 提交订单.
pub(crate) fn sure() -> View {
    view(GROUP, rect(0, 2213, WIDTH, 2354)).pdd().order(11).child(ghost(rect(0, 2213, WIDTH, 2214)).fill(LINE)).child(
        view(FRAME, rect(40, 2225, WIDTH - 40, 2342))
            .click(Hit::Sure)
            .fill(RED)
            .round(20)
            .child(text(rect(400, 2251, 680, 2316), "确定", 48.0, WHITE).center().bold()),
    )
}
