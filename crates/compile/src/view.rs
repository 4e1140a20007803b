//! What planning needs of the state: by value, never by age or clock.

use std::collections::BTreeMap;

use bronzeward_intent::cluster::Identity;

use crate::plan::Target;

/// The state, as planning sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateView {
    /// The shard.
    pub shard: String,
    /// The epoch.
    pub epoch: String,
    /// The digest of the governance in force.
    pub governed: String,
    /// Governance's turn.
    pub turn: u64,
    /// The machines of which something is known.
    pub machines: BTreeMap<(String, String), MachineView>,
}

impl StateView {
    /// What is known of a machine; nothing, for one that was never seen.
    pub fn machine(&self, cluster: &str, machine: &str) -> MachineView {
        self.machines.get(&(cluster.to_owned(), machine.to_owned())).cloned().unwrap_or_default()
    }
}

/// One machine, as planning sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineView {
    /// Raised whenever an entry of it is committed.
    pub turn: u64,
    /// What is Applied.
    pub applied: Option<AppliedView>,
    /// The open drift record.
    pub drift: Option<DriftView>,
    /// Is an operation in flight?
    pub in_flight: bool,
}

/// What is Applied on a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedView {
    /// Counts every change of Applied.
    pub revision: u64,
    /// The composed document's digest, if one explains it.
    pub composed: Option<String>,
    /// The digest of the references.
    pub references: String,
    /// The keyed digest of the meaning.
    pub meaning: String,
    /// The commit of `main` that it reached.
    pub commit: String,
    /// Did the base alone compose it?
    pub base_only: bool,
    /// Where the machine answers and what it is.
    pub target: Target,
    /// By what it is known.
    pub identity: Identity,
}

/// An open drift record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriftView {
    /// Its sequence number.
    pub sequence: u64,
    /// The keyed digest of the meaning last seen.
    pub meaning: String,
}
