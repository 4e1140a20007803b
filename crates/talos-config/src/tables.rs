//! What Talos' library knows about its documents, as data: see `schema/talos/<minor>/tables.json`.
//!
//! The tables are made by `fixtures/tables` from the library itself. One engine serves every minor.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::yaml::Dialect;

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
    pub root: TypeId,
    /// Path of the identifying field in the root type.
    pub name: Option<String>,
    pub conflicts: Vec<String>,
    pub redacted: Vec<Vec<String>>,
}

pub(crate) type TypeId = usize;

/// A named type.
#[derive(Debug)]
pub(crate) struct Type {
    pub name: String,
    pub body: Body,
    pub merge: Merge,
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
    pub shape: Shape,
    pub omitempty: bool,
    pub inline: bool,
    pub replace: bool,
    pub unnamed: bool,
    pub ignored_zero: bool,
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

#[derive(Deserialize)]
struct RawTables {
    talos: String,
    machinery: String,
    kinds: Vec<RawKind>,
    types: HashMap<String, RawType>,
}

#[derive(Deserialize)]
struct RawKind {
    kind: String,
    root: String,
    name: Option<String>,
    #[serde(default)]
    conflicts: Vec<String>,
    #[serde(default)]
    redacted: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RawType {
    fields: Vec<RawField>,
    is: Option<String>,
    codec: Option<String>,
    #[serde(rename = "enum")]
    texts: Vec<String>,
    enum_exact: bool,
    enum_empty: bool,
    zero: Option<String>,
    zero_is: Option<usize>,
    ignored_zero: Vec<String>,
    merge: Option<Merge>,
    identity: Vec<String>,
    merge_refused: Option<Refused>,
    stringer: bool,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct RawField {
    key: String,
    shape: String,
    omitempty: bool,
    inline: bool,
    replace: bool,
    unnamed: bool,
}

impl Tables {
    /// The tables of Talos 1.13, which are part of this library.
    pub fn v1_13() -> Tables {
        static TABLES: OnceLock<Tables> = OnceLock::new();
        TABLES
            .get_or_init(|| {
                // the file is part of the build and a test loads it
                #[allow(clippy::expect_used)]
                Tables::from_slice(include_bytes!("../../../schema/talos/1.13/tables.json"))
                    .expect("the tables of 1.13 load")
            })
            .clone()
    }

    /// Loads tables that `fixtures/tables` printed.
    ///
    /// # Errors
    /// [`TablesError`] if they are not such tables, or newer than this engine.
    pub fn from_slice(bytes: &[u8]) -> Result<Tables, TablesError> {
        let raw: RawTables = serde_json::from_slice(bytes).map_err(TablesError::Json)?;
        if !MINORS.contains(&raw.talos.as_str()) {
            return Err(TablesError::Minor { minor: raw.talos });
        }
        let mut names: Vec<&String> = raw.types.keys().collect();
        names.sort();
        let mut loader = Loader { raw: &raw, ids: HashMap::new(), names: Vec::new() };
        for name in names {
            loader.id(name);
        }
        loader.id(PEM_BYTES);
        loader.id(PEM_KEY);
        let mut types = Vec::new();
        for name in loader.names.clone() {
            types.push(loader.load(&name)?);
        }
        flatten_keys(&mut types);
        let kinds = raw.kinds.iter().map(|k| loader.kind(k)).collect::<Result<_, _>>()?;
        Ok(Tables(Arc::new(Inner {
            minor: raw.talos.clone(),
            machinery: raw.machinery.clone(),
            digest: hex(&Sha256::digest(bytes)),
            kinds,
            types,
        })))
    }

    /// The Talos minor that the tables describe, as `1.13`.
    pub fn minor(&self) -> &str {
        &self.0.minor
    }

    /// How this minor reads YAML.
    pub fn dialect(&self) -> Dialect {
        match self.minor() {
            "1.12" => Dialect::Rc3,
            "1.13" => Dialect::Rc4,
            _ => Dialect::Rc5,
        }
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

/// The minors whose rules outside of the tables this engine has.
const MINORS: &[&str] = &["1.13"];

/// Names of the types that stand for the fields of the certificate types, which lie outside the library.
const PEM_BYTES: &str = "pem.Bytes";
const PEM_KEY: &str = "pem.Key";

struct Loader<'a> {
    raw: &'a RawTables,
    ids: HashMap<String, TypeId>,
    names: Vec<String>,
}

impl Loader<'_> {
    fn id(&mut self, name: &str) -> TypeId {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        self.names.push(name.to_owned());
        self.ids.insert(name.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }

    fn kind(&self, raw: &RawKind) -> Result<Kind, TablesError> {
        let root = self
            .ids
            .get(&raw.root)
            .copied()
            .ok_or_else(|| TablesError::Shape { shape: raw.root.clone(), place: raw.kind.clone() })?;
        let split = |p: &String| p.split('/').skip(1).map(str::to_owned).collect();
        Ok(Kind {
            kind: raw.kind.clone(),
            root,
            name: raw.name.clone(),
            conflicts: raw.conflicts.clone(),
            redacted: raw.redacted.iter().map(split).collect(),
        })
    }

    fn load(&self, name: &str) -> Result<Type, TablesError> {
        static NONE: OnceLock<RawType> = OnceLock::new();
        let raw = self.raw.types.get(name).unwrap_or_else(|| NONE.get_or_init(RawType::default));
        let body = match self.codec(name, raw)? {
            Some(codec) => Body::Leaf(codec),
            None => match (&raw.is, pem_fields(name)) {
                (_, Some(fields)) => Body::Struct(self.fields(name, &fields, raw)?),
                (Some(is), _) => Body::Is(self.shape(is, name)?),
                (None, _) => Body::Struct(self.fields(name, &raw.fields, raw)?),
            },
        };
        Ok(Type {
            name: name.to_owned(),
            body,
            merge: raw.merge.unwrap_or(Merge::General),
            identity: raw.identity.clone(),
            refused: raw.merge_refused.unwrap_or(Refused::Never),
            stringer: raw.stringer,
        })
    }

    fn fields(&self, name: &str, fields: &[RawField], raw: &RawType) -> Result<Struct, TablesError> {
        let fields = fields
            .iter()
            .map(|f| {
                Ok(Field {
                    key: f.key.clone(),
                    shape: self.shape(&f.shape, name)?,
                    omitempty: f.omitempty,
                    inline: f.inline,
                    replace: f.replace,
                    unnamed: f.unnamed,
                    ignored_zero: raw.ignored_zero.contains(&f.key),
                })
            })
            .collect::<Result<_, TablesError>>()?;
        Ok(Struct { fields, keys: HashMap::new(), rest: None })
    }

    /// The codec of a type: enumerations come from the tables, the others are known by name.
    fn codec(&self, name: &str, raw: &RawType) -> Result<Option<Codec>, TablesError> {
        if !raw.texts.is_empty() {
            return Ok(Some(Codec::Enum {
                texts: raw.texts.clone(),
                zero: raw.zero.clone().unwrap_or_default(),
                zero_is: raw.zero_is,
                exact: raw.enum_exact,
                empty: raw.enum_empty,
            }));
        }
        Ok(Some(match name {
            "block.ByteSize" => Codec::ByteSize,
            "block.Size" => Codec::Size,
            "cel.Expression" => Codec::Raw,
            "time.Duration" => Codec::Duration,
            "meta.URL" | "v1alpha1.Endpoint" => Codec::Url,
            "network.Addr" | "netip.Addr" | "meta.Addr" => Codec::Addr,
            "network.AddrPort" | "netip.AddrPort" | "meta.AddrPort" => Codec::AddrPort,
            "network.Prefix" | "netip.Prefix" | "meta.Prefix" => Codec::Prefix,
            "nethelpers.HardwareAddr" => Codec::HardwareAddr,
            PEM_BYTES | "v1alpha1.Base64Bytes" => Codec::Base64 { redactable: false },
            PEM_KEY => Codec::Base64 { redactable: true },
            "v1alpha1.FileMode" => Codec::FileMode,
            "v1alpha1.DiskSize" => Codec::DiskSize,
            "v1alpha1.InstallDiskSizeMatcher" => Codec::DiskSizeMatcher,
            "v1alpha1.ArgValue" | "meta.ArgValue" => Codec::ArgValue,
            "network.PortRange" => Codec::PortRange,
            "v1alpha1.ClusterInlineManifests" => {
                Codec::InlineManifests(self.shape(raw.is.as_deref().unwrap_or_default(), name)?)
            }
            _ if pem_fields(name).is_some() => return Ok(None),
            _ if raw.codec.is_some() => Codec::Unknown,
            _ => return Ok(None),
        }))
    }

    fn shape(&self, text: &str, place: &str) -> Result<Shape, TablesError> {
        let unknown = || TablesError::Shape { shape: text.to_owned(), place: place.to_owned() };
        if let Some(inner) = text.strip_prefix('*') {
            return Ok(Shape::Ptr(Box::new(self.shape(inner, place)?)));
        }
        if let Some(inner) = text.strip_prefix("[]") {
            return Ok(Shape::List(Box::new(self.shape(inner, place)?)));
        }
        if let Some(inner) = text.strip_prefix("map[string]") {
            return Ok(Shape::Map(Box::new(self.shape(inner, place)?)));
        }
        if let Some(id) = self.ids.get(text) {
            return Ok(Shape::Type(*id));
        }
        let int = |bits, signed| Ok(Shape::Int { bits, signed });
        match text {
            "bool" => Ok(Shape::Bool),
            "string" => Ok(Shape::Text),
            "any" => Ok(Shape::Any),
            "int" | "int64" => int(64, true),
            "int32" => int(32, true),
            "int16" => int(16, true),
            "int8" => int(8, true),
            "uint" | "uint64" => int(64, false),
            "uint32" => int(32, false),
            "uint16" => int(16, false),
            "uint8" => int(8, false),
            _ => Err(unknown()),
        }
    }
}

/// The fields of the certificate types: bytes in base64, always printed, out of reach of delete selectors.
fn pem_fields(name: &str) -> Option<Vec<RawField>> {
    let field = |key: &str, shape: &str| RawField {
        key: key.to_owned(),
        shape: shape.to_owned(),
        unnamed: true,
        ..RawField::default()
    };
    match name {
        "x509.PEMEncodedCertificateAndKey" => Some(vec![field("crt", PEM_BYTES), field("key", PEM_KEY)]),
        "x509.PEMEncodedCertificate" => Some(vec![field("crt", PEM_BYTES)]),
        "x509.PEMEncodedKey" => Some(vec![field("key", PEM_KEY)]),
        _ => None,
    }
}

/// Fills [`Struct::keys`] and [`Struct::rest`], following inline structs.
fn flatten_keys(types: &mut [Type]) {
    for id in 0..types.len() {
        let mut keys = HashMap::new();
        let mut rest = None;
        collect_keys(types, id, &mut Vec::new(), &mut keys, &mut rest);
        if let Body::Struct(s) = &mut types[id].body {
            (s.keys, s.rest) = (keys, rest);
        }
    }
}

fn collect_keys(
    types: &[Type],
    id: TypeId,
    path: &mut Vec<usize>,
    keys: &mut HashMap<String, Vec<usize>>,
    rest: &mut Option<Vec<usize>>,
) {
    let Body::Struct(s) = &types[id].body else { return };
    for (i, field) in s.fields.iter().enumerate() {
        path.push(i);
        match &field.shape {
            Shape::Type(inner) if field.inline => collect_keys(types, *inner, path, keys, rest),
            _ if field.inline => *rest = Some(path.clone()),
            _ => {
                keys.entry(field.key.clone()).or_insert_with(|| path.clone());
            }
        }
        path.pop();
    }
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
