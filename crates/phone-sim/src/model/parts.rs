//! Pieces several pages share: colours, money, the window frame and the status bar.
//! It knows no page.

use crate::model::{HEIGHT, WIDTH};
use crate::view::{FRAME, LINEAR, PDD_ID, Rgb, View, ghost, rect, view};

pub(crate) const WHITE: Rgb = [255, 255, 255];
pub(crate) const PAGE: Rgb = [244, 244, 244];
pub(crate) const INK: Rgb = [21, 21, 22];
pub(crate) const GREY: Rgb = [140, 140, 142];
pub(crate) const LINE: Rgb = [232, 232, 232];
pub(crate) const RED: Rgb = [224, 46, 36];
pub(crate) const PALE_RED: Rgb = [253, 239, 238];
pub(crate) const CHIP: Rgb = [247, 247, 247];
pub(crate) const FADED: Rgb = [186, 186, 188];
pub(crate) const GREEN: Rgb = [7, 193, 96];

/// `1990` -> `19.9`, `2000` -> `20`, as Pinduoduo prints money.
pub(crate) fn yuan(cent: u64) -> String {
    match (cent / 100, cent % 100) {
        (whole, 0) => whole.to_string(),
        (whole, part) if part % 10 == 0 => format!("{whole}.{}", part / 10),
        (whole, part) => format!("{whole}.{part:02}"),
    }
}

/// The three outermost layouts of every Pinduoduo window. `leaked` is the 分享 label some pages
/// leave on their root.
pub(crate) fn window(leaked: &str, inside: impl IntoIterator<Item = View>) -> View {
    view(FRAME, rect(0, 0, WIDTH, HEIGHT)).desc(leaked).order(0).fill(WHITE).child(
        view(LINEAR, rect(0, 0, WIDTH, HEIGHT)).child(
            view(FRAME, rect(0, 0, WIDTH, HEIGHT))
                .id("android:id/content")
                .child(view(FRAME, rect(0, 0, WIDTH, HEIGHT)).id(PDD_ID).all(inside)),
        ),
    )
}

/// Clock and battery, which belong to another window and so are painted only.
pub(crate) fn status_bar(ink: Rgb) -> View {
    let clock = ghost(rect(54, 28, 240, 80)).shows("09:41", 40.0, ink).bold();
    let mut bar = ghost(rect(0, 0, WIDTH, 95)).child(clock);
    for step in 0..4 {
        let left = 850 + step * 16;
        bar = bar.child(ghost(rect(left, 62 - step * 8, left + 10, 70)).fill(ink).round(2));
    }
    bar.child(ghost(rect(945, 38, 1010, 70)).border(ink, 3).round(8))
        .child(ghost(rect(951, 44, 992, 64)).fill(ink).round(4))
        .child(ghost(rect(1013, 48, 1018, 60)).fill(ink).round(2))
}

/// The gesture pill at the bottom, painted only.
pub(crate) fn gesture_pill() -> View {
    ghost(rect(390, 2372, 690, 2382)).fill([60, 60, 60]).round(5)
}

/// Picture colour of a value, from the colour words in it, else from its bytes.
pub(crate) fn tint(says: &str) -> Rgb {
    const WORDS: [(&str, Rgb); 24] = [
        ("黑", [58, 58, 62]),
        ("白", [236, 234, 228]),
        ("燕麦", [222, 206, 182]),
        ("米", [228, 218, 198]),
        ("咖", [176, 140, 108]),
        ("棕", [150, 98, 62]),
        ("木", [190, 150, 104]),
        ("卡其", [186, 166, 126]),
        ("藏青", [44, 58, 98]),
        ("湖", [92, 164, 176]),
        ("蓝", [126, 156, 188]),
        ("墨绿", [48, 92, 74]),
        ("绿", [148, 188, 150]),
        ("薄荷", [168, 214, 190]),
        ("酒红", [126, 34, 52]),
        ("红", [206, 62, 62]),
        ("粉", [232, 178, 184]),
        ("紫", [158, 136, 186]),
        ("橙", [240, 150, 78]),
        ("橘", [240, 140, 86]),
        ("黄", [240, 212, 112]),
        ("银", [196, 200, 206]),
        ("灰", [138, 142, 148]),
        ("透明", [206, 222, 228]),
    ];
    let named = WORDS.iter().find(|(word, _)| says.contains(word)).map(|(_, color)| *color);
    named.unwrap_or_else(|| {
        let sum = says.bytes().fold(17_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
        [150 + (sum % 80) as u8, 140 + (sum / 80 % 80) as u8, 130 + (sum / 6400 % 80) as u8]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_printed_without_idle_zeros() {
        for (cent, want) in [(1990, "19.9"), (2000, "20"), (4595, "45.95"), (499, "4.99"), (5, "0.05"), (0, "0")] {
            assert_eq!(yuan(cent), want, "{cent} fen");
        }
    }
}
