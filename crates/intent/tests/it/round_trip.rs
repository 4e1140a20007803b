//! What we write is what we read.

use std::collections::BTreeMap;

use bronzeward_intent::fragment::read_own;
use bronzeward_intent::lock::SecretKind;
use bronzeward_intent::yaml_text::to_yaml;
use bronzeward_intent::{LockedSecret, Repository, SecretsLock, Span};
use proptest::prelude::*;
use serde_json::Value;

use crate::sample::Tree;

/// Texts that some reader of YAML takes for something else, and any others.
fn text() -> impl Strategy<Value = String> {
    let words = [
        "",
        " ",
        "~",
        "null",
        "yes",
        "y",
        "on",
        "True",
        "0x1f",
        "010",
        "1_000",
        "1e3",
        ".inf",
        "- a",
        "a: b",
        "a #b",
        "#",
        "*a",
        "&a",
        "!bwref a",
        "%",
        "@",
        "`",
        "---",
        "...",
        "a\n",
        "\n",
        "\ta",
        "a ",
        "\u{85}",
        "\u{2028}",
        "\u{feff}",
        "\u{7f}",
        "\u{fffe}",
        "\u{1F600}",
        "2026-01-01",
        "10:20",
        "{{ a }}",
        "?",
        "? a",
        "<<",
        "=",
        "a\\b\"c'",
        "[a]",
        "|",
    ];
    prop_oneof![
        prop::sample::select(words.to_vec()).prop_map(str::to_owned),
        any::<String>(),
        "[a-z/ .:#-]{0,12}"
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(text(), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn lock() -> impl Strategy<Value = SecretsLock> {
    let kinds = [
        SecretKind::String,
        SecretKind::Integer,
        SecretKind::Boolean,
        SecretKind::Mapping,
        SecretKind::Access,
    ];
    let secret =
        (1..=u64::MAX, prop::sample::select(kinds.to_vec()), prop::collection::vec(text(), 0..4), text())
            .prop_map(|(version, kind, fields, value)| LockedSecret { version, kind, fields, value });
    let name = prop_oneof![
        "[a-z0-9]([a-z0-9-]{0,6}[a-z0-9])?(/[a-z0-9]([a-z0-9-]{0,6}[a-z0-9])?){0,3}",
        "[0-9]{1,4}",
        "true|null|y"
    ];
    prop::collection::btree_map(name, secret, 0..6)
        .prop_map(|secrets: BTreeMap<String, LockedSecret>| SecretsLock { secrets, ..SecretsLock::default() })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_value_reads_back(key in text(), value in value()) {
        let document = Value::Object([(key, value)].into_iter().collect());
        let text = to_yaml(&document);
        let read: Value = read_own("x", text.as_bytes()).map_err(|err| TestCaseError::fail(format!("{err}\n{text}")))?;
        prop_assert_eq!(&read, &document, "{}", text);
    }

    #[test]
    fn any_lock_reads_back_and_is_one_line_each(lock in lock()) {
        let text = lock.to_text();
        let read: SecretsLock = read_own("x", text.as_bytes()).map_err(|err| TestCaseError::fail(format!("{err}\n{text}")))?;
        prop_assert_eq!(&read, &lock, "{}", text);
        prop_assert_eq!(text.split('\n').count(), 3 + lock.secrets.len() + 1, "{}", text);
    }

    #[test]
    fn any_duration_reads_back(millis in any::<u64>()) {
        let span = Span::from_millis(millis);
        prop_assert_eq!(span.to_string().parse::<Span>(), Ok(span));
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), text in text()) {
        for input in [bytes.as_slice(), text.as_bytes()] {
            if let Err(finding) = read_own::<Repository>("x", input) {
                prop_assert!(finding.pos.line > 0 && finding.pos.column > 0 && !finding.help.is_empty());
            }
        }
    }
}

#[test]
fn the_sample_survives_being_written_again() {
    let files = Tree::sound().files();
    let repository: Repository = read_own("x", files.get("bronzeward.yaml").unwrap()).unwrap();
    let again: Repository = read_own("x", to_yaml(&repository).as_bytes()).unwrap();
    assert_eq!(again, repository);
}
