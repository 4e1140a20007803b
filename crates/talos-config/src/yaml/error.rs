//! Why a stream cannot be read. Messages name structure and places, never a value.

use thiserror::Error;

use crate::node::Pos;

/// Why a stream cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadError {
    /// The stream is larger than [`Limits::bytes`](crate::Limits::bytes).
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
    /// Begins with the byte order mark of UTF-16 and goes on with something else.
    #[error("Byte {offset} is not UTF-16, with which the file begins; save the file as UTF-8")]
    NotUtf16 {
        /// Offset of the first wrong byte.
        offset: usize,
    },
    /// A control character.
    #[error(
        "{pos}: The character U+{code:04X} cannot stand in YAML; remove it, or write it as an escape in double quotes"
    )]
    Character {
        /// Where.
        pos: Pos,
        /// The character's number.
        code: u32,
    },
    /// Not YAML as Talos reads it.
    #[error("{pos}: {problem}")]
    Syntax {
        /// The place that cannot be read.
        pos: Pos,
        /// What is wrong there.
        problem: Problem,
    },
    /// Something that Talos' library takes, in a way that nobody means.
    #[error("{pos}: {what}")]
    Refused {
        /// Where.
        pos: Pos,
        /// What it is.
        what: Refusal,
    },
    /// Nested deeper than [`Limits::depth`](crate::Limits::depth), aliases followed.
    #[error("{pos}: Mappings and lists are nested deeper than the limit of {limit}; flatten the document")]
    TooDeep {
        /// Where the limit was passed.
        pos: Pos,
        /// Levels allowed.
        limit: usize,
    },
    /// More nodes than [`Limits::nodes`](crate::Limits::nodes).
    #[error("{pos}: The file holds more than {limit} values; split it")]
    TooManyNodes {
        /// Where the limit was passed.
        pos: Pos,
        /// Nodes allowed.
        limit: usize,
    },
    /// Aliases stand for more than [`Limits::alias_nodes`](crate::Limits::alias_nodes).
    #[error("{pos}: The aliases stand for more than {limit} values; write them out or use fewer")]
    AliasBudget {
        /// The alias that passed the limit.
        pos: Pos,
        /// Nodes allowed.
        limit: usize,
    },
}

/// What is refused here although Talos' library takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Refusal {
    /// U+FEFF anywhere but at the beginning.
    #[error(
        "A byte order mark (U+FEFF) inside of the file is refused, since Talos may skip characters of the lines after it; remove it"
    )]
    ByteOrderMark,
    /// `&a [*a]`.
    #[error("An alias inside of its own anchor is refused, since the value would never end; write it out")]
    AliasCycle,
    /// `!%ED%A0%80`.
    #[error("A tag whose escapes are no UTF-8 is refused, since no text can hold it; write another tag")]
    TagNotText,
    /// `[a, {: b}]` on the first line, up to Talos 1.13.
    #[error(
        "An entry without a key at the beginning of brackets is refused, since Talos reads it on some lines only; write the key"
    )]
    NoKeyInFlow,
    /// `[? a]: b`, in Talos 1.12.
    #[error(
        "A list or mapping in brackets that begins with '?' is refused as a key, since Talos 1.12 may lose it; write another key"
    )]
    LostKey,
}

/// What is wrong at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Problem {
    /// A character that begins nothing.
    #[error("No value can begin with this character; put the value into quotes")]
    Start,
    /// A tab before a key, a list or a bracket.
    #[error("A tab cannot indent, nor follow '-' or '?'; use blanks")]
    Tab,
    /// A tab before a further line of an unquoted value.
    #[error("A tab cannot indent a further line of a value; use blanks")]
    TabInPlain,
    /// A tab before the text of a block.
    #[error("A tab cannot stand in the indentation of a block of text; use blanks")]
    TabInBlock,
    /// A key without `:`.
    #[error(
        "A key is expected here, but no ':' follows on its line; add ': ' and a value, or indent the line if it belongs to the value above"
    )]
    NoColon,
    /// `a: b: c`
    #[error(
        "A ':' cannot stand here: the line already has a key, or the key has several lines; quote the value if the ':' belongs to it, or correct the indentation"
    )]
    Colon,
    /// `a: - b`
    #[error("A list cannot begin here; begin it on a line of its own")]
    Entry,
    /// `a: ? b`
    #[error("A '?' key cannot stand here; begin it on a line of its own")]
    QuestionMark,
    /// `|x`
    #[error(
        "Only '+' or '-', a digit and a comment may follow '|' or '>' on its line; move the text to the next line"
    )]
    BlockHeader,
    /// `|0`
    #[error("The indentation of a block of text cannot be 0; write a digit from 1 to 9, or none")]
    BlockZero,
    /// A quote that is not closed.
    #[error("The quoted value that begins here never ends; close the quote")]
    Unclosed,
    /// `---` in quotes.
    #[error("A line of a quoted value cannot begin with '---' or '...'; indent it")]
    MarkerInQuotes,
    /// `"\q"`
    #[error(
        "This escape is not known; write one of \\0 \\a \\b \\t \\n \\v \\f \\r \\e \\\" \\' \\\\ \\N \\_ \\L \\P, \\x and 2, \\u and 4 or \\U and 8 hexadecimal digits, or use single quotes"
    )]
    Escape,
    /// `"\xg"`
    #[error("The escape needs more hexadecimal digits: 2 after \\x, 4 after \\u, 8 after \\U")]
    EscapeDigits,
    /// `"\ud800"`
    #[error("The escape names no character (a half of a surrogate pair, or too large); use \\U and 8 digits")]
    EscapeRange,
    /// `& a`
    #[error(
        "An anchor or alias needs a name of ASCII letters, digits and signs without : , [ ] {{ }}, and a blank after it"
    )]
    AnchorName,
    /// `*a` without `&a`.
    #[error("No anchor of this name stands above; define it with '&', or write the value out")]
    AnchorUnknown,
    /// `!!`
    #[error("The tag has no name; write one after the '!', or leave the tag out")]
    TagName,
    /// `!a{`
    #[error("A tag ends with a blank or the end of the line; remove what cannot stand in it")]
    TagEnd,
    /// `!<a`
    #[error("The tag that begins with '!<' needs a '>'; add it")]
    TagClose,
    /// `!%zz`
    #[error("A '%' in a tag needs two hexadecimal digits, and the bytes must be UTF-8")]
    TagEscape,
    /// `!e!a` without `%TAG !e!`.
    #[error("The tag uses a handle that no %TAG directive of this document defines; define it")]
    TagHandle,
    /// `%FOO`
    #[error("A '%' at the beginning of a line begins a directive; only %YAML and %TAG are known")]
    Directive,
    /// `%YAML 1`
    #[error("The %YAML directive needs a version; write '%YAML 1.1', or leave it out")]
    Version,
    /// `%YAML 1.2`
    #[error("Talos reads YAML 1.1 only; remove the %YAML directive")]
    OtherVersion,
    /// `%TAG a`
    #[error("The %TAG directive needs a handle and a prefix; write '%TAG !handle! prefix'")]
    TagDirective,
    /// Something after a directive.
    #[error("Nothing but a comment may follow the directive on its line")]
    DirectiveEnd,
    /// The same directive twice.
    #[error("The directive stands here for the second time; remove it")]
    DirectiveTwice,
    /// Something after a document.
    #[error(
        "The document is already complete; remove what stands here, correct the indentation, or begin a new document with '---' (directives need '...' before them)"
    )]
    DocumentStart,
    /// `[` or `{` without its end.
    #[error("The bracket that is opened here is not closed; write ']' or '}}' behind the last value")]
    Bracket,
    /// No value.
    #[error("A value is expected here; write one")]
    Content,
    /// Something in a list that is no element.
    #[error("The list goes on with '-' in the same column; remove what stands here, or correct the indentation")]
    NextEntry,
    /// Something in a mapping that is no key.
    #[error(
        "A key is expected here, in the same column as the keys above; remove what stands here, correct the indentation, or quote the value above"
    )]
    NextKey,
    /// Something in `[ ]`.
    #[error("A ',' or a ']' is expected here; add it, or quote the value")]
    NextElement,
    /// Something in `{ }`.
    #[error("A ',' or a '}}' is expected here; add it, or quote the value")]
    NextPair,
}

impl ReadError {
    /// Where in the stream, if the error has a place.
    pub fn pos(&self) -> Option<Pos> {
        match self {
            ReadError::TooLarge { .. } | ReadError::NotUtf8 { .. } | ReadError::NotUtf16 { .. } => None,
            ReadError::Character { pos, .. }
            | ReadError::Syntax { pos, .. }
            | ReadError::Refused { pos, .. }
            | ReadError::TooDeep { pos, .. }
            | ReadError::TooManyNodes { pos, .. }
            | ReadError::AliasBudget { pos, .. } => Some(*pos),
        }
    }
}
