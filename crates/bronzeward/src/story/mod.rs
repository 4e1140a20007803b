//! From two running machines and an empty repository to approved, recorded, drift-watched configuration.
//!
//! A [`Stage`] says where the remote is, how nodes are reached and how somebody changes one behind everybody's back;
//! [`Story::play`] runs the real program, command by command, and asserts each step.

mod acts;
mod leaks;
mod stage;

pub use leaks::{Leak, search};
pub use stage::{MergeStyle, Narrator, Nodes, Stage};

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// A value that must never be seen outside the store and the nodes. It stands in a file and again in a label.
pub const PLANTED: &str = "correct-horse-battery-staple";

/// The longest that any step may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A story that is being told.
pub struct Story<'a> {
    /// Where it plays.
    pub stage: &'a Stage,
    narrator: &'a mut dyn Narrator,
    reconciler: Option<Reconciler>,
    transcript: String,
}

/// The running reconciler.
struct Reconciler {
    child: Child,
    address: String,
}

impl Drop for Reconciler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a told story leaves for further checks.
#[derive(Debug)]
pub struct Told {
    /// The person's clone.
    pub clone: PathBuf,
    /// Everything that any command printed.
    pub transcript: String,
    /// The composed document of the worker after the first apply, references unresolved.
    pub composed: String,
    /// The bytes that the worker received first.
    pub received: Vec<u8>,
}

impl<'a> Story<'a> {
    /// Tells the whole story.
    ///
    /// # Errors
    /// The first step that does not hold.
    pub fn play(stage: &'a Stage, narrator: &'a mut dyn Narrator) -> Result<Told> {
        let mut story = Story { stage, narrator, reconciler: None, transcript: String::new() };
        story.begin()?;
        story.import()?;
        story.adopt_both()?;
        let (composed, received) = story.change()?;
        story.drift_adopted_while_frozen()?;
        story.revert()?;
        story.verify()?;
        story.stop();
        let Story { stage, transcript, .. } = story;
        Ok(Told { clone: stage.work_tree(), transcript, composed, received })
    }

    fn title(&mut self, text: &str) {
        self.narrator.title(text);
    }

    fn say(&mut self, text: &str) {
        self.narrator.say(text);
    }

    /// The program with the stage's environment, in the person's clone.
    fn program(&self, args: &[&str]) -> Command {
        let mut command = self.stage.command(&self.stage.program);
        command.current_dir(self.stage.work_tree()).args(args);
        command
    }

    /// Runs a command of the story and gives what it printed; the exit code must be the expected one.
    fn run(&mut self, expected: i32, args: &[&str]) -> Result<String> {
        self.narrator.command(&format!("bronzeward {}", args.join(" ")));
        let output = self.program(args).output().context("The program cannot be started")?;
        self.judge(expected, &format!("bronzeward {}", args.join(" ")), &output)
    }

    /// Runs git in the person's clone.
    fn git(&mut self, args: &[&str]) -> Result<String> {
        self.narrator.command(&format!("git {}", args.join(" ")));
        let mut command = self.stage.command("git");
        let output = command
            .current_dir(self.stage.work_tree())
            .args(args)
            .output()
            .context("git cannot be started")?;
        self.judge(0, &format!("git {}", args.join(" ")), &output)
    }

    fn judge(&mut self, expected: i32, command: &str, output: &Output) -> Result<String> {
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        self.transcript.push_str(&format!("$ {command}\n{stdout}{stderr}\n"));
        self.narrator.output(&format!("{stderr}{stdout}"));
        ensure!(
            output.status.code() == Some(expected),
            "`{command}` ended with {:?}, expected {expected}:\n{stdout}{stderr}",
            output.status.code()
        );
        Ok(format!("{stdout}{stderr}"))
    }

    /// The state as the program prints it.
    fn status(&self) -> Result<Value> {
        let output = self.program(&["status", "--format", "json"]).output()?;
        ensure!(output.status.success(), "`status` failed: {}", String::from_utf8_lossy(&output.stderr));
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Waits until the state is as wanted.
    #[allow(
        clippy::disallowed_methods,
        reason = "the condition is on the remote: there is nothing to be told by"
    )]
    fn wait(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
        let start = Instant::now();
        loop {
            let status = self.status()?;
            if wanted(&status) {
                return Ok(status);
            }
            if start.elapsed() > PATIENCE {
                bail!("Waited in vain until {what}; the state is {status:#}");
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn start(&mut self) -> Result<()> {
        use std::io::{BufRead, BufReader};
        let settings = self.stage.settings();
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.stage.log())?;
        let mut command = self.stage.command(&self.stage.program);
        command.args(["run", "--settings"]).arg(&settings).env("BRONZEWARD_LOG", "trace");
        let mut child =
            command.stdout(Stdio::piped()).stderr(log).spawn().context("The reconciler cannot be started")?;
        let mut line = String::new();
        let stdout = child.stdout.take().context("The reconciler has no output")?;
        BufReader::new(stdout).read_line(&mut line)?;
        let address = line.trim().strip_prefix("listening on ").map(str::to_owned);
        let Some(address) = address else {
            let _ = child.kill();
            let log = std::fs::read_to_string(self.stage.log()).unwrap_or_default();
            bail!("The reconciler did not start: {line}{log}");
        };
        self.reconciler = Some(Reconciler { child, address });
        Ok(())
    }

    fn stop(&mut self) {
        self.reconciler = None;
    }

    /// Asks the endpoint for a path; gives the status line and the body.
    fn ask(&self, path: &str) -> Result<String> {
        use std::io::{Read, Write};
        let address = &self.reconciler.as_ref().context("The reconciler does not run")?.address;
        let mut stream = std::net::TcpStream::connect(address)?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    }
}

/// The status of a machine in what `status --format json` prints.
fn machine<'v>(status: &'v Value, name: &str) -> Option<&'v Value> {
    status["machines"].as_array()?.iter().find(|one| one["status"]["machine"] == name)
}

/// One word for a machine: `applied`, `drifted`, …
fn word(status: &Value, name: &str) -> String {
    machine(status, name).and_then(|one| one["state"].as_str()).unwrap_or("unknown").to_owned()
}
