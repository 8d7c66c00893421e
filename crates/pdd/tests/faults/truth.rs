//! What a careful person would write down from a goods' pages, compared with a document.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use cmautobuy_phone_sim::Goods;
use cmautobuy_protocol::pdd_data::{PddData, Sku};

/// Everything in which `data` is not what the catalogue says; empty when it is the truth.
pub(crate) fn differences(goods: &Goods, data: &PddData) -> Vec<String> {
    let mut found = Differences::default();
    found.same("the document can be stored", &data.validate(), &Ok(()));
    found.same("the goods asked for", &data.goods.goods_id, &goods.goods_id);
    found.same("the title in full", &data.goods.title, &goods.title);
    found.same("the shop beside 进店", &data.shop.name.as_deref(), &Some(goods.shop.as_str()));
    let sales = data.metrics.sales.as_ref().map(|metric| metric.raw.as_str());
    match &goods.glued {
        // A glued price line hides the sales text of some goods; unknown is not zero.
        Some(line) => found.same("sales only from the line itself", &sales.is_none_or(|raw| line.contains(raw)), &true),
        None => found.same("the goods' own sales", &sales, &Some(goods.sales_text.as_str())),
    }
    let reviews = data.metrics.reviews.as_ref().map(|metric| metric.raw.as_str());
    found.same("the goods' own reviews", &reviews, &Some(goods.reviews_text.as_str()));
    choices(goods, data, &mut found);
    if found.0.is_empty() {
        let combinations: usize = goods.dimensions.iter().map(|one| one.values.len()).product();
        found.same("one SKU per combination", &data.skus.len(), &combinations);
        for sku in &data.skus {
            price(goods, data, sku, &mut found);
        }
    }
    found.0
}

#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    fn same<T: PartialEq + Debug>(&mut self, what: &str, got: &T, want: &T) {
        if got != want {
            self.0.push(format!("{what}: got {got:?}, the catalogue says {want:?}"));
        }
    }
}

fn choices(goods: &Goods, data: &PddData, found: &mut Differences) {
    let names = |all: Vec<&String>| all.into_iter().cloned().collect::<Vec<_>>();
    let want = names(goods.dimensions.iter().map(|one| &one.name).collect());
    found.same("the choices in page order", &names(data.dimensions.iter().map(|one| &one.name).collect()), &want);
    for (want, got) in goods.dimensions.iter().zip(&data.dimensions) {
        let want: BTreeMap<&str, bool> = want.values.iter().map(|value| (value.text.as_str(), !value.sold_out)).collect();
        let got: BTreeMap<&str, bool> = got.values.iter().map(|value| (value.text.as_str(), value.available)).collect();
        found.same("every value and whether it can be had", &got, &want);
    }
    let keys: BTreeSet<&str> = data.dimensions.iter().map(|one| one.key.as_str()).collect();
    found.same("keys are distinct", &keys.len(), &data.dimensions.len());
}

fn price(goods: &Goods, data: &PddData, sku: &Sku, found: &mut Differences) {
    let Some(at) = goods.price_dimension() else {
        found.same("the page's own price", &sku.price_cent, &goods.price_of(""));
        return;
    };
    let key = &data.dimensions[at].key;
    let value = &sku.options[key];
    let sold_out = goods.dimensions[at].values.iter().any(|one| &one.text == value && one.sold_out);
    let want = if sold_out { None } else { goods.price_of(value) };
    found.same(&format!("the price of {value}"), &sku.price_cent, &want);
    found.same(&format!("the list price of {value}"), &sku.list_price_cent, &want);
    let observed: Vec<(&str, &str)> = sku.price_observed_at.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let proof = if want.is_some() { vec![(key.as_str(), value.as_str())] } else { Vec::new() };
    found.same("a price names only what was chosen", &observed, &proof);
    let can_be_had = |(want, got): (&cmautobuy_phone_sim::Dimension, &cmautobuy_protocol::pdd_data::Dimension)| {
        want.values.iter().any(|value| value.text == sku.options[&got.key] && !value.sold_out)
    };
    let available = goods.dimensions.iter().zip(&data.dimensions).all(can_be_had);
    found.same(&format!("sold out when any value of {:?} is", sku.options), &sku.available, &available);
}
