//! What Talos' library knows about its documents, as data: see `schema/talos/<minor>/tables.json`.
//!
//! The tables are made by `fixtures/tables` from the library itself. One engine serves every minor.

mod load;
mod zero;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use thiserror::Error;

use crate::secrets::Pattern;

/// The tables of one Talos minor. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Tables(pub(crate) Arc<Inner>);

/// Why tables cannot be used.
#[derive(Debug, Error)]
pub enum TablesError {
    /// Not the JSON that `fixtures/tables` prints.
    #[error("The tables cannot be read; make them again with fixtures/tables")]
    Json(#[source] serde_json::Error),
    /// Tables of a minor whose rules outside of the tables (quoting, decoding) this engine does not have.
    #[error("The tables are for Talos {minor}, whose rules this version does not know; update the program")]
    Minor {
        /// The minor.
        minor: String,
    },
    /// A shape names a type that is not there, or uses a notation that this engine does not know.
    #[error("The tables use {shape:?} in {place}, which this version does not know; update the program")]
    Shape {
        /// The shape.
        shape: String,
        /// The type that mentions it.
        place: String,
    },
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub minor: String,
    pub machinery: String,
    pub digest: String,
    pub kinds: Vec<Kind>,
    pub types: Vec<Type>,
}

/// A kind of document.
#[derive(Debug)]
pub(crate) struct Kind {
    pub kind: String,
    /// The type of its root.
    pub root: Shape,
    /// Path of the identifying field in the root type.
    pub name: Option<String>,
    pub conflicts: Vec<String>,
    /// Fields that some minor redacts.
    pub redacted: Vec<Pattern>,
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
    pub keys: HashMap<String, Vec<usize>>,
    /// Path to an inline map that takes the keys which no field has.
    pub rest: Option<Vec<usize>>,
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

impl Tables {
    /// The tables of Talos 1.13, which are part of this library.
    pub fn v1_13() -> Tables {
        static TABLES: OnceLock<Tables> = OnceLock::new();
        TABLES
            .get_or_init(|| {
                // the file is part of the build and a test loads it
                #[allow(clippy::expect_used)]
                Tables::from_slice(include_bytes!("../../../../schema/talos/1.13/tables.json"))
                    .expect("the tables of 1.13 load")
            })
            .clone()
    }

    /// The Talos minor that the tables describe, as `1.13`.
    pub fn minor(&self) -> &str {
        &self.0.minor
    }

    /// The exact version of Talos' library that the tables were made from.
    pub fn machinery(&self) -> &str {
        &self.0.machinery
    }

    /// SHA-256 of the bytes of the tables, in lower-case hex.
    pub fn digest(&self) -> &str {
        &self.0.digest
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
    fn the_tables_of_1_13_load_and_know_every_codec() {
        let tables = Tables::v1_13();
        assert_eq!(tables.minor(), "1.13");
        assert_eq!(tables.kinds().count(), 45);
        assert_eq!(tables.digest().len(), 64);
        for ty in &tables.0.types {
            let known = ["block.PercentageSize"];
            assert!(
                !matches!(ty.body, Body::Leaf(Codec::Unknown)) || known.contains(&ty.name.as_str()),
                "{}",
                ty.name
            );
            assert!(ty.merge != Merge::Custom, "{}", ty.name);
        }
    }

    #[test]
    fn unknown_shapes_are_refused() {
        let text = r#"{"talos":"1.13","machinery":"v1.13.99","kinds":[],"types":{"a.B":{"fields":[{"key":"c","shape":"chan int"}]}}}"#;
        assert!(matches!(Tables::from_slice(text.as_bytes()), Err(TablesError::Shape { .. })));
        let other = text.replace("1.13", "1.99");
        assert!(matches!(Tables::from_slice(other.as_bytes()), Err(TablesError::Minor { .. })));
    }
}
