//! Settling what is in flight: verifying, finding out what a lost answer means, trying again, ending.

use std::time::Duration;

use bronzeward_compile::plan::{Entry, MachineEntry, Operation as Planned};
use bronzeward_git::Oid;
use bronzeward_state::log::LogKind;
use bronzeward_state::model::{
    Answer, Applied, AppliedSource, EntryState, Operation, OperationState, Release, Status,
};
use bronzeward_state::{Snapshot, Transaction};
use jiff::Timestamp;
use serde_json::json;

use crate::act::Step;
use crate::engine::{Engine, Outcome};
use crate::gate::decide::Gate;
use crate::look::Look;
use crate::trouble::Trouble;
use crate::words::{details, later, until};

/// How often a node is read while an operation waits for it.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(500);

impl Engine {
    /// Settles operations in flight: verifies what was accepted, and finds out what became of the rest.
    pub(crate) fn settle(&mut self, snapshot: &Snapshot, outcome: &mut Outcome) -> Result<bool, Trouble> {
        let busy: Vec<Status> =
            snapshot.statuses.values().filter(|status| status.operation.is_some()).cloned().collect();
        for status in busy {
            let Some(operation) = status.operation.clone() else { continue };
            if self.settle_one(snapshot, &status, &operation, outcome)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn settle_one(
        &mut self,
        snapshot: &Snapshot,
        status: &Status,
        operation: &Operation,
        outcome: &mut Outcome,
    ) -> Result<bool, Trouble> {
        let name = format!("{}/{}", status.cluster, status.machine);
        let defaults = self.governance(snapshot)?.repository.defaults.clone();
        let now = self.now();
        let last = operation.last_attempt();
        let started = last.map_or(operation.evidence.at, |attempt| attempt.started);
        if operation.state == OperationState::NotSent {
            return self.again(snapshot, status, operation, outcome);
        }
        if operation.state != OperationState::Verifying {
            // an attempt without an answer may still land until its deadline, and a little longer
            let deadline = last.map_or(started, |attempt| attempt.deadline);
            let quiet = later(deadline, defaults.settle_floor.as_duration());
            if now < quiet {
                outcome.holds.insert(
                    name,
                    format!("unresolved: nobody knows whether the attempt landed, until {quiet}"),
                );
                outcome.wait(until(now, quiet));
                return Ok(false);
            }
        }
        let Some(entry) = self.entry_of(snapshot, operation)? else {
            return Err(Trouble::halt(
                "state-untrusted",
                format!("The operation on {name} has no approved entry"),
            ));
        };
        let look = match self.read_machine(&status.cluster, &entry.target, &entry.identity) {
            Ok(look) => look,
            Err(why) => {
                outcome.holds.insert(name, format!("cannot be verified yet: {why}"));
                outcome.wait(LOOK_EVERY);
                return Ok(false);
            }
        };
        let landed = look.digests.bytes == operation.bytes;
        let untouched = look.digests.meaning == operation.evidence.meaning;
        let healthy = look.seen.ready || !operation.evidence.ready;
        if landed && healthy && !look.seen.pending {
            return self.finish(snapshot, status, operation, &entry, &look, started);
        }
        if operation.state == OperationState::Verifying || landed {
            if now < later(started, defaults.verification_deadline.as_duration()) && (landed || untouched) {
                outcome.holds.insert(name, "verifying".into());
                outcome.wait(LOOK_EVERY);
                return Ok(false);
            }
            let why = if landed { "it runs, and the machine is not ready" } else { "something else runs" };
            return self.fail(snapshot, status, operation, &look, why);
        }
        if untouched {
            return self.again(snapshot, status, operation, outcome);
        }
        let why = "unresolved: neither the old nor the new configuration runs; ending it needs `account`, which is not \
                   supported yet: put one of the two back";
        outcome.holds.insert(name, why.into());
        outcome.wait(LOOK_EVERY);
        Ok(false)
    }

    /// Nothing landed: the same bytes go again if approvals still carry them, else the operation ends.
    fn again(
        &mut self,
        snapshot: &Snapshot,
        status: &Status,
        operation: &Operation,
        outcome: &mut Outcome,
    ) -> Result<bool, Trouble> {
        let defaults = self.governance(snapshot)?.repository.defaults.clone();
        let name = format!("{}/{}", status.cluster, status.machine);
        let Some(entry) = self.entry_of(snapshot, operation)? else {
            return Err(Trouble::halt(
                "state-untrusted",
                format!("The operation on {name} has no approved entry"),
            ));
        };
        if operation.attempts_used() >= defaults.max_attempts {
            let why = format!("{} attempts were sent and none landed", operation.attempts_used());
            return self.end(snapshot, status, operation, EntryState::Failed, &why);
        }
        if let Some(ended) = self.withdrawn(snapshot, operation)? {
            return self.end(
                snapshot,
                status,
                operation,
                ended,
                "its approval ended before anything was sent",
            );
        }
        self.verify_kept(snapshot, &operation.entry, EntryState::Committed)?;
        if let Some(act) = self.chain().frozen_by(&status.cluster, &status.machine) {
            outcome.holds.insert(name, format!("frozen by act {act}"));
            return Ok(false);
        }
        let look = match self.read_machine(&status.cluster, &entry.target, &entry.identity) {
            Ok(look) => look,
            Err(why) => {
                outcome.holds.insert(name, format!("not sent: {why}"));
                outcome.wait(LOOK_EVERY);
                return Ok(false);
            }
        };
        let open = |answer| matches!(answer, None | Some(Answer::Lost | Answer::Accepted));
        if look.digests.bytes == operation.bytes
            && operation.attempts.iter().any(|attempt| open(attempt.answer))
        {
            let started = operation.last_attempt().map_or(operation.evidence.at, |attempt| attempt.started);
            return self.finish(snapshot, status, operation, &entry, &look, started);
        }
        if !look.seen.running || look.seen.pending {
            let why =
                "not sent: the machine is not running, or another configuration is staged or on trial there";
            outcome.holds.insert(name, why.into());
            outcome.wait(LOOK_EVERY);
            return Ok(false);
        }
        if look.digests.meaning != operation.evidence.meaning {
            let why = "something else runs than what was approved to be replaced";
            return self.end(snapshot, status, operation, EntryState::Failed, why);
        }
        match self.same_bytes(snapshot, status, operation, &entry)? {
            Step::Published => Ok(true),
            Step::Holds(why) => {
                outcome.holds.insert(name, why);
                outcome.wait(LOOK_EVERY);
                Ok(false)
            }
        }
    }

    /// A further attempt, with exactly the bytes of the first.
    fn same_bytes(
        &mut self,
        snapshot: &Snapshot,
        status: &Status,
        operation: &Operation,
        entry: &MachineEntry,
    ) -> Result<Step, Trouble> {
        let commit: Oid = operation
            .commit
            .parse()
            .map_err(|_| Trouble::halt("state-untrusted", "no commit in an operation"))?;
        let artifact = match self.artifact(snapshot, entry, commit) {
            Ok((_, artifact)) if artifact.bytes_digest == operation.bytes => artifact,
            Ok(_) => {
                return Ok(Step::Holds("artifact-mismatch: the same commit gives other bytes now".into()));
            }
            Err(why) => return Ok(Step::Holds(why)),
        };
        let transaction = Transaction::on(snapshot, self.now());
        self.attempt(transaction, &status.cluster, &status.machine, &artifact)
    }

    /// Do too few approvals of a committed operation live on, before a further attempt?
    fn withdrawn(&self, snapshot: &Snapshot, operation: &Operation) -> Result<Option<EntryState>, Trouble> {
        let governance = self.governance(snapshot)?;
        let releases: Vec<&Release> = snapshot.releases.values().collect();
        let (denied, revoked) = (self.denied(), self.chain().revoked());
        let count = |now| {
            let gate = Gate {
                governance: &governance,
                governance_current: true,
                releases: &releases,
                statuses: &[],
                frozen_by: &|_, _| None,
                denied: &denied,
                revoked: &revoked,
                now,
            };
            gate.enough(&operation.entry, false, EntryState::Committed).is_ok()
        };
        if count(self.now()) {
            return Ok(None);
        }
        let committed = operation.evidence.at;
        Ok(Some(if count(committed) { EntryState::Expired } else { EntryState::Revoked }))
    }

    fn entry_of(&self, snapshot: &Snapshot, operation: &Operation) -> Result<Option<MachineEntry>, Trouble> {
        let plan = self.read_plan(snapshot, operation.release)?;
        let found = plan.entries.iter().find(|entry| plan.entry_digest(entry) == operation.entry);
        Ok(found.and_then(Entry::as_machine).cloned())
    }

    fn finish(
        &mut self,
        snapshot: &Snapshot,
        status: &Status,
        operation: &Operation,
        entry: &MachineEntry,
        look: &Look,
        started: Timestamp,
    ) -> Result<bool, Trouble> {
        let mut transaction = Transaction::on(snapshot, self.now());
        let (cluster, machine) = (status.cluster.clone(), status.machine.clone());
        let mut status = transaction.status(&cluster, &machine);
        let drift = status.open_drift.take();
        let old = status.applied.take();
        let revision = old.as_ref().map_or(0, |applied| applied.revision) + 1;
        let base_only =
            operation.operation == Planned::Revert && old.is_some_and(|applied| applied.base_only);
        let references = bronzeward_compile::plan::references_digest(&entry.references);
        status.operation = None;
        status.observed = None;
        status.applied = Some(Applied {
            revision,
            release: operation.release,
            commit: operation.commit.clone(),
            source: AppliedSource::Operation,
            composed: entry.composed.clone(),
            references,
            bytes: look.digests.bytes.clone(),
            meaning: look.digests.meaning.clone(),
            target: entry.target.clone(),
            identity: entry.identity.clone(),
            base_only,
        });
        transaction.set_status(status);
        let took = transaction.now().duration_since(started);
        let took = format!("{}.{} s", took.as_secs(), took.subsec_millis() / 100);
        let word = if operation.operation == Planned::Revert { "reverted to" } else { "applied" };
        transaction.say(&format!("{machine}: {word} release {} (verified in {took})", operation.release));
        let seen = details([("bytes", json!(look.digests.bytes)), ("version", json!(look.seen.version))]);
        transaction.log(&cluster, &machine, LogKind::Verified, "what runs is what was sent", seen);
        let message = format!("Applied is revision {revision} (release {})", operation.release);
        transaction.log(&cluster, &machine, LogKind::Applied, &message, details([]));
        if let Some(drift) = drift {
            let how = if operation.operation == Planned::Revert {
                "reverted"
            } else {
                "overwritten by an approved change"
            };
            let message = format!("drift {} closed: {how}", drift.sequence);
            transaction.log(&cluster, &machine, LogKind::DriftClosed, &message, details([]));
        }
        if let Some((release, index)) = find(snapshot, operation.release, &operation.entry) {
            self.complete(&mut transaction, &release, index, EntryState::Completed, None);
        }
        self.commit(transaction)?;
        Ok(true)
    }

    /// It was accepted and is not what runs: the operation ends, and what runs is judged like any observation.
    fn fail(
        &mut self,
        snapshot: &Snapshot,
        status: &Status,
        operation: &Operation,
        look: &Look,
        why: &str,
    ) -> Result<bool, Trouble> {
        let mut transaction = Transaction::on(snapshot, self.now());
        self.end_in(&mut transaction, snapshot, status, operation, EntryState::Failed, why);
        let status = transaction.status(&status.cluster, &status.machine);
        self.judge_look(&mut transaction, &status, look);
        self.commit(transaction)?;
        Ok(true)
    }

    fn end(
        &mut self,
        snapshot: &Snapshot,
        status: &Status,
        operation: &Operation,
        state: EntryState,
        why: &str,
    ) -> Result<bool, Trouble> {
        let mut transaction = Transaction::on(snapshot, self.now());
        self.end_in(&mut transaction, snapshot, status, operation, state, why);
        self.commit(transaction)?;
        Ok(true)
    }

    fn end_in(
        &self,
        transaction: &mut Transaction,
        snapshot: &Snapshot,
        status: &Status,
        operation: &Operation,
        state: EntryState,
        why: &str,
    ) {
        let (cluster, machine) = (status.cluster.clone(), status.machine.clone());
        let mut status = transaction.status(&cluster, &machine);
        status.operation = None;
        transaction.set_status(status);
        let message =
            format!("{} of release {} ended: {why}", operation.operation.as_str(), operation.release);
        transaction.log(&cluster, &machine, LogKind::Failed, &message, details([]));
        if let Some((release, index)) = find(snapshot, operation.release, &operation.entry) {
            self.complete(transaction, &release, index, state, Some(why.to_owned()));
        }
    }
}

pub(crate) fn find(snapshot: &Snapshot, release: u64, digest: &str) -> Option<(Release, usize)> {
    let release = snapshot.releases.get(&release)?;
    let index = release.entries.iter().position(|entry| entry.digest == digest)?;
    Some((release.clone(), index))
}
