//! The engine on its disk, and what is there after it.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use bronzeward_compile::artifact::Secrets;
use bronzeward_compile::compose;
use bronzeward_git::Repo;
use bronzeward_git::sign::{KeySigner, Signer};
use bronzeward_intent::Files;
use bronzeward_reconcile::disk::{Disk, DiskError};
use bronzeward_reconcile::engine::{Due, Engine, Outcome, Setup, World as Parts};
use bronzeward_reconcile::trouble::Trouble;
use bronzeward_state::Status;
use ssh_key::PrivateKey;

use super::World;
use crate::fakes::{Crash, FaultyRemote};

impl World {
    pub fn setup(&self) -> Setup {
        Setup {
            shard: "default".into(),
            main: "main".into(),
            anchor: self.anchor,
            at_least: self.genesis,
            root_keys: vec![self.root.signer.public_key().key_data().clone()],
            denied_keys: Vec::new(),
            owner: self.owner.clone(),
            author: "reconciler@home".into(),
        }
    }

    fn remote(&self, is_state: bool) -> FaultyRemote {
        let url = format!("file://{}", self.path("remote.git").display());
        match self.shared {
            true => FaultyRemote::shared(&self.repo, &self.faults, &self.steps, &self.clock, is_state),
            false => FaultyRemote::git(&url, &self.faults, &self.steps, &self.clock, is_state),
        }
    }

    pub fn open(&self, setup: Setup, disk: &str) -> Engine {
        let folder = self.path(disk);
        let disk = unlocked(&folder);
        let objects = disk.repository().join("objects");
        if self.shared && !objects.is_symlink() {
            Repo::open_or_init_bare(&disk.repository()).unwrap();
            std::fs::remove_dir_all(&objects).unwrap();
            std::os::unix::fs::symlink(self.path("remote.git/objects"), &objects).unwrap();
        }
        let parts = Parts {
            config: Box::new(self.remote(false)),
            state: Box::new(self.remote(true)),
            nodes: Box::new(self.nodes.clone()),
            clock: Box::new(self.clock.clone()),
            signer: KeySigner::new(PrivateKey::from_openssh(&self.reconciler.private).unwrap()),
            identity: self.reconciler.identity(),
        };
        Engine::open(setup, parts, disk).unwrap()
    }

    /// Kills the engine; the next tick starts another on the same disk.
    pub fn restart(&mut self) {
        self.engine = None;
    }

    /// Kills the engine and loses its disk.
    pub fn restart_empty(&mut self) {
        self.engine = None;
        self.disk.push('x');
    }

    /// One tick that looks at everything. A crash kills the engine and is no error of the test.
    pub fn try_tick(&mut self) -> Result<Outcome, Trouble> {
        self.tick_due(true)
    }

    pub fn tick_due(&mut self, sweep: bool) -> Result<Outcome, Trouble> {
        let mut engine = self.engine.take().unwrap_or_else(|| self.open(self.setup(), &self.disk));
        let due = Due { sweep, ..Due::default() };
        match catch_unwind(AssertUnwindSafe(|| engine.tick(&due))) {
            Ok(result) => {
                self.engine = Some(engine);
                result
            }
            Err(payload) if payload.is::<Crash>() => Err(Trouble::Retry("crashed".into())),
            Err(payload) => resume_unwind(payload),
        }
    }

    pub fn tick(&mut self) -> Outcome {
        let outcome = self.try_tick().unwrap_or_else(|trouble| panic!("{trouble}"));
        self.last = outcome.clone();
        outcome
    }

    /// Ticks until nothing happens and nothing waits for a time, moving the clock as far as the engine asks for.
    pub fn quiet(&mut self) -> Outcome {
        for _ in 0..60 {
            let outcome = match self.try_tick() {
                Ok(outcome) => outcome,
                // a push whose answer was lost is looked at again in the next tick
                Err(Trouble::Retry(_)) => {
                    self.clock.advance(Duration::from_secs(15));
                    continue;
                }
                Err(trouble) => panic!("{trouble}"),
            };
            self.last = outcome.clone();
            match outcome.again_in {
                None if outcome.published == 0 => return outcome,
                Some(wait) => self.clock.advance(wait.max(Duration::from_secs(15))),
                None => {}
            }
        }
        self.last.clone()
    }

    pub fn halt(&mut self) -> &'static str {
        match self.try_tick() {
            Err(Trouble::Halt { code, .. }) => code,
            other => panic!("expected a halt, not {other:?}"),
        }
    }

    // ---- what is there now

    pub fn status(&self, machine: &str) -> Status {
        self.state().status("home", machine)
    }

    pub fn log(&self, machine: &str) -> Vec<bronzeward_state::LogEntry> {
        self.state().log("home", machine).unwrap()
    }

    pub fn kinds(&self, machine: &str) -> Vec<&'static str> {
        self.log(machine).iter().map(|entry| entry.kind.as_str()).collect()
    }

    pub fn has_kind(&self, machine: &str, kind: &str) -> bool {
        self.kinds(machine).contains(&kind)
    }

    pub fn sends(&self) -> Vec<crate::fakes::Send> {
        self.nodes.sends()
    }

    /// Why the last accepted or refused approval was refused.
    pub fn refusal(&self) -> Option<String> {
        self.state().releases.values().next_back().and_then(|release| release.refused.clone())
    }

    /// The state of the last release's entry for a subject.
    pub fn entry_state(&self, subject: &str) -> Option<(&'static str, Option<String>)> {
        self.state()
            .releases
            .values()
            .rev()
            .find_map(|release| release.entries.iter().find(|entry| entry.subject == subject))
            .map(|entry| (entry.state.as_str(), entry.detail.clone()))
    }

    /// What main composes for a machine, with the secrets in it.
    pub fn wanted(&self, machine: &str) -> Vec<u8> {
        let main = self.main();
        let intent = self.intent_of(main).unwrap();
        let files = Files::from_tree(&self.repo.tree_of(main).unwrap()).unwrap();
        let (cluster, machine) = ("home".parse().unwrap(), machine.parse().unwrap());
        let composed = compose(&intent, &cluster, &machine).unwrap();
        let read = |path: &str| files.get(path).map(<[u8]>::to_vec);
        let identity = self.reconciler.identity();
        let secrets =
            Secrets { intent: &intent, cluster: &cluster, read: &read, identity: &identity, key: &self.key };
        secrets.artifact(&composed).unwrap().bytes.to_vec()
    }

    /// Somebody changes a node behind our back.
    pub fn patch_node(&self, endpoint: &str, from: &str, to: &str) {
        self.nodes.with(endpoint, |node| {
            let text = String::from_utf8(node.bytes.clone()).unwrap();
            assert!(text.contains(from), "{text}");
            node.bytes = text.replace(from, to).into_bytes();
        });
    }
}

/// The disk of an engine that is gone. Another test of this process may be starting a program just now, whose copy of
/// the lock lives until that program runs.
fn unlocked(folder: &Path) -> Disk {
    let start = Instant::now();
    loop {
        match Disk::open(folder) {
            Err(DiskError::Busy(_)) if start.elapsed() < Duration::from_secs(60) => std::thread::yield_now(),
            disk => return disk.unwrap(),
        }
    }
}
