//! What messages say, and that each is one line whatever the input holds. These tests need no Go.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use talos_config::path::one_line;
use talos_config::{Config, Options, Patch, SourceId, Tables};

/// Line breaks, escapes and signs that turn the direction of writing around, as YAML can write them.
const RAW: &str = "a\\nb\\e[2J\\u202ec\\u2028d\\re";

fn refused(config: &str, patches: &[&str]) -> String {
    let (tables, options) =
        (Tables::v1_13(), Options { opaque_tag: Some("!ref".to_owned()), ..Options::default() });
    let mut config = match Config::load(&tables, config.as_bytes(), SourceId(0), &options) {
        Ok(config) => config,
        Err(err) => return err.to_string(),
    };
    for text in patches {
        let patch = match Patch::load(&tables, text.as_bytes(), SourceId(1), &options) {
            Ok(patch) => patch,
            Err(err) => return err.to_string(),
        };
        if let Err(err) = config.apply(&patch) {
            return err.to_string();
        }
    }
    if let Err(err) = config.encode() {
        return err.to_string();
    }
    let absent = |_: &str, _: &talos_config::Path, _| Err(std::fmt::Error);
    config.resolve(absent).unwrap_err().to_string()
}

fn link(kind: &str, more: &str) -> String {
    format!("apiVersion: v1alpha1\nkind: {kind}\nname: \"{RAW}\"\n{more}")
}

#[test]
fn every_message_is_one_line() {
    let labels = format!("machine: {{nodeLabels: {{\"{RAW}\": b}}}}");
    for (config, patches) in [
        // kinds, names and keys
        (format!("apiVersion: v1alpha1\nkind: \"{RAW}\"\n"), vec![]),
        (format!("kind: \"{RAW}\"\n"), vec![]),
        (format!("machine: {{\"{RAW}\": 1}}"), vec![]),
        (format!("machine: {{sysctls: {{\"{RAW}\": 1, \"{RAW}\": 2}}}}"), vec![]),
        (format!("{}---\n{}", link("LinkConfig", ""), link("LinkConfig", "")), vec![]),
        (format!("{}---\n{}", link("LinkConfig", ""), link("BondConfig", "")), vec![]),
        // pointers
        (format!("machine: {{nodeLabels: {{\"{RAW}\": [b]}}}}"), vec![]),
        (format!("machine: {{registries: {{mirrors: {{\"{RAW}\": {{x: b}}}}}}}}"), vec![]),
        (format!("machine: {{registries: {{mirrors: {{\"{RAW}\": {{overridePath: b}}}}}}}}"), vec![]),
        (format!("machine: {{registries: {{mirrors: {{\"{RAW}\": {{endpoints: !ref b}}}}}}}}"), vec![]),
        (format!("machine: {{kubelet: {{extraConfig: {{\"{RAW}\": 2024-01-02}}}}}}"), vec![]),
        (format!("machine: {{nodeLabels: {{\"{RAW}\": !ref b}}}}"), vec![]),
        (labels.clone(), vec![]),
        (labels.clone(), vec![format!("machine: {{nodeLabels: {{\"x{RAW}\": {{$patch: delete}}}}}}")]),
        (labels, vec![format!("machine: {{nodeLabels: [{{\"{RAW}\": {{$patch: delete}}}}]}}")]),
        // of patches
        (link("LinkConfig", ""), vec![link("LinkConfig", "mtu: {a: {$patch: delete}}")]),
        (link("LinkConfig", ""), vec![link("BondConfig", "$patch: delete")]),
        (link("LinkConfig", ""), vec![link("BondConfig", "")]),
    ] {
        let patches: Vec<&str> = patches.iter().map(String::as_str).collect();
        let said = refused(&config, &patches);
        assert_eq!(one_line(&said), said, "{config:?} {patches:?}");
        assert!(said.len() > 20, "{said}");
    }
    assert_eq!(one_line("a é\u{1b}\tb\u{85}\u{2029}"), "a é\u{fffd}\u{fffd}b\u{fffd}\u{fffd}");
}

#[test]
fn a_message_tells_the_way_out() {
    let link = "apiVersion: v1alpha1\nkind: LinkConfig\nname: a\n";
    for (config, patch, parts) in [
        ("apiVersion: v1alpha1\nKind: LinkConfig\nname: a\n", "", ["2:1: ", "did you mean \"kind\"?"]),
        ("apiversion: v1alpha1\nkind: LinkConfig\n", "", ["1:1: ", "did you mean \"apiVersion\"?"]),
        ("apiVersion: v1alpha1\nmachine: {}\n", "", ["1:1: ", "no field \"apiVersion\""]),
        ("machine: {type: worker,\n", "", ["1:10: ", "is not closed"]),
        ("machine: {type: worker}}\n", "", ["1:24: ", "remove what stands here"]),
        (link, "kind: v1alpha1\nmachine: {type: a, $patch: delete}\n", ["", ""]),
        (
            link,
            "apiVersion: v1alpha1\nkind: LinkConfig\nname: b\n---\napiVersion: v1alpha1\nkind: LinkConfig\nname: b\n",
            ["LinkConfig/b", "put both into one"],
        ),
        (
            "machine: {}",
            "- {op: remove, path: /machine}",
            ["1:1: ", "only for a configuration of one document"],
        ),
        (link, "{}", ["holds no document that changes anything", "leave it out"]),
    ] {
        let said = refused(config, if patch.is_empty() { &[] } else { std::slice::from_ref(&patch) });
        for part in parts {
            assert!(said.contains(part), "{config:?} {patch:?}: {part:?} is not in {said:?}");
        }
        assert!(!said.contains("  ") && !said.contains(" :"), "{said}");
    }
}
