//! A transaction: edits in memory on the tip that was read, written as one signed commit, then published.
//!
//! A commit that was written and not published is nothing: no ref points to it. A lost push is never rebased; the
//! transaction is thrown away and made again from the new tip.

use std::collections::{BTreeMap, BTreeSet};

use bronzeward_git::sign::Signer;
use bronzeward_git::{GitError, Ident, NewCommit, Oid, Repo, TreeEdit};
use bronzeward_intent::yaml_text::to_yaml;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::log::{LogEntry, LogKind, log_path};
use crate::message::StateMessage;
use crate::model::{FORMAT, Installation, Release, Status};
use crate::snapshot::{self, INSTALLATION, Snapshot};

/// A state commit that was written here and is not published yet.
#[must_use = "a commit that is not published has not happened"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The commit.
    pub commit: Oid,
    /// The tip that it stands on.
    pub parent: Option<Oid>,
    /// Its sequence number.
    pub sequence: u64,
}

/// Edits to the state, on top of one snapshot.
#[derive(Clone, Debug)]
pub struct Transaction {
    parent: Option<Oid>,
    base_tree: Option<Oid>,
    now: Timestamp,
    installation: Installation,
    statuses: BTreeMap<(String, String), Status>,
    releases: BTreeMap<u64, Release>,
    files: BTreeMap<String, Vec<u8>>,
    subject: Option<String>,
    body: Vec<String>,
    kinds: Vec<&'static str>,
    machines: BTreeSet<String>,
}

impl Transaction {
    /// Begins on a snapshot; `now` stands in what is logged.
    pub fn on(snapshot: &Snapshot, now: Timestamp) -> Transaction {
        let mut installation = snapshot.installation.clone();
        installation.sequence += 1;
        Transaction {
            parent: Some(snapshot.commit),
            base_tree: Some(snapshot.tree.id()),
            now,
            installation,
            statuses: snapshot.statuses.clone(),
            releases: snapshot.releases.clone(),
            files: BTreeMap::new(),
            subject: None,
            body: Vec::new(),
            kinds: Vec::new(),
            machines: BTreeSet::new(),
        }
    }

    /// The first commit of a chain.
    pub fn genesis(installation: Installation, now: Timestamp) -> Transaction {
        let mut transaction = Transaction {
            parent: None,
            base_tree: None,
            now,
            installation,
            statuses: BTreeMap::new(),
            releases: BTreeMap::new(),
            files: BTreeMap::new(),
            subject: None,
            body: Vec::new(),
            kinds: Vec::new(),
            machines: BTreeSet::new(),
        };
        transaction.say("The state begins");
        transaction.kind(LogKind::Genesis);
        transaction
    }

    /// The sequence number that the commit will have.
    pub fn sequence(&self) -> u64 {
        self.installation.sequence
    }

    /// The time that stands in what is logged.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The installation, to be changed.
    pub fn installation(&mut self) -> &mut Installation {
        &mut self.installation
    }

    /// The installation, with the edits so far.
    pub fn peek(&self) -> &Installation {
        &self.installation
    }

    /// Every machine of which something is known, with the edits so far.
    pub fn statuses(&self) -> impl Iterator<Item = &Status> {
        self.statuses.values()
    }

    /// The plan of a release that this very transaction records.
    pub fn kept_plan(&self, sequence: u64) -> Option<&[u8]> {
        self.files.get(&format!("{}/plan.json", snapshot::release_folder(sequence))).map(Vec::as_slice)
    }

    /// What is known of a machine, with the edits so far.
    pub fn status(&self, cluster: &str, machine: &str) -> Status {
        let key = (cluster.to_owned(), machine.to_owned());
        self.statuses.get(&key).cloned().unwrap_or_else(|| Status::new(cluster, machine))
    }

    /// Writes what is known of a machine.
    pub fn set_status(&mut self, status: Status) {
        let path = snapshot::status_path(&status.cluster, &status.machine);
        self.files.insert(path, to_yaml(&status).into_bytes());
        self.statuses.insert((status.cluster.clone(), status.machine.clone()), status);
    }

    /// The releases, with the edits so far.
    pub fn releases(&self) -> &BTreeMap<u64, Release> {
        &self.releases
    }

    /// Writes a release.
    pub fn set_release(&mut self, release: Release) {
        self.files.insert(snapshot::release_path(release.sequence), to_yaml(&release).into_bytes());
        self.releases.insert(release.sequence, release);
    }

    /// Keeps the plan and the raw statements of a new release.
    pub fn keep_statement(&mut self, sequence: u64, plan: &[u8], statement: &str) {
        let folder = snapshot::release_folder(sequence);
        self.files.insert(format!("{folder}/plan.json"), plan.to_vec());
        self.files.insert(format!("{folder}/statement.txt"), statement.as_bytes().to_vec());
    }

    /// Adds to a machine's timeline; the message is also the commit's subject if there is none yet.
    pub fn log(
        &mut self,
        cluster: &str,
        machine: &str,
        kind: LogKind,
        message: &str,
        details: Map<String, Value>,
    ) {
        let entry = LogEntry {
            format: FORMAT,
            sequence: self.sequence(),
            at: self.now,
            kind,
            message: message.to_owned(),
            details,
        };
        let mut path = log_path(cluster, machine, self.now, self.sequence(), kind);
        // the same kind twice in one commit: a timeline loses nothing
        let first = path.trim_end_matches(".yaml").to_owned();
        let mut number = 2;
        while self.files.contains_key(&path) {
            path = format!("{first}-{number}.yaml");
            number += 1;
        }
        self.files.insert(path, to_yaml(&entry).into_bytes());
        // a folder of a machine always holds its status
        let status = self.status(cluster, machine);
        if !self.files.contains_key(&snapshot::status_path(cluster, machine)) {
            self.set_status(status);
        }
        self.machines.insert(format!("{cluster}/{machine}"));
        self.kind(kind);
        self.say(&format!("{machine}: {message}"));
    }

    /// Notes what kind of thing the commit records.
    pub fn kind(&mut self, kind: LogKind) {
        if !self.kinds.contains(&kind.as_str()) {
            self.kinds.push(kind.as_str());
        }
    }

    /// The commit's subject, or a further line of its body.
    pub fn say(&mut self, sentence: &str) {
        let sentence: String = sentence.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        match &self.subject {
            None => self.subject = Some(sentence),
            Some(subject) if *subject == sentence || self.body.contains(&sentence) => {}
            Some(_) => self.body.push(sentence),
        }
    }

    /// The commit's subject, as far as something was said.
    pub fn subject(&self) -> Option<&str> {
        self.subject.as_deref()
    }

    /// Is there anything to commit?
    pub fn is_empty(&self) -> bool {
        self.subject.is_none()
    }

    /// Writes the commit, signed; it has not happened before it is published.
    ///
    /// # Errors
    /// [`GitError`].
    pub fn write(mut self, repo: &Repo, author: &Ident, signer: &dyn Signer) -> Result<Committed, GitError> {
        self.files.insert(INSTALLATION.to_owned(), to_yaml(&self.installation).into_bytes());
        let edits: Vec<TreeEdit> = std::mem::take(&mut self.files)
            .into_iter()
            .map(|(path, bytes)| TreeEdit::write(path, bytes))
            .collect();
        let message = StateMessage {
            subject: self.subject.unwrap_or_else(|| "The state moves".to_owned()),
            body: self.body,
            sequence: self.installation.sequence,
            kinds: self.kinds.into_iter().map(str::to_owned).collect(),
            machines: self.machines.into_iter().collect(),
            owner: self.installation.owner.clone(),
        };
        write_commit(repo, self.base_tree, self.parent, &edits, &message, author, signer)
    }
}

/// Writes one state commit from its parts; also a person's, whose only edits are an act and the sequence.
pub(crate) fn write_commit(
    repo: &Repo,
    base_tree: Option<Oid>,
    parent: Option<Oid>,
    edits: &[TreeEdit],
    message: &StateMessage,
    author: &Ident,
    signer: &dyn Signer,
) -> Result<Committed, GitError> {
    let tree = repo.write_tree(base_tree, edits)?;
    let text = message.to_text();
    let new = NewCommit {
        tree: tree.id(),
        parents: parent.into_iter().collect(),
        author: author.clone(),
        committer: author.clone(),
        message: &text,
    };
    let commit = repo.write_commit(&new, Some(signer))?;
    Ok(Committed { commit, parent, sequence: message.sequence })
}

/// Writes a person's commit: one act, and the sequence raised.
///
/// # Errors
/// [`GitError`].
pub fn write_act(
    repo: &Repo,
    snapshot: &Snapshot,
    act: &crate::act::Act,
    now: Timestamp,
    author: &Ident,
    signer: &dyn Signer,
) -> Result<Committed, GitError> {
    let mut installation = snapshot.installation.clone();
    installation.sequence += 1;
    let sequence = installation.sequence;
    let path = format!("acts/{}/{sequence:08}-{}.yaml", crate::log::month(now), act.kind());
    let edits = [TreeEdit::write(INSTALLATION, to_yaml(&installation)), TreeEdit::write(path, to_yaml(act))];
    let message = StateMessage {
        subject: format!("{}: {}", author.email, act.sentence()),
        body: Vec::new(),
        sequence,
        kinds: vec![act.kind().to_owned()],
        machines: Vec::new(),
        owner: None,
    };
    write_commit(repo, Some(snapshot.tree.id()), Some(snapshot.commit), &edits, &message, author, signer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Governed, InstallationMode, Seen};

    #[test]
    fn the_same_kind_twice_in_one_commit_is_kept_twice() {
        let installation = Installation {
            format: 1,
            repository: "r".into(),
            shard: "default".into(),
            epoch: "e".into(),
            mode: InstallationMode::Normal,
            sequence: 1,
            owner: None,
            seen: Seen { main: String::new(), act: 0 },
            governed: Governed { commit: String::new(), digest: String::new(), turn: 0 },
        };
        let mut transaction = Transaction::genesis(installation, Timestamp::UNIX_EPOCH);
        for message in ["one lapsed", "another lapsed"] {
            transaction.log("home", "w1", LogKind::Lapsed, message, Map::new());
        }
        let logs: Vec<&String> = transaction.files.keys().filter(|path| path.contains("/log/")).collect();
        assert_eq!(
            logs,
            [
                "machines/home/w1/log/1970-01/00000001-lapsed-2.yaml",
                "machines/home/w1/log/1970-01/00000001-lapsed.yaml"
            ]
        );
    }
}
