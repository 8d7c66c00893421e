//! What a device could send: heartbeats, claims, lifecycle calls, results.

use cmautobuy_protocol::{ErrorCode, IdempotencyKey, MAX_RESULT_BYTES, WireTime};
use serde_json::{Value, json};

use super::{NO_SUCH, Row, Scene, malformed, row};
use crate::world::{key_at, token};

pub(super) fn rows(scene: &Scene<'_>) -> Vec<Row> {
    let mut rows = beat_rows(scene);
    rows.extend(claim_rows(scene));
    rows.extend(lifecycle_rows(scene));
    rows.extend(result_rows(scene));
    rows.extend(picture_rows(scene));
    rows
}

/// `body` with one field set to something else.
fn but(body: &Value, field: &str, value: Value) -> String {
    let mut body = body.clone();
    body[field] = value;
    body.to_string()
}

fn beat_rows(scene: &Scene<'_>) -> Vec<Row> {
    use ErrorCode::Forbidden;
    let beat = "POST /api/v1/devices/heartbeat";
    let good = serde_json::to_value(scene.ann.heartbeat()).expect("a heartbeat is JSON");
    let mut rows = vec![
        row("a heartbeat of another device", beat, but(&good, "device_id", json!(scene.bob.device)), 403, Forbidden),
        malformed("a heartbeat of nothing", beat, "{}"),
        malformed("a readiness in words", beat, but(&good, "accessibility_connected", json!("yes"))),
        malformed("a readiness as a number", beat, but(&good, "pdd_installed", json!(1))),
        malformed("no instance", beat, but(&good, "instance_id", Value::Null)),
        malformed("a time in words", beat, but(&good, "client_time", json!("yesterday"))),
        malformed("a time as a number", beat, but(&good, "client_time", json!(1_700_000_000))),
        malformed("the 30th of February", beat, but(&good, "client_time", json!("2026-02-30T00:00:00.000Z"))),
        malformed("17 predecessors", beat, but(&good, "predecessors", json!(vec![NO_SUCH; 17]))),
        malformed("an empty version", beat, but(&good, "app_version", json!(""))),
        malformed("a version of 65 letters", beat, but(&good, "app_version", json!("1".repeat(65)))),
        malformed("a serial of 129 letters", beat, but(&good, "phone_serial", json!("s".repeat(129)))),
    ];
    rows = rows.into_iter().map(|row| row.by(&scene.ann.access)).collect();
    rows.push(row("a heartbeat of an administrator", beat, good.to_string(), 403, Forbidden).by(&scene.admin));
    rows
}

fn claim_rows(scene: &Scene<'_>) -> Vec<Row> {
    use ErrorCode::{ClaimReplayExpired, DeviceBusy, Forbidden};
    let claim = "POST /api/v1/tasks/claim-next";
    let body = json!({"device_id": scene.bob.device}).to_string();
    let now = scene.world.now();
    let bob = |row: Row| row.by(&scene.bob.access).with("x-claim-token", token().reveal()).with("idempotency-key", key_at(now).as_str());
    let long_ago = WireTime::from_unix_ms(now.unix_ms() - 31 * 24 * 3600 * 1000).expect("a time");
    let mut no_token = bob(malformed("a claim without token", claim, body.clone()));
    no_token.headers.retain(|(name, _)| *name != "x-claim-token");
    let mut no_key = bob(malformed("a claim without key", claim, body.clone()));
    no_key.headers.retain(|(name, _)| *name != "idempotency-key");
    vec![
        no_token,
        no_key,
        bob(malformed("a claim token of 42 letters", claim, body.clone())).with("x-claim-token", "A".repeat(42)),
        bob(malformed("a claim token with padding", claim, body.clone())).with("x-claim-token", format!("{}=", "A".repeat(43))),
        bob(malformed("a claim token of 258 bits", claim, body.clone())).with("x-claim-token", "B".repeat(43)),
        bob(malformed("a claim token that is no text", claim, body.clone())).with("x-claim-token", vec![0xff; 43]),
        bob(malformed("an empty key", claim, body.clone())).with("idempotency-key", ""),
        bob(malformed("a key with a space in it", claim, body.clone())).with("idempotency-key", "a b"),
        bob(malformed("a key of 201 letters", claim, body.clone())).with("idempotency-key", "k".repeat(201)),
        bob(malformed("a claim key without a time", claim, body.clone())).with("idempotency-key", "f3f1a2c4-1111-4222-8333-444455556666"),
        bob(row("a claim of last month", claim, body.clone(), 409, ClaimReplayExpired)).with("idempotency-key", key_at(long_ago).as_str()),
        bob(row("a claim for another device", claim, json!({"device_id": scene.ann.device}).to_string(), 403, Forbidden)),
        bob(malformed("a claim in a list", claim, json!([scene.bob.device]).to_string())),
        bob(malformed("a claim for no device", claim, "{\"device_id\": null}")),
        bob(row("a claim with a task in hand", claim, json!({"device_id": scene.ann.device}).to_string(), 409, DeviceBusy))
            .by(&scene.ann.access),
        bob(row("a claim of an administrator", claim, body, 403, Forbidden)).by(&scene.admin),
    ]
}

fn lifecycle_rows(scene: &Scene<'_>) -> Vec<Row> {
    use ErrorCode::{ClaimLost, ExecutionMismatch, IllegalState, NotFound, VersionConflict};
    let (generation, version) = (scene.claim.standing.claim_generation, scene.claim.standing.version);
    let execution = scene.claim.standing.execution_id;
    let start = json!({"claim_generation": generation, "expected_version": version, "attempt_id": NO_SUCH, "attempt_no": 2});
    let resume =
        json!({"claim_generation": generation, "execution_id": execution, "reason": "retry", "attempt_id": NO_SUCH, "attempt_no": 2});
    let beat = json!({"claim_generation": generation, "execution_id": execution, "step": "look"});
    let ack = json!({"claim_generation": generation, "execution_id": execution, "expected_version": version});
    let release = json!({"claim_generation": generation, "expected_version": version});
    let [start_it, resume_it, beat_it, ack_it, release_it] =
        ["start", "resume", "heartbeat", "cancel-ack", "release"].map(|c| scene.of_task(c));
    let known = |field, value| but(&resume, field, value);
    let rows = [
        row("start of no id", "POST /api/v1/tasks/not-an-id/start", start.to_string(), 404, NotFound),
        row("start of no task", format!("POST /api/v1/tasks/{NO_SUCH}/start"), start.to_string(), 404, NotFound),
        row("start of a task not given out", format!("POST /api/v1/tasks/{}/start", scene.task), start.to_string(), 404, NotFound),
        row("start of a running task", &start_it, start.to_string(), 409, IllegalState),
        row("start of another generation", &start_it, but(&start, "claim_generation", json!(generation + 1)), 409, ExecutionMismatch),
        row("start of generation 0", &start_it, but(&start, "claim_generation", json!(0)), 409, ExecutionMismatch),
        row("start of the largest generation", &start_it, but(&start, "claim_generation", json!(u64::MAX)), 409, ExecutionMismatch),
        malformed("a generation below zero", &start_it, but(&start, "claim_generation", json!(-1))),
        malformed("a generation in quotes", &start_it, but(&start, "claim_generation", json!("1"))),
        malformed("a generation and a half", &start_it, but(&start, "claim_generation", json!(1.5))),
        malformed(
            "an attempt of 20 digits",
            &start_it,
            start.to_string().replace("\"attempt_no\":2", "\"attempt_no\":99999999999999999999"),
        ),
        malformed("a version below zero", &start_it, but(&start, "expected_version", json!(-1))),
        malformed("a version that is none", &start_it, but(&start, "expected_version", Value::Null)),
        malformed("an attempt that is no id", &start_it, but(&start, "attempt_id", json!("first"))),
        row("a claim token of somebody else", &resume_it, resume.to_string(), 409, ClaimLost).with("x-claim-token", token().reveal()),
        malformed("an unknown reason", &resume_it, known("reason", json!("because"))),
        malformed("attempt 0", &resume_it, known("attempt_no", json!(0))),
        malformed("an attempt beyond 32 bits", &resume_it, known("attempt_no", json!(4_294_967_296_u64))),
        malformed("an attempt under another number", &resume_it, known("attempt_id", json!(scene.claim.attempt))),
        row("another execution", &resume_it, known("execution_id", json!(NO_SUCH)), 409, ExecutionMismatch),
        malformed("an execution that is no id", &resume_it, known("execution_id", json!({}))),
        malformed("no step", &beat_it, but(&beat, "step", json!(""))),
        malformed("a step of 65 letters", &beat_it, but(&beat, "step", json!("s".repeat(65)))),
        malformed("a step as a number", &beat_it, but(&beat, "step", json!(3))),
        row("a run heartbeat of another execution", &beat_it, but(&beat, "execution_id", json!(NO_SUCH)), 409, ExecutionMismatch),
        row("a run heartbeat of another generation", &beat_it, but(&beat, "claim_generation", json!(9)), 409, ExecutionMismatch),
        row("an acknowledgement nobody asked for", &ack_it, ack.to_string(), 409, IllegalState),
        malformed("an acknowledgement in a list", &ack_it, json!([generation, execution, version]).to_string()),
        row("a running task given back", &release_it, release.to_string(), 409, IllegalState),
        malformed("a task given back by nothing", &release_it, "null"),
    ];
    let mut rows: Vec<_> =
        rows.into_iter().map(|row| if row.name == "a claim token of somebody else" { row.kept(scene) } else { row.held(scene) }).collect();
    let strange = row("a running task of another device", &resume_it, resume.to_string(), 404, NotFound).held(scene);
    rows.push(strange.by(&scene.bob.access));
    // The version is looked at only where the state allows the call, so this one is an administrator's.
    let close = format!("POST /api/v1/admin/tasks/{}/close", scene.claim.task);
    rows.push(
        row("a version long gone", close, json!({"reason": "x", "expected_version": 1}).to_string(), 409, VersionConflict).by(&scene.admin),
    );
    rows
}

impl Row {
    /// Like [`Row::held`], but the claim token stays what the row says.
    fn kept(self, scene: &Scene<'_>) -> Self {
        let own = self.headers.iter().find(|(name, _)| *name == "x-claim-token").map(|(_, value)| value.clone());
        self.held(scene).with("x-claim-token", own.unwrap_or_default())
    }
}

fn result_rows(scene: &Scene<'_>) -> Vec<Row> {
    use ErrorCode::{NotFound, TooLarge};
    let results = scene.of_task("results");
    let failure = json!({
        "schema_version": 1, "event_type": "task_failure", "disposition": "failed",
        "claim_generation": scene.claim.standing.claim_generation, "execution_id": scene.claim.standing.execution_id,
        "attempt_id": scene.claim.attempt, "attempt_no": 1, "pdd_data": null,
        "failure": {"code": "GOODS_REMOVED", "message": "gone"}, "finished_at": "2026-03-02T08:01:00.000Z",
    });
    let key: IdempotencyKey = format!("{}:{}:failure-v1", scene.claim.task, scene.claim.attempt).parse().expect("a key");
    let result_key = key.as_str().replace("failure", "result");
    let success =
        but(&failure, "event_type", json!("collect_result")).replace("\"disposition\":\"failed\"", "\"disposition\":\"succeeded\"");
    let purchase = success.replace("collect_result", "purchase_result");
    let deep = format!("{{\"schema_version\": 1, \"more\": {}1{}}}", "[".repeat(2_000), "]".repeat(2_000));
    let large = format!("{{\"schema_version\": 1, \"more\": \"{}\"}}", "x".repeat(MAX_RESULT_BYTES));
    let rows = [
        malformed("a result of nothing", &results, ""),
        malformed("a result that is no UTF-8", &results, b"{\"schema_version\": \"\xc3\x28\"}".to_vec()),
        malformed("a result in a list", &results, json!([1, "task_failure", "failed"]).to_string()),
        malformed("a result 2,000 lists deep", &results, deep),
        malformed("a result with an endless number", &results, "{\"schema_version\": 1, \"more\": 1e999}"),
        row("a result of 2 MiB and more", &results, large, 413, TooLarge),
        malformed("a result of version 2", &results, but(&failure, "schema_version", json!(2))),
        malformed("a result of an unknown event", &results, but(&failure, "event_type", json!("task_success"))),
        malformed("a failure that succeeded", &results, but(&failure, "disposition", json!("succeeded"))),
        malformed("a failure without its code", &results, but(&failure, "failure", json!({"code": "", "message": "x"}))),
        malformed("a result of attempt 0", &results, but(&failure, "attempt_no", json!(0))),
        malformed("a result that ended never", &results, but(&failure, "finished_at", json!("never"))),
        row("a result of another generation", &results, but(&failure, "claim_generation", json!(2)), 404, NotFound),
        row("a result of the largest generation", &results, but(&failure, "claim_generation", json!(u64::MAX)), 404, NotFound),
        malformed("a success without data", &results, success).with("idempotency-key", result_key.as_str()),
        malformed("a purchase of a task to collect", &results, purchase).with("idempotency-key", result_key.as_str()),
        malformed("a result under another key", &results, failure.to_string()).with("idempotency-key", "another"),
        row("a result of no task", format!("POST /api/v1/tasks/{NO_SUCH}/results"), failure.to_string(), 404, NotFound),
    ];
    let ours = |row: Row| {
        let has_key = row.headers.iter().any(|(name, _)| *name == "idempotency-key");
        let row = row.by(&scene.ann.access);
        if has_key { row } else { row.with("idempotency-key", key.as_str()) }
    };
    let mut rows: Vec<_> = rows.into_iter().map(ours).collect();
    rows.push(ours(row("a result of another device", &results, failure.to_string(), 404, NotFound)).by(&scene.bob.access));
    rows.push(malformed("a result without key", &results, failure.to_string()).by(&scene.ann.access));
    rows
}

fn picture_rows(scene: &Scene<'_>) -> Vec<Row> {
    use ErrorCode::{ExecutionMismatch, NotFound};
    let picture = |query: &str| format!("GET /api/v1/tasks/{}/reference-image{query}", scene.claim.task);
    let rows = [
        malformed("a picture of no generation", picture(""), ""),
        malformed("a picture of a generation below zero", picture("?claim_generation=-1"), ""),
        malformed("a picture of a generation in words", picture("?claim_generation=one"), ""),
        malformed("a picture of two generations", picture("?claim_generation=1&claim_generation=1"), ""),
        row("a picture of another generation", picture("?claim_generation=2"), "", 409, ExecutionMismatch),
        row("a picture that is not there", picture("?claim_generation=1"), "", 404, NotFound),
    ];
    rows.into_iter().map(|row| row.held(scene)).collect()
}
