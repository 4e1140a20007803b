//! The source line of a message, without values.

use super::Dialect;
use super::source::{decode, line_break};
use crate::node::Pos;

/// Keys and columns beyond this are not shown.
const WIDEST: usize = 100;

/// The line of a place with a caret below it, for messages.
///
/// Only structure is shown: the indentation, the `-`, `?`, `[` and `{` that lead the line, and a plain `key:` behind
/// them. Everything else is one `…`, since it may be a secret: values, comments, and lines that look like no entry.
/// The caret stands below the place, or below the `…` if the place is hidden in it. Empty if there is no such line.
pub fn excerpt(bytes: &[u8], pos: Pos) -> String {
    // a line can be shown although the stream cannot be read
    let text = match decode(bytes, Dialect::default()) {
        Ok(source) => source.text.into_owned(),
        Err(_) => String::from_utf8_lossy(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)).into_owned(),
    };
    let Some(line) = line_of(&text, pos.line) else { return String::new() };
    let (shown, hidden) = masked(line);
    let number = pos.line.to_string();
    let width = shown.chars().count();
    let column = (pos.column.max(1) as usize - 1).min(width);
    let mask = if hidden { "…" } else { "" };
    // tabs keep their width, so that the caret stands below what it means
    let under: String = shown.chars().take(column).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    format!("{number} | {shown}{mask}\n{} | {under}^", " ".repeat(number.len()))
}

fn line_of(text: &str, number: u32) -> Option<&str> {
    let bytes = text.as_bytes();
    let (mut line, mut start, mut i) = (1, 0, 0);
    while i < bytes.len() {
        match line_break(bytes, i) {
            0 => i += 1,
            length => {
                if line == number {
                    return text.get(start..i);
                }
                i += length;
                (line, start) = (line + 1, i);
            }
        }
    }
    if line == number { text.get(start..) } else { None }
}

/// The part of a line that may be shown, and whether there is more.
fn masked(line: &str) -> (&str, bool) {
    let bytes = line.as_bytes();
    let mut at = 0;
    loop {
        match bytes.get(at) {
            Some(b' ' | b'\t' | b'[' | b'{') => at += 1,
            Some(b'-' | b'?') if matches!(bytes.get(at + 1), None | Some(b' ' | b'\t')) => at += 1,
            _ => break,
        }
    }
    let key = bytes[at..].iter().take_while(|b| b.is_ascii_alphanumeric() || b"_-./$".contains(b)).count();
    // `:` must end a key: the text of a block, or of a value over several lines, seldom looks so
    if key > 0
        && bytes.get(at + key) == Some(&b':')
        && matches!(bytes.get(at + key + 1), None | Some(b' ' | b'\t'))
    {
        at += key + 1;
        at += bytes[at..].iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
    }
    let at = at.min(WIDEST);
    (line.get(..at).unwrap_or(""), !line[at.min(line.len())..].trim().is_empty())
}
