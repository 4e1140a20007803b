//! What the comparing tests share.

#![allow(dead_code, clippy::print_stdout)]

use bronzeward_testkit::differential::{Side, Verdict};
use bronzeward_testkit::generator::Case;
use bronzeward_testkit::library::Library;

/// Minors beside their own libraries. 1.14 is what the module proxy serves of it, with tables that are made now.
/// `TALOS_MACHINERY` names a checkout of the library to compare with instead.
#[allow(
    clippy::disallowed_methods,
    reason = "a run is set by its environment, as test runners allow no arguments"
)]
pub fn sides() -> impl Iterator<Item = Side> {
    let libraries = match std::env::var_os("TALOS_MACHINERY") {
        Some(dir) => vec![Library::Checkout(dir.into())],
        None => Library::MINORS.map(Library::minor).to_vec(),
    };
    libraries.into_iter().map(Side::of)
}

/// A case of a configuration and patches.
pub fn case(config: &str, patches: &[&str]) -> Case {
    Case { config: config.to_owned(), patches: patches.iter().map(|p| (*p).to_owned()).collect() }
}

/// Counts verdicts and keeps what differs.
#[derive(Default)]
pub struct Tally {
    pub equal: usize,
    pub refused: usize,
    pub panics: usize,
    pub by_name: Vec<String>,
    pub different: Vec<String>,
}

impl Tally {
    /// Adds the verdict of a named case.
    pub fn add(&mut self, name: &str, case: &Case, verdict: Verdict) {
        match verdict {
            Verdict::Equal => self.equal += 1,
            Verdict::BothRefuse => self.refused += 1,
            Verdict::Panics => self.panics += 1,
            Verdict::ByName(class) => self.by_name.push(format!("{name}: {class}")),
            Verdict::Mismatch { kind, ours, theirs } => {
                let patches: String = case.patches.iter().map(|p| format!(">>>\n{p}\n")).collect();
                self.different.push(format!(
                    "### {name}: {kind}\n{}\n{patches}--- ours\n{ours}\n--- Talos\n{theirs}\n",
                    case.config
                ));
            }
        }
    }

    pub fn finish(self, what: &str) {
        println!(
            "{what}: {} equal bytes, {} refused by both, {} crash Talos, {} refused by name here only, {} different",
            self.equal,
            self.refused,
            self.panics,
            self.by_name.len(),
            self.different.len()
        );
        for e in &self.by_name {
            println!("  by name: {e}");
        }
        for text in self.different.iter().take(40) {
            println!("{text}");
        }
        assert!(self.different.is_empty(), "{} cases differ", self.different.len());
    }
}

/// Fails with the first line that differs.
pub fn assert_same(ours: &str, theirs: &str, what: &str) {
    for (i, (a, b)) in ours.lines().zip(theirs.lines()).enumerate() {
        assert_eq!(a, b, "{what}: line {}", i + 1);
    }
    assert_eq!(ours.len(), theirs.len(), "{what}: one output goes on where the other ends");
}
