//! The person's own `git`: their credentials, proxies and SSH settings, and their work tree.
//!
//! The reconciler never uses this; it reaches its remotes by [`crate::GitRemote`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::push::{PushError, PushReport, RefUpdate};
use crate::remote::{FetchError, Fetched, Remote};
use crate::{Oid, Repo};

/// `git` in a person's clone.
#[derive(Clone, Debug)]
pub struct GitProgram {
    dir: PathBuf,
    remote: String,
    shown: String,
}

/// `git` ended with an error.
#[derive(Debug, thiserror::Error)]
#[error("`git {command}` failed: {message}")]
pub struct ProgramError {
    /// What was asked.
    pub command: String,
    /// Git's own words, in one line.
    pub message: String,
}

impl GitProgram {
    /// `git` in a folder, with a remote of that clone (`origin`).
    ///
    /// # Errors
    /// [`ProgramError`] when `git` is missing.
    pub fn new(dir: &Path, remote: &str) -> Result<GitProgram, ProgramError> {
        let mut program =
            GitProgram { dir: dir.to_path_buf(), remote: remote.to_owned(), shown: String::new() };
        program.shown = program.config(&format!("remote.{remote}.url"))?.unwrap_or_else(|| remote.to_owned());
        if let Some((scheme, rest)) = program.shown.clone().split_once("://") {
            let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
            program.shown = format!("{scheme}://{host}");
        }
        Ok(program)
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Runs `git` and gives what it printed.
    ///
    /// # Errors
    /// [`ProgramError`] with git's own words.
    pub fn run(&self, args: &[&str]) -> Result<String, ProgramError> {
        let output = self.output(args)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
        }
        Err(failed(args, &output))
    }

    /// A setting, `None` when it is not made.
    ///
    /// # Errors
    /// [`ProgramError`] when `git` cannot be started.
    pub fn config(&self, name: &str) -> Result<Option<String>, ProgramError> {
        let output = self.output(&["config", "--get", name])?;
        let text = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
        Ok((output.status.success() && !text.is_empty()).then_some(text))
    }

    fn output(&self, args: &[&str]) -> Result<Output, ProgramError> {
        let start = |err: std::io::Error| ProgramError { command: args.join(" "), message: err.to_string() };
        Command::new("git").arg("-C").arg(&self.dir).args(args).stdin(Stdio::null()).output().map_err(start)
    }
}

fn failed(args: &[&str], output: &Output) -> ProgramError {
    let words = String::from_utf8_lossy(&output.stderr);
    let message = words.split_whitespace().collect::<Vec<_>>().join(" ");
    ProgramError { command: args.first().copied().unwrap_or_default().to_owned(), message }
}

fn error(err: ProgramError) -> gix::Error {
    gix::Error::from_error(err)
}

impl Remote for GitProgram {
    fn fetch(&self, _repo: &Repo, refspecs: &[&str]) -> Result<Fetched, FetchError> {
        let unreachable =
            |err| FetchError::Unreachable { url: self.shown.clone(), source: Box::new(error(err)) };
        let sources: Vec<&str> =
            refspecs.iter().filter_map(|spec| spec.trim_start_matches('+').split(':').next()).collect();
        let mut list = vec!["ls-remote", "--refs", &self.remote];
        list.extend(&sources);
        let text = self.run(&list).map_err(unreachable)?;
        let mut refs = BTreeMap::new();
        for line in text.lines() {
            let Some((id, name)) = line.split_once('\t') else { continue };
            if let Ok(id) = Oid::from_hex(id.as_bytes()) {
                refs.insert(name.to_owned(), id);
            }
        }
        if !refs.is_empty() {
            let mut fetch = vec!["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", &self.remote];
            fetch.extend(refspecs);
            self.run(&fetch).map_err(unreachable)?;
        }
        Ok(Fetched { refs })
    }

    fn push(&self, _repo: &Repo, updates: &[RefUpdate]) -> Result<PushReport, PushError> {
        let mut args = vec!["push".to_owned(), "--atomic".to_owned(), "--porcelain".to_owned()];
        for update in updates {
            let expected = update.expected.map(|id| id.to_string()).unwrap_or_default();
            args.push(format!("--force-with-lease={}:{expected}", update.name));
        }
        args.push(self.remote.clone());
        args.extend(updates.iter().map(|update| format!("{}:{}", update.new, update.name)));
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let unreachable =
            |err| PushError::Unreachable { url: self.shown.clone(), source: Box::new(error(err)) };
        let output = self.output(&args).map_err(unreachable)?;
        if output.status.success() {
            return Ok(PushReport::default());
        }
        let text =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let name = updates.first().map(|update| update.name.clone()).unwrap_or_default();
        let lost =
            ["stale info", "fetch first", "cannot lock ref", "failed to update ref", "non-fast-forward"];
        if lost.iter().any(|word| text.contains(word)) {
            return Err(PushError::Stale { name });
        }
        if text.contains("[remote rejected]") {
            let reason = text.split_whitespace().collect::<Vec<_>>().join(" ");
            return Err(PushError::Rejected { name, reason });
        }
        Err(unreachable(failed(&args, &output)))
    }

    fn url(&self) -> &str {
        &self.shown
    }
}
