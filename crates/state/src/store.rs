//! Where the chain lives: fetching it, and publishing by compare-and-swap.

use bronzeward_git::remote::FetchError;
use bronzeward_git::{Oid, PushError, RefUpdate, Remote, Repo};

use crate::transaction::Committed;

/// Why the store did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The remote cannot be read.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// Nobody made the chain, or somebody deleted it.
    #[error(
        "state-missing: `{branch}` does not exist in `{url}`; `bronzeward init` makes it once, and `run` never does. \
         If it was deleted, push back the last commit that you have"
    )]
    Missing {
        /// The branch.
        branch: String,
        /// The remote.
        url: String,
    },
    /// Somebody else was faster: throw the transaction away and make it again.
    #[error("The state branch moved meanwhile")]
    LostRace,
    /// The remote refused, or cannot be reached: nothing happened.
    #[error("The state was not published")]
    Push(#[source] PushError),
    /// The answer was lost, and the commit is not in the remote's history (or the remote cannot be asked).
    #[error("The answer to a push was lost, and the remote does not show the commit")]
    Unknown(#[source] PushError),
}

/// The state branch of one shard in one remote.
pub struct StateStore<'a> {
    /// The local objects.
    pub repo: &'a Repo,
    /// The remote.
    pub remote: &'a dyn Remote,
    /// The full name of the branch.
    pub branch: String,
}

impl StateStore<'_> {
    /// Fetches the branch and gives its tip.
    ///
    /// # Errors
    /// [`StoreError::Fetch`] or [`StoreError::Missing`].
    pub fn fetch(&self) -> Result<Oid, StoreError> {
        let spec = "+refs/heads/bronzeward/state/*:refs/remotes/bronzeward-state/*";
        let fetched = self.remote.fetch(self.repo, &[spec])?;
        fetched.refs.get(&self.branch).copied().ok_or_else(|| StoreError::Missing {
            branch: self.branch.clone(),
            url: self.remote.url().to_owned(),
        })
    }

    /// Publishes a written commit. An unknown result is settled by fetching and looking for the commit.
    ///
    /// # Errors
    /// [`StoreError::LostRace`] when the branch had moved; nothing happened then.
    pub fn publish(&self, committed: Committed) -> Result<(), StoreError> {
        let update =
            RefUpdate { name: self.branch.clone(), expected: committed.parent, new: committed.commit };
        match self.remote.push(self.repo, &[update]) {
            Ok(_) => Ok(()),
            Err(err) if err.lost_race() => Err(StoreError::LostRace),
            Err(err @ PushError::Unknown { .. }) => match self.fetch() {
                Ok(tip) => match self.repo.is_ancestor(committed.commit, tip) {
                    Ok(true) => Ok(()),
                    // not there, though it may still land: a later one on the same parent can then not
                    Ok(false) | Err(_) => Err(StoreError::Unknown(err)),
                },
                Err(_) => Err(StoreError::Unknown(err)),
            },
            Err(err) => Err(StoreError::Push(err)),
        }
    }
}
