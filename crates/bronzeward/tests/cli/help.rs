//! What the program says of itself, and what shells complete.

use std::process::{Command, Output};

fn bronzeward(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bronzeward"));
    command.args(args).env("HOME", "/nonexistent");
    command
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "help goes to standard output");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The commands that a help lists.
fn listed(help: &str) -> Vec<String> {
    let Some((_, list)) = help.split_once("Commands:\n") else { return Vec::new() };
    let list = list.split("\n\n").next().unwrap();
    let names = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_command_has_a_help_with_an_example_that_is_its_own() {
    let mut todo: Vec<Vec<String>> = vec![Vec::new()];
    let mut seen = 0;
    while let Some(path) = todo.pop() {
        let mut args: Vec<&str> = path.iter().map(String::as_str).collect();
        args.push("--help");
        let help = text(&bronzeward(&args).output().unwrap());
        let inner = listed(&help);
        if inner.is_empty() {
            let line = format!("bronzeward {}", path.join(" "));
            let (_, examples) =
                help.split_once("Example").unwrap_or_else(|| panic!("{line}: no example\n{help}"));
            assert!(examples.contains(&line), "{line}: its example is another's\n{help}");
            assert!(help.lines().all(|line| line.chars().count() <= 110), "{line}: too wide\n{help}");
            seen += 1;
        }
        todo.extend(inner.into_iter().map(|name| [path.clone(), vec![name]].concat()));
    }
    assert!(seen >= 19, "only {seen} commands were found");
}

#[test]
fn an_unknown_word_ends_with_2_and_says_what_there_is() {
    for (args, part) in [
        (&["frobnicate"] as &[&str], "unrecognized subcommand"),
        (&["plan", "--frob"], "unexpected argument"),
        (&["approve", "x"], "--merge"),
        (&["approve", "x", "--merge", "--print"], "cannot be used with"),
        (&["check", "--format", "xml"], "possible values: text, json"),
        (&["freeze", "w1"], "--reason"),
        (&["import"], "<MACHINES>"),
    ] {
        let output = bronzeward(args).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(said.contains(part), "{args:?}: {said}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn shells_complete_commands_and_the_machines_of_the_clone() {
    let dir = tempfile::tempdir().unwrap();
    let machines = dir.path().join("clusters/home/machines");
    std::fs::create_dir_all(&machines).unwrap();
    for name in ["cp1", "w1", "w2"] {
        std::fs::write(machines.join(format!("{name}.yaml")), "").unwrap();
    }
    let script = bronzeward(&[]).env("COMPLETE", "bash").output().unwrap();
    assert!(text(&script).contains("complete"), "the shell's own part");
    let complete = |words: &[&str]| -> Vec<String> {
        let index = (words.len() - 1).to_string();
        let mut args = vec!["--"];
        args.extend(words);
        let output = bronzeward(&args)
            .current_dir(dir.path())
            .envs([("COMPLETE", "bash"), ("_CLAP_IFS", "\n"), ("_CLAP_COMPLETE_INDEX", index.as_str())])
            .output()
            .unwrap();
        text(&output).lines().map(str::to_owned).collect()
    };
    for command in ["import", "render", "log", "freeze", "unfreeze", "adopt", "revert"] {
        assert_eq!(complete(&["bronzeward", command, "w"]), ["w1", "w2"], "{command}");
    }
    assert_eq!(complete(&["bronzeward", "new", "fragment", "role/x", "--to", "c"]), ["cp1"]);
    assert!(complete(&["bronzeward", "ver"]).contains(&"verify".to_owned()));
}
