//! The reconciler: one tick reads the world, and does what is due, one transaction at a time.
//!
//! A tick is an ordered list of steps, each of which makes one thing true: the remotes are fetched, the chain is
//! verified, this process owns the shard, what `main` and people say is absorbed, what is in flight is settled, what
//! nodes run is judged, and what is approved goes. A step that published starts the list again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bronzeward_git::sign::{KeySigner, Signer, fingerprint};
use bronzeward_git::{Ident, Oid, Remote, Repo};
use bronzeward_intent::{ActorRole, Governance};
use bronzeward_secrets::AgeIdentity;
use bronzeward_state::log::LogKind;
use bronzeward_state::model::Owner;
use bronzeward_state::{APPROVALS, Chain, Snapshot, StateStore, StoreError, Transaction, branch};
use jiff::Timestamp;
use ssh_key::public::KeyData;

use crate::disk::Disk;
use crate::ports::{Clock, Nodes};
use crate::trees::Trees;
use crate::trouble::Trouble;

/// What does not change while the process runs.
pub struct Setup {
    /// The shard.
    pub shard: String,
    /// The branch of intent, as in `main`.
    pub main: String,
    /// The commit that is trusted as it is.
    pub anchor: Oid,
    /// The genesis, or a later state commit that must be in the chain.
    pub at_least: Oid,
    /// Root keys.
    pub root_keys: Vec<KeyData>,
    /// Fingerprints that are denied whatever the state says.
    pub denied_keys: Vec<String>,
    /// This process's own name.
    pub owner: String,
    /// Who signs state commits: the address in their author line.
    pub author: String,
}

/// The parts of the world that the reconciler touches.
pub struct World {
    /// The remote of intent.
    pub config: Box<dyn Remote>,
    /// The remote of state.
    pub state: Box<dyn Remote>,
    /// The nodes.
    pub nodes: Box<dyn Nodes>,
    /// The clock.
    pub clock: Box<dyn Clock>,
    /// The key that signs state.
    pub signer: KeySigner,
    /// The identity that reads secrets.
    pub identity: AgeIdentity,
}

/// What is due in this tick.
#[derive(Clone, Debug, Default)]
pub struct Due {
    /// Machines whose watch says that something changed.
    pub machines: BTreeSet<(String, String)>,
    /// Look at every machine.
    pub sweep: bool,
}

/// What a tick left.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// How many transactions were published.
    pub published: u32,
    /// When to come back at the latest, if something waits for a time.
    pub again_in: Option<Duration>,
    /// Why approved entries do not go: subject to reason.
    pub holds: BTreeMap<String, String>,
    /// Machines that could not be read.
    pub unreachable: BTreeMap<String, String>,
    /// What people should know: a code and a sentence.
    pub notices: BTreeSet<String>,
}

impl Outcome {
    /// Comes back after `wait`, or earlier.
    pub(crate) fn wait(&mut self, wait: Duration) {
        self.again_in = Some(self.again_in.map_or(wait, |old| old.min(wait)));
    }
}

/// The reconciler of one shard.
pub struct Engine {
    pub(crate) setup: Setup,
    pub(crate) world: World,
    pub(crate) repo: Repo,
    pub(crate) trees: Trees,
    pub(crate) disk: Disk,
    pub(crate) chain: Option<Chain>,
    pub(crate) fetched: Fetched,
    /// When each machine was last read, by the forward clock.
    pub(crate) read_at: BTreeMap<(String, String), Timestamp>,
    /// Does a sweep still have to find the nodes where the state says they are?
    pub(crate) closed: bool,
    owned: bool,
}

/// Where the remotes stand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fetched {
    pub(crate) main: Option<Oid>,
    pub(crate) approvals: BTreeMap<String, Oid>,
}

/// How many transactions one tick may publish before it comes back.
const STEPS_MAX: u32 = 200;

impl Engine {
    /// Opens the disk and the local objects.
    ///
    /// # Errors
    /// [`Trouble`] when the disk cannot be used.
    pub fn open(setup: Setup, world: World, disk: Disk) -> Result<Engine, Trouble> {
        let repo = Repo::open_or_init_bare(&disk.repository())?;
        let closed = !disk.kept().swept;
        Ok(Engine {
            trees: Trees::new(repo.clone()),
            setup,
            world,
            repo,
            disk,
            chain: None,
            fetched: Fetched::default(),
            read_at: BTreeMap::new(),
            closed,
            owned: false,
        })
    }

    /// Does what is due.
    ///
    /// # Errors
    /// [`Trouble`]; what was published stays published.
    pub fn tick(&mut self, due: &Due) -> Result<Outcome, Trouble> {
        let mut outcome = Outcome::default();
        let mut due = due.clone();
        self.fetch()?;
        loop {
            outcome.holds.clear();
            self.verify()?;
            let snapshot = self.snapshot()?;
            let step = self.own(&snapshot)?
                || self.absorb(&snapshot, &mut outcome)?
                || self.settle(&snapshot, &mut outcome)?
                || self.look(&snapshot, &mut due, &mut outcome)?
                || self.act(&snapshot, &mut outcome)?;
            if !step {
                break;
            }
            outcome.published += 1;
            if outcome.published >= STEPS_MAX {
                outcome.wait(Duration::ZERO);
                break;
            }
        }
        Ok(outcome)
    }

    /// The state as the last verified tip says it.
    ///
    /// # Errors
    /// [`Trouble`].
    pub fn snapshot(&self) -> Result<Snapshot, Trouble> {
        let chain = self.chain.as_ref().ok_or_else(|| Trouble::Retry("The state was not read yet".into()))?;
        Ok(Snapshot::read(&self.repo, chain.tip())?)
    }

    pub(crate) fn chain(&self) -> &Chain {
        self.chain.as_ref().expect("BUG: every step comes after verification")
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.world.clock.now()
    }

    pub(crate) fn store(&self) -> StateStore<'_> {
        StateStore { repo: &self.repo, remote: &*self.world.state, branch: branch(&self.setup.shard) }
    }

    fn fetch(&mut self) -> Result<(), Trouble> {
        let fetched = self.world.config.fetch(&self.repo, &["+refs/heads/*:refs/remotes/config/*"])?;
        let main = fetched.refs.get(&format!("refs/heads/{}", self.setup.main)).copied();
        let approvals = fetched
            .refs
            .into_iter()
            .filter_map(|(name, id)| Some((name.strip_prefix(APPROVALS)?.strip_prefix('/')?.to_owned(), id)))
            .collect();
        self.fetched = Fetched { main, approvals };
        Ok(())
    }

    /// Verifies the state chain to the remote's tip: from the genesis at the first time, then from the last tip.
    pub(crate) fn verify(&mut self) -> Result<(), Trouble> {
        let tip = self.store().fetch()?;
        if self.chain.is_none() {
            self.chain = Some(self.begin(tip)?);
        }
        let Engine { chain, repo, trees, .. } = self;
        let chain = chain.as_mut().expect("BUG: it was just made");
        let governance = |commit: &str| trees.governance(commit);
        chain.advance(repo, tip, &governance)?;
        if !chain.contains(self.setup.at_least) {
            let message = format!(
                "The state branch does not hold {}, which the settings name as `state.at_least`: somebody replaced it",
                self.setup.at_least
            );
            return Err(Trouble::halt("state-rewound", message));
        }
        self.disk.keep(|kept| kept.state = Some(tip.to_string()))?;
        self.check_own_key()
    }

    /// What a key may not sign would be a breach for everybody who verifies: nothing is written with it.
    fn check_own_key(&self) -> Result<(), Trouble> {
        let key = self.world.signer.public_key().key_data();
        let fingerprint = fingerprint(key);
        if self.denied().contains(fingerprint.as_str()) {
            let message =
                format!("This reconciler's key {fingerprint} is denied: give it another, approved one");
            return Err(Trouble::halt("reconciler-denied", message));
        }
        let governance = self.trees.governance(&self.chain().installation().governed.commit)?;
        if writes_state(&governance, key, self.now()) {
            return Ok(());
        }
        let message = format!("The governance in force gives the key {fingerprint} no role `reconciler` now");
        Err(Trouble::halt("reconciler-unauthorized", message))
    }

    fn begin(&self, tip: Oid) -> Result<Chain, Trouble> {
        let first = self.repo.first_parents(None, tip)?.and_then(|all| all.first().copied()).unwrap_or(tip);
        let chain = Chain::genesis(&self.repo, first, &self.setup.root_keys)?;
        let installation = chain.installation();
        if installation.governed.commit.parse::<Oid>().ok() != Some(self.setup.anchor)
            || installation.shard != self.setup.shard
        {
            let message = format!(
                "The genesis names the anchor {} and the shard `{}`; the settings name {} and `{}`",
                installation.governed.commit, installation.shard, self.setup.anchor, self.setup.shard
            );
            return Err(Trouble::halt("anchor-mismatch", message));
        }
        if let Some(seen) = self.disk.kept().state.as_deref().and_then(|seen| seen.parse::<Oid>().ok())
            && !self.repo.is_ancestor(seen, tip)?
        {
            let message =
                format!("The state branch went back: {tip} does not stand on {seen}, which was seen before");
            return Err(Trouble::halt("state-rewound", message));
        }
        Ok(chain)
    }

    /// Makes sure that this process owns the shard.
    fn own(&mut self, snapshot: &Snapshot) -> Result<bool, Trouble> {
        let owner = snapshot.installation.owner.clone();
        let generation = self.disk.kept().generation;
        match &owner {
            Some(owner) if owner.id != self.setup.owner => {
                let message = format!(
                    "The shard `{}` is owned by `{}` (generation {}); a second process takes over only when that is \
                     supported, which it is not yet: stop this one, or give it the same `owner` if it replaces the other",
                    self.setup.shard, owner.id, owner.generation
                );
                return Err(Trouble::halt("not-the-owner", message));
            }
            Some(owner) if generation == Some(owner.generation) => {
                self.owned = true;
                return Ok(false);
            }
            Some(owner) if generation.is_some() || self.owned => {
                let message = format!(
                    "Another process took the shard `{}` under the same name `{}` (generation {}): one of the two must go",
                    self.setup.shard, owner.id, owner.generation
                );
                return Err(Trouble::halt("fenced", message));
            }
            _ => {}
        }
        let next = owner.map_or(0, |owner| owner.generation) + 1;
        let mut transaction = Transaction::on(snapshot, self.now());
        transaction.installation().owner = Some(Owner { id: self.setup.owner.clone(), generation: next });
        transaction.kind(LogKind::TakenOver);
        transaction.say(&format!("`{}` takes the shard (generation {next})", self.setup.owner));
        if self.commit(transaction)? {
            self.disk.keep(|kept| kept.generation = Some(next))?;
        }
        Ok(true)
    }

    /// Writes and publishes. `false`: somebody was faster, and everything is to be judged again.
    pub(crate) fn commit(&self, transaction: Transaction) -> Result<bool, Trouble> {
        let now = transaction.now();
        let author = Ident {
            name: "Bronzeward".to_owned(),
            email: self.setup.author.clone(),
            seconds: now.as_second(),
            offset: 0,
        };
        let subject = transaction.subject().unwrap_or_default().to_owned();
        let committed = transaction.write(&self.repo, &author, &self.world.signer)?;
        match self.store().publish(committed) {
            Ok(()) => {
                tracing::info!("{}: {subject}", committed.sequence);
                Ok(true)
            }
            Err(StoreError::LostRace) => Ok(false),
            Err(err) => Err(err.into()),
        }
    }

    /// Fingerprints of keys that count nowhere.
    pub(crate) fn denied(&self) -> BTreeSet<&str> {
        let mut denied = self.chain().denied();
        denied.extend(self.setup.denied_keys.iter().map(String::as_str));
        denied
    }
}

/// May this key sign state commits?
pub(crate) fn writes_state(governance: &Governance, key: &KeyData, now: Timestamp) -> bool {
    governance
        .signers
        .principal(key, "git", now.as_second())
        .and_then(|who| governance.principal(who))
        .is_some_and(|principal| principal.has(ActorRole::Reconciler))
}
