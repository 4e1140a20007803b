use std::net::{IpAddr, Ipv4Addr};

use bronzeward_testkit::node::{NodeOptions, Role, TestNode};
use talos_client::{Facts, MachineType, Stage, Unmet};

use super::{CLUSTER, dial, start};

#[tokio::test(flavor = "multi_thread")]
async fn a_control_plane_node_says_who_it_is() {
    let mut options = NodeOptions::new("cp-1", "controlplane");
    options.uuid = "4C4C4544-0042-4D10-8051-C4C04F503132".into();
    options.schematic = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba".into();
    let mut node = TestNode::start(&CLUSTER, options);
    let boot_id = node.inspect().boot_id;
    let config = String::from_utf8(CLUSTER.config("controlplane")).unwrap();
    let cluster_id = config.lines().find_map(|line| line.strip_prefix("    id: ")).unwrap();
    assert_eq!(
        dial(&node, Role::Admin).await.facts().await.unwrap(),
        Facts {
            node_id: Some("id-of-cp-1".into()),
            cluster_id: Some(cluster_id.into()),
            cluster_name: Some("demo".into()),
            smbios_uuid: Some("4c4c4544-0042-4d10-8051-c4c04f503132".into()),
            machine_type: Some(MachineType::ControlPlane),
            talos_version: "v1.13.9".into(),
            platform: Some("metal".into()),
            schematic: Some("376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba".into()),
            stage: Stage::Running,
            ready: true,
            unmet: vec![],
            hostname: Some("cp-1".into()),
            boot_id: Some(boot_id),
            addresses: vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
        }
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_without_uuid_that_is_not_ready() {
    let mut options = NodeOptions::new("unready", "worker");
    options.uuid = "00000000-0000-0000-0000-000000000000".into();
    let mut node = TestNode::start(&CLUSTER, options);
    node.stage("upgrading", false, &[("nodeReady", "node \u{1b}[31mnot ready")]);
    let facts = dial(&node, Role::Reader).await.facts().await.unwrap();
    assert_eq!(facts.machine_type, Some(MachineType::Worker));
    assert_eq!((facts.smbios_uuid, facts.schematic), (None, None));
    assert_eq!((facts.stage, facts.ready), (Stage::Upgrading, false));
    assert_eq!(facts.unmet, [Unmet { name: "nodeReady".into(), reason: "node [31mnot ready".into() }]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reboot_shows_in_the_boot_id() {
    let mut node = start("booted", "worker");
    let before = dial(&node, Role::Admin).await.facts().await.unwrap();
    node.reboot(false);
    let after = dial(&node, Role::Admin).await.facts().await.unwrap();
    assert!(before.boot_id.is_some() && before.boot_id != after.boot_id);
    assert_eq!(before.node_id, after.node_id);
}
