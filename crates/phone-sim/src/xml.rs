//! Writes windows the way stock `uiautomator dump` does: attribute order, single-quoted
//! declaration, decimal references for everything outside the basic plane.
//! It never decides what is on the screen.

use crate::view::{View, Window};

/// The whole document. With `compressed`, layouts that say and do nothing are left out.
pub(crate) fn dump(windows: &[Window], compressed: bool) -> String {
    let mut out = String::with_capacity(64 * 1024);
    out.push_str("<?xml version='1.0' encoding='UTF-8' standalone='yes' ?><hierarchy rotation=\"0\">");
    for (at, window) in windows.iter().enumerate() {
        node(&mut out, &window.root, window.package, at, compressed);
    }
    out.push_str("</hierarchy>");
    out
}

fn node(out: &mut String, view: &View, package: &str, index: usize, compressed: bool) {
    if view.ghost {
        return;
    }
    if compressed && !matters(view) {
        for (at, child) in view.children.iter().enumerate() {
            node(out, child, package, at, compressed);
        }
        return;
    }
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
    let at = view.bounds;
    let order = view.order.unwrap_or(index as u32 + 1);
    out.push_str(&format!("bounds=\"[{},{}][{},{}]\" drawing-order=\"{order}\" hint=\"", at.l, at.t, at.r, at.b));
    escape(out, &view.hint);
    out.push('"');
    if view.children.iter().any(|child| !child.ghost) {
        out.push('>');
        for (at, child) in view.children.iter().enumerate() {
            node(out, child, package, at, compressed);
        }
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

fn escape(out: &mut String, raw: &str) {
    for one in raw.chars() {
        match one {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            other if (other as u32) > 0xffff => out.push_str(&format!("&#{};", other as u32)),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{FRAME, TEXT, rect, view};

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
            escape(&mut out, raw);
            assert_eq!(out, want, "wrong form for {name}");
        }
    }

    #[test]
    fn compressed_drops_only_layouts_that_say_nothing() {
        let leaf = view(TEXT, rect(0, 0, 10, 10)).says("名", 10.0, [0; 3]);
        let root = view(FRAME, rect(0, 0, 10, 10)).child(view(FRAME, rect(0, 0, 10, 10)).child(leaf));
        let windows = [Window { package: "p", root }];
        assert_eq!(dump(&windows, false).matches("<node").count(), 3, "stock keeps every layout");
        assert_eq!(dump(&windows, true).matches("<node").count(), 1, "compressed keeps what says something");
    }
}
