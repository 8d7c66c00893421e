//! One tree of the screen, by the reader that was fastest when they were measured, with the retries that help and none that do not.
//!
//! Success means "the bytes parse", whatever the exit code (facts 0.5). Each attempt has its own file, so an
//! abandoned dump can never be read as a fresh one (facts 0.7).

use std::time::{Duration, Instant};

use super::AdbPhone;
use crate::adb::AdbError;
use crate::adb::answers;
use crate::adb::link::{Link, ShellOutput};
use crate::adb::phone::{QUICK, explain, first_line};
use crate::capture::Verdict;
use crate::clock;
use crate::error::PhoneError;
use crate::phone::{AgentFile, Measured, Reader, ReadersAllowed};
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

/// After a screen that never rested, its decoration is left out from the start for this long (facts B).
const BUSY: Duration = Duration::from_secs(20);
/// A failed agent is left alone this long.
const AGENT_REST: Duration = Duration::from_secs(60);

/// What is known about reading this phone's screen.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// Counts dumps: each has a file of its own.
    number: u32,
    /// The first choice; empty before measuring, which means the stock reader.
    first: Option<Reader>,
    /// Set when the agent is the first choice.
    agent: Option<AgentFile>,
    agent_rests_until: Option<Instant>,
    busy_until: Option<Instant>,
}

impl Reading {
    fn agent_now(&self, now: Instant) -> Option<AgentFile> {
        self.agent.clone().filter(|_| self.agent_rests_until.is_none_or(|until| now >= until))
    }
}

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
    pub(super) async fn dump(&self, reading: &mut Reading) -> Result<Dumped, PhoneError> {
        let began = clock::now();
        if let Some(agent) = reading.agent_now(began) {
            match self.agent_tree(&agent).await {
                Ok((tree, xml)) => return Ok(Dumped { tree, xml, verdict: None }),
                Err(problem) => {
                    tracing::info!(%problem, "the agent failed; the phone's own dump takes over");
                    reading.agent_rests_until = Some(began + AGENT_REST);
                    // It would keep the one accessibility connection.
                    self.stop_agent().await;
                }
            }
        }
        let busy = reading.busy_until.is_some_and(|until| began < until);
        let mut compressed = busy || reading.first == Some(Reader::Compressed);
        let mut cleared = false;
        let mut null_roots = NULL_ROOT_WAITS.iter();
        let mut tries = 0;
        loop {
            let left = BUDGET.saturating_sub(clock::now().saturating_duration_since(began));
            if left.is_zero() {
                return Err(PhoneError::Timeout { what: WHAT, limit: BUDGET });
            }
            let output = self.dump_once(reading, compressed, left.min(PER_ATTEMPT)).await?;
            let attempt = match UiTree::parse(&output.stdout) {
                // Valid XML with a bad exit code is still the screen (facts B).
                Ok(tree) => return Ok(Dumped { tree, xml: output.stdout, verdict: None }),
                Err(error) => attempt(&output, error),
            };
            tracing::debug!(?attempt, code = output.code, compressed, "no tree");
            match attempt {
                Attempt::NotIdle if compressed => {
                    reading.busy_until = Some(clock::now() + BUSY);
                    return Ok(Dumped::nothing(Verdict::NeverIdle));
                }
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

    /// Tries each allowed reader once and keeps the fastest as the first choice.
    pub(super) async fn measure_readers(&self, reading: &mut Reading, allowed: &ReadersAllowed) -> Result<Vec<Measured>, PhoneError> {
        *reading = Reading { number: reading.number, ..Reading::default() };
        // One left over from an earlier run would hold the accessibility connection.
        if allowed.agent.is_some() {
            self.stop_agent().await;
        }
        let mut measured = vec![self.measure_shell(reading, Reader::Stock).await?];
        if allowed.compressed {
            measured.push(self.measure_shell(reading, Reader::Compressed).await?);
        }
        if let Some(agent) = &allowed.agent {
            // The first tree warms it up; the second is what a look will cost.
            let result = match self.agent_tree(agent).await {
                Ok(_) => {
                    let began = clock::now();
                    self.agent_tree(agent).await.map(|_| clock::now().saturating_duration_since(began))
                }
                Err(problem) => Err(problem),
            };
            measured.push(Measured { reader: Reader::Agent, result: result.map_err(|problem| problem.to_string()) });
        }
        let fastest = measured.iter().filter_map(|one| Some((one.result.as_ref().ok()?, one.reader))).min_by_key(|(took, _)| **took);
        reading.first = fastest.map(|(_, reader)| reader);
        if reading.first == Some(Reader::Agent) {
            reading.agent.clone_from(&allowed.agent);
        } else if allowed.agent.is_some() {
            self.stop_agent().await;
        }
        for one in &measured {
            tracing::info!(reader = one.reader.as_str(), result = ?one.result, "measured a way to read the screen");
        }
        Ok(measured)
    }

    async fn measure_shell(&self, reading: &mut Reading, reader: Reader) -> Result<Measured, PhoneError> {
        let began = clock::now();
        let output = match self.dump_once(reading, reader == Reader::Compressed, PER_ATTEMPT).await {
            Ok(output) => output,
            Err(PhoneError::Timeout { .. }) => return Ok(Measured { reader, result: Err("no answer in time".to_owned()) }),
            Err(error) => return Err(error),
        };
        let took = clock::now().saturating_duration_since(began);
        let result = match UiTree::parse(&output.stdout) {
            Ok(_) => Ok(took),
            Err(error) => Err(match attempt(&output, error) {
                Attempt::NotIdle => "the screen never came to rest".to_owned(),
                Attempt::NoRoot => "the screen shows nothing".to_owned(),
                Attempt::Taken => "another program holds the accessibility connection".to_owned(),
                Attempt::Broken(_, reason) => reason,
            }),
        };
        Ok(Measured { reader, result })
    }

    async fn dump_once(&self, reading: &mut Reading, compressed: bool, limit: Duration) -> Result<ShellOutput, PhoneError> {
        reading.number = reading.number.wrapping_add(1);
        let number = reading.number;
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
            TreeError::TooLarge { .. } | TreeError::TooManyNodes { .. } | TreeError::TooDeep { .. } | TreeError::Xml { .. } => {
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
