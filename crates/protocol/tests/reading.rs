//! D5.4: a 200 of `claim-next` is always storable. Whatever `task` holds, reading it gives a row plus the names of what is wrong.

use cmautobuy_protocol::goods::BadGoods;
use cmautobuy_protocol::lifecycle::{ClaimedTask, TaskFault};
use cmautobuy_protocol::{ExecutionMode, TaskType};
use proptest::prelude::*;
use serde_json::{Value, json};

fn purchase() -> Value {
    json!({
        "task_type": "purchase", "execution_mode": "live", "goods_id": "7", "goods_url": "https://x/goods.html?goods_id=7",
        "title": "t", "target_color": "c", "target_size": "s", "price_cent": 3990, "max_price_cent": 4200, "quantity": 2,
        "priority": 5, "external_ref": "r", "reference_image": "/i"
    })
}

fn with(field: &str, value: Value) -> Value {
    let mut raw = purchase();
    raw[field] = value;
    raw
}

fn without(field: &str) -> Value {
    let mut raw = purchase();
    raw.as_object_mut().expect("an object").shift_remove(field);
    raw
}

#[test]
fn a_good_task_is_read_whole() {
    let raw = purchase();
    let (task, faults) = ClaimedTask::read(&raw);
    assert_eq!(faults, vec![], "nothing is wrong with it");
    assert_eq!(serde_json::to_value(&task).expect("a task serialises"), raw, "every field arrives");
}

#[test]
fn every_field_of_the_wrong_kind_is_stored_empty_and_named() {
    let texts =
        ["task_type", "execution_mode", "goods_id", "goods_url", "title", "target_color", "target_size", "external_ref", "reference_image"];
    let numbers = ["price_cent", "max_price_cent", "quantity", "priority"];
    let wrong_for_text = [json!(1), json!(true), json!(["a"]), json!({ "a": 1 })];
    let wrong_for_number = [json!("1"), json!(1.5), json!(true), json!([1]), json!({ "a": 1 }), json!(u64::MAX)];
    let rows = texts
        .iter()
        .flat_map(|field| wrong_for_text.iter().map(move |value| (*field, value)))
        .chain(numbers.iter().flat_map(|field| wrong_for_number.iter().map(move |value| (*field, value))));
    for (field, value) in rows {
        let (task, faults) = ClaimedTask::read(&with(field, value.clone()));
        let named = faults.iter().filter(|fault| **fault == TaskFault::Field(field)).count();
        assert_eq!(named, 1, "{field} = {value}: the fault names the field, once");
        let stored = serde_json::to_value(&task).expect("a task serialises");
        let expected = match field {
            "goods_url" => json!(""),
            "priority" => json!(0),
            "task_type" => json!("collect"),
            "execution_mode" => json!("dry_run"),
            _ => Value::Null,
        };
        assert_eq!(stored[field], expected, "{field} = {value}: stored empty, never guessed");
        let title_kept = field == "title" || task.title.as_deref() == Some("t");
        assert!(title_kept, "{field} = {value}: the other fields are kept");
    }
}

#[test]
fn what_each_value_means() {
    let field = |name| vec![TaskFault::Field(name)];
    let rows: Vec<(&str, Value, Vec<TaskFault>)> = vec![
        ("an unknown type", with("task_type", json!("resell")), field("task_type")),
        ("no type", without("task_type"), field("task_type")),
        ("an unknown mode", with("execution_mode", json!("LIVE")), field("execution_mode")),
        ("no mode", without("execution_mode"), field("execution_mode")),
        ("a null title is no title", with("title", Value::Null), vec![]),
        ("no title", without("title"), vec![]),
        ("no colour", without("target_color"), vec![]),
        ("no priority", without("priority"), vec![]),
        ("a negative price", with("price_cent", json!(-1)), field("price_cent")),
        ("a negative limit", with("max_price_cent", json!(-1)), field("max_price_cent")),
        ("a price of zero is a price", with("price_cent", json!(0)), vec![]),
        ("a negative priority is a priority", with("priority", json!(-3)), vec![]),
        ("quantity zero", with("quantity", json!(0)), vec![TaskFault::QuantityZero]),
        ("quantity below zero", with("quantity", json!(-2)), vec![TaskFault::QuantityZero]),
        ("quantity above u32", with("quantity", json!(4_294_967_296_i64)), vec![TaskFault::QuantityZero]),
        ("a purchase without a quantity", without("quantity"), field("quantity")),
        ("no link", without("goods_url"), vec![BadGoods::NoId.into()]),
        ("a link without an id", with("goods_url", json!("https://x/")), vec![BadGoods::NoId.into()]),
        ("a link with two ids", with("goods_url", json!("https://x/?goods_id=7&goods_id=8")), vec![BadGoods::ManyIds(2).into()]),
        ("a link with letters for an id", with("goods_url", json!("https://x/?goods_id=abc")), vec![BadGoods::Id.into()]),
        ("no goods id beside the link", without("goods_id"), vec![]),
        (
            "goods id and link disagree",
            with("goods_id", json!("8")),
            vec![TaskFault::GoodsIdDiffers { given: "8".to_owned(), in_url: "7".to_owned() }],
        ),
    ];
    for (why, raw, expected) in rows {
        let (task, faults) = ClaimedTask::read(&raw);
        assert_eq!(faults, expected, "{why}");
        let is_live = task.execution_mode == ExecutionMode::Live;
        assert_eq!(is_live, raw["execution_mode"] == "live", "{why}: only the exact word `live` is live (D10)");
    }
}

#[test]
fn a_collect_task_needs_no_quantity() {
    let mut raw = without("quantity");
    raw["task_type"] = json!("collect");
    let (task, faults) = ClaimedTask::read(&raw);
    assert_eq!((task.task_type, task.quantity, faults), (TaskType::Collect, None, vec![]), "collecting counts nothing");
}

#[test]
fn a_task_that_is_no_object_is_still_a_row() {
    for raw in [Value::Null, json!("task"), json!(7), json!([]), json!({})] {
        let (task, faults) = ClaimedTask::read(&raw);
        let expected = vec![TaskFault::Field("task_type"), TaskFault::Field("execution_mode"), BadGoods::NoId.into()];
        assert_eq!(faults, expected, "{raw}: what is missing is named");
        assert_eq!(task.execution_mode, ExecutionMode::DryRun, "{raw}: nothing is ever read as live");
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
        Just(json!("live")),
        Just(json!("https://x/?goods_id=7")),
    ];
    leaf.prop_recursive(2, 8, 4, |inner| prop::collection::vec(inner, 0..4).prop_map(Value::from))
}

proptest! {
    #[test]
    fn any_json_is_read_without_a_panic_and_never_raised_to_live(
        values in prop::collection::vec((prop::sample::select(vec![
            "task_type", "execution_mode", "goods_id", "goods_url", "title", "price_cent", "max_price_cent", "quantity", "priority",
        ]), any_json()), 0..9)
    ) {
        let raw: Value = values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<serde_json::Map<_, _>>().into();
        let (task, faults) = ClaimedTask::read(&raw);
        prop_assert_eq!(task.execution_mode == ExecutionMode::Live, raw["execution_mode"] == "live", "only the word itself is live");
        prop_assert!(task.quantity != Some(0), "a quantity of zero is a fault, not a quantity");
        let again = ClaimedTask::read(&serde_json::to_value(&task).expect("a task serialises")).0;
        prop_assert_eq!(again, task, "what was stored reads back the same");
        let mut unique = faults.clone();
        unique.dedup();
        prop_assert_eq!(unique.len(), faults.len(), "each fault is named once");
    }
}
