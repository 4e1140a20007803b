//! `bronzeward.yaml`: the repository's identity, its secret store, the policy and the defaults.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ApiVersion;
use crate::duration::Span;

/// `bronzeward.yaml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Repository {
    /// The format.
    pub api_version: ApiVersion,
    /// Always `Repository`.
    pub kind: RepositoryKind,
    /// A random id that is never used again.
    pub id: String,
    /// Which versions of the tool may work on this repository, as in `=0.1`.
    pub requires: String,
    /// Where secret values are kept.
    pub secrets: SecretStore,
    /// Who may do what.
    pub policy: Policy,
    /// Deadlines and bounds.
    #[serde(default)]
    pub defaults: Defaults,
}

/// The kind of [`Repository`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RepositoryKind {
    /// The one value.
    Repository,
}

/// Where secret values are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SecretStore {
    /// Which store.
    pub store: StoreKind,
    /// The address of an OpenBao or Vault server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Its KV version 2 mount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount: Option<String>,
    /// Its Transit mount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transit: Option<String>,
}

/// The kinds of secret stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StoreKind {
    /// Encrypted files in the repository.
    Age,
    /// An OpenBao or Vault server.
    Openbao,
}

/// Who may do what, and how many must agree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Policy {
    /// Principals by e-mail address.
    pub principals: BTreeMap<String, Principal>,
    /// How many distinct human approvers.
    pub approvals: ApprovalCounts,
    /// Whether an approval counts of somebody who contributed to the change.
    pub self_approval: SelfApproval,
    /// Whether commits on `main` must be signed by a principal.
    #[serde(default)]
    pub signed_main: SignedMain,
}

/// One principal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Principal {
    /// A person or a program.
    pub kind: PrincipalKind,
    /// What they may do.
    pub roles: Vec<ActorRole>,
    /// To whom the installation key and secret values are encrypted (`age1…` or `ssh-ed25519 …`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipient: Option<String>,
}

impl Principal {
    /// Does the principal hold a role?
    pub fn has(&self, role: ActorRole) -> bool {
        self.roles.contains(&role)
    }
}

/// A person or a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PrincipalKind {
    /// A person.
    Human,
    /// A program: never approves, unfreezes or accounts.
    Automation,
}

/// What a principal may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ActorRole {
    /// Writes drafts; imports when policy gives a recipient.
    Author,
    /// Whoever the forge lets write `main`.
    Publisher,
    /// Approves, unfreezes, denies.
    Approver,
    /// Accounts, recovers.
    RecoveryAdmin,
    /// Signs state commits and nothing else.
    Reconciler,
}

/// How many distinct human approvers a plan needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ApprovalCounts {
    /// For entries of machines.
    pub configuration: u32,
    /// For the entry of governance.
    pub governance: u32,
}

/// Whether a contributor's own approval counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SelfApproval {
    /// It counts and is marked.
    Allowed,
    /// It does not count.
    Refused,
}

/// Whether commits on `main` must be signed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SignedMain {
    /// They need not be.
    #[default]
    Optional,
    /// An approval counts only on a commit signed by a principal.
    Required,
}

/// Deadlines and bounds of approvals and dispatch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Defaults {
    /// How long an approval lives at most.
    pub expires: Span,
    /// How old evidence may be when it is committed.
    pub evidence_max_age: Span,
    /// How long after the start of a push the attempt that it records may still be sent.
    pub send_within: Span,
    /// How long a node may take to answer an apply.
    pub transport_deadline: Span,
    /// How long the configuration may take to be seen on the node.
    pub verification_deadline: Span,
    /// How long nothing else goes to a machine after a lost answer.
    pub settle_floor: Span,
    /// How often one operation may be sent.
    pub max_attempts: u32,
}

impl Default for Defaults {
    fn default() -> Defaults {
        Defaults {
            expires: Span::from_secs(7 * 86_400),
            evidence_max_age: Span::from_secs(300),
            send_within: Span::from_secs(10),
            transport_deadline: Span::from_secs(120),
            verification_deadline: Span::from_secs(300),
            settle_floor: Span::from_secs(30),
            max_attempts: 2,
        }
    }
}
