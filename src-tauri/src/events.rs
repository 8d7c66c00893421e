//! What the program tells the pages without being asked: only that something changed, never what. The pages ask again.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tauri::{AppHandle, Runtime};
use tauri_specta::Event;
use tokio::sync::watch;

/// At most five events a second, however busy the work is: a page that redraws faster than that helps nobody.
const QUIET: Duration = Duration::from_millis(200);

/// Something a page shows has changed. `revision` wraps; it only tells two events apart.
#[derive(Debug, Clone, Serialize, Deserialize, specta::Type, Event)]
#[serde(rename_all = "camelCase")]
pub struct Changed {
    pub revision: u32,
}

/// Passes nudges on until the sender is gone. Nudges during the quiet time become one event after it.
pub(crate) async fn forward<R: Runtime>(handle: AppHandle<R>, mut changes: watch::Receiver<u64>) {
    while changes.changed().await.is_ok() {
        let revision = u32::try_from(*changes.borrow_and_update() & u64::from(u32::MAX)).unwrap_or(u32::MAX);
        if let Err(error) = (Changed { revision }).emit(&handle) {
            tracing::warn!(%error, "failed to tell the window about a change");
        }
        tokio::time::sleep(QUIET).await;
    }
}
