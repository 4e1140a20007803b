//! What the differential tests share: running one case through this library and through the oracle.

#![allow(dead_code, clippy::print_stdout)]

use std::fmt::Write as _;

use bronzeward_testkit::oracle::Oracle;
use talos_config::{Config, Options, Patch, SourceId, Tables};

/// A difference between the two, or nothing.
pub fn compare(oracle: &mut Oracle, config: &str, patches: &[&str]) -> Outcome {
    let theirs = oracle.patch(config, patches).result();
    let ours = ours(config, patches);
    match (&ours, &theirs) {
        // what was printed reads as the same configuration (Talos prints some unset enums so that they do not load)
        (Ok(a), Ok(b)) if a == b && self::ours(a, &[]).is_ok_and(|again| again != *a) => {
            Outcome::Different(format!("printed again it differs:\n{a}"))
        }
        (Ok(a), Ok(b)) if a == b => Outcome::Equal,
        (Err(_), Err(_)) => Outcome::BothRefuse,
        (Err(e), Ok(_)) if by_name(e) => Outcome::RefusedByName(e.clone()),
        _ => {
            let mut text = String::new();
            let _ = write!(text, "--- config\n{config}\n");
            for p in patches {
                let _ = write!(text, "--- patch\n{p}\n");
            }
            let show = |r: &Result<String, String>| match r {
                Ok(t) => t.clone(),
                Err(e) => format!("REFUSED {e}"),
            };
            let _ = write!(text, "=== ours\n{}\n=== Talos\n{}\n", show(&ours), show(&theirs));
            Outcome::Different(text)
        }
    }
}

/// Refusals that this library makes on purpose where Talos goes on: each says so in its message.
fn by_name(message: &str) -> bool {
    ["exactly as Talos does", "would damage", "is refused, since", "would write an empty document or crash"]
        .iter()
        .any(|part| message.contains(part))
}

pub enum Outcome {
    Equal,
    BothRefuse,
    RefusedByName(String),
    Different(String),
}

pub fn ours(config: &str, patches: &[&str]) -> Result<String, String> {
    let (tables, options) = (Tables::v1_13(), Options::default());
    let mut loaded = Config::load(&tables, config.as_bytes(), SourceId(0), &options)
        .map_err(|e| format!("config: {e}"))?;
    let mut all = Vec::new();
    for (i, text) in patches.iter().enumerate() {
        let source = SourceId(1 + i as u32);
        all.push(
            Patch::load(&tables, text.as_bytes(), source, &options).map_err(|e| format!("patch {i}: {e}"))?,
        );
    }
    for patch in &all {
        loaded.apply(patch).map_err(|e| e.to_string())?;
    }
    loaded.encode().map(|b| String::from_utf8(b).expect("output is UTF-8")).map_err(|e| e.to_string())
}

/// Counts outcomes and keeps the differences.
#[derive(Default)]
pub struct Tally {
    pub equal: usize,
    pub refused: usize,
    pub by_name: Vec<String>,
    pub different: Vec<String>,
}

impl Tally {
    pub fn add(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Equal => self.equal += 1,
            Outcome::BothRefuse => self.refused += 1,
            Outcome::RefusedByName(e) => self.by_name.push(e),
            Outcome::Different(text) => self.different.push(text),
        }
    }

    /// As `finish`, with refusals by name counted by their kind.
    pub fn finish_brief(mut self, what: &str) {
        let mut kinds = std::collections::BTreeMap::<String, usize>::new();
        for e in self.by_name.drain(..) {
            let words = e.rsplit(": ").next().unwrap_or_default().split(" at /").next().unwrap_or_default();
            *kinds.entry(words.to_owned()).or_default() += 1;
        }
        self.by_name = kinds.into_iter().map(|(k, n)| format!("{n} x {k}")).collect();
        self.finish(what);
    }

    pub fn finish(self, what: &str) {
        println!(
            "{what}: {} equal bytes, {} refused by both, {} refused by name here only, {} different",
            self.equal,
            self.refused,
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
