//! `freeze`, `unfreeze`, `revoke`: authority is taken away on the state branch, by compare-and-swap.

use std::time::{Duration, Instant};

use anyhow::Result;
use bronzeward_intent::Intent;
use bronzeward_state::transaction::write_act;
use bronzeward_state::{Act, Scope, StoreError};
use serde_json::json;

use crate::cli::{Cli, FreezeArgs, Revoke};
use crate::commands::now;
use crate::context::{Clone, find_machine};
use crate::exit::{Exit, refuse};
use crate::output::{self, Format};

/// `freeze` and `unfreeze`.
pub fn freeze(cli: &Cli, args: &FreezeArgs, close: bool) -> Result<Exit> {
    let clone = Clone::open(cli)?;
    let tips = clone.fetch()?;
    let intent = clone.intent(tips.main)?;
    let scope = scope_of(&intent, &args.scope)?;
    let (format, reason, at) = (1, args.reason.clone(), now());
    let act = if close {
        Act::Freeze { format, scope, reason, at }
    } else {
        Act::Unfreeze { format, scope, reason, at }
    };
    publish(cli, &clone, &act, &args.timeout)
}

/// `revoke`.
pub fn revoke(cli: &Cli, args: &Revoke) -> Result<Exit> {
    let clone = Clone::open(cli)?;
    let sound = args.approval.len() == 16 && args.approval.bytes().all(|b| b.is_ascii_hexdigit());
    if !sound {
        return Err(refuse("An approval's id is 16 hex digits, as `approve` and `status` print it"));
    }
    let act =
        Act::Revoke { format: 1, approval: args.approval.clone(), reason: args.reason.clone(), at: now() };
    publish(cli, &clone, &act, &args.timeout)
}

fn scope_of(intent: &Intent, text: &str) -> Result<Scope> {
    if let Ok(scope) = text.parse::<Scope>() {
        match &scope {
            Scope::Machine(cluster, machine) => {
                find_machine(intent, &format!("{cluster}/{machine}"))?;
            }
            Scope::Cluster(cluster) if !intent.clusters.keys().any(|known| known.as_str() == cluster) => {
                let known: Vec<String> = intent.clusters.keys().map(|name| format!("{name}/*")).collect();
                return Err(refuse(format!(
                    "There is no cluster `{cluster}`; there are {}",
                    known.join(", ")
                )));
            }
            _ => {}
        }
        return Ok(scope);
    }
    if intent.clusters.keys().any(|cluster| cluster.as_str() == text) {
        return Ok(Scope::Cluster(text.to_owned()));
    }
    let (cluster, machine) = find_machine(intent, text)?;
    Ok(Scope::Machine(cluster.to_string(), machine.to_string()))
}

fn publish(cli: &Cli, clone: &Clone, act: &Act, timeout: &str) -> Result<Exit> {
    let timeout: bronzeward_intent::Span = timeout.parse()?;
    let signer = clone.signer()?;
    let ident = clone.ident(now())?;
    let sequence = loop {
        let snapshot = clone.snapshot()?;
        let governance = clone.governance(&snapshot.installation.governed.commit)?;
        let who = clone.principal(&governance, &signer)?;
        if !act.allowed(&who, &governance) {
            return Err(refuse(format!("`{who}` may not {}", act.kind())));
        }
        let committed = write_act(&clone.repo, &snapshot, act, now(), &ident, &signer)?;
        match clone.store().publish(committed) {
            Ok(()) => break committed.sequence,
            // a lost push is never rebased: it is made again on the new tip
            Err(StoreError::LostRace) => {}
            Err(err) => return Err(err.into()),
        }
    };
    let acknowledged = wait_for(clone, sequence, timeout.as_duration())?;
    match cli.format {
        Format::Json => output::json(&json!({"act": sequence, "acknowledged": acknowledged})),
        Format::Text if acknowledged => {
            output::line(&format!("act {sequence}: {}, acknowledged", act.sentence()))
        }
        Format::Text => output::line(&format!(
            "act {sequence}: {}, recorded; the reconciler did not acknowledge it yet (no send can follow it all the same)",
            act.sentence()
        )),
    }
    Ok(if acknowledged { Exit::Fine } else { Exit::NotConfirmed })
}

#[allow(
    clippy::disallowed_methods,
    reason = "a person waits here: there is nothing to be told by but the remote"
)]
fn wait_for(clone: &Clone, sequence: u64, timeout: Duration) -> Result<bool> {
    let start = Instant::now();
    loop {
        if clone.snapshot()?.installation.seen.act >= sequence {
            return Ok(true);
        }
        if start.elapsed() >= timeout {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(250));
    }
}
