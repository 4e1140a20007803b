//! The tables under `schema/talos/<minor>`, made by reflection from Talos' own library.

use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use bronzeward_testkit::tools::{Tool, tool, workspace};
use serde_json::Value;

use crate::Outcome;
use crate::outputs::{Mode, settle};

/// Writes or compares the tables of the library version that `fixtures/tables` names.
pub fn run(mode: Mode) -> anyhow::Result<Outcome> {
    crate::tools::needed()?;
    let output = Command::new(tool(Tool::Tables))
        .current_dir(workspace().join("fixtures/tables"))
        .stderr(Stdio::inherit())
        .output()
        .context("the tool `tables` cannot be started")?;
    if !output.status.success() {
        bail!("The tool `tables` failed: {}", output.status);
    }
    let read: Value = serde_json::from_slice(&output.stdout).context("the tables are no JSON")?;
    let minor = read["talos"].as_str().context("the tables do not name a minor")?.trim_start_matches('v');
    settle(mode, &[(format!("schema/talos/{minor}/tables.json"), output.stdout)], "tables")
}
