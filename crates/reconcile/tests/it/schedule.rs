//! Random schedules of everything that people, nodes, hosts and clocks do, with checkers that read the chain alone.
//!
//! `BRONZEWARD_SCHEDULES` sets how many, `BRONZEWARD_SEED` where they begin; a failure prints its seed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bronzeward_compile::plan::{Entry, Plan, Subject};
use bronzeward_compile::planner::Planner;
use bronzeward_git::sign::fingerprint;
use bronzeward_git::{Oid, TreeEdit};
use bronzeward_intent::{ActorRole, Governance, Intent};
use bronzeward_reconcile::trouble::Trouble;
use bronzeward_secrets::Label;
use bronzeward_state::approval::{Approval, Place};
use bronzeward_state::chain::{Chain, ChainError};
use bronzeward_state::{EntryState, Release, Snapshot};

use crate::fakes::{PushFault, SendFault};
use crate::world::{Approved, Merge, REPOSITORY, STATE, Saying, W1, World, label};

const W2: &str = "10.0.0.12:50000";
const WORKERS: [(&str, &str); 2] = [("w1", W1), ("w2", W2)];

/// splitmix64: small, and the same everywhere.
pub struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

struct Run {
    world: World,
    dice: Dice,
    /// What happened, for whoever reads a failure.
    story: String,
    /// Approvals that were made: some pushed, some kept back.
    approvals: Vec<Approved>,
    /// Every configuration that a node ever held.
    held: BTreeMap<&'static str, Vec<Vec<u8>>>,
    denied: bool,
}

impl Run {
    fn new(seed: u64) -> Run {
        let world = World::adopted_three(W2);
        Run {
            world,
            dice: Dice(seed),
            story: String::new(),
            approvals: Vec::new(),
            held: BTreeMap::new(),
            denied: false,
        }
    }

    fn tell(&mut self, text: &str) {
        writeln!(self.story, "  {text}").unwrap();
    }

    fn approver(&mut self) -> bool {
        // ann, or bob
        self.dice.one_in(2)
    }

    fn say(&mut self, plan: Plan, head: Oid) -> Approved {
        let ann = self.approver();
        let minutes = self.dice.of(&[1, 20, 600, 6000]);
        let saying = Saying { expires: Duration::from_secs(60 * minutes), ..Saying::default() };
        let who = if ann { &self.world.ann } else { &self.world.bob };
        let approved = self.world.say(who, plan, head, &saying);
        self.approvals.push(approved.clone());
        approved
    }

    fn edits(&mut self) -> Vec<TreeEdit> {
        let (machine, _) = self.dice.of(&WORKERS);
        let value = self.dice.of(&["a", "b", "c"]);
        self.tell(&format!("{machine} to {value}"));
        self.world.fragments(machine, &[(&format!("zone-{machine}"), &label("zone", value))])
    }

    fn act(&mut self) {
        match self.dice.below(20) {
            0..=4 => {
                let how = self.dice.of(&[Merge::Signed, Merge::Button, Merge::Squash]);
                self.tell(&format!("merge {how:?}"));
                let edits = self.edits();
                let head = self.world.draft(&self.world.ann, &edits);
                let plan = self.world.plan_tree(self.world.merged_tree(head));
                let approved = self.say(plan, head);
                if self.dice.one_in(4) {
                    self.tell("the approval is kept back");
                    let tree = self.world.merged_tree(head);
                    let merge = self.world.write_tree(tree, "Merge\n", None, &[self.world.main(), head]);
                    self.world.push_main(merge);
                } else {
                    self.world.merge_with(&self.world.bob, head, how, &approved);
                }
            }
            5 => {
                self.tell("publish");
                let edits = self.edits();
                self.world.publish(Some(&self.world.mallory), &edits);
            }
            6 => {
                self.tell("approve main");
                let main = self.world.main();
                let plan = self.world.plan_tree(self.world.repo.commit(main).unwrap().tree);
                let approved = self.say(plan, main);
                self.world.push_approval(&self.world.ann, &approved);
            }
            7 => {
                if let Some(at) = (!self.approvals.is_empty()).then(|| self.dice.below(self.approvals.len()))
                {
                    self.tell("an old approval comes out");
                    let approved = self.approvals[at].clone();
                    self.world.push_approval(&self.world.mallory, &approved);
                }
            }
            8 => {
                let scope = self.dice.of(&["all", "home/*", "home/w1", "home/w2"]);
                self.tell(&format!("freeze {scope}"));
                self.world.freeze(&self.world.mallory, scope);
            }
            9 => self.unfreeze(),
            10 => {
                if let Some(at) = (!self.approvals.is_empty()).then(|| self.dice.below(self.approvals.len()))
                {
                    self.tell("revoke");
                    let id = self.approvals[at].id.clone();
                    self.world.revoke(&self.world.ann, &id);
                }
            }
            11 => self.governance(),
            12 | 13 => self.drift(),
            14 => self.back(),
            15 => self.close_drift(),
            16 | 17 => self.fault(),
            18 => {
                let seconds = self.dice.of(&[1, 40, 400, 4000]);
                self.tell(&format!("{seconds} s pass"));
                self.world.clock.advance(Duration::from_secs(seconds));
            }
            _ => {
                if self.dice.one_in(8) && !self.denied {
                    self.tell("deny bob");
                    self.denied = true;
                    self.world.deny(&self.world.ann, &self.world.bob.fingerprint());
                } else if self.dice.one_in(2) {
                    self.tell("restart");
                    self.world.restart();
                } else {
                    self.tell("restart with an empty disk");
                    self.world.restart_empty();
                }
            }
        }
    }

    fn unfreeze(&mut self) {
        for scope in ["all", "home/*", "home/w1", "home/w2"] {
            self.world.unfreeze(&self.world.ann, scope);
        }
        self.tell("unfreeze");
    }

    fn governance(&mut self) {
        let more = self.dice.of(&["", "", "defaults: {maxAttempts: 3}\n", "defaults: {expires: 1h}\n"]);
        let file = self.world.repository_with("{configuration: 1, governance: 1}", "allowed", more);
        self.tell(&format!("governance {more:?}"));
        self.world.publish(Some(&self.world.mallory), &[TreeEdit::write("bronzeward.yaml", file)]);
    }

    fn drift(&mut self) {
        let (machine, endpoint) = self.dice.of(&WORKERS);
        let value = self.dice.of(&["r7", "r8", "r9"]);
        self.tell(&format!("{machine} drifts to {value}"));
        self.world.nodes.with(endpoint, |node| {
            let text = String::from_utf8(node.bytes.clone()).unwrap();
            let at = text.find("rack: ").unwrap() + 6;
            node.bytes = format!("{}{value}{}", &text[..at], &text[at + 2..]).into_bytes();
        });
    }

    /// A node is put back to what is Applied.
    fn back(&mut self) {
        let (machine, endpoint) = self.dice.of(&WORKERS);
        let applied = self.world.status(machine).applied.unwrap().bytes;
        let known =
            self.held.get(machine).into_iter().flatten().find(|bytes| digest(&self.world, bytes) == applied);
        if let Some(bytes) = known.cloned() {
            self.tell(&format!("{machine} is put back"));
            self.world.nodes.with(endpoint, |node| node.bytes = bytes);
        }
    }

    fn close_drift(&mut self) {
        let (machine, endpoint) = self.dice.of(&WORKERS);
        let status = self.world.status(machine);
        let Some(drift) = status.open_drift.filter(|_| status.operation.is_none()) else { return };
        if self.dice.one_in(2) && status.applied.is_some_and(|applied| applied.composed.is_some()) {
            self.tell(&format!("revert {machine}"));
            let plan = self.world.revert_plan(machine);
            let approved = self.say(plan, self.world.main());
            self.world.push_approval(&self.world.ann, &approved);
        } else {
            self.tell(&format!("adopt {machine}"));
            let edits = self.world.import(machine, endpoint, Some(drift.sequence));
            let head = self.world.draft(&self.world.ann, &edits);
            let plan = self.world.plan_tree(self.world.merged_tree(head));
            let approved = self.say(plan, head);
            self.world.merge_with(&self.world.ann, head, Merge::Signed, &approved);
        }
    }

    fn fault(&mut self) {
        let (machine, endpoint) = self.dice.of(&WORKERS);
        match self.dice.below(5) {
            0 | 1 => {
                let fault = self.dice.of(&[
                    SendFault::Unreachable,
                    SendFault::Reject,
                    SendFault::Busy,
                    SendFault::LostLanded,
                    SendFault::LostGone,
                    SendFault::AcceptedOther,
                    SendFault::AcceptedNothing,
                ]);
                self.tell(&format!("{machine}: next send is {fault:?}"));
                self.world.nodes.with(endpoint, |node| node.faults.push_back(fault));
            }
            2 => {
                let reachable = self.world.nodes.with(endpoint, |node| {
                    node.reachable = !node.reachable;
                    node.reachable
                });
                self.tell(&format!("{machine}: reachable {reachable}"));
            }
            3 => {
                let fault = match self.dice.below(3) {
                    0 => PushFault::LostLanded,
                    1 => PushFault::LostGone,
                    _ => PushFault::Slow(Duration::from_secs(20)),
                };
                for _ in 0..self.dice.below(3) {
                    self.world.faults.push(PushFault::Slow(Duration::ZERO));
                }
                self.tell("a push goes wrong");
                self.world.faults.push(fault);
            }
            _ => {
                let down = self.dice.one_in(2);
                self.tell(&format!("the remote is down: {down}"));
                self.world.faults.down(down);
            }
        }
    }

    fn tick(&mut self) {
        if self.dice.one_in(4) {
            let step = 1 + self.dice.below(14);
            self.tell(&format!("a crash at step {step}"));
            self.world.steps.crash_at(step);
        }
        let sweep = self.dice.one_in(2);
        match self.world.tick_due(sweep) {
            Ok(outcome) => {
                let line = format!("ticked: {} published, {:?}", outcome.published, outcome.holds);
                self.tell(&line);
            }
            Err(Trouble::Retry(why)) => self.tell(&format!("ticked: {why}")),
            Err(trouble @ Trouble::Halt { .. }) => panic!("{trouble}"),
        }
        self.world.steps.count_again();
        for (machine, endpoint) in WORKERS {
            let bytes = self.world.nodes.bytes(endpoint);
            let held = self.held.entry(machine).or_default();
            if held.last() != Some(&bytes) {
                held.push(bytes);
            }
        }
    }

    /// Everything works again; what is approved and unchanged must go.
    fn heal(&mut self) {
        self.tell("everything heals");
        self.world.faults.heal();
        self.world.steps.count_again();
        self.unfreeze();
        let governed = self.world.state().installation.governed.commit.parse().unwrap();
        let file = self.world.repo.tree_of(governed).unwrap().read("bronzeward.yaml").unwrap().unwrap();
        self.world.publish(Some(&self.world.ann), &[TreeEdit::write("bronzeward.yaml", file)]);
        for (_, endpoint) in WORKERS {
            self.world.nodes.with(endpoint, |node| {
                node.faults.clear();
                node.reachable = true;
            });
        }
        self.quiet();
        // what nobody can settle from outside is put back by hand, as the message asks
        for (machine, endpoint) in WORKERS {
            let Some(operation) = self.world.status(machine).operation else { continue };
            let held = self.held.get(machine).into_iter().flatten();
            let found = held
                .into_iter()
                .find(|bytes| digest(&self.world, bytes) == operation.evidence.bytes)
                .cloned();
            self.tell(&format!("{machine} is put back by hand"));
            self.world.nodes.with(endpoint, |node| node.bytes = found.unwrap());
            self.quiet();
        }
        let left = self.left();
        assert!(left.is_empty(), "approved, and not done: {left:?}, {:?}", self.world.last);
        for (machine, endpoint) in WORKERS {
            assert_eq!(self.world.status(machine).operation, None, "{:?}", self.world.last);
            if let Some(drift) = self.world.status(machine).open_drift {
                let head = self
                    .world
                    .draft(&self.world.ann, &self.world.import(machine, endpoint, Some(drift.sequence)));
                self.world.merge(&self.world.ann, head, Merge::Signed);
                self.quiet();
            }
            let value = format!("final-{machine}");
            let edits =
                self.world.fragments(machine, &[(&format!("zone-{machine}"), &label("zone", &value))]);
            let head = self.world.draft(&self.world.ann, &edits);
            self.world.merge(&self.world.ann, head, Merge::Signed);
            self.quiet();
            let text = String::from_utf8(self.world.nodes.bytes(endpoint)).unwrap();
            assert!(text.contains(&value), "{machine}: {:?}", self.world.last);
            assert_eq!(self.world.status(machine).open_drift, None);
        }
    }

    fn quiet(&mut self) {
        self.world.quiet();
        let line = format!("quiet: {:?}", self.world.last);
        self.tell(&line);
    }

    fn left(&self) -> Vec<String> {
        let releases = self.world.state().releases;
        let entries = releases.values().flat_map(|release| &release.entries);
        let open = entries.filter(|entry| entry.state == EntryState::Approved);
        open.map(|entry| entry.subject.clone())
            .filter(|subject| !self.world.last.holds.get(subject).is_some_and(|why| is_fair(why)))
            .collect()
    }
}

/// Why an approved entry may wait although nothing is broken: an earlier failure, or an adoption of what runs no more.
fn is_fair(why: &str) -> bool {
    why.contains("rollout is halted") || (why.starts_with("drift ") && why.ends_with(" is open"))
}

fn digest(world: &World, bytes: &[u8]) -> String {
    world.key.digest(Label::Bytes, REPOSITORY, "home", "", bytes)
}

// ---- checkers: they read the chain and what the nodes received, and nothing of the engine

struct Checker<'a> {
    world: &'a World,
    governances: BTreeMap<String, Arc<Governance>>,
    /// Digests of entries that were committed.
    fired: BTreeSet<String>,
    /// For every machine, the digests of bytes, one for each recorded attempt.
    attempts: BTreeMap<String, Vec<String>>,
}

impl Checker<'_> {
    fn run(world: &World) {
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

pub fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn whatever_happens_the_rules_hold() {
    let (first, many) = (setting("BRONZEWARD_SEED", 1), setting("BRONZEWARD_SCHEDULES", 12));
    for seed in first..first + many {
        let mut run = Run::new(seed);
        let result = catch_unwind(AssertUnwindSafe(|| {
            for _ in 0..30 {
                run.act();
                run.tick();
            }
            Checker::run(&run.world);
            run.heal();
            Checker::run(&run.world);
        }));
        if let Err(payload) = result {
            println!("seed {seed}\n{}", run.story);
            resume_unwind(payload);
        }
    }
}
