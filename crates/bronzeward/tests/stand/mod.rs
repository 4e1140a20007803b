//! A small world for tests of the program: two Go nodes, a bare remote on disk, a person with keys, the real program.
#![allow(dead_code, reason = "every test binary uses its own part of it")]
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "helpers of tests fail by panicking, and wait on conditions that nobody announces"
)]

mod hold;
mod process;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use bronzeward_testkit::node::{Cluster, NodeOptions, Role, TestNode};
use bronzeward_testkit::people::{Person, hermetic, succeed};
use serde_json::Value;
use tempfile::TempDir;

#[allow(unused_imports, reason = "every test binary uses its own part of it")]
pub use hold::Hook;
pub use process::Reconciler;

/// The state branch.
pub const STATE: &str = "refs/heads/bronzeward/state/default";

/// How a command ended.
#[derive(Debug)]
pub struct Ran {
    /// What was run.
    pub command: String,
    /// The exit code.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Ran {
    fn new(command: &str, output: &Output) -> Ran {
        Ran {
            command: command.to_owned(),
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Asserts the exit code.
    #[track_caller]
    pub fn ends(self, code: i32) -> Ran {
        assert_eq!(self.code, code, "`{}` ended otherwise:\n{}{}", self.command, self.stdout, self.stderr);
        self
    }

    /// Asserts a refusal with exactly these parts in its words, on standard error, and none of a program's insides.
    #[track_caller]
    pub fn refuses(self, parts: &[&str]) -> Ran {
        self.complains(1, parts)
    }

    /// Asserts an exit code and what standard error says.
    #[track_caller]
    pub fn complains(self, code: i32, parts: &[&str]) -> Ran {
        let ran = self.ends(code);
        for part in parts {
            assert!(ran.stderr.contains(part), "`{}` does not say {part:?}:\n{}", ran.command, ran.stderr);
        }
        for inside in ["panicked", "BUG", "RUST_BACKTRACE", "Os {", "Error {", "PRIVATE KEY", "AGE-SECRET"] {
            let said = format!("{}{}", ran.stdout, ran.stderr);
            assert!(!said.contains(inside), "`{}` says {inside:?}:\n{said}", ran.command);
        }
        ran
    }

    /// Standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|err| panic!("`{}` prints no JSON ({err}):\n{}", self.command, self.stdout))
    }
}

/// Looks until something is there; fails after a minute.
#[track_caller]
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(30));
    }
}

/// The world.
pub struct Stand {
    dir: TempDir,
    /// The cluster's files.
    pub cluster: Cluster,
    /// The control plane.
    pub control: TestNode,
    /// The worker.
    pub worker: TestNode,
    /// The person.
    pub ann: Person,
}

impl Stand {
    /// Two machines that run, an empty remote, an empty clone.
    pub fn new() -> Stand {
        let dir = TempDir::new().unwrap();
        let cluster = Cluster::local("home");
        let control = TestNode::start(&cluster, NodeOptions::new("cp1", "controlplane"));
        let mut worker = NodeOptions::new("w1", "worker");
        worker.uuid = "4c4c4544-0042-4d10-8051-c4c04f503133".into();
        let worker = TestNode::start(&cluster, worker);
        let ann = Person::new(dir.path(), "ann@example.org", "ed25519");
        let stand = Stand { dir, cluster, control, worker, ann };
        fs::create_dir(stand.path("home")).unwrap();
        stand.write_gitconfig(&stand.ann);
        succeed(hermetic("git").args(["init", "-q", "--bare", "-b", "main"]).arg(stand.remote()));
        stand.make_clone("clone");
        stand
    }

    /// As [`Stand::new`], and `init` done, with settings that do not make a test wait.
    pub fn begun() -> Stand {
        let stand = Stand::new();
        stand.init().ends(0);
        stand.hurry("one", "disk");
        stand
    }

    /// As [`Stand::begun`], with short deadlines by an approved change of governance, and both machines adopted.
    pub fn adopted() -> (Stand, Reconciler) {
        let mut stand = Stand::begun();
        let reconciler = stand.start();
        stand.govern_short_deadlines();
        let config = stand.talosconfig(Role::Admin);
        let import =
            ["import", "cp1", "w1", "--opaque", "mark", "--branch", "import", "--talosconfig", &config];
        stand.run(&import).ends(0);
        stand.run(&["approve", "import", "--merge", "--yes"]).ends(0);
        stand.run(&["status", "--wait", "--timeout", "60s"]).ends(0);
        stand.wait_revision("w1", 1);
        stand.wait_revision("cp1", 1);
        assert!(stand.worker.applies().is_empty() && stand.control.applies().is_empty());
        (stand, reconciler)
    }

    /// A path below the world's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The bare repository.
    pub fn remote(&self) -> PathBuf {
        self.path("remote.git")
    }

    /// The person's clone.
    pub fn clone_dir(&self) -> PathBuf {
        self.path("clone")
    }

    /// The reconciler's settings.
    pub fn settings(&self) -> PathBuf {
        self.path("reconciler/bronzeward.toml")
    }

    /// The talosconfig of a role, as an argument.
    pub fn talosconfig(&self, role: Role) -> String {
        self.cluster.talosconfig(role).display().to_string()
    }

    /// Git's settings are this person's.
    pub fn write_gitconfig(&self, who: &Person) {
        let config = format!(
            "[user]\n\tname = {0}\n\temail = {0}\n\tsigningKey = {1}\n[gpg]\n\tformat = ssh\n[init]\n\tdefaultBranch = main\n",
            who.email,
            who.key.display()
        );
        fs::write(self.path("gitconfig"), config).unwrap();
    }

    /// A command that sees no settings but this world's.
    pub fn command(&self, program: &str) -> Command {
        let mut command = hermetic(program);
        command
            .env("HOME", self.path("home"))
            .env("GIT_CONFIG_GLOBAL", self.path("gitconfig"))
            .env_remove("BRONZEWARD_SETTINGS")
            .env_remove("BRONZEWARD_TALOSCONFIG")
            .env_remove("BRONZEWARD_SIGNING_KEY")
            .env_remove("BRONZEWARD_AGE_IDENTITY")
            .stdin(std::process::Stdio::null());
        command
    }

    /// An empty clone with this remote.
    pub fn make_clone(&self, name: &str) -> PathBuf {
        let dir = self.path(name);
        let remote = format!("file://{}", self.remote().display());
        fs::create_dir_all(&dir).unwrap();
        succeed(self.command("git").current_dir(&dir).args(["init", "-q"]));
        succeed(self.command("git").current_dir(&dir).args(["remote", "add", "origin", &remote]));
        dir
    }

    /// The program, in the person's clone.
    pub fn program(&self, args: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_bronzeward"));
        command.current_dir(self.clone_dir()).args(args);
        command
    }

    /// Runs the program in the person's clone.
    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::new(&format!("bronzeward {}", args.join(" ")), &self.program(args).output().unwrap())
    }

    /// Runs the program in a folder.
    pub fn run_in(&self, dir: &Path, args: &[&str]) -> Ran {
        let output = self.program(args).current_dir(dir).output().unwrap();
        Ran::new(&format!("bronzeward {}", args.join(" ")), &output)
    }

    /// `git` in the person's clone.
    pub fn git(&self, args: &[&str]) -> String {
        succeed(self.command("git").current_dir(self.clone_dir()).args(args)).trim_end().to_owned()
    }

    /// `git` in the bare repository.
    pub fn git_remote(&self, args: &[&str]) -> String {
        succeed(self.command("git").current_dir(self.remote()).args(args)).trim_end().to_owned()
    }

    /// Writes a file of the clone.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.clone_dir().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Reads a file of the clone.
    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.clone_dir().join(path)).unwrap()
    }

    /// A draft branch from main as the remote has it.
    pub fn draft(&self, branch: &str) {
        self.git(&["fetch", "-q", "origin"]);
        self.git(&["switch", "-q", "--no-track", "-c", branch, "origin/main"]);
    }

    /// Commits everything, signed.
    pub fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-S", "-m", message]);
    }

    /// `init` for both machines.
    pub fn init(&self) -> Ran {
        let (control, worker) =
            (format!("cp1={}", self.control.address()), format!("w1={}", self.worker.address()));
        let out = self.path("reconciler").display().to_string();
        let config = self.talosconfig(Role::Admin);
        let mut args = vec!["init", "--cluster", "home", "--talosconfig", &config, "--out", &out];
        args.extend(["--machine", &control, "--machine", &worker]);
        self.run(&args)
    }

    /// Settings that do not make a test wait, under a name and with a disk.
    pub fn hurry(&self, owner: &str, disk: &str) {
        self.write_settings("bronzeward.toml", owner, disk);
    }

    /// A copy of the settings for another process.
    pub fn write_settings(&self, file: &str, owner: &str, disk: &str) -> PathBuf {
        let mut table: toml::Table = toml::from_str(&fs::read_to_string(self.settings()).unwrap()).unwrap();
        table.insert("owner".into(), owner.into());
        for (section, name, value) in
            [("repository", "poll", "300ms"), ("listen", "address", "127.0.0.1:0"), ("state", "disk", disk)]
        {
            table[section].as_table_mut().unwrap().insert(name.into(), value.into());
        }
        let path = self.settings().with_file_name(file);
        fs::write(&path, toml::to_string(&table).unwrap()).unwrap();
        path
    }

    /// Short deadlines, as an operator makes them: a change of governance on a branch, approved by its merge.
    fn govern_short_deadlines(&self) {
        self.draft("deadlines");
        let mut text = self.read("bronzeward.yaml");
        for (name, value) in
            [("transportDeadline", "2s"), ("settleFloor", "1s"), ("verificationDeadline", "3s")]
        {
            let line = text.lines().find(|line| line.trim_start().starts_with(name)).unwrap().to_owned();
            let (key, _) = line.split_once(':').unwrap();
            text = text.replace(&line, &format!("{key}: {value}"));
        }
        self.write("bronzeward.yaml", &text);
        self.commit("Wait less: this is a test");
        let plan = self.run(&["plan", "deadlines"]).ends(0);
        assert!(plan.stdout.contains("governance  govern"), "{}", plan.stdout);
        self.run(&["approve", "deadlines", "--merge", "--yes"]).ends(0);
        let main = self.git(&["rev-parse", "origin/main"]);
        self.wait("the new governance is in force", |status| status["governed"]["commit"] == main);
    }

    /// A change of one label of the worker on a branch, not approved yet.
    pub fn draft_label(&self, branch: &str, value: &str) {
        self.draft(branch);
        if !self.clone_dir().join("fragments/role/labels.yaml").exists() {
            self.run(&["new", "fragment", "role/labels", "--to", "w1"]).ends(0);
        }
        self.write(
            "fragments/role/labels.yaml",
            &format!(
                "apiVersion: bronzeward.dev/v1alpha1\nkind: Fragment\n---\nmachine:\n    nodeLabels:\n        example.org/tier: {value}\n"
            ),
        );
        self.commit(&format!("Label the worker {value}"));
    }

    /// Approves a branch by a signed merge.
    pub fn approve(&self, branch: &str) {
        self.run(&["approve", branch, "--merge", "--yes"]).ends(0);
    }

    /// Starts the reconciler.
    pub fn start(&self) -> Reconciler {
        Reconciler::start(self, &self.settings())
    }

    /// What `status --format json` says.
    pub fn status(&self) -> Value {
        self.run(&["status", "--format", "json"]).ends(0).json()
    }

    /// Waits until the state is as wanted.
    #[track_caller]
    pub fn wait(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(60) {
            last = self.status();
            if wanted(&last) {
                return last;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let log = fs::read_to_string(self.path("reconciler.log")).unwrap_or_default();
        let tail: Vec<&str> = log.lines().rev().take(30).collect();
        panic!("waited in vain until {what}: {last:#}\n{}", tail.join("\n"));
    }

    /// Waits until a machine is applied at a revision.
    #[track_caller]
    pub fn wait_revision(&self, name: &str, revision: u64) -> Value {
        self.wait(&format!("{name} is applied at revision {revision}"), |status| {
            let machine = machine(status, name);
            machine["state"] == "applied" && machine["status"]["applied"]["revision"] == revision
        })
    }

    /// A machine's timeline.
    pub fn timeline(&self, name: &str) -> Vec<Value> {
        self.run(&["log", name, "--format", "json"]).ends(0).json().as_array().unwrap().clone()
    }

    /// The remote's tip of the state.
    pub fn state_tip(&self) -> String {
        self.git_remote(&["rev-parse", STATE])
    }
}

/// A machine in a status; `null` when it is not there.
pub fn machine<'v>(status: &'v Value, name: &str) -> &'v Value {
    let found =
        status["machines"].as_array().and_then(|all| all.iter().find(|one| one["status"]["machine"] == name));
    found.unwrap_or(&Value::Null)
}
