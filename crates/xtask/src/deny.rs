//! Which crates may be part of this: by licence, by source, by name, and once only where two would be a danger.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context, bail};
use bronzeward_testkit::tools::workspace;
use serde_json::Value;

use crate::{Outcome, spdx};

/// Licences that ask for nothing that a binary with a notice file does not give. MPL-2.0 binds only its own files.
const LICENCES: [&str; 9] = [
    "Apache-2.0",
    "MIT",
    "BSD-3-Clause",
    "ISC",
    "Unicode-3.0",
    "Zlib",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "MPL-2.0",
];

/// Crates that are refused, and why.
const BANNED: [(&str, &str); 6] = [
    ("openssl", "TLS is rustls with ring, and nothing beside"),
    ("openssl-sys", "TLS is rustls with ring, and nothing beside"),
    ("native-tls", "TLS is rustls with ring, and nothing beside"),
    ("aws-lc-sys", "ring does all that is needed and builds in a sixth of the time"),
    ("aws-lc-rs", "ring does all that is needed and builds in a sixth of the time"),
    ("serde_yaml", "it is archived, and it hangs on deep nesting"),
];

/// Crates of which there may be one version only.
const ONCE: [&str; 2] = ["rustls", "clap"];

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// One package of the lock file, as cargo reports it.
struct Package {
    name: String,
    version: String,
    licence: Option<String>,
    source: Option<String>,
}

/// Checks every package that cargo resolves, for every platform.
pub fn run() -> anyhow::Result<Outcome> {
    let packages = packages()?;
    let problems = check(&packages);
    for problem in &problems {
        println!("{problem}");
    }
    println!("{} packages, {} problems", packages.len(), problems.len());
    Ok(if problems.is_empty() { Outcome::Fine } else { Outcome::Wrong })
}

fn packages() -> anyhow::Result<Vec<Package>> {
    let output = Command::new("cargo")
        .current_dir(workspace())
        .args(["metadata", "--format-version", "1", "--locked"])
        .output()
        .context("`cargo` cannot be started")?;
    if !output.status.success() {
        bail!("`cargo metadata` failed: {}", String::from_utf8_lossy(&output.stderr).trim_end());
    }
    let read: Value = serde_json::from_slice(&output.stdout).context("`cargo metadata` printed no JSON")?;
    let list = read["packages"].as_array().context("`cargo metadata` printed no packages")?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    list.iter()
        .map(|one| {
            Ok(Package {
                name: text(&one["name"]).context("a package has no name")?,
                version: text(&one["version"]).context("a package has no version")?,
                licence: text(&one["license"]),
                source: text(&one["source"]),
            })
        })
        .collect()
}

fn check(packages: &[Package]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        let Package { name, version, licence, source } = package;
        versions.entry(name).or_default().push(version);
        match licence.as_deref() {
            Some(licence) if spdx::allows(licence, &LICENCES) => {}
            Some(licence) => {
                problems.push(format!("{name} {version}: the licence `{licence}` is not allowed"))
            }
            None => problems.push(format!("{name} {version}: no licence is named")),
        }
        if let Some(source) = source.as_deref().filter(|source| *source != CRATES_IO) {
            problems.push(format!("{name} {version}: the source `{source}` is not crates.io"));
        }
        if let Some((_, why)) = BANNED.iter().find(|(banned, _)| banned == name) {
            problems.push(format!("{name} {version}: banned, since {why}"));
        }
    }
    for name in ONCE {
        if let Some(found) = versions.get(name).filter(|found| found.len() > 1) {
            problems.push(format!("{name}: one version may be there, these are: {}", found.join(", ")));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str, licence: Option<&str>, source: Option<&str>) -> Package {
        Package {
            name: name.to_owned(),
            version: version.to_owned(),
            licence: licence.map(str::to_owned),
            source: source.map(str::to_owned),
        }
    }

    #[test]
    fn names_every_problem() {
        let mit = Some("MIT");
        let fine = [package("a", "1.0.0", mit, Some(CRATES_IO)), package("own", "0.1.0", mit, None)];
        assert!(check(&fine).is_empty());
        let bad = [
            package("a", "1.0.0", Some("GPL-3.0"), Some(CRATES_IO)),
            package("b", "1.0.0", None, Some(CRATES_IO)),
            package("c", "1.0.0", mit, Some("git+https://example.org/c")),
            package("openssl-sys", "0.9.0", mit, Some(CRATES_IO)),
            package("rustls", "0.22.0", mit, Some(CRATES_IO)),
            package("rustls", "0.23.0", mit, Some(CRATES_IO)),
        ];
        let problems = check(&bad);
        let starts = [
            "a 1.0.0: the licence",
            "b 1.0.0: no licence",
            "c 1.0.0: the source",
            "openssl-sys 0.9.0: banned",
        ];
        for (problem, start) in problems.iter().zip(starts) {
            assert!(problem.starts_with(start), "{problem}");
        }
        assert_eq!(problems[4..], ["rustls: one version may be there, these are: 0.22.0, 0.23.0"]);
    }
}
