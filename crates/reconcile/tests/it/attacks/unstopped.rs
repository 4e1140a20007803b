//! What must not stop the work.

use super::{W2, labels, sent_to, with_w2};
use crate::world::{Merge, Saying, W1, World, label};

#[test]
fn a_forged_or_padded_copy_does_not_use_up_the_genuine_statement() {
    let mut world = World::adopted();
    let head = world.draft(&world.ann, &labels(&world, "a"));
    let approved = world.approve(&world.ann, world.plan_tree(world.merged_tree(head)), head);
    let second = world.say(&world.mallory, approved.plan.clone(), head, &Saying::default());
    let pair: Vec<&str> = second.trailers.lines().skip(4).collect();
    let padded = crate::world::Approved {
        trailers: format!("{}{}\n", approved.trailers, pair.join("\n")),
        id: "padded".into(),
        ..approved.clone()
    };
    let blob = second.trailers.lines().last().unwrap().to_owned();
    let forged: Vec<&str> = approved.trailers.lines().take(5).chain([blob.as_str()]).collect();
    let forged = crate::world::Approved {
        trailers: format!("{}\n", forged.join("\n")),
        id: "forged".into(),
        ..approved.clone()
    };
    world.push_approval(&world.mallory, &padded);
    world.quiet();
    world.push_approval(&world.mallory, &forged);
    world.quiet();
    assert!(world.sends().is_empty());
    world.merge_with(&world.ann, head, Merge::Signed, &approved);
    world.quiet();
    assert_eq!(world.sends().len(), 1, "{:?} {:?}", world.last, world.refusal());
}

#[test]
fn a_branch_that_cannot_be_read_stops_nothing() {
    let mut world = World::adopted();
    let main = world.main();
    let message = "Bronzeward-Plan: no\n\nBronzeward-Plan: neither\n";
    let odd = world.write(Some(main), &[], message, None, &[]);
    world.repo.force_ref("refs/heads/bronzeward/approvals/odd", odd).unwrap();
    let dir = world.path("remote.git");
    let mut git = bronzeward_testkit::people::hermetic("git");
    let tree = world.repo.commit(main).unwrap().tree.to_string();
    git.current_dir(&dir).args([
        "-c",
        "user.name=x",
        "-c",
        "user.email=x@y",
        "-c",
        "i18n.commitEncoding=latin1",
    ]);
    let raw = git.args(["commit-tree", &tree, "-F"]).arg({
        let file = world.path("message");
        std::fs::write(&file, b"caf\xe9\n\nBronzeward-Format: 1\n").unwrap();
        file
    });
    let id = bronzeward_testkit::people::succeed(raw);
    world.repo.force_ref("refs/heads/bronzeward/approvals/latin", id.trim().parse().unwrap()).unwrap();
    world.quiet();
    world.change(&labels(&world, "a"));
    world.quiet();
    assert_eq!(world.sends().len(), 1, "{:?}", world.last);
}

#[test]
fn an_empty_disk_while_a_drift_is_open_stops_nobody_else() {
    let mut world = with_w2();
    world.patch_node(W1, "rack: r1", "rack: r9");
    world.quiet();
    let drift = world.status("w1").open_drift.unwrap();
    world.restart_empty();
    world.change(&world.fragments("w2", &[("two", &label("zone", "two"))]));
    world.quiet();
    assert_eq!(sent_to(&world, W2), 1, "{:?}", world.last);
    assert_eq!(world.status("w1").open_drift.unwrap(), drift);
    assert_eq!(sent_to(&world, W1), 0);
}

#[test]
fn an_empty_disk_and_an_unreachable_machine_close_only_its_own_gate() {
    let mut world = with_w2();
    world.nodes.with(W1, |node| node.reachable = false);
    world.restart_empty();
    world.change(&world.fragments("w2", &[("two", &label("zone", "two"))]));
    world.quiet();
    assert_eq!(sent_to(&world, W2), 1, "{:?}", world.last);
}

#[test]
fn an_act_of_somebody_who_may_not_is_logged_and_changes_nothing() {
    let mut world = World::adopted();
    let approved = world.change(&labels(&world, "a"));
    world.revoke(&world.mallory, &approved.id);
    world.deny(&world.ci, &world.ann.fingerprint());
    world.quiet();
    assert_eq!(world.sends().len(), 1, "{:?}", world.last);
}

#[test]
fn a_drift_around_another_machines_merge_stales_nobody() {
    let mut world = with_w2();
    let good = world.nodes.bytes(W1);
    world.freeze(&world.ann, "home/w1");
    world.change(&labels(&world, "a"));
    world.quiet();
    world.patch_node(W1, "rack: r1", "rack: r9");
    world.quiet();
    assert_eq!(world.entry_state("home/w1").unwrap().0, "held");
    let held = world.entry_state("home/w1").unwrap().1.unwrap();
    assert!(held.starts_with("held: drift"), "{held}");
    world.change(&world.fragments("w2", &[("two", &label("zone", "two"))]));
    world.quiet();
    assert_eq!(sent_to(&world, W2), 1, "{:?}", world.last);
    world.nodes.with(W1, |node| node.bytes = good);
    world.unfreeze(&world.ann, "home/w1");
    world.quiet();
    assert_eq!(sent_to(&world, W1), 1, "{:?}", world.last);
}
