use std::time::Duration;

use bronzeward_testkit::node::{Fault, Role, TestNode};
use talos_client::{AppliedMode, ApplyError, Cause, Code, ConfigEvent, Mode, NodeError, Which};

use super::{CLUSTER, LONG, dial, start, with_sysctl};

/// Bytes that a re-encoding would not survive.
fn odd(config: &[u8]) -> Vec<u8> {
    let mut bytes = b"# a comment\n---\n".to_vec();
    bytes.extend(with_sysctl(config, "1024"));
    bytes.extend(b"\n# the end, without a line's end");
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_arrive_and_come_back_as_they_are() {
    let mut node = start("exact", "controlplane");
    let client = dial(&node, Role::Admin).await;
    let config = CLUSTER.config("controlplane");
    let read = client.config().await.unwrap();
    assert_eq!(*read.active, config);
    assert_eq!(read.persistent, None);
    assert_eq!(format!("{read:?}").matches(&format!("<{} bytes withheld>", config.len())).count(), 1);

    let wanted = odd(&config);
    let applied = client.apply(&wanted, Mode::NoReboot, false, LONG).await.unwrap();
    assert_eq!(applied.mode, AppliedMode::NoReboot);
    assert_eq!(applied.details.expose(), "Applied configuration without a reboot");
    let again = client.config().await.unwrap();
    assert_eq!(*again.active, wanted);
    assert_eq!(again.persistent.as_deref(), Some(&wanted));
    assert_ne!(again.version, read.version);
    let applies = node.applies();
    assert_eq!(applies.len(), 1);
    assert_eq!(applies[0].data, wanted);
    assert_eq!((applies[0].mode.as_str(), applies[0].outcome.as_str()), ("NO_REBOOT", "OK"));
    assert_eq!(node.inspect().disk, wanted);

    node.restart();
    let client = dial(&node, Role::Admin).await;
    let kept = client.config().await.unwrap();
    assert_eq!((&*kept.active, kept.persistent), (&wanted, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_of_megabytes_survives() {
    let node = start("large", "worker");
    let client = dial(&node, Role::Admin).await;
    let mut wanted = CLUSTER.config("worker");
    for n in 0..60_000 {
        wanted.extend(
            format!("# line {n}: a comment to make it larger than gRPC's default of 4 MiB\r\n").bytes(),
        );
    }
    assert!(wanted.len() > 4 << 20);
    client.apply(&wanted, Mode::NoReboot, false, LONG).await.unwrap();
    assert!(*client.config().await.unwrap().active == wanted);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ok_is_not_yet_on_the_disk() {
    let mut node = start("unwritten", "worker");
    let client = dial(&node, Role::Admin).await;
    node.fault(&Fault { skip_persistence: true, ..Fault::default() });
    let wanted = with_sysctl(&CLUSTER.config("worker"), "32768");
    client.apply(&wanted, Mode::NoReboot, false, LONG).await.unwrap();
    assert_eq!(*client.config().await.unwrap().active, wanted);
    node.reboot(false);
    assert_eq!(*dial(&node, Role::Admin).await.config().await.unwrap().active, CLUSTER.config("worker"));
}

#[tokio::test(flavor = "multi_thread")]
async fn staged_waits_for_the_boot() {
    let mut node = start("staged", "worker");
    let client = dial(&node, Role::Admin).await;
    let (config, wanted) = (CLUSTER.config("worker"), with_sysctl(&CLUSTER.config("worker"), "2048"));
    assert_eq!(client.apply(&wanted, Mode::Staged, false, LONG).await.unwrap().mode, AppliedMode::Staged);
    let read = client.config().await.unwrap();
    assert_eq!((&*read.active, read.persistent.as_deref()), (&config, Some(&wanted)));
    node.reboot(false);
    let read = dial(&node, Role::Admin).await.config().await.unwrap();
    assert_eq!((&*read.active, read.persistent), (&wanted, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_try_goes_back_by_itself() {
    let node = start("tried", "worker");
    let client = dial(&node, Role::Admin).await;
    let config = CLUSTER.config("worker");
    let wanted = with_sysctl(&config, "4096");
    let mut watch = client.watch_config().await.unwrap();
    let applied = client.apply(&wanted, Mode::Try(Duration::from_millis(300)), false, LONG).await.unwrap();
    assert_eq!(applied.mode, AppliedMode::Try);
    assert!(applied.details.expose().ends_with("will be automatically reverted back in 300ms"));
    // what there is, the try, the rollback
    for _ in 0..3 {
        assert!(matches!(watch.next().await, Some(ConfigEvent::Changed { which: Which::Active, .. })));
    }
    let read = client.config().await.unwrap();
    assert_eq!((&*read.active, read.persistent), (&config, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_try_goes_back_to_the_first() {
    let node = start("retried", "worker");
    let client = dial(&node, Role::Admin).await;
    let config = CLUSTER.config("worker");
    let [first, second] = ["1", "2"].map(|value| with_sysctl(&config, value));
    let mut watch = client.watch_config().await.unwrap();
    client.apply(&first, Mode::Try(LONG), false, LONG).await.unwrap();
    client.apply(&second, Mode::Try(Duration::from_millis(100)), false, LONG).await.unwrap();
    // what there is, both tries, one rollback
    for _ in 0..4 {
        assert!(matches!(watch.next().await, Some(ConfigEvent::Changed { which: Which::Active, .. })));
    }
    assert_eq!(*client.config().await.unwrap().active, first);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_changes_nothing_and_shows_a_diff() {
    let node = start("dry", "worker");
    let client = dial(&node, Role::Admin).await;
    let config = CLUSTER.config("worker");
    let dry = client.apply(&with_sysctl(&config, "8192"), Mode::NoReboot, true, LONG).await.unwrap();
    assert!(dry.details.expose().contains("+        net.core.somaxconn: \"8192\""));
    assert!(!format!("{dry:?}").contains("somaxconn"));
    assert_eq!(*client.config().await.unwrap().active, config);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_node_says_no_to() {
    let node = start("strict", "controlplane");
    let client = dial(&node, Role::Admin).await;
    let config = String::from_utf8(CLUSTER.config("controlplane")).unwrap();
    let refusal =
        async |text: &str| client.apply(text.as_bytes(), Mode::NoReboot, false, LONG).await.err().unwrap();

    let unknown = config.replacen("machine:\n", "machine:\n    sysctl: {}\n", 1);
    let ApplyError::Rejected { message, .. } = refusal(&unknown).await else { panic!("no rejection") };
    assert!(message.expose().contains("unknown keys found during decoding"));
    assert!(matches!(refusal("not: talos").await, ApplyError::Rejected { .. }));
    assert!(matches!(refusal("").await, ApplyError::Rejected { .. }));

    let token = config.lines().find_map(|line| line.strip_prefix("    token: ")).unwrap();
    let other_token = config.replacen(token, "abcdef.0123456789abcdef", 1);
    let error = refusal(&other_token).await;
    assert!(!format!("{error:?} {error}").contains("abcdef"));
    let ApplyError::NeedsReboot { message, .. } = error else { panic!("no reboot needed") };
    assert!(message.expose().contains("+    token: abcdef.0123456789abcdef"));
    client.apply(other_token.as_bytes(), Mode::Staged, false, LONG).await.unwrap();

    let reader = dial(&node, Role::Reader).await;
    let error = reader.apply(config.as_bytes(), Mode::NoReboot, false, LONG).await.err().unwrap();
    assert!(matches!(error, ApplyError::Refused { code: Code::PermissionDenied, .. }), "{error:?}");
    let huge = vec![b'#'; 32 << 20];
    let error = client.apply(&huge, Mode::NoReboot, false, LONG).await.err().unwrap();
    assert!(matches!(error, ApplyError::TooLarge { .. }), "{error:?}");
}

async fn faulty(node: &mut TestNode, fault: Fault, deadline: Duration) -> (ApplyError, Vec<u8>) {
    let wanted = with_sysctl(&CLUSTER.config("worker"), "16384");
    node.fault(&fault);
    let client = dial(node, Role::Admin).await;
    (client.apply(&wanted, Mode::NoReboot, false, deadline).await.err().unwrap(), wanted)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_lost_and_the_configuration_is_there() {
    let mut node = start("lost", "worker");
    let (error, wanted) = faulty(&mut node, Fault { drop: true, ..Fault::default() }, LONG).await;
    assert!(matches!(error, ApplyError::Lost { .. }) && error.may_be_applied(), "{error:?}");
    assert_eq!(*dial(&node, Role::Admin).await.config().await.unwrap().active, wanted);
}

#[tokio::test(flavor = "multi_thread")]
async fn unclear_codes_are_lost_whether_it_was_applied_or_not() {
    let mut node = start("unclear", "worker");
    for (code, after) in [(Code::Internal, true), (Code::Unavailable, false), (Code::Unknown, true)] {
        let fault = Fault { code: i32::from(code).unsigned_abs(), after, ..Fault::default() };
        let (error, _) = faulty(&mut node, fault, LONG).await;
        assert!(
            matches!(&error, ApplyError::Lost { cause: Cause::Unclear(c), .. } if *c == code),
            "{error:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_answer_is_lost_and_another_apply_meanwhile_busy() {
    let mut node = start("late", "worker");
    let fault = Fault { delay_ms: 20_000, ..Fault::default() };
    let (error, wanted) = faulty(&mut node, fault, Duration::from_millis(300)).await;
    assert!(matches!(error, ApplyError::Lost { cause: Cause::Deadline, .. }), "{error:?}");
    let client = dial(&node, Role::Admin).await;
    let error = client.apply(&wanted, Mode::NoReboot, false, LONG).await.err().unwrap();
    assert!(matches!(error, ApplyError::Busy { .. }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_inside_an_ok_reply_is_an_error() {
    let mut node = start("inside", "controlplane");
    let fault = Fault {
        code: i32::from(Code::InvalidArgument).unsigned_abs(),
        message: "this does not fit".into(),
        inside_ok: true,
        ..Fault::default()
    };
    let (error, _) = faulty(&mut node, fault, LONG).await;
    let ApplyError::Rejected { message, .. } = error else { panic!("{error:?}") };
    assert_eq!(message.expose(), "this does not fit");
    let fault =
        Fault { code: i32::from(Code::Unavailable).unsigned_abs(), inside_ok: true, ..Fault::default() };
    assert!(matches!(faulty(&mut node, fault, LONG).await.0, ApplyError::Lost { .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apply_after_the_connection_broke_was_not_sent() {
    let mut node = start("gone", "worker");
    let client = dial(&node, Role::Admin).await;
    node.drop_connections();
    // the first question may be the one that notices
    while !matches!(client.config().await, Err(NodeError::Unreachable { .. })) {}
    let config = CLUSTER.config("worker");
    let error = client.apply(&config, Mode::NoReboot, false, LONG).await.err().unwrap();
    assert!(matches!(error, ApplyError::Unreachable { .. }), "{error:?}");
    assert_eq!(node.applies(), []);
}
