//! `allowed_signers`: OpenSSH's format, narrowed to what can be told apart by reading.
//!
//! One literal principal and one key a line. Patterns, lists of principals, `cert-authority` and one key under two
//! principals are refused, so that distinct principals are
//! distinct keys. One principal may have several keys, each on a line of its own.

use ssh_key::public::KeyData;

use crate::sign::parse_public;

/// One line: a principal and its key.
#[derive(Clone, Debug)]
pub struct AllowedSigner {
    /// An e-mail address.
    pub principal: String,
    /// The key that signs for it.
    pub key: KeyData,
    /// In which namespaces the key counts (`None`: all).
    pub namespaces: Option<Vec<String>>,
    /// From when on, seconds since 1970.
    pub valid_after: Option<i64>,
    /// Until when (that second included, as OpenSSH counts), seconds since 1970.
    pub valid_before: Option<i64>,
    /// The line, 1-based.
    pub line: usize,
}

/// A parsed `allowed_signers` file.
#[derive(Clone, Debug, Default)]
pub struct AllowedSigners {
    lines: Vec<AllowedSigner>,
}

/// A line that is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("allowed_signers:{line}:1: {problem}")]
pub struct AllowedSignersError {
    /// The line, 1-based.
    pub line: usize,
    /// What is wrong, and what to write instead.
    pub problem: Problem,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// A pattern or a list where one literal principal must stand.
    #[error("`{0}` is not one literal principal: write one e-mail address, one line for each key")]
    Principal(String),
    /// `cert-authority`.
    #[error("`cert-authority` is not supported: list the keys themselves")]
    CertAuthority,
    /// An option that is unknown, doubled or malformed.
    #[error(
        "The option `{0}` cannot be read: known are namespaces=\"…\", valid-after=\"…\", valid-before=\"…\""
    )]
    Option(String),
    /// A time without a zone: OpenSSH would read it in the local one.
    #[error(
        "`{0}` is no time in UTC: write YYYYMMDD, HHMM, SS and a final Z, as in 20270101Z or 20270101120000Z"
    )]
    Time(String),
    /// A namespace pattern.
    #[error("`{0}` is a namespace pattern: write the names, as in namespaces=\"git,bronzeward-approval\"")]
    Namespace(String),
    /// The end is not after the beginning.
    #[error("valid-before is not after valid-after")]
    EmptyInterval,
    /// The key cannot be read.
    #[error("The key cannot be read: write its type and its base64 text as in the .pub file")]
    Key,
    /// The same key twice.
    #[error("The key already stands on line {0}: one key is one principal")]
    SameKey(usize),
    /// Not UTF-8.
    #[error("The file is not UTF-8 text")]
    NotUtf8,
}

impl AllowedSigners {
    /// Reads a whole file.
    ///
    /// # Errors
    /// The first line that is refused.
    pub fn parse(bytes: &[u8]) -> Result<AllowedSigners, AllowedSignersError> {
        let text = std::str::from_utf8(bytes)
            .map_err(|_| AllowedSignersError { line: 1, problem: Problem::NotUtf8 })?;
        let mut lines: Vec<AllowedSigner> = Vec::new();
        for (index, text) in text.lines().enumerate() {
            let line = index + 1;
            let fail = |problem| AllowedSignersError { line, problem };
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let signer = parse_line(text, line).map_err(fail)?;
            if let Some(other) = lines.iter().find(|other| other.key == signer.key) {
                return Err(fail(Problem::SameKey(other.line)));
            }
            lines.push(signer);
        }
        Ok(AllowedSigners { lines })
    }

    /// The lines, in the file's order.
    pub fn lines(&self) -> &[AllowedSigner] {
        &self.lines
    }

    /// The principal for which a key signs in a namespace at a time (seconds since 1970).
    pub fn principal(&self, key: &KeyData, namespace: &str, now: i64) -> Option<&str> {
        let line = self.lines.iter().find(|line| line.key == *key)?;
        let in_namespace =
            line.namespaces.as_ref().is_none_or(|names| names.iter().any(|name| name == namespace));
        let in_time = line.valid_after.is_none_or(|after| now >= after)
            && line.valid_before.is_none_or(|before| now <= before);
        (in_namespace && in_time).then_some(line.principal.as_str())
    }

    /// The principal whose line holds a key, whatever its namespaces and times.
    pub fn owner(&self, key: &KeyData) -> Option<&str> {
        self.lines.iter().find(|line| line.key == *key).map(|line| line.principal.as_str())
    }
}

fn parse_line(text: &str, line: usize) -> Result<AllowedSigner, Problem> {
    let (principal, rest) = first_token(text).ok_or_else(|| Problem::Principal(text.to_owned()))?;
    let literal = !principal.is_empty()
        && principal != ROOT
        && principal.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '*' | '?' | '!' | ',' | '"'));
    if !literal {
        return Err(Problem::Principal(principal));
    }
    let mut signer = AllowedSigner {
        principal,
        key: KeyData::Ed25519(ssh_key::public::Ed25519PublicKey([0; 32])),
        namespaces: None,
        valid_after: None,
        valid_before: None,
        line,
    };
    // as OpenSSH: options are there when what follows the principal is no key
    let rest = match parse_public(rest) {
        Ok(_) => rest,
        Err(_) => {
            let (options, keys) = split_options(rest);
            // no option is named as a type of key: this is a key that cannot be read
            if KEY_TYPES.iter().any(|kind| options.starts_with(kind)) {
                return Err(Problem::Key);
            }
            parse_options(options, &mut signer)?;
            keys
        }
    };
    let key = parse_public(rest).map_err(|_| Problem::Key)?;
    signer.key = key.key_data().clone();
    match (signer.valid_after, signer.valid_before) {
        (Some(after), Some(before)) if before <= after => Err(Problem::EmptyInterval),
        _ => Ok(signer),
    }
}

/// What an approval's `Approved-By` says of a root key; no principal may have that name.
pub const ROOT: &str = "root";

/// How the names of all of OpenSSH's key types begin.
const KEY_TYPES: [&str; 3] = ["ssh-", "ecdsa-", "sk-"];

fn first_token(text: &str) -> Option<(String, &str)> {
    if let Some(quoted) = text.strip_prefix('"') {
        let end = quoted.find('"')?;
        return Some((quoted[..end].to_owned(), &quoted[end + 1..]));
    }
    let end = text.find([' ', '\t'])?;
    Some((text[..end].to_owned(), text[end..].trim_start()))
}

fn split_options(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let mut quoted = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            ' ' | '\t' if !quoted => return (&text[..at], text[at..].trim_start()),
            _ => {}
        }
    }
    (text, "")
}

fn parse_options(mut text: &str, signer: &mut AllowedSigner) -> Result<(), Problem> {
    let bad = |text: &str| Problem::Option(text.split(['=', ',']).next().unwrap_or_default().to_owned());
    while !text.is_empty() {
        let end = text.find(['=', ',']).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        let (value, rest) = match rest.strip_prefix("=\"") {
            Some(rest) => {
                let end = rest.find('"').ok_or_else(|| bad(text))?;
                (Some(&rest[..end]), &rest[end + 1..])
            }
            None => (None, rest),
        };
        set_option(&name.to_ascii_lowercase(), value, signer)
            .map_err(|problem| problem.unwrap_or_else(|| bad(text)))?;
        text = match rest.strip_prefix(',') {
            Some("") => return Err(bad(text)),
            Some(rest) => rest,
            None if rest.is_empty() => rest,
            None => return Err(bad(text)),
        };
    }
    Ok(())
}

fn set_option(name: &str, value: Option<&str>, signer: &mut AllowedSigner) -> Result<(), Option<Problem>> {
    match (name, value) {
        ("cert-authority", None) => return Err(Some(Problem::CertAuthority)),
        ("namespaces", Some(value)) if signer.namespaces.is_none() => {
            let names: Vec<String> = value.split(',').map(str::to_owned).collect();
            if names.iter().any(|name| name.is_empty() || name.contains(['*', '?', '!'])) {
                return Err(Some(Problem::Namespace(value.to_owned())));
            }
            signer.namespaces = Some(names);
        }
        ("valid-after", Some(value)) if signer.valid_after.is_none() => {
            signer.valid_after = Some(utc(value).ok_or_else(|| Some(Problem::Time(value.to_owned())))?);
        }
        ("valid-before", Some(value)) if signer.valid_before.is_none() => {
            signer.valid_before = Some(utc(value).ok_or_else(|| Some(Problem::Time(value.to_owned())))?);
        }
        _ => return Err(None),
    }
    Ok(())
}

/// `YYYYMMDD[HHMM[SS]]Z` as seconds since 1970. Without the final Z OpenSSH means local time: refused.
fn utc(text: &str) -> Option<i64> {
    let digits = text.strip_suffix('Z')?;
    if !digits.bytes().all(|b| b.is_ascii_digit()) || !matches!(digits.len(), 8 | 12 | 14) {
        return None;
    }
    let part = |from: usize, to: usize| digits.get(from..to).map_or(Some(0), |text| text.parse::<i64>().ok());
    let (year, month, day) = (part(0, 4)?, part(4, 6)?, part(6, 8)?);
    let (hour, minute, second) = (part(8, 10)?, part(10, 12)?, part(12, 14)?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let lengths = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let length =
        usize::try_from(month).ok().and_then(|month| month.checked_sub(1)).and_then(|at| lengths.get(at))?;
    if year < 1970 || !(1..=*length).contains(&day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    Some(days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second)
}

/// Days of the Gregorian calendar, counted in 400-year eras that begin in March.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month = (month + 9) % 12;
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}
