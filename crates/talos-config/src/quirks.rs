//! What YAML 1.1, by which Talos reads, takes in another sense than YAML 1.2 or not at all: refused here.

use crate::node::Pos;
use crate::reader::ReadError;

/// Refuses control characters, and the line breaks of YAML 1.1 that YAML 1.2 takes for text.
pub(crate) fn check_characters(text: &str) -> Result<(), ReadError> {
    let mut pos = Pos { line: 1, column: 1 };
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' => pos = Pos { line: pos.line + 1, column: 1 },
            '\r' if chars.peek() == Some(&'\n') => {}
            '\r' => pos = Pos { line: pos.line + 1, column: 1 },
            '\t' => pos.column += 1,
            '\u{0}'..='\u{1f}'
            | '\u{85}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{feff}'
            | '\u{fffe}'
            | '\u{ffff}' => return Err(ReadError::Character { pos, code: c as u32 }),
            _ => pos.column += 1,
        }
    }
    Ok(())
}

/// Refuses plain scalars that YAML 1.1 cuts elsewhere: around `?` and `:` in flow collections, and at tabs that
/// indent a further line. `after` is the text that follows.
pub(crate) fn check_plain(raw: &str, after: &str, flow: bool, pos: Pos) -> Result<(), ReadError> {
    if raw.lines().skip(1).any(|l| l[..l.len() - l.trim_start().len()].contains('\t')) {
        return Err(ambiguous(pos, "A tab that indents a further line of a value", "indent with spaces"));
    }
    if !flow || raw.is_empty() {
        return Ok(());
    }
    let mut next = after.chars();
    if next.next() == Some(':') && next.next().is_some_and(|c| ",[]{}".contains(c)) {
        return Err(ambiguous(pos, "A key directly before ':' and a bracket", "write a blank after ':'"));
    }
    if raw.starts_with(':')
        || raw.ends_with('?')
        || raw.contains("? ")
        || raw.contains("?\t")
        || raw.contains("?\n")
    {
        return Err(ambiguous(
            pos,
            "An unquoted value with ':' in front or '?' before a blank in a flow collection",
            "quote it",
        ));
    }
    Ok(())
}

/// Refuses a blank line or a comment that is indented with a tab right after a scalar: YAML 1.1 still takes it
/// for a line of the scalar.
pub(crate) fn check_after(after: &str, pos: Pos) -> Result<(), ReadError> {
    for line in after.lines() {
        let text = line.trim_start();
        if line[..line.len() - text.len()].contains('\t') && (text.is_empty() || text.starts_with('#')) {
            return Err(ambiguous(
                pos,
                "A tab in a blank line or before a comment after this value",
                "use spaces",
            ));
        }
        if !text.is_empty() {
            break;
        }
    }
    Ok(())
}

/// Refuses block scalars with a tab where YAML 1.1 wants spaces.
pub(crate) fn check_block(raw: &str, pos: Pos) -> Result<(), ReadError> {
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let lines = || raw.lines().skip(1);
    let least = lines().filter(|l| !l.trim().is_empty()).map(indent).min().unwrap_or(usize::MAX);
    if lines().any(|l| indent(l) < least && l.trim_start_matches(' ').starts_with('\t')) {
        return Err(ambiguous(pos, "A tab in the indentation of a block of text", "indent with spaces"));
    }
    Ok(())
}

/// Refuses the escapes of JSON that YAML 1.1 does not have.
pub(crate) fn check_escapes(raw: &str, pos: Pos) -> Result<(), ReadError> {
    let mut chars = raw.char_indices();
    while let Some((_, c)) = chars.next() {
        if c != '\\' {
            continue;
        }
        match chars.next() {
            Some((_, '/')) => return Err(ambiguous(pos, "The escape '\\/'", "write '/' alone")),
            Some((i, 'u')) => {
                let code = raw.get(i + 1..i + 5).and_then(|hex| u32::from_str_radix(hex, 16).ok());
                if code.is_some_and(|c| (0xd800..0xe000).contains(&c)) {
                    return Err(ambiguous(
                        pos,
                        "An escaped surrogate pair",
                        "write the character, or \\U and 8 digits",
                    ));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// An error for what YAML 1.1 and 1.2 read differently.
pub(crate) fn ambiguous(pos: Pos, construct: &'static str, way_out: &'static str) -> ReadError {
    ReadError::Ambiguous { pos, construct, way_out }
}
