//! From the JSON that `fixtures/tables` prints to tables.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::emit::Writer;
use crate::secrets::{opaque_patterns, redacted_patterns};

use super::zero::settle_zero_merges;
use super::{
    Body, Codec, Field, Inner, Kind, Merge, Refused, Shape, Struct, Tables, TablesError, Type, TypeId,
    ZeroMerge, hex,
};

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
        settle_zero_merges(&mut types);
        let kinds = raw.kinds.iter().map(|k| loader.kind(k)).collect::<Result<_, _>>()?;
        Ok(Tables(Arc::new(Inner {
            minor: raw.talos.clone(),
            machinery: raw.machinery.clone(),
            digest: hex(&Sha256::digest(bytes)),
            kinds,
            types,
        })))
    }
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
            root: Shape::Type(root),
            name: raw.name.clone(),
            conflicts: raw.conflicts.clone(),
            redacted: redacted_patterns(&raw.kind, raw.redacted.iter().map(split).collect()),
            opaque: opaque_patterns(&raw.kind),
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
            zero_merge: ZeroMerge::Keeps,
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
                    printed: printed_key(&f.key),
                    key: f.key.clone(),
                    shape: self.shape(&f.shape, name)?,
                    omitempty: f.omitempty,
                    inline: f.inline,
                    replace: f.replace,
                    unnamed: f.unnamed,
                    ignored_zero: raw.ignored_zero.contains(&f.key),
                    zero_merge: ZeroMerge::Keeps,
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

fn printed_key(key: &str) -> String {
    let mut writer = Writer::default();
    writer.key(key);
    writer.out + ":"
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
