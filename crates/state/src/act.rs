//! Acts: what people put on the state branch. Authority is taken away only here.

use std::fmt;
use std::str::FromStr;

use bronzeward_intent::repository::{ActorRole, PrincipalKind};
use bronzeward_intent::{Governance, Name};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One act; its file is `acts/<yyyy-mm>/<sequence>-<kind>.yaml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Act {
    /// Closes the gate of a scope.
    Freeze {
        /// Always 1.
        format: u32,
        /// What is frozen.
        scope: Scope,
        /// Why.
        reason: String,
        /// When, by the actor's clock.
        at: Timestamp,
    },
    /// Opens it again.
    Unfreeze {
        /// Always 1.
        format: u32,
        /// What was frozen.
        scope: Scope,
        /// Why.
        reason: String,
        /// When, by the actor's clock.
        at: Timestamp,
    },
    /// Takes an approval back, also before it was seen.
    Revoke {
        /// Always 1.
        format: u32,
        /// The approval's id.
        approval: String,
        /// Why.
        reason: String,
        /// When, by the actor's clock.
        at: Timestamp,
    },
    /// Voids every approval of a key that no attempt has used, and refuses the key from now on.
    Deny {
        /// Always 1.
        format: u32,
        /// The key's fingerprint.
        key: String,
        /// Why.
        reason: String,
        /// When, by the actor's clock.
        at: Timestamp,
    },
}

impl Act {
    /// The word in the file's name.
    pub fn kind(&self) -> &'static str {
        match self {
            Act::Freeze { .. } => "freeze",
            Act::Unfreeze { .. } => "unfreeze",
            Act::Revoke { .. } => "revoke",
            Act::Deny { .. } => "deny",
        }
    }

    /// The format of the file.
    pub fn format(&self) -> u32 {
        match self {
            Act::Freeze { format, .. }
            | Act::Unfreeze { format, .. }
            | Act::Revoke { format, .. }
            | Act::Deny { format, .. } => *format,
        }
    }

    /// A sentence for people, without the actor.
    pub fn sentence(&self) -> String {
        one_line(&match self {
            Act::Freeze { scope, reason, .. } => format!("freeze {scope}: {reason}"),
            Act::Unfreeze { scope, reason, .. } => format!("unfreeze {scope}: {reason}"),
            Act::Revoke { approval, reason, .. } => format!("revoke {approval}: {reason}"),
            Act::Deny { key, reason, .. } => format!("deny {key}: {reason}"),
        })
    }

    /// May this principal do it, by the governance in force where the act stands?
    pub fn allowed(&self, who: &str, governance: &Governance) -> bool {
        let approver = governance.may(who, ActorRole::Approver);
        match self {
            // any role freezes; a reconciler signs state commits and nothing else
            Act::Freeze { .. } => governance.principal(who).is_some_and(|principal| {
                !principal.roles.is_empty() && !principal.has(ActorRole::Reconciler)
            }),
            Act::Unfreeze { .. } | Act::Deny { .. } => approver,
            Act::Revoke { .. } => {
                let recovery = governance.may(who, ActorRole::RecoveryAdmin);
                let human = governance.principal(who).is_some_and(|p| p.kind == PrincipalKind::Human);
                human && (approver || recovery)
            }
        }
    }
}

/// People write what they like: it stands in the timeline without control characters, and not endlessly.
fn one_line(text: &str) -> String {
    text.chars().take(500).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// What a freeze covers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// The whole installation.
    All,
    /// One cluster.
    Cluster(String),
    /// One machine.
    Machine(String, String),
}

impl Scope {
    /// Does the scope cover a machine?
    pub fn covers(&self, cluster: &str, machine: &str) -> bool {
        match self {
            Scope::All => true,
            Scope::Cluster(name) => name == cluster,
            Scope::Machine(in_cluster, name) => in_cluster == cluster && name == machine,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::All => f.write_str("all"),
            Scope::Cluster(cluster) => write!(f, "{cluster}/*"),
            Scope::Machine(cluster, machine) => write!(f, "{cluster}/{machine}"),
        }
    }
}

/// A text that is no scope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no scope: write all, CLUSTER/* or CLUSTER/MACHINE")]
pub struct BadScope(pub String);

impl FromStr for Scope {
    type Err = BadScope;

    fn from_str(text: &str) -> Result<Scope, BadScope> {
        let bad = || BadScope(text.to_owned());
        if text == "all" {
            return Ok(Scope::All);
        }
        let (cluster, machine) = text.split_once('/').ok_or_else(bad)?;
        let cluster: Name = cluster.parse().map_err(|_| bad())?;
        if machine == "*" {
            return Ok(Scope::Cluster(cluster.to_string()));
        }
        let machine: Name = machine.parse().map_err(|_| bad())?;
        Ok(Scope::Machine(cluster.to_string(), machine.to_string()))
    }
}

impl Serialize for Scope {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Scope {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Scope, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
