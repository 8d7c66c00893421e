//! Login, refresh, logout (D5, D6, D13).

use axum::http::StatusCode;
use cmautobuy_protocol::auth::{RefreshRequest, Role, Session};
use cmautobuy_protocol::{AccessToken, DeviceId, ErrorCode, RefreshToken};
use serde_json::Value;

use crate::world::{Answer, PASSWORD, World};

async fn refresh(world: &World, token: &RefreshToken) -> Answer {
    world.send("/auth/refresh", None, &[], &RefreshRequest { refresh_token: token.clone() }).await
}

async fn works(world: &World, access: &AccessToken) -> bool {
    world.get("/admin/tasks", access).await.status != StatusCode::UNAUTHORIZED
}

#[tokio::test]
async fn d13_a_login_names_the_user_the_server_and_its_end() {
    let world = World::new();
    let user = world.add_user("ann", &[Role::Buyer]);
    let device = world.add_device(user);
    let answer = world.login_answer("Ann", PASSWORD, Some(device)).await;
    assert_eq!(answer.headers.get("cache-control").map(|v| v.as_bytes()), Some(&b"no-store"[..]), "tokens must not be cached anywhere");
    let session: Session = answer.ok();
    assert_eq!((session.user_id, session.user_name.as_str()), (user, "ann"), "the session must say whose it is");
    assert_eq!(session.server_id, world.server.server_id(), "the client binds its store to this id (D7)");
    assert_eq!(session.access_expires_at.ms_since(session.server_time), 3_600_000, "an access token lives an hour by default");
}

#[tokio::test]
async fn d13_login_refusals_tell_nothing_of_users_but_name_the_device() {
    let world = World::new();
    let ann = world.add_user("ann", &[Role::Buyer]);
    let reviewer = world.add_user("rev", &[Role::Reviewer]);
    let (device, other) = (world.add_device(ann), world.add_device(reviewer));
    let unknown_device = DeviceId::from_uuid(uuid::Uuid::from_bytes([7; 16]));
    let rows = [
        ("unknown user", "nobody", PASSWORD, Some(device), 401, ErrorCode::LoginRefused),
        ("wrong password", "ann", "not this one", Some(device), 401, ErrorCode::LoginRefused),
        ("unknown device", "ann", PASSWORD, Some(unknown_device), 403, ErrorCode::DeviceNotAuthorized),
        ("another's device", "ann", PASSWORD, Some(other), 403, ErrorCode::DeviceNotAuthorized),
        ("no buyer", "rev", PASSWORD, Some(other), 403, ErrorCode::DeviceNotAuthorized),
    ];
    let mut messages = Vec::new();
    for (name, user, password, device, status, code) in rows {
        let body = world.login_answer(user, password, device).await.is(status, code, name);
        messages.push(body.error.message);
    }
    assert_eq!(messages[0], messages[1], "an unknown user and a wrong password must read the same");
    assert!(messages[2].contains(&unknown_device.to_string()), "an administrator needs the device id to add it");
}

#[tokio::test]
async fn too_many_logins_are_429_until_the_window_is_over() {
    let world = World::new();
    world.add_user("ann", &[Role::Buyer]);
    for n in 0..10 {
        world.login_answer("ann", "wrong wrong", None).await.is(401, ErrorCode::LoginRefused, &format!("try {n} is inside the limit"));
    }
    let answer = world.login_answer("ann", PASSWORD, None).await;
    answer.is(429, ErrorCode::RateLimited, "the right password must not get around the limit");
    assert!(answer.headers.contains_key("retry-after"), "a client must know that waiting helps");
    world.advance_s(60);
    world.login("ann", PASSWORD, None).await;
}

#[tokio::test]
async fn d5_a_refresh_token_stays_good_until_its_successor_is_first_used() {
    let world = World::new();
    let first = world.admin().await;
    let lost: Session = refresh(&world, &first.refresh_token).await.ok();
    let second: Session = refresh(&world, &first.refresh_token).await.ok();
    assert_ne!(lost.refresh_token, second.refresh_token, "each answer carries its own token");
    let third: Session = refresh(&world, &second.refresh_token).await.ok();
    refresh(&world, &first.refresh_token).await.is(401, ErrorCode::Unauthenticated, "its successor was used, so the first is spent");
    refresh(&world, &lost.refresh_token).await.is(401, ErrorCode::Unauthenticated, "a successor nobody used is spent with it");
    let again: Session = refresh(&world, &second.refresh_token).await.ok();
    assert!(works(&world, &third.access_token).await && works(&world, &again.access_token).await, "both answers' access tokens work");
}

#[tokio::test]
async fn access_ends_by_time_logout_new_password_and_moved_device() {
    let world = World::new();
    let session = world.admin().await;
    assert!(works(&world, &session.access_token).await, "a fresh token must work");
    world.advance_s(3600);
    assert!(!works(&world, &session.access_token).await, "an access token ends with its hour");
    let session: Session = refresh(&world, &session.refresh_token).await.ok();
    assert!(works(&world, &session.access_token).await, "refreshing gives a working token");
    let out = world.send("/auth/logout", Some(&session.access_token), &[], &Value::Null).await;
    assert_eq!(out.status, StatusCode::NO_CONTENT, "logout must succeed");
    assert!(!works(&world, &session.access_token).await, "logout ends the access token");
    refresh(&world, &session.refresh_token).await.is(401, ErrorCode::Unauthenticated, "logout ends the refresh token too");

    let ann = world.buyer("ann").await;
    world.server.admin().set_password(ann.user, &cmautobuy_protocol::Password::new("another password")).expect("a new password");
    ann.beat().await.is(401, ErrorCode::Unauthenticated, "a new password ends old logins");

    let bob = world.buyer("bob").await;
    let eve = world.add_user("eve", &[Role::Buyer]);
    let moved = cmautobuy_protocol::admin::AuthorizeDevice { device_id: bob.device, user_id: eve, name: "moved".to_owned() };
    world.server.admin().authorize_device(&moved).expect("an administrator may move a device");
    bob.beat().await.is(401, ErrorCode::Unauthenticated, "a moved device ends the old user's logins on it");
}

#[tokio::test]
async fn t205_1_roles_and_devices_bound_every_call() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let bob = world.buyer("bob").await;
    let admin = world.admin().await;
    world.get("/admin/tasks", &ann.access).await.is(403, ErrorCode::Forbidden, "a buyer is no administrator");
    let beat = ann.heartbeat();
    world.send("/devices/heartbeat", Some(&admin.access_token), &[], &beat).await.is(
        403,
        ErrorCode::Forbidden,
        "a login without a device gets no device calls",
    );
    bob.post("/devices/heartbeat", &[], &beat).await.is(403, ErrorCode::Forbidden, "a device must not speak for another");
    let mut impostor = bob.clone();
    impostor.device = ann.device;
    impostor.try_claim().await.is(403, ErrorCode::Forbidden, "a claim must not name another device");
    world.send("/devices/heartbeat", None, &[], &beat).await.is(401, ErrorCode::Unauthenticated, "no token, no call");
    let junk = AccessToken::new("junk");
    world.send("/devices/heartbeat", Some(&junk), &[], &beat).await.is(401, ErrorCode::Unauthenticated, "an unknown token is no token");
}

#[tokio::test]
async fn the_first_password_is_shown_once_and_only_at_the_first_start() {
    let mut world = World::new();
    assert!(world.server.first_admin_password().is_none(), "the password must be readable once");
    let config = cmautobuy_server::Config { data_dir: world.dir.path().to_owned(), ..Default::default() };
    let mut again = cmautobuy_server::Server::open(config, world.clock.clone()).expect("a second open of the same folder");
    assert!(again.first_admin_password().is_none(), "a folder with users needs no first administrator");
    assert_eq!(again.server_id(), world.server.server_id(), "the database keeps its identity");
}
