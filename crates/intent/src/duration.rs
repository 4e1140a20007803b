//! Durations as people write them: Go's text (`1h30m`, `10s`, `500ms`), and whole days (`7d`).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A duration in milliseconds, never negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, schemars::JsonSchema)]
#[schemars(with = "String")]
pub struct Span(u64);

/// A text that is no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no duration: write it as in 7d, 1h30m, 10s or 500ms")]
pub struct BadSpan(pub String);

impl Span {
    /// A span of milliseconds.
    pub const fn from_millis(millis: u64) -> Span {
        Span(millis)
    }

    /// A span of seconds.
    pub const fn from_secs(secs: u64) -> Span {
        Span(secs * 1000)
    }

    /// As the standard library's duration.
    pub fn as_duration(self) -> Duration {
        Duration::from_millis(self.0)
    }

    /// In milliseconds.
    pub fn as_millis(self) -> u64 {
        self.0
    }
}

const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("ms", 1), ("m", 60_000), ("s", 1000)];

impl FromStr for Span {
    type Err = BadSpan;

    fn from_str(text: &str) -> Result<Span, BadSpan> {
        let bad = || BadSpan(text.to_owned());
        let mut rest = text;
        let mut total: u64 = 0;
        if rest.is_empty() {
            return Err(bad());
        }
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let number: u64 = rest[..digits].parse().map_err(|_| bad())?;
            let (unit, millis) =
                UNITS.iter().find(|(unit, _)| rest[digits..].starts_with(unit)).ok_or_else(bad)?;
            total = number.checked_mul(*millis).and_then(|add| total.checked_add(add)).ok_or_else(bad)?;
            rest = &rest[digits + unit.len()..];
        }
        Ok(Span(total))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let mut rest = self.0;
        for (unit, millis) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)] {
            if rest >= millis {
                write!(f, "{}{unit}", rest / millis)?;
                rest %= millis;
            }
        }
        Ok(())
    }
}

impl Serialize for Span {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints_what_people_write() {
        for (text, millis, printed) in
            [("7d", 604_800_000, "7d"), ("90m", 5_400_000, "1h30m"), ("500ms", 500, "500ms"), ("0s", 0, "0s")]
        {
            let span: Span = text.parse().unwrap();
            assert_eq!((span.as_millis(), span.to_string().as_str()), (millis, printed));
        }
        for text in ["", "7", "d", "-1s", "1.5h", "1 s", "99999999999999999999s"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }
}
