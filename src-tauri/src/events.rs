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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use cmautobuy_app::StartOptions;
    use tauri::Listener;
    use tauri::test::{mock_builder, mock_context, noop_assets};

    use super::*;

    #[tokio::test]
    async fn a_burst_of_nudges_becomes_few_events_and_the_last_is_never_lost() {
        let options = StartOptions {
            data_dir: "unused".into(),
            demo: None,
            phone: None,
            secret_file: None,
            auto_start: false,
            log_to_terminal: false,
        };
        let app = crate::build(mock_builder(), mock_context(noop_assets()), options).unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let ear = heard.clone();
        app.listen_any("changed", move |event| {
            ear.lock().unwrap().push(serde_json::from_str::<Changed>(event.payload()).unwrap().revision)
        });

        let (nudge, changes) = watch::channel(0_u64);
        let task = tokio::spawn(forward(app.handle().clone(), changes));
        for revision in 1..=50 {
            nudge.send_replace(revision);
            tokio::task::yield_now().await;
        }
        drop(nudge);
        task.await.unwrap();

        let heard = heard.lock().unwrap();
        assert!(heard.len() <= 2, "fifty nudges at once are one event now and one after the quiet time: {heard:?}");
        assert_eq!(heard.last(), Some(&50), "the pages must look once more after the last change");
    }
}
