//! References, provenance, paths, differences and limits. These tests need no Go.

// helpers outside of test functions are test code too
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::time::Instant;

use talos_config::{
    ChangeKind, Config, ConfigError, Dialect, DocumentRef, FieldClass, LeafValue, Limits, MergeReason,
    Options, Patch, Path, ResolveError, Resolved, SourceId, Tables, diff,
};

fn options() -> Options {
    Options { opaque_tag: Some("!ref".to_owned()), ..Options::default() }
}

fn load(text: &str) -> Config {
    Config::load(&Tables::v1_13(), text.as_bytes(), SourceId(0), &options()).unwrap()
}

fn refused(text: &str) -> ConfigError {
    Config::load(&Tables::v1_13(), text.as_bytes(), SourceId(0), &options()).unwrap_err()
}

fn patch(text: &str) -> Patch {
    Patch::load(&Tables::v1_13(), text.as_bytes(), SourceId(1), &options()).unwrap()
}

fn applied(config: &str, right: &str) -> Result<String, MergeReason> {
    let mut config = load(config);
    config.apply(&patch(right)).map_err(|e| e.reason)?;
    Ok(encoded(&config))
}

fn encoded(config: &Config) -> String {
    String::from_utf8(config.encode().unwrap()).unwrap()
}

fn path(text: &str) -> Path {
    text.parse().unwrap()
}

#[test]
fn references_survive_load_merge_and_encode() {
    let text = "machine:\n    files:\n        - content: !ref files/wifi@1\n          path: /a\n    sysctls:\n        a: !ref b@2|base64\n    certSANs: [!ref c@1]\n    ca: !ref ca@3\n";
    let mut config = load(text);
    config.apply(&patch("machine: {type: worker, kubelet: {extraConfig: {x: !ref free@1}}}")).unwrap();
    let out = encoded(&config);
    for line in [
        "- content: !ref files/wifi@1\n",
        "a: !ref b@2|base64\n",
        "- !ref c@1\n",
        "ca: !ref ca@3\n",
        "x: !ref free@1\n",
    ] {
        assert!(out.contains(line), "{line} in {out}");
    }
    assert_eq!(encoded(&load(&out)), out);
}

#[test]
fn references_stand_only_for_values() {
    assert!(matches!(refused("machine: {!ref a: b}"), ConfigError::OpaquePlace { .. }));
    assert!(matches!(refused("!ref a"), ConfigError::NotAMapping { .. }));
    assert!(matches!(refused("machine: {certSANs: !ref a}"), ConfigError::OpaquePlace { .. }));
    assert!(matches!(refused("machine: {token: !ref {a: b}}"), ConfigError::OpaquePlace { .. }));
    assert!(matches!(refused("machine: {token: !ref ''}"), ConfigError::OpaquePlace { .. }));
    assert!(matches!(
        refused("apiVersion: v1alpha1\nkind: LinkConfig\nname: !ref a\n"),
        ConfigError::OpaquePlace { .. }
    ));
    // another tag is no reference
    assert!(matches!(refused("machine: {token: !other a}"), ConfigError::NotHandled { .. }));
}

#[test]
fn merging_with_references() {
    // replacing whole values works both ways
    assert!(
        applied("machine: {token: a}", "machine: {token: !ref b@1}").unwrap().contains("token: !ref b@1")
    );
    assert!(applied("machine: {token: !ref b@1}", "machine: {token: a}").unwrap().contains("token: a"));
    assert!(
        applied("machine: {token: !ref b@1}", "machine: {token: !ref c@1}").unwrap().contains("!ref c@1")
    );
    assert!(applied("machine: {token: !ref b@1}", "machine: {type: x}").unwrap().contains("!ref b@1"));
    assert!(applied("machine: {type: x}", "machine: {ca: !ref ca@1}").unwrap().contains("ca: !ref ca@1"));
    // into or over a structure does not
    assert_eq!(
        applied("machine: {ca: !ref a@1}", "machine: {ca: {crt: YWJj}}"),
        Err(MergeReason::IntoOpaque)
    );
    assert_eq!(
        applied("machine: {ca: {crt: YWJj}}", "machine: {ca: !ref a@1}"),
        Err(MergeReason::OverStructure)
    );
    // nor where the result depends on the value
    let endpoint = "cluster: {controlPlane: {endpoint: 'https://a/x'}}";
    assert_eq!(
        applied(endpoint, "cluster: {controlPlane: {endpoint: !ref e@1}}"),
        Err(MergeReason::OpaqueDependent)
    );
    let interfaces = "machine: {network: {interfaces: [{interface: !ref i@1}]}}";
    assert_eq!(
        applied(interfaces, "machine: {network: {interfaces: [{interface: a}]}}"),
        Err(MergeReason::OpaqueDependent)
    );
    let files = "apiVersion: v1alpha1\nkind: ExtensionServiceConfig\nname: a\nconfigFiles: [!ref f@1]\n";
    let more = "apiVersion: v1alpha1\nkind: ExtensionServiceConfig\nname: a\nconfigFiles: [{content: x, mountPath: /a}]\n";
    assert_eq!(applied(files, more), Err(MergeReason::OpaqueDependent));
    // a way through a reference
    for (config, way) in [
        ("machine: {kubelet: !ref k@1}", "machine: {kubelet: {image: {$patch: delete}}}"),
        ("machine: {sysctls: !ref s@1}", "machine: {sysctls: {a: {$patch: delete}}}"),
        (
            "machine: {kubelet: {extraConfig: {a: !ref x@1}}}",
            "machine: {kubelet: {extraConfig: {a: {b: {$patch: delete}}}}}",
        ),
    ] {
        assert_eq!(applied(config, way), Err(MergeReason::OpaqueDependent), "{config}");
    }
    // a reference can be deleted and replaced
    let out = applied(
        "machine: {ca: !ref a@1, type: x}",
        "machine: {ca: {$patch: delete}}\n---\nmachine: {ca: {crt: YWJj}}\n",
    );
    // the two documents of one patch have one identity only if both hold something
    assert!(out.unwrap().contains("crt: YWJj"));
}

#[derive(Debug, thiserror::Error)]
#[error("no such value")]
struct NoValue;

fn resolve(text: &str, value: &str) -> Result<String, ResolveError<NoValue>> {
    load(text).resolve(|_, _, _| Ok::<_, NoValue>(Resolved::Text(value.to_owned()))).map(|c| encoded(&c))
}

#[test]
fn references_are_given_their_values_by_type() {
    assert!(resolve("machine: {token: !ref a@1}", "yes").unwrap().contains("token: \"yes\""));
    assert!(resolve("machine: {ca: {crt: YWJj, key: !ref a@1}}", "YW\nJj").unwrap().contains("key: YWJj"));
    assert!(
        resolve("cluster: {inlineManifests: [{name: a, contents: !ref a@1}]}", "\n\tx: y")
            .unwrap()
            .contains("contents: 'x: y'")
    );
    assert!(matches!(
        resolve("machine: {ca: {key: !ref a@1}}", "not base64"),
        Err(ResolveError::Unfit { .. })
    ));
    assert!(matches!(
        resolve("machine: {features: {kubePrism: {port: !ref a@1}}}", "7445"),
        Err(ResolveError::Unfit { .. })
    ));
    assert!(matches!(resolve("machine: {token: !ref a@1}", ""), Err(ResolveError::Empty { .. })));
    let number = load("machine: {features: {kubePrism: {port: !ref a@1, enabled: !ref b@1}}}")
        .resolve(|name, _, _| {
            Ok::<_, NoValue>(Resolved::Plain(if name == "a@1" { "7445" } else { "false" }.to_owned()))
        })
        .unwrap();
    assert!(encoded(&number).contains("enabled: false\n            port: 7445"));
    let node = talos_config::read_stream(b"crt: YWJj\nkey: ''", Dialect::default(), &Limits::default())
        .unwrap()
        .remove(0)
        .root
        .unwrap();
    let mapping = load("machine: {ca: !ref a@1}").resolve(|_, at, origin| {
        assert_eq!((at.to_string().as_str(), origin.unwrap().pos.line), ("v1alpha1:/machine/ca", 1));
        Ok::<_, NoValue>(Resolved::Node(node.clone()))
    });
    assert!(encoded(&mapping.unwrap()).contains("crt: YWJj\n        key: \"\""));
    let missing = load("machine: {token: !ref a@1}").resolve(|_, _, _| Err(NoValue)).unwrap_err();
    assert!(std::error::Error::source(&missing).is_some());
}

#[test]
fn every_leaf_knows_where_it_came_from() {
    let mut config = load("machine:\n  type: worker\n  token: a\n  certSANs: [x]\n");
    assert!(config.apply(&patch("machine:\n  token: b\n  certSANs: [y]\n")).unwrap().changed);
    assert!(!config.apply(&patch("machine:\n  token: b\n")).unwrap().changed);
    let leaves: Vec<_> = config.leaves().collect();
    let token = leaves.iter().find(|l| l.pointer == "/machine/token").unwrap();
    assert_eq!((token.origin.source, token.origin.pos.line), (SourceId(1), 2));
    let first = leaves.iter().find(|l| l.pointer == "/machine/certSANs/0").unwrap();
    let second = leaves.iter().find(|l| l.pointer == "/machine/certSANs/1").unwrap();
    assert_eq!((first.origin.source, second.origin.source), (SourceId(0), SourceId(1)));
    assert_eq!(second.value, LeafValue::Text("y".to_owned()));
    let mut config = load("machine:\n  token: a\n");
    config.apply(&patch("machine:\n  token: b\n")).unwrap();
    let token = config.leaves().find(|l| l.pointer == "/machine/token").unwrap();
    assert_eq!(token.overrode.unwrap().source, SourceId(0));
}

#[test]
fn a_patch_names_its_leaves() {
    let right = patch("machine:\n  token: b\n  certSANs: [y]\n  ca: {$patch: delete}\n");
    let found: Vec<_> = right.leaves().map(|l| (l.pointer, l.origin.pos.line)).collect();
    assert_eq!(found, [("/machine/token".to_owned(), 2), ("/machine/certSANs/0".to_owned(), 3)]);
}

#[test]
fn a_failed_patch_changes_nothing() {
    let mut config = load("machine: {token: a, ca: !ref a@1}");
    let before = encoded(&config);
    assert!(config.apply(&patch("machine: {token: b, ca: {crt: YWJj}}")).is_err());
    assert_eq!(encoded(&config), before);
}

#[test]
fn places_are_found_and_substituted() {
    let mut config = load(
        "machine: {token: a, ca: {crt: YWJj}, files: [{path: /a, content: x}]}\n---\napiVersion: v1alpha1\nkind: LinkConfig\nname: eth0\nmtu: 5\n",
    );
    assert_eq!(config.get(&path("doc[1]/mtu")).unwrap().value, Some(LeafValue::Text("5".to_owned())));
    assert_eq!(config.get(&path("LinkConfig/eth0:/mtu")).unwrap().class, FieldClass::Integer);
    assert!(config.get(&path("doc[1]/nothing")).is_none());
    assert!(config.get(&path("doc[7]")).is_none());
    assert_eq!(config.stored_path(&path("doc[1]/mtu")).to_string(), "LinkConfig/eth0:/mtu");
    assert_eq!(config.display_path(&path("LinkConfig/eth0:/mtu")).document, DocumentRef::Index(1));
    config.substitute(&path("doc[0]/machine/token"), "token@1").unwrap();
    config.substitute(&path("v1alpha1:/machine/ca"), "ca@1").unwrap();
    config.substitute(&path("v1alpha1:/machine/files/0/content"), "file@1").unwrap();
    let out = encoded(&config);
    for text in ["token: !ref token@1", "ca: !ref ca@1", "content: !ref file@1"] {
        assert!(out.contains(text), "{out}");
    }
    for wrong in ["doc[0]", "doc[1]/name", "doc[1]/kind", "doc[0]/machine/files", "doc[0]/machine/kubelet"] {
        assert!(config.substitute(&path(wrong), "x@1").is_err(), "{wrong}");
    }
    let segments = |p: &str| talos_config::path::segments(p);
    let tables = Tables::v1_13();
    assert!(tables.field_class("v1alpha1", &segments("/machine/token")).unwrap().takes_text());
    assert!(
        !tables.field_class("v1alpha1", &segments("/machine/features/kubePrism/port")).unwrap().takes_text()
    );
    assert_eq!(tables.field_class("v1alpha1", &segments("/machine/foo")), None);
    assert!(tables.is_redacted("v1alpha1", &segments("/machine/token")));
}

#[test]
fn differences_are_semantic_and_removals_come_first() {
    let old = load("machine: {type: a, token: b, certSANs: [x, y]}");
    let new = load(
        "machine:\n  token: \"c\"\n  type: 'a'\n  certSANs: [x]\n---\napiVersion: v1alpha1\nkind: HostnameConfig\nhostname: h\n",
    );
    let changes: Vec<_> =
        diff(&old, &new).into_iter().map(|c| (c.kind, c.document.to_string(), c.pointer)).collect();
    let change = |kind, document: &str, pointer: &str| (kind, document.to_owned(), pointer.to_owned());
    assert_eq!(
        changes,
        [
            change(ChangeKind::Removed, "v1alpha1", "/machine/certSANs/1"),
            change(ChangeKind::Changed, "v1alpha1", "/machine/token"),
            change(ChangeKind::Added, "HostnameConfig", "/apiVersion"),
            change(ChangeKind::Added, "HostnameConfig", "/kind"),
            change(ChangeKind::Added, "HostnameConfig", "/hostname"),
        ]
    );
    assert!(diff(&old, &old.clone()).is_empty());
}

#[test]
fn errors_show_places_and_never_values() {
    let secret = "hunter2-very-secret";
    for text in [
        format!("machine: {{features: {{kubePrism: {{port: {secret}}}}}}}"),
        format!("machine: {{ca: {{crt: \"{secret}\"}}}}"),
        format!("machine: {{certSANs: {secret}}}"),
        format!("machine: {{token: !x {secret}}}"),
        format!("cluster: {{controlPlane: {{endpoint: 'https://{secret}^'}}}}"),
        format!("machine: {{network: {{interfaces: [{{dhcp: {secret}}}]}}}}"),
    ] {
        let error = refused(&text);
        assert!(error.pos().is_some_and(|p| p.line == 1), "{error}");
        assert!(
            !error.to_string().contains("hunter2") && !format!("{error:?}").contains("hunter2"),
            "{error}"
        );
    }
    assert!(matches!(refused("foo: bar\nmachine: {}"), ConfigError::UnknownKey { .. }));
    let patch =
        |text: &str| Patch::load(&Tables::v1_13(), text.as_bytes(), SourceId(0), &options()).unwrap_err();
    assert!(matches!(patch("# only a comment\n"), ConfigError::EmptyPatch));
    assert!(matches!(patch("- op: add\n"), ConfigError::Json6902 { .. }));
}

#[test]
fn hostile_input_is_refused_quickly() {
    let start = Instant::now();
    let deep = format!("machine: {{kubelet: {{extraConfig: {}", "{a: ".repeat(100_000));
    let lists = format!("machine: {{kubelet: {{extraConfig: {}", "[".repeat(100_000));
    let mut bomb =
        "machine:\n  kubelet:\n    extraConfig:\n      a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for i in 1..20 {
        bomb.push_str(&format!("      a{i}: &a{i} [{}]\n", vec![format!("*a{}", i - 1); 10].join(", ")));
    }
    let large = "machine:\n  certSANs:\n".to_owned() + &"    - abcdefgh\n".repeat(400_000);
    let many: String =
        (0..15_000).map(|i| format!("---\napiVersion: v1alpha1\nkind: LinkConfig\nname: a{i}\n")).collect();
    let mut config = load(&many);
    config.apply(&patch("apiVersion: v1alpha1\nkind: LinkConfig\nname: a7\nmtu: 5\n")).unwrap();
    let keys: String = (0..20_000).map(|i| format!("    k{i}: x\n")).collect();
    let sysctls = format!("machine:\n  sysctls:\n{keys}");
    load(&sysctls).apply(&patch(&sysctls)).unwrap();
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
    let start = Instant::now();
    for text in [deep, lists, bomb, large] {
        assert!(matches!(refused(&text), ConfigError::Read(_)));
    }
    assert!(start.elapsed().as_millis() < 1500, "{:?}", start.elapsed());
}

#[test]
fn what_excludes_other_documents_is_plain_to_see() {
    let tables = Tables::embedded("v1.14").unwrap();
    let load = |peer: &str| {
        let text = format!(
            "apiVersion: v1alpha1\nkind: VethConfig\nname: a\npeer: {{name: {peer}}}\n---\napiVersion: v1alpha1\nkind: DummyLinkConfig\nname: b\n"
        );
        Config::load(&tables, text.as_bytes(), SourceId(0), &options()).map(drop)
    };
    load("c").unwrap();
    assert!(matches!(load("b"), Err(ConfigError::Conflict { .. })));
    let reference = load("!ref p@1").unwrap_err();
    assert!(reference.to_string().starts_with("4:"), "{reference}");
    assert!(matches!(reference, ConfigError::OpaquePlace { .. }));
    // both ends of one link
    assert!(matches!(load("a"), Err(ConfigError::Value { .. })));
}
