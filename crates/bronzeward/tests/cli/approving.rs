//! Acts that need somebody who may: `approve`, `freeze`, `revoke`.

use bronzeward_testkit::people::Person;

use crate::stand::{Reconciler, Stand};

/// Somebody whose key stands in no governance.
fn stranger(stand: &Stand) -> Person {
    let eve = Person::new(&stand.path(""), "eve@example.org", "ed25519");
    stand.write_gitconfig(&eve);
    eve
}

#[test]
fn approve_refuses_what_nobody_should_sign() {
    let (stand, _reconciler) = Stand::adopted();
    let tips = stand.git_remote(&["for-each-ref", "refs/heads/main", "refs/heads/bronzeward/approvals"]);
    stand.run(&["approve", "main", "--only", "--yes"]).refuses(&["nothing to approve"]);
    stand.run(&["approve", "main", "--merge", "--yes"]).refuses(&["approve main --only"]);
    stand.run(&["approve", "nowhere", "--merge", "--yes"]).refuses(&["nowhere"]);
    stand.draft_label("labels", "edge");
    let ran = stand.run(&["approve", "labels", "--merge"]).refuses(&["home/w1  apply", "--yes"]);
    assert!(ran.stdout.is_empty(), "{}", ran.stdout);
    stand
        .run(&["approve", "labels", "--merge", "--yes", "--expires", "later"])
        .complains(2, &["`later` is no duration"]);
    let ann = stand.ann.clone();
    stranger(&stand);
    stand
        .run(&["approve", "labels", "--merge", "--yes"])
        .refuses(&["Your signing key SHA256:", "allowed_signers"]);
    stand.write_gitconfig(&ann);
    let after = stand.git_remote(&["for-each-ref", "refs/heads/main", "refs/heads/bronzeward/approvals"]);
    assert_eq!(after, tips, "nothing was pushed");

    let printed = stand.run(&["approve", "labels", "--print", "--yes"]).ends(0);
    assert!(
        printed.stdout.starts_with("Bronzeward-Format: 1\nBronzeward-Plan: sha256:"),
        "{}",
        printed.stdout
    );
    assert!(printed.stderr.contains("home/w1  apply"), "the plan goes beside: {}", printed.stderr);
    let json = stand.run(&["approve", "labels", "--only", "--yes", "--format", "json"]).ends(0).json();
    assert_eq!(json["approval"].as_str().unwrap().len(), 16);
}

#[test]
fn a_conflict_is_named_with_its_files_and_changes_nothing() {
    let (stand, _reconciler) = Stand::adopted();
    stand.draft_label("ours", "edge");
    stand.draft_label("theirs", "core");
    stand.approve("ours");
    let main = stand.git_remote(&["rev-parse", "main"]);
    for args in [&["approve", "theirs", "--merge", "--yes"] as &[&str], &["plan", "theirs"]] {
        stand.run(args).refuses(&["merge-conflict", "fragments/role/labels.yaml", "merge main into it"]);
    }
    assert_eq!(stand.git_remote(&["rev-parse", "main"]), main);
}

#[test]
fn a_branch_that_changes_no_machine_is_merged_without_an_approval() {
    let (stand, _reconciler) = Stand::adopted();
    stand.draft("words");
    stand.write("README.md", "words\n");
    stand.commit("Say something");
    let ran = stand.run(&["approve", "words", "--merge", "--yes"]).ends(0);
    assert!(ran.stdout.contains("no machine changes"), "{}", ran.stdout);
    stand.run(&["approve", "words", "--only", "--yes"]).refuses(&["holds nothing that main does not"]);
}

#[test]
fn acts_refuse_unknown_scopes_and_people_without_a_role() {
    let stand = Stand::begun();
    let tip = stand.state_tip();
    let freeze = |scope: &str| stand.run(&["freeze", scope, "--reason", "x", "--timeout", "0s"]);
    freeze("w9").refuses(&["no machine `w9`", "home/cp1, home/w1"]);
    freeze("home/w9").refuses(&["no machine `home/w9`"]);
    freeze("away/*").refuses(&["no cluster `away`", "home/*"]);
    freeze("").refuses(&["no machine ``"]);
    stand
        .run(&["freeze", "w1", "--reason", "x", "--timeout", "soon"])
        .complains(2, &["`soon` is no duration"]);
    stand.run(&["revoke", "xyz", "--reason", "x"]).refuses(&["16 hex digits"]);
    let ann = stand.ann.clone();
    stranger(&stand);
    freeze("w1").refuses(&["Your signing key SHA256:", "allowed_signers"]);
    stand
        .run(&["revoke", "0123456789abcdef", "--reason", "x", "--timeout", "0s"])
        .refuses(&["allowed_signers"]);
    stand.write_gitconfig(&ann);
    assert_eq!(stand.state_tip(), tip, "nothing was recorded");

    // nobody runs: recorded, and not confirmed
    let ran = freeze("w1").ends(3);
    assert!(ran.stdout.contains("did not acknowledge"), "{}", ran.stdout);
    assert_ne!(stand.state_tip(), tip);
    Reconciler::ends(&stand, &stand.settings(), &["--once"]).ends(0);
    let json =
        stand.run(&["freeze", "all", "--reason", "x", "--timeout", "0s", "--format", "json"]).ends(3).json();
    assert_eq!(json["acknowledged"], false);
}

#[test]
fn a_known_person_without_the_role_is_told_which_act_it_is() {
    let stand = Stand::begun();
    let _reconciler = stand.start();
    let bob = Person::new(&stand.path(""), "bob@example.org", "ed25519");
    stand.draft("bob");
    stand.write("allowed_signers", &format!("{}{}", stand.read("allowed_signers"), bob.allowed()));
    let text = stand.read("bronzeward.yaml");
    let with = text.replacen(
        "principals:\n",
        "principals:\n    bob@example.org:\n      kind: human\n      roles: [author]\n",
        1,
    );
    assert_ne!(with, text);
    stand.write("bronzeward.yaml", &with);
    stand.run(&["check"]).ends(0);
    stand.commit("Bob may write");
    stand.approve("bob");
    let main = stand.git(&["rev-parse", "origin/main"]);
    stand.wait("bob is known", |status| status["governed"]["commit"] == main);
    stand.write_gitconfig(&bob);
    // everybody with a role may stop; only some may let it go on
    stand.run(&["freeze", "w1", "--reason", "x"]).ends(0);
    for args in [&["unfreeze", "w1"] as &[&str], &["revoke", "0123456789abcdef"]] {
        let said = format!("`bob@example.org` may not {}", args[0]);
        stand.run(&[args, &["--reason", "x"]].concat()).refuses(&[&said]);
    }
    stand.draft("governance");
    stand.write("allowed_signers", &format!("# people\n{}", stand.read("allowed_signers")));
    stand.commit("A comment");
    stand.run(&["approve", "governance", "--merge", "--yes"]).refuses(&["`bob@example.org`", "`approver`"]);
}
