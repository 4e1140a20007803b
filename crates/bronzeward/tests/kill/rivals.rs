//! More than one process for one shard.

use crate::stand::{Reconciler, Stand};

#[test]
fn a_second_process_says_who_owns_the_shard_and_ends() {
    let stand = Stand::begun();
    let mut first = stand.start();
    first.wait_ready();
    let tip = stand.state_tip();
    let second = stand.write_settings("second.toml", "two", "disk-two");
    for more in [&[] as &[&str], &["--once"]] {
        let ran = Reconciler::ends(&stand, &second, more);
        ran.refuses(&["not-the-owner", "owned by `one`", "(generation 1)", "stop this one"]);
    }
    // under the same name and with the same disk: the disk is taken
    let again = Reconciler::ends(&stand, &stand.settings(), &[]);
    again.refuses(&["Another process runs on", "disk", "state.disk"]);
    assert_eq!(stand.state_tip(), tip, "none of them wrote");
    assert!(first.runs());
    first.wait_ready();
}

#[test]
fn a_process_that_is_replaced_under_its_own_name_is_fenced() {
    let stand = Stand::begun();
    let first = stand.start();
    first.wait_ready();
    // the same name with an empty disk replaces it
    let twin = stand.write_settings("twin.toml", "one", "disk-twin");
    let second = Reconciler::start(&stand, &twin);
    second.wait_ready();
    stand.wait("the second owns the shard", |status| status["owner"]["generation"] == 2);
    first.wait_end(1);
    let said = std::fs::read_to_string(stand.path("reconciler.log")).unwrap();
    assert!(said.contains("fenced: Another process took the shard"), "{said}");
    second.wait_ready();
}

#[test]
fn once_does_what_is_due_and_ends() {
    let stand = Stand::begun();
    let before = stand.state_tip();
    Reconciler::ends(&stand, &stand.settings(), &["--once"]).ends(0);
    let after = stand.state_tip();
    assert_ne!(before, after, "it took the shard");
    Reconciler::ends(&stand, &stand.settings(), &["--once"]).ends(0);
    assert_eq!(stand.state_tip(), after, "and then nothing was due");
}
