//! A whole small world in this process: a repository, people with keys, nodes, and an engine that can be killed.

mod engine;
mod people;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use bronzeward_compile::plan::Plan;
use bronzeward_git::sign::{KeySigner, Signer, fingerprint};
use bronzeward_git::{Oid, Repo, TreeEdit};
use bronzeward_reconcile::engine::{Engine, Outcome};
use bronzeward_reconcile::ports::Clock;
use bronzeward_secrets::age_file::{
    AgeRecipient, installation_path, seal_installation, seal_secret, secret_path,
};
use bronzeward_secrets::{AgeIdentity, InstallationKey, Label, SecretHeader, SecretValue};
use bronzeward_state::model::{Governed, InstallationMode, Seen};
use bronzeward_state::{Installation, Transaction};
use jiff::Timestamp;
use ssh_key::PrivateKey;
use ssh_key::private::Ed25519Keypair;

use crate::fakes::{FakeClock, FakeNode, FakeNodes, Faults, Steps};

pub const REPOSITORY: &str = "5f0c7c1e-0000-4000-8000-000000000001";
pub const EPOCH: &str = "epoch-one";
pub const TALOS_CLUSTER: &str = "talos-cluster-id";
pub const TALOSCONFIG: &str = "context: home\ncontexts: {home: {endpoints: [10.0.0.1]}}\n";
pub const WIFI: &str = "a passphrase of some length";
pub const W1: &str = "10.0.0.11:50000";
pub const CP1: &str = "10.0.0.1:50000";
pub const STATE: &str = "refs/heads/bronzeward/state/default";
pub const MAIN: &str = "refs/heads/main";

/// Somebody with a key of their own.
pub struct Who {
    pub email: String,
    pub signer: KeySigner,
    pub private: String,
    pub public: String,
}

impl Who {
    pub fn new(email: &str, seed: u8) -> Who {
        let key = PrivateKey::from(Ed25519Keypair::from_seed(&[seed; 32]));
        let public = key.public_key().to_openssh().unwrap();
        let public = public.split(' ').take(2).collect::<Vec<_>>().join(" ");
        let private = key.to_openssh(ssh_key::LineEnding::LF).unwrap().to_string();
        Who { email: email.into(), signer: KeySigner::new(key), private, public }
    }

    pub fn fingerprint(&self) -> String {
        fingerprint(self.signer.public_key().key_data())
    }

    pub fn identity(&self) -> AgeIdentity {
        AgeIdentity::parse(&PathBuf::from("key"), self.private.as_bytes()).unwrap()
    }
}

/// How a change comes onto main.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// A merge that the approver signed, with the approval in its message.
    Signed,
    /// A forge's button: an unsigned merge; the approval stands on its own branch.
    Button,
    /// A forge's squash: one unsigned commit; the approval stands on its own branch.
    Squash,
}

/// What an approval says besides its plan; changed by tests that lie.
pub struct Saying {
    pub expires: Duration,
    pub repository: String,
    pub shard: String,
    pub epoch: String,
    pub plan_digest: Option<String>,
    pub name: Option<String>,
}

impl Default for Saying {
    fn default() -> Saying {
        Saying {
            expires: Duration::from_secs(86_400),
            repository: REPOSITORY.into(),
            shard: "default".into(),
            epoch: EPOCH.into(),
            plan_digest: None,
            name: None,
        }
    }
}

/// An approval, ready to be put somewhere.
#[derive(Clone)]
pub struct Approved {
    pub trailers: String,
    pub id: String,
    pub plan: Plan,
    pub head: Oid,
}

/// A world to copy from.
struct Template {
    folder: PathBuf,
    anchor: Oid,
    genesis: Oid,
    clock: FakeClock,
}

pub struct World {
    dir: tempfile::TempDir,
    shared: bool,
    pub repo: Repo,
    pub root: Who,
    pub ann: Who,
    pub bob: Who,
    pub mallory: Who,
    pub ci: Who,
    pub reconciler: Who,
    pub key: InstallationKey,
    pub nodes: FakeNodes,
    pub clock: FakeClock,
    pub faults: Faults,
    pub steps: Steps,
    pub anchor: Oid,
    pub genesis: Oid,
    pub disk: String,
    pub owner: String,
    pub last: Outcome,
    engine: Option<Engine>,
}

/// A small configuration as a node would hold it.
pub fn node_config(name: &str, role: &str) -> String {
    format!(
        "version: v1alpha1\nmachine:\n    type: {role}\n    token: aaaaaa.token-of-machines\n    certSANs: []\n    network:\n        \
         hostname: {name}\n    nodeLabels:\n        rack: r1\ncluster:\n    controlPlane:\n        endpoint: \
         https://10.0.0.1:6443\n    clusterName: home\n"
    )
}

fn machine_file(name: &str, node: &str, endpoint: &str, role: &str) -> String {
    let endpoint = endpoint.trim_end_matches(":50000");
    format!(
        "apiVersion: bronzeward.dev/v1alpha1\nkind: Machine\nname: {name}\nidentity: {{node: {node}}}\n\
         endpoint: {endpoint}\nplatform: metal\nrole: {role}\n"
    )
}

pub fn assignment(machine: &str, rest: &str) -> String {
    format!("apiVersion: bronzeward.dev/v1alpha1\nkind: Assignment\nmachine: {machine}\n{rest}")
}

/// A patch with one label.
pub fn label(name: &str, value: &str) -> String {
    format!("machine:\n    nodeLabels:\n        {name}: {value}\n")
}

impl World {
    /// Fast: objects are shared between the repositories.
    pub fn new() -> World {
        World::with(true)
    }

    /// Over `file://`, as in production.
    pub fn over_git() -> World {
        World::with(false)
    }

    fn with(shared: bool) -> World {
        let mut world = World::empty(shared);
        world.found();
        world
    }

    fn empty(shared: bool) -> World {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let repo = Repo::open_or_init_bare(&dir.path().join("remote.git")).unwrap();
        let clock = FakeClock::new();
        let steps = Steps::default();
        let nodes = FakeNodes::new(&steps);
        World {
            dir,
            shared,
            root: Who::new("root@example.org", 1),
            ann: Who::new("ann@example.org", 2),
            bob: Who::new("bob@example.org", 3),
            mallory: Who::new("mallory@example.org", 4),
            ci: Who::new("ci@example.org", 5),
            reconciler: Who::new("reconciler@home", 6),
            key: InstallationKey::new([7; 32]),
            anchor: no_commit(),
            genesis: no_commit(),
            repo,
            nodes,
            clock,
            faults: Faults::default(),
            steps,
            disk: "disk".into(),
            owner: "one".into(),
            last: Outcome::default(),
            engine: None,
        }
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    // ---- the beginning

    pub fn repository_yaml(&self) -> String {
        self.repository_with("{configuration: 1, governance: 1}", "allowed", "")
    }

    pub fn repository_with(&self, approvals: &str, self_approval: &str, more: &str) -> String {
        format!(
            "apiVersion: bronzeward.dev/v1alpha1\nkind: Repository\nid: {REPOSITORY}\nrequires: \"=0.1\"\n\
             secrets: {{store: age}}\npolicy:\n  principals:\n    \
             ann@example.org: {{kind: human, roles: [author, publisher, approver, recovery-admin], recipient: \"{}\"}}\n    \
             bob@example.org: {{kind: human, roles: [author, publisher, approver]}}\n    \
             mallory@example.org: {{kind: human, roles: [author, publisher]}}\n    \
             ci@example.org: {{kind: automation, roles: [author, publisher]}}\n    \
             reconciler@home: {{kind: automation, roles: [reconciler], recipient: \"{}\"}}\n  \
             approvals: {approvals}\n  selfApproval: {self_approval}\n{more}",
            self.ann.public, self.reconciler.public
        )
    }

    pub fn signers(&self) -> String {
        [&self.ann, &self.bob, &self.mallory, &self.ci, &self.reconciler]
            .map(|who| format!("{} {}\n", who.email, who.public))
            .concat()
    }

    fn recipients(&self) -> Vec<AgeRecipient> {
        [&self.ann.public, &self.reconciler.public].map(|text| text.parse().ok().unwrap()).into()
    }

    /// A secret's file and the line of the lock.
    pub fn secret(
        &self,
        name: &str,
        version: u64,
        kind: &str,
        fields: &str,
        value: &str,
    ) -> (String, Vec<u8>, String) {
        let header = SecretHeader {
            format: 1,
            repository: REPOSITORY.into(),
            cluster: "home".into(),
            name: name.into(),
            version,
            kind: kind.into(),
        };
        let sealed = seal_secret(&header, &SecretValue::new(value.into()), &self.recipients()).unwrap();
        let digest = self.key.digest(Label::Value, REPOSITORY, "home", kind, value.as_bytes());
        let line = format!(
            "  {name}: {{version: {version}, kind: {kind}, fields: [{fields}], value: \"{digest}\"}}\n"
        );
        (secret_path("home", name, version), sealed, line)
    }

    fn found(&mut self) {
        let (access, access_file, access_line) = self.secret("access/talos", 1, "access", "", TALOSCONFIG);
        let (wifi, wifi_file, wifi_line) = self.secret("files/wifi", 1, "string", "opaque", WIFI);
        let (token, token_file, token_line) =
            self.secret("machine/token", 1, "string", "token", "aaaaaa.token-of-machines");
        let lock = format!(
            "apiVersion: bronzeward.dev/v1alpha1\nkind: SecretsLock\nsecrets:\n{access_line}{wifi_line}{token_line}"
        );
        let cluster = format!(
            "apiVersion: bronzeward.dev/v1alpha1\nkind: Cluster\nname: home\ntalosClusterId: {TALOS_CLUSTER}\n\
             endpoint: https://10.0.0.1:6443\ncontract: v1.13\n"
        );
        let installation = seal_installation(&self.key, &self.recipients()).unwrap();
        let edits = vec![
            TreeEdit::write("bronzeward.yaml", self.repository_yaml()),
            TreeEdit::write("allowed_signers", self.signers()),
            TreeEdit::write(installation_path(self.key.id()), installation),
            TreeEdit::write("clusters/home/cluster.yaml", cluster),
            TreeEdit::write("clusters/home/secrets.lock.yaml", lock),
            TreeEdit::write(access, access_file),
            TreeEdit::write(wifi, wifi_file),
            TreeEdit::write(token, token_file),
            TreeEdit::write(
                "clusters/home/machines/cp1.yaml",
                machine_file("cp1", "node-cp1", CP1, "controlplane"),
            ),
            TreeEdit::write("clusters/home/machines/w1.yaml", machine_file("w1", "node-w1", W1, "worker")),
        ];
        self.anchor = self.write(None, &edits, "The beginning\n", Some(&self.ann), &[]);
        self.repo.force_ref(MAIN, self.anchor).unwrap();
        self.add_node("cp1", CP1, "controlplane");
        self.add_node("w1", W1, "worker");
        let installation = Installation {
            format: 1,
            repository: REPOSITORY.into(),
            shard: "default".into(),
            epoch: EPOCH.into(),
            mode: InstallationMode::Normal,
            sequence: 1,
            owner: None,
            seen: Seen { main: self.anchor.to_string(), act: 0 },
            governed: Governed {
                commit: self.anchor.to_string(),
                digest: self.intent_of(self.anchor).unwrap().governance.digest.clone(),
                turn: 0,
            },
        };
        let genesis = Transaction::genesis(installation, self.now());
        let committed = genesis.write(&self.repo, &self.ident(&self.root), &self.root.signer).unwrap();
        self.genesis = committed.commit;
        self.repo.force_ref(STATE, self.genesis).unwrap();
    }

    fn add_node(&self, name: &str, endpoint: &str, role: &'static str) {
        self.nodes.put(
            endpoint,
            FakeNode {
                id: format!("node-{name}"),
                cluster: TALOS_CLUSTER.into(),
                role,
                version: "v1.13.9".into(),
                running: true,
                ready: true,
                pending: false,
                reachable: true,
                bytes: node_config(name, role).into_bytes(),
                faults: Default::default(),
            },
        );
    }

    /// A further machine: a node, and the files that name it.
    pub fn new_machine(&self, name: &str, endpoint: &str, role: &'static str) -> Vec<TreeEdit> {
        self.add_node(name, endpoint, role);
        let mut edits = self.import(name, endpoint, None);
        let file = machine_file(name, &format!("node-{name}"), endpoint, role);
        edits.push(TreeEdit::write(format!("clusters/home/machines/{name}.yaml"), file));
        edits
    }

    /// Both machines adopted, nothing sent. Made once, then copied.
    pub fn adopted() -> World {
        static TEMPLATE: OnceLock<Template> = OnceLock::new();
        World::copied(TEMPLATE.get_or_init(|| World::new().adopt_both().into_template()))
    }

    /// The same with a second worker.
    pub fn adopted_three(endpoint: &str) -> World {
        static TEMPLATE: OnceLock<Template> = OnceLock::new();
        let template = TEMPLATE.get_or_init(|| {
            let mut world = World::adopted();
            world.change(&world.new_machine("w2", endpoint, "worker"));
            world.quiet();
            assert!(world.status("w2").applied.is_some(), "{:?}", world.last);
            world.into_template()
        });
        let world = World::copied(template);
        world.add_node("w2", endpoint, "worker");
        world
    }

    fn into_template(mut self) -> Template {
        self.engine = None;
        std::fs::remove_file(self.path("disk/objects.git/objects")).unwrap();
        Template {
            folder: self.dir.keep(),
            anchor: self.anchor,
            genesis: self.genesis,
            clock: self.clock.clone(),
        }
    }

    fn copied(template: &Template) -> World {
        let mut world = World::empty(true);
        copy(&template.folder, world.dir.path());
        std::os::unix::fs::symlink(world.path("remote.git/objects"), world.path("disk/objects.git/objects"))
            .unwrap();
        (world.anchor, world.genesis) = (template.anchor, template.genesis);
        world.clock.advance(template.clock.monotonic());
        world.add_node("cp1", CP1, "controlplane");
        world.add_node("w1", W1, "worker");
        world
    }

    pub fn adopt_both(mut self) -> World {
        let mut edits = self.import("cp1", CP1, None);
        edits.extend(self.import("w1", W1, None));
        self.change(&edits);
        self.quiet();
        assert!(self.sends().is_empty());
        for machine in ["cp1", "w1"] {
            assert!(self.status(machine).applied.is_some(), "{machine} is adopted: {:?}", self.last);
        }
        self
    }
}

fn no_commit() -> Oid {
    "0000000000000000000000000000000000000000".parse().unwrap()
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir_all(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).unwrap();
        }
    }
}
