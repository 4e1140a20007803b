//! Secrets planted in every field never come out of redaction, messages, findings or `Debug` forms.

use std::fmt::Write as _;

use bronzeward_testkit::generator::Rng;
use serde_json::Value;
use talos_config::{Config, ConfigError, FieldClass, Options, Patch, Pos, SourceId, diff, excerpt, path};

use crate::{Minor, minors};

/// What is planted; [`leaks`] also finds parts of it.
const MARK: &str = "Zq7xWvK9jPmR";
/// The same in base64.
const MARK64: &str = "WnE3eFd2SzlqUG1S";

/// Whether a text shows five characters of what was planted, in the open or in base64.
fn leaks(text: &str) -> bool {
    let parts = |mark: &'static str| (0..=mark.len() - 5).map(move |i| &mark[i..i + 5]);
    parts(MARK).chain(parts(MARK64)).any(|part| text.contains(part))
}

#[track_caller]
fn quiet(said: &str, about: &str) {
    assert!(!leaks(said), "a planted secret is shown: {said}\nby\n{about}");
}

#[test]
fn a_leak_is_seen() {
    assert!(leaks("a q7xWv b") && leaks(&format!("'{MARK}'")) && leaks("eFd2S") && !leaks("q7xW"));
}

/// One step down to a value.
#[derive(Clone, Debug)]
enum Step {
    Key(String),
    Element,
    Entry,
}

/// A document of a kind with one value in it, in flow style but for the keys of the root.
fn document(minor: &Minor, kind: &str, steps: &[Step], value: &str) -> String {
    let mut text = value.to_owned();
    for step in steps[1..].iter().rev() {
        text = match step {
            Step::Key(key) => format!("{{{key}: {text}}}"),
            Step::Element => format!("[{text}]"),
            Step::Entry => format!("{{entry: {text}}}"),
        };
    }
    let Step::Key(first) = &steps[0] else { panic!("a root has keys") };
    let more = if first == "encryption" { "encryption: {provider: luks2, " } else { "" };
    let body = match text.strip_prefix('{') {
        Some(rest) if !more.is_empty() && steps.len() > 1 => format!("{more}{rest}"),
        _ => format!("{first}: {text}"),
    };
    let info = minor.json["kinds"].as_array().unwrap().iter().find(|k| k["kind"] == kind).unwrap();
    let name = match info["name"].as_str() {
        Some(name) if name != first => format!("{name}: n\n"),
        _ => String::new(),
    };
    match kind {
        "v1alpha1" => format!("{body}\n"),
        kind => format!("apiVersion: v1alpha1\nkind: {kind}\n{name}{body}\n"),
    }
}

fn redacted_patterns() -> Vec<(String, String)> {
    let all: Value = serde_json::from_str(include_str!("../../../../schema/talos/redacted.json")).unwrap();
    let of = |(kind, paths): (&String, &Value)| {
        let paths = paths.as_array().unwrap().clone();
        let kind = kind.clone();
        paths.into_iter().map(move |p| (kind.clone(), p.as_str().unwrap().to_owned())).collect::<Vec<_>>()
    };
    all.as_object().unwrap().iter().flat_map(of).collect()
}

/// A document with a secret in a field that is redacted, if the minor has the field.
fn planted(minor: &Minor, kind: &str, pattern: &str) -> Option<String> {
    let (mut segments, mut steps): (Vec<String>, Vec<Step>) = (Vec::new(), Vec::new());
    for segment in path::segments(pattern) {
        if segment == "**" {
            let value = format!("{{secret: {MARK}, a: [{{secret: {MARK}, b: {{secret: [{MARK}]}}}}]}}");
            minor.tables.field_class(kind, &segments)?;
            return Some(document(minor, kind, &steps, &value));
        }
        let class = minor.tables.field_class(kind, &segments)?;
        steps.push(match (segment.as_str(), class) {
            ("*", FieldClass::List) => Step::Element,
            ("*", _) => Step::Entry,
            (key, _) => Step::Key(key.to_owned()),
        });
        segments.push(if segment == "*" { "0".to_owned() } else { segment });
    }
    let value = match minor.tables.field_class(kind, &segments)? {
        FieldClass::Base64 => MARK64.to_owned(),
        FieldClass::Form => format!("\"grpc://a:1?jointoken={MARK}&x=y\""),
        _ => MARK.to_owned(),
    };
    Some(document(minor, kind, &steps, &value))
}

/// Every `Debug` form and finding around a configuration.
fn around(config: &Config) -> String {
    let redacted = config.redacted("REDACTED");
    let mut said = format!("{config:?} {:?} {:?}", config.redacted_paths(), config.opaque_regions());
    let leaves: Vec<_> = config.leaves().collect();
    let _ = write!(said, "{leaves:?} {:?} {:?}", config.explain(), diff(config, &redacted));
    for leaf in &leaves {
        let at = path::Path::of(&leaf.document, &leaf.pointer);
        let _ = write!(said, "{at} {:?}", config.get(&at));
    }
    said
}

#[test]
fn no_secret_survives_redaction() {
    for minor in minors() {
        let mut fields = 0;
        for (kind, pattern) in redacted_patterns() {
            let Some(text) = planted(&minor, &kind, &pattern) else { continue };
            let config = minor.config(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
            let open = String::from_utf8(config.encode().unwrap()).unwrap();
            assert!(leaks(&open), "nothing was planted at {kind} {pattern}: {open}");
            for replacement in ["REDACTED", "******", ""] {
                let hidden = config.redacted(replacement);
                quiet(&String::from_utf8(hidden.encode().unwrap()).unwrap(), &text);
                // once more changes nothing
                assert_eq!(hidden.redacted(replacement).encode(), hidden.encode(), "{text}");
            }
            quiet(&around(&config), &text);
            // a patch brings it, too
            let mut patched = minor.config("machine: {type: worker}\n").unwrap();
            let patch = minor.patch(&text, 1).unwrap();
            let (_, findings) = patched.apply_explained(&patch).unwrap();
            let hidden = String::from_utf8(patched.redacted("REDACTED").encode().unwrap()).unwrap();
            quiet(&format!("{patch:?} {findings:?} {hidden}"), &text);
            fields += 1;
        }
        let least = if minor.tables.minor() == "1.12" { 24 } else { 32 };
        assert!(fields >= least, "{}: only {fields} fields", minor.tables.minor());
    }
}

/// The ways to the values of a shape: fields, elements, entries.
fn ways(minor: &Minor, shape: &str, at: &mut Vec<Step>, within: &mut Vec<String>, out: &mut Vec<Vec<Step>>) {
    if let Some(inner) = shape.strip_prefix('*') {
        return ways(minor, inner, at, within, out);
    }
    let inside = shape.strip_prefix("[]").map(|inner| (Step::Element, inner));
    let inside = inside.or_else(|| shape.strip_prefix("map[string]").map(|inner| (Step::Entry, inner)));
    if !at.is_empty() {
        out.push(at.clone());
    }
    if let Some((step, inner)) = inside {
        at.push(step);
        ways(minor, inner, at, within, out);
        at.pop();
        return;
    }
    let ty = &minor.json["types"][shape];
    if ty.is_null() || within.iter().any(|t| t == shape) {
        return;
    }
    within.push(shape.to_owned());
    if let Some(is) = ty["is"].as_str() {
        ways(minor, is, at, within, out);
    }
    for field in ty["fields"].as_array().into_iter().flatten() {
        let (key, shape) = (field["key"].as_str().unwrap(), field["shape"].as_str().unwrap());
        let inline = field["inline"] == true;
        if inline && shape.starts_with("map[string]") || shape == "meta.Meta" {
            continue;
        }
        if !inline {
            at.push(Step::Key(key.to_owned()));
        }
        ways(minor, shape, at, within, out);
        if !inline {
            at.pop();
        }
    }
    within.pop();
}

/// Values with the mark in them, right and wrong for all sorts of fields.
fn values() -> Vec<String> {
    let mut all: Vec<String> = [
        "@",
        "\"@\"",
        "'@'",
        "[@]",
        "[[@]]",
        "{k: @}",
        "[{k: @}]",
        "!!int @",
        "!!binary @",
        "!local @",
        "!ref @",
        "!!seq @",
        "\"http://@:@/@?@\"",
        "\"http://[@/\"",
        "\"%@\"",
        "\"1@\"",
        "\"@.5\"",
        "\"10.0.0.1/@\"",
        "\"\\t@\\n \"",
        "\"\\x09@\"",
        "\" @\\n\\n  a\"",
        "{k: [@, @]}",
        "{<<: @}",
        "{<<: [@]}",
        "[null, @]",
        "!!float @",
        "{$patch: @}",
        "{k: a,@}",
        "{k: a, @ , @}",
    ]
    .iter()
    .map(|v| v.replace('@', MARK))
    .collect();
    all.push(MARK64.to_owned());
    all
}

/// Whether the error is about a key that lies where nobody would take it for a value.
fn names_a_key(error: &ConfigError) -> bool {
    matches!(error, ConfigError::UnknownKey { key, .. } | ConfigError::DuplicateKey { key, .. } if leaks(key))
}

fn complain(error: &ConfigError, text: &str) {
    let shown = error.pos().map(|pos| excerpt(text.as_bytes(), pos)).unwrap_or_default();
    quiet(&format!("{error} {error:?} {shown}"), text);
}

#[test]
fn no_message_shows_a_value() {
    let options = Options { opaque_tag: Some("!ref".to_owned()), ..Options::default() };
    for minor in minors() {
        let (mut refused, mut loaded, mut unmerged, mut unprinted) = (0, 0, 0, 0);
        for kind in minor.json["kinds"].as_array().unwrap() {
            let mut all = Vec::new();
            ways(&minor, kind["root"].as_str().unwrap(), &mut Vec::new(), &mut Vec::new(), &mut all);
            let name = kind["name"].as_str().unwrap_or_default();
            let kind = kind["kind"].as_str().unwrap();
            // what tells documents apart is no secret, and messages name it
            let secret = |steps: &&Vec<Step>| !matches!(&steps[..], [Step::Key(key)] if key == name);
            for steps in all.iter().filter(secret) {
                let mut before: Option<Config> = None;
                for value in values() {
                    let text = document(&minor, kind, steps, &value);
                    match Patch::load(&minor.tables, text.as_bytes(), SourceId(1), &options) {
                        Ok(patch) => {
                            quiet(&format!("{patch:?}"), &text);
                            if let Some(mut config) = before.clone() {
                                match config.apply_explained(&patch) {
                                    Ok((_, findings)) => quiet(&format!("{findings:?}"), &text),
                                    Err(error) => {
                                        unmerged += 1;
                                        quiet(&format!("{error} {error:?}"), &text);
                                    }
                                }
                            }
                        }
                        Err(error) => complain(&error, &text),
                    }
                    match Config::load(&minor.tables, text.as_bytes(), SourceId(0), &options) {
                        Ok(config) => {
                            loaded += 1;
                            quiet(&format!("{config:?}"), &text);
                            if let Err(error) = config.encode() {
                                unprinted += 1;
                                quiet(&format!("{error} {error:?}"), &text);
                            }
                            before.get_or_insert(config);
                        }
                        Err(error) => {
                            refused += 1;
                            complain(&error, &text);
                        }
                    }
                }
            }
        }
        let counts = (refused, loaded, unmerged, unprinted);
        assert!(refused > 5000 && loaded > 2000 && unmerged > 20 && unprinted > 40, "{counts:?}");
    }
}

/// A value that begins as YAML's own signs do is often a password that lacks its quotes.
#[test]
fn no_message_shows_a_text_that_lacks_its_quotes() {
    let minor = minors().last().unwrap();
    for sign in [
        "*", "&", "!", "%", "@", "`", "|", ">", "- ", "? ", "{", "[", "]", "}", ",", "\"", "'", "#", "!!",
        "!<", "! ",
    ] {
        for tail in ["", " x", "\"", "]", "}", "'", " #", "&", "*", "!"] {
            let text = format!("machine:\n  token: {sign}{MARK}{tail}\n  type: worker\n");
            match minor.config(&text) {
                Ok(config) => quiet(&format!("{config:?}"), &text),
                Err(error) => complain(&error, &text),
            }
        }
    }
}

#[test]
fn no_damage_makes_a_message_show_a_value() {
    let inserts = [
        "\n", " ", "\t", "-", "#", "'", "\"", "{", "}", "[", "]", ",", "&", "*", "!", "|", ">", "%", "@",
        "\\", "\n  ", "- ", "---\n", "\r",
    ];
    let sample = format!(
        "machine:\n  token: {MARK}\n  ca: {{crt: {MARK64}, key: {MARK64}}}\n  files:\n  - content: |\n      {MARK}\n      x {MARK}\n    permissions: 0o600\n  env:\n    A: \"{MARK} \\\n      {MARK}\"\n    B: '{MARK}'\n  certSANs: [{MARK}, *a, &b {MARK}]\n  sysctls:\n    - {MARK}\n# {MARK}\n"
    );
    let mut rng = Rng::new(7);
    for minor in minors() {
        let (mut refused, mut keys) = (0, 0);
        for _ in 0..6000 {
            let mut text: Vec<char> = sample.chars().collect();
            for _ in 0..=rng.below(3) {
                let at = rng.below(text.len());
                match rng.below(3) {
                    0 => drop(text.remove(at)),
                    1 => drop(text.splice(at..at, rng.pick(&inserts).chars())),
                    _ => drop(text.splice(at..=at, rng.pick(&inserts).chars())),
                }
            }
            let text: String = text.into_iter().collect();
            match minor.config(&text) {
                Ok(config) => quiet(&format!("{config:?}"), &text),
                // the damage made a key of it
                Err(error) if names_a_key(&error) => keys += 1,
                Err(error) => {
                    refused += 1;
                    complain(&error, &text);
                }
            }
            for line in 1..=u32::try_from(text.lines().count()).unwrap() {
                // an excerpt shows keys: none of the lines has the mark for one
                quiet(&excerpt(text.as_bytes(), Pos { line, column: 3 }), &text);
            }
        }
        assert!(refused > 3000 && keys < 60, "{refused} damaged texts were refused, {keys} for a key");
    }
}
