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
    let seed = i64::from((x == '0' || y == '0') && digits_before().any(|c| c != '0'));
    number(a.chars().peekable(), seed).cmp(&number(b.chars().peekable(), seed)).then(x.cmp(&y))
}

/// The number that a text begins with, and how many digits it has. Go lets it overflow.
fn number(mut text: Peekable<Chars<'_>>, seed: i64) -> (i64, usize) {
    let (mut value, mut length) = (seed, 0);
    while let Some(digit) = text.peek().and_then(|c| c.to_digit(10)) {
        value = value.wrapping_mul(10).wrapping_add(i64::from(digit));
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

/// So many keys are compared each with each, not more.
const MOST_BY_RANK: usize = 500;

/// The entries of a map in the order in which go-yaml prints them. A key if Go's own order is not certain: where
/// runs of 19 digits and more overflow, its order may go in a circle, and of some characters it is not known here
/// whether they are letters.
pub(crate) fn sorted(entries: &Entries) -> Result<Vec<(&str, &Val)>, &str> {
    let mut sorted: Vec<(&str, &Val)> = entries.iter().map(|(key, val)| (&**key, val)).collect();
    if sorted.len() < 2 {
        return Ok(sorted);
    }
    let odd = |key: &str| !key.is_ascii() && !key.chars().all(is_certain);
    if let Some((key, _)) = sorted.iter().find(|(key, _)| odd(key)) {
        return Err(key);
    }
    let long = |key: &str| key.len() >= 19 && key.split(|c: char| !c.is_ascii_digit()).any(|r| r.len() >= 19);
    match sorted.iter().find(|(key, _)| long(key)) {
        Some((key, _)) => ranked(&sorted).ok_or(key),
        None => {
            sorted.sort_by(|a, b| key_order(a.0, b.0));
            Ok(sorted)
        }
    }
}

/// The entries by how many others come before each; nothing if their order goes in a circle: then two come behind as
/// many.
fn ranked<'e>(entries: &[(&'e str, &'e Val)]) -> Option<Vec<(&'e str, &'e Val)>> {
    let mut places = vec![None; entries.len()];
    if entries.len() > MOST_BY_RANK {
        return None;
    }
    for (key, val) in entries {
        let rank = entries.iter().filter(|(other, _)| key_order(other, key) == Ordering::Less).count();
        if places[rank].replace((*key, *val)).is_some() {
            return None;
        }
    }
    places.into_iter().collect()
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

    #[test]
    fn long_numbers_overflow_and_circles_are_found() {
        use std::sync::Arc;
        let order = |keys: &[&str]| {
            let entries: Entries = keys.iter().map(|k| (Arc::from(*k), Val::default())).collect();
            let keys = sorted(&entries).map(|s| s.iter().map(|e| e.0.to_owned()).collect::<Vec<_>>());
            keys.map_err(str::to_owned)
        };
        let (large, more) = ("9223372036854775807", "9223372036854775808");
        assert_eq!(order(&["a", large, "1"]).unwrap(), ["1", large, "a"]);
        // 2^63 is negative in Go
        assert_eq!(order(&["7", "x9223372036854775808", "x1"]).unwrap(), ["7", "x9223372036854775808", "x1"]);
        // beside each other only their last digits differ, beside 8 one of them is negative
        assert_eq!(order(&[large, more, "8"]).unwrap_err(), large);
        assert_eq!(order(&["a", "a\u{b2}"]).unwrap_err(), "a\u{b2}");
    }
}
