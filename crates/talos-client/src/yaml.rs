//! A talosconfig as a tree that is wiped when it is dropped.

use talos_config::{Dialect, Limits, Node, NodeKind, Pos, ReadError, read_stream};
use zeroize::Zeroize;

const LIMITS: Limits = Limits { bytes: 1 << 20, depth: 16, nodes: 20_000, alias_nodes: 20_000 };

/// Why a text is no talosconfig's YAML; says where, never what stands there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum YamlError {
    /// Not YAML, too large, or too deep.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Anchors, aliases, tags, a second document.
    #[error("{pos}: {what} have no place in a talosconfig; write the value out")]
    Unsupported {
        /// Where.
        pos: Pos,
        /// What stands there.
        what: &'static str,
    },
    /// A key given twice.
    #[error("{pos}: the key `{key}` stands twice in one mapping; remove one of them")]
    Duplicate {
        /// Where the second stands.
        pos: Pos,
        /// The key.
        key: String,
    },
}

/// A tree whose texts are overwritten when it goes.
pub(crate) struct Wiped(pub(crate) Node);

impl Drop for Wiped {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

fn wipe(node: &mut Node) {
    match &mut node.kind {
        NodeKind::Scalar { text, .. } => text.zeroize(),
        NodeKind::Mapping(entries) => entries.iter_mut().for_each(|(key, value)| {
            wipe(key);
            wipe(value);
        }),
        NodeKind::Sequence(elements) => elements.iter_mut().for_each(wipe),
        // refused below
        NodeKind::Alias { .. } => {}
    }
}

/// The one document of a text; none if it is empty.
pub(crate) fn read(text: &str) -> Result<Option<Wiped>, YamlError> {
    let mut roots = Vec::new();
    for document in read_stream(text.as_bytes(), Dialect::default(), &LIMITS)? {
        roots.extend(document.root.map(|root| (document.pos, Wiped(root))));
    }
    if let Some((pos, _)) = roots.get(1) {
        return Err(YamlError::Unsupported { pos: *pos, what: "Several documents" });
    }
    let Some((_, root)) = roots.pop() else { return Ok(None) };
    let mut clever = None;
    root.0.walk(&mut |node| {
        let what = if node.tag.is_some() {
            Some("Tags")
        } else if node.anchor.is_some() || matches!(node.kind, NodeKind::Alias { .. }) {
            Some("Anchors and aliases")
        } else {
            None
        };
        clever = clever.or(what.map(|what| (node.pos, what)));
    });
    if let Some((pos, what)) = clever {
        return Err(YamlError::Unsupported { pos, what });
    }
    if let Some(key) = root.0.duplicate_key() {
        let name = crate::text::short(key.text().unwrap_or_default());
        return Err(YamlError::Duplicate { pos: key.pos, key: name });
    }
    Ok(Some(root))
}
