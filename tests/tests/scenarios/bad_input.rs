//! What bad input gets: a sentence that names the cause and the next step, in both languages, and nothing lost.

use cmautobuy_app::problem::Kind;
use cmautobuy_phone_sim::{Catalogue, Fault, SimConfig};
use cmautobuy_protocol::ServerStatus;

use crate::desk::{Desk, Said};

fn goods_id() -> String {
    Catalogue::builtin().goods[1].goods_id.clone()
}

/// The program ended with this problem's own two sentences.
fn assert_says(said: &Said, kind: Kind, lang: &str) {
    let problem = kind.with("");
    let sentence = if lang == "en" { problem.en } else { problem.zh };
    let all = format!("{}{}", said.out, said.err);
    assert!(all.contains(kind.code()), "{kind:?}: the code is named: {said:?}");
    assert!(
        all.contains(&sentence.cause) && all.contains(&sentence.next_step),
        "{kind:?} in {lang}: cause and next step are said: {said:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn server_down() {
    let desk = Desk::new().await;
    desk.ready().await;
    desk.switch_off_server();
    for lang in ["zh", "en"] {
        let said = desk.run(&["--lang", lang, "login", "--server", &format!("http://{}", desk.server), "--user", "x"]).await;
        assert!(!said.ok, "a login without a server fails");
        assert_says(&said, Kind::ServerUnreachable, lang);
    }
    let said = desk.run(&["--lang", "en", "doctor"]).await;
    assert_says(&said, Kind::ServerUnreachable, "en");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_password() {
    let desk = Desk::new().await;
    desk.create_user();
    desk.authorize().await;
    for lang in ["zh", "en"] {
        let server = format!("http://{}", desk.server);
        let mut command = desk.client(&["--lang", lang, "login", "--server", &server, "--user", crate::desk::USER]);
        let output = command.env("CMAUTOBUY_PASSWORD", "wrong").output().await.unwrap();
        let said = Said { ok: output.status.success(), out: String::new(), err: String::from_utf8_lossy(&output.stderr).into_owned() };
        assert!(!said.ok, "a wrong password is refused");
        assert_says(&said, Kind::LoginRefused, lang);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn device_not_authorized() {
    let desk = Desk::new().await;
    desk.create_user();
    let said = desk.login().await;
    assert!(!said.ok, "an unknown device may not log in");
    assert_says(&said, Kind::DeviceNotAuthorized, "en");
}

#[tokio::test(flavor = "multi_thread")]
async fn phone_gone_in_the_middle() {
    let desk = Desk::new().await;
    desk.ready().await;
    let task = desk.collect_task(&goods_id());
    let mut client = desk.spawn(&["run"]);
    desk.until("the phone at work", || desk.local("SELECT current_step FROM task_runs").as_deref() == Some("collect_skus")).await;
    desk.sim.set_fault(Fault::DropConnections);
    desk.until("the task waiting for a retry", || desk.local("SELECT status FROM pdd_tasks").as_deref() == Some("retry_wait")).await;
    let code = desk.local("SELECT last_error_code FROM pdd_tasks").expect("the cause is kept");
    assert!(Kind::from_code(&code).is_some(), "`{code}` must lead to a sentence in both languages");
    assert_eq!(
        desk.on_server(task).task.status,
        ServerStatus::Running,
        "the server keeps the device's slot and never gives the task away (D2)"
    );
    client.kill().await.unwrap();
    desk.sim.clear_faults();
    let said = desk.run(&["run", "--once", "--within-seconds", "110"]).await;
    assert!(said.ok, "started again, the waiting task goes first and succeeds: {said:?}");
    assert_eq!(desk.on_server(task).task.status, ServerStatus::Succeeded, "nothing was lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn pinduoduo_missing() {
    let desk = Desk::with(SimConfig { pdd_installed: false, ..SimConfig::default() }, |_| {}).await;
    desk.ready().await;
    let task = desk.collect_task(&goods_id());
    for lang in ["zh", "en"] {
        assert_says(&desk.run(&["--lang", lang, "doctor"]).await, Kind::PddMissing, lang);
    }
    desk.run(&["run", "--once", "--within-seconds", "3"]).await;
    assert_eq!(desk.on_server(task).task.status, ServerStatus::Pending, "a phone without Pinduoduo claims nothing (T-205 §4)");
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_dump() {
    let desk = Desk::new().await;
    desk.ready().await;
    let task = desk.collect_task(&goods_id());
    let mut client = desk.spawn(&["run"]);
    desk.until("the phone at work", || desk.local("SELECT current_step FROM task_runs").as_deref() == Some("collect_skus")).await;
    desk.sim.set_fault(Fault::TruncatedXml { times: 10_000 });
    desk.until("the run given up", || {
        matches!(desk.local("SELECT status FROM pdd_tasks").as_deref(), Some("retry_wait" | "manual_review"))
    })
    .await;
    let code = desk.local("SELECT last_error_code FROM pdd_tasks").expect("the cause is kept");
    assert!(Kind::from_code(&code).is_some(), "`{code}` must lead to a sentence in both languages");
    client.kill().await.unwrap();
    assert_eq!(desk.local("SELECT count(*) FROM task_runs WHERE run_status = 'running'").as_deref(), Some("0"), "no run is left open");
    assert_ne!(desk.on_server(task).task.status, ServerStatus::Pending, "the task was not given to somebody else");
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_goods() {
    let desk = Desk::new().await;
    desk.ready().await;
    let task = desk.collect_task("999999999999");
    let said = desk.run(&["--lang", "en", "run", "--once", "--within-seconds", "110"]).await;
    assert!(said.ok, "a failed task is a settled task: {said:?}");
    let detail = desk.on_server(task);
    assert_eq!(detail.task.status, ServerStatus::Failed, "goods that do not exist are reported as failed");
    assert_eq!(detail.results[0].body["failure"]["code"], "GOODS_REMOVED", "with the cause");
    assert_eq!(desk.local("SELECT last_error_code FROM pdd_tasks").as_deref(), Some(Kind::GoodsRemoved.code()), "which the window words");
}

#[tokio::test(flavor = "multi_thread")]
async fn captcha_goes_to_a_person() {
    let desk = Desk::new().await;
    desk.ready().await;
    desk.sim.set_fault(Fault::CaptchaOnGoods);
    let task = desk.collect_task(&goods_id());
    let said = desk.run(&["run", "--once", "--within-seconds", "110"]).await;
    assert!(said.ok, "handing a task to a person settles it: {said:?}");
    let detail = desk.on_server(task);
    assert_eq!(detail.task.status, ServerStatus::WaitingConfirmation, "a person must look");
    assert_eq!(detail.results[0].body["failure"]["code"], Kind::RiskWall.code(), "with the cause");
    let pictures = desk.local("SELECT count(*) FROM run_artifacts WHERE kind = 'screenshot'").unwrap_or_default();
    assert_ne!(pictures, "0", "a stopped run leaves its last picture (D12)");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_copy_on_the_same_folder() {
    let desk = Desk::new().await;
    desk.ready().await;
    let mut first = desk.spawn(&["run"]);
    desk.until("the first copy holding the folder", || {
        std::fs::read_to_string(desk.data().join("lock.owner"))
            .is_ok_and(|owner| first.id().is_some_and(|id| owner.contains(&id.to_string())))
    })
    .await;
    for lang in ["zh", "en"] {
        let said = desk.run(&["--lang", lang, "status"]).await;
        assert!(!said.ok, "two copies would both drive the phone");
        assert_says(&said, Kind::SecondInstance, lang);
        assert!(said.err.contains(&first.id().unwrap().to_string()), "the other process is named: {said:?}");
    }
    first.kill().await.unwrap();
    assert!(desk.run(&["status"]).await.ok, "a killed owner leaves no lock behind");
}

#[tokio::test(flavor = "multi_thread")]
async fn unwritable_data_folder() {
    let desk = Desk::new().await;
    // A file where the folder should be: refused for every user, root included.
    std::fs::write(desk.data(), b"not a folder").unwrap();
    for lang in ["zh", "en"] {
        let said = desk.run(&["--lang", lang, "status"]).await;
        assert!(!said.ok, "nothing can be kept there");
        assert_says(&said, Kind::FolderUnwritable, lang);
        assert!(said.err.contains(&desk.data().display().to_string()), "the folder is named: {said:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copied_folder_without_its_key_is_refused() {
    let desk = Desk::new().await;
    desk.ready().await;
    std::fs::remove_file(desk.secret_file()).unwrap();
    let said = desk.run(&["--lang", "en", "status"]).await;
    assert!(!said.ok, "a folder copied from elsewhere must not be driven here (D7)");
    assert_says(&said, Kind::KeyMissing, "en");
}
