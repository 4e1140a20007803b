//! What the state branch holds, file by file.

use std::fmt;

use bronzeward_compile::plan::{Operation as PlannedOperation, Target};
use bronzeward_intent::cluster::Identity;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The format of every state file.
pub const FORMAT: u32 = 1;

/// `installation.yaml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Installation {
    /// Always [`FORMAT`].
    pub format: u32,
    /// The configuration repository's id.
    pub repository: String,
    /// The shard.
    pub shard: String,
    /// Random; an approval of another epoch is none.
    pub epoch: String,
    /// Whether anything may be sent at all.
    pub mode: InstallationMode,
    /// Counts commits, from 1 at the genesis.
    pub sequence: u64,
    /// Who may send.
    pub owner: Option<Owner>,
    /// The tips that were seen.
    pub seen: Seen,
    /// The governance in force.
    pub governed: Governed,
}

/// Whether anything may be sent at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InstallationMode {
    /// The usual.
    Normal,
    /// After the state was lost: not supported yet, refused by name.
    Recovery,
}

/// Who may send, and how often that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Owner {
    /// The process's own name.
    pub id: String,
    /// Raised whenever a process takes the shard.
    pub generation: u64,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.id, self.generation)
    }
}

/// The tips that were seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Seen {
    /// The tip of `main`.
    pub main: String,
    /// The sequence number of the last act that the reconciler acknowledged.
    pub act: u64,
}

/// The governance in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Governed {
    /// The commit from which it is read.
    pub commit: String,
    /// Its digest.
    pub digest: String,
    /// Raised whenever it changes.
    pub turn: u64,
}

/// `machines/<cluster>/<machine>/status.yaml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Status {
    /// Always [`FORMAT`].
    pub format: u32,
    /// The cluster.
    pub cluster: String,
    /// The machine.
    pub machine: String,
    /// Raised whenever an entry of the machine is committed.
    pub turn: u64,
    /// What `main` says, without authority.
    pub desired: Option<Desired>,
    /// What was last verified or adopted.
    pub applied: Option<Applied>,
    /// What was last seen, when it differs from Applied or was evidence.
    pub observed: Option<Observed>,
    /// The one open drift record.
    pub open_drift: Option<OpenDrift>,
    /// The sequence number of the act that froze it, if it is frozen (the gate reads the acts themselves).
    pub frozen: Option<u64>,
    /// The operation in flight.
    pub operation: Option<Operation>,
}

impl Status {
    /// A machine of which nothing is known yet.
    pub fn new(cluster: &str, machine: &str) -> Status {
        Status {
            format: FORMAT,
            cluster: cluster.to_owned(),
            machine: machine.to_owned(),
            turn: 0,
            desired: None,
            applied: None,
            observed: None,
            open_drift: None,
            frozen: None,
            operation: None,
        }
    }
}

/// What `main` says of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Desired {
    /// The commit of `main` at which it last changed.
    pub commit: String,
    /// The composed document's digest.
    pub composed: String,
    /// The digest of its references.
    pub references: String,
}

/// What was last verified on a machine, or adopted from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Applied {
    /// Counts every change of Applied.
    pub revision: u64,
    /// The sequence number of the release.
    pub release: u64,
    /// The commit of `main` that it reached.
    pub commit: String,
    /// Was it sent, or adopted?
    pub source: AppliedSource,
    /// The composed document's digest; null when no document explains what was adopted.
    pub composed: Option<String>,
    /// The digest of the references.
    pub references: String,
    /// The keyed digest of the exact bytes.
    pub bytes: String,
    /// The keyed digest of their meaning.
    pub meaning: String,
    /// Where the machine answers and what it is.
    pub target: Target,
    /// By what it is known.
    pub identity: Identity,
    /// The base alone composed it (an adoption by a base).
    pub base_only: bool,
}

/// How something became Applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AppliedSource {
    /// It was sent and verified.
    Operation,
    /// It was running.
    Adoption,
}

/// What was seen on a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Observed {
    /// When.
    pub at: Timestamp,
    /// The keyed digest of the exact bytes.
    pub bytes: String,
    /// The keyed digest of their meaning; null when Talos would not read them as we do.
    pub meaning: Option<String>,
    /// Talos' version there.
    pub version: String,
}

/// The open drift record of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct OpenDrift {
    /// The sequence number of the commit that opened it: its name.
    pub sequence: u64,
    /// When it was seen.
    pub opened: Timestamp,
    /// The keyed digest of the exact bytes last seen.
    pub bytes: String,
    /// The keyed digest of the meaning last seen.
    pub meaning: String,
}

/// The operation in flight on a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Operation {
    /// The sequence number of the release whose entry it is.
    pub release: u64,
    /// The digest of the entry.
    pub entry: String,
    /// What is done.
    pub operation: PlannedOperation,
    /// The commit of `main` that it reaches.
    pub commit: String,
    /// Where it stands.
    pub state: OperationState,
    /// The keyed digest of the exact bytes that are sent.
    pub bytes: String,
    /// The keyed digest of their meaning.
    pub meaning: String,
    /// What was seen before the commitment.
    pub evidence: Evidence,
    /// Every attempt, in order.
    pub attempts: Vec<Attempt>,
}

impl Operation {
    /// The last attempt.
    pub fn last_attempt(&self) -> Option<&Attempt> {
        self.attempts.last()
    }

    /// How many attempts may have reached the node.
    pub fn attempts_used(&self) -> u32 {
        self.attempts.iter().filter(|attempt| attempt.answer != Some(Answer::NotSent)).count() as u32
    }
}

/// Where an operation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OperationState {
    /// An attempt is recorded; it may have been sent.
    Sending,
    /// Nothing was sent by the last attempt, and it cannot land any more.
    NotSent,
    /// The node accepted; it is being verified.
    Verifying,
    /// Nobody knows whether it landed: only an observation after the deadlines tells.
    Unresolved,
}

/// What was seen on the node before a commitment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Evidence {
    /// When the read began.
    pub at: Timestamp,
    /// The keyed digest of the exact bytes.
    pub bytes: String,
    /// The keyed digest of their meaning.
    pub meaning: String,
    /// Talos' version there.
    pub version: String,
    /// Did the machine call itself ready?
    pub ready: bool,
}

/// One attempt to send.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Attempt {
    /// From 1.
    pub number: u32,
    /// When the push that records it began.
    pub started: Timestamp,
    /// Until when the node may answer.
    pub deadline: Timestamp,
    /// What came of it; null while it is not known.
    pub answer: Option<Answer>,
}

/// What came of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// It was not sent: too late, or no longer the owner. Uses no attempt.
    NotSent,
    /// The node accepted it.
    Accepted,
    /// The node refused it before it changed anything.
    Rejected,
    /// The node was busy with another apply and changed nothing.
    Busy,
    /// No answer came: it may have landed.
    Lost,
}

/// `releases/<sequence>.yaml`: an approval that was accepted or refused, and what became of its entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Release {
    /// Always [`FORMAT`].
    pub format: u32,
    /// The sequence number of the commit that recorded it: its name.
    pub sequence: u64,
    /// The ids of the approval: one for each signature.
    pub approvals: Vec<String>,
    /// The commit in whose message it was found.
    pub found: String,
    /// The digest of `plan.json`.
    pub plan: String,
    /// The reviewed head, the tip of main and the state commit that the approver saw.
    pub basis: [String; 3],
    /// When it was accepted, by the reconciler's clock.
    pub accepted: Timestamp,
    /// Until when it lives.
    pub expires: Timestamp,
    /// Who approved.
    pub approvers: Vec<Approver>,
    /// Why it was refused, for good; null when it was accepted.
    pub refused: Option<String>,
    /// Its entries.
    pub entries: Vec<ReleaseEntry>,
}

impl Release {
    /// Could anything still come of it?
    pub fn is_live(&self) -> bool {
        self.refused.is_none() && self.entries.iter().any(|entry| entry.state.is_open())
    }
}

/// One approver of a release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Approver {
    /// The principal, or `root`.
    pub principal: String,
    /// The key's fingerprint.
    pub key: String,
    /// The id of the approval.
    pub approval: String,
}

/// One entry of a release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ReleaseEntry {
    /// `governance` or `cluster/machine`.
    pub subject: String,
    /// What is done.
    pub operation: String,
    /// The entry's digest.
    pub digest: String,
    /// Its wave; null for governance.
    pub wave: Option<u64>,
    /// What became of it.
    pub state: EntryState,
    /// Why, in a few words.
    pub detail: Option<String>,
    /// The last commit of `main` at which it was equal.
    pub matched: Option<String>,
    /// The fingerprints of the keys that signed the change; `unsigned` for an unsigned commit.
    pub contributors: Vec<String>,
}

/// What became of an approved entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EntryState {
    /// No tip was equal to it yet.
    Waiting,
    /// Equal at the seen tip: approved.
    Approved,
    /// Equal in what the tree says, not in what the state says: it may come back.
    Held,
    /// It was equal at one tip and not at a later one: for good.
    Lapsed,
    /// It expired before it was committed.
    Expired,
    /// It was revoked, or its approver denied.
    Revoked,
    /// A newer accepted entry of the same subject took its place.
    Superseded,
    /// Its operation is in flight.
    Committed,
    /// Done.
    Completed,
    /// The node refused it.
    Rejected,
    /// It was sent and is not what runs.
    Failed,
}

impl EntryState {
    /// May it still be committed?
    pub fn is_open(self) -> bool {
        matches!(self, EntryState::Waiting | EntryState::Approved | EntryState::Held)
    }

    /// The word in files.
    pub fn as_str(self) -> &'static str {
        match self {
            EntryState::Waiting => "waiting",
            EntryState::Approved => "approved",
            EntryState::Held => "held",
            EntryState::Lapsed => "lapsed",
            EntryState::Expired => "expired",
            EntryState::Revoked => "revoked",
            EntryState::Superseded => "superseded",
            EntryState::Committed => "committed",
            EntryState::Completed => "completed",
            EntryState::Rejected => "rejected",
            EntryState::Failed => "failed",
        }
    }
}
