//! What a plain scalar means to go-yaml (YAML 1.1 with its own extensions), and Go's number and time notations.

/// The meaning of a plain, untagged scalar.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Plain {
    Null,
    Bool(bool),
    /// Within `i64`, or above it within `u64`.
    Int(i128),
    Float(f64),
    Timestamp,
    Text,
    /// The merge key `<<`.
    Merge,
}

/// Resolves a plain scalar as go-yaml does.
pub(crate) fn resolve(text: &str) -> Plain {
    let Some(first) = text.bytes().next() else { return Plain::Null };
    // most texts, and nothing below begins so
    if first == b'/' || first.is_ascii_alphabetic() && !b"tTfFnN".contains(&first) {
        return Plain::Text;
    }
    match text {
        "true" | "True" | "TRUE" => return Plain::Bool(true),
        "false" | "False" | "FALSE" => return Plain::Bool(false),
        "~" | "null" | "Null" | "NULL" => return Plain::Null,
        "<<" => return Plain::Merge,
        ".nan" | ".NaN" | ".NAN" => return Plain::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Plain::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Plain::Float(f64::NEG_INFINITY),
        "-0" | "-0.0" => return Plain::Float(-0.0),
        _ => {}
    }
    match first {
        b'.' => match go_float(text) {
            Some(f) => Plain::Float(f),
            None => Plain::Text,
        },
        b'+' | b'-' | b'0'..=b'9' => number(text),
        _ => Plain::Text,
    }
}

fn number(text: &str) -> Plain {
    if is_timestamp(text) {
        return Plain::Timestamp;
    }
    let digits = text.replace('_', "");
    if let Some(i) = go_int(&digits) {
        return Plain::Int(i);
    }
    if yaml_float(&digits)
        && let Some(f) = digits.parse::<f64>().ok().filter(|f| f.is_finite())
    {
        return Plain::Float(f);
    }
    Plain::Text
}

/// `strconv.ParseInt(text, 0, 64)`, then `ParseUint`: a sign, then a prefix `0x`, `0o`, `0b` or `0`, then digits.
fn go_int(text: &str) -> Option<i128> {
    let (negative, signed, rest) = match text.as_bytes().first()? {
        b'-' => (true, true, &text[1..]),
        b'+' => (false, true, &text[1..]),
        _ => (false, false, text),
    };
    let lower = rest.to_ascii_lowercase();
    let (radix, digits) = if let Some(d) = lower.strip_prefix("0x") {
        (16, d)
    } else if let Some(d) = lower.strip_prefix("0b") {
        (2, d)
    } else if let Some(d) = lower.strip_prefix("0o") {
        (8, d)
    } else if lower.len() > 1 && lower.starts_with('0') {
        (8, &lower[1..])
    } else {
        (10, lower.as_str())
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return None;
    }
    let value = i128::from(u64::from_str_radix(digits, radix).ok()?);
    let value = if negative { -value } else { value };
    let fits = (i128::from(i64::MIN)..=i128::from(i64::MAX)).contains(&value);
    if fits || (!signed && value > 0) { Some(value) } else { None }
}

/// `[-+]?(\.d+|d+(\.d*)?)([eE][-+]?d+)?`
fn yaml_float(text: &str) -> bool {
    let rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match rest.find(['e', 'E']) {
        Some(i) => (&rest[..i], Some(&rest[i + 1..])),
        None => (rest, None),
    };
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let mantissa_fits = match mantissa.split_once('.') {
        Some(("", frac)) => !frac.is_empty() && digits(frac),
        Some((whole, frac)) => digits(whole) && digits(frac),
        None => !mantissa.is_empty() && digits(mantissa),
    };
    let exponent_fits = exponent.is_none_or(|e| {
        let e = e.strip_prefix(['-', '+']).unwrap_or(e);
        !e.is_empty() && digits(e)
    });
    mantissa_fits && exponent_fits
}

/// Go's `ParseFloat` for decimal digits; `_` may stand between them.
fn go_float(text: &str) -> Option<f64> {
    let bytes = text.as_bytes();
    for (i, b) in bytes.iter().enumerate() {
        if *b == b'_' {
            let beside = |j: Option<usize>| j.and_then(|j| bytes.get(j)).is_some_and(u8::is_ascii_digit);
            if !beside(i.checked_sub(1)) || !beside(Some(i + 1)) {
                return None;
            }
        }
    }
    let clean = text.replace('_', "");
    if yaml_float(&clean) { clean.parse().ok().filter(|f: &f64| f.is_finite()) } else { None }
}

/// A number as Go's `ParseFloat` reads it.
pub(crate) enum Parsed {
    Number(f64),
    /// Hexadecimal digits, as `0x1p3`.
    Hexadecimal,
}

/// Go's `ParseFloat`.
pub(crate) fn parse_float(text: &str) -> Option<Parsed> {
    let rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if text.eq_ignore_ascii_case("nan") {
        return Some(Parsed::Number(f64::NAN));
    }
    if rest.starts_with("0x") || rest.starts_with("0X") {
        return Some(Parsed::Hexadecimal);
    }
    go_float(text).map(Parsed::Number)
}

/// Whether go-yaml takes a plain text for a time: `2006-1-2`, with `T15:4:5.9Z07:00` or ` 15:4:5.9`.
pub(crate) fn is_timestamp(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() < 8 || !bytes[..4].iter().all(u8::is_ascii_digit) || bytes[4] != b'-' {
        return false;
    }
    let mut rest = &text[5..];
    let year: u32 = text[..4].parse().unwrap_or(0);
    let Some(month) = field(&mut rest, 1..=12) else { return false };
    if !eat(&mut rest, b"-") {
        return false;
    }
    let Some(_) = field(&mut rest, 1..=days(year, month)) else { return false };
    if rest.is_empty() {
        return true;
    }
    let zoned = eat(&mut rest, b"Tt");
    if !zoned && !eat(&mut rest, b" ") {
        return false;
    }
    // where Go wants one blank, it takes more
    if !zoned {
        rest = rest.trim_start_matches(' ');
    }
    let time = field(&mut rest, 0..=23).is_some()
        && eat(&mut rest, b":")
        && field(&mut rest, 0..=59).is_some()
        && eat(&mut rest, b":")
        && field(&mut rest, 0..=59).is_some();
    if !time {
        return false;
    }
    if eat(&mut rest, b".,") {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return false;
        }
        rest = &rest[digits..];
    }
    if !zoned {
        return rest.is_empty();
    }
    rest == "Z" || is_zone(rest)
}

fn is_zone(text: &str) -> bool {
    let b = text.as_bytes();
    let two = |i: usize| {
        (b[i].is_ascii_digit() && b[i + 1].is_ascii_digit()).then(|| (b[i] - 48) * 10 + b[i + 1] - 48)
    };
    b.len() == 6
        && matches!(b[0], b'+' | b'-')
        && b[3] == b':'
        && two(1).is_some_and(|h| h <= 24)
        && two(4).is_some_and(|m| m <= 60)
}

fn field(rest: &mut &str, range: std::ops::RangeInclusive<u32>) -> Option<u32> {
    let digits = rest.bytes().take(2).take_while(u8::is_ascii_digit).count();
    let value = rest.get(..digits)?.parse().ok()?;
    *rest = &rest[digits..];
    range.contains(&value).then_some(value)
}

fn eat(rest: &mut &str, any: &[u8]) -> bool {
    match rest.bytes().next() {
        Some(b) if any.contains(&b) => {
            *rest = &rest[1..];
            true
        }
        _ => false,
    }
}

fn days(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The words that go-yaml takes for booleans where a boolean is asked for, beside true and false.
pub(crate) fn old_bool(text: &str) -> Option<bool> {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(true),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

/// Go's `%g` with the shortest digits and go-yaml's spellings.
pub(crate) fn format_float(f: f64) -> String {
    if f.is_nan() {
        return ".nan".to_owned();
    }
    if f.is_infinite() {
        return if f > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    if f == 0.0 {
        return if f.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    let text = format!("{f:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    format!("{f}")
}

/// The number that stands for the most negative duration, and the largest that Go lets a part of one reach.
const MOST: u64 = 1 << 63;

/// Go's `time.ParseDuration`, in nanoseconds.
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let whole = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: u64 = if whole == 0 { 0 } else { rest[..whole].parse().ok()? };
        rest = &rest[whole..];
        let (mut part, mut scale, mut digits) = (0, 1.0, 0);
        if let Some(after) = rest.strip_prefix('.') {
            digits = after.bytes().take_while(u8::is_ascii_digit).count();
            (part, scale) = fraction(&after[..digits]);
            rest = &after[digits..];
        }
        if whole == 0 && digits == 0 {
            return None;
        }
        let len = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
        let unit: u64 = match &rest[..len] {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        rest = &rest[len..];
        let number = number.checked_mul(unit).filter(|n| *n <= MOST)?;
        // Go rounds here, and rounds the unit of the last digit first
        let below = (part as f64 * (unit as f64 / scale)) as u64;
        let value = number.checked_add(below).filter(|n| *n <= MOST)?;
        // two of the largest numbers make zero in Go
        total = Some(total.wrapping_add(value)).filter(|n| *n <= MOST)?;
    }
    if negative { Some((total as i64).wrapping_neg()) } else { i64::try_from(total).ok() }
}

/// The digits behind a point, as far as Go counts them, and what to divide them by.
fn fraction(digits: &str) -> (u64, f64) {
    let (mut value, mut scale) = (0u64, 1.0);
    for b in digits.bytes() {
        if value > (MOST - 1) / 10 {
            break;
        }
        let next = value * 10 + u64::from(b - b'0');
        if next > MOST {
            break;
        }
        (value, scale) = (next, scale * 10.0);
    }
    (value, scale)
}

/// Go's `Duration.String`.
pub(crate) fn format_duration(nanos: i64) -> String {
    if nanos == 0 {
        return "0s".to_owned();
    }
    let sign = if nanos < 0 { "-" } else { "" };
    let n = nanos.unsigned_abs();
    let with = |whole: u64, frac: u64, width: usize, unit: &str| {
        let frac = format!("{frac:0width$}");
        let frac = frac.trim_end_matches('0');
        if frac.is_empty() { format!("{whole}{unit}") } else { format!("{whole}.{frac}{unit}") }
    };
    let body = match n {
        0..1_000 => format!("{n}ns"),
        1_000..1_000_000 => with(n / 1_000, n % 1_000, 3, "µs"),
        1_000_000..1_000_000_000 => with(n / 1_000_000, n % 1_000_000, 6, "ms"),
        _ => {
            let seconds = n / 1_000_000_000;
            let last = with(seconds % 60, n % 1_000_000_000, 9, "s");
            match (seconds / 3600, seconds / 60 % 60) {
                (0, 0) => last,
                (0, m) => format!("{m}m{last}"),
                (h, m) => format!("{h}h{m}m{last}"),
            }
        }
    };
    format!("{sign}{body}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolves_like_go_yaml() {
        for (text, want) in [
            ("0x1F", Plain::Int(31)),
            ("0o644", Plain::Int(420)),
            ("0644", Plain::Int(420)),
            ("1_000", Plain::Int(1000)),
            ("18446744073709551615", Plain::Int(18446744073709551615)),
            ("100000000000000000000", Plain::Float(1e20)),
            ("1e3", Plain::Float(1000.0)),
            ("1.", Plain::Float(1.0)),
            (".5", Plain::Float(0.5)),
            ("08", Plain::Float(8.0)),
            ("yes", Plain::Text),
            ("12:30", Plain::Text),
            ("2024-02-30", Plain::Text),
            ("2024-02-29", Plain::Timestamp),
            ("2024-1-2T3:4:5Z", Plain::Timestamp),
            ("~", Plain::Null),
            ("+", Plain::Text),
        ] {
            assert_eq!(resolve(text), want, "{text}");
        }
    }

    #[test]
    fn durations_round_trip() {
        for (text, want) in [
            ("1h", "1h0m0s"),
            ("1.5h", "1h30m0s"),
            ("90s", "1m30s"),
            ("+5s", "5s"),
            ("100us", "100µs"),
            ("1500ms", "1.5s"),
            ("0", "0s"),
        ] {
            assert_eq!(format_duration(parse_duration(text).unwrap()), want);
        }
        assert_eq!(parse_duration("0.03188925886500h"), Some(114_801_331_913));
        assert_eq!(parse_duration("-9223372036854775808ns"), Some(i64::MIN));
        assert_eq!(parse_duration("9223372036854775807ns"), Some(i64::MAX));
        assert_eq!(parse_duration("-9223372036854775808ns9223372036854775808ns"), Some(0));
        assert_eq!(parse_duration("9223372036854775808ns"), None);
        assert_eq!(parse_duration("5"), None);
        assert_eq!(parse_duration("1y"), None);
    }

    #[test]
    fn floats_print_like_go() {
        for (f, want) in [
            (1.0, "1"),
            (100000.0, "100000"),
            (1e6, "1e+06"),
            (123456789.0, "1.23456789e+08"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1e20, "1e+20"),
            (1234567.5, "1.2345675e+06"),
            (-0.0, "-0"),
        ] {
            assert_eq!(format_float(f), want);
        }
    }
}
