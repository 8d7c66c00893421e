//! The door itself: request ids, one error body, limits (D13).

use axum::body::Body;
use axum::http::Request;
use cmautobuy_protocol::ErrorCode;

use crate::world::{World, call, key_at, post, token};

#[tokio::test]
async fn d13_every_answer_repeats_the_request_id_or_makes_one() {
    let world = World::new();
    let id = "0195f0a0-0000-7000-8000-000000000001";
    let given = Request::get("/api/v1/nowhere").header("x-request-id", id).body(Body::empty()).expect("a request");
    let answer = call(&world.router, given).await;
    assert_eq!(answer.headers.get("x-request-id").map(|v| v.as_bytes()), Some(id.as_bytes()), "the id goes back");
    let body = answer.is(404, ErrorCode::NotFound, "there is no such call");
    assert_eq!(body.error.request_id.map(|id| id.to_string()).as_deref(), Some(id), "and is in the error body");
    for header in [None, Some("not an id")] {
        let mut request = Request::get("/healthz");
        if let Some(header) = header {
            request = request.header("x-request-id", header);
        }
        let answer = call(&world.router, request.body(Body::empty()).expect("a request")).await;
        let made = answer.headers.get("x-request-id").and_then(|v| v.to_str().ok()).expect("an id is always there");
        assert!(uuid::Uuid::parse_str(made).is_ok(), "a made id is a UUID, not `{made}`");
    }
}

#[tokio::test]
async fn d13_every_refusal_has_the_one_error_body() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let bearer = format!("Bearer {}", ann.access.reveal());
    let (token, key) = (token(), key_at(world.now()));
    let claim = |body: &str| {
        post("/tasks/claim-next")
            .header("authorization", &bearer)
            .header("x-claim-token", token.reveal())
            .header("idempotency-key", key.as_str())
            .body(Body::from(body.to_owned()))
            .expect("a request")
    };
    let without = |name: &str| {
        let mut request = claim("{}");
        request.headers_mut().remove(axum::http::HeaderName::from_bytes(name.as_bytes()).expect("a header name"));
        request
    };
    let wrong_method = Request::get("/api/v1/auth/login").body(Body::empty()).expect("a request");
    let large = claim(&format!("{{\"device_id\": \"{}\"}}", "x".repeat(70_000)));
    let path = post("/tasks/not-an-id/start").header("authorization", &bearer).body(Body::from("{}")).expect("a request");
    let rows = [
        ("malformed JSON", claim("{\"device_id\":"), 422, ErrorCode::Malformed),
        ("wrong shape", claim("{}"), 422, ErrorCode::Malformed),
        ("empty body", claim(""), 422, ErrorCode::Malformed),
        ("no claim token", without("x-claim-token"), 422, ErrorCode::Malformed),
        ("no key", without("idempotency-key"), 422, ErrorCode::Malformed),
        ("no login", without("authorization"), 401, ErrorCode::Unauthenticated),
        ("too large", large, 413, ErrorCode::TooLarge),
        ("no task id", path, 404, ErrorCode::NotFound),
        ("wrong method", wrong_method, 405, ErrorCode::Malformed),
    ];
    for (name, request, status, code) in rows {
        let body = call(&world.router, request).await.is(status, code, name);
        assert!(body.error.request_id.is_some(), "row `{name}`: a person can quote the id");
        assert!(!body.error.message.is_empty(), "row `{name}`: a person can read why");
    }
}

#[tokio::test]
async fn the_server_says_that_it_lives_and_is_ready() {
    let world = World::new();
    for path in ["/healthz", "/readyz"] {
        let answer = call(&world.router, Request::get(path).body(Body::empty()).expect("a request")).await;
        assert_eq!(answer.status.as_u16(), 200, "{path} must answer");
    }
}
