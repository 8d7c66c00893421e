//! `kill -9` at the gaps between two commits. After a restart the server holds each result once and the task is `succeeded`.

use cmautobuy_phone_sim::Catalogue;
use cmautobuy_protocol::ServerStatus;

use crate::desk::{Desk, Fate};

fn goods_id() -> String {
    Catalogue::builtin().goods[1].goods_id.clone()
}

/// Kills the client once `suffix` met the gate, opens the gate and lets a new client finish.
async fn killed_at(suffix: &'static str, fate: Fate) -> (Desk, cmautobuy_protocol::RemoteTaskId) {
    let desk = Desk::new().await;
    desk.ready().await;
    let task = desk.collect_task(&goods_id());
    desk.gate.set(suffix, fate);
    let mut client = desk.spawn(&["run"]);
    desk.until(&format!("a request to {suffix}"), || desk.gate.seen() > 0).await;
    client.kill().await.expect("SIGKILL");
    desk.gate.set("(none)", Fate::Pass);
    (desk, task)
}

async fn finishes(desk: &Desk, task: cmautobuy_protocol::RemoteTaskId) {
    let said = desk.run(&["run", "--once", "--within-seconds", "110"]).await;
    assert!(said.ok, "the restarted client finishes what is left: {said:?}");
    let detail = desk.on_server(task);
    assert_eq!(detail.task.status, ServerStatus::Succeeded, "nothing was lost");
    assert_eq!(detail.task.claim_generation, 1, "the task was not claimed a second time");
    let keys: std::collections::BTreeSet<&str> = detail.results.iter().map(|r| r.idempotency_key.as_str()).collect();
    assert_eq!(keys.len(), detail.results.len(), "no result is stored twice");
    assert_eq!(detail.results.iter().filter(|r| !r.late).count(), 1, "exactly one result moved the status");
    assert_eq!(desk.local("SELECT status FROM pdd_tasks").as_deref(), Some("succeeded"), "the client knows it too");
    assert_eq!(desk.local("SELECT count(*) FROM outbox_events WHERE status <> 'sent'").as_deref(), Some("0"), "nothing waits any more");
}

#[tokio::test(flavor = "multi_thread")]
async fn between_result_committed_and_the_server_asked() {
    let (desk, task) = killed_at("/results", Fate::LoseRequest).await;
    assert_eq!(
        desk.local("SELECT status FROM pdd_tasks").as_deref(),
        Some("result_pending"),
        "the result was committed before it was sent"
    );
    let payload = desk.local("SELECT payload_json FROM outbox_events").expect("the outbox row is in the same commit");
    assert_eq!(desk.on_server(task).results.len(), 0, "the server never saw it");
    finishes(&desk, task).await;
    assert_eq!(desk.on_server(task).results.len(), 1, "the server holds it once");
    assert_eq!(
        desk.local("SELECT payload_json FROM outbox_events").as_deref(),
        Some(payload.as_str()),
        "the stored bytes were resent, not made anew"
    );
    assert_eq!(desk.local("SELECT count(*) FROM task_runs").as_deref(), Some("1"), "the phone was not used a second time");
}

#[tokio::test(flavor = "multi_thread")]
async fn between_result_accepted_and_the_client_told() {
    let (desk, task) = killed_at("/results", Fate::LoseAnswer).await;
    desk.until("the server's commit", || desk.on_server(task).results.len() == 1).await;
    assert_ne!(desk.local("SELECT status FROM pdd_tasks").as_deref(), Some("succeeded"), "only the server's word makes success (03 §7.2)");
    finishes(&desk, task).await;
    let detail = desk.on_server(task);
    assert_eq!(detail.results.len(), 1, "the server holds it once");
    assert!(detail.results[0].duplicates >= 1, "the resend was recognised by its key and bytes");
    assert_eq!(desk.local("SELECT count(*) FROM task_runs").as_deref(), Some("1"), "the phone was not used a second time");
}

#[tokio::test(flavor = "multi_thread")]
async fn between_claim_prepared_and_answered() {
    let (desk, task) = killed_at("/claim-next", Fate::LoseAnswer).await;
    desk.until("the server's claim", || desk.on_server(task).task.status == ServerStatus::Claimed).await;
    assert_eq!(desk.local("SELECT count(*) FROM pdd_tasks").as_deref(), Some("0"), "the client never heard of the task");
    assert_eq!(desk.local("SELECT state FROM claim_attempts").as_deref(), Some("prepared"), "but its attempt is durable (D5)");
    finishes(&desk, task).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn between_start_sent_and_answered() {
    let (desk, task) = killed_at("/start", Fate::LoseAnswer).await;
    desk.until("the server's start", || desk.on_server(task).task.status == ServerStatus::Running).await;
    assert_eq!(desk.local("SELECT status FROM pdd_tasks").as_deref(), Some("claimed"), "the row runs only after a definite answer (D2)");
    finishes(&desk, task).await;
    assert_eq!(desk.on_server(task).executions.len(), 1, "a replayed start makes no second execution (T-205 §7)");
}

#[tokio::test(flavor = "multi_thread")]
async fn in_the_middle_of_a_run() {
    let desk = Desk::new().await;
    desk.ready().await;
    let task = desk.collect_task(&goods_id());
    let mut client = desk.spawn(&["run"]);
    desk.until("the sheet being read", || desk.local("SELECT current_step FROM task_runs").as_deref() == Some("collect_skus")).await;
    client.kill().await.expect("SIGKILL");
    finishes(&desk, task).await;
    assert_eq!(
        desk.local("SELECT count(*) FROM task_runs").as_deref(),
        Some("2"),
        "the broken run stays, the retry is its own row (03 §7.2)"
    );
    assert_eq!(
        desk.local("SELECT run_status FROM task_runs ORDER BY attempt_no LIMIT 1").as_deref(),
        Some("failed"),
        "the broken run ended as failed (03 §7.3)"
    );
    assert_eq!(desk.sim.orders_created(), 0, "a crash orders nothing");
}
