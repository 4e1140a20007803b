//! Text that came from a node: hostile until proven otherwise, and possibly a piece of its configuration.

use std::fmt;

use zeroize::Zeroizing;

/// How much of a node's message is kept, in bytes. A dry run's diff of a whole configuration fits.
const MESSAGE_LIMIT: usize = 1 << 20;

/// How much of a short text (a host name, the name of a condition) is kept, in bytes.
const SHORT_LIMIT: usize = 256;

/// A node's own words. They can quote the configuration, secrets included: `Debug` masks them, there is no
/// `Display`, and who wants to print them redacts first. Control characters are gone, except line breaks and
/// tabs.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct NodeText(Zeroizing<String>);

impl NodeText {
    /// Takes a node's words in: cleaned and cut to 1 MiB.
    pub fn new(raw: &str) -> Self {
        Self(Zeroizing::new(clean(raw, MESSAGE_LIMIT, true)))
    }

    /// The words, unredacted. The caller redacts before they reach a person, a log or Git.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether the node said nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for NodeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeText(<{} bytes withheld>)", self.0.len())
    }
}

/// A short text on one line, as resources hold it.
pub(crate) fn short(raw: &str) -> String {
    clean(raw, SHORT_LIMIT, false)
}

/// Like [`short`]; an empty text is none.
pub(crate) fn some_short(raw: &str) -> Option<String> {
    Some(short(raw)).filter(|text| !text.is_empty())
}

fn clean(raw: &str, limit: usize, lines: bool) -> String {
    let mut out = String::with_capacity(raw.len().min(limit));
    for c in raw.chars() {
        if out.len() + c.len_utf8() > limit {
            break;
        }
        if (lines && matches!(c, '\n' | '\t')) || !(c.is_control() || reorders(c)) {
            out.push(c);
        }
    }
    out
}

/// Characters that change how their neighbours are shown: direction overrides and isolates, line separators,
/// the BOM.
fn reorders(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_never_shows_the_words() {
        let text = NodeText::new("token: abcdef.0123456789");
        assert_eq!(format!("{text:?}"), "NodeText(<24 bytes withheld>)");
        assert_eq!(text.expose(), "token: abcdef.0123456789");
    }

    #[test]
    fn control_characters_and_overrides_go_and_lines_stay() {
        assert_eq!(NodeText::new("a\u{1b}[31mb\r\n\tc\u{202e}d\u{0}").expose(), "a[31mb\n\tcd");
        assert_eq!(short("host\n\u{7f}name"), "hostname");
    }

    #[test]
    fn length_is_bounded_at_a_character() {
        assert_eq!(short(&"é".repeat(300)).len(), 256);
        assert_eq!(NodeText::new(&"x".repeat(2 << 20)).expose().len(), 1 << 20);
    }
}
