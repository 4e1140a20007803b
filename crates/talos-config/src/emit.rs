//! Printing YAML as go-yaml v4 does with comments off.

use std::cmp::Ordering;

use crate::node::{Node, NodeKind};
use crate::scalar::{Plain, is_timestamp, old_bool, resolve};

/// What is printed.
#[derive(Debug)]
pub(crate) enum Out {
    Null,
    /// Numbers and booleans, by their text.
    Plain(String),
    Text(String),
    /// Text of an argument: printed without regard for old booleans and sexagesimals.
    Arg(String),
    /// A tagged text.
    Tagged(String, String),
    Map(Vec<(String, Out)>),
    List(Vec<Out>),
}

/// What cannot be printed so that it reads as it was; the path leads to it.
#[derive(Debug)]
pub(crate) enum Damage {
    Lossy(Vec<String>),
    Key(Vec<String>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quote {
    Plain,
    Single,
    Double,
    Literal,
}

pub(crate) struct Emitter {
    pub out: String,
    path: Vec<String>,
}

impl Emitter {
    /// Prints one document.
    pub fn document(root: &Out) -> Result<String, Damage> {
        let mut emitter = Emitter { out: String::new(), path: Vec::new() };
        match root {
            Out::Map(entries) if !entries.is_empty() => emitter.map(entries, 0, true)?,
            other => emitter.value(other, 0, 0)?,
        }
        Ok(emitter.out)
    }

    fn spaces(&mut self, count: usize) {
        self.out.extend(std::iter::repeat_n(' ', count));
    }

    /// Entries at a column; `placed` says that the first key's column is already reached.
    fn map(&mut self, entries: &[(String, Out)], column: usize, mut placed: bool) -> Result<(), Damage> {
        for (key, value) in entries {
            if !placed {
                self.spaces(column);
            }
            placed = false;
            if key.len() > 128 || key.contains(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']) {
                return Err(Damage::Key(self.path.clone()));
            }
            self.path.push(key.clone());
            let style = match quote(key, true) {
                Quote::Literal => Quote::Double,
                style => style,
            };
            self.scalar(key, style);
            self.out.push(':');
            let child = 4 * ((column + 4) / 4);
            match value {
                Out::Map(inner) if !inner.is_empty() => {
                    self.out.push('\n');
                    self.map(inner, child, false)?;
                }
                Out::List(items) if !items.is_empty() => {
                    self.out.push('\n');
                    self.list(items, child, false)?;
                }
                scalar => {
                    self.out.push(' ');
                    self.value(scalar, child, column + 4)?;
                }
            }
            self.path.pop();
        }
        Ok(())
    }

    fn list(&mut self, items: &[Out], column: usize, mut placed: bool) -> Result<(), Damage> {
        for (i, item) in items.iter().enumerate() {
            if !placed {
                self.spaces(column);
            }
            placed = false;
            self.path.push(i.to_string());
            self.out.push_str("- ");
            match item {
                Out::Map(inner) if !inner.is_empty() => self.map(inner, column + 2, true)?,
                Out::List(inner) if !inner.is_empty() => self.list(inner, column + 2, true)?,
                scalar => self.value(scalar, column + 2, column + 4)?,
            }
            self.path.pop();
        }
        Ok(())
    }

    /// A scalar or an empty collection, with its line break. Block text stands at `column`, and reads well with
    /// an explicit indentation only if that is `hinted`.
    fn value(&mut self, value: &Out, column: usize, hinted: usize) -> Result<(), Damage> {
        if let Out::Text(text) | Out::Arg(text) = value {
            // go-yaml prints these raw and reads them as line breaks
            if text.contains(['\u{2028}', '\u{2029}']) {
                return Err(Damage::Lossy(self.path.clone()));
            }
        }
        match value {
            Out::Null => self.out.push_str("null"),
            Out::Plain(text) => self.out.push_str(text),
            Out::Map(_) => self.out.push_str("{}"),
            Out::List(_) => self.out.push_str("[]"),
            Out::Text(text) => match quote(text, true) {
                Quote::Literal => return self.literal(text, column, hinted),
                style => self.scalar(text, style),
            },
            Out::Arg(text) => match quote(text, false) {
                Quote::Literal => return self.literal(text, column, hinted),
                style => self.scalar(text, style),
            },
            Out::Tagged(tag, text) => {
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
        }
        self.out.push('\n');
        Ok(())
    }

    fn scalar(&mut self, text: &str, style: Quote) {
        match style {
            Quote::Plain => self.out.push_str(text),
            Quote::Single => {
                self.out.push('\'');
                self.out.push_str(&text.replace('\'', "''"));
                self.out.push('\'');
            }
            Quote::Double | Quote::Literal => self.double(text),
        }
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

    fn literal(&mut self, text: &str, column: usize, hinted: usize) -> Result<(), Damage> {
        // what go-yaml would print here does not read as the same text
        let first = text.trim_start_matches('\n');
        let blank_after_break = first.len() < text.len() && first.starts_with([' ', '\t']);
        let wrong_hint = text.starts_with(' ') && column != hinted;
        if text.starts_with('\t')
            || blank_after_break
            || wrong_hint
            || text.contains(['\u{2028}', '\u{2029}'])
        {
            return Err(Damage::Lossy(self.path.clone()));
        }
        self.out.push('|');
        if text.starts_with(' ') {
            self.out.push('4');
        }
        if !text.ends_with('\n') {
            self.out.push('-');
        } else if text.ends_with("\n\n") || text == "\n" {
            self.out.push('+');
        }
        self.out.push('\n');
        for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
            if !line.is_empty() {
                self.spaces(column);
                self.out.push_str(line);
            }
            self.out.push('\n');
        }
        Ok(())
    }
}

fn printable(c: char) -> bool {
    matches!(c, '\n' | '\u{20}'..='\u{7e}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
}

/// How go-yaml writes a string. `old` also quotes what YAML 1.1 took for booleans and sexagesimal numbers.
fn quote(text: &str, old: bool) -> Quote {
    if text.contains('\n') {
        let block = text.len() >= 2
            && text.chars().any(|c| !c.is_whitespace())
            && !text.ends_with(' ')
            && !text.contains(" \n")
            && text.chars().all(|c| printable(c) || c == '\t');
        return if block { Quote::Literal } else { Quote::Double };
    }
    if old && (old_bool(text).is_some() || text == "<<" || sexagesimal(text)) {
        return Quote::Double;
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

fn single_fits(text: &str) -> bool {
    text.chars().all(printable) && !text.contains(['\n', '\u{2028}', '\u{2029}'])
}

fn plain_fits(text: &str) -> bool {
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

/// go-yaml's order of map keys.
pub(crate) fn key_order(a: &str, b: &str) -> Ordering {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let Some(i) = a.iter().zip(&b).position(|(x, y)| x != y) else { return a.len().cmp(&b.len()) };
    let (x, y) = (a[i], b[i]);
    match (x.is_alphabetic(), y.is_alphabetic()) {
        (true, true) => return x.cmp(&y),
        (false, false) => {}
        (letter, _) => {
            let after_digit = i > 0 && a[i - 1].is_numeric();
            return if letter == after_digit { Ordering::Less } else { Ordering::Greater };
        }
    }
    let seed =
        (x == '0' || y == '0') && a[..i].iter().rev().take_while(|c| c.is_ascii_digit()).any(|c| *c != '0');
    let run = |s: &[char]| -> (u128, usize) {
        let digits: Vec<u128> = s[i..].iter().map_while(|c| c.to_digit(10)).map(u128::from).collect();
        let start = u128::from(seed);
        (digits.iter().take(30).fold(start, |n, d| n * 10 + d), digits.len())
    };
    run(&a).cmp(&run(&b)).then(x.cmp(&y))
}

/// Sorts the entries of a map as go-yaml prints them. Nothing if Go's own order is not certain.
pub(crate) fn sort_keys(entries: &mut [(String, Out)]) -> Option<()> {
    let long = |key: &String| key.split(|c: char| !c.is_ascii_digit()).any(|run| run.len() >= 19);
    if entries.len() > 1 && entries.iter().any(|(k, _)| long(k)) {
        return None;
    }
    entries.sort_by(|a, b| key_order(&a.0, &b.0));
    Some(())
}

/// Where a document that was read again differs from what was printed.
pub(crate) fn difference(out: &Out, node: Option<&Node>, path: &mut Vec<String>) -> Option<Vec<String>> {
    let Some(node) = node else { return if matches!(out, Out::Null) { None } else { Some(path.clone()) } };
    let same = match (out, &node.kind) {
        (Out::Null, _) => node.is_null(),
        (Out::Plain(t) | Out::Text(t) | Out::Arg(t) | Out::Tagged(_, t), NodeKind::Scalar { text, .. }) => {
            t == text
        }
        (Out::Map(entries), NodeKind::Mapping(nodes)) if entries.len() == nodes.len() => {
            for ((key, value), (k, v)) in entries.iter().zip(nodes) {
                path.push(key.clone());
                if k.text() != Some(key) {
                    return Some(path.clone());
                }
                let found = difference(value, Some(v), path);
                if found.is_some() {
                    return found;
                }
                path.pop();
            }
            true
        }
        (Out::List(items), NodeKind::Sequence(nodes)) if items.len() == nodes.len() => {
            for (i, (item, n)) in items.iter().zip(nodes).enumerate() {
                path.push(i.to_string());
                let found = difference(item, Some(n), path);
                if found.is_some() {
                    return found;
                }
                path.pop();
            }
            true
        }
        _ => false,
    };
    if same { None } else { Some(path.clone()) }
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
            assert_eq!(quote(text, true), want, "{text:?}");
        }
        assert_eq!(quote("yes", false), Quote::Plain);
    }

    #[test]
    fn keys_are_in_natural_order() {
        let mut keys = vec!["b", "a10", "a2", "a", "A", "a.b", "1", "10", "2", "a-1"];
        keys.sort_by(|a, b| key_order(a, b));
        assert_eq!(keys, ["1", "2", "10", "A", "a", "a-1", "a.b", "a2", "a10", "b"]);
    }
}
