//! The SKU sheet, which on Pinduoduo is the checkout: header with stock and price in one text,
//! chips, quantity, payment row and 提交订单. Chips and the outer list are laid out in content
//! coordinates and cut to their viewports, so off-screen chips are not in the tree.

use crate::catalogue::{ChipLayout, ChipStyle, Dimension, DimensionKind, Goods, Offer};
use crate::model::parts::{CHIP, FADED, GREY, INK, LINE, PALE_RED, RED, WHITE, gesture_pill, status_bar, tint, window, yuan};
use crate::model::{Glance, Hit, Sheet, WIDTH, orders};
use crate::view::{
    Align, EDIT, FRAME, GROUP, IMAGE, LINEAR, PLAIN, RECYCLER, RELATIVE, Rect, SWITCHER, Scroll, TEXT, View, ghost, rect, text, text_width,
    view,
};

const PANEL: Rect = rect(0, 872, WIDTH, 2118);
const SIDE: i32 = 35;
const GAP: i32 = 29;

pub(crate) fn page(goods: &Goods, sheet: &Sheet, below: Option<View>, glance: Glance) -> View {
    let mut inside = Vec::new();
    if let Some(below) = below {
        inside.push(below.ghosted());
        let mut scrim = ghost(rect(0, 0, WIDTH, 2400));
        scrim.paint.scrim = true;
        inside.push(scrim);
    }
    inside.push(ghost(rect(0, 225, WIDTH, 2440)).fill(WHITE).round(32));
    let foot = if sheet.older {
        vec![orders::sure()]
    } else {
        let add = view(GROUP, rect(0, 2213, 334, 2354))
            .pdd()
            .order(10)
            .click(Hit::Nothing)
            .child(text(rect(0, 2213, 334, 2354), "添加", 44.0, INK).pdd().center().fill(WHITE));
        vec![payment_row(goods).order(7), add, submit(goods, sheet).order(11)]
    };
    let rest = view(GROUP, rect(0, 332, WIDTH, 2354))
        .pdd()
        .click(Hit::Nothing)
        .order(3)
        .child(
            view(LINEAR, rect(0, 332, WIDTH, 2118)).pdd().order(4).child(
                view(GROUP, rect(0, 332, WIDTH, 2118))
                    .child(
                        view(LINEAR, rect(0, 332, WIDTH, 872))
                            .pdd()
                            .child(address())
                            .child(view(PLAIN, rect(0, 486, WIDTH, 487)).pdd().fill(LINE))
                            .child(header(goods, sheet, glance))
                            .child(view(PLAIN, rect(35, 871, WIDTH, 872)).pdd().fill(LINE)),
                    )
                    .child(panel(goods, sheet)),
            ),
        )
        .all(foot);
    inside.push(
        view(LINEAR, rect(0, 95, WIDTH, 2354))
            .pdd()
            .click(Hit::Nothing)
            .child(
                view(GROUP, rect(0, 95, WIDTH, 225))
                    .child(view(FRAME, rect(0, 95, WIDTH, 225)).pdd().child(view(IMAGE, rect(0, 119, WIDTH, 200)))),
            )
            .child(ticker())
            .child(rest),
    );
    inside.push(status_bar(WHITE));
    inside.push(gesture_pill());
    window("", inside)
}

fn ticker() -> View {
    let mut edge = view(PLAIN, rect(0, 225, WIDTH, 248)).pdd().click(Hit::Nothing);
    edge.order = Some(2);
    view(FRAME, rect(0, 225, WIDTH, 332))
        .pdd()
        .child(
            view(SWITCHER, rect(0, 225, WIDTH, 332)).pdd().click(Hit::Nothing).child(
                view(GROUP, rect(0, 225, WIDTH, 332))
                    .child(text(rect(280, 245, 800, 311), "#比九成同类更快送达", 38.0, [176, 120, 48]).pdd().center()),
            ),
        )
        .child(edge)
        .child(view(IMAGE, rect(979, 242, 1051, 314)).pdd().desc("关闭").click(Hit::CloseSheet).shows("×", 64.0, GREY).center())
        .child(view(PLAIN, rect(0, 331, WIDTH, 332)).pdd().fill(LINE))
}

fn address() -> View {
    view(LINEAR, rect(0, 332, WIDTH, 486)).pdd().child(
        view(LINEAR, rect(0, 332, WIDTH, 470)).pdd().child(
            view(GROUP, rect(0, 332, WIDTH, 470))
                .click(Hit::Nothing)
                .child(view(IMAGE, rect(35, 372, 93, 430)).fill(PALE_RED).round(29).shows("+", 46.0, RED).center())
                .child(view(FRAME, rect(127, 375, 1026, 428)).child(text(rect(127, 375, 400, 428), "手动添加地址", 40.0, INK)))
                .child(view(IMAGE, rect(1016, 383, 1046, 420)).shows(">", 36.0, GREY)),
        ),
    )
}

fn header(goods: &Goods, sheet: &Sheet, glance: Glance) -> View {
    let color = chosen_price_value(goods, sheet).unwrap_or(&goods.title);
    let quantity = sheet.quantity.to_string();
    let mut count = view(EDIT, rect(474, 764, 552, 836)).pdd().click(Hit::Nothing).says(quantity, 40.0, INK).center();
    count.long_clickable = true;
    count = count.fill(CHIP);
    let step =
        |at: Rect, desc: &str, sign: &str, hit: Hit| view(IMAGE, at).pdd().desc(desc).click(hit).fill(CHIP).shows(sign, 46.0, INK).center();
    view(FRAME, rect(0, 487, WIDTH, 871)).pdd().order(4).child(
        view(RELATIVE, rect(0, 487, WIDTH, 871)).pdd().child(
            view(GROUP, rect(0, 487, WIDTH, 871))
                .pdd()
                .child(view(PLAIN, rect(35, 513, 358, 836)).order(2))
                .child(
                    view(IMAGE, rect(35, 513, 358, 836))
                        .id("com.xunmeng.pinduoduo:id/iv_goods_img")
                        .desc("商品主图")
                        .order(3)
                        .click(Hit::Picture)
                        .art(goods.art, tint(color))
                        .round(14),
                )
                .child(
                    view(FRAME, rect(393, 510, 1054, 582)).pdd().order(5).child(
                        view(LINEAR, rect(393, 510, 1054, 582)).pdd().child(
                            text(
                                rect(393, 510, 1054, 582),
                                if glance.unbound { String::new() } else { header_price(goods, sheet) },
                                54.0,
                                RED,
                            )
                            .pdd()
                            .bold()
                            .order(2),
                        ),
                    ),
                )
                .child(view(TEXT, rect(393, 594, 1054, 653)).id("com.xunmeng.pinduoduo:id/tv_select_sku").order(9).says(
                    selection_text(goods, sheet),
                    38.0,
                    INK,
                ))
                .child(
                    view(LINEAR, rect(393, 764, 633, 836)).id("com.xunmeng.pinduoduo:id/gnl").order(13).child(
                        view(LINEAR, rect(393, 764, 633, 836))
                            .child(step(rect(393, 764, 468, 836), "减少数量", "-", Hit::Fewer))
                            .child(count.order(4))
                            .child(step(rect(558, 764, 633, 836), "增加数量", "+", Hit::More).order(6)),
                    ),
                )
                .child(view(PLAIN, rect(35, 836, 1054, 871)).pdd().order(18)),
        ),
    )
}

/// Stock hint and price in one text, as the real header has it. Never a single price before a choice.
fn header_price(goods: &Goods, sheet: &Sheet) -> String {
    let Some(at) = goods.price_dimension() else {
        return goods.price_of("").map_or_else(|| "暂无报价".into(), |cent| format!("¥{}", yuan(cent)));
    };
    let Some(value) = sheet.chosen[at].map(|value| &goods.dimensions[at].values[value]) else {
        return match goods.price_range() {
            Some((low, high)) if low != high => format!("¥{}-{}", yuan(low), yuan(high)),
            Some((low, _)) => format!("¥{}起", yuan(low)),
            None => "暂无报价".into(),
        };
    };
    let kind = match goods.offer {
        Offer::Plain | Offer::Range => "",
        Offer::Coupon => "券后",
        Offer::Subsidised => "补贴价",
        Offer::Limited => "秒杀价",
    };
    match (&value.badge, goods.price_of(&value.text)) {
        (Some(badge), Some(cent)) => format!("{badge} {kind}¥{}", yuan(cent)),
        (None, Some(cent)) => format!("{kind}¥{}", yuan(cent)),
        (Some(badge), None) => badge.clone(),
        (None, None) => "暂无报价".into(),
    }
}

fn selection_text(goods: &Goods, sheet: &Sheet) -> String {
    match chosen_text(goods, sheet) {
        // The real header adds a '#' the chip does not have; readers must not compare letter by letter.
        Some(chosen) => format!("已选: #{chosen}"),
        None if goods.dimensions.is_empty() => "已选: 默认规格".into(),
        None => {
            let names = goods.dimensions.iter().map(|one| one.name.as_str()).collect::<Vec<_>>();
            format!("请选择：{}", names.join(" "))
        }
    }
}

/// The chosen values as the header lists them; `None` when nothing is chosen.
pub(crate) fn chosen_text(goods: &Goods, sheet: &Sheet) -> Option<String> {
    let picked = goods
        .dimensions
        .iter()
        .zip(&sheet.chosen)
        .filter_map(|(one, chosen)| Some(one.values.get((*chosen)?)?.text.as_str()))
        .collect::<Vec<_>>();
    if picked.is_empty() { None } else { Some(picked.join("，")) }
}

fn chosen_price_value<'g>(goods: &'g Goods, sheet: &Sheet) -> Option<&'g str> {
    let at = goods.price_dimension()?;
    Some(goods.dimensions[at].values[sheet.chosen[at]?].text.as_str())
}

/// What 提交订单 would charge in fen; `None` until every dimension is chosen and priced.
pub(crate) fn amount(goods: &Goods, sheet: &Sheet) -> Option<u64> {
    if sheet.chosen.iter().any(Option::is_none) {
        return None;
    }
    let each = match goods.price_dimension() {
        None => goods.price_of("")?,
        Some(_) => goods.price_of(chosen_price_value(goods, sheet)?)?,
    };
    Some((each * u64::from(sheet.quantity)).saturating_sub(goods.balance_cent))
}

pub(crate) fn payment_row(goods: &Goods) -> View {
    let says = if goods.balance_cent > 0 {
        format!("使用多多支付余额¥{}，更换支付方式", yuan(goods.balance_cent))
    } else {
        "使用#微信支付，更换支付方式".to_owned()
    };
    view(GROUP, rect(0, 2118, WIDTH, 2213))
        .pdd()
        .click(Hit::Nothing)
        .child(view(PLAIN, rect(0, 2118, WIDTH, 2119)).pdd().fill(LINE))
        .child(view(LINEAR, rect(180, 2138, 857, 2192)).pdd().child(text(rect(180, 2138, 857, 2192), says, 38.0, GREY).pdd().center()))
        .child(view(IMAGE, rect(870, 2145, 899, 2185)).pdd().shows(">", 34.0, GREY))
}

fn submit(goods: &Goods, sheet: &Sheet) -> View {
    let missing = goods.dimensions.iter().zip(&sheet.chosen).find(|(_, chosen)| chosen.is_none());
    let says = match (missing, amount(goods, sheet)) {
        (None, Some(cent)) => format!("提交订单 ¥{}", yuan(cent)),
        (Some((dimension, _)), _) => format!("选择{}后，立即支付", dimension.name),
        (None, None) => "提交订单".to_owned(),
    };
    view(FRAME, rect(334, 2213, WIDTH, 2354)).pdd().click(Hit::Submit).fill(RED).child(
        view(LINEAR, rect(400, 2213, 1014, 2354)).order(2).child(text(rect(400, 2251, 1014, 2316), says, 46.0, WHITE).center().bold()),
    )
}

pub(crate) fn max_scroll(goods: &Goods) -> i32 {
    let blank = blank(goods);
    (content(goods, &blank).1 - PANEL.height()).max(0)
}

pub(crate) fn max_sideways(goods: &Goods, dimension: usize) -> i32 {
    let columns = goods.dimensions.get(dimension).map_or(0, |one| one.values.len().div_ceil(2)) as i32;
    (SIDE + columns * (300 + GAP) - GAP - (WIDTH - SIDE)).max(0)
}

fn blank(goods: &Goods) -> Sheet {
    let many = goods.dimensions.len();
    Sheet {
        goods: 0,
        chosen: vec![None; many],
        quantity: 1,
        scroll: 0,
        sideways: vec![0; many],
        touched: false,
        asked: false,
        older: false,
    }
}

fn panel(goods: &Goods, sheet: &Sheet) -> View {
    let (content, _) = content(goods, sheet);
    let shown = content.into_iter().filter_map(|one| one.moved(0, PANEL.t - sheet.scroll).clipped(PANEL));
    // scrollable stays false: the real outer list says so although it scrolls.
    view(RECYCLER, PANEL).pdd().order(3).scrolls(Scroll::Panel).all(shown)
}

/// Rows of the outer list in its content coordinates, and their height.
fn content(goods: &Goods, sheet: &Sheet) -> (Vec<View>, i32) {
    let mut rows = Vec::new();
    let mut y = 0;
    if goods.balance_cent > 0 {
        let says = format!("用多多支付减{}元", yuan(goods.balance_cent));
        rows.push(
            view(LINEAR, rect(0, y, WIDTH, y + 130)).child(
                view(GROUP, rect(0, y, WIDTH, y + 130))
                    .click(Hit::Nothing)
                    .child(text(rect(35, y + 36, 121, y + 93), "优惠", 42.0, INK))
                    .child(text(rect(560, y + 38, 996, y + 91), says, 38.0, RED).align(Align::Right)),
            ),
        );
        y += 130;
    }
    let carrier = goods.price_dimension();
    for (at, dimension) in goods.dimensions.iter().enumerate() {
        let title = view(LINEAR, rect(0, y, WIDTH, y + 107))
            .pdd()
            .child(text(rect(35, y + 24, 35 + text_width(&dimension.name, 44.0), y + 82), &dimension.name, 42.0, INK).pdd().bold());
        let images = goods.chip == ChipStyle::Image && Some(at) == carrier;
        let title = if goods.extras && images { title.all(list_toggle(y)) } else { title };
        let top = y + 107;
        let (chips, tall) = if images && sideways(goods, dimension) {
            two_rows(goods, sheet, at, top)
        } else if images {
            grid(goods, sheet, at, top)
        } else {
            flow(goods, sheet, at, top)
        };
        let whole = view(LINEAR, rect(0, y, WIDTH, top + tall)).child(title);
        rows.push(whole.child(view(LINEAR, rect(0, top, WIDTH, top + tall)).pdd().child(chips)));
        y = top + tall + 30;
    }
    if goods.extras && !goods.dimensions.is_empty() {
        rows.push(view(LINEAR, rect(0, y, WIDTH, y + 110)).pdd().child(text(
            rect(35, y + 20, 620, y + 84),
            "多人说“颜色很好看”",
            36.0,
            GREY,
        )));
        y += 110;
        rows.push(
            view(LINEAR, rect(0, y, WIDTH, y + 120)).pdd().child(text(rect(35, y + 30, 400, y + 90), "拼多多全程保障", 36.0, GREY)).child(
                view(GROUP, rect(760, y + 20, 1045, y + 100))
                    .click(Hit::Nothing)
                    .border(LINE, 3)
                    .round(40)
                    .child(text(rect(760, y + 20, 1045, y + 100), "一次选多款", 36.0, INK).center()),
            ),
        );
        y += 120;
    }
    rows.push(view(FRAME, rect(0, y, WIDTH, y + 32)));
    (rows, y + 32)
}

/// 列表 / 大图 beside the name of the choice; looks like two more chips to a careless reader.
fn list_toggle(y: i32) -> [View; 2] {
    [("列表", 800, 0), ("大图", 920, 1)].map(|(says, left, at)| {
        let spot = rect(left, y + 20, left + 110, y + 88);
        view(GROUP, spot).click(Hit::Nothing).child(text(spot, says, 36.0, if at == 1 { RED } else { GREY }).center())
    })
}

fn sideways(goods: &Goods, dimension: &Dimension) -> bool {
    goods.layout == ChipLayout::Horizontal && dimension.values.len() > 6
}

fn grid(goods: &Goods, sheet: &Sheet, at: usize, top: i32) -> (View, i32) {
    let values = goods.dimensions[at].values.len();
    let rows = values.div_ceil(3) as i32;
    let tall = rows * (413 + GAP);
    let mut list = view(RECYCLER, rect(SIDE, top, WIDTH, top + tall - GAP)).pdd();
    for value in 0..values {
        let (row, column) = ((value / 3) as i32, (value % 3) as i32);
        let left = SIDE + column * (317 + GAP);
        let chip_top = top + row * (413 + GAP);
        list = list.child(image_chip(goods, sheet, at, value, rect(left, chip_top, left + 317, chip_top + 413)));
    }
    (view(FRAME, rect(0, top, WIDTH, top + tall)).pdd().child(list), tall)
}

/// Two rows scrolling sideways; nodes come row by row, drawing order column by column.
fn two_rows(goods: &Goods, sheet: &Sheet, at: usize, top: i32) -> (View, i32) {
    let values = goods.dimensions[at].values.len();
    let columns = values.div_ceil(2);
    let viewport = rect(SIDE, top, WIDTH, top + 2 * 395 + GAP);
    let mut list = view(RECYCLER, viewport).pdd().scrolls(Scroll::Chips(at));
    list.scrollable = true;
    for row in 0..2 {
        for column in 0..columns {
            let value = row * columns + column;
            if value >= values {
                continue;
            }
            let left = SIDE + column as i32 * (300 + GAP);
            let chip_top = top + row as i32 * (395 + GAP);
            let chip = image_chip(goods, sheet, at, value, rect(left, chip_top, left + 300, chip_top + 395));
            let chip = chip.order((column * 2 + row + 1) as u32).moved(-sheet.sideways[at], 0);
            list.children.extend(chip.clipped(viewport));
        }
    }
    let most = max_sideways(goods, at).max(1);
    let bar = 446 + (sheet.sideways[at] * 80) / most;
    let tall = viewport.height() + 50;
    let made = view(FRAME, rect(0, top, WIDTH, top + tall))
        .pdd()
        .child(list)
        .child(view(IMAGE, rect(bar, top + tall - 32, bar + 107, top + tall - 26)).pdd().fill(FADED).round(3));
    (made, tall)
}

fn image_chip(goods: &Goods, sheet: &Sheet, at: usize, value: usize, spot: Rect) -> View {
    let one = &goods.dimensions[at].values[value];
    let chosen = sheet.chosen[at] == Some(value);
    let hit = Hit::Chip { dimension: at, value };
    let picture = rect(spot.l, spot.t, spot.r, spot.b - 96);
    let foot = rect(spot.l, spot.b - 107, spot.r, spot.b);
    let says = if one.sold_out {
        format!("{}... 刚刚抢光", one.text.chars().take(2).collect::<String>())
    } else {
        chip_text(goods, at, &one.text)
    };
    let ink = if one.sold_out {
        FADED
    } else if chosen {
        RED
    } else {
        INK
    };
    let mut chip = view(GROUP, spot).desc(&one.text).click(hit).select(chosen).fill(CHIP).round(16);
    chip = chip.child(view(PLAIN, spot).pdd().select(chosen).order(4));
    chip =
        chip.child(view(IMAGE, picture).pdd().desc(&one.text).click(hit).select(chosen).order(1).round(16).art(goods.art, tint(&one.text)));
    if let Some(badge) = one.badge.as_ref().filter(|_| !one.sold_out) {
        let wide = text_width(badge, 30.0) + 24;
        let spot = rect(spot.l, spot.t, spot.l + wide, spot.t + 53);
        chip = chip.child(text(spot, badge, 30.0, WHITE).pdd().select(chosen).order(5).fill([240, 120, 60]).round(12).center());
    }
    if !one.sold_out {
        let corner = rect(spot.r - 109, spot.t, spot.r, spot.t + 109);
        chip = chip.child(
            view(IMAGE, corner).pdd().desc("打开大图").click(Hit::Picture).select(chosen).order(2).child(
                ghost(rect(corner.l + 40, corner.t + 14, corner.r - 14, corner.t + 69))
                    .fill([150, 150, 150])
                    .round(27)
                    .shows("+", 40.0, WHITE)
                    .center(),
            ),
        );
    }
    chip.child(view(LINEAR, foot).pdd().select(chosen).order(3).child(
        view(TEXT, foot).id("com.xunmeng.pinduoduo:id/tv_content").click(hit).select(chosen).says(says, 34.0, ink).lines(2).center(),
    ))
    .child(if chosen { ghost(spot).border(RED, 4).round(16) } else { ghost(spot) })
}

/// Text chips in rows; the selected flag sits on the inner text, the chip itself says nothing.
fn flow(goods: &Goods, sheet: &Sheet, at: usize, top: i32) -> (View, i32) {
    let dimension = &goods.dimensions[at];
    let mut chips = Vec::new();
    let (mut left, mut row) = (SIDE, top + 12);
    for (value, one) in dimension.values.iter().enumerate() {
        let says = chip_text(goods, at, &one.text);
        let wide = (text_width(&says, 40.0) + 84).clamp(150, WIDTH - 2 * SIDE);
        if left + wide > WIDTH - SIDE && left > SIDE {
            left = SIDE;
            row += 116;
        }
        let spot = rect(left, row, left + wide, row + 87);
        let chosen = sheet.chosen[at] == Some(value);
        let hit = Hit::Chip { dimension: at, value };
        let ink = if one.sold_out {
            FADED
        } else if chosen {
            RED
        } else {
            INK
        };
        let mut label = text(spot, says, 40.0, ink).pdd().click(hit).select(chosen).center().round(14);
        label = label.fill(if chosen { PALE_RED } else { CHIP });
        if chosen {
            label = label.border(RED, 3);
        }
        let mut chip = view(GROUP, spot).click(hit).child(label).child(view(PLAIN, spot).pdd());
        let badge = if one.sold_out { Some("刚刚抢光") } else { one.badge.as_deref() };
        if let Some(badge) = badge {
            let spot = rect(spot.l, spot.t - 12, spot.l + text_width(badge, 26.0) + 20, spot.t + 24);
            let fill = if one.sold_out { FADED } else { [240, 120, 60] };
            chip = chip.child(text(spot, badge, 26.0, WHITE).pdd().fill(fill).round(10).center());
        }
        chips.push(chip);
        left += wide + GAP;
    }
    let tall = row + 116 - top;
    (view(GROUP, rect(0, top, WIDTH, top + tall)).all(chips), tall)
}

fn chip_text(goods: &Goods, at: usize, value: &str) -> String {
    let carries = Some(at) == goods.price_dimension() && goods.dimensions[at].kind != DimensionKind::Size;
    match goods.price_of(value).filter(|_| goods.price_in_chip && carries) {
        Some(cent) => format!("{value}  ¥{}", yuan(cent)),
        None => value.to_owned(),
    }
}
