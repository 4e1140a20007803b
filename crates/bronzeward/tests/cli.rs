//! The command line: exit codes, what goes where, and what is said to somebody who asked for something that cannot be.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "stand/mod.rs"]
mod stand;

#[path = "cli/approving.rs"]
mod approving;
#[path = "cli/begin.rs"]
mod begin;
#[path = "cli/help.rs"]
mod help;
#[path = "cli/https.rs"]
mod https;
#[path = "cli/machineconfig.rs"]
mod machineconfig;
#[path = "cli/nodes.rs"]
mod nodes;
#[path = "cli/reading.rs"]
mod reading;
