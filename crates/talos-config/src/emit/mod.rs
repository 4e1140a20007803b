//! Printing YAML scalars as go-yaml v4 does with comments off.

mod order;
mod quote;

pub(crate) use order::sorted;
pub(crate) use quote::{Quote, has_raw_break, quote};

use crate::tables::{OldQuote, Switches};
use quote::{RAW_BREAKS, plain_fits, printable, single_fits};

/// The text that is being printed.
pub(crate) struct Writer {
    pub out: String,
    /// Quotes around what YAML 1.1 took for something else.
    old: OldQuote,
    /// Whether a literal that begins with a line break gets an indentation hint.
    break_hint: bool,
}

const BLANKS: &str = "                                                                ";

impl Writer {
    /// Prints behind a text by a minor's rules.
    pub fn new(switches: &Switches, out: String) -> Self {
        Writer { out, old: switches.old_quote, break_hint: switches.break_hint }
    }

    /// How a string is written.
    pub fn quote(&self, text: &str) -> Quote {
        quote(text, Some(self.old))
    }

    pub fn spaces(&mut self, mut count: usize) {
        while count > BLANKS.len() {
            self.out.push_str(BLANKS);
            count -= BLANKS.len();
        }
        self.out.push_str(&BLANKS[..count]);
    }

    /// A string in quotes that holds breaks of lines: what follows one stands at the column.
    pub fn single_lines(&mut self, text: &str, column: usize) {
        self.out.push('\'');
        let mut after_break = false;
        for c in text.chars() {
            if after_break && !RAW_BREAKS.contains(&c) {
                self.spaces(column);
            }
            after_break = RAW_BREAKS.contains(&c);
            self.out.push(c);
            if c == '\'' {
                self.out.push(c);
            }
        }
        self.out.push('\'');
    }

    /// A string on one line.
    pub fn scalar(&mut self, text: &str, style: Quote) {
        match style {
            Quote::Plain => self.out.push_str(text),
            Quote::Single => {
                self.out.push('\'');
                for (i, part) in text.split('\'').enumerate() {
                    if i > 0 {
                        self.out.push_str("''");
                    }
                    self.out.push_str(part);
                }
                self.out.push('\'');
            }
            Quote::Double | Quote::Literal => self.double(text),
        }
    }

    /// A key, without its colon.
    pub fn key(&mut self, key: &str) {
        match self.quote(key) {
            Quote::Literal => self.scalar(key, Quote::Double),
            style => self.scalar(key, style),
        }
    }

    /// A tagged text.
    pub fn tagged(&mut self, tag: &str, text: &str) {
        self.out.push_str(tag);
        self.out.push(' ');
        let style = if plain_fits(text) && !text.is_empty() {
            Quote::Plain
        } else if single_fits(text) {
            Quote::Single
        } else {
            Quote::Double
        };
        self.scalar(text, style);
    }

    fn double(&mut self, text: &str) {
        let all = text.starts_with('\u{feff}');
        self.out.push('"');
        for c in text.chars() {
            let short = match c {
                '\0' => Some('0'),
                '\u{7}' => Some('a'),
                '\u{8}' => Some('b'),
                '\t' => Some('t'),
                '\n' => Some('n'),
                '\u{b}' => Some('v'),
                '\u{c}' => Some('f'),
                '\r' => Some('r'),
                '\u{1b}' => Some('e'),
                '"' => Some('"'),
                '\\' => Some('\\'),
                '\u{85}' => Some('N'),
                '\u{a0}' if all => Some('_'),
                '\u{2028}' => Some('L'),
                '\u{2029}' => Some('P'),
                _ => None,
            };
            match short {
                Some(s) => self.out.extend(['\\', s]),
                None if printable(c) && !all => self.out.push(c),
                None => {
                    let code = c as u32;
                    let escaped = match code {
                        0..=0xff => format!("\\x{code:02X}"),
                        0x100..=0xffff => format!("\\u{code:04X}"),
                        _ => format!("\\U{code:08X}"),
                    };
                    self.out.push_str(&escaped);
                }
            }
        }
        self.out.push('"');
    }

    /// A block, with its line break. Its lines stand at `column`.
    pub fn literal(&mut self, text: &str, column: usize) {
        self.out.push('|');
        let breaks = ['\n', RAW_BREAKS[0], RAW_BREAKS[1]];
        if text.starts_with(' ') || self.break_hint && text.starts_with(breaks) {
            self.out.push('4');
        }
        let whole = text.trim_end_matches(breaks);
        match text[whole.len()..].chars().count() {
            0 => self.out.push('-'),
            1 if !whole.is_empty() => {}
            _ => self.out.push('+'),
        }
        self.out.push('\n');
        let mut rest = text;
        while let Some(i) = rest.find(breaks) {
            let end = i + rest[i..].chars().next().map_or(1, char::len_utf8);
            self.line(&rest[..i], column);
            self.out.push_str(&rest[i..end]);
            rest = &rest[end..];
        }
        if !rest.is_empty() {
            self.line(rest, column);
            self.out.push('\n');
        }
    }

    /// A line of a block, without its break.
    fn line(&mut self, line: &str, column: usize) {
        if !line.is_empty() {
            self.spaces(column);
            self.out.push_str(line);
        }
    }
}

/// Whether go-yaml may print the text so that it reads as another one: it begins with a blank, a tab or a line
/// break in a block, or holds a line break that is printed raw.
pub(crate) fn risky(text: &str, style: Quote) -> bool {
    let raw_break = || has_raw_break(text);
    match style {
        Quote::Literal => text.starts_with([' ', '\t', '\n']) || raw_break(),
        _ => raw_break(),
    }
}
