//! The links against peers that behave, misbehave and die.

mod agent;
mod fake_adbd;
mod fake_server;
mod fuzz;
mod key;
mod phone;

use std::time::{Duration, Instant};

use super::AdbError;
use super::link::Link;

const SOON: Duration = Duration::from_secs(10);

/// A key for every test of this binary: making one takes a while.
fn key() -> std::sync::Arc<super::AdbKey> {
    static KEY: std::sync::OnceLock<std::sync::Arc<super::AdbKey>> = std::sync::OnceLock::new();
    std::sync::Arc::clone(KEY.get_or_init(|| std::sync::Arc::new(super::AdbKey::generate().expect("a key"))))
}

/// What both roads must do alike. The peers understand a handful of made-up commands.
async fn commands_behave(link: &impl Link) {
    let output = link.shell("seven", SOON).await.expect("the command ends");
    assert_eq!(output.code, 7, "the exit code must arrive (facts A1)");
    assert_eq!(output.stdout, b"out", "stdout alone");
    assert_eq!(output.stderr, b"err", "stderr apart from it");

    let raw = link.exec("bytes", SOON).await.expect("the stream ends");
    assert_eq!(raw, (0..=255).collect::<Vec<u8>>(), "exec is byte clean");

    let error = link.exec("no-exit", SOON).await.expect_err("no trailer");
    assert!(matches!(error, AdbError::BrokeOff), "raw bytes that stop early are not a short answer: {error}");

    let big = link.shell("big", SOON).await.expect("the command ends");
    assert_eq!(big.stdout.len(), 3_000_000, "large outputs arrive whole");

    let error = link.shell("no-exit", SOON).await.expect_err("no exit packet");
    assert!(matches!(error, AdbError::BrokeOff), "a stream closed without an exit code is not success: {error}");

    let began = Instant::now();
    let error = link.shell("hang", Duration::from_millis(300)).await.expect_err("nothing comes");
    assert!(matches!(error, AdbError::Timeout), "a hanging command must time out: {error}");
    assert!(began.elapsed() < SOON, "and near its limit");

    let output = link.shell("seven", SOON).await.expect("the link works after a time-out");
    assert_eq!(output.code, 7, "the next command is not disturbed");

    let error = link.shell("die", SOON).await.expect_err("the peer dies in the middle");
    assert!(!matches!(error, AdbError::Timeout), "death is noticed at once, not at the limit (facts A2, A4): {error}");

    let output = link.shell("seven", SOON).await.expect("the link comes back by itself");
    assert_eq!(output.code, 7, "after a loss too");
}

/// Forty callers at once, each with its own answer, some dropped on the way.
async fn many_streams_at_once(link: std::sync::Arc<impl Link>) {
    let mut all = tokio::task::JoinSet::new();
    for at in 0..40 {
        let link = std::sync::Arc::clone(&link);
        all.spawn(async move {
            match at % 4 {
                0 => assert_eq!(link.shell("big", SOON).await.expect("ends").stdout.len(), 3_000_000, "large ones are not mixed"),
                1 => assert_eq!(link.shell("seven", SOON).await.expect("ends").code, 7, "small ones get their own code"),
                2 => assert_eq!(link.exec("bytes", SOON).await.expect("ends").len(), 256, "raw ones theirs"),
                _ => {
                    let hanging = tokio::time::timeout(Duration::from_millis(100), link.shell("hang", SOON)).await;
                    assert!(hanging.is_err(), "dropped by its caller while the others go on");
                }
            }
        });
    }
    while let Some(done) = all.join_next().await {
        done.expect("no stream may disturb another");
    }
}

/// Two commands that each wait for the other to have started.
async fn commands_overlap(link: &impl Link) {
    let (left, right) = tokio::join!(link.shell("meet left", SOON), link.shell("meet right", SOON));
    assert_eq!(left.expect("left ends").stdout, b"met", "left saw right running");
    assert_eq!(right.expect("right ends").stdout, b"met", "right saw left running");
}

/// A request to a port of the phone, answered in pieces on a stream that stays open.
async fn ports_answer(link: &impl Link) {
    let answer = link.talk(7, b"you", |raw| raw.ends_with(b"!"), SOON).await.expect("the port answers");
    assert_eq!(answer, b"got you!", "read exactly until the answer is whole");
}
