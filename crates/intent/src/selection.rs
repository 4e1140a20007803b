//! Which files compose a machine, and in which order.

use crate::cluster::{Assignment, Profile};
use crate::finding::{Finding, Findings, TOP, codes};
use crate::fragment::{Base, FragmentHeader, Source};
use crate::intent::{ClusterIntent, Intent};
use crate::name::{Layer, Name};

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
        let mut findings = Findings::default();
        let assignment_path = format!("clusters/{cluster_name}/assignments/{machine}.yaml");
        let missing = |message: String, help: &str| {
            Findings::from(Finding::error(&assignment_path, TOP, codes::MISSING_REFERENCE, message, help))
        };
        let Some(cluster) = self.clusters.get(cluster_name) else {
            return Err(missing(format!("There is no cluster `{cluster_name}`"), "name one that exists"));
        };
        let Some(assignment) = cluster.assignments.get(machine) else {
            return Err(missing(format!("The machine `{machine}` has no assignment"), "write the file"));
        };
        if !cluster.machines.contains_key(machine) {
            findings.extend(missing(
                format!("There is no machine `{machine}`"),
                "name one that exists, or remove the file",
            ));
        }
        let base_name = assignment.base.as_ref().unwrap_or(machine);
        let base = cluster.bases.get(base_name);
        if base.is_none() {
            let help = format!("`bronzeward import {machine}` makes it");
            findings.extend(missing(format!("There is no base `{base_name}`"), &help));
        }
        let mut reads = vec![
            format!("clusters/{cluster_name}/cluster.yaml"),
            format!("clusters/{cluster_name}/machines/{machine}.yaml"),
            format!("clusters/{cluster_name}/secrets.lock.yaml"),
            assignment_path.clone(),
        ];
        reads.extend(base.map(|base| base.path.clone()));
        let mut order =
            Order { intent: self, cluster, cluster_name, findings: &mut findings, reads: &mut reads };
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

struct Order<'a, 'b> {
    intent: &'a Intent,
    cluster: &'a ClusterIntent,
    cluster_name: &'b Name,
    findings: &'b mut Findings,
    reads: &'b mut Vec<String>,
}

impl<'a> Order<'a, '_> {
    fn fragments(&mut self, assignment: &'a Assignment, path: &str) -> Vec<Selected<'a>> {
        let mut profiles: Vec<(&'a Profile, String)> = Vec::new();
        for name in &assignment.profiles {
            let own = self.cluster.profiles.get(name);
            let Some(profile) = own.or_else(|| self.intent.profiles.get(name)) else {
                self.missing(path, format!("There is no profile `{name}`"));
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
                None => self.missing(path, format!("There is no fragment `{layer}/{name}`")),
            }
        }
    }

    fn missing(&mut self, path: &str, message: String) {
        let help = "correct the name, or write the file";
        self.findings.push(Finding::error(path, TOP, codes::MISSING_REFERENCE, message, help));
    }
}
