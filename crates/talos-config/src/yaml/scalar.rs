//! Scalars on one or more lines, with and without quotes.

use std::borrow::Cow;

use super::Dialect;
use super::error::Problem;
use super::error::ReadError;
use super::scan::{Scanner, syntax};
use super::source::{ends_word, line_break, push_breaks, push_folded};
use super::token::{Mark, Tok};
use crate::node::Style;

type Result<T> = std::result::Result<T, ReadError>;

/// Bytes after which an unquoted value may end, or that are counted in another way.
const STOP_BLOCK: u8 = 1;
const STOP_FLOW: u8 = 2;
const STOP_QUOTED: u8 = 4;

static STOPS: [u8; 256] = stops();

const fn stops() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            0 | b'\n' | b'\r' | 0x80..=0xff => STOP_BLOCK | STOP_FLOW | STOP_QUOTED,
            b' ' | b'\t' | b':' => STOP_BLOCK | STOP_FLOW,
            b',' | b'[' | b']' | b'{' | b'}' | b'?' => STOP_FLOW,
            b'\'' | b'"' | b'\\' => STOP_QUOTED,
            _ => 0,
        };
        byte += 1;
    }
    table
}

/// The text of a scalar: borrowed while it is one piece of the source.
struct Pieces<'a> {
    text: &'a str,
    from: usize,
    to: usize,
    owned: Option<String>,
}

impl<'a> Pieces<'a> {
    fn new(text: &'a str, at: usize) -> Self {
        Pieces { text, from: at, to: at, owned: None }
    }

    fn owned(&mut self) -> &mut String {
        let first = &self.text[self.from..self.to];
        self.owned.get_or_insert_with(|| first.to_owned())
    }

    /// Appends a piece of the source.
    fn push(&mut self, from: usize, to: usize) {
        if from == to {
            return;
        }
        match &mut self.owned {
            Some(owned) => owned.push_str(&self.text[from..to]),
            None if self.from == self.to => (self.from, self.to) = (from, to),
            None => {
                let piece = &self.text[from..to];
                self.owned().push_str(piece);
            }
        }
    }

    fn fold(&mut self, from: usize, to: usize) {
        let text = self.text;
        push_folded(self.owned(), text, from, to);
    }

    fn finish(self) -> Cow<'a, str> {
        match self.owned {
            Some(owned) => Cow::Owned(owned),
            None => Cow::Borrowed(&self.text[self.from..self.to]),
        }
    }
}

impl<'a> Scanner<'a> {
    pub(super) fn scan_plain(&mut self) -> Result<()> {
        let start = self.mark();
        let indent = self.indent + 1;
        let mut pieces = Pieces::new(self.text, self.at);
        let mut end = self.at;
        let mut gap = None;
        loop {
            if self.document_marker() || self.byte(0) == b'#' {
                break;
            }
            let from = self.at;
            let to = self.plain_line(from);
            if to > from {
                if let Some(gap) = gap.take() {
                    pieces.fold(end, gap);
                }
                pieces.push(from, to);
                self.newlines = 0;
                end = to;
            }
            if self.break_here() == 0 {
                break;
            }
            self.plain_breaks(indent)?;
            gap = Some(self.at);
            if !self.flow() && i64::from(self.column()) < indent {
                break;
            }
        }
        if gap.is_some() {
            // the scanner stands at the beginning of a line
            self.key_allowed = true;
            self.broken = true;
        }
        let tok = Tok::Scalar { text: pieces.finish(), style: Style::Plain };
        self.push_until(tok, start, end);
        Ok(())
    }

    /// Goes over the rest of a line of an unquoted value and the blanks after it; gives the end of the text.
    fn plain_line(&mut self, from: usize) -> usize {
        let stop = if self.flow() { STOP_FLOW } else { STOP_BLOCK };
        let mut end = from;
        loop {
            let mut at = self.at;
            while at < self.bytes.len() && STOPS[usize::from(self.bytes[at])] & stop == 0 {
                at += 1;
            }
            if at > self.at {
                end = at;
                self.at = at;
            }
            match self.byte(0) {
                b' ' | b'\t' => {
                    self.skip_blanks();
                    if self.byte(0) == b'#' {
                        return end;
                    }
                }
                0 | b'\n' | b'\r' => return end,
                b':' | b'?' | b',' | b'[' | b']' | b'{' | b'}' => {
                    if self.ends_plain() {
                        return end;
                    }
                    self.at += 1;
                    end = self.at;
                }
                _ => {
                    if self.break_here() > 0 {
                        return end;
                    }
                    self.advance();
                    end = self.at;
                }
            }
        }
    }

    /// Whether the sign here ends an unquoted value.
    fn ends_plain(&self) -> bool {
        let flow = self.flow();
        match self.byte(0) {
            b':' => {
                ends_word(self.bytes, self.at + 1)
                    || (flow && self.dialect >= Dialect::Rc5 && matches!(self.byte(1), b',' | b']' | b'}'))
            }
            b'?' => flow && ends_word(self.bytes, self.at + 1),
            _ => flow,
        }
    }

    /// Goes over line breaks and the indentation after them.
    fn plain_breaks(&mut self, indent: i64) -> Result<()> {
        loop {
            match self.byte(0) {
                b' ' => self.at += 1,
                // the first byte is a line break, so that this is an indentation
                b'\t' if i64::from(self.column()) < indent => return self.error(Problem::TabInPlain),
                b'\t' => self.at += 1,
                _ => match self.break_here() {
                    0 => return Ok(()),
                    length => self.newline(length),
                },
            }
        }
    }

    /// Pushes a token that ended before this place.
    pub(super) fn push_until(&mut self, tok: Tok<'a>, start: Mark, end: usize) {
        let at = std::mem::replace(&mut self.at, end);
        self.push(tok, start);
        self.at = at;
    }

    pub(super) fn scan_quoted(&mut self, quote: u8) -> Result<()> {
        let start = self.mark();
        self.at += 1;
        let mut pieces = Pieces::new(self.text, self.at);
        let mut from = self.at;
        loop {
            if self.document_marker() {
                return self.error(Problem::MarkerInQuotes);
            }
            let at = self.at;
            let mut i = at;
            while i < self.bytes.len() && STOPS[usize::from(self.bytes[i])] & STOP_QUOTED == 0 {
                i += 1;
            }
            self.at = i;
            let byte = self.byte(0);
            match byte {
                0 if self.at >= self.bytes.len() => return Err(syntax(start, Problem::Unclosed)),
                b'\'' | b'"' if byte == quote => {
                    pieces.push(from, self.at);
                    self.at += 1;
                    if quote == b'"' || self.byte(0) != b'\'' {
                        break;
                    }
                    // the second of two quotes is text
                    from = self.at;
                    self.at += 1;
                }
                b'\\' if quote == b'"' => {
                    pieces.push(from, self.at);
                    self.escape(&mut pieces)?;
                    from = self.at;
                }
                _ => match self.break_here() {
                    0 => self.advance(),
                    _ => {
                        let line = &self.bytes[from..self.at];
                        let blanks = line.iter().rev().take_while(|b| matches!(b, b' ' | b'\t')).count();
                        pieces.push(from, self.at - blanks);
                        let gap = self.at;
                        self.quoted_breaks();
                        pieces.fold(gap, self.at);
                        from = self.at;
                    }
                },
            }
        }
        self.newlines = 0;
        let style = if quote == b'"' { Style::DoubleQuoted } else { Style::SingleQuoted };
        self.push(Tok::Scalar { text: pieces.finish(), style }, start);
        Ok(())
    }

    /// Goes over blanks and line breaks inside of quotes.
    fn quoted_breaks(&mut self) {
        loop {
            self.skip_blanks();
            match self.break_here() {
                0 => return,
                length => self.newline(length),
            }
        }
    }

    fn escape(&mut self, pieces: &mut Pieces<'a>) -> Result<()> {
        let broken = line_break(self.bytes, self.at + 1);
        if broken > 0 {
            self.at += 1;
            self.newline(broken);
            let from = self.at;
            self.quoted_breaks();
            push_breaks(pieces.owned(), self.text, from, self.at);
            return Ok(());
        }
        let character = match self.byte(1) {
            b'0' => '\0',
            b'a' => '\u{7}',
            b'b' => '\u{8}',
            b't' | b'\t' => '\t',
            b'n' => '\n',
            b'v' => '\u{b}',
            b'f' => '\u{c}',
            b'r' => '\r',
            b'e' => '\u{1b}',
            c @ (b' ' | b'"' | b'\'' | b'\\') => char::from(c),
            b'N' => '\u{85}',
            b'_' => '\u{a0}',
            b'L' => '\u{2028}',
            b'P' => '\u{2029}',
            b'x' => self.hexadecimal(2)?,
            b'u' => self.hexadecimal(4)?,
            b'U' => self.hexadecimal(8)?,
            _ => return self.error(Problem::Escape),
        };
        self.at += 2;
        pieces.owned().push(character);
        Ok(())
    }

    /// The character of a numeric escape; the place is then before its last two digits.
    fn hexadecimal(&mut self, digits: usize) -> Result<char> {
        let mut code = 0_u32;
        for i in 0..digits {
            match char::from(self.byte(2 + i)).to_digit(16) {
                Some(digit) => code = (code << 4) | digit,
                None => return self.error(Problem::EscapeDigits),
            }
        }
        let Some(character) = char::from_u32(code) else { return self.error(Problem::EscapeRange) };
        self.at += digits;
        Ok(character)
    }
}
