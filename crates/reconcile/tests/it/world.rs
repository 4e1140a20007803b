//! A whole small world in this process: a repository, people with keys, nodes, and an engine that can be killed.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::OnceLock;
use std::time::Duration;

use bronzeward_compile::artifact::Secrets;
use bronzeward_compile::compose;
use bronzeward_compile::plan::Plan;
use bronzeward_compile::planner::Planner;
use bronzeward_git::merge::Merged;
use bronzeward_git::sign::{KeySigner, Signer, fingerprint};
use bronzeward_git::{Ident, NewCommit, Oid, Repo, TreeEdit};
use bronzeward_intent::{Files, Findings, Intent};
use bronzeward_reconcile::disk::Disk;
use bronzeward_reconcile::engine::{Due, Engine, Outcome, Setup, World as Parts};
use bronzeward_reconcile::ports::Clock;
use bronzeward_reconcile::trouble::Trouble;
use bronzeward_secrets::age_file::{
    AgeRecipient, installation_path, seal_installation, seal_secret, secret_path,
};
use bronzeward_secrets::ingest::{Ingest, base_file, ingest};
use bronzeward_secrets::{AgeIdentity, InstallationKey, Label, SecretHeader, SecretValue};
use bronzeward_state::approval::{Basis, NAMESPACE, Place, Statement};
use bronzeward_state::model::{Governed, InstallationMode, Seen};
use bronzeward_state::transaction::write_act;
use bronzeward_state::{Act, Installation, Scope, Snapshot, Status, Transaction};
use jiff::{SignedDuration, Timestamp};
use ssh_key::PrivateKey;
use ssh_key::private::Ed25519Keypair;

use crate::fakes::{Crash, FakeClock, FakeNode, FakeNodes, Faults, FaultyRemote, Steps};

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

    // ---- people at work

    pub fn ident(&self, who: &Who) -> Ident {
        let name = who.email.split('@').next().unwrap().to_owned();
        Ident { name, email: who.email.clone(), seconds: self.now().as_second(), offset: 0 }
    }

    /// Writes a commit; `None` leaves it unsigned, by a forge.
    pub fn write(
        &self,
        base: Option<Oid>,
        edits: &[TreeEdit],
        message: &str,
        who: Option<&Who>,
        parents: &[Oid],
    ) -> Oid {
        let tree = base.map(|base| self.repo.commit(base).unwrap().tree);
        let tree = self.repo.write_tree(tree, edits).unwrap();
        self.write_tree(tree.id(), message, who, parents)
    }

    pub fn write_tree(&self, tree: Oid, message: &str, who: Option<&Who>, parents: &[Oid]) -> Oid {
        let forge = Ident {
            name: "forge".into(),
            email: "forge@example.org".into(),
            seconds: self.now().as_second(),
            offset: 0,
        };
        let ident = who.map_or(forge, |who| self.ident(who));
        let new =
            NewCommit { tree, parents: parents.to_vec(), author: ident.clone(), committer: ident, message };
        self.repo.write_commit(&new, who.map(|who| &who.signer as &dyn Signer)).unwrap()
    }

    pub fn main(&self) -> Oid {
        self.repo.read_ref(MAIN).unwrap().unwrap()
    }

    pub fn push_main(&self, commit: Oid) {
        self.repo.force_ref(MAIN, commit).unwrap();
    }

    /// A draft commit on top of main, signed by its author.
    pub fn draft(&self, who: &Who, edits: &[TreeEdit]) -> Oid {
        let main = self.main();
        self.write(Some(main), edits, "A change\n", Some(who), &[main])
    }

    /// A commit put onto main directly, without any approval.
    pub fn publish(&self, who: Option<&Who>, edits: &[TreeEdit]) -> Oid {
        let main = self.main();
        let commit = self.write(Some(main), edits, "A change\n", who, &[main]);
        self.push_main(commit);
        commit
    }

    pub fn merged_tree(&self, head: Oid) -> Oid {
        match self.repo.merge(self.main(), head).unwrap() {
            Merged::Clean(tree) => tree,
            Merged::Conflict(paths) => panic!("conflict in {paths:?}"),
        }
    }

    pub fn intent_of_tree(&self, tree: Oid) -> Result<Intent, Findings> {
        Intent::load(&Files::from_tree(&self.repo.tree(tree)).unwrap())
    }

    pub fn intent_of(&self, commit: Oid) -> Result<Intent, Findings> {
        self.intent_of_tree(self.repo.commit(commit).unwrap().tree)
    }

    pub fn state(&self) -> Snapshot {
        let tip = self.repo.read_ref(STATE).unwrap().unwrap();
        Snapshot::read(&self.repo, tip).unwrap()
    }

    /// The plan of a tree against the state, as any person computes it.
    pub fn plan_tree(&self, tree: Oid) -> Plan {
        self.planned(tree).plan
    }

    pub fn planned(&self, tree: Oid) -> bronzeward_compile::planner::Planned {
        let intent = self.intent_of_tree(tree).unwrap_or_else(|findings| panic!("{findings}"));
        self.with_planner(&intent, |planner| planner.plan())
    }

    pub fn with_planner<T>(&self, intent: &Intent, ask: impl FnOnce(&Planner<'_>) -> T) -> T {
        let view = self.state().view();
        let at = |commit: &str| -> Result<Rc<Intent>, String> {
            let commit: Oid = commit.parse().map_err(|_| "no commit".to_owned())?;
            self.intent_of(commit).map(Rc::new).map_err(|findings| findings.to_string())
        };
        ask(&Planner { intent, view: &view, at: &at })
    }

    pub fn revert_plan(&self, machine: &str) -> Plan {
        let intent = self.intent_of(self.main()).unwrap();
        self.with_planner(&intent, |planner| planner.revert_plan("home", machine))
            .unwrap_or_else(|f| panic!("{f}"))
    }

    /// Signs an approval of a plan.
    pub fn approve(&self, who: &Who, plan: Plan, head: Oid) -> Approved {
        self.say(who, plan, head, &Saying::default())
    }

    pub fn say(&self, who: &Who, plan: Plan, head: Oid, saying: &Saying) -> Approved {
        let expires = self.now() + SignedDuration::try_from(saying.expires).unwrap();
        let statement = Statement {
            plan: saying.plan_digest.clone().unwrap_or_else(|| plan.digest()),
            basis: Basis {
                head: head.to_string(),
                main: self.main().to_string(),
                state: self.state().commit.to_string(),
            },
            expires,
        };
        let place = Place { repository: &saying.repository, shard: &saying.shard, epoch: &saying.epoch };
        let name = saying.name.clone().unwrap_or_else(|| who.email.clone());
        let bytes = statement.signed_bytes(place, &name);
        let armoured = who.signer.sign(NAMESPACE, &bytes).unwrap();
        let trailers = statement.to_trailers(&name, &armoured).unwrap();
        Approved { trailers, id: bronzeward_state::approval::id_of(&bytes), plan, head }
    }

    /// Puts an approval on its branch.
    pub fn push_approval(&self, who: &Who, approved: &Approved) -> Oid {
        let edits = [TreeEdit::write("plan.json", approved.plan.to_bytes())];
        let message = format!("Approve\n\n{}", approved.trailers);
        let commit = self.write(None, &edits, &message, Some(who), &[approved.head]);
        self.repo.force_ref(&format!("refs/heads/bronzeward/approvals/{}", approved.id), commit).unwrap();
        commit
    }

    /// Approves a branch and merges it, the way it was chosen.
    pub fn merge(&self, who: &Who, head: Oid, how: Merge) -> Approved {
        let approved = self.approve(who, self.plan_tree(self.merged_tree(head)), head);
        self.merge_with(who, head, how, &approved);
        approved
    }

    pub fn merge_with(&self, who: &Who, head: Oid, how: Merge, approved: &Approved) -> Oid {
        let (main, tree) = (self.main(), self.merged_tree(head));
        self.push_approval(who, approved);
        let message = format!("Merge a change\n\n{}", approved.trailers);
        let commit = match how {
            Merge::Signed => self.write_tree(tree, &message, Some(who), &[main, head]),
            Merge::Button => self.write_tree(tree, "Merge a change\n", None, &[main, head]),
            Merge::Squash => self.write_tree(tree, "A change (#1)\n", None, &[main]),
        };
        self.push_main(commit);
        commit
    }

    /// Drafts by `ann`, approved and merged by her.
    pub fn change(&self, edits: &[TreeEdit]) -> Approved {
        self.merge(&self.ann, self.draft(&self.ann, edits), Merge::Signed)
    }

    /// Approves what main says now, on the approvals branch alone.
    pub fn approve_main(&self, who: &Who) -> Approved {
        let main = self.main();
        let approved = self.approve(who, self.plan_tree(self.repo.commit(main).unwrap().tree), main);
        self.push_approval(who, &approved);
        approved
    }

    /// Asks for a revert, and approves it.
    pub fn revert(&self, who: &Who, machine: &str) -> Approved {
        let approved = self.approve(who, self.revert_plan(machine), self.main());
        self.push_approval(who, &approved);
        approved
    }

    pub fn act(&self, who: &Who, act: &Act) {
        let committed =
            write_act(&self.repo, &self.state(), act, self.now(), &self.ident(who), &who.signer).unwrap();
        self.repo.set_ref(STATE, committed.commit, committed.parent).unwrap();
    }

    pub fn freeze(&self, who: &Who, scope: &str) {
        let scope: Scope = scope.parse().unwrap();
        self.act(who, &Act::Freeze { format: 1, scope, reason: "to see".into(), at: self.now() });
    }

    pub fn unfreeze(&self, who: &Who, scope: &str) {
        let scope: Scope = scope.parse().unwrap();
        self.act(who, &Act::Unfreeze { format: 1, scope, reason: "seen".into(), at: self.now() });
    }

    pub fn revoke(&self, who: &Who, approval: &str) {
        let act = Act::Revoke { format: 1, approval: approval.into(), reason: "no".into(), at: self.now() };
        self.act(who, &act);
    }

    pub fn deny(&self, who: &Who, key: &str) {
        self.act(who, &Act::Deny { format: 1, key: key.into(), reason: "lost".into(), at: self.now() });
    }

    /// The base of a machine, from what runs on its node; `drift` names the record that it adopts.
    pub fn import(&self, name: &str, endpoint: &str, drift: Option<u64>) -> Vec<TreeEdit> {
        self.import_as(name, name, endpoint, drift)
    }

    pub fn import_as(&self, base: &str, machine: &str, endpoint: &str, drift: Option<u64>) -> Vec<TreeEdit> {
        let bytes = self.nodes.bytes(endpoint);
        let value = |text: &str| self.key.digest(Label::Value, REPOSITORY, "home", "string", text.as_bytes());
        let stored: BTreeMap<String, (String, u64)> =
            BTreeMap::from([(value("aaaaaa.token-of-machines"), ("machine/token".to_owned(), 1))]);
        let ingested = ingest(&Ingest {
            tables: &talos_config::Tables::v1_13(),
            bytes: &bytes,
            marks: &[],
            clears: &[],
            mark_undecided: false,
            known_clear: &[],
            digest: &value,
            stored: &stored,
            taken: &BTreeSet::new(),
        });
        let ingested = ingested.unwrap_or_else(|err| panic!("{err}"));
        assert!(ingested.new.is_empty(), "every secret of the node is stored already");
        let digest = |label, bytes: &[u8]| self.key.digest(label, REPOSITORY, "home", "", bytes);
        let header = format!(
            "apiVersion: bronzeward.dev/v1alpha1\nkind: Base\nname: {base}\nimported: {{machine: {machine}, drift: {}, \
             bytes: \"{}\", meaning: \"{}\"}}\n",
            drift.map_or("null".to_owned(), |drift| drift.to_string()),
            digest(Label::Bytes, &bytes),
            digest(Label::Meaning, &ingested.canonical)
        );
        let header: bronzeward_intent::Base =
            bronzeward_intent::fragment::read_own("base", header.as_bytes()).unwrap();
        let rest = if base == machine { String::new() } else { format!("base: {base}\n") };
        vec![
            TreeEdit::write(
                format!("clusters/home/bases/{base}.yaml"),
                base_file(&header, &ingested.sanitised),
            ),
            TreeEdit::write(format!("clusters/home/assignments/{machine}.yaml"), assignment(machine, &rest)),
        ]
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

    /// The edits of a fragment in the `override` layer of `w1`.
    pub fn fragment(&self, name: &str, patch: &str) -> Vec<TreeEdit> {
        self.fragments("w1", &[(name, patch)])
    }

    /// The machine's assignment selects exactly these fragments of its own.
    pub fn fragments(&self, machine: &str, list: &[(&str, &str)]) -> Vec<TreeEdit> {
        let names: Vec<&str> = list.iter().map(|(name, _)| *name).collect();
        let rest = if names.is_empty() {
            String::new()
        } else {
            format!("fragments: {{override: [{}]}}\n", names.join(", "))
        };
        let mut edits = vec![TreeEdit::write(
            format!("clusters/home/assignments/{machine}.yaml"),
            assignment(machine, &rest),
        )];
        for (name, patch) in list {
            edits.push(TreeEdit::write(format!("clusters/home/fragments/override/{name}.yaml"), *patch));
        }
        edits
    }

    // ---- the engine

    pub fn setup(&self) -> Setup {
        Setup {
            shard: "default".into(),
            main: "main".into(),
            anchor: self.anchor,
            at_least: self.genesis,
            root_keys: vec![self.root.signer.public_key().key_data().clone()],
            denied_keys: Vec::new(),
            owner: self.owner.clone(),
            author: "reconciler@home".into(),
        }
    }

    fn remote(&self, is_state: bool) -> FaultyRemote {
        let url = format!("file://{}", self.path("remote.git").display());
        match self.shared {
            true => FaultyRemote::shared(&self.repo, &self.faults, &self.steps, &self.clock, is_state),
            false => FaultyRemote::git(&url, &self.faults, &self.steps, &self.clock, is_state),
        }
    }

    pub fn open(&self, setup: Setup, disk: &str) -> Engine {
        let folder = self.path(disk);
        let disk = Disk::open(&folder).unwrap();
        let objects = disk.repository().join("objects");
        if self.shared && !objects.is_symlink() {
            Repo::open_or_init_bare(&disk.repository()).unwrap();
            std::fs::remove_dir_all(&objects).unwrap();
            std::os::unix::fs::symlink(self.path("remote.git/objects"), &objects).unwrap();
        }
        let parts = Parts {
            config: Box::new(self.remote(false)),
            state: Box::new(self.remote(true)),
            nodes: Box::new(self.nodes.clone()),
            clock: Box::new(self.clock.clone()),
            signer: KeySigner::new(PrivateKey::from_openssh(&self.reconciler.private).unwrap()),
            identity: self.reconciler.identity(),
        };
        Engine::open(setup, parts, disk).unwrap()
    }

    /// Kills the engine; the next tick starts another on the same disk.
    pub fn restart(&mut self) {
        self.engine = None;
    }

    /// Kills the engine and loses its disk.
    pub fn restart_empty(&mut self) {
        self.engine = None;
        self.disk.push('x');
    }

    /// One tick that looks at everything. A crash kills the engine and is no error of the test.
    pub fn try_tick(&mut self) -> Result<Outcome, Trouble> {
        self.tick_due(true)
    }

    pub fn tick_due(&mut self, sweep: bool) -> Result<Outcome, Trouble> {
        let mut engine = self.engine.take().unwrap_or_else(|| self.open(self.setup(), &self.disk));
        let due = Due { sweep, ..Due::default() };
        match catch_unwind(AssertUnwindSafe(|| engine.tick(&due))) {
            Ok(result) => {
                self.engine = Some(engine);
                result
            }
            Err(payload) if payload.is::<Crash>() => Err(Trouble::Retry("crashed".into())),
            Err(payload) => resume_unwind(payload),
        }
    }

    pub fn tick(&mut self) -> Outcome {
        let outcome = self.try_tick().unwrap_or_else(|trouble| panic!("{trouble}"));
        self.last = outcome.clone();
        outcome
    }

    /// Ticks until nothing happens and nothing waits for a time, moving the clock as far as the engine asks for.
    pub fn quiet(&mut self) -> Outcome {
        for _ in 0..60 {
            let outcome = self.tick();
            match outcome.again_in {
                None if outcome.published == 0 => return outcome,
                Some(wait) => self.clock.advance(wait.max(Duration::from_secs(15))),
                None => {}
            }
        }
        self.last.clone()
    }

    pub fn halt(&mut self) -> &'static str {
        match self.try_tick() {
            Err(Trouble::Halt { code, .. }) => code,
            other => panic!("expected a halt, not {other:?}"),
        }
    }

    // ---- what is there now

    pub fn status(&self, machine: &str) -> Status {
        self.state().status("home", machine)
    }

    pub fn log(&self, machine: &str) -> Vec<bronzeward_state::LogEntry> {
        self.state().log("home", machine).unwrap()
    }

    pub fn kinds(&self, machine: &str) -> Vec<&'static str> {
        self.log(machine).iter().map(|entry| entry.kind.as_str()).collect()
    }

    pub fn has_kind(&self, machine: &str, kind: &str) -> bool {
        self.kinds(machine).contains(&kind)
    }

    pub fn sends(&self) -> Vec<crate::fakes::Send> {
        self.nodes.sends()
    }

    /// Why the last accepted or refused approval was refused.
    pub fn refusal(&self) -> Option<String> {
        self.state().releases.values().next_back().and_then(|release| release.refused.clone())
    }

    /// The state of the last release's entry for a subject.
    pub fn entry_state(&self, subject: &str) -> Option<(&'static str, Option<String>)> {
        self.state()
            .releases
            .values()
            .rev()
            .find_map(|release| release.entries.iter().find(|entry| entry.subject == subject))
            .map(|entry| (entry.state.as_str(), entry.detail.clone()))
    }

    /// What main composes for a machine, with the secrets in it.
    pub fn wanted(&self, machine: &str) -> Vec<u8> {
        let main = self.main();
        let intent = self.intent_of(main).unwrap();
        let files = Files::from_tree(&self.repo.tree_of(main).unwrap()).unwrap();
        let (cluster, machine) = ("home".parse().unwrap(), machine.parse().unwrap());
        let composed = compose(&intent, &cluster, &machine).unwrap();
        let read = |path: &str| files.get(path).map(<[u8]>::to_vec);
        let identity = self.reconciler.identity();
        let secrets =
            Secrets { intent: &intent, cluster: &cluster, read: &read, identity: &identity, key: &self.key };
        secrets.artifact(&composed).unwrap().bytes.to_vec()
    }

    /// Somebody changes a node behind our back.
    pub fn patch_node(&self, endpoint: &str, from: &str, to: &str) {
        self.nodes.with(endpoint, |node| {
            let text = String::from_utf8(node.bytes.clone()).unwrap();
            assert!(text.contains(from), "{text}");
            node.bytes = text.replace(from, to).into_bytes();
        });
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
