//! The scanner: from text to tokens, with the two things that YAML needs memory for: open indentations, and places
//! that become a key when a `:` follows.

use std::collections::VecDeque;

use super::comments::Seen;
use super::error::{Problem, ReadError, Refusal};
use super::source::{ends_word, line_break};
use super::token::{Before, Mark, Tok, Token};
use super::{Comment, Dialect};

type Result<T> = std::result::Result<T, ReadError>;

/// How long a key may be for Talos 1.12, in characters.
const KEY_LENGTH: u32 = 1024;

/// A place that begins a key if a `:` follows on its line. There is one at most for each flow level.
#[derive(Clone, Copy, Default)]
struct Candidate {
    open: bool,
    /// Nothing but a key can stand in this column.
    required: bool,
    token: usize,
    mark: Mark,
    /// Whether this flow level ever had one.
    used: bool,
    /// Lost by the library of Talos 1.12: it does not wait for the `:`, and may find the token gone.
    lost: bool,
    /// The token that opened this flow level.
    opened_by: usize,
}

/// The last token, as far as later ones depend on it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    Entry,
    Value,
    /// `[`
    Bracket,
    /// `{`
    Brace,
    Comma,
    Other,
}

pub(super) struct Scanner<'a> {
    pub(super) text: &'a str,
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
    pub(super) line: u32,
    /// The byte that has column 0 if every character before this place were one byte: the column is `at - origin`.
    pub(super) origin: usize,
    pub(super) dialect: Dialect,
    depth: usize,
    queue: VecDeque<Token<'a>>,
    taken: usize,
    /// The column of the innermost block collection, -1 outside.
    pub(super) indent: i64,
    indents: Vec<i64>,
    candidates: Vec<Candidate>,
    /// The first open candidate; no candidate below this one is open.
    lowest: usize,
    /// Its token: neither this nor a later one may be taken.
    hold: usize,
    pub(super) key_allowed: bool,
    /// Whether the last token has no comment of its own: it was read beyond the end of its line, or is a marker.
    pub(super) broken: bool,
    pub(super) last: Last,
    ended: bool,
    /// Line breaks since the last sign that is no blank.
    pub(super) newlines: u32,
    /// Comments at the end of what was read.
    pub(super) seen: Vec<Seen>,
    /// The token to which a comment on its line belongs.
    pub(super) comment_of: u32,
    /// Where the last token begins.
    last_start: u32,
    pub(super) comments: Option<Vec<Comment>>,
}

impl<'a> Scanner<'a> {
    pub fn new(text: &'a str, dialect: Dialect, depth: usize, comments: bool) -> Self {
        Scanner {
            text,
            bytes: text.as_bytes(),
            at: 0,
            line: 0,
            origin: 0,
            dialect,
            depth,
            queue: VecDeque::with_capacity(16),
            taken: 0,
            indent: -1,
            indents: Vec::new(),
            candidates: vec![Candidate::default()],
            lowest: 0,
            hold: usize::MAX,
            key_allowed: true,
            broken: false,
            last: Last::Other,
            ended: false,
            newlines: 0,
            seen: Vec::new(),
            comment_of: 0,
            last_start: 0,
            comments: comments.then(Vec::new),
        }
    }

    pub fn into_comments(self) -> Vec<Comment> {
        self.comments.unwrap_or_default()
    }

    /// The next token, with what stands before it.
    #[inline]
    pub fn head(&mut self) -> Result<&Token<'a>> {
        while self.queue.is_empty() || (self.hold == self.taken && self.undecided()?) {
            self.fetch()?;
        }
        Ok(&self.queue[0])
    }

    /// Removes the next token, or what stands before it. There must have been a call of [`Scanner::head`].
    #[inline]
    pub fn skip(&mut self) {
        match self.queue.front_mut().map(|token| &mut token.before) {
            Some(before @ Before::MappingAndKey) => *before = Before::Key,
            Some(before @ Before::Key) => *before = Before::Nothing,
            _ => drop(self.take()),
        }
    }

    #[inline]
    pub fn take(&mut self) -> Option<Token<'a>> {
        self.taken += 1;
        self.queue.pop_front()
    }

    /// Whether the next token, which a candidate holds, may still turn out to begin a key.
    fn undecided(&mut self) -> Result<bool> {
        let candidate = self.candidates[self.lowest];
        if self.in_reach(&candidate) {
            return Ok(true);
        }
        if candidate.required {
            return Err(syntax(candidate.mark, Problem::NoColon));
        }
        self.candidates[self.lowest].open = false;
        self.release();
        Ok(false)
    }

    /// Finds the first open candidate anew after one was closed.
    fn release(&mut self) {
        while self.candidates.get(self.lowest).is_some_and(|c| !c.open) {
            self.lowest += 1;
        }
        self.hold = self.candidates.get(self.lowest).map_or(usize::MAX, |c| c.token);
    }

    /// Whether a candidate before this one keeps all tokens from being taken.
    fn is_held(&self, level: usize) -> bool {
        self.candidates[..level].iter().any(|c| c.open && !c.lost && self.in_reach(c))
    }

    fn in_reach(&self, candidate: &Candidate) -> bool {
        candidate.mark.line == self.line
            && (self.dialect != Dialect::Rc3 || self.column() - candidate.mark.column <= KEY_LENGTH)
    }

    // places

    #[inline]
    pub(super) fn byte(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    #[inline]
    pub(super) fn column(&self) -> u32 {
        (self.at - self.origin) as u32
    }

    #[inline]
    pub(super) fn mark(&self) -> Mark {
        Mark { at: self.at as u32, line: self.line, column: self.column() }
    }

    pub(super) fn error<T>(&self, problem: Problem) -> Result<T> {
        Err(syntax(self.mark(), problem))
    }

    pub(super) fn is_blank(&self) -> bool {
        matches!(self.byte(0), b' ' | b'\t')
    }

    pub(super) fn skip_blanks(&mut self) {
        while self.is_blank() {
            self.at += 1;
        }
    }

    #[inline]
    pub(super) fn break_here(&self) -> usize {
        line_break(self.bytes, self.at)
    }

    /// Goes over a line break of this many bytes.
    #[inline]
    pub(super) fn newline(&mut self, length: usize) {
        self.newlines += 1;
        self.at += length;
        self.line += 1;
        self.origin = self.at;
    }

    /// Goes over one character that is no line break.
    #[inline]
    pub(super) fn advance(&mut self) {
        let width = width(self.byte(0));
        self.at += width;
        self.origin += width - 1;
    }

    /// Goes to the end of the line.
    pub(super) fn skip_line(&mut self) {
        loop {
            match self.byte(0) {
                b'\n' | b'\r' => return,
                0 if self.at >= self.bytes.len() => return,
                0xc2 | 0xe2 if self.break_here() > 0 => return,
                b if b < 0x80 => self.at += 1,
                _ => self.advance(),
            }
        }
    }

    pub(super) fn flow(&self) -> bool {
        self.candidates.len() > 1
    }

    /// Whether `---` or `...` stands here, at the beginning of a line.
    pub(super) fn document_marker(&self) -> bool {
        self.at == self.origin
            && matches!(self.byte(0), b'-' | b'.')
            && self.byte(1) == self.byte(0)
            && self.byte(2) == self.byte(0)
            && ends_word(self.bytes, self.at + 3)
    }

    // tokens

    pub(super) fn push(&mut self, tok: Tok<'a>, start: Mark) {
        self.last_start = start.at;
        self.queue.push_back(Token { tok, start, end: self.at as u32, before: Before::Nothing });
    }

    /// Pushes a token of some ASCII characters.
    fn push_sign(&mut self, tok: Tok<'a>, length: usize) {
        let start = self.mark();
        self.at += length;
        self.push(tok, start);
    }

    fn fetch(&mut self) -> Result<()> {
        if self.ended {
            // nothing may be asked for after the end; a second end is harmless
            self.push(Tok::StreamEnd, self.mark());
            return Ok(());
        }
        let from = self.mark();
        if self.seen.last().is_some_and(|seen| seen.end < i64::from(from.at) - 1) {
            self.seen.clear();
        }
        self.skip_to_token(from);
        self.unroll(i64::from(self.column()), from);
        self.broken = false;
        let last = self.last;
        self.last = Last::Other;
        self.newlines = 0;
        let of_last = self.byte(0) == if self.flow() { b',' } else { b':' };
        self.comment_of = if of_last { self.last_start } else { self.at as u32 };
        self.fetch_token(last)?;
        if self.last != Last::Entry && !self.broken {
            self.line_comment();
        }
        Ok(())
    }

    fn fetch_token(&mut self, last: Last) -> Result<()> {
        let byte = self.byte(0);
        match byte {
            0 if self.at >= self.bytes.len() => self.fetch_end(),
            b'%' if self.at == self.origin => {
                self.leave_blocks()?;
                self.broken = true;
                self.scan_directive()
            }
            b'-' | b'.' if self.document_marker() => {
                self.leave_blocks()?;
                // a comment after it may begin a block of comments
                self.broken = true;
                self.push_sign(if byte == b'-' { Tok::DocumentStart } else { Tok::DocumentEnd }, 3);
                Ok(())
            }
            b'[' => self.fetch_flow_start(Tok::FlowSequence, Last::Bracket),
            b'{' => self.fetch_flow_start(Tok::FlowMapping, Last::Brace),
            b']' => self.fetch_flow_end(Tok::FlowSequenceEnd),
            b'}' => self.fetch_flow_end(Tok::FlowMappingEnd),
            b',' => {
                self.close_candidate()?;
                self.key_allowed = true;
                self.last = Last::Comma;
                self.push_sign(Tok::Comma, 1);
                Ok(())
            }
            b'-' if ends_word(self.bytes, self.at + 1) => self.fetch_entry(),
            b'?' if ends_word(self.bytes, self.at + 1) => self.fetch_key(),
            b':' if self.is_value(last) => self.fetch_value(last),
            b'*' | b'&' => {
                self.open_candidate()?;
                self.key_allowed = false;
                self.scan_anchor()
            }
            b'!' => {
                self.open_candidate()?;
                self.key_allowed = false;
                self.scan_tag()
            }
            b'|' | b'>' if !self.flow() => {
                self.close_candidate()?;
                self.key_allowed = true;
                self.broken = true;
                self.scan_block()
            }
            b'\'' | b'"' => {
                self.open_candidate()?;
                self.key_allowed = false;
                self.scan_quoted(byte)
            }
            b'\t' => self.error(Problem::Tab),
            b'#' | b'|' | b'>' | b'%' | b'@' | b'`' => self.error(Problem::Start),
            _ => {
                self.open_candidate()?;
                self.key_allowed = false;
                self.scan_plain()
            }
        }
    }

    fn fetch_end(&mut self) -> Result<()> {
        let mut end = self.mark();
        if end.column > 0 {
            end = Mark { at: end.at, line: end.line + 1, column: 0 };
            self.line = end.line;
            self.origin = self.at;
        }
        self.leave_blocks()?;
        self.ended = true;
        self.push(Tok::StreamEnd, end);
        Ok(())
    }

    /// What a directive, a document marker and the end do to everything that is open.
    fn leave_blocks(&mut self) -> Result<()> {
        self.unroll(-1, self.mark());
        self.close_candidate()?;
        self.key_allowed = false;
        Ok(())
    }

    fn fetch_flow_start(&mut self, tok: Tok<'a>, last: Last) -> Result<()> {
        self.open_candidate()?;
        if self.candidates.len() > self.depth {
            return Err(ReadError::TooDeep { pos: self.mark().pos(), limit: self.depth });
        }
        let opened_by = self.taken + self.queue.len();
        self.candidates.push(Candidate { opened_by, ..Candidate::default() });
        self.key_allowed = true;
        self.last = last;
        self.push_sign(tok, 1);
        Ok(())
    }

    fn fetch_flow_end(&mut self, tok: Tok<'a>) -> Result<()> {
        self.close_candidate()?;
        if self.flow() {
            let inner = self.candidates.pop().unwrap_or_default();
            let top = self.candidates.len() - 1;
            self.lowest = self.lowest.min(top);
            let outer = &mut self.candidates[top];
            outer.lost |= self.dialect == Dialect::Rc3
                && outer.open
                && outer.token == inner.opened_by
                && !inner.used
                && self.taken + self.queue.len() > outer.token + 1;
        }
        self.key_allowed = false;
        self.push_sign(tok, 1);
        Ok(())
    }

    fn fetch_entry(&mut self) -> Result<()> {
        if !self.flow() {
            if !self.key_allowed {
                return self.error(Problem::Entry);
            }
            self.roll(Tok::BlockSequence)?;
        }
        self.close_candidate()?;
        self.key_allowed = true;
        self.last = Last::Entry;
        self.push_sign(Tok::Entry, 1);
        Ok(())
    }

    fn fetch_key(&mut self) -> Result<()> {
        if !self.flow() {
            if !self.key_allowed {
                return self.error(Problem::QuestionMark);
            }
            self.roll(Tok::BlockMapping)?;
        }
        self.close_candidate()?;
        self.key_allowed = !self.flow();
        self.push_sign(Tok::Key, 1);
        Ok(())
    }

    fn is_value(&self, last: Last) -> bool {
        // the library looks at the last token, not at the kind of brackets around
        let may_be_text = self.dialect != Dialect::Rc3 && matches!(last, Last::Bracket | Last::Comma);
        (self.flow() && !may_be_text) || ends_word(self.bytes, self.at + 1)
    }

    fn fetch_value(&mut self, last: Last) -> Result<()> {
        let top = self.candidates.len() - 1;
        let candidate = self.candidates[top];
        if candidate.open && self.in_reach(&candidate) {
            if candidate.lost && !self.is_held(top) {
                return Err(ReadError::Refused { pos: candidate.mark.pos(), what: Refusal::LostKey });
            }
            let column = i64::from(candidate.mark.column);
            let opens = !self.flow() && self.indent < column;
            if opens {
                self.push_indent(column)?;
            }
            let before = if opens { Before::MappingAndKey } else { Before::Key };
            // a token is not taken while its candidate is open
            if let Some(token) = self.queue.get_mut(candidate.token - self.taken) {
                token.before = before;
            }
            self.candidates[top].open = false;
            self.release();
            self.key_allowed = false;
        } else {
            if candidate.open && candidate.required {
                return Err(syntax(candidate.mark, Problem::NoColon));
            }
            if self.dialect == Dialect::Rc4 && self.line == 0 && matches!(last, Last::Bracket | Last::Brace) {
                return Err(ReadError::Refused { pos: self.mark().pos(), what: Refusal::NoKeyInFlow });
            }
            if !self.flow() {
                if !self.key_allowed {
                    return self.error(Problem::Colon);
                }
                self.roll(Tok::BlockMapping)?;
            }
            self.key_allowed = !self.flow();
        }
        self.last = Last::Value;
        self.push_sign(Tok::Value, 1);
        Ok(())
    }

    // memory

    fn open_candidate(&mut self) -> Result<()> {
        if !self.key_allowed {
            return Ok(());
        }
        self.close_candidate()?;
        let mark = self.mark();
        let required = !self.flow() && self.indent == i64::from(mark.column);
        let top = self.candidates.len() - 1;
        self.candidates[top] = Candidate {
            open: true,
            required,
            token: self.taken + self.queue.len(),
            mark,
            used: true,
            lost: false,
            ..self.candidates[top]
        };
        self.lowest = self.lowest.min(top);
        self.release();
        Ok(())
    }

    fn close_candidate(&mut self) -> Result<()> {
        let top = self.candidates.len() - 1;
        let candidate = &mut self.candidates[top];
        if candidate.open && candidate.required {
            return Err(syntax(candidate.mark, Problem::NoColon));
        }
        if candidate.open {
            candidate.open = false;
            self.release();
        }
        Ok(())
    }

    fn push_indent(&mut self, column: i64) -> Result<()> {
        if self.indents.len() >= self.depth {
            return Err(ReadError::TooDeep { pos: self.mark().pos(), limit: self.depth });
        }
        self.indents.push(self.indent);
        self.indent = column;
        Ok(())
    }

    /// Begins a block collection here if the column is deeper than all others.
    fn roll(&mut self, tok: Tok<'a>) -> Result<()> {
        let column = i64::from(self.column());
        if self.indent < column {
            self.push_indent(column)?;
            self.push(tok, self.mark());
        }
        Ok(())
    }

    /// Ends the block collections that are deeper than a column: where the blanks began that were just skipped, or
    /// at a comment in the collection's own column.
    fn unroll(&mut self, column: i64, from: Mark) {
        if self.flow() {
            return;
        }
        let (mut end, mut reach) = (from, i64::from(from.at) - 1);
        while self.indent > column {
            for seen in self.seen.iter().rev() {
                if seen.end < reach {
                    break;
                }
                if i64::from(seen.start.column) == self.indent + 1 {
                    end = seen.start;
                }
                reach = seen.scan;
            }
            reach = if end == from { i64::from(from.at) - 1 } else { i64::from(end.at) };
            self.push(Tok::BlockEnd, end);
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }
}

pub(super) fn syntax(mark: Mark, problem: Problem) -> ReadError {
    ReadError::Syntax { pos: mark.pos(), problem }
}

/// The bytes of a character, from its first one.
#[inline]
pub(super) fn width(first: u8) -> usize {
    match first {
        0..=0x7f => 1,
        0x80..=0xdf => 2,
        0xe0..=0xef => 3,
        _ => 4,
    }
}
