//! Bad input (D13): whatever comes in, a stable code goes out in the one error body, nothing is a 5xx, and not one row of any table changes.
//!
//! The rows are in `bad_input/`, one file a side of the server. Unknown fields: a client's message may hold fields this server does not know yet,
//! because that wire is only ever added to; an administrator's order may not, because a misspelt limit must not be an order without a limit.

mod admin;
mod device;
mod files;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Method, Request};
use cmautobuy_protocol::auth::Role;
use cmautobuy_protocol::{AccessToken, ErrorCode, RemoteTaskId};
use serde_json::{Value, json};

use crate::world::{Claim, Client, PASSWORD, World, call, key_at, token};

/// Fewest rows this table may have.
const FEWEST: usize = 60;
const NO_SUCH: &str = "0195f0a0-0000-7000-8000-00000000dead";

/// Everybody and everything the rows speak of.
pub(crate) struct Scene<'w> {
    world: &'w World,
    admin: AccessToken,
    /// Runs `claim`'s task.
    ann: Client<'w>,
    claim: Claim,
    /// Ready, holds nothing.
    bob: Client<'w>,
    expired: AccessToken,
    /// PENDING.
    task: RemoteTaskId,
}

impl<'w> Scene<'w> {
    async fn new(world: &'w World) -> Self {
        world.add_user("old", &[Role::Reviewer]);
        let expired = world.login("old", PASSWORD, None).await.access_token;
        world.advance_s(3601);
        let (ann, bob) = (world.buyer("ann").await, world.buyer("bob").await);
        world.task();
        let claim = ann.running().await;
        let admin = world.admin().await.access_token;
        // What the rows about a taken key and a taken reference meet.
        let new = json!({"task_type": "collect", "goods_url": "https://x/goods.html?goods_id=7", "external_ref": "taken"});
        world.send("/admin/tasks", Some(&admin), &[("idempotency-key", "used")], &new).await.ok::<Value>();
        Self { world, admin, ann, claim, bob, expired, task: world.task() }
    }

    fn of_task(&self, call: &str) -> String {
        format!("POST /api/v1/tasks/{}/{call}", self.claim.task)
    }
}

/// One bad request and what it must get.
pub(crate) struct Row {
    name: &'static str,
    method: Method,
    path: String,
    headers: Vec<(&'static str, Vec<u8>)>,
    body: Vec<u8>,
    status: u16,
    code: ErrorCode,
}

/// `call` is method and path; `status` goes with `code` by D13.
fn row(name: &'static str, call: impl AsRef<str>, body: impl Into<Vec<u8>>, status: u16, code: ErrorCode) -> Row {
    let (method, path) = call.as_ref().split_once(' ').expect("a method and a path");
    let headers = vec![("content-type", b"application/json".to_vec())];
    Row { name, method: method.parse().expect("a method"), path: path.to_owned(), headers, body: body.into(), status, code }
}

fn malformed(name: &'static str, call: impl AsRef<str>, body: impl Into<Vec<u8>>) -> Row {
    row(name, call, body, 422, ErrorCode::Malformed)
}

impl Row {
    fn with(mut self, header: &'static str, value: impl Into<Vec<u8>>) -> Self {
        self.headers.retain(|(name, _)| *name != header);
        self.headers.push((header, value.into()));
        self
    }

    fn by(self, access: &AccessToken) -> Self {
        self.with("authorization", format!("Bearer {}", access.reveal()))
    }

    /// With the token of the claim and a new key.
    fn held(self, scene: &Scene<'_>) -> Self {
        let key = key_at(scene.world.now());
        self.by(&scene.ann.access).with("x-claim-token", scene.claim.token.reveal()).with("idempotency-key", key.as_str())
    }

    fn request(&self) -> Request<Body> {
        let mut request = Request::builder().method(self.method.clone()).uri(&self.path);
        for (name, value) in &self.headers {
            let value = HeaderValue::from_bytes(value).expect("a header a client could send");
            request = request.header(HeaderName::from_static(name), value);
        }
        request.body(Body::from(self.body.clone())).expect("a request")
    }
}

/// Every row of every table, as text.
pub(crate) fn dump(world: &World) -> String {
    let database = rusqlite::Connection::open(world.dir.path().join("server.sqlite3")).expect("the database file");
    let mut names = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").expect("a statement");
    let names: Vec<String> = names.query_map([], |row| row.get(0)).expect("tables").collect::<Result<_, _>>().expect("names");
    assert!(names.len() > 15, "the dump must see the tables, it saw {names:?}");
    let mut text = String::new();
    for name in names {
        let mut read = database.prepare(&format!("SELECT * FROM {name}")).expect("a table");
        let columns = read.column_count();
        let rows = read.query_map([], |row| (0..columns).map(|at| row.get::<_, rusqlite::types::Value>(at)).collect::<Result<Vec<_>, _>>());
        for row in rows.expect("rows") {
            text.push_str(&format!("{name}: {:?}\n", row.expect("a row")));
        }
    }
    text
}

fn rows(scene: &Scene<'_>) -> Vec<Row> {
    let mut rows = door_rows(scene);
    rows.extend(auth_rows(scene));
    rows.extend(device::rows(scene));
    rows.extend(admin::rows(scene));
    rows.extend(files::rows(scene));
    rows
}

/// Paths, methods, who is let in.
fn door_rows(scene: &Scene<'_>) -> Vec<Row> {
    use ErrorCode::{Malformed, NotFound, Unauthenticated};
    let me = "GET /api/v1/auth/me";
    let secret = "a-token-that-must-not-come-back";
    vec![
        row("unknown path", "GET /api/v1/nowhere", "", 404, NotFound),
        row("path upwards", "GET /api/v1/../../etc/passwd", "", 404, NotFound),
        row("coded path upwards", "GET /api/v1/admin/tasks/..%2f..%2fetc%2fpasswd", "", 404, NotFound).by(&scene.admin),
        row("coded backslashes", "GET /api/v1/admin/users/..%5c..%5cwindows", "", 404, NotFound).by(&scene.admin),
        row("NUL in a path", "GET /api/v1/admin/tasks/%00", "", 404, NotFound).by(&scene.admin),
        row("bad UTF-8 in a path", "GET /api/v1/admin/tasks/%ff%fe", "", 404, NotFound).by(&scene.admin),
        row("SQL in a path", "GET /api/v1/admin/tasks/1'%20OR%20'1'='1", "", 404, NotFound).by(&scene.admin),
        row("capitals", "GET /API/V1/auth/me", "", 404, NotFound).by(&scene.admin),
        row("two slashes", "GET //api/v1/auth/me", "", 404, NotFound).by(&scene.admin),
        row("a slash behind", "GET /api/v1/auth/me/", "", 404, NotFound).by(&scene.admin),
        row("wrong method", "DELETE /api/v1/auth/login", "", 405, Malformed),
        row("unknown method", "BREW /api/v1/auth/login", "", 405, Malformed),
        row("health by POST", "POST /healthz", "x", 405, Malformed),
        row("readiness by DELETE", "DELETE /readyz", "", 405, Malformed),
        row("the document by PUT", "PUT /openapi.json", "{}", 405, Malformed),
        row("no login", me, "", 401, Unauthenticated),
        row("a login that has expired", me, "", 401, Unauthenticated).by(&scene.expired),
        row("another scheme", me, "", 401, Unauthenticated).with("authorization", "Basic YWRtaW46YWRtaW4="),
        row("a scheme and no token", me, "", 401, Unauthenticated).with("authorization", "Bearer"),
        row("a token nobody got", me, "", 401, Unauthenticated).with("authorization", format!("Bearer {secret}")),
        row("a token of 20,000 letters", me, "", 401, Unauthenticated).with("authorization", format!("Bearer {}", "a".repeat(20_000))),
        row("a token that is no text", me, "", 401, Unauthenticated).with("authorization", b"Bearer \xff\xfe".to_vec()),
        row("logout without login", "POST /api/v1/auth/logout", "", 401, Unauthenticated),
    ]
}

fn auth_rows(scene: &Scene<'_>) -> Vec<Row> {
    use ErrorCode::{DeviceNotAuthorized, LoginRefused, TooLarge, Unauthenticated};
    let (login, refresh) = ("POST /api/v1/auth/login", "POST /api/v1/auth/refresh");
    let wrong_device = json!({"user_name": "ann", "password": PASSWORD, "device_id": scene.bob.device}).to_string();
    let deep = format!("{{\"user_name\": {}{}}}", "[".repeat(5_000), "]".repeat(5_000));
    let access = format!("{{\"refresh_token\": \"{}\"}}", scene.admin.reveal());
    vec![
        malformed("nothing", login, ""),
        malformed("no JSON", login, "user_name=ann&password=x"),
        malformed("half a JSON", login, "{\"user_name\": \"ann\","),
        malformed("two JSONs", login, "{\"user_name\": \"a\", \"password\": \"b\"} {}"),
        malformed("a byte mark", login, "\u{feff}{\"user_name\": \"a\", \"password\": \"b\"}"),
        malformed("bad UTF-8", login, b"{\"user_name\": \"\xff\xfe\", \"password\": \"b\"}".to_vec()),
        malformed("half a surrogate", login, "{\"user_name\": \"\\ud800\", \"password\": \"b\"}"),
        malformed("a list of the values", login, "[\"ann\", \"b\", null]"),
        malformed("null", login, "null"),
        malformed("a number for a name", login, "{\"user_name\": 7, \"password\": \"b\"}"),
        malformed("a list for a password", login, "{\"user_name\": \"ann\", \"password\": [\"b\"]}"),
        malformed("no password", login, "{\"user_name\": \"ann\"}"),
        malformed("a field twice", login, "{\"user_name\": \"ann\", \"user_name\": \"bob\", \"password\": \"b\"}"),
        malformed("a device that is no id", login, "{\"user_name\": \"ann\", \"password\": \"b\", \"device_id\": \"pc\"}"),
        malformed("a name of 65 letters", login, format!("{{\"user_name\": \"{}\", \"password\": \"b\"}}", "a".repeat(65))),
        malformed("5,000 lists deep", login, deep),
        row("a body of 70,000 bytes", login, format!("{{\"user_name\": \"{}\"}}", "a".repeat(70_000)), 413, TooLarge),
        row("nobody's name", login, "{\"user_name\": \"nobody\", \"password\": \"guess-7781\"}", 401, LoginRefused),
        row("SQL for a name", login, "{\"user_name\": \"' OR 1=1 --\", \"password\": \"guess-7781\"}", 401, LoginRefused),
        row("another's device", login, wrong_device, 403, DeviceNotAuthorized),
        malformed("refresh with nothing", refresh, "{}"),
        malformed("refresh with a number", refresh, "{\"refresh_token\": 7}"),
        row("refresh with nobody's token", refresh, "{\"refresh_token\": \"x\"}", 401, Unauthenticated),
        row("refresh with an access token", refresh, access, 401, Unauthenticated),
    ]
}

#[tokio::test]
async fn d13_bad_input_gets_a_stable_code_and_changes_nothing() {
    let world = World::new();
    let scene = Scene::new(&world).await;
    let rows = rows(&scene);
    assert!(rows.len() >= FEWEST, "the table must not shrink below {FEWEST} rows, it has {}", rows.len());
    let mut names: Vec<_> = rows.iter().map(|row| row.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), rows.len(), "every row has its own name, or a failure could not be found");
    let document = call(&world.router, Request::get("/openapi.json").body(Body::empty()).expect("a request")).await;
    every_call_has_a_row(&serde_json::from_str(&document.text).expect("the document is JSON"), &rows);
    let mut before = dump(&world);
    for row in &rows {
        let name = row.name;
        let answer = call(&world.router, row.request()).await;
        assert_eq!(answer.status.as_u16(), row.status, "row `{name}`: {} {} answered {}", row.method, row.path, answer.text);
        let body = answer.is(row.status, row.code.clone(), &format!("row `{name}`"));
        let message = &body.error.message;
        assert!(message.contains(' ') && message.len() > 10, "row `{name}`: `{message}` must tell a person what is wrong");
        assert!(body.error.request_id.is_some() && answer.headers.contains_key("x-request-id"), "row `{name}`: a person can quote the id");
        for secret in [PASSWORD, "guess-7781", "sh0rt-1", scene.claim.token.reveal(), scene.admin.reveal(), "a-token-that-must-not"] {
            assert!(!answer.text.contains(secret), "row `{name}`: a refusal must not repeat a secret: {}", answer.text);
        }
        for inside in ["sqlite", "SELECT", "panicked", "crates/", world.dir.path().to_str().expect("a path")] {
            assert!(!answer.text.contains(inside), "row `{name}`: a refusal must not show the server's insides: {}", answer.text);
        }
        let after = dump(&world);
        assert!(before == after, "row `{name}` changed the database:\n{}", first_difference(&before, &after));
        before = after;
    }
}

fn first_difference(before: &str, after: &str) -> String {
    let gone = before.lines().find(|line| !after.contains(line)).unwrap_or_default();
    let new = after.lines().find(|line| !before.contains(line)).unwrap_or_default();
    format!("- {gone}\n+ {new}")
}

/// So that no call is forgotten.
fn every_call_has_a_row(document: &Value, rows: &[Row]) {
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("operations") {
            // Calls for whoever runs the server take no input but their address.
            let operations = operation["tags"][0] == "operations";
            let is_hit = |row: &Row| {
                let given = row.path.split('?').next().unwrap_or_default();
                let same = |(part, given): (&str, &str)| part.starts_with('{') || part == given;
                let fits = path.split('/').count() == given.split('/').count() && path.split('/').zip(given.split('/')).all(same);
                fits && row.method.as_str().eq_ignore_ascii_case(method)
            };
            assert!(operations || rows.iter().any(is_hit), "{method} {path} has no row: nobody tried bad input on it");
        }
    }
}

#[tokio::test]
async fn d13_a_newer_clients_fields_are_passed_over() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let with_more = |body: Value| {
        let mut body = body;
        body["of_a_newer_client"] = json!({"more": [1, 2, 3]});
        body
    };
    let login = with_more(json!({"user_name": "ann", "password": PASSWORD}));
    let session: Value = world.send("/auth/login", None, &[], &login).await.ok();
    let refresh = with_more(json!({"refresh_token": session["refresh_token"]}));
    world.send("/auth/refresh", None, &[], &refresh).await.ok::<Value>();
    let beat = with_more(serde_json::to_value(ann.heartbeat()).expect("a heartbeat is JSON"));
    ann.post("/devices/heartbeat", &[], &beat).await.ok::<Value>();
    let (token, key) = (token(), key_at(world.now()));
    let headers = [("x-claim-token", token.reveal()), ("idempotency-key", key.as_str())];
    world.task();
    let claim: Value = ann.post("/tasks/claim-next", &headers, &with_more(json!({"device_id": ann.device}))).await.ok();
    let task = claim["standing"]["task_id"].as_str().expect("a task");
    let key = key_at(world.now());
    let headers = [("x-claim-token", token.reveal()), ("idempotency-key", key.as_str())];
    let start = json!({"claim_generation": 1, "expected_version": claim["standing"]["version"], "attempt_id": NO_SUCH, "attempt_no": 1});
    let standing: Value = ann.post(&format!("/tasks/{task}/start"), &headers, &with_more(start)).await.ok();
    assert_eq!(standing["status"], "RUNNING", "an older server must go on working with a newer client");
}
