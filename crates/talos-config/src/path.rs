//! Names of documents and places in them: `doc[n]` with an RFC 6901 pointer for people, `kind/name` for marks.

use std::borrow::Cow;
use std::fmt;

use thiserror::Error;

/// The identity of a document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocumentId {
    /// The apiVersion; empty for the `v1alpha1` document, which has none.
    pub api: String,
    /// The kind; `v1alpha1` for the document without a kind.
    pub kind: String,
    /// The name, for kinds that have one.
    pub name: Option<String>,
}

/// A text as a part of a message or a row: names and keys may hold anything, so what breaks the line, moves a cursor or
/// turns the direction of writing around is one sign that does not.
pub fn one_line(text: &str) -> Cow<'_, str> {
    let breaks = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    match text.contains(breaks) {
        true => Cow::Owned(text.chars().map(|c| if breaks(c) { '\u{fffd}' } else { c }).collect()),
        false => Cow::Borrowed(text),
    }
}

/// For people: `kind/name` in one line.
impl fmt::Display for DocumentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{}/{}", one_line(&self.kind), one_line(&escape(name))),
            None => f.write_str(&one_line(&self.kind)),
        }
    }
}

/// Which document a [`Path`] means.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DocumentRef {
    /// By its place in the encoded configuration, from 0: `doc[0]`.
    Index(usize),
    /// By kind and name: `VolumeConfig/EPHEMERAL`, or `v1alpha1`. Inserted documents do not move it.
    Id {
        /// The kind.
        kind: String,
        /// The name, for kinds that have one.
        name: Option<String>,
    },
}

/// A place in a configuration: a document and an RFC 6901 pointer. `doc[0]/machine/token`,
/// `v1alpha1/machine/token` is written `v1alpha1:/machine/token`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Path {
    /// The document.
    pub document: DocumentRef,
    /// Keys and indexes from its root, unescaped.
    pub segments: Vec<String>,
}

/// A text that is no [`Path`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("A path is 'doc[0]/machine/token' or 'kind/name:/pointer', for example 'v1alpha1:/machine/token'")]
pub struct PathError;

impl Path {
    /// The path of a place in the document with this identity.
    pub fn of(id: &DocumentId, pointer: &str) -> Self {
        Path {
            document: DocumentRef::Id { kind: id.kind.clone(), name: id.name.clone() },
            segments: segments(pointer),
        }
    }

    /// The RFC 6901 pointer within the document.
    pub fn pointer(&self) -> String {
        pointer(&self.segments)
    }
}

impl std::str::FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        if let Some(rest) = text.strip_prefix("doc[") {
            let (index, pointer) = rest.split_once(']').ok_or(PathError)?;
            if !(pointer.is_empty() || pointer.starts_with('/')) {
                return Err(PathError);
            }
            let index = index.parse().map_err(|_| PathError)?;
            return Ok(Path { document: DocumentRef::Index(index), segments: segments(pointer) });
        }
        // a name may hold ':', the pointer begins with '/'
        let (id, pointer) = match text.find(":/") {
            Some(i) => (&text[..i], &text[i + 1..]),
            None => (text.strip_suffix(':').unwrap_or(text), ""),
        };
        let (kind, name) = match id.split_once('/') {
            Some((kind, name)) => (kind, Some(unescape(name))),
            None => (id, None),
        };
        if kind.is_empty() || !kind.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return Err(PathError);
        }
        Ok(Path { document: DocumentRef::Id { kind: kind.to_owned(), name }, segments: segments(pointer) })
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.document {
            DocumentRef::Index(i) => write!(f, "doc[{i}]{}", self.pointer()),
            DocumentRef::Id { kind, name } => {
                write!(f, "{kind}")?;
                if let Some(name) = name {
                    write!(f, "/{}", escape(name).replace(':', "~2"))?;
                }
                write!(f, ":{}", self.pointer())
            }
        }
    }
}

fn escape(segment: &str) -> String {
    segment.replace('~', "~0").replace('/', "~1")
}

fn unescape(segment: &str) -> String {
    segment.replace("~2", ":").replace("~1", "/").replace("~0", "~")
}

/// An RFC 6901 pointer from unescaped segments.
pub fn pointer<S: AsRef<str>>(segments: &[S]) -> String {
    segments.iter().fold(String::new(), |out, s| out + "/" + &escape(s.as_ref()))
}

/// The unescaped segments of an RFC 6901 pointer.
pub fn segments(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|s| s.replace("~1", "/").replace("~0", "~")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_round_trip() {
        for text in [
            "doc[0]/machine/token",
            "doc[3]",
            "v1alpha1:/machine/files/0/content",
            "RegistryAuthConfig/my.registry~25000:/password",
            "StaticHostConfig/fd00~2~21:/hostnames/0",
            "v1alpha1:/machine/nodeLabels/a~1b",
        ] {
            assert_eq!(text.parse::<Path>().unwrap().to_string(), text);
        }
        assert!("doc[x]/a".parse::<Path>().is_err());
        assert!("/machine".parse::<Path>().is_err());
    }
}
