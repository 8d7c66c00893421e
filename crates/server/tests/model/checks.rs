//! Every configuration is searched to its end and must keep every rule; every rule left out must be noticed; `docs/model.md` must tell the truth.

use std::collections::BTreeSet;

use stateright::{Checker, HasDiscoveries, Model};

use crate::judge::Flaw;
use crate::setups::{self, world};
use crate::spec::Mutation;
use crate::world::{NOTHING_LOST, ONE_EXECUTION, ONE_OPERATES, ONE_SLOT, Setup};

const DOCUMENT: &str = include_str!("../../../../docs/model.md");

/// The cells of the document's table rows that begin with this name.
fn row(name: &str) -> Option<Vec<&'static str>> {
    let cells = |line: &'static str| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>();
    DOCUMENT.lines().filter(|line| line.starts_with('|')).map(cells).find(|cells| cells.first() == Some(&format!("`{name}`").as_str()))
}

fn search(setup: fn() -> Setup) {
    let name = setup().name;
    // One thread: depth is then the same in every run.
    let checker = world(setup, None).checker().threads(1).spawn_bfs().join();
    checker.assert_properties();
    let found = [checker.unique_state_count().to_string(), checker.max_depth().to_string()];
    let told = row(name).unwrap_or_else(|| panic!("docs/model.md must have a row for the configuration {name}; it found {found:?}"));
    assert_eq!(told[1..3], found, "docs/model.md must tell the states and the depth of {name} as the checker found them");
}

macro_rules! searches {
    ($($test:ident: $setup:ident;)+) => {
        $(
            #[test]
            fn $test() {
                search(setups::$setup);
            }
        )+
        const SEARCHED: &[fn() -> Setup] = &[$(setups::$setup,)+];
    };
}

searches! {
    claim_keeps_every_rule: claim;
    run_keeps_every_rule: run;
    steal_keeps_every_rule: steal;
    slot_keeps_every_rule: slot;
    cancel_keeps_every_rule: cancel;
    results_keep_every_rule: results;
    recollect_keeps_every_rule: recollect;
    order_keeps_every_rule: order;
    devices_keep_every_rule: devices;
}

#[test]
fn every_configuration_is_searched() {
    let names = |all: &[fn() -> Setup]| all.iter().map(|setup| setup().name).collect::<BTreeSet<_>>();
    assert_eq!(names(SEARCHED), names(&setups::ALL), "a configuration nobody searches proves nothing");
}

type Caught = (Mutation, fn() -> Setup, &'static str);

/// Which rule left out is noticed where, and by which property.
const CAUGHT: &[Caught] = &[
    (Mutation::NoGenerationBump, setups::claim, Flaw::GenerationStood.rule()),
    (Mutation::TokenNotChecked, setups::steal, Flaw::ForeignTouched.rule()),
    (Mutation::ReplayClaimsAnew, setups::claim, Flaw::SecondTask.rule()),
    (Mutation::OtherRequestIsReplay, setups::claim, Flaw::KeyMeansTwo.rule()),
    (Mutation::NoTaskForgotten, setups::claim, Flaw::NoTaskTurned.rule()),
    (Mutation::RunningIsClaimable, setups::run, Flaw::Requeued.rule()),
    (Mutation::LiveClaimIsClaimable, setups::claim, Flaw::LiveClaimTaken.rule()),
    (Mutation::ReleaseWithoutProof, setups::claim, Flaw::ForeignTouched.rule()),
    (Mutation::ReleasedOfferedAgain, setups::claim, Flaw::OfferedAgain.rule()),
    (Mutation::StartIgnoresVersion, setups::steal, Flaw::UnseenVersion.rule()),
    (Mutation::StartsTwice, setups::steal, ONE_EXECUTION),
    (Mutation::ReplayExtendsLease, setups::run, Flaw::ReplayActed.rule()),
    (Mutation::HeartbeatRevives, setups::run, Flaw::DeadLeaseRenewed.rule()),
    (Mutation::ResumeIgnoresSlot, setups::slot, ONE_SLOT),
    (Mutation::SlotIgnoresRunning, setups::slot, ONE_SLOT),
    (Mutation::CancelStopsRunning, setups::cancel, Flaw::StoppedWhileRunning.rule()),
    (Mutation::AckUnasked, setups::cancel, Flaw::AckedUnasked.rule()),
    (Mutation::RecollectReopens, setups::recollect, Flaw::TerminalRegressed.rule()),
    (Mutation::OldGenerationSettles, setups::results, Flaw::OldResultMoved.rule()),
    (Mutation::AnyAttemptSettles, setups::results, Flaw::OldResultMoved.rule()),
    (Mutation::DuplicateCounts, setups::results, Flaw::CountedTwice.rule()),
    (Mutation::ResultNeedsLease, setups::results, Flaw::ResultRefused.rule()),
    (Mutation::TerminalRegresses, setups::cancel, Flaw::TerminalRegressed.rule()),
    (Mutation::CloseUnderLease, setups::cancel, Flaw::ClosedUnderLease.rule()),
    (Mutation::CloseRequeues, setups::cancel, Flaw::Requeued.rule()),
    (Mutation::AckIgnoresOrder, setups::order, Flaw::OrderHidden.rule()),
    (Mutation::CancelledHidesOrder, setups::order, Flaw::OrderHidden.rule()),
    (Mutation::CloseUnchecked, setups::order, Flaw::OrderHidden.rule()),
    (Mutation::RivalIgnored, setups::devices, Flaw::BesideRival.rule()),
    (Mutation::UnreadyClaims, setups::devices, Flaw::ClaimedUnready.rule()),
    (Mutation::LiveRunIsClaimable, setups::steal, ONE_OPERATES),
    (Mutation::VersionStands, setups::run, Flaw::VersionStood.rule()),
    (Mutation::ResultForgotten, setups::results, Flaw::ResultLost.rule()),
    (Mutation::LateThrownAway, setups::results, NOTHING_LOST),
];

#[test]
fn every_rule_left_out_is_noticed() {
    let mut missed = Vec::new();
    for (mutation, setup, rule) in CAUGHT {
        let name = setup().name;
        let first = HasDiscoveries::AnyOf(BTreeSet::from([*rule]));
        let checker = world(*setup, Some(*mutation)).checker().threads(1).finish_when(first).spawn_bfs().join();
        if checker.discovery(rule).is_none() {
            let found = checker.discoveries().into_keys().filter(|name| checker.model().property(name).expectation.discovery_is_failure());
            missed.push(format!("{mutation:?} in {name} must break `{rule}`; broken was {:?}", found.collect::<Vec<_>>()));
        }
    }
    assert!(missed.is_empty(), "a property that misses its rule checks nothing:\n{}", missed.join("\n"));
}

#[test]
fn docs_name_every_mutation_and_every_invariant() {
    for (mutation, setup, rule) in CAUGHT {
        let cells = row(&format!("{mutation:?}")).unwrap_or_else(|| panic!("docs/model.md must have a row for {mutation:?}"));
        assert_eq!(cells[1..], [format!("`{}`", setup().name).as_str(), rule], "docs/model.md must say what catches {mutation:?}");
    }
    let caught = CAUGHT.iter().map(|(_, _, rule)| *rule).collect::<BTreeSet<_>>();
    for rule in Flaw::ALL.iter().map(|flaw| flaw.rule()).chain([ONE_OPERATES, ONE_SLOT, ONE_EXECUTION, NOTHING_LOST]) {
        assert!(DOCUMENT.contains(&format!("\n- {rule}")), "docs/model.md must list the invariant `{rule}`");
        assert!(caught.contains(rule), "the invariant `{rule}` must catch at least one mutation, or it may be empty");
    }
}
