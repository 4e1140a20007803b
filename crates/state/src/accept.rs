//! Whose word counts: an approval is accepted or refused once, for good.

use std::collections::BTreeSet;

use bronzeward_compile::plan::{Entry, Plan};
use bronzeward_git::allowed_signers::ROOT;
use bronzeward_git::sign::fingerprint;
use bronzeward_intent::{ActorRole, Governance, PrincipalKind};
use jiff::{SignedDuration, Timestamp};
use ssh_key::public::KeyData;

use crate::approval::{NAMESPACE, Signed, Statement};
use crate::model::Approver;

/// By what an approval is judged.
#[derive(Clone, Copy, Debug)]
pub struct Judge<'a> {
    /// The governance in force.
    pub governance: &'a Governance,
    /// Root keys: alone, for governance, at any time.
    pub root_keys: &'a [KeyData],
    /// Fingerprints of denied keys.
    pub denied: &'a BTreeSet<&'a str>,
    /// Ids of revoked approvals.
    pub revoked: &'a BTreeSet<&'a str>,
    /// The reconciler's clock.
    pub now: Timestamp,
}

/// Why an approval is refused, for good.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The trailers or the signature cannot be read, or do not fit.
    #[error("approval-malformed: {0}")]
    Malformed(String),
    /// The signer is none of the governed commit's.
    #[error("approval-signer-unknown: the key {key} stands in no line of the governed allowed_signers")]
    UnknownSigner {
        /// Its fingerprint.
        key: String,
    },
    /// The key belongs to somebody else than the statement names.
    #[error("approval-signer-mismatch: the statement names `{named}`, the key is `{owner}`'s")]
    Mismatch {
        /// Whom the statement names.
        named: String,
        /// Whose key it is.
        owner: String,
    },
    /// The signer may not approve.
    #[error("approval-signer-unauthorized: `{who}` does not hold the role `approver`")]
    NotApprover {
        /// Who.
        who: String,
    },
    /// Automation never approves.
    #[error("approval-signer-automation: `{who}` is automation, and only people approve")]
    Automation {
        /// Who.
        who: String,
    },
    /// The key is denied.
    #[error("approval-signer-denied: the key {key} is denied")]
    Denied {
        /// Its fingerprint.
        key: String,
    },
    /// The approval was revoked.
    #[error("approval-revoked: {id}")]
    Revoked {
        /// The approval.
        id: String,
    },
    /// It had expired when it was first seen.
    #[error("approval-expired: at {at}")]
    Expired {
        /// When it expired.
        at: Timestamp,
    },
    /// The plan cannot be found or read.
    #[error("approval-plan-missing: {0}")]
    Plan(String),
    /// The plan belongs to another repository, shard or epoch.
    #[error("approval-plan-mismatch: the plan is of another repository, shard or epoch")]
    Elsewhere,
    /// Governance and machines in one plan.
    #[error("approval-mixed: a change of governance is approved alone")]
    Mixed,
    /// A root key approves governance only.
    #[error("approval-root: a root key approves a change of governance, and nothing else")]
    Root,
    /// The basis is not on main.
    #[error("approval-basis: the tip of main that it names is not on main")]
    Basis,
    /// The plan has no entry.
    #[error("approval-empty: the plan holds no entry")]
    Empty,
    /// Policy asks that the commit on main be signed too.
    #[error("approval-commit-unsigned: policy asks that the commit on main be signed by a principal")]
    CommitUnsigned,
}

/// An approval that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Who approved.
    pub approvers: Vec<Approver>,
    /// Until when it lives.
    pub expires: Timestamp,
}

/// Judges an approval whose signatures fit.
///
/// # Errors
/// The [`Refusal`], which is final for this statement.
pub fn accept(
    statement: &Statement,
    signed: &[Signed],
    plan: &Plan,
    judge: &Judge<'_>,
) -> Result<Accepted, Refusal> {
    if plan.entries.is_empty() {
        return Err(Refusal::Empty);
    }
    let governs = plan.entries.iter().any(|entry| matches!(entry, Entry::Govern(_)));
    if governs && plan.entries.len() > 1 {
        return Err(Refusal::Mixed);
    }
    if statement.expires <= judge.now {
        return Err(Refusal::Expired { at: statement.expires });
    }
    let approvers = signed.iter().map(|one| approver(one, governs, judge)).collect::<Result<Vec<_>, _>>()?;
    let longest = judge.governance.repository.defaults.expires.as_millis();
    let cap = SignedDuration::from_millis(i64::try_from(longest).unwrap_or(i64::MAX));
    let expires = judge.now.checked_add(cap).map_or(statement.expires, |cap| cap.min(statement.expires));
    Ok(Accepted { approvers, expires })
}

fn approver(one: &Signed, governs: bool, judge: &Judge<'_>) -> Result<Approver, Refusal> {
    let key = fingerprint(&one.key);
    if judge.denied.contains(key.as_str()) {
        return Err(Refusal::Denied { key });
    }
    if judge.revoked.contains(one.id.as_str()) {
        return Err(Refusal::Revoked { id: one.id.clone() });
    }
    let accepted = |principal: &str| Approver {
        principal: principal.to_owned(),
        key: key.clone(),
        approval: one.id.clone(),
    };
    if one.approver == ROOT {
        return match (judge.root_keys.contains(&one.key), governs) {
            (true, true) => Ok(accepted(ROOT)),
            (true, false) => Err(Refusal::Root),
            (false, _) => Err(Refusal::UnknownSigner { key }),
        };
    }
    let signers = &judge.governance.signers;
    let Some(owner) = signers.principal(&one.key, NAMESPACE, judge.now.as_second()) else {
        return Err(Refusal::UnknownSigner { key });
    };
    if owner != one.approver {
        return Err(Refusal::Mismatch { named: one.approver.clone(), owner: owner.to_owned() });
    }
    let who = owner.to_owned();
    match judge.governance.principal(owner) {
        Some(principal) if principal.kind == PrincipalKind::Automation => Err(Refusal::Automation { who }),
        Some(principal) if principal.has(ActorRole::Approver) => Ok(accepted(owner)),
        _ => Err(Refusal::NotApprover { who }),
    }
}
