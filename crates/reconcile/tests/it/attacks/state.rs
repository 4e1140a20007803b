//! Hands on the state branch itself.

use bronzeward_git::TreeEdit;
use bronzeward_reconcile::trouble::Trouble;
use bronzeward_state::act::Act;
use bronzeward_state::model::Approver;
use bronzeward_state::{Approval, EntryState, Transaction};

use crate::world::{STATE, Saying, World};

#[test]
fn a_freeze_that_also_edits_a_status_is_a_breach() {
    let mut world = World::adopted();
    let state = world.state();
    let act = Act::Freeze { format: 1, scope: "all".parse().unwrap(), reason: "x".into(), at: world.now() };
    let good = bronzeward_state::transaction::write_act(
        &world.repo,
        &state,
        &act,
        world.now(),
        &world.ident(&world.ann),
        &world.ann.signer,
    )
    .unwrap();
    let info = world.repo.commit(good.commit).unwrap();
    let path = "machines/home/w1/status.yaml";
    let status =
        String::from_utf8(state.tree.read(path).unwrap().unwrap()).unwrap().replace("turn: 1", "turn: 9");
    let evil = world.write(
        Some(good.commit),
        &[TreeEdit::write(path, status)],
        &info.message,
        Some(&world.ann),
        &[state.commit],
    );
    world.repo.force_ref(STATE, evil).unwrap();
    match world.try_tick() {
        Err(Trouble::Halt { code, message }) => {
            assert_eq!(code, "state-untrusted");
            assert!(message.contains(path), "{message}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_foreign_commit_on_the_state_branch_is_a_breach() {
    let mut world = World::adopted();
    let good = world.state().commit;
    for who in [None, Some(&world.mallory), Some(&world.root)] {
        let edits = [TreeEdit::write("releases/00000099.yaml", "format: 1\n")];
        let sequence = world.state().sequence() + 1;
        let message = format!("A lie\n\nBronzeward-Format: 1\nBronzeward-Sequence: {sequence}\n");
        let lie = world.write(Some(good), &edits, &message, who, &[good]);
        world.repo.force_ref(STATE, lie).unwrap();
        let mut engine = world.open(world.setup(), "another");
        match engine.tick(&Default::default()) {
            Err(Trouble::Halt { code, .. }) => assert_eq!(code, "state-untrusted"),
            other => panic!("{other:?}"),
        }
        drop(engine);
        world.repo.force_ref(STATE, good).unwrap();
    }
    world.tick();
}

#[test]
fn a_state_branch_that_is_gone_or_went_back_is_named() {
    let mut world = World::adopted();
    let old = world.genesis;
    let tip = world.state().commit;
    world.repo.force_ref(STATE, old).unwrap();
    assert_eq!(world.halt(), "state-rewound");
    world.restart();
    assert_eq!(world.halt(), "state-rewound");
    world.repo.force_ref(STATE, tip).unwrap();
    world.tick();
    std::fs::remove_file(world.path("remote.git").join(STATE)).unwrap();
    assert_eq!(world.halt(), "state-missing");
    world.restart_empty();
    assert_eq!(world.halt(), "state-missing");
}

#[test]
fn an_empty_disk_knows_how_far_back_the_state_may_go() {
    let mut world = World::adopted();
    let (old, tip) = (world.genesis, world.state().commit);
    world.repo.force_ref(STATE, old).unwrap();
    world.restart_empty();
    let mut setup = world.setup();
    setup.at_least = tip;
    let mut engine = world.open(setup, &world.disk);
    match engine.tick(&Default::default()) {
        Err(Trouble::Halt { code, .. }) => assert_eq!(code, "state-rewound"),
        other => panic!("{other:?}"),
    }
}

/// A commit as a thief of the reconciler's key would write it, with the sequence raised.
fn forge(world: &World, edit: impl FnOnce(&mut Transaction)) -> Trouble {
    let state = world.state();
    let mut transaction = Transaction::on(&state, world.now());
    transaction.say("A lie");
    edit(&mut transaction);
    let author = world.ident(&world.reconciler);
    let lie = transaction.write(&world.repo, &author, &world.reconciler.signer).unwrap();
    world.repo.force_ref(STATE, lie.commit).unwrap();
    let mut engine = world.open(world.setup(), "another");
    let trouble = engine.tick(&Default::default()).unwrap_err();
    world.repo.force_ref(STATE, state.commit).unwrap();
    trouble
}

fn untrusted(world: &World, rule: &str, edit: impl FnOnce(&mut Transaction)) {
    let trouble = forge(world, edit).to_string();
    assert!(trouble.starts_with("state-untrusted") && trouble.contains(rule), "{rule}: {trouble}");
}

#[test]
fn the_reconcilers_key_alone_moves_no_turn_no_governance_and_no_release() {
    let mut world = World::adopted();
    world.freeze(&world.ann, "all");
    world.change(&super::labels(&world, "a"));
    world.quiet();
    let evil =
        world.draft(&world.mallory, &[TreeEdit::write("bronzeward.yaml", world.repository_yaml() + "\n")]);
    let digest = world.intent_of(evil).unwrap().governance.digest;
    let release = world.state().releases.values().next_back().unwrap().clone();
    let status = world.status("w1");
    untrusted(&world, "governance", |t| {
        let governed = &mut t.installation().governed;
        (governed.commit, governed.digest) = (evil.to_string(), digest);
        governed.turn += 1;
        // the old rule asked for any release beside it
        let detail = Some("touched".to_owned());
        let mut touched = release.clone();
        touched.entries[0].detail = detail;
        t.set_release(touched);
    });
    untrusted(&world, "releases/", |t| {
        let mut other = release.clone();
        other.approvers[0].principal = "bob@example.org".into();
        t.set_release(other);
    });
    untrusted(&world, "releases/", |t| {
        let mut longer = release.clone();
        longer.expires = jiff::Timestamp::MAX;
        t.set_release(longer);
    });
    untrusted(&world, "releases/", |t| {
        let mut awake = t.releases().values().next().unwrap().clone();
        awake.entries[0].state = EntryState::Approved;
        t.set_release(awake);
    });
    untrusted(&world, "status.yaml", |t| {
        let mut turned = status.clone();
        turned.turn += 1;
        t.set_status(turned);
    });
    untrusted(&world, "status.yaml", |t| {
        let mut applied = status.clone();
        applied.applied.as_mut().unwrap().target.endpoint = "10.0.0.99:50000".into();
        t.set_status(applied);
    });
    untrusted(&world, "commits an entry of home/w1", |t| {
        let mut done = release.clone();
        done.entries[0].state = EntryState::Committed;
        t.set_release(done);
    });
    untrusted(&world, "seen of main", |t| t.installation().seen.main = world.anchor.to_string());
    // what the reconciler itself writes goes on
    world.unfreeze(&world.ann, "all");
    world.quiet();
    assert_eq!(world.sends().len(), 1, "{:?}", world.last);
}

/// The reconciler's key writes a release that nobody who may approve signed.
#[test]
fn a_forged_release_is_never_counted() {
    for name in [None, Some("ann@example.org")] {
        let mut world = World::adopted();
        world.publish(Some(&world.mallory), &super::labels(&world, "evil"));
        world.quiet();
        let tree = world.repo.commit(world.main()).unwrap().tree;
        let saying = Saying { name: name.map(str::to_owned), ..Saying::default() };
        let forged = world.say(&world.mallory, world.plan_tree(tree), world.main(), &saying);
        let approved = Approval::parse_kept(&forged.trailers).unwrap().unwrap();
        let state = world.state();
        let mut transaction = Transaction::on(&state, world.now());
        transaction.say("A lie");
        let (sequence, plan) = (transaction.sequence(), forged.plan.clone());
        transaction.keep_statement(sequence, &plan.to_bytes(), &forged.trailers);
        let mut release = state.releases.values().next_back().unwrap().clone();
        release.sequence = sequence;
        release.approvals = vec![forged.id.clone()];
        release.plan = plan.digest();
        release.expires = approved.statement.expires;
        release.approvers = vec![Approver {
            principal: name.unwrap_or("mallory@example.org").to_owned(),
            key: world.mallory.fingerprint(),
            approval: forged.id.clone(),
        }];
        release.entries.truncate(1);
        release.entries[0].digest = plan.entry_digest(&plan.entries[0]);
        release.entries[0].subject = "home/w1".into();
        release.entries[0].operation = "apply".into();
        release.entries[0].state = EntryState::Approved;
        release.entries[0].contributors.clear();
        transaction.set_release(release);
        let author = world.ident(&world.reconciler);
        let lie = transaction.write(&world.repo, &author, &world.reconciler.signer).unwrap();
        world.repo.force_ref(STATE, lie.commit).unwrap();
        assert_eq!(world.halt(), "state-untrusted", "{name:?}");
        assert!(world.sends().is_empty());
    }
}
