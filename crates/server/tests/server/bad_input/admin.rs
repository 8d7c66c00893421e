//! What an administrator, or somebody who would be one, could send.

use cmautobuy_protocol::ErrorCode;
use serde_json::{Value, json};

use super::{NO_SUCH, Row, Scene, malformed, row};

pub(super) fn rows(scene: &Scene<'_>) -> Vec<Row> {
    let mut rows = create_rows(scene);
    rows.extend(task_rows(scene));
    rows.extend(user_rows(scene));
    rows.extend(device_rows(scene));
    let mut rows: Vec<_> = rows.into_iter().map(|row| row.by(&scene.admin)).collect();
    let users = "POST /api/v1/admin/users";
    let new = json!({"user_name": "eve", "password": "long enough", "roles": ["ADMIN"]}).to_string();
    rows.push(row("a user made by a buyer", users, new.clone(), 403, ErrorCode::Forbidden).by(&scene.ann.access));
    rows.push(row("a user made by nobody", users, new, 401, ErrorCode::Unauthenticated));
    rows.push(row("a list of tasks for a buyer", "GET /api/v1/admin/tasks", "", 403, ErrorCode::Forbidden).by(&scene.bob.access));
    rows
}

fn create_rows(_: &Scene<'_>) -> Vec<Row> {
    use ErrorCode::{AlreadyExists, IdempotencyConflict};
    let create = "POST /api/v1/admin/tasks";
    let good = json!({"task_type": "collect", "goods_url": "https://x/goods.html?goods_id=7"});
    let but = |field: &str, value: Value| {
        let mut body = good.clone();
        body[field] = value;
        body.to_string()
    };
    let purchase = json!({"task_type": "purchase", "goods_url": "https://x/goods.html?goods_id=7"});
    let rows = [
        malformed("a task of nothing", create, "{}"),
        malformed("a task in a list", create, json!(["collect", "dry_run", "https://x/goods.html?goods_id=7"]).to_string()),
        malformed("a misspelt price limit", create, but("max_price_cents", json!(100))),
        malformed("an unknown kind of task", create, but("task_type", json!("buy"))),
        malformed("a mode in capitals", create, but("execution_mode", json!("LIVE"))),
        malformed("a link without goods", create, but("goods_url", json!("https://x/goods.html"))),
        malformed("a link to two goods", create, but("goods_url", json!("https://x/?goods_id=1&goods_id=2"))),
        malformed("a link to goods in words", create, but("goods_url", json!("https://x/?goods_id=seven"))),
        malformed("a link of 2,001 letters", create, but("goods_url", json!(format!("https://x/{}?goods_id=1", "a".repeat(2_000))))),
        malformed("a title of 501 letters", create, but("title", json!("t".repeat(501)))),
        malformed("an empty colour", create, but("target_color", json!(""))),
        malformed("a price below zero", create, but("price_cent", json!(-1))),
        malformed("a price with a fraction", create, but("price_cent", json!(12.5))),
        malformed("a price beyond the column", create, but("max_price_cent", json!(u64::MAX))),
        malformed("a quantity of none", create, but("quantity", json!(0))),
        malformed("a quantity beyond 32 bits", create, but("quantity", json!(4_294_967_296_u64))),
        malformed("a priority in words", create, but("priority", json!("high"))),
        malformed("a purchase without reference", create, purchase.to_string()),
        malformed(
            "a purchase without quantity",
            create,
            json!({"external_ref": "new", "task_type": "purchase", "goods_url": "?goods_id=7"}).to_string(),
        ),
        row("a task with a taken reference", create, but("external_ref", json!("taken")), 409, AlreadyExists),
        row("a task under a used key", create, but("title", json!("other")), 409, IdempotencyConflict).with("idempotency-key", "used"),
    ];
    let keyed = |row: Row| {
        let has_key = row.headers.iter().any(|(name, _)| *name == "idempotency-key");
        if has_key { row } else { row.with("idempotency-key", "new") }
    };
    let mut rows: Vec<_> = rows.into_iter().map(keyed).collect();
    rows.push(malformed("a task without key", create, good.to_string()));
    rows
}

fn task_rows(scene: &Scene<'_>) -> Vec<Row> {
    use ErrorCode::{IllegalState, NotFound};
    let list = |query: &str| format!("GET /api/v1/admin/tasks{query}");
    let close = format!("POST /api/v1/admin/tasks/{}/close", scene.claim.task);
    let hold = format!("POST /api/v1/admin/tasks/{}/release-hold", scene.claim.task);
    let closing = |more: Value| {
        let mut body = json!({"reason": "lost", "expected_version": scene.claim.standing.version});
        for (name, value) in more.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        body.to_string()
    };
    vec![
        malformed("an unknown filter", list("?stauts=PENDING"), ""),
        malformed("an unknown status", list("?status=pending"), ""),
        malformed("a page of none", list("?limit=0"), ""),
        malformed("a page of too many", list("?limit=201"), ""),
        malformed("a page below zero", list("?limit=-1"), ""),
        malformed("a cursor nobody gave", list("?cursor=x"), ""),
        malformed("a cursor of two halves", list("?cursor=_"), ""),
        malformed("goods in words", list("?goods_id=cup"), ""),
        row("a detail of no task", format!("GET /api/v1/admin/tasks/{NO_SUCH}"), "", 404, NotFound),
        row("a cancel of no task", format!("POST /api/v1/admin/tasks/{NO_SUCH}/cancel"), "", 404, NotFound),
        row("a cancel of no id", "POST /api/v1/admin/tasks/7/cancel", "", 404, NotFound),
        row("a close of a living run", &close, closing(json!({})), 409, IllegalState),
        malformed("a close without reason", &close, closing(json!({"reason": " "}))),
        malformed("a close with a long reason", &close, closing(json!({"reason": "r".repeat(501)}))),
        malformed("a close of a version below zero", &close, closing(json!({"expected_version": -1}))),
        malformed("a close with a misspelt check", &close, closing(json!({"order_cheked": true}))),
        row(
            "a release of no hold",
            &hold,
            json!({"expected_version": scene.claim.standing.version, "order_checked": true}).to_string(),
            409,
            IllegalState,
        ),
        malformed("a release of a hold without a look", &hold, json!({"expected_version": 1}).to_string()),
        malformed("a release of a hold below zero", &hold, json!({"expected_version": -1, "order_checked": true}).to_string()),
        row("a close of no task", format!("POST /api/v1/admin/tasks/{NO_SUCH}/close"), closing(json!({})), 404, NotFound),
    ]
}

fn user_rows(scene: &Scene<'_>) -> Vec<Row> {
    use ErrorCode::{AlreadyExists, IllegalState, NotFound};
    let users = "POST /api/v1/admin/users";
    let good = json!({"user_name": "eve", "password": "long enough", "roles": ["BUYER"]});
    let but = |field: &str, value: Value| {
        let mut body = good.clone();
        body[field] = value;
        body.to_string()
    };
    let customer = json!({"user_name": "eve", "password": "long enough", "roles": ["BUYER"], "kind": "CUSTOMER",
        "permissions": ["platform:self-operated-analytics:list"]});
    let ann = format!("PATCH /api/v1/admin/users/{}", scene.ann.user);
    let list = |query: &str| format!("GET /api/v1/admin/users{query}");
    let audit = |query: &str| format!("GET /api/v1/admin/audit{query}");
    let admin = scene.world.server.admin().user_id("admin").expect("the store").expect("the first administrator");
    let grant = |account: &str| json!({"account": account, "warehouse": "W"});
    vec![
        malformed("a short password", users, but("password", json!("sh0rt-1"))),
        malformed("a password of 201 letters", users, but("password", json!("p".repeat(201)))),
        malformed("a user without role", users, but("roles", json!([]))),
        malformed("an unknown role", users, but("roles", json!(["KING"]))),
        malformed("a blank name", users, but("user_name", json!("  "))),
        malformed("a name of 65 letters for a user", users, but("user_name", json!("e".repeat(65)))),
        malformed("a NUL in a name", users, but("user_name", json!("e\u{0}ve"))),
        malformed("a line feed in a name", users, but("user_name", json!("e\nve"))),
        malformed("a user with a field too many", users, but("is_admin", json!(true))),
        malformed("a customer with a permission", users, customer.to_string()),
        row("a name that is taken", users, but("user_name", json!("ANN")), 409, AlreadyExists),
        malformed("a change in a list", &ann, "[]"),
        malformed("a change that takes every role", &ann, "{\"roles\": []}"),
        malformed("a misspelt change", &ann, "{\"disable\": true}"),
        malformed("a change in words", &ann, "{\"disabled\": \"yes\"}"),
        malformed("an unknown permission", &ann, "{\"permissions\": [\"everything\"]}"),
        malformed("1,001 grants", &ann, json!({"grants": vec![grant("A"); 1_001]}).to_string()),
        malformed("a grant of nothing", &ann, json!({"grants": [grant("")]}).to_string()),
        malformed("a grant with a NUL", &ann, json!({"grants": [grant("a\u{0}b")]}).to_string()),
        malformed(
            "a grant with a field too many",
            &ann,
            json!({"grants": [{"account": "A", "warehouse": "W", "write": true}]}).to_string(),
        ),
        row("a change of no user", format!("PATCH /api/v1/admin/users/{NO_SUCH}"), "{\"disabled\": true}", 404, NotFound),
        row("an administrator that ends itself", format!("PATCH /api/v1/admin/users/{admin}"), "{\"disabled\": true}", 409, IllegalState),
        row("the last administrator gone", format!("PATCH /api/v1/admin/users/{admin}"), "{\"roles\": [\"BUYER\"]}", 409, IllegalState),
        row("a user that is none", format!("GET /api/v1/admin/users/{NO_SUCH}"), "", 404, NotFound),
        malformed(
            "a new password too short",
            format!("PUT /api/v1/admin/users/{}/password", scene.ann.user),
            "{\"password\": \"sh0rt-1\"}",
        ),
        row(
            "a new password of no user",
            format!("PUT /api/v1/admin/users/{NO_SUCH}/password"),
            "{\"password\": \"long enough\"}",
            404,
            NotFound,
        ),
        row("sessions of no user", format!("DELETE /api/v1/admin/users/{NO_SUCH}/sessions"), "", 404, NotFound),
        malformed("users of an unknown kind", list("?kind=KING"), ""),
        malformed("users by a misspelt filter", list("?rolle=ADMIN"), ""),
        malformed("a trail by a misspelt filter", audit("?targt=user"), ""),
        malformed("a trail from a cursor nobody gave", audit("?cursor=x"), ""),
        malformed("a trail of a huge page", audit("?limit=99999999999"), ""),
    ]
}

fn device_rows(scene: &Scene<'_>) -> Vec<Row> {
    use ErrorCode::NotFound;
    let devices = "POST /api/v1/admin/devices";
    let good = json!({"device_id": NO_SUCH, "user_id": scene.ann.user, "name": "desk"});
    let but = |field: &str, value: Value| {
        let mut body = good.clone();
        body[field] = value;
        body.to_string()
    };
    let own = format!("PATCH /api/v1/admin/devices/{}", scene.ann.device);
    vec![
        row("a device of no user", devices, but("user_id", json!(NO_SUCH)), 404, NotFound),
        malformed("a device that is no id for an administrator", devices, but("device_id", json!("pc"))),
        malformed("a device without name", devices, but("name", json!(" "))),
        malformed("a device with a bell in its name", devices, but("name", json!("a\u{7}b"))),
        malformed("a device with a field too many", devices, but("trusted", json!(true))),
        malformed("a misspelt change of a device", &own, "{\"nmae\": \"x\"}"),
        malformed("a device of a number", &own, "{\"user_id\": 7}"),
        row("a device moved to no user", &own, json!({"user_id": NO_SUCH}).to_string(), 404, NotFound),
        row("a change of no device", format!("PATCH /api/v1/admin/devices/{NO_SUCH}"), "{\"disabled\": true}", 404, NotFound),
        row("a device that is none", format!("GET /api/v1/admin/devices/{NO_SUCH}"), "", 404, NotFound),
        row("an instance of no device", format!("DELETE /api/v1/admin/devices/{NO_SUCH}/instance"), "", 404, NotFound),
        malformed("devices by a misspelt filter", "GET /api/v1/admin/devices?usr_id=1", ""),
        malformed("devices of a user that is no id", "GET /api/v1/admin/devices?user_id=ann", ""),
    ]
}
