//! The administrator's tasks (D13, D19).

use cmautobuy_protocol::admin::{TaskDetail, TaskPage, TaskSummary, UserCreated};
use cmautobuy_protocol::{ErrorCode, ServerStatus, TaskType};
use serde_json::{Value, json};

use crate::world::{World, collect, key_at};

#[tokio::test]
async fn d19_the_same_create_key_makes_one_task() {
    let world = World::new();
    let admin = world.admin().await;
    let key = key_at(world.now());
    let headers = [("idempotency-key", key.as_str())];
    let first: TaskSummary = world.send("/admin/tasks", Some(&admin.access_token), &headers, &collect(1)).await.ok();
    let again: TaskSummary = world.send("/admin/tasks", Some(&admin.access_token), &headers, &collect(1)).await.ok();
    assert_eq!(first, again, "a create sent twice makes one task");
    assert_eq!((first.status, first.version, first.goods_id.as_str()), (ServerStatus::Pending, 1, "1"), "as it was asked for");
    let other = world.send("/admin/tasks", Some(&admin.access_token), &headers, &collect(2)).await;
    other.is(409, ErrorCode::IdempotencyConflict, "the same key with other goods is another request");
    world.send("/admin/tasks", Some(&admin.access_token), &[], &collect(3)).await.is(422, ErrorCode::Malformed, "a create has a key");
    let page: TaskPage = world.get("/admin/tasks", &admin.access_token).await.ok();
    assert_eq!(page.tasks.len(), 1, "and nothing else was made");
}

#[tokio::test]
async fn d19_an_external_ref_names_the_task_that_has_it() {
    let world = World::new();
    let mut asked = collect(1);
    asked.external_ref = Some("order 7".to_owned());
    let task = world.server.admin().create_task(&asked, None).expect("a task").task_id;
    let refused = world.server.admin().create_task(&asked, None).expect_err("the ref is taken");
    let refusal = refused.refusal().expect("a refusal");
    assert_eq!(refusal.code, ErrorCode::AlreadyExists, "external_ref is unique");
    assert!(refusal.message.contains(&task.to_string()), "the message names the task");
}

#[tokio::test]
async fn what_no_client_could_work_on_is_refused_at_create() {
    let world = World::new();
    let url = |url: &str| {
        let mut asked = collect(1);
        asked.goods_url = url.to_owned();
        asked
    };
    let purchase = |quantity, external_ref: Option<&str>| {
        let mut asked = collect(1);
        asked.task_type = TaskType::Purchase;
        (asked.quantity, asked.external_ref) = (quantity, external_ref.map(str::to_owned));
        asked
    };
    let long = format!("https://x/goods.html?goods_id=1&{}", "a".repeat(3000));
    let mut priced = collect(1);
    priced.price_cent = Some(u64::MAX);
    let rows = [
        ("no goods id", url("https://mobile.yangkeduo.com/goods.html")),
        ("two goods ids", url("https://mobile.yangkeduo.com/goods.html?goods_id=1&goods_id=2")),
        ("no number", url("https://mobile.yangkeduo.com/goods.html?goods_id=abc")),
        ("too long", url(&long)),
        ("purchase without ref", purchase(Some(1), None)),
        ("purchase without quantity", purchase(None, Some("r"))),
        ("quantity 0", purchase(Some(0), Some("r"))),
        ("price beyond the column", priced),
    ];
    for (name, asked) in rows {
        let refused = world.server.admin().create_task(&asked, None).expect_err(name);
        assert_eq!(refused.refusal().map(|r| r.code.clone()), Some(ErrorCode::Malformed), "row `{name}`");
    }
}

#[tokio::test]
async fn the_list_is_newest_first_and_pages_without_gaps() {
    let world = World::new();
    let admin = world.admin().await;
    let mut made: Vec<_> = (0..7).map(|_| world.task()).collect();
    made.reverse();
    let (mut listed, mut cursor) = (Vec::new(), String::new());
    for _ in 0..3 {
        let page: TaskPage = world.get(&format!("/admin/tasks?limit=3{cursor}"), &admin.access_token).await.ok();
        listed.extend(page.tasks.iter().map(|task| task.task_id));
        match page.next {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(listed, made, "every task once, newest first");
    for query in ["limit=0", "limit=201", "limit=x", "cursor=x", "cursor=2026_x"] {
        world.get(&format!("/admin/tasks?{query}"), &admin.access_token).await.is(422, ErrorCode::Malformed, query);
    }
}

#[tokio::test]
async fn users_and_devices_are_made_over_http_too() {
    let world = World::new();
    let admin = world.admin().await;
    let new = json!({"user_name": "Zoe", "password": "long enough", "roles": ["BUYER"]});
    let made: UserCreated = world.send("/admin/users", Some(&admin.access_token), &[], &new).await.ok();
    let twice = json!({"user_name": "zoe", "password": "long enough", "roles": ["BUYER"]});
    world.send("/admin/users", Some(&admin.access_token), &[], &twice).await.is(409, ErrorCode::AlreadyExists, "one name, one user");
    let rows = [
        ("short password", json!({"user_name": "a", "password": "short", "roles": ["BUYER"]})),
        ("no role", json!({"user_name": "a", "password": "long enough", "roles": []})),
        ("no name", json!({"user_name": " ", "password": "long enough", "roles": ["BUYER"]})),
        ("unknown role", json!({"user_name": "a", "password": "long enough", "roles": ["KING"]})),
    ];
    for (name, body) in rows {
        let refused = world.send("/admin/users", Some(&admin.access_token), &[], &body).await.is(422, ErrorCode::Malformed, name);
        assert!(!refused.error.message.contains("long enough"), "row `{name}`: a password is never repeated");
    }
    let device = cmautobuy_protocol::DeviceId::from_uuid(uuid::Uuid::from_bytes([4; 16]));
    let new = json!({"device_id": device, "user_id": made.user_id, "name": "pc"});
    let answer = world.send("/admin/devices", Some(&admin.access_token), &[], &new).await;
    assert_eq!(answer.status.as_u16(), 204, "the device is authorised");
    world.login("zoe", "long enough", Some(device)).await;
    let nobody = json!({"device_id": device, "user_id": device, "name": "pc"});
    world.send("/admin/devices", Some(&admin.access_token), &[], &nobody).await.is(404, ErrorCode::NotFound, "there is no such user");
}

#[tokio::test]
async fn detail_and_cancel_over_http() {
    let world = World::new();
    let admin = world.admin().await;
    let task = world.task();
    let canceled: TaskSummary = world.send(&format!("/admin/tasks/{task}/cancel"), Some(&admin.access_token), &[], &Value::Null).await.ok();
    assert_eq!(canceled.status, ServerStatus::Canceled, "nobody had it");
    let answer = world.get(&format!("/admin/tasks/{task}"), &admin.access_token).await;
    let detail: TaskDetail = answer.ok();
    assert_eq!(detail.events.len(), 2, "created and cancelled");
    for path in ["/admin/tasks/not-an-id", "/admin/tasks/0195f0a0-0000-7000-8000-000000000000"] {
        world.get(path, &admin.access_token).await.is(404, ErrorCode::NotFound, path);
    }
}
