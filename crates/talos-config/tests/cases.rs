//! Hand-made cases, each compared with Talos' own library: equal bytes, or refused by both.

// helpers outside of test functions are test code too
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod support;

use bronzeward_testkit::oracle::Oracle;
use support::{Tally, compare};

/// Cases in a text: `=== name`, then the configuration, then patches after `>>>` lines.
fn cases(text: &str) -> Vec<(String, String, Vec<String>)> {
    text.split("\n=== ")
        .skip(1)
        .map(|case| {
            let (name, body) = case.split_once('\n').unwrap_or((case, ""));
            let body =
                if body.is_empty() || body.ends_with('\n') { body.to_owned() } else { format!("{body}\n") };
            let mut parts = body.split(">>>\n").map(str::to_owned);
            let config = parts.next().expect("a configuration");
            (name.to_owned(), config, parts.collect())
        })
        .collect()
}

#[test]
fn hand_made_cases() {
    let mut oracle = Oracle::start();
    let mut tally = Tally::default();
    for file in ["scalars", "merge", "delete", "documents", "reader"] {
        let path = format!("{}/tests/cases/{file}.txt", env!("CARGO_MANIFEST_DIR"));
        for (name, config, patches) in cases(&std::fs::read_to_string(path).unwrap()) {
            let patches: Vec<&str> = patches.iter().map(String::as_str).collect();
            let outcome = compare(&mut oracle, &config, &patches);
            match outcome {
                support::Outcome::Different(text) => {
                    tally.different.push(format!("### {file}: {name}\n{text}"))
                }
                support::Outcome::RefusedByName(e) => tally.by_name.push(format!("{file}: {name}: {e}")),
                other => tally.add(other),
            }
        }
    }
    tally.finish("hand-made cases");
}

#[test]
fn generated_clusters_round_trip() {
    let mut oracle = Oracle::start();
    let answer = oracle.generate("home", "https://10.0.0.1:6443");
    assert!(answer.ok, "{}", answer.error);
    for name in ["controlplane", "worker"] {
        let text = &answer.files[name];
        assert_eq!(&support::ours(text, &[]).unwrap(), text, "{name}");
    }
}
