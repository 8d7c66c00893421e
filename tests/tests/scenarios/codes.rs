//! Every error code a row, a report or the window can carry leads to a sentence in both languages.

use std::collections::BTreeSet;
use std::path::Path;

use cmautobuy_app::problem::Kind;

/// Where codes are born, and what a code looks like there.
const BIRTHPLACES: [&str; 6] = [
    "crates/device/src/error.rs",
    "crates/device/src/connect/error.rs",
    "crates/device/src/doctor/causes.rs",
    "crates/pdd/src/error.rs",
    "crates/pdd/src/collect.rs",
    "crates/engine/src/run.rs",
];

fn codes(text: &str) -> BTreeSet<String> {
    let quoted = text.split('"').skip(1).step_by(2);
    let is_code = |s: &&str| s.len() > 5 && s.contains('_') && s.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
    quoted.filter(is_code).map(str::to_owned).collect()
}

#[test]
fn every_code_has_its_sentence() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let mut all = BTreeSet::new();
    for place in BIRTHPLACES {
        let text = std::fs::read_to_string(root.join(place)).unwrap_or_else(|error| panic!("{place}: {error}"));
        all.extend(codes(&text));
    }
    for entry in std::fs::read_dir(root.join("crates/store/src/tx")).expect("the store's writes") {
        all.extend(codes(&std::fs::read_to_string(entry.unwrap().path()).unwrap()));
    }
    assert!(all.len() > 20, "the codes are found: {all:?}");
    let mute: Vec<&String> = all.iter().filter(|code| Kind::from_code(code).is_none()).collect();
    assert!(mute.is_empty(), "these codes would reach a person as an internal error: {mute:?}");
}
