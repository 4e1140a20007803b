//! The story, step by step, at the level of the engine.

use bronzeward_git::TreeEdit;
use bronzeward_testkit::people::{hermetic, text};

use crate::world::{Merge, STATE, W1, WIFI, World, label};

/// Every commit of the chain is one that `git verify-commit` calls good.
fn verify_chain(world: &World) {
    let signers = world.path("signers");
    let root = format!("root@example.org {}\n", world.root.public);
    std::fs::write(&signers, format!("{root}{}", world.signers())).unwrap();
    let remote = world.path("remote.git");
    let list = hermetic("git").current_dir(&remote).args(["rev-list", STATE]).output().unwrap();
    let commits = String::from_utf8(list.stdout).unwrap();
    assert!(commits.lines().count() > 3);
    let mut command = hermetic("git");
    command.current_dir(&remote);
    command.args([
        "-c",
        &format!("gpg.ssh.allowedSignersFile={}", signers.display()),
        "-c",
        "gpg.format=ssh",
    ]);
    let output = command.arg("verify-commit").args(commits.lines()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(text(&output).matches("Good \"git\" signature").count(), commits.lines().count());
}

#[test]
fn two_machines_are_adopted_and_nothing_is_sent() {
    let world = World::over_git().adopt_both();
    for machine in ["cp1", "w1"] {
        let applied = world.status(machine).applied.unwrap();
        assert_eq!(applied.revision, 1);
        assert!(applied.composed.is_some(), "the base explains what runs");
        assert_eq!(world.kinds(machine), ["published", "approved", "evidence", "adopted"]);
    }
    verify_chain(&world);
}

#[test]
fn an_approved_change_reaches_the_worker_once_and_nobody_else() {
    for how in [Merge::Signed, Merge::Button, Merge::Squash] {
        let mut world = World::over_git().adopt_both();
        let patch = format!(
            "{}---\napiVersion: v1alpha1\nkind: EnvironmentConfig\nvariables:\n    WIFI: !bwref files/wifi\n",
            label("rack", "r2")
        );
        let head = world.draft(&world.ann, &world.fragment("labels", &patch));
        let approved = world.merge(&world.ann, head, how);
        assert!(!String::from_utf8(approved.plan.to_bytes()).unwrap().contains(WIFI));
        world.quiet();
        let sends = world.sends();
        assert_eq!(sends.len(), 1, "{how:?}: {:?}", world.last);
        assert_eq!(sends[0].endpoint, W1);
        let sent = String::from_utf8(sends[0].bytes.clone()).unwrap();
        assert!(sent.contains("rack: r2") && sent.contains(WIFI), "{sent}");
        assert_eq!(sends[0].bytes, world.wanted("w1"));
        assert_eq!(world.entry_state("home/w1").unwrap().0, "completed");
        let applied = world.status("w1").applied.unwrap();
        assert_eq!((applied.revision, applied.commit), (2, world.main().to_string()));
        let kinds = world.kinds("w1");
        let tail =
            ["published", "approved", "evidence", "committed", "attempt", "answer", "verified", "applied"];
        assert_eq!(kinds[4..], tail, "{how:?}");
        world.quiet();
        assert_eq!(world.sends().len(), 1, "it stays at one");
        verify_chain(&world);
    }
}

#[test]
fn the_story_of_a_drift() {
    let mut world = World::adopted();
    world.change(&world.fragment("labels", &label("zone", "a")));
    world.quiet();
    assert_eq!(world.sends().len(), 1);

    // somebody patches the worker: drift opens, changes, returns
    let good = world.nodes.bytes(W1);
    world.patch_node(W1, "zone: a", "zone: b");
    world.tick();
    let first = world.status("w1").open_drift.unwrap();
    world.patch_node(W1, "zone: b", "zone: c");
    world.tick();
    let second = world.status("w1").open_drift.unwrap();
    assert_eq!(first.sequence, second.sequence);
    assert_ne!(first.meaning, second.meaning);
    world.nodes.with(W1, |node| node.bytes = good.clone());
    world.tick();
    assert_eq!(world.status("w1").open_drift, None);

    // again; frozen, and adopted by a new base: nothing is sent
    world.patch_node(W1, "zone: a", "zone: d");
    world.tick();
    let drift = world.status("w1").open_drift.unwrap();
    world.freeze(&world.mallory, "home/w1");
    world.tick();
    assert!(world.status("w1").frozen.is_some());
    world.change(&world.import("w1", W1, Some(drift.sequence)));
    world.quiet();
    let status = world.status("w1");
    assert_eq!(status.open_drift, None, "{:?}", world.last);
    assert_eq!(status.applied.unwrap().revision, 3);
    assert_eq!(world.sends().len(), 1);
    assert!(world.has_kind("w1", "drift-closed"));

    // changed again: a revert waits for the unfreeze, and runs
    world.patch_node(W1, "zone: d", "zone: e");
    world.tick();
    assert!(world.status("w1").open_drift.is_some());
    let plan = world.revert_plan("w1");
    assert!(plan.entries[0].as_machine().unwrap().overwrites.is_some());
    world.revert(&world.ann, "w1");
    let outcome = world.quiet();
    assert!(outcome.holds["home/w1"].contains("frozen"), "{outcome:?}");
    assert_eq!(world.sends().len(), 1);
    world.unfreeze(&world.mallory, "home/w1");
    world.quiet();
    assert_eq!(world.sends().len(), 1, "a publisher does not unfreeze");
    world.unfreeze(&world.ann, "home/w1");
    world.quiet();
    assert_eq!(world.sends().len(), 2, "{:?}", world.last);
    let text = String::from_utf8(world.nodes.bytes(W1)).unwrap();
    assert!(text.contains("zone: d"), "{text}");
    let status = world.status("w1");
    assert_eq!((status.open_drift, status.frozen, status.operation), (None, None, None));
    verify_chain(&world);
}

#[test]
fn an_adoption_by_a_fragment_closes_the_drift_and_keeps_the_rest() {
    let mut world = World::adopted();
    world.patch_node(W1, "rack: r1", "rack: r9");
    world.tick();
    let drift = world.status("w1").open_drift.unwrap();
    let header = format!(
        "apiVersion: bronzeward.dev/v1alpha1\nkind: Fragment\nadopts: {{machine: w1, drift: {}, meaning: \"{}\"}}\n---\n",
        drift.sequence, drift.meaning
    );
    world.change(&world.fragment("drift", &format!("{header}{}", label("rack", "r9"))));
    world.quiet();
    let status = world.status("w1");
    assert_eq!(status.open_drift, None, "{:?}", world.last);
    assert!(status.applied.unwrap().composed.is_some());
    assert!(world.sends().is_empty());
    // the header is inert afterwards: nothing is planned any more
    assert!(world.plan_tree(world.repo.commit(world.main()).unwrap().tree).entries.is_empty());
}

#[test]
fn governance_moves_by_an_entry_of_its_own_and_everything_waits_for_it() {
    let mut world = World::adopted();
    let policy = world.repository_with("{configuration: 2, governance: 1}", "allowed", "");
    let head = world.draft(&world.ann, &[TreeEdit::write("bronzeward.yaml", policy)]);
    let approved = world.merge(&world.ann, head, Merge::Signed);
    assert_eq!(approved.plan.entries[0].operation(), "govern");
    world.quiet();
    let governed = world.state().installation.governed;
    assert_eq!((governed.commit, governed.turn), (world.main().to_string(), 1));
    // now two are asked for
    let head = world.draft(&world.ann, &world.fragment("labels", &label("zone", "a")));
    let approved = world.merge(&world.ann, head, Merge::Signed);
    let outcome = world.quiet();
    assert_eq!(outcome.holds["home/w1"], "1 of 2 approvals");
    let second = world.say(&world.bob, approved.plan.clone(), approved.head, &Default::default());
    world.push_approval(&world.bob, &second);
    world.quiet();
    assert_eq!(world.sends().len(), 1, "{:?}", world.last);
}

#[test]
fn a_machine_that_moved_is_readdressed_and_nothing_is_sent() {
    let mut world = World::adopted();
    let node = world.nodes.take(W1);
    world.nodes.put("10.0.0.99:50000", node);
    let file = "apiVersion: bronzeward.dev/v1alpha1\nkind: Machine\nname: w1\nidentity: {node: node-w1}\n\
                endpoint: 10.0.0.99\nplatform: metal\nrole: worker\n";
    let approved = world.change(&[TreeEdit::write("clusters/home/machines/w1.yaml", file)]);
    assert_eq!(approved.plan.entries[0].operation(), "readdress");
    world.quiet();
    assert_eq!(world.status("w1").applied.unwrap().target.endpoint, "10.0.0.99:50000");
    assert!(world.sends().is_empty());
    assert!(world.last.unreachable.is_empty(), "{:?}", world.last);
}

#[test]
fn a_control_plane_is_not_sent_to_yet() {
    let mut world = World::adopted();
    let main = world.main();
    world.change(&world.fragments("cp1", &[("labels", &label("zone", "a"))]));
    let outcome = world.quiet();
    assert_ne!(main, world.main());
    assert!(outcome.holds["home/cp1"].starts_with("not-supported"), "{outcome:?}");
    assert!(world.sends().is_empty());
}

/// The plan is nowhere to be found: the gate computes it from main itself.
#[test]
fn an_approval_counts_in_a_later_commit_on_main_without_its_branch() {
    let mut world = World::adopted();
    let edits = world.fragment("labels", &label("zone", "a"));
    let published = world.publish(Some(&world.ann), &edits);
    world.quiet();
    assert!(world.sends().is_empty(), "published and unapproved: nothing is sent");
    let tree = world.repo.commit(published).unwrap().tree;
    let approved = world.approve(&world.ann, world.plan_tree(tree), published);
    let message = format!("Approve what main holds\n\n{}", approved.trailers);
    let later = world.write_tree(tree, &message, None, &[published]);
    world.push_main(later);
    world.quiet();
    assert_eq!(world.sends().len(), 1, "{:?}", world.last);
    assert_eq!(world.status("w1").applied.unwrap().commit, later.to_string());
}
