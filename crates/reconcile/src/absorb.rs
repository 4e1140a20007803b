//! What `main` and people say, taken into the state: new tips, approvals, acts, expiry.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use bronzeward_compile::plan::{Difference, Entry, Operation, Plan, Subject, difference};
use bronzeward_compile::planner::Planner;
use bronzeward_git::merge::Merged;
use bronzeward_git::sign::fingerprint;
use bronzeward_git::{CommitInfo, Oid};
use bronzeward_intent::repository::SignedMain;
use bronzeward_intent::{Files, Intent, Selection};
use bronzeward_state::approval::{Approval, Basis, Place};
use bronzeward_state::log::LogKind;
use bronzeward_state::model::{Desired, EntryState, Release, ReleaseEntry};
use bronzeward_state::snapshot::view;
use bronzeward_state::{Act, Snapshot, Transaction};
use serde_json::{Map, json};

use crate::engine::{Engine, Outcome};
use crate::gate::accept::{Accepted, Judge, Refusal, accept};
use crate::gate::decide::UNSIGNED;
use crate::gate::follow::follow;
use crate::trouble::Trouble;

/// A message that carries an approval.
struct Carried {
    found: Oid,
    message: String,
    on_main: bool,
}

impl Engine {
    /// Takes in what is new. `true` when something was published.
    pub(crate) fn absorb(&mut self, snapshot: &Snapshot, outcome: &mut Outcome) -> Result<bool, Trouble> {
        let seen: Oid = snapshot.installation.seen.main.parse().map_err(|_| {
            Trouble::halt("state-untrusted", "`seen.main` in the state is no commit")
        })?;
        let Some(tip) = self.fetched.main else {
            return Err(Trouble::halt("main-missing", format!("The branch `{}` does not exist", self.setup.main)));
        };
        let new = self.new_commits(seen, tip)?;
        let mut transaction = Transaction::on(snapshot, self.now());
        // one approval a transaction, so that a release is named by its commit: what follows comes next
        let mut taken = false;
        let mut last = None;
        for commit in &new {
            let info = self.repo.commit(*commit)?;
            self.follow_all(&mut transaction, *commit)?;
            transaction.installation().seen.main = commit.to_string();
            last = Some(*commit);
            let one = Carried { found: *commit, message: info.message, on_main: true };
            taken = self.take_approval(&mut transaction, snapshot, &one, *commit)?;
            if taken {
                break;
            }
        }
        if let Some(last) = last {
            transaction.kind(LogKind::Published);
            self.publish(&mut transaction, last)?;
            transaction.say(&format!("main is at {}", short(last)));
        }
        for head in self.fetched.approvals.values() {
            if taken || last.is_some_and(|last| last != tip) {
                break;
            }
            // anybody may push such a branch: what cannot be read is nobody's approval, and stops nothing
            let Ok(info) = self.repo.commit(*head) else { continue };
            let one = Carried { found: *head, message: info.message, on_main: false };
            taken = self.take_approval(&mut transaction, snapshot, &one, tip)?;
        }
        self.acknowledge(&mut transaction, snapshot)?;
        self.expire(&mut transaction);
        if new.is_empty() {
            self.follow_all(&mut transaction, tip)?;
        }
        self.notice_governance(&transaction, tip, outcome);
        if transaction.is_empty() {
            return Ok(false);
        }
        let main = transaction.installation().seen.main.clone();
        if self.commit(transaction)? {
            self.disk.keep(|kept| kept.main = Some(main))?;
        }
        Ok(true)
    }

    /// The first-parent commits of main that were not seen yet, oldest first.
    fn new_commits(&self, seen: Oid, tip: Oid) -> Result<Vec<Oid>, Trouble> {
        let remembered = self.disk.kept().main.as_deref().and_then(|main| main.parse::<Oid>().ok());
        for known in [Some(seen), remembered].into_iter().flatten() {
            if !self.repo.is_ancestor(known, tip)? {
                let message = format!(
                    "main went from {known} to {tip}, which does not stand on it: nothing is sent until main holds {known} again"
                );
                return Err(Trouble::halt("main-rewound", message));
            }
        }
        let mut new = Vec::new();
        let mut at = tip;
        while !self.repo.is_ancestor(at, seen)? {
            new.push(at);
            match self.repo.commit(at)?.parents.first() {
                Some(parent) => at = *parent,
                None => break,
            }
        }
        new.reverse();
        Ok(new)
    }

    /// Moves Desired to a new tip and tells every machine whose Desired changed.
    fn publish(&self, transaction: &mut Transaction, tip: Oid) -> Result<(), Trouble> {
        let tree = self.trees.at(tip)?;
        let intent = match &tree.intent {
            Ok(intent) => Rc::clone(intent),
            Err(findings) => {
                transaction.say(&format!("main at {} cannot be read: {} findings", short(tip), findings.iter().count()));
                return Ok(());
            }
        };
        for (cluster, of_cluster) in &intent.clusters {
            for machine in of_cluster.machines.keys() {
                let Ok(composed) = bronzeward_compile::compose(&intent, cluster, machine) else { continue };
                let mut status = transaction.status(cluster.as_str(), machine.as_str());
                let (digest, references) = (composed.digest.clone(), composed.references_digest());
                let same = status.desired.as_ref().is_some_and(|old| old.composed == digest && old.references == references);
                if same {
                    continue;
                }
                let commit = tip.to_string();
                status.desired = Some(Desired { commit: commit.clone(), composed: digest.clone(), references });
                transaction.set_status(status);
                let details = details([("commit", json!(commit)), ("composed", json!(digest))]);
                let message = format!("main says something new at {}", short(tip));
                transaction.log(cluster.as_str(), machine.as_str(), LogKind::Published, &message, details);
            }
        }
        Ok(())
    }

    /// Compares every live entry with what a commit says.
    fn follow_all(&self, transaction: &mut Transaction, commit: Oid) -> Result<(), Trouble> {
        let live: Vec<u64> =
            transaction.releases().values().filter(|release| release.is_live()).map(|release| release.sequence).collect();
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

    fn follow_release(
        &self,
        transaction: &Transaction,
        release: &mut Release,
        plan: &Plan,
        commit: Oid,
        memory: &mut BTreeMap<(String, String), Option<Entry>>,
    ) -> Result<(), Trouble> {
        for entry in release.entries.iter_mut().filter(|entry| entry.state.is_open()) {
            let Some((subject, approved)) = approved(plan, entry) else { continue };
            let key = (entry.subject.clone(), entry.operation.clone());
            if !memory.contains_key(&key) {
                let now = self.entry_at(transaction, commit, &subject, &entry.operation)?;
                memory.insert(key.clone(), now);
            }
            let followed = follow(entry.state, approved, memory[&key].as_ref());
            entry.state = followed.state;
            entry.detail = followed.detail;
            if followed.matched {
                entry.matched = Some(commit.to_string());
            }
        }
        Ok(())
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

    fn plan_of(&self, transaction: &Transaction, sequence: u64) -> Result<Plan, Trouble> {
        let bytes = match transaction.kept_plan(sequence) {
            Some(bytes) => bytes.to_vec(),
            None => self.snapshot()?.release_files(sequence)?.0,
        };
        Plan::parse(&bytes).map_err(|why| Trouble::halt("state-untrusted", format!("The plan of release {sequence}: {why}")))
    }

    /// Accepts or refuses an approval that was not seen before.
    fn take_approval(
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
            Err(err) => return self.refuse_unread(transaction, carried, &Refusal::Malformed(err.to_string())),
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
            basis: [&parsed.statement.basis.head, &parsed.statement.basis.main, &parsed.statement.basis.state]
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
    fn refuse_unread(&self, transaction: &mut Transaction, carried: &Carried, refusal: &Refusal) -> Result<bool, Trouble> {
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
        let governance = self.trees.governance(&snapshot.installation.governed.commit).map_err(Trouble::from)?;
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
            Some(basis) if self.repo.has(basis) => self.repo.is_ancestor(basis, tip).map_err(Trouble::from)?,
            _ => false,
        };
        if !on_main {
            return Err(refuse(Refusal::Basis));
        }
        if carried.on_main && governance.repository.policy.signed_main == SignedMain::Required {
            let info = self.repo.commit(carried.found).map_err(Trouble::from)?;
            let key = info.signature.key();
            let owner = key.and_then(|key| governance.signers.principal(key, "git", transaction.now().as_second()));
            if owner.is_none() {
                return Err(refuse(Refusal::CommitUnsigned));
            }
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
            let bytes = self.repo.tree_of(*head).and_then(|tree| tree.read("plan.json")).map_err(Trouble::from)?;
            let Some(bytes) = bytes.filter(|bytes| bronzeward_intent::canonical::sha256(bytes) == *wanted) else {
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
                release.sequence, entry.operation, who.join(", "), entry.state.as_str()
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
    fn supersede(&self, transaction: &mut Transaction, release: &Release, plan: &Plan) -> Result<(), Trouble> {
        let older: Vec<Release> = transaction.releases().values().filter(|other| other.is_live()).cloned().collect();
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

    /// The keys that signed the commits of the change that this entry's composition reads.
    ///
    /// The approver chose the basis, so it proves only what it can show: when merging the reviewed head into the tip
    /// that it names gives this entry, what both hold counts and what a forge made afterwards does not; else every
    /// commit up to the tip counts.
    fn contributors(
        &self,
        transaction: &Transaction,
        entry: &Entry,
        basis: &Basis,
        tip: Oid,
    ) -> Result<Vec<String>, Trouble> {
        if entry.operation() == Operation::Revert.as_str() {
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
                path == "bronzeward.yaml" || path == "allowed_signers" || path.starts_with("installation/")
                    || path.ends_with("/cluster.yaml")
            };
            return Ok(changed.iter().any(governs));
        };
        let tree = self.trees.at(info.id)?;
        let reads = tree.intent.as_ref().ok().and_then(|intent| reads(intent, &entry.cluster, &entry.machine));
        // a tree that cannot be read, or has no such machine: whatever it changes may matter
        Ok(reads.map_or(!changed.is_empty(), |reads| changed.iter().any(|path| reads.contains(path))))
    }

    /// Acknowledges acts: projections for people; the gate reads the acts themselves.
    fn acknowledge(&self, transaction: &mut Transaction, snapshot: &Snapshot) -> Result<(), Trouble> {
        let last = snapshot.installation.seen.act;
        let new: Vec<_> = self.chain().acts().iter().filter(|act| act.sequence > last).cloned().collect();
        for counted in &new {
            transaction.installation().seen.act = counted.sequence;
            let kind = match (&counted.act, counted.allowed) {
                (_, false) => LogKind::Refused,
                (Act::Freeze { .. }, true) => LogKind::Frozen,
                (Act::Unfreeze { .. }, true) => LogKind::Unfrozen,
                (Act::Revoke { .. }, true) => LogKind::Revoked,
                (Act::Deny { .. }, true) => LogKind::Denied,
            };
            let verdict = if counted.allowed { "" } else { "refused, they may not: " };
            let message = format!("{verdict}{} by {} (act {})", counted.act.sentence(), counted.who, counted.sequence);
            let scope = match &counted.act {
                Act::Freeze { scope, .. } | Act::Unfreeze { scope, .. } => Some(scope.clone()),
                _ => None,
            };
            let covered: Vec<(String, String)> = transaction
                .statuses()
                .filter(|status| scope.as_ref().is_some_and(|scope| scope.covers(&status.cluster, &status.machine)))
                .map(|status| (status.cluster.clone(), status.machine.clone()))
                .collect();
            transaction.kind(kind);
            for (cluster, machine) in covered {
                let details = details([("act", json!(counted.sequence))]);
                transaction.log(&cluster, &machine, kind, &message, details);
            }
            transaction.say(&message);
        }
        if new.is_empty() {
            return Ok(());
        }
        let all: Vec<_> = transaction.statuses().cloned().collect();
        for mut status in all {
            let frozen = self.chain().frozen_by(&status.cluster, &status.machine);
            if status.frozen != frozen {
                status.frozen = frozen;
                transaction.set_status(status);
            }
        }
        Ok(())
    }

    /// Ends what expired, and what was revoked or denied before any attempt used it.
    fn expire(&self, transaction: &mut Transaction) {
        let now = transaction.now();
        let (denied, revoked) = (self.denied(), self.chain().revoked());
        let releases: Vec<Release> = transaction.releases().values().filter(|release| release.is_live()).cloned().collect();
        for release in releases {
            let void = release
                .approvers
                .iter()
                .any(|approver| revoked.contains(approver.approval.as_str()) || denied.contains(approver.key.as_str()));
            let ended = match (void, release.expires <= now) {
                (true, _) => (EntryState::Revoked, LogKind::Revoked),
                (false, true) => (EntryState::Expired, LogKind::Expired),
                (false, false) => continue,
            };
            let mut after = release.clone();
            for entry in after.entries.iter_mut().filter(|entry| entry.state.is_open()) {
                entry.state = ended.0;
                entry.detail = None;
            }
            transaction.kind(ended.1);
            self.tell_changes(transaction, &release, &after);
            transaction.set_release(after);
        }
    }

    fn tell_changes(&self, transaction: &mut Transaction, before: &Release, after: &Release) {
        for (old, new) in before.entries.iter().zip(&after.entries) {
            if (old.state, &old.detail) == (new.state, &new.detail) {
                continue;
            }
            let why = new.detail.as_deref().map(|detail| format!(" ({detail})")).unwrap_or_default();
            let message = format!("release {}: {} {} is {}{why}", after.sequence, new.operation, new.subject, new.state.as_str());
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

    fn notice_governance(&self, transaction: &Transaction, tip: Oid, outcome: &mut Outcome) {
        let governed = &transaction.peek().governed;
        match self.trees.governance(&tip.to_string()) {
            Ok(governance) if governance.digest == governed.digest => {}
            Ok(_) => {
                let notice = "governance-changed: main holds a change of governance that is not approved; nothing is sent \
                              until it is approved (`bronzeward approve main`) or taken back";
                outcome.notices.insert(notice.to_owned());
            }
            Err(err) => {
                outcome.notices.insert(format!("governance-unreadable: {err}"));
            }
        }
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

/// The approved entry of a release's entry, found in the plan that was signed.
pub(crate) fn approved<'a>(plan: &'a Plan, entry: &ReleaseEntry) -> Option<(Subject, &'a Entry)> {
    let subject: Subject = entry.subject.parse().ok()?;
    let found = plan.entry(&subject)?;
    (plan.entry_digest(found) == entry.digest).then_some((subject, found))
}

fn reads(intent: &Intent, cluster: &str, machine: &str) -> Option<Vec<String>> {
    let (cluster, machine) = (cluster.parse().ok()?, machine.parse().ok()?);
    let selection: Selection<'_> = intent.selection(&cluster, &machine).ok()?;
    Some(selection.reads)
}

/// Details of a log entry.
pub(crate) fn details<const N: usize>(pairs: [(&str, serde_json::Value); N]) -> Map<String, serde_json::Value> {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// A commit for people.
pub(crate) fn short(commit: Oid) -> String {
    commit.to_string().chars().take(10).collect()
}
