//! What happens while a push is on its way: a stop that wins, a host that is slow.

use std::time::{Duration, Instant};

use crate::outcome::{Expected, applied, kinds};
use crate::stand::{Hook, Stand, eventually, machine};

#[test]
fn a_freeze_that_lands_before_the_commitment_stops_it() {
    let (mut stand, reconciler) = Stand::adopted();
    let hold = stand.hold(Hook::Before, "apply committed");
    stand.draft_label("labels", "a");
    stand.approve("labels");
    hold.reached();
    // the reconciler cannot acknowledge while its own push is held
    stand.run(&["freeze", "w1", "--reason", "wait", "--timeout", "0s"]).ends(3);
    hold.release();
    let status =
        stand.wait("the freeze is seen", |status| machine(status, "w1")["status"]["frozen"].is_u64());
    assert!(machine(&status, "w1")["status"]["operation"].is_null(), "{status:#}");
    reconciler.wait_ready();
    assert!(stand.worker.applies().is_empty(), "a frozen machine received something");
    assert!(!kinds(&stand.timeline("w1")).contains(&"committed"));
    stand.run(&["unfreeze", "w1", "--reason", "go on"]).ends(0);
    applied(&mut stand, reconciler, "a", &Expected { attempts: 1, received: (1, 1) });
}

#[test]
fn a_freeze_that_lands_after_the_commitment_never_makes_it_two_sends() {
    let (mut stand, reconciler) = Stand::adopted();
    let hold = stand.hold(Hook::After, "apply committed");
    stand.draft_label("labels", "b");
    stand.approve("labels");
    hold.reached();
    stand.run(&["freeze", "w1", "--reason", "wait", "--timeout", "0s"]).ends(3);
    hold.release();
    stand.wait("the freeze is seen", |status| machine(status, "w1")["status"]["frozen"].is_u64());
    // one point of order: the commitment was there first; it ends, or it is found stopped and waits
    let received = stand.worker.applies().len();
    assert!(received <= 1);
    stand.run(&["unfreeze", "w1", "--reason", "go on"]).ends(0);
    stand.wait_revision("w1", 2);
    let attempts = kinds(&stand.timeline("w1")).iter().filter(|kind| **kind == "attempt").count();
    applied(&mut stand, reconciler, "b", &Expected { attempts, received: (1, 1) });
}

#[test]
fn a_host_that_is_slower_than_a_send_may_be_costs_no_attempt() {
    let (mut stand, reconciler) = Stand::adopted();
    let hold = stand.hold(Hook::After, "apply committed");
    stand.draft_label("labels", "c");
    stand.approve("labels");
    hold.reached();
    // `sendWithin` is 10 s, from the start of the push, which lies before this
    let reached = Instant::now();
    eventually("the time to send is over", || (reached.elapsed() > Duration::from_secs(10)).then_some(()));
    hold.release();
    applied(&mut stand, reconciler, "c", &Expected { attempts: 2, received: (1, 1) });
    assert!(kinds(&stand.timeline("w1")).contains(&"not-sent"));
}
