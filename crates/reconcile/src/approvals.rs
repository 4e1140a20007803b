//! Taking in approvals: each is accepted or refused once, and what it approves begins to be followed.

use std::collections::BTreeMap;

use bronzeward_compile::plan::{Difference, Plan, Subject, difference};
use bronzeward_compile::planner::Planner;
use bronzeward_git::Oid;
use bronzeward_intent::canonical;
use bronzeward_state::approval::{Approval, Place};
use bronzeward_state::log::LogKind;
use bronzeward_state::model::{EntryState, Release, ReleaseEntry};
use bronzeward_state::snapshot::view;
use bronzeward_state::{Snapshot, Transaction};
use serde_json::json;

use crate::engine::Engine;
use crate::follow::approved;
use crate::gate::accept::{Accepted, Judge, Refusal, accept};
use crate::trouble::Trouble;
use crate::words::{details, short};

/// The largest `plan.json` that is read: some ten thousand machines.
const PLAN_BYTES_MAX: u64 = 16 << 20;

/// A message that carries an approval.
pub(crate) struct Carried {
    pub(crate) found: Oid,
    pub(crate) message: String,
    pub(crate) on_main: bool,
}

impl Engine {
    /// Accepts or refuses an approval that was not seen before.
    pub(crate) fn take_approval(
        &self,
        transaction: &mut Transaction,
        snapshot: &Snapshot,
        carried: &Carried,
        tip: Oid,
    ) -> Result<bool, Trouble> {
        let installation = &snapshot.installation;
        let (repository, shard, epoch) =
            (installation.repository.clone(), installation.shard.clone(), installation.epoch.clone());
        let place = Place { repository: &repository, shard: &shard, epoch: &epoch };
        let parsed = match Approval::parse(&carried.message) {
            Ok(None) => return Ok(false),
            Ok(Some(parsed)) => parsed,
            Err(err) => {
                return self.refuse_unread(transaction, carried, &Refusal::Malformed(err.to_string()));
            }
        };
        // an id does not cover its signature: a forged copy must not use up the genuine one, so it is noted by its place
        if let Err(err) = parsed.verify(place) {
            return self.refuse_unread(transaction, carried, &Refusal::Malformed(err.to_string()));
        }
        let ids = parsed.ids(place);
        // a refusal is final for the very block that was refused: with one more or one fewer signature it is another
        let known = |release: &Release| match release.refused {
            Some(_) => release.approvals == ids,
            None => ids.iter().all(|id| release.approvals.contains(id)),
        };
        if transaction.releases().values().any(known) {
            return Ok(false);
        }
        let sequence = transaction.sequence();
        let mut release = Release {
            format: 1,
            sequence,
            approvals: ids,
            found: carried.found.to_string(),
            plan: parsed.statement.plan.clone(),
            basis: [
                &parsed.statement.basis.head,
                &parsed.statement.basis.main,
                &parsed.statement.basis.state,
            ]
            .map(Clone::clone),
            accepted: transaction.now(),
            expires: parsed.statement.expires,
            approvers: Vec::new(),
            refused: None,
            entries: Vec::new(),
        };
        match self.judge(transaction, snapshot, carried, &parsed, place, tip) {
            Ok((accepted, plan)) => {
                self.record_release(transaction, &mut release, accepted, &plan, &parsed, tip)?;
            }
            Err(Judged::Refused(refusal)) => {
                release.refused = Some(refusal.to_string());
                transaction.kind(LogKind::Refused);
                transaction.say(&format!("an approval at {} is refused: {refusal}", short(carried.found)));
                transaction.set_release(release);
            }
            Err(Judged::Trouble(trouble)) => return Err(trouble),
        }
        Ok(true)
    }

    /// An approval that cannot even be read has no id: it is noted once, by the commit that carries it.
    fn refuse_unread(
        &self,
        transaction: &mut Transaction,
        carried: &Carried,
        refusal: &Refusal,
    ) -> Result<bool, Trouble> {
        let found = carried.found.to_string();
        if transaction.releases().values().any(|release| release.found == found) {
            return Ok(false);
        }
        let sequence = transaction.sequence();
        let now = transaction.now();
        transaction.set_release(Release {
            format: 1,
            sequence,
            approvals: Vec::new(),
            found,
            plan: String::new(),
            basis: Default::default(),
            accepted: now,
            expires: now,
            approvers: Vec::new(),
            refused: Some(refusal.to_string()),
            entries: Vec::new(),
        });
        transaction.kind(LogKind::Refused);
        transaction.say(&format!("an approval at {} is refused: {refusal}", short(carried.found)));
        Ok(true)
    }

    fn judge(
        &self,
        transaction: &Transaction,
        snapshot: &Snapshot,
        carried: &Carried,
        parsed: &Approval,
        place: Place<'_>,
        tip: Oid,
    ) -> Result<(Accepted, Plan), Judged> {
        let refuse = |refusal| Judged::Refused(refusal);
        let signed = parsed.verify(place).map_err(|err| refuse(Refusal::Malformed(err.to_string())))?;
        let governance =
            self.trees.governance(&snapshot.installation.governed.commit).map_err(Trouble::from)?;
        let (denied, revoked) = (self.denied(), self.chain().revoked());
        let judge = Judge {
            governance: &governance,
            root_keys: &self.setup.root_keys,
            denied: &denied,
            revoked: &revoked,
            now: transaction.now(),
        };
        let basis: Option<Oid> = parsed.statement.basis.main.parse().ok();
        let on_main = match basis {
            Some(basis) if self.repo.has(basis) => {
                self.repo.is_ancestor(basis, tip).map_err(Trouble::from)?
            }
            _ => false,
        };
        if !on_main {
            return Err(refuse(Refusal::Basis));
        }
        if carried.on_main && !self.is_signed_enough(transaction, carried.found)? {
            return Err(refuse(Refusal::CommitUnsigned));
        }
        let plan = self.find_plan(transaction, parsed, tip)?;
        if (plan.repository.as_str(), plan.shard.as_str(), plan.epoch.as_str())
            != (place.repository, place.shard, place.epoch)
        {
            return Err(refuse(Refusal::Elsewhere));
        }
        let accepted = accept(&parsed.statement, &signed, &plan, &judge).map_err(refuse)?;
        Ok((accepted, plan))
    }

    /// The plan whose digest was signed: from an approvals branch, checked by its hash, or recomputed at the tip.
    fn find_plan(&self, transaction: &Transaction, parsed: &Approval, tip: Oid) -> Result<Plan, Judged> {
        let wanted = &parsed.statement.plan;
        for head in self.fetched.approvals.values() {
            // anybody may push such a branch: what cannot be read is another plan, and stops nothing
            let bytes =
                self.repo.tree_of(*head).and_then(|tree| tree.read_at_most("plan.json", PLAN_BYTES_MAX));
            let Some(bytes) = bytes.unwrap_or_default().filter(|bytes| canonical::sha256(bytes) == *wanted)
            else {
                continue;
            };
            return Plan::parse(&bytes).map_err(|why| Judged::Refused(Refusal::Plan(why.to_owned())));
        }
        let tree = self.trees.at(tip).map_err(Trouble::from)?;
        if let Ok(intent) = &tree.intent {
            let view = view(transaction.peek(), transaction.statuses());
            let at = |commit: &str| self.trees.intent(commit);
            let plan = Planner { intent, view: &view, at: &at }.plan().plan;
            if plan.digest() == *wanted {
                return Ok(plan);
            }
        }
        let why = "no approvals branch holds the plan that was signed, and the tip of main gives another";
        Err(Judged::Refused(Refusal::Plan(why.to_owned())))
    }

    fn record_release(
        &self,
        transaction: &mut Transaction,
        release: &mut Release,
        accepted: Accepted,
        plan: &Plan,
        parsed: &Approval,
        tip: Oid,
    ) -> Result<(), Trouble> {
        release.approvers = accepted.approvers;
        release.expires = accepted.expires;
        let basis = parsed.statement.basis.clone();
        for entry in &plan.entries {
            let digest = plan.entry_digest(entry);
            release.entries.push(ReleaseEntry {
                subject: entry.subject().to_string(),
                operation: entry.operation().to_owned(),
                digest,
                wave: entry.as_machine().map(|entry| entry.wave),
                state: EntryState::Waiting,
                detail: None,
                matched: None,
                contributors: self.contributors(transaction, entry, &basis, tip)?,
            });
        }
        transaction.keep_statement(release.sequence, &plan.to_bytes(), &parsed.text);
        // from the tip that the approver saw to the one that is seen now, in order
        let from: Oid = basis.main.parse().unwrap_or(tip);
        let seen: Oid = transaction.peek().seen.main.parse().unwrap_or(tip);
        for commit in self.since_basis(from, seen)? {
            self.follow_release(transaction, release, plan, commit, &mut BTreeMap::new())?;
        }
        let who: Vec<&str> = release.approvers.iter().map(|approver| approver.principal.as_str()).collect();
        let id = release.approvals.join(", ");
        let mut quiet = true;
        for entry in &release.entries {
            let message = format!(
                "release {}: {} approved by {} ({})",
                release.sequence,
                entry.operation,
                who.join(", "),
                entry.state.as_str()
            );
            if let Ok(Subject::Machine { cluster, machine }) = entry.subject.parse() {
                let details = details([("approval", json!(id)), ("entry", json!(entry.digest))]);
                transaction.log(&cluster, &machine, LogKind::Approved, &message, details);
                quiet = false;
            }
        }
        if quiet {
            transaction.kind(LogKind::Approved);
            transaction.say(&format!("release {}: approved by {}", release.sequence, who.join(", ")));
        }
        self.supersede(transaction, release, plan)?;
        transaction.set_release(release.clone());
        Ok(())
    }

    /// A newer accepted entry of the same subject takes the place of older ones that say something else. One that
    /// differs only in what comes from the state (a drift that opened) leaves the older: it may come back, and
    /// whichever is committed first raises the turn for both.
    fn supersede(
        &self,
        transaction: &mut Transaction,
        release: &Release,
        plan: &Plan,
    ) -> Result<(), Trouble> {
        let older: Vec<Release> =
            transaction.releases().values().filter(|other| other.is_live()).cloned().collect();
        for before in older.into_iter().filter(|other| other.sequence != release.sequence) {
            let old_plan = self.plan_of(transaction, before.sequence)?;
            let mut after = before.clone();
            for entry in after.entries.iter_mut().filter(|entry| entry.state.is_open()) {
                let Some((subject, old)) = approved(&old_plan, entry) else { continue };
                let new = plan.entry(&subject);
                if new.is_some_and(|new| matches!(difference(old, new), Some(Difference::Tree(_)))) {
                    entry.state = EntryState::Superseded;
                    entry.detail = Some(format!("by release {}", release.sequence));
                }
            }
            if after != before {
                self.tell_changes(transaction, &before, &after);
                transaction.set_release(after);
            }
        }
        Ok(())
    }

    fn since_basis(&self, basis: Oid, seen: Oid) -> Result<Vec<Oid>, Trouble> {
        let mut commits = Vec::new();
        let mut at = seen;
        loop {
            commits.push(at);
            if self.repo.is_ancestor(at, basis)? {
                break;
            }
            match self.repo.commit(at)?.parents.first() {
                Some(parent) => at = *parent,
                None => break,
            }
        }
        commits.reverse();
        Ok(commits)
    }
}

enum Judged {
    Refused(Refusal),
    Trouble(Trouble),
}

impl From<Trouble> for Judged {
    fn from(trouble: Trouble) -> Judged {
        Judged::Trouble(trouble)
    }
}
