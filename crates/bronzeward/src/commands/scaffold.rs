//! `new`: files with the right shape, on the branch that is checked out; nothing is committed.

use anyhow::{Context, Result};
use bronzeward_intent::yaml_text::to_yaml;
use bronzeward_intent::{Assignment, Intent, Layer, Name};

use crate::cli::{Cli, New};
use crate::context::{Clone, MAIN, find_machine};
use crate::exit::{Exit, refuse};
use crate::output;

/// `new`.
pub fn run(cli: &Cli, args: &New) -> Result<Exit> {
    let clone = Clone::open(cli)?;
    if clone.current_branch()?.as_deref() == Some(MAIN) {
        return Err(refuse("main changes by approved merges alone: `git switch -c DRAFT` first"));
    }
    match args {
        New::Fragment { name, to, cluster } => fragment(&clone, name, to, cluster.as_deref()),
        New::Profile { name, cluster } => profile(&clone, name, cluster.as_deref()),
    }
}

fn folder(cluster: Option<&str>, kind: &str) -> Result<String> {
    Ok(match cluster {
        Some(cluster) => format!("clusters/{}/{kind}", cluster.parse::<Name>()?),
        None => kind.to_owned(),
    })
}

fn fragment(clone: &Clone, name: &str, to: &[String], cluster: Option<&str>) -> Result<Exit> {
    let (layer, name) =
        name.split_once('/').ok_or_else(|| refuse("Write layer and name, as in role/labels"))?;
    let (layer, name): (Layer, Name) = (layer.parse()?, name.parse()?);
    let path = format!("{}/{layer}/{name}.yaml", folder(cluster, "fragments")?);
    let text = "apiVersion: bronzeward.dev/v1alpha1\nkind: Fragment\ndescription: \"\"\n---\n\
                # A Talos strategic merge patch: replace this with what the machines should get.\n\
                machine:\n    nodeLabels:\n        example.org/changeme: \"true\"\n";
    write_new(clone, &path, text)?;
    let intent = if to.is_empty() { None } else { Some(load(clone)?) };
    for machine in to {
        let intent = intent.as_ref().ok_or_else(|| refuse("The tree cannot be read"))?;
        let (in_cluster, machine) = find_machine(intent, machine)?;
        let mut assignment: Assignment =
            intent.clusters[&in_cluster].assignments.get(&machine).cloned().ok_or_else(|| {
                refuse(format!("`{machine}` has no assignment: `bronzeward import {machine}` makes it"))
            })?;
        let list = assignment.fragments.entry(layer).or_default();
        if !list.contains(&name) {
            list.push(name.clone());
        }
        let path = format!("clusters/{in_cluster}/assignments/{machine}.yaml");
        std::fs::write(clone.dir.join(&path), to_yaml(&assignment))
            .with_context(|| format!("Cannot write `{path}`"))?;
        output::line(&format!("changed {path}"));
    }
    Ok(Exit::Fine)
}

fn profile(clone: &Clone, name: &str, cluster: Option<&str>) -> Result<Exit> {
    let name: Name = name.parse()?;
    let path = format!("{}/{name}.yaml", folder(cluster, "profiles")?);
    let text = format!(
        "apiVersion: {}\nkind: Profile\nname: {name}\nfragments: {{}}\n",
        bronzeward_intent::API_VERSION
    );
    write_new(clone, &path, &text)?;
    Ok(Exit::Fine)
}

fn load(clone: &Clone) -> Result<Intent> {
    Intent::load(&clone.work_files()?).map_err(|findings| refuse(findings.to_string()))
}

fn write_new(clone: &Clone, path: &str, text: &str) -> Result<()> {
    let full = clone.dir.join(path);
    if full.exists() {
        return Err(refuse(format!("`{path}` is there already")));
    }
    if let Some(folder) = full.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("Cannot make the folder of `{path}`"))?;
    }
    std::fs::write(&full, text).with_context(|| format!("Cannot write `{path}`"))?;
    output::line(&format!("made {path}"));
    Ok(())
}
