//! `check`, `render`, `plan`, `diff`, `status`, `log`, `verify`: what they print, for people and for programs.

use crate::stand::{Stand, machine};

const FRAGMENT: &str = "apiVersion: bronzeward.dev/v1alpha1
kind: Fragment
---
machine:
    nodeLabels:
        example.org/tier: edge
";

#[test]
fn check_names_every_finding_with_its_place_and_a_way_out() {
    let (stand, _reconciler) = Stand::adopted();
    assert_eq!(stand.run(&["check"]).ends(0).stdout, "no findings\n");
    assert_eq!(stand.run(&["check", "--format", "json"]).ends(0).json(), serde_json::json!([]));
    stand.draft("bad");
    stand.write("fragments/role/one.yaml", &FRAGMENT.replace("nodeLabels", "nodeLables"));
    stand
        .write("fragments/role/two.yaml", &FRAGMENT.replace("kind: Fragment", "kind: Fragment\ncolour: red"));
    stand.write("fragments/role/three.yaml", "- op: add\n  path: /machine/type\n  value: worker\n");
    stand.write("fragments/role/four.yaml", &FRAGMENT.replace("edge", "{{ tier }}"));
    stand.write(
        "profiles/p.yaml",
        "apiVersion: bronzeward.dev/v1alpha1\nkind: Profile\nname: p\nfragments:\n    role: [gone]\n",
    );
    let assignment = "clusters/home/assignments/w1.yaml";
    stand.write(assignment, &format!("{}profiles: [p]\n", stand.read(assignment)));
    let ran = stand.run(&["check"]).ends(1);
    for place in [
        "fragments/role/one.yaml:5:5",
        "fragments/role/two.yaml:3:1",
        "fragments/role/three.yaml:1:1",
        "profiles/p.yaml:5:12",
    ] {
        let line = ran.stdout.lines().find(|line| line.contains(place));
        let line = line.unwrap_or_else(|| panic!("{place} is not named:\n{}", ran.stdout));
        assert!(line.starts_with("error: "), "{line}");
    }
    assert!(ran.stderr.is_empty(), "findings are the output: {}", ran.stderr);
    let json = stand.run(&["check", "--format", "json"]).ends(1).json();
    let list = json.as_array().unwrap();
    assert_eq!(list.len(), ran.stdout.lines().filter(|line| line.starts_with("error: ")).count());
    for finding in list {
        for field in ["code", "severity", "file", "message"] {
            assert!(finding[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {finding}");
        }
        // Talos' own words bring their way out with them
        let (message, help) = (finding["message"].as_str().unwrap(), finding["help"].as_str().unwrap());
        assert!(!help.is_empty() || message.contains("; "), "no way out: {finding}");
        assert!(finding["line"].as_u64().unwrap() >= 1 && finding["column"].as_u64().unwrap() >= 1);
    }
    // a revision is judged by itself, whatever lies in the work tree
    stand.run(&["check", "main"]).ends(0);
    stand.run(&["check", "nowhere"]).complains(1, &["nowhere"]);
    // what does not compile is not planned either
    stand.commit("Bad");
    stand.run(&["plan", "bad"]).refuses(&["fragments/role/two.yaml:3:1"]);
    stand.run(&["approve", "bad", "--merge", "--yes"]).refuses(&["fragments/role/two.yaml:3:1"]);
}

#[test]
fn a_plan_ends_with_what_scripts_ask_for() {
    let (stand, _reconciler) = Stand::adopted();
    stand.run(&["plan", "main", "--exit-code"]).ends(0);
    stand.draft_label("labels", "edge");
    let ran = stand.run(&["plan"]).ends(0);
    assert!(ran.stdout.contains("home/w1  apply"), "the branch that is checked out: {}", ran.stdout);
    assert!(ran.stdout.contains("to approve: bronzeward approve labels --merge"), "{}", ran.stdout);
    stand.run(&["plan", "labels"]).ends(0);
    stand.run(&["plan", "labels", "--exit-code"]).ends(10);
    let json = stand.run(&["plan", "labels", "--exit-code", "--format", "json"]).ends(10).json();
    assert_eq!(json["plan"]["entries"].as_array().unwrap().len(), 1);
    assert!(json["digest"].as_str().unwrap().starts_with("sha256:"));
    assert!(ran.stdout.contains(json["digest"].as_str().unwrap()));
    stand.run(&["plan", "nowhere"]).refuses(&["nowhere"]);
    stand.git(&["branch", "-q", "same", "origin/main"]);
    stand.run(&["plan", "same"]).refuses(&["holds nothing that main does not"]);

    let diff = stand.run(&["diff", "origin/main..labels"]).ends(0);
    assert!(diff.stdout.contains("home/w1") && diff.stdout.contains("edge"), "{}", diff.stdout);
    assert!(!diff.stdout.contains("home/cp1"), "{}", diff.stdout);
    let json = stand.run(&["diff", "origin/main..labels", "--format", "json"]).ends(0).json();
    assert!(json["home/w1"].as_array().is_some_and(|lines| !lines.is_empty()), "{json:#}");
    assert_eq!(stand.run(&["diff", "main..main"]).ends(0).stdout, "no machine differs\n");
    stand.run(&["diff", "main"]).refuses(&["main..labels"]);
    stand.run(&["diff", "main..nowhere"]).refuses(&["nowhere"]);
}

#[test]
fn render_prints_what_runs_or_what_talosctl_takes() {
    let (stand, _reconciler) = Stand::adopted();
    let ran = stand.run(&["render", "w1"]).ends(0);
    assert!(ran.stdout.contains("!bwref") && ran.stderr.is_empty(), "{}", ran.stderr);
    assert_eq!(stand.run(&["render", "home/w1"]).ends(0).stdout, ran.stdout);
    let json = stand.run(&["render", "w1", "--format", "json"]).ends(0).json();
    assert_eq!(json["document"].as_str().unwrap(), ran.stdout);
    let explained = stand.run(&["render", "w1", "--explain"]).ends(0);
    assert!(explained.stdout.contains("clusters/home/bases/w1.yaml:"), "{}", explained.stdout);
    assert!(stand.run(&["render", "w1", "--explain", "--format", "json"]).ends(0).json().is_array());
    stand.run(&["render", "w9"]).refuses(&["no machine `w9`", "home/cp1, home/w1"]);
    stand.run(&["render", "cp"]).refuses(&["no machine `cp`"]);
    stand.run(&["render", "w1", "--revision", "nowhere"]).refuses(&["nowhere"]);

    stand.draft("patches");
    stand.write("fragments/role/plain.yaml", FRAGMENT);
    let patch = stand.run(&["render", "--patch", "fragments/role/plain.yaml"]).ends(0);
    assert!(!patch.stdout.contains("bronzeward.dev"), "the header is ours alone: {}", patch.stdout);
    assert!(
        patch.stdout.contains("machine:\n    nodeLabels:\n        example.org/tier: edge\n"),
        "{}",
        patch.stdout
    );
    let with = FRAGMENT.replace("tier: edge", "tier: !bwref machine/token");
    stand.write("fragments/role/with.yaml", &with);
    stand
        .run(&["render", "--patch", "fragments/role/with.yaml"])
        .refuses(&["fragments/role/with.yaml:6:", "cannot take a reference"]);
    stand.run(&["render", "--patch", "gone.yaml"]).complains(2, &["gone.yaml"]);
    // from elsewhere, a path is the shell's own
    let here = stand.clone_dir().join("fragments/role");
    let again = stand.run_in(&here, &["render", "--patch", "plain.yaml"]).ends(0);
    assert_eq!(again.stdout, patch.stdout);
}

#[test]
fn status_log_and_verify_answer_programs_too() {
    let (stand, _reconciler) = Stand::adopted();
    let status = stand.status();
    assert_eq!(machine(&status, "w1")["state"], "applied");
    assert_eq!(status["owner"]["id"], "one");
    let text = stand.run(&["status"]).ends(0).stdout;
    assert!(text.contains("home/w1  applied  revision 1"), "{text}");
    let log = stand.timeline("w1");
    assert!(log.iter().any(|entry| entry["kind"] == "adopted"), "{log:#?}");
    stand.run(&["log", "w9"]).refuses(&["no machine `w9`"]);
    let verdicts = stand.run(&["verify", "--format", "json"]).ends(0).json();
    let verdicts = verdicts.as_array().unwrap();
    assert_eq!(verdicts.len(), 3, "the anchor, the governance, the adoption: {verdicts:#?}");
    assert!(verdicts.iter().all(|one| one["commit"].is_string() && one["verdict"].is_string()));
    let text = stand.run(&["verify"]).ends(0).stdout;
    assert!(text.contains("not verified") && text.contains("--settings FILE"), "{text}");
    stand.run(&["verify", "nonsense"]).refuses(&["main~5..main"]);
    stand.run(&["verify", "nowhere..main"]).refuses(&["nowhere"]);
    stand.run(&["status", "--wait", "--timeout", "soon"]).complains(2, &["`soon` is no duration"]);
}

#[test]
fn other_contracts_are_checked_and_rendered_and_never_planned() {
    let (stand, _reconciler) = Stand::adopted();
    stand.draft("minor");
    let cluster = "clusters/home/cluster.yaml";
    let text = stand.read(cluster);
    stand.write(cluster, &text.replace("contract: v1.13", "contract: v1.14"));
    stand.run(&["check"]).ends(0);
    let rendered = stand.run(&["render", "w1"]).ends(0).stdout;
    stand.commit("Another minor");
    let planned = stand.run(&["plan", "minor"]).ends(1).stdout;
    for part in ["clusters/home/cluster.yaml", "`v1.14`", "not supported for sending"] {
        assert!(planned.contains(part), "{part} is not in\n{planned}");
    }
    stand.write(cluster, &text.replace("contract: v1.13", "contract: v1.99"));
    stand.run(&["render", "w1"]).refuses(&["`v1.99` is not supported", "`v1.12`, `v1.13`, `v1.14`"]);
    stand.write(cluster, &text);
    assert!(!rendered.is_empty() && stand.run(&["render", "w1"]).ends(0).stdout == rendered);
}
