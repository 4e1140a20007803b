//! Anchors, aliases, tags and directives.

use std::borrow::Cow;

use super::Dialect;
use super::error::{Problem, ReadError, Refusal};
use super::scan::Scanner;
use super::source::ends_word;
use super::token::{Tag, Tok};

type Result<T> = std::result::Result<T, ReadError>;

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

impl<'a> Scanner<'a> {
    fn letters(&mut self) -> &'a str {
        let from = self.at;
        while is_letter(self.byte(0)) {
            self.at += 1;
        }
        &self.text[from..self.at]
    }

    fn at_word_end(&self) -> bool {
        ends_word(self.bytes, self.at)
    }

    pub(super) fn scan_anchor(&mut self) -> Result<()> {
        let start = self.mark();
        let alias = self.byte(0) == b'*';
        self.at += 1;
        let from = self.at;
        while self.byte(0).is_ascii_graphic()
            && !matches!(self.byte(0), b':' | b',' | b'[' | b']' | b'{' | b'}')
        {
            self.at += 1;
        }
        let name = &self.text[from..self.at];
        if name.is_empty() || !(self.at_word_end() || matches!(self.byte(0), b':' | b',' | b']' | b'}')) {
            return self.error(Problem::AnchorName);
        }
        self.push(if alias { Tok::Alias(name) } else { Tok::Anchor(name) }, start);
        Ok(())
    }

    pub(super) fn scan_tag(&mut self) -> Result<()> {
        let start = self.mark();
        let (handle, suffix): (&'a str, Cow<'a, str>);
        if self.byte(1) == b'<' {
            self.at += 2;
            let from = self.at;
            let name = self.uri(from, true)?;
            if self.at == from {
                return self.error(Problem::TagName);
            }
            if self.byte(0) != b'>' {
                return self.error(Problem::TagClose);
            }
            self.at += 1;
            (handle, suffix) = ("", name);
        } else {
            self.at += 1;
            let from = self.at;
            self.letters();
            if self.byte(0) == b'!' {
                self.at += 1;
                let name = self.at;
                let uri = self.uri(name, false)?;
                if self.at == name {
                    return self.error(Problem::TagName);
                }
                (handle, suffix) = (&self.text[from - 1..name], uri);
            } else {
                let uri = self.uri(from, false)?;
                (handle, suffix) = if self.at == from { ("", "!".into()) } else { ("!", uri) };
            }
        }
        if !self.at_word_end() {
            return self.error(Problem::TagEnd);
        }
        self.push(Tok::Tag(Box::new(Tag { handle, rest: suffix })), start);
        Ok(())
    }

    /// The rest of a tag or of a prefix, from an earlier place on, with its escapes resolved.
    fn uri(&mut self, from: usize, whole: bool) -> Result<Cow<'a, str>> {
        let mut out: Option<Vec<u8>> = None;
        loop {
            let byte = self.byte(0);
            match byte {
                b'%' => {
                    let text = self.text;
                    let before = &text.as_bytes()[from..self.at];
                    self.escaped(out.get_or_insert_with(|| before.to_vec()))?;
                    continue;
                }
                b';' | b'/' | b'?' | b':' | b'@' | b'&' | b'=' | b'+' | b'$' | b'.' | b'!' | b'~' | b'*'
                | b'\'' | b'(' | b')' => {}
                b',' | b'[' | b']' if whole || self.dialect == Dialect::Rc3 => {}
                b'{' | b'}' if whole && self.dialect != Dialect::Rc3 => {}
                _ if is_letter(byte) => {}
                _ => break,
            }
            if let Some(out) = &mut out {
                out.push(byte);
            }
            self.at += 1;
        }
        match out {
            None => Ok(Cow::Borrowed(&self.text[from..self.at])),
            Some(bytes) => match String::from_utf8(bytes) {
                Ok(text) => Ok(Cow::Owned(text)),
                Err(_) => Err(ReadError::Refused { pos: self.mark().pos(), what: Refusal::TagNotText }),
            },
        }
    }

    /// The bytes of one escaped character.
    fn escaped(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let mut more = 0;
        loop {
            let octet = match self.octet() {
                Some(octet) if more == 0 || octet & 0xc0 == 0x80 => octet,
                _ => return self.error(Problem::TagEscape),
            };
            if more == 0 {
                more = match octet {
                    0..=0x7f => 1,
                    0xc0..=0xdf => 2,
                    0xe0..=0xef => 3,
                    0xf0..=0xf7 => 4,
                    _ => return self.error(Problem::TagEscape),
                };
            }
            out.push(octet);
            self.at += 3;
            more -= 1;
            if more == 0 {
                return Ok(());
            }
        }
    }

    /// The byte that the `%` and two digits here stand for.
    fn octet(&self) -> Option<u8> {
        if self.byte(0) != b'%' {
            return None;
        }
        let digit = |ahead| char::from(self.byte(ahead)).to_digit(16);
        u8::try_from((digit(1)? << 4) | digit(2)?).ok()
    }

    pub(super) fn scan_directive(&mut self) -> Result<()> {
        let start = self.mark();
        self.at += 1;
        let name = self.letters();
        if !self.at_word_end() {
            return self.error(Problem::Directive);
        }
        self.skip_blanks();
        let tok = match name {
            "YAML" => self.version()?,
            "TAG" => self.tag_directive()?,
            _ => return Err(ReadError::Syntax { pos: start.pos(), problem: Problem::Directive }),
        };
        self.push(tok, start);
        self.skip_blanks();
        if self.byte(0) == b'#' {
            self.comment();
        }
        match self.break_here() {
            0 if self.at < self.bytes.len() => self.error(Problem::DirectiveEnd),
            0 => Ok(()),
            length => {
                self.newline(length);
                Ok(())
            }
        }
    }

    fn version(&mut self) -> Result<Tok<'a>> {
        let major = self.version_number()?;
        if self.byte(0) != b'.' {
            return self.error(Problem::Version);
        }
        self.at += 1;
        let minor = self.version_number()?;
        Ok(Tok::Version((major, minor) == (1, 1)))
    }

    fn version_number(&mut self) -> Result<u32> {
        let from = self.at;
        let mut number = 0;
        while self.byte(0).is_ascii_digit() {
            if self.at - from >= 2 {
                return self.error(Problem::Version);
            }
            number = number * 10 + u32::from(self.byte(0) - b'0');
            self.at += 1;
        }
        if self.at == from { self.error(Problem::Version) } else { Ok(number) }
    }

    fn tag_directive(&mut self) -> Result<Tok<'a>> {
        let from = self.at;
        if self.byte(0) != b'!' {
            return self.error(Problem::TagDirective);
        }
        self.at += 1;
        let letters = self.letters();
        if self.byte(0) == b'!' {
            self.at += 1;
        } else if !letters.is_empty() {
            return self.error(Problem::TagDirective);
        }
        let handle = &self.text[from..self.at];
        if !self.is_blank() {
            return self.error(Problem::TagDirective);
        }
        self.skip_blanks();
        let from = self.at;
        let prefix = self.uri(from, true)?;
        if self.at == from || !self.at_word_end() {
            return self.error(Problem::TagDirective);
        }
        Ok(Tok::TagDirective(Box::new(Tag { handle, rest: prefix })))
    }
}
