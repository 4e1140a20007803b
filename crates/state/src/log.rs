//! The timeline of a machine: one add-only file for each thing that happened.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogKind {
    /// Something was seen on the node.
    Observed,
    /// `main` says something new.
    Published,
    /// An entry was approved.
    Approved,
    /// An approval, or an act, was refused.
    Refused,
    /// An approved entry is no longer what `main` says.
    Lapsed,
    /// An approval expired.
    Expired,
    /// What was seen before a commitment.
    Evidence,
    /// An operation was committed.
    Committed,
    /// An attempt to send is recorded.
    Attempt,
    /// An attempt was not sent.
    NotSent,
    /// The node answered.
    Answer,
    /// The node refused the bytes.
    Rejected,
    /// Nobody knows whether an attempt landed.
    Unresolved,
    /// What runs is what was sent.
    Verified,
    /// What runs is not what was sent.
    Failed,
    /// Applied moved.
    Applied,
    /// What runs became Applied.
    Adopted,
    /// A drift record was opened.
    DriftOpened,
    /// An open drift changed again.
    DriftChanged,
    /// A drift record was closed.
    DriftClosed,
    /// A newer entry took the place of an older one.
    Superseded,
    /// An approval was revoked.
    Revoked,
    /// A key was denied.
    Denied,
    /// The gate was closed.
    Frozen,
    /// The gate was opened.
    Unfrozen,
    /// A process took the shard.
    TakenOver,
    /// Governance changed.
    Governed,
    /// The first commit.
    Genesis,
    /// A person's act.
    Act,
}

impl LogKind {
    /// The word in file names and trailers.
    pub fn as_str(self) -> &'static str {
        match self {
            LogKind::Observed => "observed",
            LogKind::Published => "published",
            LogKind::Approved => "approved",
            LogKind::Refused => "refused",
            LogKind::Lapsed => "lapsed",
            LogKind::Expired => "expired",
            LogKind::Evidence => "evidence",
            LogKind::Committed => "committed",
            LogKind::Attempt => "attempt",
            LogKind::NotSent => "not-sent",
            LogKind::Answer => "answer",
            LogKind::Rejected => "rejected",
            LogKind::Unresolved => "unresolved",
            LogKind::Verified => "verified",
            LogKind::Failed => "failed",
            LogKind::Applied => "applied",
            LogKind::Adopted => "adopted",
            LogKind::DriftOpened => "drift-opened",
            LogKind::DriftChanged => "drift-changed",
            LogKind::DriftClosed => "drift-closed",
            LogKind::Superseded => "superseded",
            LogKind::Revoked => "revoked",
            LogKind::Denied => "denied",
            LogKind::Frozen => "frozen",
            LogKind::Unfrozen => "unfrozen",
            LogKind::TakenOver => "taken-over",
            LogKind::Governed => "governed",
            LogKind::Genesis => "genesis",
            LogKind::Act => "act",
        }
    }
}

/// One file of a machine's timeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct LogEntry {
    /// Always 1.
    pub format: u32,
    /// The sequence number of its commit.
    pub sequence: u64,
    /// When, by the writer's clock.
    pub at: Timestamp,
    /// What happened.
    pub kind: LogKind,
    /// A sentence for people.
    pub message: String,
    /// What belongs to it: digests, numbers, codes; never a value.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
}

/// Where a machine's log entry stands.
pub fn log_path(cluster: &str, machine: &str, at: Timestamp, sequence: u64, kind: LogKind) -> String {
    format!("machines/{cluster}/{machine}/log/{}/{sequence:08}-{}.yaml", month(at), kind.as_str())
}

/// `yyyy-mm` in UTC.
pub fn month(at: Timestamp) -> String {
    at.to_string().get(..7).unwrap_or("0000-00").to_owned()
}
