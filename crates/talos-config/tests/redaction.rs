//! Redaction, compared with Talos' own.

// helpers outside of test functions are test code too
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod support;

use bronzeward_testkit::library::Library;
use bronzeward_testkit::oracle::Oracle;
use bronzeward_testkit::tools::workspace;
use talos_config::{Config, Options, SourceId, Tables};

const EVERYTHING: &str = r#"
machine:
  type: controlplane
  token: t0ken-a
  ca: {crt: YWJj, key: c2VjcmV0}
  registries:
    config:
      r.example:
        auth: {username: u, password: p4ss-b, auth: aUth-c, identityToken: id-d}
        tls: {clientIdentity: {crt: YWJj, key: a2V5}, ca: YWJj}
  network:
    interfaces:
      - interface: eth0
        vip: {ip: 10.0.0.1, equinixMetal: {apiToken: em-e}, hcloud: {apiToken: hc-f}}
        wireguard: {privateKey: wg-g, peers: [{publicKey: pub}]}
        vlans: [{vlanId: 5, vip: {ip: 10.0.0.2, hcloud: {apiToken: hc-h}}}]
  systemDiskEncryption:
    state: {provider: luks2, keys: [{slot: 0, static: {passphrase: pp-i}}, {slot: 1, nodeID: {}}]}
    ephemeral: {provider: luks2, keys: [{slot: 0, static: {passphrase: ""}}]}
  files: [{path: /a, content: "not redacted", permissions: 0o600}]
cluster:
  secret: cs-j
  token: ct-k
  aescbcEncryptionSecret: ae-l
  secretboxEncryptionSecret: sb-m
  serviceAccount: {key: c2E=}
  ca: {crt: YWJj, key: ""}
  aggregatorCA: {crt: YWJj, key: YWdn}
  etcd: {ca: {crt: YWJj, key: ZXRj}}
---
apiVersion: v1alpha1
kind: VolumeConfig
name: STATE
encryption: {provider: luks2, keys: [{slot: 0, static: {passphrase: vp-n}}]}
---
apiVersion: v1alpha1
kind: UserVolumeConfig
name: data
encryption: {provider: luks2, keys: [{slot: 0, static: {passphrase: vp-o}}]}
---
apiVersion: v1alpha1
kind: RegistryAuthConfig
name: r.example
username: u
password: rp-p
auth: ra-q
---
apiVersion: v1alpha1
kind: RegistryTLSConfig
name: r.example
clientIdentity: {cert: c, key: rk-r}
---
apiVersion: v1alpha1
kind: WireguardConfig
name: wg0
privateKey: wk-s
peers: [{publicKey: p, presharedKey: ps-t}, {publicKey: q}]
---
apiVersion: v1alpha1
kind: HCloudVIPConfig
name: 10.0.0.3
link: eth0
apiToken: ht-u
---
apiVersion: v1alpha1
kind: SideroLinkConfig
apiUrl: "grpc://a:50000?jointoken=jt-v&z=1&a=2"
uniqueToken: ut-w
"#;

fn load(text: &str) -> Config {
    let options = Options { opaque_tag: Some("!ref".to_owned()), ..Options::default() };
    Config::load(&Tables::v1_13(), text.as_bytes(), SourceId(0), &options).expect("the configuration loads")
}

#[test]
fn redacts_what_talos_redacts() {
    let mut oracle = Oracle::start();
    let generated = oracle.generate("home", "https://10.0.0.1:6443");
    let plain = EVERYTHING.replace("?jointoken=jt-v&z=1&a=2", "?z=1&a=2");
    for text in [EVERYTHING, &plain, &generated.files["controlplane"], &generated.files["worker"]] {
        for replacement in ["REDACTED", "******"] {
            let theirs = oracle.redact(text, replacement).result().unwrap();
            let ours = String::from_utf8(load(text).redacted(replacement).encode().unwrap()).unwrap();
            support::assert_same(&ours, &theirs, replacement);
        }
    }
}

#[test]
fn queries_of_every_form_are_redacted_as_talos_does() {
    let (mut oracle, mut joined) = (Oracle::start(), 0);
    for query in [
        "jointoken=SECRET&%ff=1",
        "jointoken=SECRET&a=%zz&b=1",
        "jointoken=SECRET&;&c",
        "jointoken=%zz",
        "jointoken=SECRET;x",
        "a;jointoken=SECRET",
        "=v",
        "=v&jointoken=SECRET",
        "a=%ff&a=2&jointoken=SECRET&jointoken=SECRET&A",
        "a+b=c%20d+e&%3b=1&jointoken",
        "b=%c3%bc&a=ü~!*&&",
        "join%74oken=SECRET&z",
        "jointoken=SECRET%00x&%",
        "",
        &format!("jointoken=SECRET{}", "&a".repeat(9_999)),
        &format!("jointoken=SECRET{}", "&a".repeat(10_000)),
    ] {
        let text = format!("apiVersion: v1alpha1\nkind: SideroLinkConfig\napiUrl: grpc://a?{query}\n");
        let theirs = oracle.redact(&text, "HIDDEN").result().unwrap();
        let config = load(&text);
        let ours = String::from_utf8(config.redacted("HIDDEN").encode().unwrap()).unwrap();
        assert_eq!(ours, theirs, "{query}");
        assert!(!ours.contains("SECRET"), "{query}");
        let found = config.redacted_paths();
        assert!(query.contains("SECRET") <= (found.len() == 1), "{query}");
        joined += usize::from(ours.contains("jointoken=HIDDEN"));
    }
    assert_eq!(joined, 9);
}

#[test]
fn redacted_paths_name_every_literal() {
    let found = load(EVERYTHING).redacted_paths();
    assert_eq!(found.len(), 28, "{found:#?}");
    let token = found.iter().find(|s| s.pointer == "/machine/token").unwrap();
    assert_eq!(
        (token.text.as_str(), token.field.as_str(), token.document.to_string()),
        ("t0ken-a", "token", "v1alpha1".to_owned())
    );
    let key = found.iter().find(|s| s.pointer == "/machine/ca/key").unwrap();
    assert_eq!(key.text, "c2VjcmV0");
    // empty values and references are not literals
    assert!(
        load("machine:\n  token: !ref a@1\n  ca: !ref b@1\ncluster: {token: ''}\n")
            .redacted_paths()
            .is_empty()
    );
    assert!(!format!("{found:?}").contains("t0ken"));
}

#[test]
fn opaque_regions_are_found() {
    let found = load(EVERYTHING).opaque_regions();
    assert!(found.iter().any(|o| o.pointer == "/machine/files/0/content" && o.region == o.pointer));
    assert!(found.iter().any(|o| o.pointer == "/apiUrl"));
    let found = load("machine:\n  env: {A: b}\n  kubelet: {extraConfig: {a: {b: [c]}}}\n").opaque_regions();
    let places: Vec<_> = found.iter().map(|o| (o.region.as_str(), o.pointer.as_str())).collect();
    assert_eq!(
        places,
        [
            ("/machine/kubelet/extraConfig", "/machine/kubelet/extraConfig/a/b/0"),
            ("/machine/env", "/machine/env/A")
        ]
    );
}

#[test]
fn the_committed_tables_are_what_the_library_gives() {
    for minor in ["1.12", "1.13"] {
        let committed = std::fs::read(workspace().join(format!("schema/talos/{minor}/tables.json"))).unwrap();
        let made = Library::minor(minor).tables();
        assert!(made == committed, "schema/talos/{minor}/tables.json is stale: run `cargo xtask tables`");
    }
}

#[test]
fn given_places_are_hidden_whatever_stands_there() {
    let text = "machine:\n  token: abc\n  kubelet: {extraArgs: {a: planted-one}, defaultRuntimeSeccompProfileEnabled: true}\n  files:\n    - {path: /planted-two, permissions: 0o600, content: planted-three, op: create}\n  certSANs: [planted-four]\n  ca: {crt: cGxhbnRlZC1maXZl}\n  network: {interfaces: [{interface: eth0, mtu: 4321}]}\ncluster: {controlPlane: {endpoint: https://planted-six:1/}}\n";
    let config = load(text);
    let also = [
        "/machine/kubelet",
        "/machine/files",
        "/machine/certSANs",
        "/machine/ca/crt",
        "/machine/network",
        "/cluster",
    ];
    let also: Vec<talos_config::Path> =
        also.iter().map(|pointer| format!("v1alpha1:{pointer}").parse().unwrap()).collect();
    let shown = String::from_utf8(config.redacted_also(&also, "******").unwrap().encode().unwrap()).unwrap();
    for planted in ["planted", "cGxhbnRlZC1maXZl", "4321", "600", "true", "eth0", "abc"] {
        assert!(
            String::from_utf8(config.encode().unwrap()).unwrap().contains(planted),
            "no control: {planted}"
        );
        assert!(!shown.contains(planted), "{planted} is shown:\n{shown}");
    }
    // what stands for bytes is no base64 of the stars
    assert!(shown.contains("crt: '******'") && !shown.contains("KioqKioq"), "{shown}");
    for wrong in ["v1alpha1:/machine/sysctls", "v1alpha1:/nothing", "KmsgLogConfig/a:/url", "doc[4]/machine"]
    {
        assert!(config.redacted_also(&[wrong.parse().unwrap()], "x").is_err(), "{wrong}");
    }
}
