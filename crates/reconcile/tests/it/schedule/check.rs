//! Checkers: they read the chain and what the nodes received, and nothing of the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use bronzeward_compile::plan::{Entry, Plan, Subject};
use bronzeward_compile::planner::Planner;
use bronzeward_git::sign::fingerprint;
use bronzeward_intent::{ActorRole, Governance, Intent};
use bronzeward_state::approval::{Approval, Place};
use bronzeward_state::chain::{Chain, ChainError};
use bronzeward_state::{EntryState, Release, Snapshot};

use super::{WORKERS, digest};
use crate::world::{STATE, World};

pub(super) struct Checker<'a> {
    world: &'a World,
    governances: BTreeMap<String, Arc<Governance>>,
    /// Digests of entries that were committed.
    fired: BTreeSet<String>,
    /// For every machine, the digests of bytes, one for each recorded attempt.
    attempts: BTreeMap<String, Vec<String>>,
}

impl Checker<'_> {
    pub(super) fn run(world: &World) {
        let mut checker = Checker {
            world,
            governances: BTreeMap::new(),
            fired: BTreeSet::new(),
            attempts: BTreeMap::new(),
        };
        let tip = world.repo.read_ref(STATE).unwrap().unwrap();
        let setup = world.setup();
        let mut chain = Chain::genesis(&world.repo, world.genesis, &setup.root_keys).unwrap();
        let all = world.repo.first_parents(Some(world.genesis), tip).unwrap().unwrap();
        let mut before = Snapshot::read(&world.repo, world.genesis).unwrap();
        for commit in all {
            let after = Snapshot::read(&world.repo, commit).unwrap();
            checker.step(&chain, &before, &after);
            let governance_at = |commit: &str| -> Result<Arc<Governance>, ChainError> {
                Ok(Arc::new(world.intent_of(commit.parse().unwrap()).unwrap().governance))
            };
            chain.advance(&world.repo, commit, &governance_at).unwrap();
            checker.add_only(&before, &after);
            before = after;
        }
        for send in world.sends() {
            let machine = WORKERS
                .iter()
                .find(|(_, endpoint)| *endpoint == send.endpoint)
                .expect("only workers are sent to")
                .0;
            let bytes = digest(world, &send.bytes);
            let list = checker.attempts.get_mut(machine).expect("every send stands in the history");
            let at =
                list.iter().position(|other| *other == bytes).expect("every send has an attempt of its own");
            list.remove(at);
        }
    }

    fn governance(&mut self, commit: &str) -> Arc<Governance> {
        let world = self.world;
        let load = || Arc::new(world.intent_of(commit.parse().unwrap()).unwrap().governance);
        Arc::clone(self.governances.entry(commit.to_owned()).or_insert_with(load))
    }

    fn add_only(&self, before: &Snapshot, after: &Snapshot) {
        for folder in ["machines", "acts", "releases"] {
            let (old, new) = (before.tree.list(folder).unwrap(), after.tree.list(folder).unwrap());
            for (path, entry) in old {
                let kept = path.contains("/log/")
                    || path.starts_with("acts/")
                    || path.matches('/').count() == 2 && folder == "releases";
                match new.get(&path) {
                    Some(now) => assert!(!kept || now.id == entry.id, "{path} was changed"),
                    None => panic!("{path} is gone"),
                }
            }
        }
    }

    fn step(&mut self, chain: &Chain, before: &Snapshot, after: &Snapshot) {
        let turns = after.installation.governed.turn - before.installation.governed.turn;
        assert!(turns <= 1);
        if turns == 1 {
            self.committed(chain, before, after, "governance");
        }
        for status in after.statuses.values() {
            let old = before.status(&status.cluster, &status.machine);
            let subject = format!("{}/{}", status.cluster, status.machine);
            assert!(status.turn - old.turn <= 1);
            if status.turn > old.turn {
                self.committed(chain, before, after, &subject);
            }
            let (was, is) = (count(&old), count(status));
            let Some(operation) = status.operation.as_ref().filter(|_| is > was || status.turn > old.turn)
            else {
                continue;
            };
            assert_eq!(operation.last_attempt().unwrap().answer, None);
            assert_eq!(
                chain.frozen_by(&status.cluster, &status.machine),
                None,
                "a frozen machine gets nothing"
            );
            assert_ne!(status.machine, "cp1");
            self.attempts.entry(status.machine.clone()).or_default().push(operation.bytes.clone());
            let others = after.statuses.values().filter(|other| other.operation.is_some()).count();
            assert_eq!(others, 1, "one at a time");
            if is > 1 {
                let states = [EntryState::Committed];
                self.live(chain, before, &operation.entry, &states, after_time(after, status));
            }
        }
    }

    /// An entry was committed by this step: once, approved then, and equal to what main says.
    fn committed(&mut self, chain: &Chain, before: &Snapshot, after: &Snapshot, subject: &str) {
        let done = [EntryState::Committed, EntryState::Completed];
        let mut digests = BTreeSet::new();
        for (sequence, release) in &after.releases {
            for (index, entry) in
                release.entries.iter().enumerate().filter(|(_, entry)| entry.subject == subject)
            {
                let old = before.releases.get(sequence).map(|release| release.entries[index].state);
                if done.contains(&entry.state) && old.is_none_or(|old| !done.contains(&old)) {
                    digests.insert(entry.digest.clone());
                }
            }
        }
        assert_eq!(digests.len(), 1, "one entry is committed at a time");
        let digest = digests.pop_first().unwrap();
        assert!(self.fired.insert(digest.clone()), "an entry fires once");
        let now = self.time_of(after);
        let plan = self.live(chain, before, &digest, &[EntryState::Approved], now);
        let entry = plan.entries.iter().find(|entry| plan.entry_digest(entry) == digest).unwrap();
        let intent = self.intent(&before.installation.seen.main);
        let view = before.view();
        let at = |commit: &str| -> Result<Rc<Intent>, String> { Ok(self.intent(commit)) };
        let planner = Planner { intent: &intent, view: &view, at: &at };
        let subject: Subject = subject.parse().unwrap();
        let again = planner.entry(&subject, entry.operation()).unwrap().expect("it is still to be done");
        assert_eq!(&again, entry, "what is committed is what main says");
        if let Entry::Machine(_) = entry {
            let tip = self.governance(&before.installation.seen.main).digest.clone();
            assert_eq!(tip, before.installation.governed.digest, "machines wait for governance");
        }
    }

    fn intent(&self, commit: &str) -> Rc<Intent> {
        Rc::new(self.world.intent_of(commit.parse().unwrap()).unwrap())
    }

    fn time_of(&self, after: &Snapshot) -> i64 {
        self.world.repo.commit(after.commit).unwrap().committer.seconds
    }

    /// Somebody who may approve approved this entry, and nothing took it back.
    fn live(
        &mut self,
        chain: &Chain,
        before: &Snapshot,
        digest: &str,
        states: &[EntryState],
        now: i64,
    ) -> Plan {
        let governance = self.governance(&before.installation.governed.commit);
        let (denied, revoked) = (chain.denied(), chain.revoked());
        let place = Place {
            repository: &before.installation.repository,
            shard: &before.installation.shard,
            epoch: &before.installation.epoch,
        };
        let carries = |release: &&Release| {
            release.entries.iter().any(|entry| entry.digest == digest && states.contains(&entry.state))
        };
        for release in
            before.releases.values().filter(carries).filter(|release| release.expires.as_second() > now)
        {
            let (plan, statement) = before.release_files(release.sequence).unwrap();
            let approval = Approval::parse_kept(&statement).unwrap().unwrap();
            assert_eq!(bronzeward_intent::canonical::sha256(&plan), approval.statement.plan);
            let signed = approval.verify(place).unwrap();
            let counts = signed.iter().any(|one| {
                let owner = governance.signers.owner(&one.key);
                !denied.contains(fingerprint(&one.key).as_str())
                    && !revoked.contains(one.id.as_str())
                    && owner == Some(one.approver.as_str())
                    && governance.may(&one.approver, ActorRole::Approver)
            });
            if counts {
                return Plan::parse(&plan).unwrap();
            }
        }
        panic!("no live approval carries {digest}");
    }
}

fn count(status: &bronzeward_state::Status) -> usize {
    status.operation.as_ref().map_or(0, |operation| operation.attempts.len())
}

fn after_time(_: &Snapshot, status: &bronzeward_state::Status) -> i64 {
    status.operation.as_ref().unwrap().last_attempt().unwrap().started.as_second()
}
