//! References: `!bwref NAME`, `!bwref NAME@VERSION`, `!bwref NAME|base64`.

use std::fmt;
use std::str::FromStr;

/// The tag of a reference in YAML.
pub const TAG: &str = "!bwref";

/// The name of a secret: segments of lower-case letters, digits and inner hyphens, joined by `/`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecretName(String);

impl SecretName {
    /// The text of the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that is no reference. It is a name at most, so it may be shown; what is not even that is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadReference {
    /// The name.
    #[error("The reference names no secret: write lower-case segments joined by `/`, as in files/wifi")]
    Name,
    /// The version.
    #[error("The reference's version is no number from 1: write NAME@2, or leave it to the lock")]
    Version,
    /// The encoding.
    #[error("The reference's encoding is not known: `|base64` is the only one")]
    Encoding,
}

impl FromStr for SecretName {
    type Err = BadReference;

    fn from_str(text: &str) -> Result<SecretName, BadReference> {
        let segment = |part: &str| {
            let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
            !part.is_empty() && part.bytes().all(inner) && !part.starts_with('-') && !part.ends_with('-')
        };
        let sound = text.len() <= 200 && text.split('/').all(segment);
        if sound { Ok(SecretName(text.to_owned())) } else { Err(BadReference::Name) }
    }
}

/// A reference: it stands for one whole value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// The secret.
    pub name: SecretName,
    /// The version; the lock's when it is not written.
    pub version: Option<u64>,
    /// Is the value placed as base64?
    pub base64: bool,
}

impl Reference {
    /// The text with the version that is in use, as composed documents hold it.
    pub fn pinned(&self, version: u64) -> String {
        let encoding = if self.base64 { "|base64" } else { "" };
        format!("{}@{version}{encoding}", self.name)
    }
}

impl FromStr for Reference {
    type Err = BadReference;

    fn from_str(text: &str) -> Result<Reference, BadReference> {
        let (rest, base64) = match text.split_once('|') {
            Some((rest, "base64")) => (rest, true),
            Some(_) => return Err(BadReference::Encoding),
            None => (text, false),
        };
        let (name, version) = match rest.split_once('@') {
            Some((name, version)) => {
                let canonical = version.parse().ok().filter(|n: &u64| *n > 0 && n.to_string() == version);
                (name, Some(canonical.ok_or(BadReference::Version)?))
            }
            None => (rest, None),
        };
        Ok(Reference { name: name.parse()?, version, base64 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_design_writes() {
        let reference: Reference = "files/wifi@3|base64".parse().unwrap();
        assert_eq!(
            (reference.name.as_str(), reference.version, reference.base64),
            ("files/wifi", Some(3), true)
        );
        assert_eq!(reference.pinned(3), "files/wifi@3|base64");
        assert_eq!("a/b-c/1".parse::<Reference>().unwrap().pinned(7), "a/b-c/1@7");
        for (text, err) in [
            ("", BadReference::Name),
            ("A", BadReference::Name),
            ("a//b", BadReference::Name),
            ("-a", BadReference::Name),
            ("a@0", BadReference::Version),
            ("a@01", BadReference::Version),
            ("a|hex", BadReference::Encoding),
        ] {
            assert_eq!(text.parse::<Reference>().unwrap_err(), err, "{text}");
        }
    }
}
