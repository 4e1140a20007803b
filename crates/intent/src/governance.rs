//! Governance: who may do what, in force only from the governed commit.

use std::collections::BTreeMap;

use bronzeward_git::allowed_signers::{AllowedSigner, AllowedSigners};
use talos_config::Pos;

use crate::canonical;
use crate::cluster::{Cluster, Rollout};
use crate::files::Files;
use crate::finding::{Finding, Findings, TOP, codes};
use crate::fragment::read_own;
use crate::place::place;
use crate::repository::{ActorRole, Principal, PrincipalKind, Repository};

/// The repository's own file.
pub const REPOSITORY_FILE: &str = "bronzeward.yaml";
/// The signers.
pub const SIGNERS_FILE: &str = "allowed_signers";
/// The folder of the installation key.
pub const INSTALLATION: &str = "installation";

/// In which namespace approvals are signed.
const APPROVAL_NAMESPACE: &str = "bronzeward-approval";

/// `bronzeward.yaml`, `allowed_signers`, `installation/` and the rollout rules of one commit.
#[derive(Clone, Debug)]
pub struct Governance {
    /// `bronzeward.yaml`.
    pub repository: Repository,
    /// `allowed_signers`.
    pub signers: AllowedSigners,
    /// The installation key's files, by key id.
    pub installation: BTreeMap<String, Vec<u8>>,
    /// Rollout rules by cluster.
    pub rollouts: BTreeMap<String, Rollout>,
    /// The digest over all of it.
    pub digest: String,
}

impl Governance {
    /// Reads governance from a tree.
    ///
    /// # Errors
    /// What is wrong with it, by place.
    pub fn load(files: &Files) -> Result<Governance, Findings> {
        let mut findings = Findings::default();
        let repository = required(files, REPOSITORY_FILE, &mut findings).and_then(|bytes| {
            read_own::<Repository>(REPOSITORY_FILE, bytes).map_err(|f| findings.push(f)).ok()
        });
        let signers = required(files, SIGNERS_FILE, &mut findings).and_then(|bytes| {
            let read = AllowedSigners::parse(bytes);
            read.map_err(|err| {
                let pos = Pos { line: err.line as u32, column: 1 };
                let message = err.problem.to_string();
                let help =
                    "correct the line; the format is that of ssh-keygen(1), one principal and one key a line";
                findings.push(Finding::error(SIGNERS_FILE, pos, codes::SIGNERS, message, help));
            })
            .ok()
        });
        let installation = installation(files, &mut findings);
        let rollouts = rollouts(files);
        let (Some(repository), Some(signers)) = (repository, signers) else { return Err(findings) };
        let governance =
            Governance { digest: digest(files, &rollouts), repository, signers, installation, rollouts };
        governance.check(files, &mut findings);
        if findings.has_errors() { Err(findings) } else { Ok(governance) }
    }

    /// The principal of an address.
    pub fn principal(&self, email: &str) -> Option<&Principal> {
        self.repository.policy.principals.get(email)
    }

    /// Does a principal hold a role, being of a kind that may?
    pub fn may(&self, email: &str, role: ActorRole) -> bool {
        let human_only = matches!(role, ActorRole::Approver | ActorRole::RecoveryAdmin);
        self.principal(email)
            .is_some_and(|who| who.has(role) && (!human_only || who.kind == PrincipalKind::Human))
    }

    /// Everybody to whom the installation key is encrypted: reconcilers, approvers, and authors with a recipient.
    pub fn recipients(&self) -> BTreeMap<&str, &str> {
        let wanted = [ActorRole::Reconciler, ActorRole::Approver, ActorRole::Author];
        self.repository
            .policy
            .principals
            .iter()
            .filter(|(_, who)| wanted.iter().any(|role| who.has(*role)))
            .filter_map(|(email, who)| Some((email.as_str(), who.recipient.as_deref()?)))
            .collect()
    }

    fn check(&self, files: &Files, findings: &mut Findings) {
        let mut report = |steps: &[&str], message: String, help: &str| {
            let pos = place(files, REPOSITORY_FILE, steps);
            findings.push(Finding::error(REPOSITORY_FILE, pos, codes::POLICY, message, help));
        };
        let policy = &self.repository.policy;
        let approvers: Vec<&str> = policy
            .principals
            .keys()
            .map(String::as_str)
            .filter(|email| self.may(email, ActorRole::Approver))
            .filter(|email| {
                self.signers.lines().iter().any(|line| line.principal == **email && approves(line))
            })
            .collect();
        for (what, count) in
            [("configuration", policy.approvals.configuration), ("governance", policy.approvals.governance)]
        {
            if count == 0 || count as usize > approvers.len() {
                report(
                    &["policy", "approvals", what],
                    format!(
                        "`policy.approvals.{what}` asks for {count} approvers, {} could approve",
                        approvers.len()
                    ),
                    "an approver is a human with the role `approver` and a key in allowed_signers that may sign approvals",
                );
            }
        }
        for (email, who) in &policy.principals {
            let held =
                [ActorRole::Approver, ActorRole::RecoveryAdmin].into_iter().find(|role| who.has(*role));
            if who.kind == PrincipalKind::Automation && held.is_some() {
                let message = format!("`{email}` is automation and holds a role for people");
                report(&["policy", "principals", email], message, "take the role away");
            }
            if who.has(ActorRole::Reconciler) && who.roles.len() > 1 {
                report(
                    &["policy", "principals", email],
                    format!("`{email}` is a reconciler and holds other roles"),
                    "a reconciler signs state commits and nothing else",
                );
            }
        }
        for line in self.signers.lines() {
            if self.principal(&line.principal).is_none() {
                let pos = Pos { line: line.line as u32, column: 1 };
                let message = format!("`{}` is no principal of the policy", line.principal);
                let help = "add it to `policy.principals`, or remove the line";
                findings.push(Finding::error(SIGNERS_FILE, pos, codes::SIGNERS, message, help));
            }
        }
    }
}

/// May the key of a line sign approvals?
fn approves(line: &AllowedSigner) -> bool {
    line.namespaces.as_ref().is_none_or(|names| names.iter().any(|name| name == APPROVAL_NAMESPACE))
}

fn required<'a>(files: &'a Files, path: &str, findings: &mut Findings) -> Option<&'a [u8]> {
    let found = files.get(path);
    if found.is_none() {
        let help = "`bronzeward init` makes it";
        findings.push(Finding::error(path, TOP, codes::MISSING_FILE, "The file is missing", help));
    }
    found
}

fn installation(files: &Files, findings: &mut Findings) -> BTreeMap<String, Vec<u8>> {
    let mut keys = BTreeMap::new();
    for (path, bytes) in files.below(INSTALLATION) {
        let id = path.strip_prefix("installation/").and_then(|name| name.strip_suffix(".age"));
        let sound = |id: &str| {
            id.len() == 17
                && id.starts_with('k')
                && id[1..].bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        };
        match id.filter(|id| sound(id)) {
            Some(id) => {
                keys.insert(id.to_owned(), bytes.to_vec());
            }
            None => findings.push(Finding::error(
                path,
                TOP,
                codes::UNKNOWN_FILE,
                "Only the installation key may stand here",
                "its file is named installation/<key id>.age",
            )),
        }
    }
    if keys.len() != 1 {
        let message = format!("{} installation keys are there, one must be", keys.len());
        let help = "`bronzeward init` makes it; rotating it is not supported yet";
        findings.push(Finding::error(INSTALLATION, TOP, codes::MISSING_FILE, message, help));
    }
    keys
}

/// Rollout rules, as far as they can be read: a cluster file that cannot be is a finding of its own elsewhere.
fn rollouts(files: &Files) -> BTreeMap<String, Rollout> {
    let mut out = BTreeMap::new();
    for (path, bytes) in files.below("clusters") {
        let Some(cluster) =
            path.strip_prefix("clusters/").and_then(|rest| rest.strip_suffix("/cluster.yaml"))
        else {
            continue;
        };
        if !cluster.contains('/')
            && let Ok(read) = read_own::<Cluster>(path, bytes)
        {
            out.insert(cluster.to_owned(), read.rollout);
        }
    }
    out
}

/// SHA-256 of the canonical JSON of the files' own digests and the rollout sections.
fn digest(files: &Files, rollouts: &BTreeMap<String, Rollout>) -> String {
    let mut map = serde_json::Map::new();
    let plain = [REPOSITORY_FILE, SIGNERS_FILE].into_iter().filter_map(|path| Some((path, files.get(path)?)));
    for (path, bytes) in plain.chain(files.below(INSTALLATION)) {
        map.insert(path.to_owned(), canonical::sha256(bytes).into());
    }
    let rollouts = serde_json::to_value(rollouts).expect("BUG: rollout rules serialize");
    map.insert("rollout".to_owned(), rollouts);
    canonical::digest(&map)
}
