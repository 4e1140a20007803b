//! The whole story against two Go nodes on Talos' own library, over every transport, in every merge style.
//!
//! The nodes' configurations are made by Talos' own generator; somebody changes the worker with the real `talosctl`.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use bronzeward::story::{MergeStyle, Narrator, Nodes, PLANTED, Stage, Story, Told, search};
use bronzeward_testkit::githost::GitHost;
use bronzeward_testkit::node::{Cluster, NodeOptions, Role, TestNode, talosctl};
use bronzeward_testkit::oracle::Oracle;
use bronzeward_testkit::people::succeed;

/// Regions of a generated configuration that hold no secret.
const CLEARS: [&str; 2] = ["v1alpha1:/cluster/apiServer/admissionControl", "v1alpha1:/cluster/id"];

struct GoNodes {
    _cluster: Cluster,
    talosconfig: PathBuf,
    control: Mutex<TestNode>,
    worker: Mutex<TestNode>,
    /// Which of the worker's applies came from a person's hand.
    by_hand: Mutex<Vec<usize>>,
}

impl GoNodes {
    fn start() -> GoNodes {
        let cluster = Cluster::local("home");
        let worker = plant(&String::from_utf8(cluster.config("worker")).unwrap());
        let mut second = NodeOptions::new("w1", "worker");
        second.config = Some(worker.into_bytes());
        second.uuid = "4c4c4544-0042-4d10-8051-c4c04f503133".into();
        let control = TestNode::start(&cluster, NodeOptions::new("cp1", "controlplane"));
        let worker = TestNode::start(&cluster, second);
        let talosconfig = cluster.talosconfig(Role::Admin);
        GoNodes {
            _cluster: cluster,
            talosconfig,
            control: Mutex::new(control),
            worker: Mutex::new(worker),
            by_hand: Mutex::default(),
        }
    }

    fn secrets(&self) -> Vec<String> {
        let mut out = vec![PLANTED.to_owned()];
        for node in [&self.control, &self.worker] {
            let text = node.lock().unwrap().inspect().active;
            let tables = talos_config::Tables::v1_13();
            let options = talos_config::Options::default();
            let config =
                talos_config::Config::load(&tables, &text, talos_config::SourceId(0), &options).unwrap();
            out.extend(config.redacted_paths().into_iter().map(|leaf| leaf.text));
        }
        out.sort();
        out.dedup();
        out
    }
}

impl Nodes for GoNodes {
    fn meddle(&self, label: &str, value: &str) -> anyhow::Result<()> {
        let mut worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
        let before = worker.applies().len();
        let patch = format!("{{\"machine\":{{\"nodeLabels\":{{\"{label}\":\"{value}\"}}}}}}");
        succeed(talosctl(&self.talosconfig, worker.address()).args([
            "patch",
            "mc",
            "--mode",
            "no-reboot",
            "-p",
            &patch,
        ]));
        let after = worker.applies().len();
        anyhow::ensure!(after > before, "talosctl applied nothing");
        self.by_hand.lock().unwrap_or_else(PoisonError::into_inner).extend(before..after);
        Ok(())
    }

    /// What the program sent, and not `talosctl`.
    fn received(&self) -> anyhow::Result<[Vec<Vec<u8>>; 2]> {
        let all = |node: &Mutex<TestNode>| -> Vec<Vec<u8>> {
            let applies = node.lock().unwrap_or_else(PoisonError::into_inner).applies();
            applies.into_iter().map(|apply| apply.data).collect()
        };
        let by_hand = self.by_hand.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let worker = all(&self.worker).into_iter().enumerate();
        let worker = worker.filter(|(index, _)| !by_hand.contains(index)).map(|(_, data)| data).collect();
        Ok([all(&self.control), worker])
    }
}

/// A value in a file's content, and again in a label.
fn plant(config: &str) -> String {
    let files = format!(
        "    nodeLabels:\n        example.org/psk: {PLANTED}\n    files:\n        - content: {PLANTED}\n          \
         permissions: 0o600\n          path: /var/lib/psk\n          op: create\n"
    );
    assert!(
        !config.contains("nodeLabels") && config.contains("\nmachine:\n"),
        "the generated worker is another"
    );
    config.replacen("\nmachine:\n", &format!("\nmachine:\n{files}"), 1)
}

/// Keeps what is told, for when it fails.
#[derive(Default)]
struct Quiet(String);

impl Narrator for Quiet {
    fn title(&mut self, text: &str) {
        self.0.push_str(&format!("== {text}\n"));
    }
    fn say(&mut self, text: &str) {
        self.0.push_str(&format!("-- {text}\n"));
    }
    fn command(&mut self, text: &str) {
        self.0.push_str(&format!("$ {text}\n"));
    }
    fn output(&mut self, text: &str) {
        self.0.push_str(text);
    }
}

struct Remote {
    url: String,
    reconciler: Vec<(String, String)>,
    environment: Vec<(String, String)>,
}

fn file_remote(host: &GitHost, name: &str) -> Remote {
    let url = format!("file://{}", host.create(name).display());
    Remote { reconciler: vec![("url".into(), url.clone())], url, environment: Vec::new() }
}

fn ssh_remote(host: &GitHost, name: &str) -> Remote {
    host.create(name);
    let (url, command) = (host.ssh_url(name), host.ssh_command());
    let reconciler = vec![("url".into(), url.clone()), ("ssh_command".into(), command.clone())];
    Remote { url, reconciler, environment: vec![("GIT_SSH_COMMAND".into(), command)] }
}

fn http_remote(host: &GitHost, name: &str) -> Remote {
    host.create(name);
    let url = host.http_url(name);
    Remote { reconciler: vec![("url".into(), url.clone())], url, environment: Vec::new() }
}

/// Plays the story and checks what it leaves.
fn play(style: MergeStyle, remote: impl FnOnce(&GitHost, &str) -> Remote) {
    let host = GitHost::start(None);
    let remote = remote(&host, "config");
    let nodes = GoNodes::start();
    let dir = tempfile::tempdir().unwrap();
    let addresses = [&nodes.control, &nodes.worker].map(|node| node.lock().unwrap().address().to_string());
    let secrets = nodes.secrets();
    let base = String::from_utf8(nodes.worker.lock().unwrap().inspect().active).unwrap();
    let stage = Stage {
        program: PathBuf::from(env!("CARGO_BIN_EXE_bronzeward")),
        dir: dir.path().to_path_buf(),
        remote: remote.url,
        reconciler_remote: remote.reconciler,
        environment: remote.environment,
        talosconfig: nodes.talosconfig.clone(),
        cluster: "home".into(),
        addresses,
        style,
        clears: CLEARS.iter().map(|clear| (*clear).to_owned()).collect(),
        nodes: Box::new(nodes),
    };
    let mut quiet = Quiet::default();
    let told = match Story::play(&stage, &mut quiet) {
        Ok(told) => told,
        Err(err) => {
            let log = std::fs::read_to_string(stage.log()).unwrap_or_default();
            let lines: Vec<&str> =
                log.lines().filter(|line| !line.contains("TRACE") && !line.contains("DEBUG")).collect();
            panic!("{}\n{err:#}\nlog:\n{}", quiet.0, lines.join("\n"));
        }
    };
    the_worker_received_what_talos_composes(&told, &base);
    approvals_verify_with_ssh_keygen(&stage);
    nothing_leaked(&stage, &host.path("config"), &told, &secrets);
}

/// The oracle composes the same base and fragments with the references resolved.
fn the_worker_received_what_talos_composes(told: &Told, base: &str) {
    let fragment = std::fs::read_to_string(told.clone.join("fragments/role/labels.yaml")).unwrap();
    let native: Vec<&str> = fragment.split("---\n").skip(1).collect();
    let patch = native.join("---\n").replace("!bwref machine/files/0/content", PLANTED);
    let composed = Oracle::start().patch(base, &[&patch]).result().unwrap();
    assert_eq!(String::from_utf8_lossy(&told.received), composed, "the worker received other bytes");
    assert!(told.composed.contains("!bwref") && !told.composed.contains(PLANTED));
}

/// `ssh-keygen -Y verify` says good for every approval.
fn approvals_verify_with_ssh_keygen(stage: &Stage) {
    let git = |args: &[&str]| succeed(stage.command("git").current_dir(stage.work_tree()).args(args));
    let installation = git(&["show", "refs/remotes/bronzeward-state/default:installation.yaml"]);
    let field = |name: &str| {
        let line = installation.lines().find(|line| line.starts_with(&format!("{name}: "))).unwrap();
        line.split_once(": ").unwrap().1.trim_matches('"').to_owned()
    };
    let place =
        format!("bronzeward approval {} {} {}\n", field("repository"), field("shard"), field("epoch"));
    let refs = git(&["for-each-ref", "--format=%(refname)", "refs/remotes/origin/bronzeward/approvals"]);
    let mut verified = 0;
    for name in refs.lines() {
        let message = git(&["log", "-1", "--format=%B", name]);
        let block: Vec<&str> = message.lines().filter(|line| line.starts_with("Bronzeward-")).collect();
        let (signature, lines) = block.split_last().unwrap();
        let payload = place.clone() + &lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let base64 = signature.strip_prefix("Bronzeward-Signature: ").unwrap();
        let armoured = format!("-----BEGIN SSH SIGNATURE-----\n{base64}\n-----END SSH SIGNATURE-----\n");
        let signers = std::fs::read_to_string(stage.file("allowed_signers")).unwrap();
        let good = bronzeward_testkit::people::ssh_keygen_verifies(
            &stage.dir,
            &signers,
            "ann@example.org",
            "bronzeward-approval",
            "20270101000000Z",
            &armoured,
            payload.as_bytes(),
        );
        assert!(good, "{name} does not verify: {payload}");
        verified += 1;
    }
    assert_eq!(verified, 4, "import, labels, adopt, revert");
}

/// Every Git object of every ref, the log at trace level and every file; the search finds what is planted on purpose.
fn nothing_leaked(stage: &Stage, remote: &Path, told: &Told, secrets: &[String]) {
    assert!(secrets.len() > 8, "too few secrets to look for");
    assert!(
        secrets.iter().all(|secret| !told.transcript.contains(secret.as_str())),
        "a command printed a secret"
    );
    assert!(std::fs::metadata(stage.log()).unwrap().len() > 100_000, "the log is not at trace level");
    for folder in [stage.dir.as_path(), remote] {
        let leaks = search(folder, secrets, &[]).unwrap();
        assert!(leaks.is_empty(), "{leaks:?}");
    }
    let git = |args: &[&str]| succeed(stage.command("git").current_dir(stage.work_tree()).args(args));
    std::fs::write(stage.file("bait"), &secrets[0]).unwrap();
    git(&["hash-object", "-w", "bait"]);
    let leaks = search(&stage.dir, secrets, &[]).unwrap();
    assert_eq!(leaks.len(), 2, "the file and the object: {leaks:?}");
}

#[test]
fn over_files_with_signed_merges() {
    play(MergeStyle::Signed, file_remote);
}

#[test]
fn over_smart_http_with_a_forges_button() {
    play(MergeStyle::Button, http_remote);
}

#[test]
fn over_ssh_with_a_squash() {
    play(MergeStyle::Squash, ssh_remote);
}
