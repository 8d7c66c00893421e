//! Documents more than one test file needs. Goods, shop and numbers are invented.

use std::collections::BTreeMap;

use cmautobuy_protocol::WireTime;
use cmautobuy_protocol::pdd_data::{
    ArtifactRef, Dimension, DimensionValue, Goods, Metric, Metrics, PddData, PriceGranularity, SCHEMA_VERSION, Shop, Sku, Source,
};
use cmautobuy_protocol::result::{Disposition, EventType, ResultBody};
use serde_json::Map;

/// Reads an id, a time or a token that is written out in a test.
pub(crate) fn p<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().unwrap_or_else(|fault| panic!("`{text}` in a sample must parse: {fault:?}"))
}

pub(crate) fn at(text: &str) -> WireTime {
    p(&format!("2026-12-01T{text}Z"))
}

pub(crate) fn options(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// Two colours by two sizes; the second colour is sold out and has no price.
pub(crate) fn towel() -> PddData {
    let value = |text: &str, available| DimensionValue { text: text.to_owned(), available, extra: Map::new() };
    let sku = |color: &str, size: &str, priced: bool| Sku {
        options: options(&[("color", color), ("size", size)]),
        price_cent: priced.then_some(3990),
        list_price_cent: priced.then_some(4590),
        price_observed_at: if priced { options(&[("color", color)]) } else { BTreeMap::new() },
        currency: "CNY".to_owned(),
        available: priced,
        raw_price: priced.then(|| "券后¥39.90".to_owned()),
        extra: Map::new(),
    };
    PddData {
        schema_version: SCHEMA_VERSION,
        goods: Goods {
            goods_id: "600000000001".to_owned(),
            url: "https://mobile.yangkeduo.com/goods.html?goods_id=600000000001".to_owned(),
            title: "样品 加厚毛巾 \"两条装\"".to_owned(),
            extra: Map::new(),
        },
        shop: Shop { name: Some("样品家纺店".to_owned()), extra: Map::new() },
        metrics: Metrics {
            sales: Some(Metric { value: 12_000, raw: "已拼1.2万+件".to_owned(), approximate: true, extra: Map::new() }),
            reviews: None,
            extra: Map::new(),
        },
        dimensions: vec![
            Dimension {
                key: "color".to_owned(),
                name: "颜色分类".to_owned(),
                values: vec![value("雾蓝", true), value("米白", false)],
                extra: Map::new(),
            },
            Dimension {
                key: "size".to_owned(),
                name: "尺寸".to_owned(),
                values: vec![value("34x74cm", true), value("70x140cm", true)],
                extra: Map::new(),
            },
        ],
        skus: vec![
            sku("雾蓝", "34x74cm", true),
            sku("雾蓝", "70x140cm", true),
            sku("米白", "34x74cm", false),
            sku("米白", "70x140cm", false),
        ],
        price_granularity: PriceGranularity::Color,
        purchase: None,
        captured_at: at("08:00:41.250"),
        source: Source {
            client_id: "018f3c2a-0000-7000-8000-00000000d001".to_owned(),
            device_address: "127.0.0.1:15555".to_owned(),
            pdd_package: "com.xunmeng.pinduoduo".to_owned(),
            extra: Map::new(),
        },
        artifacts: vec![ArtifactRef {
            kind: "screenshot".to_owned(),
            path: "2026-12-01/018f3c2a-0000-7000-8000-0000000000a1/1/04-collect_skus.png".to_owned(),
            sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".to_owned(),
            size_bytes: 48_213,
            extra: Map::new(),
        }],
        extra: Map::new(),
    }
}

/// A finished collection of [`towel`].
pub(crate) fn collected() -> ResultBody {
    ResultBody {
        schema_version: ResultBody::SCHEMA_VERSION,
        event_type: EventType::CollectResult,
        disposition: Disposition::Succeeded,
        claim_generation: 3,
        execution_id: Some(p("018f3c2a-0000-7000-8000-0000000000e1")),
        attempt_id: p("018f3c2a-0000-7000-8000-0000000000f1"),
        attempt_no: 1,
        pdd_data: Some(towel()),
        failure: None,
        finished_at: at("08:00:42.000"),
    }
}
