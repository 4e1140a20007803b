//! Changes on a draft branch, in the work tree, committed with the person's own git.

use anyhow::{Context, Result};
use bronzeward_git::Oid;
use bronzeward_intent::Files;

use crate::context::{Clone, MAIN, Tips};
use crate::exit::refuse;

/// A draft branch, chosen and not yet checked out: nothing happens before [`Draft::commit`].
pub struct Draft<'a> {
    clone: &'a Clone,
    /// Its name.
    pub branch: String,
    /// Where it stands, or will begin.
    from: Oid,
    checkout: Checkout,
}

enum Checkout {
    /// It is checked out.
    Done,
    /// It exists here.
    Switch,
    /// It is made from where it will begin.
    Make,
}

impl<'a> Draft<'a> {
    /// The branch that is named, the one that is checked out, or a new one made from main.
    pub fn choose(clone: &'a Clone, tips: &Tips, named: Option<&str>, fallback: &str) -> Result<Draft<'a>> {
        let dirty = clone.git.run(&["status", "--porcelain", "--untracked-files=no"])?;
        if !dirty.is_empty() {
            return Err(refuse(
                "The work tree has changes that are not committed: commit or stash them first",
            ));
        }
        let current = clone.current_branch()?;
        let branch = match (named, current.as_deref()) {
            (Some(named), _) => named.to_owned(),
            (None, Some(current)) if current != MAIN => current.to_owned(),
            (None, _) => fallback.to_owned(),
        };
        if branch == MAIN {
            return Err(refuse("main changes by approved merges alone: name a draft with --branch NAME"));
        }
        let local = clone.repo.read_ref(&format!("refs/heads/{branch}"))?;
        let (from, checkout) = match local {
            Some(head) if current.as_deref() == Some(branch.as_str()) => (head, Checkout::Done),
            Some(head) => (head, Checkout::Switch),
            None => (tips.branches.get(&branch).copied().unwrap_or(tips.main), Checkout::Make),
        };
        Ok(Draft { clone, branch, from, checkout })
    }

    /// The files from which the draft goes on.
    pub fn files(&self) -> Result<Files> {
        Ok(Files::from_tree(&self.clone.repo.tree_of(self.from)?)?)
    }

    fn check_out(&self) -> Result<()> {
        let from = self.from.to_string();
        match self.checkout {
            Checkout::Done => {}
            Checkout::Switch => drop(self.clone.git.run(&["switch", "--quiet", &self.branch])?),
            Checkout::Make => {
                self.clone.git.run(&["switch", "--quiet", "--no-track", "-c", &self.branch, &from])?;
            }
        }
        Ok(())
    }

    /// Checks the branch out, writes files and commits them, signed when there is a key to sign with.
    pub fn commit(&self, files: &[(String, Vec<u8>)], message: &str) -> Result<()> {
        self.check_out()?;
        for (path, bytes) in files {
            let full = self.clone.dir.join(path);
            if let Some(folder) = full.parent() {
                std::fs::create_dir_all(folder)
                    .with_context(|| format!("Cannot make the folder of `{path}`"))?;
            }
            std::fs::write(&full, bytes).with_context(|| format!("Cannot write `{path}`"))?;
        }
        let mut add = vec!["add", "--"];
        add.extend(files.iter().map(|(path, _)| path.as_str()));
        self.clone.git.run(&add)?;
        let key = self.clone.person.signing_key.value.as_ref().map(|path| format!("user.signingKey={path}"));
        let mut commit: Vec<&str> = Vec::new();
        if let Some(key) = &key {
            commit.extend(["-c", "gpg.format=ssh", "-c", key.as_str()]);
        }
        commit.extend(["commit", "--quiet", "-m", message]);
        // unsigned commits count as the approver's own: sign whenever it can be done
        if self.clone.signer().is_ok() {
            commit.push("-S");
        }
        self.clone.git.run(&commit)?;
        Ok(())
    }
}
