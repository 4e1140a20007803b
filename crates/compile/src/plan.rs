//! The plan: what would be *done*, as values that can be compared, signed and recomputed.
//!
//! No clock, no secret, no node: whoever has a clone can compute it.

use bronzeward_intent::canonical;
use bronzeward_intent::cluster::Identity;
use serde::{Deserialize, Serialize};

/// The format of plans and entries.
pub const FORMAT: u32 = 1;

/// A whole plan; its file is the canonical JSON of this value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Plan {
    /// Always [`FORMAT`].
    pub format: u32,
    /// The repository's id.
    pub repository: String,
    /// The shard.
    pub shard: String,
    /// The epoch.
    pub epoch: String,
    /// What computed it: shown and compared, never binding.
    pub renderer: Renderer,
    /// Governance first, then by cluster and machine.
    pub entries: Vec<Entry>,
}

/// What computed a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Renderer {
    /// This tool's version.
    pub tool: String,
    /// The digest of the tables.
    pub tables: String,
}

/// One thing that would be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Entry {
    /// A change of governance.
    Govern(GovernEntry),
    /// Something done to a machine.
    Machine(Box<MachineEntry>),
}

/// A change of governance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct GovernEntry {
    /// Always `govern`.
    pub operation: Govern,
    /// Governance's turn.
    pub turn: u64,
    /// The digest in force.
    pub from: String,
    /// The digest that would be.
    pub to: String,
}

/// The operation of a [`GovernEntry`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Govern {
    /// The one value.
    Govern,
}

/// Something done to a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct MachineEntry {
    /// The cluster.
    pub cluster: String,
    /// The machine.
    pub machine: String,
    /// By what it is known.
    pub identity: Identity,
    /// Where and what it is.
    pub target: Target,
    /// What is done.
    pub operation: Operation,
    /// How it is sent; null when nothing is sent.
    pub mode: Option<Mode>,
    /// The place of the machine's role in the rollout's order.
    pub wave: u64,
    /// The machine's turn.
    pub turn: u64,
    /// The composed document's digest.
    pub composed: Option<String>,
    /// Every reference that takes effect, sorted.
    pub references: Vec<PlannedReference>,
    /// What is Applied now.
    pub applied: Option<AppliedBinding>,
    /// What is expected on the node now.
    pub expects: Option<Expects>,
    /// The open drift that would be lost.
    pub overwrites: Option<Overwrites>,
    /// Is a reboot needed, and why?
    pub reboot: Reboot,
    /// Stable codes, sorted.
    pub risks: Vec<String>,
}

/// Where a machine's API answers and what the machine is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Target {
    /// Address and port.
    pub endpoint: String,
    /// The platform.
    pub platform: String,
    /// The role.
    pub role: String,
    /// The cluster's contract.
    pub contract: String,
}

/// What is done to a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// The composed document is sent.
    Apply,
    /// What runs becomes Applied; nothing is sent.
    Adopt,
    /// What is Applied is sent over an open drift.
    Revert,
    /// The target changes; nothing is sent.
    Readdress,
}

impl Operation {
    /// The word in plans.
    pub fn as_str(self) -> &'static str {
        match self {
            Operation::Apply => "apply",
            Operation::Adopt => "adopt",
            Operation::Revert => "revert",
            Operation::Readdress => "readdress",
        }
    }

    /// Does something go to the node?
    pub fn sends(self) -> bool {
        matches!(self, Operation::Apply | Operation::Revert)
    }
}

/// How a document is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Takes effect at once; refused by the node when it cannot.
    NoReboot,
    /// Takes effect at the next boot. Not supported yet: refused by name.
    Staged,
}

/// A reference that takes effect.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PlannedReference {
    /// The secret.
    pub name: String,
    /// Its version.
    pub version: u64,
    /// The keyed digest of its value.
    pub value: String,
}

/// What is Applied, as an entry binds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct AppliedBinding {
    /// Counts every change of Applied.
    pub revision: u64,
    /// The composed document's digest; null when no document explains what was adopted.
    pub composed: Option<String>,
    /// The digest of the references.
    pub references: String,
}

/// What is expected on the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Expects {
    /// The keyed digest of the meaning.
    pub meaning: String,
}

/// Which drift would be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Overwrites {
    /// The sequence number of the record.
    pub drift: u64,
}

/// Whether a change takes effect only at a boot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Reboot {
    /// Does it?
    pub needed: bool,
    /// Which fields.
    pub reasons: Vec<String>,
}

/// Whose entry it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// Governance.
    Governance,
    /// A machine.
    Machine {
        /// Its cluster.
        cluster: String,
        /// Its name.
        machine: String,
    },
}

impl Subject {
    /// A machine's.
    pub fn machine(cluster: impl Into<String>, machine: impl Into<String>) -> Subject {
        Subject::Machine { cluster: cluster.into(), machine: machine.into() }
    }
}

impl std::fmt::Display for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Subject::Governance => f.write_str("governance"),
            Subject::Machine { cluster, machine } => write!(f, "{cluster}/{machine}"),
        }
    }
}

impl std::str::FromStr for Subject {
    type Err = ();

    fn from_str(text: &str) -> Result<Subject, ()> {
        match text.split_once('/') {
            Some((cluster, machine)) => Ok(Subject::machine(cluster, machine)),
            None if text == "governance" => Ok(Subject::Governance),
            None => Err(()),
        }
    }
}

impl Entry {
    /// Whose it is.
    pub fn subject(&self) -> Subject {
        match self {
            Entry::Govern(_) => Subject::Governance,
            Entry::Machine(entry) => Subject::machine(&entry.cluster, &entry.machine),
        }
    }

    /// The word of its operation.
    pub fn operation(&self) -> &'static str {
        match self {
            Entry::Govern(_) => "govern",
            Entry::Machine(entry) => entry.operation.as_str(),
        }
    }

    /// The machine's entry, if it is one.
    pub fn as_machine(&self) -> Option<&MachineEntry> {
        match self {
            Entry::Machine(entry) => Some(entry),
            Entry::Govern(_) => None,
        }
    }

    /// The digest of an entry in its place: repository, shard and epoch.
    pub fn digest(&self, repository: &str, shard: &str, epoch: &str) -> String {
        canonical::digest(&serde_json::json!({
            "format": FORMAT, "repository": repository, "shard": shard, "epoch": epoch, "entry": self,
        }))
    }
}

impl Plan {
    /// The bytes of `plan.json`.
    pub fn to_bytes(&self) -> Vec<u8> {
        canonical::to_vec(self)
    }

    /// `sha256:…` of `plan.json`.
    pub fn digest(&self) -> String {
        canonical::sha256(&self.to_bytes())
    }

    /// The digest of one of its entries.
    pub fn entry_digest(&self, entry: &Entry) -> String {
        entry.digest(&self.repository, &self.shard, &self.epoch)
    }

    /// Reads `plan.json`: it must be canonical, so that one plan has one digest.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Plan, &'static str> {
        let plan: Plan =
            serde_json::from_slice(bytes).map_err(|_| "it is no plan that this version can read")?;
        if plan.format != FORMAT {
            return Err("its format is not 1");
        }
        if plan.to_bytes() != bytes {
            return Err("it is not in canonical form");
        }
        let subjects: Vec<Subject> = plan.entries.iter().map(Entry::subject).collect();
        if !subjects.is_sorted_by(|one, two| one < two) {
            return Err("its entries are not sorted, or one stands twice");
        }
        Ok(plan)
    }

    /// The entry of a subject.
    pub fn entry(&self, subject: &Subject) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.subject() == *subject)
    }
}

/// In which field two entries of one subject differ, and where that field comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// From the tree (or the turn): what was approved is no longer what main says.
    Tree(&'static str),
    /// From the state: it may come back.
    State(&'static str),
}

impl Difference {
    /// The field's name.
    pub fn field(self) -> &'static str {
        match self {
            Difference::Tree(field) | Difference::State(field) => field,
        }
    }
}

/// The first difference between an approved entry and the one recomputed; `None` when they are equal.
pub fn difference(approved: &Entry, now: &Entry) -> Option<Difference> {
    match (approved, now) {
        (Entry::Govern(one), Entry::Govern(two)) => [
            (one.turn == two.turn, Difference::Tree("turn")),
            (one.from == two.from, Difference::Tree("from")),
            (one.to == two.to, Difference::Tree("to")),
        ]
        .into_iter()
        .find_map(|(equal, difference)| (!equal).then_some(difference)),
        (Entry::Machine(one), Entry::Machine(two)) => machine_difference(one, two),
        _ => Some(Difference::Tree("operation")),
    }
}

fn machine_difference(one: &MachineEntry, two: &MachineEntry) -> Option<Difference> {
    [
        (one.turn == two.turn, Difference::Tree("turn")),
        (one.operation == two.operation, Difference::Tree("operation")),
        (one.identity == two.identity, Difference::Tree("identity")),
        (one.target == two.target, Difference::Tree("target")),
        (one.composed == two.composed, Difference::Tree("composed")),
        (one.references == two.references, Difference::Tree("references")),
        (one.mode == two.mode, Difference::Tree("mode")),
        (one.wave == two.wave, Difference::Tree("wave")),
        (one.applied == two.applied, Difference::State("applied")),
        (one.overwrites == two.overwrites, Difference::State("overwrites")),
        (one.expects == two.expects, Difference::State("expects")),
        (one.reboot == two.reboot, Difference::State("reboot")),
        (one.risks == two.risks, Difference::State("risks")),
        (one == two, Difference::Tree("machine")),
    ]
    .into_iter()
    .find_map(|(equal, difference)| (!equal).then_some(difference))
}

/// The digest of a list of references, as Applied keeps it.
pub fn references_digest(references: &[PlannedReference]) -> String {
    canonical::digest(references)
}
