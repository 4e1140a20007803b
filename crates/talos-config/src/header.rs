//! What must be known of a document before it is decoded: that no key stands twice, and what the document is.

use crate::codec::binary_text;
use crate::error::{ConfigError, HIDDEN_KEY, shown_key};
use crate::node::{Node, NodeKind, Pos};
use crate::tables::Tables;

/// The kind of the document that has none.
pub(crate) const LEGACY: &str = "v1alpha1";

/// Keys that make a document the one without a kind.
const LEGACY_KEYS: [&str; 4] = ["machine", "cluster", "debug", "persist"];

/// Reads what documents are.
pub(crate) struct Header<'a> {
    pub tables: &'a Tables,
    /// The tag of references, if there are any.
    pub opaque: Option<&'a str>,
}

impl Header<'_> {
    /// The text of an identifying field, which must be plain to see.
    pub fn identity(&self, root: &Node, key: &str) -> Result<Option<String>, ConfigError> {
        root.get(key).map_or(Ok(None), |node| self.identity_text(node, key))
    }

    fn identity_text(&self, node: &Node, key: &str) -> Result<Option<String>, ConfigError> {
        if self.opaque.is_some() && node.resolved().tag.as_deref() == self.opaque {
            let what = "an identity".to_owned();
            return Err(ConfigError::OpaquePlace { pos: node.pos, path: format!("/{key}"), what });
        }
        match &node.resolved().kind {
            NodeKind::Scalar { .. } if node.is_null() => Ok(None),
            NodeKind::Scalar { text, .. } => header_word(node, text, key).map(Some),
            _ => Err(ConfigError::WrongType {
                pos: node.pos,
                path: format!("/{key}"),
                expected: "text".to_owned(),
                found: node.kind_name(),
            }),
        }
    }

    /// The kind of the document with this root, as the number that the tables give it.
    pub fn kind(&self, root: &Node, pos: Pos) -> Result<usize, ConfigError> {
        let mut mistaken = None;
        self.header(root, &mut mistaken)
            .and_then(|(kind, version)| self.kind_of(root, kind, &version, pos))
            .map_err(|error| match mistaken {
                Some((pos, word)) => ConfigError::HeaderWord { pos, word },
                None => error,
            })
    }

    /// The kind of a document and its version, as Talos finds them: it goes through keys and values alike, and takes
    /// what comes next for the value. `mistaken`: the first value that is taken for a key.
    fn header(
        &self,
        root: &Node,
        mistaken: &mut Option<(Pos, &'static str)>,
    ) -> Result<(String, String), ConfigError> {
        let (mut kind, mut version) = (String::new(), String::new());
        let entries = root.entries().unwrap_or_default();
        let nodes: Vec<&Node> = entries.iter().flat_map(|(key, value)| [key, value]).collect();
        for (i, node) in nodes.iter().enumerate() {
            let (known, word) = match node.own_text() {
                "kind" => (&mut kind, "kind"),
                "apiVersion" => (&mut version, "apiVersion"),
                key if LEGACY_KEYS.contains(&key) => {
                    version = LEGACY.to_owned();
                    continue;
                }
                _ => continue,
            };
            if i % 2 == 1 {
                mistaken.get_or_insert((node.pos, word));
            }
            // Talos crashes where nothing comes next
            let Some(next) = nodes.get(i + 1) else { return Err(ConfigError::MissingKind { pos: node.pos }) };
            // a null changes nothing
            if let Some(text) = self.identity_text(next, word)? {
                *known = text;
            }
        }
        let written = self.identity(root, "apiVersion")?;
        if !kind.is_empty() && version == LEGACY && written.as_deref() != Some(LEGACY) {
            let what = "a document whose version is none of its own, but a value".to_owned();
            let way_out = "write 'apiVersion: v1alpha1'".to_owned();
            return Err(ConfigError::NotHandled { pos: root.pos, path: "its top".to_owned(), what, way_out });
        }
        Ok((kind, version))
    }

    fn kind_of(&self, root: &Node, kind: String, version: &str, pos: Pos) -> Result<usize, ConfigError> {
        let unknown = |kind: &str| ConfigError::UnknownKind {
            pos,
            kind: kind.to_owned(),
            minor: self.tables.minor().to_owned(),
        };
        if kind.is_empty() {
            if !LEGACY_KEYS.iter().any(|k| root.get(k).is_some()) {
                misspelt(root, "kind")?;
            }
            return match version == LEGACY {
                true => self.tables.kind(LEGACY).map(|(i, _)| i).ok_or_else(|| unknown(LEGACY)),
                false => Err(ConfigError::MissingKind { pos }),
            };
        }
        if version.is_empty() {
            misspelt(root, "apiVersion")?;
            return Err(ConfigError::MissingApiVersion { pos, kind });
        }
        match self.tables.kind(&kind) {
            Some((i, info)) if version == info.api && kind != LEGACY => Ok(i),
            _ => Err(unknown(&kind)),
        }
    }
}

/// The text of a kind or a version, which may stand in base64.
pub(crate) fn header_word(node: &Node, text: &str, key: &str) -> Result<String, ConfigError> {
    if node.resolved().tag.as_deref() != Some("tag:yaml.org,2002:binary") {
        return Ok(text.to_owned());
    }
    let expected = "UTF-8 text in base64".to_owned();
    binary_text(text).map_err(|_| ConfigError::Value { pos: node.pos, path: format!("/{key}"), expected })
}

/// Refuses a key that is the wanted one but for its capitals, by its name.
fn misspelt(root: &Node, wanted: &str) -> Result<(), ConfigError> {
    let same =
        |key: &&Node| key.text().is_some_and(|text| text != wanted && text.eq_ignore_ascii_case(wanted));
    match root.entries().into_iter().flatten().map(|(key, _)| key).find(same) {
        Some(key) => Err(ConfigError::UnknownKey {
            pos: key.pos,
            path: "The document".to_owned(),
            key: shown_key(key.text().unwrap_or_default()),
            hint: format!("; did you mean {wanted:?}?"),
        }),
        None => Ok(()),
    }
}

/// Refuses a tree with a key that its own mapping has twice.
pub(crate) fn no_duplicates(root: &Node) -> Result<(), ConfigError> {
    let Some((entries, at)) = root.duplicate() else { return Ok(()) };
    let (key, value) = &entries[at];
    let same = |k: &Node| matches!(&k.kind, NodeKind::Scalar { text, .. } if Some(&**text) == key.text());
    if entries.iter().filter(|(k, _)| same(k)).count() < 2 {
        // Talos compares what is written, and finds no alias
        return Err(ConfigError::NotHandled {
            pos: key.pos,
            path: "this place".to_owned(),
            what: "a key that stands here once as an alias and once more".to_owned(),
            way_out: "write it once".to_owned(),
        });
    }
    let shown = match value.is_absent() {
        true => HIDDEN_KEY.to_owned(),
        false => shown_key(key.text().unwrap_or_default()),
    };
    Err(ConfigError::DuplicateKey { pos: key.pos, key: shown })
}
