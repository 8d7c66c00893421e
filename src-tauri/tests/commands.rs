//! Commands through the real IPC with no window and no display: a start that fails is an answer, not a crash.

use std::fs;

use cmautobuy_app::StartOptions;
use serde_json::{Value, json};
use tauri::ipc::{CallbackFn, InvokeBody};
use tauri::test::{INVOKE_KEY, MockRuntime, get_ipc_response, mock_builder, mock_context, noop_assets};
use tauri::webview::InvokeRequest;
use tauri::{WebviewWindow, WebviewWindowBuilder};

fn ask(window: &WebviewWindow<MockRuntime>, command: &str, arguments: Value) -> Result<Value, Value> {
    let url = if cfg!(windows) { "http://tauri.localhost" } else { "tauri://localhost" };
    let request = InvokeRequest {
        cmd: command.to_owned(),
        callback: CallbackFn(0),
        error: CallbackFn(1),
        url: url.parse().unwrap(),
        body: InvokeBody::Json(arguments),
        headers: Default::default(),
        invoke_key: INVOKE_KEY.to_owned(),
    };
    get_ipc_response(window, request).map(|body| body.deserialize().unwrap())
}

#[test]
fn a_start_that_fails_is_shown_with_a_next_step() {
    let dir = tempfile::tempdir().unwrap();
    let data_dir = dir.path().join("data");
    fs::write(&data_dir, b"a file where the data folder should be").unwrap();
    let options = StartOptions {
        data_dir,
        demo: None,
        phone: None,
        secret_file: Some(dir.path().join("secrets")),
        auto_start: false,
        log_to_terminal: false,
    };
    let app = cmautobuy_desktop::build(mock_builder(), mock_context(noop_assets()), options).unwrap();
    let window = WebviewWindowBuilder::new(&app, "main", Default::default()).build().unwrap();

    for (command, arguments) in [("overview", json!({})), ("task_detail", json!({ "id": 1 }))] {
        let problem = ask(&window, command, arguments).expect_err("nothing can be shown before the start");
        assert_eq!(problem["code"], "INTERNAL", "{command}: an early question is answered, never a panic");
    }
    for turn in ["first", "again"] {
        let problem = ask(&window, "boot", json!({})).expect_err("a file is no data folder");
        for language in ["zh", "en"] {
            let next = problem[language]["nextStep"].as_str().unwrap_or_default();
            assert!(!next.is_empty(), "{turn}: the page must say the next step in {language}: {problem}");
        }
    }
}
