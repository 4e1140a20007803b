//! `check`, `render`, `plan`, `diff`: reading and computing, changing nothing.

use anyhow::{Context, Result};
use bronzeward_compile::compose::{self, compose};
use bronzeward_intent::finding::Severity;
use bronzeward_intent::{Finding, Findings, Intent};
use serde_json::{Value, json};
use talos_config::LeafValue;

use crate::cli::{Check, Cli, Diff, PlanArgs, Render};
use crate::context::{Clone, MAIN, find_machine};
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
                let word = if finding.severity == Severity::Error { "error" } else { "warning" };
                output::line(&format!("{word}: {finding}"));
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
    for (cluster, of_cluster) in &intent.clusters {
        for machine in of_cluster.machines.keys().filter(|name| of_cluster.assignments.contains_key(*name)) {
            match compose(intent, cluster, machine) {
                Ok(composed) => findings.extend(composed.warnings),
                Err(more) => findings.extend(more),
            }
        }
    }
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
        "severity": if finding.severity == Severity::Error { "error" } else { "warning" },
        "file": finding.file, "line": finding.pos.line, "column": finding.pos.column,
        "message": finding.message, "help": finding.help,
    })
}

/// `render`.
pub fn render(cli: &Cli, args: &Render) -> Result<Exit> {
    let clone = Clone::open(cli)?;
    if let Some(path) = &args.patch {
        let bytes = std::fs::read(path).with_context(|| format!("Cannot read `{}`", path.display()))?;
        return render_patch(&path.display().to_string(), &bytes);
    }
    let intent = Intent::load(&clone.files(args.revision.as_deref())?).map_err(|f| refuse(f.to_string()))?;
    let (cluster, machine) = find_machine(&intent, args.machine.as_deref().unwrap_or_default())?;
    let composed = compose(&intent, &cluster, &machine).map_err(|findings| refuse(findings.to_string()))?;
    for warning in composed.warnings.iter() {
        output::complain(&format!("warning: {warning}"));
    }
    if args.explain {
        explain(&composed, cli.format);
        return Ok(Exit::Fine);
    }
    match cli.format {
        Format::Text => output::bytes(&composed.bytes),
        Format::Json => output::json(&json!({
            "cluster": cluster, "machine": machine, "digest": composed.digest, "references": composed.references,
            "reads": composed.reads, "document": String::from_utf8_lossy(&composed.bytes),
        })),
    }
    Ok(Exit::Fine)
}

fn explain(composed: &bronzeward_compile::Composed, format: Format) {
    let mut rows = Vec::new();
    for leaf in composed.config.leaves() {
        let (file, pos) = composed.place(leaf.origin);
        let overrode = leaf.overrode.map(|origin| {
            let (file, pos) = composed.place(origin);
            format!("{file}:{pos}")
        });
        let value = match leaf.value {
            LeafValue::Text(text) => text,
            LeafValue::Opaque(reference) => format!("<redacted:{reference}>"),
            LeafValue::Empty => "(empty)".to_owned(),
        };
        rows.push((format!("{}:{}", leaf.document, leaf.pointer), value, format!("{file}:{pos}"), overrode));
    }
    if format == Format::Json {
        let rows: Vec<Value> = rows
            .iter()
            .map(|(path, value, from, over)| json!({"path": path, "value": value, "from": from, "overrode": over}))
            .collect();
        return output::json(&rows);
    }
    for (path, value, from, overrode) in rows {
        let overrode = overrode.map(|place| format!(", over {place}")).unwrap_or_default();
        let value: String = value.chars().map(|c| if c.is_control() { '␤' } else { c }).take(80).collect();
        output::line(&format!("{path}  {value}  ({from}{overrode})"));
    }
}

/// What talosctl can take of a fragment.
fn render_patch(path: &str, bytes: &[u8]) -> Result<Exit> {
    let documents = talos_config::read_stream(bytes, talos_config::Dialect::default(), &talos_config::Limits::default())
        .map_err(|err| refuse(format!("{path}: {err}")))?;
    let mut out: Vec<u8> = Vec::new();
    for document in &documents {
        let Some(root) = &document.root else { continue };
        if bronzeward_intent::fragment::is_own(root) {
            continue;
        }
        let mut reference = None;
        root.walk(&mut |node| {
            if node.tag.as_deref() == Some(bronzeward_secrets::reference::TAG) {
                reference.get_or_insert(node.pos);
            }
        });
        if let Some(pos) = reference {
            let message =
                format!("{path}:{pos}: talosctl cannot take a reference; the reconciler places its value");
            return Err(refuse(message));
        }
        let text = &bytes[document.span.clone()];
        if !out.is_empty() && !text.starts_with(b"---") {
            out.extend(b"---\n");
        }
        out.extend(text);
    }
    output::bytes(&out);
    Ok(Exit::Fine)
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
