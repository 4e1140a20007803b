//! The trees of `main`, read once each.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use bronzeward_git::{GitError, Oid, Repo};
use bronzeward_intent::{Files, Findings, Governance, Intent};
use bronzeward_state::chain::ChainError;

/// One tree: its files, and what they say if they can be read.
pub struct Tree {
    /// The files.
    pub files: Files,
    /// What they say, or why they do not.
    pub intent: Result<Rc<Intent>, Findings>,
}

/// How many trees are kept; the tip and what is Applied are asked for again and again.
const KEPT: usize = 64;

/// Reads and keeps trees.
pub struct Trees {
    repo: Repo,
    kept: RefCell<BTreeMap<String, Rc<Tree>>>,
    governances: RefCell<BTreeMap<String, Arc<Governance>>>,
}

impl Trees {
    /// Of a repository.
    pub fn new(repo: Repo) -> Trees {
        Trees { repo, kept: RefCell::default(), governances: RefCell::default() }
    }

    /// The tree of a commit.
    ///
    /// # Errors
    /// When it is not here.
    pub fn at(&self, commit: Oid) -> Result<Rc<Tree>, GitError> {
        let name = commit.to_string();
        if let Some(tree) = self.kept.borrow().get(&name) {
            return Ok(Rc::clone(tree));
        }
        let files = Files::from_tree(&self.repo.tree_of(commit)?)?;
        let intent = Intent::load(&files).map(Rc::new);
        let tree = Rc::new(Tree { files, intent });
        let mut kept = self.kept.borrow_mut();
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(name, Rc::clone(&tree));
        Ok(tree)
    }

    /// What a commit of `main` says, for planning.
    ///
    /// # Errors
    /// A sentence.
    pub fn intent(&self, commit: &str) -> Result<Rc<Intent>, String> {
        let id: Oid = commit.parse().map_err(|_| format!("`{commit}` is no commit"))?;
        let tree = self.at(id).map_err(|err| err.to_string())?;
        tree.intent.clone().map_err(|findings| format!("The commit {commit} cannot be read: {findings}"))
    }

    /// The governance of a commit.
    ///
    /// # Errors
    /// When the commit is not here, or holds no governance that can be read.
    pub fn governance(&self, commit: &str) -> Result<Arc<Governance>, ChainError> {
        if let Some(found) = self.governances.borrow().get(commit) {
            return Ok(Arc::clone(found));
        }
        let unreadable = |findings: Findings| ChainError::Governance {
            commit: commit.to_owned(),
            source: Box::new(findings),
        };
        let id: Oid = commit.parse().map_err(|_| unreadable(Findings::default()))?;
        let tree = self.at(id)?;
        let governance = Arc::new(Governance::load(&tree.files).map_err(unreadable)?);
        self.governances.borrow_mut().insert(commit.to_owned(), Arc::clone(&governance));
        Ok(governance)
    }
}
