//! What acceptance kept of a release, judged again: a logged `approved` proves nothing.

use std::collections::BTreeSet;

use bronzeward_compile::plan::Plan;
use bronzeward_git::TreeView;
use bronzeward_intent::repository::SelfApproval;
use bronzeward_intent::{Governance, canonical};
use ssh_key::public::KeyData;

use crate::accept::{Judge, accept};
use crate::approval::{Approval, Place};
use crate::model::{EntryState, Installation, Release, ReleaseEntry};
use crate::snapshot::release_files;

/// How an unsigned commit stands among the contributors.
pub const UNSIGNED: &str = "unsigned";

/// Did the approver sign a part of what it approves? Unknown is at worst that.
pub fn is_self(key: &str, entry: &ReleaseEntry) -> bool {
    entry.contributors.iter().any(|contributor| contributor == key || contributor == UNSIGNED)
}

/// Reads and judges again what a release keeps, by the governance at its acceptance: statement, signatures, roles,
/// plan, expiry and entries. Revoked and denied approvals are for whoever counts.
///
/// # Errors
/// Why the statement does not carry the release.
pub fn verify(
    tree: &TreeView,
    installation: &Installation,
    release: &Release,
    governance: &Governance,
    root_keys: &[KeyData],
) -> Result<Plan, String> {
    let (bytes, statement) = release_files(tree, release.sequence).map_err(|err| err.to_string())?;
    let plan = Plan::parse(&bytes).map_err(str::to_owned)?;
    let parsed = Approval::parse_kept(&statement).map_err(|err| err.to_string())?;
    let parsed = parsed.ok_or("it is empty")?;
    if canonical::sha256(&bytes) != parsed.statement.plan {
        return Err("another plan was signed".to_owned());
    }
    let Installation { repository, shard, epoch, .. } = installation;
    if (&plan.repository, &plan.shard, &plan.epoch) != (repository, shard, epoch) {
        return Err("its plan is of another repository, shard or epoch".to_owned());
    }
    let signed = parsed.verify(Place { repository, shard, epoch }).map_err(|err| err.to_string())?;
    let none = BTreeSet::new();
    let judge = Judge { governance, root_keys, denied: &none, revoked: &none, now: release.accepted };
    let accepted = accept(&parsed.statement, &signed, &plan, &judge).map_err(|err| err.to_string())?;
    if accepted.approvers != release.approvers {
        return Err("it names other approvers".to_owned());
    }
    if release.expires > accepted.expires {
        return Err("it expires earlier".to_owned());
    }
    let same = plan.entries.len() == release.entries.len()
        && plan.entries.iter().zip(&release.entries).all(|(planned, entry)| {
            plan.entry_digest(planned) == entry.digest && planned.subject().to_string() == entry.subject
        });
    if same { Ok(plan) } else { Err("its plan holds other entries".to_owned()) }
}

/// Who counts for an entry: distinct approvers over releases that carry it, or a root key for governance.
pub struct Count<'a> {
    /// The governance in force.
    pub governance: &'a Governance,
    /// Fingerprints of denied keys.
    pub denied: &'a BTreeSet<&'a str>,
    /// Ids of revoked approvals.
    pub revoked: &'a BTreeSet<&'a str>,
}

impl Count<'_> {
    /// How many count among these releases for the entry where it stands in `state`, and how many policy asks for.
    pub fn of<'r>(
        &self,
        releases: impl IntoIterator<Item = &'r Release>,
        digest: &str,
        governs: bool,
        state: EntryState,
    ) -> (u32, u32) {
        let policy = &self.governance.repository.policy;
        let want = if governs { policy.approvals.governance } else { policy.approvals.configuration }.max(1);
        let mut who: BTreeSet<&str> = BTreeSet::new();
        for release in releases.into_iter().filter(|release| release.refused.is_none()) {
            for same in release.entries.iter().filter(|entry| entry.digest == digest && entry.state == state)
            {
                for approver in &release.approvers {
                    let void = self.denied.contains(approver.key.as_str())
                        || self.revoked.contains(approver.approval.as_str());
                    if void {
                        continue;
                    }
                    if governs && approver.principal == bronzeward_git::allowed_signers::ROOT {
                        return (want, want);
                    }
                    if !is_self(&approver.key, same) || policy.self_approval == SelfApproval::Allowed {
                        who.insert(&approver.principal);
                    }
                }
            }
        }
        (u32::try_from(who.len()).unwrap_or(u32::MAX), want)
    }
}
