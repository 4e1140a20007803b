//! From bytes to text: encodings, characters that may not stand in YAML, line breaks.

use std::borrow::Cow;

use super::Dialect;
use super::error::{ReadError, Refusal};
use crate::node::Pos;

/// The text of a stream.
pub(super) struct Source<'a> {
    pub text: Cow<'a, str>,
    /// Bytes before the text that belong to its first document: the byte order mark of UTF-8.
    pub skipped: usize,
}

/// Decodes a stream and refuses the characters that YAML does not allow.
pub(super) fn decode(bytes: &[u8], dialect: Dialect) -> Result<Source<'_>, ReadError> {
    let source = match bytes {
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes)?,
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes)?,
        [0xef, 0xbb, 0xbf, rest @ ..] => utf8(rest, 3)?,
        _ => utf8(bytes, 0)?,
    };
    check(&source.text, dialect)?;
    Ok(source)
}

fn utf8(bytes: &[u8], skipped: usize) -> Result<Source<'_>, ReadError> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Source { text: Cow::Borrowed(text), skipped }),
        Err(e) => Err(ReadError::NotUtf8 { offset: skipped + e.valid_up_to() }),
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<Source<'_>, ReadError> {
    let mut text = String::with_capacity(bytes.len());
    let mut offset = 2;
    let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    for c in char::decode_utf16(units) {
        let c = c.map_err(|_| ReadError::NotUtf16 { offset })?;
        offset += 2 * c.len_utf16();
        text.push(c);
    }
    if bytes.len() % 2 == 1 {
        return Err(ReadError::NotUtf16 { offset });
    }
    Ok(Source { text: Cow::Owned(text), skipped: 0 })
}

/// Whether a byte alone may make a character that is refused: a control, or the first byte of one that may be.
const fn suspicious(byte: u8) -> bool {
    matches!(byte, 0..=8 | 11 | 12 | 14..=31 | 0x7f | 0xc2 | 0xef)
}

fn check(text: &str, dialect: Dialect) -> Result<(), ReadError> {
    let mut done = 0;
    for block in text.as_bytes().chunks(64) {
        // without a branch for each byte, so that the compiler can look at many at once
        if block.iter().fold(false, |any, b| any | suspicious(*b)) {
            check_block(text, done, done + block.len(), dialect)?;
        }
        done += block.len();
    }
    Ok(())
}

fn check_block(text: &str, from: usize, to: usize, dialect: Dialect) -> Result<(), ReadError> {
    for at in from..to {
        if !suspicious(text.as_bytes()[at]) {
            continue;
        }
        let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) else { continue };
        let refused = match c {
            '\t' | '\n' | '\r' | '\u{85}' => false,
            '\u{feff}' => {
                return Err(ReadError::Refused { pos: position(text, at), what: Refusal::ByteOrderMark });
            }
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => true,
            '\u{7f}'..='\u{9f}' => dialect == Dialect::Rc3,
            _ => false,
        };
        if refused {
            return Err(ReadError::Character { pos: position(text, at), code: u32::from(c) });
        }
    }
    Ok(())
}

/// The place of a byte, counted as Talos counts.
pub(super) fn position(text: &str, at: usize) -> Pos {
    let bytes = text.as_bytes();
    let (mut line, mut start, mut i) = (1, 0, 0);
    while i < at {
        match line_break(bytes, i) {
            0 => i += 1,
            length => {
                i += length;
                if i <= at {
                    (line, start) = (line + 1, i);
                }
            }
        }
    }
    let column = text.get(start..at).map_or(0, |s| s.chars().count());
    Pos { line, column: u32::try_from(column + 1).unwrap_or(u32::MAX) }
}

/// The bytes of the line break at an offset, or 0 if there is none.
#[inline]
pub(super) fn line_break(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at) {
        Some(b'\n') => 1,
        Some(b'\r') => 1 + usize::from(bytes.get(at + 1) == Some(&b'\n')),
        Some(0xc2) if bytes.get(at + 1) == Some(&0x85) => 2,
        Some(0xe2) if bytes.get(at + 1) == Some(&0x80) && matches!(bytes.get(at + 2), Some(0xa8 | 0xa9)) => 3,
        _ => 0,
    }
}

/// Whether a place is a blank, a tab, a line break or the end.
#[inline]
pub(super) fn ends_word(bytes: &[u8], at: usize) -> bool {
    match bytes.get(at) {
        None | Some(b' ' | b'\t' | b'\n' | b'\r') => true,
        Some(0xc2 | 0xe2) => line_break(bytes, at) > 0,
        _ => false,
    }
}

/// What a line break is in a value: most become a line feed, two stay what they are.
#[inline]
pub(super) fn break_text(text: &str, at: usize, length: usize) -> &str {
    if length == 3 { &text[at..at + 3] } else { "\n" }
}

/// Appends every line break of a stretch of blanks and breaks.
pub(super) fn push_breaks(out: &mut String, text: &str, from: usize, to: usize) {
    let bytes = text.as_bytes();
    let mut i = from;
    while i < to {
        match line_break(bytes, i) {
            0 => i += 1,
            length => {
                out.push_str(break_text(text, i, length));
                i += length;
            }
        }
    }
}

/// Appends what a stretch of blanks and breaks between two lines of a value stands for: one line feed folds into a
/// blank, of several the first is dropped.
pub(super) fn push_folded(out: &mut String, text: &str, from: usize, to: usize) {
    let bytes = text.as_bytes();
    let mut first = from;
    while first < to && line_break(bytes, first) == 0 {
        first += 1;
    }
    let length = line_break(bytes, first);
    if length == 3 {
        out.push_str(break_text(text, first, length));
    }
    let before = out.len();
    push_breaks(out, text, first + length, to);
    if length != 3 && out.len() == before {
        out.push(' ');
    }
}
