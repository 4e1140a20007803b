//! Provenance: where each value of a result comes from and by which rule, and what people do not expect of a merge.
//! These tests need no Go.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::collections::HashSet;

use talos_config::{Config, Leaf, Options, Origin, Patch, Rule, SourceId, SurpriseKind, Tables};

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
