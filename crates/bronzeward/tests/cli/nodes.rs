//! Commands that read a node, and nodes that do not let themselves be read.

use bronzeward_testkit::node::{Cluster, Role};

use crate::stand::{Ran, Stand};

fn import(stand: &Stand, talosconfig: &str, more: &[&str]) -> Ran {
    let mut args = vec!["import", "w1", "--talosconfig", talosconfig];
    args.extend(more);
    stand.run(&args)
}

#[test]
fn import_says_why_a_node_cannot_be_read_and_writes_nothing() {
    let mut stand = Stand::begun();
    let head = stand.git(&["rev-parse", "HEAD"]);
    let admin = stand.talosconfig(Role::Admin);
    let reader = import(&stand, &stand.talosconfig(Role::Reader), &[]);
    reader.complains(2, &["refused to show its configuration", "check the roles"]);
    let other = Cluster::local("home");
    let wrong = import(&stand, &other.talosconfig(Role::Admin).display().to_string(), &[]);
    wrong.complains(2, &["certificate"]);
    import(&stand, &admin, &["--mark", "not a path"]).refuses(&["`not a path`"]);
    import(&stand, &admin, &["--mark", "v1alpha1:/machine/nowhere", "--opaque", "mark"])
        .refuses(&["/machine/nowhere"]);
    stand.run(&["import", "w9", "--talosconfig", &admin]).refuses(&["no machine `w9`", "home/cp1, home/w1"]);
    stand.run(&["import", "w1"]).refuses(&["--talosconfig FILE"]);
    import(&stand, &admin, &["--branch", "main"]).refuses(&["--branch NAME"]);
    stand.write("bronzeward.yaml", "changed: true\n");
    import(&stand, &admin, &[]).refuses(&["not committed"]);
    stand.git(&["checkout", "-q", "bronzeward.yaml"]);

    // another machine answers at the address
    stand.draft("moved");
    let file = "clusters/home/machines/w1.yaml";
    let (w1, cp1) = (stand.worker.address().to_string(), stand.control.address().to_string());
    stand.write(file, &stand.read(file).replace(&w1, &cp1));
    stand.commit("Point w1 at another machine");
    import(&stand, &admin, &["--opaque", "mark"]).refuses(&["identity-mismatch", "`w1`"]);
    stand.git(&["switch", "-q", "main"]);

    stand.worker.kill();
    import(&stand, &admin, &["--branch", "late"]).complains(2, &[&w1]);
    assert_eq!(stand.git(&["rev-parse", "main"]), head);
    for branch in ["import-w1", "late"] {
        // a branch may be there; what was read is on none
        let tree = stand.git(&["ls-tree", "-r", "--name-only", "main"]);
        assert!(!tree.contains("bases/"), "{branch}");
    }
    assert_eq!(stand.git(&["status", "--porcelain"]), "");
    assert!(stand.control.applies().is_empty());
}

#[test]
fn adopt_and_revert_need_a_drift() {
    let (stand, _reconciler) = Stand::adopted();
    let admin = stand.talosconfig(Role::Admin);
    stand.run(&["adopt", "w1", "--talosconfig", &admin]).refuses(&["No drift is open", "`home/w1`"]);
    stand.run(&["revert", "w1", "--yes"]).refuses(&["drift"]);
    stand.run(&["adopt", "w9", "--talosconfig", &admin]).refuses(&["no machine `w9`"]);
    stand.run(&["revert", "w9", "--yes"]).refuses(&["no machine `w9`"]);
}
