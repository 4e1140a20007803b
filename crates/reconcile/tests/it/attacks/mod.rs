//! Attacks, each refused by name and with nothing sent.

mod state;
mod unstopped;

use std::time::Duration;

use bronzeward_git::TreeEdit;
use bronzeward_git::merge::Merged;
use bronzeward_secrets::InstallationKey;
use bronzeward_secrets::age_file::{installation_path, seal_installation};
use bronzeward_secrets::ingest::{Ingest, IngestError, ingest};

use crate::world::{Merge, Saying, W1, World, label};

const W2: &str = "10.0.0.12:50000";

fn labels(world: &World, value: &str) -> Vec<TreeEdit> {
    world.fragment("labels", &label("zone", value))
}

fn machine(endpoint: &str) -> TreeEdit {
    let file = format!(
        "apiVersion: bronzeward.dev/v1alpha1\nkind: Machine\nname: w1\nidentity: {{node: node-w1}}\nendpoint: {endpoint}\n\
         platform: metal\nrole: worker\n"
    );
    TreeEdit::write("clusters/home/machines/w1.yaml", file)
}

/// A world with a second worker, adopted.
fn with_w2() -> World {
    World::adopted_three(W2)
}

/// A spare approval of what main says now: signed, and kept back.
fn spare(world: &World, plan: bronzeward_compile::plan::Plan) -> crate::world::Approved {
    let saying = Saying { expires: Duration::from_secs(90_000), ..Saying::default() };
    world.say(&world.ann, plan, world.main(), &saying)
}

fn sent_to(world: &World, endpoint: &str) -> usize {
    world.sends().iter().filter(|send| send.endpoint == endpoint).count()
}

#[test]
fn a_publisher_cannot_make_an_approver_of_themselves() {
    let mut world = World::adopted();
    let policy = world.repository_yaml().replace(
        "mallory@example.org: {kind: human, roles: [author, publisher]}",
        "mallory@example.org: {kind: human, roles: [author, publisher, approver]}",
    );
    let mut edits = vec![TreeEdit::write("bronzeward.yaml", policy)];
    let head = world.draft(&world.mallory, &edits);
    world.merge(&world.mallory, head, Merge::Signed);
    world.quiet();
    assert!(world.refusal().unwrap().starts_with("approval-signer-unauthorized"));
    // and with a change of a machine on top
    edits = labels(&world, "evil");
    let head = world.draft(&world.mallory, &edits);
    let intent = world.intent_of_tree(world.merged_tree(head)).unwrap();
    let entry =
        world.with_planner(&intent, |planner| planner.entry(&"home/w1".parse().unwrap(), "apply")).unwrap();
    let mut plan = world.plan_tree(world.merged_tree(head));
    plan.entries = vec![entry.unwrap()];
    let approved = world.approve(&world.mallory, plan, head);
    world.merge_with(&world.mallory, head, Merge::Signed, &approved);
    let outcome = world.quiet();
    assert!(world.refusal().unwrap().starts_with("approval-signer-unauthorized"));
    assert!(outcome.notices.iter().any(|notice| notice.starts_with("governance-changed")), "{outcome:?}");
    assert_eq!(world.state().installation.governed.turn, 0);
    assert!(world.sends().is_empty());
}

#[test]
fn a_genuine_approval_waits_on_top_of_unapproved_governance() {
    let mut world = World::adopted();
    let head = world.draft(&world.ann, &labels(&world, "a"));
    let approved = world.approve(&world.ann, world.plan_tree(world.merged_tree(head)), head);
    let policy = world.repository_with("{configuration: 2, governance: 2}", "allowed", "");
    world.publish(Some(&world.mallory), &[TreeEdit::write("bronzeward.yaml", policy)]);
    world.merge_with(&world.ann, head, Merge::Signed, &approved);
    let outcome = world.quiet();
    assert!(outcome.holds["home/w1"].starts_with("governance-changed"), "{outcome:?}");
    assert!(world.sends().is_empty());
    // taken back, the approval goes
    world.publish(Some(&world.ann), &[TreeEdit::write("bronzeward.yaml", world.repository_yaml())]);
    world.quiet();
    assert_eq!(sent_to(&world, W1), 1, "{:?}", world.last);
}

#[test]
fn a_left_over_approval_of_a_machine_never_fires_again() {
    let mut world = World::adopted();
    world.change(&labels(&world, "a"));
    world.quiet();
    // A → B twice approved, once used
    let head = world.draft(&world.ann, &labels(&world, "b"));
    let left = spare(&world, world.plan_tree(world.merged_tree(head)));
    world.merge(&world.ann, head, Merge::Signed);
    world.quiet();
    world.change(&labels(&world, "a"));
    world.quiet();
    assert_eq!(world.sends().len(), 3);
    world.publish(Some(&world.mallory), &labels(&world, "b"));
    world.push_approval(&world.mallory, &left);
    world.quiet();
    assert_eq!(world.entry_state("home/w1").unwrap(), ("waiting", Some("stale: turn".into())));
    assert_eq!(world.sends().len(), 3);
}

#[test]
fn a_left_over_approval_of_governance_never_fires_again() {
    let mut world = World::adopted();
    let lax =
        world.repository_with("{configuration: 1, governance: 1}", "allowed", "defaults: {maxAttempts: 5}\n");
    let head = world.draft(&world.ann, &[TreeEdit::write("bronzeward.yaml", &*lax)]);
    let left = spare(&world, world.plan_tree(world.merged_tree(head)));
    world.merge(&world.ann, head, Merge::Signed);
    world.quiet();
    let head = world.draft(&world.ann, &[TreeEdit::write("bronzeward.yaml", world.repository_yaml())]);
    world.merge(&world.ann, head, Merge::Signed);
    world.quiet();
    assert_eq!(world.state().installation.governed.turn, 2);
    world.publish(Some(&world.mallory), &[TreeEdit::write("bronzeward.yaml", lax)]);
    world.push_approval(&world.mallory, &left);
    world.quiet();
    assert_eq!(world.entry_state("governance").unwrap(), ("waiting", Some("stale: turn".into())));
    assert_eq!(world.state().installation.governed.turn, 2);
}

#[test]
fn a_left_over_approval_of_a_readdress_never_fires_again() {
    let mut world = World::adopted();
    let (old, new) = ("10.0.0.11", "10.0.0.98");
    let node = world.nodes.with(W1, |node| node.clone());
    world.nodes.put("10.0.0.98:50000", node);
    let head = world.draft(&world.ann, &[machine(new)]);
    let left = spare(&world, world.plan_tree(world.merged_tree(head)));
    world.merge(&world.ann, head, Merge::Signed);
    world.quiet();
    world.change(&[machine(old)]);
    world.quiet();
    assert_eq!(world.status("w1").applied.unwrap().target.endpoint, W1);
    world.publish(Some(&world.mallory), &[machine(new)]);
    world.push_approval(&world.mallory, &left);
    world.quiet();
    assert_eq!(world.entry_state("home/w1").unwrap().0, "waiting");
    assert_eq!(world.status("w1").applied.unwrap().target.endpoint, W1);
    assert!(world.sends().is_empty());
}

#[test]
fn unapproved_changes_do_not_ride_along() {
    let mut world = World::adopted();
    let head = world.draft(&world.ann, &labels(&world, "a"));
    let approved = world.approve(&world.ann, world.plan_tree(world.merged_tree(head)), head);
    // before the merge somebody slips a change of the same machine into main
    let base = "clusters/home/bases/w1.yaml";
    let text =
        String::from_utf8(world.repo.tree_of(world.main()).unwrap().read(base).unwrap().unwrap()).unwrap();
    world.publish(Some(&world.mallory), &[TreeEdit::write(base, text.replace("rack: r1", "rack: evil"))]);
    world.merge_with(&world.ann, head, Merge::Signed, &approved);
    world.quiet();
    assert_eq!(world.entry_state("home/w1").unwrap(), ("waiting", Some("stale: composed".into())));
    assert!(world.sends().is_empty());
    // whoever plans now sees both, and signs another digest
    let plan = world.plan_tree(world.repo.commit(world.main()).unwrap().tree);
    assert_ne!(plan.digest(), approved.plan.digest());
}

#[test]
fn a_branch_behind_main_undoes_nobody_elses_change() {
    let mut world = with_w2();
    let old = world.main();
    world.change(&world.fragments("w2", &[("two", &label("zone", "two"))]));
    world.quiet();
    assert_eq!(sent_to(&world, W2), 1);
    // a merge whose tree is the branch's alone: the other machine's change is gone from main
    let head = world.write(Some(old), &labels(&world, "a"), "A change\n", Some(&world.ann), &[old]);
    let tree = world.repo.commit(head).unwrap().tree;
    assert_ne!(world.repo.merge(world.main(), head).unwrap(), Merged::Clean(tree));
    let approved = world.approve(&world.ann, world.plan_tree(world.merged_tree(head)), head);
    world.push_approval(&world.ann, &approved);
    let message = format!("Merge\n\n{}", approved.trailers);
    let evil = world.write_tree(tree, &message, Some(&world.ann), &[world.main(), head]);
    world.push_main(evil);
    world.quiet();
    assert_eq!(sent_to(&world, W1), 1, "{:?}", world.last);
    assert_eq!(sent_to(&world, W2), 1, "what nobody approved stays");
    let plan = world.plan_tree(world.repo.commit(evil).unwrap().tree);
    assert_eq!(plan.entries.len(), 1, "and the next plan shows it");
}

#[test]
fn what_was_reverted_and_published_again_between_two_polls_has_lapsed() {
    let mut world = World::adopted();
    world.change(&labels(&world, "a"));
    world.publish(Some(&world.ann), &world.fragments("w1", &[]));
    world.publish(Some(&world.mallory), &labels(&world, "a"));
    world.quiet();
    assert_eq!(world.entry_state("home/w1").unwrap().0, "lapsed");
    assert!(world.has_kind("w1", "lapsed"));
    assert!(world.sends().is_empty());
}

#[test]
fn the_same_for_an_approval_that_comes_late_on_its_branch() {
    let mut world = World::adopted();
    let head = world.draft(&world.ann, &labels(&world, "a"));
    let approved = world.approve(&world.ann, world.plan_tree(world.merged_tree(head)), head);
    let merge = world.write_tree(world.merged_tree(head), "Merge\n", None, &[world.main(), head]);
    world.push_main(merge);
    world.quiet();
    world.publish(Some(&world.ann), &world.fragments("w1", &[]));
    world.quiet();
    world.publish(Some(&world.mallory), &labels(&world, "a"));
    world.quiet();
    world.push_approval(&world.ann, &approved);
    world.quiet();
    assert_eq!(world.entry_state("home/w1").unwrap().0, "lapsed");
    assert!(world.sends().is_empty());
}

#[test]
fn a_revert_sends_what_is_applied_and_not_what_main_holds() {
    let mut world = World::adopted();
    let good = world.nodes.bytes(W1);
    world.publish(Some(&world.mallory), &labels(&world, "evil"));
    world.patch_node(W1, "rack: r1", "rack: r9");
    world.quiet();
    assert!(world.status("w1").open_drift.is_some());
    world.revert(&world.ann, "w1");
    world.quiet();
    assert_eq!(world.sends().len(), 1, "{:?}", world.last);
    let sent = String::from_utf8(world.sends()[0].bytes.clone()).unwrap();
    assert!(sent.contains("rack: r1") && !sent.contains("evil"), "{sent}");
    assert_eq!(world.sends()[0].bytes, good, "the small base is what Talos would print");
    assert_eq!(world.status("w1").open_drift, None);
}

#[test]
fn an_adoption_swallows_no_pending_change() {
    for by_base in [true, false] {
        let mut world = World::adopted();
        world.publish(Some(&world.mallory), &labels(&world, "evil"));
        world.patch_node(W1, "rack: r1", "rack: r9");
        world.quiet();
        let drift = world.status("w1").open_drift.unwrap();
        let edits = if by_base {
            let mut edits = world.import("w1", W1, Some(drift.sequence));
            // the assignment still selects what was published
            edits.retain(|edit| edit.path.contains("/bases/"));
            edits
        } else {
            let header = format!(
                "apiVersion: bronzeward.dev/v1alpha1\nkind: Fragment\nadopts: {{machine: w1, drift: {}, meaning: \
                 \"{}\"}}\n---\n",
                drift.sequence, drift.meaning
            );
            let adopting = format!("{header}{}", label("rack", "r9"));
            world.fragments("w1", &[("labels", &label("zone", "evil")), ("drift", &adopting)])
        };
        let approved = world.change(&edits);
        assert_eq!(approved.plan.entries[0].operation(), "adopt");
        world.quiet();
        let status = world.status("w1");
        assert_eq!(status.open_drift, None, "{:?}", world.last);
        let applied = status.applied.unwrap();
        assert_eq!(applied.meaning, drift.meaning);
        assert_eq!(
            applied.composed.is_some(),
            by_base,
            "a document that holds the pending change explains nothing"
        );
        assert!(world.sends().is_empty());
        // the pending change still wants an approval of its own
        let plan = world.plan_tree(world.repo.commit(world.main()).unwrap().tree);
        assert_eq!(plan.entries[0].operation(), "apply");
        world.approve_main(&world.ann);
        world.quiet();
        assert_eq!(world.sends().len(), 1, "{by_base}: {:?}", world.last);
    }
}

#[test]
fn an_old_import_header_adopts_nothing_once_the_node_is_back() {
    let mut world = World::adopted();
    let good = world.nodes.bytes(W1);
    world.patch_node(W1, "rack: r1", "rack: r9");
    world.tick();
    let drift = world.status("w1").open_drift.unwrap();
    let head = world.draft(&world.ann, &world.import("w1", W1, Some(drift.sequence)));
    let approved = world.approve(&world.ann, world.plan_tree(world.merged_tree(head)), head);
    world.nodes.with(W1, |node| node.bytes = good);
    world.tick();
    assert_eq!(world.status("w1").open_drift, None);
    world.merge_with(&world.ann, head, Merge::Signed, &approved);
    world.quiet();
    assert_eq!(world.entry_state("home/w1").unwrap(), ("waiting", Some("stale: operation".into())));
    // nor when it drifts to the same once more: that is another record
    world.patch_node(W1, "rack: r1", "rack: r9");
    world.quiet();
    assert!(world.status("w1").open_drift.is_some());
    assert_eq!(world.status("w1").applied.unwrap().revision, 1);
    assert!(world.sends().is_empty());
}

#[test]
fn trailers_in_a_rebased_branch_are_no_approval() {
    let mut world = World::adopted();
    let used = world.change(&labels(&world, "a"));
    world.quiet();
    let forged = used.trailers.replace("Approved-By: ann", "Approved-By: bob");
    for trailers in [used.trailers.clone(), forged] {
        let main = world.main();
        let message = format!("A change\n\n{trailers}");
        // the approver's own key re-signs the commit, in git's namespace
        let commit = world.write(Some(main), &labels(&world, "evil"), &message, Some(&world.ann), &[main]);
        world.push_main(commit);
        world.quiet();
        assert_eq!(world.sends().len(), 1);
    }
    assert!(world.refusal().unwrap().starts_with("approval-malformed"));
}

#[test]
fn an_approval_of_a_copy_of_the_repository_is_none_here() {
    let copies = [
        Saying { repository: "another".into(), ..Saying::default() },
        Saying { epoch: "another".into(), ..Saying::default() },
        Saying { shard: "another".into(), ..Saying::default() },
    ];
    for saying in copies {
        let mut world = World::adopted();
        let head = world.draft(&world.ann, &labels(&world, "a"));
        let mut plan = world.plan_tree(world.merged_tree(head));
        plan.repository.clone_from(&saying.repository);
        let approved = world.say(&world.ann, plan, head, &saying);
        world.merge_with(&world.ann, head, Merge::Signed, &approved);
        world.quiet();
        assert!(world.refusal().unwrap().starts_with("approval-malformed"), "{:?}", world.refusal());
        assert!(world.sends().is_empty());
    }
    // signed for here, and the plan of elsewhere
    let mut world = World::adopted();
    let head = world.draft(&world.ann, &labels(&world, "a"));
    let mut plan = world.plan_tree(world.merged_tree(head));
    plan.epoch = "another".into();
    let approved = world.approve(&world.ann, plan, head);
    world.merge_with(&world.ann, head, Merge::Signed, &approved);
    world.quiet();
    assert!(world.refusal().unwrap().starts_with("approval-plan-mismatch"), "{:?}", world.refusal());
    assert!(world.sends().is_empty());
}

#[test]
fn a_revoked_statement_stays_revoked_under_another_name() {
    for seen in [false, true] {
        let mut world = World::adopted();
        let head = world.draft(&world.ann, &labels(&world, "a"));
        let approved = world.approve(&world.ann, world.plan_tree(world.merged_tree(head)), head);
        if seen {
            world.freeze(&world.ann, "all");
            world.merge_with(&world.ann, head, Merge::Signed, &approved);
            world.quiet();
        }
        world.revoke(&world.ann, &approved.id);
        world.quiet();
        if !seen {
            world.publish(None, &labels(&world, "a"));
        }
        let commit = world.push_approval(&world.mallory, &approved);
        world.repo.force_ref("refs/heads/bronzeward/approvals/another", commit).unwrap();
        let main = world.main();
        let again =
            world.write(Some(main), &[], &format!("Once more\n\n{}", approved.trailers), None, &[main]);
        world.push_main(again);
        if seen {
            world.unfreeze(&world.ann, "all");
        }
        world.quiet();
        match seen {
            true => assert_eq!(world.entry_state("home/w1").unwrap().0, "revoked"),
            false => {
                assert!(world.refusal().unwrap().starts_with("approval-revoked"), "{:?}", world.refusal())
            }
        }
        assert!(world.sends().is_empty());
    }
}

#[test]
fn a_denied_key_voids_what_it_approved() {
    let mut world = World::adopted();
    world.freeze(&world.ann, "all");
    world.change(&labels(&world, "a"));
    world.quiet();
    world.deny(&world.bob, &world.ann.fingerprint());
    world.deny(&world.mallory, &world.bob.fingerprint());
    world.unfreeze(&world.bob, "all");
    world.quiet();
    assert_eq!(world.entry_state("home/w1").unwrap().0, "revoked");
    world.approve_main(&world.ann);
    world.quiet();
    assert!(world.refusal().unwrap().starts_with("approval-signer-denied"), "{:?}", world.refusal());
    assert!(world.sends().is_empty());
    // bob was denied by nobody who may: his word counts
    world.approve_main(&world.bob);
    world.quiet();
    assert_eq!(world.sends().len(), 1, "{:?}", world.last);
}

#[test]
fn a_denied_reconciler_writes_nothing_more() {
    let mut world = World::adopted();
    world.change(&labels(&world, "a"));
    world.deny(&world.ann, &world.reconciler.fingerprint());
    let tip = world.state().commit;
    assert_eq!(world.halt(), "reconciler-denied");
    assert_eq!(world.state().commit, tip);
    assert!(world.sends().is_empty());
}

#[test]
fn governance_that_locks_the_reconciler_out_is_held() {
    let mut world = World::adopted();
    let signers =
        world.signers().lines().filter(|line| !line.contains("reconciler")).collect::<Vec<_>>().join("\n");
    world.change(&[TreeEdit::write("allowed_signers", signers)]);
    let outcome = world.quiet();
    assert!(outcome.holds["governance"].starts_with("governance-locks-out"), "{outcome:?}");
    world.change(&[TreeEdit::write("allowed_signers", world.signers())]);
    world.quiet();
    world.change(&labels(&world, "a"));
    world.quiet();
    assert_eq!(world.sends().len(), 1, "{:?}", world.last);
}

#[test]
fn an_endpoint_that_points_at_another_node_moves_nothing() {
    let mut world = with_w2();
    world.publish(Some(&world.mallory), &[machine("10.0.0.12:50001")]);
    world.quiet();
    assert!(!world.nodes.dialled("10.0.0.12:50001"), "nobody approved that address");
    world.nodes.put("10.0.0.12:50001", world.nodes.with(W2, |node| node.clone()));
    world.approve_main(&world.ann);
    let outcome = world.quiet();
    assert!(outcome.holds["home/w1"].starts_with("identity-mismatch"), "{outcome:?}");
    assert_eq!(world.status("w1").applied.unwrap().target.endpoint, W1);
    assert!(world.sends().is_empty());
}

#[test]
fn a_strangers_access_is_never_used() {
    let mut world = World::adopted();
    world.change(&labels(&world, "a"));
    let (path, file, _) = world.secret("access/talos", 1, "access", "", "context: evil\n");
    world.publish(Some(&world.mallory), &[TreeEdit::write(path, file)]);
    let outcome = world.quiet();
    assert!(outcome.holds["home/w1"].starts_with("secret-value-mismatch"), "{outcome:?}");
    assert!(world.sends().is_empty());
}

#[test]
fn a_swapped_installation_key_is_governance() {
    for same_name in [true, false] {
        let mut world = World::adopted();
        world.change(&labels(&world, "a"));
        let evil = InstallationKey::new([9; 32]);
        let to = [world.reconciler.public.parse().ok().unwrap()];
        let id = if same_name { world.key.id() } else { evil.id() };
        let mut edits = vec![TreeEdit::write(installation_path(id), seal_installation(&evil, &to).unwrap())];
        if !same_name {
            edits.push(TreeEdit::remove(installation_path(world.key.id())));
        }
        world.publish(Some(&world.mallory), &edits);
        let outcome = world.quiet();
        assert!(outcome.holds["home/w1"].starts_with("governance-changed"), "{outcome:?}");
        assert!(outcome.unreachable.is_empty(), "the governed key is still the one that is used");
        assert!(world.sends().is_empty());
    }
}

#[test]
fn a_reference_in_a_nodes_answer_is_drift_and_never_material() {
    let mut world = World::adopted();
    world.patch_node(W1, "rack: r1", "rack: !bwref access/talos");
    world.quiet();
    assert!(world.status("w1").open_drift.is_some());
    let digest = |_: &str| String::new();
    let refused = ingest(&Ingest {
        tables: &talos_config::Tables::v1_13(),
        bytes: &world.nodes.bytes(W1),
        marks: &[],
        clears: &[],
        mark_undecided: true,
        known_clear: &[],
        digest: &digest,
        stored: &Default::default(),
        taken: &Default::default(),
    });
    assert!(matches!(refused, Err(IngestError::Reserved { .. })), "{refused:?}");
}

#[test]
fn the_access_to_nodes_compiles_into_nothing() {
    let mut world = World::adopted();
    let edits = world.fragment("labels", "machine:\n    nodeLabels:\n        zone: !bwref access/talos\n");
    let head = world.draft(&world.ann, &edits);
    let planned = world.planned(world.merged_tree(head));
    assert!(planned.findings.to_string().contains("never compiles"), "{}", planned.findings);
    assert!(planned.plan.entries.is_empty());
    world.publish(Some(&world.mallory), &edits);
    world.quiet();
    assert!(world.sends().is_empty());
}

#[test]
fn whoever_signed_a_part_is_self_whatever_basis_they_name() {
    let mut world = World::adopted();
    let policy = world.repository_with("{configuration: 1, governance: 1}", "refused", "");
    world.publish(Some(&world.mallory), &[TreeEdit::write("bronzeward.yaml", policy)]);
    world.approve_main(&world.ann);
    world.quiet();
    assert_eq!(world.state().installation.governed.turn, 1);
    // bob writes it, and approves it with a head that holds none of it
    let commit = world.publish(Some(&world.bob), &labels(&world, "a"));
    for head in [world.anchor, commit] {
        let plan = world.plan_tree(world.repo.commit(world.main()).unwrap().tree);
        let saying = Saying {
            expires: Duration::from_secs(if head == commit { 70_000 } else { 80_000 }),
            ..Saying::default()
        };
        let approved = world.say(&world.bob, plan, head, &saying);
        world.push_approval(&world.bob, &approved);
        let outcome = world.quiet();
        assert_eq!(outcome.holds["home/w1"], "0 of 1 approvals");
        assert!(world.sends().is_empty());
    }
    // somebody else's counts
    world.approve_main(&world.ann);
    world.quiet();
    assert_eq!(world.sends().len(), 1, "{:?}", world.last);
}

#[test]
fn where_main_must_be_signed_a_forges_button_is_not_enough() {
    let mut world = World::adopted();
    let policy = world
        .repository_with("{configuration: 1, governance: 1}", "allowed", "")
        .replace("  selfApproval", "  signedMain: required\n  selfApproval");
    world.change(&[TreeEdit::write("bronzeward.yaml", policy)]);
    world.quiet();
    assert_eq!(world.state().installation.governed.turn, 1);
    let head = world.draft(&world.ann, &labels(&world, "a"));
    world.merge(&world.ann, head, Merge::Button);
    let outcome = world.quiet();
    assert!(outcome.holds["home/w1"].contains("signed commit on main"), "{outcome:?}");
    assert!(world.sends().is_empty());
    // somebody signs for what main holds
    world.publish(Some(&world.mallory), &[]);
    world.quiet();
    assert_eq!(world.sends().len(), 1, "{:?}", world.last);
}
