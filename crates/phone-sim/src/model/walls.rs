//! Pages that stop a reader: abandon popup, captcha, limited account, real name, login, sold out, removed, network error; and the
//! gallery. No button here passes a wall, because only a person may.

use crate::catalogue::{Art, Catalogue};
use crate::model::parts::{FADED, GREEN, GREY, INK, PAGE, RED, WHITE, gesture_pill, status_bar, window, yuan};
use crate::model::{Hit, WIDTH};
use crate::view::{BUTTON, EDIT, FRAME, GROUP, IMAGE, PLAIN, RECYCLER, View, ghost, rect, text, view};

/// 确定放弃吗? over whatever lies below. Its upper button pays, its lower one leaves.
pub(crate) fn abandon(amount_cent: Option<u64>, below: Option<View>) -> View {
    let mut inside = Vec::new();
    if let Some(below) = below {
        inside.push(below.ghosted());
        let mut scrim = ghost(rect(0, 0, WIDTH, 2400));
        scrim.paint.scrim = true;
        inside.push(scrim);
    }
    let mut keep = view(GROUP, rect(168, 1307, 911, 1436))
        .click(Hit::KeepPaying)
        .fill(RED)
        .round(20)
        .child(text(rect(300, 1330, 560, 1410), "继续支付", 48.0, WHITE).align(crate::view::Align::Right).bold());
    if let Some(cent) = amount_cent {
        keep = keep.child(text(rect(560, 1330, 860, 1410), format!("，仅¥{}", yuan(cent)), 48.0, WHITE).bold());
    }
    inside.push(
        view(FRAME, rect(0, 0, WIDTH, 2400)).pdd().child(
            view(GROUP, rect(0, 0, WIDTH, 2400)).pdd().child(
                view(GROUP, rect(80, 723, 999, 1631))
                    .fill(WHITE)
                    .round(32)
                    .child(text(rect(171, 880, 909, 946), "大家都在买这一件，", 46.0, INK).center())
                    .child(text(rect(171, 960, 909, 1026), "优惠马上结束", 46.0, RED).center())
                    .child(text(rect(171, 1050, 909, 1130), "确定放弃吗?", 56.0, INK).center().bold())
                    .child(keep)
                    .child(
                        view(GROUP, rect(171, 1477, 909, 1543))
                            .click(Hit::LeaveSheet)
                            .child(text(rect(171, 1477, 909, 1543), "先去逛逛", 42.0, GREY).center()),
                    )
                    .child(view(IMAGE, rect(916, 723, 999, 807)).click(Hit::ClosePopup).shows("×", 54.0, FADED).center()),
            ),
        ),
    );
    inside.push(gesture_pill());
    window("", inside)
}

pub(crate) fn captcha() -> View {
    titled(
        "安全验证",
        [
            text(rect(0, 560, WIDTH, 640), "请完成安全验证", 56.0, INK).center().bold(),
            view(IMAGE, rect(140, 720, 940, 1220)).art(Art::Box, [150, 170, 190]).round(18),
            ghost(rect(300, 900, 420, 1020)).fill(WHITE).round(12),
            view(GROUP, rect(140, 1280, 940, 1400))
                .fill(PAGE)
                .round(60)
                .child(text(rect(140, 1280, 940, 1400), "向右滑动滑块以完成验证", 40.0, GREY).center()),
            view(PLAIN, rect(140, 1280, 270, 1400)).click(Hit::Nothing).fill(RED).round(60),
        ],
    )
}

pub(crate) fn login() -> View {
    let mut number = view(EDIT, rect(120, 820, 960, 940)).click(Hit::Nothing).fill(PAGE).round(16).shows("请输入手机号", 42.0, FADED);
    number.hint = "请输入手机号".into();
    titled(
        "登录拼多多",
        [
            text(rect(0, 500, WIDTH, 590), "登录拼多多", 64.0, RED).center().bold(),
            text(rect(0, 610, WIDTH, 670), "登录后查看商品和订单", 40.0, GREY).center(),
            number,
            view(BUTTON, rect(120, 1000, 960, 1130)).click(Hit::Nothing).fill(RED).round(18).says("手机号登录", 48.0, WHITE).center(),
            text(rect(0, 1180, WIDTH, 1240), "微信登录", 42.0, GREEN).center(),
        ],
    )
}

pub(crate) fn sold_out(catalogue: &Catalogue, goods: usize) -> View {
    let mut body = vec![
        view(IMAGE, rect(60, 260, 360, 560)).art(catalogue.goods[goods].art, [190, 190, 192]).round(16),
        text(rect(400, 330, 1040, 400), "商品已售罄，推荐以下相似商品", 42.0, INK).bold(),
        text(rect(400, 420, 1040, 480), "可以看看同款好物", 38.0, GREY),
    ];
    let similar = catalogue.goods.iter().enumerate().filter(|(at, one)| *at != goods && !one.sold_out && !one.removed);
    let cards = similar.take(4).enumerate().map(|(at, (index, one))| {
        let left = 35 + (at as i32 % 2) * 515;
        let top = 640 + (at as i32 / 2) * 700;
        super::home::card(one, index, rect(left, top, left + 495, top + 670))
    });
    let mut list = view(RECYCLER, rect(0, 620, WIDTH, 2354)).pdd().fill(PAGE).all(cards);
    list.scrollable = true;
    body.push(list);
    titled("相似商品", body)
}

pub(crate) fn removed() -> View {
    titled(
        "商品详情",
        [
            ghost(rect(420, 700, 660, 940)).border(FADED, 8).round(120).shows("!", 120.0, FADED).center(),
            text(rect(0, 1000, WIDTH, 1080), "商品已下架", 54.0, INK).center().bold(),
            text(rect(0, 1100, WIDTH, 1160), "去看看其他商品吧", 40.0, GREY).center(),
        ],
    )
}

pub(crate) fn network_error() -> View {
    titled(
        "商品详情",
        [
            ghost(rect(420, 700, 660, 940)).border(FADED, 8).round(120).shows("?", 120.0, FADED).center(),
            text(rect(0, 1000, WIDTH, 1080), "网络异常，请稍后再试", 50.0, INK).center(),
            view(BUTTON, rect(390, 1140, 690, 1250)).click(Hit::Retry).border(RED, 3).round(16).says("点击重试", 44.0, RED).center(),
        ],
    )
}

pub(crate) fn gallery() -> View {
    window(
        "",
        [
            ghost(rect(0, 0, WIDTH, 2400)).fill([10, 10, 10]),
            view(IMAGE, rect(0, 660, WIDTH, 1740)).pdd().art(Art::Box, [120, 130, 140]),
            text(rect(0, 110, WIDTH, 190), "1/8", 44.0, WHITE).center(),
            view(IMAGE, rect(20, 100, 140, 200)).pdd().desc("返回").click(Hit::Back).shows("<", 60.0, WHITE).center(),
            status_bar(WHITE),
        ],
    )
}

/// The account is limited; only a person can clear it.
pub(crate) fn risk() -> View {
    titled(
        "账号提示",
        [
            ghost(rect(420, 560, 660, 800)).border(RED, 8).round(120).shows("!", 120.0, RED).center(),
            text(rect(60, 880, WIDTH - 60, 1010), "检测到账户存在风险，为了账号安全，已限制部分操作", 44.0, INK).center().lines(2),
            view(BUTTON, rect(240, 1180, 840, 1300)).click(Hit::Nothing).fill(RED).round(18).says("去申诉", 46.0, WHITE).center(),
        ],
    )
}

pub(crate) fn real_name() -> View {
    let field = |top: i32, hint: &str| {
        let mut made = view(EDIT, rect(120, top, 960, top + 120)).click(Hit::Nothing).fill(PAGE).round(16).shows(hint, 40.0, FADED);
        made.hint = hint.into();
        made
    };
    titled(
        "实名认证",
        [
            text(rect(60, 420, WIDTH - 60, 500), "实名认证提示", 56.0, INK).center().bold(),
            text(rect(60, 520, WIDTH - 60, 590), "继续使用前，请确认本人身份", 40.0, GREY).center(),
            field(720, "请输入真实姓名"),
            field(880, "请输入证件号码"),
            view(BUTTON, rect(120, 1080, 960, 1210)).click(Hit::Nothing).fill(RED).round(18).says("提交实名信息", 48.0, WHITE).center(),
        ],
    )
}

pub(crate) fn titled(title: &str, body: impl IntoIterator<Item = View>) -> View {
    let mut inside = vec![
        view(FRAME, rect(0, 95, WIDTH, 225))
            .pdd()
            .child(view(IMAGE, rect(14, 95, 147, 225)).pdd().desc("返回").click(Hit::Back).shows("<", 54.0, INK).center())
            .child(text(rect(200, 120, 880, 200), title, 50.0, INK).pdd().center().bold()),
    ];
    inside.extend(body);
    inside.push(status_bar(INK));
    inside.push(gesture_pill());
    window("", inside)
}
