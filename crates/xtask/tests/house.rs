//! The house rules that no compiler knows: arrows between crates, lengths, words, and committed outputs.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use bronzeward_testkit::tools::workspace;
use serde_json::Value;

const TESTKIT: &str = "bronzeward-testkit";
const FLEET: &str = "bronzeward-fleet";

/// Which crate may name which, in shipped code. Nothing else may be named; the list reads from the bottom up.
const ARROWS: [(&str, &[&str]); 14] = [
    ("talos-config", &[]),
    // it compares the engine with Talos' own library
    (TESTKIT, &["talos-config"]),
    // it writes files and knows no crate
    (FLEET, &[]),
    ("talos-client", &["talos-config"]),
    ("bronzeward-git", &[]),
    ("bronzeward-intent", &["bronzeward-git", "talos-config"]),
    ("bronzeward-secrets", &["bronzeward-intent", "talos-config"]),
    ("bronzeward-compile", &["bronzeward-git", "bronzeward-intent", "bronzeward-secrets", "talos-config"]),
    ("bronzeward-state", &["bronzeward-compile", "bronzeward-git", "bronzeward-intent"]),
    (
        "bronzeward-reconcile",
        &[
            "bronzeward-compile",
            "bronzeward-git",
            "bronzeward-intent",
            "bronzeward-secrets",
            "bronzeward-state",
            "talos-client",
            "talos-config",
        ],
    ),
    ("bronzeward-endpoint", &["bronzeward-intent", "bronzeward-state"]),
    ("bronzeward-sim", &["talos-client", "talos-config"]),
    (
        "bronzeward",
        &[
            "bronzeward-compile",
            "bronzeward-endpoint",
            "bronzeward-git",
            "bronzeward-intent",
            "bronzeward-reconcile",
            "bronzeward-secrets",
            "bronzeward-sim",
            "bronzeward-state",
            "talos-client",
            "talos-config",
        ],
    ),
    // a chore runs where the house is built
    ("xtask", &[TESTKIT, FLEET, "talos-config"]),
];

/// Files of more than this many lines stand in [`LONG_FILES`].
const FILE_LINES: usize = 600;
/// Functions of more than this many lines stand in [`LONG_FUNCTIONS`].
const FUNCTION_LINES: usize = 70;

/// Files that are too long, with their length. The list may only shrink, entry by entry and line by line.
const LONG_FILES: &[(&str, usize)] = &[];

/// Functions that are too long, as `file: name`, with their length. The list may only shrink.
const LONG_FUNCTIONS: &[(&str, usize)] = &[];

fn metadata() -> Vec<Value> {
    let output = Command::new("cargo")
        .current_dir(workspace())
        .args(["metadata", "--format-version", "1", "--no-deps", "--locked"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read: Value = serde_json::from_slice(&output.stdout).unwrap();
    read["packages"].as_array().unwrap().clone()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// Every file of the repository that is not ignored, and its bytes.
fn tree() -> Vec<(String, Vec<u8>)> {
    let root = workspace();
    let output = Command::new("git")
        .current_dir(&root)
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let listed = String::from_utf8(output.stdout).unwrap();
    let paths: BTreeSet<&str> = listed.split('\0').filter(|path| !path.is_empty()).collect();
    // a file that was removed and not yet committed is still listed
    paths.into_iter().filter_map(|path| Some((path.to_owned(), fs::read(root.join(path)).ok()?))).collect()
}

/// The sources among them, as lines.
fn sources() -> Vec<(String, Vec<String>)> {
    let code = |path: &String| path.ends_with(".rs") || path.ends_with(".go");
    let lines = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect();
    let found: Vec<_> =
        tree().into_iter().filter(|(path, _)| code(path)).map(|(path, bytes)| (path, lines(bytes))).collect();
    assert!(found.len() > 100, "the tree was not read: {} sources", found.len());
    found
}

#[test]
fn arrows_point_down() {
    let packages = metadata();
    let own: BTreeSet<&str> = packages.iter().map(|package| text(&package["name"])).collect();
    let known: BTreeSet<&str> = ARROWS.iter().map(|(name, _)| *name).collect();
    assert_eq!(own, known, "every crate has its line in ARROWS, and no other has");
    let mut wrong = Vec::new();
    for package in &packages {
        let name = text(&package["name"]);
        let (_, allowed) = ARROWS.iter().find(|(known, _)| *known == name).unwrap();
        for dependency in package["dependencies"].as_array().unwrap() {
            let to = text(&dependency["name"]);
            let dev = dependency["kind"] == "dev";
            if own.contains(to) && !allowed.contains(&to) && !(dev && [TESTKIT, FLEET].contains(&to)) {
                wrong.push(format!("{name} must not depend on {to}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_table_of_arrows_keeps_the_design() {
    let allowed: BTreeMap<&str, &[&str]> = ARROWS.into_iter().collect();
    let mut below: Vec<&str> = Vec::new();
    for (name, to) in ARROWS {
        // each names only what stands before it in the list, so there is no cycle
        let up: Vec<_> = to.iter().filter(|one| !below.contains(*one)).collect();
        assert!(up.is_empty(), "{name} names {up:?} before they are there");
        below.push(name);
        assert!(!to.contains(&"bronzeward") && !to.contains(&"xtask"), "{name} names a program");
        let fixture = to.iter().find(|one| [TESTKIT, FLEET].contains(one));
        assert!(name == "xtask" || fixture.is_none(), "{name} ships {fixture:?}");
        assert!(name == "bronzeward" || !to.contains(&"bronzeward-endpoint"), "{name} names the endpoint");
    }
    assert!(allowed["talos-config"].is_empty(), "talos-config knows nothing of Bronzeward");
    for absent in ["talos-client", "bronzeward-state"] {
        assert!(!allowed["bronzeward-compile"].contains(&absent), "compile knows no node and no state");
    }
}

/// Compares what is too long with the list of what may be.
fn ratchet(
    what: &str,
    limit: usize,
    listed: &[(&str, usize)],
    found: &BTreeMap<String, usize>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, lines) in found {
        match listed.iter().find(|(known, _)| known == name) {
            None => wrong.push(format!("{name} has {lines} lines: a {what} has at most {limit}; split it")),
            Some((_, known)) if lines > known => {
                wrong.push(format!("{name} grew from {known} to {lines} lines: split it"));
            }
            Some((_, known)) if lines < known => {
                wrong.push(format!("{name} has {lines} lines now: write that number into the list"));
            }
            Some(_) => {}
        }
    }
    let gone = listed.iter().filter(|(name, _)| !found.contains_key(*name));
    wrong.extend(gone.map(|(name, _)| format!("{name} is short enough or gone: take it off the list")));
    wrong
}

/// The functions of a formatted source, by name, with their lengths: from the line of `fn` or `func` to the closing
/// brace at the same indent.
fn functions(lines: &[String]) -> Vec<(&str, usize)> {
    let mut out = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        let whole = line.ends_with('}') || line.ends_with(';');
        let ends = |later: &str| {
            let rest = later.strip_prefix(indent).unwrap_or_default();
            rest == "}" || (rest.starts_with(')') && (rest.ends_with(';') || rest.ends_with('}')))
        };
        let length = match lines[at + 1..].iter().position(|line| ends(line)) {
            Some(after) if !whole => after + 2,
            _ => 1,
        };
        out.push((name, length));
    }
    out
}

fn function_name(line: &str) -> Option<&str> {
    let code = line.trim_start();
    let rest = match code.strip_prefix("func ") {
        Some(rest) => rest.split_once(") ").filter(|_| rest.starts_with('(')).map_or(rest, |(_, name)| name),
        None => {
            let (before, rest) = code.split_once("fn ")?;
            let words = ["pub", "const", "async", "extern"];
            let word = |word: &str| words.contains(&word.split('(').next().unwrap_or_default());
            if !before.split_whitespace().all(word) {
                return None;
            }
            rest
        }
    };
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    (end > 0).then(|| &rest[..end])
}

#[test]
fn functions_are_measured() {
    let source = "impl X {\n    pub(crate) async fn two(&self) {\n    }\n    fn one() {}\n    fn trait_like(\n\
                  \x20       a: u8,\n    ) -> u8;\n\n    fn five(\n        a: u8,\n    ) -> u8 {\n        1\n    }\n\
                  \x20   // a comment on fn nothing\n}\n\
                  func (s *Server) Go(a int) (int, error) {\n\treturn 1, nil\n}\nfunc plain() {\n}\n";
    let lines: Vec<String> = source.lines().map(str::to_owned).collect();
    let expected = [("two", 2), ("one", 1), ("trait_like", 3), ("five", 5), ("Go", 3), ("plain", 2)];
    assert_eq!(functions(&lines), expected);
}

#[test]
fn the_ratchet_turns_one_way() {
    let found = [("new", 9), ("grown", 9), ("shrunk", 7), ("same", 8)];
    let found = found.into_iter().map(|(name, lines)| (name.to_owned(), lines)).collect();
    let listed = [("grown", 8), ("shrunk", 8), ("same", 8), ("gone", 8)];
    let wrong = ratchet("file", 6, &listed, &found).join("\n");
    for word in ["new has 9", "grown grew", "shrunk has 7", "gone is short enough"] {
        assert!(wrong.contains(word), "{wrong}");
    }
    assert_eq!(wrong.lines().count(), 4, "{wrong}");
}

#[test]
fn files_and_functions_stay_short() {
    let (mut files, mut long) = (BTreeMap::new(), BTreeMap::new());
    for (path, lines) in sources() {
        if lines.len() > FILE_LINES {
            files.insert(path.clone(), lines.len());
        }
        for (name, length) in functions(&lines).into_iter().filter(|(_, length)| *length > FUNCTION_LINES) {
            long.insert(format!("{path}: {name}"), length);
        }
    }
    let mut wrong = ratchet("file", FILE_LINES, LONG_FILES, &files);
    wrong.extend(ratchet("function", FUNCTION_LINES, LONG_FUNCTIONS, &long));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nothing_is_left_for_later_and_no_machine_is_named() {
    // one letter of each escaped, since this file is read too
    let words = ["tod\x6f!", "unimplement\x65d!", "FIXM\x45", "TOD\x4f", "/wor\x6b/", "/roo\x74/"];
    let mut wrong = Vec::new();
    for (path, bytes) in tree() {
        let content = String::from_utf8_lossy(&bytes);
        for (index, line) in content.lines().enumerate() {
            for word in words.iter().filter(|word| line.contains(**word)) {
                wrong.push(format!("{path}:{}: `{word}` stands here", index + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_dependency_has_its_reason() {
    let page = fs::read_to_string(workspace().join("docs/dependencies.md")).unwrap();
    let reasons: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("- `")?.split_once("`: "))
        .map(|(name, _)| name)
        .collect();
    let manifest = fs::read_to_string(workspace().join("Cargo.toml")).unwrap();
    let table = manifest.split("[workspace.dependencies]").nth(1).unwrap().split("\n[").next().unwrap();
    let lines = table.lines().filter(|line| !line.contains("path = "));
    let mut used: BTreeSet<String> =
        lines.filter_map(|line| line.split_once(" = ")).map(|(name, _)| name.to_owned()).collect();
    assert!(used.contains("serde"), "the workspace's table was not read");
    // the fuzz targets are a workspace of their own
    let fuzz = fs::read_to_string(workspace().join("fuzz/Cargo.toml")).unwrap();
    let of_fuzz =
        fuzz.split("dependencies]\n").skip(1).flat_map(|part| part.split("\n[").next().unwrap().lines());
    let named = of_fuzz.filter(|line| !line.contains("path = ")).filter_map(|line| line.split_once(" = "));
    used.extend(named.map(|(name, _)| name.to_owned()));
    assert!(used.contains("libfuzzer-sys"), "the table of fuzz was not read");
    for package in metadata() {
        let external = package["dependencies"].as_array().unwrap().iter().filter(|one| one["path"].is_null());
        used.extend(external.map(|one| text(&one["name"]).to_owned()));
    }
    let missing: Vec<_> = used.iter().filter(|name| !reasons.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "docs/dependencies.md has no line on {missing:?}");
    let idle: Vec<_> = reasons.iter().filter(|name| !used.contains(**name)).collect();
    assert!(idle.is_empty(), "docs/dependencies.md has lines on {idle:?}, which nothing uses");
}

/// Runs a chore of this package, which must find nothing wrong.
fn chore(args: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask")).args(args).output().unwrap();
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "cargo xtask {}\n{said}", args.join(" "));
}

#[test]
fn licences_sources_and_crates_are_allowed() {
    chore(&["deny"]);
}

#[test]
fn tables_are_those_of_the_library() {
    chore(&["tables", "--check"]);
}
