//! `clusters/<cluster>/secrets.lock.yaml`: which version of each secret a cluster uses.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ApiVersion;

/// `clusters/<cluster>/secrets.lock.yaml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SecretsLock {
    /// The format.
    pub api_version: ApiVersion,
    /// Always `SecretsLock`.
    pub kind: SecretsLockKind,
    /// Secrets by name.
    #[serde(default)]
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
            let fields =
                secret.fields.iter().map(|field| format!("{field:?}")).collect::<Vec<_>>().join(", ");
            let kind = secret.kind.as_str();
            let (version, value) = (secret.version, &secret.value);
            out.push_str(&format!(
                "  {name}: {{version: {version}, kind: {kind}, fields: [{fields}], value: {value:?}}}\n"
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
    pub version: u64,
    /// What kind of value it is.
    pub kind: SecretKind,
    /// In which classes of fields it may stand (the last segment of a path, or `opaque`).
    pub fields: Vec<String>,
    /// The keyed digest of the value.
    pub value: String,
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
