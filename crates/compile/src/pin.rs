//! References in a composed document: no literal where Talos has secrets, and the lock's version in each reference.

use std::collections::BTreeSet;

use bronzeward_intent::finding::Code;
use bronzeward_intent::lock::SecretKind;
use bronzeward_intent::{ClusterIntent, Finding, Findings, Name};
use bronzeward_secrets::reference::Reference;
use talos_config::{Config, Leaf, LeafValue, Origin, Path};

use crate::codes;
use crate::plan::PlannedReference;

/// A document whose references have their versions.
pub(crate) struct Pinned {
    pub(crate) config: Config,
    /// Sorted.
    pub(crate) references: Vec<PlannedReference>,
    pub(crate) risks: BTreeSet<&'static str>,
}

/// Refuses literals where Talos has secrets, and writes the lock's version into every reference. `sources` are the
/// files by the number in each leaf's origin.
pub(crate) fn pin(
    cluster: &Name,
    of_cluster: &ClusterIntent,
    sources: &[String],
    mut config: Config,
) -> Result<Pinned, Findings> {
    let mut pins =
        Pins { cluster, of_cluster, sources, findings: Findings::default(), risks: BTreeSet::new() };
    pins.refuse_literals(&config);
    let references = pins.pin(&mut config);
    if pins.findings.has_errors() {
        return Err(pins.findings);
    }
    Ok(Pinned { config, references, risks: pins.risks })
}

struct Pins<'a> {
    cluster: &'a Name,
    of_cluster: &'a ClusterIntent,
    sources: &'a [String],
    findings: Findings,
    risks: BTreeSet<&'static str>,
}

impl Pins<'_> {
    fn report(&mut self, origin: Option<Origin>, code: Code, message: String, help: &str) {
        let file = origin.and_then(|origin| self.sources.get(origin.source.0 as usize));
        let file = file.cloned().unwrap_or_else(|| format!("clusters/{}/cluster.yaml", self.cluster));
        let pos = origin.map_or(bronzeward_intent::finding::TOP, |origin| origin.pos);
        self.findings.push(Finding::error(file, pos, code, message, help));
    }

    fn refuse_literals(&mut self, config: &Config) {
        for leaf in config.redacted_paths() {
            let message = format!(
                "A literal stands in {}{}, which Talos takes for secret",
                leaf.document, leaf.pointer
            );
            let help = "it is in Git for good: rotate that value, and write a reference (`!bwref NAME`) to the new one";
            self.report(leaf.origin, codes::LITERAL, message, help);
        }
    }

    /// Writes the lock's version into every reference.
    fn pin(&mut self, config: &mut Config) -> Vec<PlannedReference> {
        let mut references = BTreeSet::new();
        for leaf in config.references() {
            let LeafValue::Opaque(text) = &leaf.value else { continue };
            let Some((pinned, reference)) = self.pin_one(&leaf, text) else { continue };
            references.insert(reference);
            let path = Path::of(&leaf.document, &leaf.pointer);
            if let Err(err) = config.substitute(&path, &pinned) {
                let help = "choose a single value below or above it";
                self.report(Some(leaf.origin), codes::REFERENCE, err.to_string(), help);
            }
        }
        references.into_iter().collect()
    }

    fn pin_one(&mut self, leaf: &Leaf, text: &str) -> Option<(String, PlannedReference)> {
        let origin = Some(leaf.origin);
        let at = format!("{}{}", leaf.document, leaf.pointer);
        let reference: Reference = match text.parse() {
            Ok(reference) => reference,
            Err(err) => {
                let err: bronzeward_secrets::reference::BadReference = err;
                self.report(origin, codes::REFERENCE, format!("{err} (at {at})"), "see docs/walkthrough.md");
                return None;
            }
        };
        let name = reference.name.as_str();
        let Some(locked) = self.of_cluster.lock.secrets.get(name) else {
            let message = format!("The secret `{name}` stands in no line of the lock of `{}`", self.cluster);
            let help = "correct the name; secrets of other clusters cannot be used";
            self.report(origin, codes::REFERENCE, message, help);
            return None;
        };
        let problem = match locked.kind {
            SecretKind::String if !leaf.class.takes_text() => Some("a string cannot stand in this field"),
            SecretKind::String => None,
            SecretKind::Access => Some("access to nodes never compiles into a configuration"),
            _ => Some("only secrets of kind string are supported yet"),
        };
        let other = reference.version.is_some_and(|version| version != locked.version);
        let problem = problem.or(other.then_some("that version is not the one in the lock"));
        if let Some(problem) = problem {
            let help = "see the secret's line in secrets.lock.yaml";
            self.report(origin, codes::REFERENCE, format!("The secret `{name}` at {at}: {problem}"), help);
            return None;
        }
        let class = leaf.pointer.rsplit('/').next().unwrap_or_default();
        let known = |field: &String| field == class || field == bronzeward_secrets::ingest::OPAQUE_CLASS;
        if !locked.fields.iter().any(known) {
            self.risks.insert("secret-widened");
        }
        let planned =
            PlannedReference { name: name.to_owned(), version: locked.version, value: locked.value.clone() };
        Some((reference.pinned(locked.version), planned))
    }
}
