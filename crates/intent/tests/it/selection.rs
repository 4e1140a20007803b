//! What loads, and in which order it composes.

use bronzeward_intent::Layer;

use crate::sample::{Tree, name};

#[test]
fn a_sound_tree_loads() {
    let intent = Tree::sound().load().unwrap();
    let home = &intent.clusters[&name("home")];
    assert_eq!(intent.clusters.len(), 1);
    assert_eq!(home.machines.keys().map(|one| one.as_str()).collect::<Vec<_>>(), ["cp1", "w1"]);
    assert_eq!(home.machines[&name("w1")].endpoint.full(), "10.0.0.11:50000");
    assert_eq!(home.bases[&name("cp1")].header.as_ref().unwrap().imported.as_ref().unwrap().drift, None);
    assert!(home.bases[&name("shared")].header.is_none());
    assert_eq!(home.lock.secrets["machine/token"].version, 1);
    let file = &home.secret_files[&("machine/token".to_owned(), 1)];
    assert_eq!(file, "clusters/home/secrets/machine/token/1.age");
    assert_eq!(intent.governance.rollouts.len(), 1);
    assert_eq!(intent.governance.installation.keys().collect::<Vec<_>>(), ["k0123456789abcdef"]);
    assert_eq!(intent.governance.repository.defaults.expires.to_string(), "7d");
}

#[test]
fn a_header_leaves_the_positions_of_what_follows() {
    let intent = Tree::sound().load().unwrap();
    let source = &intent.fragments[&(Layer::Cluster, name("dns"))];
    let header = source.header.as_ref().unwrap();
    assert_eq!(header.description.as_deref(), Some("Resolvers of the house"));
    let body = String::from_utf8(source.body.clone()).unwrap();
    let line = body.lines().position(|line| line == "    nameservers: [10.0.0.53]").unwrap();
    assert_eq!(line, 6, "the file's own line, counted from 0");
    assert!(!body.contains("Fragment"));
}

#[test]
fn layers_then_profiles_then_own_and_twice_is_once() {
    let intent = Tree::sound().load().unwrap();
    let (home, w1) = (name("home"), name("w1"));
    let selection = intent.selection(&home, &w1).unwrap();
    assert_eq!(selection.base_name.as_str(), "shared");
    let order: Vec<String> =
        selection.fragments.iter().map(|one| format!("{}/{}", one.layer, one.name)).collect();
    let expected =
        ["global/time", "cluster/dns", "cluster/ntp", "cluster/proxy", "role/labels", "override/w1-disk"];
    assert_eq!(order, expected);
    let reads = [
        "clusters/home/assignments/w1.yaml",
        "clusters/home/bases/shared.yaml",
        "clusters/home/cluster.yaml",
        "clusters/home/fragments/cluster/proxy.yaml",
        "clusters/home/fragments/override/w1-disk.yaml",
        "clusters/home/machines/w1.yaml",
        "clusters/home/profiles/local.yaml",
        "clusters/home/secrets.lock.yaml",
        "fragments/cluster/dns.yaml",
        "fragments/cluster/ntp.yaml",
        "fragments/global/time.yaml",
        "fragments/role/labels.yaml",
        "profiles/workers.yaml",
    ];
    assert_eq!(selection.reads, reads);
}

#[test]
fn the_order_of_profiles_is_the_assignments() {
    let tree =
        Tree::sound().replace("clusters/home/assignments/w1.yaml", "[workers, local]", "[local, workers]");
    let intent = tree.load().unwrap();
    let (home, w1) = (name("home"), name("w1"));
    let selection = intent.selection(&home, &w1).unwrap();
    let cluster: Vec<_> = selection.fragments.iter().filter(|one| one.layer == Layer::Cluster).collect();
    let names: Vec<_> = cluster.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["ntp", "proxy", "dns"]);
}

#[test]
fn a_base_is_the_machines_own_unless_it_is_named() {
    let intent = Tree::sound().load().unwrap();
    let (home, cp1) = (name("home"), name("cp1"));
    let selection = intent.selection(&home, &cp1).unwrap();
    assert_eq!(selection.base.path, "clusters/home/bases/cp1.yaml");
    assert!(selection.fragments.is_empty());
}

#[test]
fn the_same_name_in_two_layers_is_two_fragments() {
    let tree = Tree::sound()
        .write("fragments/role/ntp.yaml", "machine:\n  time:\n    disabled: true\n")
        .replace("profiles/workers.yaml", "role: [labels]", "role: [labels, ntp]");
    let intent = tree.load().unwrap();
    let (home, w1) = (name("home"), name("w1"));
    let selection = intent.selection(&home, &w1).unwrap();
    let ntp: Vec<_> = selection.fragments.iter().filter(|one| one.name.as_str() == "ntp").collect();
    assert_eq!(ntp.iter().map(|one| one.layer).collect::<Vec<_>>(), [Layer::Cluster, Layer::Role]);
}

#[test]
fn what_is_not_there_is_said() {
    let intent = Tree::sound().load().unwrap();
    let (home, away, w9) = (name("home"), name("away"), name("w9"));
    let err = intent.selection(&away, &w9).unwrap_err().to_string();
    assert!(err.contains("There is no cluster `away` [missing-reference]"), "{err}");
    let err = intent.selection(&home, &w9).unwrap_err().to_string();
    assert!(err.contains("The machine `w9` has no assignment [missing-reference]"), "{err}");
}
