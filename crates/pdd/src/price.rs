//! Prices as Pinduoduo writes them, in whole fen.
//!
//! There is no floating point here, and an amount that may be something else (a range, a discount, digits glued to a count) is never
//! turned into a price: no price is better than a wrong one (03 §8.1).

use crate::rules::PriceWords;
use crate::text::{fold, half_width};

/// Largest amount taken for a price, in fen: ten million yuan.
pub const MAX_CENT: u64 = 1_000_000_000;

/// One amount and how it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Price {
    /// Fen.
    pub cent: u64,
    /// The sign and digits as shown, such as `¥39.90`.
    pub raw: String,
}

/// What a header, button or line says about the price.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderPrice {
    /// No amount that could be a price.
    Missing,
    /// One price, and the undiscounted one when both are shown.
    Single { price: Price, list: Option<Price> },
    /// A range or "from": nothing is chosen yet.
    Open { raw: String },
    /// More amounts than can be told apart.
    Ambiguous { raw: String },
}

impl HeaderPrice {
    /// The single price, when there is one.
    pub fn single(&self) -> Option<&Price> {
        match self {
            HeaderPrice::Single { price, .. } => Some(price),
            HeaderPrice::Missing | HeaderPrice::Open { .. } | HeaderPrice::Ambiguous { .. } => None,
        }
    }
}

/// Reads a text that is one price and nothing else: `¥39.90`, `￥ 1,299`, `69`.
///
/// `None` for anything more: a range, a unit, two amounts.
pub fn parse_price(text: &str) -> Option<Price> {
    let shown = half_width(text);
    let shown = shown.trim();
    let digits = shown.strip_prefix('¥').unwrap_or(shown).trim_start();
    let (cent, used) = amount_at(digits)?;
    (used == digits.len()).then(|| Price { cent, raw: shown.to_owned() })
}

/// Digits at the start of `text` as fen, and how many bytes they take.
fn amount_at(text: &str) -> Option<(u64, usize)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut yuan: u64 = 0;
    let mut group = 0;
    let mut grouped = false;
    while at < bytes.len() {
        match bytes[at] {
            digit @ b'0'..=b'9' => {
                if grouped && group == 3 {
                    return None;
                }
                yuan = yuan.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
                group += 1;
                at += 1;
            }
            // A comma is part of the number only when three digits follow.
            b',' if group > 0 && bytes[at + 1..].iter().take_while(|b| b.is_ascii_digit()).count() == 3 => {
                if (grouped && group != 3) || (!grouped && group > 3) {
                    return None;
                }
                grouped = true;
                group = 0;
                at += 1;
            }
            _ => break,
        }
    }
    if at == 0 {
        return None;
    }
    let mut cent = yuan.checked_mul(100)?;
    if bytes.get(at) == Some(&b'.') {
        let fraction = bytes[at + 1..].iter().take_while(|b| b.is_ascii_digit()).count();
        match fraction {
            0 => {}
            1 => {
                cent = cent.checked_add(u64::from(bytes[at + 1] - b'0') * 10)?;
                at += 2;
            }
            2 => {
                cent = cent.checked_add(u64::from(bytes[at + 1] - b'0') * 10 + u64::from(bytes[at + 2] - b'0'))?;
                at += 3;
            }
            _ => return None,
        }
    }
    (cent <= MAX_CENT).then_some((cent, at))
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Mark {
    Price { price: Price, is_list: bool },
    Open,
}

/// Reads what the header shows from its texts, in reading order.
///
/// Of two prices the one called so, else the higher, is the undiscounted one.
pub fn read_header<'t>(texts: impl IntoIterator<Item = &'t str>, words: &PriceWords) -> HeaderPrice {
    let joined = join_split_amounts(texts);
    let mut prices: Vec<(Price, bool)> = Vec::new();
    let mut open = None;
    for text in &joined {
        for mark in marks(text, words) {
            match mark {
                Mark::Open => open = open.or_else(|| Some(text.trim().to_owned())),
                Mark::Price { price, is_list } => {
                    if !prices.iter().any(|(seen, _)| seen.cent == price.cent) {
                        prices.push((price, is_list));
                    }
                }
            }
        }
    }
    if let Some(raw) = open {
        return HeaderPrice::Open { raw };
    }
    match prices.len() {
        0 => HeaderPrice::Missing,
        1 => HeaderPrice::Single { price: prices.remove(0).0, list: None },
        2 => {
            let (second, second_is_list) = prices.remove(1);
            let (first, first_is_list) = prices.remove(0);
            let first_is_price = match (first_is_list, second_is_list) {
                (false, true) => true,
                (true, false) => false,
                (true, true) | (false, false) => first.cent < second.cent,
            };
            let (price, list) = if first_is_price { (first, second) } else { (second, first) };
            HeaderPrice::Single { price, list: Some(list) }
        }
        _ => HeaderPrice::Ambiguous { raw: joined.join(" ").trim().to_owned() },
    }
}

/// `¥` and `39` and `.90` may be three nodes (facts/pdd §5).
fn join_split_amounts<'t>(texts: impl IntoIterator<Item = &'t str>) -> Vec<String> {
    let mut joined: Vec<String> = Vec::new();
    for text in texts {
        let text = half_width(text);
        let text = text.trim();
        if text.is_empty() {
            continue;
        }
        let is_digits = text.starts_with(|c: char| c.is_ascii_digit());
        let is_fraction = text.len() > 1 && text.starts_with('.') && text[1..].chars().all(|c| c.is_ascii_digit());
        if let Some(last) = joined.last_mut() {
            let whole = last.ends_with(|c: char| c.is_ascii_digit()) && last.contains('¥');
            if (last.ends_with('¥') && is_digits) || (whole && is_fraction) {
                last.push_str(text);
                continue;
            }
        }
        joined.push(text.to_owned());
    }
    joined
}

fn marks(text: &str, words: &PriceWords) -> Vec<Mark> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(offset) = text[from..].find('¥') {
        let sign = from + offset;
        let after_sign = sign + '¥'.len_utf8();
        let rest = &text[after_sign..];
        let blanks = rest.len() - rest.trim_start().len();
        let digits = &rest[blanks..];
        let before = fold(&text[from..sign]);
        // What stands before the sign belongs to this amount only back to the previous one.
        match amount_at(digits) {
            Some((cent, used)) => {
                let end = after_sign + blanks + used;
                let after = fold(&text[end..]);
                let mut next = text[end..].chars();
                let glued = matches!(next.next(), Some('.' | ',')) && next.next().is_some_and(|c| c.is_ascii_digit());
                let is_discount = words.not_price_before.ends(&before) && !words.price_before.ends(&before);
                if words.open_after.starts(&after) || words.open_before.found_in(&before) || glued {
                    if !is_discount {
                        found.push(Mark::Open);
                    }
                } else if !is_discount && cent > 0 {
                    let raw = text[sign..end].to_owned();
                    found.push(Mark::Price { price: Price { cent, raw }, is_list: words.list_before.found_in(&before) });
                }
                from = end;
                // The far end of a range is no price of its own.
                if words.open_after.starts(&after) {
                    let tail = text[end..].trim_start();
                    let skip = tail.char_indices().find(|(_, c)| c.is_ascii_digit()).map_or(0, |(at, _)| at);
                    let start = end + (text[end..].len() - tail.len());
                    if tail[..skip].chars().count() <= 2 {
                        let far = &text[start + skip..];
                        let used = amount_at(far).map_or(0, |(_, used)| used);
                        from = start + skip + used;
                    }
                }
            }
            None => {
                // Digits that are no amount (`¥12.345`): unreadable rather than half read.
                if digits.starts_with(|c: char| c.is_ascii_digit()) {
                    found.push(Mark::Open);
                }
                from = after_sign;
            }
        }
    }
    found
}

/// One way to split a glued line such as `¥4162人付款` into a price and the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GluedSplit {
    pub price: Price,
    pub rest: String,
}

/// Every way the start of a glued line can be read as a price (facts/pdd §2). One split is certain; several need a second source.
pub fn glued_splits(text: &str, words: &PriceWords) -> Vec<GluedSplit> {
    let line = fold(text);
    let Some(body) = line.strip_prefix('¥') else { return Vec::new() };
    let run = body.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
    let mut splits = Vec::new();
    for cut in 1..=run {
        let (number, rest) = (&body[..cut], &body[cut..]);
        let Some((cent, used)) = amount_at(number) else { continue };
        if used != number.len() || cent == 0 || !number.ends_with(|c: char| c.is_ascii_digit()) {
            continue;
        }
        if rest_is_sensible(rest, words) {
            splits.push(GluedSplit { price: Price { cent, raw: format!("¥{number}") }, rest: rest.to_owned() });
        }
    }
    splits
}

fn rest_is_sensible(rest: &str, words: &PriceWords) -> bool {
    if rest.is_empty() {
        return true;
    }
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let tail = &rest[digits..];
    if digits == 0 {
        // `人付款` alone lost its number; `起` and `-` make it a range; `.5` is the fraction of the price itself.
        return !words.glued_units.starts(tail) && !words.open_after.starts(tail) && !tail.starts_with(['.', ',']);
    }
    !rest.starts_with('0') && words.glued_units.starts(tail)
}

#[cfg(test)]
mod tests {
    use super::{HeaderPrice, MAX_CENT, glued_splits, parse_price, read_header};
    use crate::RulePack;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
    use std::sync::LazyLock;

    static PACK: LazyLock<RulePack> = LazyLock::new(RulePack::builtin);

    #[test]
    fn whole_texts() {
        let rows = [
            ("¥39.90", Some(3990)),
            ("￥39.9", Some(3990)),
            ("¥ 69", Some(6900)),
            ("69", Some(6900)),
            ("¥1,299.00", Some(129_900)),
            ("¥12,345,678", None),
            ("¥0.01", Some(1)),
            ("¥０．５", Some(50)),
            ("¥10000000", Some(MAX_CENT)),
            ("¥10000000.01", None),
            ("¥39.9-59.9", None),
            ("¥39起", None),
            ("¥1.2万", None),
            ("¥12.345", None),
            ("¥12,34", None),
            ("¥", None),
            ("", None),
            ("券后¥2.99", None),
            ("¥99999999999999999999999", None),
        ];
        for (text, want) in rows {
            assert_eq!(parse_price(text).map(|p| p.cent), want, "as one whole price: `{text}`");
        }
    }

    #[test]
    fn headers() {
        let single = |cent: u64, list: Option<u64>| Some((cent, list));
        type Row = (&'static str, &'static [&'static str], Option<(u64, Option<u64>)>);
        let rows: [Row; 22] = [
            ("stock hint in front", &["最后11件 ¥69"], single(6900, None)),
            ("nearly gone", &["即将卖完 ¥88"], single(8800, None)),
            ("plain", &["¥39.90"], single(3990, None)),
            ("after coupon", &["券后¥2.99"], single(299, None)),
            ("range", &["¥39.9-59.9"], None),
            ("range with two signs", &["¥39.9~¥59.9"], None),
            ("range with blanks", &["¥39.9 - 59.9"], None),
            ("from", &["¥12.9起"], None),
            ("as low as", &["低至¥5"], None),
            ("two prices in one text", &["补贴价¥19.7 ¥25.9"], single(1970, Some(2590))),
            ("two prices in two texts", &["¥25.9", "券后 ¥19.7"], single(1970, Some(2590))),
            ("the single purchase is the list price", &["拼单价¥19", "单独购买¥25"], single(1900, Some(2500))),
            ("discount is no price", &["¥51", "优惠¥5.05", "已省¥3"], single(5100, None)),
            ("subsidy is no price", &["官方补贴¥6.2", "补贴价¥63.5"], single(6350, None)),
            ("the same twice", &["¥69", "¥69.00"], single(6900, None)),
            ("sign and digits apart", &["¥", "13.59"], single(1359, None)),
            ("three nodes", &["¥", "13", ".59"], single(1359, None)),
            ("three amounts", &["¥1", "¥2", "¥3"], None),
            ("zero", &["¥0"], None),
            ("nothing", &["最后11件", ""], None),
            ("ten thousand", &["¥1.2万"], None),
            ("fraction too long", &["¥12.345"], None),
        ];
        for (name, texts, want) in rows {
            let read = read_header(texts.iter().copied(), PACK.price_words());
            let got = match &read {
                HeaderPrice::Single { price, list } => Some((price.cent, list.as_ref().map(|p| p.cent))),
                HeaderPrice::Missing | HeaderPrice::Open { .. } | HeaderPrice::Ambiguous { .. } => None,
            };
            assert_eq!(got, want, "a header must be read right or not at all: {name}: {read:?}");
        }
    }

    #[test]
    fn the_raw_price_is_what_the_page_shows() {
        let read = read_header(["最后11件 ￥69.0"], PACK.price_words());
        assert_eq!(read.single().map(|p| p.raw.as_str()), Some("¥69.0"), "sign and digits, without the stock hint");
    }

    #[test]
    fn glued_lines() {
        let rows: [(&str, &[u64]); 9] = [
            ("¥70已拼44件最后6件", &[7000]),
            ("¥4162人付款", &[400, 4100, 41600]),
            ("¥221110人付款", &[200, 2200, 22100, 221_100]),
            ("¥772最后2件", &[77200]),
            ("¥232件9.9折", &[200, 2300]),
            ("¥4.99已拼12.3万+件", &[499]),
            ("¥12.82人付款", &[1280]),
            ("¥39.9-59.9", &[]),
            ("已拼44件", &[]),
        ];
        for (text, want) in rows {
            let mut got: Vec<u64> = glued_splits(text, PACK.price_words()).iter().map(|s| s.price.cent).collect();
            got.sort_unstable();
            assert_eq!(got, want, "every reading and no other: `{text}`");
        }
    }

    proptest! {
        #[test]
        fn any_amount_is_read_back(cent in 1..=MAX_CENT) {
            let (yuan, fen) = (cent / 100, cent % 100);
            let rows = [format!("¥{yuan}.{fen:02}"), format!("￥ {yuan}.{fen:02}")];
            for text in rows {
                prop_assert_eq!(parse_price(&text).map(|p| p.cent), Some(cent), "no rounding anywhere: {}", text);
                let read = read_header([text.as_str()], PACK.price_words());
                prop_assert_eq!(read.single().map(|p| p.cent), Some(cent), "the header says the same: {}", text);
            }
            if fen == 0 {
                prop_assert_eq!(parse_price(&format!("¥{yuan}")).map(|p| p.cent), Some(cent), "whole yuan");
            }
        }

        #[test]
        fn the_true_split_is_always_a_candidate(yuan in 1_u64..100_000, people in 1_u64..100_000) {
            let line = format!("¥{yuan}{people}人付款");
                let splits = glued_splits(&line, PACK.price_words());
            prop_assert!(splits.iter().any(|s| s.price.cent == yuan * 100), "{} must offer {}", line, yuan);
        }

        #[test]
        fn no_text_panics(text in any::<String>(), more in "[¥￥0-9.,万起\\-~ 省价#人件]{0,40}") {
                let _ = parse_price(&text);
            for text in [&text, &more] {
                if let Some(price) = read_header([text.as_str()], PACK.price_words()).single() {
                    prop_assert!(price.cent > 0 && price.cent <= MAX_CENT, "a header price is a positive amount within bounds: {:?}", price);
                    prop_assert_eq!(parse_price(&price.raw).map(|p| p.cent), Some(price.cent), "raw and fen agree");
                }
                for split in glued_splits(text, PACK.price_words()) {
                    prop_assert!(split.price.cent > 0 && split.price.cent <= MAX_CENT, "a split is within bounds: {:?}", split);
                }
            }
        }
    }
}
