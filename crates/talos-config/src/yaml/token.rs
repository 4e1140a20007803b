//! The tokens between the scanner and the tree.

use std::borrow::Cow;

use crate::node::{Pos, Style};

/// A place in the text: byte, line and column, all from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    pub at: u32,
    pub line: u32,
    pub column: u32,
}

impl Mark {
    pub fn pos(self) -> Pos {
        Pos { line: self.line + 1, column: self.column + 1 }
    }

    /// The place some ASCII characters further on the same line.
    pub fn after(self, count: u32) -> Mark {
        Mark { at: self.at + count, line: self.line, column: self.column + count }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tok<'a> {
    StreamEnd,
    DocumentStart,
    DocumentEnd,
    /// `%YAML`; whether it is 1.1.
    Version(bool),
    /// `%TAG`
    TagDirective(Box<Tag<'a>>),
    BlockSequence,
    BlockMapping,
    BlockEnd,
    FlowSequence,
    FlowMapping,
    FlowSequenceEnd,
    FlowMappingEnd,
    /// `-`
    Entry,
    /// `,`
    Comma,
    Key,
    Value,
    Alias(&'a str),
    Anchor(&'a str),
    Tag(Box<Tag<'a>>),
    Scalar {
        text: Cow<'a, str>,
        style: Style,
    },
}

/// A tag, or the handle and the prefix of a directive. Without a handle, the rest is the whole tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tag<'a> {
    pub handle: &'a str,
    pub rest: Cow<'a, str>,
}

/// What stands before a token that turned out to begin a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Before {
    #[default]
    Nothing,
    Key,
    MappingAndKey,
}

#[derive(Clone, Debug)]
pub(super) struct Token<'a> {
    pub tok: Tok<'a>,
    pub start: Mark,
    /// The byte after the token.
    pub end: u32,
    pub before: Before,
}

/// A token without its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    StreamEnd,
    DocumentStart,
    DocumentEnd,
    Directive,
    BlockSequence,
    BlockMapping,
    BlockEnd,
    FlowSequence,
    FlowMapping,
    FlowSequenceEnd,
    FlowMappingEnd,
    Entry,
    Comma,
    Key,
    Value,
    Alias,
    Property,
    Scalar,
}

pub(super) fn kind(token: &Token<'_>) -> Kind {
    match token.before {
        Before::MappingAndKey => return Kind::BlockMapping,
        Before::Key => return Kind::Key,
        Before::Nothing => {}
    }
    match token.tok {
        Tok::StreamEnd => Kind::StreamEnd,
        Tok::DocumentStart => Kind::DocumentStart,
        Tok::DocumentEnd => Kind::DocumentEnd,
        Tok::Version(_) | Tok::TagDirective(_) => Kind::Directive,
        Tok::BlockSequence => Kind::BlockSequence,
        Tok::BlockMapping => Kind::BlockMapping,
        Tok::BlockEnd => Kind::BlockEnd,
        Tok::FlowSequence => Kind::FlowSequence,
        Tok::FlowMapping => Kind::FlowMapping,
        Tok::FlowSequenceEnd => Kind::FlowSequenceEnd,
        Tok::FlowMappingEnd => Kind::FlowMappingEnd,
        Tok::Entry => Kind::Entry,
        Tok::Comma => Kind::Comma,
        Tok::Key => Kind::Key,
        Tok::Value => Kind::Value,
        Tok::Alias(_) => Kind::Alias,
        Tok::Anchor(_) | Tok::Tag(_) => Kind::Property,
        Tok::Scalar { .. } => Kind::Scalar,
    }
}
