//! Kills at every step, and pushes that are lost without a trace.

use std::time::Duration;

use super::{change, done_once};
use crate::fakes::PushFault;
use crate::world::{W1, World};

/// Kills the engine at every step that touches the world, one world for each, and looks at the end.
fn kill_everywhere(start: fn() -> World, prepare: fn(&World), check: fn(&World)) {
    let count = {
        let mut world = start();
        prepare(&world);
        world.steps.count_again();
        world.quiet();
        check(&world);
        world.steps.names().len()
    };
    assert!(count > 15, "{count}");
    for step in 1..=count {
        let mut world = start();
        prepare(&world);
        world.steps.crash_at(step);
        for _ in 0..20 {
            if world.try_tick().is_err() {
                break;
            }
            world.clock.advance(Duration::from_secs(5));
        }
        if step % 2 == 0 {
            // every other time the disk is lost too
            world.restart_empty();
        }
        world.quiet();
        check(&world);
        world.quiet();
        check(&world);
    }
}

#[test]
fn a_kill_at_any_step_of_a_dispatch_loses_nothing_and_sends_once() {
    kill_everywhere(World::adopted, |world| drop(change(world)), done_once);
}

#[test]
fn a_kill_at_any_step_of_the_beginning_and_an_adoption_loses_nothing() {
    let prepare = |world: &World| {
        world.change(&world.import("w1", W1, None));
    };
    kill_everywhere(World::new, prepare, |world| {
        assert_eq!(world.status("w1").applied.map(|applied| applied.revision), Some(1), "{:?}", world.last);
        assert!(world.sends().is_empty());
    });
}

#[test]
fn a_kill_at_any_step_of_a_revert_loses_nothing_and_sends_once() {
    let start = || {
        let mut world = World::adopted();
        world.patch_node(W1, "rack: r1", "rack: r9");
        world.quiet();
        world
    };
    kill_everywhere(
        start,
        |world| drop(world.revert(&world.ann, "w1")),
        |world| {
            done_once(world);
            assert_eq!(world.status("w1").open_drift, None);
        },
    );
}

/// The control: a build that trusts an unconfirmed push would send although the attempt is not in the history.
#[test]
fn an_attempt_that_is_not_in_the_history_is_never_sent() {
    let mut world = World::adopted();
    change(&world);
    // find the push that carries the attempt, and lose it without a trace
    for at in 0..8 {
        let mut probe = World::adopted();
        change(&probe);
        for _ in 0..at {
            probe.faults.push(PushFault::Slow(Duration::ZERO));
        }
        probe.faults.push(PushFault::LostGone);
        probe.quiet();
        let attempts = probe.kinds("w1").iter().filter(|kind| **kind == "attempt").count();
        assert_eq!(attempts, probe.sends().len(), "every send stands in the history");
    }
    world.quiet();
    done_once(&world);
}
