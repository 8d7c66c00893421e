//! Writes windows the way stock `uiautomator dump` does: attribute order, single-quoted
//! declaration, decimal references for everything outside the basic plane.
//! It never decides what is on the screen.

use crate::model::{HEIGHT, WIDTH};
use crate::view::{Rect, View, Window, rect};

/// How a document is written.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Style {
    /// Layouts that say and do nothing are left out.
    pub(crate) compressed: bool,
    /// The screen lies on its side.
    pub(crate) rotated: bool,
    /// Characters beyond the basic plane as two references, which is no XML.
    pub(crate) surrogates: bool,
    /// As a resident agent writes it: a line per node, and two dots for such characters.
    pub(crate) indented: bool,
}

/// Of the page when the phone lies on its side: the page stays upright in the middle.
const SIDE_LEFT: i32 = (HEIGHT - WIDTH * WIDTH / HEIGHT) / 2;

fn on_side(at: Rect) -> Rect {
    let scaled = |value: i32| value * WIDTH / HEIGHT;
    let (l, t) = (SIDE_LEFT + scaled(at.l), scaled(at.t));
    // A line of one pixel must not vanish.
    rect(l, t, (SIDE_LEFT + scaled(at.r)).max(l + 1), scaled(at.b).max(t + 1))
}

/// The place on the page under a finger on a phone that lies on its side.
pub(crate) fn from_side((x, y): (i32, i32)) -> (i32, i32) {
    ((x - SIDE_LEFT) * HEIGHT / WIDTH, y * HEIGHT / WIDTH)
}

/// The whole document.
pub(crate) fn dump(windows: &[Window], style: Style) -> String {
    let mut out = String::with_capacity(64 * 1024);
    out.push_str("<?xml version='1.0' encoding='UTF-8' standalone='yes' ?>");
    if style.indented {
        out.push_str("\r\n");
    }
    out.push_str(&format!("<hierarchy rotation=\"{}\">", i32::from(style.rotated)));
    for (at, window) in windows.iter().enumerate() {
        node(&mut out, &window.root, &Place { package: window.package, index: at, depth: 0, style });
    }
    if style.indented {
        out.push_str("\r\n");
    }
    out.push_str("</hierarchy>");
    out
}

/// The same document as a careless tool writes it: raw markup in a label, and a tag that closes another.
pub(crate) fn spoilt(whole: &str) -> String {
    whole.replacen(" text=\"", " text=\"<满减 & 优惠>", 3).replacen("</node>", "</hierarchy>", 1)
}

pub(crate) fn has_emoji(windows: &[Window]) -> bool {
    fn below(view: &View) -> bool {
        let beyond = |says: &str| says.chars().any(|one| (one as u32) > 0xffff);
        !view.ghost && (beyond(&view.text) || beyond(&view.desc) || view.children.iter().any(below))
    }
    windows.iter().any(|window| below(&window.root))
}

#[derive(Clone, Copy)]
struct Place<'p> {
    package: &'p str,
    index: usize,
    depth: usize,
    style: Style,
}

fn node(out: &mut String, view: &View, place: &Place<'_>) {
    let Place { package, index, depth, style } = *place;
    let escape = |out: &mut String, raw: &str| escape(out, raw, style);
    let inside = |at: usize| Place { index: at, depth: depth + 1, ..*place };
    if view.ghost {
        return;
    }
    if style.compressed && !matters(view) {
        for (at, child) in view.children.iter().enumerate() {
            node(out, child, &inside(at));
        }
        return;
    }
    let new_line = |out: &mut String| {
        if style.indented {
            out.push_str("\r\n");
            out.extend(std::iter::repeat_n("  ", depth + 1));
        }
    };
    new_line(out);
    out.push_str("<node ");
    if view.clickable && silent(view) {
        out.push_str("NAF=\"true\" ");
    }
    let flag = |out: &mut String, name: &str, on: bool| {
        out.push_str(name);
        out.push_str(if on { "=\"true\" " } else { "=\"false\" " });
    };
    out.push_str(&format!("index=\"{index}\" text=\""));
    escape(out, &view.text);
    out.push_str(&format!("\" resource-id=\"{}\" class=\"{}\" package=\"{package}\" content-desc=\"", view.id, view.class));
    escape(out, &view.desc);
    out.push_str("\" ");
    flag(out, "checkable", false);
    flag(out, "checked", false);
    flag(out, "clickable", view.clickable);
    flag(out, "enabled", true);
    flag(out, "focusable", view.clickable);
    flag(out, "focused", false);
    flag(out, "scrollable", view.scrollable);
    flag(out, "long-clickable", view.long_clickable);
    flag(out, "password", false);
    flag(out, "selected", view.selected);
    flag(out, "visible-to-user", true);
    let at = match (style.rotated, depth) {
        (false, _) => view.bounds,
        (true, 0) => rect(0, 0, HEIGHT, WIDTH),
        (true, _) => on_side(view.bounds),
    };
    let order = view.order.unwrap_or(index as u32 + 1);
    out.push_str(&format!("bounds=\"[{},{}][{},{}]\" drawing-order=\"{order}\" hint=\"", at.l, at.t, at.r, at.b));
    escape(out, &view.hint);
    out.push('"');
    if view.children.iter().any(|child| !child.ghost) {
        out.push('>');
        for (at, child) in view.children.iter().enumerate() {
            node(out, child, &inside(at));
        }
        new_line(out);
        out.push_str("</node>");
    } else {
        out.push_str(" />");
    }
}

fn matters(view: &View) -> bool {
    view.clickable || view.scrollable || !view.text.is_empty() || !view.desc.is_empty()
}

/// Neither the view nor anything below it has a label.
fn silent(view: &View) -> bool {
    view.text.is_empty() && view.desc.is_empty() && view.children.iter().filter(|one| !one.ghost).all(silent)
}

fn escape(out: &mut String, raw: &str, style: Style) {
    for one in raw.chars() {
        match one {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            other if (other as u32) > 0xffff && style.indented => out.push_str(".."),
            other if (other as u32) > 0xffff && style.surrogates => {
                let mut two = [0; 2];
                for half in other.encode_utf16(&mut two) {
                    out.push_str(&format!("&#{half};"));
                }
            }
            other if (other as u32) > 0xffff => out.push_str(&format!("&#{};", other as u32)),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{FRAME, TEXT, view};

    #[test]
    fn labels_are_written_as_a_phone_writes_them() {
        let rows = [
            ("plain", "红色", "红色"),
            ("markup", "<a&\"b\">", "&lt;a&amp;&quot;b&quot;&gt;"),
            ("newline", "一\n二", "一&#10;二"),
            ("emoji", "好😊", "好&#128522;"),
        ];
        for (name, raw, want) in rows {
            let mut out = String::new();
            escape(&mut out, raw, Style::default());
            assert_eq!(out, want, "wrong form for {name}");
        }
    }

    #[test]
    fn compressed_drops_only_layouts_that_say_nothing() {
        let leaf = view(TEXT, rect(0, 0, 10, 10)).says("名", 10.0, [0; 3]);
        let root = view(FRAME, rect(0, 0, 10, 10)).child(view(FRAME, rect(0, 0, 10, 10)).child(leaf));
        let windows = [Window { package: "p", root }];
        assert_eq!(dump(&windows, Style::default()).matches("<node").count(), 3, "stock keeps every layout");
        assert_eq!(
            dump(&windows, Style { compressed: true, ..Style::default() }).matches("<node").count(),
            1,
            "compressed keeps what says something"
        );
    }
}
