//! The command line, declared apart from what it does: doc comments here are the help.

use std::path::PathBuf;

use clap::builder::TypedValueParser;
use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};

use crate::output::Format;

/// A GitOps reconciler for Talos Linux machine configuration.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, max_term_width = 100)]
pub struct Cli {
    /// Work in this clone instead of the current folder.
    #[arg(short = 'C', long = "directory", value_name = "DIR", global = true, default_value = ".")]
    pub directory: PathBuf,
    /// Text for people or JSON for programs.
    #[arg(long, global = true, value_enum, default_value_t)]
    pub format: Format,
    /// The reconciler's settings; people need them only to verify the state chain. `run` also looks for
    /// `bronzeward.toml` here and in `/etc/bronzeward`.
    #[arg(long, global = true, value_name = "FILE", env = "BRONZEWARD_SETTINGS")]
    pub settings: Option<PathBuf>,
    /// The key that signs; git's own (`user.signingKey`) when it is not named.
    #[arg(long, global = true, value_name = "FILE", env = "BRONZEWARD_SIGNING_KEY")]
    pub signing_key: Option<PathBuf>,
    /// The age identity, or SSH key, that opens the installation key; the signing key when it is not named.
    #[arg(long, global = true, value_name = "FILE", env = "BRONZEWARD_AGE_IDENTITY")]
    pub age_identity: Option<PathBuf>,
    /// The talosconfig with which this person talks to nodes.
    #[arg(long, global = true, value_name = "FILE", env = "BRONZEWARD_TALOSCONFIG")]
    pub talosconfig: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Tell the whole story on simulated nodes: import, adopt, approve, apply, drift, freeze, revert.
    #[command(after_help = "Example:\n  bronzeward demo --keep /tmp/demo")]
    Demo(Demo),
    /// Begin in an empty clone: read the cluster's and nodes' ids, make keys, anchor, state and settings.
    ///
    /// Writes nothing to any node.
    #[command(
        after_help = "Example:\n  bronzeward init --cluster home --talosconfig ~/.talos/config \\\n    --machine cp1=10.0.0.2 --machine w1=10.0.0.11"
    )]
    Init(Init),
    /// Run the reconciler.
    #[command(after_help = "Example:\n  bronzeward run --settings /etc/bronzeward/bronzeward.toml")]
    Run(Run),
    /// Import running machines on a draft branch: secrets are extracted, the nodes stay untouched.
    #[command(
        after_help = "Example:\n  bronzeward import cp1 w1 --mark v1alpha1:/machine/files/0/content \\\n    --clear v1alpha1:/cluster/apiServer/admissionControl"
    )]
    Import(Import),
    /// Scaffold a file.
    #[command(subcommand)]
    New(New),
    /// Validate everything that a pull request can break, offline.
    #[command(after_help = "Example:\n  bronzeward check --format json")]
    Check(Check),
    /// Print the composed configuration of a machine, references as references.
    #[command(
        after_help = "Examples:\n  bronzeward render w1\n  bronzeward render --all -o out\n  bronzeward render --patch fragments/role/labels.yaml"
    )]
    Render(Render),
    /// Compose machine configuration files without a repository, as `talosctl machineconfig` does.
    #[command(subcommand, visible_alias = "mc")]
    Machineconfig(Machineconfig),
    /// Say what would be done if a branch were merged.
    #[command(
        after_help = "Examples:\n  bronzeward plan\n  bronzeward plan labels --format json --exit-code"
    )]
    Plan(PlanArgs),
    /// Say what differs between two revisions, machine by machine.
    #[command(after_help = "Example:\n  bronzeward diff main..labels")]
    Diff(Diff),
    /// Approve what a branch would do: sign its plan, and merge it or print the trailers.
    #[command(
        after_help = "Examples:\n  bronzeward approve labels --merge\n  bronzeward approve labels --print\n  bronzeward approve main --only"
    )]
    Approve(Approve),
    /// Say where every machine stands.
    #[command(after_help = "Examples:\n  bronzeward status\n  bronzeward status --wait --timeout 2m")]
    Status(Status),
    /// Print a machine's timeline.
    #[command(after_help = "Example:\n  bronzeward log w1")]
    Log(Log),
    /// Say of every commit of main whether it was accepted, unapproved or refused, and by which line.
    #[command(after_help = "Example:\n  bronzeward verify --settings bronzeward.toml")]
    Verify(Verify),
    /// Print the effective settings, each with where it came from.
    #[command(after_help = "Example:\n  bronzeward settings --settings /etc/bronzeward/bronzeward.toml")]
    Settings,
    /// Close the gate of a machine, a cluster or everything.
    #[command(
        after_help = "Examples:\n  bronzeward freeze w1 --reason 'disk swap'\n  bronzeward freeze all --reason incident"
    )]
    Freeze(FreezeArgs),
    /// Open a gate that was closed.
    #[command(after_help = "Example:\n  bronzeward unfreeze w1 --reason 'done'")]
    Unfreeze(FreezeArgs),
    /// Take the drift of a machine as the new truth: a base on a draft branch; nothing is sent.
    #[command(after_help = "Example:\n  bronzeward adopt w1")]
    Adopt(AdoptArgs),
    /// Approve sending what is Applied over an open drift that no reviewer saw.
    #[command(after_help = "Example:\n  bronzeward revert w1")]
    Revert(Revert),
    /// Take an approval back.
    #[command(after_help = "Example:\n  bronzeward revoke 4f1c… --reason 'wrong window'")]
    Revoke(Revoke),
}

/// `demo`.
#[derive(Debug, Args)]
pub struct Demo {
    /// Leave everything that was made in this folder.
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
}

/// `init`.
#[derive(Debug, Args)]
pub struct Init {
    /// The cluster's name.
    #[arg(long)]
    pub cluster: String,
    /// The context of the talosconfig; its current one when it is not named.
    #[arg(long)]
    pub context: Option<String>,
    /// A machine, by the name that it gets and its address; the talosconfig's nodes, by host name, when none is given.
    #[arg(long = "machine", value_name = "NAME=ADDRESS")]
    pub machines: Vec<String>,
    /// The Talos minor whose rules compose the configuration; the control plane's own when it is not named.
    #[arg(long)]
    pub contract: Option<String>,
    /// What Talos runs on.
    #[arg(long, default_value = "metal", value_parser = ["metal", "cloud", "container"])]
    pub platform: String,
    /// Where the reconciler's keys, the root key and the settings go, not inside the clone; a folder beside it, named
    /// after it with `-reconciler`, when it is not named.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// The approver's recipient for secrets (`age1…` or `ssh-ed25519 …`); the signing key when it is not named.
    #[arg(long)]
    pub recipient: Option<String>,
    /// The reconciler's address of the configuration remote; the clone's `origin` when it is not named.
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
}

/// `run`.
#[derive(Debug, Args)]
pub struct Run {
    /// Do what is due once and end.
    #[arg(long)]
    pub once: bool,
}

/// `import`.
#[derive(Debug, Args)]
pub struct Import {
    /// The machines.
    #[arg(required = true, add = ArgValueCompleter::new(machine_names))]
    pub machines: Vec<String>,
    /// What was decided about regions that can hold secrets.
    #[command(flatten)]
    pub decide: Decide,
}

/// What an operator says about regions that can hold secrets.
#[derive(Clone, Debug, Args)]
pub struct Decide {
    /// A place whose value is a secret (`v1alpha1:/machine/files/0/content`).
    #[arg(long = "mark", value_name = "PATH")]
    pub marks: Vec<String>,
    /// A place, or a whole region, that holds none.
    #[arg(long = "clear", value_name = "PATH")]
    pub clears: Vec<String>,
    /// Take every undecided region as secret.
    #[arg(long, value_parser = ["mark"], value_name = "mark")]
    pub opaque: Option<String>,
    /// The draft branch; made from main when it does not exist.
    #[arg(long)]
    pub branch: Option<String>,
}

/// `new`.
#[derive(Debug, Subcommand)]
pub enum New {
    /// A fragment and, if wanted, its place in assignments.
    #[command(after_help = "Example:\n  bronzeward new fragment role/labels --to w1")]
    Fragment {
        /// Layer and name, as in role/labels.
        name: String,
        /// Select it for these machines.
        #[arg(long = "to", add = ArgValueCompleter::new(machine_names))]
        to: Vec<String>,
        /// Put it below this cluster instead of among the shared fragments.
        #[arg(long)]
        cluster: Option<String>,
    },
    /// A profile.
    #[command(after_help = "Example:\n  bronzeward new profile workers")]
    Profile {
        /// Its name.
        name: String,
        /// Put it below this cluster instead of among the shared profiles.
        #[arg(long)]
        cluster: Option<String>,
    },
}

/// `check`.
#[derive(Debug, Args)]
pub struct Check {
    /// A revision; the files of the work tree when it is not named.
    pub revision: Option<String>,
}

/// `render`.
#[derive(Debug, Args)]
pub struct Render {
    /// The machine.
    #[arg(required_unless_present_any = ["patch", "all"], add = ArgValueCompleter::new(machine_names))]
    pub machine: Option<String>,
    /// Every machine, each into `DIR/CLUSTER/MACHINE.yaml` of the folder that `--output` names.
    #[arg(long, conflicts_with_all = ["machine", "patch", "explain"], requires = "output")]
    pub all: bool,
    /// Write to this file, or with `--all` into this folder.
    #[arg(short, long, value_name = "PATH", conflicts_with_all = ["patch", "explain"])]
    pub output: Option<PathBuf>,
    /// Print what talosctl can take of this fragment: no header, no references.
    #[arg(long, value_name = "FILE", conflicts_with = "machine")]
    pub patch: Option<PathBuf>,
    /// A revision; the files of the work tree when it is not named.
    #[arg(long)]
    pub revision: Option<String>,
    /// Say where every value was written, and what it overrode.
    #[arg(long)]
    pub explain: bool,
}

/// `machineconfig`.
#[derive(Debug, Subcommand)]
pub enum Machineconfig {
    /// Apply strategic merge patches to a machine configuration.
    ///
    /// With at least one patch the result is composed and encoded anew, byte for byte as talosctl's; with none the
    /// file passes through untouched.
    #[command(
        after_help = "Examples:\n  bronzeward machineconfig patch worker.yaml --patch @labels.yaml -o w1.yaml\n  bronzeward machineconfig patch - -p 'machine: {type: worker}' --contract v1.13 < worker.yaml"
    )]
    Patch(PatchArgs),
    /// Say of every value of the result where it was written, what it overrode, and by which rule.
    #[command(
        after_help = "Examples:\n  bronzeward machineconfig explain worker.yaml --patch @labels.yaml\n  bronzeward machineconfig explain worker.yaml --redact v1alpha1:/machine/files/0/content"
    )]
    Explain(ExplainArgs),
}

/// `machineconfig explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// What is composed.
    #[command(flatten)]
    pub compose: ComposeArgs,
    /// Also hide what stands at this place, as `v1alpha1:/machine/files/0/content`; what Talos takes for secret is
    /// always hidden.
    #[arg(long, value_name = "PATH")]
    pub redact: Vec<String>,
}

/// `machineconfig patch`.
#[derive(Debug, Args)]
pub struct PatchArgs {
    /// What is composed.
    #[command(flatten)]
    pub compose: ComposeArgs,
    /// Write to this file instead of standard output; folders that are missing are made.
    #[arg(short, long, value_name = "FILE", value_parser = any_path())]
    pub output: Option<PathBuf>,
}

/// A path that may be empty, which clap's own may not.
fn any_path() -> impl TypedValueParser<Value = PathBuf> {
    clap::builder::OsStringValueParser::new().map(PathBuf::from)
}

/// What `machineconfig patch` and `machineconfig explain` compose.
#[derive(Debug, Args)]
pub struct ComposeArgs {
    /// The machine configuration; `-` for standard input.
    pub file: PathBuf,
    /// A patch, as text or as `@FILE`; may be given several times, and is applied in that order.
    #[arg(short, long = "patch", value_name = "PATCH", allow_hyphen_values = true)]
    pub patch: Vec<String>,
    /// The Talos minor whose rules compose, as `v1.13`; the newest that this version knows when it is not named.
    #[arg(long, value_name = "MINOR")]
    pub contract: Option<String>,
}

/// `plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// The branch; the one that is checked out when it is not named. `main`: what main itself holds.
    pub branch: Option<String>,
    /// End with 10 when something would be done.
    #[arg(long)]
    pub exit_code: bool,
}

/// `diff`.
#[derive(Debug, Args)]
pub struct Diff {
    /// Two revisions, as in main..labels.
    pub range: String,
}

/// `approve`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("how").required(true))]
pub struct Approve {
    /// The branch; `main`: what main itself holds.
    pub branch: String,
    /// Merge it, with the approval in the merge commit, and push.
    #[arg(long, group = "how")]
    pub merge: bool,
    /// Print the trailers, to be put into the message that a forge makes.
    #[arg(long, group = "how")]
    pub print: bool,
    /// Push the approval alone, on `bronzeward/approvals/…`; a forge merges the branch.
    #[arg(long, group = "how")]
    pub only: bool,
    /// How long it lives.
    #[arg(long, default_value = "24h")]
    pub expires: String,
    /// Do not ask.
    #[arg(long)]
    pub yes: bool,
}

/// `status`.
#[derive(Debug, Args)]
pub struct Status {
    /// Wait until nothing is pending.
    #[arg(long)]
    pub wait: bool,
    /// How long to wait at most.
    #[arg(long, default_value = "5m")]
    pub timeout: String,
}

/// `log`.
#[derive(Debug, Args)]
pub struct Log {
    /// The machine.
    #[arg(add = ArgValueCompleter::new(machine_names))]
    pub machine: String,
}

/// `verify`.
#[derive(Debug, Args)]
pub struct Verify {
    /// A range of commits of main; from the anchor on when it is not named.
    pub range: Option<String>,
}

/// `freeze` and `unfreeze`.
#[derive(Debug, Args)]
pub struct FreezeArgs {
    /// A machine, a cluster (`home/*`) or `all`.
    #[arg(add = ArgValueCompleter::new(machine_names))]
    pub scope: String,
    /// Why.
    #[arg(long)]
    pub reason: String,
    /// How long to wait for the reconciler's acknowledgement.
    #[arg(long, default_value = "30s")]
    pub timeout: String,
}

/// `adopt`.
#[derive(Debug, Args)]
pub struct AdoptArgs {
    /// The machine.
    #[arg(add = ArgValueCompleter::new(machine_names))]
    pub machine: String,
    /// What was decided about regions that can hold secrets; the base's own marks count too.
    #[command(flatten)]
    pub decide: Decide,
}

/// `revert`.
#[derive(Debug, Args)]
pub struct Revert {
    /// The machine.
    #[arg(add = ArgValueCompleter::new(machine_names))]
    pub machine: String,
    /// How long the approval lives.
    #[arg(long, default_value = "24h")]
    pub expires: String,
    /// Do not ask.
    #[arg(long)]
    pub yes: bool,
}

/// `revoke`.
#[derive(Debug, Args)]
pub struct Revoke {
    /// The approval's id.
    pub approval: String,
    /// Why.
    #[arg(long)]
    pub reason: String,
    /// How long to wait for the reconciler's acknowledgement.
    #[arg(long, default_value = "30s")]
    pub timeout: String,
}

/// The command, for completions.
pub fn factory() -> clap::Command {
    Cli::command()
}

/// Machine names of the clone in which the shell stands.
fn machine_names(current: &std::ffi::OsStr) -> Vec<CompletionCandidate> {
    let start = current.to_string_lossy().into_owned();
    let mut out = Vec::new();
    let Ok(clusters) = std::fs::read_dir("clusters") else { return out };
    for cluster in clusters.flatten() {
        let Ok(machines) = std::fs::read_dir(cluster.path().join("machines")) else { continue };
        for machine in machines.flatten() {
            let name = machine.file_name().to_string_lossy().into_owned();
            if let Some(name) = name.strip_suffix(".yaml").filter(|name| name.starts_with(&start)) {
                out.push(CompletionCandidate::new(name));
            }
        }
    }
    // a folder is read in no order
    out.sort();
    out.dedup();
    out
}
