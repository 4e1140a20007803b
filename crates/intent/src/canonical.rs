//! Canonical JSON (RFC 8785) over integers, strings, booleans, nulls, lists and objects.
//!
//! Fractions never occur in what we sign, so a float is a mistake of ours and panics in the one place that could
//! make it.

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The canonical bytes of a value.
///
/// # Panics
/// When the value holds a float or a map whose keys are no strings: our own types have neither.
pub fn to_vec<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    let value = serde_json::to_value(value).expect("BUG: our types serialize to JSON");
    let mut out = Vec::new();
    write(&value, &mut out);
    out
}

/// `sha256:<hex>` of bytes.
pub fn sha256(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

/// `sha256:<hex>` of a value's canonical bytes.
pub fn digest<T: Serialize + ?Sized>(value: &T) -> String {
    sha256(&to_vec(value))
}

fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend(b"null"),
        Value::Bool(true) => out.extend(b"true"),
        Value::Bool(false) => out.extend(b"false"),
        Value::Number(number) => {
            // beyond 2^53 an ECMAScript number would not keep its digits
            let safe = number.as_i64().is_some_and(|n| n.unsigned_abs() < 1 << 53);
            assert!(safe, "BUG: {number} has no canonical form here");
            out.extend(number.to_string().bytes());
        }
        Value::String(text) => string(text, out),
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write(item, out);
            }
            out.push(b']');
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by(|(one, _), (two, _)| one.encode_utf16().cmp(two.encode_utf16()));
            out.push(b'{');
            for (index, (key, value)) in entries.into_iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                string(key, out);
                out.push(b':');
                write(value, out);
            }
            out.push(b'}');
        }
    }
}

fn string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for c in text.chars() {
        match c {
            '"' => out.extend(b"\\\""),
            '\\' => out.extend(b"\\\\"),
            '\u{8}' => out.extend(b"\\b"),
            '\t' => out.extend(b"\\t"),
            '\n' => out.extend(b"\\n"),
            '\u{c}' => out.extend(b"\\f"),
            '\r' => out.extend(b"\\r"),
            c if (c as u32) < 0x20 => out.extend(format!("\\u{:04x}", c as u32).bytes()),
            c => out.extend(c.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_rfc_8785() {
        // the RFC's own sorting example, and its escapes
        let value: Value = serde_json::from_str(
            r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew","1":"One","\ud83d\ude00":"Smiley","\u0080":"Control","\u00f6":"o"}"#,
        )
        .unwrap();
        let text = String::from_utf8(to_vec(&value)).unwrap();
        let order: Vec<&str> =
            ["Carriage Return", "One", "Control", "\"o\"", "Euro Sign", "Smiley", "Hebrew"].into();
        let places: Vec<usize> = order.iter().map(|word| text.find(word).unwrap()).collect();
        assert!(places.is_sorted(), "{text}");
        let value: Value = serde_json::from_str(r#"[null,true,-7,"\u000f\n\"\\/\u007f"]"#).unwrap();
        assert_eq!(to_vec(&value), b"[null,true,-7,\"\\u000f\\n\\\"\\\\/\x7f\"]");
    }
}
