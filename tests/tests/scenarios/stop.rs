//! The Stop button: bound to the durable task, obeyed at the next safe point, and told to the server.

use std::time::Duration;

use cmautobuy_app::view::{LoginForm, TaskQuery, TaskStateView, WorkMode};
use cmautobuy_app::{App, StartOptions};
use cmautobuy_phone_sim::{Catalogue, SimConfig};
use cmautobuy_protocol::ServerStatus;
use cmautobuy_protocol::admin::AuthorizeDevice;

use crate::desk::{Desk, PASSWORD, USER};

async fn house(desk: &Desk) -> App {
    let options = StartOptions {
        data_dir: desk.data(),
        demo: None,
        phone: Some(desk.sim.addr().to_string()),
        secret_file: Some(desk.secret_file()),
        auto_start: false,
        log_to_terminal: false,
    };
    let app = App::start(options).await.expect("a fresh folder opens");
    desk.create_user();
    let user_id = desk.admin.admin().user_id(USER).unwrap().unwrap();
    let device_id = app.overview().await.unwrap().device_id.parse().unwrap();
    desk.admin.admin().authorize_device(&AuthorizeDevice { device_id, user_id, name: "desk".into() }).unwrap();
    let form = LoginForm { base_url: format!("http://{}", desk.server), user_name: USER.into(), password: PASSWORD.into() };
    app.login(form).await.expect("logs in");
    app
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_ends_the_run_at_a_safe_point_and_tells_the_server() {
    let desk = Desk::with(SimConfig { dump_time: Duration::from_millis(200), ..SimConfig::default() }, |_| {}).await;
    let app = house(&desk).await;
    let task = desk.collect_task(&Catalogue::builtin().goods[0].goods_id);
    app.start_work().await.expect("logged in");
    desk.until("the phone at work", || desk.local("SELECT current_step FROM task_runs").as_deref() == Some("collect_skus")).await;
    app.stop_work().await.expect("a stop is always taken");
    assert!(matches!(app.overview().await.unwrap().work, WorkMode::Stopping | WorkMode::Stopped), "the window says what is going on");
    desk.until("the server's word", || desk.on_server(task).task.status == ServerStatus::Canceled).await;
    desk.until("the sent report", || desk.local("SELECT status FROM outbox_events").as_deref() == Some("sent")).await;
    let page = app.task_list(TaskQuery { limit: 10, ..TaskQuery::default() }).await.unwrap();
    assert_eq!(page.items[0].state, TaskStateView::Cancelled, "stopped before anything that cannot be undone (D2)");
    assert_eq!(app.overview().await.unwrap().work, WorkMode::Stopped, "and nothing more is begun");
    let detail = app.task_detail(page.items[0].id).await.unwrap();
    assert!(!detail.runs[0].artifacts.is_empty(), "a stopped run leaves its last tree and picture (D12)");
    let touched = desk.sim.journal().len();

    let second = desk.collect_task(&Catalogue::builtin().goods[1].goods_id);
    assert_eq!(desk.on_server(second).task.status, ServerStatus::Pending, "a stopped desk claims nothing");
    app.start_work().await.expect("started again");
    desk.until("the next task done", || desk.on_server(second).task.status == ServerStatus::Succeeded).await;
    assert!(desk.sim.journal().len() > touched, "the phone works again only after Start");
    app.shutdown().await;
}
