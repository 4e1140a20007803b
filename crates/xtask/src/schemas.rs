//! The JSON Schemas of the files that people write. They are made where the types are, in a test target of the crate
//! `intent`, so that this program stays small and quick to build.

use std::process::Command;

use anyhow::Context;
use bronzeward_testkit::tools::workspace;

use crate::Outcome;
use crate::outputs::Mode;

/// Writes or compares every schema.
pub fn run(mode: Mode) -> anyhow::Result<Outcome> {
    let mut cargo = Command::new("cargo");
    // all of the workspace selects the features with which its tests are built anyway
    cargo.current_dir(workspace()).args(["test", "--quiet", "--workspace", "--test", "schemas"]);
    if mode == Mode::Write {
        cargo.env("BRONZEWARD_WRITE_SCHEMAS", "1");
    }
    let status = cargo.status().context("`cargo` cannot be started")?;
    Ok(if status.success() { Outcome::Fine } else { Outcome::Wrong })
}
