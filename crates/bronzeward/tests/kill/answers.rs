//! Answers that are lost, and answers that say no.

use bronzeward_testkit::node::Fault;

use crate::outcome::{Expected, applied, kinds, sound};
use crate::stand::{Hook, Stand, machine};

/// gRPC's InvalidArgument.
const INVALID_ARGUMENT: u32 = 3;
/// gRPC's FailedPrecondition: the node is busy with another apply.
const FAILED_PRECONDITION: u32 = 9;

#[test]
fn a_connection_that_breaks_after_the_node_has_applied_is_settled_by_looking() {
    let (mut stand, reconciler) = Stand::adopted();
    stand.worker.fault(&Fault { drop: true, ..Fault::default() });
    stand.draft_label("labels", "a");
    stand.approve("labels");
    stand.wait_revision("w1", 2);
    assert!(kinds(&stand.timeline("w1")).contains(&"unresolved"), "a lost answer is not an answer");
    applied(&mut stand, reconciler, "a", &Expected { attempts: 1, received: (1, 1) });
}

#[test]
fn a_node_that_does_not_answer_within_the_deadline_gets_the_same_bytes_again() {
    let (mut stand, reconciler) = Stand::adopted();
    // longer than the deadline, and the apply is refused in the end: nothing landed
    let late = Fault { delay_ms: 2500, code: INVALID_ARGUMENT, message: "late".into(), ..Fault::default() };
    stand.worker.fault(&late);
    stand.draft_label("labels", "b");
    stand.approve("labels");
    applied(&mut stand, reconciler, "b", &Expected { attempts: 2, received: (2, 2) });
}

#[test]
fn what_the_node_rejects_ends_the_entry_and_a_new_approval_sends_it_again() {
    let (mut stand, reconciler) = Stand::adopted();
    let no = Fault { code: INVALID_ARGUMENT, message: "not with me: hunter2".into(), ..Fault::default() };
    stand.worker.fault(&no);
    stand.draft_label("labels", "c");
    stand.approve("labels");
    let rejected = |state: &serde_json::Value| {
        let releases = state["releases"].as_array().unwrap();
        releases.iter().any(|release| release["entries"][0]["state"] == "rejected")
    };
    let status = stand.wait("the entry is rejected", rejected);
    assert_eq!(machine(&status, "w1")["status"]["applied"]["revision"], 1);
    assert!(kinds(&stand.timeline("w1")).contains(&"rejected"));
    let said =
        format!("{}{}", stand.run(&["log", "w1"]).ends(0).stdout, stand.run(&["status"]).ends(0).stdout);
    assert!(!said.contains("hunter2"), "a node's words may hold a value");
    // killed and started again: a used approval fires never again
    reconciler.kill();
    let reconciler = stand.start();
    reconciler.wait_ready();
    assert_eq!(stand.worker.applies().len(), 1);
    stand.run(&["approve", "main", "--only", "--yes"]).ends(0);
    stand.wait_revision("w1", 2);
    let received = stand.worker.applies();
    assert_eq!(received.len(), 2);
    assert_eq!(received[0].data, received[1].data);
    sound(&stand);
}

#[test]
fn a_rejection_that_was_not_recorded_is_asked_for_again() {
    let (mut stand, reconciler) = Stand::adopted();
    let no = Fault { code: INVALID_ARGUMENT, message: "no".into(), ..Fault::default() };
    stand.worker.fault(&no);
    let hold = stand.hold(Hook::Before, "Bronzeward-Kind: rejected");
    stand.draft_label("labels", "d");
    stand.approve("labels");
    hold.reached();
    reconciler.kill();
    hold.refuse();
    let reconciler = stand.start();
    applied(&mut stand, reconciler, "d", &Expected { attempts: 2, received: (2, 2) });
}

#[test]
fn a_busy_node_is_asked_again() {
    let (mut stand, reconciler) = Stand::adopted();
    let message = "another apply configuration is already in progress".into();
    stand.worker.fault(&Fault { code: FAILED_PRECONDITION, message, ..Fault::default() });
    stand.draft_label("labels", "e");
    stand.approve("labels");
    applied(&mut stand, reconciler, "e", &Expected { attempts: 2, received: (2, 2) });
}
