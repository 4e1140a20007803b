//! Composition: the base, then every selected fragment in order, by Talos' own rules.
//!
//! A pure function of one commit's files. Needs no secret, node, clock or network.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::iter;
use std::num::NonZero;
use std::sync::{Mutex, PoisonError};

use bronzeward_intent::finding::Code;
use bronzeward_intent::parallel::spread;
use bronzeward_intent::{ClusterIntent, Finding, Findings, Intent, Name, Selection, canonical};
use bronzeward_secrets::reference::TAG;
use talos_config::{
    Config, ConfigError, Limits, MergeError, Options, Origin, Patch, Pos, SourceId, Tables, Unexpected,
};

use crate::codes;
use crate::pin::pin;
use crate::plan::{PlannedReference, references_digest};

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
    Tables::embedded(contract).filter(|_| contract.starts_with('v')).ok_or_else(|| {
        let known: Vec<String> = Tables::minors().map(|minor| format!("`v{minor}`")).collect();
        Finding::error(
            format!("clusters/{cluster}/cluster.yaml"),
            bronzeward_intent::finding::TOP,
            codes::CONTRACT,
            format!("The contract `{contract}` is not supported: this version composes {}", known.join(", ")),
            "write one of them, or use a version that knows yours",
        )
    })
}

/// The contract that is planned and sent. What else is composed can be checked and rendered: how a node of another
/// minor takes a configuration, and which changes reboot it, is not known exactly enough to send.
const SENT: &str = "v1.13";

/// Refuses a contract that is composed and never sent.
///
/// # Errors
/// A finding at the cluster's file.
pub fn check_sent(cluster: &Name, contract: &str) -> Result<(), Finding> {
    if contract == SENT {
        return Ok(());
    }
    Err(Finding::error(
        format!("clusters/{cluster}/cluster.yaml"),
        bronzeward_intent::finding::TOP,
        codes::CONTRACT,
        format!(
            "The contract `{contract}` can be checked and rendered, and is not supported for sending yet"
        ),
        format!("write `contract: {SENT}`, or wait for a version that sends yours"),
    ))
}

/// Composes a machine: base and fragments.
///
/// # Errors
/// Every finding that refuses.
pub fn compose(intent: &Intent, cluster: &Name, machine: &Name) -> Result<Composed, Findings> {
    let selection = intent.selection(cluster, machine)?;
    Composer::new(intent, cluster)?.compose(&selection, true)
}

/// Composes the base of a machine alone, as an adoption by a base does.
///
/// # Errors
/// Every finding that refuses.
pub fn compose_base(intent: &Intent, cluster: &Name, machine: &Name) -> Result<Composed, Findings> {
    let selection = intent.selection(cluster, machine)?;
    Composer::new(intent, cluster)?.compose(&selection, false)
}

/// Composes machines of one cluster after each other. What the next one shares with the one before - the base and
/// the first fragments - is composed once, and every fragment is parsed once for each place that it has in an order.
pub struct Composer<'a> {
    cluster: &'a Name,
    of_cluster: &'a ClusterIntent,
    tables: Tables,
    patches: HashMap<(&'a str, u32), Patch>,
    levels: Vec<Level<'a>>,
    explains: bool,
}

/// Parsed fragments that are kept at a time.
const KEPT: usize = 2048;

/// A configuration on the way: after the base and some fragments.
struct Level<'a> {
    /// The file that was put on last.
    path: &'a str,
    changed: bool,
    /// What people do not expect of it, if the composer explains.
    unexpected: Vec<Unexpected>,
    config: Config,
}

impl<'a> Composer<'a> {
    /// For the machines of a cluster.
    ///
    /// # Errors
    /// A contract that this version cannot compose.
    ///
    /// # Panics
    /// When there is no such cluster, which a selection excludes.
    pub fn new(intent: &'a Intent, cluster: &'a Name) -> Result<Self, Findings> {
        let of_cluster = intent.clusters.get(cluster).expect("BUG: a selection names a cluster that exists");
        let tables = tables(cluster, &of_cluster.cluster.contract)?;
        Ok(Composer {
            cluster,
            of_cluster,
            tables,
            patches: HashMap::new(),
            levels: Vec::new(),
            explains: false,
        })
    }

    /// Also warns of what Talos' rules do that people do not expect: values that a fragment erased, kept or lost
    /// against what it seems to say.
    pub fn explaining(mut self) -> Self {
        self.explains = true;
        self
    }

    /// Composes one machine.
    ///
    /// # Errors
    /// Every finding that refuses.
    pub fn compose(&mut self, selection: &Selection<'a>, with_fragments: bool) -> Result<Composed, Findings> {
        let base = &selection.base;
        let fragments = if with_fragments { selection.fragments.as_slice() } else { &[] };
        let sources: Vec<(&'a str, &'a [u8])> = iter::once((base.path.as_str(), base.body.as_slice()))
            .chain(fragments.iter().map(|f| (f.source.path.as_str(), f.source.body.as_slice())))
            .collect();
        let shared = self.levels.iter().zip(&sources).take_while(|(level, (path, _))| level.path == *path);
        let shared = shared.count();
        self.levels.truncate(shared);
        self.parse(&sources[shared.max(1)..], shared.max(1))?;
        let files: Vec<String> = sources.iter().map(|(path, _)| (*path).to_owned()).collect();
        for (i, (path, body)) in sources.iter().enumerate().skip(shared) {
            let level = self.level(i as u32, path, body, &files)?;
            self.levels.push(level);
        }
        let (sources, mut warnings) = (files, Findings::default());
        for level in &self.levels {
            if !level.changed {
                let message = "The fragment changes nothing here";
                let help = "stop selecting it, or correct it";
                let top = bronzeward_intent::finding::TOP;
                warnings.push(Finding::warning(level.path, top, codes::UNCHANGED, message, help));
            }
            for what in &level.unexpected {
                warnings.push(unexpected(level.path, what, &sources));
            }
        }
        let config = self.levels.last().expect("BUG: the base is a level").config.clone();
        let pinned = pin(self.cluster, self.of_cluster, &sources, config)?;
        let bytes = pinned.config.encode().map_err(|err| {
            let (path, pos) = written(err.origin, &sources, &base.path);
            Finding::error(path, pos, codes::ENCODE, err.to_string(), "")
        })?;
        Ok(Composed {
            digest: canonical::sha256(&bytes),
            config: pinned.config,
            bytes,
            references: pinned.references,
            sources,
            reads: selection.reads.clone(),
            warnings,
            risks: pinned.risks,
        })
    }

    /// Parses the fragments that were not parsed for their place yet. What cannot be loaded is named completely.
    fn parse(&mut self, fragments: &[(&'a str, &'a [u8])], first: usize) -> Result<(), Findings> {
        // most fragments of a large fleet belong to one machine and are never asked for again
        if self.patches.len() > KEPT {
            self.patches.clear();
        }
        let mut findings = Findings::default();
        for ((path, body), place) in fragments.iter().zip(first as u32..) {
            if let Entry::Vacant(entry) = self.patches.entry((path, place)) {
                match Patch::load(&self.tables, body, SourceId(place), &options()) {
                    Ok(patch) => drop(entry.insert(patch)),
                    Err(err) => findings.push(config_finding(path, &err)),
                }
            }
        }
        if findings.has_errors() { Err(findings) } else { Ok(()) }
    }

    fn level(&self, place: u32, path: &'a str, body: &[u8], files: &[String]) -> Result<Level<'a>, Findings> {
        let Some(before) = self.levels.last() else {
            let config = Config::load(&self.tables, body, SourceId(0), &options())
                .map_err(|err| config_finding(path, &err))?;
            return Ok(Level { path, changed: true, unexpected: Vec::new(), config });
        };
        let mut config = before.config.clone();
        let patch = self.patches.get(&(path, place)).expect("BUG: every fragment was parsed");
        let applied = match self.explains {
            true => config.apply_explained(patch),
            false => config.apply(patch).map(|applied| (applied, Vec::new())),
        };
        let (applied, unexpected) = applied.map_err(|err| merge_finding(path, &err, files))?;
        Ok(Level { path, changed: applied.changed, unexpected, config })
    }
}

/// As [`compose`], and warns of what Talos' rules do that people do not expect: see [`Composer::explaining`].
///
/// # Errors
/// Every finding that refuses.
pub fn compose_explained(intent: &Intent, cluster: &Name, machine: &Name) -> Result<Composed, Findings> {
    let selection = intent.selection(cluster, machine)?;
    Composer::new(intent, cluster)?.explaining().compose(&selection, true)
}

/// Takes what one machine came to: cluster, machine, document or findings.
pub type Done<'f> = dyn Fn(&Name, &Name, Result<Composed, Findings>) + Sync + 'f;

/// Composes many machines, on every core, and hands over each as soon as it is done, in no certain order.
/// `explaining`: see [`Composer::explaining`].
pub fn compose_each(intent: &Intent, machines: &[(&Name, &Name)], explaining: bool, done: &Done<'_>) {
    let mut selected: Vec<(&Name, &Name, Selection<'_>)> = Vec::new();
    for (cluster, machine) in machines {
        match intent.selection(cluster, machine) {
            Ok(selection) => selected.push((cluster, machine, selection)),
            Err(findings) => done(cluster, machine, Err(findings)),
        }
    }
    // neighbours share as much as they can
    let order = |(cluster, _, selection): &(&Name, &Name, Selection<'_>)| {
        let fragments: Vec<&str> = selection.fragments.iter().map(|f| f.source.path.as_str()).collect();
        ((*cluster).clone(), selection.base.path.clone(), fragments.join("\n"))
    };
    selected.sort_by_cached_key(order);
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let share = selected.len().div_ceil(threads).max(1);
    let chunks: Vec<_> = selected.chunks(share).collect();
    spread(&chunks, |chunk| {
        for of_cluster in chunk.chunk_by(|a, b| a.0 == b.0) {
            let cluster = of_cluster[0].0;
            let composer = Composer::new(intent, cluster);
            let mut composer = composer.map(|c| if explaining { c.explaining() } else { c });
            for (_, machine, selection) in of_cluster {
                let composed = match &mut composer {
                    Ok(composer) => composer.compose(selection, true),
                    Err(findings) => Err(findings.clone()),
                };
                done(cluster, machine, composed);
            }
        }
    });
}

/// Composes many machines, on every core, and keeps of each document what is wanted of it.
pub fn compose_all<T: Send>(
    intent: &Intent,
    machines: &[(&Name, &Name)],
    keep: impl Fn(Composed) -> T + Sync,
) -> BTreeMap<(Name, Name), Result<T, Findings>> {
    let kept = Mutex::new(BTreeMap::new());
    compose_each(intent, machines, false, &|cluster, machine, composed| {
        let composed = composed.map(&keep);
        // the lock is held by no more than this one call, which has nothing to leave half done
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert((cluster.clone(), machine.clone()), composed);
    });
    kept.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Loads one file as a patch, for a check that needs no machine.
///
/// # Errors
/// The finding that refuses it.
pub fn check_patch(tables: &Tables, path: &str, body: &[u8]) -> Result<(), Finding> {
    Patch::load(tables, body, SourceId(0), &options()).map(drop).map_err(|err| config_finding(path, &err))
}

fn config_finding(path: &str, err: &ConfigError) -> Finding {
    let pos = err.pos().unwrap_or(bronzeward_intent::finding::TOP);
    Finding::error(path, pos, codes::TALOS, without_place(&err.to_string(), pos), "")
}

fn unexpected(path: &str, what: &Unexpected, sources: &[String]) -> Finding {
    let (path, pos) = written(what.patch, sources, path);
    let before = what.before.map(|origin| {
        let (file, pos) = written(Some(origin), sources, path);
        format!(" (it stood in {file}:{pos})")
    });
    let (before, code) = (before.unwrap_or_default(), Code(what.kind.code()));
    let message = format!("{}:{}: {}{before}", what.document, what.pointer, what.kind);
    Finding::warning(path, pos, code, message, what.kind.way_out())
}

/// What clashes with a patch may stand in a file before it.
fn merge_finding(path: &str, err: &MergeError, sources: &[String]) -> Finding {
    let (path, pos) = written(err.origin, sources, path);
    Finding::error(path, pos, codes::MERGE, without_place(&err.to_string(), pos), "")
}

/// The file and place of an origin; the top of `other` if it is not known.
fn written<'s>(origin: Option<Origin>, sources: &'s [String], other: &'s str) -> (&'s str, Pos) {
    let known = origin.and_then(|origin| Some((sources.get(origin.source.0 as usize)?.as_str(), origin.pos)));
    known.unwrap_or((other, bronzeward_intent::finding::TOP))
}

/// A finding prints the place itself.
fn without_place(message: &str, pos: Pos) -> String {
    message.strip_prefix(&format!("{pos}: ")).unwrap_or(message).to_owned()
}
