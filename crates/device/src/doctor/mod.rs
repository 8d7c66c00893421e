//! Why a phone cannot be worked with, one typed cause after the other, each with what to do.
//!
//! Evidence is gathered at one edge (programs, ports, adb servers, shell answers), and a pure ladder turns it into findings, so every
//! rung is a row in a test. It looks and never taps: no key, no touch, no app is started (D10). What it may change by itself it names
//! as an [`AutoFix`], and it changes nothing until asked.

mod causes;
mod edge;
mod evidence;
mod fix;
mod ladder;
mod reading;

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;

pub use causes::{AutoFix, Cause, Finding, Rung, Weight};
pub use fix::{Fixed, Undo};

use crate::adb::AdbKey;
use crate::connect::{AdbPlaces, ConnectError};
use edge::{Edge, SystemEdge};

/// The road the operator chose.
#[derive(Clone, Debug)]
pub enum Road {
    /// Straight to the phone's debugging port; no adb program is needed.
    Direct { address: SocketAddr, key: Arc<AdbKey> },
    /// Through our own server on `port`, where it runs or would run.
    OwnServer { port: u16, serial: String },
    /// Through a server the operator named.
    NamedServer { server: SocketAddr, serial: String },
}

/// What is asked beside the road.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// This computer's wall clock, milliseconds since 1970 UTC, read just before; without it the phone's clock is not judged.
    pub wall_ms: Option<i64>,
    /// Oldest Pinduoduo the pages are known of.
    pub oldest_pdd: Option<[u32; 2]>,
    /// What the phone said when it last refused a touch; it cannot be tried without touching.
    pub input_refused: Option<String>,
    /// The last run ended at Pinduoduo's login page.
    pub login_wall: bool,
}

/// Everything found, worst first within each rung.
#[derive(Debug, Default)]
pub struct Report {
    pub findings: Vec<Finding>,
    /// `maker model, Android n` when the phone could be asked.
    pub phone: Option<String>,
}

impl Report {
    /// Whether anything keeps the phone from working.
    pub fn blocks(&self) -> bool {
        self.findings.iter().any(|finding| finding.weight == Weight::Blocks)
    }

    /// What may be done without a person.
    pub fn fixes(&self) -> impl Iterator<Item = &AutoFix> {
        self.findings.iter().filter_map(|finding| finding.fix.as_ref())
    }
}

/// Looks at one road.
#[derive(Debug)]
pub struct Doctor {
    edge: Box<dyn Edge>,
    road: Road,
}

impl Doctor {
    pub fn new(places: AdbPlaces, road: Road) -> Doctor {
        let edge = Box::new(SystemEdge::new(places, &road));
        Doctor { edge, road }
    }

    /// Looks; every question has a deadline, so this ends within a minute whatever hangs.
    pub async fn examine(&self, question: &Question) -> Report {
        let evidence = evidence::gather(self.edge.as_ref(), &self.road, question).await;
        ladder::climb(&evidence, &self.road, question)
    }

    /// Does what a finding offered.
    ///
    /// # Errors
    /// [`ConnectError`] with adb's words.
    pub async fn fix(&self, fix: &AutoFix) -> Result<Fixed, ConnectError> {
        fix::apply(self.edge.as_ref(), &self.road, fix).await
    }

    /// Takes a fix back.
    ///
    /// # Errors
    /// [`ConnectError`] with the phone's words.
    pub async fn undo(&self, undo: &Undo) -> Result<(), ConnectError> {
        fix::take_back(self.edge.as_ref(), &self.road, undo).await
    }
}
