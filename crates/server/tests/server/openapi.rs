//! The OpenAPI document: committed as served, whole, and browsable without the internet (D13).

use axum::body::Body;
use axum::http::{Request, StatusCode};
use cmautobuy_protocol::account::{Permission, UserKind};
use cmautobuy_protocol::admin::RowOutcome;
use cmautobuy_protocol::lifecycle::ResumeReason;
use cmautobuy_protocol::result::{Disposition, EventType};
use cmautobuy_protocol::{ExecutionMode, ServerStatus, TaskType};
use serde_json::Value;

use crate::world::{World, call};

const COMMITTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");

async fn get(world: &World, path: &str) -> crate::world::Answer {
    call(&world.router, Request::get(path).body(Body::empty()).expect("a request")).await
}

#[tokio::test]
async fn openapi_the_committed_document_is_the_served_one() {
    let served = get(&World::new(), "/openapi.json").await;
    assert_eq!(served.status, StatusCode::OK, "the document is for anybody: it holds no data");
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::write(COMMITTED, &served.text).expect("write the committed document");
    }
    let committed = std::fs::read_to_string(COMMITTED).expect("the committed document");
    assert!(
        committed == served.text,
        "crates/server/openapi.json must be what the server serves; run UPDATE_OPENAPI=1 cargo nextest run -p cmautobuy-server openapi"
    );
}

#[tokio::test]
async fn openapi_every_call_says_how_it_fails_and_who_may_call_it() {
    let served = get(&World::new(), "/openapi.json").await;
    let document: Value = serde_json::from_str(&served.text).expect("the document is JSON");
    let paths = document["paths"].as_object().expect("paths");
    assert!(paths.contains_key("/api/v1/tasks/claim-next"), "paths carry the base, or nobody could call them");
    for (path, item) in paths {
        for (method, operation) in item.as_object().expect("operations") {
            let name = format!("{method} {path}");
            assert!(operation["responses"].get("4XX").is_some(), "{name}: a caller must know the error body");
            assert!(operation["security"].is_array(), "{name}: says whether it needs a login");
            assert!(operation["summary"].is_string(), "{name}: says what it is for");
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                assert!(parameter["schema"].is_object(), "{name}: parameter {parameter} has a shape");
            }
        }
    }
    let text = &served.text;
    for reference in text.split("\"#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(document["components"]["schemas"].get(reference).is_some(), "schema {reference} is named, so it must be there");
    }
}

#[tokio::test]
async fn openapi_words_are_those_of_the_wire_and_orders_take_no_other_field() {
    let served = get(&World::new(), "/openapi.json").await;
    let document: Value = serde_json::from_str(&served.text).expect("the document is JSON");
    let schemas = &document["components"]["schemas"];
    let words = |all: Vec<&'static str>| serde_json::to_value(all).expect("words are JSON");
    let rows = [
        ("ServerStatus", words(ServerStatus::ALL.iter().map(|word| word.as_str()).collect())),
        ("TaskType", words(TaskType::ALL.iter().map(|word| word.as_str()).collect())),
        ("ExecutionMode", words(ExecutionMode::ALL.iter().map(|word| word.as_str()).collect())),
        ("UserKind", words(UserKind::ALL.iter().map(|word| word.as_str()).collect())),
        ("Permission", words(Permission::ALL.iter().map(|word| word.as_str()).collect())),
        ("ResumeReason", words(ResumeReason::ALL.iter().map(|word| word.as_str()).collect())),
        ("Disposition", words(Disposition::ALL.iter().map(|word| word.as_str()).collect())),
        ("EventType", words(EventType::ALL.iter().map(|word| word.as_str()).collect())),
        ("RowOutcome", words(RowOutcome::ALL.iter().map(|word| word.as_str()).collect())),
    ];
    for (name, expected) in rows {
        assert_eq!(schemas[name]["enum"], expected, "{name}: whoever reads the document must send what the server reads");
    }
    for name in ["CreateTask", "CloseTask", "CreateUser", "ChangeUser", "SetPassword", "WarehouseGrant", "AuthorizeDevice", "ChangeDevice"]
    {
        assert_eq!(schemas[name]["additionalProperties"], false, "{name}: an administrator's order with a misspelt field is refused");
    }
    for name in ["LoginRequest", "DeviceHeartbeat", "ClaimRequest", "StartRequest", "ResultBody"] {
        assert!(schemas[name].get("additionalProperties").is_none(), "{name}: a newer client may say more than this server knows");
    }
    let picture = &document["paths"]["/api/v1/admin/tasks/{id}/reference-image"]["put"]["requestBody"]["content"]["image/jpeg"]["schema"];
    assert_eq!(*picture, serde_json::json!({"type": "string", "format": "binary"}), "bytes are bytes, not a list of numbers");
}

#[cfg(feature = "docs-page")]
#[tokio::test]
async fn openapi_the_page_needs_nothing_from_elsewhere() {
    let world = World::new();
    let page = get(&world, "/docs/").await;
    assert_eq!(page.status, StatusCode::OK, "the page is served");
    let policy = page.headers.get("content-security-policy").expect("the page has a policy").to_str().expect("text");
    assert!(policy.contains("default-src 'none'") && policy.contains("script-src 'self';"), "only this server's scripts run: {policy}");
    let links = page.text.split(['"', '\'']).filter(|part| part.ends_with(".js") || part.ends_with(".css"));
    let mut count = 0;
    for link in links {
        assert!(!link.contains("//"), "{link}: a desk without internet must see the page");
        let part = get(&world, &format!("/docs/{}", link.trim_start_matches("./"))).await;
        assert_eq!(part.status, StatusCode::OK, "{link} is served from here");
        count += 1;
    }
    assert!(count >= 3, "the page has its scripts and style");
    assert!(!page.text.contains("<script>"), "a script inside the page would be blocked by the policy");
}
