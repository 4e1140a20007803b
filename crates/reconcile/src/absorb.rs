//! What `main` and people say, taken into the state: new tips, approvals, acts, expiry.

use std::rc::Rc;

use bronzeward_git::Oid;
use bronzeward_state::log::LogKind;
use bronzeward_state::model::{Desired, EntryState, Release};
use bronzeward_state::{Act, Snapshot, Transaction};
use serde_json::json;

use crate::approvals::Carried;
use crate::engine::{Engine, Outcome};
use crate::trouble::Trouble;
use crate::words::{details, short};

impl Engine {
    /// Takes in what is new. `true` when something was published.
    pub(crate) fn absorb(&mut self, snapshot: &Snapshot, outcome: &mut Outcome) -> Result<bool, Trouble> {
        let seen: Oid = snapshot
            .installation
            .seen
            .main
            .parse()
            .map_err(|_| Trouble::halt("state-untrusted", "`seen.main` in the state is no commit"))?;
        let Some(tip) = self.fetched.main else {
            return Err(Trouble::halt(
                "main-missing",
                format!("The branch `{}` does not exist", self.setup.main),
            ));
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
                transaction.say(&format!(
                    "main at {} cannot be read: {} findings",
                    short(tip),
                    findings.iter().count()
                ));
                return Ok(());
            }
        };
        let machines: Vec<_> = intent.assigned().collect();
        let digests = bronzeward_compile::compose_all(&intent, &machines, |composed| {
            (composed.references_digest(), composed.digest)
        });
        for ((cluster, machine), digests) in digests {
            let Ok((references, digest)) = digests else { continue };
            let mut status = transaction.status(cluster.as_str(), machine.as_str());
            let same = status
                .desired
                .as_ref()
                .is_some_and(|old| old.composed == digest && old.references == references);
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
        Ok(())
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
            let message =
                format!("{verdict}{} by {} (act {})", counted.act.sentence(), counted.who, counted.sequence);
            let scope = match &counted.act {
                Act::Freeze { scope, .. } | Act::Unfreeze { scope, .. } => Some(scope.clone()),
                _ => None,
            };
            let covered: Vec<(String, String)> = transaction
                .statuses()
                .filter(|status| {
                    scope.as_ref().is_some_and(|scope| scope.covers(&status.cluster, &status.machine))
                })
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
        let releases: Vec<Release> =
            transaction.releases().values().filter(|release| release.is_live()).cloned().collect();
        for release in releases {
            let void = release.approvers.iter().any(|approver| {
                revoked.contains(approver.approval.as_str()) || denied.contains(approver.key.as_str())
            });
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
