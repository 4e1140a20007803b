//! The simulated node and the node on Talos' own library answer the client alike, as far as the simulated one
//! goes.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use bronzeward_sim::{RandomBytes, SimCluster, SimNode, SimOptions};
use bronzeward_testkit::node::{Cluster, NodeOptions, Role, TestNode};
use talos_client::{
    Access, AppliedMode, ApplyError, Cause, Code, ConfigEvent, ConfigWatch, Deadlines, Dial, Dialer,
    Endpoint, MachineType, Mode, Node, NodeError, Stage, Talosconfig, Which,
};
use tokio::time::timeout;

const LONG: Duration = Duration::from_secs(30);
const LOCAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// Bytes that depend on a seed alone.
fn random(mut state: u64) -> RandomBytes {
    Box::new(move |bytes| {
        for byte in bytes {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = u8::try_from(state >> 56).unwrap();
        }
    })
}

#[expect(clippy::disallowed_methods, reason = "certificates must be valid while the test runs")]
fn now() -> SystemTime {
    SystemTime::now()
}

fn sim_cluster(seed: u64) -> SimCluster {
    SimCluster::new("demo", &[LOCAL], now(), random(seed)).unwrap()
}

fn access(talosconfig: &str) -> Access {
    Talosconfig::parse(talosconfig).unwrap().context(None).unwrap().access
}

async fn try_dial(address: SocketAddr, access: &Access) -> Result<Box<dyn Node>, NodeError> {
    let deadlines = Deadlines { connect: LONG, request: LONG };
    Dialer::new(deadlines).dial(&Endpoint::from(address), access).await
}

async fn change(watch: &mut ConfigWatch) -> Which {
    match timeout(LONG, watch.next()).await.unwrap() {
        Some(ConfigEvent::Changed { which, .. }) => which,
        other => panic!("{other:?}"),
    }
}

/// What a node is asked, and answers, whichever it is.
async fn behaves_like_a_node(
    address: SocketAddr,
    admin: &Access,
    reader: &Access,
    config: &str,
    node_id: &str,
) {
    let client = try_dial(address, admin).await.unwrap();
    let facts = client.facts().await.unwrap();
    assert_eq!(facts.node_id.as_deref(), Some(node_id));
    assert_eq!(
        (facts.cluster_name.as_deref(), facts.machine_type),
        (Some("demo"), Some(MachineType::ControlPlane))
    );
    let cluster_id = config.lines().find_map(|line| line.strip_prefix("    id: "));
    assert_eq!(facts.cluster_id.as_deref(), cluster_id);
    assert_eq!((facts.talos_version.as_str(), facts.platform.as_deref()), ("v1.13.9", Some("metal")));
    assert_eq!((facts.stage, facts.ready, facts.unmet.len()), (Stage::Running, true, 0));
    assert_eq!((facts.addresses, facts.hostname.as_deref()), (vec![LOCAL.ip()], Some("cp-1")));
    assert_eq!(facts.boot_id.unwrap().len(), 36);
    assert_eq!(
        (facts.schematic.as_deref(), facts.smbios_uuid.as_deref()),
        (Some("abc"), Some("4c4c4544-0042"))
    );

    let read = client.config().await.unwrap();
    assert_eq!((&*read.active, read.persistent), (&config.as_bytes().to_vec(), None));
    let mut watch = client.watch_config().await.unwrap();
    assert_eq!(change(&mut watch).await, Which::Active);

    let wanted = config.replacen("machine:\n", "machine:\n    sysctls: {a: \"1\"} # why\n", 1).into_bytes();
    let dry = client.apply(&wanted, Mode::NoReboot, true, LONG).await.unwrap();
    assert!(
        dry.details.expose().starts_with("Dry run summary:\nApplied configuration without a reboot (skipped")
    );
    let applied = client.apply(&wanted, Mode::NoReboot, false, LONG).await.unwrap();
    assert_eq!(applied.mode, AppliedMode::NoReboot);
    assert_eq!(applied.details.expose(), "Applied configuration without a reboot");
    let both = [change(&mut watch).await, change(&mut watch).await];
    assert!(both.contains(&Which::Active) && both.contains(&Which::Persistent));
    let read = client.config().await.unwrap();
    assert_eq!((&*read.active, read.persistent.as_deref()), (&wanted, Some(&wanted)));

    let refusal = async |bytes: &[u8]| client.apply(bytes, Mode::NoReboot, false, LONG).await.err().unwrap();
    assert!(matches!(refusal(b"machine: [\n").await, ApplyError::Rejected { .. }));
    assert!(matches!(
        refusal(b"apiVersion: v1alpha1\nkind: KmsgLogConfig\n").await,
        ApplyError::Rejected { .. }
    ));
    let token = config.lines().find_map(|line| line.strip_prefix("    token: ")).unwrap();
    let reboot = config.replacen(token, "abcdef.0123456789abcdef", 1);
    assert!(matches!(refusal(reboot.as_bytes()).await, ApplyError::NeedsReboot { .. }));

    let reading = try_dial(address, reader).await.unwrap();
    assert_eq!(reading.facts().await.unwrap().boot_id, None);
    let denied = reading.config().await.err().unwrap();
    assert!(matches!(denied, NodeError::Refused { code: Code::PermissionDenied, .. }), "{denied:?}");
    let denied = reading.apply(&wanted, Mode::NoReboot, false, LONG).await.err().unwrap();
    assert!(matches!(denied, ApplyError::Refused { code: Code::PermissionDenied, .. }), "{denied:?}");

    let stranger = access(&sim_cluster(99).talosconfig(bronzeward_sim::Role::Admin));
    let error = try_dial(address, &stranger).await.err().unwrap();
    assert!(matches!(error, NodeError::Unreachable { cause: Cause::Tls(_), .. }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_node_on_talos_own_library() {
    let cluster = Cluster::local("demo");
    let config = String::from_utf8(cluster.config("controlplane")).unwrap();
    let mut options = NodeOptions::new("cp-1", "controlplane");
    (options.schematic, options.uuid) = ("abc".into(), "4C4C4544-0042".into());
    let node = TestNode::start(&cluster, options);
    let [admin, reader] = [Role::Admin, Role::Reader].map(|role| access(&cluster.talosconfig_text(role)));
    behaves_like_a_node(node.address(), &admin, &reader, &config, "id-of-cp-1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_simulated_node() {
    let mut cluster = sim_cluster(1);
    let config = cluster.control_plane("cp-1");
    let mut options = SimOptions::new("cp-1");
    (options.schematic, options.uuid) = ("abc".into(), "4C4C4544-0042".into());
    let [admin, reader] = [bronzeward_sim::Role::Admin, bronzeward_sim::Role::Reader]
        .map(|role| access(&cluster.talosconfig(role)));
    let node = SimNode::start(&mut cluster, LOCAL, &config, options).await.unwrap();
    behaves_like_a_node(node.address(), &admin, &reader, &config, "sim-cp-1").await;
    assert_eq!(node.applies().len(), 1);
    assert_eq!(node.applies()[0].bytes, node.config());
    assert!(!format!("{:?}", node.applies()).contains("token"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_behind_the_back_is_seen_and_is_no_apply() {
    let mut cluster = sim_cluster(2);
    let admin = access(&cluster.talosconfig(bronzeward_sim::Role::Admin));
    let (config, other) = (cluster.worker("w-1"), cluster.worker("w-2.example.com"));
    let node = SimNode::start(&mut cluster, LOCAL, &config, SimOptions::new("w")).await.unwrap();
    let client = try_dial(node.address(), &admin).await.unwrap();
    let mut watch = client.watch_config().await.unwrap();
    assert_eq!(change(&mut watch).await, Which::Active);
    node.change_config(&other).unwrap();
    assert_eq!([change(&mut watch).await, change(&mut watch).await], [Which::Persistent, Which::Active]);
    assert_eq!(client.facts().await.unwrap().hostname.as_deref(), Some("w-2.example.com"));
    assert_eq!(*client.config().await.unwrap().active, other.as_bytes());
    assert_eq!(node.applies(), []);
    assert!(node.change_config("machine: {}\n").is_err());
    let error = client.apply(other.as_bytes(), Mode::Staged, false, LONG).await.err().unwrap();
    assert!(matches!(error, ApplyError::Refused { code: Code::Unimplemented, .. }), "{error:?}");
    drop(node);
    assert!(matches!(timeout(LONG, watch.next()).await.unwrap(), Some(ConfigEvent::Ended(_))));
}

#[test]
fn the_same_seed_makes_the_same_cluster() {
    let at = now();
    let make = |seed| SimCluster::new("demo", &[LOCAL], at, random(seed)).unwrap();
    let text =
        |cluster: &SimCluster| cluster.control_plane("a") + &cluster.talosconfig(bronzeward_sim::Role::Admin);
    assert_eq!(text(&make(7)), text(&make(7)));
    assert_ne!(text(&make(7)), text(&make(8)));
}

/// The samples are what Talos' own validation accepts.
#[tokio::test(flavor = "multi_thread")]
async fn talos_accepts_the_samples() {
    let samples = sim_cluster(3);
    let cluster = Cluster::local("demo");
    let admin = access(&cluster.talosconfig_text(Role::Admin));
    for (kind, sample) in [("controlplane", samples.control_plane("cp-1")), ("worker", samples.worker("w-1"))]
    {
        let node = TestNode::start(&cluster, NodeOptions::new(kind, kind));
        let client = try_dial(node.address(), &admin).await.unwrap();
        let applied = client.apply(sample.as_bytes(), Mode::Staged, false, LONG).await.unwrap();
        assert_eq!(applied.warnings, []);
        assert_eq!(*client.config().await.unwrap().persistent.unwrap(), sample.as_bytes());
    }
}
