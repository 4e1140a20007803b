//! `kill -9` at each point of dispatch: the next start goes on, nothing is sent twice that was not allowed.

use bronzeward_testkit::node::Fault;

use crate::outcome::{Expected, applied};
use crate::stand::{Hook, Stand, eventually};

/// The push that holds commitment and first attempt.
const COMMITMENT: &str = "apply committed";
/// The push that records the answer.
const ANSWER: &str = "Bronzeward-Kind: answer";
/// The push that makes it Applied.
const TERMINAL: &str = "Bronzeward-Kind: applied";

#[test]
fn before_the_commitment_is_pushed_and_it_never_lands() {
    let (mut stand, reconciler) = Stand::adopted();
    let hold = stand.hold(Hook::Before, COMMITMENT);
    stand.draft_label("labels", "a");
    stand.approve("labels");
    hold.reached();
    let tip = stand.state_tip();
    reconciler.kill();
    hold.refuse();
    assert_eq!(stand.state_tip(), tip, "the push did not land");
    assert!(stand.worker.applies().is_empty());
    let reconciler = stand.start();
    applied(&mut stand, reconciler, "a", &Expected { attempts: 1, received: (1, 1) });
}

#[test]
fn before_the_commitment_is_pushed_and_it_lands_behind_the_dead_one() {
    let (mut stand, reconciler) = Stand::adopted();
    let hold = stand.hold(Hook::Before, COMMITMENT);
    stand.draft_label("labels", "b");
    stand.approve("labels");
    hold.reached();
    let tip = stand.state_tip();
    reconciler.kill();
    hold.release();
    eventually("the push of the dead one lands", || (stand.state_tip() != tip).then_some(()));
    assert!(stand.worker.applies().is_empty(), "nobody was there to send");
    let reconciler = stand.start();
    // the recorded attempt counts, though nobody sent it: nobody can know that
    applied(&mut stand, reconciler, "b", &Expected { attempts: 2, received: (1, 1) });
}

#[test]
fn after_the_push_has_landed_and_before_the_answer_is_seen() {
    let (mut stand, reconciler) = Stand::adopted();
    let hold = stand.hold(Hook::After, COMMITMENT);
    stand.draft_label("labels", "c");
    stand.approve("labels");
    hold.reached();
    reconciler.kill();
    hold.release();
    assert!(stand.worker.applies().is_empty(), "it is sent only when the push is known to have landed");
    let reconciler = stand.start();
    applied(&mut stand, reconciler, "c", &Expected { attempts: 2, received: (1, 1) });
}

#[test]
fn after_the_send_and_before_the_node_has_answered() {
    let (mut stand, reconciler) = Stand::adopted();
    stand.worker.fault(&Fault { delay_ms: 1500, ..Fault::default() });
    stand.draft_label("labels", "d");
    stand.approve("labels");
    eventually("the apply is pending", || {
        let received = stand.worker.applies();
        (received.len() == 1 && received[0].outcome == "pending").then_some(())
    });
    reconciler.kill();
    let reconciler = stand.start();
    // it lands behind the dead one, before anything may follow it
    applied(&mut stand, reconciler, "d", &Expected { attempts: 1, received: (1, 1) });
}

#[test]
fn after_the_send_and_the_node_is_lost_with_it() {
    let (mut stand, reconciler) = Stand::adopted();
    stand.worker.fault(&Fault { delay_ms: 60_000, ..Fault::default() });
    stand.draft_label("labels", "e");
    stand.approve("labels");
    eventually("the apply is pending", || {
        let received = stand.worker.applies();
        (received.len() == 1 && received[0].outcome == "pending").then_some(received)
    });
    reconciler.kill();
    // a power cut: what was pending never lands, and the new process counts from nothing
    stand.worker.restart();
    let reconciler = stand.start();
    applied(&mut stand, reconciler, "e", &Expected { attempts: 2, received: (1, 1) });
}

#[test]
fn after_the_node_has_answered_and_before_the_record() {
    let (mut stand, reconciler) = Stand::adopted();
    let hold = stand.hold(Hook::Before, ANSWER);
    stand.draft_label("labels", "f");
    stand.approve("labels");
    hold.reached();
    assert_eq!(stand.worker.applies().len(), 1);
    reconciler.kill();
    hold.refuse();
    let reconciler = stand.start();
    applied(&mut stand, reconciler, "f", &Expected { attempts: 1, received: (1, 1) });
}

#[test]
fn after_the_record_and_before_it_is_applied() {
    let (mut stand, reconciler) = Stand::adopted();
    let hold = stand.hold(Hook::Before, TERMINAL);
    stand.draft_label("labels", "g");
    stand.approve("labels");
    hold.reached();
    reconciler.kill();
    hold.refuse();
    let reconciler = stand.start();
    applied(&mut stand, reconciler, "g", &Expected { attempts: 1, received: (1, 1) });
}

#[test]
fn at_every_point_one_after_the_other() {
    let (mut stand, mut reconciler) = Stand::adopted();
    stand.draft_label("labels", "h");
    let mut hold = stand.hold(Hook::After, "Bronzeward-Kind: approved");
    stand.approve("labels");
    for (hook, next) in [(Hook::Before, COMMITMENT), (Hook::Before, ANSWER), (Hook::After, TERMINAL)] {
        hold.reached();
        reconciler.kill();
        hold.refuse();
        hold = stand.hold(hook, next);
        reconciler = stand.start();
    }
    hold.reached();
    reconciler.kill();
    hold.release();
    let reconciler = stand.start();
    applied(&mut stand, reconciler, "h", &Expected { attempts: 1, received: (1, 1) });
}
