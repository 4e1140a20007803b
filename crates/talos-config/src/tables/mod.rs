//! What Talos' library knows about its documents, as data: see `schema/talos/<minor>/tables.json`.
//!
//! The tables are made by `fixtures/tables` from the library itself. One engine serves every minor.

mod load;
mod switches;
mod zero;

use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::secrets::Pattern;
use crate::yaml::Dialect;

pub(crate) use switches::{MissingDelete, OldQuote, PatchOrder, Switches, Unquoted};

/// A minor, the bytes of its tables, and the tables once they were asked for.
type Embedded = (&'static str, &'static [u8], OnceLock<Option<Tables>>);

/// The tables that are part of this library, oldest first.
static EMBEDDED: [Embedded; 3] = [
    ("1.12", include_bytes!("../../../../schema/talos/1.12/tables.json"), OnceLock::new()),
    ("1.13", include_bytes!("../../../../schema/talos/1.13/tables.json"), OnceLock::new()),
    ("1.14", include_bytes!("../../../../schema/talos/1.14/tables.json"), OnceLock::new()),
];

/// The tables of one Talos minor. Cloning is cheap.
#[derive(Clone)]
pub struct Tables(pub(crate) Arc<Inner>);

impl std::fmt::Debug for Tables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tables({})", self.0.machinery)
    }
}

/// Why tables cannot be used.
#[derive(Debug, Error)]
pub enum TablesError {
    /// Not the JSON that `fixtures/tables` prints.
    #[error("The tables cannot be read; make them again with fixtures/tables")]
    Json(#[source] serde_json::Error),
    /// A rule outside of the types (quoting, decoding) that this engine does not have.
    #[error("The rule {name:?} of the tables says what this version does not know; update the program")]
    Switch {
        /// The rule.
        name: &'static str,
    },
    /// A kind whose root type is not there.
    #[error("The tables name no type for the kind {kind:?}; make them again with fixtures/tables")]
    Root {
        /// The kind.
        kind: String,
    },
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub minor: String,
    pub machinery: String,
    pub switches: Switches,
    /// Computed when it is asked for.
    digest: OnceLock<String>,
    /// What an embedded table was loaded from.
    bytes: &'static [u8],
    pub kinds: Vec<Kind>,
    pub types: Vec<Type>,
}

/// A kind of document.
#[derive(Debug)]
pub(crate) struct Kind {
    pub kind: String,
    pub api: String,
    /// The type of its root.
    pub root: Shape,
    /// Path of the identifying field in the root type.
    pub name: Option<String>,
    pub conflicts: Vec<String>,
    /// Paths of the network links that a document claims; no other may claim the same.
    pub links: Vec<Vec<String>>,
    /// Fields that some minor redacts.
    pub redacted: Vec<Pattern>,
    /// Those that this minor's redaction sets even where nothing was, if only there is a place.
    pub redacted_empty: Vec<Pattern>,
    /// Regions that can hold secrets although Talos does not redact them.
    pub opaque: Vec<Pattern>,
}

pub(crate) type TypeId = usize;

/// A named type.
#[derive(Debug)]
pub(crate) struct Type {
    pub name: String,
    pub body: Body,
    pub merge: Merge,
    /// What merging an unset value of the type does.
    pub zero_merge: ZeroMerge,
    pub identity: Vec<String>,
    pub refused: Refused,
    pub stringer: bool,
}

#[derive(Debug)]
pub(crate) enum Body {
    Struct(Struct),
    /// A named list, map or basic type.
    Is(Shape),
    /// A type with its own decoder or encoder.
    Leaf(Codec),
}

#[derive(Debug)]
pub(crate) struct Struct {
    pub fields: Vec<Field>,
    /// Key to the path of field indexes that leads to it through inline structs.
    pub keys: Keys,
    /// Path to an inline map that takes the keys which no field has.
    pub rest: Option<Vec<usize>>,
}

/// Keys, sorted, each with its path.
#[derive(Debug, Default)]
pub(crate) struct Keys(Vec<(String, Vec<usize>)>);

impl Keys {
    /// The first path of a key counts.
    fn new(mut found: Vec<(String, Vec<usize>)>) -> Keys {
        found.sort_by(|a, b| a.0.cmp(&b.0));
        found.dedup_by(|later, first| later.0 == first.0);
        Keys(found)
    }

    pub fn get(&self, key: &str) -> Option<&[usize]> {
        let at = self.0.binary_search_by(|(known, _)| known.as_str().cmp(key)).ok()?;
        Some(&self.0[at].1)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| key.as_str())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[derive(Debug)]
pub(crate) struct Field {
    pub key: String,
    /// The key as it is printed, with its colon.
    pub printed: String,
    pub shape: Shape,
    pub omitempty: bool,
    pub inline: bool,
    pub replace: bool,
    pub unnamed: bool,
    pub ignored_zero: bool,
    /// What merging an unset value of the field does.
    pub zero_merge: ZeroMerge,
}

/// What merging an unset right value into a value does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ZeroMerge {
    /// Nothing: the left value stays.
    Keeps,
    /// It overwrites something: a plain boolean, or a type that is erased by nothing.
    Writes,
    /// It is an error, even if both sides are unset.
    Refuses,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Bool,
    Int { bits: u32, signed: bool },
    Text,
    Any,
    Ptr(Box<Shape>),
    List(Box<Shape>),
    Map(Box<Shape>),
    Type(TypeId),
}

/// How two values of a type merge, if not by the general rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Merge {
    #[serde(skip)]
    General,
    Replace,
    /// Right always wins, also when it is empty.
    Erase,
    /// Map: key by key, values are replaced whole.
    Values,
    Keyed,
    Custom,
}

/// When a merge of two values of a type is an error in Talos.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Refused {
    #[serde(skip)]
    Never,
    Both,
    Always,
}

/// The decoders that this engine has.
#[derive(Debug)]
pub(crate) enum Codec {
    Enum {
        texts: Vec<String>,
        zero: String,
        zero_is: Option<usize>,
        exact: bool,
        /// Whether its position, as a number, stands for a text too.
        numbers: bool,
        empty: bool,
    },
    ByteSize,
    Size,
    Raw,
    Duration,
    Url,
    Addr,
    AddrPort,
    Prefix,
    HardwareAddr,
    /// Bytes written as base64; `redactable` also takes `******`.
    Base64 {
        redactable: bool,
    },
    FileMode,
    DiskSize,
    DiskSizeMatcher,
    ArgValue,
    PortRange,
    InlineManifests(Shape),
    /// The tables know the type, this engine does not: using it is refused by name.
    Unknown,
}

impl Codec {
    /// Whether Go's type reads the text of the scalar itself (`UnmarshalText`).
    pub fn reads_text(&self) -> bool {
        matches!(
            self,
            Codec::Enum { .. }
                | Codec::ByteSize
                | Codec::Size
                | Codec::Raw
                | Codec::Addr
                | Codec::AddrPort
                | Codec::Prefix
                | Codec::HardwareAddr
        )
    }
}

impl Tables {
    /// The tables of Talos 1.13, which are part of this library.
    pub fn v1_13() -> Tables {
        // the file is part of the build, and a test loads it
        #[allow(clippy::expect_used)]
        Tables::embedded("1.13").expect("the tables of 1.13 load")
    }

    /// Loads tables that `fixtures/tables` printed.
    ///
    /// # Errors
    /// [`TablesError`] if they are not such tables, or hold rules that this engine does not know.
    pub fn from_slice(bytes: &[u8]) -> Result<Tables, TablesError> {
        let tables = Tables(Arc::new(load::inner(bytes)?));
        tables.0.digest.get_or_init(|| hex(&Sha256::digest(bytes)));
        Ok(tables)
    }

    /// The tables of a minor that are part of this library, as `1.13` or `v1.13`. Nothing if it has none.
    pub fn embedded(minor: &str) -> Option<Tables> {
        let minor = minor.strip_prefix('v').unwrap_or(minor);
        let (_, bytes, loaded) = EMBEDDED.iter().find(|(name, ..)| *name == minor)?;
        let load = || {
            let mut inner = load::inner(bytes).ok()?;
            inner.bytes = bytes;
            Some(Tables(Arc::new(inner)))
        };
        loaded.get_or_init(load).clone()
    }

    /// The minors whose tables are part of this library, oldest first.
    pub fn minors() -> impl DoubleEndedIterator<Item = &'static str> {
        EMBEDDED.iter().map(|(name, ..)| *name)
    }

    /// The tables of the newest minor that is part of this library.
    pub fn newest() -> Tables {
        // the files are part of the build, and a test loads each
        #[allow(clippy::expect_used)]
        Tables::minors().next_back().and_then(Tables::embedded).expect("the newest tables load")
    }

    /// The Talos minor that the tables describe, as `1.13`.
    pub fn minor(&self) -> &str {
        &self.0.minor
    }

    /// How this minor reads YAML.
    pub fn dialect(&self) -> Dialect {
        self.0.switches.yaml.dialect()
    }

    /// The exact version of Talos' library that the tables were made from.
    pub fn machinery(&self) -> &str {
        &self.0.machinery
    }

    /// SHA-256 of the bytes of the tables, in lower-case hex.
    pub fn digest(&self) -> &str {
        self.0.digest.get_or_init(|| hex(&Sha256::digest(self.0.bytes)))
    }

    /// Every kind of document that this minor has; the document without a kind is `v1alpha1`.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.0.kinds.iter().map(|k| k.kind.as_str())
    }

    pub(crate) fn kind(&self, kind: &str) -> Option<(usize, &Kind)> {
        self.0.kinds.iter().enumerate().find(|(_, k)| k.kind == kind)
    }

    pub(crate) fn ty(&self, id: TypeId) -> &Type {
        &self.0.types[id]
    }

    /// What merging an unset value of this shape does.
    pub(crate) fn zero_merge(&self, shape: &Shape) -> ZeroMerge {
        zero::zero_merge(&self.0.types, shape)
    }

    /// Follows named types that only stand for another shape.
    pub(crate) fn base<'a>(&'a self, shape: &'a Shape) -> &'a Shape {
        let mut shape = shape;
        while let Shape::Type(id) = shape {
            match &self.ty(*id).body {
                Body::Is(inner) | Body::Leaf(Codec::InlineManifests(inner)) => shape = inner,
                _ => break,
            }
        }
        shape
    }

    pub(crate) fn as_struct(&self, shape: &Shape) -> Option<&Struct> {
        match shape {
            Shape::Type(id) => match &self.ty(*id).body {
                Body::Struct(s) => Some(s),
                _ => None,
            },
            _ => None,
        }
    }

    pub(crate) fn codec(&self, shape: &Shape) -> Option<&Codec> {
        match shape {
            Shape::Type(id) => match &self.ty(*id).body {
                Body::Leaf(codec) => Some(codec),
                _ => None,
            },
            _ => None,
        }
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_embedded_table_loads_and_its_codecs_are_known() {
        let counts = [("1.12", 37), ("1.13", 45), ("1.14", 90)];
        assert!(Tables::minors().eq(counts.iter().map(|(minor, _)| *minor)));
        for (minor, count) in counts {
            let tables = Tables::embedded(&format!("v{minor}")).unwrap();
            assert_eq!(tables.minor(), minor);
            assert!(tables.machinery().starts_with(&format!("v{minor}.")));
            assert_eq!(tables.kinds().count(), count);
            for ty in &tables.0.types {
                let unused = ["block.PercentageSize"];
                assert!(
                    !matches!(ty.body, Body::Leaf(Codec::Unknown)) || unused.contains(&ty.name.as_str()),
                    "{minor} {}",
                    ty.name
                );
                assert!(ty.merge != Merge::Custom, "{minor} {}", ty.name);
            }
        }
        assert!(Tables::embedded("1.11").is_none());
        assert_eq!(Tables::newest().minor(), "1.14");
    }

    #[test]
    fn the_digest_is_that_of_the_bytes_wherever_they_came_from() {
        let bytes = include_bytes!("../../../../schema/talos/1.13/tables.json");
        assert_eq!(Tables::from_slice(bytes).unwrap().digest(), Tables::v1_13().digest());
        assert_eq!(Tables::v1_13().digest().len(), 64);
    }

    #[test]
    fn what_is_not_known_is_refused_when_it_is_used_and_rules_at_once() {
        let text = include_str!("../../../../schema/talos/1.13/tables.json");
        let newer = text.replace(
            "\"key\":\"bootTimeout\",\"shape\":",
            "\"key\":\"bootTimeout\",\"shape\":\"chan int\",\"was\":",
        );
        assert!(Tables::from_slice(newer.as_bytes()).is_ok());
        let rule = text.replace("\"oldQuote\":\"double\"", "\"oldQuote\":\"triple\"");
        assert!(matches!(Tables::from_slice(rule.as_bytes()), Err(TablesError::Switch { name: "oldQuote" })));
        let more = text.replace("\"oldQuote\":", "\"someday\":1,\"oldQuote\":");
        assert!(matches!(Tables::from_slice(more.as_bytes()), Err(TablesError::Json(_))));
    }
}
