//! Every way in which a file can be wrong, and what is said.

use bronzeward_intent::Intent;
use bronzeward_intent::finding::Severity;

use crate::sample::Tree;

const W1: &str = "clusters/home/machines/w1.yaml";
const ASSIGN: &str = "clusters/home/assignments/w1.yaml";
const CLUSTER: &str = "clusters/home/cluster.yaml";
const LOCK: &str = "clusters/home/secrets.lock.yaml";
const NTP: &str = "fragments/cluster/ntp.yaml";

#[test]
fn unknown_keys() {
    let tree = Tree::sound().append(W1, "colour: red\n");
    tree.refused(&format!("{W1}:10:1"), "unknown-key", "`colour`; known are apiVersion, kind, name");
    let tree = Tree::sound().replace(W1, "  node: node-w1\n", "  node: node-w1\n  serial: 7\n");
    tree.refused(&format!("{W1}:6:3"), "unknown-key", "`serial`; known are node, uuid");
    let tree = Tree::sound().replace("fragments/cluster/dns.yaml", "description:", "summary:");
    tree.refused("fragments/cluster/dns.yaml:3:1", "unknown-key", "`summary`");
    let tree = Tree::sound().replace(CLUSTER, "  haltOnFailure: true", "  <<: {haltOnFailure: true}");
    tree.refused(&format!("{CLUSTER}:9:3"), "unknown-key", "`<<`");
}

#[test]
fn wrong_types_and_values() {
    for (path, from, to, at, words) in [
        ("bronzeward.yaml", "configuration: 1", "configuration: \"1\"", "21:20", "without quotes"),
        ("bronzeward.yaml", "configuration: 1", "configuration: 01", "21:20", "whole number"),
        ("bronzeward.yaml", "configuration: 1", "configuration: -1", "21:20", "whole number"),
        (
            "bronzeward.yaml",
            "selfApproval: allowed",
            "selfApproval: maybe",
            "23:17",
            "none of allowed, refused",
        ),
        ("bronzeward.yaml", "roles: [approver]", "roles: approver", "13:14", "a list must stand"),
        ("bronzeward.yaml", "roles: [approver]", "roles: [approver, king]", "13:25", "`king` is none of"),
        ("bronzeward.yaml", "{store: age}", "age", "5:10", "a mapping must stand"),
        ("bronzeward.yaml", "{store: age}", "!own {store: age}", "5:15", "tag `!own`"),
        (CLUSTER, "haltOnFailure: true", "haltOnFailure: yes", "9:18", "`true` or `false`"),
        (CLUSTER, "name: home", "name: null", "3:7", "A text must stand here"),
        (CLUSTER, "name: home", "name: [home]", "3:7", "A sequence stands where a text must stand"),
        (CLUSTER, "name: home", "name: Home", "3:7", "`Home` is no name"),
        (CLUSTER, "name: home", "name: !tag home", "3:12", "tag `!tag`"),
        (CLUSTER, "order: [workers, controlplanes]", "order: [workers]", "8:3", "every wave once"),
        (CLUSTER, "[workers, controlplanes]", "[workers, controlplanes, workers]", "8:3", "every wave once"),
        (W1, "platform: metal", "platform: mars", "8:11", "none of metal, cloud, container"),
        (W1, "node: node-w1", "node: \"\"", "5:9", "`node` is empty"),
        (LOCK, "version: 1", "version: 0", "4:28", "Versions count from 1"),
        (LOCK, "machine/token:", "Machine/token:", "4:3", "No secret has this name"),
        (LOCK, "kind: string", "kind: text", "4:37", "none of string"),
    ] {
        Tree::sound().replace(path, from, to).refused(&format!("{path}:{at}"), "wrong-value", words);
    }
}

#[test]
fn a_duration_is_read_or_refused() {
    let defaults =
        |value: &str| Tree::sound().append("bronzeward.yaml", &format!("defaults: {{expires: {value}}}\n"));
    assert_eq!(defaults("36h").load().unwrap().governance.repository.defaults.expires.to_string(), "1d12h");
    defaults("soon").refused("bronzeward.yaml:24:21", "wrong-value", "`soon` is no duration");
}

#[test]
fn missing_keys_and_files() {
    let tree = Tree::sound().replace(W1, "platform: metal\n", "");
    tree.refused(&format!("{W1}:1:1"), "wrong-value", "The key `platform` is missing");
    let tree = Tree::sound().replace(W1, "  node: node-w1\n", "");
    tree.refused(&format!("{W1}:5:3"), "wrong-value", "The key `node` is missing");
    Tree::sound().remove("bronzeward.yaml").refused("bronzeward.yaml:1:1", "missing-file", "missing");
    Tree::sound().remove("allowed_signers").refused("allowed_signers:1:1", "missing-file", "missing");
    let tree = Tree::sound().write("clusters/away/machines/a1.yaml", "name: a1\n");
    let codes: Vec<_> = tree.findings().iter().map(|one| (one.file.clone(), one.code.0)).collect();
    let expected =
        [("clusters/away/cluster.yaml", "missing-file"), ("clusters/away/machines/a1.yaml", "wrong-value")];
    assert_eq!(codes, expected.map(|(file, code)| (file.to_owned(), code)));
}

#[test]
fn keys_that_stand_twice() {
    let tree = Tree::sound().append(W1, "role: worker\n");
    tree.refused(&format!("{W1}:10:1"), "duplicate", "`role` stands twice");
    let tree = Tree::sound().replace("bronzeward.yaml", "ben@example.org:", "\"ann@example.org\":");
    tree.refused("bronzeward.yaml:11:5", "duplicate", "`ann@example.org` stands twice");
}

#[test]
fn unreadable_files() {
    let tree = Tree::sound().write(W1, "name: [a\nrole: worker\n");
    let [finding] = &tree.findings()[..] else { panic!("{:#?}", tree.findings()) };
    assert_eq!((finding.file.as_str(), finding.code.0), (W1, "unreadable"));
    assert!(finding.pos.line == 2 && !finding.help.is_empty(), "{finding}");
    let tree = Tree::sound().write(NTP, "a: &x [1]\nb: *y\n");
    assert_eq!(tree.findings()[0].to_string().split(": ").next(), Some("fragments/cluster/ntp.yaml:2:4"));
    Tree::sound().write(W1, "").refused(&format!("{W1}:1:1"), "wrong-value", "One document must stand here");
}

#[test]
fn one_document_where_one_must_stand() {
    let tree = Tree::sound().append(W1, "---\nkind: Machine\n");
    tree.refused(&format!("{W1}:10:1"), "wrong-value", "One document must stand here");
}

#[test]
fn unknown_formats_and_kinds() {
    for path in
        [W1, CLUSTER, ASSIGN, LOCK, "bronzeward.yaml", "profiles/workers.yaml", "fragments/cluster/dns.yaml"]
    {
        let tree = Tree::sound().replace(path, "bronzeward.dev/v1alpha1", "bronzeward.dev/v2");
        tree.refused(
            &format!("{path}:1:13"),
            "wrong-value",
            "`bronzeward.dev/v2` is none of bronzeward.dev/v1alpha1",
        );
    }
    let tree = Tree::sound().replace(W1, "kind: Machine", "kind: Cluster");
    tree.refused(&format!("{W1}:2:7"), "wrong-value", "`Cluster` is none of Machine");
    let base = "clusters/home/bases/cp1.yaml";
    let tree = Tree::sound().replace(base, "kind: Base", "kind: Fragment");
    tree.refused(&format!("{base}:2:7"), "wrong-value", "`Fragment` is none of Base");
}

#[test]
fn a_header_stands_first_and_alone() {
    let tree = Tree::sound().append(NTP, "---\napiVersion: bronzeward.dev/v1alpha1\nkind: Fragment\n");
    tree.refused(&format!("{NTP}:4:1"), "wrong-value", "A Bronzeward document stands here");
    let dns = "fragments/cluster/dns.yaml";
    let tree = Tree::sound().append(dns, "---\napiVersion: bronzeward.dev/v1alpha1\nkind: Fragment\n");
    tree.refused(&format!("{dns}:8:1"), "wrong-value", "A Bronzeward document stands here");
}

#[test]
fn templates() {
    for (text, at) in [
        ("{{ if .worker }}\nmachine: {}\n{{ end }}\n", "1:1"),
        ("{% if worker %}\nmachine: {}\n{% endif %}\n", "1:1"),
        ("machine:\n  install:\n    disk: {{ .disk }}\n", "3:11"),
        ("machine:\n  time:\n    servers:\n      - {{ ntp }}\n", "4:9"),
        ("machine:\n  time:\n    servers: [{{ ntp }}, a]\n", "3:15"),
    ] {
        Tree::sound().write(NTP, text).refused(&format!("{NTP}:{at}"), "template", "The file is a template");
    }
    let tree = Tree::sound().replace(W1, "endpoint: 10.0.0.11", "endpoint: {{ ip }}");
    tree.refused(&format!("{W1}:7:11"), "template", "The file is a template");
}

#[test]
fn texts_may_hold_templates_of_their_own() {
    let text = "cluster:\n  inlineManifests:\n    - name: a\n      contents: |\n        {{ if .x }}\n        value: {{ .y }}\n\
                machine:\n  env:\n    A: \"{{ a }}\"\n    B: 'x: {{ b }}'\n";
    Tree::sound().write(NTP, text).load().unwrap();
}

#[test]
fn files_where_none_is_expected() {
    for (path, words) in [
        ("fragments/loose.yaml", "A fragment stands in no layer"),
        ("fragments/planet/a.yaml", "`planet` is no layer"),
        ("fragments/role/deep/a.yaml", "is no name"),
        ("fragments/role/a.json", "No such file is expected here"),
        ("fragments/role/Upper.yaml", "`Upper` is no name"),
        ("profiles/notes.md", "No such file is expected here"),
        ("clusters/notes.md", "No such file is expected here"),
        ("clusters/home/notes.md", "No such file is expected here"),
        ("clusters/home/machines/w2.yml", "No such file is expected here"),
        ("clusters/home/secrets/token.age", "No such file is expected here"),
        ("clusters/home/secrets/token/01.age", "No such file is expected here"),
        ("installation/README.md", "Only the installation key may stand here"),
    ] {
        Tree::sound().write(path, "a: 1\n").refused(&format!("{path}:1:1"), "unknown-file", words);
    }
    Tree::sound().write("clusters/Home/cluster.yaml", "a: 1\n").refused(
        "clusters/Home:1:1",
        "unknown-file",
        "`Home`",
    );
    Tree::sound().write("docs/anything.md", "people's own\n").load().unwrap();
}

#[test]
fn names_inside_and_outside() {
    let tree = Tree::sound().replace(W1, "name: w1", "name: w2");
    tree.refused(&format!("{W1}:3:7"), "name-mismatch", "named `w1`, inside stands `w2`");
    let tree = Tree::sound().replace(ASSIGN, "machine: w1", "machine: cp1");
    tree.refused(&format!("{ASSIGN}:3:10"), "name-mismatch", "named `w1`, inside stands `cp1`");
    let tree = Tree::sound().replace(CLUSTER, "name: home", "name: away");
    tree.refused(&format!("{CLUSTER}:3:7"), "name-mismatch", "named `home`, inside stands `away`");
    let tree = Tree::sound().replace("profiles/workers.yaml", "name: workers", "name: others");
    tree.refused("profiles/workers.yaml:3:7", "name-mismatch", "inside stands `others`");
    let base = "clusters/home/bases/cp1.yaml";
    let tree = Tree::sound().replace(base, "name: cp1", "name: cp2");
    tree.refused(&format!("{base}:3:7"), "name-mismatch", "inside stands `cp2`");
}

#[test]
fn one_name_shared_and_own() {
    let own = "clusters/home/fragments/cluster/ntp.yaml";
    let tree = Tree::sound().write(own, "machine: {}\n");
    tree.refused(
        &format!("{own}:1:1"),
        "duplicate",
        "`cluster/ntp` is also shared, in fragments/cluster/ntp.yaml",
    );
    let own = "clusters/home/profiles/workers.yaml";
    let text = "apiVersion: bronzeward.dev/v1alpha1\nkind: Profile\nname: workers\nfragments: {}\n";
    Tree::sound().write(own, text).refused(
        &format!("{own}:3:7"),
        "duplicate",
        "also shared, in profiles/workers.yaml",
    );
}

#[test]
fn references_to_nothing() {
    let missing = |from: &str, to: &str, at: &str, words: &str| {
        Tree::sound().replace(ASSIGN, from, to).refused(
            &format!("{ASSIGN}:{at}"),
            "missing-reference",
            words,
        );
    };
    missing("[workers, local]", "[workers, other, local]", "5:21", "no profile `other`");
    missing("cluster: [ntp]", "cluster: [ntp, chrony]", "7:18", "no fragment `cluster/chrony`");
    missing("    - w1-disk", "    - w1-disk\n    - w1-net", "10:7", "no fragment `override/w1-net`");
    missing("base: shared", "base: other", "4:7", "no base `other`");
    let tree = Tree::sound().replace("profiles/workers.yaml", "[dns]", "[dns, mdns]");
    tree.refused("profiles/workers.yaml:6:18", "missing-reference", "no fragment `cluster/mdns`");
    // a profile that no machine uses is read all the same
    let text =
        "apiVersion: bronzeward.dev/v1alpha1\nkind: Profile\nname: spare\nfragments:\n  role: [gone]\n";
    for path in ["profiles/spare.yaml", "clusters/home/profiles/spare.yaml"] {
        let tree = Tree::sound().write(path, text);
        tree.refused(&format!("{path}:5:3"), "missing-reference", "no fragment `role/gone`");
    }
    let base = "clusters/home/bases/cp1.yaml";
    let at = "clusters/home/assignments/cp1.yaml:1:1";
    Tree::sound().remove(base).refused(at, "missing-reference", "no base `cp1`");
    let tree = Tree::sound().remove("clusters/home/machines/cp1.yaml");
    tree.refused("clusters/home/assignments/cp1.yaml:3:10", "missing-reference", "no machine `cp1`");
    let tree = Tree::sound().replace(ASSIGN, "cluster: [ntp]", "planet: [ntp]");
    tree.refused(&format!("{ASSIGN}:7:3"), "wrong-value", "`planet` is none of global, site");
}

#[test]
fn a_machine_without_an_assignment_is_only_named() {
    let tree = Tree::sound().remove("clusters/home/assignments/cp1.yaml");
    tree.load().unwrap();
    // beside something that refuses, the warning is seen
    let findings = tree.append(W1, "colour: red\n").remove("clusters/home/assignments/w1.yaml").findings();
    let warning = findings.iter().find(|one| one.severity == Severity::Warning).unwrap();
    assert_eq!(warning.file, "clusters/home/machines/cp1.yaml");
    assert!(warning.help.contains("`bronzeward import cp1`"), "{warning}");
}

#[test]
fn one_identity_one_machine() {
    let tree = Tree::sound().replace(W1, "node: node-w1", "node: node-cp1");
    tree.refused(&format!("{W1}:5:9"), "duplicate", "also that of clusters/home/machines/cp1.yaml");
    let uuid = "  uuid: 4C4C4544-0001-4000-8000-000000000011\n";
    let cp1 = "clusters/home/machines/cp1.yaml";
    let tree = Tree::sound().replace(cp1, "  node: node-cp1\n", &format!("  node: node-cp1\n{uuid}"));
    tree.refused(&format!("{W1}:6:9"), "duplicate", "also that of clusters/home/machines/cp1.yaml");
}

#[test]
fn endpoints_are_addresses() {
    for (text, full, short) in [
        ("10.0.0.11", "10.0.0.11:50000", "10.0.0.11"),
        ("10.0.0.11:50001", "10.0.0.11:50001", "10.0.0.11:50001"),
        ("10.0.0.11:50000", "10.0.0.11:50000", "10.0.0.11"),
        ("\"2001:db8::11\"", "[2001:db8::11]:50000", "2001:db8::11"),
        ("\"[2001:db8::11]\"", "[2001:db8::11]:50000", "2001:db8::11"),
        ("\"[2001:db8::11]:50001\"", "[2001:db8::11]:50001", "[2001:db8::11]:50001"),
        ("2001:db8::11", "[2001:db8::11]:50000", "2001:db8::11"),
    ] {
        let tree = Tree::sound().replace(W1, "endpoint: 10.0.0.11", &format!("endpoint: {text}"));
        let intent = tree.load().unwrap();
        let endpoint = intent.clusters.values().next().unwrap().machines.values().last().unwrap().endpoint;
        assert_eq!((endpoint.full().as_str(), endpoint.to_string().as_str()), (full, short));
    }
    for text in [
        "w1.example.org",
        "localhost:50000",
        "10.0.0.11:0",
        "10.0.0",
        "\"[10.0.0.11]\"",
        "10.0.0.11:70000",
        "\"[2001:db8::11\"",
        "\"[fe80::1%2]:50000\"",
        "https://10.0.0.11",
        "\"\"",
    ] {
        let tree = Tree::sound().replace(W1, "endpoint: 10.0.0.11", &format!("endpoint: {text}"));
        tree.refused(&format!("{W1}:7:11"), "wrong-value", "is no address: write an IP address");
    }
}

#[test]
fn the_tools_version() {
    for fits in ["=0.1", ">=0.1, <2", "0.1.0", "*"] {
        Tree::sound().replace("bronzeward.yaml", "\"=0.1\"", &format!("\"{fits}\"")).load().unwrap();
    }
    for other in ["=0.2", ">=1", "newest", ""] {
        let tree = Tree::sound().replace("bronzeward.yaml", "\"=0.1\"", &format!("\"{other}\""));
        tree.refused(
            "bronzeward.yaml:4:11",
            "requires",
            &format!("requires the tool version `{other}`, this is 0.1.0"),
        );
    }
}

#[test]
fn one_pass_names_everything() {
    let tree = Tree::sound()
        .append(W1, "colour: red\n")
        .replace("bronzeward.yaml", "selfApproval: allowed", "selfApproval: maybe")
        .write("fragments/planet/a.yaml", "a: 1\n")
        .replace("clusters/home/bases/cp1.yaml", "name: cp1", "name: cp2")
        .remove("allowed_signers");
    let codes: Vec<_> = tree.findings().iter().map(|one| one.code.0).collect();
    assert_eq!(codes, ["missing-file", "wrong-value", "name-mismatch", "unknown-key", "unknown-file"]);
}

#[test]
fn what_this_version_does_not_honour_is_said() {
    let tree =
        Tree::sound().replace("bronzeward.yaml", "{store: age}", "{store: openbao, address: https://bao}");
    tree.refused("bronzeward.yaml:5:18", "not-supported", "`openbao` is not supported yet");
    let tree = Tree::sound().replace("bronzeward.yaml", "{store: age}", "{store: age, transit: t}");
    tree.refused("bronzeward.yaml:5:32", "not-supported", "`openbao` is not supported yet");
    let settings =
        "foreignOwned: [kubernetes-images]\nlints: {disk-by-path: off}\ntalos: {version: v1.13.9}\n";
    let tree = Tree::sound().append("clusters/home/cluster.yaml", settings);
    let (_, findings) = Intent::read(&tree.files());
    let said: Vec<String> = findings.sorted().iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), 3, "{said:#?}");
    for key in ["foreignOwned", "lints", "talos"] {
        assert!(said.iter().any(|one| one.contains(&format!("`{key}` is not honoured yet"))), "{said:#?}");
    }
    tree.load().unwrap();
}
