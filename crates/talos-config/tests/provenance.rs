//! Provenance: where each value of a result comes from and by which rule, and what people do not expect of a merge.
//! These tests need no Go.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::collections::HashSet;

use talos_config::{Config, Leaf, LeafValue, Options, Origin, Patch, Rule, SourceId, SurpriseKind, Tables};

fn load(text: &str) -> Config {
    Config::load(&Tables::v1_13(), text.as_bytes(), SourceId(0), &Options::default()).unwrap()
}

fn patch(text: &str, source: u32) -> Patch {
    Patch::load(&Tables::v1_13(), text.as_bytes(), SourceId(source), &Options::default()).unwrap()
}

/// What a patch does unexpectedly: code, pointer and lines in patch and config.
fn unexpected(config: &str, text: &str) -> Vec<(&'static str, String, Option<u32>, Option<u32>)> {
    let mut config = load(config);
    let (_, found) = config.apply_explained(&patch(text, 1)).unwrap();
    let line =
        |origin: Option<Origin>, source| origin.filter(|o| o.source == SourceId(source)).map(|o| o.pos.line);
    found.iter().map(|u| (u.kind.code(), u.pointer.clone(), line(u.patch, 1), line(u.before, 0))).collect()
}

#[test]
fn values_that_nobody_named_are_erased_and_said_so() {
    let volume = "apiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\nprovisioning:\n  minSize: 10GiB\n  diskSelector: {match: system_disk}\n";
    let right =
        "apiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\nprovisioning:\n  maxSize: 90GiB\n";
    assert_eq!(
        unexpected(volume, right),
        [
            ("value-erased", "/provisioning/diskSelector/match".to_owned(), Some(5), Some(6)),
            ("value-erased", "/provisioning/minSize".to_owned(), Some(5), Some(5)),
        ]
    );
    // a certificate's key alone takes the certificate away
    assert_eq!(
        unexpected("machine:\n  ca:\n    crt: aGVsbG8=\n    key: aGVsbG8=\n", "machine: {ca: {key: bmV3}}"),
        [("value-erased", "/machine/ca/crt".to_owned(), Some(1), Some(3))]
    );
    assert_eq!(unexpected(volume, volume), [], "the same values again erase nothing");
}

#[test]
fn zeros_and_nulls_that_change_nothing_are_said_so() {
    let action = "apiVersion: v1alpha1\nkind: NetworkDefaultActionConfig\ningress: block\n";
    assert_eq!(
        unexpected(action, "apiVersion: v1alpha1\nkind: NetworkDefaultActionConfig\ningress: accept\n"),
        [("zero-ignored", "/ingress".to_owned(), Some(3), Some(3))]
    );
    let machine = "machine:\n  token: abc\n  sysctls: {a: \"1\"}\n  kubelet: {image: x}\n";
    assert_eq!(
        unexpected(machine, "machine:\n  token: \"\"\n  sysctls: {}\n  kubelet: null\n"),
        [
            ("zero-ignored", "/machine/token".to_owned(), Some(2), Some(2)),
            ("null-ignored", "/machine/kubelet".to_owned(), Some(4), Some(4)),
            ("null-ignored", "/machine/sysctls".to_owned(), Some(3), Some(3)),
        ]
    );
}

#[test]
fn elements_that_stand_twice_are_said_so() {
    let config = "machine:\n  certSANs: [a, b]\n";
    let found = unexpected(config, "machine:\n  certSANs:\n    - c\n    - b\n");
    assert_eq!(found, [("element-repeated", "/machine/certSANs".to_owned(), Some(4), Some(2))]);
}

#[test]
fn values_that_do_not_arrive_are_said_so() {
    // a volume's encryption without provider and keys vanishes on output
    let volume = "apiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\n";
    let found = unexpected(volume, &format!("{volume}encryption: {{cipher: aes-xts-plain64}}\n"));
    assert_eq!(found, [("value-lost", "/encryption/cipher".to_owned(), Some(4), None)]);
    // what a patch says twice, or goes on with, is not lost
    let interfaces = "machine: {network: {interfaces: [{interface: e1}]}}\n";
    for more in [
        "{interface: e0, mtu: 4}, {interface: e0, mtu: 4}",
        "{interface: e0, dhcp: true}, {interface: e0, mtu: 7}",
    ] {
        let text = format!("machine: {{network: {{interfaces: [{more}]}}}}\n");
        assert_eq!(unexpected(interfaces, &text), [], "{more}");
    }
}

#[test]
fn every_surprise_has_a_word_and_a_way_out() {
    let kinds = [
        SurpriseKind::Erased,
        SurpriseKind::ZeroKept,
        SurpriseKind::NullKept,
        SurpriseKind::Repeated,
        SurpriseKind::Lost,
    ];
    let codes: HashSet<&str> = kinds.iter().map(|k| k.code()).collect();
    assert_eq!(codes.len(), kinds.len());
    assert!(kinds.iter().all(|k| !k.way_out().is_empty() && !k.to_string().is_empty()));
}

#[test]
fn each_value_tells_its_place_and_rule() {
    let mut config = load(
        "machine:\n  certSANs: [a]\n  network:\n    interfaces:\n      - interface: eth0\n        vlans:\n          - vlanId: 10\n            addresses: [10.1.0.1/24]\n",
    );
    config
        .apply(&patch(
            "machine:\n  certSANs: [b]\n  network:\n    interfaces:\n      - interface: eth0\n        mtu: 1400\n        vlans:\n          - vlanId: 10\n            mtu: 1300\n      - interface: eth1\n",
            1,
        ))
        .unwrap();
    config
        .apply(&patch(
            "machine:\n  network:\n    interfaces:\n      - interface: eth0\n        mtu: 1500\n",
            2,
        ))
        .unwrap();
    let said: Vec<_> = config
        .explain()
        .into_iter()
        .filter(|e| {
            e.leaf.pointer.contains("mtu")
                || e.leaf.pointer.contains("SANs")
                || e.leaf.pointer.contains("/1/")
        })
        .map(|e| {
            let Leaf { pointer, origin, overrode, rule, .. } = e.leaf;
            (pointer, origin.source.0, overrode.map(|o| o.source.0), rule, e.element.map(|r| r.to_string()))
        })
        .collect();
    let eth = Some("element merged by interface or deviceSelector".to_owned());
    let (vlan, added) = (Some("element merged by vlanId".to_owned()), Some("element appended".to_owned()));
    assert_eq!(
        said,
        [
            ("/machine/certSANs/0".to_owned(), 0, None, Rule::Set, None),
            ("/machine/certSANs/1".to_owned(), 1, None, Rule::Appended, added.clone()),
            ("/machine/network/interfaces/0/vlans/0/mtu".to_owned(), 1, None, Rule::Set, vlan),
            ("/machine/network/interfaces/0/mtu".to_owned(), 2, Some(1), Rule::Replaced, eth),
            ("/machine/network/interfaces/1/interface".to_owned(), 1, None, Rule::Set, added),
        ]
    );
}

#[test]
fn every_printed_value_has_provenance() {
    let mut config = load("machine: {type: worker, ca: {crt: \"\", key: \"\"}}\ncluster: {}\n");
    config.apply(&patch("machine:\n  kubelet: {}\n  disks: [null]\n  sysctls: {a: b}\n", 1)).unwrap();
    config.apply(&patch("apiVersion: v1alpha1\nkind: KmsgLogConfig\nname: x\nurl: tcp://a:1/\n", 2)).unwrap();
    assert_eq!(config.explain().len(), config.leaves().count());
    assert!(
        config.leaves().all(|leaf| leaf.origin.pos.line > 0),
        "{:?}",
        config.leaves().collect::<Vec<_>>()
    );
}

#[test]
fn mappings_and_nulls_of_the_result_have_a_row() {
    let mut config = load(
        "machine:\n  type: null\n  network: {}\n  kubelet:\n    extraConfig: {g: null, h: [null], e: {}}\n  disks: [null]\n  systemDiskEncryption:\n    state: {provider: luks2, keys: [{slot: 0, tpm: {}}]}\ncluster:\n  discovery: {registries: {kubernetes: {}}}\n",
    );
    config.apply(&patch("machine:\n  type: null\n  features: {}\n  sysctls: {a: null}\n", 1)).unwrap();
    let rows: Vec<_> = config
        .explain()
        .into_iter()
        .map(|e| (e.leaf.pointer, e.leaf.origin.pos.line, e.leaf.value))
        .collect();
    let empty = |pointer: &str, line| (pointer.to_owned(), line, LeafValue::Empty);
    for row in [
        empty("/machine/network", 3),
        empty("/machine/kubelet/extraConfig/g", 5),
        empty("/machine/kubelet/extraConfig/h/0", 5),
        empty("/machine/kubelet/extraConfig/e", 5),
        empty("/machine/disks/0", 6),
        empty("/machine/systemDiskEncryption/state/keys/0/tpm", 8),
        empty("/machine/features", 3),
        empty("/cluster/discovery/registries/kubernetes", 10),
        // a null that is printed as the zero of its type
        ("/machine/type".to_owned(), 2, LeafValue::Text(String::new())),
        ("/machine/sysctls/a".to_owned(), 4, LeafValue::Text(String::new())),
    ] {
        assert!(rows.contains(&row), "{row:?} is not among {rows:?}");
    }
    let pointers: HashSet<&String> = rows.iter().map(|(pointer, ..)| pointer).collect();
    assert_eq!(pointers.len(), rows.len(), "no place has two rows");
    // a difference in such a value is one
    let without = load("machine:\n  kubelet:\n    extraConfig: {h: [null], e: {}}\n");
    let with = load("machine:\n  network: {}\n  kubelet:\n    extraConfig: {g: null, h: [null], e: {}}\n");
    let found: Vec<_> =
        talos_config::diff(&without, &with).into_iter().map(|c| (c.kind, c.pointer)).collect();
    let added = |p: &str| (talos_config::ChangeKind::Added, p.to_owned());
    assert_eq!(found, [added("/machine/kubelet/extraConfig/g"), added("/machine/network")]);
}

#[test]
fn what_a_replaced_list_overrode_is_named() {
    let mut config = load(
        "cluster:\n  network:\n    podSubnets: [10.1.0.0/16, 10.2.0.0/16]\n    serviceSubnets: [10.9.0.0/16]\n  apiServer:\n    auditPolicy: {rules: [{level: None}]}\n    extraArgs: {x: [a, b], y: a, z: c}\n",
    );
    let right = "cluster:\n  network:\n    podSubnets: [10.3.0.0/16]\n    serviceSubnets: []\n  apiServer:\n    auditPolicy: {rules: [{level: Metadata}]}\n    extraArgs: {x: [c], y: [d], z: e}\n";
    config.apply(&patch(right, 1)).unwrap();
    let said: Vec<_> = config
        .explain()
        .into_iter()
        .map(|e| {
            let at = |o: Option<Origin>| o.map(|o| (o.source.0, o.pos.line, o.pos.column));
            (e.leaf.pointer, e.leaf.origin.source.0, at(e.leaf.overrode), at(e.whole))
        })
        .collect();
    let row = |pointer: &str, own, whole| (pointer.to_owned(), 1, own, whole);
    assert_eq!(
        said,
        [
            row("/cluster/network/podSubnets/0", None, Some((0, 3, 17))),
            row("/cluster/network/serviceSubnets", Some((0, 4, 21)), None),
            row("/cluster/apiServer/extraArgs/x/0", None, Some((0, 7, 20))),
            row("/cluster/apiServer/extraArgs/y/0", None, Some((0, 7, 31))),
            row("/cluster/apiServer/extraArgs/z", Some((0, 7, 37)), None),
            row("/cluster/apiServer/auditPolicy/rules/0/level", None, Some((0, 6, 18))),
        ]
    );
}
