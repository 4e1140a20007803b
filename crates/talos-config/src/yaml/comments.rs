//! What stands between tokens: blanks, line breaks, comments.

use super::scan::{Last, Scanner};
use super::source::line_break;
use super::token::Mark;
use super::{Comment, Dialect};

/// How far behind a token, and between comments of a block, a comment is looked for, in bytes.
const COMMENT_REACH: usize = 512;

/// A comment, or several that the library takes for one. It puts the end of a block, and with it the place of a value
/// that is not there, at a comment in the column of that block.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    /// Where it begins; mostly one column too far, as in the library.
    pub start: Mark,
    pub end: i64,
    /// Where the library began to look for it.
    pub scan: i64,
}

/// The comments of a block, while they are read.
struct Group {
    start: Mark,
    open: bool,
    scan: i64,
    /// The line in which comments belong to what stands above, -1 for none.
    foot_line: i64,
    after_value: bool,
    first_empty: bool,
    /// The byte at which the last look ahead ended.
    seen_to: i64,
}

impl Group {
    fn new(scanner: &Scanner<'_>, from: Mark) -> Group {
        let late = scanner.dialect >= Dialect::Rc5;
        let mut foot_line = -1;
        if from.line > 0 || late {
            foot_line = i64::from(scanner.line) - i64::from(scanner.newlines) + 1;
            if scanner.newlines == 0 && scanner.column() > u32::from(!late) {
                foot_line += 1;
            }
        }
        Group {
            start: Mark::default(),
            open: false,
            scan: i64::from(from.at),
            foot_line,
            after_value: scanner.last == Last::Value,
            first_empty: scanner.newlines <= 1,
            seen_to: 0,
        }
    }

    fn begin(&mut self, start: Mark) {
        (self.start, self.open) = (start, true);
    }

    fn end(&mut self, end: i64) -> Seen {
        let seen = Seen { start: self.start, end, scan: self.scan };
        (self.open, self.scan) = (false, end);
        seen
    }
}

impl Scanner<'_> {
    /// Goes over blanks, comments and line breaks; they are said to begin at `from`.
    pub(super) fn skip_to_token(&mut self, from: Mark) {
        loop {
            let tabs = self.flow() || !self.key_allowed;
            while self.byte(0) == b' ' || (tabs && self.byte(0) == b'\t') {
                self.at += 1;
            }
            if self.byte(0) == b'#' {
                self.comment_block(from);
            }
            match self.break_here() {
                0 => return,
                length => self.newline(length),
            }
            if !self.flow() {
                self.key_allowed = true;
            }
        }
    }

    /// A comment, and the comments of the lines below it: before those, tabs are taken like blanks.
    fn comment_block(&mut self, from: Mark) {
        let mut group = Group::new(self, from);
        loop {
            if !group.open {
                let mark = self.mark();
                group.begin(Mark { column: mark.column + 1, ..mark });
            }
            self.comment();
            let Some(next) = self.next_comment(&mut group) else { break };
            while self.at < next {
                match self.break_here() {
                    0 => self.at += 1,
                    length => self.newline(length),
                }
            }
        }
        let end = group.seen_to - 1;
        if group.open {
            self.seen.push(group.end(end));
        }
    }

    /// Looks for a further comment of a block; where groups of comments end is kept.
    fn next_comment(&mut self, group: &mut Group) -> Option<usize> {
        let indent = self.indent.max(0);
        let (mut line, mut column, mut was_empty) = (self.line, 0, false);
        // the byte here belongs to the line break that ends the comment
        for at in self.at + 1..self.at + COMMENT_REACH {
            group.seen_to = at as i64;
            column += 1;
            let byte = self.bytes.get(at).copied();
            if matches!(byte, Some(b' ' | b'\t')) {
                continue;
            }
            let outside = i64::from(group.start.column) - 1 < indent;
            if byte.is_none() || line_break(self.bytes, at) > 0 {
                let foot = i64::from(group.start.line) == group.foot_line && !group.after_value;
                if !was_empty && group.first_empty && (foot || outside) && group.open {
                    self.seen.push(group.end(at as i64));
                }
                byte?;
                (group.first_empty, was_empty) = (false, true);
                (line, column) = (line + 1, 0);
                continue;
            }
            if group.open && i64::from(column) - 1 < indent && column != group.start.column {
                self.seen.push(group.end(at as i64));
            }
            if byte != Some(b'#') {
                return None;
            }
            if !group.open {
                group.begin(Mark { at: at as u32, line, column });
            }
            return Some(at);
        }
        group.seen_to += 1;
        None
    }

    /// A comment on the line of the token before it.
    pub(super) fn line_comment(&mut self) {
        if !matches!(self.byte(0), b' ' | b'\t' | b'#') {
            return;
        }
        let blanks = self.bytes[self.at..].iter().take(COMMENT_REACH);
        let blanks = blanks.take_while(|b| matches!(b, b' ' | b'\t')).count();
        if blanks < COMMENT_REACH && self.byte(blanks) == b'#' {
            self.at += blanks;
            let start = self.mark();
            self.comment();
            let scan = i64::from(self.comment_of);
            self.seen.push(Seen { start, end: self.at as i64, scan });
        }
    }

    pub(super) fn comment(&mut self) {
        let (pos, from) = (self.mark().pos(), self.at + 1);
        self.skip_line();
        self.newlines = 0;
        if let Some(comments) = &mut self.comments {
            comments.push(Comment { pos, text: self.text[from..self.at].to_owned() });
        }
    }
}
