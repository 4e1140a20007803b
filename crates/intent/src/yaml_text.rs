//! Writing our own files as YAML that people can read.
//!
//! Only for files of ours: block style, two blanks of indent, every text quoted that could be taken for anything
//! else. Talos documents are written by `talos-config`, in Talos' own way.

use serde::Serialize;
use serde_json::Value;

/// A value as one YAML document, keys in the order of the type.
///
/// # Panics
/// When the value does not serialize to JSON: our own types do.
pub fn to_yaml<T: Serialize + ?Sized>(value: &T) -> String {
    let value = serde_json::to_value(value).expect("BUG: our types serialize to JSON");
    let mut out = String::new();
    block(&value, 0, &mut out);
    out
}

fn block(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (index, (key, value)) in map.iter().enumerate() {
                if index > 0 {
                    pad(indent, out);
                }
                out.push_str(&scalar_text(key));
                out.push(':');
                below(value, indent, out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    pad(indent, out);
                }
                out.push_str("- ");
                block(item, indent + 2, out);
            }
        }
        _ => {
            out.push_str(&flat(value));
            out.push('\n');
        }
    }
}

fn below(value: &Value, indent: usize, out: &mut String) {
    let nested = match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    if nested {
        out.push('\n');
        pad(indent + 2, out);
        block(value, indent + 2, out);
    } else {
        out.push(' ');
        out.push_str(&flat(value));
        out.push('\n');
    }
}

fn pad(indent: usize, out: &mut String) {
    out.extend(std::iter::repeat_n(' ', indent));
}

fn flat(value: &Value) -> String {
    match value {
        Value::String(text) => scalar_text(text),
        Value::Object(_) => "{}".to_owned(),
        Value::Array(_) => "[]".to_owned(),
        other => other.to_string(),
    }
}

/// A text, plain when nothing else could be read in it, else in double quotes as JSON writes it.
pub(crate) fn scalar_text(text: &str) -> String {
    let first = text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'/');
    let inner = |b: u8| b.is_ascii_alphanumeric() || b"/._-+@=,() ".contains(&b);
    let word = text.to_ascii_lowercase();
    let taken = ["true", "false", "yes", "no", "on", "off", "y", "n", "null"].contains(&word.as_str());
    if first && text.bytes().all(inner) && !text.ends_with(' ') && !taken {
        text.to_owned()
    } else {
        quoted(text)
    }
}

/// A text in double quotes: JSON's notation, which YAML shares, and everything escaped besides that some reader of
/// YAML takes for a line break or refuses as not printable.
pub(crate) fn quoted(text: &str) -> String {
    let json = Value::String(text.to_owned()).to_string();
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn writes_what_is_read_again_as_the_same() {
        let value = json!({
            "name": "w1", "on": "yes", "n": 3, "none": null, "digest": "sha256:ab", "empty": {}, "list": [],
            "items": [{"a": 1, "b": ["x", "y: z"]}, "plain", ["nested"]], "odd": "a\u{1F600}\n\"b\" #c", "t": "2026-01-01T00:00:00Z",
        });
        let text = to_yaml(&value);
        let read: Value = crate::fragment::read_own("x", text.as_bytes()).unwrap();
        // numbers come back as texts in an untyped reading: compare their texts
        assert_eq!(read["items"][0]["b"][1], "y: z");
        assert_eq!(read["odd"], value["odd"]);
        assert_eq!(read["on"], "yes");
        assert_eq!(text.lines().next(), Some("name: w1"));
        assert!(
            text.contains("items:\n  - a: 1\n    b:\n      - x\n      - \"y: z\"\n  - plain\n"),
            "{text}"
        );
    }
}
