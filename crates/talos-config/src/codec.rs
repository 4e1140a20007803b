//! Decoders of leaf types: from a scalar's text to its canonical form, by the rules of Talos' own types.
//!
//! Each returns what would have been right, in words for a message that never quotes the value.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, PAD, STANDARD};

use crate::scalar::{Parsed, format_duration, parse_duration, parse_float};
use crate::tables::Codec;
use crate::url::{Invalid, Url};
use crate::value::{Data, Size};

/// The redaction mark that certificate keys take in place of base64.
pub(crate) const REDACTED: &str = "******";

/// Go takes no notice of the bits that the last sign of base64 has too many.
const LENIENT: GeneralPurpose =
    GeneralPurpose::new(&alphabet::STANDARD, PAD.with_decode_allow_trailing_bits(true));

/// Why a text does not fit.
pub(crate) enum Misfit {
    /// What would have been right.
    Wants(String),
    /// What Talos takes, but this engine cannot do exactly.
    Unsupported(String),
}

impl From<String> for Misfit {
    fn from(want: String) -> Self {
        Misfit::Wants(want)
    }
}

type Decoded = Result<Data, Misfit>;

/// Decodes the text of a leaf type that takes its text from any scalar.
pub(crate) fn decode_text(codec: &Codec, text: &str) -> Decoded {
    let or_zero = |value: Option<String>, want: &str| match value {
        _ if text.is_empty() => Ok(Data::Zero),
        Some(value) => Ok(Data::Text(value.into())),
        None => Err(want.to_owned().into()),
    };
    match codec {
        Codec::Enum { .. } => decode_enum(codec, text),
        Codec::ByteSize => or_zero(byte_size(text), "a size such as 10GiB"),
        Codec::Size if text.is_empty() => Ok(Data::Zero),
        Codec::Size if text.contains('%') => percentage(text).map(|()| size(Some(text), None)),
        Codec::Size => match byte_size(text) {
            Some(bytes) => Ok(size(None, Some(&bytes))),
            None => Err("a size such as 10GiB or 50%".to_owned().into()),
        },
        Codec::Raw => or_zero(Some(text.to_owned()), ""),
        Codec::Addr => or_zero(addr(text), "an IP address"),
        Codec::AddrPort => {
            or_zero(addr_port(text), "an IP address with a port, as 10.0.0.1:80 or [fd00::1]:80")
        }
        Codec::Prefix => or_zero(prefix(text), "a prefix such as 10.0.0.0/8"),
        Codec::HardwareAddr => match hardware_addr(text) {
            // an address of no bytes is set all the same: it erases another one
            Some(address) if address.is_empty() => Ok(Data::Bytes(Arc::new([]))),
            Some(address) => Ok(Data::Text(address.into())),
            None => Err("a hardware address such as 02:00:00:00:00:01".to_owned().into()),
        },
        Codec::Url => match Url::parse(text) {
            Ok(url) => Ok(Data::Url(Arc::new(url))),
            Err(Invalid(want)) => Err(format!("a URL with {want}").into()),
        },
        Codec::Base64 { redactable } if *redactable && text == REDACTED => {
            Ok(Data::Bytes(text.as_bytes().into()))
        }
        Codec::Base64 { .. } => {
            let breaks = ['\r', '\n'];
            let clean =
                if text.contains(breaks) { text.replace(breaks, "").into() } else { Cow::Borrowed(text) };
            LENIENT
                .decode(clean.as_ref())
                .map(|bytes| Data::Bytes(bytes.into()))
                .map_err(|_| "base64 with padding, as `base64 -w0` prints".to_owned().into())
        }
        Codec::DiskSize => match humanize(text) {
            Some(size) => Data::int(size.into()).ok_or_else(|| "a smaller size".to_owned().into()),
            None => Err("a size such as 10GB".to_owned().into()),
        },
        Codec::DiskSizeMatcher => match disk_matcher(text) {
            Some(matcher) => Ok(Data::Text(matcher.into())),
            None => Err("a comparison such as '>= 10GB'".to_owned().into()),
        },
        _ => Err("a value of a type that this version cannot decode".to_owned().into()),
    }
}

fn size(percent: Option<&str>, bytes: Option<&str>) -> Data {
    Data::Size(Arc::new(Size { percent: percent.map(Arc::from), bytes: bytes.map(Arc::from) }))
}

fn decode_enum(codec: &Codec, text: &str) -> Decoded {
    let Codec::Enum { texts, zero_is, exact, numbers, empty, .. } = codec else {
        return Err(String::new().into());
    };
    if text.is_empty() && *empty {
        return Ok(Data::Zero);
    }
    let lower = if *exact { Cow::Borrowed(text) } else { go_lower(text).into() };
    let named = texts.iter().position(|t| t == text || !*exact && t.eq_ignore_ascii_case(&lower));
    let numbered = || text.parse::<i8>().ok().and_then(|i| usize::try_from(i).ok());
    let found = if *numbers { named.or_else(numbered).filter(|i| *i < texts.len()) } else { named };
    match found {
        Some(i) if Some(i) == *zero_is => Ok(Data::Zero),
        Some(i) => Ok(Data::Text(texts[i].as_str().into())),
        None if texts.len() > 20 => Err(format!("one of {}, ...", texts[..6].join(", ")).into()),
        None => Err(format!("one of {}", texts.join(", ")).into()),
    }
}

/// `go-humanize`'s sizes: a number with `.` and `,`, blanks, and a unit in any case.
pub(crate) fn humanize(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ',')).unwrap_or(text.len());
    let number = text[..end].replace(',', "");
    // Go and Rust agree on plain decimals; Rust refuses what is no number
    let number: f64 = number.parse().ok()?;
    let unit = go_lower(text[end..].trim());
    let power = |prefix: &str| "kmgtpe".find(prefix).filter(|_| prefix.len() == 1).map(|i| i as i32 + 1);
    let factor = match unit.as_str() {
        "" | "b" => 1.0,
        _ => {
            let short = unit.strip_suffix('b').unwrap_or(&unit);
            match short.strip_suffix('i') {
                Some(prefix) => 1024f64.powi(power(prefix)?),
                None => 1000f64.powi(power(short)?),
            }
        }
    };
    let size = number * factor;
    // u64::MAX as f64 is 2^64, the bound that Go compares with
    if size >= u64::MAX as f64 { None } else { Some(size as u64) }
}

fn byte_size(text: &str) -> Option<String> {
    humanize(text.strip_prefix('-').unwrap_or(text)).map(|_| text.to_owned())
}

/// Whether a text with a '%' is a percentage, of any sign.
fn percentage(text: &str) -> Result<(), Misfit> {
    let number = text.strip_suffix('%').map(|t| t.strip_prefix('-').unwrap_or(t));
    match number.and_then(parse_float) {
        Some(Parsed::Number(value)) if value.is_nan() || (0.0..=100.0).contains(&value) => Ok(()),
        Some(Parsed::Hexadecimal) => {
            Err(Misfit::Unsupported("a percentage in hexadecimal digits".to_owned()))
        }
        _ => Err("a percentage from 0% to 100%".to_owned().into()),
    }
}

/// Whether a percentage with a sign may be none below zero: minus nothing.
pub(crate) fn is_negative_zero(text: &str) -> bool {
    match text.strip_suffix('%').and_then(parse_float) {
        Some(Parsed::Number(value)) => value == 0.0,
        Some(Parsed::Hexadecimal) => true,
        None => false,
    }
}

/// Go's `strings.ToLower`: character by character.
fn go_lower(text: &str) -> String {
    let lower = |c: char| match c {
        '\u{130}' => 'i',
        c => c.to_lowercase().next().unwrap_or(c),
    };
    text.chars().map(lower).collect()
}

fn addr(text: &str) -> Option<String> {
    match text.split_once('%') {
        // Go takes anything for a zone
        Some((ip, zone)) if !zone.is_empty() => {
            let ip: Ipv6Addr = ip.parse().ok()?;
            Some(format!("{ip}%{zone}"))
        }
        Some(_) => None,
        None => text.parse::<IpAddr>().ok().map(|ip| ip.to_string()),
    }
}

fn addr_port(text: &str) -> Option<String> {
    let (host, port) = text.rsplit_once(':')?;
    if port.is_empty() || !port.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let port: u16 = port.parse().ok()?;
    match host.strip_prefix('[') {
        Some(rest) => {
            let ip = addr(rest.strip_suffix(']')?)?;
            ip.contains(':').then(|| format!("[{ip}]:{port}"))
        }
        None => {
            let ip = addr(host)?;
            (!ip.contains(':')).then(|| format!("{ip}:{port}"))
        }
    }
}

fn prefix(text: &str) -> Option<String> {
    let (ip, bits) = text.rsplit_once('/')?;
    let ip: IpAddr = ip.parse().ok()?;
    let plain = bits == "0" || bits.bytes().all(|b| b.is_ascii_digit()) && !bits.starts_with('0');
    let bits: u8 = bits.parse().ok()?;
    let most = if ip.is_ipv4() { 32 } else { 128 };
    (plain && bits <= most).then(|| format!("{ip}/{bits}"))
}

fn hardware_addr(text: &str) -> Option<String> {
    // Go drops the colons wherever they stand
    let digits: Vec<u8> = text.bytes().filter(|b| *b != b':').map(|b| b.to_ascii_lowercase()).collect();
    if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let bytes: Vec<&str> = digits.chunks(2).filter_map(|pair| std::str::from_utf8(pair).ok()).collect();
    Some(bytes.join(":"))
}

fn disk_matcher(text: &str) -> Option<String> {
    let text = text.trim();
    let size = [">=", "<=", "==", ">", "<"].iter().find_map(|op| text.strip_prefix(op)).unwrap_or(text);
    humanize(size.trim_start()).map(|_| text.to_owned())
}

/// The text that stands in base64 under the tag `!!binary`.
pub(crate) fn binary_text(text: &str) -> Result<String, Misfit> {
    let Data::Bytes(bytes) = decode_text(&Codec::Base64 { redactable: false }, text)? else {
        return Err(String::new().into());
    };
    // some minors keep the bytes
    let beyond = |_| Misfit::Unsupported("text in base64 that is no UTF-8".to_owned());
    String::from_utf8(bytes.to_vec()).map_err(beyond)
}

/// A port or a range of ports: `port` is the scalar as a number, if it is one.
pub(crate) fn port_range(port: Option<i128>, text: &str) -> Decoded {
    let number = |t: &str| {
        let digits = !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| t.parse::<u16>().ok()).flatten()
    };
    if let Some(port) = port.and_then(|p| u16::try_from(p).ok()) {
        return Ok(Data::Text(port.to_string().into()));
    }
    match text.split_once('-').and_then(|(lo, hi)| Some((number(lo)?, number(hi)?))) {
        Some((lo, hi)) if lo == hi => Ok(Data::Text(lo.to_string().into())),
        Some((lo, hi)) => Ok(Data::Text(format!("{lo}-{hi}").into())),
        None => Err("a port or a range such as 100-200".to_owned().into()),
    }
}

/// A duration in Go's notation.
pub(crate) fn duration(text: &str) -> Decoded {
    parse_duration(text).map(Data::Int).ok_or_else(|| "a duration such as 30s or 1h30m".to_owned().into())
}

/// The text that Go's `String` gives for a leaf value, for delete selectors and output.
pub(crate) fn text_of<'v>(codec: &'v Codec, data: &'v Data) -> Cow<'v, str> {
    match (codec, data) {
        (Codec::Enum { zero, .. }, Data::Zero) => zero.into(),
        (Codec::Duration, Data::Zero) => "0s".into(),
        (Codec::Duration, Data::Int(nanos)) => format_duration(*nanos).into(),
        (Codec::Base64 { redactable: true }, Data::Bytes(b)) if **b == *REDACTED.as_bytes() => {
            REDACTED.into()
        }
        (_, Data::Bytes(b)) => STANDARD.encode(b).into(),
        (_, Data::Url(url)) => url.to_string().into(),
        (_, Data::Size(size)) => size.bytes.as_deref().or(size.percent.as_deref()).unwrap_or_default().into(),
        (_, Data::Text(t)) => Cow::Borrowed(t),
        _ => "".into(),
    }
}

/// How a disk size is printed: short if that is exact, else in bytes. The second value says whether it is text.
pub(crate) fn disk_size_text(size: u64) -> (String, bool) {
    let short = short_size(size);
    if size.is_multiple_of(1000) && humanize(&short) == Some(size) {
        (short, true)
    } else {
        (size.to_string(), false)
    }
}

/// `go-humanize`'s short form with powers of 1000.
fn short_size(size: u64) -> String {
    if size < 10 {
        return format!("{size} B");
    }
    let units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let exponent = ((size as f64).ln() / 1000f64.ln()).floor();
    let value = (size as f64 / 1000f64.powf(exponent) * 10.0 + 0.5).floor() / 10.0;
    let unit = units.get(exponent as usize).unwrap_or(&"EB");
    if value < 10.0 { format!("{value:.1} {unit}") } else { format!("{value:.0} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(humanize("10GiB"), Some(10 << 30));
        assert_eq!(humanize("1,000 kB"), Some(1_000_000));
        assert_eq!(humanize("2.0"), Some(2));
        assert_eq!(humanize("10 G\u{130}B"), Some(10 << 30));
        assert_eq!(humanize("10 \u{212a}B"), Some(10_000));
        for bad in ["1e9", "0x10", "1_000", "", "GB", "1 xb", "20000000PB"] {
            assert_eq!(humanize(bad), None, "{bad}");
        }
        assert_eq!(disk_size_text(10_000_000_000), ("10 GB".to_owned(), true));
        assert_eq!(disk_size_text(1_500_000_000), ("1.5 GB".to_owned(), true));
        assert_eq!(disk_size_text(1 << 30), ("1073741824".to_owned(), false));
    }

    #[test]
    fn addresses() {
        assert_eq!(addr("FD00:0:0::1").as_deref(), Some("fd00::1"));
        assert_eq!(prefix("FD00:0:0::1/64").as_deref(), Some("fd00::1/64"));
        assert_eq!(addr_port("[fd00::1]:0080").as_deref(), Some("[fd00::1]:80"));
        assert_eq!(addr("FE80::1%eth0:1/a%b").as_deref(), Some("fe80::1%eth0:1/a%b"));
        assert_eq!(addr("::ffff:1.2.3.4%a").as_deref(), Some("::ffff:1.2.3.4%a"));
        assert_eq!(addr("fe80::1%"), None);
        assert_eq!(addr("1.2.3.4%a"), None);
        assert_eq!(addr_port("[fe80::1%a]b]:80").as_deref(), Some("[fe80::1%a]b]:80"));
        assert_eq!(prefix("fe80::1%a/64"), None);
        assert_eq!(prefix("10.0.0.1/08"), None);
        assert_eq!(addr("10.0.0.01"), None);
        assert_eq!(hardware_addr("AA:bb:00").as_deref(), Some("aa:bb:00"));
        assert_eq!(hardware_addr("a:Ab:b").as_deref(), Some("aa:bb"));
        assert_eq!(hardware_addr("aa-bb"), None);
    }
}
