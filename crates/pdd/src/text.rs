//! Folding texts so that two spellings of one thing compare equal.
//!
//! It never changes what is stored: folded text is only for comparing.

/// Full-width to half-width, one yen sign, no blanks, no `#`, no invisible marks (facts/pdd §3.2).
pub fn fold(text: &str) -> String {
    text.chars().filter_map(fold_char).collect()
}

/// Like [`fold`] but blanks stay, so that numbers beside each other do not merge.
pub(crate) fn half_width(text: &str) -> String {
    text.chars()
        .filter_map(|c| match c {
            '\u{3000}' | '\u{a0}' | '\n' | '\r' | '\t' => Some(' '),
            other => fold_char(other).or_else(|| (other == ' ' || other == '#').then_some(other)),
        })
        .collect()
}

fn fold_char(c: char) -> Option<char> {
    match c {
        '￥' => Some('¥'),
        '#' | '＃' => None,
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0),
        '…' => Some('…'),
        '\u{200b}'..='\u{200f}' | '\u{feff}' | '\u{fe0e}' | '\u{fe0f}' | '\u{202a}'..='\u{202e}' | '\u{2060}' => None,
        blank if blank.is_whitespace() || blank.is_control() => None,
        other => Some(other),
    }
}

/// A label as it is stored: no blanks or invisible marks at its ends.
pub(crate) fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{feff}' | '\u{2060}'))
}

#[cfg(test)]
mod tests {
    use super::fold;

    #[test]
    fn spellings_of_one_thing_fold_together() {
        let rows = [
            ("full width", "（ＡＢ１２）", "(AB12)"),
            ("colon and yen", "已选：￥３９", "已选:¥39"),
            ("hash and blanks", "  #雾蓝 色\u{3000}\n", "雾蓝色"),
            ("invisible marks", "红\u{200b}色\u{feff}", "红色"),
            ("question mark", "确定放弃吗？", "确定放弃吗?"),
        ];
        for (name, given, want) in rows {
            assert_eq!(fold(given), want, "must compare equal: {name}");
            assert_eq!(fold(&fold(given)), want, "folding twice changes nothing: {name}");
        }
    }
}
