//! The goods the simulated shop sells: invented texts, read once from `data/catalogue.toml`.
//! It is the truth tests compare with, so it never knows what a screen currently shows.

mod seeded;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;
use thiserror::Error;

const BUILTIN: &str = include_str!("../data/catalogue.toml");
/// How many goods a seed adds to the named ones.
const SEEDED_GOODS: usize = 200;

/// Every goods the phone can open.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalogue {
    pub goods: Vec<Goods>,
}

/// One goods page. Money is in fen.
#[derive(Debug, Clone, PartialEq)]
pub struct Goods {
    /// Digits only.
    pub goods_id: String,
    pub title: String,
    pub shop: String,
    /// As printed, such as `已拼1.2万+件`.
    pub sales_text: String,
    /// As printed, such as `商品评价(4,949)`.
    pub reviews_text: String,
    pub dimensions: Vec<Dimension>,
    /// What `单独购买` asks.
    pub single_price_cent: u64,
    /// Group price by value of the dimension that carries it ([`Goods::price_dimension`]);
    /// the key is empty when there are no dimensions. `None` = the shop shows no price.
    pub prices: BTreeMap<String, Option<u64>>,
    pub chip: ChipStyle,
    pub layout: ChipLayout,
    /// Whole goods sold out: the link opens the similar-goods page.
    pub sold_out: bool,
    /// Taken off the shelf: the link opens the removed page.
    pub removed: bool,
    /// When leaving the sheet asks `确定放弃吗?`.
    pub abandon: Abandon,
    /// The sheet opens with the first sellable value of every dimension chosen.
    pub preselected: bool,
    /// The chip's text ends in its price, as some builds do.
    pub price_in_chip: bool,
    /// The price line's description, when it is glued together with other counts.
    pub glued: Option<String>,
    /// Paid from the wallet, so the submit amount is below the price.
    pub balance_cent: u64,
    /// How the goods page words its price.
    pub offer: Offer,
    /// A video floats over the goods page until somebody closes it.
    pub video: bool,
    /// The sheet has rows that are no choice: 列表/大图, a bubble, 一次选多款.
    pub extras: bool,
    /// What the picture shows.
    pub art: Art,
}

/// How a price is worded (facts/pdd §2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Offer {
    /// `¥19.9` or `¥19.9起`.
    #[default]
    Plain,
    /// `¥19.9-35.8`.
    Range,
    /// `券后¥19.9` beside `优惠5元`; the sheet's header says 券后 too.
    Coupon,
    /// `补贴价¥19.9` beside the price without the subsidy.
    Subsidised,
    /// `秒杀价¥19.9` beside `即将恢复29.9元`, with a countdown.
    Limited,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dimension {
    pub name: String,
    pub kind: DimensionKind,
    pub values: Vec<DimValue>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DimensionKind {
    Color,
    Size,
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DimValue {
    pub text: String,
    pub sold_out: bool,
    /// Stock hint on the chip, such as `最后3件`.
    pub badge: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChipStyle {
    Image,
    Text,
}

/// How picture chips are laid out when they do not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChipLayout {
    /// All rows below each other; the panel scrolls.
    Vertical,
    /// Two rows scrolling sideways.
    Horizontal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Abandon {
    Never,
    AfterSelecting,
    Always,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Art {
    Shirt,
    Bottle,
    Box,
    Cup,
    Cable,
    Towel,
    Lamp,
    Fruit,
}

#[derive(Debug, Error)]
pub enum CatalogueError {
    #[error("failed to read the catalogue text")]
    Toml(#[source] toml::de::Error),
    #[error("goods {goods_id} says {what}")]
    Goods { goods_id: String, what: String },
}

impl Catalogue {
    /// The shipped catalogue; the first three are the demo goods.
    ///
    /// # Panics
    /// Never in a build whose tests pass: the text is part of the program.
    pub fn builtin() -> Self {
        static PARSED: OnceLock<Catalogue> = OnceLock::new();
        PARSED.get_or_init(|| Self::from_toml(BUILTIN).expect("the shipped catalogue is tested")).clone()
    }

    /// The shipped goods and 200 more by seed: at least 213 goods, the named ones first.
    pub fn seeded(seed: u64) -> Self {
        let mut all = Self::builtin();
        let more = seeded::goods(seed, SEEDED_GOODS, &all.goods);
        all.goods.extend(more);
        all
    }

    /// Reads a catalogue in the format of `data/catalogue.toml`.
    pub fn from_toml(text: &str) -> Result<Self, CatalogueError> {
        let raw: RawCatalogue = toml::from_str(text).map_err(CatalogueError::Toml)?;
        let goods = raw.goods.into_iter().map(RawGoods::into_goods).collect::<Result<Vec<_>, _>>()?;
        for (at, one) in goods.iter().enumerate() {
            if goods[..at].iter().any(|before| before.goods_id == one.goods_id) {
                return Err(CatalogueError::Goods { goods_id: one.goods_id.clone(), what: "its id twice".into() });
            }
        }
        Ok(Self { goods })
    }

    pub fn get(&self, goods_id: &str) -> Option<&Goods> {
        self.goods.iter().find(|goods| goods.goods_id == goods_id)
    }
}

impl Goods {
    /// Index of the dimension whose value decides the price: the colour, else the first.
    pub fn price_dimension(&self) -> Option<usize> {
        if self.dimensions.is_empty() {
            return None;
        }
        Some(self.dimensions.iter().position(|one| one.kind == DimensionKind::Color).unwrap_or(0))
    }

    /// Group price in fen of one value of [`Self::price_dimension`] (empty text when there is none).
    pub fn price_of(&self, value: &str) -> Option<u64> {
        self.prices.get(value).copied().flatten()
    }

    /// Lowest and highest shown group price in fen.
    pub fn price_range(&self) -> Option<(u64, u64)> {
        let shown = || self.prices.values().flatten().copied();
        Some((shown().min()?, shown().max()?))
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCatalogue {
    goods: Vec<RawGoods>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawGoods {
    id: String,
    title: String,
    shop: String,
    sales: String,
    reviews: String,
    single_price_cent: u64,
    /// Price of goods without dimensions, and of values that name none.
    price_cent: Option<u64>,
    chip: ChipStyle,
    #[serde(default = "vertical")]
    layout: ChipLayout,
    #[serde(default)]
    sold_out: bool,
    #[serde(default)]
    removed: bool,
    abandon: Abandon,
    #[serde(default)]
    preselected: bool,
    #[serde(default)]
    price_in_chip: bool,
    glued: Option<String>,
    #[serde(default)]
    balance_cent: u64,
    #[serde(default)]
    offer: Offer,
    #[serde(default)]
    video: bool,
    #[serde(default)]
    extras: bool,
    art: Art,
    #[serde(default)]
    dimensions: Vec<RawDimension>,
}

fn vertical() -> ChipLayout {
    ChipLayout::Vertical
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDimension {
    name: String,
    kind: DimensionKind,
    values: Vec<RawValue>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawValue {
    text: String,
    price_cent: Option<u64>,
    #[serde(default)]
    sold_out: bool,
    #[serde(default)]
    no_price: bool,
    badge: Option<String>,
}

impl RawGoods {
    fn into_goods(self) -> Result<Goods, CatalogueError> {
        let wrong = |what: &str| CatalogueError::Goods { goods_id: self.id.clone(), what: what.to_owned() };
        if self.id.is_empty() || !self.id.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(wrong("an id that is not digits"));
        }
        if self.dimensions.iter().any(|one| one.values.is_empty()) {
            return Err(wrong("a dimension without values"));
        }
        let mut prices = BTreeMap::new();
        let carrier = self.dimensions.iter().find(|one| one.kind == DimensionKind::Color).or(self.dimensions.first());
        match carrier {
            None => {
                prices.insert(String::new(), self.price_cent);
            }
            Some(dimension) => {
                for value in &dimension.values {
                    let price = if value.no_price { None } else { value.price_cent.or(self.price_cent) };
                    if price.is_none() && !value.no_price {
                        return Err(wrong("a value without a price"));
                    }
                    if prices.insert(value.text.clone(), price).is_some() {
                        return Err(wrong("one value twice"));
                    }
                }
            }
        }
        Ok(Goods {
            dimensions: self
                .dimensions
                .into_iter()
                .map(|one| Dimension {
                    name: one.name,
                    kind: one.kind,
                    values: one
                        .values
                        .into_iter()
                        .map(|value| DimValue { text: value.text, sold_out: value.sold_out, badge: value.badge })
                        .collect(),
                })
                .collect(),
            goods_id: self.id,
            title: self.title,
            shop: self.shop,
            sales_text: self.sales,
            reviews_text: self.reviews,
            single_price_cent: self.single_price_cent,
            prices,
            chip: self.chip,
            layout: self.layout,
            sold_out: self.sold_out,
            removed: self.removed,
            abandon: self.abandon,
            preselected: self.preselected,
            price_in_chip: self.price_in_chip,
            glued: self.glued,
            balance_cent: self.balance_cent,
            offer: self.offer,
            video: self.video,
            extras: self.extras,
            art: self.art,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_catalogue_covers_the_shapes_the_demo_needs() {
        let all = Catalogue::builtin();
        assert!(all.goods.len() >= 12, "the demo promises at least twelve goods");
        let kinds = |at: usize| all.goods[at].dimensions.iter().map(|one| one.kind).collect::<Vec<_>>();
        assert_eq!(kinds(0), [DimensionKind::Color, DimensionKind::Size], "the first is colours by sizes");
        assert!(all.goods[0].dimensions[0].values.iter().any(|one| one.sold_out), "with one sold-out chip");
        assert_eq!(kinds(1), [DimensionKind::Color], "the second has one colour dimension");
        assert_eq!(all.goods[1].chip, ChipStyle::Text, "shown as text chips");
        assert!(!kinds(2).contains(&DimensionKind::Color), "the third has no colour dimension");
        assert!(all.goods.iter().any(|one| one.sold_out), "one goods is sold out");
        assert!(all.goods.iter().any(|one| one.removed), "one goods is removed");
        assert!(all.goods.iter().any(|one| one.dimensions.is_empty()), "one goods has a single SKU");
        assert!(
            all.goods.iter().any(|one| one.prices.len() > 1 && one.prices.values().any(Option::is_none)),
            "one goods hides a colour's price"
        );
    }

    #[test]
    fn a_catalogue_that_contradicts_itself_is_refused() {
        let one = |id: &str, extra: &str| {
            format!(
                "[[goods]]\nid='{id}'\ntitle='t'\nshop='s'\nsales='x'\nreviews='r'\nsingle_price_cent=1\nchip='text'\nabandon='never'\nart='box'\n{extra}\n"
            )
        };
        let rows = [
            ("letters in the id", one("12a", "price_cent=1")),
            ("the same id twice", one("1", "price_cent=1") + &one("1", "price_cent=1")),
            ("no values", one("1", "[[goods.dimensions]]\nname='颜色'\nkind='color'\nvalues=[]")),
            ("no price", one("1", "[[goods.dimensions]]\nname='颜色'\nkind='color'\nvalues=[{text='红'}]")),
        ];
        for (name, text) in rows {
            assert!(Catalogue::from_toml(&text).is_err(), "must be refused: {name}");
        }
    }
}
