//! docs/t205.md says which code keeps a rule and which test holds it; what it names must be there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|end| end == "rs") {
            into.push(path);
        }
    }
}

#[test]
fn every_rule_names_code_and_tests_that_are_there() {
    let server = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&server.join("src"), &mut files);
    sources(&server.join("tests"), &mut files);
    let text: String = files.iter().map(|file| std::fs::read_to_string(file).expect("a source")).collect();
    let page = std::fs::read_to_string(server.join("../../docs/t205.md")).expect("docs/t205.md");
    let mut rules = BTreeSet::new();
    for line in page.lines().filter(|line| line.starts_with("| §") || line.starts_with("| D")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, rule, _, code, tests, _] = cells[..] else { panic!("a rule has four cells: {line}") };
        rules.insert(rule.to_owned());
        let rule = rule.to_owned();
        let named = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
        let (code, tests) = (named(code), named(tests));
        assert!(!code.is_empty() && !tests.is_empty(), "{rule} must name its code and a test");
        for file in code {
            let source = std::fs::read_to_string(server.join("src").join(&file))
                .unwrap_or_else(|_| panic!("{rule} names {file}, which is not there"));
            let cites =
                source.match_indices(&rule).any(|(at, _)| !source[at + rule.len()..].starts_with(|next: char| next.is_ascii_digit()));
            assert!(cites, "{file} keeps {rule} and must cite it");
        }
        for test in tests {
            assert!(text.contains(&format!("fn {test}(")), "{rule} names the test {test}, which is not there");
        }
    }
    for section in 1..=13 {
        assert!(rules.contains(&format!("§{section}")), "T-205 §{section} must be on the page");
    }
}
