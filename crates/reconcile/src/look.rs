//! Looking at nodes: reading what runs, and judging it against what is Applied.

use bronzeward_compile::plan::Target;
use bronzeward_intent::Intent;
use bronzeward_intent::cluster::Identity;
use bronzeward_secrets::{InstallationKey, Label};
use bronzeward_state::log::LogKind;
use bronzeward_state::model::{Observed, OpenDrift, Status};
use bronzeward_state::{Snapshot, Transaction};
use serde_json::json;
use talos_config::{Config, Limits, Options, SourceId};
use zeroize::Zeroizing;

use crate::drift::{Digests, Verdict, judge};
use crate::engine::{Due, Engine, Outcome};
use crate::ports::{NodeAccess, NodeAddress, Seen};
use crate::trouble::{Trouble, chain};
use crate::words::details;

/// What runs on a node, digested.
pub(crate) struct Look {
    pub(crate) seen: Seen,
    pub(crate) digests: Digests,
}

/// Why a node's word does not count.
pub(crate) type Why = String;

impl Engine {
    /// Reads the machines that are due, one transaction at a time.
    pub(crate) fn look(
        &mut self,
        snapshot: &Snapshot,
        due: &mut Due,
        outcome: &mut Outcome,
    ) -> Result<bool, Trouble> {
        let sweep = due.sweep || self.closed;
        let adopted: Vec<Status> =
            snapshot.statuses.values().filter(|status| status.applied.is_some()).cloned().collect();
        let mut transaction = Transaction::on(snapshot, self.now());
        for status in adopted {
            let key = (status.cluster.clone(), status.machine.clone());
            if !(sweep || due.machines.contains(&key)) || status.operation.is_some() {
                continue;
            }
            let Some(applied) = &status.applied else { continue };
            let name = format!("{}/{}", key.0, key.1);
            match self.read_machine(&key.0, &applied.target, &applied.identity) {
                Ok(look) => {
                    outcome.unreachable.remove(&name);
                    self.read_at.insert(key.clone(), self.now());
                    self.judge_look(&mut transaction, &status, &look);
                }
                Err(why) => {
                    outcome.unreachable.insert(name, why);
                }
            }
        }
        due.machines.clear();
        due.sweep = false;
        if !transaction.is_empty() {
            self.commit(transaction)?;
            return Ok(true);
        }
        if self.closed && snapshot.statuses.values().all(|status| status.operation.is_none()) {
            self.closed = false;
            self.disk.keep(|kept| kept.swept = true)?;
        }
        Ok(false)
    }

    /// Reads a machine at its target and checks that it is the one that is meant.
    pub(crate) fn read_machine(
        &self,
        cluster: &str,
        target: &Target,
        identity: &Identity,
    ) -> Result<Look, Why> {
        let at = NodeAddress { cluster: cluster.to_owned(), endpoint: target.endpoint.clone() };
        let (access, key) = self.access(cluster)?;
        let seen = self.world.nodes.read(&at, &access).map_err(|err| err.to_string())?;
        if seen.node_id.as_deref() != Some(identity.node.as_str())
            || identity.uuid.as_ref().is_some_and(|uuid| seen.uuid.as_ref() != Some(uuid))
        {
            return Err(format!("identity-mismatch: another machine answers at {}", target.endpoint));
        }
        if seen.role.is_some_and(|role| role != target.role) {
            return Err(format!("role-mismatch: the machine at {} is no {}", target.endpoint, target.role));
        }
        let intent = self.tip_intent()?;
        let repository = &intent.governance.repository.id;
        let wanted = intent
            .clusters
            .iter()
            .find(|(name, _)| name.as_str() == cluster)
            .map(|(_, of)| of.cluster.talos_cluster_id.clone());
        if let (Some(wanted), Some(found)) = (&wanted, &seen.cluster_id)
            && wanted != found
        {
            return Err(format!(
                "cluster-mismatch: the machine at {} belongs to another cluster",
                target.endpoint
            ));
        }
        let digests = digests(&key, repository, cluster, &seen.active);
        Ok(Look { seen, digests })
    }

    /// The access of a cluster and the installation key, from the tip of main and the governed commit.
    pub(crate) fn access(&self, cluster: &str) -> Result<(NodeAccess, InstallationKey), Why> {
        let key = self.installation_key()?;
        let intent = self.tip_intent()?;
        let name = cluster.parse().map_err(|_| format!("`{cluster}` names no cluster"))?;
        let of = intent.clusters.get(&name).ok_or_else(|| format!("The cluster `{cluster}` left main"))?;
        let locked = of.lock.secrets.get(ACCESS).ok_or_else(|| {
            format!("The lock of `{cluster}` has no `{ACCESS}`: `bronzeward init` makes it")
        })?;
        let tip = self.tip()?;
        let tree = self.trees.at(tip).map_err(|err| chain(&err))?;
        let read = |path: &str| tree.files.get(path).map(<[u8]>::to_vec);
        let secrets = bronzeward_compile::artifact::Secrets {
            intent: &intent,
            cluster: &name,
            read: &read,
            identity: &self.world.identity,
            key: &key,
        };
        let value = secrets.value(ACCESS, locked.version).map_err(|err| chain(&err))?;
        Ok((NodeAccess(value), key))
    }

    /// The installation key, from the governed commit.
    pub(crate) fn installation_key(&self) -> Result<InstallationKey, Why> {
        let governed = &self.chain().installation().governed.commit;
        let governance = self.trees.governance(governed).map_err(|err| chain(&err))?;
        let (id, bytes) = governance.installation.iter().next().ok_or("There is no installation key")?;
        bronzeward_secrets::age_file::open_installation(id, bytes, &self.world.identity)
            .map_err(|err| chain(&err))
    }

    pub(crate) fn tip(&self) -> Result<bronzeward_git::Oid, Why> {
        self.fetched.main.ok_or_else(|| "main was not read yet".to_owned())
    }

    pub(crate) fn tip_intent(&self) -> Result<std::rc::Rc<Intent>, Why> {
        self.trees.intent(&self.tip()?.to_string())
    }

    /// Applies the drift rules to an observation.
    pub(crate) fn judge_look(&self, transaction: &mut Transaction, status: &Status, look: &Look) {
        let mut status = transaction.status(&status.cluster, &status.machine);
        let (cluster, machine) = (status.cluster.clone(), status.machine.clone());
        let verdict = judge(&status, &look.digests);
        let (bytes, meaning) = (look.digests.bytes.clone(), look.digests.meaning.clone());
        let seen = details([("bytes", json!(bytes)), ("meaning", json!(meaning))]);
        match verdict {
            Verdict::NotJudged | Verdict::StillOpen => {}
            Verdict::Same => {
                if status.observed.is_some() {
                    status.observed = None;
                    transaction.set_status(status);
                    transaction.log(
                        &cluster,
                        &machine,
                        LogKind::Observed,
                        "what is Applied runs, byte for byte",
                        seen,
                    );
                }
            }
            Verdict::Reencoded => {
                if status.observed.as_ref().is_none_or(|old| old.bytes != bytes) {
                    status.observed = Some(self.observed(look));
                    transaction.set_status(status);
                    let message = "re-encoded: other bytes with the same meaning, which is no drift";
                    transaction.log(&cluster, &machine, LogKind::Observed, message, seen);
                }
            }
            Verdict::Opens => {
                let sequence = transaction.sequence();
                status.open_drift = Some(OpenDrift { sequence, opened: transaction.now(), bytes, meaning });
                status.observed = Some(self.observed(look));
                transaction.set_status(status);
                let message = format!("drift {sequence} opened: something else runs than what is Applied");
                transaction.log(&cluster, &machine, LogKind::DriftOpened, &message, seen);
            }
            Verdict::Changes => {
                let sequence = status.open_drift.as_ref().map_or(0, |drift| drift.sequence);
                if let Some(drift) = &mut status.open_drift {
                    drift.bytes = bytes;
                    drift.meaning = meaning;
                }
                status.observed = Some(self.observed(look));
                transaction.set_status(status);
                let message = format!("drift {sequence} changed: yet another configuration runs");
                transaction.log(&cluster, &machine, LogKind::DriftChanged, &message, seen);
            }
            Verdict::Returns => {
                let sequence = status.open_drift.as_ref().map_or(0, |drift| drift.sequence);
                status.open_drift = None;
                status.observed = None;
                transaction.set_status(status);
                let message = format!("drift {sequence} closed: returned, what is Applied runs again");
                transaction.log(&cluster, &machine, LogKind::DriftClosed, &message, seen);
            }
        }
    }

    fn observed(&self, look: &Look) -> Observed {
        Observed {
            at: self.now(),
            bytes: look.digests.bytes.clone(),
            meaning: Some(look.digests.meaning.clone()),
            version: look.seen.version.clone(),
        }
    }
}

/// Under which name the access to a cluster's nodes is kept.
pub const ACCESS: &str = "access/talos";

/// The keyed digests of what runs on a node. What we cannot read as Talos would has a meaning of its own, which is
/// never equal to one that we composed.
pub fn digests(key: &InstallationKey, repository: &str, cluster: &str, active: &[u8]) -> Digests {
    let bytes = key.digest(Label::Bytes, repository, cluster, "", active);
    let options = Options { opaque_tag: None, limits: Limits::default() };
    let canonical = Config::load(&talos_config::Tables::v1_13(), active, SourceId(0), &options)
        .ok()
        .and_then(|config| config.encode().ok())
        .map(Zeroizing::new);
    let meaning = match &canonical {
        Some(canonical) => key.digest(Label::Meaning, repository, cluster, "", canonical),
        None => key.digest(Label::Meaning, repository, cluster, "unreadable", active),
    };
    Digests { bytes, meaning }
}
