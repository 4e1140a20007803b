//! What stands between tokens: blanks, line breaks, comments.

use super::Comment;
use super::scan::Scanner;

/// How far behind a token, and between comments of a block, a comment is looked for, in bytes.
const COMMENT_REACH: usize = 512;

impl Scanner<'_> {
    pub(super) fn skip_to_token(&mut self) {
        loop {
            let tabs = self.flow() || !self.key_allowed;
            while self.byte(0) == b' ' || (tabs && self.byte(0) == b'\t') {
                self.at += 1;
            }
            if self.byte(0) == b'#' {
                self.comment_block();
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
    fn comment_block(&mut self) {
        loop {
            self.comment();
            // the byte here belongs to the line break that ends the comment
            let next = (self.at + 1..self.at + COMMENT_REACH)
                .find(|i| !matches!(self.bytes.get(*i), Some(b' ' | b'\t' | b'\n' | b'\r')));
            let Some(next) = next.filter(|i| self.bytes.get(*i) == Some(&b'#')) else { return };
            while self.at < next {
                match self.break_here() {
                    0 => self.at += 1,
                    length => self.newline(length),
                }
            }
        }
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
            self.comment();
        }
    }

    pub(super) fn comment(&mut self) {
        let (pos, from) = (self.mark().pos(), self.at + 1);
        self.skip_line();
        if let Some(comments) = &mut self.comments {
            comments.push(Comment { pos, text: self.text[from..self.at].to_owned() });
        }
    }
}
