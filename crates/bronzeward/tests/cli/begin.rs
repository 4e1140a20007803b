//! `init`, and every command outside of where it can work.

use std::fs;

use bronzeward_testkit::node::Role;
use bronzeward_testkit::people::Person;

use crate::stand::{Ran, Stand};

/// Nothing was begun: no branch, no keys, no settings.
#[track_caller]
fn nothing_begun(stand: &Stand) {
    assert_eq!(stand.git_remote(&["for-each-ref"]), "");
    assert!(!stand.settings().exists());
    assert_eq!(stand.git(&["status", "--porcelain"]), "", "nothing lies in the clone");
}

fn init(stand: &Stand, more: &[&str]) -> Ran {
    let (config, out) = (stand.talosconfig(Role::Admin), stand.path("reconciler").display().to_string());
    let machine = format!("w1={}", stand.worker.address());
    let mut args = vec!["init", "--cluster", "home"];
    for (name, value) in [("--talosconfig", &config), ("--out", &out), ("--machine", &machine)] {
        if !more.contains(&name) {
            args.extend([name, value]);
        }
    }
    args.extend(more);
    stand.run(&args)
}

#[test]
fn init_refuses_what_it_cannot_begin_with_and_leaves_nothing() {
    let stand = Stand::new();
    let inside = stand.clone_dir().join("keys").display().to_string();
    init(&stand, &["--out", &inside]).refuses(&["must not lie inside the clone", "--out"]);
    assert!(!stand.clone_dir().join("keys").exists(), "it made the folder that it refused");
    let dotted = stand.clone_dir().join("../clone/keys/deep").display().to_string();
    init(&stand, &["--out", &dotted]).refuses(&["must not lie inside the clone"]);

    init(&stand, &["--context", "elsewhere"]).complains(2, &["no context `elsewhere`", "it has: home"]);
    init(&stand, &["--talosconfig", "/nonexistent/config"]).complains(2, &["/nonexistent/config"]);
    let broken = stand.path("broken");
    fs::write(&broken, "context: home\ncontexts: [hunter2\n").unwrap();
    let ran = init(&stand, &["--talosconfig", &broken.display().to_string()]).complains(2, &["talosconfig"]);
    assert!(!ran.stderr.contains("hunter2"), "a talosconfig holds a key: {}", ran.stderr);

    init(&stand, &["--machine", "w1"]).refuses(&["`w1` is not NAME=ADDRESS"]);
    let upper = format!("W1={}", stand.worker.address());
    init(&stand, &["--machine", &upper]).complains(2, &["`W1` is no name"]);
    init(&stand, &["--machine", "w1=nowhere.example.org"]).complains(2, &["nowhere.example.org"]);
    init(&stand, &["--machine", "w1=127.0.0.1:1"]).complains(2, &["127.0.0.1:1"]);
    init(&stand, &["--contract", "v0.9"]).refuses(&["v0.9", "v1.13"]);
    init(&stand, &["--recipient", "age1nonsense"]).complains(2, &["recipient of `ann@example.org`", "age1"]);
    nothing_begun(&stand);
}

#[test]
fn init_needs_somebody_who_signs() {
    let stand = Stand::new();
    stand.git(&["config", "user.signingKey", ""]);
    init(&stand, &[]).complains(2, &["user.signingKey"]);
    stand.git(&["config", "--unset", "user.signingKey"]);
    stand.git(&["config", "gpg.format", "openpgp"]);
    init(&stand, &[]).complains(2, &["openpgp", "gpg.format"]);
    stand.git(&["config", "--unset", "gpg.format"]);
    let missing = stand.path("no-key").display().to_string();
    init(&stand, &["--signing-key", &missing]).complains(2, &["no-key"]);
    stand.git(&["config", "user.email", ""]);
    init(&stand, &[]).complains(1, &["user.email"]);
    stand.git(&["config", "--unset", "user.email"]);
    // a key that signs and cannot decrypt needs a recipient beside it
    let bob = Person::new(&stand.path(""), "bob@example.org", "ecdsa");
    stand.write_gitconfig(&bob);
    init(&stand, &[]).refuses(&["cannot decrypt secrets", "--recipient age1"]);
    nothing_begun(&stand);
}

#[test]
fn init_begins_once() {
    let stand = Stand::begun();
    let tips = stand.git_remote(&["for-each-ref"]);
    let settings = fs::read(stand.settings()).unwrap();
    stand.init().refuses(&["begun before"]);
    assert_eq!(stand.git_remote(&["for-each-ref"]), tips);
    assert_eq!(fs::read(stand.settings()).unwrap(), settings);

    // somebody's repository with something else in it is not ours to begin in
    let stand = Stand::new();
    stand.write("README", "mine\n");
    stand.commit("Mine");
    stand.git(&["push", "-q", "origin", "main"]);
    stand.init().refuses(&["main is not empty", "empty repository"]);
}

#[test]
fn outside_of_a_clone_every_command_says_so() {
    let stand = Stand::new();
    let outside = stand.path("home");
    for args in [
        &["check"] as &[&str],
        &["plan"],
        &["status"],
        &["render", "w1"],
        &["diff", "a..b"],
        &["log", "w1"],
        &["verify"],
        &["approve", "x", "--merge"],
        &["freeze", "all", "--reason", "x"],
        &["import", "w1"],
        &["adopt", "w1"],
        &["revert", "w1"],
        &["revoke", "0123456789abcdef", "--reason", "x"],
        &["new", "profile", "x"],
        &["init", "--cluster", "home", "--out", "keys"],
    ] {
        stand.run_in(&outside, args).refuses(&["is in no Git clone", "-C"]);
    }
    assert!(!outside.join("keys").exists());
    stand.run_in(&outside, &["-C", "/nonexistent", "check"]).refuses(&["/nonexistent", "-C"]);
    // a clone in which nobody began
    for args in [&["plan"] as &[&str], &["status"], &["log", "w1"], &["freeze", "all", "--reason", "x"]] {
        stand.run(args).refuses(&["no branch `main`", "`bronzeward init` makes it"]);
    }
}

#[test]
fn run_says_what_is_wrong_with_its_settings() {
    let stand = Stand::begun();
    stand.run(&["run"]).refuses(&["--settings FILE", "BRONZEWARD_SETTINGS"]);
    stand.run(&["run", "--settings", "/nonexistent.toml"]).complains(2, &["/nonexistent.toml", "init"]);
    let good = fs::read_to_string(stand.settings()).unwrap();
    let bad = stand.settings().with_file_name("bad.toml");
    let path = bad.display().to_string();
    let root = good.lines().find(|line| line.contains("ssh-ed25519")).unwrap();
    for (old, new, part) in [
        ("[repository]", "colour = 1\n[repository]", "colour"),
        ("anchor = \"", "anchor = \"x", "`anchor` is no commit"),
        ("at_least = \"", "at_least = \"x", "`state.at_least` is no commit"),
        ("127.0.0.1:0", "0.0.0.0:8080", "not on loopback"),
        ("127.0.0.1:0", "nowhere", "`listen.address`"),
        ("\"300ms\"", "\"often\"", "often"),
        (root, "root_keys = [\"ssh-ed25519 AAAA\"]", "`root_keys`"),
    ] {
        let text = good.replacen(old, new, 1);
        assert_ne!(text, good, "{old}");
        fs::write(&bad, text).unwrap();
        // whoever does not listen does not look at where
        let once: &[&str] = if old == "127.0.0.1:0" { &[] } else { &["--once"] };
        stand.run(&[&["run", "--settings", &path], once].concat()).refuses(&[part]);
    }
    let text = good.replace("reconciler_ed25519", "nobody_ed25519");
    fs::write(&bad, text).unwrap();
    stand.run(&["run", "--once", "--settings", &path]).complains(2, &["nobody_ed25519"]);
    // another repository's anchor
    let text = good.replacen(
        &good[good.find("anchor = \"").unwrap()..][..50],
        &format!("anchor = \"{}", stand.state_tip()),
        1,
    );
    fs::write(&bad, text).unwrap();
    stand.run(&["run", "--once", "--settings", &path]).refuses(&["anchor-mismatch"]);
}

#[test]
fn settings_say_where_each_came_from() {
    let stand = Stand::begun();
    let ran = stand.run(&["settings"]).ends(0);
    assert!(ran.stdout.contains("talosconfig = (not set)  # default"), "{}", ran.stdout);
    assert!(ran.stdout.contains("git (user.signingKey)"), "{}", ran.stdout);
    fs::create_dir_all(stand.path("home/.config/bronzeward")).unwrap();
    let file = stand.path("home/.config/bronzeward/config.toml");
    fs::write(&file, "talosconfig = \"/from/file\"\nage_identity = \"/id\"\n").unwrap();
    let ran = stand.run(&["settings"]).ends(0);
    assert!(
        ran.stdout.contains(&format!("talosconfig = /from/file  # {}", file.display())),
        "{}",
        ran.stdout
    );
    let ran = stand.run(&["settings", "--talosconfig", "/from/flag"]).ends(0);
    assert!(ran.stdout.contains("talosconfig = /from/flag  # flag or environment"), "{}", ran.stdout);
    assert!(ran.stdout.contains("age_identity = /id  # "), "{}", ran.stdout);
    let settings = stand.settings().display().to_string();
    let ran = stand.run(&["settings", "--settings", &settings]).ends(0);
    assert!(ran.stdout.contains("poll = \"300ms\"") && ran.stdout.contains("anchor"), "{}", ran.stdout);
    let json = stand.run(&["settings", "--settings", &settings, "--format", "json"]).ends(0).json();
    assert_eq!(json["person"]["talosconfig"]["value"], "/from/file");
    assert_eq!(json["reconciler"]["repository"]["poll"], "300ms");
    fs::write(&file, "talosconfg = \"/typo\"\n").unwrap();
    stand.run(&["settings"]).refuses(&["talosconfg", "config.toml"]);
}
