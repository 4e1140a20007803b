//! `check`, `plan`, `diff`: reading and computing, changing nothing.

use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use bronzeward_compile::{compose, compose_each};
use bronzeward_intent::{Finding, Findings, Intent};
use serde_json::{Value, json};

use crate::cli::{Check, Cli, Diff, PlanArgs};
use crate::context::{Clone, MAIN};
use crate::exit::{Exit, refuse};
use crate::output::{self, Format};
use crate::planning;

/// `check`.
pub fn check(cli: &Cli, args: &Check) -> Result<Exit> {
    let clone = Clone::open(cli)?;
    let files = clone.files(args.revision.as_deref())?;
    let (intent, mut findings) = Intent::read(&files);
    if let Some(intent) = intent {
        // what is missing because it could not be read would be reported a second time, as missing
        let whole = !findings.has_errors();
        check_fragments(&intent, &mut findings);
        if whole {
            findings.extend(bronzeward_secrets::audit::check_store(&intent, &files));
            check_machines(&intent, &mut findings);
        }
    }
    let failed = findings.has_errors();
    let list = findings.sorted();
    match cli.format {
        Format::Json => output::json(&list.iter().map(finding_json).collect::<Vec<_>>()),
        Format::Text => {
            for finding in &list {
                output::line(&format!("{}: {finding}", finding.severity.word()));
            }
            if list.is_empty() {
                output::line("no findings");
            }
        }
    }
    Ok(if failed { Exit::Findings } else { Exit::Fine })
}

/// Every fragment, whether a machine selects it or not.
fn check_fragments(intent: &Intent, findings: &mut Findings) {
    for (cluster, of_cluster) in &intent.clusters {
        let tables = match compose::tables(cluster, &of_cluster.cluster.contract) {
            Ok(tables) => tables,
            Err(finding) => {
                findings.push(finding);
                continue;
            }
        };
        for source in intent.fragments.values().chain(of_cluster.fragments.values()) {
            if let Err(finding) = compose::check_patch(&tables, &source.path, &source.body) {
                findings.push(finding);
            }
        }
    }
}

/// Every machine is composed.
fn check_machines(intent: &Intent, findings: &mut Findings) {
    let machines: Vec<_> = intent.assigned().collect();
    let all = Mutex::new(findings);
    compose_each(intent, &machines, true, &|_, _, composed| {
        let more = composed.map_or_else(|refused| refused, |composed| composed.warnings);
        all.lock().unwrap_or_else(PoisonError::into_inner).extend(more);
    });
    let findings = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    single_approver(intent, findings);
}

/// With two approvers around, approving one's own change should no longer be the policy.
fn single_approver(intent: &Intent, findings: &mut Findings) {
    use bronzeward_intent::repository::SelfApproval;
    let governance = &intent.governance;
    let approvers = governance
        .repository
        .policy
        .principals
        .keys()
        .filter(|who| governance.may(who, bronzeward_intent::ActorRole::Approver))
        .count();
    if approvers >= 2 && governance.repository.policy.self_approval == SelfApproval::Allowed {
        let code = bronzeward_intent::finding::codes::POLICY;
        let message =
            format!("{approvers} people may approve, and one's own change may still be approved by oneself");
        let help = "set `policy.selfApproval: refused`";
        let top = bronzeward_intent::finding::TOP;
        findings.push(Finding::warning("bronzeward.yaml", top, code, message, help));
    }
}

fn finding_json(finding: &Finding) -> Value {
    json!({
        "code": finding.code.0,
        "severity": finding.severity.word(),
        "file": finding.file, "line": finding.pos.line, "column": finding.pos.column,
        "message": finding.message, "help": finding.help,
    })
}

/// `plan`.
pub fn plan(cli: &Cli, args: &PlanArgs) -> Result<Exit> {
    let clone = Clone::open(cli)?;
    let tips = clone.fetch()?;
    let branch = match &args.branch {
        Some(branch) => branch.clone(),
        None => clone.current_branch()?.unwrap_or_else(|| MAIN.to_owned()),
    };
    let stand = planning::stand(&clone, &tips, &branch)?;
    let shown = planning::show(&clone, &stand)?;
    let plan = &shown.planned.plan;
    match cli.format {
        Format::Text => {
            output::bytes(planning::text(&stand, &shown).as_bytes());
            if !plan.entries.is_empty() {
                output::line(&format!("  to approve: bronzeward approve {branch} --merge"));
            }
        }
        Format::Json => output::json(&json!({
            "digest": plan.digest(),
            "basis": {"head": stand.head.to_string(), "main": stand.main.to_string(), "state": stand.state.commit.to_string()},
            "plan": plan, "waiting": shown.planned.waiting, "carried": shown.carried, "changes": shown.changes,
            "findings": shown.planned.findings.clone().sorted().iter().map(finding_json).collect::<Vec<_>>(),
        })),
    }
    let refused = shown.planned.findings.has_errors();
    Ok(match (refused, args.exit_code && !plan.entries.is_empty()) {
        (true, _) => Exit::Findings,
        (false, true) => Exit::Changes,
        (false, false) => Exit::Fine,
    })
}

/// `diff`.
pub fn diff(cli: &Cli, args: &Diff) -> Result<Exit> {
    let clone = Clone::open(cli)?;
    let (old, new) =
        args.range.split_once("..").ok_or_else(|| refuse("Write two revisions, as in main..labels"))?;
    let old = clone.intent(clone.resolve(old)?)?;
    let new = clone.intent(clone.resolve(if new.is_empty() { "HEAD" } else { new })?)?;
    let changes = planning::diff_trees(&old, &new);
    if cli.format == Format::Json {
        output::json(&changes);
        return Ok(Exit::Fine);
    }
    if changes.is_empty() {
        output::line("no machine differs");
    }
    for (machine, lines) in &changes {
        output::line(machine);
        for change in lines {
            output::line(&format!("  {}", planning::change_text(change)));
        }
    }
    Ok(Exit::Fine)
}
