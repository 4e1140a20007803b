//! The steps of the story, each asserted.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{MergeStyle, PLANTED, Story, machine, word};

const FRAGMENT: &str = "apiVersion: bronzeward.dev/v1alpha1
kind: Fragment
description: Labels of the workers, and the registry that they may read
---
machine:
    nodeLabels:
        example.org/tier: edge
---
apiVersion: v1alpha1
kind: RegistryAuthConfig
name: registry.example.org
username: edge
password: !bwref machine/files/0/content
";

const PROFILE: &str = "apiVersion: bronzeward.dev/v1alpha1
kind: Profile
name: workers
fragments:
    role: [labels]
";

const FILE: &str = "v1alpha1:/machine/files/0/content";
const LABEL: &str = "v1alpha1:/machine/nodeLabels/example.org~1psk";

impl Story<'_> {
    pub(super) fn begin(&mut self) -> Result<()> {
        self.title("An empty repository and two running machines");
        self.stage.person()?;
        let (clone, remote) = (self.stage.work_tree(), self.stage.remote.clone());
        std::fs::create_dir_all(&clone)?;
        self.git(&["init", "--quiet"])?;
        self.git(&["remote", "add", "origin", &remote])?;
        self.say("init reads the cluster's and the nodes' ids, and writes nothing to any node");
        let talosconfig = self.stage.talosconfig.display().to_string();
        let out = self.stage.keys().display().to_string();
        let [control, worker] =
            [format!("cp1={}", self.stage.addresses[0]), format!("w1={}", self.stage.addresses[1])];
        let cluster = self.stage.cluster.clone();
        self.run(
            0,
            &[
                "init",
                "--cluster",
                &cluster,
                "--talosconfig",
                &talosconfig,
                "--machine",
                &control,
                "--machine",
                &worker,
                "--out",
                &out,
            ],
        )?;
        self.stage.hurry()?;
        self.say("the reconciler starts; it answers, owns the shard, and has nothing to do");
        self.start()?;
        ensure!(self.ask("/livez")?.starts_with("HTTP/1.1 204"), "`/livez` does not answer");
        self.wait("the reconciler owns the shard", |status| status["owner"]["generation"] == 1)?;
        Ok(())
    }

    pub(super) fn import(&mut self) -> Result<()> {
        self.title("Import: what runs becomes a base, its secrets go to the store");
        let talosconfig = self.stage.talosconfig.display().to_string();
        let clears = self.stage.clears.clone();
        let base: Vec<&str> =
            vec!["import", "cp1", "w1", "--talosconfig", &talosconfig, "--branch", "import"];
        self.say("a file's content could be a secret, and nobody said whether it is: nothing is written");
        let said = self.run(1, &base)?;
        ensure!(
            said.contains("undecided") && said.contains("/machine/files/0/content"),
            "The region is not named"
        );
        let mut with: Vec<&str> = base.clone();
        for clear in &clears {
            with.extend(["--clear", clear]);
        }
        self.say(
            "marked; but the same value stands in a label too: the guard names the place, never the value",
        );
        with.extend(["--mark", FILE]);
        let said = self.run(1, &with)?;
        ensure!(said.contains("guard") && said.contains("example.org~1psk"), "The copy is not named");
        ensure!(!said.contains(PLANTED), "The value is printed");
        self.say("both marked: the import passes, and equal values share one name");
        with.extend(["--mark", LABEL]);
        self.run(0, &with)?;
        self.run(0, &["check"])?;
        let [control, worker] = self.stage.nodes.received()?;
        ensure!(control.is_empty() && worker.is_empty(), "A node received something");
        Ok(())
    }

    pub(super) fn adopt_both(&mut self) -> Result<()> {
        self.title("Adopt: merged and approved, what runs is Applied; nothing is sent");
        let plan = self.run(0, &["plan", "import"])?;
        ensure!(plan.contains("cp1  adopt") && plan.contains("w1  adopt"), "The plan does not adopt both");
        self.approve("import")?;
        self.wait("both are adopted", |status| {
            word(status, "cp1") == "applied" && word(status, "w1") == "applied"
        })?;
        let [control, worker] = self.stage.nodes.received()?;
        ensure!(control.is_empty() && worker.is_empty(), "An adoption sent something");
        Ok(())
    }

    pub(super) fn change(&mut self) -> Result<(String, Vec<u8>)> {
        self.title("A change: a fragment that refers to the secret, a profile, an assignment");
        self.git(&["fetch", "--quiet", "origin"])?;
        self.git(&["switch", "--quiet", "--no-track", "-c", "labels", "origin/main"])?;
        self.run(0, &["new", "fragment", "role/labels"])?;
        std::fs::write(self.stage.file("fragments/role/labels.yaml"), FRAGMENT)?;
        self.run(0, &["new", "profile", "workers"])?;
        std::fs::write(self.stage.file("profiles/workers.yaml"), PROFILE)?;
        let path = format!("clusters/{}/assignments/w1.yaml", self.stage.cluster);
        let assignment = std::fs::read_to_string(self.stage.file(&path))?;
        std::fs::write(self.stage.file(&path), format!("{assignment}profiles: [workers]\n"))?;
        self.git(&["add", "-A"])?;
        self.git(&["commit", "--quiet", "-S", "-m", "Label the workers and let them read the registry"])?;
        self.run(0, &["check"])?;
        let plan = self.run(0, &["plan", "labels"])?;
        ensure!(plan.contains("w1  apply") && !plan.contains("cp1  "), "The plan does not change w1 alone");
        ensure!(plan.contains("machine/files/0/content@1"), "The plan does not show the reference");
        ensure!(!plan.contains(PLANTED), "The plan shows the value");
        self.say("the plan shows the reference and never the value; approved, the worker gets it, the control plane nothing");
        let composed = self.run(0, &["render", "w1"])?;
        self.approve("labels")?;
        let status = self.wait("w1 is applied", |status| {
            word(status, "w1") == "applied"
                && machine(status, "w1").is_some_and(|one| one["status"]["applied"]["revision"] == 2)
        })?;
        ensure!(
            machine(&status, "w1").is_some_and(|one| one["status"]["applied"]["source"] == "operation"),
            "It was no operation"
        );
        let [control, mut worker] = self.stage.nodes.received()?;
        ensure!(control.is_empty(), "The control plane received something");
        ensure!(worker.len() == 1, "The worker received {} applies, not one", worker.len());
        let received = worker.remove(0);
        let text = String::from_utf8_lossy(&received).into_owned();
        ensure!(text.contains(&format!("password: {PLANTED}")), "The worker did not receive the value");
        ensure!(text.contains("example.org/tier: edge"), "The worker did not receive the label");
        Ok((composed, received))
    }

    pub(super) fn drift_adopted_while_frozen(&mut self) -> Result<()> {
        self.title("Drift: somebody changes the worker with another tool");
        self.stage.nodes.meddle("example.org/by-hand", "one")?;
        self.wait("the drift is open", |status| word(status, "w1") == "drifted")?;
        self.say("open within seconds; a freeze closes the gate, for what is sent");
        self.run(0, &["freeze", "w1", "--reason", "look first"])?;
        let talosconfig = self.stage.talosconfig.display().to_string();
        self.say("the drift becomes a new base on a draft branch; adopting it sends nothing, so it goes while frozen");
        self.run(0, &["adopt", "w1", "--talosconfig", &talosconfig, "--branch", "adopt"])?;
        let plan = self.run(0, &["plan", "adopt"])?;
        ensure!(plan.contains("w1  adopt"), "The plan does not adopt");
        self.approve("adopt")?;
        let status = self.wait("the drift is adopted", |status| word(status, "w1") == "applied")?;
        ensure!(
            machine(&status, "w1").is_some_and(|one| one["status"]["frozen"].is_u64()),
            "It is not frozen"
        );
        ensure!(self.stage.nodes.received()?[1].len() == 1, "The adoption sent something");
        Ok(())
    }

    pub(super) fn revert(&mut self) -> Result<()> {
        self.title("Changed again: this time it is reverted");
        self.stage.nodes.meddle("example.org/by-hand", "two")?;
        self.wait("the drift is open", |status| word(status, "w1") == "drifted")?;
        let said = self.run(0, &["revert", "w1", "--yes"])?;
        ensure!(said.contains("unseenOverwrite"), "The revert is not marked");
        self.say("approved, and it waits: the machine is frozen");
        self.wait("the revert is approved", |status| revert_state(status) == Some("approved"))?;
        ensure!(self.stage.nodes.received()?[1].len() == 1, "A frozen machine received something");
        self.run(0, &["unfreeze", "w1", "--reason", "looked"])?;
        self.wait("the revert ran", |status| {
            word(status, "w1") == "applied" && revert_state(status) == Some("completed")
        })?;
        let worker = self.stage.nodes.received()?[1].clone();
        ensure!(worker.len() == 2, "The worker received {} applies, not two", worker.len());
        let text = String::from_utf8_lossy(&worker[1]).into_owned();
        ensure!(
            text.contains("example.org/by-hand: one"),
            "The revert sent something else than what was adopted"
        );
        Ok(())
    }

    pub(super) fn verify(&mut self) -> Result<()> {
        self.title("Afterwards: who, what, when, and by which line");
        let settings = self.stage.settings().display().to_string();
        let said = self.run(0, &["verify", "--settings", &settings])?;
        ensure!(said.contains("state chain: sound"), "The chain is not sound");
        ensure!(!said.contains("refused"), "Something was refused");
        let log = self.run(0, &["log", "w1"])?;
        for kind in [
            "adopted",
            "evidence",
            "committed",
            "attempt",
            "answer",
            "verified",
            "applied",
            "drift-opened",
            "drift-closed",
            "frozen",
            "unfrozen",
        ] {
            ensure!(log.contains(kind), "The timeline of w1 has no `{kind}`");
        }
        self.git(&["log", "--format=%h %an %s", "--reverse", "refs/remotes/bronzeward-state/default"])?;
        self.signatures_are_good()
    }

    /// `git verify-commit` says Good for every state commit and every merge that `approve` made.
    fn signatures_are_good(&mut self) -> Result<()> {
        let root = std::fs::read_to_string(self.stage.keys().join("root_ed25519.pub"))?;
        let root: Vec<&str> = root.split_ascii_whitespace().take(2).collect();
        let signers = std::fs::read_to_string(self.stage.file("allowed_signers"))?;
        let all = self.stage.dir.join("all_signers");
        std::fs::write(&all, format!("{signers}root {}\n", root.join(" ")))?;
        let setting = format!("gpg.ssh.allowedSignersFile={}", all.display());
        let list = self.git(&["rev-list", "refs/remotes/bronzeward-state/default"])?;
        let mut commits: Vec<String> = list.lines().map(str::to_owned).collect();
        if self.stage.style == MergeStyle::Signed {
            let merges = self.git(&["rev-list", "--merges", "origin/main"])?;
            ensure!(merges.lines().count() == 3, "There are not three merges");
            commits.extend(merges.lines().map(str::to_owned));
        }
        ensure!(commits.len() > 20, "There are too few commits to look at");
        let mut verify = vec!["-c".to_owned(), setting, "verify-commit".to_owned()];
        verify.extend(commits.iter().cloned());
        let verify: Vec<&str> = verify.iter().map(String::as_str).collect();
        let output = self.stage.command("git").current_dir(self.stage.work_tree()).args(&verify).output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let good = said.matches("Good \"git\" signature").count();
        ensure!(
            output.status.success() && good == commits.len(),
            "Of {} commits {good} are good:\n{said}",
            commits.len()
        );
        self.say(&format!("git verify-commit says Good for all {good} commits"));
        Ok(())
    }

    /// Approves a branch and brings it onto main, in the stage's style.
    fn approve(&mut self, branch: &str) -> Result<()> {
        if self.stage.style == MergeStyle::Signed {
            self.run(0, &["approve", branch, "--merge", "--yes"])?;
        } else {
            self.git(&["push", "--quiet", "origin", branch])?;
            self.run(0, &["approve", branch, "--only", "--yes"])?;
            self.forge_merges(branch)?;
        }
        self.run(0, &["status", "--wait"])?;
        Ok(())
    }

    /// What a forge's button does: in a clone of its own, unsigned, under its own name.
    fn forge_merges(&mut self, branch: &str) -> Result<()> {
        self.say("the forge merges the branch, unsigned, as its button does");
        let forge = self.stage.forge();
        let git = |args: &[&str]| -> Result<()> {
            let mut command = self.stage.command("git");
            command.current_dir(&forge).args([
                "-c",
                "user.name=Forge",
                "-c",
                "user.email=forge@example.org",
                "-c",
                "commit.gpgSign=false",
            ]);
            let output = command.args(args).output().context("git cannot be started")?;
            ensure!(
                output.status.success(),
                "git {args:?} failed: {}",
                String::from_utf8_lossy(&output.stderr)
            );
            Ok(())
        };
        if !forge.exists() {
            std::fs::create_dir_all(&forge)?;
            git(&["init", "--quiet"])?;
            git(&["remote", "add", "origin", &self.stage.remote])?;
        }
        git(&["fetch", "--quiet", "origin"])?;
        git(&["checkout", "--quiet", "-B", "main", "origin/main"])?;
        let source = format!("origin/{branch}");
        if self.stage.style == MergeStyle::Squash {
            git(&["merge", "--quiet", "--squash", &source])?;
            git(&["commit", "--quiet", "-m", &format!("{branch} (#1)")])?;
        } else {
            git(&[
                "merge",
                "--quiet",
                "--no-ff",
                "-m",
                &format!("Merge pull request #1 from {branch}"),
                &source,
            ])?;
        }
        git(&["push", "--quiet", "origin", "main"])
    }
}

fn revert_state(status: &Value) -> Option<&str> {
    status["releases"]
        .as_array()?
        .iter()
        .flat_map(|release| release["entries"].as_array().into_iter().flatten())
        .filter(|entry| entry["operation"] == "revert")
        .filter_map(|entry| entry["state"].as_str())
        .next_back()
}
