//! Following `main`: every live entry is compared with what each commit says.

use std::collections::BTreeMap;

use bronzeward_compile::plan::{Entry, Plan, Subject};
use bronzeward_compile::planner::Planner;
use bronzeward_git::Oid;
use bronzeward_intent::repository::SignedMain;
use bronzeward_state::Transaction;
use bronzeward_state::log::LogKind;
use bronzeward_state::model::{EntryState, Release, ReleaseEntry};
use bronzeward_state::snapshot::view;
use serde_json::json;

use crate::engine::Engine;
use crate::gate::follow::{Followed, follow};
use crate::trouble::Trouble;
use crate::words::details;

impl Engine {
    /// Compares every live entry with what a commit says.
    pub(crate) fn follow_all(&self, transaction: &mut Transaction, commit: Oid) -> Result<(), Trouble> {
        let live: Vec<u64> = transaction
            .releases()
            .values()
            .filter(|release| release.is_live())
            .map(|release| release.sequence)
            .collect();
        if live.is_empty() {
            return Ok(());
        }
        let mut memory = BTreeMap::new();
        for sequence in live {
            let mut release = transaction.releases()[&sequence].clone();
            let plan = self.plan_of(transaction, sequence)?;
            let before = release.clone();
            self.follow_release(transaction, &mut release, &plan, commit, &mut memory)?;
            if release != before {
                self.tell_changes(transaction, &before, &release);
                transaction.set_release(release);
            }
        }
        Ok(())
    }

    pub(crate) fn follow_release(
        &self,
        transaction: &Transaction,
        release: &mut Release,
        plan: &Plan,
        commit: Oid,
        memory: &mut BTreeMap<(String, String), Option<Entry>>,
    ) -> Result<(), Trouble> {
        let signed = self.is_signed_enough(transaction, commit)?;
        for entry in release.entries.iter_mut().filter(|entry| entry.state.is_open()) {
            let Some((subject, approved)) = approved(plan, entry) else { continue };
            let key = (entry.subject.clone(), entry.operation.clone());
            if !memory.contains_key(&key) {
                let now = self.entry_at(transaction, commit, &subject, &entry.operation)?;
                memory.insert(key.clone(), now);
            }
            let mut followed = follow(entry.state, approved, memory[&key].as_ref());
            if followed.matched && !signed {
                let state = if entry.state == EntryState::Waiting { entry.state } else { EntryState::Held };
                let detail = Some("held: policy asks for a signed commit on main".to_owned());
                followed = Followed { state, detail, matched: false };
            }
            entry.state = followed.state;
            entry.detail = followed.detail;
            if followed.matched {
                entry.matched = Some(commit.to_string());
            }
        }
        Ok(())
    }

    /// Is a commit of main signed by a principal, where policy asks for that?
    pub(crate) fn is_signed_enough(&self, transaction: &Transaction, commit: Oid) -> Result<bool, Trouble> {
        let governance = self.trees.governance(&transaction.peek().governed.commit)?;
        if governance.repository.policy.signed_main != SignedMain::Required {
            return Ok(true);
        }
        let info = self.repo.commit(commit)?;
        let now = transaction.now().as_second();
        Ok(info.signature.key().is_some_and(|key| governance.signers.principal(key, "git", now).is_some()))
    }

    /// The entry of a subject as a commit and the state give it. What cannot be computed is equal to nothing.
    pub(crate) fn entry_at(
        &self,
        transaction: &Transaction,
        commit: Oid,
        subject: &Subject,
        operation: &str,
    ) -> Result<Option<Entry>, Trouble> {
        let tree = self.trees.at(commit)?;
        let Ok(intent) = &tree.intent else { return Ok(None) };
        let view = view(transaction.peek(), transaction.statuses());
        let at = |commit: &str| self.trees.intent(commit);
        let planner = Planner { intent, view: &view, at: &at };
        Ok(planner.entry(subject, operation).unwrap_or_default())
    }

    pub(crate) fn plan_of(&self, transaction: &Transaction, sequence: u64) -> Result<Plan, Trouble> {
        let bytes = match transaction.kept_plan(sequence) {
            Some(bytes) => bytes.to_vec(),
            None => self.snapshot()?.release_files(sequence)?.0,
        };
        Plan::parse(&bytes)
            .map_err(|why| Trouble::halt("state-untrusted", format!("The plan of release {sequence}: {why}")))
    }

    pub(crate) fn tell_changes(&self, transaction: &mut Transaction, before: &Release, after: &Release) {
        for (old, new) in before.entries.iter().zip(&after.entries) {
            if (old.state, &old.detail) == (new.state, &new.detail) {
                continue;
            }
            let why = new.detail.as_deref().map(|detail| format!(" ({detail})")).unwrap_or_default();
            let message = format!(
                "release {}: {} {} is {}{why}",
                after.sequence,
                new.operation,
                new.subject,
                new.state.as_str()
            );
            let kind = match new.state {
                EntryState::Lapsed => LogKind::Lapsed,
                EntryState::Expired => LogKind::Expired,
                EntryState::Revoked => LogKind::Revoked,
                EntryState::Superseded => LogKind::Superseded,
                _ => LogKind::Approved,
            };
            match new.subject.parse() {
                Ok(Subject::Machine { cluster, machine }) => {
                    let details = details([("entry", json!(new.digest))]);
                    transaction.log(&cluster, &machine, kind, &message, details);
                }
                _ => {
                    transaction.kind(kind);
                    transaction.say(&message);
                }
            }
        }
    }
}

/// The approved entry of a release's entry, found in the plan that was signed.
pub(crate) fn approved<'a>(plan: &'a Plan, entry: &ReleaseEntry) -> Option<(Subject, &'a Entry)> {
    let subject: Subject = entry.subject.parse().ok()?;
    let found = plan.entry(&subject)?;
    (plan.entry_digest(found) == entry.digest).then_some((subject, found))
}
