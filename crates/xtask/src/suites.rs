//! The test suites, and the summary lines of their runners.

use std::io::{BufRead, BufReader};
use std::process::Command;

use anyhow::Context;
use bronzeward_testkit::tools::workspace;
use clap::ValueEnum;

use crate::{Outcome, tools};

/// A named suite: test targets, and what they are filtered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Suite {
    /// The whole story against real nodes, over every transport, and the walkthrough.
    Story,
    /// What strangers, thieves and hostile nodes try.
    Attacks,
    /// A kill at every step.
    Kill,
}

impl Suite {
    /// Arguments of `cargo test`, and the filter that goes to the runner.
    fn targets(self) -> (&'static [&'static str], Option<&'static str>) {
        match self {
            Suite::Story => (&["-p", "bronzeward", "--test", "story", "--test", "walkthrough"], None),
            Suite::Attacks => (&["-p", "bronzeward-reconcile", "--test", "it"], Some("attacks")),
            Suite::Kill => (&["-p", "bronzeward", "--test", "kill"], None),
        }
    }
}

/// Builds the tools and runs a suite, or everything.
pub fn run(suite: Option<Suite>, rest: &[String]) -> anyhow::Result<Outcome> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(workspace()).args(["test", "--no-fail-fast"]);
    let mut filter = None;
    match suite {
        None => cargo.arg("--workspace"),
        Some(suite) => {
            let (targets, wanted) = suite.targets();
            filter = wanted;
            cargo.args(targets)
        }
    };
    tools::build()?;
    if filter.is_some() || !rest.is_empty() {
        cargo.arg("--").args(filter).args(rest);
    }
    watch(&mut cargo)
}

/// Runs cargo, shows all that it prints as it comes, and then the runners' own summary lines.
fn watch(cargo: &mut Command) -> anyhow::Result<Outcome> {
    // one pipe for both streams keeps each runner's name before its summary
    let (reader, writer) = std::io::pipe().context("no pipe")?;
    cargo.stdout(writer.try_clone().context("no pipe")?).stderr(writer);
    let mut child = cargo.spawn().context("`cargo` cannot be started")?;
    // the command holds the ends that would keep the pipe open
    cargo.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut lines = Vec::new();
    let mut reader = BufReader::new(reader);
    let mut raw = Vec::new();
    while reader.read_until(b'\n', &mut raw).context("the runner's output cannot be read")? > 0 {
        let line = String::from_utf8_lossy(&raw).trim_end().to_owned();
        println!("{line}");
        lines.push(line);
        raw.clear();
    }
    let status = child.wait().context("the runner cannot be waited for")?;
    println!("\nsummary");
    for line in summary(&lines) {
        println!("{line}");
    }
    Ok(if status.success() { Outcome::Fine } else { Outcome::Wrong })
}

/// Each runner's name and its own summary line; a runner that ended without one is named all the same. Runners
/// without a test are left out.
fn summary(lines: &[String]) -> Vec<&str> {
    let mut out: Vec<&str> = Vec::new();
    for line in lines {
        let trimmed = line.trim_start();
        let runner = trimmed.starts_with("Running ") || trimmed.starts_with("Doc-tests ");
        if trimmed.starts_with("test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out") {
            out.pop();
        } else if runner || trimmed.starts_with("test result: ") {
            out.push(line);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_each_runner_with_its_own_words() {
        let text = "   Compiling a v0.1.0\n     Running unittests src/lib.rs (target/a)\n\nrunning 1 test\n\
                    test x ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n\
                         Running tests/b.rs (target/b)\nfatal: the process was killed\n   Doc-tests a\n\
                    test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
                    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out";
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let expected = [
            "     Running unittests src/lib.rs (target/a)",
            "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out",
            "Running tests/b.rs (target/b)",
            "test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out",
        ];
        assert_eq!(summary(&lines), expected);
    }

    #[test]
    fn a_failing_runner_is_no_success() {
        let fine = watch(Command::new("sh").args(["-c", "echo test result: ok."])).unwrap();
        assert!(matches!(fine, Outcome::Fine));
        let wrong =
            watch(Command::new("sh").args(["-c", "echo 'test result: FAILED.' >&2; exit 101"])).unwrap();
        assert!(matches!(wrong, Outcome::Wrong));
    }
}
