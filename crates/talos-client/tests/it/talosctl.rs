//! The real `talosctl` works against the node that the other tests trust.

use std::process::Output;

use bronzeward_testkit::node::{Role, TestNode, talosctl};

use super::{CLUSTER, start};

fn run(node: &TestNode, role: Role, args: &[&str]) -> Output {
    talosctl(&CLUSTER.talosconfig(role), node.address()).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn ok(output: &Output) -> String {
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn it_reads_patches_and_applies() {
    for kind in ["controlplane", "worker"] {
        let mut node = start(&format!("ctl-{kind}"), kind);
        assert!(ok(&run(&node, Role::Admin, &["version"])).contains("Tag:         v1.13.9"));
        assert!(ok(&run(&node, Role::Admin, &["get", "machineconfig"])).contains("v1alpha1"));
        assert!(ok(&run(&node, Role::Admin, &["get", "rd"])).contains("machineconfigs.config.talos.dev"));

        let patch = r#"{"machine":{"sysctls":{"kernel.panic":"10"}}}"#;
        ok(&run(&node, Role::Admin, &["patch", "mc", "--mode", "no-reboot", "-p", patch]));
        assert!(text(&node.inspect().active).contains("kernel.panic: \"10\""));
        assert_eq!(node.inspect().disk, node.inspect().active);

        let file = CLUSTER.path(&format!("{kind}.yaml"));
        let output =
            run(&node, Role::Admin, &["apply-config", "--dry-run", "--file", file.to_str().unwrap()]);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(output.status.success() && said.contains("-        kernel.panic: \"10\""), "{said}");
        assert!(text(&node.inspect().active).contains("kernel.panic"));
    }
}

#[test]
fn a_reader_is_denied_what_is_sensitive() {
    let mut node = start("ctl-reader", "controlplane");
    assert!(ok(&run(&node, Role::Reader, &["version"])).contains("v1.13.9"));
    assert!(ok(&run(&node, Role::Reader, &["get", "machinestatus"])).contains("running"));
    let file = CLUSTER.path("controlplane.yaml");
    for args in [&["get", "machineconfig"][..], &["apply-config", "--file", file.to_str().unwrap()]] {
        let output = run(&node, Role::Reader, args);
        assert!(!output.status.success() && text(&output.stderr).contains("PermissionDenied"), "{output:?}");
    }
    assert_eq!(node.inspect().active, CLUSTER.config("controlplane"));
}
