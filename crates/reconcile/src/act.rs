//! Acting on what is approved: commitment, sending, verifying, and settling what a crash left open.
//!
//! Evidence, then one push with commitment and attempt, then a fetch that shows it in the remote's history, then the
//! send, then the record, then an observation. A kill at any point leaves a state from which the next start goes on:
//!
//! | killed | state left | resolved by |
//! | --- | --- | --- |
//! | before the push | nothing committed | the entry is judged again |
//! | after the push, around the send | `sending` | after the deadlines an observation says whether it landed |
//! | after the send, before the record | `sending` | the same |
//! | after the record | `verifying` | an observation |

use std::rc::Rc;
use std::time::Duration;

use bronzeward_compile::artifact::{Artifact, Secrets};
use bronzeward_compile::plan::{Entry, MachineEntry, Operation as Planned, Plan};
use bronzeward_compile::planner::Planner;
use bronzeward_compile::{Composed, compose, compose_base};
use bronzeward_git::Oid;
use bronzeward_git::sign::Signer;
use bronzeward_intent::{Governance, Intent, Name};
use bronzeward_state::approval::{Approval, Place};
use bronzeward_state::log::LogKind;
use bronzeward_state::model::{
    Answer, Applied, AppliedSource, Attempt, EntryState, Evidence, Operation, OperationState, Release, ReleaseEntry,
    Status,
};
use bronzeward_state::snapshot::view;
use bronzeward_state::{Snapshot, Transaction};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::absorb::{approved, details, short};
use crate::engine::{Engine, Outcome, writes_state};
use crate::gate::decide::{Gate, Hold};
use crate::look::{Look, Why};
use crate::ports::{NodeAddress, Sent};
use crate::trouble::{Trouble, chain};

/// How often a node is read while an operation waits for it.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// An entry that the gate lets through.
struct Ready {
    release: Release,
    index: usize,
    entry: Entry,
}

impl Engine {
    /// Commits one approved entry. `true` when something was published.
    pub(crate) fn act(&mut self, snapshot: &Snapshot, outcome: &mut Outcome) -> Result<bool, Trouble> {
        let Some(ready) = self.choose(snapshot, outcome)? else { return Ok(false) };
        match &ready.entry {
            Entry::Govern(_) => match self.govern(snapshot, &ready)? {
                Step::Published => Ok(true),
                Step::Holds(why) => {
                    outcome.holds.insert("governance".to_owned(), why);
                    Ok(false)
                }
            },
            Entry::Machine(entry) => {
                let entry = entry.clone();
                let name = format!("{}/{}", entry.cluster, entry.machine);
                match self.commit_machine(snapshot, &ready, &entry)? {
                    Step::Published => Ok(true),
                    Step::Holds(why) => {
                        outcome.holds.insert(name, why);
                        outcome.wait(LOOK_EVERY);
                        Ok(false)
                    }
                }
            }
        }
    }

    /// The first entry, in the order of releases, that the gate lets through; why the others wait goes to `outcome`.
    fn choose(&self, snapshot: &Snapshot, outcome: &mut Outcome) -> Result<Option<Ready>, Trouble> {
        let governance = self.governance(snapshot)?;
        let current = self.tip().ok().and_then(|tip| self.trees.governance(&tip.to_string()).ok());
        let releases: Vec<&Release> = snapshot.releases.values().collect();
        let statuses: Vec<&Status> = snapshot.statuses.values().collect();
        let frozen_by = |cluster: &str, machine: &str| self.chain().frozen_by(cluster, machine);
        let (denied, revoked) = (self.denied(), self.chain().revoked());
        let gate = Gate {
            governance: &governance,
            governance_current: current.is_some_and(|c| c.digest == snapshot.installation.governed.digest),
            releases: &releases,
            statuses: &statuses,
            frozen_by: &frozen_by,
            denied: &denied,
            revoked: &revoked,
            now: self.now(),
        };
        let mut found = None;
        for release in releases.iter().filter(|release| release.is_live()) {
            let plan = self.read_plan(snapshot, release.sequence)?;
            for (index, entry) in release.entries.iter().enumerate().filter(|(_, entry)| entry.state.is_open()) {
                let Some((_, value)) = approved(&plan, entry) else { continue };
                let sends = value.as_machine().is_some_and(|machine| machine.operation.sends());
                let verdict = match gate.decide(release, entry, value) {
                    Ok(()) if self.closed && sends => Err("closed: the nodes were not all looked at since the disk was lost".to_owned()),
                    other => other.map_err(|hold| describe(&hold, entry)),
                };
                match verdict {
                    Ok(()) if found.is_none() => {
                        found = Some(Ready { release: (*release).clone(), index, entry: value.clone() });
                    }
                    Ok(()) => {}
                    Err(why) => {
                        outcome.holds.insert(entry.subject.clone(), why);
                    }
                }
            }
        }
        Ok(found)
    }

    fn governance(&self, snapshot: &Snapshot) -> Result<std::sync::Arc<Governance>, Trouble> {
        Ok(self.trees.governance(&snapshot.installation.governed.commit)?)
    }

    fn read_plan(&self, snapshot: &Snapshot, sequence: u64) -> Result<Plan, Trouble> {
        let (bytes, _) = snapshot.release_files(sequence)?;
        Plan::parse(&bytes).map_err(|why| Trouble::halt("state-untrusted", format!("The plan of release {sequence}: {why}")))
    }

    /// What acceptance kept is verified again: a logged `approved` is not trusted.
    fn verify_kept(&self, snapshot: &Snapshot, ready: &Ready) -> Result<(), Trouble> {
        let broken = |why: &str| {
            let message = format!("The statement of release {} does not carry it: {why}", ready.release.sequence);
            Trouble::halt("state-untrusted", message)
        };
        let (plan, statement) = snapshot.release_files(ready.release.sequence)?;
        let parsed = Approval::parse_kept(&statement).map_err(|err| broken(&err.to_string()))?;
        let parsed = parsed.ok_or_else(|| broken("it is empty"))?;
        if bronzeward_intent::canonical::sha256(&plan) != parsed.statement.plan {
            return Err(broken("another plan was signed"));
        }
        let installation = &snapshot.installation;
        let place = Place {
            repository: &installation.repository,
            shard: &installation.shard,
            epoch: &installation.epoch,
        };
        let signed = parsed.verify(place).map_err(|err| broken(&err.to_string()))?;
        let same = signed.len() == ready.release.approvers.len()
            && signed.iter().zip(&ready.release.approvers).all(|(one, approver)| {
                one.id == approver.approval
                    && one.approver == approver.principal
                    && bronzeward_git::sign::fingerprint(&one.key) == approver.key
            });
        if same { Ok(()) } else { Err(broken("it names other approvers")) }
    }

    fn govern(&mut self, snapshot: &Snapshot, ready: &Ready) -> Result<Step, Trouble> {
        self.verify_kept(snapshot, ready)?;
        let tip = self.tip().map_err(Trouble::Retry)?;
        let governance = self.trees.governance(&tip.to_string())?;
        let key = self.world.signer.public_key().key_data();
        if !writes_state(&governance, key, self.now()) {
            let why = "governance-locks-out: the new governance gives this reconciler's key no role `reconciler`";
            return Ok(Step::Holds(why.into()));
        }
        let mut transaction = Transaction::on(snapshot, self.now());
        let governed = &mut transaction.installation().governed;
        governed.commit = tip.to_string();
        governed.digest = governance.digest.clone();
        governed.turn += 1;
        let sequence = ready.release.sequence;
        self.complete(&mut transaction, &ready.release, ready.index, EntryState::Completed, None);
        transaction.kind(LogKind::Governed);
        transaction.say(&format!("governance of {} is in force (release {sequence})", short(tip)));
        self.commit(transaction)?;
        Ok(Step::Published)
    }

    fn commit_machine(&mut self, snapshot: &Snapshot, ready: &Ready, entry: &MachineEntry) -> Result<Step, Trouble> {
        self.verify_kept(snapshot, ready)?;
        // a change that was withdrawn meanwhile should not go: main is fetched before the evidence
        let before = self.fetched.main;
        self.refetch_main()?;
        if self.fetched.main != before {
            return Ok(Step::Holds("main moved: it is judged first".into()));
        }
        let target = if entry.operation == Planned::Revert {
            snapshot.status(&entry.cluster, &entry.machine).applied.map_or(entry.target.clone(), |applied| applied.target)
        } else {
            entry.target.clone()
        };
        let started = self.now();
        let look = match self.read_machine(&entry.cluster, &target, &entry.identity) {
            Ok(look) => look,
            Err(why) => return Ok(Step::Holds(why)),
        };
        if let Some(step) = self.check_evidence(snapshot, entry, &look)? {
            return Ok(step);
        }
        match entry.operation {
            Planned::Adopt => self.adopt(snapshot, ready, entry, &look, started),
            Planned::Readdress => self.readdress(snapshot, ready, entry),
            Planned::Apply | Planned::Revert => self.dispatch(snapshot, ready, entry, &look, started),
        }
    }

    fn refetch_main(&mut self) -> Result<(), Trouble> {
        let spec = format!("+refs/heads/{0}:refs/remotes/config/{0}", self.setup.main);
        let fetched = self.world.config.fetch(&self.repo, &[&spec])?;
        self.fetched.main = fetched.refs.get(&format!("refs/heads/{}", self.setup.main)).copied();
        Ok(())
    }

    fn check_evidence(&self, snapshot: &Snapshot, entry: &MachineEntry, look: &Look) -> Result<Option<Step>, Trouble> {
        let seen = &look.seen;
        if entry.operation.sends() {
            if !seen.running {
                return Ok(Some(Step::Holds("the machine is not running (booting, upgrading or going down)".into())));
            }
            if seen.pending {
                return Ok(Some(Step::Holds("another configuration is staged or on trial there; boot or wait".into())));
            }
            if minor(&seen.version) < minor(&entry.target.contract) {
                let why = format!("Talos {} is older than the contract {}", seen.version, entry.target.contract);
                return Ok(Some(Step::Holds(why)));
            }
        }
        let expected = entry.expects.as_ref().map(|expects| expects.meaning.as_str());
        if expected == Some(look.digests.meaning.as_str()) {
            return Ok(None);
        }
        // the evidence is an observation like any other: it may open, change or close a drift
        let mut transaction = Transaction::on(snapshot, self.now());
        let status = snapshot.status(&entry.cluster, &entry.machine);
        self.judge_look(&mut transaction, &status, look);
        if transaction.is_empty() {
            let why = "something else runs there than what was approved to be replaced or adopted";
            return Ok(Some(Step::Holds(why.into())));
        }
        self.commit(transaction)?;
        Ok(Some(Step::Published))
    }

    /// The tree, the document and the bytes of an entry.
    fn artifact(&self, snapshot: &Snapshot, entry: &MachineEntry, commit: Oid) -> Result<(Composed, Artifact), Why> {
        let (_, key) = self.access(&entry.cluster)?;
        let cluster: Name = entry.cluster.parse().map_err(|_| "The entry names no cluster".to_owned())?;
        let machine: Name = entry.machine.parse().map_err(|_| "The entry names no machine".to_owned())?;
        let tree = self.trees.at(commit).map_err(|err| chain(&err))?;
        let intent: Rc<Intent> = tree.intent.clone().map_err(|findings| findings.to_string())?;
        let base_only = match entry.operation {
            Planned::Adopt => self.base_adopts(snapshot, entry, &intent, &cluster, &machine),
            Planned::Revert => {
                snapshot.status(&entry.cluster, &entry.machine).applied.is_some_and(|applied| applied.base_only)
            }
            Planned::Apply | Planned::Readdress => false,
        };
        let composed = if base_only { compose_base(&intent, &cluster, &machine) } else { compose(&intent, &cluster, &machine) };
        let composed = composed.map_err(|findings| findings.to_string())?;
        if entry.composed.as_ref() != Some(&composed.digest) || entry.references != composed.references {
            return Err("artifact-mismatch: the tree composes another document than the approved one".into());
        }
        let read = |path: &str| tree.files.get(path).map(<[u8]>::to_vec);
        let secrets =
            Secrets { intent: &intent, cluster: &cluster, read: &read, identity: &self.world.identity, key: &key };
        let artifact = secrets.artifact(&composed).map_err(|err| chain(&err))?;
        Ok((composed, artifact))
    }

    fn base_adopts(
        &self,
        snapshot: &Snapshot,
        entry: &MachineEntry,
        intent: &Intent,
        cluster: &Name,
        machine: &Name,
    ) -> bool {
        let view = view(&snapshot.installation, snapshot.statuses.values());
        let at = |commit: &str| self.trees.intent(commit);
        let planner = Planner { intent, view: &view, at: &at };
        let base = compose_base(intent, cluster, machine).ok().map(|base| base.digest);
        planner.view.machine(&entry.cluster, &entry.machine).applied.is_none() || entry.composed == base
    }

    fn adopt(
        &self,
        snapshot: &Snapshot,
        ready: &Ready,
        entry: &MachineEntry,
        look: &Look,
        started: Timestamp,
    ) -> Result<Step, Trouble> {
        let tip = self.tip().map_err(Trouble::Retry)?;
        let (composed, explained) = match self.artifact(snapshot, entry, tip) {
            Ok((composed, artifact)) => {
                let explained = artifact.meaning_digest == look.digests.meaning;
                (composed, explained)
            }
            Err(why) => return Ok(Step::Holds(why)),
        };
        let mut transaction = Transaction::on(snapshot, self.now());
        let (cluster, machine) = (entry.cluster.clone(), entry.machine.clone());
        let mut status = transaction.status(&cluster, &machine);
        let drift = status.open_drift.take();
        let revision = status.applied.as_ref().map_or(0, |applied| applied.revision) + 1;
        let selection_base = self.tip_intent().ok().is_some_and(|intent| {
            let (Ok(c), Ok(m)) = (cluster.parse(), machine.parse()) else { return false };
            compose_base(&intent, &c, &m).is_ok_and(|base| base.digest == composed.digest)
        });
        status.turn += 1;
        status.observed = None;
        status.applied = Some(Applied {
            revision,
            release: ready.release.sequence,
            commit: tip.to_string(),
            source: AppliedSource::Adoption,
            composed: explained.then(|| composed.digest.clone()),
            references: composed.references_digest(),
            bytes: look.digests.bytes.clone(),
            meaning: look.digests.meaning.clone(),
            target: entry.target.clone(),
            identity: entry.identity.clone(),
            base_only: selection_base,
        });
        transaction.set_status(status);
        let evidence = details([
            ("at", json!(started)),
            ("bytes", json!(look.digests.bytes)),
            ("meaning", json!(look.digests.meaning)),
            ("version", json!(look.seen.version)),
        ]);
        transaction.say(&format!("{machine}: adopted (release {}), nothing was sent", ready.release.sequence));
        transaction.log(&cluster, &machine, LogKind::Evidence, "read before the adoption", evidence);
        let how = if explained { "the base explains it" } else { "no document explains it, an apply follows" };
        let message = format!("what runs is Applied, revision {revision} ({how})");
        let entry_digest = ready.release.entries[ready.index].digest.clone();
        transaction.log(&cluster, &machine, LogKind::Adopted, &message, details([("entry", json!(entry_digest))]));
        if let Some(drift) = drift {
            let message = format!("drift {} closed: adopted", drift.sequence);
            transaction.log(&cluster, &machine, LogKind::DriftClosed, &message, details([]));
        }
        self.complete(&mut transaction, &ready.release, ready.index, EntryState::Completed, None);
        self.commit(transaction)?;
        Ok(Step::Published)
    }

    fn readdress(&self, snapshot: &Snapshot, ready: &Ready, entry: &MachineEntry) -> Result<Step, Trouble> {
        let mut transaction = Transaction::on(snapshot, self.now());
        let (cluster, machine) = (entry.cluster.clone(), entry.machine.clone());
        let mut status = transaction.status(&cluster, &machine);
        status.turn += 1;
        if let Some(applied) = &mut status.applied {
            applied.target = entry.target.clone();
            applied.revision += 1;
        }
        transaction.set_status(status);
        let message = format!("answers at {} from now on; nothing was sent", entry.target.endpoint);
        transaction.log(&cluster, &machine, LogKind::Applied, &message, details([]));
        self.complete(&mut transaction, &ready.release, ready.index, EntryState::Completed, None);
        self.commit(transaction)?;
        Ok(Step::Published)
    }

    /// Moves an entry in every release that carries it: several approvals are one entry, and it happens once.
    fn complete(
        &self,
        transaction: &mut Transaction,
        release: &Release,
        index: usize,
        state: EntryState,
        detail: Option<String>,
    ) {
        let Some(digest) = release.entries.get(index).map(|entry| entry.digest.clone()) else { return };
        let carries = |other: &&Release| other.entries.iter().any(|entry| entry.digest == digest);
        let all: Vec<Release> = transaction.releases().values().filter(carries).cloned().collect();
        for mut other in all {
            let own = other.sequence == release.sequence;
            for entry in other.entries.iter_mut().filter(|entry| entry.digest == digest) {
                if own || matches!(entry.state, EntryState::Approved | EntryState::Committed) {
                    entry.state = state;
                    entry.detail.clone_from(&detail);
                }
            }
            transaction.set_release(other);
        }
    }

    /// Commitment and first attempt in one push, then the send.
    fn dispatch(
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
        let Some(commit) = commit else { return Ok(Step::Holds("the commit to compose is not known".into())) };
        let artifact = match self.artifact(snapshot, entry, commit) {
            Ok((_, artifact)) => artifact,
            Err(why) => return Ok(Step::Holds(why)),
        };
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
        let subject = format!("{machine}: {} committed (release {})", entry.operation.as_str(), ready.release.sequence);
        transaction.say(&subject);
        let read = details([
            ("at", json!(evidence.at)),
            ("bytes", json!(evidence.bytes)),
            ("meaning", json!(evidence.meaning)),
            ("version", json!(evidence.version)),
            ("ready", json!(evidence.ready)),
        ]);
        transaction.log(&cluster, &machine, LogKind::Evidence, "read before the commitment", read);
        let bound = details([("bytes", json!(artifact.bytes_digest)), ("meaning", json!(artifact.meaning_digest))]);
        let message = format!("{} of release {} is committed", entry.operation.as_str(), ready.release.sequence);
        transaction.log(&cluster, &machine, LogKind::Committed, &message, bound);
        self.complete(&mut transaction, &ready.release, ready.index, EntryState::Committed, None);
        self.attempt(transaction, &cluster, &machine, &artifact)
    }

    /// Records an attempt in one push, confirms it, and sends within the time that is left.
    fn attempt(
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
        let commit_of_main = self.fetched.main;
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
        let (true, false, Some(endpoint)) = (mine, late, entry_target) else {
            let why = if late { "the push took longer than `sendWithin`" } else { "the shard or the operation moved on" };
            return self.record(cluster, machine, number, Answer::NotSent, why).map(|()| Step::Published);
        };
        let _ = commit_of_main;
        let (access, _) = match self.access(cluster) {
            Ok(found) => found,
            Err(why) => return self.record(cluster, machine, number, Answer::NotSent, &why).map(|()| Step::Published),
        };
        let at = NodeAddress { cluster: cluster.to_owned(), endpoint };
        let spent = self.world.clock.monotonic().saturating_sub(clock);
        let deadline = defaults.transport_deadline.as_duration().saturating_sub(spent);
        let sent = self.world.nodes.send(&at, &access, &artifact.bytes, deadline);
        let (answer, why) = match &sent {
            Sent::Accepted => (Answer::Accepted, "the node accepted it".to_owned()),
            Sent::Rejected(why) => (Answer::Rejected, (*why).to_owned()),
            Sent::Busy => (Answer::Busy, "the node was busy with another apply".to_owned()),
            Sent::NotSent(why) => (Answer::NotSent, why.clone()),
            Sent::Lost(why) => (Answer::Lost, why.clone()),
        };
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
    fn record(&mut self, cluster: &str, machine: &str, number: u32, answer: Answer, why: &str) -> Result<(), Trouble> {
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

    fn try_record(&mut self, cluster: &str, machine: &str, number: u32, answer: Answer, why: &str) -> Result<bool, Trouble> {
        self.verify()?;
        let snapshot = self.snapshot()?;
        let mut transaction = Transaction::on(&snapshot, self.now());
        let mut status = transaction.status(cluster, machine);
        let Some(operation) = &mut status.operation else { return Ok(true) };
        let Some(attempt) = operation.attempts.iter_mut().find(|attempt| attempt.number == number) else { return Ok(true) };
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
        let rejected = answer == Answer::Rejected && operation.attempts.iter().all(|a| a.answer == Some(Answer::Rejected) || a.answer == Some(Answer::NotSent));
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

    /// Settles operations in flight: verifies what was accepted, and finds out what became of the rest.
    pub(crate) fn settle(&mut self, snapshot: &Snapshot, outcome: &mut Outcome) -> Result<bool, Trouble> {
        let busy: Vec<Status> = snapshot.statuses.values().filter(|status| status.operation.is_some()).cloned().collect();
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
                outcome.holds.insert(name, format!("unresolved: nobody knows whether the attempt landed, until {quiet}"));
                outcome.wait(until(now, quiet));
                return Ok(false);
            }
        }
        let Some(entry) = self.entry_of(snapshot, operation)? else {
            return Err(Trouble::halt("state-untrusted", format!("The operation on {name} has no approved entry")));
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
        let healthy = look.seen.ready || !operation.evidence.ready;
        let until_verified = later(started, defaults.verification_deadline.as_duration());
        if landed && healthy && !look.seen.pending {
            return self.finish(snapshot, status, operation, &entry, &look, started);
        }
        if operation.state == OperationState::Verifying {
            if now < until_verified && (landed || look.digests.bytes == operation.evidence.bytes) {
                outcome.holds.insert(name, "verifying".into());
                outcome.wait(LOOK_EVERY);
                return Ok(false);
            }
            let why = if landed { "it runs, and the machine is not ready" } else { "something else runs" };
            return self.fail(snapshot, status, operation, &look, why);
        }
        if look.digests.bytes == operation.evidence.bytes {
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
            return Err(Trouble::halt("state-untrusted", format!("The operation on {name} has no approved entry")));
        };
        if operation.attempts_used() >= defaults.max_attempts {
            let why = format!("{} attempts were sent and none landed", operation.attempts_used());
            return self.end(snapshot, status, operation, EntryState::Failed, &why);
        }
        if let Some(ended) = self.withdrawn(snapshot, operation)? {
            return self.end(snapshot, status, operation, ended, "its approval ended before anything was sent");
        }
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
        if look.digests.bytes != operation.evidence.bytes {
            let why = "something else runs than what was approved to be replaced";
            return self.end(snapshot, status, operation, EntryState::Failed, why);
        }
        let commit: Oid = operation.commit.parse().map_err(|_| Trouble::halt("state-untrusted", "no commit in an operation"))?;
        let artifact = match self.artifact(snapshot, &entry, commit) {
            Ok((_, artifact)) if artifact.bytes_digest == operation.bytes => artifact,
            Ok(_) => {
                outcome.holds.insert(name, "artifact-mismatch: the same commit gives other bytes now".into());
                return Ok(false);
            }
            Err(why) => {
                outcome.holds.insert(name, why);
                outcome.wait(LOOK_EVERY);
                return Ok(false);
            }
        };
        let transaction = Transaction::on(snapshot, self.now());
        let (cluster, machine) = (status.cluster.clone(), status.machine.clone());
        match self.attempt(transaction, &cluster, &machine, &artifact)? {
            Step::Published => Ok(true),
            Step::Holds(why) => {
                outcome.holds.insert(name, why);
                outcome.wait(LOOK_EVERY);
                Ok(false)
            }
        }
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
        let base_only = operation.operation == Planned::Revert && old.is_some_and(|applied| applied.base_only);
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
            let how = if operation.operation == Planned::Revert { "reverted" } else { "overwritten by an approved change" };
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
        let message = format!("{} of release {} ended: {why}", operation.operation.as_str(), operation.release);
        transaction.log(&cluster, &machine, LogKind::Failed, &message, details([]));
        if let Some((release, index)) = find(snapshot, operation.release, &operation.entry) {
            self.complete(transaction, &release, index, state, Some(why.to_owned()));
        }
    }
}

/// What a step did.
enum Step {
    /// Something was published, or lost a race: everything is judged again.
    Published,
    /// It waits, for this reason.
    Holds(String),
}

fn find(snapshot: &Snapshot, release: u64, digest: &str) -> Option<(Release, usize)> {
    let release = snapshot.releases.get(&release)?;
    let index = release.entries.iter().position(|entry| entry.digest == digest)?;
    Some((release.clone(), index))
}

fn describe(hold: &Hold, entry: &ReleaseEntry) -> String {
    match (hold, &entry.detail) {
        (Hold::NotApproved, Some(detail)) => detail.clone(),
        _ => hold.to_string(),
    }
}

fn later(from: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    from.checked_add(by).unwrap_or(Timestamp::MAX)
}

fn until(now: Timestamp, then: Timestamp) -> Duration {
    Duration::try_from(then.duration_since(now)).unwrap_or(Duration::ZERO)
}

/// `v1.13.9` or `v1.13` as (1, 13).
fn minor(version: &str) -> (u64, u64) {
    let mut parts = version.trim_start_matches('v').split(['.', '-']).map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}
