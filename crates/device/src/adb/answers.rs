//! Reading what the phone and the adb server print.
//!
//! Pure functions over text. A line that makes no sense is skipped or kept as text; it never fails the rest.

use crate::capture::Foreground;
use crate::phone::PDD_PACKAGE;

/// What an adb server says about one phone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedDevice {
    pub serial: String,
    pub state: ListedState,
    pub model: Option<String>,
    pub product: Option<String>,
    /// Where its cable is, `usb:1-2`; `None` over a network and from servers that do not say.
    pub usb: Option<String>,
    pub transport_id: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListedState {
    /// Ready to use.
    Device,
    Offline,
    /// Waiting for Allow on the phone.
    Unauthorized,
    NoPermissions,
    /// Anything else, as printed.
    Other(String),
}

/// State words of adb, as they stand alone in a line.
const STATES: [(&str, Option<ListedState>); 12] = [
    ("device", Some(ListedState::Device)),
    ("offline", Some(ListedState::Offline)),
    ("unauthorized", Some(ListedState::Unauthorized)),
    ("no permissions", Some(ListedState::NoPermissions)),
    ("authorizing", None),
    ("connecting", None),
    ("recovery", None),
    ("sideload", None),
    ("bootloader", None),
    ("rescue", None),
    ("host", None),
    ("unknown", None),
];

/// Bytes to text: UTF-8, else the GBK some vendors print.
pub(crate) fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => encoding_rs::GBK.decode_without_bom_handling(bytes).0.into_owned(),
    }
}

/// `host:devices-l`. Serials may hold spaces (`adb-XX (2)._adb-tls-connect._tcp`, facts A9).
pub(crate) fn devices(text: &str) -> Vec<ListedDevice> {
    text.lines().filter(|line| !line.trim().is_empty()).map(device).collect()
}

fn device(line: &str) -> ListedDevice {
    let found =
        STATES.iter().filter_map(|(word, state)| alone_at(line, word).map(|at| (at, *word, state.clone()))).min_by_key(|(at, _, _)| *at);
    let field =
        |rest: &str, name: &str| rest.split_whitespace().find_map(|part| part.strip_prefix(name)).map(|value| value.replace('_', " "));
    match found {
        Some((at, word, state)) => {
            let rest = &line[at + word.len()..];
            ListedDevice {
                serial: line[..at].trim().to_owned(),
                state: state.unwrap_or_else(|| ListedState::Other(word.to_owned())),
                model: field(rest, "model:"),
                product: field(rest, "product:"),
                usb: field(rest, "usb:"),
                transport_id: field(rest, "transport_id:").and_then(|id| id.parse().ok()),
            }
        }
        None => {
            let (serial, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
            let state = ListedState::Other(rest.trim().to_owned());
            ListedDevice { serial: serial.to_owned(), state, model: None, product: None, usb: None, transport_id: None }
        }
    }
}

/// Offset of `word` standing alone, not at the start of the line.
fn alone_at(line: &str, word: &str) -> Option<usize> {
    line.match_indices(word).map(|(at, _)| at).find(|at| {
        let before = line[..*at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        before.is_some_and(char::is_whitespace) && !line[..*at].trim().is_empty() && after.is_none_or(|c| c.is_whitespace() || c == ';')
    })
}

/// `wm size`: the override when there is one, since that is what input and dumps use.
pub(crate) fn screen_size(text: &str) -> Option<(i32, i32)> {
    let size = |name: &str| {
        let value = text.lines().find_map(|line| line.trim().strip_prefix(name))?;
        let (width, height) = value.trim().split_once('x')?;
        Some((width.trim().parse().ok()?, height.trim().parse().ok()?))
    };
    size("Override size:").or_else(|| size("Physical size:")).filter(|(w, h): &(i32, i32)| *w > 0 && *h > 0)
}

/// `wm density`, dots per inch.
pub(crate) fn density(text: &str) -> Option<u32> {
    let value = |name: &str| text.lines().find_map(|line| line.trim().strip_prefix(name))?.trim().parse().ok();
    value("Override density:").or_else(|| value("Physical density:")).filter(|dpi: &u32| (40..=2000).contains(dpi))
}

/// `mCurrentFocus=Window{1a2b u0 pkg/act}` of `dumpsys window`. `None` during transitions (`null`).
pub(crate) fn current_focus(text: &str) -> Option<Foreground> {
    // With several displays the line repeats and only one of them is not null.
    text.lines().filter_map(|line| line.trim().strip_prefix("mCurrentFocus=")).find_map(window)
}

/// `topResumedActivity=ActivityRecord{1a u0 pkg/act t12}` and its older names in `dumpsys activity activities`.
pub(crate) fn resumed_activity(text: &str) -> Option<Foreground> {
    ["topResumedActivity", "mResumedActivity", "mFocusedActivity", "ResumedActivity"].iter().find_map(|name| {
        text.lines().find_map(|line| {
            let value = line.trim().strip_prefix(name)?.trim_start_matches(['=', ':', ' ']);
            window(value)
        })
    })
}

/// The component inside `Window{hash u0 pkg/act}` or `ActivityRecord{hash u0 pkg/act t9}`.
fn window(value: &str) -> Option<Foreground> {
    let inner = value.split_once('{')?.1.split_once('}')?.0;
    let mut parts = inner.split_whitespace();
    parts.next()?;
    let user = parts.next()?;
    if let Some(component) = inner.split_whitespace().find(|part| part.contains('/')) {
        let (package, activity) = component.split_once('/')?;
        // `pkg/pkg.activity.X` and `pkg/.activity.X` are one activity.
        let activity = activity.strip_prefix(package).filter(|rest| rest.starts_with('.')).unwrap_or(activity);
        return Some(Foreground { package: package.to_owned(), activity: activity.to_owned() });
    }
    // A window without a component: NotificationShade, Keyguard, `Application Not Responding: pkg`.
    let title = inner.split_once(user)?.1.trim();
    (!title.is_empty()).then(|| Foreground { package: title.to_owned(), activity: String::new() })
}

/// `versionName=` of `dumpsys package`.
pub(crate) fn version_name(text: &str) -> Option<String> {
    text.lines()
        .find_map(|line| line.trim().strip_prefix("versionName="))
        .map(|version| version.trim().to_owned())
        .filter(|version| !version.is_empty() && version != "null")
}

/// The goods id of the activity on top, from `dumpsys activity top` (facts/pdd 1.1). The list runs from
/// back to front, so only the last ACTIVITY section counts, and only when it is Pinduoduo's.
pub(crate) fn goods_on_top(text: &str) -> Option<String> {
    let section = match text.rfind("ACTIVITY ") {
        Some(at) => {
            let section = &text[at..];
            section.strip_prefix("ACTIVITY ")?.trim_start().starts_with(PDD_PACKAGE).then_some(section)?
        }
        None => text,
    };
    section.match_indices("goods_id").find_map(|(at, word)| goods_id(&section[at + word.len()..]))
}

/// By hand: `[\\":=\s]{1,5}(\d{6,})`.
fn goods_id(after: &str) -> Option<String> {
    let gap: usize = after.chars().take_while(|c| matches!(c, '\\' | '"' | ':' | '=') || c.is_whitespace()).map(char::len_utf8).sum();
    if !(1..=5).contains(&gap) {
        return None;
    }
    let digits: String = after[gap..].chars().take_while(char::is_ascii_digit).collect();
    (6..=20).contains(&digits.len()).then_some(digits)
}

/// Who holds the accessibility connection, from `ps -A`: the names of the known kinds of client.
pub(crate) fn accessibility_client(ps: &str) -> Option<String> {
    let known = ["uiautomator", "com.wetest.uia2", "appium", "instrument", "fastbot", "monkey"];
    ps.lines()
        .filter_map(|line| line.split_whitespace().next_back())
        .find(|name| known.iter().any(|word| name.contains(word)))
        .map(str::to_owned)
}

/// A PNG that is all there; anything printed before it (a display warning) is cut off.
pub(crate) fn png(mut raw: Vec<u8>) -> Option<Vec<u8>> {
    let signature = [0x89, b'P', b'N', b'G', 0x0D, 0x0A, 0x1A, 0x0A];
    let start = raw.windows(signature.len()).take(8192).position(|window| window == signature)?;
    raw.drain(..start);
    let end = [0, 0, 0, 0, b'I', b'E', b'N', b'D', 0xAE, 0x42, 0x60, 0x82];
    raw.ends_with(&end).then_some(raw)
}

/// Whether a picture shows nothing: a secured window, or a screen that is off. Near-black counts, compression rounds.
pub(crate) fn is_black(png: &[u8]) -> bool {
    let Ok(picture) = image::load_from_memory_with_format(png, image::ImageFormat::Png) else { return false };
    picture.to_rgb8().pixels().all(|pixel| pixel.0.iter().all(|channel| *channel <= 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_lines() {
        let text = "emulator-5554          device product:sdk model:Pixel_7 device:x transport_id:1\n\
                    adb-XX (2)._adb-tls-connect._tcp device product:p model:M transport_id:2\n\
                    0123 no permissions (user in plugdev group); see [http://x] usb:1-2\n\
                    R58 unauthorized usb:1-1\n\
                    device-lab device\n\
                    odd\n\
                    \n\
                    192.168.0.9:5555 offline\n\
                    Z recovery";
        let got: Vec<(String, ListedState)> = devices(text).into_iter().map(|d| (d.serial, d.state)).collect();
        let want = [
            ("emulator-5554", ListedState::Device),
            ("adb-XX (2)._adb-tls-connect._tcp", ListedState::Device),
            ("0123", ListedState::NoPermissions),
            ("R58", ListedState::Unauthorized),
            ("device-lab", ListedState::Device),
            ("odd", ListedState::Other(String::new())),
            ("192.168.0.9:5555", ListedState::Offline),
            ("Z", ListedState::Other("recovery".to_owned())),
        ];
        assert_eq!(got.len(), want.len(), "one odd line must not lose the others: {got:?}");
        for (got, want) in got.iter().zip(want) {
            assert_eq!(*got, (want.0.to_owned(), want.1), "line of {}", want.0);
        }
        assert_eq!(devices(text)[0].model.as_deref(), Some("Pixel 7"), "the model is shown to the operator");
    }

    #[test]
    fn foregrounds() {
        let rows = [
            ("full", "  mCurrentFocus=Window{1a2 u0 a.b/a.b.act.X}", Some(("a.b", ".act.X"))),
            ("short", "  mCurrentFocus=Window{1a2 u0 a.b/.act.X}", Some(("a.b", ".act.X"))),
            ("other class", "mCurrentFocus=Window{1 u0 a.b/c.d.X}", Some(("a.b", "c.d.X"))),
            ("null", "  mCurrentFocus=null", None),
            ("second display", "mCurrentFocus=null\n mCurrentFocus=Window{1 u0 a/b}", Some(("a", "b"))),
            ("shade", "mCurrentFocus=Window{1 u0 NotificationShade}", Some(("NotificationShade", ""))),
            (
                "anr",
                "mCurrentFocus=Window{1 u0 Application Not Responding: com.xunmeng.pinduoduo}",
                Some(("Application Not Responding: com.xunmeng.pinduoduo", "")),
            ),
            ("no braces", "mCurrentFocus=Window", None),
        ];
        for (name, text, want) in rows {
            let got = current_focus(text).map(|f| (f.package, f.activity));
            assert_eq!(got, want.map(|(p, a)| (p.to_owned(), a.to_owned())), "row {name}");
        }
        let resumed = resumed_activity("    mResumedActivity: ActivityRecord{5 u0 a.b/.C t12}\n");
        assert_eq!(resumed.map(|f| f.activity), Some(".C".to_owned()), "the older name must be read too");
    }

    #[test]
    fn goods_ids() {
        let rows = [
            ("query", "ACTIVITY com.xunmeng.pinduoduo/.a.B\n url=goods.html?goods_id=959747943297&x=1", Some("959747943297")),
            ("escaped json", r#"ACTIVITY com.xunmeng.pinduoduo/.a {\"goods_id\":\"959747943297\"}"#, Some("959747943297")),
            ("json", r#"{"goods_id": 123456}"#, Some("123456")),
            ("short number", "goods_id=12345", None),
            ("other app on top", "ACTIVITY com.xunmeng.pinduoduo/.a goods_id=123456\nACTIVITY com.x/.y\n", None),
            ("first without digits", "goods_id=null goods_id=7654321", Some("7654321")),
            ("none", "ACTIVITY com.xunmeng.pinduoduo/.a", None),
            ("at the end", "goods_id", None),
        ];
        for (name, text, want) in rows {
            assert_eq!(goods_on_top(text).as_deref(), want, "row {name}");
        }
    }

    #[test]
    fn small_answers() {
        assert_eq!(screen_size("Physical size: 1080x2400\nOverride size: 720x1600"), Some((720, 1600)), "override wins");
        assert_eq!(screen_size("Physical size: 1080x2400"), Some((1080, 2400)), "physical alone");
        assert_eq!(screen_size("nonsense"), None, "no size");
        assert_eq!(density("Physical density: 440"), Some(440), "density");
        assert_eq!(density("Physical density: 0"), None, "zero would make every swipe short");
        assert_eq!(version_name("  versionCode=1\n    versionName=7.50.0\n"), Some("7.50.0".to_owned()), "version");
        assert_eq!(version_name("Unable to find package: x"), None, "not installed");
        assert_eq!(text(&[0xB4, 0xED, 0xCE, 0xF3]), "错误", "GBK stderr must be readable");
        assert_eq!(
            accessibility_client("shell 12 1 com.github.uiautomator\n").as_deref(),
            Some("com.github.uiautomator"),
            "the culprit is named"
        );
        let whole =
            [&[0x89, b'P', b'N', b'G', 0x0D, 0x0A, 0x1A, 0x0A][..], b"x", &[0, 0, 0, 0], b"IEND", &[0xAE, 0x42, 0x60, 0x82]].concat();
        assert_eq!(png([&b"[Warning] 2 displays\n"[..], &whole].concat()), Some(whole.clone()), "a warning is cut");
        assert_eq!(png(whole[..whole.len() - 1].to_vec()), None, "a cut picture is no picture");
        let picture = |shade: u8| {
            let mut out = std::io::Cursor::new(Vec::new());
            let pixels = image::RgbImage::from_fn(20, 30, |x, _| image::Rgb([if x == 19 { shade } else { 0 }; 3]));
            pixels.write_to(&mut out, image::ImageFormat::Png).expect("a picture can be encoded");
            out.into_inner()
        };
        assert!(is_black(&picture(0)) && is_black(&picture(8)), "nothing to see");
        assert!(!is_black(&picture(90)), "one bright column is something to see");
        assert!(!is_black(b"no picture"), "what cannot be decoded is not called black");
    }
}
