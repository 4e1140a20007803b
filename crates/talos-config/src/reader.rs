//! From bytes to [`Node`] trees, bounded in every direction.
//!
//! Talos reads with a descendant of libyaml (YAML 1.1); the parser behind this reader follows YAML 1.2. Where
//! the two are known to read the same bytes differently, the bytes are refused here, so that a document is
//! never read in another sense than Talos reads it.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span, StructureStyle, Tag};
use thiserror::Error;

use crate::node::{Node, NodeKind, Pos, Style};
use crate::quirks::{ambiguous, check_after, check_block, check_characters, check_escapes, check_plain};

/// How much a stream may hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the whole stream.
    pub bytes: usize,
    /// Mappings and sequences that may stand inside each other (at most 255).
    pub depth: usize,
    /// Nodes of all documents together, aliases counted as one.
    pub nodes: usize,
    /// Nodes that all aliases together may stand for.
    pub alias_nodes: usize,
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
    /// Where the document begins: at its `---`, or at its first content.
    pub pos: Pos,
    /// The document's share of the source: the spans of all documents, in order, are the whole source.
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

/// Why a stream cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadError {
    /// The stream is larger than [`Limits::bytes`].
    #[error("The file has {size} bytes, more than the limit of {limit}; split it")]
    TooLarge {
        /// Bytes found.
        size: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// Not UTF-8.
    #[error("Byte {offset} is not UTF-8; save the file as UTF-8")]
    NotUtf8 {
        /// Offset of the first wrong byte.
        offset: usize,
    },
    /// A character that YAML or this reader does not allow unescaped.
    #[error(
        "{pos}: Character U+{code:04X} cannot stand here; remove it or write it as an escape in double quotes"
    )]
    Character {
        /// Where.
        pos: Pos,
        /// The character's number.
        code: u32,
    },
    /// Not YAML.
    #[error("{pos}: The YAML is not well formed: {message}")]
    Syntax {
        /// Where the parser gave up.
        pos: Pos,
        /// The parser's words; they quote structure only.
        message: String,
    },
    /// Something that Talos refuses or reads in another way than YAML 1.2 says.
    #[error("{pos}: {construct} is refused, since Talos reads it differently or not at all; {way_out}")]
    Ambiguous {
        /// Where.
        pos: Pos,
        /// What it is.
        construct: &'static str,
        /// What to write instead.
        way_out: &'static str,
    },
    /// Nested deeper than [`Limits::depth`].
    #[error("{pos}: Mappings and lists are nested deeper than the limit of {limit}; flatten the document")]
    TooDeep {
        /// Where the limit was passed.
        pos: Pos,
        /// Levels allowed.
        limit: usize,
    },
    /// More nodes than [`Limits::nodes`].
    #[error("{pos}: The file holds more than {limit} values; split it")]
    TooManyNodes {
        /// Where the limit was passed.
        pos: Pos,
        /// Nodes allowed.
        limit: usize,
    },
    /// Aliases stand for more than [`Limits::alias_nodes`].
    #[error("{pos}: The aliases stand for more than {limit} values; write them out or use fewer")]
    AliasBudget {
        /// The alias that passed the limit.
        pos: Pos,
        /// Nodes allowed.
        limit: usize,
    },
}

impl ReadError {
    /// Where in the stream, if the error has a place.
    pub fn pos(&self) -> Option<Pos> {
        match self {
            ReadError::TooLarge { .. } | ReadError::NotUtf8 { .. } => None,
            ReadError::Character { pos, .. }
            | ReadError::Syntax { pos, .. }
            | ReadError::Ambiguous { pos, .. }
            | ReadError::TooDeep { pos, .. }
            | ReadError::TooManyNodes { pos, .. }
            | ReadError::AliasBudget { pos, .. } => Some(*pos),
        }
    }
}

/// Reads every document of a stream.
///
/// Null documents are kept (with no root), so that documents keep their number and the spans cover the source.
///
/// # Errors
/// [`ReadError`] on the first thing that is not YAML, is beyond a limit, or is not read alike by Talos.
pub fn read_stream(bytes: &[u8], limits: &Limits) -> Result<Vec<YamlDocument>, ReadError> {
    Ok(read(bytes, limits)?.0)
}

/// Every comment of a stream, in source order.
///
/// # Errors
/// As [`read_stream`] with the default limits.
pub fn comments(bytes: &[u8]) -> Result<Vec<Comment>, ReadError> {
    Ok(read(bytes, &Limits::default())?.1)
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

fn read(bytes: &[u8], limits: &Limits) -> Result<(Vec<YamlDocument>, Vec<Comment>), ReadError> {
    if bytes.len() > limits.bytes {
        return Err(ReadError::TooLarge { size: bytes.len(), limit: limits.bytes });
    }
    let bom = if bytes.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
    let text = std::str::from_utf8(&bytes[bom..])
        .map_err(|e| ReadError::NotUtf8 { offset: bom + e.valid_up_to() })?;
    check_characters(text)?;
    let mut builder = Builder::new(text, limits);
    let options = granit_parser::options! {
        emit_anchor_events: true,
        emit_comments: true,
        max_buffered_comment_events: 100_000,
        block_scalar_eof_without_line_feed: true,
        flow_nesting_limit: limits.depth.min(255),
        block_nesting_limit: limits.depth.min(255),
        simple_key_max_lookahead: 8192,
    };
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|e| syntax(&e))?;
        builder.event(event, span)?;
    }
    if text.contains('\t') {
        builder.check_markers()?;
    }
    Ok(builder.finish(bom, bytes.len()))
}

fn syntax(error: &ScanError) -> ReadError {
    let mark = error.marker();
    ReadError::Syntax { pos: position(mark.line(), mark.col()), message: error.info().to_string() }
}

fn position(line: usize, col: usize) -> Pos {
    Pos { line: u32::try_from(line).unwrap_or(u32::MAX), column: u32::try_from(col + 1).unwrap_or(u32::MAX) }
}

/// A collection that is still open.
struct Open {
    node: Node,
    key: Option<Node>,
    anchor: usize,
    /// Nodes that this collection stands for so far, aliases expanded.
    weight: usize,
    flow: bool,
}

struct Anchored {
    name: String,
    node: Option<(Arc<Node>, usize)>,
}

struct Builder<'a> {
    text: &'a str,
    limits: &'a Limits,
    documents: Vec<YamlDocument>,
    comments: Vec<Comment>,
    stack: Vec<Open>,
    /// A scalar that waits for its anchor event before it is placed.
    pending: Option<(Node, usize)>,
    anchors: HashMap<usize, Anchored>,
    nodes: usize,
    alias_nodes: usize,
    /// Where scalars of several lines stand, in bytes.
    multi_line: Vec<Range<usize>>,
}

impl<'a> Builder<'a> {
    fn new(text: &'a str, limits: &'a Limits) -> Self {
        Builder {
            text,
            limits,
            documents: Vec::new(),
            comments: Vec::new(),
            stack: Vec::new(),
            pending: None,
            anchors: HashMap::new(),
            nodes: 0,
            alias_nodes: 0,
            multi_line: Vec::new(),
        }
    }

    fn event(&mut self, event: Event<'a>, span: Span) -> Result<(), ReadError> {
        let pos = position(span.start.line(), span.start.col());
        if let Event::Anchor(id, name) = event {
            return self.anchor(id, name.into_owned(), pos);
        }
        if let Event::Comment(text, _) = event {
            self.comments.push(Comment { pos, text: text.into_owned() });
            return Ok(());
        }
        self.flush()?;
        match event {
            Event::DocumentStart(_, version) => {
                if version.is_some_and(|v| (v.major, v.minor) != (1, 1)) {
                    return Err(ambiguous(pos, "A %YAML directive other than 1.1", "remove the directive"));
                }
                let start = span.start.byte_offset().unwrap_or(0);
                self.documents.push(YamlDocument { root: None, pos, span: start..start });
                self.anchors.clear();
            }
            Event::Alias(id) => self.alias(id, pos, &span)?,
            Event::Scalar(text, style, anchor, tag) => {
                let style = self.scalar_style(style, &span, pos)?;
                self.count(pos)?;
                self.check_indent(&span, pos)?;
                let kind = NodeKind::Scalar { text: text.into_owned(), style };
                self.pending =
                    Some((Node { pos, tag: tag_text(tag.as_deref(), pos)?, anchor: None, kind }, anchor));
            }
            Event::SequenceStart(style, anchor, tag) => {
                self.open(NodeKind::Sequence(Vec::new()), style, anchor, tag.as_deref(), pos)?;
            }
            Event::MappingStart(style, anchor, tag) => {
                self.open(NodeKind::Mapping(Vec::new()), style, anchor, tag.as_deref(), pos)?;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(open) = self.stack.pop() {
                    self.place(open.node, open.anchor, open.weight)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn scalar_style(&mut self, style: ScalarStyle, span: &Span, pos: Pos) -> Result<Style, ReadError> {
        let (start, end) = match (span.start.byte_offset(), span.end.byte_offset()) {
            (Some(start), Some(end)) => (start, end),
            _ => (0, 0),
        };
        let raw = self.text.get(start..end).unwrap_or("");
        let after = self.text.get(end..).unwrap_or("");
        let multi_line = raw.trim_end().contains(['\n', '\r']);
        if multi_line {
            self.multi_line.push(start..end);
            if self
                .stack
                .last()
                .is_some_and(|o| o.key.is_none() && matches!(o.node.kind, NodeKind::Mapping(_)))
            {
                return Err(ambiguous(pos, "A key of several lines", "write it on one line"));
            }
        }
        Ok(match style {
            ScalarStyle::Plain => {
                let flow = self.stack.last().is_some_and(|o| o.flow);
                check_plain(raw, after, flow, pos)?;
                if !flow {
                    check_after(after.trim_start_matches([' ', '\t']).trim_start_matches(['\r', '\n']), pos)?;
                }
                Style::Plain
            }
            ScalarStyle::SingleQuoted => Style::SingleQuoted,
            ScalarStyle::DoubleQuoted => {
                check_escapes(raw, pos)?;
                Style::DoubleQuoted
            }
            ScalarStyle::Literal | ScalarStyle::Folded => {
                check_block(raw, pos)?;
                check_after(after, pos)?;
                if style == ScalarStyle::Literal { Style::Literal } else { Style::Folded }
            }
        })
    }

    /// A tab after the `-` or `?` of a block collection is refused by YAML 1.1.
    fn check_markers(&self) -> Result<(), ReadError> {
        let mut offset = 0;
        for (number, line) in self.text.split_inclusive('\n').enumerate() {
            let mut rest = line.trim_start_matches(' ');
            let tabbed = rest.trim_start_matches([' ', '\t']);
            if rest.starts_with('\t') && (tabbed.starts_with("- ") || tabbed.starts_with("? ")) {
                rest = tabbed;
                let at = offset + line.len() - rest.len();
                if !self.multi_line.iter().any(|span| span.contains(&at)) {
                    let pos = position(number + 1, line.len() - rest.len());
                    return Err(ambiguous(pos, "A tab before '-' or '?'", "indent with spaces"));
                }
            }
            while let Some(after) = rest.strip_prefix(['-', '?']) {
                let blanks = after.len() - after.trim_start_matches([' ', '\t']).len();
                if after[..blanks].contains('\t') {
                    let at = offset + line.len() - after.len();
                    if !self.multi_line.iter().any(|span| span.contains(&at)) {
                        let pos = position(number + 1, line.len() - after.len());
                        return Err(ambiguous(pos, "A tab after '-' or '?'", "write a blank"));
                    }
                }
                let next = after.trim_start_matches(' ');
                if next.len() == after.len() {
                    break;
                }
                rest = next;
            }
            offset += line.len();
        }
        Ok(())
    }

    /// Tabs as indentation, or after `-` and `?`, are refused by YAML 1.1.
    fn check_indent(&self, span: &Span, pos: Pos) -> Result<(), ReadError> {
        let Some(start) = span.start.byte_offset() else { return Ok(()) };
        let before = &self.text.as_bytes()[..start.min(self.text.len())];
        let blanks = before.iter().rev().take_while(|b| matches!(b, b' ' | b'\t')).count();
        let (rest, blank) = before.split_at(before.len() - blanks);
        let leads = matches!(rest.last(), None | Some(b'\n' | b'\r' | b'-' | b'?'));
        if leads && blank.contains(&b'\t') {
            return Err(ambiguous(pos, "A tab before a value", "indent with spaces"));
        }
        Ok(())
    }

    fn open(
        &mut self,
        kind: NodeKind,
        style: StructureStyle,
        anchor: usize,
        tag: Option<&Tag>,
        pos: Pos,
    ) -> Result<(), ReadError> {
        self.count(pos)?;
        if self.stack.len() >= self.limits.depth {
            return Err(ReadError::TooDeep { pos, limit: self.limits.depth });
        }
        let node = Node { pos, tag: tag_text(tag, pos)?, anchor: None, kind };
        self.stack.push(Open { node, key: None, anchor, weight: 1, flow: style == StructureStyle::Flow });
        Ok(())
    }

    fn anchor(&mut self, id: usize, name: String, pos: Pos) -> Result<(), ReadError> {
        if !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
            return Err(ambiguous(
                pos,
                "An anchor with other signs than letters, digits, '_' and '-'",
                "rename it",
            ));
        }
        let node = match &mut self.pending {
            Some((node, _)) => Some(node),
            None => self.stack.last_mut().map(|o| &mut o.node),
        };
        if let Some(node) = node {
            node.anchor = Some(name.clone());
        }
        self.anchors.insert(id, Anchored { name, node: None });
        Ok(())
    }

    fn alias(&mut self, id: usize, pos: Pos, _span: &Span) -> Result<(), ReadError> {
        self.count(pos)?;
        let Some((name, Some((target, weight)))) = self.anchors.get(&id).map(|a| (&a.name, a.node.clone()))
        else {
            return Err(ambiguous(pos, "An alias inside its own anchor", "write the value out"));
        };
        self.alias_nodes += weight;
        if self.alias_nodes > self.limits.alias_nodes {
            return Err(ReadError::AliasBudget { pos, limit: self.limits.alias_nodes });
        }
        let node =
            Node { pos, tag: None, anchor: None, kind: NodeKind::Alias { name: name.clone(), target } };
        self.place(node, 0, weight)
    }

    fn count(&mut self, pos: Pos) -> Result<(), ReadError> {
        self.nodes += 1;
        if self.nodes > self.limits.nodes {
            return Err(ReadError::TooManyNodes { pos, limit: self.limits.nodes });
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ReadError> {
        match self.pending.take() {
            Some((node, anchor)) => self.place(node, anchor, 1),
            None => Ok(()),
        }
    }

    /// Puts a finished node where it belongs: under a key, into a list, or at the root.
    fn place(&mut self, node: Node, anchor: usize, weight: usize) -> Result<(), ReadError> {
        if anchor != 0 {
            // the copy counts like an alias: anchors around anchors would otherwise cost the square of their depth
            self.alias_nodes += weight;
            if self.alias_nodes > self.limits.alias_nodes {
                return Err(ReadError::AliasBudget { pos: node.pos, limit: self.limits.alias_nodes });
            }
            if let Some(anchored) = self.anchors.get_mut(&anchor) {
                anchored.node = Some((Arc::new(node.clone()), weight));
            }
        }
        let Some(open) = self.stack.last_mut() else {
            if let Some(document) = self.documents.last_mut() {
                document.root = if node.is_null() { None } else { Some(node) };
            }
            return Ok(());
        };
        open.weight += weight;
        match &mut open.node.kind {
            NodeKind::Sequence(elements) => elements.push(node),
            NodeKind::Mapping(entries) => match open.key.take() {
                Some(key) => entries.push((key, node)),
                None => open.key = Some(node),
            },
            _ => {}
        }
        Ok(())
    }

    fn finish(mut self, bom: usize, len: usize) -> (Vec<YamlDocument>, Vec<Comment>) {
        let mut end = len;
        for document in self.documents.iter_mut().rev() {
            let start = document.span.start + bom;
            document.span = start..end;
            end = start;
        }
        if let Some(first) = self.documents.first_mut() {
            first.span.start = 0;
        }
        (self.documents, self.comments)
    }
}

fn tag_text(tag: Option<&Tag>, pos: Pos) -> Result<Option<String>, ReadError> {
    let Some(tag) = tag else { return Ok(None) };
    let text = format!("{}{}", tag.handle(), tag.suffix());
    if text == "!" {
        return Err(ambiguous(pos, "The tag '!' without a name", "quote the value to make it text"));
    }
    Ok(Some(text))
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
