//! THE WINDOW: shows the house to a person and passes on what the person asks. Decides nothing, stores nothing, knows no
//! server and no phone.

pub mod commands;
pub mod events;
pub mod startup;

use cmautobuy_app::problem::{Kind, Problem};
use cmautobuy_app::{StartOptions, view};
use tauri::utils::config::AppDirectoriesOverride;
use tauri::{Manager, RunEvent, Runtime};
use tauri_specta::{collect_commands, collect_events};

use crate::startup::Startup;

/// Commands, events and constants, as the pages see them. `tests/bindings.rs` writes them down for TypeScript.
pub fn specta_builder<R: Runtime>() -> tauri_specta::Builder<R> {
    // The sentences of every problem, so that an error code stored in a task reads the same as a live problem.
    let problems: Vec<Problem> = Kind::ALL.iter().map(|kind| kind.with("")).collect();
    tauri_specta::Builder::<R>::new()
        // One shape both ways: an absent value is `null` and always there.
        .disable_serde_phases()
        .commands(collect_commands![
            // The turbofish is only for the exported types; the runtime stays generic.
            commands::boot::<tauri::Wry>,
            commands::overview,
            commands::task_list,
            commands::task_detail,
            commands::artifact_image,
            commands::start_work,
            commands::stop_work,
            commands::login,
            commands::logout,
            commands::recollect,
            commands::phone_address,
            commands::set_phone_address,
            commands::preferences,
            commands::set_preferences,
        ])
        .events(collect_events![events::Changed])
        .typ::<view::Language>()
        .constant("PROBLEMS", problems)
}

/// The window's program around `builder`; tests give it a runtime without a display.
pub fn build<R: Runtime>(builder: tauri::Builder<R>, context: tauri::Context<R>, options: StartOptions) -> tauri::Result<tauri::App<R>> {
    let specta = specta_builder::<R>();
    let app = builder.manage(Startup::new(options)).invoke_handler(specta.invoke_handler()).build(context)?;
    // Not in `setup`: that runs on the event loop only, which the tests' runtime does not have.
    specta.mount_events(&app);
    Ok(app)
}

/// Opens the window and returns when it is closed and the house has ended.
pub fn run() -> tauri::Result<()> {
    let options = StartOptions::from_env_and_args();
    let mut context = tauri::generate_context!();
    context.config_mut().app.app_directories_override = Some(AppDirectoriesOverride::Root(startup::webview_root(&options.data_dir)));
    let app = build(tauri::Builder::default(), context, options)?;
    let handle = app.handle().clone();
    tauri::async_runtime::spawn(async move {
        if let Err(problem) = handle.state::<Startup>().boot(&handle).await {
            tracing::error!(%problem, "failed to start; the window says why");
        }
    });
    let handle = app.handle().clone();
    tauri::async_runtime::spawn(async move {
        match startup::asked_to_end().await {
            // Ends as closing the window does.
            Ok(()) => handle.exit(0),
            Err(error) => tracing::warn!(%error, "failed to listen for a request to end"),
        }
    });
    app.run(|handle, event| {
        // Closing means: end at the next safe point. The rows are committed, so nothing is lost if this is cut short.
        if matches!(event, RunEvent::Exit) {
            handle.state::<Startup>().shut_down();
        }
    });
    Ok(())
}
