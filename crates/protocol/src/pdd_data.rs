//! `pdd_data` version 1 (03 §8): what was seen on Pinduoduo, typed, checked, with fields this version does not know kept (03 §9).
//!
//! This is the one wire document that uses `flatten`: 03 §9 asks that an older program rewriting it drops nothing a newer one wrote.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::WireTime;

pub const SCHEMA_VERSION: u32 = 1;
/// Most SKU rows one document may hold.
pub const MAX_SKUS: usize = 5_000;

type Extra = Map<String, Value>;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PddData {
    pub schema_version: u32,
    pub goods: Goods,
    pub shop: Shop,
    pub metrics: Metrics,
    pub dimensions: Vec<Dimension>,
    pub skus: Vec<Sku>,
    pub price_granularity: PriceGranularity,
    pub purchase: Option<Purchase>,
    pub captured_at: WireTime,
    pub source: Source,
    #[serde(default)]
    pub artifacts: Vec<ArtifactRef>,
    #[serde(flatten)]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub extra: Extra,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Goods {
    pub goods_id: String,
    pub url: String,
    pub title: String,
    #[serde(flatten)]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub extra: Extra,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Shop {
    /// `None` when the page did not show it.
    pub name: Option<String>,
    #[serde(flatten)]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub extra: Extra,
}

/// `None` where the page did not show the figure: unknown is not zero.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Metrics {
    pub sales: Option<Metric>,
    pub reviews: Option<Metric>,
    #[serde(flatten)]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub extra: Extra,
}

/// A count as shown: `已拼1.2万+` is value 12000, approximate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Metric {
    pub value: u64,
    pub raw: String,
    pub approximate: bool,
    #[serde(flatten)]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub extra: Extra,
}

/// A choice such as colour; `key` is `color`, `size` or `option_N`, `name` is what the page calls it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Dimension {
    pub key: String,
    pub name: String,
    pub values: Vec<DimensionValue>,
    #[serde(flatten)]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub extra: Extra,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DimensionValue {
    pub text: String,
    /// From how the chip is shown, not from a tried combination (03 §8.1).
    pub available: bool,
    #[serde(flatten)]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub extra: Extra,
}

/// One combination. Price is what was seen with the options in `price_observed_at` really selected, in fen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Sku {
    pub options: BTreeMap<String, String>,
    pub price_cent: Option<u64>,
    /// The undiscounted price of the same header when it shows two, else equal to `price_cent`.
    pub list_price_cent: Option<u64>,
    pub price_observed_at: BTreeMap<String, String>,
    pub currency: String,
    pub available: bool,
    pub raw_price: Option<String>,
    #[serde(flatten)]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub extra: Extra,
}

/// Which selection a price belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum PriceGranularity {
    /// One price per value of the first priced dimension: the colour, or without one the first dimension (03 §8.1).
    Color,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Source {
    pub client_id: String,
    pub device_address: String,
    pub pdd_package: String,
    #[serde(flatten)]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub extra: Extra,
}

/// Names a file the run left (D12); the file itself stays on the client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ArtifactRef {
    pub kind: String,
    pub path: String,
    pub sha256: String,
    pub size_bytes: u64,
    #[serde(flatten)]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub extra: Extra,
}

/// 03 §8.2.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Purchase {
    pub mode: crate::ExecutionMode,
    pub requested: Requested,
    pub confirmed: Option<Confirmed>,
    pub confirmation_reached: bool,
    pub order_submitted: bool,
    /// Always false: payment is impossible (D10).
    pub payment_attempted: bool,
    pub payment_status: Option<String>,
    pub order_no: Option<String>,
    pub ordered_at: Option<WireTime>,
    pub ordered_at_raw: Option<String>,
    pub match_status: String,
    #[serde(flatten)]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub extra: Extra,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Requested {
    pub options: BTreeMap<String, String>,
    pub quantity: u32,
    pub max_price_cent: Option<u64>,
    #[serde(flatten)]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub extra: Extra,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Confirmed {
    pub options: BTreeMap<String, String>,
    pub quantity: u32,
    pub unit_price_cent: u64,
    pub total_price_cent: u64,
    #[serde(flatten)]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub extra: Extra,
}

/// Why a document may not be stored or sent (03 §9).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PddFault {
    #[error("unknown schema_version {0}")]
    SchemaVersion(u32),
    #[error("goods id `{0}` is not a number")]
    GoodsId(String),
    #[error("title is empty")]
    TitleEmpty,
    #[error("dimension `{0}` appears twice")]
    DimensionTwice(String),
    #[error("dimension `{dimension}` lists `{value}` twice")]
    ValueTwice { dimension: String, value: String },
    #[error("more than {MAX_SKUS} SKUs")]
    TooManySkus,
    #[error("sku {index}: option `{key}`=`{value}` is not in the dimensions")]
    OptionUnknown { index: usize, key: String, value: String },
    #[error("sku {index}: the same combination appears twice")]
    SkuTwice { index: usize },
    #[error("sku {index}: a missing price must leave raw_price, list_price_cent and price_observed_at empty")]
    MissingPriceHalfSet { index: usize },
    #[error("sku {index}: a price must name what was selected when it was seen")]
    PriceUnobserved { index: usize },
    #[error("sku {index}: price_observed_at names `{key}` which is not this sku's option")]
    ObservedElsewhere { index: usize, key: String },
    #[error("sku {index}: currency `{currency}` is not CNY")]
    Currency { index: usize, currency: String },
    #[error("payment_attempted must be false")]
    Paid,
    #[error("a dry run must not have submitted an order")]
    DryRunSubmitted,
    #[error("a text is longer than 4000 characters")]
    TextTooLong,
}

impl PddData {
    /// Checks the rules of 03 §8-§9.
    ///
    /// # Errors
    /// The first [`PddFault`] found.
    pub fn validate(&self) -> Result<(), PddFault> {
        if self.schema_version != SCHEMA_VERSION {
            return Err(PddFault::SchemaVersion(self.schema_version));
        }
        let id = &self.goods.goods_id;
        if id.parse::<crate::goods::GoodsId>().is_err() {
            return Err(PddFault::GoodsId(id.clone()));
        }
        if self.goods.title.trim().is_empty() {
            return Err(PddFault::TitleEmpty);
        }
        let texts = [&self.goods.title, &self.goods.url].into_iter().chain(self.shop.name.as_ref());
        if texts.chain(self.dimensions.iter().flat_map(|d| d.values.iter().map(|v| &v.text))).any(|t| t.chars().count() > 4_000) {
            return Err(PddFault::TextTooLong);
        }
        let mut known: BTreeMap<&str, HashSet<&str>> = BTreeMap::new();
        for dimension in &self.dimensions {
            let mut values = HashSet::new();
            for value in &dimension.values {
                if !values.insert(value.text.as_str()) {
                    return Err(PddFault::ValueTwice { dimension: dimension.key.clone(), value: value.text.clone() });
                }
            }
            if known.insert(&dimension.key, values).is_some() {
                return Err(PddFault::DimensionTwice(dimension.key.clone()));
            }
        }
        if self.skus.len() > MAX_SKUS {
            return Err(PddFault::TooManySkus);
        }
        let mut combinations = HashSet::new();
        for (index, sku) in self.skus.iter().enumerate() {
            sku.validate(index, &known)?;
            if !combinations.insert(&sku.options) {
                return Err(PddFault::SkuTwice { index });
            }
        }
        if let Some(purchase) = &self.purchase {
            if purchase.payment_attempted {
                return Err(PddFault::Paid);
            }
            let is_dry = purchase.mode == crate::ExecutionMode::DryRun;
            if is_dry && (purchase.order_submitted || purchase.match_status != "not_submitted") {
                return Err(PddFault::DryRunSubmitted);
            }
        }
        Ok(())
    }

    /// The list summary price: the lowest price of an available SKU, else of any (03 §3 `price_cent`).
    pub fn summary_price_cent(&self) -> Option<u64> {
        let of = |only_available: bool| self.skus.iter().filter(|s| s.available || !only_available).filter_map(|s| s.price_cent).min();
        of(true).or_else(|| of(false))
    }
}

impl Sku {
    fn validate(&self, index: usize, known: &BTreeMap<&str, HashSet<&str>>) -> Result<(), PddFault> {
        for (key, value) in &self.options {
            if !known.get(key.as_str()).is_some_and(|values| values.contains(value.as_str())) {
                return Err(PddFault::OptionUnknown { index, key: key.clone(), value: value.clone() });
            }
        }
        if self.currency != "CNY" {
            return Err(PddFault::Currency { index, currency: self.currency.clone() });
        }
        for (key, value) in &self.price_observed_at {
            if self.options.get(key) != Some(value) {
                return Err(PddFault::ObservedElsewhere { index, key: key.clone() });
            }
        }
        let rest_empty = self.raw_price.is_none() && self.list_price_cent.is_none() && self.price_observed_at.is_empty();
        match self.price_cent {
            None if !rest_empty => Err(PddFault::MissingPriceHalfSet { index }),
            // A goods page without any dimension has one SKU whose price needs no selection.
            Some(_) if self.price_observed_at.is_empty() && !self.options.is_empty() => Err(PddFault::PriceUnobserved { index }),
            None | Some(_) => Ok(()),
        }
    }
}
