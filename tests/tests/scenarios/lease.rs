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

#[tokio::test(flavor = "multi_thread")]
async fn without_the_server_the_phone_is_left_alone_and_the_run_goes_on_after() {
    let sim = SimConfig { dump_time: Duration::from_millis(400), ..SimConfig::default() };
    let desk = Desk::with(sim, |config| config.run_lease = Duration::from_secs(30)).await;
    desk.ready().await;
    let task = desk.collect_task(&goods_id());
    let mut client = desk.spawn(&["run"]);
    desk.until("the phone at work", || desk.local("SELECT current_step FROM task_runs").as_deref() == Some("collect_skus")).await;
    // Everything about this task is refused by the network; the lease of 30 s runs out meanwhile.
    desk.gate.set("", Fate::Outage);
    let quiet_for = Duration::from_secs(5);
    let mut last = (desk.sim.journal().len(), tokio::time::Instant::now());
    let began = tokio::time::Instant::now();
    desk.until("a phone nobody touches", || {
        let now = (desk.sim.journal().len(), tokio::time::Instant::now());
        if now.0 != last.0 {
            last = now;
        }
        let done = desk.local("SELECT status FROM pdd_tasks").as_deref() != Some("running");
        done || (now.1.duration_since(last.1) > quiet_for && now.1.duration_since(began) > Duration::from_secs(26))
    })
    .await;
    desk.gate.set("(none)", Fate::Pass);
    desk.until("success", || desk.on_server(task).task.status == ServerStatus::Succeeded).await;
    let detail = desk.on_server(task);
    assert_eq!(detail.executions.len(), 1, "the same execution was resumed, none was begun anew");
    assert_eq!(detail.task.claim_generation, 1, "an expired RUNNING task is never given away (T-205 §8)");
    client.kill().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrators_cancel_stops_a_run_at_a_safe_point() {
    let sim = SimConfig { dump_time: Duration::from_millis(300), ..SimConfig::default() };
    let desk = Desk::with(sim, |config| config.run_lease = Duration::from_secs(30)).await;
    desk.ready().await;
    let task = desk.collect_task(&goods_id());
    let mut client = desk.spawn(&["run"]);
    desk.until("the phone at work", || desk.local("SELECT current_step FROM task_runs").as_deref() == Some("collect_skus")).await;
    desk.admin.admin().cancel(task).expect("a running task can be asked to stop");
    assert_eq!(desk.on_server(task).task.status, ServerStatus::Running, "asking is not stopping (T-205 §10)");
    desk.until("an end", || desk.on_server(task).task.status.is_terminal()).await;
    // The client hears of it with a heartbeat; a run that ended before that keeps its result, which is as good an end (D9).
    let status = desk.on_server(task).task.status;
    let local = match status {
        ServerStatus::Canceled => "cancelled",
        _ => "succeeded",
    };
    desk.until("the client's row", || desk.local("SELECT status FROM pdd_tasks").as_deref() == Some(local)).await;
    client.kill().await.unwrap();
}
