//! The commands of `docs/walkthrough.md`, run as they stand there.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use bronzeward_testkit::node::{Cluster, NodeOptions, Role, TestNode};
use bronzeward_testkit::tools::{Tool, tool, workspace};

/// The shell blocks of the page, in order.
fn script(page: &str) -> String {
    let mut out = String::from("set -euo pipefail\nset -x\n");
    let mut inside = false;
    for line in page.lines() {
        match line {
            "```sh" => inside = true,
            "```" => inside = false,
            _ if inside => out.push_str(&expect_failure(line)),
            _ => {}
        }
    }
    out
}

/// `! command` only inverts the status; under `set -e` it would also pass over a command that succeeds.
fn expect_failure(line: &str) -> String {
    match line.strip_prefix("! ") {
        Some(command) => format!("if {command}; then echo 'this should have been refused' >&2; exit 1; fi\n"),
        None => format!("{line}\n"),
    }
}

#[test]
fn every_command_of_the_page_works() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let cluster = Cluster::local("home");
    let planted = "    nodeLabels:\n        example.org/psk: correct-horse-battery-staple\n    files:\n        \
                   - content: correct-horse-battery-staple\n          permissions: 0o600\n          \
                   path: /var/lib/psk\n          op: create\n";
    let worker = String::from_utf8(cluster.config("worker")).unwrap();
    let worker = worker.replacen("\nmachine:\n", &format!("\nmachine:\n{planted}"), 1);
    let mut second = NodeOptions::new("w1", "worker");
    second.config = Some(worker.into_bytes());
    second.uuid = "4c4c4544-0042-4d10-8051-c4c04f503133".into();
    let control = TestNode::start(&cluster, NodeOptions::new("cp1", "controlplane"));
    let worker = TestNode::start(&cluster, second);

    let remote = root.join("remote.git");
    let made =
        Command::new("git").args(["init", "-q", "--bare", "-b", "main"]).arg(&remote).status().unwrap();
    assert!(made.success());
    let bin = root.join("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_bronzeward"), bin.join("bronzeward")).unwrap();
    std::os::unix::fs::symlink(tool(Tool::Talosctl), bin.join("talosctl")).unwrap();
    let home = root.join("home");
    fs::create_dir(&home).unwrap();
    let page = fs::read_to_string(workspace().join("docs/walkthrough.md")).unwrap();
    fs::write(root.join("page.sh"), script(&page)).unwrap();

    let path = std::env::var_os("PATH").unwrap();
    let path = format!("{}:{}", bin.display(), path.to_string_lossy());
    // everything in one process group, so that the reconciler in the background ends with it
    let mut child = Command::new("timeout")
        .args(["--kill-after=5", "240", "bash", "page.sh"])
        .current_dir(root)
        .env("HOME", &home)
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env_remove("SSH_AUTH_SOCK")
        .env("PATH", path)
        .env("CP", control.address().to_string())
        .env("W1", worker.address().to_string())
        .env("TALOSCONFIG", cluster.talosconfig(Role::Admin))
        .env("REMOTE", &remote)
        .stdin(Stdio::null())
        .stdout(fs::File::create(root.join("out")).unwrap())
        .stderr(fs::File::create(root.join("err")).unwrap())
        .process_group(0)
        .spawn()
        .unwrap();
    let status = child.wait().unwrap();
    let group = child.id().to_string();
    let _ = Command::new("kill").args(["-KILL", "--", &format!("-{group}")]).status();
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap_or_default();
    let (out, err, log) = (read("out"), read("err"), read("reconciler.log"));
    assert!(status.success(), "{status}\n{out}\n{err}\n{log}");
    for text in [&out, &err, &log] {
        assert!(!text.contains("correct-horse-battery-staple"), "a command printed the planted value");
    }
    assert!(out.contains("state chain: sound"), "{out}");
    assert!(err.contains("unseenOverwrite"), "{err}");
}
