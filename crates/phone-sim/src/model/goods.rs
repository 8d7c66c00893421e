//! The goods page: gallery, glued price line, title without text, the 选择规格 row, reviews and shop
//! below the fold, and buy buttons whose description is price and label in one.

use crate::catalogue::{Goods, Offer};
use crate::model::parts::{GREY, INK, LINE, PAGE, PALE_RED, RED, WHITE, gesture_pill, status_bar, tint, window, yuan};
use crate::model::{Glance, GoodsPage, Hit, WIDTH};
use crate::view::{FRAME, GROUP, IMAGE, RECYCLER, Rect, Scroll, TEXT, View, ghost, rect, text, text_width, view};

const FOLD: i32 = 2198;

pub(crate) fn page(goods: &Goods, state: &GoodsPage, glance: Glance) -> View {
    let viewport = rect(0, 0, WIDTH, FOLD);
    let (content, _) = content(goods, state, glance);
    let shown = content.into_iter().filter_map(|one| one.moved(0, -state.scroll).clipped(viewport));
    let mut list = view(RECYCLER, viewport).pdd().fill(PAGE).scrolls(Scroll::Page).all(shown);
    list.scrollable = true;
    let mut inside = vec![list, status_bar(INK), top_button(rect(14, 95, 147, 228), "返回", "<", Hit::Back)];
    inside.push(top_button(rect(951, 95, 1066, 228), "分享", "...", Hit::Nothing));
    inside.extend(bottom_bar(goods, state, glance));
    if state.video {
        inside.push(video(goods));
    }
    inside.push(gesture_pill());
    window("分享", inside)
}

pub(crate) fn max_scroll(goods: &Goods) -> i32 {
    let blank = GoodsPage { goods: 0, scroll: 0, favourite: false, video: false, chosen: vec![None; goods.dimensions.len()] };
    (content(goods, &blank, Glance::default()).1 - FOLD).max(0)
}

fn top_button(at: Rect, desc: &str, sign: &str, hit: Hit) -> View {
    let round = rect(at.l + 16, at.t + 20, at.r - 16, at.b - 20);
    view(FRAME, at).pdd().desc(desc).click(hit).child(ghost(round).fill([255, 255, 255]).round(46).shows(sign, 50.0, INK).center())
}

/// Views in content coordinates, and the content's height.
fn content(goods: &Goods, state: &GoodsPage, glance: Glance) -> (Vec<View>, i32) {
    let mut out = Vec::new();
    let mut y = 0;
    out.push(
        view(GROUP, rect(0, 0, WIDTH, 1080))
            .pdd()
            .child(view(IMAGE, rect(0, 0, WIDTH, 1080)).pdd().art(goods.art, tint(&goods.title)).click(Hit::Picture))
            .child(
                view(GROUP, rect(930, 990, 1040, 1044))
                    .child(text(rect(930, 990, 1040, 1044), "1/8", 34.0, WHITE).center().fill([120, 120, 120]).round(27)),
            ),
    );
    y += 1080;
    out.push(price_line(goods, y, glance));
    y += 150;
    let long = text_width(&goods.title, 46.0);
    let lines = (long / 1000 + 1).clamp(1, 3);
    let tall = 60 + lines * 62;
    out.push(
        view(GROUP, rect(0, y, WIDTH, y + tall))
            .id("com.xunmeng.pinduoduo:id/tv_title")
            .desc(&goods.title)
            .fill(WHITE)
            .child(ghost(rect(35, y + 26, WIDTH - 35, y + tall - 20)).shows(&goods.title, 46.0, INK).bold().lines(lines as u32)),
    );
    y += tall;
    out.push(view(GROUP, rect(0, y, WIDTH, y + 90)).pdd().fill(WHITE).child(text(
        rect(35, y + 18, 820, y + 72),
        "退货包运费 · 7天无理由退货 · 全场包邮",
        36.0,
        [150, 108, 60],
    )));
    y += 90 + 20;
    if !goods.dimensions.is_empty() {
        out.push(select_row(goods, state, y));
        y += 140 + 20;
    }
    out.push(group_buyers(goods, y));
    y += 330 + 20;
    let (reviews, tall) = reviews(goods, y);
    out.push(reviews);
    y += tall + 20;
    out.push(shop(goods, y));
    y += 300 + 20;
    out.push(
        view(GROUP, rect(0, y, WIDTH, y + 110)).pdd().fill(WHITE).child(text(rect(35, y + 30, 400, y + 86), "商品详情", 44.0, INK).bold()),
    );
    y += 110;
    for at in 0..2 {
        let color = tint(goods.dimensions.first().and_then(|one| one.values.get(at)).map_or("灰", |value| &value.text));
        out.push(view(IMAGE, rect(0, y, WIDTH, y + 900)).pdd().art(goods.art, color));
        y += 900;
    }
    (out, y + 40)
}

/// The price as this goods words it, and what stands small beside it.
pub(crate) fn worded(goods: &Goods) -> (String, Option<String>) {
    let Some((low, high)) = goods.price_range() else {
        return ("暂无报价".to_owned(), None);
    };
    let from = if low == high { "" } else { "起" };
    match goods.offer {
        Offer::Plain => (format!("¥{}{from}", yuan(low)), None),
        Offer::Range if low != high => (format!("¥{}-{}", yuan(low), yuan(high)), None),
        Offer::Range => (format!("¥{}", yuan(low)), None),
        Offer::Coupon => (format!("券后¥{}{from}", yuan(low)), Some("优惠5元".to_owned())),
        Offer::Subsidised => (format!("补贴价¥{}{from}", yuan(low)), Some(format!("官方补贴{}元", yuan(goods.single_price_cent - low)))),
        Offer::Limited => (format!("秒杀价¥{}{from}", yuan(low)), Some(format!("即将恢复{}元", yuan(goods.single_price_cent)))),
    }
}

fn price_line(goods: &Goods, y: i32, glance: Glance) -> View {
    let at = rect(0, y, WIDTH, y + 150);
    let (price, beside) = if glance.unbound { (String::new(), None) } else { worded(goods) };
    let mut line = view(GROUP, at).pdd().fill(RED).child(ghost(rect(35, y + 20, 620, y + 130)).shows(&price, 76.0, WHITE).bold());
    match &goods.glued {
        Some(glued) => {
            let glued = if glance.unbound { "" } else { glued.as_str() };
            line = line.desc(glued).child(
                ghost(rect(620, y + 40, WIDTH - 35, y + 110)).shows(&goods.sales_text, 38.0, WHITE).align(crate::view::Align::Right),
            );
        }
        None => {
            line = line
                .desc(price)
                .child(text(rect(620, y + 20, WIDTH - 35, y + 80), &goods.sales_text, 38.0, WHITE).pdd().align(crate::view::Align::Right));
        }
    }
    if let Some(beside) = beside {
        line = line.child(text(rect(35, y + 104, 420, y + 146), beside, 32.0, WHITE).pdd());
    }
    if goods.offer == Offer::Limited {
        // Counts down with every look.
        let left = 3600 - glance.tick % 3600;
        let says = format!("距结束 00:{:02}:{:02}", left / 60 % 60, left % 60);
        line = line.child(text(rect(620, y + 88, WIDTH - 35, y + 140), says, 32.0, WHITE).align(crate::view::Align::Right));
    }
    line
}

/// A small window with a running video. Its X is the only thing on it that does anything.
fn video(goods: &Goods) -> View {
    let at = rect(680, 260, 1050, 780);
    view(FRAME, at)
        .pdd()
        .fill([30, 30, 34])
        .round(18)
        .child(view(FRAME, at).desc("tronplayer_view").art(goods.art, tint(&goods.title)).round(18))
        .child(view(IMAGE, rect(690, 690, 760, 760)).desc("静音").click(Hit::Nothing))
        .child(
            view(IMAGE, rect(970, 270, 1040, 340))
                .id("com.xunmeng.pinduoduo:id/iv_float_window_close")
                .desc("关闭")
                .click(Hit::CloseVideo)
                .shows("×", 46.0, WHITE)
                .center(),
        )
}

fn select_row(goods: &Goods, state: &GoodsPage, y: i32) -> View {
    let names = goods.dimensions.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(" ");
    let picked = goods
        .dimensions
        .iter()
        .zip(&state.chosen)
        .filter_map(|(one, chosen)| Some(one.values.get((*chosen)?)?.text.as_str()))
        .collect::<Vec<_>>();
    let (lead, rest) = if picked.is_empty() {
        // Builds differ in the word; the goods id decides so that both occur.
        let odd = goods.goods_id.bytes().last().is_some_and(|byte| byte % 2 == 1);
        (if odd { "选择规格" } else { "请选择" }, names)
    } else {
        ("已选", picked.join("，"))
    };
    let at = rect(0, y, WIDTH, y + 140);
    view(GROUP, at)
        .pdd()
        .click(Hit::OpenSheet)
        .fill(WHITE)
        .child(text(rect(35, y + 44, 235, y + 100), lead, 42.0, GREY).pdd())
        .child(text(rect(245, y + 44, 960, y + 100), rest, 42.0, INK).pdd())
        .child(view(IMAGE, rect(1000, y + 52, 1040, y + 92)).pdd().shows(">", 40.0, GREY).center())
}

fn group_buyers(goods: &Goods, y: i32) -> View {
    let many = 20 + goods.title.len() % 300;
    let mut all = view(GROUP, rect(0, y, WIDTH, y + 330))
        .pdd()
        .fill(WHITE)
        .child(text(rect(35, y + 26, 800, y + 82), format!("{many}人正在拼单，可直接参与"), 40.0, INK).bold());
    for (at, name) in ["橙***子", "山***月"].iter().enumerate() {
        let top = y + 100 + at as i32 * 112;
        all = all.child(
            view(GROUP, rect(0, top, WIDTH, top + 106))
                .child(view(IMAGE, rect(35, top + 14, 113, top + 92)).fill(tint(name)).round(39))
                .child(text(rect(136, top + 28, 420, top + 80), *name, 38.0, INK))
                .child(text(rect(440, top + 30, 790, top + 80), "还差1人拼成", 34.0, GREY))
                .child(
                    view(GROUP, rect(820, top + 16, 1045, top + 90))
                        .click(Hit::OpenSheet)
                        .fill(RED)
                        .round(12)
                        .child(text(rect(820, top + 16, 1045, top + 90), "去拼单", 38.0, WHITE).center()),
                ),
        );
    }
    all
}

fn reviews(goods: &Goods, y: i32) -> (View, i32) {
    let said = [("小**禾", "质量比想象中好，物流也快，会回购😊"), ("L**9", "和图片一样，没有色差\n家里人都说不错")];
    let mut all = view(GROUP, rect(0, y, WIDTH, y + 480)).pdd().fill(WHITE).child(
        view(GROUP, rect(0, y, WIDTH, y + 110))
            .pdd()
            .desc(&goods.reviews_text)
            .click(Hit::Nothing)
            .child(ghost(rect(35, y + 30, 700, y + 86)).shows(&goods.reviews_text, 44.0, INK).bold())
            .child(text(rect(830, y + 34, 1010, y + 82), "查看全部", 36.0, GREY)),
    );
    for (at, (who, what)) in said.iter().enumerate() {
        let top = y + 120 + at as i32 * 175;
        all = all.child(
            view(GROUP, rect(35, top, WIDTH - 35, top + 165))
                .child(view(IMAGE, rect(35, top, 99, top + 64)).fill(tint(who)).round(32))
                .child(text(rect(120, top + 8, 500, top + 58), *who, 34.0, GREY))
                .child(text(rect(35, top + 78, WIDTH - 35, top + 160), *what, 38.0, INK).lines(2)),
        );
    }
    (all, 480)
}

fn shop(goods: &Goods, y: i32) -> View {
    view(GROUP, rect(0, y, WIDTH, y + 300))
        .pdd()
        .fill(WHITE)
        .child(
            view(IMAGE, rect(35, y + 40, 165, y + 170))
                .pdd()
                .desc("店铺图标")
                .fill(tint(&goods.shop))
                .round(20)
                .shows(goods.shop.chars().take(1).collect::<String>(), 64.0, WHITE)
                .center(),
        )
        .child(text(rect(195, y + 44, 780, y + 104), &goods.shop, 44.0, INK).pdd().bold())
        .child(text(rect(195, y + 112, 780, y + 164), "本店已拼12.3万+件", 34.0, GREY))
        .child(
            view(TEXT, rect(850, y + 66, 1045, y + 142))
                .id("com.xunmeng.pinduoduo:id/tv_enter_mall")
                .says("进店", 38.0, RED)
                .center()
                .border(RED, 3)
                .round(38),
        )
        .child(text(rect(35, y + 204, 500, y + 260), "店铺评价(2.1万)", 36.0, INK))
        .child(text(rect(560, y + 204, 1045, y + 260), "3年老店 · 回头客多", 34.0, GREY))
}

fn bottom_bar(goods: &Goods, state: &GoodsPage, glance: Glance) -> Vec<View> {
    let top = FOLD;
    let small = |left: i32, right: i32, desc: &str, hit: Hit| {
        view(FRAME, rect(left, top, right, 2354))
            .pdd()
            .desc(desc)
            .click(hit)
            .child(ghost(rect(left + 42, top + 24, right - 42, top + 70)).border(GREY, 4).round(12))
            .child(ghost(rect(left, top + 86, right, top + 134)).shows(desc, 32.0, INK).center())
    };
    let buy = |left: i32, right: i32, price: u64, label: &str, fill, ink| {
        let amount = if glance.unbound { String::new() } else { format!("¥{}", yuan(price)) };
        view(GROUP, rect(left, top, right, 2354))
            .desc(format!("{amount}{label}"))
            .click(Hit::OpenSheet)
            .fill(fill)
            .child(text(rect(left, top + 20, right, top + 82), amount, 50.0, ink).center().bold())
            .child(text(rect(left, top + 86, right, top + 138), label, 38.0, ink).center())
    };
    let group = goods.price_range().map_or(goods.single_price_cent, |(low, _)| low);
    let bar = ghost(rect(0, top, WIDTH, 2400)).fill(WHITE).child(ghost(rect(0, top, WIDTH, top + 1)).fill(LINE));
    vec![
        bar,
        small(0, 130, "店铺", Hit::Nothing),
        small(130, 260, if state.favourite { "已收藏" } else { "收藏" }, Hit::Favourite),
        small(260, 388, "客服", Hit::Nothing),
        buy(388, 734, goods.single_price_cent, "单独购买", PALE_RED, RED),
        buy(734, WIDTH, group, "发起拼单", RED, WHITE),
    ]
}
