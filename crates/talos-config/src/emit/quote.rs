//! How go-yaml writes a string.

use crate::scalar::{Plain, is_timestamp, old_bool, resolve};
use crate::tables::OldQuote;

/// The notations of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quote {
    Plain,
    Single,
    Double,
    Literal,
}

/// Bytes that may stand anywhere in a plain text that begins with one of [`starts_plain`].
static SAFE: [bool; 256] = safe();

const fn safe() -> [bool; 256] {
    let mut table = [false; 256];
    let mut b = 0x21;
    while b < 0x7f {
        table[b] = b != b':' as usize && b != b'#' as usize;
        b += 1;
    }
    table
}

/// Whether no text that begins so is anything but a string, nor needs quotes for its beginning.
fn starts_plain(first: u8) -> bool {
    matches!(first, b'/' | b'_' | b'a'..=b'z' | b'A'..=b'Z')
        && !matches!(first, b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O')
}

/// The common case, decided in one pass: identifiers, paths, images, base64.
fn obviously_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    if !bytes.first().is_some_and(|b| starts_plain(*b)) {
        return false;
    }
    bytes.iter().enumerate().all(|(i, b)| {
        SAFE[usize::from(*b)] || (*b == b':' && bytes.get(i + 1).is_some_and(|n| !matches!(n, b' ' | b'\t')))
    })
}

pub(super) fn printable(c: char) -> bool {
    matches!(c, '\n' | '\u{20}'..='\u{7e}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
}

/// How go-yaml writes a string. `old` also quotes what YAML 1.1 took for booleans and sexagesimal numbers; a value
/// that Talos hands over as a node has no such rule, and none against texts of breaks alone.
pub(crate) fn quote(text: &str, old: Option<OldQuote>) -> Quote {
    if obviously_plain(text) {
        return Quote::Plain;
    }
    if text.contains('\n') {
        let block = (old.is_none() || text.len() >= 2 && text.chars().any(|c| !c.is_whitespace()))
            && !text.ends_with(' ')
            && !blank_before_break(text)
            && text.chars().all(|c| printable(c) || c == '\t');
        return if block { Quote::Literal } else { Quote::Double };
    }
    if let Some(style) = old
        && (old_bool(text).is_some() || text == "<<" || sexagesimal(text))
    {
        return if style == OldQuote::Single { Quote::Single } else { Quote::Double };
    }
    if resolve(text) != Plain::Text || is_timestamp(text) {
        return Quote::Double;
    }
    if plain_fits(text) {
        Quote::Plain
    } else if single_fits(text) {
        Quote::Single
    } else {
        Quote::Double
    }
}

/// Breaks of a line that are printed as they are, beside the line feed.
pub(super) const RAW_BREAKS: [char; 2] = ['\u{2028}', '\u{2029}'];

pub(crate) fn has_raw_break(text: &str) -> bool {
    text.as_bytes().contains(&0xe2) && text.contains(RAW_BREAKS)
}

fn blank_before_break(text: &str) -> bool {
    let raw = || RAW_BREAKS.iter().any(|b| text.contains(&format!(" {b}")));
    text.contains(" \n") || has_raw_break(text) && raw()
}

fn blank_at_break(text: &str) -> bool {
    blank_before_break(text) || RAW_BREAKS.iter().any(|b| text.contains(&format!("{b} ")))
}

pub(super) fn single_fits(text: &str) -> bool {
    text.chars().all(printable) && !text.contains('\n') && !(has_raw_break(text) && blank_at_break(text))
}

pub(super) fn plain_fits(text: &str) -> bool {
    if text.starts_with("---") || text.starts_with("...") || text.starts_with(' ') || text.ends_with(' ') {
        return false;
    }
    let mut before = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let blank_next = chars.peek().is_none_or(|n| matches!(n, ' ' | '\t'));
        let first = before.is_none();
        let refused = match c {
            '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@'
            | '`'
                if first =>
            {
                true
            }
            '-' | '?' if first => blank_next,
            ':' => blank_next,
            '#' => matches!(before, Some(' ')),
            '\u{2028}' | '\u{2029}' => true,
            _ => !printable(c),
        };
        if refused {
            return false;
        }
        before = Some(c);
    }
    true
}

/// `^[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?$`
fn sexagesimal(text: &str) -> bool {
    let rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    let mut parts = rest.split(':');
    let head = parts.next().unwrap_or_default();
    if !head.starts_with(|c: char| c.is_ascii_digit())
        || !head.bytes().all(|b| b.is_ascii_digit() || b == b'_')
    {
        return false;
    }
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return false };
    let minutes = |p: &str| {
        let b = p.as_bytes();
        match b.len() {
            1 => b[0].is_ascii_digit(),
            2 => (b'0'..=b'5').contains(&b[0]) && b[1].is_ascii_digit(),
            _ => false,
        }
    };
    let (last, tail) = last.split_once('.').unwrap_or((last, ""));
    middle.iter().all(|p| minutes(p))
        && minutes(last)
        && tail.bytes().all(|b| b.is_ascii_digit() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_quoted_like_go_yaml() {
        for (text, want) in [
            ("plain text", Quote::Plain),
            ("", Quote::Double),
            ("yes", Quote::Double),
            ("12:30", Quote::Double),
            ("1.5", Quote::Double),
            ("2024-01-02", Quote::Double),
            ("- a", Quote::Single),
            ("-a", Quote::Plain),
            ("a: b", Quote::Single),
            ("a:b", Quote::Plain),
            ("a #b", Quote::Single),
            ("*x", Quote::Single),
            ("a\tb", Quote::Double),
            ("\u{1f600}", Quote::Double),
            ("a\nb", Quote::Literal),
            ("a \nb", Quote::Double),
            ("\n", Quote::Double),
        ] {
            assert_eq!(quote(text, Some(OldQuote::Double)), want, "{text:?}");
        }
        for text in ["yes", "12:30", "<<"] {
            assert_eq!(quote(text, Some(OldQuote::Single)), Quote::Single, "{text:?}");
        }
        assert_eq!(quote("yes", None), Quote::Plain);
    }

    #[test]
    fn the_short_way_agrees_with_the_long_one() {
        let alphabet = [
            "a", "y", "no", "/", "_", ":", ": ", " #", "#", "-", ".", "1", "~", "<<", "Z", "'", "\"", "\t",
            " ", "\u{e9}", "e", "%", "@", "`", "=",
        ];
        for a in alphabet {
            for b in alphabet {
                for c in alphabet {
                    let text = format!("{a}{b}{c}");
                    if obviously_plain(&text) {
                        assert!(plain_fits(&text) && resolve(&text) == Plain::Text, "{text:?}");
                        assert!(old_bool(&text).is_none() && !sexagesimal(&text) && text != "<<", "{text:?}");
                    }
                }
            }
        }
    }
}
