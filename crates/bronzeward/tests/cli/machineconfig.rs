//! `machineconfig`, side by side with the real talosctl; `render --all` over a fleet.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use bronzeward_testkit::tools::{Tool, tool};
use tempfile::TempDir;

const CONFIG: &str = "# comments go\nmachine: {type: worker, token: 'abc', certSANs: [\"a\"]}\ncluster:\n  controlPlane: {endpoint: HTTPS://10.0.0.1:6443}\n---\napiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\nprovisioning: {minSize: 10GiB}\n";
const PATCH: &str = "machine:\n  certSANs: [b]\n  kubelet:\n    extraConfig: {maxPods: 0x10}\n---\napiVersion: v1alpha1\nkind: KmsgLogConfig\nname: remote\nurl: tcp://10.0.0.2:5140/\n";
const INLINE: &str = "machine: {sysctls: {net.core.somaxconn: \"1024\"}}";

fn files(all: &[(&str, &str)]) -> TempDir {
    let dir = TempDir::new().unwrap();
    for (path, text) in all {
        let full = dir.path().join(path);
        fs::create_dir_all(full.parent().unwrap()).unwrap();
        fs::write(full, text).unwrap();
    }
    dir
}

fn ran(program: &Path, dir: &Path, args: &[&str], input: &str) -> Output {
    use std::io::Write;
    let mut child = Command::new(program)
        .args(args)
        .current_dir(dir)
        .env("HOME", dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn bronzeward(dir: &Path, args: &[&str], code: i32) -> (String, String) {
    with_input(dir, args, "", code)
}

fn with_input(dir: &Path, args: &[&str], input: &str, code: i32) -> (String, String) {
    let out = ran(Path::new(env!("CARGO_BIN_EXE_bronzeward")), dir, args, input);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (stdout, stderr) = (text(&out.stdout), text(&out.stderr));
    assert_eq!(out.status.code(), Some(code), "{args:?}\n{stdout}{stderr}");
    (stdout, stderr)
}

#[test]
fn patch_prints_what_talosctl_prints() {
    let dir = files(&[("c.yaml", CONFIG), ("p.yaml", PATCH)]);
    let talosctl = tool(Tool::Talosctl);
    for patches in
        [&["--patch", "@p.yaml"] as &[&str], &["-p", "@p.yaml", "-p", INLINE], &["-p", INLINE], &[]]
    {
        // on standard output talosctl adds a line break; files are exact
        let args = [&["machineconfig", "patch", "c.yaml"], patches].concat();
        let theirs = ran(&talosctl, dir.path(), &[&args[..], &["-o", "theirs.yaml"]].concat(), "");
        assert!(theirs.status.success(), "{theirs:?}");
        let theirs = fs::read_to_string(dir.path().join("theirs.yaml")).unwrap();
        let args = [&args[..], &["--contract", "v1.13"]].concat();
        let (ours, said) = bronzeward(dir.path(), &args, 0);
        assert_eq!(ours, theirs, "{patches:?}");
        assert!(said.is_empty(), "{said}");
        bronzeward(dir.path(), &[&args[..], &["-o", "ours.yaml"]].concat(), 0);
        assert_eq!(fs::read_to_string(dir.path().join("ours.yaml")).unwrap(), theirs);
    }
}

#[test]
fn patch_reads_and_writes_where_it_is_told() {
    let dir = files(&[("c.yaml", CONFIG), ("p.yaml", PATCH)]);
    let known = ["mc", "patch", "c.yaml", "-p", "@p.yaml", "--contract", "1.13"];
    let (expected, _) = bronzeward(dir.path(), &known, 0);
    let (out, said) =
        with_input(dir.path(), &["mc", "patch", "-", "-p", "@p.yaml", "-o", "out.yaml"], CONFIG, 0);
    assert!(out.is_empty() && said.contains("the rules of Talos v1.14"), "{said}");
    assert_eq!(fs::read_to_string(dir.path().join("out.yaml")).unwrap(), expected);
    // a second run over its own output
    bronzeward(dir.path(), &["mc", "patch", "c.yaml", "-p", "@p.yaml", "-o", "out.yaml"], 0);
    assert_eq!(fs::read_to_string(dir.path().join("out.yaml")).unwrap(), expected);
    let (passed, _) = bronzeward(dir.path(), &["mc", "patch", "c.yaml"], 0);
    assert_eq!(passed, CONFIG, "without a patch the bytes pass through");
}

#[test]
fn what_is_refused_names_file_place_and_way_out() {
    let dir = files(&[
        ("c.yaml", CONFIG),
        ("bad.yaml", "machine:\n  sysctl: {token: hunter2}\n"),
        ("empty.yaml", "# nothing\n"),
        ("lossy.yaml", "machine:\n  files:\n    - path: /a\n      content: \" hunter2\\n x\\n\"\n"),
        (
            "links.yaml",
            "apiVersion: v1alpha1\nkind: LinkConfig\nname: eth0\n---\napiVersion: v1alpha1\nkind: DummyLinkConfig\nname: eth1\n",
        ),
        ("link.yaml", "apiVersion: v1alpha1\nkind: BondConfig\nname: eth0\n"),
        (
            "veth.yaml",
            "apiVersion: v1alpha1\nkind: VethConfig\nname: v0\npeer: {name: v1}\n---\napiVersion: v1alpha1\nkind: DummyLinkConfig\nname: d0\n",
        ),
        ("peer.yaml", "apiVersion: v1alpha1\nkind: VethConfig\nname: v0\npeer: {name: d0}\n"),
    ]);
    for (args, code, parts) in [
        (
            &["c.yaml", "-p", "@bad.yaml"] as &[&str],
            1,
            &["bad.yaml:2:3: ", "did you mean \"sysctls\"?"] as &[&str],
        ),
        (&["c.yaml", "-p", "@empty.yaml"], 1, &["empty.yaml: The patch holds no document"]),
        (&["c.yaml", "-p", "[{op: remove, path: /machine}]"], 1, &["--patch #1:1:1: ", "JSON patch"]),
        (&["c.yaml", "-p", "machine: {type: [}"], 1, &["--patch #1:1:"]),
        (
            &["c.yaml", "-p", "@bad.yaml", "--contract", "v1.3"],
            1,
            &["`v1.3` is not supported", "v1.12, v1.13, v1.14"],
        ),
        (
            &["c.yaml", "-p", "@lossy.yaml", "-p", INLINE],
            1,
            &["lossy.yaml:4:16: ", "/machine/files/0/content: Talos prints this text"],
        ),
        (
            &["links.yaml", "-p", "@link.yaml"],
            1,
            &["link.yaml:1:1: ", "BondConfig/eth0", "cannot exist beside"],
        ),
        // what clashes in the end may be a document of the file before
        (&["veth.yaml", "-p", "@peer.yaml"], 1, &["veth.yaml:6:1: ", "DummyLinkConfig/d0"]),
        (&["c.yaml", "--contract", "v1.3"], 1, &["`v1.3` is not supported"]),
        (&["gone.yaml"], 2, &["Cannot read `gone.yaml`"]),
        (&["c.yaml", "-p", "@gone.yaml"], 2, &["Cannot read `gone.yaml`"]),
        (
            &["c.yaml", "-p", INLINE, "-o", "c.yaml/folder/x"],
            2,
            &["Cannot make the folder of `c.yaml/folder/x`"],
        ),
        (&["c.yaml", "-p", INLINE, "-o", "."], 2, &["Cannot write `.`"]),
        (&[], 2, &["<FILE>"]),
    ] {
        let (out, said) = bronzeward(dir.path(), &[&["machineconfig", "patch"], args].concat(), code);
        assert!(out.is_empty(), "{args:?}: {out}");
        for part in parts {
            assert!(said.contains(part), "{args:?} does not say {part:?}:\n{said}");
        }
        assert!(!said.contains("hunter2") && !said.contains("panicked"), "{said}");
    }
}

#[test]
fn what_holds_nothing_or_cannot_be_read_is_refused() {
    let dir = files(&[("c.yaml", CONFIG)]);
    for (args, code, parts) in [
        (
            &["c.yaml", "-p", "{}"] as &[&str],
            1,
            &["--patch #1: The patch holds no document that changes anything", "leave it out"] as &[&str],
        ),
        (&["c.yaml", "-p", ""], 1, &["--patch #1: The patch is empty; leave it out"]),
        (&["c.yaml", "-p", "gone"], 2, &["Cannot read `gone`"]),
        (&["-", "-p", INLINE, "-p", "@-"], 1, &["Standard input is named twice"]),
        (&["c.yaml", "-p", "-", "-p", "@-"], 1, &["Standard input is named twice"]),
    ] {
        let (out, said) = bronzeward(dir.path(), &[&["machineconfig", "patch"], args].concat(), code);
        assert!(out.is_empty(), "{args:?}: {out}");
        assert!(parts.iter().all(|part| said.contains(part)), "{args:?}: {parts:?} is not in\n{said}");
    }
}

#[test]
fn patches_are_taken_as_talosctl_takes_them() {
    let dir = files(&[("c.yaml", CONFIG), ("p.yaml", PATCH), ("sub/c.yaml", CONFIG), ("sub/p.yaml", PATCH)]);
    let talosctl = tool(Tool::Talosctl);
    let dashes = format!("---\n{INLINE}");
    for (patch, out) in [
        // a name needs no @ if it cannot be a patch
        ("p.yaml", "a/b/out.yaml"),
        ("./p.yaml", "./out.yaml"),
        ("@p.yaml", "a/b/out.yaml"),
        // what begins with dashes is no option here
        (&dashes, "out.yaml"),
        ("---\nmachine: {type: worker}", "a/c/out.yaml"),
        ("{\"machine\":{\"type\":\"worker\"}}", "out.yaml"),
        ("machine:\n  type: worker", "out.yaml"),
    ] {
        let known = ["machineconfig", "patch", "c.yaml", "-p", patch, "-o"];
        let (by_them, by_us) = (format!("theirs/{out}"), format!("ours/{out}"));
        let theirs = ran(&talosctl, dir.path(), &[&known[..], &[&by_them]].concat(), "");
        assert!(theirs.status.success(), "{patch}: {theirs:?}");
        let theirs = fs::read_to_string(dir.path().join("theirs").join(out)).unwrap();
        let ours = [&known[..], &[&by_us, "--contract", "1.13"]].concat();
        bronzeward(dir.path(), &ours, 0);
        assert_eq!(fs::read_to_string(dir.path().join("ours").join(out)).unwrap(), theirs, "{patch}");
        // an empty name is standard output
        let shown = [&known[..], &["", "--contract", "1.13"]].concat();
        assert_eq!(bronzeward(dir.path(), &shown, 0).0, theirs, "{patch}");
        // names are looked for in the folder of -C
        let elsewhere = [&["-C", "sub"], &ours[..]].concat();
        bronzeward(dir.path(), &elsewhere, 0);
        assert_eq!(fs::read_to_string(dir.path().join("sub/ours").join(out)).unwrap(), theirs, "{patch}");
    }
    fs::write(dir.path().join("talos-refuses.yaml"), "- {op: test, path: /machine/type, value: worker}\n")
        .unwrap();
    let (_, said) = bronzeward(dir.path(), &["mc", "patch", "c.yaml", "-p", "talos-refuses.yaml"], 1);
    assert!(said.contains("talos-refuses.yaml:1:1: This is a JSON patch"), "{said}");
}

// a device that is always full
#[cfg(target_os = "linux")]
#[test]
fn output_that_is_lost_is_an_error_and_a_reader_that_went_away_is_none() {
    let many: String =
        (0..20_000).fold("machine:\n  sysctls:\n".to_owned(), |all, i| format!("{all}    k{i}: v\n"));
    let dir = files(&[("c.yaml", &many)]);
    let program = Path::new(env!("CARGO_BIN_EXE_bronzeward"));
    for args in [
        &["mc", "patch", "c.yaml"] as &[&str],
        &["mc", "patch", "c.yaml", "-p", INLINE, "--contract", "1.13"],
        &["mc", "explain", "c.yaml", "--contract", "1.13"],
        &["mc", "explain", "c.yaml", "--contract", "1.13", "--format", "json"],
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let out = Command::new(program).args(args).current_dir(dir.path()).stdout(full).output().unwrap();
        let said = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(2), "{args:?}: {said}");
        assert_eq!(said.matches("Cannot write to standard output").count(), 1, "{args:?}: {said}");
        assert!(said.contains("No space left"), "{args:?}: {said}");

        // the reading end is closed before the program starts
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let out = Command::new(program).args(args).current_dir(dir.path()).stdout(writer).output().unwrap();
        let said = String::from_utf8(out.stderr).unwrap();
        assert_eq!((out.status.code(), said.contains("error")), (Some(0), false), "{args:?}: {said}");
    }
    // a refusal stays one
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let refused = ["mc", "patch", "c.yaml", "--contract", "1.3"];
    let out = Command::new(program).args(refused).current_dir(dir.path()).stdout(full).output().unwrap();
    assert_eq!(out.status.code(), Some(1));
}

#[test]
fn explain_names_places_rules_and_surprises() {
    let volume =
        "apiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\nprovisioning:\n  maxSize: 90GiB\n";
    let dir = files(&[("c.yaml", CONFIG), ("v.yaml", volume), ("s.yaml", "machine:\n  certSANs: [a]\n")]);
    let args = ["mc", "explain", "c.yaml", "-p", "@v.yaml", "-p", "@s.yaml", "-p", "machine: {type: worker}"];
    let args = [&args[..], &["--contract", "v1.13"]].concat();
    let (out, said) = bronzeward(dir.path(), &args, 0);
    for line in [
        "v1alpha1:/machine/token  ******  (c.yaml:2:32)",
        "v1alpha1:/machine/certSANs/1  a  (s.yaml:2:14, appended)",
        "v1alpha1:/machine/type  worker  (--patch #3:1:17, over c.yaml:2:17)",
        "VolumeConfig/EPHEMERAL:/provisioning/maxSize  90GiB  (v.yaml:5:12)",
    ] {
        assert!(out.lines().any(|l| l == line), "{line} is not in\n{out}");
    }
    for part in [
        "v.yaml:5:3: VolumeConfig/EPHEMERAL:/provisioning/minSize: ",
        "[value-erased]",
        "s.yaml:2:14: v1alpha1:/machine/certSANs: ",
        "[element-repeated]",
        "--patch #3: The patch changes nothing [fragment-changed-nothing]",
    ] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
    assert!(!out.contains("abc"), "a token is shown:\n{out}");
    let also = [
        "--redact",
        "v1alpha1:/machine/certSANs",
        "--redact",
        "VolumeConfig/EPHEMERAL:/provisioning/maxSize",
    ];
    let (hidden, _) = bronzeward(dir.path(), &[&args[..], &also].concat(), 0);
    assert!(
        hidden.contains("/machine/certSANs/1  ******  (") && hidden.contains("maxSize  ******  ("),
        "{hidden}"
    );
    for wrong in ["v1alpha1:/machine/nothing", "KmsgLogConfig/none:/url", "certSANs"] {
        let (shown, said) = bronzeward(dir.path(), &[&args[..], &["--redact", wrong]].concat(), 1);
        assert!(shown.is_empty() && said.contains(wrong), "{shown}{said}");
    }
    let (json, _) = bronzeward(dir.path(), &[&args[..], &["--format", "json"]].concat(), 0);
    let rows: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), out.lines().count());
    assert!(rows.as_array().unwrap().iter().all(|row| row["from"].as_str().is_some_and(|f| f.contains(':'))));
}

#[test]
fn explain_has_one_row_for_each_value_and_shows_no_stars_as_bytes() {
    let forged = "machine:\n  nodeLabels:\n    \"a\\nv1alpha1:/machine/token  forged  (x.yaml:1:1)\": b\n  network: {}\ncluster:\n  ca: {crt: U0VD, key: U0VE}\n  network: {podSubnets: [10.1.0.0/16]}\n---\napiVersion: v1alpha1\nkind: LinkConfig\nname: \"e\\nf\"\nmtu: 1400\n";
    let dir = files(&[("c.yaml", forged), ("p.yaml", "cluster: {network: {podSubnets: [10.2.0.0/16]}}\n")]);
    let also = ["--redact", "v1alpha1:/cluster/ca/crt", "--contract", "1.13"];
    let args = [&["mc", "explain", "c.yaml", "-p", "@p.yaml"], &also[..]].concat();
    let (out, _) = bronzeward(dir.path(), &args, 0);
    let rows: Vec<&str> = out.lines().collect();
    for row in [
        "v1alpha1:/cluster/ca/crt  ******  (c.yaml:6:13)",
        "v1alpha1:/cluster/ca/key  ******  (c.yaml:6:24)",
        "v1alpha1:/machine/network  (empty)  (c.yaml:4:12)",
        "v1alpha1:/cluster/network/podSubnets/0  10.2.0.0/16  (p.yaml:1:34, over c.yaml:7:25 as a whole)",
        "LinkConfig/e\u{fffd}f:/mtu  1400  (c.yaml:12:6)",
    ] {
        assert!(rows.contains(&row), "{row} is not in\n{out}");
    }
    assert!(!rows.iter().any(|row| row.starts_with("v1alpha1:/machine/token")), "{out}");
    let (json, _) = bronzeward(dir.path(), &[&args[..], &["--format", "json"]].concat(), 0);
    let parsed: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    assert_eq!(parsed.len(), rows.len());
    let pods = parsed.iter().find(|row| row["path"] == "v1alpha1:/cluster/network/podSubnets/0").unwrap();
    assert_eq!((&pods["rule"], &pods["overrode"]), (&"replaced".into(), &"c.yaml:7:25".into()));
}

fn fleet(machines: usize) -> TempDir {
    let all = bronzeward_fleet::repository(machines);
    let dir = files(&all.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect::<Vec<_>>());
    assert!(ran(Path::new("git"), dir.path(), &["init", "-q", "-b", "main"], "").status.success());
    dir
}

fn written(dir: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        fs::read_dir(dir.join("out/fleet")).unwrap().map(|e| e.unwrap().path()).collect();
    all.sort();
    all
}

#[test]
fn all_machines_are_rendered_as_each_alone() {
    let dir = fleet(70);
    fs::write(dir.path().join(".gitignore"), "out/\n").unwrap();
    for _ in 0..2 {
        let (out, said) = bronzeward(dir.path(), &["render", "--all", "-o", "out"], 0);
        assert_eq!((out.as_str(), said.as_str()), ("70 machines in `out`\n", ""));
    }
    let all = written(dir.path());
    assert_eq!(all.len(), 70);
    for name in ["cp0", "w3", "w36", "w69"] {
        let (alone, _) = bronzeward(dir.path(), &["render", name], 0);
        assert_eq!(
            fs::read_to_string(dir.path().join(format!("out/fleet/{name}.yaml"))).unwrap(),
            alone,
            "{name}"
        );
    }
    let (json, _) = bronzeward(dir.path(), &["render", "--all", "-o", "out", "--format", "json"], 0);
    let rows: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 70);
}

#[test]
fn a_machine_that_is_refused_leaves_no_old_file_behind() {
    let dir = fleet(5);
    fs::write(dir.path().join(".gitignore"), "out/\n").unwrap();
    bronzeward(dir.path(), &["render", "--all", "-o", "out"], 0);
    fs::write(dir.path().join("out/fleet/w9.yaml"), "old\n").unwrap();
    fs::write(dir.path().join("clusters/fleet/fragments/override/w3.yaml"), "machine: {type: [x]}\n")
        .unwrap();
    let (out, said) = bronzeward(dir.path(), &["render", "--all", "-o", "out"], 1);
    assert_eq!(out, "4 machines in `out`, 1 refused\n");
    assert!(said.contains("clusters/fleet/fragments/override/w3.yaml:1:17: "), "{said}");
    assert!(said.contains("`out/fleet/w9.yaml` belongs to no machine"), "{said}");
    assert!(!dir.path().join("out/fleet/w3.yaml").exists());
    let (_, said) = bronzeward(dir.path(), &["render", "--all", "-o", "clusters/fleet/cluster.yaml"], 2);
    assert!(said.contains("Cannot make the folder"), "{said}");
    bronzeward(dir.path(), &["render", "--all"], 2);
    bronzeward(dir.path(), &["render", "w4", "--all", "-o", "out"], 2);
}
