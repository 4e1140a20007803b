//! Whether an approved entry may be committed now.

use std::collections::BTreeSet;
use std::fmt;

use bronzeward_compile::plan::{Entry, MachineEntry, Mode, Operation, Subject};
use bronzeward_intent::Governance;
use bronzeward_state::kept::Count;
use bronzeward_state::model::{EntryState, Release, ReleaseEntry, Status};
use jiff::Timestamp;

/// What the gate sees when it decides.
pub struct Gate<'a> {
    /// The governance in force at commitment.
    pub governance: &'a Governance,
    /// Does the seen tip say the same governance?
    pub governance_current: bool,
    /// Every release.
    pub releases: &'a [&'a Release],
    /// What is known of every machine.
    pub statuses: &'a [&'a Status],
    /// The act that freezes a machine, if one does.
    pub frozen_by: &'a dyn Fn(&str, &str) -> Option<u64>,
    /// Fingerprints of denied keys.
    pub denied: &'a BTreeSet<&'a str>,
    /// Ids of revoked approvals.
    pub revoked: &'a BTreeSet<&'a str>,
    /// The reconciler's clock.
    pub now: Timestamp,
}

/// Why an entry does not go now. It may later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    /// It is not approved at the seen tip.
    NotApproved,
    /// It expired.
    Expired,
    /// Too few approvals count.
    Approvals {
        /// How many count.
        have: u32,
        /// How many policy asks for.
        want: u32,
    },
    /// The tip says another governance than the one in force.
    Governance,
    /// It is frozen.
    Frozen(u64),
    /// An operation is in flight on this machine.
    InFlight,
    /// An operation is in flight on another machine: one at a time.
    OneAtATime(String),
    /// An earlier wave is not done.
    Wave(String),
    /// A drift is open that the entry does not name.
    Drift(u64),
    /// A machine of the rollout failed.
    Halted(String),
    /// Not supported by this version.
    Unsupported(&'static str),
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Hold::NotApproved => f.write_str("not approved at the tip of main"),
            Hold::Expired => f.write_str("expired"),
            Hold::Approvals { have, want } => write!(f, "{have} of {want} approvals"),
            Hold::Governance => {
                f.write_str("governance-changed: main holds a change of governance that is not approved")
            }
            Hold::Frozen(act) => write!(f, "frozen by act {act}"),
            Hold::InFlight => f.write_str("in-flight: an operation is not finished"),
            Hold::OneAtATime(other) => write!(f, "waits for {other}"),
            Hold::Wave(other) => write!(f, "waits for the wave of {other}"),
            Hold::Drift(drift) => write!(f, "drift {drift} is open"),
            Hold::Halted(other) => write!(f, "the rollout is halted: {other} failed"),
            Hold::Unsupported(what) => write!(f, "not-supported: {what}"),
        }
    }
}

impl Gate<'_> {
    /// May this entry be committed now?
    ///
    /// # Errors
    /// The first reason why not.
    pub fn decide(&self, release: &Release, entry: &ReleaseEntry, approved: &Entry) -> Result<(), Hold> {
        if entry.state != EntryState::Approved || release.refused.is_some() {
            return Err(Hold::NotApproved);
        }
        if release.expires <= self.now {
            return Err(Hold::Expired);
        }
        self.count(entry, approved)?;
        match approved {
            Entry::Govern(_) => Ok(()),
            Entry::Machine(machine) => self.machine(machine),
        }
    }

    fn count(&self, entry: &ReleaseEntry, approved: &Entry) -> Result<(), Hold> {
        let governs = matches!(approved, Entry::Govern(_));
        self.enough(&entry.digest, governs, EntryState::Approved)
    }

    /// Distinct approvers over every live approval of this very entry, where it stands in `state`.
    ///
    /// # Errors
    /// [`Hold::Approvals`] when they are too few.
    pub fn enough(&self, digest: &str, governs: bool, state: EntryState) -> Result<(), Hold> {
        let count = Count { governance: self.governance, denied: self.denied, revoked: self.revoked };
        let live = self.releases.iter().copied().filter(|release| release.expires > self.now);
        let (have, want) = count.of(live, digest, governs, state);
        if have >= want { Ok(()) } else { Err(Hold::Approvals { have, want }) }
    }

    fn machine(&self, entry: &MachineEntry) -> Result<(), Hold> {
        if !self.governance_current {
            return Err(Hold::Governance);
        }
        let status = self.statuses.iter().find(|s| s.cluster == entry.cluster && s.machine == entry.machine);
        if status.is_some_and(|status| status.operation.is_some()) {
            return Err(Hold::InFlight);
        }
        let drift = status.and_then(|status| status.open_drift.as_ref());
        if let Some(drift) = drift
            && !names_drift(entry, drift.sequence, &drift.meaning)
        {
            return Err(Hold::Drift(drift.sequence));
        }
        if !entry.operation.sends() {
            return Ok(());
        }
        if let Some(act) = (self.frozen_by)(&entry.cluster, &entry.machine) {
            return Err(Hold::Frozen(act));
        }
        if let Some(what) = unsupported(entry) {
            return Err(Hold::Unsupported(what));
        }
        if let Some(other) = self.statuses.iter().find(|status| status.operation.is_some()) {
            return Err(Hold::OneAtATime(format!("{}/{}", other.cluster, other.machine)));
        }
        self.rollout(entry)
    }

    /// Earlier waves first; the first failure halts the rest.
    fn rollout(&self, entry: &MachineEntry) -> Result<(), Hold> {
        let subject = Subject::machine(&entry.cluster, &entry.machine).to_string();
        let rules = self.governance.rollouts.get(&entry.cluster).cloned().unwrap_or_default();
        for release in self.releases.iter().filter(|release| release.refused.is_none()) {
            let of_cluster = |other: &&ReleaseEntry| {
                other.subject != subject && other.subject.starts_with(&format!("{}/", entry.cluster))
            };
            let belongs =
                release.entries.iter().any(|other| other.subject == subject && other.state.is_open());
            for other in release.entries.iter().filter(of_cluster) {
                let failed = matches!(other.state, EntryState::Failed | EntryState::Rejected);
                if rules.halt_on_failure && belongs && failed {
                    return Err(Hold::Halted(other.subject.clone()));
                }
                let undone = matches!(other.state, EntryState::Approved | EntryState::Committed);
                if undone && other.wave.is_some_and(|wave| wave < entry.wave) {
                    return Err(Hold::Wave(other.subject.clone()));
                }
            }
        }
        Ok(())
    }
}

/// What this version cannot send yet, said already when it is planned.
pub fn unsupported(entry: &MachineEntry) -> Option<&'static str> {
    if !entry.operation.sends() {
        return None;
    }
    if entry.target.role != "worker" {
        return Some("sending to a control plane");
    }
    let staged = entry.mode != Some(Mode::NoReboot) || entry.reboot.needed;
    staged.then_some("a change that needs a reboot (mode staged)")
}

fn names_drift(entry: &MachineEntry, sequence: u64, meaning: &str) -> bool {
    let overwrites = entry.overwrites.is_some_and(|overwrites| overwrites.drift == sequence);
    let expects = entry.expects.as_ref().is_some_and(|expects| expects.meaning == meaning);
    match entry.operation {
        Operation::Apply | Operation::Revert => overwrites && expects,
        Operation::Adopt => expects,
        Operation::Readdress => false,
    }
}
