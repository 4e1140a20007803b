//! The engine beside Talos' own library on many random cases.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::Context;
use bronzeward_testkit::differential::{Report, Side, Verdict, run as compare, shrink};
use bronzeward_testkit::library::Library;
use bronzeward_testkit::oracle::Oracle;
use clap::Args;

use crate::{Outcome, tools};

/// What to compare.
#[derive(Args)]
pub struct Differential {
    /// How many cases a version gets.
    #[arg(long, default_value_t = 20_000)]
    cases: u64,
    /// The seed that the cases come from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only this minor.
    #[arg(long, value_parser = Library::MINORS)]
    minor: Option<String>,
    /// A checkout of Talos' pkg/machinery to compare with, instead of what the module proxy serves.
    #[arg(long, conflicts_with = "minor")]
    machinery: Option<PathBuf>,
    /// How many cases are shown in full.
    #[arg(long, default_value_t = 5)]
    show: usize,
    /// How many oracles run beside each other.
    #[arg(long, default_value_t = 2)]
    threads: usize,
}

/// Runs the comparison; any mismatch is wrong.
pub fn run(args: &Differential) -> anyhow::Result<Outcome> {
    tools::needed()?;
    let libraries = match (&args.machinery, &args.minor) {
        (Some(dir), _) => {
            let dir = dir.canonicalize().with_context(|| format!("{} is no folder", dir.display()))?;
            vec![Library::Checkout(dir)]
        }
        (None, Some(minor)) => vec![Library::minor(minor)],
        (None, None) => Library::MINORS.map(Library::minor).to_vec(),
    };
    let mut outcome = Outcome::Fine;
    for library in libraries {
        let side = Side::of(library);
        let name = side.tables.machinery();
        let (start, last) = (Instant::now(), AtomicU64::new(0));
        let progress = |done: u64| {
            let tenth = done * 10 / args.cases.max(1);
            if last.swap(tenth, Ordering::Relaxed) < tenth {
                println!("{name}: {done} of {} after {:?}", args.cases, start.elapsed());
            }
        };
        let report = compare(&side, args.seed, args.cases, args.threads, &progress);
        println!("{name}, seed {}, {} cases in {:?}: {report}", args.seed, report.cases(), start.elapsed());
        if !report.mismatches.is_empty() {
            outcome = Outcome::Wrong;
            show(&side, &report, args.show);
        }
    }
    Ok(outcome)
}

/// Shows mismatches, made small.
fn show(side: &Side, report: &Report, most: usize) {
    let mut kinds = std::collections::BTreeMap::<&str, usize>::new();
    for (_, verdict) in report.mismatches.values() {
        if let Verdict::Mismatch { kind, .. } = verdict {
            *kinds.entry(kind).or_default() += 1;
        }
    }
    println!("mismatches by kind: {kinds:?}");
    let mut oracle = Oracle::start_with(&side.library);
    for (number, (case, verdict)) in report.mismatches.iter().take(most) {
        let small = shrink(side, &mut oracle, case, verdict);
        println!("##### case {number}\n{}", small.config);
        for patch in &small.patches {
            println!(">>>\n{patch}");
        }
        let verdict = match side.compare(&mut oracle, &small) {
            found @ Verdict::Mismatch { .. } => found,
            _ => verdict.clone(),
        };
        if let Verdict::Mismatch { kind, ours, theirs } = verdict {
            println!("----- {kind}\n--- ours\n{ours}\n--- Talos\n{theirs}");
        }
    }
}
