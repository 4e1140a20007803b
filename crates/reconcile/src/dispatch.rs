//! Commitment and sending: one push with commitment and attempt, the confirmation, the send, the record.

use bronzeward_compile::artifact::Artifact;
use bronzeward_compile::plan::{MachineEntry, Operation as Planned};
use bronzeward_state::log::LogKind;
use bronzeward_state::model::{Answer, Attempt, EntryState, Evidence, Operation, OperationState, Status};
use bronzeward_state::{Snapshot, Transaction};
use jiff::Timestamp;
use serde_json::json;

use crate::act::{Ready, Step};
use crate::engine::Engine;
use crate::look::Look;
use crate::ports::{NodeAddress, Sent, Window};
use crate::settle::find;
use crate::trouble::Trouble;
use crate::words::{details, later};

impl Engine {
    /// Commitment and first attempt in one push, then the send.
    pub(crate) fn dispatch(
        &mut self,
        snapshot: &Snapshot,
        ready: &Ready,
        entry: &MachineEntry,
        look: &Look,
        started: Timestamp,
    ) -> Result<Step, Trouble> {
        let commit = match entry.operation {
            Planned::Revert => {
                let applied = snapshot.status(&entry.cluster, &entry.machine).applied;
                applied.and_then(|applied| applied.commit.parse().ok())
            }
            _ => self.tip().ok(),
        };
        let Some(commit) = commit else {
            return Ok(Step::Holds("the commit to compose is not known".into()));
        };
        let artifact = match self.artifact(snapshot, entry, commit) {
            Ok((_, artifact)) => artifact,
            Err(why) => return Ok(Step::Holds(why)),
        };
        if let Some(step) = self.stale(snapshot, started)? {
            return Ok(step);
        }
        let mut transaction = Transaction::on(snapshot, self.now());
        let (cluster, machine) = (entry.cluster.clone(), entry.machine.clone());
        let mut status = transaction.status(&cluster, &machine);
        let evidence = Evidence {
            at: started,
            bytes: look.digests.bytes.clone(),
            meaning: look.digests.meaning.clone(),
            version: look.seen.version.clone(),
            ready: look.seen.ready,
        };
        status.turn += 1;
        status.operation = Some(Operation {
            release: ready.release.sequence,
            entry: ready.release.entries[ready.index].digest.clone(),
            operation: entry.operation,
            commit: commit.to_string(),
            state: OperationState::Sending,
            bytes: artifact.bytes_digest.clone(),
            meaning: artifact.meaning_digest.clone(),
            evidence: evidence.clone(),
            attempts: Vec::new(),
        });
        transaction.set_status(status);
        let subject =
            format!("{machine}: {} committed (release {})", entry.operation.as_str(), ready.release.sequence);
        transaction.say(&subject);
        let read = details([
            ("at", json!(evidence.at)),
            ("bytes", json!(evidence.bytes)),
            ("meaning", json!(evidence.meaning)),
            ("version", json!(evidence.version)),
            ("ready", json!(evidence.ready)),
        ]);
        transaction.log(&cluster, &machine, LogKind::Evidence, "read before the commitment", read);
        let bound =
            details([("bytes", json!(artifact.bytes_digest)), ("meaning", json!(artifact.meaning_digest))]);
        let message =
            format!("{} of release {} is committed", entry.operation.as_str(), ready.release.sequence);
        transaction.log(&cluster, &machine, LogKind::Committed, &message, bound);
        self.complete(&mut transaction, &ready.release, ready.index, EntryState::Committed, None);
        self.attempt(transaction, &cluster, &machine, &artifact)
    }

    /// Records an attempt in one push, confirms it, and sends within the time that is left.
    pub(crate) fn attempt(
        &mut self,
        mut transaction: Transaction,
        cluster: &str,
        machine: &str,
        artifact: &Artifact,
    ) -> Result<Step, Trouble> {
        let governance = self.trees.governance(&transaction.peek().governed.commit)?;
        let defaults = governance.repository.defaults.clone();
        let mut status = transaction.status(cluster, machine);
        let Some(operation) = &mut status.operation else { return Ok(Step::Holds("no operation".into())) };
        let started = self.now();
        let clock = self.world.clock.monotonic();
        let number = operation.attempts.len() as u32 + 1;
        operation.state = OperationState::Sending;
        operation.attempts.push(Attempt {
            number,
            started,
            deadline: later(started, defaults.transport_deadline.as_duration()),
            answer: None,
        });
        let target = status.applied.as_ref().map(|applied| applied.target.endpoint.clone());
        transaction.set_status(status);
        let message = format!("attempt {number} is recorded; it is sent within {}", defaults.send_within);
        transaction.log(cluster, machine, LogKind::Attempt, &message, details([("number", json!(number))]));
        if !self.commit(transaction)? {
            return Ok(Step::Published);
        }
        // sent only when a fetch shows the attempt in the remote's history, and still as the last word
        self.verify()?;
        let snapshot = self.snapshot()?;
        let status = snapshot.status(cluster, machine);
        let mine = self.is_mine(&snapshot, &status, number, &artifact.bytes_digest);
        let late = self.world.clock.monotonic().saturating_sub(clock) > defaults.send_within.as_duration();
        let entry_target = self.target_of(&snapshot, &status).or(target);
        // a freeze that came after the attempt lost the race, and is honoured as long as nothing left
        let frozen = self.chain().frozen_by(cluster, machine).is_some();
        let (true, false, Some(endpoint)) = (mine && !frozen, late, entry_target) else {
            let why = if late {
                "the push took longer than `sendWithin`"
            } else if frozen {
                "it was frozen meanwhile"
            } else {
                "the shard or the operation moved on"
            };
            return self.record(cluster, machine, number, Answer::NotSent, why).map(|()| Step::Published);
        };
        let (access, _) = match self.access(cluster) {
            Ok(found) => found,
            Err(why) => {
                return self
                    .record(cluster, machine, number, Answer::NotSent, &why)
                    .map(|()| Step::Published);
            }
        };
        let at = NodeAddress { cluster: cluster.to_owned(), endpoint };
        let spent = self.world.clock.monotonic().saturating_sub(clock);
        let answer = defaults.transport_deadline.as_duration().saturating_sub(spent);
        let begin = defaults.send_within.as_duration().saturating_sub(spent).min(answer);
        let window = Window { begin, answer };
        let (answer, why) = what_came(self.world.nodes.send(&at, &access, &artifact.bytes, window));
        self.record(cluster, machine, number, answer, &why)?;
        Ok(Step::Published)
    }

    fn is_mine(&self, snapshot: &Snapshot, status: &Status, number: u32, bytes: &str) -> bool {
        let owner = snapshot.installation.owner.as_ref();
        let owned = owner.is_some_and(|owner| {
            owner.id == self.setup.owner && Some(owner.generation) == self.disk.kept().generation
        });
        let last = status.operation.as_ref().and_then(|operation| {
            let last = operation.last_attempt()?;
            Some(last.number == number && last.answer.is_none() && operation.bytes == bytes)
        });
        owned && last == Some(true)
    }

    fn target_of(&self, snapshot: &Snapshot, status: &Status) -> Option<String> {
        let operation = status.operation.as_ref()?;
        let plan = self.read_plan(snapshot, operation.release).ok()?;
        let entry = plan.entries.iter().find(|entry| plan.entry_digest(entry) == operation.entry)?;
        entry.as_machine().map(|entry| entry.target.endpoint.clone())
    }

    /// Records what came of an attempt, until it is stored.
    fn record(
        &mut self,
        cluster: &str,
        machine: &str,
        number: u32,
        answer: Answer,
        why: &str,
    ) -> Result<(), Trouble> {
        const TRIES: u32 = 8;
        let mut last = None;
        for _ in 0..TRIES {
            match self.try_record(cluster, machine, number, answer, why) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(trouble @ Trouble::Halt { .. }) => return Err(trouble),
                Err(trouble) => last = Some(trouble),
            }
        }
        // what is not stored is lost like an answer that never came: an observation settles it
        Err(last.unwrap_or_else(|| Trouble::Retry("The answer could not be recorded".into())))
    }

    fn try_record(
        &mut self,
        cluster: &str,
        machine: &str,
        number: u32,
        answer: Answer,
        why: &str,
    ) -> Result<bool, Trouble> {
        self.verify()?;
        let snapshot = self.snapshot()?;
        let mut transaction = Transaction::on(&snapshot, self.now());
        let mut status = transaction.status(cluster, machine);
        let Some(operation) = &mut status.operation else { return Ok(true) };
        let Some(attempt) = operation.attempts.iter_mut().find(|attempt| attempt.number == number) else {
            return Ok(true);
        };
        if attempt.answer.is_some() {
            return Ok(true);
        }
        attempt.answer = Some(answer);
        let (state, kind) = match answer {
            Answer::Accepted => (OperationState::Verifying, LogKind::Answer),
            Answer::NotSent => (OperationState::NotSent, LogKind::NotSent),
            Answer::Busy => (OperationState::NotSent, LogKind::Answer),
            Answer::Rejected => (OperationState::NotSent, LogKind::Rejected),
            Answer::Lost => (OperationState::Unresolved, LogKind::Unresolved),
        };
        operation.state = state;
        let (release, entry) = (operation.release, operation.entry.clone());
        let rejected = answer == Answer::Rejected
            && operation
                .attempts
                .iter()
                .all(|a| a.answer == Some(Answer::Rejected) || a.answer == Some(Answer::NotSent));
        if rejected {
            status.operation = None;
        }
        transaction.set_status(status);
        let message = format!("attempt {number}: {why}");
        transaction.log(cluster, machine, kind, &message, details([("number", json!(number))]));
        if rejected && let Some((release, index)) = find(&snapshot, release, &entry) {
            self.complete(&mut transaction, &release, index, EntryState::Rejected, Some(why.to_owned()));
        }
        self.commit(transaction)
    }
}

/// What came of a send, as it is recorded.
fn what_came(sent: Sent) -> (Answer, String) {
    match sent {
        Sent::Accepted => (Answer::Accepted, "the node accepted it".to_owned()),
        Sent::Rejected(why) => (Answer::Rejected, why.to_owned()),
        Sent::Busy => (Answer::Busy, "the node was busy with another apply".to_owned()),
        Sent::NotSent(why) => (Answer::NotSent, why),
        Sent::Lost(why) => (Answer::Lost, why),
    }
}
