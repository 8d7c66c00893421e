//! What surrounds Pinduoduo's goods: launcher, keyguard, notification icons, and the app's own feed.
//! It never decides where a card leads beyond naming its goods.

use crate::catalogue::{Art, Catalogue, Goods};
use crate::model::parts::{CHIP, GREY, INK, LINE, PAGE, RED, WHITE, gesture_pill, status_bar, tint, window, yuan};
use crate::model::{HEIGHT, Hit, WIDTH};
use crate::view::{FRAME, GROUP, IMAGE, LINEAR, RECYCLER, Rect, Scroll, TEXT, View, ghost, rect, text, view};

const FEED: Rect = rect(0, 330, WIDTH, 2210);

pub(crate) fn launcher(installed: bool) -> View {
    let mut root = view(FRAME, rect(0, 0, WIDTH, HEIGHT)).order(0).fill([92, 124, 150]);
    root = root.child(ghost(rect(0, 360, WIDTH, 520)).shows("09:41", 150.0, WHITE).center());
    root = root.child(ghost(rect(0, 540, WIDTH, 610)).shows("12月1日 星期二", 44.0, WHITE).center());
    let names: [(&str, [u8; 3], Hit); 4] = [
        ("电话", [76, 190, 110], Hit::Nothing),
        ("设置", [120, 126, 134], Hit::Nothing),
        ("相册", [232, 180, 84], Hit::Nothing),
        ("拼多多", RED, Hit::Launch),
    ];
    for (at, (name, color, hit)) in names.into_iter().enumerate() {
        if hit == Hit::Launch && !installed {
            continue;
        }
        let left = 60 + at as i32 * 245;
        let icon = rect(left + 30, 1760, left + 190, 1920);
        root = root.child(
            view(TEXT, rect(left, 1740, left + 220, 2000))
                .id("com.android.launcher3:id/icon")
                .desc(name)
                .click(hit)
                .child(ghost(icon).fill(color).round(40).shows(name.chars().take(1).collect::<String>(), 80.0, WHITE).center())
                .child(ghost(rect(left, 1936, left + 220, 1990)).shows(name, 36.0, WHITE).center()),
        );
        if let Some(last) = root.children.last_mut() {
            last.text = name.to_owned();
        }
    }
    root.child(status_bar(WHITE)).child(gesture_pill())
}

pub(crate) fn keyguard() -> View {
    view(FRAME, rect(0, 0, WIDTH, HEIGHT))
        .order(0)
        .fill([24, 30, 40])
        .child(view(TEXT, rect(0, 420, WIDTH, 620)).id("com.android.systemui:id/keyguard_clock").says("09:41", 170.0, WHITE).center())
        .child(text(rect(0, 650, WIDTH, 720), "12月1日 星期二", 46.0, WHITE).center())
        .child(
            view(TEXT, rect(0, 2120, WIDTH, 2200))
                .id("com.android.systemui:id/keyguard_indication_text")
                .says("上滑以输入密码", 44.0, WHITE)
                .center(),
        )
}

/// The systemui window whose icons carry notification texts, as a reader's false-positive trap.
pub(crate) fn notification_icons() -> View {
    let icons = [
        (260, "短信通知：【示例】您的验证码是274610，请勿泄露"),
        (320, "活动通知：全场0.01元起，马上抢"),
        (380, "系统通知：检测到异常，请完成安全验证"),
    ];
    icon_bar("com.android.systemui:id/notification_icon_area", &icons)
}

/// The same bar on a day without notifications.
pub(crate) fn status_icons() -> View {
    icon_bar("com.android.systemui:id/status_bar_contents", &[(860, "WLAN 信号强度满格"), (960, "电池电量为百分之86")])
}

/// Icons by their left edge and what they say.
fn icon_bar(id: &'static str, icons: &[(i32, &str)]) -> View {
    let icon = |&(left, says): &(i32, &str)| view(IMAGE, rect(left, 28, left + 50, 78)).id("com.android.systemui:id/icon").desc(says);
    let line = view(LINEAR, rect(0, 0, WIDTH, 95)).id(id);
    view(FRAME, rect(0, 0, WIDTH, 95)).order(0).child(icons.iter().map(icon).fold(line, View::child))
}

/// A notification pulled down over everything: reads like a captcha and like a price, and is neither.
pub(crate) fn notification_window() -> View {
    view(FRAME, rect(0, 0, WIDTH, 620)).order(0).fill(WHITE).child(
        view(FRAME, rect(20, 100, WIDTH - 20, 600))
            .id("com.android.systemui:id/expandableNotificationRow")
            .child(text(rect(60, 140, 1000, 200), "短信", 38.0, GREY))
            .child(text(rect(60, 220, 1000, 300), "【示例】请完成安全验证，验证码274610", 42.0, INK))
            .child(text(rect(60, 320, 1000, 400), "券后¥0.01，马上抢", 42.0, INK)),
    )
}

pub(crate) fn max_scroll(catalogue: &Catalogue) -> i32 {
    let rows = catalogue.goods.len().div_ceil(2) as i32;
    (rows * 700 + 20 - FEED.height()).max(0)
}

pub(crate) fn feed(catalogue: &Catalogue, scroll: i32) -> View {
    let cards = catalogue.goods.iter().enumerate().filter_map(|(at, one)| {
        let left = 20 + (at as i32 % 2) * 525;
        let top = FEED.t + 20 + (at as i32 / 2) * 700 - scroll;
        card(one, at, rect(left, top, left + 515, top + 680)).clipped(FEED)
    });
    let mut list = view(RECYCLER, FEED).pdd().scrolls(Scroll::Page).all(cards);
    list.scrollable = true;
    let mut inside = vec![
        ghost(rect(0, 0, WIDTH, HEIGHT)).fill(PAGE),
        list,
        ghost(rect(0, 0, WIDTH, 330)).fill(WHITE),
        view(GROUP, rect(35, 110, 1045, 210))
            .pdd()
            .click(Hit::Nothing)
            .fill(CHIP)
            .round(50)
            .child(text(rect(90, 110, 900, 210), "搜索商品", 42.0, GREY).pdd()),
    ];
    for (at, tab) in ["推荐", "百货", "水果", "家纺", "数码"].iter().enumerate() {
        let left = 20 + at as i32 * 208;
        let ink = if at == 0 { RED } else { INK };
        inside.push(text(rect(left, 236, left + 208, 310), *tab, 44.0, ink).center());
    }
    let bar = ghost(rect(0, 2210, WIDTH, HEIGHT)).fill(WHITE).child(ghost(rect(0, 2210, WIDTH, 2211)).fill(LINE));
    inside.push(bar);
    for (at, tab) in ["首页", "直播", "聊天", "个人中心"].iter().enumerate() {
        let left = at as i32 * 270;
        let ink = if at == 0 { RED } else { GREY };
        inside.push(
            view(FRAME, rect(left, 2210, left + 270, 2354))
                .pdd()
                .desc(*tab)
                .click(Hit::Nothing)
                .child(ghost(rect(left + 105, 2232, left + 165, 2286)).border(ink, 5).round(16))
                .child(text(rect(left, 2292, left + 270, 2346), *tab, 34.0, ink).center()),
        );
    }
    inside.push(status_bar(INK));
    inside.push(gesture_pill());
    window("", inside)
}

/// A feed card: the title is cut in the text and whole in the description, which ends in a newline;
/// sign, amount and count are separate texts.
pub(crate) fn card(goods: &Goods, index: usize, at: Rect) -> View {
    let cut = goods.title.chars().take(14).collect::<String>();
    let price = goods.price_range().map_or_else(|| "?".to_owned(), |(low, _)| yuan(low));
    let art: Art = goods.art;
    let foot = at.b - 80;
    view(GROUP, at)
        .pdd()
        .click(Hit::Card(index))
        .fill(WHITE)
        .round(18)
        .child(view(IMAGE, rect(at.l, at.t, at.r, at.b - 170)).pdd().art(art, tint(&goods.title)).round(18))
        .child(
            view(TEXT, rect(at.l + 20, at.b - 156, at.r - 20, at.b - 96))
                .id("com.xunmeng.pinduoduo:id/tv_title")
                .says(cut, 36.0, INK)
                .desc(format!("{}\n", goods.title)),
        )
        .child(text(rect(at.l + 20, foot, at.l + 46, at.b - 24), "¥", 32.0, RED))
        .child(text(rect(at.l + 46, foot, at.l + 190, at.b - 24), price, 48.0, RED).bold())
        .child(text(rect(at.l + 200, foot, at.r - 16, at.b - 24), goods.sales_text.replace("已拼", "已抢"), 30.0, GREY))
}
