//! What the tests of the reader share: trees as `fixtures/yamltree` prints them, and documents.

#![allow(dead_code)]

pub mod generate;

use std::fmt::Write as _;

use talos_config::{Dialect, Limits, Node, NodeKind, ReadError, Style, read_stream};

/// The release candidates of go-yaml, each with the dialect that must read like it.
pub const CANDIDATES: [(u8, Dialect); 4] =
    [(3, Dialect::Rc3), (4, Dialect::Rc4), (5, Dialect::Rc5), (6, Dialect::Rc5)];

/// What a comparison said.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    Equal,
    BothRefuse,
    /// Refused here only, in a class that is allowed to be.
    Named(&'static str),
    WronglyAccepted,
    WronglyRefused(ReadError),
    OtherReading(String),
}

/// The refusals of what the library takes, and why each is right.
fn class(error: &ReadError) -> Option<&'static str> {
    Some(match error {
        ReadError::Refused { what, .. } => match what {
            // the library skips the first character of every line while such a mark leads its buffer
            talos_config::yaml::Refusal::ByteOrderMark => "byte order mark inside",
            // a tree without end; the typed decoding refuses it
            talos_config::yaml::Refusal::AliasCycle => "alias cycle",
            // bytes that are no text
            talos_config::yaml::Refusal::TagNotText => "tag is no text",
            // rc.4 reads it on the first line only
            talos_config::yaml::Refusal::NoKeyInFlow => "no key in brackets",
            // rc.3 makes the key a value, or refuses
            talos_config::yaml::Refusal::LostKey => "key of brackets lost",
        },
        // what a few bytes may cost is bounded
        ReadError::TooDeep { .. } => "too deep",
        ReadError::TooManyNodes { .. } => "too many nodes",
        ReadError::AliasBudget { .. } => "alias budget",
        ReadError::TooLarge { .. } => "too large",
        _ => return None,
    })
}

/// Compares a document with the library's answer.
pub fn compare(document: &[u8], dialect: Dialect, limits: &Limits, answer: &str) -> Outcome {
    match (read_stream(document, dialect, limits), answer.strip_prefix('+')) {
        (Ok(documents), Some(theirs)) => match dump(document, &documents, theirs) {
            Ok(ours) if ours == theirs => Outcome::Equal,
            Ok(ours) if same_but_absent(&ours, theirs) => Outcome::Named("place of an absent value"),
            Ok(ours) => Outcome::OtherReading(ours),
            Err(broken) => Outcome::OtherReading(broken),
        },
        (Ok(_), None) => Outcome::WronglyAccepted,
        (Err(_), None) => Outcome::BothRefuse,
        (Err(error), Some(_)) => match class(&error) {
            Some(class) => Outcome::Named(class),
            None => Outcome::WronglyRefused(error),
        },
    }
}

/// Whether two trees differ in nothing but the places of values that are not there. For some of them rc.3 gives the place
/// of a token whose memory it has already used anew (`[a: ]`), and every version puts some at a comment far below.
fn same_but_absent(ours: &str, theirs: &str) -> bool {
    let absent = |line: &str| line.strip_prefix("=. ").is_some_and(|rest| rest.ends_with("   "));
    ours.lines().count() == theirs.lines().count()
        && ours.lines().zip(theirs.lines()).all(|(a, b)| a == b || (absent(a) && absent(b)))
}

/// The text that spans and places count in.
pub fn decoded(bytes: &[u8]) -> String {
    let units = |rest: &[u8], unit: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = rest.chunks_exact(2).map(|p| unit([p[0], p[1]])).collect();
        String::from_utf16(&units).unwrap()
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => units(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => units(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8(rest.to_vec()).unwrap(),
        _ => String::from_utf8(bytes.to_vec()).unwrap(),
    }
}

/// Line and column of every byte.
fn places(text: &str) -> Vec<(u32, u32)> {
    let mut places = Vec::with_capacity(text.len() + 1);
    let (mut line, mut column) = (1, 1);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        places.extend(std::iter::repeat_n((line, column), c.len_utf8()));
        let cut = c == '\r' && chars.peek() == Some(&'\n');
        if matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}') && !cut {
            (line, column) = (line + 1, 1);
        } else {
            column += 1;
        }
    }
    places.push((line, column));
    places
}

struct Dump<'a> {
    text: &'a str,
    places: Vec<(u32, u32)>,
    out: String,
}

/// Documents as the library's answer; an error says what is wrong with a span. Roots that are null are not kept, so
/// that theirs stand for them.
fn dump(bytes: &[u8], documents: &[talos_config::YamlDocument], theirs: &str) -> Result<String, String> {
    let text = decoded(bytes);
    let mut dump = Dump { text: &text, places: places(&text), out: String::new() };
    let mut lines = theirs.lines();
    for document in documents {
        let _ = writeln!(dump.out, "D. {} {}   ", document.pos.line, document.pos.column);
        let _ = lines.by_ref().find(|l| l.starts_with("D.") && l.contains(' '));
        match &document.root {
            Some(root) => dump.node(root)?,
            None => match lines.next() {
                Some(line) if null(line) => dump.out.extend([line, "\n"]),
                line => return Err(format!("our root is null, theirs is {line:?}")),
            },
        }
        dump.out.push_str("]\n");
    }
    Ok(dump.out)
}

fn null(line: &str) -> bool {
    let parts: Vec<&str> = line.split(' ').collect();
    match parts[..] {
        ["=.", _, _, _, "", value] => matches!(value, "" | "~" | "null" | "Null" | "NULL"),
        [_, _, _, _, "!!null", _] => true,
        [kind, ..] => kind == "*.",
        _ => false,
    }
}

fn escape(out: &mut String, text: &str) {
    out.push(' ');
    for c in text.chars() {
        if c <= ' ' || c == '\\' || c == '\u{7f}' {
            let _ = write!(out, "\\{:02x}", c as u32);
        } else {
            out.push(c);
        }
    }
}

impl Dump<'_> {
    fn node(&mut self, node: &Node) -> Result<(), String> {
        self.check_span(node)?;
        let (kind, style, value) = match &node.kind {
            NodeKind::Mapping(_) => ('M', '.', ""),
            NodeKind::Sequence(_) => ('S', '.', ""),
            NodeKind::Alias { name, .. } => ('*', '.', name.as_str()),
            NodeKind::Scalar { text, style } => (
                '=',
                match style {
                    Style::Plain => '.',
                    Style::SingleQuoted => '\'',
                    Style::DoubleQuoted => '"',
                    Style::Literal => '|',
                    Style::Folded => '>',
                },
                text.as_str(),
            ),
        };
        let pos = (node.pos.line, node.pos.column);
        // the library counts from the tag or the anchor on
        let (line, column) =
            if node.span.start == node.span.body { pos } else { self.places[node.span.start as usize] };
        let _ = write!(self.out, "{kind}{style} {line} {column}");
        escape(&mut self.out, node.anchor.as_deref().unwrap_or(""));
        let tag = node.tag.as_deref().unwrap_or("");
        match tag.strip_prefix("tag:yaml.org,2002:") {
            Some(rest) => escape(&mut self.out, &format!("!!{rest}")),
            None => escape(&mut self.out, tag),
        }
        escape(&mut self.out, value);
        self.out.push('\n');
        match &node.kind {
            NodeKind::Mapping(entries) => {
                for (key, value) in entries {
                    self.inside(node, key)?;
                    self.inside(node, value)?;
                }
                self.out.push_str("]\n");
            }
            NodeKind::Sequence(elements) => {
                for element in elements {
                    self.inside(node, element)?;
                }
                self.out.push_str("]\n");
            }
            _ => {}
        }
        Ok(())
    }

    fn inside(&mut self, outer: &Node, node: &Node) -> Result<(), String> {
        // an empty value may stand where the next thing begins
        if node.span.start != node.span.end
            && !(outer.span.body <= node.span.start && node.span.end <= outer.span.end)
        {
            return Err(format!("{:?} is not inside of {:?}", node.span, outer.span));
        }
        self.node(node)
    }

    fn check_span(&self, node: &Node) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("{what}: {:?} at {}", node.span, node.pos));
        let (start, body, end) = (node.span.start as usize, node.span.body as usize, node.span.end as usize);
        if !(start <= body && body <= end && end <= self.text.len()) {
            return wrong("a span is out of order");
        }
        // a value that is not there may have its place at a comment
        if start < end && body < self.text.len() && self.places[body] != (node.pos.line, node.pos.column) {
            return wrong("a span and its place differ");
        }
        let Some(source) = self.text.get(body..end) else { return wrong("a span cuts a character") };
        let fits = match &node.kind {
            NodeKind::Scalar { text, style: Style::Plain } => {
                source == text || source.contains(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'])
            }
            NodeKind::Scalar { style: Style::SingleQuoted, .. } => {
                source.len() > 1 && source.starts_with('\'') && source.ends_with('\'')
            }
            NodeKind::Scalar { style: Style::DoubleQuoted, .. } => {
                source.len() > 1 && source.starts_with('"') && source.ends_with('"')
            }
            NodeKind::Scalar { style: Style::Literal, .. } => source.starts_with('|'),
            NodeKind::Scalar { style: Style::Folded, .. } => source.starts_with('>'),
            NodeKind::Alias { name, .. } => source.strip_prefix('*') == Some(name),
            _ => true,
        };
        if fits { Ok(()) } else { wrong("a span is not the node's source") }
    }
}
