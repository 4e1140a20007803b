//! Walking the history: ancestry, first parents, what a range adds.

use crate::error::GitError;
use crate::tree::changed_paths;
use crate::{CommitInfo, Oid, Repo};

impl Repo {
    /// Is `old` reachable from `new` (or the same)?
    ///
    /// # Errors
    /// [`GitError::Walk`] when history is missing.
    pub fn is_ancestor(&self, old: Oid, new: Oid) -> Result<bool, GitError> {
        if old == new {
            return Ok(true);
        }
        if !self.has(old) {
            return Ok(false);
        }
        // nothing is reachable from `old` and not from `new` exactly when `new` holds `old`
        Ok(self.commits_between(&[old], &[new])?.is_empty())
    }

    /// The commits reachable from `tips` and from none of `hidden`, children before parents.
    ///
    /// # Errors
    /// [`GitError::Walk`] when history is missing.
    pub fn commits_between(&self, tips: &[Oid], hidden: &[Oid]) -> Result<Vec<Oid>, GitError> {
        let repo = self.local();
        let from = tips.first().copied().unwrap_or_else(|| Oid::null(repo.object_hash()));
        let hidden: Vec<Oid> = hidden.iter().copied().filter(|id| repo.has_object(id)).collect();
        let fail = |source| GitError::Walk { from, source: Box::new(source) };
        let walk = repo.rev_walk(tips.iter().copied()).with_hidden(hidden).all().map_err(fail)?;
        walk.map(|info| info.map(|info| info.id).map_err(fail)).collect()
    }

    /// The first-parent chain from `old` (left out) to `new` (included), oldest first.
    /// `None` when `old` is not on the first-parent chain of `new`; `old: None` walks to the root.
    ///
    /// # Errors
    /// [`GitError::Object`] when history is missing.
    pub fn first_parents(&self, old: Option<Oid>, new: Oid) -> Result<Option<Vec<Oid>>, GitError> {
        let mut chain = Vec::new();
        let mut at = new;
        loop {
            if Some(at) == old {
                break;
            }
            chain.push(at);
            match self.commit(at)?.parents.first() {
                Some(parent) => at = *parent,
                None if old.is_none() => break,
                None => return Ok(None),
            }
        }
        chain.reverse();
        Ok(Some(chain))
    }

    /// The paths that a commit changes against *every* parent (a root commit: all its paths).
    /// A merge that only brings both sides together changes nothing by itself.
    ///
    /// # Errors
    /// [`GitError::Object`] when a parent is missing.
    pub fn own_changes(&self, commit: &CommitInfo) -> Result<Vec<String>, GitError> {
        let tree = self.tree(commit.tree);
        let Some((first, rest)) = commit.parents.split_first() else {
            return Ok(tree.list("")?.into_keys().collect());
        };
        let mut paths = changed_paths(&self.tree_of(*first)?, &tree)?;
        for parent in rest {
            if paths.is_empty() {
                break;
            }
            let other = changed_paths(&self.tree_of(*parent)?, &tree)?;
            paths.retain(|path| other.binary_search(path).is_ok());
        }
        Ok(paths)
    }

    /// The best common ancestor of two commits, `None` for unrelated histories.
    pub fn merge_base(&self, one: Oid, two: Oid) -> Option<Oid> {
        self.local().merge_base(one, two).ok().flatten().map(gix::Id::detach)
    }
}
