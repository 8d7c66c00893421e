// How every fuzz test here runs: a bounded number of cases in CI, and for as long as CMAUTOBUY_FUZZ_SECONDS says when that is set.
//
// A file of its own, taken in by path, so that the tests of three rooms run alike.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

/// Cases in CI, and between two looks at the clock in a long run.
const CASES: u32 = 1_500;

/// Runs `test` on values of `strategy`. A failing case is shrunk and shown by the panic.
pub(crate) fn fuzz<S: Strategy>(name: &str, strategy: &S, test: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let seconds = std::env::var("CMAUTOBUY_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let limit = Duration::from_secs(seconds);
    let began = Instant::now();
    let mut executions = 0_u64;
    loop {
        // Seeded anew each time from the system's randomness.
        let mut runner = TestRunner::new(Config { cases: CASES, failure_persistence: None, ..Config::default() });
        if let Err(failure) = runner.run(strategy, &test) {
            panic!("{name} failed after {executions} executions and up to {CASES} more: {failure}");
        }
        executions += u64::from(CASES);
        if began.elapsed() >= limit {
            break;
        }
    }
    if let Some(folder) = std::env::var_os("CMAUTOBUY_TABLES") {
        let line = format!("{name}: {executions} executions in {:.0} s, no finding\n", began.elapsed().as_secs_f64());
        std::fs::write(PathBuf::from(folder).join(format!("fuzz-{name}.txt")), line).expect("the folder for tables is writable");
    }
}
