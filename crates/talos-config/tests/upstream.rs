//! Talos' own test files of every minor, read from the module cache and never copied: each is named in the output.

// helpers outside of test functions are test code too
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use bronzeward_testkit::differential::{Side, Verdict};
use bronzeward_testkit::oracle::Oracle;
use support::{Tally, case, sides};

/// The folder of the library's configuration packages.
fn config(side: &Side) -> PathBuf {
    side.library.sources().join("config")
}

/// Every file below a folder whose path holds the word.
fn files(dir: &Path, word: &str, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            files(&entry, word, out);
        } else if entry.to_string_lossy().contains(word) {
            out.push(entry);
        }
    }
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Equal => "equal",
        Verdict::BothRefuse => "refused by both",
        Verdict::Panics => "crashes Talos",
        Verdict::ByName(_) => "refused by name",
        Verdict::Mismatch { .. } => "DIFFERENT",
    }
}

#[test]
fn strategic_merge_vectors() {
    for side in sides() {
        let dir = config(&side).join("types/v1alpha1/testdata/strategic");
        let mut names: Vec<_> = fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert!(names.len() >= 6);
        for name in names {
            let read = |file: &str| fs::read_to_string(dir.join(&name).join(file)).unwrap();
            let merged = side.ours(&case(&read("left.yaml"), &[&read("right.yaml")])).unwrap();
            // the file is one way of writing the result: compared is what it holds
            let expected = side.ours(&case(&read("expected.yaml"), &[])).unwrap();
            support::assert_same(&merged, &expected, &name.to_string_lossy());
            println!("{} strategic/{}: equal", side.tables.machinery(), name.to_string_lossy());
        }
    }
}

/// A folder of the patcher's test data, a configuration, patches in order, and the expected result.
type Vector = (&'static str, &'static str, &'static [&'static str], Option<&'static str>);

const VECTORS: &[Vector] = &[
    (
        "apply",
        "config.yaml",
        &["strategic1.yaml", "strategic2.yaml", "strategic3.yaml", "strategic4.yaml"],
        None,
    ),
    ("multidoc", "config.yaml", &["strategic1.yaml", "strategic2.yaml"], Some("expected.yaml")),
    ("multidoc", "config.yaml", &["strategic3.yaml"], None),
    ("auditpolicy", "config.yaml", &["patch1.yaml"], Some("expected.yaml")),
    ("patchdelete", "config.yaml", &["strategic1.yaml"], Some("expected.yaml")),
    (
        "patchdelete",
        "controlplane_orig.yaml",
        &["strategic2.yaml", "strategic3.yaml", "strategic4.yaml"],
        Some("controlplane_expected.yaml"),
    ),
    ("patchdeletemissing", "config.yaml", &["strategic1.yaml"], None),
    ("patchlink", "base.yaml", &["patch.yaml"], Some("expected.yaml")),
    ("patchmixed", "base.yaml", &["patch.yaml"], Some("expected.yaml")),
    ("multidoc", "config.yaml", &["jsonpatch.yaml"], None),
    (".", "apply/config.yaml", &["strategic.yaml"], None),
    (".", "apply/config.yaml", &["patch.json"], None),
    (".", "apply/config.yaml", &["patch.yaml"], None),
];

#[test]
fn patcher_vectors() {
    for side in sides() {
        let (dir, version) = (config(&side).join("configpatcher/testdata"), side.tables.machinery());
        let mut oracle = Oracle::start_with(&side.library);
        let mut tally = Tally::default();
        for (folder, name, patches, expected) in VECTORS {
            let read = |file: &str| fs::read_to_string(dir.join(folder).join(file));
            // a newer version has more files
            let Ok(texts) = patches.iter().map(|p| read(p)).collect::<Result<Vec<String>, _>>() else {
                continue;
            };
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let case = case(&read(name).unwrap(), &texts);
            let verdict = side.compare(&mut oracle, &case);
            println!("{version} configpatcher/testdata/{folder} {patches:?}: {}", word(&verdict));
            tally.add(folder, &case, verdict);
            if let Some(expected) = expected
                && let Ok(text) = side.ours(&case)
            {
                support::assert_same(&text, &read(expected).unwrap(), folder);
            }
        }
        assert!(tally.equal >= 7, "{}", tally.equal);
        tally.finish(&format!("patcher vectors, {version}"));
    }
}

#[test]
fn every_test_document_round_trips() {
    for side in sides() {
        let (folder, version) = (config(&side), side.tables.machinery());
        let mut paths = Vec::new();
        for part in ["types", "configloader", "configpatcher"] {
            files(&folder.join(part), "testdata", &mut paths);
        }
        let mut oracle = Oracle::start_with(&side.library);
        let mut tally = Tally::default();
        for path in paths {
            let Ok(text) = fs::read_to_string(&path) else { continue };
            let (name, case) = (path.strip_prefix(&folder).unwrap().display(), case(&text, &[]));
            let verdict = side.compare(&mut oracle, &case);
            println!("{version} {name}: {}", word(&verdict));
            tally.add(&name.to_string(), &case, verdict);
        }
        assert!(tally.equal > 125, "{}", tally.equal);
        assert!(tally.by_name.is_empty(), "{:?}", tally.by_name);
        tally.finish(&format!("test files, {version}"));
    }
}

#[test]
fn redaction_goldens() {
    for side in sides() {
        let mut paths = Vec::new();
        files(&config(&side).join("types"), "_redacted.yaml", &mut paths);
        assert!(!paths.is_empty());
        for path in paths {
            // not every golden file has its source beside it, so other secrets are put into the golden itself
            let golden = fs::read_to_string(&path).unwrap();
            let ours = side.redacted(&golden.replace("REDACTED", "another"), "REDACTED").unwrap();
            support::assert_same(&ours, &golden, &path.to_string_lossy());
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            println!("{} {name}: equal", side.tables.machinery());
        }
    }
}
