//! Planning: for every machine whose result differs from what is Applied, one entry.

use std::collections::BTreeMap;

use bronzeward_intent::cluster::Machine;
use bronzeward_intent::finding::{Code, TOP};
use bronzeward_intent::{ClusterIntent, Finding, Findings, Intent, Name};
use talos_config::{Change, LeafValue, diff};

use crate::compose::{Composed, check_sent, compose, compose_all, compose_base, tables};
use crate::plan::{
    AppliedBinding, Entry, Expects, FORMAT, Govern, GovernEntry, MachineEntry, Mode, Operation, Overwrites,
    Plan, Reboot, Renderer, Subject, Target,
};
use crate::reboot;
use crate::view::{AppliedView, MachineView, StateView};

/// Codes of findings that planning makes.
pub mod codes {
    use bronzeward_intent::finding::Code;

    /// A machine without Applied that nothing adopts.
    pub const NEVER_ADOPTED: Code = Code("never-adopted");
    /// An operation is in flight.
    pub const IN_FLIGHT: Code = Code("in-flight");
    /// What is Applied cannot be composed again.
    pub const APPLIED_LOST: Code = Code("applied-unreadable");
    /// Something that this version cannot do yet.
    pub const UNSUPPORTED: Code = Code("not-supported");
    /// An adoption that names an open drift which has changed since.
    pub const ADOPTION_OUTDATED: Code = Code("adoption-outdated");
    /// There is nothing to revert.
    pub const NOTHING_TO_REVERT: Code = Code("nothing-to-revert");
}

/// Gives the tree of an earlier commit of `main`.
pub type IntentAt<'a> = dyn Fn(&str) -> Result<std::rc::Rc<Intent>, String> + 'a;

/// Plans one tree against one state.
pub struct Planner<'a> {
    /// The tree.
    pub intent: &'a Intent,
    /// The state.
    pub view: &'a StateView,
    /// Earlier trees.
    pub at: &'a IntentAt<'a>,
}

/// A plan, and what stands beside it.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// Machines that wait because governance differs.
    pub waiting: Vec<String>,
    /// Findings that refuse a machine, and warnings.
    pub findings: Findings,
    /// The composed documents, by cluster and machine.
    pub composed: BTreeMap<(String, String), Composed>,
    /// What is Applied, composed again, where that was compared.
    pub applied: BTreeMap<(String, String), Composed>,
}

/// What many machines came to, or why not.
type All = BTreeMap<(Name, Name), Result<Composed, Findings>>;

/// Documents of one machine that were composed together with those of others.
#[derive(Default)]
struct Ready {
    composed: Option<Result<Composed, Findings>>,
    /// What the commit composes that was applied.
    applied: Option<Result<Composed, Findings>>,
}

/// What planning one machine came to.
struct Worked {
    composed: Composed,
    /// Nothing, if nothing would be done.
    entry: Option<MachineEntry>,
    /// What is Applied, if it was compared.
    applied: Option<Composed>,
}

impl Planner<'_> {
    /// The whole plan. A machine that cannot be planned is a finding; the others are planned all the same.
    pub fn plan(&self) -> Planned {
        let governed = self.govern_entry();
        let mut planned = Planned {
            plan: self.empty(),
            waiting: Vec::new(),
            findings: Findings::default(),
            composed: BTreeMap::new(),
            applied: BTreeMap::new(),
        };
        let mut composed = self.compose_assigned();
        let mut applied = self.compose_applied(&composed);
        for (cluster, machine) in self.intent.assigned() {
            let name = (cluster.clone(), machine.clone());
            let ready = Ready { composed: composed.remove(&name), applied: applied.remove(&name) };
            match self.worked(cluster, machine, ready) {
                Ok(worked) => {
                    for warning in worked.composed.warnings.iter() {
                        planned.findings.push(warning.clone());
                    }
                    planned.findings.extend(self.outdated(cluster, machine, worked.entry.as_ref()));
                    let name = (cluster.to_string(), machine.to_string());
                    if let Some(applied) = worked.applied {
                        planned.applied.insert(name.clone(), applied);
                    }
                    planned.composed.insert(name, worked.composed);
                    match worked.entry {
                        Some(_) if governed.is_some() => planned.waiting.push(format!("{cluster}/{machine}")),
                        Some(entry) => planned.plan.entries.push(Entry::Machine(Box::new(entry))),
                        None => {}
                    }
                }
                Err(findings) => planned.findings.extend(findings),
            }
        }
        planned.plan.entries.extend(governed);
        planned.plan.entries.sort_by_key(Entry::subject);
        planned
    }

    /// A plan of a revert alone: computed from Applied and the drift, never part of a merge's plan.
    ///
    /// # Errors
    /// Why there is nothing to revert, or why it cannot be.
    pub fn revert_plan(&self, cluster: &str, machine: &str) -> Result<Plan, Findings> {
        let entry = self.revert_entry(cluster, machine)?;
        Ok(Plan { entries: vec![Entry::Machine(Box::new(entry))], ..self.empty() })
    }

    /// The entry of a subject as this tree and state give it, for the comparison with an approved one.
    ///
    /// # Errors
    /// Why it cannot be computed.
    pub fn entry(&self, subject: &Subject, operation: &str) -> Result<Option<Entry>, Findings> {
        match subject {
            Subject::Governance => Ok(self.govern_entry()),
            Subject::Machine { cluster, machine } if operation == Operation::Revert.as_str() => {
                self.revert_entry(cluster, machine).map(|entry| Some(Entry::Machine(Box::new(entry))))
            }
            Subject::Machine { cluster, machine } => {
                let (cluster, machine) = names(cluster, machine)?;
                let worked = self.worked(&cluster, &machine, Ready::default())?;
                Ok(worked.entry.map(|entry| Entry::Machine(Box::new(entry))))
            }
        }
    }

    fn empty(&self) -> Plan {
        Plan {
            format: FORMAT,
            repository: self.intent.governance.repository.id.clone(),
            shard: self.view.shard.clone(),
            epoch: self.view.epoch.clone(),
            renderer: Renderer {
                tool: env!("CARGO_PKG_VERSION").to_owned(),
                tables: format!(
                    "sha256:{}",
                    talos_config::Tables::v1_13().digest().trim_start_matches("sha256:")
                ),
            },
            entries: Vec::new(),
        }
    }

    fn govern_entry(&self) -> Option<Entry> {
        let to = &self.intent.governance.digest;
        (*to != self.view.governed).then(|| {
            let (turn, from) = (self.view.turn, self.view.governed.clone());
            Entry::Govern(GovernEntry { operation: Govern::Govern, turn, from, to: to.clone() })
        })
    }

    /// Every machine of the tree that could be sent to.
    fn compose_assigned(&self) -> All {
        let sent = |(cluster, _): &(&Name, &Name)| {
            check_sent(cluster, &self.intent.clusters[*cluster].cluster.contract).is_ok()
        };
        let machines: Vec<_> = self.intent.assigned().filter(sent).collect();
        compose_all(self.intent, &machines, |composed| composed)
    }

    /// What is Applied on the machines whose documents differ from it, commit by commit. What is missing here - a
    /// commit that cannot be read, a base that composes alone - is left to [`Planner::applied_document`].
    fn compose_applied(&self, all: &All) -> All {
        let mut commits: BTreeMap<String, Vec<(&Name, &Name)>> = BTreeMap::new();
        for ((cluster, machine), composed) in all {
            let Ok(composed) = composed else { continue };
            let applied = self.view.machine(cluster.as_str(), machine.as_str()).applied;
            let differs = |applied: &AppliedView| {
                let composes = applied.composed.is_some() && !applied.base_only;
                composes
                    && !is_applied(composed, applied)
                    && tables(cluster, &applied.target.contract).is_ok()
            };
            if let Some(applied) = applied.filter(differs) {
                commits.entry(applied.commit).or_default().push((cluster, machine));
            }
        }
        let mut out = All::new();
        for (commit, machines) in commits {
            if let Ok(intent) = (self.at)(&commit) {
                let exists = |(cluster, _): &(&Name, &Name)| intent.clusters.contains_key(*cluster);
                let machines: Vec<_> = machines.into_iter().filter(exists).collect();
                out.extend(compose_all(&intent, &machines, |composed| composed));
            }
        }
        out
    }

    /// What composes a machine, and its entry if anything would be done.
    fn worked(&self, cluster: &Name, machine: &Name, ready: Ready) -> Result<Worked, Findings> {
        let of_cluster = self.intent.clusters.get(cluster).ok_or_else(|| absent(cluster, machine))?;
        let file = of_cluster.machines.get(machine).ok_or_else(|| absent(cluster, machine))?;
        let view = self.view.machine(cluster.as_str(), machine.as_str());
        check_sent(cluster, &of_cluster.cluster.contract)?;
        let composed = ready.composed.unwrap_or_else(|| compose(self.intent, cluster, machine))?;
        if view.in_flight {
            let message = format!("An operation on `{cluster}/{machine}` is not finished");
            return Err(finding(
                cluster,
                machine,
                codes::IN_FLIGHT,
                message,
                "`bronzeward status --wait` waits for it",
            ));
        }
        let mut entry = self.blank(cluster, machine, of_cluster, file, &view);
        if let Some(adopted) = self.adoption(cluster, machine, &view)? {
            let (document, meaning) = adopted;
            let document = document.as_ref().unwrap_or(&composed);
            entry.operation = Operation::Adopt;
            entry.mode = None;
            entry.composed = Some(document.digest.clone());
            entry.references = document.references.clone();
            entry.expects = Some(Expects { meaning });
            return Ok(Worked { composed, entry: Some(entry), applied: None });
        }
        let Some(applied) = &view.applied else {
            let message =
                format!("Nothing adopts `{cluster}/{machine}`, and what was never adopted gets nothing");
            let help = format!("`bronzeward import {machine}` on a draft branch");
            return Err(finding(cluster, machine, codes::NEVER_ADOPTED, message, &help));
        };
        if is_applied(&composed, applied) {
            let entry = (entry.target != applied.target).then(|| readdressed(entry, &composed, applied));
            return Ok(Worked { composed, entry, applied: None });
        }
        let old = match (&applied.composed, ready.applied) {
            (None, _) => None,
            (Some(_), Some(old)) => Some(as_applied(cluster, machine, applied, old?)?),
            (Some(_), None) => Some(self.applied_document(cluster, machine, applied)?),
        };
        let entry = changed(entry, &composed, old.as_ref(), applied, &view);
        Ok(Worked { composed, entry: Some(entry), applied: old })
    }

    /// Does the tree declare an adoption? Gives the base's own document when the base adopts, and the meaning.
    fn adoption(
        &self,
        cluster: &Name,
        machine: &Name,
        view: &MachineView,
    ) -> Result<Option<(Option<Composed>, String)>, Findings> {
        let selection = self.intent.selection(cluster, machine)?;
        let imported = selection.base.header.as_ref().and_then(|header| header.imported.as_ref());
        let imported = imported.filter(|imported| imported.machine == *machine);
        let open = view.drift.as_ref().map(|drift| drift.sequence);
        let wanted = match (&view.applied, open) {
            (None, _) => imported.filter(|imported| imported.drift.is_none()),
            (Some(_), Some(open)) => imported.filter(|imported| imported.drift == Some(open)),
            (Some(_), None) => None,
        };
        if let Some(imported) = wanted {
            let base = compose_base(self.intent, cluster, machine)?;
            return Ok(Some((Some(base), imported.meaning.clone())));
        }
        let Some(open) = open.filter(|_| view.applied.is_some()) else { return Ok(None) };
        let adopts = selection
            .fragments
            .iter()
            .filter_map(|fragment| fragment.source.header.as_ref()?.adopts.as_ref())
            .find(|adopts| adopts.machine == *machine && adopts.drift == open);
        Ok(adopts.map(|adopts| (None, adopts.meaning.clone())))
    }

    /// An adoption of what ran once and runs no more commits only if it comes back: whoever reads the plan should know.
    fn outdated(&self, cluster: &Name, machine: &Name, entry: Option<&MachineEntry>) -> Findings {
        let adopts = entry
            .filter(|entry| entry.operation == Operation::Adopt)
            .and_then(|entry| entry.expects.as_ref());
        let drift = self.view.machine(cluster.as_str(), machine.as_str()).drift;
        match (adopts, drift) {
            (Some(adopts), Some(drift)) if adopts.meaning != drift.meaning => Finding::warning(
                format!("clusters/{cluster}/machines/{machine}.yaml"),
                TOP,
                codes::ADOPTION_OUTDATED,
                format!(
                    "The adoption of drift {} waits: yet another configuration runs since",
                    drift.sequence
                ),
                "`bronzeward adopt` or `bronzeward revert` it again",
            )
            .into(),
            _ => Findings::default(),
        }
    }

    fn blank(
        &self,
        cluster: &Name,
        machine: &Name,
        of_cluster: &ClusterIntent,
        file: &Machine,
        view: &MachineView,
    ) -> MachineEntry {
        let order = &of_cluster.cluster.rollout.order;
        let wave = order.iter().position(|wave| *wave == file.role.wave()).unwrap_or(order.len());
        MachineEntry {
            cluster: cluster.to_string(),
            machine: machine.to_string(),
            identity: file.identity.clone(),
            target: Target {
                endpoint: file.endpoint.full(),
                platform: file.platform.as_str().to_owned(),
                role: file.role.as_str().to_owned(),
                contract: of_cluster.cluster.contract.clone(),
            },
            operation: Operation::Apply,
            mode: Some(Mode::NoReboot),
            wave: wave as u64,
            turn: view.turn,
            composed: None,
            references: Vec::new(),
            applied: view.applied.as_ref().map(binding),
            expects: None,
            overwrites: None,
            reboot: Reboot::default(),
            risks: Vec::new(),
        }
    }

    fn revert_entry(&self, cluster: &str, machine: &str) -> Result<MachineEntry, Findings> {
        let (cluster, machine) = names(cluster, machine)?;
        let view = self.view.machine(cluster.as_str(), machine.as_str());
        let nothing =
            |message: &str| finding(&cluster, &machine, codes::NOTHING_TO_REVERT, message.to_owned(), "");
        let applied = view.applied.as_ref().ok_or_else(|| nothing("The machine was never adopted"))?;
        let drift = view.drift.as_ref().ok_or_else(|| nothing("No drift is open on the machine"))?;
        if view.in_flight {
            let message = "An operation on the machine is not finished".to_owned();
            return Err(finding(
                &cluster,
                &machine,
                codes::IN_FLIGHT,
                message,
                "`bronzeward status --wait` waits for it",
            ));
        }
        if applied.composed.is_none() {
            let message = "What is Applied was adopted and no document composes it".to_owned();
            let help = "adopt the drift, or approve the change that main holds";
            return Err(finding(&cluster, &machine, codes::UNSUPPORTED, message, help));
        }
        let old = self.applied_document(&cluster, &machine, applied)?;
        let order = old_order(self, applied, &cluster)?;
        let role = applied.target.role.as_str();
        let wave = order.iter().position(|wave| *wave == role).unwrap_or(order.len());
        Ok(MachineEntry {
            cluster: cluster.to_string(),
            machine: machine.to_string(),
            identity: applied.identity.clone(),
            target: applied.target.clone(),
            operation: Operation::Revert,
            mode: Some(Mode::NoReboot),
            wave: wave as u64,
            turn: view.turn,
            composed: Some(old.digest.clone()),
            references: old.references.clone(),
            applied: Some(binding(applied)),
            expects: Some(Expects { meaning: drift.meaning.clone() }),
            overwrites: Some(Overwrites { drift: drift.sequence }),
            reboot: Reboot::default(),
            risks: Vec::new(),
        })
    }

    /// What is Applied, composed again from the commit that it reached.
    ///
    /// # Errors
    /// When that commit is gone, or gives another document.
    pub fn applied_document(
        &self,
        cluster: &Name,
        machine: &Name,
        applied: &AppliedView,
    ) -> Result<Composed, Findings> {
        let intent = (self.at)(&applied.commit).map_err(|message| lost(cluster, machine, message))?;
        tables(cluster, &applied.target.contract)?;
        let composed = if applied.base_only {
            compose_base(&intent, cluster, machine)
        } else {
            compose(&intent, cluster, machine)
        }?;
        as_applied(cluster, machine, applied, composed)
    }
}

fn old_order(
    planner: &Planner<'_>,
    applied: &AppliedView,
    cluster: &Name,
) -> Result<Vec<&'static str>, Findings> {
    let intent = (planner.at)(&applied.commit).map_err(|message| {
        Findings::from(Finding::error(
            "",
            TOP,
            codes::APPLIED_LOST,
            message,
            "the commit must stay in the history",
        ))
    })?;
    let waves = intent.clusters.get(cluster).map(|of| of.cluster.rollout.order.clone()).unwrap_or_default();
    Ok(waves
        .into_iter()
        .map(|wave| match wave {
            bronzeward_intent::cluster::Wave::Workers => "worker",
            bronzeward_intent::cluster::Wave::Controlplanes => "controlplane",
        })
        .collect())
}

fn binding(applied: &AppliedView) -> AppliedBinding {
    AppliedBinding {
        revision: applied.revision,
        composed: applied.composed.clone(),
        references: applied.references.clone(),
    }
}

/// Is this document what is Applied?
fn is_applied(composed: &Composed, applied: &AppliedView) -> bool {
    applied.composed.as_ref() == Some(&composed.digest) && applied.references == composed.references_digest()
}

/// The document that the commit composes, if it is what was applied.
fn as_applied(
    cluster: &Name,
    machine: &Name,
    applied: &AppliedView,
    composed: Composed,
) -> Result<Composed, Findings> {
    if is_applied(&composed, applied) {
        return Ok(composed);
    }
    let message = format!("The commit {} no longer composes what was applied", applied.commit);
    Err(lost(cluster, machine, message))
}

fn lost(cluster: &Name, machine: &Name, message: String) -> Findings {
    let help = "the commit that was applied must stay in the history of main";
    finding(cluster, machine, codes::APPLIED_LOST, message, help)
}

/// The same document for another target.
fn readdressed(mut entry: MachineEntry, composed: &Composed, applied: &AppliedView) -> MachineEntry {
    entry.composed = Some(composed.digest.clone());
    entry.references = composed.references.clone();
    entry.operation = Operation::Readdress;
    entry.mode = None;
    entry.expects = Some(Expects { meaning: applied.meaning.clone() });
    entry
}

/// Another document than what is Applied; `old` is that, if a document explains it.
fn changed(
    mut entry: MachineEntry,
    composed: &Composed,
    old: Option<&Composed>,
    applied: &AppliedView,
    view: &MachineView,
) -> MachineEntry {
    entry.composed = Some(composed.digest.clone());
    entry.references = composed.references.clone();
    let mut risks: Vec<String> = composed.risks.iter().map(|risk| (*risk).to_owned()).collect();
    if applied.target.contract != entry.target.contract {
        risks.push("contract-changed".to_owned());
    }
    if entry.target != applied.target {
        risks.push("target-changed".to_owned());
    }
    if let Some(old) = old {
        let changes = diff(&old.config, &composed.config);
        let reasons = reboot::reasons(&changes);
        if unreadable(&changes) {
            risks.push("unreadable-content".to_owned());
        }
        entry.reboot = Reboot { needed: !reasons.is_empty(), reasons };
    } else {
        // the node itself refuses what would need a boot
        risks.push("reboot-unknown".to_owned());
    }
    if entry.reboot.needed {
        entry.mode = Some(Mode::Staged);
    }
    risks.sort();
    entry.risks = risks;
    if let Some(drift) = &view.drift {
        entry.overwrites = Some(Overwrites { drift: drift.sequence });
        entry.expects = Some(Expects { meaning: drift.meaning.clone() });
    } else {
        entry.expects = Some(Expects { meaning: applied.meaning.clone() });
    }
    entry
}

/// Does a reference in a field that holds code stand for other bytes than before?
fn unreadable(changes: &[Change]) -> bool {
    const CODE: [&str; 6] = ["/content", "/contents", "/extraArgs", "/pods", "/args", "/pod"];
    changes.iter().any(|change| {
        matches!(change.new, Some(LeafValue::Opaque(_)))
            && CODE.iter().any(|place| change.pointer.contains(place))
    })
}

fn names(cluster: &str, machine: &str) -> Result<(Name, Name), Findings> {
    match (cluster.parse::<Name>(), machine.parse::<Name>()) {
        (Ok(cluster), Ok(machine)) => Ok((cluster, machine)),
        _ => Err(Finding::error(
            "",
            TOP,
            bronzeward_intent::finding::codes::MISSING_REFERENCE,
            format!("`{cluster}/{machine}` names no machine"),
            "write CLUSTER/MACHINE",
        )
        .into()),
    }
}

fn finding(cluster: &Name, machine: &Name, code: Code, message: String, help: &str) -> Findings {
    Finding::error(format!("clusters/{cluster}/machines/{machine}.yaml"), TOP, code, message, help).into()
}

fn absent(cluster: &Name, machine: &Name) -> Findings {
    let message = format!("There is no machine `{cluster}/{machine}` in this tree");
    finding(
        cluster,
        machine,
        bronzeward_intent::finding::codes::MISSING_REFERENCE,
        message,
        "name one that exists",
    )
}
