//! Where the program's log goes: a file a day under `data_dir/logs`, and standard error.

use std::error::Error;
use std::io;
use std::path::Path;

use tracing_appender::non_blocking::WorkerGuard;
use tracing_appender::rolling::{Builder, Rotation};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, fmt};

/// Days of log files kept.
const KEPT_FILES: usize = 30;

/// Lines are written until the guard is dropped.
pub(crate) fn start(data_dir: &Path, filter: &str) -> Result<WorkerGuard, Box<dyn Error>> {
    let folder = data_dir.join("logs");
    std::fs::create_dir_all(&folder)?;
    let daily = Builder::new().rotation(Rotation::DAILY).filename_prefix("server").filename_suffix("log").max_log_files(KEPT_FILES);
    let (file, guard) = tracing_appender::non_blocking(daily.build(&folder)?);
    let filter = match EnvFilter::try_from_env("AUTOBUY_LOG") {
        Ok(filter) => filter,
        Err(_) => EnvFilter::try_new(filter).map_err(|error| format!("understand the setting `log` ({error}); write `info`"))?,
    };
    tracing_subscriber::registry()
        .with(filter)
        .with(fmt::layer().json().with_writer(file))
        .with(fmt::layer().with_writer(io::stderr))
        .try_init()?;
    Ok(guard)
}
