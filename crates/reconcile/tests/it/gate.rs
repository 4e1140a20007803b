//! The rules alone, on values: many more random schedules than a whole engine could run.
//!
//! A model of one cluster: what main says of two workers, what is applied, drift, approvals. The engine's own functions
//! follow and decide; the checker keeps its own books.

use std::collections::{BTreeMap, BTreeSet};

use bronzeward_compile::plan::{
    AppliedBinding, Entry, Expects, MachineEntry, Mode, Operation, Overwrites, Reboot, Target,
};
use bronzeward_intent::{Files, Governance};
use bronzeward_reconcile::gate::decide::{Gate, Hold};
use bronzeward_reconcile::gate::follow::follow;
use bronzeward_state::model::{Approver, OpenDrift};
use bronzeward_state::{EntryState, Release, ReleaseEntry, Status};
use jiff::{SignedDuration, Timestamp};

use crate::schedule::{Dice, setting};
use crate::world::World;

const PEOPLE: [&str; 3] = ["ann@example.org", "bob@example.org", "eve@example.org"];

/// One machine of the model.
#[derive(Clone)]
struct Machine {
    wanted: u8,
    applied: u8,
    revision: u64,
    turn: u64,
    drift: Option<(u64, u8)>,
    frozen: bool,
}

struct Model {
    dice: Dice,
    now: Timestamp,
    sequence: u64,
    machines: Vec<Machine>,
    releases: Vec<Release>,
    /// The entry of every release, by digest.
    entries: BTreeMap<String, Entry>,
    denied: BTreeSet<&'static str>,
    revoked: BTreeSet<String>,
    fired: BTreeSet<String>,
    governance_current: bool,
    sent: usize,
}

fn name(index: usize) -> String {
    format!("w{index}")
}

impl Model {
    fn new(seed: u64) -> Model {
        let machine = Machine { wanted: 0, applied: 0, revision: 1, turn: 0, drift: None, frozen: false };
        Model {
            dice: Dice(seed),
            now: "2026-12-01T12:00:00Z".parse().unwrap(),
            sequence: 1,
            machines: vec![machine.clone(), machine],
            releases: Vec::new(),
            entries: BTreeMap::new(),
            denied: BTreeSet::new(),
            revoked: BTreeSet::new(),
            fired: BTreeSet::new(),
            governance_current: true,
            sent: 0,
        }
    }

    /// What would be done to a machine now.
    fn entry(&self, index: usize, revert: bool) -> Option<Entry> {
        let machine = &self.machines[index];
        let (operation, composed) = match (revert, machine.drift) {
            (true, None) => return None,
            (true, Some(_)) => (Operation::Revert, machine.applied),
            (false, _) if machine.wanted == machine.applied => return None,
            (false, _) => (Operation::Apply, machine.wanted),
        };
        let meaning = machine.drift.map_or(machine.applied, |(_, meaning)| meaning);
        Some(Entry::Machine(Box::new(MachineEntry {
            cluster: "home".into(),
            machine: name(index),
            identity: bronzeward_intent::cluster::Identity { node: name(index), uuid: None },
            target: Target {
                endpoint: "10.0.0.1:50000".into(),
                platform: "metal".into(),
                role: "worker".into(),
                contract: "v1.13".into(),
            },
            operation,
            mode: Some(Mode::NoReboot),
            wave: 0,
            turn: machine.turn,
            composed: Some(format!("sha256:{composed}")),
            references: Vec::new(),
            applied: Some(AppliedBinding {
                revision: machine.revision,
                composed: Some(format!("sha256:{}", machine.applied)),
                references: String::new(),
            }),
            expects: Some(Expects { meaning: format!("m{meaning}") }),
            overwrites: machine.drift.map(|(drift, _)| Overwrites { drift }),
            reboot: Reboot::default(),
            risks: Vec::new(),
        })))
    }

    fn statuses(&self) -> Vec<Status> {
        let status = |(index, machine): (usize, &Machine)| {
            let mut status = Status::new("home", &name(index));
            status.turn = machine.turn;
            status.open_drift = machine.drift.map(|(sequence, meaning)| OpenDrift {
                sequence,
                opened: self.now,
                bytes: format!("b{meaning}"),
                meaning: format!("m{meaning}"),
            });
            status
        };
        self.machines.iter().enumerate().map(status).collect()
    }

    fn approve(&mut self, index: usize, revert: bool) {
        let Some(entry) = self.entry(index, revert) else { return };
        let who = PEOPLE[self.dice.below(3)];
        let minutes = self.dice.of(&[1_i64, 30, 3000]);
        self.sequence += 1;
        let digest = entry.digest("r", "s", "e");
        self.entries.insert(digest.clone(), entry);
        let contributors =
            if self.dice.one_in(3) { vec![PEOPLE[self.dice.below(3)].to_owned()] } else { Vec::new() };
        self.releases.push(Release {
            format: 1,
            sequence: self.sequence,
            approvals: vec![format!("id{}", self.sequence)],
            found: String::new(),
            plan: String::new(),
            basis: Default::default(),
            accepted: self.now,
            expires: self.now + SignedDuration::from_mins(minutes),
            approvers: vec![Approver {
                principal: who.into(),
                key: who.into(),
                approval: format!("id{}", self.sequence),
            }],
            refused: None,
            entries: vec![ReleaseEntry {
                subject: format!("home/{}", name(index)),
                operation: if revert { "revert".into() } else { "apply".into() },
                digest,
                wave: Some(0),
                state: EntryState::Waiting,
                detail: None,
                matched: None,
                contributors,
            }],
        });
    }

    fn act(&mut self) {
        let index = self.dice.below(2);
        match self.dice.below(12) {
            0..=2 => {
                self.machines[index].wanted = self.dice.below(3) as u8;
                // a merge is one commit: everything is compared with it
                self.follow();
                self.approve(index, false);
            }
            3 => self.approve(index, false),
            4 => self.approve(index, true),
            5 => {
                self.sequence += 1;
                let meaning = 10 + self.dice.below(3) as u8;
                let sequence = self.machines[index].drift.map_or(self.sequence, |(sequence, _)| sequence);
                self.machines[index].drift = Some((sequence, meaning));
            }
            6 => self.machines[index].drift = None,
            7 => self.machines[index].frozen = !self.machines[index].frozen,
            8 => self.now += SignedDuration::from_mins(self.dice.of(&[1, 60, 4000])),
            9 => {
                if let Some(at) = (!self.releases.is_empty()).then(|| self.dice.below(self.releases.len())) {
                    self.revoked.insert(self.releases[at].approvals[0].clone());
                }
            }
            10 if self.dice.one_in(10) => drop(self.denied.insert(PEOPLE[self.dice.below(2)])),
            10 => self.governance_current = !self.governance_current,
            _ => {}
        }
        self.follow();
    }

    fn follow(&mut self) {
        let current: Vec<[Option<Entry>; 2]> =
            (0..2).map(|index| [self.entry(index, false), self.entry(index, true)]).collect();
        for release in &mut self.releases {
            for entry in release.entries.iter_mut().filter(|entry| entry.state.is_open()) {
                let index = usize::from(entry.subject.ends_with('1'));
                let now = &current[index][usize::from(entry.operation == "revert")];
                let before = entry.state;
                let followed = follow(before, &self.entries[&entry.digest], now.as_ref());
                let equal = now.as_ref().is_some_and(|now| now.digest("r", "s", "e") == entry.digest);
                assert_eq!(followed.matched, equal, "matched means equal, byte for byte");
                assert_eq!(followed.state == EntryState::Approved, equal);
                entry.state = followed.state;
            }
        }
    }

    /// Commits whatever goes, and checks it by books of its own.
    fn commit(&mut self, governance: &Governance, want: usize) {
        loop {
            let (statuses, releases) = (self.statuses(), self.releases.clone());
            let refs: Vec<&Status> = statuses.iter().collect();
            let release_refs: Vec<&Release> = releases.iter().collect();
            let frozen = |_: &str, machine: &str| {
                let index = usize::from(machine.ends_with('1'));
                self.machines[index].frozen.then_some(1)
            };
            let revoked: BTreeSet<&str> = self.revoked.iter().map(String::as_str).collect();
            let gate = Gate {
                governance,
                governance_current: self.governance_current,
                releases: &release_refs,
                statuses: &refs,
                frozen_by: &frozen,
                denied: &self.denied,
                revoked: &revoked,
                now: self.now,
            };
            let mut go = None;
            for release in &releases {
                let entry = &release.entries[0];
                let verdict = gate.decide(release, entry, &self.entries[&entry.digest]);
                let (lets, expected) = (verdict.is_ok(), self.expected(&releases, release, want));
                assert_eq!(lets, expected, "{verdict:?} {release:?}");
                if let Err(Hold::Unsupported(what)) = verdict {
                    panic!("{what}");
                }
                if lets && go.is_none() {
                    go = Some(entry.digest.clone());
                }
            }
            let Some(digest) = go else { return };
            assert!(self.fired.insert(digest.clone()), "an entry fires once");
            self.sent += 1;
            let index = usize::from(self.entries[&digest].as_machine().unwrap().machine.ends_with('1'));
            let composed = self.entries[&digest].as_machine().unwrap().composed.clone().unwrap();
            let machine = &mut self.machines[index];
            machine.turn += 1;
            machine.revision += 1;
            machine.drift = None;
            machine.applied = composed.trim_start_matches("sha256:").parse().unwrap();
            for release in &mut self.releases {
                for entry in release.entries.iter_mut().filter(|entry| entry.digest == digest) {
                    if entry.state == EntryState::Approved {
                        entry.state = EntryState::Completed;
                    }
                }
            }
            self.follow();
        }
    }

    /// The rule in other words: live, equal to what is to be done now, enough distinct people, nothing closed.
    fn expected(&self, releases: &[Release], release: &Release, want: usize) -> bool {
        let entry = &release.entries[0];
        let index = usize::from(entry.subject.ends_with('1'));
        let now = self.entry(index, entry.operation == "revert");
        let equal = now.is_some_and(|now| now.digest("r", "s", "e") == entry.digest);
        let people: BTreeSet<&str> = releases
            .iter()
            .filter(|other| {
                other.entries[0].digest == entry.digest && other.entries[0].state == EntryState::Approved
            })
            .filter(|other| other.expires > self.now && !self.revoked.contains(&other.approvals[0]))
            .flat_map(|other| {
                other.approvers.iter().map(|approver| (approver, &other.entries[0].contributors))
            })
            .filter(|(approver, mine)| {
                !mine.contains(&approver.key) && !self.denied.contains(approver.key.as_str())
            })
            .map(|(approver, _)| approver.principal.as_str())
            .collect();
        entry.state == EntryState::Approved
            && equal
            && release.expires > self.now
            && people.len() >= want
            && self.governance_current
            && !self.machines[index].frozen
    }

    /// Everything opens again; a fresh approval of what main says then goes.
    fn heal(&mut self, governance: &Governance, want: usize) {
        self.governance_current = true;
        self.denied.clear();
        for machine in &mut self.machines {
            machine.frozen = false;
        }
        // what was approved and still holds goes first
        self.follow();
        self.commit(governance, want);
        for index in 0..2 {
            self.machines[index].wanted = 7;
            self.follow();
            for who in PEOPLE {
                self.approve(index, false);
                let release = self.releases.last_mut().unwrap();
                release.approvers[0] = Approver {
                    principal: who.into(),
                    key: who.into(),
                    approval: release.approvals[0].clone(),
                };
                release.entries[0].contributors.clear();
            }
            self.follow();
            self.commit(governance, want);
            assert_eq!(self.machines[index].applied, 7);
        }
    }
}

fn governance(world: &World, want: usize) -> Governance {
    let tree = world.repo.tree_of(world.anchor).unwrap();
    let mut files = Files::from_tree(&tree).unwrap();
    let policy = world.repository_with(&format!("{{configuration: {want}, governance: 1}}"), "refused", "");
    files.insert("bronzeward.yaml", policy);
    Governance::load(&files).unwrap()
}

#[test]
fn the_gate_says_what_the_rule_says_in_every_schedule() {
    let world = World::new();
    let mut sent = 0;
    let many = setting("BRONZEWARD_GATE_SCHEDULES", 250);
    for want in [1, 2] {
        let governance = governance(&world, want);
        for seed in 0..many {
            let mut model = Model::new(seed * 2 + want as u64);
            for _ in 0..40 {
                model.act();
                model.commit(&governance, want);
            }
            sent += model.sent;
            model.heal(&governance, want);
        }
    }
    assert!(sent as u64 > many, "the schedules do something: {sent}");
}
