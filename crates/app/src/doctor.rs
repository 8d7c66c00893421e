//! Checks what stands between a newcomer and the first task, one cause at a time, each with its next step.

use cmautobuy_sync::{LinkState, SessionState};
use serde::Serialize;

use crate::house::App;
use crate::problem::{Kind, Problem};
use crate::view::Level;

/// What was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    DataFolder,
    Database,
    Login,
    Server,
    Phone,
    Pinduoduo,
}

/// What was found. Without a problem it is in order.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    pub check: Check,
    pub subject: String,
    pub problem: Option<Problem>,
}

impl App {
    /// Everything that can be told without touching the phone's screen.
    ///
    /// # Errors
    /// `DATABASE_BROKEN`.
    pub async fn doctor(&self) -> Result<Vec<Finding>, Problem> {
        let overview = self.overview().await?;
        let found = |check, subject: String, problem| Finding { check, subject, problem };
        let session = self.inner().api.session().borrow().clone();
        let login = match &session {
            SessionState::LoggedIn(_) => None,
            SessionState::LoggedOut | SessionState::Ended => Some(Kind::LoginNeeded.with(format!("device {}", overview.device_id))),
        };
        let server = match (&session, &*self.inner().sync.link().borrow()) {
            (SessionState::LoggedIn(_), LinkState::Bad { code, detail }) => Some(Problem::from_code(code, detail)),
            (SessionState::LoggedIn(_) | SessionState::LoggedOut | SessionState::Ended, _) => None,
        };
        let phone = match overview.phone.level {
            Level::Off => Some(Kind::PhoneGone.with("no phone address is set")),
            Level::Ok | Level::Busy | Level::Warn | Level::Error => overview.phone.problem,
        };
        Ok(vec![
            found(Check::DataFolder, overview.data_dir, None),
            found(Check::Database, format!("{} tasks", overview.total), None),
            found(Check::Login, overview.logged_in_as.unwrap_or_default(), login),
            found(Check::Server, overview.server.subject, server),
            found(Check::Phone, overview.phone.subject, phone),
            found(Check::Pinduoduo, overview.pinduoduo.subject, overview.pinduoduo.problem),
        ])
    }
}
