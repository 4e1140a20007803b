//! The exact bytes for a node: the composed document with every reference resolved.
//!
//! They live in memory only, are wiped on drop, and go nowhere but to the node.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bronzeward_intent::{ClusterIntent, Intent, Name};
use bronzeward_secrets::age_file::{AgeError, open_secret, secret_path};
use bronzeward_secrets::guard::{self, Copy};
use bronzeward_secrets::reference::Reference;
use bronzeward_secrets::{AgeIdentity, InstallationKey, Label, SecretHeader, SecretValue};
use talos_config::{EncodeError, Path, ReadError, ResolveError, Resolved};
use zeroize::Zeroizing;

use crate::compose::Composed;

/// From how many bytes on a copy of a value that no reference explains is refused.
const COPY_REFUSED_FROM: usize = 16;

/// Bytes for a node, and what they mean.
pub struct Artifact {
    /// The exact bytes.
    pub bytes: Zeroizing<Vec<u8>>,
    /// The keyed digest of the bytes.
    pub bytes_digest: String,
    /// The keyed digest of their meaning. Our output is our own canonical encoding, so the text is the same.
    pub meaning_digest: String,
}

impl std::fmt::Debug for Artifact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Artifact").field("bytes_digest", &self.bytes_digest).finish_non_exhaustive()
    }
}

/// Why there are no bytes.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// A secret's file is missing.
    #[error(
        "secret-missing: `{path}` is not in the tree; versions are never deleted: restore it from the history"
    )]
    Missing {
        /// The file.
        path: String,
    },
    /// A secret's file does not open.
    #[error(transparent)]
    Age(#[from] AgeError),
    /// What the store hands over is not what the lock names.
    #[error(
        "secret-value-mismatch: what `{path}` holds is not the value whose digest stands in the lock: somebody wrote, \
         swapped or re-created the file"
    )]
    ValueMismatch {
        /// The file.
        path: String,
    },
    /// A value does not fit its field.
    #[error("{0}")]
    Resolve(String),
    /// The documents cannot be printed.
    #[error("encode-refused: the configuration cannot be encoded")]
    Encode(#[source] EncodeError),
    /// The guard could not read the composed document, so it cannot say that no value stands in it.
    #[error("guard-unreadable: the composed document cannot be searched for copies of its secrets; split it")]
    Unguarded(#[source] ReadError),
    /// A value stands where no reference explains it.
    #[error("exact-copy: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Copies(Vec<Copy>),
}

/// Who reads secret values: the embedded store of one tree.
pub struct Secrets<'a> {
    /// The tree.
    pub intent: &'a Intent,
    /// The cluster.
    pub cluster: &'a Name,
    /// The bytes of a file of that tree.
    pub read: &'a dyn Fn(&str) -> Option<Vec<u8>>,
    /// Who decrypts.
    pub identity: &'a AgeIdentity,
    /// The key of the digests.
    pub key: &'a InstallationKey,
}

impl Secrets<'_> {
    /// The value of a version, if it is the one whose digest stands in the lock.
    ///
    /// # Errors
    /// [`ArtifactError`].
    pub fn value(&self, name: &str, version: u64) -> Result<SecretValue, ArtifactError> {
        let repository = &self.intent.governance.repository.id;
        let path = secret_path(self.cluster.as_str(), name, version);
        let locked = self.cluster().lock.secrets.get(name).filter(|locked| locked.version == version);
        let locked = locked.ok_or_else(|| ArtifactError::Missing { path: path.clone() })?;
        let header = SecretHeader {
            format: 1,
            repository: repository.clone(),
            cluster: self.cluster.to_string(),
            name: name.to_owned(),
            version,
            kind: locked.kind.as_str().to_owned(),
        };
        let bytes = (self.read)(&path).ok_or_else(|| ArtifactError::Missing { path: path.clone() })?;
        let value = open_secret(&header, &bytes, self.identity)?;
        let digest = self.key.digest(
            Label::Value,
            repository,
            self.cluster.as_str(),
            locked.kind.as_str(),
            value.expose().as_bytes(),
        );
        if digest == locked.value { Ok(value) } else { Err(ArtifactError::ValueMismatch { path }) }
    }

    fn cluster(&self) -> &ClusterIntent {
        self.intent.clusters.get(self.cluster).expect("BUG: secrets are asked of a cluster that exists")
    }

    /// The exact bytes for a composed document.
    ///
    /// # Errors
    /// [`ArtifactError`]; no value is in it.
    pub fn artifact(&self, composed: &Composed) -> Result<Artifact, ArtifactError> {
        let mut values: BTreeMap<(String, u64), SecretValue> = BTreeMap::new();
        for reference in &composed.references {
            let key = (reference.name.clone(), reference.version);
            let value = self.value(&key.0, key.1)?;
            values.insert(key, value);
        }
        self.refuse_copies(composed, &values)?;
        let resolved = composed.config.resolve(|text, _: &Path, _| resolve(text, &values));
        let resolved = resolved.map_err(|err| ArtifactError::Resolve(describe(&err)))?;
        let bytes = Zeroizing::new(resolved.encode().map_err(ArtifactError::Encode)?);
        let digest = |label| {
            let repository = &self.intent.governance.repository.id;
            self.key.digest(label, repository, self.cluster.as_str(), "", &bytes)
        };
        let (bytes_digest, meaning_digest) = (digest(Label::Bytes), digest(Label::Meaning));
        Ok(Artifact { bytes, bytes_digest, meaning_digest })
    }

    fn refuse_copies(
        &self,
        composed: &Composed,
        values: &BTreeMap<(String, u64), SecretValue>,
    ) -> Result<(), ArtifactError> {
        let long: Vec<&SecretValue> =
            values.values().filter(|value| value.expose().len() >= COPY_REFUSED_FROM).collect();
        let copies = guard::copies(&composed.bytes, &long).map_err(ArtifactError::Unguarded)?;
        if copies.is_empty() { Ok(()) } else { Err(ArtifactError::Copies(copies)) }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("No value was read for this reference")]
struct NoValue;

fn resolve(text: &str, values: &BTreeMap<(String, u64), SecretValue>) -> Result<Resolved, NoValue> {
    let reference: Reference = text.parse().map_err(|_| NoValue)?;
    let key = (reference.name.as_str().to_owned(), reference.version.ok_or(NoValue)?);
    let value = values.get(&key).ok_or(NoValue)?;
    let text = if reference.base64 { STANDARD.encode(value.expose()) } else { value.expose().to_owned() };
    Ok(Resolved::Text(text))
}

/// The whole chain of reasons; none of them quotes a value.
fn describe(err: &ResolveError<NoValue>) -> String {
    let mut out = err.to_string();
    let mut source = std::error::Error::source(err);
    while let Some(cause) = source {
        out.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    out
}
