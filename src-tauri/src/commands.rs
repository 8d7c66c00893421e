//! What the pages may ask: each command parses, calls the house and converts. No decision is made here.

use cmautobuy_app::Problem;
use cmautobuy_app::view::{LoginForm, Overview, Preferences, TaskDetail, TaskPage, TaskQuery};
use tauri::{AppHandle, Runtime, State};

use crate::startup::Startup;

/// Waits until the program has started. After a failure, asking again tries again.
#[tauri::command]
#[specta::specta]
pub async fn boot<R: Runtime>(handle: AppHandle<R>, startup: State<'_, Startup>) -> Result<(), Problem> {
    startup.boot(&handle).await
}

#[tauri::command]
#[specta::specta]
pub async fn overview(startup: State<'_, Startup>) -> Result<Overview, Problem> {
    startup.app()?.overview().await
}

#[tauri::command]
#[specta::specta]
pub async fn task_list(startup: State<'_, Startup>, query: TaskQuery) -> Result<TaskPage, Problem> {
    startup.app()?.task_list(query).await
}

#[tauri::command]
#[specta::specta]
pub async fn task_detail(startup: State<'_, Startup>, id: u32) -> Result<TaskDetail, Problem> {
    startup.app()?.task_detail(id).await
}

/// A screenshot as a `data:` address.
#[tauri::command]
#[specta::specta]
pub async fn artifact_image(startup: State<'_, Startup>, id: u32) -> Result<String, Problem> {
    startup.app()?.artifact_image(id).await
}

#[tauri::command]
#[specta::specta]
pub async fn start_work(startup: State<'_, Startup>) -> Result<(), Problem> {
    startup.app()?.start_work().await
}

#[tauri::command]
#[specta::specta]
pub async fn stop_work(startup: State<'_, Startup>) -> Result<(), Problem> {
    startup.app()?.stop_work().await
}

#[tauri::command]
#[specta::specta]
pub async fn login(startup: State<'_, Startup>, form: LoginForm) -> Result<(), Problem> {
    startup.app()?.login(form).await
}

#[tauri::command]
#[specta::specta]
pub async fn logout(startup: State<'_, Startup>) -> Result<(), Problem> {
    startup.app()?.logout().await
}

/// Collects an ended collect task once more (03 §7.1). The page has asked the person first.
#[tauri::command]
#[specta::specta]
pub async fn recollect(startup: State<'_, Startup>, id: u32) -> Result<(), Problem> {
    startup.app()?.recollect(id).await
}

#[tauri::command]
#[specta::specta]
pub async fn phone_address(startup: State<'_, Startup>) -> Result<String, Problem> {
    startup.app()?.phone_address().await
}

#[tauri::command]
#[specta::specta]
pub async fn set_phone_address(startup: State<'_, Startup>, address: String) -> Result<(), Problem> {
    startup.app()?.set_phone_address(address).await
}

#[tauri::command]
#[specta::specta]
pub async fn preferences(startup: State<'_, Startup>) -> Result<Preferences, Problem> {
    startup.app()?.preferences().await
}

#[tauri::command]
#[specta::specta]
pub async fn set_preferences(startup: State<'_, Startup>, preferences: Preferences) -> Result<(), Problem> {
    startup.app()?.set_preferences(preferences).await
}
