//! Which documents may be stored and sent (03 §8-§9, D3, D8). The server answers a refusal as 422, which is permanent, so both the rule and
//! its edge are rows here.

mod samples;

use std::collections::BTreeSet;

use cmautobuy_protocol::ExecutionMode;
use cmautobuy_protocol::pdd_data::{MAX_SKUS, PddData, PddFault, Purchase, Requested};
use cmautobuy_protocol::result::{Disposition, EventType, Failure, ResultBody, ResultFault};
use samples::{collected, options, towel};
use serde_json::Map;

type Change<D> = fn(&mut D);
/// Whether each SKU can be bought, and its price in fen.
type Offers = [(bool, Option<u64>)];

/// One word for each kind of fault; the match has no default, so a new fault needs a word and [`KINDS`] needs one more row.
fn kind(fault: &PddFault) -> &'static str {
    match fault {
        PddFault::SchemaVersion(_) => "schema_version",
        PddFault::GoodsId(_) => "goods_id",
        PddFault::TitleEmpty => "title_empty",
        PddFault::DimensionTwice(_) => "dimension_twice",
        PddFault::ValueTwice { .. } => "value_twice",
        PddFault::TooManySkus => "too_many_skus",
        PddFault::OptionUnknown { .. } => "option_unknown",
        PddFault::SkuTwice { .. } => "sku_twice",
        PddFault::MissingPriceHalfSet { .. } => "missing_price_half_set",
        PddFault::PriceUnobserved { .. } => "price_unobserved",
        PddFault::ObservedElsewhere { .. } => "observed_elsewhere",
        PddFault::Currency { .. } => "currency",
        PddFault::Paid => "paid",
        PddFault::DryRunSubmitted => "dry_run_submitted",
        PddFault::TextTooLong => "text_too_long",
    }
}
const KINDS: usize = 15;

fn bought(mode: ExecutionMode) -> Purchase {
    Purchase {
        mode,
        requested: Requested { options: options(&[("color", "雾蓝")]), quantity: 1, max_price_cent: None, extra: Map::new() },
        confirmed: None,
        confirmation_reached: false,
        order_submitted: false,
        payment_attempted: false,
        payment_status: None,
        order_no: None,
        ordered_at: None,
        ordered_at_raw: None,
        match_status: "not_submitted".to_owned(),
        extra: Map::new(),
    }
}

fn without_dimensions(data: &mut PddData) {
    data.dimensions.clear();
    data.skus.truncate(1);
    data.skus[0].options.clear();
    data.skus[0].price_observed_at.clear();
}

#[test]
fn documents_that_are_refused() {
    let rows: Vec<(&str, Change<PddData>, PddFault)> = vec![
        ("a version this build does not know", |d| d.schema_version = 2, PddFault::SchemaVersion(2)),
        ("letters for a goods id", |d| d.goods.goods_id = "7a".to_owned(), PddFault::GoodsId("7a".to_owned())),
        ("no goods id", |d| d.goods.goods_id.clear(), PddFault::GoodsId(String::new())),
        ("no title", |d| d.goods.title.clear(), PddFault::TitleEmpty),
        ("a title of spaces", |d| d.goods.title = " \u{3000}\n".to_owned(), PddFault::TitleEmpty),
        ("a dimension twice", |d| d.dimensions[1].key = "color".to_owned(), PddFault::DimensionTwice("color".to_owned())),
        (
            "a value twice",
            |d| d.dimensions[0].values[1].text = "雾蓝".to_owned(),
            PddFault::ValueTwice { dimension: "color".to_owned(), value: "雾蓝".to_owned() },
        ),
        ("more SKUs than a document holds", |d| d.skus = vec![d.skus[0].clone(); MAX_SKUS + 1], PddFault::TooManySkus),
        (
            "an option the page does not offer",
            |d| d.skus[1].options = options(&[("color", "雾蓝"), ("size", "XL")]),
            PddFault::OptionUnknown { index: 1, key: "size".to_owned(), value: "XL".to_owned() },
        ),
        (
            "an option of a dimension the page does not have",
            |d| d.skus[0].options = options(&[("taste", "雾蓝")]),
            PddFault::OptionUnknown { index: 0, key: "taste".to_owned(), value: "雾蓝".to_owned() },
        ),
        ("a combination twice", |d| d.skus[3] = d.skus[2].clone(), PddFault::SkuTwice { index: 3 }),
        ("no price, but a list price", |d| d.skus[2].list_price_cent = Some(1), PddFault::MissingPriceHalfSet { index: 2 }),
        ("no price, but its text", |d| d.skus[2].raw_price = Some("¥1".to_owned()), PddFault::MissingPriceHalfSet { index: 2 }),
        (
            "no price, but where it was seen",
            |d| d.skus[2].price_observed_at = options(&[("color", "米白")]),
            PddFault::MissingPriceHalfSet { index: 2 },
        ),
        ("a price nobody says where it was seen", |d| d.skus[0].price_observed_at.clear(), PddFault::PriceUnobserved { index: 0 }),
        (
            "a price seen with another colour selected",
            |d| d.skus[0].price_observed_at = options(&[("color", "米白")]),
            PddFault::ObservedElsewhere { index: 0, key: "color".to_owned() },
        ),
        ("another currency", |d| d.skus[0].currency = "SGD".to_owned(), PddFault::Currency { index: 0, currency: "SGD".to_owned() }),
        ("a payment", |d| d.purchase = Some(Purchase { payment_attempted: true, ..bought(ExecutionMode::Live) }), PddFault::Paid),
        (
            "a dry run that ordered",
            |d| d.purchase = Some(Purchase { order_submitted: true, ..bought(ExecutionMode::DryRun) }),
            PddFault::DryRunSubmitted,
        ),
        (
            "a dry run with a matched order",
            |d| d.purchase = Some(Purchase { match_status: "matched".to_owned(), ..bought(ExecutionMode::DryRun) }),
            PddFault::DryRunSubmitted,
        ),
        ("an endless title", |d| d.goods.title = "长".repeat(4_001), PddFault::TextTooLong),
        ("an endless link", |d| d.goods.url = "u".repeat(4_001), PddFault::TextTooLong),
        ("an endless shop name", |d| d.shop.name = Some("n".repeat(4_001)), PddFault::TextTooLong),
        ("an endless option", |d| d.dimensions[0].values[0].text = "v".repeat(4_001), PddFault::TextTooLong),
    ];
    let mut seen = BTreeSet::new();
    for (why, change, expected) in rows {
        let mut data = towel();
        change(&mut data);
        seen.insert(kind(&expected));
        assert_eq!(data.validate(), Err(expected), "{why}");
    }
    assert_eq!(seen.len(), KINDS, "every kind of fault has a row; seen: {seen:?}");
}

#[test]
fn documents_that_are_accepted() {
    let rows: Vec<(&str, Change<PddData>)> = vec![
        ("as collected", |_| {}),
        ("a shop the page did not show", |d| d.shop.name = None),
        ("no SKU could be read", |d| d.skus.clear()),
        ("one SKU without any choice needs no observation", without_dimensions),
        ("one SKU without any choice and without a price", |d| {
            without_dimensions(d);
            let sku = &mut d.skus[0];
            (sku.price_cent, sku.list_price_cent, sku.raw_price) = (None, None, None);
        }),
        ("a price seen with every option selected", |d| d.skus[0].price_observed_at = d.skus[0].options.clone()),
        ("a sold-out SKU whose price was seen", |d| d.skus[0].available = false),
        ("the longest title", |d| d.goods.title = "长".repeat(4_000)),
        ("a dry run that stopped before ordering", |d| d.purchase = Some(bought(ExecutionMode::DryRun))),
        ("a live order without a payment", |d| {
            d.purchase = Some(Purchase { order_submitted: true, match_status: "matched".to_owned(), ..bought(ExecutionMode::Live) });
        }),
    ];
    for (why, change) in rows {
        let mut data = towel();
        change(&mut data);
        assert_eq!(data.validate(), Ok(()), "{why}");
    }
}

#[test]
fn a_full_document_is_accepted() {
    let mut data = towel();
    let size = |n: usize| format!("{n}cm");
    data.dimensions[1].values =
        (0..MAX_SKUS).map(|n| cmautobuy_protocol::pdd_data::DimensionValue { text: size(n), available: true, extra: Map::new() }).collect();
    let first = data.skus[0].clone();
    data.skus = (0..MAX_SKUS)
        .map(|n| {
            let mut sku = first.clone();
            sku.options.insert("size".to_owned(), size(n));
            sku
        })
        .collect();
    assert_eq!(data.validate(), Ok(()), "exactly {MAX_SKUS} SKUs are allowed");
    let bytes = serde_json::to_vec(&data).expect("pdd_data serialises").len();
    assert!(bytes < cmautobuy_protocol::MAX_RESULT_BYTES, "a full document of ordinary texts fits a request: {bytes} bytes");
}

#[test]
fn the_summary_price_prefers_what_can_be_bought() {
    let priced = |available: bool, cent: Option<u64>| {
        let mut sku = towel().skus[0].clone();
        (sku.available, sku.price_cent) = (available, cent);
        sku
    };
    let rows: [(&str, &Offers, Option<u64>); 5] = [
        ("no SKU", &[], None),
        ("no price", &[(true, None), (false, None)], None),
        ("the lowest available", &[(true, Some(30)), (true, Some(20)), (false, Some(10))], Some(20)),
        ("only sold-out prices", &[(true, None), (false, Some(10)), (false, Some(9))], Some(9)),
        ("zero is a price", &[(true, Some(0)), (true, Some(20))], Some(0)),
    ];
    for (why, skus, expected) in rows {
        let mut data = towel();
        data.skus = skus.iter().map(|(available, cent)| priced(*available, *cent)).collect();
        assert_eq!(data.summary_price_cent(), expected, "{why}");
    }
}

#[test]
fn results_that_are_refused() {
    let rows: Vec<(&str, Change<ResultBody>, ResultFault)> = vec![
        ("a version this build does not know", |b| b.schema_version = 0, ResultFault::SchemaVersion(0)),
        ("attempts count from one", |b| b.attempt_no = 0, ResultFault::AttemptNo),
        ("invalid data", |b| b.pdd_data.as_mut().expect("a collect result").goods.title.clear(), PddFault::TitleEmpty.into()),
        (
            "a failure without a code",
            |b| {
                *b = failure(Disposition::Failed);
                b.failure = Some(Failure { code: String::new(), message: "?".to_owned() });
            },
            ResultFault::NeedsFailure,
        ),
        (
            "what comes along with a failure is checked as well: a payment can not hide there (D10)",
            |b| {
                b.event_type = EventType::TaskFailure;
                b.disposition = Disposition::ManualReview;
                b.failure = Some(Failure { code: "CAPTCHA".to_owned(), message: "?".to_owned() });
                b.pdd_data.as_mut().expect("the sample has data").goods.title = " ".to_owned();
            },
            ResultFault::Data(PddFault::TitleEmpty),
        ),
    ];
    for (why, change, expected) in rows {
        let mut body = collected();
        change(&mut body);
        assert_eq!(body.validate(), Err(expected), "{why}");
    }
}

fn failure(disposition: Disposition) -> ResultBody {
    let failure = Some(Failure { code: "GOODS_REMOVED".to_owned(), message: "gone".to_owned() });
    ResultBody { event_type: EventType::TaskFailure, disposition, pdd_data: None, failure, ..collected() }
}

/// Every event with every disposition, with and without data and failure: 48 rows, the rule written once more in words.
#[test]
fn every_event_and_disposition() {
    for &event in EventType::ALL {
        for &disposition in Disposition::ALL {
            for (data, failed) in [(true, false), (false, true), (true, true), (false, false)] {
                let body = ResultBody {
                    event_type: event,
                    disposition,
                    pdd_data: data.then(towel),
                    failure: failed.then(|| Failure { code: "X".to_owned(), message: String::new() }),
                    ..collected()
                };
                let succeeded = disposition == Disposition::Succeeded;
                let expected = match event {
                    EventType::CollectResult | EventType::PurchaseResult => match (succeeded, data, failed) {
                        // The sample is a collected page: as a purchase result it lacks what was bought (03 §8.2).
                        (true, true, false) if event == EventType::PurchaseResult => Err(ResultFault::NeedsPurchase),
                        (true, true, false) => Ok(()),
                        (true, _, _) => Err(ResultFault::NeedsData(event)),
                        (false, _, _) => Err(ResultFault::Disposition { event, disposition }),
                    },
                    EventType::TaskFailure if succeeded => Err(ResultFault::Disposition { event, disposition }),
                    EventType::TaskFailure if failed => Ok(()),
                    EventType::TaskFailure => Err(ResultFault::NeedsFailure),
                };
                assert_eq!(body.validate(), expected, "{event} {disposition}, data: {data}, failure: {failed}");
            }
        }
    }
}

/// D3: a result from CLAIMED has no execution yet, and that alone is no fault.
#[test]
fn a_result_from_claimed_needs_no_execution() {
    let body = ResultBody { execution_id: None, ..failure(Disposition::Failed) };
    assert_eq!(body.validate(), Ok(()), "bad task data is reported before anything ran");
}
