//! Whose work an approval covers: the keys that signed the commits of a change.

use std::collections::BTreeSet;

use bronzeward_compile::plan::{Difference, Entry, Operation as Planned, difference};
use bronzeward_compile::planner::Planner;
use bronzeward_git::merge::Merged;
use bronzeward_git::sign::fingerprint;
use bronzeward_git::{CommitInfo, Oid};
use bronzeward_intent::{Files, Intent, Selection};
use bronzeward_state::Transaction;
use bronzeward_state::approval::Basis;
use bronzeward_state::kept::UNSIGNED;
use bronzeward_state::snapshot::view;

use crate::engine::Engine;
use crate::trouble::Trouble;

impl Engine {
    /// The keys that signed the commits of the change that this entry's composition reads.
    ///
    /// The approver chose the basis, so it proves only what it can show: when merging the reviewed head into the tip
    /// that it names gives this entry, what both hold counts and what a forge made afterwards does not; else every
    /// commit up to the tip counts.
    pub(crate) fn contributors(
        &self,
        transaction: &Transaction,
        entry: &Entry,
        basis: &Basis,
        tip: Oid,
    ) -> Result<Vec<String>, Trouble> {
        if entry.operation() == Planned::Revert.as_str() {
            // what was approved and applied before is sent again; nothing that main says is part of it
            return Ok(Vec::new());
        }
        let installation = transaction.peek();
        let reached = match entry {
            Entry::Govern(_) => Some(installation.governed.commit.clone()),
            Entry::Machine(entry) => transaction
                .status(&entry.cluster, &entry.machine)
                .applied
                .map(|applied| applied.commit)
                .or_else(|| Some(self.setup.anchor.to_string())),
        };
        let hidden: Vec<Oid> = reached.iter().filter_map(|commit| commit.parse().ok()).collect();
        let known = |text: &str| text.parse::<Oid>().ok().filter(|id| self.repo.has(*id));
        let mut from: Vec<Oid> = [known(&basis.head), known(&basis.main)].into_iter().flatten().collect();
        if !self.explains(transaction, entry, &from)? {
            from.push(tip);
        }
        let mut out = BTreeSet::new();
        for commit in self.repo.commits_between(&from, &hidden)? {
            let info = self.repo.commit(commit)?;
            let changed = self.repo.own_changes(&info)?;
            if self.touches(entry, &info, &changed)? {
                out.insert(info.signature.key().map_or_else(|| UNSIGNED.to_owned(), fingerprint));
            }
        }
        Ok(out.into_iter().collect())
    }

    /// Does merging the reviewed head into the tip that the approver saw give this entry?
    fn explains(&self, transaction: &Transaction, entry: &Entry, basis: &[Oid]) -> Result<bool, Trouble> {
        let [head, main] = basis else { return Ok(false) };
        let Ok(Merged::Clean(tree)) = self.repo.merge(*main, *head) else { return Ok(false) };
        let files = Files::from_tree(&self.repo.tree(tree))?;
        let Ok(intent) = Intent::load(&files) else { return Ok(false) };
        let view = view(transaction.peek(), transaction.statuses());
        let at = |commit: &str| self.trees.intent(commit);
        let planner = Planner { intent: &intent, view: &view, at: &at };
        let now = planner.entry(&entry.subject(), entry.operation()).unwrap_or_default();
        Ok(now.is_some_and(|now| !matches!(difference(entry, &now), Some(Difference::Tree(_)))))
    }

    fn touches(&self, entry: &Entry, info: &CommitInfo, changed: &[String]) -> Result<bool, Trouble> {
        let Entry::Machine(entry) = entry else {
            let governs = |path: &String| {
                path == "bronzeward.yaml"
                    || path == "allowed_signers"
                    || path.starts_with("installation/")
                    || path.ends_with("/cluster.yaml")
            };
            return Ok(changed.iter().any(governs));
        };
        let tree = self.trees.at(info.id)?;
        let reads =
            tree.intent.as_ref().ok().and_then(|intent| reads(intent, &entry.cluster, &entry.machine));
        // a tree that cannot be read, or has no such machine: whatever it changes may matter
        Ok(reads.map_or(!changed.is_empty(), |reads| changed.iter().any(|path| reads.contains(path))))
    }
}

fn reads(intent: &Intent, cluster: &str, machine: &str) -> Option<Vec<String>> {
    let (cluster, machine) = (cluster.parse().ok()?, machine.parse().ok()?);
    let selection: Selection<'_> = intent.selection(&cluster, &machine).ok()?;
    Some(selection.reads)
}
