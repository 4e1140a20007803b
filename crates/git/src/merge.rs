//! Merging without a work tree.

use gix::merge::tree::TreatAsUnresolved;

use crate::error::GitError;
use crate::{Oid, Repo};

/// The outcome of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merged {
    /// The merged tree.
    Clean(Oid),
    /// The paths that both sides changed in ways that do not fit.
    Conflict(Vec<String>),
}

impl Repo {
    /// The tree that merging `theirs` into `ours` gives: three-way, no guessing of renames.
    ///
    /// # Errors
    /// [`GitError::Merge`] when the histories are unrelated or objects are missing.
    pub fn merge(&self, ours: Oid, theirs: Oid) -> Result<Merged, GitError> {
        let repo = self.local();
        let fail = |source: gix::Error| GitError::Merge { ours, theirs, source: Box::new(source) };
        let options = repo.tree_merge_options().map_err(fail)?.with_rewrites(None);
        let labels = gix::merge::blob::builtin_driver::text::Labels {
            ancestor: Some("base".into()),
            current: Some("main".into()),
            other: Some("branch".into()),
        };
        let mut outcome = repo.merge_commits(ours, theirs, labels, options.into()).map_err(fail)?;
        let how = TreatAsUnresolved::git();
        if outcome.tree_merge.has_unresolved_conflicts(how) {
            let mut paths: Vec<String> = outcome
                .tree_merge
                .conflicts
                .iter()
                .filter(|conflict| conflict.is_unresolved(how))
                .map(|conflict| conflict.ours.location().to_string())
                .collect();
            paths.sort();
            paths.dedup();
            return Ok(Merged::Conflict(paths));
        }
        let tree = outcome.tree_merge.tree.write().map_err(fail)?.detach();
        Ok(Merged::Clean(tree))
    }
}
