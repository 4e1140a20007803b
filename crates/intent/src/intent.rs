//! The whole tree, read in one pass.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;

use crate::cluster::{Assignment, Cluster, Identity, Machine, Profile, Wave};
use crate::files::Files;
use crate::finding::{Finding, Findings, TOP, codes};
use crate::fragment::{Base, FragmentHeader, Source, read_own, split};
use crate::governance::{Governance, REPOSITORY_FILE};
use crate::lock::SecretsLock;
use crate::name::{Layer, Name};
use crate::parallel::in_parallel;
use crate::place::place;
use crate::selection::Look;

/// A shared thing and a cluster's own live in one space of names.
pub type Fragments = BTreeMap<(Layer, Name), Source<FragmentHeader>>;

/// Everything that `main` says.
#[derive(Clone, Debug)]
pub struct Intent {
    /// Who may do what, as this tree says it (in force is the governed commit's).
    pub governance: Governance,
    /// The fragments shared by every cluster.
    pub fragments: Fragments,
    /// The profiles shared by every cluster.
    pub profiles: BTreeMap<Name, Profile>,
    /// The clusters.
    pub clusters: BTreeMap<Name, ClusterIntent>,
}

/// What `main` says of one cluster.
#[derive(Clone, Debug)]
pub struct ClusterIntent {
    /// `cluster.yaml`.
    pub cluster: Cluster,
    /// The machines.
    pub machines: BTreeMap<Name, Machine>,
    /// The assignments, by machine.
    pub assignments: BTreeMap<Name, Assignment>,
    /// The cluster's own fragments.
    pub fragments: Fragments,
    /// The cluster's own profiles.
    pub profiles: BTreeMap<Name, Profile>,
    /// The bases.
    pub bases: BTreeMap<Name, Source<Base>>,
    /// Which version of each secret is in use.
    pub lock: SecretsLock,
    /// The embedded store's files: name and version to path.
    pub secret_files: BTreeMap<(String, u64), String>,
}

impl Intent {
    /// Reads a tree. Findings are complete: one pass names everything that is wrong.
    ///
    /// # Errors
    /// What is wrong, when anything refuses.
    pub fn load(files: &Files) -> Result<Intent, Findings> {
        match Intent::read(files) {
            (Some(intent), findings) if !findings.has_errors() => Ok(intent),
            (_, findings) => Err(findings),
        }
    }

    /// Reads a whole tree as far as it can be read: what has findings may be missing in it. Without governance there
    /// is nothing to go by.
    pub fn read(files: &Files) -> (Option<Intent>, Findings) {
        let mut reader = Reader { files, findings: Findings::default() };
        for (path, what) in files.odd().filter(|(path, _)| is_ours(path)) {
            let message = format!("Here stands {what}");
            reader.report(path, codes::NOT_A_FILE, message, "only regular files may stand here");
        }
        let governance = Governance::load(files).map_err(|findings| reader.findings.extend(findings)).ok();
        let fragments = reader.fragments("fragments");
        let profiles = reader.profiles("profiles");
        let clusters = reader.clusters();
        let Some(governance) = governance else { return (None, reader.findings) };
        let intent = Intent { governance, fragments, profiles, clusters };
        intent.check(files, &mut reader.findings);
        (Some(intent), reader.findings)
    }

    /// Every machine that has an assignment, with its cluster, in order.
    pub fn assigned(&self) -> impl Iterator<Item = (&Name, &Name)> {
        self.clusters.iter().flat_map(|(name, cluster)| {
            let machines =
                cluster.machines.keys().filter(|machine| cluster.assignments.contains_key(*machine));
            machines.map(move |machine| (name, machine))
        })
    }

    fn check(&self, files: &Files, findings: &mut Findings) {
        self.check_requires(files, findings);
        crate::unsupported::check(self, files, findings);
        let mut identities: BTreeMap<String, String> = BTreeMap::new();
        self.check_unused_profiles(files, findings);
        for (name, cluster) in &self.clusters {
            self.check_names(files, name, cluster, findings);
            check_rollout(files, name, cluster, findings);
            for (machine, file) in &cluster.machines {
                let path = format!("clusters/{name}/machines/{machine}.yaml");
                check_identity(files, &path, &file.identity, &mut identities, findings);
                let assignment = format!("clusters/{name}/assignments/{machine}.yaml");
                if files.get(&assignment).is_none() {
                    let message = format!("The machine `{machine}` has no assignment");
                    let help = format!("write {assignment}, or `bronzeward import {machine}`");
                    findings.push(Finding::warning(&path, TOP, codes::MISSING_REFERENCE, message, help));
                }
            }
        }
    }

    fn check_requires(&self, files: &Files, findings: &mut Findings) {
        let requires = &self.governance.repository.requires;
        let ours = semver::Version::parse(env!("CARGO_PKG_VERSION")).ok();
        let fits = semver::VersionReq::parse(requires).ok().zip(ours).map(|(req, ours)| req.matches(&ours));
        if fits != Some(true) {
            let message = format!(
                "The repository requires the tool version `{requires}`, this is {}",
                env!("CARGO_PKG_VERSION")
            );
            let help = "use a version that fits, or change `requires`";
            let pos = place(files, REPOSITORY_FILE, &["requires"]);
            findings.push(Finding::error(REPOSITORY_FILE, pos, codes::REQUIRES, message, help));
        }
    }

    /// A profile that a machine uses is checked with that machine.
    fn check_unused_profiles(&self, files: &Files, findings: &mut Findings) {
        let used: Vec<&Name> = self
            .clusters
            .values()
            .flat_map(|cluster| cluster.assignments.values())
            .flat_map(|file| &file.profiles)
            .collect();
        let mut known: Vec<&Fragments> = vec![&self.fragments];
        known.extend(self.clusters.values().map(|cluster| &cluster.fragments));
        for (name, profile) in self.profiles.iter().filter(|(name, _)| !used.contains(name)) {
            check_profile(files, &format!("profiles/{name}.yaml"), profile, &known, findings);
        }
    }

    fn check_names(&self, files: &Files, name: &Name, cluster: &ClusterIntent, findings: &mut Findings) {
        for (key, source) in &cluster.fragments {
            if let Some(other) = self.fragments.get(key) {
                let message = format!("The fragment `{}/{}` is also shared, in {}", key.0, key.1, other.path);
                findings.push(Finding::error(
                    &source.path,
                    TOP,
                    codes::DUPLICATE,
                    message,
                    "rename one of the two",
                ));
            }
        }
        for profile in cluster.profiles.keys().filter(|profile| self.profiles.contains_key(*profile)) {
            let path = format!("clusters/{name}/profiles/{profile}.yaml");
            let message = format!("The profile `{profile}` is also shared, in profiles/{profile}.yaml");
            let pos = place(files, &path, &["name"]);
            findings.push(Finding::error(path, pos, codes::DUPLICATE, message, "rename one of the two"));
        }
        let used: Vec<&Name> = cluster.assignments.values().flat_map(|file| &file.profiles).collect();
        for (profile, own) in cluster.profiles.iter().filter(|(profile, _)| !used.contains(profile)) {
            let path = format!("clusters/{name}/profiles/{profile}.yaml");
            check_profile(files, &path, own, &[&self.fragments, &cluster.fragments], findings);
        }
        for machine in cluster.assignments.keys() {
            if let Err(more) = self.select(name, machine, Look(Some(files))) {
                findings.extend(more);
            }
        }
    }
}

/// What a profile names exists, also when no machine uses the profile.
fn check_profile(
    files: &Files,
    path: &str,
    profile: &Profile,
    known: &[&Fragments],
    findings: &mut Findings,
) {
    for (layer, names) in &profile.fragments {
        for fragment in names {
            let key = (*layer, fragment.clone());
            let unread = files.get(&format!("fragments/{layer}/{fragment}.yaml")).is_some();
            if !unread && !known.iter().any(|fragments| fragments.contains_key(&key)) {
                let message = format!("There is no fragment `{layer}/{fragment}`");
                let pos = place(files, path, &["fragments", layer.as_str()]);
                let help = "correct the name, or write the file";
                findings.push(Finding::error(path, pos, codes::MISSING_REFERENCE, message, help));
            }
        }
    }
}

/// One identity, one machine, whatever the letters of its UUID are written in.
fn check_identity(
    files: &Files,
    path: &str,
    identity: &Identity,
    seen: &mut BTreeMap<String, String>,
    findings: &mut Findings,
) {
    let uuid = identity.uuid.as_ref().map(|uuid| ("uuid", uuid.to_ascii_lowercase()));
    for (key, id) in [("node", identity.node.clone())].into_iter().chain(uuid) {
        // finding a place reads the file again, which is for findings only
        let pos = || place(files, path, &["identity", key]);
        if id.is_empty() {
            let message = format!("The identity's `{key}` is empty");
            let help = "write what Talos reports, or leave out a `uuid` that the platform does not have";
            findings.push(Finding::error(path, pos(), codes::WRONG_VALUE, message, help));
        } else if let Some(other) = seen.insert(id.clone(), path.to_owned()) {
            let message = format!("The identity `{id}` is also that of {other}");
            let help = "one machine has one name; remove one of the two files";
            findings.push(Finding::error(path, pos(), codes::DUPLICATE, message, help));
        }
    }
}

/// Every wave has one place in the order, else a machine would have none, or two.
fn check_rollout(files: &Files, name: &Name, cluster: &ClusterIntent, findings: &mut Findings) {
    let mut order = cluster.cluster.rollout.order.clone();
    order.sort();
    if order != [Wave::Workers, Wave::Controlplanes] {
        let path = format!("clusters/{name}/cluster.yaml");
        let pos = place(files, &path, &["rollout", "order"]);
        let help = "write `workers` and `controlplanes`, each once, the first one first";
        let message = "The order does not name every wave once";
        findings.push(Finding::error(path, pos, codes::WRONG_VALUE, message, help));
    }
}

/// Does a path belong to what Bronzeward reads?
fn is_ours(path: &str) -> bool {
    let first = path.split('/').next().unwrap_or_default();
    matches!(
        first,
        "bronzeward.yaml" | "allowed_signers" | "installation" | "fragments" | "profiles" | "clusters"
    )
}

struct Reader<'a> {
    files: &'a Files,
    findings: Findings,
}

impl Reader<'_> {
    fn report(&mut self, path: &str, code: crate::finding::Code, message: impl Into<String>, help: &str) {
        self.findings.push(Finding::error(path, TOP, code, message, help));
    }

    fn own<T: DeserializeOwned>(&mut self, path: &str, bytes: &[u8]) -> Option<T> {
        read_own(path, bytes).map_err(|finding| self.findings.push(finding)).ok()
    }

    /// The name in `folder/<name>.yaml`; anything else there is reported.
    fn file_name(&mut self, folder: &str, path: &str) -> Option<Name> {
        let rest = path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
        let stem = rest.and_then(|rest| rest.strip_suffix(".yaml"));
        match stem.map(str::parse::<Name>) {
            Some(Ok(name)) => Some(name),
            Some(Err(err)) => {
                self.report(path, codes::UNKNOWN_FILE, err.to_string(), "rename the file");
                None
            }
            None => {
                self.report(
                    path,
                    codes::UNKNOWN_FILE,
                    "No such file is expected here",
                    "only <name>.yaml files stand here",
                );
                None
            }
        }
    }

    fn same_name(&mut self, path: &str, key: &str, file: &Name, inside: &Name) {
        if file != inside {
            let message = format!("The file is named `{file}`, inside stands `{inside}`");
            let pos = place(self.files, path, &[key]);
            self.findings.push(Finding::error(path, pos, codes::NAME_MISMATCH, message, "make them equal"));
        }
    }

    fn named<T: DeserializeOwned + Send>(
        &mut self,
        folder: &str,
        key: &str,
        name_of: fn(&T) -> &Name,
    ) -> BTreeMap<Name, T> {
        let files: Vec<(&str, &[u8])> = self.files.below(folder).collect();
        let read = in_parallel(&files, |(path, bytes)| read_own::<T>(path, bytes));
        let mut out = BTreeMap::new();
        for ((path, _), read) in files.into_iter().zip(read) {
            let Some(name) = self.file_name(folder, path) else { continue };
            let Some(read) = read.map_err(|finding| self.findings.push(finding)).ok() else { continue };
            self.same_name(path, key, &name, name_of(&read));
            out.insert(name, read);
        }
        out
    }

    fn profiles(&mut self, folder: &str) -> BTreeMap<Name, Profile> {
        self.named(folder, "name", |profile: &Profile| &profile.name)
    }

    fn fragments(&mut self, folder: &str) -> Fragments {
        let files: Vec<(&str, &[u8])> = self.files.below(folder).collect();
        let read = in_parallel(&files, |(path, bytes)| split(path, bytes));
        let mut out = Fragments::new();
        for ((path, _), read) in files.into_iter().zip(read) {
            let rest = &path[folder.len() + 1..];
            let layer = match rest.split_once('/').map(|(layer, _)| layer.parse::<Layer>()) {
                Some(Ok(layer)) => layer,
                Some(Err(err)) => {
                    self.report(
                        path,
                        codes::UNKNOWN_FILE,
                        err.to_string(),
                        "move the file into a layer's folder",
                    );
                    continue;
                }
                None => {
                    self.report(
                        path,
                        codes::UNKNOWN_FILE,
                        "A fragment stands in no layer",
                        "move it into a layer's folder",
                    );
                    continue;
                }
            };
            let Some(name) = self.file_name(&format!("{folder}/{layer}"), path) else { continue };
            match read {
                Ok(source) => {
                    out.insert((layer, name), source);
                }
                Err(finding) => self.findings.push(finding),
            }
        }
        out
    }

    fn bases(&mut self, folder: &str) -> BTreeMap<Name, Source<Base>> {
        let files = self.files;
        let mut out = BTreeMap::new();
        for (path, bytes) in files.below(folder) {
            let Some(name) = self.file_name(folder, path) else { continue };
            match split::<Base>(path, bytes) {
                Ok(source) => {
                    if let Some(header) = &source.header {
                        self.same_name(path, "name", &name, &header.name);
                    }
                    out.insert(name, source);
                }
                Err(finding) => self.findings.push(finding),
            }
        }
        out
    }

    fn clusters(&mut self) -> BTreeMap<Name, ClusterIntent> {
        let files = self.files;
        let mut folders: Vec<&str> = files
            .below("clusters")
            .filter_map(|(path, _)| path.strip_prefix("clusters/")?.split_once('/').map(|(name, _)| name))
            .collect();
        folders.dedup();
        let mut out = BTreeMap::new();
        for folder in folders {
            let path = format!("clusters/{folder}");
            let name: Name = match folder.parse() {
                Ok(name) => name,
                Err(err) => {
                    let err: crate::name::BadName = err;
                    self.report(&path, codes::UNKNOWN_FILE, err.to_string(), "rename the folder");
                    continue;
                }
            };
            if let Some(cluster) = self.cluster(&path, &name) {
                out.insert(name, cluster);
            }
        }
        let stray = files.below("clusters").filter(|(path, _)| path.matches('/').count() == 1);
        for (path, _) in stray {
            self.report(path, codes::UNKNOWN_FILE, "No such file is expected here", "a cluster is a folder");
        }
        out
    }

    fn cluster(&mut self, folder: &str, name: &Name) -> Option<ClusterIntent> {
        let path = format!("{folder}/cluster.yaml");
        let cluster: Option<Cluster> = match self.files.get(&path) {
            Some(bytes) => self.own(&path, bytes),
            None => {
                self.report(&path, codes::MISSING_FILE, "The file is missing", "a cluster needs it");
                None
            }
        };
        let lock_path = format!("{folder}/secrets.lock.yaml");
        let lock = match self.files.get(&lock_path) {
            Some(bytes) => self.own(&lock_path, bytes),
            None => Some(SecretsLock::default()),
        };
        let machines = self.named(&format!("{folder}/machines"), "name", |machine: &Machine| &machine.name);
        let assignments =
            self.named(&format!("{folder}/assignments"), "machine", |file: &Assignment| &file.machine);
        let fragments = self.fragments(&format!("{folder}/fragments"));
        let profiles = self.profiles(&format!("{folder}/profiles"));
        let bases = self.bases(&format!("{folder}/bases"));
        let secret_files = self.secret_files(folder);
        self.unknown(folder);
        let (cluster, lock) = (cluster?, lock?);
        self.same_name(&path, "name", name, &cluster.name);
        Some(ClusterIntent { cluster, machines, assignments, fragments, profiles, bases, lock, secret_files })
    }

    fn secret_files(&mut self, folder: &str) -> BTreeMap<(String, u64), String> {
        let files = self.files;
        let root = format!("{folder}/secrets");
        let mut out = BTreeMap::new();
        for (path, _) in files.below(&root) {
            let rest = path[root.len() + 1..].strip_suffix(".age").and_then(|rest| rest.rsplit_once('/'));
            let parsed =
                rest.and_then(|(name, version)| Some((name.to_owned(), version.parse::<u64>().ok()?)));
            match parsed.filter(|(_, version)| path.ends_with(&format!("/{version}.age"))) {
                Some(key) => {
                    out.insert(key, path.to_owned());
                }
                None => self.report(
                    path,
                    codes::UNKNOWN_FILE,
                    "No such file is expected here",
                    "a secret's file is secrets/<name>/<version>.age",
                ),
            }
        }
        out
    }

    fn unknown(&mut self, folder: &str) {
        const KNOWN: [&str; 8] = [
            "cluster.yaml",
            "secrets.lock.yaml",
            "machines",
            "assignments",
            "fragments",
            "profiles",
            "bases",
            "secrets",
        ];
        let files = self.files;
        for (path, _) in files.below(folder) {
            let first = path[folder.len() + 1..].split('/').next().unwrap_or_default();
            if !KNOWN.contains(&first) {
                self.report(
                    path,
                    codes::UNKNOWN_FILE,
                    "No such file is expected here",
                    "see the layout in the documentation",
                );
            }
        }
    }
}
