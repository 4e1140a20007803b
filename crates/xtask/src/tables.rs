//! The tables under `schema/talos/<minor>`, made by reflection from Talos' own library, and what they redact in all.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use bronzeward_testkit::library::Library;
use bronzeward_testkit::tools::workspace;
use serde_json::Value;
use talos_config::Tables;

use crate::Outcome;
use crate::outputs::{Mode, settle};

/// Minors of which the module proxy serves a release: their tables can be made everywhere.
const RELEASED: [&str; 2] = ["1.12", "1.13"];

/// Every minor's folder under `schema/talos`.
const ALL: [&str; 3] = ["1.12", "1.13", "1.14"];

/// Writes or compares the tables of the released minors; or writes those of a checkout of the library. The tables
/// that need a checkout are only loaded.
pub fn run(mode: Mode, machinery: Option<&Path>) -> anyhow::Result<Outcome> {
    crate::tools::needed()?;
    if let Some(dir) = machinery {
        if mode == Mode::Check {
            bail!("--machinery writes tables; leave out --check");
        }
        let dir = dir.canonicalize().with_context(|| format!("{} is no folder", dir.display()))?;
        let (path, bytes, _) = made(&Library::Checkout(dir))?;
        settle(mode, &[(path, bytes)], "tables")?;
        return settle(mode, &[redacted(&committed()?)?], "tables");
    }
    let mut files = Vec::new();
    let mut all = committed()?;
    for minor in RELEASED {
        let (path, bytes, value) = made(&Library::minor(minor))?;
        all.insert(minor.to_owned(), value);
        files.push((path, bytes));
    }
    files.push(redacted(&all)?);
    let outcome = settle(mode, &files, "tables")?;
    for minor in ALL.iter().filter(|m| !RELEASED.contains(m)) {
        let path = format!("schema/talos/{minor}/tables.json");
        let bytes = fs::read(workspace().join(&path)).with_context(|| format!("{path} cannot be read"))?;
        let tables = Tables::from_slice(&bytes).with_context(|| format!("{path} cannot be loaded"))?;
        println!("{path}: loads ({}); it is made with --machinery", tables.machinery());
    }
    Ok(outcome)
}

/// The path and the bytes of a library's tables.
fn made(library: &Library) -> anyhow::Result<(String, Vec<u8>, Value)> {
    let bytes = library.tables();
    let value: Value = serde_json::from_slice(&bytes).context("the tables are no JSON")?;
    let minor = value["talos"].as_str().context("the tables do not name a minor")?;
    Ok((format!("schema/talos/{minor}/tables.json"), bytes, value))
}

/// The tables that are there, by minor.
fn committed() -> anyhow::Result<BTreeMap<String, Value>> {
    let mut found = BTreeMap::new();
    for minor in ALL {
        let path = format!("schema/talos/{minor}/tables.json");
        // a minor whose tables are not there yet is about to be written
        if let Ok(bytes) = fs::read(workspace().join(&path)) {
            let value = serde_json::from_slice(&bytes).with_context(|| format!("{path} is no JSON"))?;
            found.insert(minor.to_owned(), value);
        }
    }
    Ok(found)
}

/// What any minor redacts, by kind.
fn redacted(all: &BTreeMap<String, Value>) -> anyhow::Result<(String, Vec<u8>)> {
    let mut union: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for kind in all.values().filter_map(|tables| tables["kinds"].as_array()).flatten() {
        let name = kind["kind"].as_str().context("a kind has no name")?;
        let paths = kind["redacted"].as_array().into_iter().flatten().filter_map(Value::as_str);
        for path in paths {
            union.entry(name).or_default().insert(path);
        }
    }
    let mut bytes = serde_json::to_vec_pretty(&union).context("the paths are text")?;
    bytes.push(b'\n');
    Ok(("schema/talos/redacted.json".to_owned(), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_minor_redacts_all_redact() {
        let kind = |paths: &[&str]| serde_json::json!({ "kinds": [{ "kind": "K", "redacted": paths }] });
        let all = BTreeMap::from([
            ("1.12".to_owned(), kind(&["/b"])),
            ("1.13".to_owned(), kind(&["/a", "/b"])),
            ("1.14".to_owned(), kind(&[])),
        ]);
        let (path, bytes) = redacted(&all).unwrap();
        let read: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(
            (path.as_str(), read),
            ("schema/talos/redacted.json", serde_json::json!({ "K": ["/a", "/b"] }))
        );
    }
}
