use std::time::Duration;

use bronzeward_testkit::node::{Cluster, NodeOptions, Role, TestNode};
use talos_client::{Cause, Code, Deadlines, Dial, Dialer, Endpoint, NodeError};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use super::{CLUSTER, LONG, access, access_of, dial, dialer, start, try_dial};

async fn refusal(endpoint: Endpoint) -> NodeError {
    dialer().dial(&endpoint, &access(Role::Admin)).await.err().expect("no node is there")
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = Endpoint::from(listener.local_addr().unwrap());
    drop(listener);
    let error = refusal(endpoint).await;
    let kind = std::io::ErrorKind::ConnectionRefused;
    assert!(matches!(&error, NodeError::Unreachable { cause: Cause::Io(k), .. } if *k == kind), "{error:?}");
    assert!(error.to_string().starts_with(&format!("No connection to the node at {endpoint}; ")));
}

#[tokio::test(flavor = "multi_thread")]
async fn something_else_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = Endpoint::from(listener.local_addr().unwrap());
    let web = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        // until the client has read and hung up
        let mut sink = [0; 1024];
        while tokio::io::AsyncReadExt::read(&mut stream, &mut sink).await.is_ok_and(|n| n > 0) {}
    });
    let error = refusal(endpoint).await;
    assert!(matches!(error, NodeError::NotATalosNode { why: "it does not speak TLS", .. }), "{error:?}");
    web.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_that_says_nothing_is_unreachable_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = Endpoint::from(listener.local_addr().unwrap());
    let hasty = Dialer::new(Deadlines { connect: Duration::from_millis(50), request: LONG });
    let error = hasty.dial(&endpoint, &access(Role::Admin)).await.err().unwrap();
    assert!(matches!(error, NodeError::Unreachable { cause: Cause::Deadline, .. }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_clusters_access_is_refused_on_either_side() {
    let node = start("foreign", "controlplane");
    let stranger = access_of(&Cluster::local("stranger"), Role::Admin);
    let error = try_dial(&node, &stranger).await.err().unwrap();
    assert!(matches!(error, NodeError::Unreachable { cause: Cause::Tls(_), .. }), "{error:?}");

    // this cluster's CA with another cluster's certificate: the node notices, and TLS 1.3 tells it late
    let (ours, theirs) =
        (CLUSTER.talosconfig_text(Role::Admin), Cluster::local("x").talosconfig_text(Role::Admin));
    let ca = |text: &str| text.lines().find(|line| line.contains("ca: ")).unwrap().to_owned();
    let mixed = theirs.replace(&ca(&theirs), &ca(&ours));
    let access = talos_client::Talosconfig::parse(&mixed).unwrap().context(None).unwrap().access;
    let error = try_dial(&node, &access).await.err().unwrap();
    assert!(matches!(error, NodeError::Unreachable { .. }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_sees_who_it_is_and_not_its_configuration() {
    let node = start("readable", "worker");
    let reader = dial(&node, Role::Reader).await;
    let facts = reader.facts().await.unwrap();
    assert_eq!((facts.node_id.as_deref(), facts.boot_id), (Some("id-of-readable"), None));
    for error in [reader.config().await.err().unwrap(), reader.watch_config().await.err().unwrap()] {
        let NodeError::Refused { code: Code::PermissionDenied, message, .. } = error else {
            panic!("{error:?}")
        };
        assert_eq!(message.expose(), "not authorized");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_connection_is_not_replaced() {
    let mut node = start("broken", "worker");
    let client = dial(&node, Role::Admin).await;
    client.config().await.unwrap();
    node.drop_connections();
    // the first call may be the one that notices, and so may have been sent
    let first = client.config().await.err().unwrap();
    assert!(matches!(first, NodeError::Lost { .. } | NodeError::Unreachable { .. }), "{first:?}");
    let second = client.config().await.err().unwrap();
    assert!(matches!(second, NodeError::Unreachable { cause: Cause::Closed, .. }), "{second:?}");
    dial(&node, Role::Admin).await.config().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_node_is_lost_in_time() {
    let mut node = start("silent", "worker");
    let hasty = Dialer::new(Deadlines { connect: LONG, request: Duration::from_millis(50) });
    let client = hasty.dial(&Endpoint::from(node.address()), &access(Role::Admin)).await.unwrap();
    node.silence(true);
    let error = client.config().await.err().unwrap();
    assert!(matches!(error, NodeError::Lost { cause: Cause::Deadline, .. }), "{error:?}");
    assert!(matches!(client.facts().await, Err(NodeError::Lost { cause: Cause::Deadline, .. })));
    node.silence(false);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_with_an_ipv6_address() {
    let mut options = NodeOptions::new("six", "worker");
    options.listen = "[::1]:0".parse().unwrap();
    let node = TestNode::start(&CLUSTER, options);
    let facts = dial(&node, Role::Admin).await.facts().await.unwrap();
    assert_eq!(facts.addresses, ["::1".parse::<std::net::IpAddr>().unwrap()]);
}
