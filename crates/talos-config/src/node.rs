//! The YAML tree that everything else works on: structure, text, style, tag and position of every node.
//!
//! Values stay text here; what a text means depends on the field that it stands in.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// A place in a source text. Both numbers start at 1; columns count characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pos {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl fmt::Display for Pos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// The notation in which a scalar was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Style {
    /// Without quotes: the only style whose text may mean something other than a string.
    Plain,
    /// `'text'`
    SingleQuoted,
    /// `"text"`
    DoubleQuoted,
    /// A block that starts with `|`.
    Literal,
    /// A block that starts with `>`.
    Folded,
}

/// Where a node stands in the source, in bytes; the end of a list or a mapping is the end of its last part. Nodes that
/// were not read have an empty span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// Its first byte, tag and anchor included.
    pub start: u32,
    /// The first byte of its content.
    pub body: u32,
    /// The byte after it, quotes and brackets included.
    pub end: u32,
}

impl Span {
    /// The node's own source, if this is the text that it was read from.
    pub fn of(self, text: &str) -> Option<&str> {
        text.get(self.start as usize..self.end as usize)
    }
}

/// One node of a document. Its `Debug` form shows structure and keys, never the text of a value.
#[derive(Clone, PartialEq, Eq)]
pub struct Node {
    /// Where the content of the node begins (after its tag and anchor).
    pub pos: Pos,
    /// Its source.
    pub span: Span,
    /// The tag after handles are resolved: `!local` stays so, `!!binary` is `tag:yaml.org,2002:binary`.
    pub tag: Option<String>,
    /// The name of the anchor that the node defines, without `&`.
    pub anchor: Option<String>,
    /// What the node is.
    pub kind: NodeKind,
}

/// The content of a [`Node`].
#[derive(Clone, PartialEq, Eq)]
pub enum NodeKind {
    /// A scalar: its text after unescaping and folding, and how it was written.
    Scalar {
        /// The text after unescaping and folding.
        text: String,
        /// How it was written.
        style: Style,
    },
    /// Keys and values in source order. Duplicate keys are kept: see [`Node::duplicate_key`].
    Mapping(Vec<(Node, Node)>),
    /// Elements in source order.
    Sequence(Vec<Node>),
    /// `*name`: another place where the anchored node counts.
    Alias {
        /// The name without `*`.
        name: String,
        /// The anchored node. The reader bounds what all aliases of a stream expand to.
        target: Arc<Node>,
    },
}

impl Node {
    /// The node itself, or what it is an alias of.
    pub fn resolved(&self) -> &Node {
        let mut node = self;
        while let NodeKind::Alias { target, .. } = &node.kind {
            node = target;
        }
        node
    }

    /// The text of a scalar (aliases followed).
    pub fn text(&self) -> Option<&str> {
        match &self.resolved().kind {
            NodeKind::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// What Talos sees where it looks at a node without decoding it: the text of a scalar, the name of an alias, and
    /// nothing for the rest.
    pub(crate) fn own_text(&self) -> &str {
        match &self.kind {
            NodeKind::Scalar { text, .. } => text,
            NodeKind::Alias { name, .. } => name,
            NodeKind::Mapping(_) | NodeKind::Sequence(_) => "",
        }
    }

    /// The [`Self::own_text`] of the value below the first key with this text that is no alias.
    pub(crate) fn own_text_of(&self, key: &str) -> &str {
        let NodeKind::Mapping(entries) = &self.kind else { return "" };
        let found =
            entries.iter().find(|(k, _)| matches!(&k.kind, NodeKind::Scalar { text, .. } if text == key));
        found.map_or("", |(_, value)| value.own_text())
    }

    /// Keys and values of a mapping (aliases followed).
    pub fn entries(&self) -> Option<&[(Node, Node)]> {
        match &self.resolved().kind {
            NodeKind::Mapping(entries) => Some(entries),
            _ => None,
        }
    }

    /// Elements of a sequence (aliases followed).
    pub fn elements(&self) -> Option<&[Node]> {
        match &self.resolved().kind {
            NodeKind::Sequence(elements) => Some(elements),
            _ => None,
        }
    }

    /// The value of the first entry whose key has this text.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries()?.iter().find(|(k, _)| k.text() == Some(key)).map(|(_, v)| v)
    }

    /// Whether the node is a null of YAML's core: an untagged plain `null`, `~` or nothing, or one of them in any style
    /// with the tag `!!null`.
    pub fn is_null(&self) -> bool {
        let node = self.resolved();
        let NodeKind::Scalar { text, style } = &node.kind else { return false };
        let said = match node.tag.as_deref() {
            None => *style == Style::Plain,
            Some(tag) => tag == "tag:yaml.org,2002:null",
        };
        said && matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL")
    }

    /// `mapping`, `sequence` or `scalar`, for messages.
    pub fn kind_name(&self) -> &'static str {
        match &self.resolved().kind {
            NodeKind::Mapping(_) => "mapping",
            NodeKind::Sequence(_) => "sequence",
            _ => "scalar",
        }
    }

    /// Whether nothing at all is written here. Within braces it may be a key that has such a value, and then the key is
    /// what stands behind a comma: maybe the rest of a text.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(&self.kind, NodeKind::Scalar { text, style: Style::Plain } if text.is_empty())
            && self.tag.is_none()
            && self.anchor.is_none()
    }

    /// The first key, in source order, that its own mapping already has; the whole subtree is searched.
    ///
    /// Keys are compared by text, as Talos does: `a` and `"a"` are equal. A key that is a mapping or a
    /// sequence is never equal to another.
    pub fn duplicate_key(&self) -> Option<&Node> {
        self.duplicate().map(|(entries, at)| &entries[at].0)
    }

    /// The same: the entries of the mapping, and which of them has the key.
    pub(crate) fn duplicate(&self) -> Option<(&[(Node, Node)], usize)> {
        match &self.kind {
            NodeKind::Mapping(entries) => {
                // a few keys are compared faster than hashed
                let mut seen = (entries.len() > 16).then(HashSet::new);
                for (i, (key, value)) in entries.iter().enumerate() {
                    if let Some(text) = key.text()
                        && match &mut seen {
                            Some(seen) => !seen.insert(text),
                            None => entries[..i].iter().any(|(k, _)| k.text() == Some(text)),
                        }
                    {
                        return Some((entries, i));
                    }
                    if let Some(found) = key.duplicate().or_else(|| value.duplicate()) {
                        return Some(found);
                    }
                }
                None
            }
            NodeKind::Sequence(elements) => elements.iter().find_map(Node::duplicate),
            _ => None,
        }
    }

    /// Calls `f` for this node and everything below it, in source order, keys included. Aliases are visited,
    /// their targets are not (they are visited where they stand).
    pub fn walk<'a>(&'a self, f: &mut dyn FnMut(&'a Node)) {
        f(self);
        match &self.kind {
            NodeKind::Mapping(entries) => {
                for (key, value) in entries {
                    key.walk(f);
                    value.walk(f);
                }
            }
            NodeKind::Sequence(elements) => elements.iter().for_each(|e| e.walk(f)),
            _ => {}
        }
    }

    /// Whether two trees mean the same: kinds, texts, styles that matter, and tags are equal; positions,
    /// anchors and the difference between an alias and a copy do not count.
    pub fn same_tree(&self, other: &Node) -> bool {
        let (a, b) = (self.resolved(), other.resolved());
        if a.tag != b.tag {
            return false;
        }
        match (&a.kind, &b.kind) {
            (NodeKind::Scalar { text: x, style: s }, NodeKind::Scalar { text: y, style: t }) => {
                x == y && (*s == Style::Plain) == (*t == Style::Plain)
            }
            (NodeKind::Mapping(x), NodeKind::Mapping(y)) => {
                x.len() == y.len() && x.iter().zip(y).all(|((k, v), (l, w))| k.same_tree(l) && v.same_tree(w))
            }
            (NodeKind::Sequence(x), NodeKind::Sequence(y)) => {
                x.len() == y.len() && x.iter().zip(y).all(|(v, w)| v.same_tree(w))
            }
            _ => false,
        }
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(tag) = &self.tag {
            write!(f, "<{tag}> ")?;
        }
        self.kind.fmt(f)
    }
}

impl fmt::Debug for NodeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeKind::Scalar { text, style } => write!(f, "{style:?}({} bytes)", text.len()),
            NodeKind::Sequence(elements) => f.debug_list().entries(elements).finish(),
            NodeKind::Alias { name, .. } => write!(f, "*{name}"),
            NodeKind::Mapping(entries) => {
                f.debug_map().entries(entries.iter().map(|(k, v)| (k.text().unwrap_or("?"), v))).finish()
            }
        }
    }
}
