//! `clusters/<cluster>/secrets.lock.yaml`: which version of each secret a cluster uses.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::ApiVersion;
use crate::yaml_text::{quoted, scalar_text};

/// `clusters/<cluster>/secrets.lock.yaml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SecretsLock {
    /// The format.
    pub api_version: ApiVersion,
    /// Always `SecretsLock`.
    pub kind: SecretsLockKind,
    /// Secrets by name: segments of lower-case letters, digits and inner hyphens, joined by `/`.
    #[serde(default, deserialize_with = "by_name")]
    pub secrets: BTreeMap<String, LockedSecret>,
}

impl Default for SecretsLock {
    fn default() -> SecretsLock {
        SecretsLock {
            api_version: ApiVersion::V1Alpha1,
            kind: SecretsLockKind::SecretsLock,
            secrets: BTreeMap::new(),
        }
    }
}

impl SecretsLock {
    /// The text of the file: one line for each secret, so that a rotation is one line.
    pub fn to_text(&self) -> String {
        let mut out = format!("apiVersion: {}\nkind: SecretsLock\n", crate::API_VERSION);
        if self.secrets.is_empty() {
            out.push_str("secrets: {}\n");
            return out;
        }
        out.push_str("secrets:\n");
        for (name, secret) in &self.secrets {
            let fields = secret.fields.iter().map(|field| quoted(field)).collect::<Vec<_>>().join(", ");
            let kind = secret.kind.as_str();
            let (name, version, value) = (scalar_text(name), secret.version, quoted(&secret.value));
            out.push_str(&format!(
                "  {name}: {{version: {version}, kind: {kind}, fields: [{fields}], value: {value}}}\n"
            ));
        }
        out
    }
}

/// The kind of [`SecretsLock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SecretsLockKind {
    /// The one value.
    SecretsLock,
}

/// One secret: the exact version, and what is known of its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct LockedSecret {
    /// The version in use, from 1.
    #[serde(deserialize_with = "from_one")]
    #[schemars(range(min = 1))]
    pub version: u64,
    /// What kind of value it is.
    pub kind: SecretKind,
    /// In which classes of fields it may stand (the last segment of a path, or `opaque`).
    pub fields: Vec<String>,
    /// The keyed digest of the value.
    pub value: String,
}

/// The name of a secret, as references write it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Named(String);

impl<'de> Deserialize<'de> for Named {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Named, D::Error> {
        let text = String::deserialize(deserializer)?;
        let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let segment = |part: &str| {
            !part.is_empty() && part.bytes().all(inner) && !part.starts_with('-') && !part.ends_with('-')
        };
        if text.len() <= 200 && text.split('/').all(segment) {
            return Ok(Named(text));
        }
        let message = "no secret has this name: use lower-case segments joined by `/`, as in files/wifi";
        Err(de::Error::custom(message))
    }
}

fn by_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, LockedSecret>, D::Error> {
    let read = BTreeMap::<Named, LockedSecret>::deserialize(deserializer)?;
    Ok(read.into_iter().map(|(name, secret)| (name.0, secret)).collect())
}

fn from_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    match u64::deserialize(deserializer)? {
        0 => Err(de::Error::custom("versions count from 1")),
        version => Ok(version),
    }
}

/// What kind of value a secret is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SecretKind {
    /// A text.
    String,
    /// A whole number. Not supported yet: refused by name.
    Integer,
    /// True or false. Not supported yet: refused by name.
    Boolean,
    /// A mapping. Not supported yet: refused by name.
    Mapping,
    /// Access to a node's API; never compiles into anything.
    Access,
}

impl SecretKind {
    /// The word in files.
    pub fn as_str(self) -> &'static str {
        match self {
            SecretKind::String => "string",
            SecretKind::Integer => "integer",
            SecretKind::Boolean => "boolean",
            SecretKind::Mapping => "mapping",
            SecretKind::Access => "access",
        }
    }
}
