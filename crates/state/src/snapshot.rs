//! The state as one commit's tree says it.

use std::collections::BTreeMap;

use bronzeward_compile::plan::Subject;
use bronzeward_git::{GitError, Oid, Repo, TreeView};
use bronzeward_intent::Finding;
use bronzeward_intent::fragment::read_own;
use serde::de::DeserializeOwned;

use crate::act::Act;
use crate::log::LogEntry;
use crate::model::{FORMAT, Installation, Release, Status};

/// The file of the installation.
pub const INSTALLATION: &str = "installation.yaml";

/// Why a state tree cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// Git's own reason.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A file has another shape.
    #[error("A file on the state branch cannot be read: {0}")]
    File(Finding),
    /// A file that must be there is missing.
    #[error("The state branch holds no `{0}`")]
    Missing(String),
    /// A newer version of this tool wrote it.
    #[error("`{0}` has a format that this version does not know: use a newer version of this tool")]
    Format(String),
}

/// What one state commit says.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The commit.
    pub commit: Oid,
    /// Its tree.
    pub tree: TreeView,
    /// `installation.yaml`.
    pub installation: Installation,
    /// Every machine of which something is known.
    pub statuses: BTreeMap<(String, String), Status>,
    /// Every release, by sequence.
    pub releases: BTreeMap<u64, Release>,
}

impl Snapshot {
    /// Reads the tree of a state commit.
    ///
    /// # Errors
    /// [`SnapshotError`].
    pub fn read(repo: &Repo, commit: Oid) -> Result<Snapshot, SnapshotError> {
        let tree = repo.tree_of(commit)?;
        let bytes = tree.read(INSTALLATION)?.ok_or_else(|| SnapshotError::Missing(INSTALLATION.into()))?;
        let installation: Installation = parse(INSTALLATION, &bytes)?;
        check_format(INSTALLATION, installation.format)?;
        let mut statuses = BTreeMap::new();
        for cluster in tree.folders("machines")? {
            for machine in tree.folders(&format!("machines/{cluster}"))? {
                let path = status_path(&cluster, &machine);
                let bytes = tree.read(&path)?.ok_or_else(|| SnapshotError::Missing(path.clone()))?;
                let status: Status = parse(&path, &bytes)?;
                check_format(&path, status.format)?;
                statuses.insert((cluster.clone(), machine), status);
            }
        }
        let mut releases = BTreeMap::new();
        for (path, entry) in tree.list("releases")? {
            if path.matches('/').count() == 1 {
                let release: Release = parse(&path, &tree.blob(entry.id)?)?;
                check_format(&path, release.format)?;
                releases.insert(release.sequence, release);
            }
        }
        Ok(Snapshot { commit, tree, installation, statuses, releases })
    }

    /// The sequence number of the commit.
    pub fn sequence(&self) -> u64 {
        self.installation.sequence
    }

    /// What is known of a machine; nothing, for one that was never seen.
    pub fn status(&self, cluster: &str, machine: &str) -> Status {
        let key = (cluster.to_owned(), machine.to_owned());
        self.statuses.get(&key).cloned().unwrap_or_else(|| Status::new(cluster, machine))
    }

    /// What is known of a subject, when it is a machine.
    pub fn status_of(&self, subject: &Subject) -> Option<Status> {
        match subject {
            Subject::Machine { cluster, machine } => Some(self.status(cluster, machine)),
            Subject::Governance => None,
        }
    }

    /// The `plan.json` and the statements of a release.
    ///
    /// # Errors
    /// [`SnapshotError`].
    pub fn release_files(&self, sequence: u64) -> Result<(Vec<u8>, String), SnapshotError> {
        release_files(&self.tree, sequence)
    }

    /// The timeline of a machine, oldest first.
    ///
    /// # Errors
    /// [`SnapshotError`].
    pub fn log(&self, cluster: &str, machine: &str) -> Result<Vec<LogEntry>, SnapshotError> {
        let mut out = Vec::new();
        for (path, entry) in self.tree.list(&format!("machines/{cluster}/{machine}/log"))? {
            out.push(parse::<LogEntry>(&path, &self.tree.blob(entry.id)?)?);
        }
        // inside one commit the kinds stand in the order in which things happen
        out.sort_by_key(|entry| (entry.sequence, entry.kind));
        Ok(out)
    }
}

pub(crate) fn release_files(tree: &TreeView, sequence: u64) -> Result<(Vec<u8>, String), SnapshotError> {
    let folder = release_folder(sequence);
    let read = |name: &str| -> Result<Vec<u8>, SnapshotError> {
        let path = format!("{folder}/{name}");
        tree.read(&path)?.ok_or(SnapshotError::Missing(path))
    };
    let statement = read("statement.txt")?;
    Ok((read("plan.json")?, String::from_utf8_lossy(&statement).into_owned()))
}

/// Where a machine's status stands.
pub fn status_path(cluster: &str, machine: &str) -> String {
    format!("machines/{cluster}/{machine}/status.yaml")
}

/// Where a release stands.
pub fn release_path(sequence: u64) -> String {
    format!("releases/{sequence:08}.yaml")
}

/// Where a release's plan and statements stand.
pub fn release_folder(sequence: u64) -> String {
    format!("releases/{sequence:08}")
}

pub(crate) fn parse<T: DeserializeOwned>(path: &str, bytes: &[u8]) -> Result<T, SnapshotError> {
    read_own(path, bytes).map_err(SnapshotError::File)
}

/// Reads the file of an act.
pub(crate) fn parse_act(path: &str, bytes: &[u8]) -> Result<Act, SnapshotError> {
    let act: Act = parse(path, bytes)?;
    check_format(path, act.format())?;
    Ok(act)
}

fn check_format(path: &str, format: u32) -> Result<(), SnapshotError> {
    if format == FORMAT { Ok(()) } else { Err(SnapshotError::Format(path.to_owned())) }
}

/// What planning needs of statuses and the installation.
pub fn view<'a>(
    installation: &Installation,
    statuses: impl IntoIterator<Item = &'a Status>,
) -> bronzeward_compile::view::StateView {
    use bronzeward_compile::view::{AppliedView, DriftView, MachineView, StateView};
    let machine = |status: &Status| MachineView {
        turn: status.turn,
        applied: status.applied.as_ref().map(|applied| AppliedView {
            revision: applied.revision,
            composed: applied.composed.clone(),
            references: applied.references.clone(),
            meaning: applied.meaning.clone(),
            commit: applied.commit.clone(),
            base_only: applied.base_only,
            target: applied.target.clone(),
            identity: applied.identity.clone(),
        }),
        drift: status
            .open_drift
            .as_ref()
            .map(|drift| DriftView { sequence: drift.sequence, meaning: drift.meaning.clone() }),
        in_flight: status.operation.is_some(),
    };
    let machines = statuses
        .into_iter()
        .map(|status| ((status.cluster.clone(), status.machine.clone()), machine(status)))
        .collect();
    StateView {
        shard: installation.shard.clone(),
        epoch: installation.epoch.clone(),
        governed: installation.governed.digest.clone(),
        turn: installation.governed.turn,
        machines,
    }
}

impl Snapshot {
    /// What planning needs of this state.
    pub fn view(&self) -> bronzeward_compile::view::StateView {
        view(&self.installation, self.statuses.values())
    }
}
