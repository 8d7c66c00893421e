//! Texts like prices, and texts like nothing, against the price parser: no panic, no wrong price.

#[path = "../../device/tests/fuzz/drive.rs"]
mod drive;

use std::sync::LazyLock;

use cmautobuy_pdd::{RulePack, price};
use proptest::prelude::*;

static PACK: LazyLock<RulePack> = LazyLock::new(RulePack::builtin);

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[¥￥]? ?[0-9]{0,9}(\\.[0-9]{0,3})?[起万+~-]?",
        "(券后|拼单价|单独购买|省|满|低至|补贴价|最后|)[¥￥][0-9,]{1,12}(\\.[0-9]{1,3})?([0-9]{1,4}(人付款|件|折)|已拼[0-9]{1,3}件|)",
        "[¥￥0-9.,万起~ 省价#人件\u{200b}\u{3000}-]{0,40}",
        any::<String>(),
    ]
}

#[test]
fn the_price_parser_never_panics_and_never_invents() {
    let cases = (proptest::collection::vec(text(), 0..5), 1..=price::MAX_CENT);
    let words = PACK.price_words();
    drive::fuzz("price", &cases, |(texts, cent)| {
        for text in &texts {
            if let Some(read) = price::parse_price(text) {
                prop_assert!(read.cent <= price::MAX_CENT, "within bounds: {:?}", read);
                prop_assert_eq!(price::parse_price(&read.raw).map(|again| again.cent), Some(read.cent), "raw says the same: {:?}", read);
                // Without floating point: the digits of the raw text are the digits of the amount.
                let digits: String = read.raw.chars().filter(char::is_ascii_digit).collect();
                let fraction = read.raw.rsplit_once('.').map_or(0, |(_, after)| after.chars().filter(char::is_ascii_digit).count());
                let shown = digits.parse::<u64>().ok().map(|n| n * 10_u64.pow(2 - fraction.min(2) as u32));
                prop_assert_eq!(shown, Some(read.cent), "the amount is the digits shown: {:?}", read);
            }
            for split in price::glued_splits(text, words) {
                prop_assert!((1..=price::MAX_CENT).contains(&split.price.cent), "a split within bounds: {:?}", split);
                prop_assert_eq!(price::parse_price(&split.price.raw).map(|p| p.cent), Some(split.price.cent), "its raw says the same");
            }
        }
        let header = price::read_header(texts.iter().map(String::as_str), words);
        if let price::HeaderPrice::Single { price: one, list } = &header {
            for shown in std::iter::once(one).chain(list) {
                prop_assert!((1..=price::MAX_CENT).contains(&shown.cent), "a header price within bounds: {:?}", shown);
                prop_assert_eq!(price::parse_price(&shown.raw).map(|p| p.cent), Some(shown.cent), "its raw says the same: {:?}", header);
            }
        }
        let plain = format!("¥{}.{:02}", cent / 100, cent % 100);
        prop_assert_eq!(price::parse_price(&plain).map(|p| p.cent), Some(cent), "a plain price is read exactly");
        let ranged = format!("{plain}-{}", cent / 100 + 1);
        prop_assert!(price::read_header([ranged.as_str()], words).single().is_none(), "a range is no single price: {}", ranged);
        Ok(())
    });
}
