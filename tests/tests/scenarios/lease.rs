//! D3's named scenarios that need both ends: leases lost and won back while the phone is in use.

use std::time::Duration;

use cmautobuy_phone_sim::{Catalogue, SimConfig};
use cmautobuy_protocol::ServerStatus;

use crate::desk::{Desk, Fate};

fn goods_id() -> String {
    Catalogue::builtin().goods[0].goods_id.clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_answered_and_lost_is_replayed_into_the_same_execution() {
    let desk = Desk::new().await;
    desk.ready().await;
    let task = desk.collect_task(&goods_id());
    desk.gate.set("/start", Fate::LoseAnswer);
    let mut client = desk.spawn(&["run"]);
    desk.until("the server's start", || desk.on_server(task).task.status == ServerStatus::Running).await;
    desk.gate.set("(none)", Fate::Pass);
    // The same process times out, replays the same key and goes on.
    desk.until("success", || desk.on_server(task).task.status == ServerStatus::Succeeded).await;
    assert_eq!(desk.on_server(task).executions.len(), 1, "one execution (T-205 §7)");
    assert_eq!(desk.local("SELECT count(*) FROM task_runs").as_deref(), Some("1"), "one run");
    client.kill().await.unwrap();
}

/// Slow enough that a run of these goods outlives a lease of 30 s and a heartbeat interval: without that, nothing is proven here.
async fn slow_desk() -> Desk {
    let sim = SimConfig { dump_time: Duration::from_secs(1), ..SimConfig::default() };
    let desk = Desk::with(sim, |config| config.run_lease = Duration::from_secs(30)).await;
    desk.ready().await;
    desk
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_server_the_phone_is_left_alone_and_the_run_goes_on_after() {
    let desk = slow_desk().await;
    let task = desk.collect_task(&goods_id());
    let mut client = desk.spawn(&["run"]);
    desk.until("the phone at work", || desk.local("SELECT current_step FROM task_runs").as_deref() == Some("collect_skus")).await;
    desk.gate.set("", Fate::Outage);
    let began = tokio::time::Instant::now();
    let passed = |seconds| move || began.elapsed() > Duration::from_secs(seconds);
    // The last renewal came before the outage, so its 30 s are over by now, and with them the action that was under way.
    desk.until("the end of every lease", passed(36)).await;
    let touched = desk.sim.journal().len();
    desk.until("some more time", passed(46)).await;
    assert_eq!(desk.sim.journal().len(), touched, "without a live lease nothing is tapped (D3)");
    assert_eq!(
        desk.local("SELECT status FROM pdd_tasks").as_deref(),
        Some("running"),
        "the attempt is paused, not given up: 10 min are left"
    );
    desk.gate.set("(none)", Fate::Pass);
    desk.until("success", || desk.on_server(task).task.status == ServerStatus::Succeeded).await;
    assert!(desk.sim.journal().len() > touched, "the run went on from where it was");
    let detail = desk.on_server(task);
    assert!(
        detail.events.iter().any(|event| event.kind == "RUN_RESUMED"),
        "the lease was asked for again, not assumed: {:?}",
        detail.events
    );
    assert_eq!(detail.executions.len(), 1, "the same execution was resumed, none was begun anew");
    assert_eq!(detail.task.claim_generation, 1, "an expired RUNNING task is never given away (T-205 §8)");
    assert_eq!(desk.local("SELECT count(*) FROM task_runs").as_deref(), Some("1"), "the same attempt re-entered its step (D3)");
    client.kill().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrators_cancel_stops_a_run_at_a_safe_point() {
    let desk = slow_desk().await;
    let task = desk.collect_task(&goods_id());
    let mut client = desk.spawn(&["run"]);
    desk.until("the phone at work", || desk.local("SELECT current_step FROM task_runs").as_deref() == Some("collect_skus")).await;
    desk.admin.admin().cancel(task).expect("a running task can be asked to stop");
    assert_eq!(desk.on_server(task).task.status, ServerStatus::Running, "asking is not stopping (T-205 §10)");
    desk.until("an end", || desk.on_server(task).task.status.is_terminal()).await;
    assert_eq!(desk.on_server(task).task.status, ServerStatus::Canceled, "heard with a heartbeat and acknowledged at a safe point (D9)");
    desk.until("the client's row", || desk.local("SELECT status FROM pdd_tasks").as_deref() == Some("cancelled")).await;
    assert_eq!(
        desk.local("SELECT count(*) FROM outbox_events").as_deref(),
        Some("0"),
        "the acknowledgement is the report; there is no second (D2)"
    );
    assert_eq!(desk.local("SELECT run_status FROM task_runs").as_deref(), Some("cancelled"), "and the run is closed with it");
    client.kill().await.unwrap();
}
