//! D6: neither the database file nor the log holds a secret, whatever was called.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::http::Request;
use cmautobuy_protocol::Password;
use cmautobuy_protocol::account::SetPassword;
use cmautobuy_protocol::auth::{RefreshRequest, Session};
use cmautobuy_protocol::lifecycle::ResumeReason;
use cmautobuy_server::Config;
use serde_json::json;

use crate::results::{Report, report};
use crate::world::{PASSWORD, World, attempt_id, call};

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn holds(hay: &[u8], needle: &str) -> bool {
    hay.windows(needle.len()).any(|window| window == needle.as_bytes())
}

async fn put(world: &World, admin: &Session, path: &str, body: Vec<u8>) -> u16 {
    let request = Request::put(format!("/api/v1{path}")).header("authorization", format!("Bearer {}", admin.access_token.reveal()));
    call(&world.router, request.body(Body::from(body)).expect("a request")).await.status.as_u16()
}

async fn metrics(world: &World, token: &str) -> String {
    let request = Request::get("/metrics").header("authorization", format!("Bearer {token}"));
    let answer = call(&world.router, request.body(Body::empty()).expect("a request")).await;
    assert_eq!(answer.status.as_u16(), 200, "the token opens the figures");
    answer.text
}

#[tokio::test]
async fn d6_a_whole_run_leaves_no_secret_in_the_database_or_the_log() {
    let log = Captured::default();
    let writer = log.clone();
    // The whole process: blocking threads log too. Only this test sets it.
    tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_ansi(false).with_writer(move || writer.clone()).init();

    let keys = tempfile::tempdir().expect("a folder for the token");
    let (metrics_token, file) = ("a-token-only-the-watcher-may-have-0123", keys.path().join("metrics.token"));
    std::fs::write(&file, metrics_token).expect("the token");
    let world = World::with(Config { metrics_token_file: Some(file), ..Config::default() });
    let admin = world.admin().await;
    let ann = world.buyer("ann").await;
    world.login_answer("ann", "a-wrong-password-entirely", None).await.refused(401);
    let task = world.task();
    let session: Session = world.login("ann", PASSWORD, Some(ann.device)).await;
    let refreshed: Session =
        world.send("/auth/refresh", None, &[], &RefreshRequest { refresh_token: session.refresh_token.clone() }).await.ok();
    let claim = ann.running().await;
    ann.run_beat(&claim, "read_title").await.ok::<serde_json::Value>();
    let mut forged = claim.clone();
    forged.token = crate::world::token();
    ann.resume(&forged, ResumeReason::Restart, (attempt_id(), 2)).await.refused(409);
    report(&ann, &claim, Report::of(&claim)).await;
    let broken = json!({"user_name": "x", "password": {"wrong": "secret-in-the-wrong-place"}});
    let echoed = world.send("/auth/login", None, &[], &broken).await;
    assert!(!echoed.text.contains("secret-in-the-wrong-place"), "a refusal must not repeat what stood in a login");
    let other = world.add_user("zoe", &[cmautobuy_protocol::auth::Role::Reviewer]);
    let zoe: Session = world.login("zoe", PASSWORD, None).await;
    let new_password = "the-next-password-of-zoe";
    let asked = SetPassword { password: Password::new(new_password) };
    let path = format!("/admin/users/{other}/password");
    assert_eq!(put(&world, &admin, &path, serde_json::to_vec(&asked).expect("JSON")).await, 204, "a password is set");
    assert_eq!(put(&world, &admin, &path, br#"{"password": "left-in-a-broken-body"#.to_vec()).await, 422, "a broken body is refused");
    world.login_answer("a-password-typed-as-the-name", PASSWORD, None).await.refused(401);
    let list = format!("goods_url\n1\n{}\n", "no-link-at-all");
    world.server.admin().import_tasks(list.as_bytes(), false, None).expect("a report");
    let figures = metrics(&world, metrics_token).await;
    let file = world.dir.path().join("copy.backup");
    world.server.backup(&file).expect("a backup");
    world.send("/auth/logout", Some(&zoe.access_token), &[], &json!({})).await;
    let detail = world.get(&format!("/admin/tasks/{task}"), &admin.access_token).await;

    let database = world.database_bytes();
    let log = log.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert!(holds(&database, &task.to_string()), "the search must be able to find something in the database");
    assert!(holds(&log, &task.to_string()), "the search must be able to find something in the log");
    let secrets = [
        ("password that was set", new_password),
        ("password in a broken body", "left-in-a-broken-body"),
        ("name typed at a login", "a-password-typed-as-the-name"),
        ("token of the figures", metrics_token),
        ("access token of a login that ended", zoe.access_token.reveal()),
        ("first admin's password", world.admin_password.reveal()),
        ("buyer's password", PASSWORD),
        ("wrong password", "a-wrong-password-entirely"),
        ("misplaced password", "secret-in-the-wrong-place"),
        ("admin's access token", admin.access_token.reveal()),
        ("buyer's access token", ann.access.reveal()),
        ("refresh token", session.refresh_token.reveal()),
        ("next refresh token", refreshed.refresh_token.reveal()),
        ("next access token", refreshed.access_token.reveal()),
        ("claim token", claim.token.reveal()),
        ("forged claim token", forged.token.reveal()),
    ];
    for (name, secret) in secrets {
        assert!(!holds(&database, secret), "the database must not hold the {name}");
        assert!(!holds(&log, secret), "the log must not hold the {name}");
        assert!(!holds(figures.as_bytes(), secret), "the figures must not hold the {name}");
    }
    for (name, hash) in [("claim token", claim.token.sha256_hex()), ("forged", forged.token.sha256_hex())] {
        assert!(!detail.text.contains(&hash), "not even an administrator sees the hash of the {name}");
        assert!(!holds(&log, &hash), "nor does the log hold the hash of the {name}");
    }
}
