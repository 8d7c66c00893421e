//! Users, devices, permissions and their trail (D13, R26), and who may call what.

use axum::body::Body;
use axum::http::{Method, Request};
use cmautobuy_protocol::account::{
    AuditPage, ChangeDevice, ChangeUser, Device, DevicePage, Me, Permission, User, UserKind, UserPage, WarehouseGrant,
};
use cmautobuy_protocol::admin::CreateUser;
use cmautobuy_protocol::auth::{Role, Session};
use cmautobuy_protocol::{AccessToken, ErrorCode, Password};
use serde::Serialize;
use serde_json::{Value, json};

use crate::world::{Answer, PASSWORD, World, call};

async fn ask(world: &World, method: Method, path: &str, access: Option<&AccessToken>, body: &impl Serialize) -> Answer {
    let mut request = Request::builder().method(method).uri(format!("/api/v1{path}"));
    if let Some(access) = access {
        request = request.header("authorization", format!("Bearer {}", access.reveal()));
    }
    let body = serde_json::to_vec(body).expect("a message always becomes JSON");
    call(&world.router, request.body(Body::from(body)).expect("a request")).await
}

fn grant(account: &str, warehouse: &str) -> WarehouseGrant {
    WarehouseGrant { account: account.to_owned(), warehouse: warehouse.to_owned() }
}

#[tokio::test]
async fn r26_a_customer_has_no_permission_and_no_grant_whoever_asks() {
    let world = World::new();
    let admin = world.server.admin();
    let customer = CreateUser { kind: UserKind::Customer, ..CreateUser::new("cu", Password::new(PASSWORD), vec![Role::Buyer]) };
    let with = CreateUser { permissions: vec![Permission::AnalyticsList], ..customer.clone() };
    let refused = admin.create_user(&with).expect_err("a customer with a permission");
    assert_eq!(refused.refusal().map(|r| r.code.clone()), Some(ErrorCode::Malformed), "R26: a CUSTOMER never looks");
    let user = admin.create_user(&customer).expect("a customer as such").user_id;
    for change in [
        ChangeUser { permissions: Some(vec![Permission::AnalyticsSync]), ..ChangeUser::default() },
        ChangeUser { grants: Some(vec![grant("A", "W")]), ..ChangeUser::default() },
    ] {
        admin.change_user(user, &change).expect_err("a customer gets neither permission nor grant");
    }
    let raise = ChangeUser {
        kind: Some(UserKind::Platform),
        permissions: Some(vec![Permission::AnalyticsList, Permission::AnalyticsSync]),
        grants: Some(vec![grant("A", "W"), grant("A", "V"), grant("A", "W")]),
        ..ChangeUser::default()
    };
    let raised = admin.change_user(user, &raise).expect("as a platform user it may have them");
    assert_eq!(raised.permissions.len(), 2, "both permissions are there");
    assert_eq!(raised.grants, [grant("A", "V"), grant("A", "W")], "grants are a set, in order");
    let back = ChangeUser { kind: Some(UserKind::Customer), ..ChangeUser::default() };
    admin.change_user(user, &back).expect_err("a platform user with permissions cannot silently become a customer");
    let stripped = ChangeUser { permissions: Some(vec![]), grants: Some(vec![]), ..back };
    let lowered = admin.change_user(user, &stripped).expect("it can when it gives them up in the same change");
    assert_eq!((lowered.kind, lowered.permissions, lowered.grants), (UserKind::Customer, vec![], vec![]), "nothing is left");
}

#[tokio::test]
async fn r26_the_table_itself_refuses_a_customer_with_permissions() {
    let world = World::new();
    let customer = CreateUser { kind: UserKind::Customer, ..CreateUser::new("cu", Password::new(PASSWORD), vec![Role::Buyer]) };
    let user = world.server.admin().create_user(&customer).expect("a customer").user_id.to_string();
    let database = rusqlite::Connection::open(world.dir.path().join("server.sqlite3")).expect("the database file");
    let rows = [
        "INSERT INTO user_permissions (user_id, permission) VALUES (?1, 'platform:self-operated-analytics:list')",
        "INSERT INTO warehouse_grants (user_id, account, warehouse) VALUES (?1, 'A', 'W')",
        "INSERT INTO user_permissions (user_id, permission) VALUES (?1, 'platform:everything')",
    ];
    for sql in rows {
        assert!(database.execute(sql, [&user]).is_err(), "the table must refuse: {sql}");
    }
    assert!(database.execute("UPDATE audit SET actor = 'nobody'", []).is_err(), "the trail cannot be rewritten");
    assert!(database.execute("DELETE FROM audit", []).is_err(), "nor shortened");
}

#[tokio::test]
async fn a_disabled_user_is_out_at_once_and_comes_back_only_by_login() {
    let world = World::new();
    let admin = world.admin().await;
    let ann = world.buyer("ann").await;
    let path = format!("/admin/users/{}", ann.user);
    let off: User = ask(&world, Method::PATCH, &path, Some(&admin.access_token), &json!({"disabled": true})).await.ok();
    assert!(off.disabled, "the answer shows the change");
    ann.beat().await.is(401, ErrorCode::Unauthenticated, "the login ended with the change, not with its hour");
    world.login_answer("ann", PASSWORD, Some(ann.device)).await.is(401, ErrorCode::LoginRefused, "and the name lets nobody in");
    ask(&world, Method::PATCH, &path, Some(&admin.access_token), &json!({"disabled": false})).await.ok::<User>();
    ann.beat().await.is(401, ErrorCode::Unauthenticated, "an ended login stays ended");
    world.login("ann", PASSWORD, Some(ann.device)).await;
}

#[tokio::test]
async fn a_lost_role_ends_old_logins_and_the_last_administrator_stays() {
    let world = World::new();
    let admin = world.admin().await;
    let me: Me = world.get("/auth/me", &admin.access_token).await.ok();
    let path = format!("/admin/users/{}", me.user_id);
    for change in [json!({"disabled": true}), json!({"roles": ["REVIEWER"]})] {
        let answer = ask(&world, Method::PATCH, &path, Some(&admin.access_token), &change).await;
        answer.is(409, ErrorCode::IllegalState, "somebody must be able to administer");
    }
    let second = world.add_user("second", &[Role::Admin, Role::Reviewer]);
    let login = world.login("second", PASSWORD, None).await;
    let demoted: User =
        ask(&world, Method::PATCH, &format!("/admin/users/{second}"), Some(&admin.access_token), &json!({"roles": ["REVIEWER"]}))
            .await
            .ok();
    assert_eq!(demoted.roles, [Role::Reviewer], "with two administrators one may go");
    world.get("/auth/me", &login.access_token).await.is(401, ErrorCode::Unauthenticated, "an old login must not keep the lost role");
    ask(&world, Method::PATCH, &path, Some(&admin.access_token), &json!({"roles": []})).await.is(
        422,
        ErrorCode::Malformed,
        "no role, no user",
    );
}

#[tokio::test]
async fn users_are_listed_by_name_with_filters_and_pages() {
    let world = World::new();
    let admin = world.admin().await;
    for (name, roles) in [("bob", vec![Role::Buyer]), ("Ann", vec![Role::Buyer, Role::Reviewer]), ("cy", vec![Role::Reviewer])] {
        world.add_user(name, &roles);
    }
    let names = |page: &UserPage| page.users.iter().map(|user| user.user_name.clone()).collect::<Vec<_>>();
    let rows = [
        ("", vec!["admin", "Ann", "bob", "cy"]),
        ("?role=BUYER", vec!["Ann", "bob"]),
        ("?role=REVIEWER", vec!["Ann", "cy"]),
        ("?role=ADMIN", vec!["admin"]),
        ("?name=N", vec!["admin", "Ann"]),
        ("?kind=CUSTOMER", vec![]),
        ("?disabled=true", vec![]),
    ];
    for (query, wanted) in rows {
        let page: UserPage = world.get(&format!("/admin/users{query}"), &admin.access_token).await.ok();
        assert_eq!(names(&page), wanted, "filter `{query}`");
    }
    let first: UserPage = world.get("/admin/users?limit=2", &admin.access_token).await.ok();
    let next = first.next.clone().expect("there are more");
    let rest: UserPage = world.get(&format!("/admin/users?limit=2&cursor={next}"), &admin.access_token).await.ok();
    assert_eq!([names(&first), names(&rest)].concat(), ["admin", "Ann", "bob", "cy"], "pages have no gap and no double");
    for query in ["?limit=0", "?limit=201", "?role=KING", "?disabled=maybe"] {
        world.get(&format!("/admin/users{query}"), &admin.access_token).await.is(422, ErrorCode::Malformed, query);
    }
}

#[tokio::test]
async fn a_device_is_listed_renamed_moved_and_disabled() {
    let world = World::new();
    let admin = world.admin().await;
    let ann = world.buyer("ann").await;
    let claim = {
        world.task();
        ann.running().await
    };
    let path = format!("/admin/devices/{}", ann.device);
    let seen: Device = world.get(&path, &admin.access_token).await.ok();
    let last = seen.seen.expect("it was heard");
    assert!(last.live && last.accessibility_connected, "its last heartbeat is shown");
    assert_eq!((seen.user_name.as_str(), seen.held_task), ("ann", Some(claim.task)), "whose it is and what it holds");
    world.advance_s(121);
    let silent: Device = world.get(&path, &admin.access_token).await.ok();
    assert!(!silent.seen.expect("the last heartbeat stays on record").live, "after the TTL it is not live");

    let renamed = ChangeDevice { name: Some(" desk 2 ".to_owned()), ..ChangeDevice::default() };
    let answer: Device = ask(&world, Method::PATCH, &path, Some(&admin.access_token), &renamed).await.ok();
    assert_eq!(answer.name, "desk 2", "names are trimmed");
    ask(&world, Method::PATCH, &path, Some(&admin.access_token), &json!({"name": " "})).await.is(
        422,
        ErrorCode::Malformed,
        "a name is visible",
    );

    let off = ChangeDevice { disabled: Some(true), ..ChangeDevice::default() };
    ask(&world, Method::PATCH, &path, Some(&admin.access_token), &off).await.ok::<Device>();
    ann.beat().await.is(401, ErrorCode::Unauthenticated, "a disabled device is out at once");
    world.login_answer("ann", PASSWORD, Some(ann.device)).await.is(403, ErrorCode::DeviceNotAuthorized, "and not let in again");
    assert_eq!(world.summary(claim.task).status, cmautobuy_protocol::ServerStatus::Running, "T-205 §8: its task never goes back by itself");

    let bob = world.add_user("bob", &[Role::Buyer]);
    let moved = ChangeDevice { user_id: Some(bob), disabled: Some(false), ..ChangeDevice::default() };
    ask(&world, Method::PATCH, &path, Some(&admin.access_token), &moved).await.ok::<Device>();
    world.login("bob", PASSWORD, Some(ann.device)).await;
    let page: DevicePage = world.get(&format!("/admin/devices?user_id={bob}"), &admin.access_token).await.ok();
    assert_eq!(page.devices.iter().map(|device| device.device_id).collect::<Vec<_>>(), [ann.device], "it is bob's now");
    let instance = format!("{path}/instance");
    let forgotten = ask(&world, Method::DELETE, &instance, Some(&admin.access_token), &Value::Null).await;
    assert_eq!(forgotten.status.as_u16(), 204, "an administrator may say that the old instance is gone");
    let unknown = format!("/admin/devices/{bob}");
    world.get(&unknown, &admin.access_token).await.is(404, ErrorCode::NotFound, "a user's id is no device's");
}

#[tokio::test]
async fn every_account_change_leaves_its_trail_without_a_secret() {
    let world = World::new();
    let admin = world.admin().await;
    let new = json!({"user_name": "zoe", "password": "a password of zoe", "roles": ["BUYER"], "permissions": ["platform:self-operated-analytics:list"]});
    let made: Value = world.send("/admin/users", Some(&admin.access_token), &[], &new).await.ok();
    let user = made["user_id"].as_str().expect("an id").to_owned();
    let put = json!({"password": "another password of zoe"});
    let answer = ask(&world, Method::PUT, &format!("/admin/users/{user}/password"), Some(&admin.access_token), &put).await;
    assert_eq!(answer.status.as_u16(), 204, "a new password is set");
    world.login("zoe", "another password of zoe", None).await;
    let ended = ask(&world, Method::DELETE, &format!("/admin/users/{user}/sessions"), Some(&admin.access_token), &Value::Null).await;
    assert_eq!(ended.status.as_u16(), 204, "the logins end");
    ask(
        &world,
        Method::PATCH,
        &format!("/admin/users/{user}"),
        Some(&admin.access_token),
        &json!({"grants": [{"account": "A", "warehouse": "W"}]}),
    )
    .await
    .ok::<User>();
    let answer = world.get(&format!("/admin/audit?target=user:{user}"), &admin.access_token).await;
    let page: AuditPage = answer.ok();
    let actions: Vec<_> = page.entries.iter().map(|entry| entry.action.as_str()).collect();
    assert_eq!(actions, ["USER_CHANGED", "SESSIONS_ENDED", "PASSWORD_SET", "USER_CREATED"], "newest first, one a change");
    let me: Me = world.get("/auth/me", &admin.access_token).await.ok();
    assert!(page.entries.iter().all(|entry| entry.actor == format!("admin:{}", me.user_id)), "each says who did it");
    assert!(!answer.text.contains("password of zoe"), "a trail holds no secret (D6)");
    let first: AuditPage = world.get("/admin/audit?limit=1", &admin.access_token).await.ok();
    let next = first.next.expect("there are more");
    let second: AuditPage = world.get(&format!("/admin/audit?limit=1&cursor={next}"), &admin.access_token).await.ok();
    assert_eq!(second.entries[0].action, "SESSIONS_ENDED", "pages follow each other");
    world.get("/admin/audit?cursor=x", &admin.access_token).await.is(422, ErrorCode::Malformed, "a made-up cursor");
    let refused = ask(&world, Method::PATCH, &format!("/admin/users/{user}"), Some(&admin.access_token), &json!({"roles": []})).await;
    refused.is(422, ErrorCode::Malformed, "a refused change");
    let after: AuditPage = world.get(&format!("/admin/audit?target=user:{user}"), &admin.access_token).await.ok();
    assert_eq!(after.entries.len(), 4, "a refused change leaves no trail, because nothing changed");
}

/// Who may call a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum For {
    Anybody,
    SignedIn,
    Buyer,
    Admin,
}

/// Every route there is; the document is the list this is held against.
const ROUTES: &[(&str, For)] = &[
    ("post /auth/login", For::Anybody),
    ("post /auth/refresh", For::Anybody),
    ("post /auth/logout", For::SignedIn),
    ("get /auth/me", For::SignedIn),
    ("post /devices/heartbeat", For::Buyer),
    ("post /tasks/claim-next", For::Buyer),
    ("post /tasks/{id}/start", For::Buyer),
    ("post /tasks/{id}/heartbeat", For::Buyer),
    ("post /tasks/{id}/resume", For::Buyer),
    ("post /tasks/{id}/release", For::Buyer),
    ("post /tasks/{id}/cancel-ack", For::Buyer),
    ("post /tasks/{id}/results", For::Buyer),
    ("get /tasks/{id}/reference-image", For::Buyer),
    ("post /admin/tasks/import", For::Admin),
    ("put /admin/tasks/{id}/reference-image", For::Admin),
    ("get /admin/tasks/{id}/reference-image", For::Admin),
    ("delete /admin/tasks/{id}/reference-image", For::Admin),
    ("post /admin/tasks", For::Admin),
    ("get /admin/tasks", For::Admin),
    ("get /admin/tasks/{id}", For::Admin),
    ("post /admin/tasks/{id}/cancel", For::Admin),
    ("post /admin/tasks/{id}/close", For::Admin),
    ("post /admin/tasks/{id}/release-hold", For::Admin),
    ("post /admin/users", For::Admin),
    ("get /admin/users", For::Admin),
    ("get /admin/users/{id}", For::Admin),
    ("patch /admin/users/{id}", For::Admin),
    ("put /admin/users/{id}/password", For::Admin),
    ("delete /admin/users/{id}/sessions", For::Admin),
    ("get /admin/audit", For::Admin),
    ("post /admin/devices", For::Admin),
    ("get /admin/devices", For::Admin),
    ("get /admin/devices/{id}", For::Admin),
    ("patch /admin/devices/{id}", For::Admin),
    ("delete /admin/devices/{id}/instance", For::Admin),
];

#[tokio::test]
async fn every_route_lets_in_exactly_whom_it_is_for() {
    let world = World::new();
    let document = call(&world.router, Request::get("/openapi.json").body(Body::empty()).expect("a request")).await;
    let document: Value = serde_json::from_str(&document.text).expect("the document is JSON");
    let mut documented = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        if let Some(path) = path.strip_prefix("/api/v1") {
            documented.extend(item.as_object().expect("operations").keys().map(|method| format!("{method} {path}")));
        }
    }
    documented.sort();
    let mut listed: Vec<_> = ROUTES.iter().map(|(route, _)| (*route).to_owned()).collect();
    listed.sort();
    assert_eq!(documented, listed, "a route that is not in this table has nobody who said whom it is for");

    // Made anew for each call, because logout ends a login.
    let ann = world.add_user("ann", &[Role::Buyer]);
    let device = world.add_device(ann);
    world.add_user("rev", &[Role::Reviewer]);
    let gone = world.add_user("gone", &[Role::Admin]);
    let customer = CreateUser { kind: UserKind::Customer, ..CreateUser::new("cu", Password::new(PASSWORD), vec![Role::Buyer]) };
    world.server.admin().create_user(&customer).expect("a customer");
    let off = world.add_user("off", &[Role::Buyer]);
    let off_device = world.add_device(off);
    let dead = [world.login("gone", PASSWORD, None).await, world.login("off", PASSWORD, Some(off_device)).await];
    let disable = |disabled| ChangeDevice { disabled: Some(disabled), ..ChangeDevice::default() };
    world.server.admin().change_user(gone, &ChangeUser { disabled: Some(true), ..ChangeUser::default() }).expect("a disabled user");
    world.server.admin().change_device(off_device, &disable(true)).expect("a disabled device");
    let expired = world.login("rev", PASSWORD, None).await;
    world.advance_s(3601);

    for (route, whom) in ROUTES {
        let (method, path) = route.split_once(' ').expect("method and path");
        let method: Method = method.to_uppercase().parse().expect("a method");
        let path = path.replace("{id}", "0195f0a0-0000-7000-8000-000000000000");
        let nobody = [None, Some(&expired.access_token), Some(&dead[0].access_token), Some(&dead[1].access_token)];
        for (n, access) in nobody.into_iter().enumerate() {
            let status = ask(&world, method.clone(), &path, access, &Value::Null).await.status.as_u16();
            assert_eq!(
                status == 401,
                *whom != For::Anybody,
                "{route}: caller {n} (none, expired, disabled user, disabled device) got {status}"
            );
        }
        world.advance_s(61);
        let callers: [(&str, Option<_>, &[For]); 5] = [
            ("ann", Some(device), &[For::Anybody, For::SignedIn, For::Buyer]),
            ("ann", None, &[For::Anybody, For::SignedIn]),
            ("cu", None, &[For::Anybody, For::SignedIn]),
            ("rev", None, &[For::Anybody, For::SignedIn]),
            ("admin", None, &[For::Anybody, For::SignedIn, For::Admin]),
        ];
        for (name, device, may) in callers {
            let password = if name == "admin" { world.admin_password.reveal() } else { PASSWORD };
            let login: Session = world.login(name, password, device).await;
            let status = ask(&world, method.clone(), &path, Some(&login.access_token), &Value::Null).await.status.as_u16();
            assert_ne!(status, 401, "{route}: {name} is logged in");
            assert!(status < 500, "{route}: {name} got {status}");
            assert_eq!(status != 403, may.contains(whom), "{route}: {name} (device: {}) got {status}", device.is_some());
        }
    }
}
