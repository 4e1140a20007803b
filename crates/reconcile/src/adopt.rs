//! What is done without sending: adoptions and new addresses.

use bronzeward_compile::plan::MachineEntry;
use bronzeward_compile::{Composed, compose_base};
use bronzeward_state::log::LogKind;
use bronzeward_state::model::{Applied, AppliedSource, EntryState};
use bronzeward_state::{Snapshot, Transaction};
use jiff::Timestamp;
use serde_json::json;

use crate::act::{Ready, Step};
use crate::engine::Engine;
use crate::look::Look;
use crate::trouble::Trouble;
use crate::words::details;

impl Engine {
    /// Does the base alone compose what is adopted?
    fn composed_by_base(&self, entry: &MachineEntry, composed: &Composed) -> bool {
        let (Ok(cluster), Ok(machine)) = (entry.cluster.parse(), entry.machine.parse()) else { return false };
        self.tip_intent().ok().is_some_and(|intent| {
            compose_base(&intent, &cluster, &machine).is_ok_and(|base| base.digest == composed.digest)
        })
    }

    /// What runs becomes Applied, in one transaction; nothing is sent.
    pub(crate) fn adopt(
        &self,
        snapshot: &Snapshot,
        ready: &Ready,
        entry: &MachineEntry,
        look: &Look,
        started: Timestamp,
    ) -> Result<Step, Trouble> {
        let tip = self.tip().map_err(Trouble::Retry)?;
        let (composed, explained) = match self.artifact(snapshot, entry, tip) {
            Ok((composed, artifact)) => {
                let explained = artifact.meaning_digest == look.digests.meaning;
                (composed, explained)
            }
            Err(why) => return Ok(Step::Holds(why)),
        };
        if let Some(step) = self.stale(snapshot, started)? {
            return Ok(step);
        }
        let mut transaction = Transaction::on(snapshot, self.now());
        let (cluster, machine) = (entry.cluster.clone(), entry.machine.clone());
        let mut status = transaction.status(&cluster, &machine);
        let drift = status.open_drift.take();
        let revision = status.applied.as_ref().map_or(0, |applied| applied.revision) + 1;
        let base_only = self.composed_by_base(entry, &composed);
        status.turn += 1;
        status.observed = None;
        status.applied = Some(Applied {
            revision,
            release: ready.release.sequence,
            commit: tip.to_string(),
            source: AppliedSource::Adoption,
            composed: explained.then(|| composed.digest.clone()),
            references: composed.references_digest(),
            bytes: look.digests.bytes.clone(),
            meaning: look.digests.meaning.clone(),
            target: entry.target.clone(),
            identity: entry.identity.clone(),
            base_only,
        });
        transaction.set_status(status);
        let evidence = details([
            ("at", json!(started)),
            ("bytes", json!(look.digests.bytes)),
            ("meaning", json!(look.digests.meaning)),
            ("version", json!(look.seen.version)),
        ]);
        transaction
            .say(&format!("{machine}: adopted (release {}), nothing was sent", ready.release.sequence));
        transaction.log(&cluster, &machine, LogKind::Evidence, "read before the adoption", evidence);
        let how =
            if explained { "the base explains it" } else { "no document explains it, an apply follows" };
        let message = format!("what runs is Applied, revision {revision} ({how})");
        let entry_digest = ready.release.entries[ready.index].digest.clone();
        transaction.log(
            &cluster,
            &machine,
            LogKind::Adopted,
            &message,
            details([("entry", json!(entry_digest))]),
        );
        if let Some(drift) = drift {
            let message = format!("drift {} closed: adopted", drift.sequence);
            transaction.log(&cluster, &machine, LogKind::DriftClosed, &message, details([]));
        }
        self.complete(&mut transaction, &ready.release, ready.index, EntryState::Completed, None);
        self.commit(transaction)?;
        Ok(Step::Published)
    }

    pub(crate) fn readdress(
        &self,
        snapshot: &Snapshot,
        ready: &Ready,
        entry: &MachineEntry,
    ) -> Result<Step, Trouble> {
        let mut transaction = Transaction::on(snapshot, self.now());
        let (cluster, machine) = (entry.cluster.clone(), entry.machine.clone());
        let mut status = transaction.status(&cluster, &machine);
        status.turn += 1;
        if let Some(applied) = &mut status.applied {
            applied.target = entry.target.clone();
            applied.revision += 1;
        }
        transaction.set_status(status);
        let message = format!("answers at {} from now on; nothing was sent", entry.target.endpoint);
        transaction.log(&cluster, &machine, LogKind::Applied, &message, details([]));
        self.complete(&mut transaction, &ready.release, ready.index, EntryState::Completed, None);
        self.commit(transaction)?;
        Ok(Step::Published)
    }
}
