//! Running it: backup, restore, pruning, figures, readiness, checks (D7, ADR 0006).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use cmautobuy_protocol::admin::{CreateTask, TaskSummary};
use cmautobuy_protocol::auth::Role;
use cmautobuy_protocol::lifecycle::ResumeReason;
use cmautobuy_protocol::{ErrorCode, ExecutionMode, RemoteTaskId, ServerStatus, TaskType};
use cmautobuy_server::{BackupError, Clock, Config, ReleaseHold, RestoreError, Server, TaskQuery, Verdict};
use serde_json::Value;

use crate::world::{Answer, World, attempt_id, call, collect, key_at, token};

fn live_purchase(goods: u64) -> CreateTask {
    CreateTask {
        task_type: TaskType::Purchase,
        execution_mode: ExecutionMode::Live,
        quantity: Some(1),
        max_price_cent: Some(500),
        external_ref: Some(format!("order {goods}")),
        ..collect(goods)
    }
}

/// Closes the world's server and opens its folder again.
fn reopened(world: World, change: impl FnOnce(&Config)) -> World {
    let World { dir, clock, server, router, admin_password, goods } = world;
    drop((server, router));
    let config = Config { data_dir: dir.path().to_owned(), ..Config::default() };
    change(&config);
    let server = Server::open(config, Arc::clone(&clock) as Arc<dyn Clock>).expect("the server opens again");
    let router = server.router();
    World { dir, clock, server, router, admin_password, goods }
}

#[tokio::test]
async fn d7_a_restore_goes_on_with_nothing_and_holds_live_purchases() {
    let mut world = World::new();
    let store = tempfile::tempdir().expect("a folder for backups");
    let file = store.path().join("monday.sqlite3");
    let (ended, running, pending, bought, waiting, claimed_task);
    let (claim, started, session);
    {
        let (ann, bob, cat) = (world.buyer("ann").await, world.buyer("bob").await, world.buyer("cat").await);
        ended = world.task();
        let done = ann.running().await;
        world.server.admin().cancel(done.task).expect("a cancel");
        let acked = ann.cancel_ack(&done, world.summary(done.task).version).await;
        assert_eq!(acked.status.as_u16(), 200, "an ended task is needed: {}", acked.text);
        running = world.task();
        started = bob.running().await;
        world.advance_s(1);
        bought = world.server.admin().create_task(&live_purchase(1), None).expect("a purchase").task_id;
        let bought_claim = ann.running().await;
        assert_eq!(bought_claim.task, bought, "ann runs the purchase");
        claimed_task = world.task();
        claim = cat.claim().await;
        pending = world.task();
        world.advance_s(1);
        waiting = world.server.admin().create_task(&live_purchase(2), None).expect("a purchase").task_id;
        world.server.backup(&file).expect("a backup of a server at work");
        // What happens after it is lost.
        world.task();
        world.advance_s(601);
        cat.beat().await.ok::<Value>();
        let again = cat.claim().await;
        assert_eq!((again.task, again.standing.claim_generation), (claimed_task, 2), "a generation the backup knows nothing of");
        session = world.admin().await;
    }
    let mut restored = None;
    world = reopened(world, |config| {
        let clock: Arc<dyn Clock> = Arc::new(cmautobuy_server::TestClock::new(crate::world::time("2026-03-02T09:00:00.000Z")));
        restored = Some(Server::restore(config.clone(), clock, &file).expect("a whole backup"));
    });
    let restored = restored.expect("it ran");
    assert_eq!((restored.tasks, restored.unclaimed), (6, 1), "all of the backup's tasks, and the one claim in it");
    assert_eq!(restored.held, [bought, waiting], "live purchases wait for a person");
    assert_eq!(restored.to_close, [running, bought], "what was started cannot go on by itself");
    let kept = restored.kept.expect("the old database is kept");
    assert!(kept.is_file(), "under a name of its own");

    let status = |task: RemoteTaskId| world.summary(task);
    for task in [ended, running, pending, bought, waiting, claimed_task] {
        assert!(status(task).claim_generation >= 1_000_000, "{task}: every generation rises beyond what could have been given out");
    }
    assert_eq!(status(ended).status, ServerStatus::Canceled, "what had ended stays ended");
    assert_eq!(status(claimed_task).status, ServerStatus::Pending, "a claim is taken back");
    assert_eq!(world.event_kinds(claimed_task).last().map(String::as_str), Some("RESTORED"), "and its history says so");
    world.get("/auth/me", &session.access_token).await.is(
        401,
        ErrorCode::Unauthenticated,
        "every login ends, the ended ones of the backup too",
    );
    world.clock.set(crate::world::time("2026-03-02T09:00:01.000Z"));

    let find = |name: &str| {
        let page = world.server.admin().users(&Default::default()).expect("users");
        page.users.into_iter().find(|user| user.user_name == name).expect("the user").user_id
    };
    let device_of = |user| world.server.admin().devices(Some(user), None, None).expect("devices").devices[0].device_id;
    let (cat_id, bob_id) = (find("cat"), find("bob"));
    let cat = world.client("cat", cat_id, device_of(cat_id)).await;
    world.advance_s(121);
    cat.beat().await.ok::<Value>();
    // Nothing of the lost second claim may be taken for the new one.
    let key = key_at(world.now());
    cat.claim_with(&claim.token, &claim.key).await.is(409, ErrorCode::ClaimReplayExpired, "the backup's claim is over");
    let fresh: cmautobuy_protocol::lifecycle::ClaimAnswer = cat.claim_with(&token(), &key).await.ok();
    assert_eq!(fresh.standing.claim_generation, 1_000_002, "one beyond the raised one");
    assert_eq!(fresh.standing.task_id, claimed_task, "the oldest that is free; the older purchase is held");
    cat.start(&claim).await.is(409, ErrorCode::ExecutionMismatch, "an old claim starts nothing");

    let bob = world.client("bob", bob_id, device_of(bob_id)).await;
    bob.beat().await.ok::<Value>();
    bob.resume(&started, ResumeReason::LeaseLost, (attempt_id(), 2)).await.is(
        409,
        ErrorCode::ExecutionMismatch,
        "nothing goes on by itself",
    );
    let closed = world.server.admin().close(
        running,
        &cmautobuy_server::CloseTask { reason: "restored".to_owned(), expected_version: status(running).version, order_checked: false },
    );
    assert_eq!(closed.expect("its lease ended with the restore").status, ServerStatus::Failed, "a person ends it");

    let page = world.server.admin().list(&TaskQuery { held: Some(true), ..TaskQuery::default() }).expect("a list");
    assert_eq!(page.tasks.iter().map(|task| task.task_id).collect::<Vec<_>>(), [waiting, bought], "what is held can be listed");
    let admin = world.admin().await;
    let hold = |version, order_checked| ReleaseHold { expected_version: version, order_checked };
    let release = async |task: RemoteTaskId, asked: ReleaseHold| -> Answer {
        world.send(&format!("/admin/tasks/{task}/release-hold"), Some(&admin.access_token), &[], &asked).await
    };
    let version = status(waiting).version;
    release(waiting, hold(version, false)).await.is(409, ErrorCode::IllegalState, "nobody looked through the order list");
    release(waiting, hold(version + 1, true)).await.is(409, ErrorCode::VersionConflict, "somebody looked at another state");
    release(pending, hold(status(pending).version, true)).await.is(409, ErrorCode::IllegalState, "a task that is not held");
    let freed: TaskSummary = release(waiting, hold(version, true)).await.ok();
    assert!(!freed.held, "looked at, it goes on");
    release(waiting, hold(freed.version, true)).await.is(409, ErrorCode::IllegalState, "once");
}

#[tokio::test]
async fn held_purchases_are_never_given_out() {
    let mut world = World::new();
    let store = tempfile::tempdir().expect("a folder for backups");
    let file = store.path().join("b.sqlite3");
    let task = world.server.admin().create_task(&live_purchase(1), None).expect("a purchase").task_id;
    world.server.backup(&file).expect("a backup");
    let clock = Arc::clone(&world.clock);
    world = reopened(world, |config| {
        Server::restore(config.clone(), clock as Arc<dyn Clock>, &file).expect("a restore");
    });
    let ann = world.buyer("ann").await;
    assert_eq!(ann.try_claim().await.status.as_u16(), 204, "the only task is held");
    let version = world.summary(task).version;
    world.server.admin().release_hold(task, &ReleaseHold { expected_version: version, order_checked: true }).expect("released");
    assert_eq!(ann.claim().await.task, task, "now it is given out");
}

#[tokio::test]
async fn a_restore_that_cannot_be_right_changes_nothing() {
    let world = World::new();
    let other = World::new();
    let store = tempfile::tempdir().expect("a folder for backups");
    let (own, strange, cut, text, newer) = ["own", "strange", "cut", "text", "newer"].map(|name| store.path().join(name)).into();
    world.task();
    world.server.backup(&own).expect("a backup");
    other.server.backup(&strange).expect("a backup of another server");
    let bytes = std::fs::read(&own).expect("the backup");
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).expect("half a backup");
    std::fs::write(&text, "not a database at all, but long enough to look like something").expect("a text");
    std::fs::copy(&own, &newer).expect("a copy");
    let connection = rusqlite::Connection::open(&newer).expect("the copy");
    connection.pragma_update(None, "user_version", 99).expect("a version");
    drop(connection);
    let config = Config { data_dir: world.dir.path().to_owned(), ..Config::default() };
    let restore = |file: &PathBuf| Server::restore(config.clone(), Arc::clone(&world.clock) as Arc<dyn Clock>, file);
    let busy = restore(&own).expect_err("the server is open");
    assert!(matches!(busy, RestoreError::InUse { .. }), "a server at work must be stopped first, not overwritten: {busy}");
    let World { dir, clock, server, router, .. } = world;
    drop((server, router));
    let before = std::fs::read(dir.path().join("server.sqlite3")).expect("the database");
    let restore = |file: &PathBuf| Server::restore(config.clone(), Arc::clone(&clock) as Arc<dyn Clock>, file);
    for (name, file, word) in
        [("cut", &cut, "whole"), ("text", &text, "whole"), ("newer", &newer, "newer"), ("none", &store.path().join("none"), "read")]
    {
        let said = restore(file).expect_err("no whole backup").to_string();
        assert!(said.contains(word), "{name}: `{said}` must say `{word}`");
    }
    let strange = restore(&strange).expect_err("another server's");
    assert!(matches!(strange, RestoreError::OtherServer { .. }), "clients are bound to their server (D7): {strange}");
    assert_eq!(std::fs::read(dir.path().join("server.sqlite3")).expect("the database"), before, "the database is as it was");
    restore(&own).expect("and the right one is taken");
}

#[tokio::test]
async fn a_damaged_database_can_be_replaced() {
    let world = World::new();
    world.task();
    let store = tempfile::tempdir().expect("a folder for backups");
    let file = store.path().join("good");
    let backup = world.server.backup(&file).expect("a backup");
    assert_eq!(backup.tasks, 1, "the backup was read back");
    assert!(matches!(world.server.backup(&file), Err(BackupError::Exists { .. })), "a backup is never overwritten");
    let World { dir, clock, server, router, .. } = world;
    drop((server, router));
    let database = dir.path().join("server.sqlite3");
    std::fs::write(&database, vec![0x55; 8192]).expect("a ruined disk");
    std::fs::write(dir.path().join("server.sqlite3-wal"), b"left over").expect("a left-over log");
    let config = Config { data_dir: dir.path().to_owned(), ..Config::default() };
    assert!(Server::open(config.clone(), Arc::clone(&clock) as Arc<dyn Clock>).is_err(), "a ruined database cannot be opened");
    let restored = Server::restore(config.clone(), Arc::clone(&clock) as Arc<dyn Clock>, &file).expect("a whole backup");
    assert!(restored.kept.is_some_and(|kept| kept.is_file()), "even a ruined database is kept");
    let server = Server::open(config, clock as Arc<dyn Clock>).expect("it opens again");
    assert_eq!(server.admin().list(&TaskQuery::default()).expect("a list").tasks.len(), 1, "with what the backup had");
}

#[tokio::test]
async fn keys_are_forgotten_only_when_no_claim_with_them_is_taken_any_more() {
    let world = World::new();
    let ann = world.buyer("ann").await;
    world.task();
    let claim = ann.claim().await;
    world.advance_s(31 * 24 * 3600 - 1);
    let early = world.server.prune().expect("a pruning");
    assert_eq!((early.keys, early.logins), (0, 1), "the key is younger than 31 days, its login ran out a day ago");
    world.advance_s(2);
    assert_eq!(world.server.prune().expect("a pruning").keys, 1, "31 days old");
    let user = ann.user;
    let again = world.client("ann", user, ann.device).await;
    again.beat().await;
    again.claim_with(&claim.token, &claim.key).await.is(409, ErrorCode::ClaimReplayExpired, "D5: forgotten, it is still never a new claim");
    assert_eq!(world.server.prune().expect("a pruning").keys, 0, "and there is nothing more");
}

async fn look(world: &World, path: &str, bearer: Option<&str>) -> Answer {
    let mut request = Request::get(path);
    if let Some(token) = bearer {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    call(&world.router, request.body(Body::empty()).expect("a request")).await
}

#[tokio::test]
async fn figures_are_for_whoever_has_the_token_and_hold_nothing_typed() {
    let keys = tempfile::tempdir().expect("a folder for the token");
    let file = keys.path().join("metrics.token");
    let secret = "0123456789abcdef0123456789abcdef";
    std::fs::write(&file, format!("{secret}\n")).expect("the token");
    let world = World::with(Config { metrics_token_file: Some(file.clone()), ..Config::default() });
    let ann = world.buyer("ann").await;
    world.task();
    world.task();
    ann.running().await;
    world.advance_s(91);
    look(&world, "/api/v1/tasks/what-a-person-typed/nothing", None).await;
    look(&world, "/metrics", None).await.is(401, ErrorCode::Unauthenticated, "figures are not for strangers");
    look(&world, "/metrics", Some(&secret[1..])).await.is(401, ErrorCode::Unauthenticated, "nor for half a token");
    look(&world, "/metrics", Some(ann.access.reveal())).await.is(403, ErrorCode::Forbidden, "nor for buyers");
    let admin = world.admin().await;
    assert_eq!(look(&world, "/metrics", Some(admin.access_token.reveal())).await.status.as_u16(), 200, "an administrator may look");
    let figures = look(&world, "/metrics", Some(secret)).await;
    assert_eq!(figures.status.as_u16(), 200, "the token opens it: {}", figures.text);
    for line in [
        "autobuy_tasks{status=\"PENDING\"} 1",
        "autobuy_tasks{status=\"RUNNING\"} 1",
        "autobuy_tasks_stalled 1",
        "autobuy_devices{state=\"live\"} 1",
        "autobuy_http_requests_total{method=\"POST\",route=\"/api/v1/tasks/claim-next\",status=\"200\"} 1",
        "autobuy_http_request_duration_seconds_bucket{le=\"0.005\",method=\"POST\",route=\"/api/v1/tasks/claim-next\"}",
    ] {
        assert!(figures.text.contains(line), "`{line}` must be among the figures:\n{}", figures.text);
    }
    assert!(figures.text.ends_with("# EOF\n") && figures.text.matches("# EOF").count() == 1, "one whole OpenMetrics text");
    assert!(!figures.text.contains("typed"), "no label is what a caller typed");
    std::fs::write(&file, "short").expect("the token");
    let dir = tempfile::tempdir().expect("a folder");
    let config = Config { data_dir: dir.path().to_owned(), metrics_token_file: Some(file), ..Config::default() };
    assert!(Server::open(config, Arc::clone(&world.clock) as Arc<dyn Clock>).is_err(), "a token that can be guessed is refused at start");
}

#[tokio::test]
async fn it_is_ready_only_while_there_is_disk() {
    let fine = World::new();
    assert_eq!(look(&fine, "/readyz", None).await.text, "ready", "a fresh server is ready");
    let full = World::with(Config { min_free_bytes: 1 << 40, ..Config::default() });
    let said = look(&full, "/readyz", None).await;
    let body = said.is(503, ErrorCode::Unavailable, "too little disk");
    assert!(body.error.message.contains("disk"), "the reason must be named: {}", body.error.message);
    assert_eq!(look(&full, "/healthz", None).await.status.as_u16(), 200, "it lives all the same, so nobody restarts it in vain");
}

#[tokio::test]
async fn the_doctor_names_what_is_wrong_and_what_to_do() {
    let verdict =
        |checks: &[cmautobuy_server::Check], name: &str| checks.iter().find(|check| check.name == name).map(|check| check.verdict);
    let world = World::new();
    let config = Config { data_dir: world.dir.path().to_owned(), listen: "127.0.0.1:0".parse().expect("an address"), ..Config::default() };
    let fine = Server::doctor(&config, &*world.clock);
    let bad: Vec<_> = fine.iter().filter(|check| check.verdict != Verdict::Ok).collect();
    assert!(bad.is_empty(), "nothing is wrong with a fresh server, also while it runs: {bad:?}");
    let ann = world.buyer("ann").await;
    world.task();
    ann.running().await;
    drop(ann);
    world.advance_s(121);
    let later = Server::doctor(&config, &*world.clock);
    assert_eq!(verdict(&later, "stalled"), Some(Verdict::Warn), "a run whose device went silent");
    assert_eq!(verdict(&later, "devices"), Some(Verdict::Warn), "and the device");
    world.clock.set(crate::world::time("2026-03-01T00:00:00.000Z"));
    let back = Server::doctor(&config, &*world.clock);
    assert_eq!(verdict(&back, "clock"), Some(Verdict::Fail), "a clock that was set back makes leases wrong");
    world.clock.set(crate::world::time("2026-03-02T08:30:00.000Z"));

    let nowhere = tempfile::tempdir().expect("a folder");
    let rows: [(&str, Config, &str, Verdict); 6] = [
        ("no folder yet", Config { data_dir: nowhere.path().join("none"), ..config.clone() }, "data folder", Verdict::Warn),
        ("no database yet", Config { data_dir: nowhere.path().to_owned(), ..config.clone() }, "database", Verdict::Warn),
        ("bounds", Config { run_lease: Duration::from_secs(1), ..config.clone() }, "settings", Verdict::Fail),
        ("open to others", Config { listen: "0.0.0.0:0".parse().expect("an address"), ..config.clone() }, "tls", Verdict::Fail),
        (
            "no certificate",
            Config {
                tls: Some(cmautobuy_server::TlsFiles { certificate: nowhere.path().join("c"), key: nowhere.path().join("k") }),
                ..config.clone()
            },
            "tls",
            Verdict::Fail,
        ),
        ("disk", Config { min_free_bytes: 1 << 40, ..config.clone() }, "disk", Verdict::Fail),
    ];
    for (name, config, check, expected) in rows {
        let checks = Server::doctor(&config, &*world.clock);
        assert_eq!(verdict(&checks, check), Some(expected), "row `{name}`: {checks:?}");
    }
    assert!(!nowhere.path().join("none").exists() && !nowhere.path().join("server.sqlite3").exists(), "a doctor makes nothing");
    world.add_user("second", &[Role::Buyer]);
    let World { dir, server, router, clock, .. } = world;
    drop((server, router));
    let path = dir.path().join("server.sqlite3");
    let mut bytes = std::fs::read(&path).expect("the database");
    let middle = bytes.len() / 2;
    bytes[middle..middle + 4096].fill(0xee);
    std::fs::write(&path, bytes).expect("a ruined page");
    let checks = Server::doctor(&config, &*clock);
    assert_eq!(verdict(&checks, "database"), Some(Verdict::Fail), "a ruined page must be found: {checks:?}");
}
