//! Results: accepted by identity, duplicate, late, refused (D3, D8).

use std::collections::BTreeMap;

use cmautobuy_protocol::pdd_data::{Goods, Metrics, PddData, PriceGranularity, Shop, Sku, Source};
use cmautobuy_protocol::result::{Disposition, EventType, Failure, ResultAnswer, ResultBody, result_key};
use cmautobuy_protocol::{AttemptId, ErrorCode, ExecutionId, MAX_RESULT_BYTES, ServerStatus};

use crate::world::{Claim, Client, World, attempt_id, key_at};

pub(crate) struct Report {
    pub(crate) disposition: Disposition,
    pub(crate) generation: u64,
    pub(crate) execution: Option<ExecutionId>,
    pub(crate) attempt: AttemptId,
    pub(crate) attempt_no: u32,
}

impl Report {
    /// A success of the claim's first attempt.
    pub(crate) fn of(claim: &Claim) -> Self {
        Self {
            disposition: Disposition::Succeeded,
            generation: claim.standing.claim_generation,
            execution: claim.standing.execution_id,
            attempt: claim.attempt,
            attempt_no: 1,
        }
    }

    pub(crate) fn body(&self) -> ResultBody {
        let is_success = self.disposition == Disposition::Succeeded;
        ResultBody {
            schema_version: 1,
            event_type: if is_success { EventType::CollectResult } else { EventType::TaskFailure },
            disposition: self.disposition,
            claim_generation: self.generation,
            execution_id: self.execution,
            attempt_id: self.attempt,
            attempt_no: self.attempt_no,
            pdd_data: is_success.then(pdd_data),
            failure: (!is_success).then(|| Failure { code: "GOODS_REMOVED".to_owned(), message: "the goods are gone".to_owned() }),
            finished_at: crate::world::time("2026-03-02T08:01:00.000Z"),
        }
    }
}

fn pdd_data() -> PddData {
    let options = BTreeMap::new();
    let sku = Sku {
        options: options.clone(),
        price_cent: Some(1990),
        list_price_cent: Some(1990),
        price_observed_at: options,
        currency: "CNY".to_owned(),
        available: true,
        raw_price: Some("¥19.9".to_owned()),
        extra: serde_json::Map::new(),
    };
    PddData {
        schema_version: 1,
        goods: Goods { goods_id: "1000".to_owned(), url: String::new(), title: "cup".to_owned(), extra: serde_json::Map::new() },
        shop: Shop { name: Some("cups".to_owned()), extra: serde_json::Map::new() },
        metrics: Metrics { sales: None, reviews: None, extra: serde_json::Map::new() },
        dimensions: Vec::new(),
        skus: vec![sku],
        price_granularity: PriceGranularity::Color,
        purchase: None,
        captured_at: crate::world::time("2026-03-02T08:00:59.000Z"),
        source: Source {
            client_id: "c".to_owned(),
            device_address: "d".to_owned(),
            pdd_package: "com.xunmeng.pinduoduo".to_owned(),
            extra: serde_json::Map::new(),
        },
        artifacts: Vec::new(),
        extra: serde_json::Map::new(),
    }
}

pub(crate) async fn report(client: &Client<'_>, claim: &Claim, report: Report) -> ResultAnswer {
    let body = report.body();
    let key = result_key(claim.task, body.attempt_id, body.event_type);
    client.send_result(claim.task, &key, serde_json::to_vec(&body).expect("a result becomes JSON")).await.ok()
}

#[tokio::test]
async fn d3_a_success_of_the_current_attempt_ends_the_task_without_any_live_lease() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let task = world.task();
    let claim = ann.running().await;
    world.advance_s(3 * 24 * 3600);
    let ann = world.client("ann", ann.user, ann.device).await;
    let answer = report(&ann, &claim, Report::of(&claim)).await;
    let wanted = ResultAnswer { accepted: true, duplicate: false, late: false, task_status: ServerStatus::Succeeded };
    assert_eq!(answer, wanted, "a result needs a dispatch, not a lease");
    let detail = world.detail(task);
    assert_eq!(detail.task.latest_outcome, Some(Disposition::Succeeded), "the outcome is shown");
    assert_eq!(detail.task.lease_expires_at, None, "what has ended holds no lease");
    assert!(detail.executions[0].finished_at.is_some(), "its execution ended");
    assert_eq!(detail.results.len(), 1, "the result is kept");
    assert_eq!(detail.results[0].body["pdd_data"]["goods"]["title"], "cup", "whole");
    assert_eq!(detail.events.last().map(|event| event.kind.as_str()), Some("RESULT_ACCEPTED"), "and on record");
}

#[tokio::test]
async fn d8_the_same_bytes_again_get_the_first_answer_as_duplicate() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let task = world.task();
    let claim = ann.running().await;
    let body = Report::of(&claim).body();
    let key = result_key(task, body.attempt_id, body.event_type);
    let bytes = serde_json::to_vec(&body).expect("a result becomes JSON");
    let first: ResultAnswer = ann.send_result(task, &key, bytes.clone()).await.ok();
    for n in 1..=2 {
        let again: ResultAnswer = ann.send_result(task, &key, bytes.clone()).await.ok();
        assert_eq!(again, ResultAnswer { duplicate: true, ..first.clone() }, "resend {n} must get the first answer");
    }
    let mut other = body.clone();
    other.finished_at = world.now();
    let other = serde_json::to_vec(&other).expect("a result becomes JSON");
    ann.send_result(task, &key, other).await.is(409, ErrorCode::IdempotencyConflict, "a key's bytes never change");
    let pretty = serde_json::to_vec_pretty(&body).expect("a result becomes JSON");
    ann.send_result(task, &key, pretty).await.is(409, ErrorCode::IdempotencyConflict, "bytes are compared, not meaning");
    let detail = world.detail(task);
    assert_eq!((detail.results.len(), detail.results[0].duplicates), (1, 2), "stored once, counted twice");
}

#[tokio::test]
async fn d3_what_was_not_dispatched_to_the_caller_does_not_exist_for_it() {
    let world = World::new();
    let (ann, bob) = (world.buyer("ann").await, world.buyer("bob").await);
    let task = world.task();
    let claim = ann.running().await;
    let body = Report::of(&claim).body();
    let key = result_key(task, body.attempt_id, body.event_type);
    let bytes = serde_json::to_vec(&body).expect("a result becomes JSON");
    let foreign = bob.send_result(task, &key, bytes.clone()).await.is(404, ErrorCode::NotFound, "bob never had it");
    let unknown = cmautobuy_protocol::RemoteTaskId::from_uuid(uuid::Uuid::from_bytes([5; 16]));
    let missing = bob.send_result(unknown, &key, bytes).await.is(404, ErrorCode::NotFound, "nobody ever had it");
    assert_eq!(foreign.error.message, missing.error.message, "the two must read the same");
    for generation in [2, u64::MAX] {
        let body = Report { generation, ..Report::of(&claim) }.body();
        let bytes = serde_json::to_vec(&body).expect("a result becomes JSON");
        ann.send_result(task, &key, bytes).await.is(404, ErrorCode::NotFound, "this generation was never given to ann");
    }
}

#[tokio::test]
async fn d3_malformed_results_are_422_and_change_nothing() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let task = world.task();
    let claim = ann.running().await;
    let good = Report::of(&claim).body();
    let key = result_key(task, good.attempt_id, good.event_type);
    let json = |body: &ResultBody| serde_json::to_vec(body).expect("a result becomes JSON");
    let failed = Report { disposition: Disposition::Failed, ..Report::of(&claim) }.body();
    let rows = [
        ("no JSON", b"{".to_vec()),
        ("no UTF-8", vec![0xff, 0xfe]),
        ("wrong shape", b"{\"schema_version\":1}".to_vec()),
        ("schema_version", json(&ResultBody { schema_version: 2, ..good.clone() })),
        ("no data", json(&ResultBody { pdd_data: None, ..good.clone() })),
        ("attempt 0", json(&ResultBody { attempt_no: 0, ..good.clone() })),
        ("another number for the attempt", json(&ResultBody { attempt_no: 5, ..good.clone() })),
        ("a failure under a result key", json(&failed)),
        ("a purchase result of a collect task", json(&ResultBody { event_type: EventType::PurchaseResult, ..good.clone() })),
    ];
    for (name, bytes) in rows {
        ann.send_result(task, &key, bytes).await.is(422, ErrorCode::Malformed, name);
    }
    let other_key = key_at(world.now());
    ann.send_result(task, &other_key, json(&good)).await.is(422, ErrorCode::Malformed, "D8: the key is made of task and attempt");
    assert!(world.detail(task).results.is_empty(), "a refused result is not stored");
    assert_eq!(world.summary(task).status, ServerStatus::Running, "and moves nothing");
    report(&ann, &claim, Report::of(&claim)).await;
}

#[tokio::test]
async fn d3_a_result_above_2_mib_is_413_in_our_own_words() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let task = world.task();
    let claim = ann.running().await;
    let mut body = Report::of(&claim).body();
    let key = result_key(task, body.attempt_id, body.event_type);
    let fill = |body: &mut ResultBody, total: usize| {
        let data = body.pdd_data.as_mut().expect("a success has data");
        data.extra.insert("note".to_owned(), String::new().into());
        let base = serde_json::to_vec(body).expect("a result becomes JSON").len();
        let data = body.pdd_data.as_mut().expect("a success has data");
        data.extra.insert("note".to_owned(), "x".repeat(total - base).into());
        serde_json::to_vec(body).expect("a result becomes JSON")
    };
    let over = fill(&mut body, MAX_RESULT_BYTES + 1);
    ann.send_result(task, &key, over).await.is(413, ErrorCode::TooLarge, "one byte too many");
    let exact = fill(&mut body, MAX_RESULT_BYTES);
    ann.send_result(task, &key, exact).await.ok::<ResultAnswer>();
}

/// Status before x disposition: `.` late and unmoved, else the letter of the status after.
#[tokio::test]
async fn d3_status_by_result_matrix() {
    let rows = [
        ("claimed", "SFXW"),
        ("claimed, ran out", "SFXW"),
        ("running", "SFXW"),
        ("running, ran out", "SFXW"),
        ("waiting", "SFXW"),
        ("pending after release", "...."),
        ("given to another", "...."),
        ("cancelled before the start", "...."),
        ("succeeded", "...."),
        ("failed", "...."),
        ("cancelled", "...."),
        ("closed by an administrator", "...."),
    ];
    // One world, so that not every cell pays for its password hashes; every cell has a device of its own.
    let world = World::new();
    let user = world.add_user("ann", &[cmautobuy_protocol::auth::Role::Buyer]);
    for (name, wanted) in rows {
        for (disposition, wanted) in Disposition::ALL.iter().zip(wanted.chars()) {
            let ann = world.client("ann", user, world.add_device(user)).await;
            ann.beat().await.ok::<serde_json::Value>();
            let task = world.task();
            let claim = set_the_scene(&world, &ann, name).await;
            let before = world.summary(task);
            // A new attempt, so that every row is the highest of its generation.
            let new = Report { disposition: *disposition, attempt: attempt_id(), attempt_no: 2, ..Report::of(&claim) };
            let answer = report(&ann, &claim, new).await;
            let after = world.summary(task);
            let got = if answer.late { '.' } else { letter(answer.task_status) };
            assert_eq!(got, wanted, "{name} + {disposition}");
            assert_eq!(after.status, answer.task_status, "{name} + {disposition}: the answer says where the task stands");
            if answer.late {
                assert_eq!((after.status, after.version), (before.status, before.version), "{name} + {disposition}: late moves nothing");
            }
            let kept = world.detail(task).results.iter().filter(|result| result.late == answer.late).count();
            assert!(kept >= 1, "{name} + {disposition}: whatever it is, it is kept and counted");
            if after.status == ServerStatus::Pending {
                world.server.admin().cancel(task).expect("the next cell must not be given this one's task");
            }
        }
    }
}

fn letter(status: ServerStatus) -> char {
    match status {
        ServerStatus::Pending => 'P',
        ServerStatus::Claimed => 'C',
        ServerStatus::Running => 'R',
        ServerStatus::WaitingConfirmation => 'W',
        ServerStatus::Succeeded => 'S',
        ServerStatus::Failed => 'F',
        ServerStatus::Canceled => 'X',
    }
}

async fn set_the_scene(world: &World, ann: &Client<'_>, name: &str) -> Claim {
    let claim = match name {
        "claimed" | "claimed, ran out" | "pending after release" | "given to another" | "cancelled before the start" => ann.claim().await,
        _ => ann.running().await,
    };
    let ended = |disposition| Report { disposition, ..Report::of(&claim) };
    match name {
        "claimed" | "running" => {}
        "claimed, ran out" | "running, ran out" => world.advance_s(700),
        "waiting" => assert!(!report(ann, &claim, ended(Disposition::ManualReview)).await.late, "the scene must be set"),
        "succeeded" => assert!(!report(ann, &claim, ended(Disposition::Succeeded)).await.late, "the scene must be set"),
        "failed" => assert!(!report(ann, &claim, ended(Disposition::Failed)).await.late, "the scene must be set"),
        "cancelled" => assert!(!report(ann, &claim, ended(Disposition::Cancelled)).await.late, "the scene must be set"),
        "pending after release" => {
            ann.release(&claim).await.ok::<serde_json::Value>();
        }
        "given to another" => {
            world.advance_s(700);
            let bob = world.client("ann", ann.user, world.add_device(ann.user)).await;
            bob.beat().await.ok::<serde_json::Value>();
            bob.running().await;
        }
        "cancelled before the start" => {
            world.server.admin().cancel(claim.task).expect("cancel");
        }
        "closed by an administrator" => {
            world.advance_s(100);
            let close =
                cmautobuy_server::CloseTask { reason: "lost".to_owned(), expected_version: claim.standing.version, order_checked: false };
            world.server.admin().close(claim.task, &close).expect("close");
        }
        other => panic!("no such scene: {other}"),
    }
    claim
}

#[tokio::test]
async fn d3_only_the_highest_attempt_of_the_generation_moves_the_status() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let task = world.task();
    let claim = ann.running().await;
    let second = (attempt_id(), 2);
    ann.resume(&claim, cmautobuy_protocol::lifecycle::ResumeReason::Restart, second).await.ok::<serde_json::Value>();
    let old = report(&ann, &claim, Report { disposition: Disposition::Failed, ..Report::of(&claim) }).await;
    assert_eq!((old.late, old.task_status), (true, ServerStatus::Running), "attempt 1 is history once attempt 2 is known");
    let stranger = Some(ExecutionId::from_uuid(uuid::Uuid::from_bytes([2; 16])));
    let wrong =
        Report { execution: stranger, attempt: attempt_id(), attempt_no: 3, disposition: Disposition::Failed, ..Report::of(&claim) };
    assert!(report(&ann, &claim, wrong).await.late, "another execution is kept, but moves nothing");
    let third = Report { attempt: attempt_id(), attempt_no: 3, ..Report::of(&claim) };
    let answer = report(&ann, &claim, third).await;
    assert_eq!((answer.late, answer.task_status), (false, ServerStatus::Succeeded), "the highest one ends the task");
    let behind = Report { attempt: second.0, attempt_no: 2, disposition: Disposition::Failed, ..Report::of(&claim) };
    assert!(report(&ann, &claim, behind).await.late, "terminal states never regress (T-205 §11)");
    let summary = world.summary(task);
    assert_eq!(
        summary.latest_outcome,
        Some(Disposition::Succeeded),
        "the outcome shown is that of the highest attempt, not of the last to arrive"
    );
}

#[tokio::test]
async fn d3_a_result_from_claimed_needs_no_execution() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let task = world.task();
    let claim = ann.claim().await;
    assert_eq!(claim.standing.execution_id, None, "a claimed task has none");
    let answer = report(&ann, &claim, Report { disposition: Disposition::Failed, ..Report::of(&claim) }).await;
    assert_eq!((answer.late, answer.task_status), (false, ServerStatus::Failed), "bad task data ends the task before its start");
    let next = world.task();
    assert_ne!(task, next, "two tasks");
    assert_eq!(ann.claim().await.task, next, "and the device is free");
}

#[tokio::test]
async fn d3_a_cancelled_result_counts_as_the_ack() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let task = world.task();
    let claim = ann.running().await;
    let asked = world.server.admin().cancel(task).expect("ask to cancel");
    let answer = report(&ann, &claim, Report { disposition: Disposition::Cancelled, ..Report::of(&claim) }).await;
    assert_eq!(answer.task_status, ServerStatus::Canceled, "the result says that the device stopped");
    ann.cancel_ack(&claim, asked.version).await.is(409, ErrorCode::TaskCanceled, "an ack after it finds the task cancelled");
}

#[tokio::test]
async fn d10_an_order_number_belongs_to_one_task_and_a_cancel_never_hides_one() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    let purchase = |n: u64| {
        let mut asked = crate::world::collect(n);
        asked.task_type = cmautobuy_protocol::TaskType::Purchase;
        (asked.quantity, asked.external_ref) = (Some(1), Some(format!("ref-{n}")));
        world.server.admin().create_task(&asked, None).expect("a purchase").task_id
    };
    let bought = |claim: &Claim| {
        let mut body = Report::of(claim).body();
        body.event_type = EventType::PurchaseResult;
        let data = body.pdd_data.as_mut().expect("a success has data");
        let purchase = serde_json::json!({
            "mode": "live", "requested": {"options": {}, "quantity": 1, "max_price_cent": 2000}, "confirmed": null,
            "confirmation_reached": true, "order_submitted": true, "payment_attempted": false, "payment_status": null,
            "order_no": "260302-1", "ordered_at": null, "ordered_at_raw": null, "match_status": "matched"
        });
        data.purchase = Some(serde_json::from_value(purchase).expect("a purchase block"));
        body
    };
    let (_first, second, _third) = (purchase(1), purchase(2), purchase(3));
    let claim = ann.running().await;
    let body = bought(&claim);
    let key = result_key(claim.task, body.attempt_id, body.event_type);
    ann.send_result(claim.task, &key, serde_json::to_vec(&body).expect("JSON")).await.ok::<ResultAnswer>();
    let claim = ann.running().await;
    assert_eq!(claim.task, second, "the next purchase");
    let body = bought(&claim);
    let key = result_key(claim.task, body.attempt_id, body.event_type);
    let bytes = serde_json::to_vec(&body).expect("JSON");
    ann.send_result(claim.task, &key, bytes).await.is(409, ErrorCode::OrderAlreadyReported, "one order, one task");
    assert_eq!(world.summary(second).status, ServerStatus::Running, "and the second task does not succeed by it");
    ann.run_beat(&claim, "placing_order").await.ok::<serde_json::Value>();
    let answer = report(&ann, &claim, Report { disposition: Disposition::Cancelled, ..Report::of(&claim) }).await;
    assert_eq!(answer.task_status, ServerStatus::WaitingConfirmation, "an order may exist, so a person must look");
}
