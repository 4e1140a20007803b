//! Plans as people see them: of a branch merged into main, with what changes and why.

use std::collections::BTreeMap;
use std::rc::Rc;

use anyhow::Result;
use bronzeward_compile::plan::{Entry, MachineEntry, Operation, Plan};
use bronzeward_compile::planner::{Planned, Planner};
use bronzeward_compile::view::StateView;
use bronzeward_compile::{Composed, compose_all};
use bronzeward_git::Oid;
use bronzeward_git::merge::Merged;
use bronzeward_intent::{Files, Intent};
use bronzeward_state::Snapshot;
use serde::Serialize;
use talos_config::{ChangeKind, LeafValue, diff};

use crate::context::{Clone, MAIN, Tips};
use crate::exit::refuse;

/// Where a plan is computed.
pub struct Stand {
    /// The branch.
    pub branch: String,
    /// The reviewed head.
    pub head: Oid,
    /// The tip of main.
    pub main: Oid,
    /// The state.
    pub state: Snapshot,
    /// The tree of the merge.
    pub tree: Oid,
    /// What it says.
    pub intent: Rc<Intent>,
}

/// A plan with what people need to judge it.
pub struct Shown {
    /// The plan and its findings.
    pub planned: Planned,
    /// What changes on each machine.
    pub changes: BTreeMap<String, Vec<ChangeLine>>,
    /// Machines for which main itself holds a change that nobody approved, with the commit.
    pub carried: BTreeMap<String, String>,
}

/// One changed value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChangeLine {
    /// `-`, `~` or `+`.
    pub sign: &'static str,
    /// Document and pointer.
    pub path: String,
    /// Before.
    pub old: Option<String>,
    /// After.
    pub new: Option<String>,
    /// The file and place of the new value.
    pub from: Option<String>,
}

/// Merges a branch into the tip of main, as the merge will make it.
pub fn stand(clone: &Clone, tips: &Tips, branch: &str) -> Result<Stand> {
    let head = if branch == MAIN { tips.main } else { clone.resolve(branch)? };
    let tree = if branch == MAIN {
        clone.repo.commit(tips.main)?.tree
    } else {
        if clone.repo.is_ancestor(head, tips.main)? {
            return Err(refuse(format!(
                "`{branch}` holds nothing that main does not: `bronzeward plan main`"
            )));
        }
        match clone.repo.merge(tips.main, head)? {
            Merged::Clean(tree) => tree,
            Merged::Conflict(paths) => {
                let message = format!(
                    "merge-conflict: `{branch}` does not merge into main: {}; merge main into it first",
                    paths.join(", ")
                );
                return Err(refuse(message));
            }
        }
    };
    let files = Files::from_tree(&clone.repo.tree(tree))?;
    let intent = Intent::load(&files).map_err(|findings| refuse(findings.to_string()))?;
    let state = clone.snapshot()?;
    Ok(Stand { branch: branch.to_owned(), head, main: tips.main, state, tree, intent: Rc::new(intent) })
}

/// Plans a stand.
pub fn show(clone: &Clone, stand: &Stand) -> Result<Shown> {
    let view = stand.state.view();
    let at = |commit: &str| clone.intent_at(commit);
    let planner = Planner { intent: &stand.intent, view: &view, at: &at };
    let mut planned = planner.plan();
    let files = Files::from_tree(&clone.repo.tree(stand.tree))?;
    planned.findings.extend(bronzeward_secrets::audit::check_store(&stand.intent, &files));
    if let Ok(old) = clone.intent(stand.main) {
        planned.findings.extend(bronzeward_secrets::audit::check_versions(&old, &stand.intent, &files));
    }
    let mut changes = BTreeMap::new();
    for entry in planned.plan.entries.iter().filter_map(Entry::as_machine) {
        changes.insert(name(entry), changes_of(&planned, entry));
    }
    let carried = if stand.branch == MAIN { BTreeMap::new() } else { carried(clone, stand, &view) };
    Ok(Shown { planned, changes, carried })
}

fn name(entry: &MachineEntry) -> String {
    format!("{}/{}", entry.cluster, entry.machine)
}

/// What main itself would do without the branch: it rides along, and is shown first.
fn carried(clone: &Clone, stand: &Stand, view: &StateView) -> BTreeMap<String, String> {
    let Ok(intent) = clone.intent(stand.main) else { return BTreeMap::new() };
    let at = |commit: &str| clone.intent_at(commit);
    let plan = Planner { intent: &intent, view, at: &at }.plan().plan;
    let commit = |entry: &MachineEntry| {
        let desired = stand.state.status(&entry.cluster, &entry.machine).desired;
        desired.map_or_else(|| stand.main.to_string(), |desired| desired.commit)
    };
    plan.entries.iter().filter_map(Entry::as_machine).map(|entry| (name(entry), commit(entry))).collect()
}

fn changes_of(planned: &Planned, entry: &MachineEntry) -> Vec<ChangeLine> {
    if entry.operation != Operation::Apply {
        return Vec::new();
    }
    let key = (entry.cluster.clone(), entry.machine.clone());
    let Some(new) = planned.composed.get(&key) else { return Vec::new() };
    planned.applied.get(&key).map_or_else(Vec::new, |old| compare(old, new))
}

/// What differs between two composed documents, references as `<redacted:NAME@VERSION>`.
pub fn compare(old: &Composed, new: &Composed) -> Vec<ChangeLine> {
    let shown = |value: Option<LeafValue>| {
        value.map(|value| match value {
            LeafValue::Text(text) => text,
            LeafValue::Opaque(reference) => format!("<redacted:{reference}>"),
            LeafValue::Empty => "(empty)".to_owned(),
        })
    };
    let places: BTreeMap<(String, String), String> = new
        .config
        .leaves()
        .map(|leaf| {
            let (file, pos) = new.place(leaf.origin);
            ((leaf.document.to_string(), leaf.pointer.clone()), format!("{file}:{pos}"))
        })
        .collect();
    diff(&old.config, &new.config)
        .into_iter()
        .map(|change| {
            let key = (change.document.to_string(), change.pointer.clone());
            ChangeLine {
                sign: match change.kind {
                    ChangeKind::Removed => "-",
                    ChangeKind::Changed => "~",
                    ChangeKind::Added => "+",
                },
                path: format!("{}:{}", key.0, key.1),
                old: shown(change.old),
                new: shown(change.new),
                from: places.get(&key).cloned(),
            }
        })
        .collect()
}

/// Composes every machine of two trees and compares them.
pub fn diff_trees(old: &Intent, new: &Intent) -> BTreeMap<String, Vec<ChangeLine>> {
    let all =
        |intent: &Intent| compose_all(intent, &intent.assigned().collect::<Vec<_>>(), |composed| composed);
    let (before, after) = (all(old), all(new));
    let mut out = BTreeMap::new();
    for (key, after) in &after {
        let Ok(after) = after else { continue };
        let name = format!("{}/{}", key.0, key.1);
        let Some(Ok(before)) = before.get(key) else {
            let line =
                ChangeLine { sign: "+", path: "(new machine)".into(), old: None, new: None, from: None };
            out.insert(name, vec![line]);
            continue;
        };
        let lines = compare(before, after);
        if !lines.is_empty() {
            out.insert(name, lines);
        }
    }
    for (cluster, of_cluster) in &old.clusters {
        for machine in of_cluster.machines.keys() {
            if new.clusters.get(cluster).is_none_or(|of| !of.machines.contains_key(machine)) {
                let line = ChangeLine {
                    sign: "-",
                    path: "(machine left the tree)".into(),
                    old: None,
                    new: None,
                    from: None,
                };
                out.insert(format!("{cluster}/{machine}"), vec![line]);
            }
        }
    }
    out
}

/// The text of a change.
pub fn change_text(change: &ChangeLine) -> String {
    let from = change.from.as_deref().map(|from| format!("   ({from})")).unwrap_or_default();
    let value = match (&change.old, &change.new) {
        (Some(old), Some(new)) => format!("  {} → {}", one_line(old), one_line(new)),
        (Some(old), None) => format!("  {}", one_line(old)),
        (None, Some(new)) => format!("  {}", one_line(new)),
        (None, None) => String::new(),
    };
    // keys and names of documents are anybody's
    talos_config::path::one_line(&format!("{} {}{value}{from}", change.sign, change.path)).into_owned()
}

/// A value on one line, cut when it is long.
fn one_line(text: &str) -> String {
    const LONGEST: usize = 100;
    let text: String = text.chars().map(|c| if c.is_control() { '␤' } else { c }).collect();
    if text.chars().count() <= LONGEST {
        text
    } else {
        text.chars().take(LONGEST).collect::<String>() + "…"
    }
}

/// A plan for people.
pub fn text(stand: &Stand, shown: &Shown) -> String {
    let plan = &shown.planned.plan;
    let mut out = format!(
        "plan {}\n  of `{}` ({}) merged into main ({}), state {} (sequence {})\n",
        plan.digest(),
        stand.branch,
        short(stand.head),
        short(stand.main),
        short(stand.state.commit),
        stand.state.sequence()
    );
    for (machine, commit) in &shown.carried {
        let commit: String = commit.chars().take(10).collect();
        out.push_str(&format!(
            "  carried over from {commit}: {machine} holds a change that nobody approved yet\n"
        ));
    }
    out.push_str(&entries_text(plan, &shown.changes));
    for machine in &shown.planned.waiting {
        out.push_str(&format!("  waits: {machine}, until the change of governance is approved (`bronzeward approve main --only`)\n"));
    }
    for finding in shown.planned.findings.clone().sorted() {
        out.push_str(&format!("  {finding}\n"));
    }
    out
}

/// The entries of a plan for people.
pub fn entries_text(plan: &Plan, changes: &BTreeMap<String, Vec<ChangeLine>>) -> String {
    if plan.entries.is_empty() {
        return "  nothing would be done\n".to_owned();
    }
    let mut out = String::new();
    for entry in &plan.entries {
        match entry {
            Entry::Govern(govern) => {
                out.push_str(&format!(
                    "  governance  govern  turn {}  {} → {}\n",
                    govern.turn, govern.from, govern.to
                ));
            }
            Entry::Machine(machine) => out.push_str(&machine_text(machine, changes)),
        }
    }
    out
}

fn machine_text(entry: &MachineEntry, changes: &BTreeMap<String, Vec<ChangeLine>>) -> String {
    let mode = match entry.mode {
        Some(bronzeward_compile::plan::Mode::NoReboot) => "no-reboot",
        Some(bronzeward_compile::plan::Mode::Staged) => "staged",
        None => "nothing is sent",
    };
    let name = name(entry);
    let mut out = format!(
        "  {name}  {}  ({mode}, wave {}, turn {})\n",
        entry.operation.as_str(),
        entry.wave,
        entry.turn
    );
    if let Some(overwrites) = entry.overwrites {
        let drift = overwrites.drift;
        out.push_str(&format!(
            "    unseenOverwrite: drift {drift} would be lost, a configuration that no reviewer saw\n"
        ));
    }
    if entry.reboot.needed {
        out.push_str(&format!("    takes effect at a reboot: {}\n", entry.reboot.reasons.join(", ")));
    }
    if let Some(what) = bronzeward_reconcile::gate::decide::unsupported(entry) {
        out.push_str(&format!("    not-supported: {what} is not supported yet: approved, it would wait\n"));
    }
    for risk in &entry.risks {
        out.push_str(&format!("    risk: {risk}\n"));
    }
    for reference in &entry.references {
        out.push_str(&format!("    reference {}@{}\n", reference.name, reference.version));
    }
    for change in changes.get(&name).into_iter().flatten() {
        out.push_str(&format!("    {}\n", change_text(change)));
    }
    out
}

/// A commit for people.
pub fn short(commit: Oid) -> String {
    commit.to_string().chars().take(10).collect()
}
