//! Hand-made cases, each compared with Talos' own library of every minor: equal bytes, or refused by both.

// helpers outside of test functions are test code too
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod support;

use bronzeward_testkit::differential::Side;
use bronzeward_testkit::generator::Case;
use bronzeward_testkit::library::Library;
use bronzeward_testkit::oracle::Oracle;
use support::{Tally, case, sides};
use talos_config::Tables;

/// A case, the minors that it is for (all if none is named), and its name.
struct Named {
    name: String,
    minors: Vec<String>,
    case: Case,
}

/// Cases in a text: `=== name`, or `=== name @1.13 1.14` for some minors only; then the configuration, then patches
/// after `>>>` lines.
fn cases(text: &str) -> Vec<Named> {
    text.split("\n=== ")
        .skip(1)
        .map(|part| {
            let (title, body) = part.split_once('\n').unwrap_or((part, ""));
            let body =
                if body.is_empty() || body.ends_with('\n') { body.to_owned() } else { format!("{body}\n") };
            let mut parts = body.split(">>>\n");
            let config = parts.next().expect("a configuration");
            let (name, minors) = title.split_once(" @").unwrap_or((title, ""));
            Named {
                name: name.to_owned(),
                minors: minors.split_whitespace().map(str::to_owned).collect(),
                case: case(config, &parts.collect::<Vec<_>>()),
            }
        })
        .collect()
}

fn compare_hand_made(side: &Side) {
    let mut oracle = Oracle::start_with(&side.library);
    let mut tally = Tally::default();
    for file in ["scalars", "leaves", "merge", "delete", "lists", "documents", "reader", "minors", "aliases"] {
        let path = format!("{}/tests/cases/{file}.txt", env!("CARGO_MANIFEST_DIR"));
        for named in cases(&std::fs::read_to_string(path).unwrap()) {
            if named.minors.is_empty() || named.minors.iter().any(|m| m == side.tables.minor()) {
                let verdict = side.compare(&mut oracle, &named.case);
                tally.add(&format!("{file}: {}", named.name), &named.case, verdict);
            }
        }
    }
    assert!(tally.equal > 250, "{}", tally.equal);
    tally.finish(&format!("hand-made cases, {}", side.tables.machinery()));
}

#[test]
fn hand_made_cases() {
    for side in sides() {
        compare_hand_made(&side);
    }
}

/// What docs/engine.md says of a new minor: its tables are made, loaded, and everything is right.
#[test]
fn a_version_that_is_not_embedded_needs_nothing_but_its_tables() {
    let bytes = Library::minor("1.14").tables();
    let tables = Tables::from_slice(&bytes).unwrap();
    assert_eq!(tables.machinery(), "v1.14.0-alpha.2");
    assert!(Tables::minors().filter_map(Tables::embedded).all(|t| t.digest() != tables.digest()));
    let json = serde_json::from_slice(&bytes).unwrap();
    compare_hand_made(&Side { library: Library::minor("1.14"), tables, json });
}

#[test]
fn generated_clusters_round_trip() {
    for side in sides() {
        let mut oracle = Oracle::start_with(&side.library);
        let answer = oracle.generate("home", "https://10.0.0.1:6443");
        assert!(answer.ok, "{}", answer.error);
        for name in ["controlplane", "worker"] {
            let text = &answer.files[name];
            let ours = side.ours(&case(text, &[])).unwrap();
            support::assert_same(&ours, text, &format!("{name} of {}", side.tables.machinery()));
        }
    }
}
