//! `demo`: the story on simulated nodes, explained line by line, each step asserted.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};
use bronzeward::story::{MergeStyle, Narrator, Nodes, PLANTED, Stage, Story, search};
use bronzeward_sim::{Role, SimCluster, SimNode, SimOptions};

use crate::cli::Demo;
use crate::exit::{Exit, refuse};
use crate::output;

/// `demo`.
pub fn run(args: &Demo) -> Result<Exit> {
    let (dir, temporary) = folder(args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (nodes, talosconfig, secrets) = runtime.block_on(start(&dir))?;
    let addresses = nodes.addresses();
    let remote = dir.join("remote.git");
    make_remote(&remote)?;
    let url = format!("file://{}", remote.display());
    let stage = Stage {
        program: std::env::current_exe().context("This program cannot find itself")?,
        remote: url.clone(),
        reconciler_remote: vec![("url".into(), url)],
        environment: Vec::new(),
        talosconfig: talosconfig.clone(),
        cluster: "home".to_owned(),
        addresses,
        style: MergeStyle::Signed,
        clears: Vec::new(),
        nodes: Box::new(nodes),
        dir: dir.clone(),
    };
    output::line(
        "Bronzeward keeps the configuration of Talos machines in Git. This is the whole story, on two",
    );
    output::line("simulated machines, with the real program, a real Git remote and real signatures.");
    let told = Story::play(&stage, &mut Printer)?;
    Printer.title("No secret anywhere: every Git object, log and file is searched");
    ensure!(!told.transcript.contains(PLANTED), "A command printed the planted value");
    let but = [talosconfig];
    let leaks = search(&dir, &secrets, &but)?;
    ensure!(leaks.is_empty(), "A secret was found: {leaks:?}");
    let bait = dir.join("bait");
    std::fs::write(&bait, &secrets[0])?;
    ensure!(search(&dir, &secrets, &but)?.len() == 1, "The search finds nothing, not even what is there");
    std::fs::remove_file(&bait)?;
    Printer.say(&format!("none of {} secrets was found, and a planted one was", secrets.len()));
    output::line("");
    output::line(
        "Not yet: sending to control planes, staged changes, takeover by a stand-by, quarantine and rebuild of",
    );
    output::line("the state, secret rotation, OpenBao. Each is refused by name.");
    if let Some(kept) = &args.keep {
        output::line(&format!("Everything is left in {}", kept.display()));
    }
    drop(temporary);
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(Exit::Fine)
}

fn folder(args: &Demo) -> Result<(PathBuf, Option<tempfile::TempDir>)> {
    match &args.keep {
        Some(dir) => {
            std::fs::create_dir_all(dir).with_context(|| format!("Cannot make `{}`", dir.display()))?;
            let empty = std::fs::read_dir(dir)?.next().is_none();
            if !empty {
                return Err(refuse(format!("`{}` is not empty: name a new folder", dir.display())));
            }
            Ok((dir.canonicalize()?, None))
        }
        None => {
            let dir = tempfile::tempdir()?;
            Ok((dir.path().canonicalize()?, Some(dir)))
        }
    }
}

fn make_remote(path: &std::path::Path) -> Result<()> {
    let made = std::process::Command::new("git")
        .args(["init", "--quiet", "--bare", "--initial-branch=main"])
        .arg(path)
        .status()
        .context("`git` cannot be started: install Git 2.38 or newer")?;
    ensure!(made.success(), "`git init` failed");
    Ok(())
}

/// The two simulated machines.
struct Simulated {
    control: SimNode,
    worker: SimNode,
    changes: Mutex<u32>,
}

async fn start(dir: &std::path::Path) -> Result<(Simulated, PathBuf, Vec<String>)> {
    let any: SocketAddr = "127.0.0.1:0".parse()?;
    let random = Box::new(|bytes: &mut [u8]| {
        getrandom::fill(bytes).expect("the system gives random bytes: keys of anything else would be none");
    });
    let mut cluster = SimCluster::new("home", &[any], SystemTime::from(jiff::Timestamp::now()), random)?;
    let control = cluster.control_plane("cp1");
    let worker = plant(&cluster.worker("w1"));
    let secrets = secrets_of(&[&control, &worker])?;
    let control = SimNode::start(&mut cluster, any, &control, SimOptions::new("cp1")).await?;
    let worker = SimNode::start(&mut cluster, any, &worker, SimOptions::new("w1")).await?;
    let path = dir.join("talosconfig");
    std::fs::write(&path, cluster.talosconfig(Role::Admin))?;
    Ok((Simulated { control, worker, changes: Mutex::new(0) }, path, secrets))
}

/// A value in a file's content, and again in a label.
fn plant(config: &str) -> String {
    let files = format!(
        "    nodeLabels:\n        example.org/psk: {PLANTED}\n    files:\n        - content: {PLANTED}\n          \
         permissions: 0o600\n          path: /var/lib/psk\n          op: create\n"
    );
    config.replacen("machine:\n", &format!("machine:\n{files}"), 1)
}

/// Everything in the configurations that Talos itself takes for secret, and the planted value.
fn secrets_of(configs: &[&str]) -> Result<Vec<String>> {
    let mut out = vec![PLANTED.to_owned()];
    for text in configs {
        let options = talos_config::Options::default();
        let tables = talos_config::Tables::v1_13();
        let config =
            talos_config::Config::load(&tables, text.as_bytes(), talos_config::SourceId(0), &options)?;
        out.extend(config.redacted_paths().into_iter().map(|leaf| leaf.text));
    }
    out.sort();
    out.dedup();
    Ok(out)
}

impl Simulated {
    fn addresses(&self) -> [String; 2] {
        [self.control.address().to_string(), self.worker.address().to_string()]
    }
}

impl Nodes for Simulated {
    fn meddle(&self, label: &str, value: &str) -> Result<()> {
        let text = String::from_utf8(self.worker.config())?;
        let tables = talos_config::Tables::v1_13();
        let options = talos_config::Options::default();
        let mut config =
            talos_config::Config::load(&tables, text.as_bytes(), talos_config::SourceId(0), &options)?;
        let patch = format!("machine:\n    nodeLabels:\n        {label}: {value}\n");
        let patch =
            talos_config::Patch::load(&tables, patch.as_bytes(), talos_config::SourceId(1), &options)?;
        config.apply(&patch)?;
        self.worker.change_config(&String::from_utf8(config.encode()?)?)?;
        *self.changes.lock().unwrap_or_else(std::sync::PoisonError::into_inner) += 1;
        Ok(())
    }

    fn received(&self) -> Result<[Vec<Vec<u8>>; 2]> {
        let bytes = |node: &SimNode| node.applies().into_iter().map(|applied| applied.bytes).collect();
        Ok([bytes(&self.control), bytes(&self.worker)])
    }
}

/// Tells the story on the terminal.
struct Printer;

impl Narrator for Printer {
    fn title(&mut self, text: &str) {
        output::line(&format!("\n== {text}"));
    }

    fn say(&mut self, text: &str) {
        output::line(&format!("-- {text}"));
    }

    fn command(&mut self, text: &str) {
        output::line(&format!("$ {text}"));
    }

    fn output(&mut self, text: &str) {
        for line in text.lines() {
            output::line(&format!("  {line}"));
        }
    }
}
