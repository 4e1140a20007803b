//! `import` and `adopt`: what runs becomes a base on a draft branch; secrets are extracted, nothing is sent.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result};
use bronzeward_intent::fragment::BaseKind;
use bronzeward_intent::lock::SecretKind;
use bronzeward_intent::yaml_text::to_yaml;
use bronzeward_intent::{
    ActorRole, ApiVersion, Assignment, Base, Imported, Intent, LockedSecret, Name, SecretsLock,
};
use bronzeward_secrets::age_file::{recipients, seal_secret, secret_path};
use bronzeward_secrets::ingest::{Ingest, Ingested, base_file, ingest, mark_path};
use bronzeward_secrets::{InstallationKey, Label, SecretHeader};
use bronzeward_state::Snapshot;
use talos_client::{Deadlines, Dial, Dialer, Endpoint, Facts, Talosconfig};
use talos_config::Path;
use zeroize::Zeroizing;

use crate::cli::{AdoptArgs, Cli, Decide, Import};
use crate::context::{Clone, Tips, find_machine};
use crate::draft::Draft;
use crate::exit::{Exit, refuse};
use crate::output;

/// `import`.
pub fn import(cli: &Cli, args: &Import) -> Result<Exit> {
    let clone = Clone::open(cli)?;
    let tips = clone.fetch()?;
    let state = clone.snapshot()?;
    let machines: Vec<(String, Option<u64>)> =
        args.machines.iter().map(|name| (name.clone(), None)).collect();
    let fallback = format!("import-{}", args.machines.join("-").replace('/', "-"));
    take(cli, &clone, &tips, &state, &machines, &args.decide, &fallback)
}

/// `adopt`.
pub fn adopt(cli: &Cli, args: &AdoptArgs) -> Result<Exit> {
    let clone = Clone::open(cli)?;
    let tips = clone.fetch()?;
    let state = clone.snapshot()?;
    let (cluster, machine) = find_machine(&*clone.intent(tips.main)?, &args.machine)?;
    let status = state.status(cluster.as_str(), machine.as_str());
    let Some(drift) = status.open_drift else {
        return Err(refuse(format!("No drift is open on `{cluster}/{machine}`: there is nothing to adopt")));
    };
    let fallback = format!("adopt-{machine}-{}", drift.sequence);
    let machines = [(format!("{cluster}/{machine}"), Some(drift.sequence))];
    take(cli, &clone, &tips, &state, &machines, &args.decide, &fallback)
}

struct Taking<'a> {
    clone: &'a Clone,
    intent: Intent,
    key: InstallationKey,
    locks: BTreeMap<Name, SecretsLock>,
    files: Vec<(String, Vec<u8>)>,
    summary: Vec<String>,
}

fn take(
    cli: &Cli,
    clone: &Clone,
    tips: &Tips,
    state: &Snapshot,
    machines: &[(String, Option<u64>)],
    decide: &Decide,
    fallback: &str,
) -> Result<Exit> {
    let draft = Draft::choose(clone, tips, decide.branch.as_deref(), fallback)?;
    let intent = Intent::load(&draft.files()?).map_err(|findings| refuse(findings.to_string()))?;
    let identity = clone.identity()?;
    let key = clone.installation_key(&state.installation.governed.commit, &identity)?;
    let locks = intent.clusters.iter().map(|(name, of)| (name.clone(), of.lock.clone())).collect();
    let mut taking = Taking { clone, intent, key, locks, files: Vec::new(), summary: Vec::new() };
    // everything is read and judged before anything is written
    let mut read = Vec::new();
    for (text, drift) in machines {
        read.push(taking.read(cli, text, *drift)?);
    }
    taking.refuse_marks_that_miss(&read, decide)?;
    let mut refused = Vec::new();
    for one in &read {
        if let Err(err) = taking.machine(one, decide) {
            refused.push(format!("{err:#}"));
        }
    }
    if !refused.is_empty() {
        return Err(refuse(refused.join("\n")));
    }
    for (cluster, lock) in &taking.locks {
        if *lock != taking.intent.clusters[cluster].lock {
            taking.files.push((format!("clusters/{cluster}/secrets.lock.yaml"), lock.to_text().into_bytes()));
        }
    }
    let names: Vec<&str> = machines.iter().map(|(name, _)| name.as_str()).collect();
    let verb =
        if machines.iter().any(|(_, drift)| drift.is_some()) { "Adopt what runs on" } else { "Import" };
    draft.commit(&taking.files, &format!("{verb} {}", names.join(", ")))?;
    for line in &taking.summary {
        output::line(line);
    }
    output::line(&format!("committed on `{}`; next: bronzeward plan {0}", draft.branch));
    Ok(Exit::Fine)
}

/// A machine whose running configuration was read.
struct Read {
    cluster: Name,
    machine: Name,
    drift: Option<u64>,
    active: Zeroizing<Vec<u8>>,
}

impl Taking<'_> {
    fn read(&self, cli: &Cli, text: &str, drift: Option<u64>) -> Result<Read> {
        let (cluster, machine) = find_machine(&self.intent, text)?;
        let of = &self.intent.clusters[&cluster];
        let file = &of.machines[&machine];
        let read = read_node(cli, self.clone, &file.endpoint.full(), &cluster)?;
        check_identity(&read.facts, file, &of.cluster.talos_cluster_id)?;
        Ok(Read { cluster, machine, drift, active: read.active })
    }

    /// With several machines a mark must hit something on one of them.
    fn refuse_marks_that_miss(&self, read: &[Read], decide: &Decide) -> Result<()> {
        for text in &decide.marks {
            let path: Path = text.parse().map_err(|_| refuse(format!("`{text}` is no path")))?;
            let hit = read.iter().any(|one| self.hits(one)(&path));
            if !hit {
                return Err(refuse(format!(
                    "mark-unaddressed: `{text}` hits no value on any of the machines"
                )));
            }
        }
        Ok(())
    }

    fn hits(&self, one: &Read) -> impl Fn(&Path) -> bool + use<> {
        let contract = &self.intent.clusters[&one.cluster].cluster.contract;
        let tables = bronzeward_compile::compose::tables(&one.cluster, contract).ok();
        let options = talos_config::Options { opaque_tag: None, limits: talos_config::Limits::default() };
        let config = tables.and_then(|tables| {
            talos_config::Config::load(&tables, &one.active, talos_config::SourceId(0), &options).ok()
        });
        // what cannot be read is refused by name when it is ingested
        move |path| {
            config.as_ref().is_none_or(|config| config.get(path).is_some_and(|found| found.value.is_some()))
        }
    }

    fn machine(&mut self, read: &Read, decide: &Decide) -> Result<()> {
        let Read { cluster, machine, drift, .. } = read;
        let (cluster, machine, drift) = (cluster.clone(), machine.clone(), *drift);
        let ingested = self.ingest(read, decide)?;
        let new = self.store(&cluster, &ingested)?;
        let repository = self.intent.governance.repository.id.clone();
        let digest = |label, bytes: &[u8]| self.key.digest(label, &repository, cluster.as_str(), "", bytes);
        let header = Base {
            api_version: ApiVersion::V1Alpha1,
            kind: BaseKind::Base,
            name: machine.clone(),
            imported: Some(Imported {
                machine: machine.clone(),
                drift,
                bytes: digest(Label::Bytes, &read.active),
                meaning: digest(Label::Meaning, &ingested.canonical),
            }),
            marks: ingested.marks.clone(),
            cleared: ingested.cleared.clone(),
        };
        let base = format!("clusters/{cluster}/bases/{machine}.yaml");
        self.files.push((base, base_file(&header, &ingested.sanitised)));
        let assignment = format!("clusters/{cluster}/assignments/{machine}.yaml");
        if !self.intent.clusters[&cluster].assignments.contains_key(&machine) {
            let file = Assignment {
                api_version: ApiVersion::V1Alpha1,
                kind: bronzeward_intent::cluster::AssignmentKind::Assignment,
                machine: machine.clone(),
                base: None,
                profiles: Vec::new(),
                fragments: BTreeMap::new(),
            };
            self.files.push((assignment, to_yaml(&file).into_bytes()));
        }
        self.summary.push(format!(
            "{cluster}/{machine}: {} secrets extracted, {new} of them new; the node was only read",
            ingested.new.len() + ingested.reused.len()
        ));
        Ok(())
    }

    fn ingest(&self, read: &Read, decide: &Decide) -> Result<Ingested> {
        let Read { cluster, machine, drift, active } = read;
        let of = &self.intent.clusters[cluster];
        let tables = bronzeward_compile::compose::tables(cluster, &of.cluster.contract)
            .map_err(|finding| refuse(finding.to_string()))?;
        let paths = |texts: &[String]| -> Result<Vec<Path>> {
            texts
                .iter()
                .map(|text| text.parse().map_err(|_| refuse(format!("`{text}` is no path"))))
                .collect()
        };
        let (mut marks, mut clears) = (paths(&decide.marks)?, paths(&decide.clears)?);
        if drift.is_some() {
            // what was decided once holds again, where it still hits something
            let old = of.bases.get(machine).and_then(|base| base.header.as_ref());
            let stored = |list: &[bronzeward_intent::Mark]| -> Vec<Path> {
                list.iter().filter_map(|mark| mark_path(mark).ok()).collect()
            };
            marks.extend(old.iter().flat_map(|header| stored(&header.marks)));
            clears.extend(old.iter().flat_map(|header| stored(&header.cleared)));
        }
        let hits = self.hits(read);
        marks.retain(|path| hits(path));
        let lock = &self.locks[cluster];
        let repository = self.intent.governance.repository.id.clone();
        let digest = |text: &str| {
            self.key.digest(
                Label::Value,
                &repository,
                cluster.as_str(),
                SecretKind::String.as_str(),
                text.as_bytes(),
            )
        };
        let stored: BTreeMap<String, (String, u64)> = lock
            .secrets
            .iter()
            .filter(|(_, locked)| locked.kind == SecretKind::String)
            .map(|(name, locked)| (locked.value.clone(), (name.clone(), locked.version)))
            .collect();
        let taken: BTreeSet<String> = lock.secrets.keys().cloned().collect();
        let input = Ingest {
            tables: &tables,
            bytes: active,
            marks: &marks,
            clears: &clears,
            mark_undecided: decide.opaque.is_some(),
            known_clear: &[&of.cluster.talos_cluster_id],
            digest: &digest,
            stored: &stored,
            taken: &taken,
        };
        ingest(&input).map_err(|err| {
            let mut text = format!("{cluster}/{machine}: {err}");
            let mut source = std::error::Error::source(&err);
            while let Some(cause) = source {
                text.push_str(&format!(": {cause}"));
                source = cause.source();
            }
            refuse(text)
        })
    }

    /// Puts new values into the store and all of them into the lock. Gives the number of new ones.
    fn store(&mut self, cluster: &Name, ingested: &Ingested) -> Result<usize> {
        let governance = &self.intent.governance;
        let readers = |who: &bronzeward_intent::Principal| {
            who.has(ActorRole::Reconciler) || who.has(ActorRole::Approver)
        };
        let to = governance
            .repository
            .policy
            .principals
            .iter()
            .filter(|(_, who)| readers(who))
            .filter_map(|(email, who)| Some((email.as_str(), who.recipient.as_deref()?)));
        let to = recipients(to)?;
        let lock = self.locks.get_mut(cluster).ok_or_else(|| refuse("There is no such cluster"))?;
        for secret in &ingested.new {
            let header = SecretHeader {
                format: 1,
                repository: governance.repository.id.clone(),
                cluster: cluster.to_string(),
                name: secret.name.to_string(),
                version: 1,
                kind: SecretKind::String.as_str().to_owned(),
            };
            let path = secret_path(cluster.as_str(), secret.name.as_str(), 1);
            self.files.push((path, seal_secret(&header, &secret.value, &to)?));
            let locked = LockedSecret {
                version: 1,
                kind: SecretKind::String,
                fields: secret.fields.iter().cloned().collect(),
                value: secret.digest.clone(),
            };
            lock.secrets.insert(secret.name.to_string(), locked);
        }
        for (name, fields) in &ingested.reused {
            if let Some(locked) = lock.secrets.get_mut(name) {
                let all: BTreeSet<String> = locked.fields.iter().chain(fields).cloned().collect();
                locked.fields = all.into_iter().collect();
            }
        }
        Ok(ingested.new.len())
    }
}

/// What a person's own access reads from a node.
pub(crate) struct NodeRead {
    pub(crate) facts: Facts,
    pub(crate) active: Zeroizing<Vec<u8>>,
}

/// Dials a node with the person's own talosconfig and reads it.
pub(crate) fn read_node(cli: &Cli, clone: &Clone, endpoint: &str, cluster: &Name) -> Result<NodeRead> {
    let path = clone
        .person
        .talosconfig
        .value
        .clone()
        .or_else(|| cli.talosconfig.as_ref().map(|p| p.display().to_string()));
    let path = path.ok_or_else(|| refuse("Name your talosconfig with --talosconfig FILE"))?;
    let text =
        std::fs::read_to_string(&path).with_context(|| format!("Cannot read the talosconfig `{path}`"))?;
    let config = Talosconfig::parse(&text)?;
    let named = config.names().contains(&cluster.as_str()).then_some(cluster.as_str());
    let context = config.context(named)?;
    let endpoint: Endpoint = endpoint.parse()?;
    block_on(async {
        let dialer =
            Dialer::new(Deadlines { connect: Duration::from_secs(10), request: Duration::from_secs(30) });
        let node = dialer.dial(&endpoint, &context.access).await?;
        let facts = node.facts().await?;
        let active = node.config().await?.active;
        Ok(NodeRead { facts, active })
    })
}

/// Runs a future on a runtime of its own.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(future)
}

fn check_identity(facts: &Facts, file: &bronzeward_intent::Machine, cluster_id: &str) -> Result<()> {
    let same = facts.node_id.as_deref() == Some(file.identity.node.as_str())
        && file.identity.uuid.as_ref().is_none_or(|uuid| facts.smbios_uuid.as_ref() == Some(uuid));
    if !same {
        return Err(refuse(format!(
            "identity-mismatch: another machine than `{}` answers at {}",
            file.name, file.endpoint
        )));
    }
    if facts.cluster_id.as_deref().is_some_and(|id| id != cluster_id) {
        return Err(refuse(format!(
            "cluster-mismatch: the machine at {} belongs to another cluster",
            file.endpoint
        )));
    }
    Ok(())
}
