//! What a reconciler's commit may change, beyond which paths: releases keep what was accepted, turns rise only with an
//! entry that enough approvals carry, operations and Applied move only the way dispatch moves them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bronzeward_compile::plan::{Entry, Plan};
use bronzeward_git::TreeView;
use bronzeward_intent::Governance;
use ssh_key::public::KeyData;

use crate::chain::{ChainError, Rule};
use crate::kept::{self, Count};
use crate::model::{EntryState, Installation, Operation, Release, ReleaseEntry, Status};
use crate::snapshot::{parse, release_path, status_path};

/// One commit against the one before.
pub(crate) struct Step<'a> {
    pub(crate) before: &'a TreeView,
    pub(crate) after: &'a TreeView,
    pub(crate) changed: &'a [String],
    pub(crate) old: &'a Installation,
    pub(crate) new: &'a Installation,
    pub(crate) root_keys: &'a [KeyData],
    pub(crate) denied: &'a BTreeSet<&'a str>,
    pub(crate) revoked: &'a BTreeSet<&'a str>,
    pub(crate) frozen_by: &'a dyn Fn(&str, &str) -> Option<u64>,
    /// The governance under which a release of this sequence was accepted.
    pub(crate) accepted_under: &'a dyn Fn(u64) -> Result<Arc<Governance>, ChainError>,
    /// The governance in force.
    pub(crate) governance: &'a Governance,
}

/// Why a step is none.
pub(crate) enum Wrong {
    Rule(Rule),
    Trouble(ChainError),
}

impl From<Rule> for Wrong {
    fn from(rule: Rule) -> Wrong {
        Wrong::Rule(rule)
    }
}

impl From<ChainError> for Wrong {
    fn from(err: ChainError) -> Wrong {
        Wrong::Trouble(err)
    }
}

/// Entries that this commit commits: subject to digest and approved entry.
type Fired = BTreeMap<String, (String, Entry)>;

impl Step<'_> {
    /// Checks everything; gives the entry of governance that the commit carries, if it does.
    pub(crate) fn check(&self) -> Result<Option<Entry>, Wrong> {
        let mut pairs: Vec<(Option<Release>, Release)> = Vec::new();
        for path in
            self.changed.iter().filter(|path| path.starts_with("releases/") && path.ends_with(".yaml"))
        {
            let (old, new) = self.both::<Release>(path)?;
            if release_path(new.sequence) != *path || !keeps(old.as_ref(), &new, self.new.sequence) {
                return Err(Rule::Release(path.clone()).into());
            }
            pairs.push((old, new));
        }
        let mut fired = self.fired(&pairs)?;
        for path in self.changed.iter().filter(|path| path.ends_with("/status.yaml")) {
            let (old, new) = self.both::<Status>(path)?;
            if status_path(&new.cluster, &new.machine) != *path {
                return Err(Rule::Status(path.clone()).into());
            }
            let old = old.unwrap_or_else(|| Status::new(&new.cluster, &new.machine));
            let entry = fired.remove(&format!("{}/{}", new.cluster, new.machine));
            if !self.moves(&old, &new, entry.as_ref()) {
                return Err(Rule::Status(path.clone()).into());
            }
        }
        let governance = fired.remove("governance").map(|(_, entry)| entry);
        match fired.into_keys().next() {
            Some(subject) => Err(Rule::Commitment(subject).into()),
            None => Ok(governance),
        }
    }

    fn both<T: serde::de::DeserializeOwned>(&self, path: &str) -> Result<(Option<T>, T), Wrong> {
        let read = |tree: &TreeView| -> Result<Option<T>, Wrong> {
            let bytes = tree.read(path).map_err(ChainError::from)?;
            bytes.map(|bytes| parse(path, &bytes)).transpose().map_err(|err| Rule::Unreadable(err).into())
        };
        let new = read(self.after)?.ok_or_else(|| Rule::ReconcilersCommit(path.to_owned()))?;
        Ok((read(self.before)?, new))
    }

    /// Entries that become committed: each must be carried by as many live approvals as policy asks for.
    fn fired(&self, pairs: &[(Option<Release>, Release)]) -> Result<Fired, Wrong> {
        let mut carried: BTreeMap<(String, String), Vec<(&Release, Plan)>> = BTreeMap::new();
        for (old, new) in pairs {
            let Some(old) = old else { continue };
            for (was, is) in old.entries.iter().zip(&new.entries) {
                if !is_committed(is.state) || is_committed(was.state) {
                    continue;
                }
                let list = carried.entry((was.subject.clone(), was.digest.clone())).or_default();
                let governance = (self.accepted_under)(old.sequence)?;
                // one that was forged counts for nobody
                if let Ok(plan) = kept::verify(self.before, self.old, old, &governance, self.root_keys) {
                    list.push((old, plan));
                }
            }
        }
        let mut fired = Fired::new();
        for ((subject, digest), list) in carried {
            let wrong = || Wrong::from(Rule::Commitment(subject.clone()));
            let count = Count { governance: self.governance, denied: self.denied, revoked: self.revoked };
            let governs = subject == "governance";
            let releases = list.iter().map(|(release, _)| *release);
            let (have, want) = count.of(releases, &digest, governs, EntryState::Approved);
            let plan = list.first().map(|(_, plan)| plan).filter(|_| have >= want).ok_or_else(wrong)?;
            let entry = plan.entries.iter().find(|entry| plan.entry_digest(entry) == digest);
            let entry = entry.cloned().ok_or_else(wrong)?;
            if fired.insert(subject.clone(), (digest, entry)).is_some() {
                return Err(wrong());
            }
        }
        Ok(fired)
    }

    /// May a machine's status move like that, with the entry that this commit commits?
    fn moves(&self, old: &Status, new: &Status, fired: Option<&(String, Entry)>) -> bool {
        let entry = fired.and_then(|(_, entry)| entry.as_machine());
        let turn = match entry {
            Some(entry) => entry.turn == old.turn && new.turn == old.turn + 1,
            None => new.turn == old.turn,
        };
        let digest = fired.map(|(digest, _)| digest.as_str());
        let operation = match (&old.operation, &new.operation) {
            (None, Some(new)) => digest == Some(new.entry.as_str()) && new.attempts.len() <= 1,
            (Some(old), Some(new)) => continues(old, new),
            (_, None) => true,
        };
        let count = |status: &Status| status.operation.as_ref().map_or(0, |one| one.attempts.len());
        let thawed = count(new) <= count(old) || (self.frozen_by)(&new.cluster, &new.machine).is_none();
        let applied = new.applied == old.applied || {
            let ended = old.operation.as_ref().filter(|_| new.operation.is_none());
            let was = old.applied.as_ref().map_or(0, |applied| applied.revision);
            new.applied.as_ref().is_some_and(|applied| {
                let sent =
                    ended.is_some_and(|one| (one.release, &one.bytes) == (applied.release, &applied.bytes));
                let unsent = entry.is_some_and(|entry| !entry.operation.sends());
                applied.revision == was + 1 && (sent || unsent)
            })
        };
        turn && operation && thawed && applied
    }
}

fn is_committed(state: EntryState) -> bool {
    use EntryState::{Committed, Completed, Failed, Rejected};
    matches!(state, Committed | Completed | Rejected | Failed)
}

/// A release keeps everything but what becomes of its entries, and an entry that ended stays ended.
fn keeps(old: Option<&Release>, new: &Release, sequence: u64) -> bool {
    let Some(old) = old else {
        return new.sequence == sequence && new.entries.iter().all(|entry| !is_committed(entry.state));
    };
    let mut same = new.clone();
    for (entry, was) in same.entries.iter_mut().zip(&old.entries) {
        let ReleaseEntry { state, detail, matched, .. } = was.clone();
        (entry.state, entry.detail, entry.matched) = (state, detail, matched);
    }
    let states = old.entries.iter().zip(&new.entries).all(|(was, is)| match was.state {
        EntryState::Committed => is.state == was.state || !is.state.is_open(),
        EntryState::Approved => true,
        EntryState::Waiting | EntryState::Held => !is_committed(is.state),
        _ => is.state == was.state,
    });
    same == *old && states
}

/// An operation goes on: what it is stays, attempts are added, an answer is written once.
fn continues(old: &Operation, new: &Operation) -> bool {
    let more = new.attempts.len().checked_sub(old.attempts.len());
    let mut same = new.clone();
    same.state = old.state;
    same.attempts.truncate(old.attempts.len());
    for (attempt, was) in same.attempts.iter_mut().zip(&old.attempts) {
        if was.answer.is_none() {
            attempt.answer = None;
        }
    }
    matches!(more, Some(0 | 1)) && same == *old
}
