//! Bronzeward: a GitOps reconciler for Talos Linux machine configuration.
//!
//! The binary only wires: arguments, settings, output. What it does is done in the libraries.

mod cli;
mod clock;
mod commands;
mod context;
mod demo;
mod draft;
mod exit;
mod output;
mod planning;
mod run;
mod settings;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    // whoever is first decides; we only ever install this one
    let _ = rustls::crypto::ring::default_provider().install_default();
    clap_complete::CompleteEnv::with_factory(cli::factory).complete();
    let cli = cli::Cli::parse();
    exit::report(commands::run(cli))
}
