//! The house: builds the rooms, owns the loops, answers the interface. Knows no Tauri.

pub mod options;
pub mod problem;
pub mod view;

pub use options::{DemoOptions, StartOptions};
pub use problem::Problem;
use view::{LoginForm, Overview, Preferences, TaskDetail, TaskPage, TaskQuery};

/// The running client. Cheap to clone.
#[derive(Debug, Clone)]
pub struct App;

#[expect(clippy::unused_async, reason = "signatures first; bodies follow")]
impl App {
    pub async fn start(_options: StartOptions) -> Result<App, Problem> { Err(problem::Kind::Internal.with("not built yet")) }
    pub async fn overview(&self) -> Result<Overview, Problem> { Err(problem::Kind::Internal.with("not built yet")) }
    pub async fn task_list(&self, _query: TaskQuery) -> Result<TaskPage, Problem> { Err(problem::Kind::Internal.with("not built yet")) }
    pub async fn task_detail(&self, _id: u32) -> Result<TaskDetail, Problem> { Err(problem::Kind::Internal.with("not built yet")) }
    pub async fn artifact_image(&self, _id: u32) -> Result<String, Problem> { Err(problem::Kind::Internal.with("not built yet")) }
    pub async fn start_work(&self) -> Result<(), Problem> { Err(problem::Kind::Internal.with("not built yet")) }
    pub async fn stop_work(&self) -> Result<(), Problem> { Err(problem::Kind::Internal.with("not built yet")) }
    pub async fn login(&self, _form: LoginForm) -> Result<(), Problem> { Err(problem::Kind::Internal.with("not built yet")) }
    pub async fn logout(&self) -> Result<(), Problem> { Err(problem::Kind::Internal.with("not built yet")) }
    pub async fn recollect(&self, _id: u32) -> Result<(), Problem> { Err(problem::Kind::Internal.with("not built yet")) }
    pub async fn set_phone_address(&self, _address: String) -> Result<(), Problem> { Err(problem::Kind::Internal.with("not built yet")) }
    pub async fn phone_address(&self) -> Result<String, Problem> { Err(problem::Kind::Internal.with("not built yet")) }
    pub async fn preferences(&self) -> Result<Preferences, Problem> { Err(problem::Kind::Internal.with("not built yet")) }
    pub async fn set_preferences(&self, _preferences: Preferences) -> Result<(), Problem> { Err(problem::Kind::Internal.with("not built yet")) }
    pub fn changes(&self) -> tokio::sync::watch::Receiver<u64> { tokio::sync::watch::channel(0).1 }
    pub async fn shutdown(&self) {}
}
