//! Which files compose a machine, and in which order.

use talos_config::Pos;

use crate::cluster::{Assignment, Profile};
use crate::files::Files;
use crate::finding::{Finding, Findings, TOP, codes};
use crate::fragment::{Base, FragmentHeader, Source};
use crate::intent::{ClusterIntent, Intent};
use crate::name::{Layer, Name};
use crate::place::place;

/// One selected fragment.
#[derive(Clone, Copy, Debug)]
pub struct Selected<'a> {
    /// Its layer.
    pub layer: Layer,
    /// Its name.
    pub name: &'a Name,
    /// Its file.
    pub source: &'a Source<FragmentHeader>,
}

/// What composes a machine: the base, then the fragments in order.
#[derive(Clone, Debug)]
pub struct Selection<'a> {
    /// The base's name.
    pub base_name: &'a Name,
    /// The base's file.
    pub base: &'a Source<Base>,
    /// The fragments, lowest first.
    pub fragments: Vec<Selected<'a>>,
    /// Every file that the composition reads, sorted.
    pub reads: Vec<String>,
}

impl Intent {
    /// What composes a machine.
    ///
    /// Inside a layer the profiles' fragments come first, in the assignment's order, then the assignment's own;
    /// what is selected twice composes once, at its first place.
    ///
    /// # Errors
    /// What is named and does not exist. A machine without an assignment or a base is such a finding.
    pub fn selection<'a>(
        &'a self,
        cluster_name: &Name,
        machine: &'a Name,
    ) -> Result<Selection<'a>, Findings> {
        self.select(cluster_name, machine, Look(None))
    }

    /// The same, with the files at hand to say where something is wrong.
    pub(crate) fn select<'a>(
        &'a self,
        cluster_name: &Name,
        machine: &'a Name,
        look: Look<'_>,
    ) -> Result<Selection<'a>, Findings> {
        let mut findings = Findings::default();
        let assignment_path = format!("clusters/{cluster_name}/assignments/{machine}.yaml");
        let missing = |steps: &[&str], message: String, help: &str| {
            let pos = look.place(&assignment_path, steps);
            Findings::from(Finding::error(&assignment_path, pos, codes::MISSING_REFERENCE, message, help))
        };
        let Some(cluster) = self.clusters.get(cluster_name) else {
            return Err(missing(
                &[],
                format!("There is no cluster `{cluster_name}`"),
                "name one that exists",
            ));
        };
        let Some(assignment) = cluster.assignments.get(machine) else {
            return Err(missing(&[], format!("The machine `{machine}` has no assignment"), "write the file"));
        };
        let unread =
            |folder: &str, name: &Name| look.has(&format!("clusters/{cluster_name}/{folder}/{name}.yaml"));
        if !cluster.machines.contains_key(machine) && !unread("machines", machine) {
            let help = "name one that exists, or remove the file";
            findings.extend(missing(&["machine"], format!("There is no machine `{machine}`"), help));
        }
        let base_name = assignment.base.as_ref().unwrap_or(machine);
        let base = cluster.bases.get(base_name);
        if base.is_none() && !unread("bases", base_name) {
            let help = format!("`bronzeward import {machine}` makes it");
            findings.extend(missing(&["base"], format!("There is no base `{base_name}`"), &help));
        }
        let mut reads = vec![
            format!("clusters/{cluster_name}/cluster.yaml"),
            format!("clusters/{cluster_name}/machines/{machine}.yaml"),
            format!("clusters/{cluster_name}/secrets.lock.yaml"),
            assignment_path.clone(),
        ];
        reads.extend(base.map(|base| base.path.clone()));
        let mut order =
            Order { intent: self, cluster, cluster_name, look, findings: &mut findings, reads: &mut reads };
        let fragments = order.fragments(assignment, &assignment_path);
        match base {
            Some(base) if !findings.has_errors() => {
                reads.sort();
                reads.dedup();
                Ok(Selection { base_name, base, fragments, reads })
            }
            _ => Err(findings),
        }
    }
}

/// The files from which an intent is being read, if it is: they know places, and what is there and could not be read
/// (which is a finding of its own, so it is not missing).
#[derive(Clone, Copy)]
pub(crate) struct Look<'a>(pub(crate) Option<&'a Files>);

impl Look<'_> {
    fn place(self, path: &str, steps: &[&str]) -> Pos {
        self.0.map_or(TOP, |files| place(files, path, steps))
    }

    fn has(self, path: &str) -> bool {
        self.0.is_some_and(|files| files.get(path).is_some())
    }
}

struct Order<'a, 'b> {
    intent: &'a Intent,
    cluster: &'a ClusterIntent,
    cluster_name: &'b Name,
    look: Look<'b>,
    findings: &'b mut Findings,
    reads: &'b mut Vec<String>,
}

impl<'a> Order<'a, '_> {
    fn fragments(&mut self, assignment: &'a Assignment, path: &str) -> Vec<Selected<'a>> {
        let mut profiles: Vec<(&'a Profile, String)> = Vec::new();
        for name in &assignment.profiles {
            let own = self.cluster.profiles.get(name);
            let Some(profile) = own.or_else(|| self.intent.profiles.get(name)) else {
                if self.unread(&format!("profiles/{name}.yaml")) {
                    continue;
                }
                self.missing(path, &["profiles", name.as_str()], format!("There is no profile `{name}`"));
                continue;
            };
            let folder = if own.is_some() {
                format!("clusters/{}/profiles", self.cluster_name)
            } else {
                "profiles".into()
            };
            profiles.push((profile, format!("{folder}/{name}.yaml")));
        }
        self.reads.extend(profiles.iter().map(|(_, path)| path.clone()));
        let mut out: Vec<Selected<'a>> = Vec::new();
        for layer in Layer::ALL {
            for (profile, profile_path) in &profiles {
                self.layer(layer, profile.fragments.get(&layer), profile_path, &mut out);
            }
            self.layer(layer, assignment.fragments.get(&layer), path, &mut out);
        }
        out
    }

    fn layer(&mut self, layer: Layer, names: Option<&'a Vec<Name>>, path: &str, out: &mut Vec<Selected<'a>>) {
        for name in names.into_iter().flatten() {
            if out.iter().any(|one| one.layer == layer && one.name == name) {
                continue;
            }
            let key = (layer, name.clone());
            match self.cluster.fragments.get(&key).or_else(|| self.intent.fragments.get(&key)) {
                Some(source) => {
                    self.reads.push(source.path.clone());
                    out.push(Selected { layer, name, source });
                }
                None if self.unread(&format!("fragments/{layer}/{name}.yaml")) => {}
                None => {
                    let steps = ["fragments", layer.as_str(), name.as_str()];
                    self.missing(path, &steps, format!("There is no fragment `{layer}/{name}`"));
                }
            }
        }
    }

    /// Is there such a file, shared or the cluster's own, that could not be read?
    fn unread(&self, path: &str) -> bool {
        self.look.has(path) || self.look.has(&format!("clusters/{}/{path}", self.cluster_name))
    }

    fn missing(&mut self, path: &str, steps: &[&str], message: String) {
        let pos = self.look.place(path, steps);
        let help = "correct the name, or write the file";
        self.findings.push(Finding::error(path, pos, codes::MISSING_REFERENCE, message, help));
    }
}
