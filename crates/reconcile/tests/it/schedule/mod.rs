//! Random schedules of everything that people, nodes, hosts and clocks do, with checkers that read the chain alone.
//!
//! `BRONZEWARD_SCHEDULES` sets how many, `BRONZEWARD_SEED` where they begin; a failure prints its seed.

mod check;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use bronzeward_compile::plan::Plan;
use bronzeward_git::{Oid, TreeEdit};
use bronzeward_reconcile::trouble::Trouble;
use bronzeward_secrets::Label;
use bronzeward_state::EntryState;

use self::check::Checker;
use crate::fakes::{PushFault, SendFault};
use crate::world::{Approved, Merge, REPOSITORY, Saying, W1, World, label};

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
            0..=4 => self.change(),
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
            _ => self.restart(),
        }
    }

    /// A draft, approved and merged; at times the approval is kept back.
    fn change(&mut self) {
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

    fn restart(&mut self) {
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
