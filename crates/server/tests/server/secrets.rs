//! D6: neither the database file nor the log holds a secret, whatever was called.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use cmautobuy_protocol::auth::{RefreshRequest, Session};
use cmautobuy_protocol::lifecycle::ResumeReason;
use serde_json::json;

use crate::results::{Report, report};
use crate::world::{PASSWORD, World, attempt_id};

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

#[tokio::test]
async fn d6_a_whole_run_leaves_no_secret_in_the_database_or_the_log() {
    let log = Captured::default();
    let writer = log.clone();
    // The whole process: blocking threads log too. Only this test sets it.
    tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_ansi(false).with_writer(move || writer.clone()).init();

    let world = World::new();
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
    let detail = world.get(&format!("/admin/tasks/{task}"), &admin.access_token).await;

    let database = world.database_bytes();
    let log = log.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert!(holds(&database, &task.to_string()), "the search must be able to find something in the database");
    assert!(holds(&log, &task.to_string()), "the search must be able to find something in the log");
    let secrets = [
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
    }
    for (name, hash) in [("claim token", claim.token.sha256_hex()), ("forged", forged.token.sha256_hex())] {
        assert!(!detail.text.contains(&hash), "not even an administrator sees the hash of the {name}");
        assert!(!holds(&log, &hash), "nor does the log hold the hash of the {name}");
    }
}
