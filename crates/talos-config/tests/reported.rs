//! What users of other tools ran into, each with an input of our own: the thread that reported it is named beside.
//! These tests need no Go.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use talos_config::{Config, ConfigError, Options, Patch, SourceId, Tables};

fn load(minor: &str, text: &str) -> Result<Config, ConfigError> {
    Config::load(&Tables::embedded(minor).unwrap(), text.as_bytes(), SourceId(0), &Options::default())
}

fn patch(minor: &str, text: &str) -> Result<Patch, ConfigError> {
    Patch::load(&Tables::embedded(minor).unwrap(), text.as_bytes(), SourceId(1), &Options::default())
}

fn composed(minor: &str, config: &str, patches: &[&str]) -> String {
    let mut config = load(minor, config).unwrap();
    for text in patches {
        config.apply(&patch(minor, text).unwrap()).unwrap();
    }
    String::from_utf8(config.encode().unwrap()).unwrap()
}

fn minors() -> impl Iterator<Item = &'static str> {
    Tables::minors()
}

#[test]
fn composing_the_same_files_twice_gives_the_same_bytes() {
    // cozystack/talm#77, #138
    let (base, fragment) = ("machine: {type: worker}", "machine: {certSANs: [a.example.org]}");
    for minor in minors() {
        assert_eq!(composed(minor, base, &[fragment]), composed(minor, base, &[fragment]));
        // over its own result a fragment would append again: that is said
        let mut config = load(minor, &composed(minor, base, &[fragment])).unwrap();
        let (_, said) = config.apply_explained(&patch(minor, fragment).unwrap()).unwrap();
        assert_eq!(said.iter().map(|u| u.kind.code()).collect::<Vec<_>>(), ["element-repeated"]);
    }
}

#[test]
fn keys_with_dots_and_slashes_are_deleted_exactly() {
    // siderolabs/talos#9325
    let base = "machine:\n  nodeLabels:\n    node.kubernetes.io/exclude-from-external-load-balancers: \"\"\n    node.kubernetes.io/exclude: a\n    node: b\n";
    let delete = "machine:\n  nodeLabels:\n    node.kubernetes.io/exclude-from-external-load-balancers: {$patch: delete}\n";
    for minor in minors() {
        let text = composed(minor, base, &[delete]);
        assert!(!text.contains("load-balancers"), "{text}");
        assert!(text.contains("node.kubernetes.io/exclude: a") && text.contains("node: b"), "{text}");
    }
}

#[test]
fn a_patch_of_comments_is_refused_and_crashes_nothing() {
    // budimanjojo/talhelper 9a8817a7
    for minor in minors() {
        for text in ["# only a comment\n", "", "---\n", "---\n# a\n---\n", "null\n"] {
            assert!(matches!(patch(minor, text), Err(ConfigError::EmptyPatch)), "{minor} {text:?}");
        }
    }
}

#[test]
fn a_patch_that_changes_nothing_is_never_silent() {
    // siderolabs/terraform-provider-talos#53
    for minor in minors() {
        let json = "[{op: add, path: /machine/certSANs/0, value: a}]";
        assert!(matches!(patch(minor, json), Err(ConfigError::Json6902 { .. })), "{minor}");
        let mut config = load(minor, "machine: {type: worker}").unwrap();
        let applied = config.apply(&patch(minor, "machine: {certSANs: []}").unwrap()).unwrap();
        assert!(applied.changed, "an empty list is not an unset one");
        assert!(!config.apply(&patch(minor, "machine: {type: worker}").unwrap()).unwrap().changed);
    }
}

#[test]
fn the_last_selector_wins() {
    // siderolabs/talos#9741
    let volume = |m: &str| {
        format!(
            "apiVersion: v1alpha1\nkind: UserVolumeConfig\nname: data\nprovisioning:\n  diskSelector:\n    match: {m}\n  minSize: 1GiB\n"
        )
    };
    for minor in minors() {
        let text = composed(minor, &volume("disk.rotational"), &[&volume("\"!disk.rotational\"")]);
        assert!(text.contains("match: '!disk.rotational'") && !text.contains("match: disk"), "{text}");
    }
}

#[test]
fn lists_with_keys_merge_by_them() {
    // siderolabs/talos#6884, #5895
    let base = "machine:\n  network:\n    interfaces:\n      - interface: eth0\n        vlans: [{vlanId: 10, mtu: 1400}]\ncluster:\n  apiServer:\n    admissionControl:\n      - name: PodSecurity\n        configuration: {defaults: {enforce: baseline}}\n";
    let right = "machine:\n  network:\n    interfaces:\n      - interface: eth0\n        vlans: [{vlanId: 10, dhcp: true}]\ncluster:\n  apiServer:\n    admissionControl:\n      - name: PodSecurity\n        configuration: {defaults: {audit: restricted}}\n";
    for minor in minors() {
        let text = composed(minor, base, &[right]);
        assert_eq!(text.matches("vlanId: 10").count(), 1, "{text}");
        assert_eq!(text.matches("name: PodSecurity").count(), 1, "{text}");
        for part in ["mtu: 1400", "dhcp: true", "enforce: baseline", "audit: restricted"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}

#[test]
fn a_repeated_exemption_is_said_before_it_is_applied() {
    // siderolabs/omni#239
    let exempt = "cluster:\n  apiServer:\n    admissionControl:\n      - name: PodSecurity\n        configuration: {exemptions: {namespaces: [kube-system]}}\n";
    for minor in minors() {
        let mut config = load(minor, exempt).unwrap();
        let (_, said) = config.apply_explained(&patch(minor, exempt).unwrap()).unwrap();
        let [one] = said.as_slice() else { panic!("{said:?}") };
        assert_eq!(one.kind.code(), "element-repeated");
        assert!(one.pointer.ends_with("/exemptions/namespaces"), "{}", one.pointer);
    }
}

#[test]
fn every_value_of_a_patch_is_in_the_result_or_named() {
    // budimanjojo/talhelper#1577, #1391
    let text = "machine:\n  network:\n    interfaces:\n      - interface: br0\n        bridge: {interfaces: [eth0], vlan: {vlanFiltering: true}}\n        vlans: [{vlanId: 5, dhcp: true}]\n        routes: [{gateway: 10.0.0.1}]\n";
    for minor in minors() {
        let (mut config, patch) =
            (load(minor, "machine: {type: worker}").unwrap(), patch(minor, text).unwrap());
        let (_, said) = config.apply_explained(&patch).unwrap();
        assert!(said.is_empty(), "{said:?}");
        for leaf in patch.leaves() {
            assert!(config.leaves().any(|l| l.origin == leaf.origin), "{}", leaf.pointer);
        }
    }
}

#[test]
fn a_field_of_a_newer_minor_is_refused_by_an_older_one() {
    // siderolabs/terraform-provider-talos#363
    let text = "apiVersion: v1alpha1\nkind: ResolverConfig\nnameservers: [{address: 10.0.0.1}]\nhostDNS: {enabled: true}\n";
    let err = load("1.13", text).unwrap_err();
    assert!(matches!(&err, ConfigError::UnknownKey { key, .. } if key == "hostDNS"), "{err}");
    assert_eq!(err.pos().unwrap().line, 4);
    assert!(load("1.14", text).is_ok());
}

#[test]
fn what_may_be_the_rest_of_a_secret_text_is_not_shown_as_a_key() {
    let refused = |text: &str| load("1.13", text).unwrap_err().to_string();
    let auth = |rest: &str| format!("machine: {{registries: {{config: {{r: {{auth: {{{rest}}}}}}}}}}}");
    for rest in
        ["password: s3c,hunter2", "password: s3c, hunter2 ", "password: s3c,hunter2,hunter2", "hunter2,"]
    {
        let message = refused(&auth(rest));
        assert!(!message.contains("hunter2"), "{message}");
    }
    assert!(
        refused(&auth("password: s3c,hunter2")).contains("within braces, a text with a comma needs quotes")
    );
    // what is near to a field, or has a value, is a slip of the pen
    assert!(refused(&auth("pasword: ")).contains("no field \"pasword\"; did you mean \"password\"?"));
    assert!(refused(&auth("user: x")).contains("no field \"user\"; check"));
    assert!(refused("machine: {env: {a: b, a: c}}").contains("The key \"a\""));
}

#[test]
fn a_key_that_cannot_be_printed_is_named_with_its_place() {
    let refused = |key: &str| {
        let text = format!(
            "machine:\n  nodeLabels:\n    a: x\n    8: y\n    9223372036854775807: y\n    ? {key}\n    : z\n"
        );
        let error = load("1.13", &text).unwrap().encode().unwrap_err();
        assert_eq!(error.origin.unwrap().pos.line, if key.contains('x') { 7 } else { 5 }, "{error}");
        error.to_string()
    };
    let circle = refused("9223372036854775808");
    assert!(
        circle.starts_with("v1alpha1 /machine/nodeLabels/9223372036854775807: it is not certain"),
        "{circle}"
    );
    let broken = refused("\"x\\ny\"");
    assert!(broken.starts_with("v1alpha1 /machine/nodeLabels/x…: the key is longer than 128 bytes or holds"));
}
