//! From the JSON that `fixtures/tables` prints to the tables that the engine reads.

use std::borrow::{Borrow, Cow};
use std::collections::HashMap;
use std::sync::OnceLock;

use serde::Deserialize;

use crate::emit::Writer;
use crate::secrets::{opaque_patterns, redacted_patterns};

use super::zero::settle_zero_merges;
use super::{
    Body, Codec, Field, Inner, Keys, Kind, Merge, Refused, Shape, Struct, Switches, TablesError, Type,
    TypeId, ZeroMerge,
};

/// Text that is borrowed from the JSON where that is possible.
#[derive(Clone, Default, Deserialize, PartialEq, Eq, Hash)]
#[serde(transparent)]
struct Str<'a>(#[serde(borrow)] Cow<'a, str>);

impl Borrow<str> for Str<'_> {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Str<'_> {
    fn owned(&self) -> String {
        self.0.as_ref().to_owned()
    }
}

fn owned(texts: &[Str<'_>]) -> Vec<String> {
    texts.iter().map(Str::owned).collect()
}

fn paths(pointers: &[Str<'_>]) -> Vec<Vec<String>> {
    pointers.iter().map(|p| p.0.split('/').skip(1).map(str::to_owned).collect()).collect()
}

#[derive(Deserialize)]
struct RawTables<'a> {
    #[serde(borrow)]
    talos: Str<'a>,
    #[serde(borrow)]
    machinery: Str<'a>,
    switches: Switches,
    #[serde(borrow)]
    kinds: Vec<RawKind<'a>>,
    #[serde(borrow)]
    types: HashMap<Str<'a>, RawType<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawKind<'a> {
    #[serde(borrow)]
    kind: Str<'a>,
    #[serde(borrow)]
    api_version: Str<'a>,
    #[serde(borrow)]
    root: Str<'a>,
    #[serde(borrow)]
    name: Option<Str<'a>>,
    #[serde(borrow, default)]
    conflicts: Vec<Str<'a>>,
    #[serde(borrow, default)]
    redacted: Vec<Str<'a>>,
    #[serde(borrow, default)]
    redacted_empty: Vec<Str<'a>>,
    #[serde(borrow, default)]
    links: Vec<Str<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RawType<'a> {
    #[serde(borrow)]
    fields: Vec<RawField<'a>>,
    #[serde(borrow)]
    is: Option<Str<'a>>,
    #[serde(borrow)]
    codec: Option<Str<'a>>,
    #[serde(borrow, rename = "enum")]
    texts: Vec<Str<'a>>,
    enum_exact: bool,
    enum_empty: bool,
    #[serde(borrow)]
    zero: Option<Str<'a>>,
    zero_is: Option<usize>,
    #[serde(borrow)]
    ignored_zero: Vec<Str<'a>>,
    merge: Option<Merge>,
    #[serde(borrow)]
    identity: Vec<Str<'a>>,
    merge_refused: Option<Refused>,
    stringer: bool,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct RawField<'a> {
    #[serde(borrow)]
    key: Str<'a>,
    #[serde(borrow)]
    shape: Str<'a>,
    omitempty: bool,
    inline: bool,
    replace: bool,
    unnamed: bool,
}

/// Names of the types that stand for the fields of the certificate types, which lie outside the library.
const PEM_BYTES: &str = "pem.Bytes";
const PEM_KEY: &str = "pem.Key";

/// Reads tables; their digest and bytes are the caller's to fill in.
pub(super) fn inner(bytes: &[u8]) -> Result<Inner, TablesError> {
    let raw: RawTables<'_> = serde_json::from_slice(bytes).map_err(TablesError::Json)?;
    raw.switches.check()?;
    let mut names: Vec<&str> = raw.types.keys().map(Borrow::borrow).collect();
    names.sort_unstable();
    names.extend([PEM_BYTES, PEM_KEY]);
    let mut loader = Loader { raw: &raw, ids: HashMap::with_capacity(names.len()), names: Vec::new() };
    for name in names {
        loader.id(name);
    }
    let mut types = Vec::with_capacity(loader.names.len());
    // a shape that is not known becomes a type of its own on the way
    while let Some(name) = loader.names.get(types.len()).cloned() {
        types.push(loader.load(&name));
    }
    flatten_keys(&mut types);
    settle_zero_merges(&mut types);
    let kinds = raw.kinds.iter().map(|k| loader.kind(k)).collect::<Result<_, _>>()?;
    Ok(Inner {
        minor: raw.talos.owned(),
        machinery: raw.machinery.owned(),
        switches: raw.switches.clone(),
        digest: OnceLock::new(),
        bytes: &[],
        kinds,
        types,
    })
}

struct Loader<'a> {
    raw: &'a RawTables<'a>,
    ids: HashMap<Cow<'a, str>, TypeId>,
    names: Vec<Cow<'a, str>>,
}

impl<'a> Loader<'a> {
    fn id(&mut self, name: impl Into<Cow<'a, str>>) -> TypeId {
        let name = name.into();
        if let Some(id) = self.ids.get(&name) {
            return *id;
        }
        self.names.push(name.clone());
        self.ids.insert(name, self.names.len() - 1);
        self.names.len() - 1
    }

    fn kind(&self, raw: &RawKind<'_>) -> Result<Kind, TablesError> {
        let root = self.ids.get(raw.root.0.as_ref()).copied();
        Ok(Kind {
            kind: raw.kind.owned(),
            api: raw.api_version.owned(),
            root: Shape::Type(root.ok_or_else(|| TablesError::Root { kind: raw.kind.owned() })?),
            name: raw.name.as_ref().map(Str::owned),
            conflicts: owned(&raw.conflicts),
            links: paths(&raw.links),
            redacted: redacted_patterns(&raw.kind.0, paths(&raw.redacted)),
            redacted_empty: paths(&raw.redacted_empty),
            opaque: opaque_patterns(&raw.kind.0),
        })
    }

    fn load(&mut self, name: &str) -> Type {
        static NONE: OnceLock<RawType<'static>> = OnceLock::new();
        let tables = self.raw;
        let none = NONE.get_or_init(RawType::default);
        let known = tables.types.get(name);
        let raw = known.unwrap_or(none);
        let body = match self.codec(name, raw) {
            Some(codec) => Body::Leaf(codec),
            None => match (&raw.is, pem_fields(name)) {
                (_, Some(fields)) => Body::Struct(self.fields(&fields, raw)),
                (Some(is), _) => Body::Is(self.shape(&is.0)),
                (None, _) if known.is_none() => Body::Leaf(Codec::Unknown),
                (None, _) => Body::Struct(self.fields(&raw.fields, raw)),
            },
        };
        Type {
            name: name.to_owned(),
            body,
            merge: raw.merge.unwrap_or(Merge::General),
            zero_merge: ZeroMerge::Keeps,
            identity: owned(&raw.identity),
            refused: raw.merge_refused.unwrap_or(Refused::Never),
            stringer: raw.stringer,
        }
    }

    fn fields(&mut self, fields: &[RawField<'_>], raw: &RawType<'_>) -> Struct {
        let tables = self.raw;
        let field = |f: &RawField<'_>| Field {
            printed: printed_key(&tables.switches, &f.key.0),
            key: f.key.owned(),
            shape: self.shape(&f.shape.0),
            omitempty: f.omitempty,
            inline: f.inline,
            replace: f.replace,
            unnamed: f.unnamed,
            ignored_zero: raw.ignored_zero.contains(&f.key),
            zero_merge: ZeroMerge::Keeps,
        };
        Struct { fields: fields.iter().map(field).collect(), keys: Keys::default(), rest: None }
    }

    /// The codec of a type: enumerations come from the tables, the others are known by name.
    fn codec(&mut self, name: &str, raw: &RawType<'_>) -> Option<Codec> {
        if !raw.texts.is_empty() {
            return Some(Codec::Enum {
                texts: owned(&raw.texts),
                zero: raw.zero.as_ref().map(Str::owned).unwrap_or_default(),
                zero_is: raw.zero_is,
                exact: raw.enum_exact,
                numbers: name == "nethelpers.FailOverMAC",
                empty: raw.enum_empty,
            });
        }
        Some(match name {
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
            "v1alpha1.FileMode" | "runtime.EtcFileMode" => Codec::FileMode,
            "v1alpha1.DiskSize" => Codec::DiskSize,
            "v1alpha1.InstallDiskSizeMatcher" => Codec::DiskSizeMatcher,
            "v1alpha1.ArgValue" | "meta.ArgValue" => Codec::ArgValue,
            "network.PortRange" => Codec::PortRange,
            "v1alpha1.ClusterInlineManifests" => {
                Codec::InlineManifests(self.shape(raw.is.as_ref().map_or("", |is| is.0.as_ref())))
            }
            _ if pem_fields(name).is_some() => return None,
            _ if raw.codec.is_some() => Codec::Unknown,
            _ => return None,
        })
    }

    fn shape(&mut self, text: &str) -> Shape {
        if let Some(inner) = text.strip_prefix('*') {
            return Shape::Ptr(Box::new(self.shape(inner)));
        }
        if let Some(inner) = text.strip_prefix("[]") {
            return Shape::List(Box::new(self.shape(inner)));
        }
        if let Some(inner) = text.strip_prefix("map[string]") {
            return Shape::Map(Box::new(self.shape(inner)));
        }
        if let Some(id) = self.ids.get(text) {
            return Shape::Type(*id);
        }
        let int = |bits, signed| Shape::Int { bits, signed };
        match text {
            "bool" => Shape::Bool,
            "string" => Shape::Text,
            "any" => Shape::Any,
            "int" | "int64" => int(64, true),
            "int32" => int(32, true),
            "int16" => int(16, true),
            "int8" => int(8, true),
            "uint" | "uint64" => int(64, false),
            "uint32" => int(32, false),
            "uint16" => int(16, false),
            "uint8" => int(8, false),
            unknown => Shape::Type(self.id(unknown.to_owned())),
        }
    }
}

fn printed_key(switches: &Switches, key: &str) -> String {
    let mut writer = Writer::new(switches, String::new());
    writer.key(key);
    writer.out + ":"
}

/// The fields of the certificate types: bytes in base64, always printed, out of reach of delete selectors.
fn pem_fields(name: &str) -> Option<Vec<RawField<'static>>> {
    let field = |key: &'static str, shape: &'static str| RawField {
        key: Str(key.into()),
        shape: Str(shape.into()),
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
        let mut keys = Vec::new();
        let mut rest = None;
        collect_keys(types, id, &mut Vec::new(), &mut keys, &mut rest);
        if let Body::Struct(s) = &mut types[id].body {
            (s.keys, s.rest) = (Keys::new(keys), rest);
        }
    }
}

fn collect_keys(
    types: &[Type],
    id: TypeId,
    path: &mut Vec<usize>,
    keys: &mut Vec<(String, Vec<usize>)>,
    rest: &mut Option<Vec<usize>>,
) {
    let Body::Struct(s) = &types[id].body else { return };
    for (i, field) in s.fields.iter().enumerate() {
        path.push(i);
        match &field.shape {
            Shape::Type(inner) if field.inline => collect_keys(types, *inner, path, keys, rest),
            _ if field.inline => *rest = Some(path.clone()),
            _ => keys.push((field.key.clone(), path.clone())),
        }
        path.pop();
    }
}
