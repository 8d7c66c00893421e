//! The start of the house behind the window. The window is open before it and stays open when it fails, so that a second copy
//! or an unwritable folder is a page with a next step and not a crash.

use std::path::{self, Path, PathBuf};
use std::time::Duration;
use std::{env, fs, io};

use cmautobuy_app::problem::Kind;
use cmautobuy_app::{App, Problem, StartOptions};
use tauri::{AppHandle, Runtime};
use tokio::sync::OnceCell;

use crate::events;

/// The house ends its own loops sooner than this; afterwards the window does not wait for it any longer.
const SHUTDOWN_DEADLINE: Duration = Duration::from_secs(20);

/// The one running [`App`], once it runs.
#[derive(Debug)]
pub struct Startup {
    options: StartOptions,
    app: OnceCell<App>,
}

impl Startup {
    pub fn new(options: StartOptions) -> Self {
        Self { options, app: OnceCell::new() }
    }

    /// Starts the house, or waits for the start that is going on. After a failure the next call tries again.
    pub async fn boot<R: Runtime>(&self, handle: &AppHandle<R>) -> Result<(), Problem> {
        let start = || async {
            let app = App::start(self.options.clone()).await?;
            tauri::async_runtime::spawn(events::forward(handle.clone(), app.changes()));
            Ok(app)
        };
        self.app.get_or_try_init(start).await.map(|_| ())
    }

    /// The running house. Pages ask for it only after `boot` answered.
    pub fn app(&self) -> Result<&App, Problem> {
        self.app.get().ok_or_else(|| Kind::Internal.with("the program has not started yet"))
    }

    /// Ends the house if it runs. Blocks; for the end of the process only.
    pub fn shut_down(&self) {
        let Some(app) = self.app.get() else { return };
        tauri::async_runtime::block_on(async {
            if tokio::time::timeout(SHUTDOWN_DEADLINE, app.shutdown()).await.is_err() {
                tracing::error!("the program did not end in time; the next start recovers");
            }
        });
    }
}

/// Where the web view keeps its files: in the data folder (03 §2.1), so that the program leaves nothing elsewhere. When that
/// folder cannot be written the window must still open to say so, hence a temporary one.
pub(crate) fn webview_root(data_dir: &Path) -> PathBuf {
    let wanted = data_dir.join("webview");
    let probe = wanted.join(".writable");
    let writable = fs::create_dir_all(&wanted).and_then(|()| fs::write(&probe, b"")).and_then(|()| fs::remove_file(&probe));
    match writable {
        // Relative paths are taken from the program's folder by Tauri, but from the working folder by everyone else. Not
        // `canonicalize`: its `\\?\` form on Windows is no folder to WebView2.
        Ok(()) => path::absolute(&wanted).unwrap_or(wanted),
        Err(_) => env::temp_dir().join("cmautobuy-webview"),
    }
}

/// Resolves when a terminal or the system asks the program to end: Ctrl-C, or SIGTERM where there is one.
pub(crate) async fn asked_to_end() -> io::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            ended = tokio::signal::ctrl_c() => ended,
            _ = terminate.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_web_view_lives_in_the_data_folder_or_in_a_temporary_one() {
        let dir = tempfile::tempdir().unwrap();
        let inside = webview_root(dir.path());
        assert!(inside.starts_with(dir.path()), "a writable data folder holds the web view's files");
        assert!(inside.is_dir(), "the web view expects its folder");

        let file = dir.path().join("file");
        fs::write(&file, b"not a folder").unwrap();
        assert!(webview_root(&file).starts_with(env::temp_dir()), "the window must open to say that the folder cannot be written");
    }
}
