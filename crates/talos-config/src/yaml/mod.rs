//! Reading YAML exactly as the library reads it that Talos is built with (`go.yaml.in/yaml/v4`): from bytes to
//! [`Node`] trees, bounded in every direction.
//!
//! The rooms: `source` decodes bytes, `scan` cuts the text into tokens (`scalar`, `block`, `tags` and `comments` hold its parts),
//! `tree` puts them together. Nothing recurses on the depth of the input, and the time is linear in its size. The tests
//! compare the trees with the library itself, version by version; what is refused although the library takes it has a
//! name: see [`Refusal`] and [`Limits`].

use std::ops::Range;

use crate::node::{Node, Pos};

mod block;
mod comments;
mod error;
mod excerpt;
mod scalar;
mod scan;
mod source;
mod tags;
mod token;
mod tree;

pub use error::{Problem, ReadError, Refusal};
pub use excerpt::excerpt;

/// The version of the YAML library whose reading is followed. They differ in rare notations only: empty values in
/// brackets without blanks, blocks of text in the first column, signs in tags, control characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// 4.0.0-rc.3, of Talos 1.12.
    Rc3,
    /// 4.0.0-rc.4, of Talos 1.13.
    Rc4,
    /// 4.0.0-rc.5 and rc.6, which read alike, of Talos 1.14.
    #[default]
    Rc5,
}

/// How much a stream may hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the whole stream.
    pub bytes: usize,
    /// Mappings and sequences that may stand inside each other, aliases followed; at most [`Limits::DEEPEST`].
    pub depth: usize,
    /// Nodes of all documents together, aliases counted as one.
    pub nodes: usize,
    /// Nodes that all aliases together may stand for; a text counts once more for every 128 bytes.
    pub alias_nodes: usize,
}

impl Limits {
    /// The largest depth that has an effect: so deep a tree can still be walked and dropped on any thread's stack.
    pub const DEEPEST: usize = 1000;
    /// Bytes of text that count like a node behind an alias.
    const ALIAS_TEXT: usize = 128;
    /// The largest size that has an effect.
    const LARGEST: usize = 1 << 30;
}

impl Default for Limits {
    fn default() -> Self {
        Limits { bytes: 4 << 20, depth: 200, nodes: 500_000, alias_nodes: 50_000 }
    }
}

/// One document of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlDocument {
    /// The root, or nothing if the document is empty or null.
    pub root: Option<Node>,
    /// Where the document begins: at its `---`, at its directives, or at its first content.
    pub pos: Pos,
    /// The document's share of the source: the spans of all documents, in order, are the whole source. If the source
    /// is UTF-16, they are bytes of its text in UTF-8 (and so are the spans of the nodes).
    pub span: Range<usize>,
}

/// A comment, without its `#` and without the line break.
#[derive(Clone, PartialEq, Eq)]
pub struct Comment {
    /// Where the `#` stands.
    pub pos: Pos,
    /// What follows the `#`, untouched.
    pub text: String,
}

/// Reads every document of a stream.
///
/// Null documents are kept (with no root), so that documents keep their number and the spans cover the source.
///
/// # Errors
/// [`ReadError`] on the first thing that Talos refuses, that is beyond a limit, or that is refused by name.
pub fn read_stream(bytes: &[u8], dialect: Dialect, limits: &Limits) -> Result<Vec<YamlDocument>, ReadError> {
    Ok(read(bytes, dialect, limits, false)?.0)
}

/// Every comment of a stream, in source order, where the reader itself sees comments.
///
/// # Errors
/// As [`read_stream`] with the default dialect and limits.
pub fn comments(bytes: &[u8]) -> Result<Vec<Comment>, ReadError> {
    Ok(read(bytes, Dialect::default(), &Limits::default(), true)?.1)
}

/// Every anchor name of a document, with its node.
pub fn anchors(root: &Node) -> Vec<&Node> {
    let mut found = Vec::new();
    root.walk(&mut |node| {
        if node.anchor.is_some() {
            found.push(node);
        }
    });
    found
}

fn read(
    bytes: &[u8],
    dialect: Dialect,
    limits: &Limits,
    comments: bool,
) -> Result<(Vec<YamlDocument>, Vec<Comment>), ReadError> {
    let limit = limits.bytes.min(Limits::LARGEST);
    if bytes.len() > limit {
        return Err(ReadError::TooLarge { size: bytes.len(), limit });
    }
    let source = source::decode(bytes, dialect)?;
    let (mut documents, comments) = tree::Builder::new(&source.text, dialect, limits, comments).stream()?;
    let mut end = source.skipped + source.text.len();
    for document in documents.iter_mut().rev() {
        let start = document.span.start + source.skipped;
        document.span = start..end;
        end = start;
    }
    if let Some(first) = documents.first_mut() {
        first.span.start = 0;
    }
    Ok((documents, comments))
}

#[cfg(test)]
mod tests;
