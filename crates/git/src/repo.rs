//! A handle on a local repository, shareable between threads.

use std::path::{Path, PathBuf};

use gix::refs::Target;
use gix::refs::transaction::PreviousValue;

use crate::error::{self, GitError};
use crate::{Oid, TreeView};

/// A local repository: a person's clone, or the reconciler's bare cache.
///
/// Cheap to clone; every clone sees the same objects and refs.
#[derive(Clone)]
pub struct Repo {
    inner: gix::ThreadSafeRepository,
}

impl std::fmt::Debug for Repo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Repo").field(&self.git_dir()).finish()
    }
}

fn options() -> gix::open::Options {
    // isolated: a user's configuration must not steer what is read or written
    gix::open::Options::isolated().strict_config(false)
}

impl Repo {
    /// Opens the repository at `path`, or above it.
    ///
    /// # Errors
    /// [`GitError::Open`] when there is none.
    pub fn discover(path: &Path) -> Result<Repo, GitError> {
        let mut dir = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        loop {
            match Self::open(&dir) {
                Ok(repo) => return Ok(repo),
                Err(err) => {
                    if dir.join(".git").exists() || !dir.pop() {
                        return Err(match err {
                            GitError::Open { source, .. } => {
                                GitError::Open { path: path.to_path_buf(), source }
                            }
                            other => other,
                        });
                    }
                }
            }
        }
    }

    /// Opens exactly the repository at `path` (a work tree or a bare repository).
    ///
    /// # Errors
    /// [`GitError::Open`] when there is none.
    pub fn open(path: &Path) -> Result<Repo, GitError> {
        gix::ThreadSafeRepository::open_opts(path, options())
            .map(|inner| Repo { inner })
            .map_err(|source| GitError::Open { path: path.to_path_buf(), source: Box::new(source) })
    }

    /// Opens the bare repository at `path`, making it first when nothing is there.
    ///
    /// # Errors
    /// [`GitError::Init`] or [`GitError::Open`].
    pub fn open_or_init_bare(path: &Path) -> Result<Repo, GitError> {
        if path.join("HEAD").exists() {
            return Self::open(path);
        }
        gix::ThreadSafeRepository::init_opts(
            path,
            gix::create::Kind::Bare,
            gix::create::Options { destination_must_be_empty: Some(false), ..Default::default() },
            options(),
        )
        .map(|inner| Repo { inner })
        .map_err(|source| GitError::Init { path: path.to_path_buf(), source: Box::new(source) })
    }

    pub(crate) fn local(&self) -> gix::Repository {
        let mut repo = self.inner.to_thread_local();
        repo.object_cache_size_if_unset(4 << 20);
        repo
    }

    /// The repository's own folder (`.git`, or the bare repository).
    pub fn git_dir(&self) -> PathBuf {
        self.inner.to_thread_local().git_dir().to_path_buf()
    }

    /// The checked-out folder, if the repository has one.
    pub fn work_dir(&self) -> Option<PathBuf> {
        self.inner.to_thread_local().workdir().map(Path::to_path_buf)
    }

    /// The commit that a revision (`main`, `HEAD~2`, an id) names, tags peeled.
    ///
    /// # Errors
    /// [`GitError::NoSuchRevision`].
    pub fn resolve(&self, name: &str) -> Result<Oid, GitError> {
        let repo = self.local();
        let missing = || GitError::NoSuchRevision { name: name.to_owned() };
        let id = repo.rev_parse_single(name).map_err(|_| missing())?;
        let object = id.object().map_err(|_| missing())?;
        object.peel_to_commit().map(|commit| commit.id).map_err(|_| missing())
    }

    /// The value of a full ref name, `None` when the ref does not exist.
    ///
    /// # Errors
    /// [`GitError::Write`] when the ref store cannot be read.
    pub fn read_ref(&self, name: &str) -> Result<Option<Oid>, GitError> {
        let repo = self.local();
        let Some(mut reference) =
            repo.try_find_reference(name).map_err(error::write(format!("ref `{name}` (reading it)")))?
        else {
            return Ok(None);
        };
        let id = reference.peel_to_id().map_err(error::write(format!("ref `{name}` (reading it)")))?;
        Ok(Some(id.detach()))
    }

    /// Every ref below a prefix, with what it points to.
    ///
    /// # Errors
    /// [`GitError::Write`] when the ref store cannot be read.
    pub fn refs_below(&self, prefix: &str) -> Result<Vec<(String, Oid)>, GitError> {
        let repo = self.local();
        let what = || error::write(format!("refs below `{prefix}` (reading them)"));
        let platform = repo.references().map_err(what())?;
        let mut out = Vec::new();
        for reference in platform.prefixed(prefix).map_err(what())? {
            let Ok(mut reference) = reference else { continue };
            let name = reference.name().as_bstr().to_string();
            if let Ok(id) = reference.peel_to_id() {
                out.push((name, id.detach()));
            }
        }
        Ok(out)
    }

    /// Moves a ref if it still has the value that the caller saw (`None`: it must not exist).
    ///
    /// # Errors
    /// [`GitError::RefMoved`] when it has another value, [`GitError::Write`] otherwise.
    pub fn set_ref(&self, name: &str, new: Oid, expected: Option<Oid>) -> Result<(), GitError> {
        let repo = self.local();
        let previous = match expected {
            Some(id) => PreviousValue::MustExistAndMatch(Target::Object(id)),
            None => PreviousValue::MustNotExist,
        };
        let Err(source) = repo.reference(name, new, previous, "bronzeward") else { return Ok(()) };
        let actual = self.read_ref(name)?;
        if actual == expected {
            return Err(GitError::Write { what: format!("ref `{name}`"), source: Box::new(source) });
        }
        let text = |id: Option<Oid>| id.map_or_else(|| "none".to_owned(), |id| id.to_string());
        Err(GitError::RefMoved { name: name.to_owned(), expected: text(expected), actual: text(actual) })
    }

    /// Moves a ref whatever its value was.
    ///
    /// # Errors
    /// [`GitError::Write`].
    pub fn force_ref(&self, name: &str, new: Oid) -> Result<(), GitError> {
        let repo = self.local();
        repo.reference(name, new, PreviousValue::Any, "bronzeward")
            .map(drop)
            .map_err(error::write(format!("ref `{name}`")))
    }

    /// The full name of the branch that is checked out, `None` when `HEAD` is detached.
    ///
    /// # Errors
    /// [`GitError::Write`] when `HEAD` cannot be read.
    pub fn head_branch(&self) -> Result<Option<String>, GitError> {
        let name = self.local().head_name().map_err(error::write("`HEAD` (reading it)"))?;
        Ok(name.map(|name| name.as_bstr().to_string()))
    }

    /// Is this object here?
    pub fn has(&self, id: Oid) -> bool {
        self.local().has_object(id)
    }

    /// The tree of a commit.
    ///
    /// # Errors
    /// [`GitError::Object`] when the commit is not here.
    pub fn tree_of(&self, commit: Oid) -> Result<TreeView, GitError> {
        let repo = self.local();
        let id = repo
            .find_commit(commit)
            .and_then(|commit| commit.tree_id().map(gix::Id::detach))
            .map_err(error::object("commit", commit))?;
        Ok(TreeView::new(self.clone(), id))
    }
}
