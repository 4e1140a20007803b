//! Policies that cannot work, and the digest that an approval of governance binds.

use bronzeward_intent::{ActorRole, Governance};

use crate::sample::{OTHER_KEY, Tree};

const REPOSITORY: &str = "bronzeward.yaml";
const SIGNERS: &str = "allowed_signers";
const CLUSTER: &str = "clusters/home/cluster.yaml";

#[test]
fn a_policy_that_nobody_can_fulfil() {
    let tree = Tree::sound().replace(REPOSITORY, "governance: 2", "governance: 3");
    tree.refused(
        "bronzeward.yaml:22:17",
        "policy",
        "`policy.approvals.governance` asks for 3 approvers, 2 could",
    );
    let tree = Tree::sound().replace(REPOSITORY, "configuration: 1", "configuration: 0");
    tree.refused("bronzeward.yaml:21:20", "policy", "asks for 0 approvers");
    // an approver without a key is none, and neither is one whose key may sign commits alone
    let ben = |with: &str| {
        let tree = Tree::sound().replace(SIGNERS, "ben@example.org ", with);
        tree.refused("bronzeward.yaml:22:17", "policy", "asks for 2 approvers, 1 could");
    };
    ben("# ");
    ben("ben@example.org namespaces=\"git\" ");
    let both = "ben@example.org namespaces=\"git,bronzeward-approval\" ";
    Tree::sound().replace(SIGNERS, "ben@example.org ", both).load().unwrap();
}

#[test]
fn roles_that_exclude_each_other() {
    let automation = "kind: automation\n      roles: [author";
    for role in ["approver", "recovery-admin"] {
        let tree = Tree::sound().replace(REPOSITORY, automation, &format!("{automation}, {role}"));
        tree.refused(
            "bronzeward.yaml:14:5",
            "policy",
            "`ci@example.org` is automation and holds a role for people",
        );
    }
    let tree = Tree::sound().replace(REPOSITORY, "[reconciler]", "[reconciler, author]");
    tree.refused("bronzeward.yaml:17:5", "policy", "`reconciler@home` is a reconciler and holds other roles");
}

#[test]
fn what_a_role_is_worth_depends_on_the_kind() {
    let governance = Governance::load(&Tree::sound().files()).unwrap();
    assert!(governance.may("ann@example.org", ActorRole::Approver));
    assert!(!governance.may("ben@example.org", ActorRole::RecoveryAdmin));
    assert!(!governance.may("nobody@example.org", ActorRole::Author));
    assert!(governance.may("reconciler@home", ActorRole::Reconciler));
}

#[test]
fn signers() {
    let tree = Tree::sound().append(SIGNERS, &format!("eve@example.org {OTHER_KEY}\n"));
    tree.refused("allowed_signers:4:1", "allowed-signers", "`eve@example.org` is no principal of the policy");
    let tree = Tree::sound().append(SIGNERS, &format!("*@example.org {OTHER_KEY}\n"));
    tree.refused("allowed_signers:4:1", "allowed-signers", "`*@example.org` is not one literal principal");
    let tree = Tree::sound().append(SIGNERS, "ci@example.org valid-after=\"2027\" ssh-ed25519 AAAA\n");
    tree.refused("allowed_signers:4:1", "allowed-signers", "`2027` is no time in UTC");
    let tree =
        Tree::sound().append(SIGNERS, &format!("ci@example.org {OTHER_KEY}\nann@example.org {OTHER_KEY}\n"));
    tree.refused("allowed_signers:5:1", "allowed-signers", "one key is one principal");
}

#[test]
fn one_installation_key() {
    let key = "installation/k0123456789abcdef.age";
    let tree = Tree::sound().write("installation/k0123456789abcde0.age", "x");
    tree.refused("installation:1:1", "missing-file", "2 installation keys are there, one must be");
    Tree::sound().remove(key).refused("installation:1:1", "missing-file", "0 installation keys");
    for odd in
        ["installation/K0123456789abcdef.age", "installation/k0123456789ABCDEF.age", "installation/k1.age"]
    {
        Tree::sound().write(odd, "x").refused(
            &format!("{odd}:1:1"),
            "unknown-file",
            "Only the installation key",
        );
    }
}

#[test]
fn recipients_are_those_who_import_approve_and_reconcile() {
    let tree = Tree::sound()
        .replace(REPOSITORY, "roles: [reconciler]", "roles: [reconciler]\n      recipient: age1reconciler")
        .replace(REPOSITORY, "roles: [approver]", "roles: [approver]\n      recipient: age1ben");
    let governance = Governance::load(&tree.files()).unwrap();
    let expected = [("ben@example.org", "age1ben"), ("reconciler@home", "age1reconciler")];
    assert_eq!(governance.recipients().into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn the_digest_is_that_of_the_format() {
    // computed apart, from the page on formats: SHA-256 of the canonical JSON
    let tree = Tree::sound();
    let sha = |path: &str| {
        let files = tree.files();
        bronzeward_intent::canonical::sha256(files.get(path).unwrap())
    };
    let key = "installation/k0123456789abcdef.age";
    let canonical = format!(
        "{{\"allowed_signers\":\"{}\",\"bronzeward.yaml\":\"{}\",\"{key}\":\"{}\",\"rollout\":{{\"home\":\
         {{\"haltOnFailure\":true,\"order\":[\"workers\",\"controlplanes\"]}}}}}}",
        sha(SIGNERS),
        sha(REPOSITORY),
        sha(key),
    );
    assert_eq!(tree.governed(), bronzeward_intent::canonical::sha256(canonical.as_bytes()));
}

#[test]
fn the_digest_moves_with_every_governed_byte() {
    let before = Tree::sound().governed();
    assert_eq!(before, Tree::sound().governed());
    for changed in [
        Tree::sound().append(REPOSITORY, "# a comment\n"),
        Tree::sound().append(SIGNERS, "\n"),
        Tree::sound().append("installation/k0123456789abcdef.age", "x"),
        Tree::sound()
            .remove("installation/k0123456789abcdef.age")
            .write("installation/k0123456789abcde0.age", "age-encryption.org/v1\n"),
        Tree::sound().replace(CLUSTER, "haltOnFailure: true", "haltOnFailure: false"),
        Tree::sound().replace(CLUSTER, "[workers, controlplanes]", "[controlplanes, workers]"),
    ] {
        assert_ne!(changed.governed(), before);
    }
}

#[test]
fn the_digest_rests_when_configuration_moves() {
    let before = Tree::sound().governed();
    for same in [
        Tree::sound().append("fragments/cluster/ntp.yaml", "    disabled: true\n"),
        Tree::sound().write("fragments/role/new.yaml", "machine: {}\n"),
        Tree::sound().replace("clusters/home/machines/w1.yaml", "10.0.0.11", "10.0.0.12"),
        Tree::sound().replace(CLUSTER, "contract: v1.13", "contract: v1.14"),
        Tree::sound().replace(CLUSTER, "  haltOnFailure: true\n", ""),
        Tree::sound().remove("profiles/workers.yaml"),
        Tree::sound().append("README.md", "more\n"),
    ] {
        assert_eq!(same.governed(), before);
    }
}
