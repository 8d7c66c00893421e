//! Pages for the guard's tests, written as the phone writes them.

use cmautobuy_device::ScreenSize;

/// The screen all these pages are for.
pub(crate) const SIZE: ScreenSize = ScreenSize { width: 1080, height: 2400, density_dpi: 440 };
pub(crate) const PDD: &str = "com.xunmeng.pinduoduo";

pub(crate) fn node(bounds: [i32; 4], clickable: bool, text: &str, desc: &str, inner: &str) -> String {
    let [l, t, r, b] = bounds;
    format!(
        "<node text=\"{text}\" content-desc=\"{desc}\" class=\"v\" package=\"{PDD}\" clickable=\"{clickable}\" \
         bounds=\"[{l},{t}][{r},{b}]\">{inner}</node>"
    )
}

pub(crate) fn page(inner: &str) -> String {
    format!("<hierarchy rotation=\"0\">{}</hierarchy>", node([0, 0, 1080, 2400], false, "", "", inner))
}

pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime").block_on(future)
}
