//! Which fields hold secrets: those that Talos redacts, and those that can hold one although Talos does not
//! redact them. Both lists are data.

use std::sync::Arc;

use crate::access::{at_mut, raw_text, visit};
use crate::config::Config;
use crate::path::{DocumentId, pointer};
use crate::tables::{Shape, Tables};
use crate::url::{Url, query_value, replace_query};
use crate::value::{Data, Origin, Val};

/// Fields that some Talos minor from 1.12 to 1.14 redacts (`RedactSecrets` and each kind's `Redact`). The tables
/// of a minor have their own list; older minors redact less, so this one is added to it for every minor.
/// `*` is any key or index, `**` any number of them.
const REDACTED: &[(&str, &[&str])] = &[
    (
        "v1alpha1",
        &[
            "/machine/token",
            "/machine/ca/key",
            "/machine/registries/config/*/auth/password",
            "/machine/registries/config/*/auth/auth",
            "/machine/registries/config/*/auth/identityToken",
            "/machine/registries/config/*/tls/clientIdentity/key",
            "/machine/network/interfaces/*/wireguard/privateKey",
            "/machine/network/interfaces/*/vip/equinixMetal/apiToken",
            "/machine/network/interfaces/*/vip/hcloud/apiToken",
            "/machine/network/interfaces/*/vlans/*/vip/equinixMetal/apiToken",
            "/machine/network/interfaces/*/vlans/*/vip/hcloud/apiToken",
            "/machine/systemDiskEncryption/state/keys/*/static/passphrase",
            "/machine/systemDiskEncryption/ephemeral/keys/*/static/passphrase",
            "/cluster/secret",
            "/cluster/token",
            "/cluster/aescbcEncryptionSecret",
            "/cluster/secretboxEncryptionSecret",
            "/cluster/serviceAccount/key",
            "/cluster/ca/key",
            "/cluster/aggregatorCA/key",
            "/cluster/etcd/ca/key",
        ],
    ),
    ("VolumeConfig", &["/encryption/keys/*/static/passphrase"]),
    ("UserVolumeConfig", &["/encryption/keys/*/static/passphrase"]),
    ("RawVolumeConfig", &["/encryption/keys/*/static/passphrase"]),
    ("SwapVolumeConfig", &["/encryption/keys/*/static/passphrase"]),
    ("DiscoveryIdentityConfig", &["/clusterSecret"]),
    ("RegistryAuthConfig", &["/password", "/auth", "/identityToken"]),
    ("RegistryTLSConfig", &["/clientIdentity/key"]),
    ("KubeAPIServerCAConfig", &["/issuingCA/key"]),
    ("KubeAggregatorCAConfig", &["/issuingCA/key"]),
    ("KubeServiceAccountConfig", &["/issuer/privateKey"]),
    ("KubeEtcdEncryptionConfig", &["/config/**/secret"]),
    ("WireguardConfig", &["/privateKey", "/peers/*/presharedKey"]),
    ("HCloudVIPConfig", &["/apiToken"]),
    ("SideroLinkConfig", &["/uniqueToken", "/apiUrl"]),
];

/// Fields that can hold a secret although Talos does not redact them. A pattern means everything below it.
const OPAQUE: &[(&str, &[&str])] = &[
    (
        "v1alpha1",
        &[
            "/machine/files/*/content",
            "/machine/env",
            "/machine/pods",
            "/machine/kubelet/extraArgs",
            "/machine/kubelet/extraConfig",
            "/machine/kubelet/credentialProviderConfig",
            "/machine/install/extraKernelArgs",
            "/machine/logging/destinations/*/endpoint",
            "/machine/registries/mirrors/*/endpoints",
            "/machine/systemDiskEncryption/*/keys/*/kms/endpoint",
            "/cluster/id",
            "/cluster/extraManifestHeaders",
            "/cluster/extraManifests",
            "/cluster/inlineManifests/*/contents",
            "/cluster/apiServer/env",
            "/cluster/apiServer/extraArgs",
            "/cluster/apiServer/admissionControl",
            "/cluster/apiServer/authorizationConfig",
            "/cluster/controllerManager/env",
            "/cluster/controllerManager/extraArgs",
            "/cluster/scheduler/env",
            "/cluster/scheduler/extraArgs",
            "/cluster/etcd/extraArgs",
        ],
    ),
    ("ExtensionServiceConfig", &["/configFiles/*/content", "/environment"]),
    ("EnvironmentConfig", &["/variables"]),
    ("EtcFileConfig", &["/contents"]),
    ("CRICustomizationConfig", &["/content"]),
    ("ContainerConfig", &["/environment", "/args"]),
    ("KubeInlineManifestConfig", &[""]),
    ("KubeExternalManifestConfig", &["/headers", "/url"]),
    ("KubeStaticPodConfig", &["/pod"]),
    ("KubeletConfig", &["/extraArgs", "/config"]),
    ("KubeCredentialProviderConfig", &["/configuration"]),
    ("KubeAuthenticationConfig", &["/configuration"]),
    ("KubeAuthorizerConfig", &[""]),
    ("KubeAdmissionControlConfig", &["/configuration"]),
    ("KubeAPIServerConfig", &["/env", "/extraArgs"]),
    ("KubeControllerManagerConfig", &["/env", "/extraArgs"]),
    ("KubeSchedulerConfig", &["/env", "/extraArgs"]),
    ("RegistryMirrorConfig", &["/endpoints/*/url"]),
    ("EventSinkConfig", &["/endpoint"]),
    ("KmsgLogConfig", &["/url"]),
    ("HTTPProbeConfig", &["/url"]),
    ("DiscoveryServiceConfig", &["/endpoint"]),
    ("VolumeConfig", &["/encryption/keys/*/kms/endpoint"]),
    ("UserVolumeConfig", &["/encryption/keys/*/kms/endpoint"]),
    ("RawVolumeConfig", &["/encryption/keys/*/kms/endpoint"]),
    ("SwapVolumeConfig", &["/encryption/keys/*/kms/endpoint"]),
    ("SideroLinkConfig", &["/apiUrl"]),
];

/// A literal in a field that Talos redacts. `Debug` does not show it.
#[derive(Clone)]
pub struct SecretLeaf {
    /// The document.
    pub document: DocumentId,
    /// RFC 6901 pointer to the value.
    pub pointer: String,
    /// The scalar's text, as it is printed before quoting (base64 where the field is base64).
    pub text: String,
    /// The field class: the last key of the path.
    pub field: String,
    /// Where it was written.
    pub origin: Option<Origin>,
}

impl std::fmt::Debug for SecretLeaf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SecretLeaf({}:{})", self.document, self.pointer)
    }
}

/// A value inside a region that can hold secrets although Talos does not redact it. `Debug` does not show it.
#[derive(Clone)]
pub struct OpaqueLeaf {
    /// The document.
    pub document: DocumentId,
    /// Pointer to the region that the list names.
    pub region: String,
    /// Pointer to the value.
    pub pointer: String,
    /// The scalar's text.
    pub text: String,
    /// Where it was written.
    pub origin: Option<Origin>,
}

impl std::fmt::Debug for OpaqueLeaf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OpaqueLeaf({}:{})", self.document, self.pointer)
    }
}

/// Whether a path matches a pattern; with `below`, anything below the pattern matches too.
fn matches(pattern: &[&str], path: &[String], below: bool) -> bool {
    let Some((first, rest)) = pattern.split_first() else { return below || path.is_empty() };
    match (*first, path.split_first()) {
        ("**", _) => (0..=path.len()).any(|i| matches(rest, &path[i..], below)),
        (_, None) => false,
        (want, Some((have, path_rest))) => (want == "*" || want == have) && matches(rest, path_rest, below),
    }
}

fn split(pattern: &str) -> Vec<&str> {
    pattern.split('/').skip(1).collect()
}

/// Every pattern of redacted fields of a kind: the list above and that of the tables.
fn redacted_patterns<'t>(tables: &'t Tables, kind: &str) -> Vec<Vec<&'t str>> {
    let known = REDACTED.iter().filter(|(k, _)| *k == kind).flat_map(|(_, p)| p.iter().map(|p| split(p)));
    let own = tables.kind(kind).into_iter().flat_map(|(_, k)| &k.redacted);
    let mut all: Vec<Vec<&str>> = known.collect();
    for pattern in own {
        let pattern: Vec<&str> = pattern.iter().map(String::as_str).collect();
        if !all.contains(&pattern) {
            all.push(pattern);
        }
    }
    all
}

impl Config {
    /// Every literal, not empty, in a field that Talos redacts. References are not literals. The URL of a
    /// `SideroLinkConfig` counts as a whole if it carries a join token.
    pub fn redacted_paths(&self) -> Vec<SecretLeaf> {
        let mut found = Vec::new();
        for doc in &self.docs {
            let id = doc.id(&self.tables);
            let patterns = redacted_patterns(&self.tables, &id.kind);
            self.each(doc, &mut |path, shape, val| {
                if !patterns.iter().any(|p| matches(p, path, false)) || !is_secret(val) {
                    return;
                }
                if let Some(text) = raw_text(&self.tables, shape, val).filter(|t| !t.is_empty()) {
                    found.push(SecretLeaf {
                        document: id.clone(),
                        pointer: pointer(path),
                        text,
                        field: path.last().cloned().unwrap_or_default(),
                        origin: val.origin,
                    });
                }
            });
        }
        found
    }

    fn each(&self, doc: &crate::config::Doc, f: &mut dyn FnMut(&[String], &Shape, &Val)) {
        visit(&self.tables, &doc.root, &doc.shape(&self.tables), &mut Vec::new(), f);
    }

    /// A copy in which every literal of [`Config::redacted_paths`] is replaced as Talos' own redaction does:
    /// bytes print the replacement in base64, unless it is `******`; a join token is replaced inside its URL.
    pub fn redacted(&self, replacement: &str) -> Config {
        self.redacted_with(&|_| replacement.to_owned())
    }

    /// As [`Config::redacted`], with a replacement of the caller's choice for each literal.
    pub fn redacted_with(&self, replacement: &dyn Fn(&SecretLeaf) -> String) -> Config {
        let mut config = self.clone();
        for doc in config.docs.iter_mut().filter(|d| d.id(&self.tables).kind == "SideroLinkConfig") {
            // Talos sorts the parameters even if there is no token among them
            let shape = doc.shape(&self.tables);
            if let Some((val, _)) = at_mut(&self.tables, &mut doc.root, &shape, &["apiUrl".to_owned()])
                && let Data::Url(url) = &mut val.data
            {
                let url = Arc::make_mut(url);
                url.query = replace_query(&url.query, "", "").unwrap_or_default();
            }
        }
        for secret in self.redacted_paths() {
            let text = replacement(&secret);
            let segments = crate::path::segments(&secret.pointer);
            let Some(doc) = config.docs.iter_mut().find(|d| d.id(&self.tables) == secret.document) else {
                continue;
            };
            let shape = doc.shape(&self.tables);
            if let Some((val, _)) = at_mut(&self.tables, &mut doc.root, &shape, &segments) {
                replace(val, &text);
            }
        }
        config
    }

    /// Every value, not empty, in a region that can hold secrets although Talos does not redact it.
    pub fn opaque_regions(&self) -> Vec<OpaqueLeaf> {
        let mut found = Vec::new();
        for doc in &self.docs {
            let id = doc.id(&self.tables);
            let patterns: Vec<Vec<&str>> = OPAQUE
                .iter()
                .filter(|(k, _)| *k == id.kind)
                .flat_map(|(_, p)| p.iter().map(|p| split(p)))
                .collect();
            self.each(doc, &mut |path, shape, val| {
                let Some(pattern) = patterns.iter().find(|p| matches(p, path, true)) else { return };
                let identity =
                    matches!(path, [only] if matches!(only.as_str(), "kind" | "apiVersion" | "name"));
                if identity || (id.kind == "SideroLinkConfig" && is_secret(val) && !has_parameters(val)) {
                    return;
                }
                if let Some(text) = raw_text(&self.tables, shape, val).filter(|t| !t.is_empty()) {
                    found.push(OpaqueLeaf {
                        document: id.clone(),
                        region: pointer(&path[..pattern.len().min(path.len())]),
                        pointer: pointer(path),
                        text,
                        origin: val.origin,
                    });
                }
            });
        }
        found
    }
}

/// URLs are secret only for their join token.
fn is_secret(val: &Val) -> bool {
    match &val.data {
        Data::Url(url) => query_value(&url.query, "jointoken").is_some(),
        _ => true,
    }
}

fn has_parameters(val: &Val) -> bool {
    matches!(&val.data, Data::Url(url) if url.query.contains('&') || url.user.is_some())
}

fn replace(val: &mut Val, text: &str) {
    match &mut val.data {
        Data::Bytes(bytes) => *bytes = text.as_bytes().into(),
        Data::Url(url) => redact_url(Arc::make_mut(url), text),
        Data::Ptr(inner) => replace(Arc::make_mut(inner), text),
        data => *data = Data::Text(text.into()),
    }
}

fn redact_url(url: &mut Url, text: &str) {
    // a query that cannot be taken apart is dropped whole
    url.query = replace_query(&url.query, "jointoken", text).unwrap_or_default();
}

impl Tables {
    /// Whether a place in a document of this kind is a field that Talos redacts.
    pub fn is_redacted(&self, kind: &str, segments: &[String]) -> bool {
        redacted_patterns(self, kind).iter().any(|p| matches(p, segments, false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_covers_what_the_tables_say() {
        let tables = Tables::v1_13();
        for kind in &tables.0.kinds {
            let known: Vec<Vec<&str>> = REDACTED
                .iter()
                .filter(|(k, _)| *k == kind.kind)
                .flat_map(|(_, p)| p.iter().map(|p| split(p)))
                .collect();
            for pattern in &kind.redacted {
                let pattern: Vec<&str> = pattern.iter().map(String::as_str).collect();
                assert!(known.contains(&pattern), "{} {pattern:?}", kind.kind);
            }
        }
    }

    #[test]
    fn every_pattern_of_a_known_kind_leads_to_a_field() {
        let tables = Tables::v1_13();
        for (kind, patterns) in REDACTED.iter().chain(OPAQUE) {
            if tables.kind(kind).is_none() {
                continue;
            }
            for pattern in *patterns {
                let segments: Vec<String> = split(pattern).into_iter().map(str::to_owned).collect();
                // the star under systemDiskEncryption stands for two fields
                let segments: Vec<String> = match segments.get(1).map(String::as_str) {
                    Some("systemDiskEncryption") if segments.get(2).is_some_and(|s| s == "*") => segments
                        .iter()
                        .enumerate()
                        .map(|(i, s)| if i == 2 { "state".into() } else { s.clone() })
                        .collect(),
                    _ => segments,
                };
                assert!(tables.field_class(kind, &segments).is_some(), "{kind} {pattern}");
            }
        }
    }
}
