//! `bench-peers`: the same fleet through this program and through others, whole processes side by side.
//!
//! Ratios of one run mean something, times of two runs do not: machines are noisy.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use bronzeward_fleet::{SHARED, peers, repository};
use bronzeward_testkit::tools::workspace;
use clap::Args;

use crate::Outcome;

/// What is compared.
#[derive(Args)]
pub struct Peers {
    /// The binary of topf.
    #[arg(long)]
    topf: Option<PathBuf>,
    /// The binary of talhelper, which also makes the secrets for topf.
    #[arg(long)]
    talhelper: Option<PathBuf>,
    /// The binary of talosctl.
    #[arg(long)]
    talosctl: Option<PathBuf>,
    /// How many machines the fleet has.
    #[arg(long, default_value_t = 1000)]
    machines: usize,
    /// How often each is run; the best counts.
    #[arg(long, default_value_t = 5)]
    runs: usize,
}

/// What a program takes.
#[derive(Clone, Copy)]
struct Cost {
    seconds: f64,
    mebibytes: f64,
}

/// Runs a command and prints its peak memory in KiB, but never less than Python's own.
const PEAK: &str = "import resource, subprocess, sys\n\
    done = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)\n\
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)\n\
    sys.exit(done.returncode)\n";

/// `bench-peers`.
pub fn run(peers: &Peers) -> Result<Outcome> {
    let mut cargo = Command::new("cargo");
    // what cargo tells this program about itself would make some crates build again
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CARGO_")) {
        if name != "CARGO_HOME" && name != "CARGO_TARGET_DIR" {
            cargo.env_remove(name);
        }
    }
    cargo.args(["build", "--profile", "dist", "-p", "bronzeward"]).current_dir(workspace());
    if !cargo.status().context("cargo cannot be started")?.success() {
        bail!("the program does not build");
    }
    let target = workspace().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()));
    let ours = fs::canonicalize(target.join("dist/bronzeward")).context("cargo built into another folder")?;
    let root = tempfile::tempdir().context("no folder for the inputs")?;
    let binary = |path: &Option<PathBuf>| path.as_deref().map(fs::canonicalize).transpose();
    let (topf, talhelper) = (binary(&peers.topf)?, binary(&peers.talhelper)?);
    let peers = Peers { topf, talhelper, talosctl: binary(&peers.talosctl)?, ..*peers };
    fleet(&peers, &ours, root.path())?;
    patching(&peers, &ours, root.path())?;
    growth(&peers, &ours, root.path())?;
    Ok(Outcome::Fine)
}

fn fleet(args: &Peers, ours: &Path, root: &Path) -> Result<()> {
    println!("{} machines, whole processes:", args.machines);
    let home = ours_in(root, args.machines)?;
    let our_cost = cost(args.runs, &home, ours, &["render", "--all", "-o", "out"])?;
    line("bronzeward render --all", our_cost, None);
    let mut secrets = None;
    if let Some(talhelper) = &args.talhelper {
        let home = write(root, "talhelper", peers::talhelper(args.machines))?;
        let made = Command::new(talhelper).arg("gensecret").stdin(Stdio::null()).output();
        let made = made.context("talhelper cannot be started")?.stdout;
        fs::write(home.join("talsecret.yaml"), &made)?;
        secrets = Some(made);
        let theirs = cost(
            args.runs,
            &home,
            talhelper,
            &["genconfig", "--offline-mode", "--no-gitignore", "-o", "out"],
        )?;
        line("talhelper genconfig", theirs, Some(our_cost));
    }
    if let Some(topf) = &args.topf {
        let home = write(root, "topf", peers::topf(args.machines))?;
        let Some(secrets) = secrets else { bail!("topf needs secrets: name --talhelper, which makes them") };
        fs::write(home.join("secrets.yaml"), secrets)?;
        line("topf render", cost(args.runs, &home, topf, &["render", "-o", "out"])?, Some(our_cost));
    }
    Ok(())
}

fn patching(args: &Peers, ours: &Path, root: &Path) -> Result<()> {
    let home = write(root, "patching", peers::patching())?;
    let patches: Vec<String> = SHARED.iter().map(|(_, part, _)| format!("@{part}.yaml")).collect();
    let mut words = vec!["machineconfig", "patch", "base.yaml"];
    for patch in &patches {
        words.extend(["--patch", patch]);
    }
    println!("machineconfig patch with {} patches:", patches.len());
    let ours_words = [&words[..], &["--contract", "v1.13", "-o", "ours.yaml"]].concat();
    let our_cost = cost(args.runs * 10, &home, ours, &ours_words)?;
    line("bronzeward", our_cost, None);
    if let Some(talosctl) = &args.talosctl {
        let theirs = cost(args.runs * 2, &home, talosctl, &[&words[..], &["-o", "theirs.yaml"]].concat())?;
        line("talosctl", theirs, Some(our_cost));
        if fs::read(home.join("ours.yaml"))? != fs::read(home.join("theirs.yaml"))? {
            bail!("the two results differ: see what differs with `diff` on the same inputs");
        }
        println!("  both results have the same bytes");
    }
    Ok(())
}

fn growth(args: &Peers, ours: &Path, root: &Path) -> Result<()> {
    println!("growth with machines:");
    for machines in [10, 100, 1000, 10_000] {
        let home = ours_in(root, machines)?;
        let cost = cost(args.runs.min(3), &home, ours, &["render", "--all", "-o", "out"])?;
        let each = cost.seconds * 1e6 / machines as f64;
        println!("  {machines:>6}: {:.3} s, {:.0} MiB, {each:.0} µs a machine", cost.seconds, cost.mebibytes);
    }
    Ok(())
}

fn line(what: &str, cost: Cost, ours: Option<Cost>) {
    let ratio = ours.map(|ours| format!(", {:.1} times as long", cost.seconds / ours.seconds));
    let ratio = ratio.unwrap_or_default();
    println!("  {what:<24} {:>8.1} ms {:>6.1} MiB{ratio}", cost.seconds * 1e3, cost.mebibytes);
}

/// A clone with our repository of so many machines.
fn ours_in(root: &Path, machines: usize) -> Result<PathBuf> {
    let home = root.join(format!("ours-{machines}"));
    if !home.exists() {
        write(root, &format!("ours-{machines}"), repository(machines))?;
        fs::write(home.join(".gitignore"), "out/\n")?;
        for words in [&["init", "-q", "-b", "main"] as &[&str], &["add", "-A"]] {
            let done = Command::new("git").args(words).current_dir(&home).status();
            if !done.context("git cannot be started")?.success() {
                bail!("git {} failed", words[0]);
            }
        }
    }
    Ok(home)
}

fn write(root: &Path, name: &str, files: BTreeMap<String, String>) -> Result<PathBuf> {
    let home = root.join(name);
    for (path, text) in files {
        let full = home.join(path);
        fs::create_dir_all(full.parent().unwrap_or(&home))?;
        fs::write(full, text)?;
    }
    Ok(home)
}

/// The best time of several runs, and the memory of one more.
fn cost(runs: usize, home: &Path, program: &Path, words: &[&str]) -> Result<Cost> {
    // what was written for the inputs goes to the disk before somebody is measured
    let _ = Command::new("sync").status();
    let mut best = f64::INFINITY;
    for _ in 0..runs {
        let mut command = Command::new(program);
        command.args(fresh(home, words));
        best = best.min(timed(&mut command, home)?.0);
    }
    let mut command = match Path::new("/usr/bin/time").exists() {
        true => Command::new("/usr/bin/time"),
        false => Command::new("python3"),
    };
    match command.get_program() == "python3" {
        true => command.args(["-c", PEAK]),
        false => command.args(["-f", "%M"]),
    };
    let said = timed(command.arg(program).args(fresh(home, words)), home)?.1;
    let kibibytes: f64 = said.lines().last().unwrap_or_default().trim().parse().context("no peak memory")?;
    Ok(Cost { seconds: best, mebibytes: kibibytes / 1024.0 })
}

/// The words with a new folder for `out`: everybody writes everything anew, and some file systems are slow for
/// seconds where many files were removed.
fn fresh(home: &Path, words: &[&str]) -> Vec<String> {
    let out = (0..).map(|n| format!("out/{n}")).find(|out| !home.join(out).exists()).unwrap_or_default();
    words.iter().map(|word| if *word == "out" { out.clone() } else { (*word).to_owned() }).collect()
}

/// Runs a command. Gives its wall time and standard error.
fn timed(command: &mut Command, home: &Path) -> Result<(f64, String)> {
    command.current_dir(home).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let start = Instant::now();
    let out = command.output().with_context(|| format!("{} cannot be started", show(command)))?;
    let seconds = start.elapsed().as_secs_f64();
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    if !out.status.success() {
        bail!("{} failed: {said}", show(command));
    }
    Ok((seconds, said))
}

fn show(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}
