//! The many goods behind the named ones, put together from `resources/phone-sim/words.toml` by a seed. Same seed, same goods, prices and
//! stock. It never changes the named goods, which tests compare with.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

use super::{Abandon, Art, ChipLayout, ChipStyle, DimValue, Dimension, DimensionKind, Goods, Offer};
use crate::dice::Dice;

const WORDS: &str = include_str!("../../../../resources/phone-sim/words.toml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    feelings: Vec<String>,
    features: Vec<String>,
    shop_names: Vec<String>,
    shop_kinds: Vec<String>,
    sales: Vec<String>,
    reviews: Vec<String>,
    colors: Vec<String>,
    kinds: Vec<Kind>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kind {
    art: Art,
    nouns: Vec<String>,
    /// Cheapest and dearest.
    price_cent: [u64; 2],
    /// Name, kind, and values divided by `|` or the word `colors`.
    choices: Vec<(String, DimensionKind, String)>,
}

fn words() -> &'static Words {
    static PARSED: OnceLock<Words> = OnceLock::new();
    PARSED.get_or_init(|| toml::from_str(WORDS).expect("the shipped words are tested"))
}

/// `count` goods with ids that none of `taken` has.
pub(super) fn goods(seed: u64, count: usize, taken: &[Goods]) -> Vec<Goods> {
    let mut dice = Dice::new(seed);
    let mut made: Vec<Goods> = Vec::with_capacity(count);
    while made.len() < count {
        let one = one(&mut dice, made.len());
        let known = |all: &[Goods]| all.iter().any(|other| other.goods_id == one.goods_id);
        if !known(taken) && !known(&made) {
            made.push(one);
        }
    }
    made
}

fn word<'w>(dice: &mut Dice, of: &'w [String]) -> &'w str {
    dice.pick(of).map_or("", String::as_str)
}

/// Counts as Pinduoduo prints them.
fn counted(dice: &mut Dice, pattern: &str) -> String {
    let n = dice.between(3, 999).to_string();
    let (k, rest) = (dice.between(1, 9), dice.between(0, 999));
    let w = format!("{}.{}", dice.between(1, 98), dice.between(1, 9));
    pattern.replace("{n}", &n).replace("{k}", &format!("{k},{rest:03}")).replace("{w}", &w)
}

fn one(dice: &mut Dice, at: usize) -> Goods {
    let words = words();
    // Kinds in turn, so that even a short list has all of them.
    let kind = &words.kinds[at % words.kinds.len()];
    let noun = word(dice, &kind.nouns).to_owned();
    let title = format!(
        "{}{noun} {} {} {}",
        word(dice, &words.feelings),
        word(dice, &words.features),
        word(dice, &words.features),
        word(dice, &words.features)
    );
    let base = dice.between(kind.price_cent[0], kind.price_cent[1]);
    let mut dimensions: Vec<Dimension> = kind.choices.iter().map(|choice| dimension(dice, choice)).collect();
    let carrier = dimensions.iter().position(|one| one.kind == DimensionKind::Color).unwrap_or(0);
    let mut prices = BTreeMap::new();
    match dimensions.get_mut(carrier) {
        None => {
            prices.insert(String::new(), Some(base));
        }
        Some(dimension) => {
            for value in &mut dimension.values {
                let step = dice.between(0, base / 2) / 10 * 10;
                prices.insert(value.text.clone(), Some(base + step));
            }
        }
    }
    let dearest = prices.values().flatten().max().copied().unwrap_or(base);
    let images = dimensions.get(carrier).is_some_and(|one| one.values.len() > 2) && dice.percent(70);
    let sales_text = word(dice, &words.sales).to_owned();
    let reviews_text = word(dice, &words.reviews).to_owned();
    let kinds = [Offer::Plain, Offer::Plain, Offer::Range, Offer::Coupon, Offer::Subsidised, Offer::Limited];
    let whole = dice.percent(93);
    Goods {
        goods_id: dice.between(100_000_000_000, 999_999_999_999).to_string(),
        title,
        shop: format!(
            "{}{}{}",
            word(dice, &words.shop_names),
            noun.chars().rev().take(2).collect::<Vec<_>>().iter().rev().collect::<String>(),
            word(dice, &words.shop_kinds)
        ),
        sales_text: counted(dice, &sales_text),
        reviews_text: counted(dice, &reviews_text),
        dimensions,
        single_price_cent: dearest + dice.between(3, 40) * 50,
        prices,
        chip: if images { ChipStyle::Image } else { ChipStyle::Text },
        layout: if dice.percent(35) { ChipLayout::Horizontal } else { ChipLayout::Vertical },
        sold_out: !whole && at.is_multiple_of(2),
        removed: !whole && !at.is_multiple_of(2),
        abandon: [Abandon::Never, Abandon::AfterSelecting, Abandon::Always][dice.below(3) as usize],
        preselected: dice.percent(12),
        price_in_chip: !images && dice.percent(20),
        glued: None,
        balance_cent: if dice.percent(10) { dice.between(1, 99) } else { 0 },
        offer: kinds[dice.below(kinds.len() as u64) as usize],
        video: dice.percent(15),
        extras: dice.percent(25),
        art: kind.art,
    }
}

fn dimension(dice: &mut Dice, (name, kind, values): &(String, DimensionKind, String)) -> Dimension {
    let mut texts: Vec<String> = if values == "colors" {
        let all = &words().colors;
        let (from, many) = (dice.below(all.len() as u64) as usize, dice.between(2, 12) as usize);
        all.iter().cycle().skip(from).take(many).cloned().collect()
    } else {
        values.split('|').map(str::to_owned).collect()
    };
    if texts.len() > 3 && dice.percent(30) {
        texts.truncate(texts.len() - 1);
    }
    let values = texts
        .into_iter()
        .enumerate()
        .map(|(at, text)| {
            let stock = if dice.percent(14) { dice.below(20) } else { dice.between(20, 900) } as u32;
            // The first always can be had, so that every page has something to choose.
            let stock = if at == 0 { stock.max(3) } else { stock };
            DimValue { text, sold_out: stock == 0, badge: (1..20).contains(&stock).then(|| format!("最后{stock}件")) }
        })
        .collect();
    Dimension { name: name.clone(), kind: *kind, values }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_the_same_shop_and_another_makes_another() {
        assert_eq!(goods(3, 200, &[]), goods(3, 200, &[]), "goods, prices and stock come from the seed alone");
        assert_ne!(goods(3, 20, &[]), goods(4, 20, &[]), "and from nothing else");
    }

    #[test]
    fn two_hundred_goods_cover_every_shape() {
        let all = goods(7, 200, &[]);
        type Has = fn(&Goods) -> bool;
        let rows: [(&str, Has); 13] = [
            ("single SKU", |one| one.dimensions.is_empty()),
            ("two choices", |one| one.dimensions.len() == 2),
            ("picture chips", |one| one.chip == ChipStyle::Image),
            ("text chips", |one| one.chip == ChipStyle::Text),
            ("two rows sideways", |one| one.layout == ChipLayout::Horizontal && one.dimensions.iter().any(|it| it.values.len() > 6)),
            ("a sold-out value", |one| one.dimensions.iter().any(|it| it.values.iter().any(|value| value.sold_out))),
            ("sold out", |one| one.sold_out),
            ("removed", |one| one.removed),
            ("paid in part from the balance", |one| one.balance_cent > 0),
            ("a coupon", |one| one.offer == Offer::Coupon),
            ("a subsidy", |one| one.offer == Offer::Subsidised),
            ("a video", |one| one.video),
            ("rows that are no choice", |one| one.extras),
        ];
        for (name, has) in rows {
            assert!(all.iter().any(has), "the shop must have goods with: {name}");
        }
        assert!(all.iter().all(|one| one.dimensions.iter().all(|it| !it.values[0].sold_out)), "the first value can always be had");
    }
}
