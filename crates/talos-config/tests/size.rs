//! Large inputs cost what they hold. There is no clock here: what is done at these sizes would take minutes if each
//! element were compared with each other. These tests need no Go.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::fmt::Write;

use talos_config::{Config, MergeReason, Options, Patch, SourceId, SurpriseKind, Tables};

fn options() -> Options {
    Options { opaque_tag: Some("!ref".to_owned()), ..Options::default() }
}

fn load(text: &str) -> Config {
    Config::load(&Tables::v1_13(), text.as_bytes(), SourceId(0), &options()).unwrap()
}

fn patch(text: &str) -> Patch {
    Patch::load(&Tables::v1_13(), text.as_bytes(), SourceId(1), &options()).unwrap()
}

/// A head, and a line for each number.
fn lines(head: &str, count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).fold(head.to_owned(), |mut all, i| {
        writeln!(all, "{}", line(i)).unwrap();
        all
    })
}

const INTERFACES: &str = "machine:\n  network:\n    interfaces:\n";

fn interfaces(count: usize, line: impl Fn(usize) -> String) -> String {
    lines(INTERFACES, count, |i| format!("      - {}", line(i)))
}

#[test]
fn keyed_lists_merge_by_size() {
    const MANY: usize = 80_000;
    let mut config = load(&interfaces(MANY, |i| format!("{{interface: e{i}}}")));
    // half of them are known, and each is found once more by what the first made of it
    let applied = patch(&interfaces(MANY, |i| format!("{{interface: e{}, mtu: {}}}", i + MANY / 2, i + 1)));
    config.apply(&applied).unwrap();
    let printed = String::from_utf8(config.encode().unwrap()).unwrap();
    assert_eq!(printed.matches("- interface: ").count(), MANY + MANY / 2);
    assert!(printed.contains(&format!("- interface: e{}\n              mtu: 1\n", MANY / 2)), "merged");
    config.apply(&applied).unwrap();
    assert_eq!(String::from_utf8(config.encode().unwrap()).unwrap(), printed, "all are known now");
}

#[test]
fn selectors_that_equal_nothing_merge_by_size() {
    const MANY: usize = 60_000;
    let text = interfaces(MANY, |_| "{deviceSelector: {physical: true}}".to_owned());
    let mut config = load(&text);
    config.apply(&patch(&text)).unwrap();
    let printed = String::from_utf8(config.encode().unwrap()).unwrap();
    assert_eq!(printed.matches("physical").count(), 2 * MANY);
}

#[test]
fn references_decide_at_any_size() {
    const MANY: usize = 300;
    let known =
        |last: &str| format!("{}      - {last}\n", interfaces(MANY, |i| format!("{{interface: e{i}}}")));
    let refused = |config: &str, text: &str| {
        load(config).apply(&patch(&format!("{INTERFACES}      {text}\n"))).map_err(|err| err.reason)
    };
    let dependent = Err(MergeReason::OpaqueDependent);
    assert_eq!(refused(&known("!ref a"), "- {mtu: 1}"), dependent);
    assert_eq!(refused(&known("{interface: !ref a}"), "- {interface: e1}"), dependent);
    assert_eq!(
        refused(&known("{deviceSelector: {driver: !ref a}}"), "- {deviceSelector: {driver: b}}"),
        dependent
    );
    assert_eq!(refused(&known("{mtu: 1}"), "- {interface: !ref a}"), dependent);
    // another field decides
    assert!(refused(&known("{deviceSelector: {driver: !ref a}}"), "- {interface: e1}").is_ok());
    // a reference comes into the identity by the patch itself, and goes with what it replaces
    let comes = "- {interface: e1, deviceSelector: {driver: !ref a}}\n      - {deviceSelector: {driver: b}}";
    assert_eq!(refused(&known("{mtu: 1}"), comes), dependent);
    let goes =
        "- {interface: e1, deviceSelector: {driver: a}}\n      - {deviceSelector: {driver: a}, mtu: 1}";
    assert!(refused(&known("{mtu: 1}"), goes).is_ok());
    let replaced = load(&known("{interface: f, deviceSelector: {driver: !ref a}}"))
        .apply(&patch(&format!("{INTERFACES}      {}\n", goes.replace("e1", "f"))));
    assert!(replaced.unwrap().changed);
}

#[test]
fn elements_are_deleted_by_size() {
    const MANY: usize = 80_000;
    let mut config = load(&interfaces(MANY, |i| format!("{{interface: e{i}}}")));
    config
        .apply(&patch(&interfaces(MANY - 1, |i| format!("{{interface: e{}, $patch: delete}}", MANY - 1 - i))))
        .unwrap();
    let printed = String::from_utf8(config.encode().unwrap()).unwrap();
    assert!(
        printed.contains("interfaces:\n            - interface: e0\n") && !printed.contains("e1"),
        "{printed}"
    );
}

#[test]
fn keys_are_deleted_and_searched_by_size() {
    const MANY: usize = 100_000;
    let head = "machine:\n  sysctls:\n";
    let mut config = load(&lines(head, MANY, |i| format!("    k{i}: v")));
    config
        .apply(&patch(&lines(head, MANY - 1, |i| format!("    k{}: {{$patch: delete}}", MANY - 1 - i))))
        .unwrap();
    let printed = String::from_utf8(config.encode().unwrap()).unwrap();
    assert!(printed.contains("sysctls:\n        k0: v\n") && !printed.contains("k1"), "{printed}");

    const FEWER: usize = 60_000;
    let head = "machine:\n  registries:\n    mirrors:\n";
    let mut config = load(&lines(head, FEWER, |i| format!("      k{i}: {{overridePath: true}}")));
    let all = lines(head, FEWER, |i| format!("      k{i}: {{overridePath: {{$patch: delete}}}}"));
    config.apply(&patch(&all)).unwrap();
    assert!(!String::from_utf8(config.encode().unwrap()).unwrap().contains("overridePath"));
}

#[test]
fn repeated_elements_are_found_by_size() {
    const MANY: usize = 200_000;
    let text = lines("machine:\n  certSANs:\n", MANY, |i| format!("    - n{i}"));
    let (_, found) = load(&text).apply_explained(&patch(&text)).unwrap();
    assert_eq!(found.len(), MANY);
    let line = |origin: Option<talos_config::Origin>| origin.unwrap().pos.line;
    assert!(
        found.iter().all(|one| one.kind == SurpriseKind::Repeated && line(one.patch) == line(one.before))
    );
}
