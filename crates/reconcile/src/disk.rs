//! What the reconciler keeps on its own disk: the tips that it saw, and which generation of owner it is.
//!
//! Nothing here is authority. A lost disk costs a sweep; a kept one shows a remote that went back in time.

use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The state tip last verified.
    pub state: Option<String>,
    /// The tip of main last seen.
    pub main: Option<String>,
    /// The generation under which this process owns the shard.
    pub generation: Option<u64>,
    /// Has one sweep found the nodes where the state says they are?
    pub swept: bool,
}

/// Why the disk cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// Another process uses it.
    #[error("Another process runs on `{0}`: stop it, or give this one a disk of its own (`state.disk`)")]
    Busy(PathBuf),
    /// Reading or writing failed.
    #[error("Cannot use `{path}`")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file cannot be read.
    #[error("`{0}` cannot be read: remove it, and the next start sweeps every node before it sends anything")]
    Unreadable(PathBuf),
}

/// The folder, locked for as long as this value lives.
#[derive(Debug)]
pub struct Disk {
    folder: PathBuf,
    _lock: File,
    kept: Kept,
}

impl Disk {
    /// Opens the folder, making it first when it is not there.
    ///
    /// # Errors
    /// [`DiskError`].
    pub fn open(folder: &Path) -> Result<Disk, DiskError> {
        let io = |path: &Path| {
            let path = path.to_path_buf();
            move |source| DiskError::Io { path, source }
        };
        fs::create_dir_all(folder).map_err(io(folder))?;
        let lock_path = folder.join("lock");
        let lock = File::create(&lock_path).map_err(io(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(DiskError::Busy(folder.to_path_buf())),
            Err(TryLockError::Error(source)) => return Err(io(&lock_path)(source)),
        }
        let path = folder.join("seen.json");
        let kept = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|_| DiskError::Unreadable(path))?,
            Err(err) if err.kind() == std::io::ErrorKind::NotFound => Kept::default(),
            Err(err) => return Err(io(&path)(err)),
        };
        Ok(Disk { folder: folder.to_path_buf(), _lock: lock, kept })
    }

    /// The folder of the local Git objects.
    pub fn repository(&self) -> PathBuf {
        self.folder.join("objects.git")
    }

    /// What is kept.
    pub fn kept(&self) -> &Kept {
        &self.kept
    }

    /// Changes what is kept; the old file stays until the new one is whole.
    ///
    /// # Errors
    /// [`DiskError::Io`].
    pub fn keep(&mut self, change: impl FnOnce(&mut Kept)) -> Result<(), DiskError> {
        let mut new = self.kept.clone();
        change(&mut new);
        if new == self.kept {
            return Ok(());
        }
        let (path, draft) = (self.folder.join("seen.json"), self.folder.join("seen.json.new"));
        let io = |source| DiskError::Io { path: path.clone(), source };
        let bytes = serde_json::to_vec_pretty(&new).expect("BUG: texts and numbers serialize");
        let mut file = File::create(&draft).map_err(io)?;
        file.write_all(&bytes).and_then(|()| file.sync_all()).map_err(io)?;
        fs::rename(&draft, &path).map_err(io)?;
        self.kept = new;
        Ok(())
    }
}
