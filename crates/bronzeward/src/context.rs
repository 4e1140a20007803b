//! A person's clone: where it stands, who signs, who decrypts.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context as _, Result};
use bronzeward_git::sign::{Signer, SshKeygen};
use bronzeward_git::{GitProgram, Ident, Oid, Remote, Repo};
use bronzeward_intent::parallel::in_parallel;
use bronzeward_intent::{Files, Governance, Intent, Name};
use bronzeward_secrets::age_file::open_installation;
use bronzeward_secrets::{AgeIdentity, InstallationKey};
use bronzeward_state::{APPROVALS, Snapshot, StateStore, branch};
use jiff::Timestamp;

use crate::cli::Cli;
use crate::exit::refuse;
use crate::settings::Person;

/// The branch of intent.
pub const MAIN: &str = "main";
/// The shard that this version serves.
pub const SHARD: &str = "default";

/// A person's clone.
pub struct Clone {
    /// `git` in it, with `origin`.
    pub git: GitProgram,
    /// Its objects.
    pub repo: Repo,
    /// Its top folder.
    pub dir: PathBuf,
    /// The person's settings.
    pub person: Person,
    state: GitProgram,
    intents: RefCell<BTreeMap<Oid, Rc<Intent>>>,
}

/// Where the remote stands.
#[derive(Clone, Debug)]
pub struct Tips {
    /// Every branch, by its short name.
    pub branches: BTreeMap<String, Oid>,
    /// The tip of main.
    pub main: Oid,
}

impl Clone {
    /// Opens the clone that the arguments name.
    pub fn open(cli: &Cli) -> Result<Clone> {
        let start = GitProgram::new(&cli.directory, "origin")?;
        let top = start.run(&["rev-parse", "--show-toplevel"]).map_err(|_| {
            refuse(format!("`{}` is in no Git clone: name one with -C", cli.directory.display()))
        })?;
        let dir = PathBuf::from(top);
        let git = GitProgram::new(&dir, "origin")?;
        let separate = git.config("remote.bronzeward-state.url")?.is_some();
        let state = if separate { GitProgram::new(&dir, "bronzeward-state")? } else { git.clone() };
        Ok(Clone {
            repo: Repo::open(&dir)?,
            person: Person::read(cli, &git)?,
            git,
            dir,
            state,
            intents: RefCell::default(),
        })
    }

    /// Fetches every branch.
    pub fn fetch(&self) -> Result<Tips> {
        let fetched = self.git.fetch(&self.repo, &["+refs/heads/*:refs/remotes/origin/*"])?;
        let branches: BTreeMap<String, Oid> = fetched
            .refs
            .into_iter()
            .filter_map(|(name, id)| Some((name.strip_prefix("refs/heads/")?.to_owned(), id)))
            .collect();
        let main = branches.get(MAIN).copied();
        let main =
            main.ok_or_else(|| refuse("The remote has no branch `main`: `bronzeward init` makes it"))?;
        Ok(Tips { branches, main })
    }

    /// The state branch.
    pub fn store(&self) -> StateStore<'_> {
        StateStore { repo: &self.repo, remote: &self.state, branch: branch(SHARD) }
    }

    /// Fetches the state and reads its tip.
    pub fn snapshot(&self) -> Result<Snapshot> {
        let tip = self.store().fetch()?;
        Ok(Snapshot::read(&self.repo, tip)?)
    }

    /// What a commit says.
    pub fn intent(&self, commit: Oid) -> Result<Rc<Intent>> {
        if let Some(found) = self.intents.borrow().get(&commit) {
            return Ok(Rc::clone(found));
        }
        let files = Files::from_tree(&self.repo.tree_of(commit)?)?;
        let intent = Rc::new(Intent::load(&files).map_err(|findings| refuse(findings.to_string()))?);
        self.intents.borrow_mut().insert(commit, Rc::clone(&intent));
        Ok(intent)
    }

    /// What an earlier commit of main says, for planning.
    pub fn intent_at(&self, commit: &str) -> Result<Rc<Intent>, String> {
        let id: Oid = commit.parse().map_err(|_| format!("`{commit}` is no commit"))?;
        self.intent(id).map_err(|err| format!("{err:#}"))
    }

    /// The files of the work tree: tracked, and untracked ones that are not ignored.
    pub fn work_files(&self) -> Result<Files> {
        let list = self.git.run(&["ls-files", "-z", "--cached", "--others", "--exclude-standard"])?;
        let paths: Vec<&str> = list.split('\0').filter(|path| !path.is_empty()).collect();
        let dir = &self.dir;
        let read = in_parallel(&paths, |path| {
            let full = dir.join(path);
            let regular = full.symlink_metadata().is_ok_and(|meta| meta.is_file());
            regular.then(|| std::fs::read(&full)).transpose()
        });
        let mut files = Files::default();
        for (path, bytes) in paths.into_iter().zip(read) {
            if let Some(bytes) = bytes.with_context(|| format!("Cannot read `{path}`"))? {
                files.insert(path, bytes);
            }
        }
        Ok(files)
    }

    /// The files of a revision, or of the work tree.
    pub fn files(&self, revision: Option<&str>) -> Result<Files> {
        match revision {
            None => self.work_files(),
            Some(name) => Ok(Files::from_tree(&self.repo.tree_of(self.resolve(name)?)?)?),
        }
    }

    /// The commit of a branch or revision: a local one first, then the remote's.
    pub fn resolve(&self, name: &str) -> Result<Oid> {
        self.repo
            .resolve(name)
            .or_else(|_| self.repo.resolve(&format!("origin/{name}")))
            .map_err(|_| refuse(format!("`{name}` names no branch or commit here or on the remote")))
    }

    /// The branch that is checked out.
    pub fn current_branch(&self) -> Result<Option<String>> {
        let name = self.repo.head_branch()?;
        Ok(name.and_then(|name| name.strip_prefix("refs/heads/").map(str::to_owned)))
    }

    /// Who signs: the key that was named, or git's own.
    pub fn signer(&self) -> Result<SshKeygen> {
        Ok(match &self.person.signing_key.value {
            Some(path) => SshKeygen::with_file(Path::new(path))?,
            None => SshKeygen::from_git(&self.dir)?,
        })
    }

    /// The person's name and address, as git has them.
    pub fn ident(&self, now: Timestamp) -> Result<Ident> {
        let email = self.email()?;
        let name = self.git.config("user.name")?.unwrap_or_else(|| email.clone());
        Ok(Ident { name, email, seconds: now.as_second(), offset: 0 })
    }

    /// The person's address: their principal.
    pub fn email(&self) -> Result<String> {
        let help = "Git does not know your address: `git config user.email you@example.org`";
        self.git.config("user.email")?.ok_or_else(|| refuse(help))
    }

    /// The principal whose key signs, by a governance; the address must be theirs.
    pub fn principal(&self, governance: &Governance, signer: &dyn Signer) -> Result<String> {
        let key = signer.public_key().key_data();
        match governance.signers.owner(key) {
            Some(owner) => Ok(owner.to_owned()),
            None => Err(refuse(format!(
                "Your signing key {} stands in no line of the governed allowed_signers",
                bronzeward_git::sign::fingerprint(key)
            ))),
        }
    }

    /// Who decrypts: the identity that was named, or the signing key.
    pub fn identity(&self) -> Result<AgeIdentity> {
        let path = match &self.person.age_identity.value {
            Some(path) => PathBuf::from(path),
            None => self.signing_key_file()?.ok_or_else(|| {
                refuse("Nobody to decrypt with: name an age identity or SSH key with --age-identity FILE")
            })?,
        };
        let bytes = zeroize::Zeroizing::new(
            std::fs::read(&path).with_context(|| format!("Cannot read the identity `{}`", path.display()))?,
        );
        Ok(AgeIdentity::parse(&path, &bytes)?)
    }

    /// The file of the private signing key, if git names one.
    pub fn signing_key_file(&self) -> Result<Option<PathBuf>> {
        let named = match &self.person.signing_key.value {
            Some(path) => Some(path.clone()),
            None => self.git.run(&["config", "--type=path", "--get", "user.signingKey"]).ok(),
        };
        let Some(named) = named.filter(|named| !named.starts_with("ssh-") && !named.starts_with("key::"))
        else {
            return Ok(None);
        };
        let path = self.dir.join(named);
        let private = path.to_string_lossy().strip_suffix(".pub").map(PathBuf::from);
        Ok(Some(private.unwrap_or(path)))
    }

    /// The installation key, from the governed commit.
    pub fn installation_key(&self, governed: &str, identity: &AgeIdentity) -> Result<InstallationKey> {
        let governance = self.governance(governed)?;
        let (id, bytes) =
            governance.installation.iter().next().ok_or_else(|| refuse("There is no installation key"))?;
        Ok(open_installation(id, bytes, identity)?)
    }

    /// The governance of a commit.
    pub fn governance(&self, commit: &str) -> Result<Governance> {
        let id: Oid = commit.parse().map_err(|_| refuse(format!("`{commit}` is no commit")))?;
        let files = Files::from_tree(&self.repo.tree_of(id)?)?;
        Governance::load(&files).map_err(|findings| refuse(findings.to_string()))
    }

    /// The full name of an approvals branch.
    pub fn approval_ref(id: &str) -> String {
        format!("{APPROVALS}/{id}")
    }
}

/// `w1` or `home/w1` as cluster and machine.
pub fn find_machine(intent: &Intent, text: &str) -> Result<(Name, Name)> {
    let mut found: Vec<(Name, Name)> = Vec::new();
    for (cluster, of_cluster) in &intent.clusters {
        for machine in of_cluster.machines.keys() {
            if text == machine.as_str() || text == format!("{cluster}/{machine}") {
                found.push((cluster.clone(), machine.clone()));
            }
        }
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => {
            let known: Vec<String> = intent
                .clusters
                .iter()
                .flat_map(|(cluster, of)| {
                    of.machines.keys().map(move |machine| format!("{cluster}/{machine}"))
                })
                .collect();
            Err(refuse(format!("There is no machine `{text}`; there are {}", known.join(", "))))
        }
        _ => Err(refuse(format!("`{text}` is the name of several machines: write CLUSTER/MACHINE"))),
    }
}
