//! What must hold in the end, however it came.

use serde_json::Value;

use crate::stand::{Reconciler, Stand};

/// How often each thing must stand in the timeline of the worker, for the one change of a test.
pub struct Expected {
    /// How many attempts were recorded.
    pub attempts: usize,
    /// How often the node received bytes, at least and at most.
    pub received: (usize, usize),
}

/// The change is applied: the node received the same bytes, and only so often; the timeline is whole; the chain is
/// sound; and nothing more is sent afterwards.
#[track_caller]
pub fn applied(stand: &mut Stand, reconciler: Reconciler, label: &str, expected: &Expected) {
    let status = stand.wait_revision("w1", 2);
    let release = status["releases"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(release["entries"][0]["state"], "completed", "{release:#}");
    same_bytes(stand, label, expected.received);
    timeline(stand, expected.attempts);
    sound(stand);
    // whoever looks again finds nothing to do
    let tip = stand.state_tip();
    reconciler.stop();
    Reconciler::ends(stand, &stand.settings(), &["--once"]).ends(0);
    assert_eq!(stand.state_tip(), tip, "a settled world costs no commit");
    same_bytes(stand, label, expected.received);
}

#[track_caller]
fn same_bytes(stand: &mut Stand, label: &str, (least, most): (usize, usize)) {
    let received = stand.worker.applies();
    let count = received.len();
    assert!((least..=most).contains(&count), "the worker received {count} applies, not {least} to {most}");
    for one in &received {
        assert_eq!(one.data, received[0].data, "other bytes were sent");
        assert_eq!((one.mode.as_str(), one.dry_run), ("NO_REBOOT", false));
    }
    let text = String::from_utf8(received[0].data.clone()).unwrap();
    assert!(text.contains(&format!("example.org/tier: {label}")), "the change is not in what was sent");
    assert_eq!(stand.worker.inspect().active, received[0].data, "what runs is not what was sent");
    assert!(stand.control.applies().is_empty(), "the control plane received something");
}

/// The kinds of a timeline, in order.
pub fn kinds(log: &[Value]) -> Vec<&str> {
    log.iter().map(|entry| entry["kind"].as_str().unwrap()).collect()
}

#[track_caller]
fn timeline(stand: &Stand, attempts: usize) {
    let log = stand.timeline("w1");
    let kinds = kinds(&log);
    let count = |kind: &str| kinds.iter().filter(|one| **one == kind).count();
    assert_eq!(count("committed"), 1, "{kinds:?}");
    assert_eq!(count("attempt"), attempts, "{kinds:?}");
    assert_eq!((count("verified"), count("applied")), (1, 1), "{kinds:?}");
    assert_eq!(count("drift-opened"), 0, "our own change is no drift: {kinds:?}");
    let place = |kind: &str| kinds.iter().position(|one| *one == kind).unwrap();
    assert!(place("committed") <= place("attempt") && place("attempt") < place("applied"), "{kinds:?}");
    let sequences: Vec<u64> = log.iter().map(|entry| entry["sequence"].as_u64().unwrap()).collect();
    assert!(sequences.is_sorted(), "{sequences:?}");
}

/// `verify` finds the chain sound, and no commit of main refused.
#[track_caller]
pub fn sound(stand: &Stand) {
    let settings = stand.settings().display().to_string();
    let ran = stand.run(&["verify", "--settings", &settings]).ends(0);
    assert!(ran.stdout.contains("state chain: sound"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("refused") && !ran.stdout.contains("unapproved"), "{}", ran.stdout);
    let count = stand.git_remote(&["rev-list", "--count", crate::stand::STATE]);
    assert!(ran.stdout.contains(&format!("sound, {count} commits")), "{}", ran.stdout);
}
