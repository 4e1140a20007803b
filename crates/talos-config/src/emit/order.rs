//! The order in which go-yaml prints the keys of a map.

use std::cmp::Ordering;
use std::iter::Peekable;
use std::str::Chars;

use crate::value::{Entries, Val};

/// go-yaml's order of map keys.
pub(crate) fn key_order(a: &str, b: &str) -> Ordering {
    let common = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
    // back to the start of a character
    let common = (0..=common).rev().find(|i| a.is_char_boundary(*i) && b.is_char_boundary(*i)).unwrap_or(0);
    let (before, a, b) = (&a[..common], &a[common..], &b[common..]);
    let (Some(x), Some(y)) = (a.chars().next(), b.chars().next()) else { return a.len().cmp(&b.len()) };
    match (is_letter(x), is_letter(y)) {
        (true, true) => return x.cmp(&y),
        (false, false) => {}
        (letter, _) => {
            let after_digit = before.chars().next_back().is_some_and(|c| c.is_ascii_digit());
            return if letter == after_digit { Ordering::Less } else { Ordering::Greater };
        }
    }
    let digits_before = || before.chars().rev().take_while(char::is_ascii_digit);
    let seed = u128::from((x == '0' || y == '0') && digits_before().any(|c| c != '0'));
    number(a.chars().peekable(), seed).cmp(&number(b.chars().peekable(), seed)).then(x.cmp(&y))
}

/// The number that a text begins with, and how many digits it has.
fn number(mut text: Peekable<Chars<'_>>, seed: u128) -> (u128, usize) {
    let (mut value, mut length) = (seed, 0);
    while let Some(digit) = text.peek().and_then(|c| c.to_digit(10)) {
        if length < 30 {
            value = value * 10 + u128::from(digit);
        }
        length += 1;
        text.next();
    }
    (value, length)
}

/// A letter, of those characters that [`is_certain`] lets through.
fn is_letter(c: char) -> bool {
    c.is_alphabetic()
}

/// Whether it is certain what Go takes a character for: a letter (category L), a decimal digit (Nd), or neither. Rust
/// knows wider classes, with marks, circled letters and roman numbers among them.
fn is_certain(c: char) -> bool {
    c.is_ascii() || !c.is_alphanumeric() || is_plain_letter(c)
}

/// Ranges of letters without anything else among them.
fn is_plain_letter(c: char) -> bool {
    matches!(c,
        '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}' | '\u{f8}'..='\u{24f}'
        | '\u{391}'..='\u{3a1}' | '\u{3a3}'..='\u{3f5}'
        | '\u{400}'..='\u{481}' | '\u{48a}'..='\u{52f}'
        | '\u{5d0}'..='\u{5ea}' | '\u{620}'..='\u{64a}'
        | '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}'
        | '\u{4e00}'..='\u{9fa5}' | '\u{ac00}'..='\u{d7a3}')
}

/// The entries of a map in the order in which go-yaml prints them. Nothing if Go's own order is not certain:
/// runs of 19 digits and more overflow there, and of some characters it is not known whether they are letters.
pub(crate) fn sorted(entries: &Entries) -> Option<Vec<(&str, &Val)>> {
    let mut sorted: Vec<(&str, &Val)> = entries.iter().map(|(key, val)| (&**key, val)).collect();
    let long = |key: &str| key.len() >= 19 && key.split(|c: char| !c.is_ascii_digit()).any(|r| r.len() >= 19);
    let odd = |key: &str| !key.is_ascii() && !key.chars().all(is_certain);
    if sorted.len() > 1 && sorted.iter().any(|(key, _)| long(key) || odd(key)) {
        return None;
    }
    sorted.sort_by(|a, b| key_order(a.0, b.0));
    Some(sorted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_natural_order() {
        let mut keys = vec!["b", "a10", "a2", "a", "A", "a.b", "1", "10", "2", "a-1"];
        keys.sort_by(|a, b| key_order(a, b));
        assert_eq!(keys, ["1", "2", "10", "A", "a", "a-1", "a.b", "a2", "a10", "b"]);
    }
}
