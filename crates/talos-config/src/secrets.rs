//! Which fields hold secrets: those that Talos redacts, and those that can hold one although Talos does not
//! redact them. Both lists are data.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::access::{AccessError, at_mut, element, entry, raw_text};
use crate::config::{Config, Doc};
use crate::path::{DocumentId, Path, pointer};
use crate::tables::{Shape, Tables};
use crate::trail::{Step, pointer_of, segments_of};
use crate::url::{has_parameter, query_anew};
use crate::value::{Data, Origin, Val};
use crate::walk::visit;

/// Fields that some Talos minor redacts, by kind: older minors redact less, so all of it is redacted for every minor.
/// `*` is any key or index, `**` any number of them.
fn redacted() -> &'static HashMap<String, Vec<Pattern>> {
    static FOUND: OnceLock<HashMap<String, Vec<Pattern>>> = OnceLock::new();
    FOUND.get_or_init(|| {
        // the file is part of the build, and a test reads it
        #[allow(clippy::expect_used)]
        let read: HashMap<String, Vec<String>> =
            serde_json::from_slice(include_bytes!("../../../schema/talos/redacted.json"))
                .expect("the redacted paths load");
        read.into_iter().map(|(kind, paths)| (kind, paths.iter().map(|p| split(p)).collect())).collect()
    })
}

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

/// Keys from a document's root; `*` is any key or index, `**` any number of them.
pub(crate) type Pattern = Vec<String>;

fn split(pattern: &str) -> Pattern {
    pattern.split('/').skip(1).map(str::to_owned).collect()
}

fn of_kind(list: &'static [(&str, &[&str])], kind: &str) -> impl Iterator<Item = Pattern> {
    list.iter().filter(move |(k, _)| *k == kind).flat_map(|(_, patterns)| patterns.iter().map(|p| split(p)))
}

/// Every pattern of redacted fields of a kind: those of every minor, and those of its own tables.
pub(crate) fn redacted_patterns(kind: &str, own: Vec<Pattern>) -> Vec<Pattern> {
    let mut all: Vec<Pattern> = redacted().get(kind).cloned().unwrap_or_default();
    for pattern in own {
        if !all.contains(&pattern) {
            all.push(pattern);
        }
    }
    all
}

/// Every pattern of regions of a kind that can hold secrets although Talos does not redact them.
pub(crate) fn opaque_patterns(kind: &str) -> Vec<Pattern> {
    of_kind(OPAQUE, kind).collect()
}

/// What is left of the patterns after a step down. With `below`, a pattern that was used up stays.
fn after<'p>(patterns: &[&'p [String]], step: &str, below: bool) -> Vec<&'p [String]> {
    let mut left = Vec::new();
    for pattern in patterns {
        let mut pattern = *pattern;
        loop {
            match pattern.split_first() {
                None if below => left.push(pattern),
                None => {}
                Some((first, rest)) if first == "**" => {
                    left.push(pattern);
                    // it may also stand for nothing
                    pattern = rest;
                    continue;
                }
                Some((first, rest)) if first == "*" || first == step => left.push(rest),
                Some(_) => {}
            }
            break;
        }
    }
    left
}

/// What a search looks for, and what it does with each value that it finds.
struct Search<'v, 'f> {
    tables: &'v Tables,
    below: bool,
    trail: Vec<Step<'v>>,
    found: &'f mut dyn FnMut(&[Step<'v>], &'v Shape, &'v Val),
}

impl<'v> Search<'v, '_> {
    /// Calls `found` for every scalar, reference and empty collection that matches; what no pattern leads to is
    /// not looked at.
    fn seek(&mut self, val: &'v Val, shape: &'v Shape, patterns: &[&[String]]) {
        let free = matches!(self.tables.base(shape), Shape::Any);
        if patterns.iter().any(|p| p.is_empty() && (self.below || free || !is_structure(val))) {
            let (tables, found) = (self.tables, &mut *self.found);
            return visit(tables, val, shape, &mut self.trail, found);
        }
        match (&val.data, self.tables.base(shape)) {
            (Data::Ptr(inner), Shape::Ptr(s)) => self.seek(inner, s, patterns),
            (Data::List(items), base) => {
                for (i, item) in items.iter().enumerate() {
                    self.down(Step::Index(i), "", item, element(base), patterns);
                }
            }
            (Data::Map(entries), base) => {
                for (key, v) in entries.iter() {
                    self.down(Step::Key(key), key, v, entry(base), patterns);
                }
            }
            (Data::Struct(fields), base) => {
                let Some(s) = self.tables.as_struct(base) else { return };
                for (field, v) in s.fields.iter().zip(fields.iter()) {
                    if matches!(v.data, Data::Zero)
                        || field.omitempty && v.is_omitted(&field.shape, self.tables)
                    {
                        continue;
                    }
                    match field.inline {
                        true => self.seek(v, &field.shape, patterns),
                        false => self.down(Step::Key(&field.key), &field.key, v, &field.shape, patterns),
                    }
                }
            }
            _ => {}
        }
    }

    fn down(&mut self, step: Step<'v>, key: &str, val: &'v Val, shape: &'v Shape, patterns: &[&[String]]) {
        let left = after(patterns, key, self.below);
        if !left.is_empty() {
            self.trail.push(step);
            self.seek(val, shape, &left);
            self.trail.pop();
        }
    }
}

fn is_structure(val: &Val) -> bool {
    match &val.data {
        Data::Ptr(inner) => is_structure(inner),
        Data::List(items) => !items.is_empty(),
        Data::Map(entries) => !entries.is_empty(),
        Data::Struct(_) => true,
        _ => false,
    }
}

impl Config {
    /// Every literal, not empty, in a field that Talos redacts. References are not literals. The URL of a
    /// `SideroLinkConfig` counts as a whole if it carries a join token.
    pub fn redacted_paths(&self) -> Vec<SecretLeaf> {
        let mut found = Vec::new();
        for doc in &self.docs {
            let kind = &self.tables.0.kinds[doc.kind];
            self.search(doc, &kind.redacted, false, &mut |path, shape, val| {
                if !is_secret(val) {
                    return;
                }
                if let Some(text) = raw_text(&self.tables, shape, val).filter(|t| !t.is_empty()) {
                    found.push(SecretLeaf {
                        document: doc.id(&self.tables),
                        pointer: pointer_of(path),
                        text,
                        field: path.last().map(Step::to_string).unwrap_or_default(),
                        origin: val.origin,
                    });
                }
            });
        }
        found
    }

    fn search<'v>(
        &'v self,
        doc: &'v Doc,
        patterns: &[Pattern],
        below: bool,
        found: &mut dyn FnMut(&[Step<'v>], &'v Shape, &'v Val),
    ) {
        let patterns: Vec<&[String]> = patterns.iter().map(Vec::as_slice).collect();
        if !patterns.is_empty() {
            let mut search = Search { tables: &self.tables, below, trail: Vec::new(), found };
            search.seek(&doc.root, doc.shape(&self.tables), &patterns);
        }
    }

    /// A copy in which every literal of [`Config::redacted_paths`] is replaced as Talos' own redaction does:
    /// bytes print the replacement in base64, unless it is `******`; a join token is replaced inside its URL.
    pub fn redacted(&self, replacement: &str) -> Config {
        let mut config = self.clone();
        for doc in config.docs.iter_mut().filter(|d| d.id(&self.tables).kind == "SideroLinkConfig") {
            // Talos sorts the parameters even if there is no token among them
            let shape = doc.shape(&self.tables);
            if let Some((val, _)) = at_mut(&self.tables, &mut doc.root, shape, &["apiUrl".to_owned()])
                && let Data::Url(url) = &mut val.data
            {
                let url = Arc::make_mut(url);
                url.query = query_anew(&url.query, None);
            }
        }
        self.redact_beside_literals(&mut config, replacement);
        for secret in self.redacted_paths() {
            let segments = crate::path::segments(&secret.pointer);
            let Some(doc) = config.docs.iter_mut().find(|d| d.id(&self.tables) == secret.document) else {
                continue;
            };
            let shape = doc.shape(&self.tables);
            if let Some((val, _)) = at_mut(&self.tables, &mut doc.root, shape, &segments) {
                replace(val, replacement);
            }
        }
        config
    }

    /// As [`Config::redacted`], and every value at or below the given places is replaced as well, whatever its type.
    /// References stay: they show a name, no value.
    ///
    /// # Errors
    /// [`AccessError`] for a place that is not there: a mistyped one would show what it should hide.
    pub fn redacted_also(&self, also: &[Path], replacement: &str) -> Result<Config, AccessError> {
        let mut config = self.redacted(replacement);
        for place in also {
            let path = place.to_string();
            let Some(index) = self.doc_index(&place.document) else {
                return Err(AccessError::NoDocument { path });
            };
            let doc = &mut config.docs[index];
            let shape = doc.shape(&self.tables);
            match at_mut(&self.tables, &mut doc.root, shape, &place.segments) {
                Some((val, _)) if !matches!(val.data, Data::Zero) => hide(val, replacement),
                _ => return Err(AccessError::Nothing { path }),
            }
        }
        Ok(config)
    }

    /// What Talos' redaction replaces although it is no literal: structures and nothing under a key that is secret
    /// wherever it stands in a free-form value, and fields that it sets even where nothing was.
    fn redact_beside_literals(&self, config: &mut Config, replacement: &str) {
        for doc in &mut config.docs {
            let kind = &self.tables.0.kinds[doc.kind];
            let shape = doc.shape(&self.tables);
            for path in &kind.redacted_empty {
                if let Some((val, Shape::Text)) = at_mut(&self.tables, &mut doc.root, shape, path)
                    && (matches!(&val.data, Data::Zero) || matches!(&val.data, Data::Text(t) if t.is_empty()))
                {
                    val.data = Data::Text(replacement.into());
                }
            }
            for pattern in &kind.redacted {
                let Some(i) = pattern.iter().position(|p| p == "**") else { continue };
                if let Some((val, _)) = at_mut(&self.tables, &mut doc.root, shape, &pattern[..i]) {
                    cover(val, &pattern[i + 1], replacement);
                }
            }
        }
    }

    /// Every value, not empty, in a region that can hold secrets although Talos does not redact it.
    pub fn opaque_regions(&self) -> Vec<OpaqueLeaf> {
        let mut found = Vec::new();
        for doc in &self.docs {
            let kind = &self.tables.0.kinds[doc.kind];
            self.search(doc, &kind.opaque, true, &mut |path, shape, val| {
                let segments = segments_of(path);
                let region = |p: &&Pattern| after_all(p, &segments);
                let Some(pattern) = kind.opaque.iter().find(region) else { return };
                let identity = matches!(path, [Step::Key("kind" | "apiVersion" | "name")]);
                if identity || (kind.kind == "SideroLinkConfig" && is_secret(val) && !has_parameters(val)) {
                    return;
                }
                if let Some(text) = raw_text(&self.tables, shape, val).filter(|t| !t.is_empty()) {
                    found.push(OpaqueLeaf {
                        document: doc.id(&self.tables),
                        region: pointer(&segments[..pattern.len().min(segments.len())]),
                        pointer: pointer(&segments),
                        text,
                        origin: val.origin,
                    });
                }
            });
        }
        found
    }
}

/// Puts a text in the place of everything under a key that is no literal, at any depth.
fn cover(val: &mut Val, key: &str, text: &str) {
    let empty = |val: &Val| matches!(&val.data, Data::Text(t) if t.is_empty());
    match &mut val.data {
        Data::Ptr(inner) => cover(Arc::make_mut(inner), key, text),
        Data::List(items) | Data::Struct(items) => {
            Arc::make_mut(items).iter_mut().for_each(|item| cover(item, key, text));
        }
        Data::Map(entries) => {
            for (k, v) in Arc::make_mut(entries) {
                if **k != *key {
                    cover(v, key, text);
                } else if empty(v) || matches!(v.data, Data::Zero | Data::List(_) | Data::Map(_)) {
                    v.data = Data::Text(text.into());
                }
            }
        }
        _ => {}
    }
}

/// Puts a text in the place of every value below.
fn hide(val: &mut Val, text: &str) {
    match &mut val.data {
        Data::Zero | Data::Opaque(_) => {}
        Data::Ptr(inner) => hide(Arc::make_mut(inner), text),
        Data::List(items) | Data::Struct(items) => {
            Arc::make_mut(items).iter_mut().for_each(|item| hide(item, text));
        }
        Data::Map(entries) => Arc::make_mut(entries).iter_mut().for_each(|(_, v)| hide(v, text)),
        // in base64 the text would look like a value
        data => *data = Data::Text(text.into()),
    }
}

/// Whether a pattern leads to the place or to something above it.
fn after_all(pattern: &Pattern, segments: &[String]) -> bool {
    let mut left = vec![pattern.as_slice()];
    for segment in segments {
        left = after(&left, segment, true);
    }
    left.iter().any(|p| p.is_empty())
}

/// URLs are secret only for their join token.
fn is_secret(val: &Val) -> bool {
    match &val.data {
        Data::Url(url) => has_parameter(&url.query, "jointoken"),
        _ => true,
    }
}

fn has_parameters(val: &Val) -> bool {
    matches!(&val.data, Data::Url(url) if url.query.contains('&') || url.user.is_some())
}

fn replace(val: &mut Val, text: &str) {
    match &mut val.data {
        Data::Bytes(bytes) => *bytes = text.as_bytes().into(),
        Data::Url(url) => {
            let url = Arc::make_mut(url);
            url.query = query_anew(&url.query, Some(("jointoken", text)));
        }
        Data::Ptr(inner) => replace(Arc::make_mut(inner), text),
        data => *data = Data::Text(text.into()),
    }
}

impl Tables {
    /// Whether a place in a document of this kind is a field that Talos redacts.
    pub fn is_redacted(&self, kind: &str, segments: &[String]) -> bool {
        let Some((_, kind)) = self.kind(kind) else { return false };
        let mut left: Vec<&[String]> = kind.redacted.iter().map(Vec::as_slice).collect();
        for segment in segments {
            left = after(&left, segment, false);
        }
        left.iter().any(|p| p.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_any_minor_redacts_is_redacted_for_every_minor() {
        for minor in Tables::minors() {
            for kind in &Tables::embedded(minor).unwrap().0.kinds {
                let known = redacted().get(&kind.kind).map(Vec::as_slice).unwrap_or_default();
                assert_eq!(known, kind.redacted, "{minor} {}", kind.kind);
            }
        }
        // 1.12 itself leaves these in the open
        let old = Tables::embedded("1.12").unwrap();
        let path = |p: &str| crate::path::segments(p);
        assert!(old.is_redacted("HCloudVIPConfig", &path("/apiToken")));
        assert!(old.is_redacted("v1alpha1", &path("/machine/registries/config/a/auth/password")));
    }

    #[test]
    fn every_pattern_leads_to_a_field_of_some_minor() {
        let minors: Vec<Tables> = Tables::minors().filter_map(Tables::embedded).collect();
        let own =
            OPAQUE.iter().flat_map(|(kind, paths)| paths.iter().map(|p| (*kind, crate::path::segments(p))));
        let all =
            redacted().iter().flat_map(|(kind, paths)| paths.iter().map(|p| (kind.as_str(), p.clone())));
        for (kind, mut segments) in own.chain(all) {
            // the star under systemDiskEncryption stands for two fields
            if segments.get(1).is_some_and(|s| s == "systemDiskEncryption") && segments[2] == "*" {
                "state".clone_into(&mut segments[2]);
            }
            let found = minors.iter().any(|tables| tables.field_class(kind, &segments).is_some());
            assert!(found, "{kind} {segments:?}");
        }
    }
}
