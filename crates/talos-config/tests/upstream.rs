//! Talos' own test files, read from the module cache and never copied: each is named in the output.

// helpers outside of test functions are test code too
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use bronzeward_testkit::oracle::Oracle;
use bronzeward_testkit::tools::workspace;
use support::{Outcome, Tally, compare, ours};

/// The folder of the library's configuration packages.
fn upstream() -> PathBuf {
    let module = "github.com/siderolabs/talos/pkg/machinery";
    let run = |args: &[&str]| {
        let out = Command::new("go")
            .args(args)
            .current_dir(workspace().join("fixtures/oracle"))
            .output()
            .expect("`go` can be started: tests need Go on the PATH");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    };
    run(&["mod", "download", module]);
    PathBuf::from(run(&["list", "-m", "-f", "{{.Dir}}", module])).join("config")
}

fn files(dir: &Path, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            files(&entry, out);
        } else if entry.to_string_lossy().contains("testdata") {
            out.push(entry);
        }
    }
}

#[test]
fn strategic_merge_vectors() {
    let dir = upstream().join("types/v1alpha1/testdata/strategic");
    let mut names: Vec<_> = fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert!(names.len() >= 6);
    for name in names {
        let read = |file: &str| fs::read_to_string(dir.join(&name).join(file)).unwrap();
        let merged = ours(&read("left.yaml"), &[&read("right.yaml")]).unwrap();
        // the file is one way of writing the result: compared is what it holds
        let expected = ours(&read("expected.yaml"), &[]).unwrap();
        support::assert_same(&merged, &expected, &name.to_string_lossy());
        println!("types/v1alpha1/testdata/strategic/{}: equal", name.to_string_lossy());
    }
}

#[test]
fn patcher_vectors() {
    let dir = upstream().join("configpatcher/testdata");
    let mut oracle = Oracle::start();
    let mut tally = Tally::default();
    let vectors: &[(&str, &str, &[&str], Option<&str>)] = &[
        (
            "apply",
            "config.yaml",
            &["strategic1.yaml", "strategic2.yaml", "strategic3.yaml", "strategic4.yaml"],
            None,
        ),
        ("multidoc", "config.yaml", &["strategic1.yaml", "strategic2.yaml"], Some("expected.yaml")),
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
        ("multidoc", "config.yaml", &["jsonpatch.yaml"], None),
        (".", "apply/config.yaml", &["strategic.yaml"], None),
        (".", "apply/config.yaml", &["patch.json"], None),
    ];
    for (folder, config, patches, expected) in vectors {
        let read = |file: &str| fs::read_to_string(dir.join(folder).join(file)).unwrap();
        let texts: Vec<String> = patches.iter().map(|p| read(p)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let outcome = compare(&mut oracle, &read(config), &texts);
        let word = match &outcome {
            Outcome::Equal => "equal",
            Outcome::BothRefuse => "refused by both",
            Outcome::RefusedByName(_) => "refused by name",
            Outcome::Different(_) => "different",
        };
        println!("configpatcher/testdata/{folder} {patches:?}: {word}");
        tally.add(outcome);
        if let Some(expected) = expected
            && let Ok(text) = ours(&read(config), &texts)
        {
            support::assert_same(&text, &read(expected), folder);
        }
    }
    tally.finish("patcher vectors");
}

#[test]
fn every_test_document_round_trips() {
    let config = upstream();
    let mut paths = Vec::new();
    files(&config.join("types"), &mut paths);
    files(&config.join("configloader"), &mut paths);
    files(&config.join("configpatcher"), &mut paths);
    let mut oracle = Oracle::start();
    let mut tally = Tally::default();
    for path in paths {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        match compare(&mut oracle, &text, &[]) {
            Outcome::Different(difference) => {
                tally.different.push(format!("{}\n{difference}", path.display()))
            }
            Outcome::RefusedByName(e) => tally.by_name.push(format!("{}: {e}", path.display())),
            outcome => tally.add(outcome),
        }
    }
    assert!(tally.equal > 100, "{}", tally.equal);
    tally.finish("upstream test files");
}
