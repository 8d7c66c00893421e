//! From what was seen to the document that is stored and sent (03 §8.1).
//!
//! It invents nothing: a price goes only to combinations of the value that was really chosen when it was seen.

use std::collections::BTreeMap;

use cmautobuy_protocol::WireTime;
use cmautobuy_protocol::goods::GoodsId;
use cmautobuy_protocol::pdd_data::{
    Dimension, DimensionValue, Goods, MAX_SKUS, Metrics, PddData, PddFault, PriceGranularity, SCHEMA_VERSION, Shop, Sku,
    Source as WireSource,
};
use serde_json::Map;

use crate::error::CollectError;
use crate::goods_page::GoodsPage;
use crate::rules::RulePack;
use crate::sheet_walk::{Choice, Choices, Quest, Seen, by_patterns};

/// Where the data comes from.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) client_id: String,
    pub(crate) device_address: String,
    pub(crate) pdd_package: String,
}

pub(crate) fn build(
    goods_id: &GoodsId,
    page: GoodsPage,
    choices: Choices,
    source: Source,
    captured_at: WireTime,
    rules: &RulePack,
) -> Result<PddData, CollectError> {
    let keys = keys(&choices, rules);
    let skus = skus(&choices, &keys)?;
    let dimensions = choices
        .dimensions
        .iter()
        .zip(&keys)
        .map(|(choice, key)| Dimension {
            key: key.clone(),
            name: if choice.name.is_empty() { key.clone() } else { choice.name.clone() },
            values: choice
                .values
                .iter()
                .map(|value| DimensionValue { text: value.text.clone(), available: value.available.unwrap_or(true), extra: Map::new() })
                .collect(),
            extra: Map::new(),
        })
        .collect();
    let data = PddData {
        schema_version: SCHEMA_VERSION,
        goods: Goods {
            goods_id: goods_id.to_string(),
            url: goods_id.url(),
            title: page.title.ok_or(CollectError::PageUnreadable { what: "the title" })?,
            extra: Map::new(),
        },
        shop: Shop { name: page.shop, extra: Map::new() },
        metrics: Metrics { sales: page.sales, reviews: page.reviews, extra: Map::new() },
        dimensions,
        skus,
        price_granularity: PriceGranularity::Color,
        purchase: None,
        captured_at,
        source: WireSource {
            client_id: source.client_id,
            device_address: source.device_address,
            pdd_package: source.pdd_package,
            extra: Map::new(),
        },
        artifacts: Vec::new(),
        extra: Map::new(),
    };
    data.validate().map_err(|source| CollectError::Invalid { source })?;
    Ok(data)
}

/// `color`, `size`, and `option_1` onward for the rest.
fn keys(choices: &Choices, rules: &RulePack) -> Vec<String> {
    let color = choices.color(rules);
    let size_names = |skip: Option<usize>| {
        rules.sheet.size_names.iter().find_map(|pattern| {
            choices.dimensions.iter().enumerate().position(|(at, one)| Some(at) != skip && pattern.is_match(&crate::text::fold(&one.name)))
        })
    };
    let size = if color.is_none() { by_patterns(&choices.dimensions, &rules.sheet.size_names) } else { size_names(color) };
    let mut others = 0;
    (0..choices.dimensions.len())
        .map(|at| {
            if Some(at) == color {
                "color".to_owned()
            } else if Some(at) == size {
                "size".to_owned()
            } else {
                others += 1;
                format!("option_{others}")
            }
        })
        .collect()
}

fn skus(choices: &Choices, keys: &[String]) -> Result<Vec<Sku>, CollectError> {
    let count = choices.dimensions.iter().try_fold(1_usize, |all, one| all.checked_mul(one.values.len()));
    if count.is_none_or(|count| count > MAX_SKUS) {
        return Err(CollectError::Invalid { source: PddFault::TooManySkus });
    }
    let mut rows: Vec<Vec<usize>> = vec![Vec::new()];
    for choice in &choices.dimensions {
        rows = rows
            .into_iter()
            .flat_map(|row| {
                (0..choice.values.len()).map(move |at| {
                    let mut longer = row.clone();
                    longer.push(at);
                    longer
                })
            })
            .collect();
    }
    Ok(rows.iter().map(|row| sku(choices, keys, row)).collect())
}

fn sku(choices: &Choices, keys: &[String], row: &[usize]) -> Sku {
    let picked = || choices.dimensions.iter().zip(keys).zip(row).map(|((choice, key), at)| (choice, key, &choice.values[*at]));
    let options: BTreeMap<String, String> = picked().map(|(_, key, value)| (key.clone(), value.text.clone())).collect();
    let available = picked().all(|(_, _, value)| value.available.unwrap_or(true));
    let (seen, observed) = match choices.priced {
        None => (choices.plain.clone(), BTreeMap::new()),
        Some(priced) => match priced_value(&choices.dimensions[priced], row[priced]) {
            Some(seen) => {
                let value = &choices.dimensions[priced].values[row[priced]];
                (Some(seen), BTreeMap::from([(keys[priced].clone(), value.text.clone())]))
            }
            None => (None, BTreeMap::new()),
        },
    };
    let list = seen.as_ref().map(|seen| seen.list.as_ref().unwrap_or(&seen.price).cent);
    Sku {
        options,
        price_cent: seen.as_ref().map(|seen| seen.price.cent),
        list_price_cent: list,
        price_observed_at: observed,
        currency: "CNY".to_owned(),
        available,
        raw_price: seen.map(|seen| seen.price.raw),
        extra: Map::new(),
    }
}

fn priced_value(choice: &Choice, at: usize) -> Option<Seen> {
    match &choice.values[at].price {
        Quest::Found(seen) => Some(seen.clone()),
        Quest::Open { .. } | Quest::Refused | Quest::Blank | Quest::GivenUp => None,
    }
}
