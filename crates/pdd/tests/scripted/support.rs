//! Small pages in the shape of Pinduoduo's, with invented texts.

use std::fmt::Write as _;

use cmautobuy_device::{Foreground, UiTree};

pub(crate) const PDD: &str = "com.xunmeng.pinduoduo";

/// One node of a page under construction.
#[derive(Debug, Clone, Default)]
pub(crate) struct N {
    class: &'static str,
    text: String,
    desc: String,
    id: String,
    package: Option<&'static str>,
    clickable: bool,
    selected: bool,
    scrollable: bool,
    bounds: (i32, i32, i32, i32),
    children: Vec<N>,
}

pub(crate) fn node(class: &'static str, bounds: (i32, i32, i32, i32)) -> N {
    N { class, bounds, ..N::default() }
}

pub(crate) fn text(text: &str, bounds: (i32, i32, i32, i32)) -> N {
    N { text: text.into(), ..node("android.widget.TextView", bounds) }
}

pub(crate) fn group(bounds: (i32, i32, i32, i32)) -> N {
    node("android.view.ViewGroup", bounds)
}

impl N {
    pub(crate) fn desc(mut self, desc: &str) -> N {
        self.desc = desc.into();
        self
    }
    pub(crate) fn id(mut self, name: &str) -> N {
        self.id = format!("{PDD}:id/{name}");
        self
    }
    pub(crate) fn click(mut self) -> N {
        self.clickable = true;
        self
    }
    pub(crate) fn select(mut self, on: bool) -> N {
        self.selected = on;
        self
    }
    pub(crate) fn scroll(mut self) -> N {
        self.scrollable = true;
        self
    }
    pub(crate) fn package(mut self, package: &'static str) -> N {
        self.package = Some(package);
        self
    }
    pub(crate) fn child(mut self, child: N) -> N {
        self.children.push(child);
        self
    }
    pub(crate) fn all(mut self, children: impl IntoIterator<Item = N>) -> N {
        self.children.extend(children);
        self
    }

    fn write(&self, out: &mut String, package: &str) {
        let esc = |s: &str| s.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
        let package = self.package.unwrap_or(package);
        let (l, t, r, b) = self.bounds;
        let _ = write!(
            out,
            "<node text=\"{}\" resource-id=\"{}\" class=\"{}\" package=\"{package}\" content-desc=\"{}\" clickable=\"{}\" enabled=\"true\" scrollable=\"{}\" selected=\"{}\" bounds=\"[{l},{t}][{r},{b}]\">",
            esc(&self.text),
            self.id,
            self.class,
            esc(&self.desc),
            self.clickable,
            self.scrollable,
            self.selected
        );
        for child in &self.children {
            child.write(out, package);
        }
        out.push_str("</node>");
    }
}

/// A whole screen of the app.
pub(crate) fn screen(children: impl IntoIterator<Item = N>) -> String {
    windows([N { children: children.into_iter().collect(), ..node("android.widget.FrameLayout", (0, 0, 1080, 2400)) }])
}

pub(crate) fn windows(roots: impl IntoIterator<Item = N>) -> String {
    let mut out = String::from("<?xml version='1.0' encoding='UTF-8' standalone='yes' ?><hierarchy rotation=\"0\">");
    for root in roots {
        root.write(&mut out, PDD);
    }
    out.push_str("</hierarchy>");
    out
}

pub(crate) fn tree(xml: &str) -> UiTree {
    UiTree::parse(xml.as_bytes()).expect("the page under test is well formed")
}

pub(crate) fn pdd_front() -> Foreground {
    Foreground { package: PDD.into(), activity: ".activity.NewPageActivity".into() }
}

pub(crate) fn bottom_bar() -> Vec<N> {
    let mut bar: Vec<N> = ["店铺", "收藏", "客服"]
        .iter()
        .enumerate()
        .map(|(at, name)| node("android.widget.FrameLayout", (at as i32 * 130, 2198, at as i32 * 130 + 130, 2354)).desc(name).click())
        .collect();
    bar.push(group((388, 2198, 734, 2354)).desc("¥25.9单独购买").click());
    bar.push(group((734, 2198, 1080, 2354)).desc("¥19.9发起拼单").click());
    bar
}

/// A goods page; `row` is the label of the row that opens the sheet.
pub(crate) fn goods_page(title: &str, price_line: &str, row: Option<&str>) -> String {
    let mut body = vec![
        group((0, 1080, 1080, 1230)).desc(price_line),
        group((0, 1230, 1080, 1400)).id("tv_title").desc(title),
        text("已拼1.2万+件", (700, 1410, 1060, 1460)),
        group((0, 1700, 1080, 1800)).desc("商品评价(4,949)").click(),
        text("测试五金旗舰店", (195, 1850, 780, 1900)),
        text("本店已拼12.3万+件", (195, 1910, 780, 1950)),
        text("进店", (850, 1850, 1040, 1930)).id("tv_enter_mall"),
    ];
    if let Some(row) = row {
        body.push(group((0, 1520, 1080, 1660)).click().child(text(row, (35, 1560, 300, 1610))));
    }
    let list = node("android.support.v7.widget.RecyclerView", (0, 0, 1080, 2198)).scroll().all(body);
    screen(std::iter::once(list).chain(bottom_bar()))
}

/// A chip as pictures have it.
pub(crate) fn image_chip(value: &str, caption: &str, selected: bool, (l, t): (i32, i32)) -> N {
    group((l, t, l + 317, t + 413))
        .desc(value)
        .click()
        .select(selected)
        .child(node("android.widget.ImageView", (l, t, l + 317, t + 317)).desc(value).click().select(selected))
        .child(node("android.widget.ImageView", (l + 208, t, l + 317, t + 109)).desc("打开大图").click().select(selected))
        .child(text(caption, (l, t + 306, l + 317, t + 413)).id("tv_content").click().select(selected))
}

/// A chip as texts have it: only the inner text knows that it is chosen.
pub(crate) fn text_chip(caption: &str, badge: Option<&str>, selected: bool, (l, t, r): (i32, i32, i32)) -> N {
    let chip = group((l, t, r, t + 87)).click().child(text(caption, (l, t, r, t + 87)).click().select(selected));
    match badge {
        Some(badge) => chip.child(text(badge, (l, t, l + 140, t + 22))),
        None => chip,
    }
}

/// The sheet around its rows of choices.
pub(crate) fn sheet(header: &[&str], selected: &str, rows: impl IntoIterator<Item = N>) -> String {
    let header = header.iter().enumerate().map(|(at, one)| text(one, (393 + at as i32 * 300, 510, 690 + at as i32 * 300, 582)));
    let stepper = [
        node("android.widget.ImageView", (393, 764, 468, 836)).desc("减少数量").click(),
        node("android.widget.EditText", (474, 764, 552, 836)).click(),
        node("android.widget.ImageView", (558, 764, 633, 836)).desc("增加数量").click(),
    ];
    let content = group((0, 332, 1080, 2354))
        .click()
        .child(
            group((0, 487, 1080, 871))
                .child(node("android.widget.ImageView", (35, 513, 358, 836)).id("iv_goods_img").desc("商品主图").click())
                .all(header)
                .child(text(selected, (393, 594, 1054, 653)).id("tv_select_sku"))
                .all(stepper),
        )
        .child(node("android.support.v7.widget.RecyclerView", (0, 872, 1080, 2118)).all(rows))
        .child(group((0, 2118, 1080, 2213)).click().child(text("使用#微信支付，更换支付方式", (223, 2138, 819, 2192))))
        .child(node("android.widget.FrameLayout", (334, 2213, 1080, 2354)).click().child(text("提交订单 ¥18.88", (562, 2251, 851, 2316))));
    screen([node("android.widget.LinearLayout", (0, 95, 1080, 2354))
        .click()
        .child(node("android.widget.ImageView", (979, 242, 1051, 314)).desc("关闭").click())
        .child(content)])
}

pub(crate) fn name_row(name: &str, top: i32) -> N {
    node("android.widget.LinearLayout", (0, top, 1080, top + 107))
        .child(text(name, (35, top + 24, 35 + 43 * name.chars().count() as i32, top + 82)))
}

pub(crate) fn abandon_popup() -> String {
    screen([group((80, 723, 999, 1631))
        .child(text("确定放弃吗？", (171, 1040, 909, 1100)))
        .child(
            group((168, 1307, 911, 1436))
                .click()
                .child(text("继续支付", (400, 1330, 560, 1410)))
                .child(text("，仅¥59", (560, 1330, 700, 1410))),
        )
        .child(group((171, 1477, 909, 1543)).click().child(text("先去逛逛", (454, 1482, 626, 1539))))])
}
