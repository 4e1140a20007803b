//! Verifying the chain: signatures and transition rules, commit by commit from the genesis.
//!
//! A tip that breaks a rule is a breach; nothing is sent over it. What is verified once is kept in memory with what
//! the acts say, since the gate reads acts and not the projections made of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use bronzeward_compile::plan::Entry;
use bronzeward_git::allowed_signers::ROOT;
use bronzeward_git::sign::fingerprint;
use bronzeward_git::tree::{EntryKind, changed_paths};
use bronzeward_git::{CommitInfo, GitError, Oid, Repo};
use bronzeward_intent::{ActorRole, Governance};
use ssh_key::public::KeyData;

use crate::act::{Act, Scope};
use crate::message::StateMessage;
use crate::model::{Installation, InstallationMode};
use crate::snapshot::{self, INSTALLATION, SnapshotError};
use crate::steps::{Step, Wrong};

/// A rule that a commit breaks.
#[derive(Debug, thiserror::Error)]
#[error("The state commit {commit} breaks the chain: {rule}")]
pub struct Breach {
    /// The first commit that breaks a rule.
    pub commit: Oid,
    /// The rule.
    pub rule: Rule,
}

/// The rules of the chain.
#[derive(Debug, thiserror::Error)]
pub enum Rule {
    /// One parent, the commit before.
    #[error("it does not stand on the commit before it, alone")]
    Linear,
    /// The message is a state commit's.
    #[error("its message is no state commit's")]
    Message,
    /// The sequence number is one more than before, in the message and in the file.
    #[error("its sequence number is not {0}")]
    Sequence(u64),
    /// A key that may sign state commits signed it.
    #[error("it is not signed by a key that may write state")]
    Signer,
    /// A person adds one act and raises the sequence, nothing else.
    #[error("a person's commit changes `{0}`: it may add one act, and raise the sequence")]
    PersonsCommit(String),
    /// The reconciler writes everything but acts, and never changes what is add-only.
    #[error("a reconciler's commit may not change `{0}`")]
    ReconcilersCommit(String),
    /// Only regular files, at known paths.
    #[error("`{0}` is no regular file at a known path")]
    Path(String),
    /// Identity, shard and epoch stay.
    #[error("it changes the repository, the shard, the epoch or the mode")]
    Identity,
    /// A new owner raises the generation by one.
    #[error("it changes the owner without raising the generation by one")]
    Ownership,
    /// What was accepted stays as it is; only what becomes of its entries moves, and forward.
    #[error("it changes what `{0}` accepted, or wakes an entry that ended")]
    Release(String),
    /// An entry is committed once, carried by as many approvals as policy asks for.
    #[error("it commits an entry of {0} that the kept approvals do not carry, or leaves its turn")]
    Commitment(String),
    /// Turn, operation and Applied move only with a committed entry, and nothing is tried while frozen.
    #[error("`{0}` moves as no committed entry and no answer moves it")]
    Status(String),
    /// The seen tip and the acknowledged acts only go forward.
    #[error("it takes back what was seen of main or of the acts")]
    Seen,
    /// Governance moves only with a release that carries it.
    #[error("it changes the governance without an approved release")]
    Governance,
    /// A file cannot be read.
    #[error("a file in it cannot be read")]
    Unreadable(#[source] SnapshotError),
}

/// Why a chain could not be verified.
#[derive(Debug, thiserror::Error)]
pub enum ChainError {
    /// A rule is broken.
    #[error(transparent)]
    Breach(Box<Breach>),
    /// The tip does not stand on what was verified before: the branch was rewound or replaced.
    #[error("The state branch went back: {tip} does not stand on {seen}, which was seen before")]
    Rewound {
        /// The last commit that was verified.
        seen: Oid,
        /// The tip now.
        tip: Oid,
    },
    /// Objects are missing or cannot be read.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The governance in force at a commit cannot be read.
    #[error("The governance of the commit {commit} cannot be read")]
    Governance {
        /// The governed commit.
        commit: String,
        /// Why.
        source: Box<bronzeward_intent::Findings>,
    },
}

/// Gives the governance of a commit of the configuration repository.
pub type GovernanceAt<'a> = dyn Fn(&str) -> Result<Arc<Governance>, ChainError> + 'a;

/// An act as it counts: where it stands, who did it, and whether they may.
#[derive(Clone, Debug)]
pub struct CountedAct {
    /// The sequence number of its commit.
    pub sequence: u64,
    /// The act.
    pub act: Act,
    /// The principal, or `root`.
    pub who: String,
    /// Void acts change nothing and are logged as refused.
    pub allowed: bool,
}

/// A chain verified from its genesis to a tip.
#[derive(Clone, Debug)]
pub struct Chain {
    tip: Oid,
    installation: Installation,
    acts: Vec<CountedAct>,
    commits: Vec<Oid>,
    /// The latest time that a reconciler's commit claims: a later commit cannot claim an earlier one.
    clock: i64,
    root_keys: Vec<KeyData>,
    /// From which sequence number on which commit governs.
    governed: Vec<(u64, String)>,
}

impl Chain {
    /// Verifies the genesis: signed by a root key, naming this repository and shard.
    ///
    /// # Errors
    /// [`ChainError`].
    pub fn genesis(repo: &Repo, commit: Oid, root_keys: &[KeyData]) -> Result<Chain, ChainError> {
        let breach = |rule| ChainError::Breach(Box::new(Breach { commit, rule }));
        let info = repo.commit(commit)?;
        if !info.parents.is_empty() {
            return Err(breach(Rule::Linear));
        }
        if !info.signature.key().is_some_and(|key| root_keys.contains(key)) {
            return Err(breach(Rule::Signer));
        }
        let installation = read_installation(repo, &info).map_err(|err| breach(Rule::Unreadable(err)))?;
        let message = StateMessage::parse(&info.message).ok_or_else(|| breach(Rule::Message))?;
        if installation.sequence != 1 || message.sequence != 1 {
            return Err(breach(Rule::Sequence(1)));
        }
        let paths: Vec<String> = repo.tree(info.tree).list("")?.into_keys().collect();
        if paths != [INSTALLATION] || installation.owner.is_some() {
            return Err(breach(Rule::Path(paths.join(", "))));
        }
        Ok(Chain {
            tip: commit,
            root_keys: root_keys.to_vec(),
            governed: vec![(1, installation.governed.commit.clone())],
            installation,
            acts: Vec::new(),
            commits: vec![commit],
            clock: info.committer.seconds,
        })
    }

    /// Verifies everything from the last verified commit to a new tip.
    ///
    /// # Errors
    /// [`ChainError`]; the chain stays at the last sound commit.
    pub fn advance(
        &mut self,
        repo: &Repo,
        tip: Oid,
        governance_at: &GovernanceAt<'_>,
    ) -> Result<(), ChainError> {
        if tip == self.tip {
            return Ok(());
        }
        let rewound = || ChainError::Rewound { seen: self.tip, tip };
        if !repo.has(tip) {
            return Err(rewound());
        }
        let new = repo.first_parents(Some(self.tip), tip)?.ok_or_else(rewound)?;
        for commit in new {
            self.step(repo, commit, governance_at)?;
        }
        Ok(())
    }

    /// The last verified commit.
    pub fn tip(&self) -> Oid {
        self.tip
    }

    /// The installation at the tip.
    pub fn installation(&self) -> &Installation {
        &self.installation
    }

    /// Every act, in order.
    pub fn acts(&self) -> &[CountedAct] {
        &self.acts
    }

    /// Every commit, oldest first.
    pub fn commits(&self) -> &[Oid] {
        &self.commits
    }

    /// Is this commit part of the chain?
    pub fn contains(&self, commit: Oid) -> bool {
        self.commits.contains(&commit)
    }

    /// The scopes that are frozen, each with the sequence number of the act that froze it.
    pub fn frozen(&self) -> Vec<(Scope, u64)> {
        let mut out: Vec<(Scope, u64)> = Vec::new();
        for act in self.acts.iter().filter(|act| act.allowed) {
            match &act.act {
                Act::Freeze { scope, .. } if !out.iter().any(|(other, _)| other == scope) => {
                    out.push((scope.clone(), act.sequence));
                }
                Act::Unfreeze { scope, .. } => out.retain(|(other, _)| other != scope),
                _ => {}
            }
        }
        out
    }

    /// The act that freezes a machine, if one does.
    pub fn frozen_by(&self, cluster: &str, machine: &str) -> Option<u64> {
        self.frozen()
            .into_iter()
            .find(|(scope, _)| scope.covers(cluster, machine))
            .map(|(_, sequence)| sequence)
    }

    /// The ids of approvals that were revoked.
    pub fn revoked(&self) -> BTreeSet<&str> {
        self.acts
            .iter()
            .filter(|act| act.allowed)
            .filter_map(|act| match &act.act {
                Act::Revoke { approval, .. } => Some(approval.as_str()),
                _ => None,
            })
            .collect()
    }

    /// The fingerprints of keys that are denied.
    pub fn denied(&self) -> BTreeSet<&str> {
        self.acts
            .iter()
            .filter(|act| act.allowed)
            .filter_map(|act| match &act.act {
                Act::Deny { key, .. } => Some(key.as_str()),
                _ => None,
            })
            .collect()
    }

    fn step(&mut self, repo: &Repo, commit: Oid, governance_at: &GovernanceAt<'_>) -> Result<(), ChainError> {
        let breach = |rule| ChainError::Breach(Box::new(Breach { commit, rule }));
        let info = repo.commit(commit)?;
        if info.parents != [self.tip] {
            return Err(breach(Rule::Linear));
        }
        let wanted = self.installation.sequence + 1;
        let message = StateMessage::parse(&info.message).ok_or_else(|| breach(Rule::Message))?;
        let installation = read_installation(repo, &info).map_err(|err| breach(Rule::Unreadable(err)))?;
        if installation.sequence != wanted || message.sequence != wanted {
            return Err(breach(Rule::Sequence(wanted)));
        }
        let governance = governance_at(&self.installation.governed.commit)?;
        let who = self.signer(&info, &governance).ok_or_else(|| breach(Rule::Signer))?;
        let changes = Changes::between(repo, self.tip, &info)?;
        changes.check_paths().map_err(breach)?;
        match who {
            Writer::Reconciler => {
                changes.check_reconciler().map_err(breach)?;
                self.check_installation(repo, &installation).map_err(breach)?;
                self.check_step(repo, &info, &changes, &installation, governance_at)?;
                // a person's date may be any: it moves nobody's clock but their own
                self.clock = self.clock.max(info.committer.seconds);
            }
            Writer::Person(who) => {
                let act = self.persons_act(repo, &info, &changes, &installation, wanted).map_err(breach)?;
                let allowed = act.allowed(&who, &governance);
                self.acts.push(CountedAct { sequence: wanted, act, who, allowed });
            }
        }
        if installation.governed != self.installation.governed {
            self.governed.push((wanted, installation.governed.commit.clone()));
        }
        self.installation = installation;
        self.tip = commit;
        self.commits.push(commit);
        Ok(())
    }

    fn signer(&self, info: &CommitInfo, governance: &Governance) -> Option<Writer> {
        let key = info.signature.key()?;
        // a date in a commit proves nothing; it counts only forward from what the chain has seen
        let at = info.committer.seconds.max(self.clock);
        let who = governance.signers.principal(key, "git", at)?;
        if self.denied().contains(fingerprint(key).as_str()) {
            return None;
        }
        let principal = governance.principal(who)?;
        if principal.has(ActorRole::Reconciler) {
            return Some(Writer::Reconciler);
        }
        Some(Writer::Person(who.to_owned())).filter(|_| who != ROOT)
    }

    /// The commit that governed when a release of this sequence number was accepted.
    pub fn accepted_under(&self, sequence: u64) -> &str {
        let before = self.governed.iter().rev().find(|(since, _)| *since < sequence);
        before.map_or(self.installation.governed.commit.as_str(), |(_, commit)| commit)
    }

    fn check_step(
        &self,
        repo: &Repo,
        info: &CommitInfo,
        changes: &Changes,
        new: &Installation,
        governance_at: &GovernanceAt<'_>,
    ) -> Result<(), ChainError> {
        let breach = |rule| ChainError::Breach(Box::new(Breach { commit: info.id, rule }));
        let old = &self.installation;
        let governance = governance_at(&old.governed.commit)?;
        let step = Step {
            before: &repo.tree_of(self.tip)?,
            after: &repo.tree(info.tree),
            changed: &changes.changed,
            old,
            new,
            root_keys: &self.root_keys,
            denied: &self.denied(),
            revoked: &self.revoked(),
            frozen_by: &|cluster, machine| self.frozen_by(cluster, machine),
            accepted_under: &|sequence| governance_at(self.accepted_under(sequence)),
            governance: &governance,
        };
        let carried = step.check().map_err(|wrong| match wrong {
            Wrong::Rule(rule) => breach(rule),
            Wrong::Trouble(err) => err,
        })?;
        let moved = match carried {
            Some(Entry::Govern(entry)) => {
                (entry.turn, &entry.from) == (old.governed.turn, &old.governed.digest)
                    && (new.governed.turn, &new.governed.digest) == (old.governed.turn + 1, &entry.to)
                    && governance_at(&new.governed.commit)?.digest == entry.to
            }
            _ => new.governed == old.governed,
        };
        if moved { Ok(()) } else { Err(breach(Rule::Governance)) }
    }

    fn check_installation(&self, repo: &Repo, new: &Installation) -> Result<(), Rule> {
        let old = &self.installation;
        let same = new.repository == old.repository
            && new.shard == old.shard
            && new.epoch == old.epoch
            && new.format == old.format
            && new.mode == InstallationMode::Normal;
        if !same {
            return Err(Rule::Identity);
        }
        if new.owner != old.owner {
            let generation = old.owner.as_ref().map_or(0, |owner| owner.generation);
            if new.owner.as_ref().map(|owner| owner.generation) != Some(generation + 1) {
                return Err(Rule::Ownership);
            }
        }
        // whoever has both commits sees whether main went back; without them the sequence alone is checked
        let known = |text: &str| text.parse::<Oid>().ok().filter(|id| repo.has(*id));
        let back = match (known(&old.seen.main), known(&new.seen.main)) {
            (Some(was), Some(is)) => !repo.is_ancestor(was, is).unwrap_or(true),
            _ => new.seen.main.parse::<Oid>().is_err(),
        };
        if back || new.seen.act < old.seen.act || new.seen.act > new.sequence {
            return Err(Rule::Seen);
        }
        Ok(())
    }

    fn persons_act(
        &self,
        repo: &Repo,
        info: &CommitInfo,
        changes: &Changes,
        installation: &Installation,
        sequence: u64,
    ) -> Result<Act, Rule> {
        let mut expected = self.installation.clone();
        expected.sequence = sequence;
        if *installation != expected {
            return Err(Rule::PersonsCommit(INSTALLATION.to_owned()));
        }
        let mut act_path = None;
        for path in &changes.changed {
            let is_act = path.starts_with("acts/") && changes.added.contains(path) && act_path.is_none();
            match path.as_str() {
                INSTALLATION => {}
                _ if is_act => act_path = Some(path.clone()),
                _ => return Err(Rule::PersonsCommit(path.clone())),
            }
        }
        let path = act_path.ok_or_else(|| Rule::PersonsCommit(INSTALLATION.to_owned()))?;
        let bytes = repo
            .tree(info.tree)
            .read(&path)
            .map_err(|err| Rule::Unreadable(err.into()))?
            .ok_or_else(|| Rule::Path(path.clone()))?;
        let act = snapshot::parse_act(&path, &bytes).map_err(Rule::Unreadable)?;
        let name = format!("/{sequence:08}-{}.yaml", act.kind());
        if path.ends_with(&name) { Ok(act) } else { Err(Rule::Path(path)) }
    }
}

enum Writer {
    Reconciler,
    Person(String),
}

fn read_installation(repo: &Repo, info: &CommitInfo) -> Result<Installation, SnapshotError> {
    let bytes = repo
        .tree(info.tree)
        .read(INSTALLATION)?
        .ok_or_else(|| SnapshotError::Missing(INSTALLATION.into()))?;
    snapshot::parse(INSTALLATION, &bytes)
}

/// What a commit changes against the one before.
struct Changes {
    changed: Vec<String>,
    added: BTreeSet<String>,
    removed: BTreeSet<String>,
    odd: Option<String>,
}

impl Changes {
    fn between(repo: &Repo, old: Oid, info: &CommitInfo) -> Result<Changes, GitError> {
        let (before, after) = (repo.tree_of(old)?, repo.tree(info.tree));
        let changed = changed_paths(&before, &after)?;
        let (mut added, mut removed, mut odd) = (BTreeSet::new(), BTreeSet::new(), None);
        for path in &changed {
            if before.entry(path)?.is_none() {
                added.insert(path.clone());
            }
            match after.entry(path)? {
                None => drop(removed.insert(path.clone())),
                Some(entry) if entry.kind != EntryKind::File => odd = Some(path.clone()),
                Some(_) => {}
            }
        }
        Ok(Changes { changed, added, removed, odd })
    }

    fn check_paths(&self) -> Result<(), Rule> {
        let unknown = self.changed.iter().find(|path| !is_known(path));
        match self.odd.as_ref().or(unknown) {
            Some(path) => Err(Rule::Path(path.clone())),
            None => Ok(()),
        }
    }

    /// Statuses, releases and the installation change; logs and statements are add-only; acts belong to people.
    fn check_reconciler(&self) -> Result<(), Rule> {
        let rewritable = |path: &str| {
            path == INSTALLATION
                || (path.starts_with("releases/") && path.matches('/').count() == 1)
                || (path.starts_with("machines/") && path.ends_with("/status.yaml"))
        };
        let forbidden = |path: &&String| {
            path.starts_with("acts/")
                || self.removed.contains(*path)
                || !(rewritable(path) || self.added.contains(*path))
        };
        match self.changed.iter().find(forbidden) {
            Some(path) => Err(Rule::ReconcilersCommit(path.clone())),
            None => Ok(()),
        }
    }
}

fn is_known(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    // what people read in listings holds no control characters
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-./".contains(&b);
    if !path.bytes().all(plain) {
        return false;
    }
    match parts[..] {
        [INSTALLATION] => true,
        ["releases", file] => file.ends_with(".yaml"),
        ["releases", _, file] => matches!(file, "plan.json" | "statement.txt"),
        ["machines", _, _, "status.yaml"] => true,
        ["machines", _, _, "log", _, file] | ["acts", _, file] => file.ends_with(".yaml"),
        _ => false,
    }
}
