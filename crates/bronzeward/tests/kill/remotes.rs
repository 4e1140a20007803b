//! Remotes that lose things, and remotes that are gone for a while.

use crate::outcome::{Expected, applied};
use crate::stand::{Reconciler, STATE, Stand};

#[test]
fn a_deleted_state_branch_stops_everything_until_it_is_pushed_again() {
    let (mut stand, mut reconciler) = Stand::adopted();
    let tip = stand.state_tip();
    stand.git(&["fetch", "-q", "origin", &format!("+{STATE}:{STATE}")]);
    stand.git_remote(&["update-ref", "-d", STATE]);
    let said = reconciler.wait_trouble("state-missing");
    assert!(said.contains("push back the last commit"), "{said}");
    let status = stand.run(&["status"]);
    status.complains(2, &["state-missing", "`bronzeward init` makes it once"]);
    Reconciler::ends(&stand, &stand.settings(), &["--once"]).refuses(&["Another process runs on"]);
    assert!(reconciler.runs(), "a reconciler waits for a person");
    stand.git(&["push", "-q", "origin", &format!("{tip}:{STATE}")]);
    reconciler.wait_ready();
    stand.draft_label("labels", "a");
    stand.approve("labels");
    applied(&mut stand, reconciler, "a", &Expected { attempts: 1, received: (1, 1) });
}

#[test]
fn a_state_branch_that_went_back_is_named_and_nothing_is_sent() {
    let (mut stand, reconciler) = Stand::adopted();
    let tip = stand.state_tip();
    stand.git(&["fetch", "-q", "origin", &format!("+{STATE}:{STATE}")]);
    stand.git_remote(&["update-ref", STATE, &format!("{tip}~2")]);
    let said = reconciler.wait_trouble("state-rewound");
    assert!(said.contains("nothing is sent until"), "{said}");
    // and a process that starts knows it from its own disk
    reconciler.stop();
    let ran = Reconciler::ends(&stand, &stand.settings(), &["--once"]);
    ran.refuses(&["state-rewound"]);
    stand.git(&["push", "-q", "origin", &format!("{tip}:{STATE}")]);
    let reconciler = stand.start();
    stand.draft_label("labels", "b");
    stand.approve("labels");
    applied(&mut stand, reconciler, "b", &Expected { attempts: 1, received: (1, 1) });
}

#[test]
fn a_rewound_main_is_named_and_nothing_is_sent_until_it_is_back() {
    let (mut stand, reconciler) = Stand::adopted();
    let main = stand.git_remote(&["rev-parse", "main"]);
    stand.git_remote(&["update-ref", "refs/heads/main", "main~1"]);
    let said = crate::stand::eventually("the rewind is named", || {
        let (_, body) = reconciler.ask("/api/v1/status");
        body.contains("main-rewound").then_some(body)
    });
    assert!(!said.is_empty());
    stand.git_remote(&["update-ref", "refs/heads/main", &main]);
    stand.draft_label("labels", "c");
    stand.approve("labels");
    applied(&mut stand, reconciler, "c", &Expected { attempts: 1, received: (1, 1) });
}

#[test]
fn a_remote_that_is_gone_for_a_while_costs_nothing() {
    let (mut stand, mut reconciler) = Stand::adopted();
    let tip = stand.state_tip();
    let away = stand.path("away.git");
    std::fs::rename(stand.remote(), &away).unwrap();
    let said = reconciler.wait_trouble("remote.git");
    assert!(said.contains("Cannot fetch from"), "{said}");
    stand.run(&["status"]).complains(2, &["remote.git"]);
    assert!(reconciler.runs());
    std::fs::rename(&away, stand.remote()).unwrap();
    reconciler.wait_ready();
    assert_eq!(stand.state_tip(), tip, "being away is nothing to record");
    stand.draft_label("labels", "d");
    stand.approve("labels");
    applied(&mut stand, reconciler, "d", &Expected { attempts: 1, received: (1, 1) });
}

#[test]
fn an_empty_disk_is_filled_from_the_remote_and_the_nodes() {
    let (mut stand, reconciler) = Stand::adopted();
    reconciler.kill();
    std::fs::remove_dir_all(stand.settings().with_file_name("disk")).unwrap();
    stand.draft_label("labels", "e");
    stand.approve("labels");
    let reconciler = stand.start();
    applied(&mut stand, reconciler, "e", &Expected { attempts: 1, received: (1, 1) });
}
