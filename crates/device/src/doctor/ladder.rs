//! The ladder: evidence in, findings out. Pure.
//!
//! It climbs from this computer to the page on the phone. A broken rung ends the climb: what stands above it cannot be known, and a
//! person who is told ten things does none of them.

use crate::adb::{AdbError, ListedState, answers};
use crate::connect::{ConnectError, DEFAULT_PORT, PortUse};
use crate::doctor::causes::{AutoFix, Cause, Finding};
use crate::doctor::evidence::{Evidence, PhoneAnswers};
use crate::doctor::{Question, Report, Road, reading};
use crate::phone::PDD_PACKAGE;

/// Pinduoduo itself asks for room below this, and a dump needs some.
const LOW_MB: u64 = 500;
/// Order times are compared within two minutes (D10); a minute leaves room for drift.
const CLOCK_SLACK_MS: i64 = 60_000;

pub(super) fn climb(evidence: &Evidence, road: &Road, question: &Question) -> Report {
    let mut report = Report::default();
    let done = match road {
        Road::Direct { address, .. } => direct(evidence, *address, &mut report),
        Road::OwnServer { serial, .. } => own_server(evidence, serial, &mut report),
        Road::NamedServer { serial, .. } => named_server(evidence, serial, &mut report),
    };
    if let Some(phone) = done {
        report.phone = Some(phone.name.clone());
        on_the_phone(phone, question, &mut report);
    }
    report.findings.sort_by_key(|finding| (finding.cause.rung(), finding.weight));
    report
}

impl Report {
    fn add(&mut self, cause: Cause) {
        self.add_fixable(cause, None);
    }

    fn add_fixable(&mut self, cause: Cause, fix: Option<AutoFix>) {
        let weight = cause.weight();
        self.findings.push(Finding { cause, weight, fix });
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut said = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        said = format!("{said}: {inner}");
        source = inner.source();
    }
    said
}

fn direct<'e>(evidence: &'e Evidence, address: std::net::SocketAddr, report: &mut Report) -> Option<&'e PhoneAnswers> {
    match evidence.phone.as_ref()? {
        Ok(phone) => return Some(phone),
        Err(AdbError::Unauthorized) => report.add(Cause::Unauthorized),
        Err(error @ (AdbError::Timeout | AdbError::BrokeOff | AdbError::TooLarge { .. })) => {
            report.add(Cause::Silent { said: chain(error) });
        }
        Err(error @ (AdbError::Unreachable { .. } | AdbError::Io(_) | AdbError::Refused(_) | AdbError::Protocol(_))) => {
            report.add(Cause::Unreachable { address, said: chain(error) });
        }
    }
    None
}

fn own_server<'e>(evidence: &'e Evidence, serial: &str, report: &mut Report) -> Option<&'e PhoneAnswers> {
    match &evidence.program {
        Ok(_) => {}
        Err(ConnectError::NoAdb { looked }) => {
            report.add(Cause::AdbMissing { looked: looked.clone() });
            return None;
        }
        Err(error) => {
            report.add(Cause::AdbBroken { said: chain(error) });
            return None;
        }
    }
    let (server, port) = evidence.server.as_ref()?;
    match port {
        PortUse::AdbServer { .. } => {}
        PortUse::Free => {
            let said = "it is not running".to_owned();
            report.add_fixable(Cause::ServerDown { server: *server, said }, Some(AutoFix::StartServer));
            return None;
        }
        PortUse::Other { holder } => {
            // The next free port is taken instead, so starting cures it.
            let held = Cause::PortHeld { port: server.port(), holder: holder.clone() };
            report.add_fixable(held, Some(AutoFix::StartServer));
            return None;
        }
    }
    if let Some(PortUse::AdbServer { holder, .. }) = &evidence.default_port {
        report.add(Cause::OtherServer { port: DEFAULT_PORT, holder: holder.clone() });
    }
    at_server(evidence, *server, serial, report)
}

fn named_server<'e>(evidence: &'e Evidence, serial: &str, report: &mut Report) -> Option<&'e PhoneAnswers> {
    let (server, port) = evidence.server.as_ref()?;
    // A named server may be on another computer; then only its answers count.
    if server.ip().is_loopback() {
        match port {
            PortUse::Free => {
                report.add(Cause::ServerDown { server: *server, said: "nothing listens there".to_owned() });
                return None;
            }
            PortUse::Other { holder } => {
                report.add(Cause::PortHeld { port: server.port(), holder: holder.clone() });
                return None;
            }
            PortUse::AdbServer { version, holder } => {
                if let Some(program) = evidence.program.as_ref().ok().map(|own| own.protocol).filter(|own| own != version) {
                    report.add(Cause::VersionClash { server: *version, program, holder: holder.clone() });
                }
            }
        }
    }
    at_server(evidence, *server, serial, report)
}

fn at_server<'e>(evidence: &'e Evidence, server: std::net::SocketAddr, serial: &str, report: &mut Report) -> Option<&'e PhoneAnswers> {
    if let Some(Err(error)) = &evidence.devices {
        report.add(Cause::ServerDown { server, said: chain(error) });
        return None;
    }
    let Some(seen) = &evidence.seen else {
        if evidence.others.iter().any(|road| road.serial == serial) {
            let holder = match &evidence.default_port {
                Some(PortUse::AdbServer { holder, .. } | PortUse::Other { holder }) => holder.clone(),
                Some(PortUse::Free) | None => None,
            };
            report.findings.retain(|finding| !matches!(finding.cause, Cause::OtherServer { .. }));
            report.add(Cause::HeldByOtherServer { port: DEFAULT_PORT, holder });
        } else {
            let rejoin = serial.parse().ok().map(|address| AutoFix::Rejoin { server, address });
            report.add_fixable(Cause::NoPhone { serial: serial.to_owned() }, rejoin);
        }
        return None;
    };
    if seen.roads.len() > 1 {
        let roads = seen.roads.iter().map(|road| road.serial.clone()).collect();
        report.add(Cause::TwoRoads { roads, used: seen.best().serial.clone() });
    }
    match seen.state() {
        ListedState::Device => {}
        ListedState::Unauthorized => {
            report.add(Cause::Unauthorized);
            return None;
        }
        ListedState::Offline => {
            report.add_fixable(Cause::Offline, Some(AutoFix::ReconnectOffline { server }));
            return None;
        }
        ListedState::NoPermissions => {
            report.add(Cause::NoPermissions);
            return None;
        }
        // The phone is in the middle of asking: the same thing to press.
        ListedState::Other(mode) if mode == "authorizing" => {
            report.add(Cause::Unauthorized);
            return None;
        }
        ListedState::Other(mode) => {
            report.add(Cause::WrongMode { mode: mode.clone() });
            return None;
        }
    }
    match evidence.phone.as_ref()? {
        Ok(phone) => Some(phone),
        Err(AdbError::Unauthorized) => {
            report.add(Cause::Unauthorized);
            None
        }
        Err(error) => {
            report.add(Cause::Silent { said: chain(error) });
            None
        }
    }
}

fn on_the_phone(phone: &PhoneAnswers, question: &Question, report: &mut Report) {
    screen(phone, question, report);
    pinduoduo(phone, question, report);
    if let Some(free_mb) = phone.storage.as_deref().and_then(reading::free_mb).filter(|free| *free < LOW_MB) {
        report.add(Cause::StorageLow { free_mb });
    }
    if let Some(scales) = phone.scales.as_ref().filter(|scales| scales.iter().any(|scale| reading::is_animated(scale.as_deref()))) {
        let fix = AutoFix::AnimationsOff { scales: scales.clone() };
        report.add_fixable(Cause::AnimationsOn { scales: scales.clone() }, Some(fix));
    }
    if let Some(ahead) = phone.clock_ahead_ms.filter(|ahead| ahead.abs() > CLOCK_SLACK_MS) {
        report.add(Cause::ClockOff { seconds: ahead / 1000 });
    }
}

fn screen(phone: &PhoneAnswers, question: &Question, report: &mut Report) {
    let refused = question.input_refused.clone();
    let passive = phone.xiaomi_input.as_deref().is_some_and(reading::input_is_off);
    if let Some(said) = refused.or_else(|| passive.then(|| "persist.security.adbinput=0".to_owned())) {
        report.add(Cause::InputRefused { said });
    }
    // A locked phone is usually off too; the lock is what needs a person.
    if phone.window.as_deref().and_then(reading::is_locked) == Some(true) {
        report.add(Cause::ScreenLocked);
    } else if phone.power.as_deref().and_then(reading::screen_is_off) == Some(true) {
        report.add(Cause::ScreenOff);
    }
    if let Some(client) = phone.processes.as_deref().and_then(answers::accessibility_client) {
        report.add(Cause::AccessibilityTaken { client });
    }
}

fn pinduoduo(phone: &PhoneAnswers, question: &Question, report: &mut Report) {
    let Some(package) = phone.package.as_deref() else { return };
    let Some(version) = answers::version_name(package) else {
        let hos = phone.hos.as_deref().and_then(answers::version_name).is_some();
        return report.add(Cause::PddMissing { hos });
    };
    if reading::is_disabled(package) {
        return report.add(Cause::PddDisabled);
    }
    if let (Some(oldest), Some(found)) = (question.oldest_pdd, reading::version(&version))
        && found < oldest
    {
        report.add(Cause::PddOld { version, oldest: format!("{}.{}", oldest[0], oldest[1]) });
    }
    let login_in_front = phone
        .window
        .as_deref()
        .and_then(answers::current_focus)
        .is_some_and(|focus| focus.package == PDD_PACKAGE && focus.activity.contains("login.LoginActivity"));
    if question.login_wall || login_in_front {
        report.add(Cause::PddLoggedOut);
    }
}
