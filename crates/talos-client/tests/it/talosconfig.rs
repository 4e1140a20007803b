use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bronzeward_testkit::node::{Cluster, Role};
use talos_client::{AccessError, Talosconfig, TalosconfigError};

use super::CLUSTER;

fn text() -> String {
    CLUSTER.talosconfig_text(Role::Admin)
}

fn field(text: &str, name: &str) -> String {
    let line = text.lines().find(|line| line.trim_start().starts_with(&format!("{name}:"))).unwrap();
    line.split_once(": ").unwrap().1.to_owned()
}

fn refusal(text: &str) -> TalosconfigError {
    match Talosconfig::parse(text).and_then(|file| file.context(None)) {
        Ok(_) => panic!("accepted"),
        Err(error) => error,
    }
}

#[test]
fn what_talos_writes_is_read() {
    let file = Talosconfig::parse(&text()).unwrap();
    assert_eq!((file.current(), file.names()), (Some("demo"), vec!["demo"]));
    let context = file.context(None).unwrap();
    assert_eq!(context.name, "demo");
    assert_eq!(context.endpoints, ["127.0.0.1:50000"]);
    assert_eq!(context.nodes, ["127.0.0.1"]);
    assert_eq!(context.access.roles(), ["os:admin"]);
    let year = Duration::from_secs(365 * 86_400);
    #[expect(clippy::disallowed_methods, reason = "the generator took the machine's clock")]
    let now = SystemTime::now();
    let left = context.access.not_after().duration_since(now).unwrap();
    assert!(left <= year && left > year - Duration::from_secs(86_400), "{left:?}");
    context.access.check(now).unwrap();
    let Err(AccessError::Expired { not_after }) = context.access.check(now + year) else { panic!("valid") };
    assert_eq!(not_after, context.access.not_after());
    assert!(matches!(context.access.check(now - year), Err(AccessError::NotYetValid { .. })));
}

#[test]
fn an_unknown_context_names_those_that_exist() {
    let Err(error) = Talosconfig::parse(&text()).unwrap().context(Some("prod")) else { panic!("found") };
    assert_eq!(error.to_string(), "The talosconfig has no context `prod`; it has: demo");
    let none = text().replace("context: demo\n", "");
    assert_eq!(refusal(&none).to_string(), "The talosconfig chooses no context; name one of: demo");
}

#[test]
fn missing_and_broken_key_material_is_named_and_not_shown() {
    let text = text();
    let (crt, key) = (field(&text, "crt"), field(&text, "key"));
    let missing = text.replace(&format!("key: {key}"), "");
    assert!(matches!(refusal(&missing), TalosconfigError::Missing { field: "key", .. }));
    let spoilt = text.replace(&key, &format!("!{key}").replacen('!', "-", 1));
    assert!(matches!(refusal(&spoilt), TalosconfigError::Base64 { field: "key", .. }));
    let swapped = text.replace(&key, &STANDARD.encode("no PEM at all"));
    assert!(matches!(refusal(&swapped), TalosconfigError::Access { source: AccessError::Key { .. }, .. }));
    let foreign = field(&Cluster::local("other").talosconfig_text(Role::Admin), "key");
    let error = refusal(&text.replace(&key, &foreign));
    assert!(matches!(error, TalosconfigError::Access { source: AccessError::Key { source: Some(_) }, .. }));
    assert!(!format!("{error:?} {error}").contains(&foreign[60..90]));
    let empty = text.replace(&crt, &STANDARD.encode("-----"));
    assert!(matches!(
        refusal(&empty),
        TalosconfigError::Access { source: AccessError::NoCertificate { field: "crt" }, .. }
    ));
}

#[test]
fn a_folded_key_is_the_same_key() {
    let text = text();
    let key = field(&text, "key");
    let (first, second) = key.split_at(40);
    let folded =
        text.replace(&format!("key: {key}"), &format!("key: >-\n            {first}\n            {second}"));
    Talosconfig::parse(&folded).unwrap().context(None).unwrap();
}

#[test]
fn other_ways_to_authenticate_are_refused_by_name() {
    let entry =
        |lines: &str| refusal(&text().replace("    demo:\n", &format!("    demo:\n{lines}"))).to_string();
    let omni = entry("        auth:\n            siderov1:\n                identity: me@example.com\n");
    assert!(omni.starts_with("Context `demo` uses `auth.siderov1`, which"), "{omni}");
    let basic = entry("        auth:\n            basic:\n                password: pw-word\n");
    assert!(
        basic.starts_with("Context `demo` uses `auth.basic`, which") && !basic.contains("pw-word"),
        "{basic}"
    );
    let proxied = entry("        cluster: far\n");
    assert!(proxied.starts_with("Context `demo` uses `cluster`, which"), "{proxied}");
}

#[test]
fn clever_yaml_is_refused_with_its_line() {
    for (text, message) in [
        ("context: &a x\ncontexts: {}\n", "1:13: Anchors and aliases have no place"),
        ("context: x\ncontext: y\n", "2:1: the key `context` stands twice in one mapping"),
        ("a: 1\n---\nb: 2\n", "2:1: Several documents have no place"),
        ("a: !t x\n", "1:7: Tags have no place"),
        ("a: [\n", "1:4: The bracket that is opened here is not closed; write ']' or '}' behind the last value"),
    ] {
        let Err(TalosconfigError::Yaml(error)) = Talosconfig::parse(text) else { panic!("{text}") };
        assert!(error.to_string().starts_with(message), "{error}");
    }
    assert!(Talosconfig::parse(&"[".repeat(100_000)).is_err());
    for text in ["", "context: x\n", "contexts: {}\n", "- a\n"] {
        assert!(matches!(Talosconfig::parse(text), Err(TalosconfigError::NoContexts)), "{text}");
    }
}
