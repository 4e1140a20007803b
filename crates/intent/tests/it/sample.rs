//! A sound tree to start from: one cluster, a control plane and a worker.

use std::collections::BTreeMap;

use bronzeward_intent::{Files, Finding, Findings, Governance, Intent, Name};

const FILES: &[(&str, &str)] = &[
    ("bronzeward.yaml", REPOSITORY),
    ("allowed_signers", SIGNERS),
    ("installation/k0123456789abcdef.age", "age-encryption.org/v1\n"),
    ("README.md", "Whatever people write beside.\n"),
    ("profiles/workers.yaml", WORKERS),
    ("fragments/global/time.yaml", "machine:\n  time:\n    disabled: false\n"),
    ("fragments/cluster/ntp.yaml", "machine:\n  time:\n    servers: [ntp.example.org]\n"),
    ("fragments/cluster/dns.yaml", DNS),
    ("fragments/role/labels.yaml", "machine:\n  nodeLabels:\n    role: worker\n"),
    ("clusters/home/cluster.yaml", CLUSTER),
    ("clusters/home/secrets.lock.yaml", LOCK),
    ("clusters/home/machines/cp1.yaml", CP1),
    ("clusters/home/machines/w1.yaml", W1),
    ("clusters/home/assignments/cp1.yaml", ASSIGN_CP1),
    ("clusters/home/assignments/w1.yaml", ASSIGN_W1),
    ("clusters/home/profiles/local.yaml", LOCAL),
    ("clusters/home/fragments/cluster/proxy.yaml", "machine:\n  env:\n    http_proxy: http://10.0.0.2\n"),
    ("clusters/home/fragments/override/w1-disk.yaml", "machine:\n  install:\n    disk: /dev/sda\n"),
    ("clusters/home/bases/cp1.yaml", BASE_CP1),
    ("clusters/home/bases/shared.yaml", "version: v1alpha1\nmachine:\n  type: worker\n"),
    ("clusters/home/secrets/machine/token/1.age", "age-encryption.org/v1\n"),
];

const REPOSITORY: &str = r#"apiVersion: bronzeward.dev/v1alpha1
kind: Repository
id: 5f0c7c1e-0000-4000-8000-000000000001
requires: "=0.1"
secrets: {store: age}
policy:
  principals:
    ann@example.org:
      kind: human
      roles: [author, publisher, approver, recovery-admin]
    ben@example.org:
      kind: human
      roles: [approver]
    ci@example.org:
      kind: automation
      roles: [author]
    reconciler@home:
      kind: automation
      roles: [reconciler]
  approvals:
    configuration: 1
    governance: 2
  selfApproval: allowed
"#;

const SIGNERS: &str = "\
ann@example.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB
ben@example.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIC
reconciler@home ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMD
";

const DNS: &str = r#"apiVersion: bronzeward.dev/v1alpha1
kind: Fragment
description: Resolvers of the house
---
machine:
  network:
    nameservers: [10.0.0.53]
"#;

const WORKERS: &str = r#"apiVersion: bronzeward.dev/v1alpha1
kind: Profile
name: workers
fragments:
  role: [labels]
  cluster: [dns]
"#;

const LOCAL: &str = r#"apiVersion: bronzeward.dev/v1alpha1
kind: Profile
name: local
fragments:
  cluster: [ntp, proxy]
  global: [time]
"#;

const CLUSTER: &str = r#"apiVersion: bronzeward.dev/v1alpha1
kind: Cluster
name: home
talosClusterId: Zm9vYmFy
endpoint: https://10.0.0.1:6443
contract: v1.13
rollout:
  order: [workers, controlplanes]
  haltOnFailure: true
"#;

const LOCK: &str = r#"apiVersion: bronzeward.dev/v1alpha1
kind: SecretsLock
secrets:
  machine/token: {version: 1, kind: string, fields: ["token"], value: "hmac-sha256:k0123456789abcdef:ab"}
"#;

const CP1: &str = r#"apiVersion: bronzeward.dev/v1alpha1
kind: Machine
name: cp1
identity:
  node: node-cp1
endpoint: 10.0.0.10
platform: metal
role: controlplane
"#;

const W1: &str = r#"apiVersion: bronzeward.dev/v1alpha1
kind: Machine
name: w1
identity:
  node: node-w1
  uuid: 4c4c4544-0001-4000-8000-000000000011
endpoint: 10.0.0.11
platform: metal
role: worker
"#;

const ASSIGN_CP1: &str = r#"apiVersion: bronzeward.dev/v1alpha1
kind: Assignment
machine: cp1
"#;

const ASSIGN_W1: &str = r#"apiVersion: bronzeward.dev/v1alpha1
kind: Assignment
machine: w1
base: shared
profiles: [workers, local]
fragments:
  cluster: [ntp]
  override:
    - w1-disk
"#;

const BASE_CP1: &str = r#"apiVersion: bronzeward.dev/v1alpha1
kind: Base
name: cp1
imported: {machine: cp1, drift: null, bytes: "hmac-sha256:k:1", meaning: "hmac-sha256:k:2"}
---
version: v1alpha1
machine:
  type: controlplane
"#;

/// A key that nobody in the sample has.
pub const OTHER_KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE";

/// Files by path, to be changed before they are read.
#[derive(Clone)]
pub struct Tree(BTreeMap<String, String>);

impl Tree {
    /// The sound tree.
    pub fn sound() -> Tree {
        Tree(FILES.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
    }

    /// Writes a file.
    pub fn write(mut self, path: &str, text: &str) -> Tree {
        self.0.insert(path.to_owned(), text.to_owned());
        self
    }

    /// Removes a file that must be there.
    pub fn remove(mut self, path: &str) -> Tree {
        assert!(self.0.remove(path).is_some(), "the sample has no {path}");
        self
    }

    /// Replaces a text that must stand in a file once.
    pub fn replace(mut self, path: &str, from: &str, to: &str) -> Tree {
        let text = self.0.get_mut(path).unwrap();
        assert_eq!(text.matches(from).count(), 1, "{path}: `{from}`");
        *text = text.replace(from, to);
        self
    }

    /// Adds lines to the end of a file.
    pub fn append(mut self, path: &str, text: &str) -> Tree {
        self.0.get_mut(path).unwrap().push_str(text);
        self
    }

    /// The tree as files.
    pub fn files(&self) -> Files {
        Files::from_map(self.0.iter().map(|(path, text)| (path.clone(), text.clone().into_bytes())).collect())
    }

    /// Every file, by path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Reads it.
    pub fn load(&self) -> Result<Intent, Findings> {
        Intent::load(&self.files())
    }

    /// The digest of governance.
    pub fn governed(&self) -> String {
        Governance::load(&self.files()).unwrap().digest
    }

    /// What is wrong with it, sorted.
    pub fn findings(&self) -> Vec<Finding> {
        self.load().unwrap_err().sorted()
    }

    /// Loading it must give exactly one finding: at `file:line:column`, with this code, words in its message and a way
    /// out.
    #[track_caller]
    pub fn refused(&self, at: &str, code: &str, words: &str) {
        let findings = self.findings();
        let [finding] = findings.as_slice() else { panic!("not one finding: {findings:#?}") };
        let found = (format!("{}:{}", finding.file, finding.pos), finding.code.0);
        assert_eq!(found, (at.to_owned(), code), "{finding}");
        assert!(finding.message.contains(words), "{finding}");
        assert!(!finding.help.is_empty(), "no way out: {finding}");
        let printed = finding.to_string();
        assert!(printed.starts_with(at) && printed.contains(&format!("[{code}]")), "{printed}");
    }
}

/// A name.
pub fn name(text: &str) -> Name {
    text.parse().unwrap()
}
