//! `status`, `log`, `settings`: where things stand.

use std::time::{Duration, Instant};

use anyhow::Result;
use bronzeward_compile::plan::{Entry, Plan};
use bronzeward_reconcile::gate::decide::unsupported;
use bronzeward_state::model::{EntryState, ReleaseEntry, Status as MachineStatus};
use bronzeward_state::{Chain, Snapshot};
use serde_json::{Value, json};

use crate::cli::{Cli, Log, Status};
use crate::context::{Clone, find_machine};
use crate::exit::{Exit, refuse};
use crate::output::{self, Format};
use crate::settings::Settings;

/// `status`.
#[allow(
    clippy::disallowed_methods,
    reason = "a person waits here: there is nothing to be told by but the remote"
)]
pub fn status(cli: &Cli, args: &Status) -> Result<Exit> {
    let clone = Clone::open(cli)?;
    let timeout: bronzeward_intent::Span = args.timeout.parse()?;
    let start = Instant::now();
    loop {
        let tips = clone.fetch()?;
        let snapshot = clone.snapshot()?;
        let seen = sees(&snapshot, &tips);
        let settled = seen && is_settled(&snapshot) && all_approvals_seen(&tips, &snapshot);
        if !args.wait || settled {
            print(cli, &clone, &tips, &snapshot)?;
            return Ok(Exit::Fine);
        }
        if start.elapsed() >= timeout.as_duration() {
            print(cli, &clone, &tips, &snapshot)?;
            return Ok(Exit::NotConfirmed);
        }
        std::thread::sleep(Duration::from_millis(250));
    }
}

/// Has the reconciler seen the tip of main?
fn sees(snapshot: &Snapshot, tips: &crate::context::Tips) -> bool {
    snapshot.installation.seen.main.parse().ok() == Some(tips.main)
}

/// Nothing is in flight, and no entry is approved and not yet committed, but for frozen machines.
fn is_settled(snapshot: &Snapshot) -> bool {
    let busy = snapshot.statuses.values().any(|status| status.operation.is_some());
    let frozen = |subject: &str| {
        snapshot
            .statuses
            .values()
            .any(|s| format!("{}/{}", s.cluster, s.machine) == subject && s.frozen.is_some())
    };
    let open = snapshot
        .releases
        .values()
        .filter(|release| release.refused.is_none())
        .flat_map(|release| &release.entries)
        .any(|entry| {
            let sends = matches!(entry.operation.as_str(), "apply" | "revert");
            entry.state == EntryState::Approved && !(sends && frozen(&entry.subject))
        });
    !busy && !open
}

/// Has the reconciler judged every approval that is on the remote?
fn all_approvals_seen(tips: &crate::context::Tips, snapshot: &Snapshot) -> bool {
    tips.branches
        .keys()
        .filter_map(|name| name.strip_prefix("bronzeward/approvals/"))
        .all(|id| snapshot.releases.values().any(|release| release.approvals.iter().any(|known| known == id)))
}

/// One word for a machine.
pub fn word(status: &MachineStatus) -> &'static str {
    let pending = match (&status.desired, &status.applied) {
        (Some(desired), Some(applied)) => {
            Some(&desired.composed) != applied.composed.as_ref() || desired.references != applied.references
        }
        _ => false,
    };
    match status {
        MachineStatus { applied: None, .. } => "never-adopted",
        MachineStatus { operation: Some(_), .. } => "in-flight",
        MachineStatus { open_drift: Some(_), .. } => "drifted",
        _ if pending => "pending",
        _ => "applied",
    }
}

fn print(cli: &Cli, clone: &Clone, tips: &crate::context::Tips, snapshot: &Snapshot) -> Result<()> {
    let installation = &snapshot.installation;
    if cli.format == Format::Json {
        let machines: Vec<Value> = snapshot
            .statuses
            .values()
            .map(|status| json!({"state": word(status), "status": status}))
            .collect();
        output::json(&json!({
            "sequence": installation.sequence, "epoch": installation.epoch, "owner": installation.owner,
            "seen": installation.seen, "governed": installation.governed, "machines": machines,
            "releases": snapshot.releases.values().collect::<Vec<_>>(),
        }));
        return Ok(());
    }
    let owner = installation.owner.as_ref().map_or("nobody yet".to_owned(), ToString::to_string);
    output::line(&format!("state sequence {}, owned by {owner}", installation.sequence));
    if !sees(snapshot, tips) {
        output::line(&format!("main is at {}, not seen by the reconciler yet", tips.main));
    }
    let governance = clone.governance(&tips.main.to_string());
    if governance.as_ref().is_ok_and(|governance| governance.digest != installation.governed.digest) {
        output::line(
            "governance-changed: main holds a change of governance that is not approved: nothing is sent (`bronzeward approve main --only`)",
        );
    }
    print_machines(clone, tips, snapshot);
    print_releases(snapshot);
    Ok(())
}

fn print_machines(clone: &Clone, tips: &crate::context::Tips, snapshot: &Snapshot) {
    for status in snapshot.statuses.values() {
        let mut line = format!("{}/{}  {}", status.cluster, status.machine, word(status));
        if let Some(applied) = &status.applied {
            line.push_str(&format!("  revision {} (release {})", applied.revision, applied.release));
        }
        if let Some(drift) = &status.open_drift {
            line.push_str(&format!("  drift {} since {}", drift.sequence, drift.opened));
        }
        if let Some(act) = status.frozen {
            line.push_str(&format!("  frozen by act {act}"));
        }
        output::line(&line);
    }
    let Ok(intent) = clone.intent(tips.main) else { return };
    for (cluster, of) in &intent.clusters {
        for machine in of.machines.keys() {
            if !snapshot.statuses.contains_key(&(cluster.to_string(), machine.to_string())) {
                output::line(&format!("{cluster}/{machine}  never-adopted"));
            }
        }
    }
}

fn print_releases(snapshot: &Snapshot) {
    for release in snapshot.releases.values() {
        if let Some(refused) = &release.refused {
            output::line(&format!("release {}  refused: {refused}", release.sequence));
            continue;
        }
        let open = |entry: &&ReleaseEntry| entry.state.is_open() || entry.state == EntryState::Committed;
        let plan =
            snapshot.release_files(release.sequence).ok().and_then(|(plan, _)| Plan::parse(&plan).ok());
        for entry in release.entries.iter().filter(open) {
            let mut detail = entry.detail.as_deref().map(|detail| format!(" ({detail})")).unwrap_or_default();
            let subject = entry.subject.parse().ok();
            let planned = plan.as_ref().zip(subject).and_then(|(plan, subject)| plan.entry(&subject));
            if let Some(what) = planned.and_then(Entry::as_machine).and_then(unsupported) {
                detail.push_str(&format!(" (waits, not-supported: {what})"));
            }
            let own = release
                .approvers
                .iter()
                .any(|approver| bronzeward_state::kept::is_self(&approver.key, entry));
            output::line(&format!(
                "release {}  {} {}  {}{detail}{}  approval {}",
                release.sequence,
                entry.operation,
                entry.subject,
                entry.state.as_str(),
                if own { "  selfApproval" } else { "" },
                release.approvals.join(", ")
            ));
        }
    }
}

/// `log`.
pub fn log(cli: &Cli, args: &Log) -> Result<Exit> {
    let clone = Clone::open(cli)?;
    let tips = clone.fetch()?;
    let snapshot = clone.snapshot()?;
    let (cluster, machine) = find_machine(&*clone.intent(tips.main)?, &args.machine)?;
    let entries = snapshot.log(cluster.as_str(), machine.as_str())?;
    if cli.format == Format::Json {
        output::json(&entries);
        return Ok(Exit::Fine);
    }
    for entry in entries {
        output::line(&format!(
            "{:>6}  {}  {:<13} {}",
            entry.sequence,
            entry.at,
            entry.kind.as_str(),
            entry.message
        ));
    }
    Ok(Exit::Fine)
}

/// `settings`.
pub fn settings(cli: &Cli) -> Result<Exit> {
    let person = match Clone::open(cli) {
        Ok(clone) => Ok(clone.person),
        // the reconciler's settings stand where no clone is
        Err(err) if cli.settings.is_some() => Err(err),
        Err(err) => return Err(err),
    };
    let reconciler = cli.settings.as_deref().map(Settings::read).transpose()?;
    if cli.format == Format::Json {
        output::json(&json!({"person": person.ok(), "reconciler": reconciler}));
        return Ok(Exit::Fine);
    }
    match &person {
        Ok(person) => {
            for (name, setting) in [
                ("talosconfig", &person.talosconfig),
                ("age_identity", &person.age_identity),
                ("signing_key", &person.signing_key),
            ] {
                let value = setting.value.as_deref().unwrap_or("(not set)");
                output::line(&format!("{name} = {value}  # {}", setting.from));
            }
        }
        Err(err) => output::complain(&format!("{err:#}")),
    }
    if let Some(reconciler) = reconciler {
        output::line(&format!("# {}", Settings::path(cli)?.display()));
        output::bytes(toml::to_string(&reconciler)?.as_bytes());
    }
    Ok(Exit::Fine)
}

/// The chain, verified from its genesis, when the settings that name its anchor are at hand.
pub(crate) fn verified_chain(cli: &Cli, clone: &Clone, tip: bronzeward_git::Oid) -> Result<Option<Chain>> {
    let Some(path) = &cli.settings else { return Ok(None) };
    let settings = Settings::read(path)?;
    let keys = settings
        .root_keys
        .iter()
        .map(|text| bronzeward_git::sign::parse_public(text).map(|key| key.key_data().clone()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| refuse("A root key in the settings cannot be read"))?;
    let first = clone.repo.first_parents(None, tip)?.and_then(|all| all.first().copied()).unwrap_or(tip);
    let mut chain = Chain::genesis(&clone.repo, first, &keys)?;
    let governance = |commit: &str| {
        clone.governance(commit).map(std::sync::Arc::new).map_err(|_| {
            bronzeward_state::chain::ChainError::Governance {
                commit: commit.to_owned(),
                source: Box::default(),
            }
        })
    };
    chain.advance(&clone.repo, tip, &governance)?;
    Ok(Some(chain))
}
