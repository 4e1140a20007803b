//! Blocks of text: `|` and `>`.

use super::Dialect;
use super::error::{Problem, ReadError};
use super::scan::Scanner;
use super::source::{break_text, push_breaks};
use super::token::Tok;
use crate::node::Style;

type Result<T> = std::result::Result<T, ReadError>;

/// What becomes of the line breaks at the end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chomp {
    Strip,
    Clip,
    Keep,
}

/// Empty lines: where they stand, and where the last of them ends.
struct Empty {
    from: usize,
    to: usize,
    /// The beginning of the line after them.
    end: usize,
}

impl Scanner<'_> {
    pub(super) fn scan_block(&mut self) -> Result<()> {
        let start = self.mark();
        let folded = self.byte(0) == b'>';
        self.at += 1;
        let (chomp, increment) = self.block_header()?;
        self.skip_blanks();
        if self.byte(0) == b'#' {
            self.comment();
        }
        match self.break_here() {
            0 if self.at < self.bytes.len() => return self.error(Problem::BlockHeader),
            0 => {}
            length => self.newline(length),
        }
        let mut indent = increment.map(|n| self.indent.max(0) + i64::from(n));
        let mut empty = self.empty_lines(&mut indent)?;
        let mut text = String::new();
        // the line break that ended the last line, and whether that line began with a blank
        let (mut last, mut last_blank) = ((0, 0), false);
        while Some(i64::from(self.column())) == indent && self.at < self.bytes.len() {
            let blank = self.is_blank();
            let break_ = break_text(self.text, last.0, last.1);
            if folded && last.1 > 0 && break_ == "\n" && !last_blank && !blank {
                if empty.from == empty.to {
                    text.push(' ');
                }
            } else if last.1 > 0 {
                text.push_str(break_);
            }
            push_breaks(&mut text, self.text, empty.from, empty.to);
            last_blank = blank;
            let from = self.at;
            self.skip_line();
            let line = &self.text[from..self.at];
            if !line.trim_matches([' ', '\t']).is_empty() {
                self.newlines = 0;
            }
            text.push_str(line);
            last = (self.at, self.break_here());
            if last.1 > 0 {
                self.newline(last.1);
            }
            empty = self.empty_lines(&mut indent)?;
        }
        if chomp != Chomp::Strip && last.1 > 0 {
            text.push_str(break_text(self.text, last.0, last.1));
        }
        if chomp == Chomp::Keep {
            push_breaks(&mut text, self.text, empty.from, empty.to);
        }
        let style = if folded { Style::Folded } else { Style::Literal };
        self.push_until(Tok::Scalar { text: text.into(), style }, start, empty.end);
        Ok(())
    }

    fn block_header(&mut self) -> Result<(Chomp, Option<u8>)> {
        let (mut chomp, mut increment) = (None, None);
        loop {
            match self.byte(0) {
                b'+' if chomp.is_none() => chomp = Some(Chomp::Keep),
                b'-' if chomp.is_none() => chomp = Some(Chomp::Strip),
                b'0' if increment.is_none() => return self.error(Problem::BlockZero),
                digit @ b'1'..=b'9' if increment.is_none() => increment = Some(digit - b'0'),
                _ => return Ok((chomp.unwrap_or(Chomp::Clip), increment)),
            }
            self.at += 1;
        }
    }

    /// Goes over empty lines and the indentation of the next one. The first such lines decide the indentation.
    fn empty_lines(&mut self, indent: &mut Option<i64>) -> Result<Empty> {
        let mut empty = Empty { from: self.at, to: self.at, end: self.at };
        let mut deepest = 0;
        loop {
            let inside = |column: u32| indent.is_none_or(|indent| i64::from(column) < indent);
            while self.byte(0) == b' ' && inside(self.column()) {
                self.at += 1;
            }
            deepest = deepest.max(i64::from(self.column()));
            if self.byte(0) == b'\t' && inside(self.column()) {
                return self.error(Problem::TabInBlock);
            }
            match self.break_here() {
                0 => break,
                length => self.newline(length),
            }
            empty = Empty { to: self.at, end: self.at, ..empty };
        }
        if indent.is_none() {
            let least = if self.dialect >= Dialect::Rc5 { 0 } else { 1 };
            *indent = Some(deepest.max(self.indent + 1).max(least));
        }
        Ok(empty)
    }
}
