//! Acting on what is approved: choosing what goes next, looking at the node, committing.
//!
//! Sending is `dispatch`, what a crash left open is `settle`, what sends nothing is `adopt`.
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

use bronzeward_compile::artifact::{Artifact, Secrets};
use bronzeward_compile::plan::{Entry, MachineEntry, Operation as Planned, Plan};
use bronzeward_compile::planner::Planner;
use bronzeward_compile::{Composed, compose, compose_base};
use bronzeward_git::Oid;
use bronzeward_git::sign::Signer;
use bronzeward_intent::{Governance, Intent, Name};
use bronzeward_state::kept;
use bronzeward_state::log::LogKind;
use bronzeward_state::model::{EntryState, Release, ReleaseEntry, Status};
use bronzeward_state::snapshot::view;
use bronzeward_state::{Snapshot, Transaction};
use jiff::Timestamp;

use crate::engine::{Engine, Outcome, writes_state};
use crate::follow::approved;
use crate::gate::decide::{Gate, Hold};
use crate::look::{Look, Why};
use crate::settle::LOOK_EVERY;
use crate::trouble::{Trouble, chain};
use crate::words::{minor, short};

/// An entry that the gate lets through.
pub(crate) struct Ready {
    pub(crate) release: Release,
    pub(crate) index: usize,
    pub(crate) entry: Entry,
}

impl Engine {
    /// Commits one approved entry. `true` when something was published.
    pub(crate) fn act(&mut self, snapshot: &Snapshot, outcome: &mut Outcome) -> Result<bool, Trouble> {
        // one that cannot go now (its node is away) keeps nobody else waiting
        for ready in self.choose(snapshot, outcome)? {
            let step = match &ready.entry {
                Entry::Govern(_) => self.govern(snapshot, &ready)?,
                Entry::Machine(entry) => {
                    let entry = entry.clone();
                    self.commit_machine(snapshot, &ready, &entry)?
                }
            };
            match step {
                Step::Published => return Ok(true),
                Step::Holds(why) => {
                    outcome.holds.insert(ready.entry.subject().to_string(), why);
                    if ready.entry.as_machine().is_some() {
                        outcome.wait(LOOK_EVERY);
                    }
                }
            }
        }
        Ok(false)
    }

    /// The entries that the gate lets through, in the order of releases; why the others wait goes to `outcome`.
    fn choose(&self, snapshot: &Snapshot, outcome: &mut Outcome) -> Result<Vec<Ready>, Trouble> {
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
        let mut found: Vec<Ready> = Vec::new();
        for release in releases.iter().filter(|release| release.is_live()) {
            let plan = self.read_plan(snapshot, release.sequence)?;
            for (index, entry) in
                release.entries.iter().enumerate().filter(|(_, entry)| entry.state.is_open())
            {
                let Some((_, value)) = approved(&plan, entry) else { continue };
                let sends = value.as_machine().is_some_and(|machine| machine.operation.sends());
                let verdict = match gate.decide(release, entry, value) {
                    Ok(()) if self.closed && sends => {
                        Err("closed: the nodes were not all looked at since the disk was lost".to_owned())
                    }
                    other => other.map_err(|hold| describe(&hold, entry)),
                };
                match verdict {
                    Ok(()) if found.iter().any(|other| other.entry == *value) => {}
                    Ok(()) => found.push(Ready { release: (*release).clone(), index, entry: value.clone() }),
                    Err(why) => {
                        outcome.holds.insert(entry.subject.clone(), why);
                    }
                }
            }
        }
        Ok(found)
    }

    pub(crate) fn governance(&self, snapshot: &Snapshot) -> Result<std::sync::Arc<Governance>, Trouble> {
        Ok(self.trees.governance(&snapshot.installation.governed.commit)?)
    }

    pub(crate) fn read_plan(&self, snapshot: &Snapshot, sequence: u64) -> Result<Plan, Trouble> {
        let (bytes, _) = snapshot.release_files(sequence)?;
        Plan::parse(&bytes)
            .map_err(|why| Trouble::halt("state-untrusted", format!("The plan of release {sequence}: {why}")))
    }

    /// What acceptance kept is judged again, for every release that counts: a logged `approved` is not trusted.
    pub(crate) fn verify_kept(
        &self,
        snapshot: &Snapshot,
        digest: &str,
        state: EntryState,
    ) -> Result<(), Trouble> {
        let carries = |release: &&Release| {
            let same = |entry: &ReleaseEntry| entry.digest == digest && entry.state == state;
            release.refused.is_none() && release.entries.iter().any(same)
        };
        for release in snapshot.releases.values().filter(carries) {
            let governance = self.trees.governance(self.chain().accepted_under(release.sequence))?;
            let (installation, keys) = (&snapshot.installation, &self.setup.root_keys);
            kept::verify(&snapshot.tree, installation, release, &governance, keys).map_err(|why| {
                let message =
                    format!("The statement of release {} does not carry it: {why}", release.sequence);
                Trouble::halt("state-untrusted", message)
            })?;
        }
        Ok(())
    }

    fn govern(&mut self, snapshot: &Snapshot, ready: &Ready) -> Result<Step, Trouble> {
        self.verify_kept(snapshot, &ready.release.entries[ready.index].digest, EntryState::Approved)?;
        let tip = self.tip().map_err(Trouble::Retry)?;
        let governance = self.trees.governance(&tip.to_string())?;
        let key = self.world.signer.public_key().key_data();
        if !writes_state(&governance, key, self.now()) {
            let why =
                "governance-locks-out: the new governance gives this reconciler's key no role `reconciler`";
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

    fn commit_machine(
        &mut self,
        snapshot: &Snapshot,
        ready: &Ready,
        entry: &MachineEntry,
    ) -> Result<Step, Trouble> {
        self.verify_kept(snapshot, &ready.release.entries[ready.index].digest, EntryState::Approved)?;
        // a change that was withdrawn meanwhile should not go: main is fetched before the evidence
        let before = self.fetched.main;
        self.refetch_main()?;
        if self.fetched.main != before {
            return Ok(Step::Holds("main moved: it is judged first".into()));
        }
        let target = if entry.operation == Planned::Revert {
            snapshot
                .status(&entry.cluster, &entry.machine)
                .applied
                .map_or(entry.target.clone(), |applied| applied.target)
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

    /// Is what was read too old to be committed on? Also when the clock went back since.
    pub(crate) fn stale(&self, snapshot: &Snapshot, read: Timestamp) -> Result<Option<Step>, Trouble> {
        let longest = self.governance(snapshot)?.repository.defaults.evidence_max_age.as_duration();
        let age = std::time::Duration::try_from(self.now().duration_since(read));
        let fresh = age.is_ok_and(|age| age <= longest);
        Ok((!fresh)
            .then(|| Step::Holds("the evidence is older than `evidenceMaxAge`: it is read again".into())))
    }

    fn refetch_main(&mut self) -> Result<(), Trouble> {
        let spec = format!("+refs/heads/{0}:refs/remotes/config/{0}", self.setup.main);
        let fetched = self.world.config.fetch(&self.repo, &[&spec])?;
        self.fetched.main = fetched.refs.get(&format!("refs/heads/{}", self.setup.main)).copied();
        Ok(())
    }

    fn check_evidence(
        &self,
        snapshot: &Snapshot,
        entry: &MachineEntry,
        look: &Look,
    ) -> Result<Option<Step>, Trouble> {
        let seen = &look.seen;
        if entry.operation.sends() {
            if !seen.running {
                return Ok(Some(Step::Holds(
                    "the machine is not running (booting, upgrading or going down)".into(),
                )));
            }
            if seen.pending {
                return Ok(Some(Step::Holds(
                    "another configuration is staged or on trial there; boot or wait".into(),
                )));
            }
            if minor(&seen.version) < minor(&entry.target.contract) {
                let why =
                    format!("Talos {} is older than the contract {}", seen.version, entry.target.contract);
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
    pub(crate) fn artifact(
        &self,
        snapshot: &Snapshot,
        entry: &MachineEntry,
        commit: Oid,
    ) -> Result<(Composed, Artifact), Why> {
        let (_, key) = self.access(&entry.cluster)?;
        let cluster: Name = entry.cluster.parse().map_err(|_| "The entry names no cluster".to_owned())?;
        let machine: Name = entry.machine.parse().map_err(|_| "The entry names no machine".to_owned())?;
        let tree = self.trees.at(commit).map_err(|err| chain(&err))?;
        let intent: Rc<Intent> = tree.intent.clone().map_err(|findings| findings.to_string())?;
        let base_only = match entry.operation {
            Planned::Adopt => self.base_adopts(snapshot, entry, &intent, &cluster, &machine),
            Planned::Revert => snapshot
                .status(&entry.cluster, &entry.machine)
                .applied
                .is_some_and(|applied| applied.base_only),
            Planned::Apply | Planned::Readdress => false,
        };
        let composed = if base_only {
            compose_base(&intent, &cluster, &machine)
        } else {
            compose(&intent, &cluster, &machine)
        };
        let composed = composed.map_err(|findings| findings.to_string())?;
        if entry.composed.as_ref() != Some(&composed.digest) || entry.references != composed.references {
            return Err("artifact-mismatch: the tree composes another document than the approved one".into());
        }
        let read = |path: &str| tree.files.get(path).map(<[u8]>::to_vec);
        let secrets = Secrets {
            intent: &intent,
            cluster: &cluster,
            read: &read,
            identity: &self.world.identity,
            key: &key,
        };
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

    /// Moves an entry in every release that carries it: several approvals are one entry, and it happens once.
    pub(crate) fn complete(
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
}

/// What a step did.
pub(crate) enum Step {
    /// Something was published, or lost a race: everything is judged again.
    Published,
    /// It waits, for this reason.
    Holds(String),
}

fn describe(hold: &Hold, entry: &ReleaseEntry) -> String {
    match (hold, &entry.detail) {
        (Hold::NotApproved, Some(detail)) => detail.clone(),
        _ => hold.to_string(),
    }
}
