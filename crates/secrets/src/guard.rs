//! The leak guard: no extracted value may stand anywhere else in what is about to be written.

use talos_config::{Comment, Dialect, Limits, Node, NodeKind, ReadError, anchors, comments, read_stream};

use crate::reference::TAG;
use crate::value::SecretValue;

/// From how many bytes on a value may not even be contained in a longer text.
pub const CONTAINED_FROM: usize = 8;

/// A copy of a secret that is still there. The path is named, never the value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("guard: {place} {how} an extracted value; mark that place too, or the container around it")]
pub struct Copy {
    /// Where.
    pub place: String,
    /// `equals` or `contains`.
    pub how: &'static str,
}

/// Finds every copy of the values in a text: scalars, keys, comments, anchors and aliases.
///
/// # Errors
/// [`ReadError`] when the text cannot be read; it was made here, so that is a mistake of ours.
pub fn copies(text: &[u8], values: &[&SecretValue]) -> Result<Vec<Copy>, ReadError> {
    let mut found = Vec::new();
    let documents =
        read_stream(text, Dialect::default(), &Limits { bytes: usize::MAX, ..Limits::default() })?;
    for (index, document) in documents.iter().enumerate() {
        let Some(root) = &document.root else { continue };
        let mut walk = Walk { values, found: &mut found };
        walk.node(root, &format!("doc[{index}]"));
        for node in anchors(root) {
            let name = node.anchor.as_deref().unwrap_or_default();
            walk.text(name, &|| format!("the anchor at {}", node.pos));
        }
    }
    for Comment { pos, text } in comments(text)? {
        Walk { values, found: &mut found }.text(&text, &|| format!("the comment at {pos}"));
    }
    Ok(found)
}

struct Walk<'a> {
    values: &'a [&'a SecretValue],
    found: &'a mut Vec<Copy>,
}

impl Walk<'_> {
    fn node(&mut self, node: &Node, path: &str) {
        if node.tag.as_deref() == Some(TAG) {
            return;
        }
        match &node.kind {
            NodeKind::Scalar { text, .. } => self.text(text, &|| path.to_owned()),
            NodeKind::Sequence(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.node(item, &format!("{path}/{index}"));
                }
            }
            NodeKind::Mapping(entries) => {
                for (number, (key, value)) in entries.iter().enumerate() {
                    let text = key.text().unwrap_or_default();
                    // a key that holds a value may not be printed either
                    let hit = self.hit(text);
                    let shown = if hit.is_some() {
                        format!("<key {number}>")
                    } else {
                        text.replace('~', "~0").replace('/', "~1")
                    };
                    let below = format!("{path}/{shown}");
                    if let Some(how) = hit {
                        self.found.push(Copy { place: format!("the key {below}"), how });
                    }
                    self.node(value, &below);
                }
            }
            NodeKind::Alias { name, .. } => self.text(name, &|| format!("the alias at {path}")),
        }
    }

    fn text(&mut self, text: &str, place: &dyn Fn() -> String) {
        if let Some(how) = self.hit(text) {
            self.found.push(Copy { place: place(), how });
        }
    }

    fn hit(&self, text: &str) -> Option<&'static str> {
        let equal =
            |value: &&&SecretValue| value.expose() == text || value.expose().trim_end_matches('\n') == text;
        if self.values.iter().any(|value| equal(&value)) {
            return Some("equals");
        }
        let contained = |value: &&SecretValue| {
            let bare = value.expose().trim_end_matches('\n');
            bare.len() >= CONTAINED_FROM && text.contains(bare)
        };
        self.values.iter().any(contained).then_some("contains")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_searched_and_no_value_is_printed() {
        let value = SecretValue::new("hunter2hunter2\n".into());
        let text = "a: hunter2hunter2\nb: x hunter2hunter2 y # hunter2hunter2\nhunter2hunter2: 1\nc: !bwref hunter2hunter2\n\
                    d: {e: [&hunter2hunter2 1, *hunter2hunter2]}\n";
        let found = copies(text.as_bytes(), &[&value]).unwrap();
        let places: Vec<&str> = found.iter().map(|copy| copy.place.as_str()).collect();
        for wanted in
            ["doc[0]/a", "doc[0]/b", "the key doc[0]/<key 2>", "the anchor", "the alias", "the comment"]
        {
            assert!(places.iter().any(|place| place.starts_with(wanted)), "{wanted}: {places:?}");
        }
        assert!(!format!("{found:?}").contains("hunter2"));
        assert_eq!(found.len(), 6, "the reference itself is no copy");
        assert!(copies(b"a: short\n", &[&SecretValue::new("sho".into())]).unwrap().is_empty());
    }
}
