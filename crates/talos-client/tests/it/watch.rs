use bronzeward_testkit::node::{Role, talosctl};
use talos_client::{ConfigEvent, ConfigWatch, Mode, NodeError, Which};
use tokio::time::timeout;

use super::{CLUSTER, LONG, dial, start, with_sysctl};

async fn change(watch: &mut ConfigWatch) -> (Which, String) {
    match timeout(LONG, watch.next()).await.unwrap() {
        Some(ConfigEvent::Changed { which, version }) => (which, version),
        other => panic!("{other:?}"),
    }
}

async fn end(watch: &mut ConfigWatch) -> NodeError {
    match timeout(LONG, watch.next()).await.unwrap() {
        Some(ConfigEvent::Ended(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_hand_is_seen() {
    let node = start("watched", "controlplane");
    let client = dial(&node, Role::Admin).await;
    let mut watch = client.watch_config().await.unwrap();
    assert_eq!(change(&mut watch).await, (Which::Active, "1".into()));
    let patch = r#"{"machine":{"sysctls":{"kernel.panic":"10"}}}"#;
    let mut command = talosctl(&CLUSTER.talosconfig(Role::Admin), node.address());
    assert!(
        command.args(["patch", "mc", "--mode", "no-reboot", "-p", patch]).output().unwrap().status.success()
    );
    let mut seen = [change(&mut watch).await, change(&mut watch).await];
    seen.sort_by_key(|(which, _)| *which == Which::Persistent);
    assert_eq!(seen, [(Which::Active, "2".into()), (Which::Persistent, "1".into())]);
    assert!(
        String::from_utf8(client.config().await.unwrap().active.to_vec()).unwrap().contains("kernel.panic")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_begins_again_when_its_bookmark_is_invalid() {
    let mut node = start("rebooted", "worker");
    let client = dial(&node, Role::Admin).await;
    let wanted = with_sysctl(&CLUSTER.config("worker"), "1");
    let mut watch = client.watch_config().await.unwrap();
    assert_eq!(change(&mut watch).await, (Which::Active, "1".into()));
    client.apply(&wanted, Mode::Staged, false, LONG).await.unwrap();
    assert_eq!(change(&mut watch).await, (Which::Persistent, "1".into()));
    node.reboot(true);
    assert_eq!(change(&mut watch).await, (Which::Active, "1".into()));
    assert_eq!(*client.config().await.unwrap().active, wanted);
    client.apply(&CLUSTER.config("worker"), Mode::NoReboot, false, LONG).await.unwrap();
    let versions = [change(&mut watch).await, change(&mut watch).await];
    assert!(versions.contains(&(Which::Active, "2".into())), "{versions:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_says_when_the_node_is_gone() {
    let mut node = start("killed", "worker");
    let client = dial(&node, Role::Admin).await;
    let mut watch = client.watch_config().await.unwrap();
    change(&mut watch).await;
    node.kill();
    assert!(matches!(end(&mut watch).await, NodeError::Lost { .. }));
    assert!(watch.next().await.is_none());
}
