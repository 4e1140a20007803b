//! Bad input and faults: each ends in a clear reason or a correct recovery, never in a second send of other bytes
//! and never in a lost record.

mod kills;

use std::time::Duration;

use bronzeward_git::TreeEdit;
use bronzeward_state::Snapshot;

use crate::fakes::{PushFault, SendFault};
use crate::world::{Merge, STATE, Saying, W1, World, label};

const HOUR: Duration = Duration::from_secs(3600);

fn change(world: &World) -> crate::world::Approved {
    world.change(&world.fragment("labels", &label("zone", "a")))
}

/// One send of the bytes that main composes, recorded to its end.
fn done_once(world: &World) {
    let sends = world.sends();
    assert_eq!(sends.len(), 1, "{:?}", world.last);
    assert_eq!(sends[0].bytes, world.wanted("w1"));
    settled(world);
}

fn settled(world: &World) {
    let status = world.status("w1");
    assert_eq!(status.operation, None, "{:?}", world.last);
    assert_eq!(status.applied.unwrap().revision, 2);
    assert_eq!(world.entry_state("home/w1").unwrap().0, "completed");
    assert_eq!(world.nodes.bytes(W1), world.wanted("w1"));
}

#[test]
fn a_merge_without_trailers_is_published_and_nothing_is_sent() {
    let mut world = World::adopted();
    world.publish(Some(&world.ann), &world.fragment("labels", &label("zone", "a")));
    world.quiet();
    let status = world.status("w1");
    assert_eq!(status.desired.unwrap().commit, world.main().to_string());
    assert_eq!(status.applied.unwrap().revision, 1);
    assert!(world.sends().is_empty());
    // approved afterwards, it goes
    world.approve_main(&world.ann);
    world.quiet();
    done_once(&world);
}

#[test]
fn what_is_wrong_with_an_approval_is_said_by_name() {
    let other = "sha256:0000000000000000000000000000000000000000000000000000000000000000";
    type Liar = fn(&World) -> &crate::world::Who;
    let lies: [(&str, Liar, Saying); 6] = [
        (
            "approval-plan-missing",
            |w| &w.ann,
            Saying { plan_digest: Some(other.into()), ..Saying::default() },
        ),
        (
            "approval-signer-unknown",
            |w| &w.root,
            Saying { name: Some("ann@example.org".into()), ..Saying::default() },
        ),
        ("approval-signer-unauthorized", |w| &w.mallory, Saying::default()),
        ("approval-signer-automation", |w| &w.ci, Saying::default()),
        (
            "approval-signer-mismatch",
            |w| &w.bob,
            Saying { name: Some("ann@example.org".into()), ..Saying::default() },
        ),
        ("approval-root", |w| &w.root, Saying { name: Some("root".into()), ..Saying::default() }),
    ];
    for (code, who, saying) in lies {
        let mut world = World::adopted();
        let head = world.draft(&world.ann, &world.fragment("labels", &label("zone", "a")));
        let plan = world.plan_tree(world.merged_tree(head));
        let approved = world.say(who(&world), plan, head, &saying);
        world.merge_with(who(&world), head, Merge::Signed, &approved);
        world.quiet();
        assert!(world.refusal().is_some_and(|why| why.starts_with(code)), "{code}: {:?}", world.refusal());
        assert!(world.sends().is_empty(), "{code}");
        assert_eq!(
            world.state().installation.seen.main,
            world.main().to_string(),
            "it is published all the same"
        );
    }
}

#[test]
fn an_expired_approval_is_refused_and_a_live_one_expires() {
    let mut world = World::adopted();
    let head = world.draft(&world.ann, &world.fragment("labels", &label("zone", "a")));
    let plan = world.plan_tree(world.merged_tree(head));
    let approved = world.say(&world.ann, plan, head, &Saying { expires: HOUR, ..Saying::default() });
    world.merge_with(&world.ann, head, Merge::Signed, &approved);
    world.clock.advance(2 * HOUR);
    world.quiet();
    assert!(world.refusal().unwrap().starts_with("approval-expired"), "{:?}", world.refusal());

    world.freeze(&world.ann, "all");
    let plan = world.plan_tree(world.repo.commit(world.main()).unwrap().tree);
    let again = world.say(&world.ann, plan, world.main(), &Saying { expires: HOUR, ..Saying::default() });
    world.push_approval(&world.ann, &again);
    world.quiet();
    assert_eq!(world.entry_state("home/w1").unwrap().0, "approved");
    world.clock.advance(2 * HOUR);
    world.unfreeze(&world.ann, "all");
    world.quiet();
    assert_eq!(world.entry_state("home/w1").unwrap().0, "expired");
    assert!(world.has_kind("w1", "expired"));
    assert!(world.sends().is_empty());
}

#[test]
fn a_far_expiry_is_capped() {
    let mut world = World::adopted();
    world.freeze(&world.ann, "all");
    let head = world.draft(&world.ann, &world.fragment("labels", &label("zone", "a")));
    let plan = world.plan_tree(world.merged_tree(head));
    let approved =
        world.say(&world.ann, plan, head, &Saying { expires: 24 * 365 * HOUR, ..Saying::default() });
    world.merge_with(&world.ann, head, Merge::Signed, &approved);
    world.quiet();
    let release = world.state().releases.values().next_back().unwrap().clone();
    assert_eq!(release.expires.duration_since(release.accepted).as_hours(), 7 * 24);
}

#[test]
fn a_literal_in_a_secret_field_never_compiles() {
    let mut world = World::adopted();
    let head = world.draft(&world.ann, &world.fragment("token", "machine:\n    token: bbbbbb.a-literal\n"));
    let planned = world.planned(world.merged_tree(head));
    assert!(planned.plan.entries.is_empty());
    assert!(planned.findings.to_string().contains("secret-literal"), "{}", planned.findings);
    world.publish(Some(&world.ann), &world.fragment("token", "machine:\n    token: bbbbbb.a-literal\n"));
    world.quiet();
    assert!(world.sends().is_empty());
}

#[test]
fn a_deleted_or_changed_secret_version_is_named_and_nothing_is_sent() {
    for stranger in [false, true] {
        let mut world = World::adopted();
        let (path, _, _) = world.secret("machine/token", 1, "string", "token", "x");
        let approved = change(&world);
        let edit = match stranger {
            false => TreeEdit::remove(&*path),
            true => TreeEdit::write(
                &*path,
                world.secret("machine/token", 1, "string", "token", "cccccc.strange").1,
            ),
        };
        world.publish(Some(&world.mallory), &[edit]);
        let outcome = world.quiet();
        let code = if stranger { "secret-value-mismatch" } else { "secret-missing" };
        assert!(outcome.holds["home/w1"].starts_with(code), "{outcome:?}");
        assert!(world.sends().is_empty());
        // put back, it goes
        let back = world.repo.tree_of(world.anchor).unwrap().read(&path).unwrap().unwrap();
        world.publish(Some(&world.ann), &[TreeEdit::write(path, back)]);
        world.quiet();
        done_once(&world);
        drop(approved);
    }
}

#[test]
fn a_rewound_main_stops_everything_until_it_is_back() {
    let mut world = World::adopted();
    let before = world.main();
    world.publish(Some(&world.ann), &world.fragment("labels", &label("zone", "a")));
    world.quiet();
    let after = world.main();
    world.push_main(before);
    assert_eq!(world.halt(), "main-rewound");
    world.restart_empty();
    assert_eq!(world.halt(), "main-rewound");
    world.push_main(after);
    world.approve_main(&world.ann);
    world.quiet();
    done_once(&world);
}

#[test]
fn a_second_reconciler_names_the_owner_and_a_twin_fences() {
    let mut world = World::adopted();
    let mut setup = world.setup();
    setup.owner = "two".into();
    let mut second = world.open(setup, "second");
    match second.tick(&Default::default()) {
        Err(bronzeward_reconcile::trouble::Trouble::Halt { code, message }) => {
            assert_eq!(code, "not-the-owner");
            assert!(message.contains("`one`"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    // the same name on another disk replaces: the first is fenced off
    change(&world);
    let mut twin = world.open(world.setup(), "twin");
    for _ in 0..20 {
        twin.tick(&bronzeward_reconcile::engine::Due { sweep: true, ..Default::default() }).unwrap();
        world.clock.advance(Duration::from_secs(1));
    }
    assert_eq!(world.halt(), "fenced");
    drop(twin);
    world.disk = "twin".into();
    world.restart();
    world.quiet();
    done_once(&world);
}

#[test]
fn evidence_that_took_too_long_is_read_again_and_not_committed_on() {
    let mut world = World::adopted();
    change(&world);
    let clock = world.clock.clone();
    // longer than `evidenceMaxAge`, which is five minutes
    world.nodes.on_read(move || clock.advance(Duration::from_secs(360)));
    let outcome = world.tick();
    assert!(outcome.holds["home/w1"].contains("evidenceMaxAge"), "{outcome:?}");
    assert!(world.sends().is_empty() && !world.has_kind("w1", "committed"));
    world.nodes.quick();
    world.quiet();
    done_once(&world);
}

#[test]
fn a_remote_that_is_gone_for_a_while_is_waited_for() {
    let mut world = World::adopted();
    change(&world);
    world.faults.down(true);
    for _ in 0..3 {
        world.try_tick().unwrap_err();
        world.clock.advance(HOUR);
    }
    assert!(world.sends().is_empty());
    world.faults.down(false);
    world.quiet();
    done_once(&world);
}

#[test]
fn a_remote_that_is_gone_after_the_send_loses_no_record() {
    let mut world = World::adopted();
    change(&world);
    let faults = world.faults.clone();
    world.nodes.after_send(move || faults.state_down(true));
    until_sent(&mut world);
    for _ in 0..3 {
        world.try_tick().unwrap_err();
        world.clock.advance(HOUR);
    }
    let operation = world.status("w1").operation.unwrap();
    assert_eq!(operation.last_attempt().unwrap().answer, None, "nobody could write it down");
    world.faults.state_down(false);
    world.quiet();
    done_once(&world);
}

#[test]
fn a_lost_answer_to_a_push_is_settled_by_looking() {
    for at in 0..12 {
        for landed in [false, true] {
            let mut world = World::adopted();
            change(&world);
            for _ in 0..at {
                world.faults.push(PushFault::Slow(Duration::ZERO));
            }
            world.faults.push(if landed { PushFault::LostLanded } else { PushFault::LostGone });
            world.quiet();
            done_once(&world);
        }
    }
}

#[test]
fn a_slow_host_uses_no_attempt() {
    let mut world = World::adopted();
    change(&world);
    // every push of the dispatch takes longer than `sendWithin`, three times more often than there are attempts
    for _ in 0..12 {
        world.faults.push(PushFault::Slow(Duration::from_secs(11)));
    }
    for _ in 0..6 {
        world.tick();
        world.clock.advance(Duration::from_secs(1));
    }
    assert!(world.has_kind("w1", "not-sent"), "{:?}", world.kinds("w1"));
    world.quiet();
    done_once(&world);
}

/// Somebody freezes `w1`, from another machine.
fn freezes(world: &World) -> Box<dyn FnOnce() + Send> {
    let repo = world.repo.clone();
    let (ident, seed) = (world.ident(&world.ann), world.ann.private.clone());
    let now = world.now();
    Box::new(move || {
        let signer = bronzeward_git::sign::KeySigner::new(ssh_key::PrivateKey::from_openssh(&seed).unwrap());
        let state = Snapshot::read(&repo, repo.read_ref(STATE).unwrap().unwrap()).unwrap();
        let scope = "home/w1".parse().unwrap();
        let act = bronzeward_state::Act::Freeze { format: 1, scope, reason: "now".into(), at: now };
        let done =
            bronzeward_state::transaction::write_act(&repo, &state, &act, now, &ident, &signer).unwrap();
        repo.set_ref(STATE, done.commit, done.parent).unwrap();
    })
}

#[test]
fn a_freeze_right_after_the_attempt_is_honoured_while_nothing_left() {
    let mut met = false;
    for at in 0..8 {
        let mut world = World::adopted();
        change(&world);
        for _ in 0..at {
            world.faults.push(PushFault::Slow(Duration::ZERO));
        }
        world.faults.push(PushFault::Followed(freezes(&world)));
        world.quiet();
        let kinds = world.kinds("w1");
        let at = |kind: &str| kinds.iter().position(|other| *other == kind);
        if let (Some(attempt), Some(not_sent)) = (at("attempt"), at("not-sent")) {
            met = true;
            assert!(attempt < not_sent && world.sends().is_empty(), "{kinds:?}");
        }
        world.unfreeze(&world.ann, "home/w1");
        world.quiet();
        done_once(&world);
    }
    assert!(met);
}

#[test]
fn somebody_else_is_faster_at_every_push() {
    for at in 0..10 {
        let mut world = World::adopted();
        change(&world);
        for _ in 0..at {
            world.faults.push(PushFault::Slow(Duration::ZERO));
        }
        world.faults.push(PushFault::Race(freezes(&world)));
        world.quiet();
        let kinds = world.kinds("w1");
        let Some(frozen) = kinds.iter().position(|kind| *kind == "frozen") else {
            assert!(at > 3, "there are fewer pushes than that");
            break;
        };
        let sent_before = kinds[..frozen].contains(&"attempt");
        assert_eq!(world.sends().len(), usize::from(sent_before), "{at}: {kinds:?}");
        world.unfreeze(&world.ann, "home/w1");
        world.quiet();
        done_once(&world);
    }
}

#[test]
fn what_a_node_answers_decides_what_follows() {
    // a fault, then what the entry comes to, and how many sends there were
    let cases = [
        (vec![SendFault::Unreachable, SendFault::Unreachable, SendFault::Unreachable], "completed", 1),
        (vec![SendFault::Reject], "rejected", 1),
        (vec![SendFault::Busy], "completed", 2),
        (vec![SendFault::Busy, SendFault::Busy], "failed", 2),
        (vec![SendFault::LostLanded], "completed", 1),
        (vec![SendFault::LostGone], "completed", 2),
        (vec![SendFault::LostGone, SendFault::LostGone], "failed", 2),
        (vec![SendFault::AcceptedNothing], "failed", 1),
        (vec![SendFault::AcceptedOther], "failed", 1),
    ];
    for (faults, state, sends) in cases {
        let mut world = World::adopted();
        world.nodes.with(W1, |node| node.faults = faults.clone().into());
        change(&world);
        world.quiet();
        let all = world.sends();
        assert_eq!(world.entry_state("home/w1").unwrap().0, state, "{faults:?}: {:?}", world.last);
        assert_eq!(all.len(), sends, "{faults:?}");
        assert!(all.iter().all(|send| send.bytes == world.wanted("w1")), "{faults:?}");
        assert_eq!(world.status("w1").operation, None, "{faults:?}");
        let drift = world.status("w1").open_drift.is_some();
        assert_eq!(drift, faults == [SendFault::AcceptedOther], "{faults:?}");
    }
}

#[test]
fn what_a_node_says_of_itself_is_looked_at_before_anything_is_sent() {
    type Lie = fn(&mut crate::fakes::FakeNode);
    let cases: [(Lie, &str); 7] = [
        (|node| node.id = "node-other".into(), "identity-mismatch"),
        (|node| node.role = "controlplane", "role-mismatch"),
        (|node| node.cluster = "another".into(), "cluster-mismatch"),
        (|node| node.running = false, "the machine is not running"),
        (|node| node.pending = true, "another configuration is staged"),
        (|node| node.version = "v1.12.4".into(), "Talos v1.12.4 is older"),
        (|node| node.reachable = false, "connection refused"),
    ];
    for (lie, why) in cases {
        let mut world = World::adopted();
        change(&world);
        world.nodes.with(W1, lie);
        let outcome = world.tick();
        assert!(outcome.holds["home/w1"].starts_with(why), "{why}: {outcome:?}");
        assert!(world.sends().is_empty());
        world.nodes.with(W1, |node| {
            (node.id, node.role, node.cluster) = ("node-w1".into(), "worker", "talos-cluster-id".into());
            (node.running, node.pending, node.reachable, node.version) =
                (true, false, true, "v1.13.9".into());
        });
        world.quiet();
        done_once(&world);
    }
}

#[test]
fn a_sick_machine_may_be_helped_and_a_well_one_must_stay_well() {
    let mut world = World::adopted();
    world.nodes.with(W1, |node| node.ready = false);
    change(&world);
    world.quiet();
    done_once(&world);
}

#[test]
fn a_machine_that_is_away_keeps_nobody_else_waiting() {
    const W2: &str = "10.0.0.12:50000";
    let mut world = World::adopted_three(W2);
    world.nodes.with(W1, |node| node.reachable = false);
    change(&world);
    world.tick();
    world.change(&world.fragments("w2", &[("two", &label("zone", "two"))]));
    world.quiet();
    assert_eq!(world.sends().len(), 1, "{:?}", world.last);
    assert_eq!(world.sends()[0].endpoint, W2);
    world.nodes.with(W1, |node| node.reachable = true);
    world.quiet();
    assert_eq!(world.sends().len(), 2, "{:?}", world.last);
}

/// Ticks until the first bytes left, and no further.
fn until_sent(world: &mut World) {
    while world.sends().is_empty() {
        world.try_tick().ok();
    }
}

#[test]
fn what_lands_late_completes_the_operation() {
    let mut world = World::adopted();
    world.nodes.with(W1, |node| node.faults = [SendFault::LostGone, SendFault::Unreachable].into());
    change(&world);
    until_sent(&mut world);
    assert!(world.has_kind("w1", "unresolved"), "{:?}", world.kinds("w1"));
    // the deadlines pass; the next attempt is not sent, and now the first one lands
    world.clock.advance(Duration::from_secs(200));
    while !world.has_kind("w1", "not-sent") {
        world.steps.crash_at(usize::MAX);
        world.tick_due(false).ok();
        if world.has_kind("w1", "not-sent") {
            break;
        }
    }
    world.nodes.with(W1, |node| node.faults.clear());
    if world.sends().len() == 1 {
        let sent = world.sends()[0].bytes.clone();
        world.nodes.with(W1, |node| node.bytes = sent);
    }
    world.quiet();
    settled(&world);
}

#[test]
fn what_landed_on_a_machine_that_is_not_ready_waits_for_it_and_then_fails() {
    for recovers in [true, false] {
        let mut world = World::adopted();
        world.nodes.with(W1, |node| node.faults = [SendFault::LostLanded].into());
        change(&world);
        until_sent(&mut world);
        world.nodes.with(W1, |node| node.ready = false);
        world.clock.advance(Duration::from_secs(160));
        let outcome = world.tick();
        assert_eq!(outcome.holds["home/w1"], "verifying", "{outcome:?}");
        if recovers {
            world.nodes.with(W1, |node| node.ready = true);
        }
        world.quiet();
        let state = if recovers { "completed" } else { "failed" };
        assert_eq!(world.entry_state("home/w1").unwrap().0, state, "{:?}", world.last);
        assert_eq!(world.status("w1").open_drift.is_some(), !recovers);
        assert_eq!(world.sends().len(), 1);
    }
}

#[test]
fn a_further_attempt_needs_as_many_approvals_as_the_first() {
    for revoked in [false, true] {
        let mut world = World::adopted();
        let policy = world.repository_with("{configuration: 2, governance: 1}", "allowed", "");
        world.change(&[TreeEdit::write("bronzeward.yaml", policy)]);
        world.quiet();
        world.nodes.with(W1, |node| node.faults = [SendFault::LostGone].into());
        let first = change(&world);
        let second = world.say(&world.bob, first.plan.clone(), first.head, &Saying::default());
        world.push_approval(&world.bob, &second);
        until_sent(&mut world);
        if revoked {
            world.revoke(&world.bob, &second.id);
        }
        world.quiet();
        assert_eq!(world.sends().len(), if revoked { 1 } else { 2 }, "{:?}", world.last);
        let state = if revoked { "revoked" } else { "completed" };
        let states =
            world.state().releases.values().flat_map(|release| release.entries.clone()).collect::<Vec<_>>();
        let of: Vec<_> =
            states.iter().filter(|entry| entry.operation == "apply").map(|e| e.state.as_str()).collect();
        assert_eq!(of, [state, state]);
    }
}

#[test]
fn a_block_with_two_signatures_counts_although_one_was_seen_before() {
    let mut world = World::adopted();
    let policy = world.repository_with("{configuration: 2, governance: 1}", "allowed", "");
    world.change(&[TreeEdit::write("bronzeward.yaml", policy)]);
    world.quiet();
    let head = world.draft(&world.ann, &world.fragment("labels", &label("zone", "a")));
    let first = world.approve(&world.ann, world.plan_tree(world.merged_tree(head)), head);
    let second = world.approve(&world.bob, first.plan.clone(), head);
    world.push_approval(&world.ann, &first);
    world.quiet();
    assert_eq!(world.entry_state("home/w1").unwrap().0, "waiting");
    let pair: Vec<&str> = second.trailers.lines().skip(4).collect();
    let both = crate::world::Approved {
        trailers: format!("{}{}\n", first.trailers, pair.join("\n")),
        ..first.clone()
    };
    let tree = world.merged_tree(head);
    let message = format!("Merge\n\n{}", both.trailers);
    world.push_main(world.write_tree(tree, &message, Some(&world.bob), &[world.main(), head]));
    world.quiet();
    done_once(&world);
}
