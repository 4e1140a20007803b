//! Hands on the state branch itself.

use bronzeward_git::TreeEdit;
use bronzeward_reconcile::trouble::Trouble;
use bronzeward_state::act::Act;

use crate::world::{STATE, World};

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
