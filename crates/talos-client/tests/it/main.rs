//! The client against a node on Talos' own library, and against files that Talos' own generator wrote.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod apply;
mod dial;
mod facts;
mod talosconfig;
mod talosctl;
mod watch;

use std::sync::LazyLock;
use std::time::Duration;

use bronzeward_testkit::node::{Cluster, NodeOptions, Role, TestNode};
use talos_client::{Access, Deadlines, Dial, Dialer, Endpoint, Node, NodeError, Talosconfig};

/// Long enough for a busy machine; no test waits for it to pass.
const LONG: Duration = Duration::from_secs(30);

/// One cluster for all tests: every test has machines of its own.
static CLUSTER: LazyLock<Cluster> = LazyLock::new(|| Cluster::local("demo"));

fn start(name: &str, kind: &str) -> TestNode {
    TestNode::start(&CLUSTER, NodeOptions::new(name, kind))
}

fn access(role: Role) -> Access {
    access_of(&CLUSTER, role)
}

fn access_of(cluster: &Cluster, role: Role) -> Access {
    Talosconfig::parse(&cluster.talosconfig_text(role)).unwrap().context(None).unwrap().access
}

fn dialer() -> Dialer {
    Dialer::new(Deadlines { connect: LONG, request: LONG })
}

async fn try_dial(node: &TestNode, access: &Access) -> Result<Box<dyn Node>, NodeError> {
    dialer().dial(&Endpoint::from(node.address()), access).await
}

async fn dial(node: &TestNode, role: Role) -> Box<dyn Node> {
    try_dial(node, &access(role)).await.unwrap()
}

/// A configuration with a line changed that needs no reboot.
fn with_sysctl(config: &[u8], value: &str) -> Vec<u8> {
    let text = String::from_utf8(config.to_vec()).unwrap();
    assert!(text.contains("machine:\n"));
    text.replacen(
        "machine:\n",
        &format!("machine:\n    sysctls:\n        net.core.somaxconn: \"{value}\"\n"),
        1,
    )
    .into_bytes()
}
