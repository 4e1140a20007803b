//! Where a story plays.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// Who tells what happens.
pub trait Narrator {
    /// A new part begins.
    fn title(&mut self, text: &str);
    /// A sentence.
    fn say(&mut self, text: &str);
    /// A command that is run.
    fn command(&mut self, text: &str);
    /// What it printed.
    fn output(&mut self, text: &str);
}

/// The nodes of a stage, as somebody who stands beside them sees them.
pub trait Nodes: Send + Sync {
    /// Somebody changes a label of the worker with another tool.
    ///
    /// # Errors
    /// When it does not work.
    fn meddle(&self, label: &str, value: &str) -> Result<()>;

    /// The bytes of every apply that the control plane and the worker received.
    ///
    /// # Errors
    /// When a node does not answer.
    fn received(&self) -> Result<[Vec<Vec<u8>>; 2]>;
}

/// How a branch comes onto main.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeStyle {
    /// `approve --merge`: a signed merge commit that carries the approval.
    Signed,
    /// A forge's button: an unsigned merge commit; the approval stands on its own branch.
    Button,
    /// A forge's squash, likewise.
    Squash,
}

/// Where a story plays.
pub struct Stage {
    /// The program.
    pub program: PathBuf,
    /// Everything that is made lies below this folder.
    pub dir: PathBuf,
    /// The remote, empty, as a person's git takes it.
    pub remote: String,
    /// The remote as the reconciler takes it, with further settings of `[repository]`.
    pub reconciler_remote: Vec<(String, String)>,
    /// The environment of every command.
    pub environment: Vec<(String, String)>,
    /// The talosconfig's file.
    pub talosconfig: PathBuf,
    /// The cluster's name.
    pub cluster: String,
    /// The addresses of the control plane and the worker.
    pub addresses: [String; 2],
    /// How branches come onto main.
    pub style: MergeStyle,
    /// Regions that hold no secret, to be cleared at the import.
    pub clears: Vec<String>,
    /// The nodes.
    pub nodes: Box<dyn Nodes>,
}

impl Stage {
    /// The person's clone.
    pub fn work_tree(&self) -> PathBuf {
        self.dir.join("clone")
    }

    /// A forge's own clone, in which it merges.
    pub fn forge(&self) -> PathBuf {
        self.dir.join("forge")
    }

    /// The reconciler's keys and settings.
    pub fn keys(&self) -> PathBuf {
        self.dir.join("reconciler")
    }

    /// The reconciler's settings.
    pub fn settings(&self) -> PathBuf {
        self.keys().join("bronzeward.toml")
    }

    /// The reconciler's log.
    pub fn log(&self) -> PathBuf {
        self.dir.join("reconciler.log")
    }

    /// The person's signing key.
    pub fn key(&self) -> PathBuf {
        self.dir.join("ann_ed25519")
    }

    /// A command that sees no settings but the stage's.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env("HOME", self.dir.join("home"))
            .env("GIT_CONFIG_GLOBAL", self.dir.join("gitconfig"))
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env_remove("SSH_AUTH_SOCK")
            .envs(self.environment.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        command
    }

    /// Makes the person: a key, and git's settings.
    ///
    /// # Errors
    /// When `ssh-keygen` is missing or the folder cannot be written.
    pub fn person(&self) -> Result<()> {
        std::fs::create_dir_all(self.dir.join("home"))?;
        let key = self.key();
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-C", "ann@example.org", "-f"])
            .arg(&key)
            .status()
            .context("`ssh-keygen` cannot be started: install OpenSSH")?;
        anyhow::ensure!(made.success(), "`ssh-keygen` made no key");
        let config = format!(
            "[user]\n\tname = Ann\n\temail = ann@example.org\n\tsigningKey = {}\n[gpg]\n\tformat = ssh\n\
             [init]\n\tdefaultBranch = main\n[advice]\n\tdetachedHead = false\n",
            key.display()
        );
        std::fs::write(self.dir.join("gitconfig"), config)?;
        Ok(())
    }

    /// Changes the settings that `init` wrote so that a story does not wait: a short poll, any free port.
    ///
    /// # Errors
    /// When they cannot be read or written.
    pub fn hurry(&self) -> Result<()> {
        let path = self.settings();
        let mut table: toml::Table = toml::from_str(&std::fs::read_to_string(&path)?)?;
        set(&mut table, "repository", "poll", "500ms");
        for (name, value) in &self.reconciler_remote {
            set(&mut table, "repository", name, value);
        }
        set(&mut table, "listen", "address", "127.0.0.1:0");
        std::fs::write(&path, toml::to_string(&table)?)?;
        Ok(())
    }

    /// A file of the clone.
    pub fn file(&self, path: &str) -> PathBuf {
        Path::new(&self.work_tree()).join(path)
    }
}

fn set(table: &mut toml::Table, section: &str, name: &str, value: &str) {
    if let Some(section) = table.get_mut(section).and_then(toml::Value::as_table_mut) {
        section.insert(name.to_owned(), toml::Value::String(value.to_owned()));
    }
}
