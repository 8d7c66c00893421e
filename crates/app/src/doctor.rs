//! Checks what stands between a newcomer and the first task, one cause at a time, each with its next step.
//!
//! The phone's own ladder is `device`'s; here its causes get their sentences. Fixes are done only when asked for, and can be taken back.

use cmautobuy_device::connect::PRIVATE_PORT;
use cmautobuy_device::doctor::{AutoFix, Cause, Doctor, Question, Report, Road, Rung, Undo, Weight};
use cmautobuy_sync::{LinkState, SessionState};
use serde::Serialize;

use crate::house::App;
use crate::phone::connect_problem;
use crate::problem::{Kind, Problem};
use crate::settings::PhoneAddress;

/// Older than the pages the rules were made on.
const OLDEST_PDD: [u32; 2] = [7, 0];

/// Looks of one `doctor --fix`.
const ROUNDS: usize = 3;

/// What was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    DataFolder,
    Database,
    Login,
    Server,
    Adb,
    Phone,
    Screen,
    Pinduoduo,
    Comfort,
}

/// What was found. Without a problem it is in order.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    pub check: Check,
    pub subject: String,
    pub problem: Option<Problem>,
    /// Work goes on in spite of it.
    pub advice: bool,
    /// `doctor --fix` cures it.
    pub fixable: bool,
}

impl Finding {
    fn new(check: Check, subject: String, problem: Option<Problem>) -> Self {
        Self { check, subject, problem, advice: false, fixable: false }
    }
}

fn check_of(cause: &Cause) -> Check {
    match cause.rung() {
        Rung::Program | Rung::Server => Check::Adb,
        Rung::Phone => Check::Phone,
        Rung::Screen => Check::Screen,
        Rung::Pinduoduo => Check::Pinduoduo,
        Rung::Comfort => Check::Comfort,
    }
}

impl App {
    /// Everything that can be told without touching the phone's screen.
    ///
    /// # Errors
    /// `DATABASE_BROKEN`.
    pub async fn doctor(&self) -> Result<Vec<Finding>, Problem> {
        let overview = self.overview().await?;
        let session = self.inner().api.session().borrow().clone();
        let login = match &session {
            SessionState::LoggedIn(_) => None,
            SessionState::LoggedOut | SessionState::Ended => Some(Kind::LoginNeeded.with(format!("device {}", overview.device_id))),
        };
        let server = match (&session, &*self.inner().sync.link().borrow()) {
            (SessionState::LoggedIn(_), LinkState::Bad { code, detail }) => Some(Problem::from_code(code, detail)),
            (SessionState::LoggedIn(_) | SessionState::LoggedOut | SessionState::Ended, _) => None,
        };
        let mut findings = vec![
            Finding::new(Check::DataFolder, overview.data_dir, None),
            Finding::new(Check::Database, format!("{} tasks", overview.total), None),
            Finding::new(Check::Login, overview.logged_in_as.unwrap_or_default(), login),
            Finding::new(Check::Server, overview.server.subject, server),
        ];
        let Some((doctor, known)) = self.phone_doctor().await else {
            let nothing = Some(Kind::PhoneGone.with("no phone address is set"));
            findings.push(Finding::new(Check::Phone, String::new(), nothing));
            return Ok(findings);
        };
        // A second question on the phone's screen would push the first aside, so an unanswered one is not asked again.
        let unanswered = known.as_ref().filter(|problem| problem.code == Kind::PhoneUnauthorized.code());
        if let Some(problem) = unanswered {
            findings.push(Finding::new(Check::Phone, overview.phone.subject, Some(problem.clone())));
            return Ok(findings);
        }
        let report = doctor.examine(&self.question(known.as_ref())).await;
        let subject = report.phone.clone().unwrap_or(overview.phone.subject);
        findings.extend(on_the_phone(&report, subject, overview.pinduoduo.subject));
        // What the loop met and the doctor cannot see by looking: a screen that could not be read, for example.
        let told = |problem: &Problem| findings.iter().any(|finding| finding.problem.as_ref().is_some_and(|p| p.code == problem.code));
        if let Some(problem) = known.filter(|problem| !told(problem) && !report.blocks()) {
            findings.push(Finding::new(Check::Phone, String::new(), Some(problem)));
        }
        Ok(findings)
    }

    /// Does what can be done without a person; answers what was done.
    ///
    /// # Errors
    /// The first that failed.
    pub async fn doctor_fix(&self) -> Result<Vec<String>, Problem> {
        let Some((doctor, known)) = self.phone_doctor().await else { return Ok(Vec::new()) };
        if self.inner().lease.current().is_some() {
            return Err(Kind::DeviceBusy.with("a task is running"));
        }
        let mut done: Vec<String> = Vec::new();
        // One cure may bring the next complaint into sight: a server first, then the phone behind it.
        for _ in 0..ROUNDS {
            let report = doctor.examine(&self.question(known.as_ref())).await;
            let fresh: Vec<&AutoFix> = report.fixes().filter(|fix| !done.iter().any(|name| name == name_of(fix))).collect();
            if fresh.is_empty() {
                break;
            }
            for fix in fresh {
                self.apply(&doctor, fix).await?;
                tracing::info!(?fix, "the doctor fixed");
                done.push(name_of(fix).to_owned());
            }
        }
        Ok(done)
    }

    async fn apply(&self, doctor: &Doctor, fix: &AutoFix) -> Result<(), Problem> {
        match fix {
            // The house's own server, which stays; the doctor's would end with it.
            AutoFix::StartServer => drop(self.inner().hub.open().await.map_err(|error| connect_problem(&error))?),
            AutoFix::AnimationsOff { scales } => {
                // Kept before they are changed: a crash in between costs nothing, the other way round it costs the owner's settings.
                let (serial, before) = (self.phone_serial()?, scales.clone());
                self.inner().store.write(move |tx| tx.phone_animations(&serial, Some(&before))).await?;
                doctor.fix(fix).await.map_err(|error| connect_problem(&error))?;
            }
            AutoFix::ReconnectOffline { .. } | AutoFix::Rejoin { .. } => {
                doctor.fix(fix).await.map_err(|error| connect_problem(&error))?;
            }
        }
        Ok(())
    }

    /// Gives the phone back as its owner had it; false when nothing was changed.
    ///
    /// # Errors
    /// `DEVICE_GONE` without a phone; what the phone says.
    pub async fn doctor_undo(&self) -> Result<bool, Problem> {
        let serial = self.phone_serial()?;
        let Some((doctor, _)) = self.phone_doctor().await else { return Ok(false) };
        let name = serial.clone();
        let Some(scales) = self.inner().store.read(move |r| r.phone_get(&name)).await?.and_then(|phone| phone.animations_before) else {
            return Ok(false);
        };
        doctor.undo(&Undo::Animations { scales }).await.map_err(|error| connect_problem(&error))?;
        self.inner().store.write(move |tx| tx.phone_animations(&serial, None)).await?;
        Ok(true)
    }

    fn phone_serial(&self) -> Result<String, Problem> {
        let status = self.inner().phone.borrow().clone();
        status.facts.map(|facts| facts.serial).ok_or_else(|| Kind::PhoneGone.with("not connected"))
    }

    /// The doctor for the address in use, and what the connection last said; `None` without an address.
    async fn phone_doctor(&self) -> Option<(Doctor, Option<Problem>)> {
        let address = self.inner().address.borrow().clone()?;
        let road = match address {
            PhoneAddress::Direct(address) => Road::Direct { address, key: self.inner().key.clone() },
            PhoneAddress::OwnServer { serial } => {
                // As the connection itself would; why it could not is what the ladder then tells.
                let opened = self.inner().hub.phone(&serial).await;
                tracing::debug!(?opened, "looked for the phone before the doctor does");
                let port = self.inner().hub.address().await.map_or(PRIVATE_PORT, |at| at.port());
                Road::OwnServer { port, serial }
            }
            PhoneAddress::Server { server, serial } => Road::NamedServer { server, serial },
        };
        let known = self.inner().phone.borrow().problem.clone();
        Some((Doctor::new(self.inner().hub.places().clone(), road), known))
    }

    fn question(&self, known: Option<&Problem>) -> Question {
        let said = |kind: Kind| known.filter(|problem| problem.code == kind.code()).map(|problem| problem.detail.clone());
        Question {
            wall_ms: Some(self.inner().clock.now().unix_ms()),
            oldest_pdd: Some(OLDEST_PDD),
            input_refused: said(Kind::InputRefused),
            login_wall: said(Kind::LoginWall).is_some(),
        }
    }
}

fn name_of(fix: &AutoFix) -> &'static str {
    match fix {
        AutoFix::StartServer => "adb server started",
        AutoFix::ReconnectOffline { .. } => "offline phones reconnected",
        AutoFix::Rejoin { .. } => "phone joined again",
        AutoFix::AnimationsOff { .. } => "animations turned off",
    }
}

/// The ladder's findings with their sentences, and a line in order for each step that held.
fn on_the_phone(report: &Report, phone: String, pinduoduo: String) -> Vec<Finding> {
    let mut out: Vec<Finding> = report
        .findings
        .iter()
        .map(|finding| Finding {
            check: check_of(&finding.cause),
            subject: String::new(),
            problem: Some(Problem::from_code(finding.cause.code(), &finding.cause.to_string())),
            advice: finding.weight == Weight::Advice,
            fixable: finding.fix.is_some(),
        })
        .collect();
    if report.phone.is_some() {
        for (check, subject) in [(Check::Phone, phone), (Check::Screen, String::new()), (Check::Pinduoduo, pinduoduo)] {
            let held = !out.iter().any(|finding| finding.check == check && !finding.advice);
            if held {
                out.push(Finding::new(check, subject, None));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use cmautobuy_device::doctor::{Finding as Found, Weight};

    use super::*;

    /// One of each; the sentences must exist for all of them.
    fn every_cause() -> Vec<Cause> {
        let text = || "x".to_owned();
        let server = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
        vec![
            Cause::AdbMissing { looked: text() },
            Cause::AdbBroken { said: text() },
            Cause::PortHeld { port: 1, holder: None },
            Cause::ServerDown { server, said: text() },
            Cause::VersionClash { server: 31, program: 41, holder: None },
            Cause::OtherServer { port: 1, holder: None },
            Cause::HeldByOtherServer { port: 1, holder: None },
            Cause::NoPhone { serial: text() },
            Cause::Unreachable { address: server, said: text() },
            Cause::Unauthorized,
            Cause::Offline,
            Cause::NoPermissions,
            Cause::WrongMode { mode: text() },
            Cause::Silent { said: text() },
            Cause::TwoRoads { roads: vec![], used: text() },
            Cause::InputRefused { said: text() },
            Cause::ScreenOff,
            Cause::ScreenLocked,
            Cause::PddMissing { hos: true },
            Cause::PddDisabled,
            Cause::PddOld { version: text(), oldest: text() },
            Cause::PddLoggedOut,
            Cause::AccessibilityTaken { client: text() },
            Cause::StorageLow { free_mb: 1 },
            Cause::AnimationsOn { scales: [None, None, None] },
            Cause::ClockOff { seconds: 1 },
        ]
    }

    #[test]
    fn every_cause_has_sentences_in_both_languages() {
        for cause in every_cause() {
            let problem = Problem::from_code(cause.code(), &cause.to_string());
            assert_eq!(problem.code, cause.code(), "{cause:?} would be shown as an internal error");
        }
        for code in ["ADB_TOO_OLD", "PAIRING_REFUSED"] {
            assert!(Kind::from_code(code).is_some(), "{code} of a connection needs its sentences too");
        }
    }

    #[test]
    fn advice_leaves_the_step_in_order() {
        let advice = Found { cause: Cause::ScreenOff, weight: Weight::Advice, fix: None };
        let report = Report { findings: vec![advice], phone: Some("M".to_owned()) };
        let screen: Vec<bool> =
            on_the_phone(&report, String::new(), String::new()).iter().filter(|f| f.check == Check::Screen).map(|f| f.advice).collect();
        assert_eq!(screen, [true, false], "the advice is told, and the step is in order all the same");
    }
}
