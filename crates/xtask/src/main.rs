//! Chores of this repository, all behind `cargo xtask`: test suites, tools, tables, schemas, licences.
//!
//! Exit codes as everywhere: 0 fine, 1 something is wrong with the tree, 2 the chore could not be done.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people at a terminal")]

mod deny;
mod differential;
mod outputs;
mod peers;
mod schemas;
mod spdx;
mod suites;
mod tables;
mod tools;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use outputs::Mode;
use suites::Suite;

/// Chores of this repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Builds the tools and runs every test, or one suite of the binary.
    Test {
        /// One suite; every test of the workspace when it is not named.
        suite: Option<Suite>,
        /// What the test runner gets, as in `-- --nocapture name`.
        #[arg(last = true)]
        rest: Vec<String>,
    },
    /// Builds the Go programs that tests use, into target/tools.
    Tools,
    /// Writes the tables that Talos' own library gives by reflection.
    Tables {
        /// Compares instead of writing.
        #[arg(long)]
        check: bool,
        /// A checkout of Talos' pkg/machinery, for a version that the module proxy does not serve: writes its tables.
        #[arg(long)]
        machinery: Option<std::path::PathBuf>,
    },
    /// Writes the JSON Schemas of the files that people write.
    Schemas {
        /// Compares instead of writing.
        #[arg(long)]
        check: bool,
    },
    /// Compares the engine with Talos' own library on random cases.
    Differential(differential::Differential),
    /// Runs the same inputs through this program and others, and prints the ratios.
    BenchPeers(peers::Peers),
    /// Checks licences, sources, banned and doubled crates.
    Deny,
}

/// How a chore ended that could be done.
enum Outcome {
    Fine,
    Wrong,
}

fn main() -> ExitCode {
    let done = match Args::parse().chore {
        Chore::Test { suite, rest } => suites::run(suite, &rest),
        Chore::Tools => tools::build(),
        Chore::Tables { check, machinery } => tables::run(Mode::of(check), machinery.as_deref()),
        Chore::Schemas { check } => schemas::run(Mode::of(check)),
        Chore::Differential(args) => differential::run(&args),
        Chore::BenchPeers(args) => peers::run(&args),
        Chore::Deny => deny::run(),
    };
    match done {
        Ok(Outcome::Fine) => ExitCode::SUCCESS,
        Ok(Outcome::Wrong) => ExitCode::from(1),
        Err(err) => {
            eprintln!("xtask: {err:#}");
            ExitCode::from(2)
        }
    }
}
