//! Counts as Pinduoduo writes them: `已拼1.2万+件` is twelve thousand or more.
//!
//! Exact integer arithmetic; a text with two numbers is no count, because nobody can say which one is meant.

use cmautobuy_protocol::pdd_data::Metric;
use serde_json::Map;

use crate::text::{half_width, trimmed};

/// Reads the one number of a text; `近30天` and the like in front do not count. `raw` is the text as shown.
pub fn parse_count(text: &str) -> Option<Metric> {
    let raw = trimmed(text);
    let shown: String = half_width(raw).chars().filter(|c| *c != ' ').collect();
    let body = without_period(&shown);
    let start = body.find(|c: char| c.is_ascii_digit())?;
    let number = &body[start..];
    let digits = number.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.' || *b == b',').count();
    let rest = &number[digits..];
    let (whole, fraction) = split_number(&number[..digits])?;
    let (scale, rest) = match rest.chars().next() {
        Some('万') => (10_000_u64, &rest['万'.len_utf8()..]),
        Some('亿') => (100_000_000, &rest['亿'.len_utf8()..]),
        _ => (1, rest),
    };
    let plus = rest.starts_with('+');
    if rest.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if scale == 1 && !fraction.is_empty() {
        return None;
    }
    let mut value = whole.checked_mul(scale)?;
    let mut unit = scale;
    for digit in fraction.bytes() {
        unit /= 10;
        value = value.checked_add(u64::from(digit - b'0') * unit)?;
    }
    Some(Metric { value, raw: raw.to_owned(), approximate: plus || scale > 1, extra: Map::new() })
}

/// `4,949` and `57.8` into whole part and fraction digits.
fn split_number(text: &str) -> Option<(u64, &str)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.contains(['.', ',']) || (text.contains('.') && fraction.is_empty()) {
        return None;
    }
    let groups: Vec<&str> = whole.split(',').collect();
    let grouped_well = groups.len() == 1 || (groups[0].len() <= 3 && groups[1..].iter().all(|group| group.len() == 3));
    if groups.iter().any(|group| group.is_empty()) || !grouped_well {
        return None;
    }
    Some((groups.concat().parse().ok()?, fraction))
}

/// Drops a leading `近30天`, whose number is a period.
fn without_period(text: &str) -> &str {
    text.strip_prefix('近')
        .map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()))
        .and_then(|rest| ["天", "日", "个月", "月"].iter().find_map(|unit| rest.strip_prefix(unit)))
        .unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::parse_count;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    #[test]
    fn counts() {
        let rows = [
            ("已拼1.2万+件", Some((12_000, true))),
            ("已拼57.8万+", Some((578_000, true))),
            ("900万+", Some((9_000_000, true))),
            ("3668.1万+", Some((36_681_000, true))),
            ("总售1.5亿件", Some((150_000_000, true))),
            ("商品评价(4,949)", Some((4_949, false))),
            ("商品评价（2.3万+）", Some((23_000, true))),
            ("已拼8500件", Some((8_500, false))),
            ("350人已拼", Some((350, false))),
            ("2356条评价", Some((2_356, false))),
            ("近30天已拼1.8万件", Some((18_000, true))),
            ("1.23456万", Some((12_345, true))),
            ("已拼1,060件", Some((1_060, false))),
            ("已拼1,06件", None),
            ("已拼44件最后6件", None),
            ("好评率98%，3027条", None),
            ("12.5件", None),
            ("1.2.3万", None),
            ("99999999999999999999亿", None),
            ("已拼件", None),
            ("", None),
        ];
        for (text, want) in rows {
            let got = parse_count(text).map(|m| (m.value, m.approximate));
            assert_eq!(got, want, "the count of `{text}`");
        }
        assert_eq!(parse_count(" 已拼1.2万+件\n").map(|m| m.raw).as_deref(), Some("已拼1.2万+件"), "raw is the text as shown");
    }

    proptest! {
        #[test]
        fn exact_counts_read_back(value in 0_u64..=u64::MAX) {
            prop_assert_eq!(parse_count(&format!("已拼{value}件")).map(|m| m.value), Some(value), "no rounding");
        }

        #[test]
        fn tenths_of_ten_thousand_are_exact(tenths in 0_u64..1_000_000) {
            let text = format!("已拼{}.{}万+件", tenths / 10, tenths % 10);
            prop_assert_eq!(parse_count(&text).map(|m| m.value), Some(tenths * 1_000), "1.2万 is 12000: {}", text);
        }

        #[test]
        fn no_text_panics(text in any::<String>(), more in "[0-9.,万亿+近天已拼件]{0,40}") {
            let _ = parse_count(&text);
            let _ = parse_count(&more);
        }
    }
}
