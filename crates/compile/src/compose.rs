//! Composition: the base, then every selected fragment in order, by Talos' own rules.
//!
//! A pure function of one commit's files. Needs no secret, node, clock or network.

use std::collections::BTreeSet;

use bronzeward_intent::finding::Code;
use bronzeward_intent::lock::SecretKind;
use bronzeward_intent::{ClusterIntent, Finding, Findings, Intent, Name, Selection, canonical};
use bronzeward_secrets::reference::{Reference, TAG};
use talos_config::{
    Config, ConfigError, Leaf, LeafValue, Limits, MergeError, Options, Origin, Patch, Path, Pos, SourceId,
    Tables,
};

use crate::plan::{PlannedReference, references_digest};

/// Codes of findings that composition makes.
pub mod codes {
    use bronzeward_intent::finding::Code;

    /// A contract that this version cannot compose.
    pub const CONTRACT: Code = Code("contract-unsupported");
    /// A file that Talos would not load.
    pub const TALOS: Code = Code("talos-refuses");
    /// A fragment that Talos could not merge.
    pub const MERGE: Code = Code("merge-refused");
    /// Documents that Talos would damage when it prints them.
    pub const ENCODE: Code = Code("encode-refused");
    /// A literal in a field that Talos takes for secret.
    pub const LITERAL: Code = Code("secret-literal");
    /// A reference that cannot stand.
    pub const REFERENCE: Code = Code("secret-reference");
    /// A fragment that changed nothing.
    pub const UNCHANGED: Code = Code("fragment-changed-nothing");
}

/// The composed document of a machine.
#[derive(Clone, Debug)]
pub struct Composed {
    /// The typed documents, references as opaque leaves with their versions.
    pub config: Config,
    /// Their text, as Talos would print it.
    pub bytes: Vec<u8>,
    /// `sha256:…` of the text.
    pub digest: String,
    /// Every reference that takes effect, sorted.
    pub references: Vec<PlannedReference>,
    /// The files, by the number in each leaf's origin.
    pub sources: Vec<String>,
    /// Every file that the composition reads, sorted.
    pub reads: Vec<String>,
    /// What should be known and refuses nothing.
    pub warnings: Findings,
    /// Codes of risks that the references bring.
    pub risks: BTreeSet<&'static str>,
}

impl Composed {
    /// The digest of the references, as Applied keeps it.
    pub fn references_digest(&self) -> String {
        references_digest(&self.references)
    }

    /// The file and place in which a leaf was written.
    pub fn place(&self, origin: Origin) -> (&str, Pos) {
        let file = self.sources.get(origin.source.0 as usize).map_or("", String::as_str);
        (file, origin.pos)
    }
}

/// How documents are loaded everywhere: references are opaque leaves.
pub fn options() -> Options {
    Options { opaque_tag: Some(TAG.to_owned()), limits: Limits::default() }
}

/// The tables of a contract.
///
/// # Errors
/// A finding at the cluster's file when this version has none.
pub fn tables(cluster: &Name, contract: &str) -> Result<Tables, Finding> {
    match contract {
        "v1.13" => Ok(Tables::v1_13()),
        _ => Err(Finding::error(
            format!("clusters/{cluster}/cluster.yaml"),
            bronzeward_intent::finding::TOP,
            codes::CONTRACT,
            format!("The contract `{contract}` is not supported yet: this version composes v1.13"),
            "write `contract: v1.13`, or wait for a version that knows yours",
        )),
    }
}

/// Composes a machine: base and fragments.
///
/// # Errors
/// Every finding that refuses.
pub fn compose(intent: &Intent, cluster: &Name, machine: &Name) -> Result<Composed, Findings> {
    let selection = intent.selection(cluster, machine)?;
    compose_selection(intent, cluster, &selection, true)
}

/// Composes the base of a machine alone, as an adoption by a base does.
///
/// # Errors
/// Every finding that refuses.
pub fn compose_base(intent: &Intent, cluster: &Name, machine: &Name) -> Result<Composed, Findings> {
    let selection = intent.selection(cluster, machine)?;
    compose_selection(intent, cluster, &selection, false)
}

fn compose_selection(
    intent: &Intent,
    cluster: &Name,
    selection: &Selection<'_>,
    with_fragments: bool,
) -> Result<Composed, Findings> {
    let of_cluster = intent.clusters.get(cluster).expect("BUG: a selection names a cluster that exists");
    let tables = tables(cluster, &of_cluster.cluster.contract)?;
    let mut findings = Findings::default();
    let mut warnings = Findings::default();
    let mut sources = vec![selection.base.path.clone()];
    let mut config = Config::load(&tables, &selection.base.body, SourceId(0), &options())
        .map_err(|err| config_finding(&selection.base.path, &err))?;
    for fragment in selection.fragments.iter().filter(|_| with_fragments) {
        let path = &fragment.source.path;
        let source = SourceId(sources.len() as u32);
        sources.push(path.clone());
        let patch = match Patch::load(&tables, &fragment.source.body, source, &options()) {
            Ok(patch) => patch,
            Err(err) => {
                findings.push(config_finding(path, &err));
                continue;
            }
        };
        if findings.has_errors() {
            // what cannot be loaded is named completely; merging over a hole would only mislead
            continue;
        }
        match config.apply(&patch) {
            Ok(applied) if !applied.changed => {
                let message = "The fragment changes nothing here";
                let help = "stop selecting it, or correct it";
                let top = bronzeward_intent::finding::TOP;
                warnings.push(Finding::warning(path, top, codes::UNCHANGED, message, help));
            }
            Ok(_) => {}
            Err(err) => return Err(merge_finding(path, &err).into()),
        }
    }
    if findings.has_errors() {
        return Err(findings);
    }
    let mut pins = Pins {
        cluster,
        of_cluster,
        sources: &sources,
        findings: Findings::default(),
        risks: BTreeSet::new(),
    };
    pins.refuse_literals(&config);
    let references = pins.pin(&mut config);
    let Pins { findings, risks, .. } = pins;
    if findings.has_errors() {
        return Err(findings);
    }
    let bytes = config.encode().map_err(|err| {
        let top = bronzeward_intent::finding::TOP;
        Finding::error(&selection.base.path, top, codes::ENCODE, err.to_string(), "change that text")
    })?;
    Ok(Composed {
        digest: canonical::sha256(&bytes),
        config,
        bytes,
        references,
        sources,
        reads: selection.reads.clone(),
        warnings,
        risks,
    })
}

/// Loads one file as a patch, for a check that needs no machine.
///
/// # Errors
/// The finding that refuses it.
pub fn check_patch(tables: &Tables, path: &str, body: &[u8]) -> Result<(), Finding> {
    Patch::load(tables, body, SourceId(0), &options()).map(drop).map_err(|err| config_finding(path, &err))
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
        let leaves: Vec<Leaf> =
            config.leaves().filter(|leaf| matches!(leaf.value, LeafValue::Opaque(_))).collect();
        let mut references = BTreeSet::new();
        for leaf in leaves {
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

fn config_finding(path: &str, err: &ConfigError) -> Finding {
    let pos = err.pos().unwrap_or(bronzeward_intent::finding::TOP);
    Finding::error(path, pos, codes::TALOS, without_place(&err.to_string(), pos), "")
}

fn merge_finding(path: &str, err: &MergeError) -> Finding {
    let pos = err.origin.map_or(bronzeward_intent::finding::TOP, |origin| origin.pos);
    Finding::error(path, pos, codes::MERGE, without_place(&err.to_string(), pos), "")
}

/// A finding prints the place itself.
fn without_place(message: &str, pos: Pos) -> String {
    message.strip_prefix(&format!("{pos}: ")).unwrap_or(message).to_owned()
}
