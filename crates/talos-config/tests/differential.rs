//! Random configurations and patches of every kind, made from the tables, through the engine and through Talos' own
//! library of every minor.
//!
//! `DIFFERENTIAL_CASES` and `DIFFERENTIAL_SEED` set how many cases a minor gets, and from which seed. Long runs:
//! `cargo xtask differential`.

// helpers outside of test functions are test code too
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod support;

use bronzeward_testkit::differential::{Verdict, run, shrink};
use bronzeward_testkit::generator::{Case, Generator, Manner};
use bronzeward_testkit::oracle::Oracle;
use serde_json::Value;
use support::sides;
use talos_config::{Config, Options, Patch, Resolved, SourceId};

#[allow(
    clippy::disallowed_methods,
    reason = "a run is set by its environment, as test runners allow no arguments"
)]
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}: no number")))
}

#[test]
fn every_minor_agrees_with_its_own_library() {
    let (seed, cases) = (setting("DIFFERENTIAL_SEED", 20_261_130), setting("DIFFERENTIAL_CASES", 20_000));
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let mut wrong = 0;
    for side in sides() {
        let report = run(&side, seed, cases, threads, &|_| {});
        println!("{}, seed {seed}: {report}", side.tables.machinery());
        assert!(report.equal > cases / 4, "too few cases are accepted: {}", report.equal);
        let named: u64 = report.by_name.values().sum();
        assert!(named <= cases / 33, "refusals by name are to be rare: {named} of {cases}");
        let mut oracle = Oracle::start_with(&side.library);
        for (number, (case, verdict)) in report.mismatches.iter().take(5) {
            let small = shrink(&side, &mut oracle, case, verdict);
            println!("##### case {number}\n{}", small.config);
            small.patches.iter().for_each(|patch| println!(">>>\n{patch}"));
            if let Verdict::Mismatch { kind, ours, theirs } = verdict {
                println!("----- {kind}\n--- ours\n{ours}\n--- Talos\n{theirs}");
            }
        }
        wrong += report.mismatches.len();
    }
    assert_eq!(wrong, 0, "cases differ");
}

/// The value that the reference of a place stands for.
fn value_of(number: &str) -> String {
    match number.len() % 3 {
        0 => format!("several\nlines {number}\n"),
        1 => format!("yes: {number}"),
        _ => number.to_owned(),
    }
}

/// Puts something in place of every `@@n@@`.
fn fill(text: &str, with: &dyn Fn(&str) -> String) -> String {
    text.split("@@")
        .enumerate()
        .map(|(i, part)| if i % 2 == 1 { with(part) } else { part.to_owned() })
        .collect()
}

#[test]
fn merging_references_and_resolving_is_resolving_and_merging() {
    let seed = setting("DIFFERENTIAL_SEED", 20_261_130);
    let options = Options { opaque_tag: Some("!ref".to_owned()), ..Options::default() };
    for side in sides() {
        let manner = Manner { wrong: 0, styles: false, mutations: false, references: 350 };
        let mut generator = Generator::new(&side.json, seed, manner);
        let (mut equal, mut refused) = (0, 0);
        for number in 0..1500 {
            let case = generator.numbered(seed, number);
            let reference = |n: &str| format!("!ref r{n}");
            let quoted = |n: &str| Value::String(value_of(n)).to_string();
            let filled = |with: &dyn Fn(&str) -> String| Case {
                config: fill(&case.config, with),
                patches: case.patches.iter().map(|p| fill(p, with)).collect(),
            };
            let Ok(want) = side.ours(&filled(&quoted)) else { continue };
            let marked = filled(&reference);
            let load = |text: &str| Config::load(&side.tables, text.as_bytes(), SourceId(0), &options);
            let mut ours = load(&marked.config).unwrap();
            let applied = marked.patches.iter().try_for_each(|text| {
                let patch = Patch::load(&side.tables, text.as_bytes(), SourceId(1), &options).unwrap();
                ours.apply(&patch).map(|_| ())
            });
            if applied.is_err() {
                refused += 1;
                continue;
            }
            // what is printed with references in it loads as the same
            let printed = String::from_utf8(ours.encode().unwrap()).unwrap();
            let value = |text: &str| {
                Ok::<_, std::fmt::Error>(Resolved::Text(value_of(text.strip_prefix('r').unwrap())))
            };
            let done = ours.resolve(|text, _, _| value(text)).unwrap();
            support::assert_same(
                std::str::from_utf8(&done.encode().unwrap()).unwrap(),
                &want,
                &marked.config,
            );
            if let Ok(again) = load(&printed) {
                assert_eq!(String::from_utf8(again.encode().unwrap()).unwrap(), printed);
            }
            equal += 1;
        }
        println!("{}, references: {equal} equal, {refused} refused for one", side.tables.machinery());
        assert!(equal > 300, "{equal}");
    }
}
