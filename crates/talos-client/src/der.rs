//! As much of X.509 as is wanted of a client certificate: until when it is valid, and for which roles.
//!
//! rustls judges certificates; this only reads what people are told about theirs.

use std::time::{Duration, SystemTime};

const INTEGER: u8 = 0x02;
const OID: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const VERSION: u8 = 0xa0;

/// `id-at-organizationName`, in which Talos keeps roles (Talos' `role` package).
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leaf {
    pub(crate) not_before: SystemTime,
    pub(crate) not_after: SystemTime,
    pub(crate) organizations: Vec<String>,
}

/// Reads a certificate; none if it is not laid out as RFC 5280 says.
pub(crate) fn leaf(certificate: &[u8]) -> Option<Leaf> {
    let (mut certificate, _) = expect(certificate, SEQUENCE)?;
    let mut tbs = take(&mut certificate, SEQUENCE)?;
    if tbs.first() == Some(&VERSION) {
        take(&mut tbs, VERSION)?;
    }
    take(&mut tbs, INTEGER)?;
    take(&mut tbs, SEQUENCE)?;
    take(&mut tbs, SEQUENCE)?;
    let mut validity = take(&mut tbs, SEQUENCE)?;
    let not_before = time(&mut validity)?;
    let not_after = time(&mut validity)?;
    let mut subject = take(&mut tbs, SEQUENCE)?;
    let mut organizations = Vec::new();
    while !subject.is_empty() {
        let mut relative = take(&mut subject, SET)?;
        while !relative.is_empty() {
            let mut attribute = take(&mut relative, SEQUENCE)?;
            if take(&mut attribute, OID)? == ORGANIZATION {
                let (_, value, _) = element(attribute)?;
                organizations.push(crate::text::short(std::str::from_utf8(value).ok()?));
            }
        }
    }
    Some(Leaf { not_before, not_after, organizations })
}

/// One element: its tag, its contents, and what follows it.
fn element(input: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = input.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let length = match first {
        0..=0x7f => usize::from(first),
        0x81..=0x84 => {
            let (bytes, after) = rest.split_at_checked(usize::from(first & 0x7f))?;
            rest = after;
            bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte))
        }
        _ => return None,
    };
    let (contents, rest) = rest.split_at_checked(length)?;
    Some((tag, contents, rest))
}

fn expect(input: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, contents, rest) = element(input)?;
    (found == tag).then_some((contents, rest))
}

fn take<'a>(input: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    let (contents, rest) = expect(input, tag)?;
    *input = rest;
    Some(contents)
}

/// `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ`, the two forms that RFC 5280 allows.
fn time(input: &mut &[u8]) -> Option<SystemTime> {
    let (tag, text, rest) = element(input)?;
    *input = rest;
    let (year, text) = match tag {
        UTC_TIME => {
            let year = number(text.get(..2)?)?;
            (if year < 50 { 2000 + year } else { 1900 + year }, text.get(2..)?)
        }
        GENERALIZED_TIME => (number(text.get(..4)?)?, text.get(4..)?),
        _ => return None,
    };
    if text.len() != 11 || text[10] != b'Z' {
        return None;
    }
    let field = |n: usize| number(&text[2 * n..2 * n + 2]);
    let (month, day) = (field(0)?, field(1)?);
    let seconds = (field(2)? * 60 + field(3)?) * 60 + field(4)?;
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let days = days_before(year, month) + day - 1 - days_before(1970, 1);
    let since = days.checked_mul(86_400)?.checked_add(seconds)?;
    let span = Duration::from_secs(since.unsigned_abs());
    if since < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(span)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(span)
    }
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |n, digit| digit.is_ascii_digit().then(|| n * 10 + i64::from(digit - b'0')))
}

/// Days from the first of March of year 0 to the first of a month, in the Gregorian calendar.
fn days_before(year: i64, month: i64) -> i64 {
    // a year that begins in March has its leap day at its end
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + (153 * month + 2) / 5
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(tag: u8, text: &str) -> Option<u64> {
        let mut der = vec![tag, u8::try_from(text.len()).unwrap()];
        der.extend(text.as_bytes());
        time(&mut &der[..]).map(|t| t.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs())
    }

    #[test]
    fn both_forms_of_time() {
        assert_eq!(at(UTC_TIME, "700101000000Z"), Some(0));
        assert_eq!(at(UTC_TIME, "260821123456Z"), Some(1_787_315_696));
        assert_eq!(at(GENERALIZED_TIME, "20500228235959Z"), Some(2_529_705_599));
        assert_eq!(at(GENERALIZED_TIME, "20000229000000Z"), Some(951_782_400));
        assert_eq!(at(UTC_TIME, "260821123456"), None);
        assert_eq!(at(UTC_TIME, "261321123456Z"), None);
    }

    #[test]
    fn garbage_is_nothing() {
        for bytes in [&b""[..], b"\x30", b"\x30\x84\xff\xff\xff\xff", b"\x30\x80", &[0x30; 64]] {
            assert_eq!(leaf(bytes), None);
        }
    }
}
