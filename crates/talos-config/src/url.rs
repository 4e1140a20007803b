//! URLs as Go's `net/url` parses, merges (field by field) and prints them.

use std::net::Ipv6Addr;

/// Why a text is no URL: what is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Invalid(pub &'static str);

/// A parsed URL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Url {
    pub scheme: String,
    /// What stands behind the scheme if that is not a slash: then there is neither host nor path.
    pub opaque: String,
    pub user: Option<String>,
    pub host: String,
    /// The path with escapes decoded.
    pub path: Vec<u8>,
    /// The path as written, if printing `path` would give something else.
    pub raw_path: String,
    pub query: String,
    pub force_query: bool,
    /// One slash after the scheme, as in `file:/x`: no host is printed, not even an empty one.
    pub omit_host: bool,
    /// The fragment with escapes decoded.
    pub fragment: Vec<u8>,
    /// The fragment as written, if printing `fragment` would give something else.
    pub raw_fragment: String,
}

const UNRESERVED: &[u8] = b"-_.~";

impl Url {
    /// Parses a URL, or says what this parser does not take.
    pub fn parse(text: &str) -> Result<Url, Invalid> {
        let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
        if rest.bytes().any(|b| b < 0x20 || b == 0x7f) {
            return Err(Invalid("no control characters before '#'"));
        }
        let decoded = unescape(fragment).ok_or(Invalid("only %XX escapes in the fragment"))?;
        let mut url = Url { fragment: decoded, ..Url::default() };
        if escape_fragment(&url.fragment) != fragment {
            url.raw_fragment = fragment.to_owned();
        }
        let mut rest = url.take_scheme(rest)?;
        if let Some((before, query)) = rest.split_once('?') {
            (rest, url.query) = (before, query.to_owned());
            url.force_query = query.is_empty();
        }
        if !rest.starts_with('/') {
            if !url.scheme.is_empty() {
                url.opaque = rest.to_owned();
                return Ok(url);
            }
            if rest.split('/').next().is_some_and(|first| first.contains(':')) {
                return Err(Invalid("a scheme, as in https://"));
            }
        }
        url.omit_host = !url.scheme.is_empty() && !rest.starts_with("//");
        if let Some(after) = rest.strip_prefix("//").filter(|r| !url.scheme.is_empty() || !r.starts_with('/'))
        {
            let end = after.find('/').unwrap_or(after.len());
            url.take_authority(&after[..end])?;
            rest = &after[end..];
        }
        url.path = unescape(rest).ok_or(Invalid("only %XX escapes in the path"))?;
        if escape(&url.path) != rest {
            url.raw_path = rest.to_owned();
        }
        Ok(url)
    }

    fn take_scheme<'a>(&mut self, text: &'a str) -> Result<&'a str, Invalid> {
        let end =
            text.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c))).unwrap_or(text.len());
        if !text[end..].starts_with(':') {
            return Ok(text);
        }
        if end == 0 {
            return Err(Invalid("a scheme before ':'"));
        }
        if !text.as_bytes()[0].is_ascii_alphabetic() {
            return Ok(text);
        }
        self.scheme = text[..end].to_ascii_lowercase();
        Ok(&text[end + 1..])
    }

    fn take_authority(&mut self, text: &str) -> Result<(), Invalid> {
        let host = match text.rsplit_once('@') {
            Some((user, host)) => {
                if !user.bytes().all(|b| b == b'%' || is_plain(b, b":!$&'()*+,;=@")) {
                    return Err(Invalid("a user name and password whose other signs are written as %XX"));
                }
                let printed = |part: &str| {
                    let decoded = unescape(part).ok_or(Invalid("only %XX escapes in the user name"))?;
                    Ok::<_, Invalid>(escape_but(&decoded, b"$&+,;="))
                };
                self.user = Some(match user.split_once(':') {
                    Some((name, password)) => format!("{}:{}", printed(name)?, printed(password)?),
                    None => printed(user)?,
                });
                host
            }
            None => text,
        };
        self.host = escape_but(&parse_host(&self.scheme, host)?, HOST);
        Ok(())
    }

    /// Lays `right` over this URL: every part that `right` has wins. Two user names are an error in Talos.
    pub fn merge(&mut self, right: &Url) -> Result<(), ()> {
        let take = |l: &mut String, r: &String| {
            if !r.is_empty() {
                l.clone_from(r);
            }
        };
        take(&mut self.scheme, &right.scheme);
        take(&mut self.opaque, &right.opaque);
        if let Some(user) = &right.user {
            if self.user.is_some() {
                return Err(());
            }
            self.user = Some(user.clone());
        }
        take(&mut self.host, &right.host);
        if !right.path.is_empty() {
            self.path.clone_from(&right.path);
        }
        take(&mut self.raw_path, &right.raw_path);
        self.force_query = right.force_query;
        self.omit_host = right.omit_host;
        take(&mut self.query, &right.query);
        if !right.fragment.is_empty() {
            self.fragment.clone_from(&right.fragment);
        }
        take(&mut self.raw_fragment, &right.raw_fragment);
        Ok(())
    }

    /// Whether what is printed is a URL that prints the same and has this one's host: a path that was merged in from
    /// elsewhere may take the place of a host, and a URL of nothing is printed as none.
    pub fn survives(&self) -> bool {
        let printed = self.to_string();
        let same =
            |read: Url| read.to_string() == printed && (!self.opaque.is_empty() || read.host == self.host);
        !printed.is_empty() && Url::parse(&printed).is_ok_and(same)
    }

    fn write_tail(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.force_query || !self.query.is_empty() {
            write!(f, "?{}", self.query)?;
        }
        if self.fragment.is_empty() {
            return Ok(());
        }
        let raw = as_written(&self.raw_fragment, &self.fragment, b"/?");
        write!(f, "#{}", raw.map_or_else(|| escape_fragment(&self.fragment), str::to_owned))
    }

    fn printed_path(&self) -> String {
        if let Some(raw) = as_written(&self.raw_path, &self.path, b"/") {
            return raw.to_owned();
        }
        if self.path == b"*" { "*".to_owned() } else { escape(&self.path) }
    }
}

impl std::fmt::Display for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.scheme.is_empty() {
            write!(f, "{}:", self.scheme)?;
        }
        if !self.opaque.is_empty() {
            f.write_str(&self.opaque)?;
            return self.write_tail(f);
        }
        let authority = !self.host.is_empty() || self.user.is_some();
        if authority || !self.scheme.is_empty() && !self.path.is_empty() && !self.omit_host {
            f.write_str("//")?;
            if let Some(user) = &self.user {
                write!(f, "{user}@")?;
            }
            f.write_str(&self.host)?;
        }
        let path = self.printed_path();
        if !path.is_empty() && !path.starts_with('/') && !self.host.is_empty() {
            f.write_str("/")?;
        }
        // else it would read as a scheme
        let first = path.split('/').next().unwrap_or_default();
        if self.scheme.is_empty() && !authority && first.contains(':') {
            f.write_str("./")?;
        }
        f.write_str(&path)?;
        self.write_tail(f)
    }
}

/// What was written, if it stands for this text and needs no escapes; of the delimiters, these beside the others.
fn as_written<'r>(raw: &'r str, text: &[u8], more: &[u8]) -> Option<&'r str> {
    let valid = |b: u8| b == b'%' || more.contains(&b) || is_plain(b, b"!$&'()*+,;=:@[]");
    let same = !raw.is_empty() && raw.bytes().all(valid) && unescape(raw).as_deref() == Some(text);
    same.then_some(raw)
}

/// What may stand in a host without an escape.
const HOST: &[u8] = b"!$&'()*+,;=:[]<>\"";

/// A host with its port, escapes decoded.
fn parse_host(scheme: &str, host: &str) -> Result<Vec<u8>, Invalid> {
    const SIGNS: Invalid = Invalid("no signs in the host that need escapes");
    const PORT: Invalid = Invalid("a port number after the host");
    const V6: Invalid = Invalid("an IPv6 address between brackets, its zone behind %25");
    match host.rfind('[') {
        None => {
            let strict = matches!(scheme, "http" | "https");
            let port = if strict { host.find(':') } else { host.rfind(':') };
            if port.is_some_and(|i| !is_port(&host[i..])) {
                return Err(PORT);
            }
            unescape_host(host, false).ok_or(SIGNS)
        }
        Some(0) => {
            let (address, port) = host[1..].rsplit_once(']').ok_or(Invalid("']' after an IPv6 address"))?;
            if !is_port(port) {
                return Err(PORT);
            }
            let (ip, zone) = address.split_at(address.find("%25").unwrap_or(address.len()));
            if ip.parse::<Ipv6Addr>().is_err() || zone == "%25" {
                return Err(V6);
            }
            let zone = unescape_host(zone, true).ok_or(V6)?;
            Ok([b"[", ip.as_bytes(), &zone, b"]", port.as_bytes()].concat())
        }
        Some(_) => Err(Invalid("'[' nowhere but before an IPv6 address")),
    }
}

/// Nothing, or a colon and digits, if any.
fn is_port(text: &str) -> bool {
    text.strip_prefix(':').map_or(text.is_empty(), |port| port.bytes().all(|b| b.is_ascii_digit()))
}

/// Decodes a host or the zone in one. In a host only '%' and what is not ASCII may be written with escapes, in a zone
/// only what may also stand without, and a blank.
fn unescape_host(text: &str, zone: bool) -> Option<Vec<u8>> {
    let bytes = text.as_bytes();
    for (i, b) in bytes.iter().enumerate() {
        let fits = match b {
            b'%' => {
                let code = u8::from_str_radix(text.get(i + 1..i + 3)?, 16).ok()?;
                let allowed = if zone { code == b' ' || is_plain(code, HOST) } else { !code.is_ascii() };
                code == b'%' || allowed
            }
            _ => !b.is_ascii() || is_plain(*b, HOST),
        };
        if !fits {
            return None;
        }
    }
    unescape(text)
}

fn is_plain(b: u8, more: &[u8]) -> bool {
    b.is_ascii_alphanumeric() || UNRESERVED.contains(&b) || more.contains(&b)
}

/// Go's default escaping of a path.
fn escape(path: &[u8]) -> String {
    escape_but(path, b"$&+,/:;=@")
}

/// Go's default escaping of a fragment.
fn escape_fragment(fragment: &[u8]) -> String {
    escape_but(fragment, b"$&+,/:;=?@!()*")
}

/// Escapes everything but letters, digits, `-_.~` and these.
fn escape_but(text: &[u8], plain: &[u8]) -> String {
    let mut out = String::new();
    for b in text {
        if is_plain(*b, plain) {
            out.push(char::from(*b));
        } else {
            out.push_str(&format!("%{b:02X}"));
        }
    }
    out
}

fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        if b != b'%' {
            out.push(b);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        out.push((high * 16 + low) as u8);
    }
    Some(out)
}

/// Go parses no query that has more parameters.
const MOST_PARAMETERS: usize = 10_000;

/// A query taken apart, sorted and escaped anew as Talos does when it redacts a join token, with one parameter, if it
/// is there, replaced. Go drops the parts that it cannot read.
pub(crate) fn query_anew(query: &str, replace: Option<(&str, &str)>) -> String {
    if query.split('&').count() > MOST_PARAMETERS {
        return String::new();
    }
    let readable = query.split('&').filter(|part| !part.is_empty() && !part.contains(';'));
    let mut pairs: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for (key, value) in readable.filter_map(|part| {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        Some((query_unescape(key)?, query_unescape(value)?))
    }) {
        match replace {
            Some((name, text)) if key == name.as_bytes() => {
                if !pairs.iter().any(|(k, _)| *k == key) {
                    pairs.push((key, text.into()));
                }
            }
            _ => pairs.push((key, value)),
        }
    }
    pairs.sort_by(|a, b| a.0.cmp(&b.0));
    let escaped = pairs.iter().map(|(k, v)| format!("{}={}", query_escape(k), query_escape(v)));
    escaped.collect::<Vec<_>>().join("&")
}

fn query_unescape(text: &str) -> Option<Vec<u8>> {
    unescape(&text.replace('+', " "))
}

fn query_escape(text: &[u8]) -> String {
    escape_but(text, b" ").replace(' ', "+")
}

/// Whether a query has a parameter, be its value readable or not.
pub(crate) fn has_parameter(query: &str, key: &str) -> bool {
    query.split(['&', ';']).any(|part| {
        let name = part.split('=').next().unwrap_or_default();
        query_unescape(name).is_some_and(|name| name == key.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_like_go() {
        for (text, want) in [
            ("HTTPS://Host:6443", "https://Host:6443"),
            ("https://h/a b", "https://h/a%20b"),
            ("https://h/%7Ex", "https://h/%7Ex"),
            ("https://h/a!b?", "https://h/a!b?"),
            ("https://h/x#", "https://h/x"),
            ("https://u:p@[::1]:443/x?q=%20#f", "https://u:p@[::1]:443/x?q=%20#f"),
            ("file:///a", "file:///a"),
            ("https:/a/b", "https:/a/b"),
            ("https://u!:p%40@h", "https://u%21:p%40@h"),
            ("https://h/#a b", "https://h/#a%20b"),
            ("a/b", "a/b"),
            ("Mailto:a@b?c#d", "mailto:a@b?c#d"),
            ("example.com:6443", "example.com:6443"),
            ("http:", "http:"),
            ("http://", "http:"),
            ("http://\u{fc}(a):1/", "http://%C3%BC(a):1/"),
            ("https://h#a\tb", "https://h#a%09b"),
            ("tcp://a:b:1", "tcp://a:b:1"),
            ("https://h]%25/", "https://h]%25/"),
            ("https://[fe80::1%25a%20%41]:1", "https://[fe80::1%25a%20A]:1"),
            ("///h/x", "///h/x"),
            ("a%3Ab^?q", "./a:b%5E?q"),
        ] {
            assert_eq!(Url::parse(text).unwrap().to_string(), want, "{text}");
        }
        assert!(matches!(Url::parse("10.0.0.1:6443"), Err(Invalid(_))));
        assert!(matches!(Url::parse("https://h:x/"), Err(Invalid(_))));
        assert!(matches!(Url::parse("https://a%41b/"), Err(Invalid(_))));
        assert!(matches!(Url::parse("http://a:b:1"), Err(Invalid(_))));
        assert!(matches!(Url::parse("https://[fe80::1%25]/"), Err(Invalid(_))));
    }

    #[test]
    fn merges_by_part() {
        let mut left = Url::parse("https://a:6443/x?y").unwrap();
        left.merge(&Url::parse("https://b:6443").unwrap()).unwrap();
        assert_eq!(left.to_string(), "https://b:6443/x?y");
        assert!(left.survives());
        for (scheme, path) in [("https://", "a%3Ab^"), ("file:/x", "a/b")] {
            let mut left = Url::parse(scheme).unwrap();
            left.merge(&Url::parse(path).unwrap()).unwrap();
            assert!(!left.survives(), "{left}");
        }
    }
}
