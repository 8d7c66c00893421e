//! Where the log goes: `logs/client.<date>.log` in the data folder, one file a day, and the terminal for the console program.

use std::path::Path;

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt};

use crate::problem::{Kind, Problem};

/// Days a log file is kept.
const KEEP_DAYS: usize = 30;

/// Starts logging once per process; a second call keeps the first (tests start several apps in one process).
pub(crate) fn start(logs: &Path, terminal: bool) -> Result<(), Problem> {
    let unwritable = |error: &dyn std::fmt::Display| Kind::FolderUnwritable.with(format!("{}: {error}", logs.display()));
    // The appender prunes before it creates, and grumbles on the terminal about a folder that is not there yet.
    std::fs::create_dir_all(logs).map_err(|error| unwritable(&error))?;
    let files = tracing_appender::rolling::Builder::new()
        .rotation(tracing_appender::rolling::Rotation::DAILY)
        .filename_prefix("client")
        .filename_suffix("log")
        .max_log_files(KEEP_DAYS)
        .build(logs)
        .map_err(|error| unwritable(&error))?;
    let filter = || EnvFilter::try_from_env("CMAUTOBUY_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let to_file = fmt::layer().with_ansi(false).with_writer(files).with_filter(filter());
    let to_terminal = terminal.then(|| fmt::layer().with_writer(std::io::stderr).with_filter(filter()));
    // Already started is fine.
    let _ = tracing_subscriber::registry().with(to_file).with(to_terminal).try_init();
    Ok(())
}
