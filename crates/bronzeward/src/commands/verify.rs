//! `verify`: of every commit of main, whether it was accepted, unapproved or refused, and by which line.

use anyhow::Result;
use bronzeward_git::Oid;
use bronzeward_state::Snapshot;
use bronzeward_state::approval::{Approval, Place};
use bronzeward_state::model::Release;
use serde::Serialize;

use crate::cli::{Cli, Verify};
use crate::commands::status::verified_chain;
use crate::context::Clone;
use crate::exit::{Exit, refuse};
use crate::output::{self, Format};

#[derive(Serialize)]
struct Verdict {
    commit: String,
    verdict: &'static str,
    why: String,
    subject: String,
}

/// `verify`.
pub fn run(cli: &Cli, args: &Verify) -> Result<Exit> {
    let clone = Clone::open(cli)?;
    let tips = clone.fetch()?;
    let snapshot = clone.snapshot()?;
    let chain = verified_chain(cli, &clone, snapshot.commit)?;
    let (from, to) = match &args.range {
        None => (None, tips.main),
        Some(range) => {
            let (from, to) =
                range.split_once("..").ok_or_else(|| refuse("Write a range, as in main~5..main"))?;
            (Some(clone.resolve(from)?), clone.resolve(if to.is_empty() { "origin/main" } else { to })?)
        }
    };
    let commits = clone
        .repo
        .first_parents(from, to)?
        .ok_or_else(|| refuse("The range does not follow the first parents of main"))?;
    let mut verdicts = Vec::new();
    for commit in commits {
        verdicts.push(judge(&clone, &snapshot, commit)?);
    }
    let refused = verdicts.iter().any(|verdict| verdict.verdict == "refused");
    if cli.format == Format::Json {
        output::json(&verdicts);
    } else {
        for verdict in &verdicts {
            let short: String = verdict.commit.chars().take(10).collect();
            output::line(&format!(
                "{short}  {:<10}  {}  ({})",
                verdict.verdict, verdict.subject, verdict.why
            ));
        }
        match chain {
            Some(chain) => output::line(&format!(
                "state chain: sound, {} commits from the genesis to {}",
                chain.commits().len(),
                chain.tip()
            )),
            None => output::line(
                "state chain: not verified, since no settings name its root keys (--settings FILE)",
            ),
        }
    }
    Ok(if refused { Exit::Findings } else { Exit::Fine })
}

fn judge(clone: &Clone, snapshot: &Snapshot, commit: Oid) -> Result<Verdict> {
    let info = clone.repo.commit(commit)?;
    let name = commit.to_string();
    let verdict = |verdict, why: String| Verdict {
        commit: name.clone(),
        verdict,
        why,
        subject: info.subject().to_owned(),
    };
    if let Some(refused) = snapshot.releases.values().find(|r| r.found == name && r.refused.is_some()) {
        return Ok(verdict("refused", refused.refused.clone().unwrap_or_default()));
    }
    let carried = carried_ids(snapshot, &info.message);
    let accepted = |release: &&Release| {
        release.refused.is_none()
            && (carried.iter().any(|id| release.approvals.contains(id))
                || release.entries.iter().any(|entry| entry.matched.as_deref() == Some(name.as_str())))
    };
    if let Some(release) = snapshot.releases.values().find(accepted) {
        let line = if carried.is_empty() {
            format!(
                "{}/{}",
                bronzeward_state::APPROVALS.trim_start_matches("refs/heads/"),
                release.approvals.join(", ")
            )
        } else {
            "Bronzeward-Plan of its own message".to_owned()
        };
        let who: Vec<&str> = release.approvers.iter().map(|approver| approver.principal.as_str()).collect();
        return Ok(verdict(
            "accepted",
            format!("release {}, approved by {}, by {line}", release.sequence, who.join(", ")),
        ));
    }
    if info.parents.is_empty() || snapshot.installation.governed.commit == name {
        let why = if info.parents.is_empty() { "the first commit" } else { "its governance is in force" };
        return Ok(verdict("trusted", why.to_owned()));
    }
    Ok(verdict("unapproved", "no approval matches it: published, nothing sent for it".to_owned()))
}

fn carried_ids(snapshot: &Snapshot, message: &str) -> Vec<String> {
    let installation = &snapshot.installation;
    let place = Place {
        repository: &installation.repository,
        shard: &installation.shard,
        epoch: &installation.epoch,
    };
    match Approval::parse(message) {
        Ok(Some(parsed)) => Approval::ids(&parsed, place),
        _ => Vec::new(),
    }
}
