//! `render`: what a machine's files compose to, for one machine or for all.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::{Context, Result};
use bronzeward_compile::{compose, compose_each, compose_explained};
use bronzeward_intent::{Findings, Intent, Name};
use serde_json::{Value, json};
use talos_config::path::one_line;
use talos_config::{Config, Dialect, Explained, LeafValue, Limits, Origin, Rule};

use crate::cli::{Cli, Render};
use crate::context::{Clone, find_machine};
use crate::exit::{Exit, refuse};
use crate::output::{self, Format};

/// `render`.
pub fn run(cli: &Cli, args: &Render) -> Result<Exit> {
    let clone = Clone::open(cli)?;
    if let Some(path) = &args.patch {
        let bytes = fs::read(path).with_context(|| format!("Cannot read `{}`", path.display()))?;
        return render_patch(&path.display().to_string(), &bytes);
    }
    let intent = Intent::load(&clone.files(args.revision.as_deref())?).map_err(|f| refuse(f.to_string()))?;
    if let (true, Some(folder)) = (args.all, &args.output) {
        return all(&intent, folder, cli.format);
    }
    let (cluster, machine) = find_machine(&intent, args.machine.as_deref().unwrap_or_default())?;
    let composed = match args.explain {
        true => compose_explained(&intent, &cluster, &machine),
        false => compose(&intent, &cluster, &machine),
    };
    let composed = composed.map_err(|findings| refuse(findings.to_string()))?;
    for warning in composed.warnings.iter() {
        output::complain(&format!("warning: {warning}"));
    }
    if args.explain {
        let place = |origin| {
            let (file, pos) = composed.place(origin);
            format!("{file}:{pos}")
        };
        explain(&composed.config.redacted(HIDDEN), &place, cli.format);
        return Ok(Exit::Fine);
    }
    if let Some(file) = &args.output {
        fs::write(file, &composed.bytes).with_context(|| format!("Cannot write `{}`", file.display()))?;
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

/// What rendering all machines came to.
#[derive(Default)]
struct Tally {
    findings: Findings,
    written: Vec<(Name, Name, String)>,
    failed: Vec<(PathBuf, io::Error)>,
    refused: usize,
}

/// Writes every machine to `FOLDER/CLUSTER/MACHINE.yaml`. A machine that is refused is not written, and what stands
/// there from before is taken away: nobody should take it for what the files say now.
fn all(intent: &Intent, folder: &Path, format: Format) -> Result<Exit> {
    let mut machines = Vec::new();
    for (cluster, of_cluster) in &intent.clusters {
        let home = folder.join(cluster.as_str());
        fs::create_dir_all(&home).with_context(|| format!("Cannot make the folder `{}`", home.display()))?;
        machines.extend(of_cluster.assignments.keys().map(|machine| (cluster, machine)));
    }
    let tally = Mutex::new(Tally::default());
    let counted = || tally.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    compose_each(intent, &machines, false, &|cluster, machine, composed| {
        let file = folder.join(cluster.as_str()).join(format!("{machine}.yaml"));
        let written = match &composed {
            Ok(composed) => write(&file, &composed.bytes),
            Err(_) => remove(&file),
        };
        let mut tally = counted();
        if let Err(err) = written {
            tally.failed.push((file, err));
        }
        match composed {
            Ok(composed) => {
                tally.findings.extend(composed.warnings);
                tally.written.push((cluster.clone(), machine.clone(), composed.digest));
            }
            Err(findings) => {
                tally.refused += 1;
                tally.findings.extend(findings);
            }
        }
    });
    let mut tally = tally.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !tally.failed.is_empty() {
        let (file, err) = tally.failed.swap_remove(0);
        return Err(err).with_context(|| format!("Cannot write `{}`", file.display()));
    }
    tally.written.sort();
    report(&tally, folder, format);
    strangers(intent, folder)?;
    Ok(if tally.refused > 0 { Exit::Findings } else { Exit::Fine })
}

/// Writes a file that does not stand there as it should. It is written over, and cut off where it ends: a thousand
/// files that are emptied or removed first cost a file system more than everything else here.
fn write(file: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::read(file).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let mut open = fs::OpenOptions::new().write(true).create(true).truncate(false).open(file)?;
    open.write_all(bytes)?;
    open.set_len(bytes.len() as u64)
}

fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(err) if err.kind() != io::ErrorKind::NotFound => Err(err),
        _ => Ok(()),
    }
}

fn report(tally: &Tally, folder: &Path, format: Format) {
    // what a shared file says of every machine that it belongs to is said once
    for finding in tally.findings.clone().sorted() {
        output::complain(&format!("{}: {finding}", finding.severity.word()));
    }
    match format {
        Format::Text => {
            let refused = match tally.refused {
                0 => String::new(),
                refused => format!(", {refused} refused"),
            };
            output::line(&format!("{} machines in `{}`{refused}", tally.written.len(), folder.display()));
        }
        Format::Json => {
            let rows = tally.written.iter();
            let rows: Vec<Value> =
                rows.map(|(c, m, d)| json!({"cluster": c, "machine": m, "digest": d})).collect();
            output::json(&rows);
        }
    }
}

/// Files of an earlier run whose machines are gone.
fn strangers(intent: &Intent, folder: &Path) -> Result<()> {
    for (cluster, of_cluster) in &intent.clusters {
        let home = folder.join(cluster.as_str());
        for entry in fs::read_dir(&home).with_context(|| format!("Cannot read `{}`", home.display()))? {
            let name = entry?.file_name();
            let machine =
                name.to_str().and_then(|name| name.strip_suffix(".yaml")).and_then(|n| n.parse().ok());
            if !machine.is_some_and(|machine: Name| of_cluster.assignments.contains_key(&machine)) {
                let path = home.join(name);
                output::complain(&format!("warning: `{}` belongs to no machine; remove it", path.display()));
            }
        }
    }
    Ok(())
}

/// What stands for a value that is not shown.
pub(super) const HIDDEN: &str = "******";

/// Prints every value of a redacted configuration with its provenance.
pub(super) fn explain(config: &Config, place: &dyn Fn(Origin) -> String, format: Format) {
    let mut rows = Vec::new();
    for Explained { leaf, element, whole } in config.explain() {
        let path = format!("{}:{}", leaf.document, leaf.pointer);
        let value = match &leaf.value {
            LeafValue::Text(text) => text.clone(),
            LeafValue::Opaque(reference) => format!("<redacted:{reference}>"),
            LeafValue::Empty => "(empty)".to_owned(),
        };
        let rule = match leaf.rule {
            Rule::Replaced => "replaced",
            Rule::Appended => "appended",
            _ if whole.is_some() => "replaced",
            _ => "set",
        };
        let element = element.filter(|_| leaf.rule != Rule::Appended).map(|rule| rule.to_string());
        let overrode = leaf.overrode.or(whole).map(place);
        if format == Format::Json {
            rows.push(json!({
                "path": path, "value": value, "from": place(leaf.origin), "overrode": overrode,
                "rule": rule, "element": element,
            }));
            continue;
        }
        let all = if whole.is_some() { " as a whole" } else { "" };
        let mut how = match overrode {
            Some(overrode) => format!("{}, over {overrode}{all}", place(leaf.origin)),
            None => place(leaf.origin),
        };
        if rule == "appended" {
            how.push_str(", appended");
        }
        if let Some(element) = element {
            how.push_str(&format!(", {element}"));
        }
        let value: String = value.chars().map(|c| if c.is_control() { '␤' } else { c }).take(80).collect();
        output::line(&one_line(&format!("{path}  {value}  ({how})")));
    }
    if format == Format::Json {
        output::json(&rows);
    }
}

/// What talosctl can take of a fragment.
fn render_patch(path: &str, bytes: &[u8]) -> Result<Exit> {
    let documents = talos_config::read_stream(bytes, Dialect::default(), &Limits::default())
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
