//! One `uiautomator dump`, in one round trip, with the retries that help and none that do not.
//!
//! Success means "the bytes parse", whatever the exit code (facts 0.5). Each attempt has its own file, so an
//! abandoned dump can never be read as a fresh one (facts 0.7).

use std::time::Duration;

use super::AdbPhone;
use crate::adb::AdbError;
use crate::adb::answers;
use crate::adb::link::{Link, ShellOutput};
use crate::adb::phone::{QUICK, explain, first_line};
use crate::capture::Verdict;
use crate::clock;
use crate::error::PhoneError;
use crate::tree::{TreeError, UiTree};

const WHAT: &str = "reading the screen";
/// A screen that never rests costs 11.4 s before it says so (facts 0.6).
const PER_ATTEMPT: Duration = Duration::from_secs(15);
/// For all attempts of one look.
const BUDGET: Duration = Duration::from_secs(30);
/// Exit 137 and half files come and go (facts/pdd 6): three tries, 600 ms apart.
const TRIES: u32 = 3;
const BETWEEN_TRIES: Duration = Duration::from_millis(600);
/// No root while windows change or the screen is off.
const NULL_ROOT_WAITS: [Duration; 3] = [Duration::from_millis(200), Duration::from_millis(400), Duration::from_millis(800)];

pub(super) struct Dumped {
    pub(super) tree: UiTree,
    pub(super) xml: Vec<u8>,
    /// Set when there is no tree to judge.
    pub(super) verdict: Option<Verdict>,
}

impl Dumped {
    fn nothing(verdict: Verdict) -> Dumped {
        Dumped { tree: UiTree::empty(), xml: Vec::new(), verdict: Some(verdict) }
    }
}

/// What one attempt came to.
#[derive(Debug, PartialEq, Eq)]
enum Attempt {
    NotIdle,
    NoRoot,
    /// Another program, or an abandoned dump of ours, holds the accessibility connection.
    Taken,
    Broken(Option<TreeError>, String),
}

impl<L: Link> AdbPhone<L> {
    pub(super) async fn dump(&self, counter: &mut u32) -> Result<Dumped, PhoneError> {
        let began = clock::now();
        let mut compressed = false;
        let mut cleared = false;
        let mut null_roots = NULL_ROOT_WAITS.iter();
        let mut tries = 0;
        loop {
            let left = BUDGET.saturating_sub(clock::now().saturating_duration_since(began));
            if left.is_zero() {
                return Err(PhoneError::Timeout { what: WHAT, limit: BUDGET });
            }
            *counter = counter.wrapping_add(1);
            let output = self.dump_once(*counter, compressed, left.min(PER_ATTEMPT)).await?;
            let attempt = match UiTree::parse(&output.stdout) {
                // Valid XML with a bad exit code is still the screen (facts B).
                Ok(tree) => return Ok(Dumped { tree, xml: output.stdout, verdict: None }),
                Err(error) => attempt(&output, error),
            };
            tracing::debug!(?attempt, code = output.code, compressed, "no tree");
            match attempt {
                Attempt::NotIdle if compressed => return Ok(Dumped::nothing(Verdict::NeverIdle)),
                // One retry, and never a blind one: without the decoration fewer events count as unrest.
                Attempt::NotIdle => compressed = true,
                Attempt::NoRoot => match null_roots.next() {
                    Some(wait) => tokio::time::sleep(*wait).await,
                    None => return Ok(Dumped::nothing(Verdict::TreeEmpty)),
                },
                Attempt::Taken if !cleared => {
                    cleared = true;
                    self.stop_dumps().await;
                }
                Attempt::Taken => {
                    let ps = self.ask("ps -A", "ps", QUICK).await.unwrap_or_default();
                    let client = answers::accessibility_client(&ps).unwrap_or_else(|| "unknown".to_owned());
                    return Err(PhoneError::AccessibilityTaken { client });
                }
                Attempt::Broken(source, reason) => {
                    tries += 1;
                    if tries >= TRIES {
                        return Err(PhoneError::DumpFailed { reason, source });
                    }
                    tokio::time::sleep(BETWEEN_TRIES).await;
                }
            }
        }
    }

    async fn dump_once(&self, number: u32, compressed: bool, limit: Duration) -> Result<ShellOutput, PhoneError> {
        let file = format!("/data/local/tmp/u_{:08x}_{number}.xml", self.nonce);
        let option = if compressed { "--compressed " } else { "" };
        let cmd = format!("f={file}; uiautomator dump {option}$f >&2; cat $f; r=$?; rm -f $f; exit $r");
        match self.link.shell(&cmd, limit).await {
            Ok(output) => Ok(output),
            Err(error) => {
                if matches!(error, AdbError::Timeout) {
                    // Closing the stream ends the shell but not its child, which would block the next dump.
                    self.stop_dumps().await;
                }
                Err(explain(error, &self.serial, WHAT, limit))
            }
        }
    }

    /// Best effort; the dump that follows tells if it helped.
    async fn stop_dumps(&self) {
        let stopped = self.link.shell("pkill -f com.android.commands.uiautomator", Duration::from_secs(2)).await;
        tracing::debug!(?stopped, "stopped abandoned dumps");
    }
}

fn attempt(output: &ShellOutput, error: TreeError) -> Attempt {
    let said = format!("{}\n{}", answers::text(&output.stderr), head(&output.stdout));
    if said.contains("could not get idle state") {
        Attempt::NotIdle
    } else if said.contains("null root node") {
        Attempt::NoRoot
    } else if said.contains("already registered") || said.contains("UiAutomationService") {
        Attempt::Taken
    } else {
        let reason = match error {
            TreeError::Empty | TreeError::NoTree => format!("exit {}, {}", output.code, first_line(&said)),
            TreeError::TooLarge { .. } | TreeError::TooManyNodes { .. } | TreeError::Xml { .. } => {
                format!("exit {}, the dump is unusable", output.code)
            }
        };
        Attempt::Broken(Some(error), reason)
    }
}

/// Enough of a broken dump to find a message in it (a phone without shell v2 mixes the streams).
fn head(stdout: &[u8]) -> String {
    answers::text(&stdout[..stdout.len().min(4096)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_told_apart() {
        let broken = |reason: &str| Attempt::Broken(Some(TreeError::Empty), reason.to_owned());
        let rows = [
            ("idle", 0, "ERROR: could not get idle state.\n", Attempt::NotIdle),
            ("root", 0, "ERROR: null root node returned by UiTestAutomationBridge.\n", Attempt::NoRoot),
            (
                "taken",
                1,
                "java.lang.IllegalStateException: UiAutomationService android.accessibilityservice already registered!",
                Attempt::Taken,
            ),
            ("killed", 137, "", broken("exit 137, no message")),
            ("no file", 1, "cat: /data/x: No such file or directory", broken("exit 1, cat: /data/x: No such file or directory")),
        ];
        for (name, code, stderr, want) in rows {
            let output = ShellOutput { code, stdout: Vec::new(), stderr: stderr.as_bytes().to_vec() };
            assert_eq!(attempt(&output, TreeError::Empty), want, "row {name}");
        }
    }
}
