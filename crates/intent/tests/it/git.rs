//! From a real Git tree: what is no regular file is refused where Bronzeward reads, and only there.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use bronzeward_git::Repo;
use bronzeward_intent::{Files, Intent};
use bronzeward_testkit::people::git;

use crate::sample::Tree;

/// A clone with the sound tree in its index.
fn clone(dir: &Path) {
    git(dir, &["init", "-q", "-b", "main"]);
    for (path, text) in Tree::sound().iter() {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Commits everything and reads the commit's tree.
fn read(dir: &Path) -> Files {
    git(dir, &["add", "-A"]);
    git(dir, &["-c", "user.name=ann", "-c", "user.email=ann@example.org", "commit", "-q", "-m", "A tree"]);
    let head = git(dir, &["rev-parse", "HEAD"]).parse().unwrap();
    let repo = Repo::open(dir).unwrap();
    Files::from_tree(&repo.tree_of(head).unwrap()).unwrap()
}

#[test]
fn a_git_tree_is_the_same_as_files_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    clone(dir.path());
    assert_eq!(read(dir.path()), Tree::sound().files());
}

#[test]
fn links_and_submodules_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    clone(root);
    symlink("ntp.yaml", root.join("fragments/cluster/time.yaml")).unwrap();
    symlink("README.md", root.join("elsewhere")).unwrap();
    git(root, &["add", "-A"]);
    let nobody = "160000,1111111111111111111111111111111111111111,clusters/home/machines/w2.yaml";
    git(root, &["update-index", "--add", "--cacheinfo", nobody]);
    git(root, &["-c", "user.name=ann", "-c", "user.email=ann@example.org", "commit", "-q", "-m", "A tree"]);
    let head = git(root, &["rev-parse", "HEAD"]).parse().unwrap();
    let files = Files::from_tree(&Repo::open(root).unwrap().tree_of(head).unwrap()).unwrap();
    let findings = Intent::load(&files).unwrap_err().sorted();
    let found: Vec<_> = findings.iter().map(ToString::to_string).collect();
    let expected = [
        "clusters/home/machines/w2.yaml:1:1: Here stands a submodule [not-a-file]; only regular files may stand here",
        "fragments/cluster/time.yaml:1:1: Here stands a symbolic link [not-a-file]; only regular files may stand here",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_link_in_place_of_governance_is_no_governance() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    clone(root);
    fs::rename(root.join("allowed_signers"), root.join("signers")).unwrap();
    symlink("signers", root.join("allowed_signers")).unwrap();
    let findings = Intent::load(&read(root)).unwrap_err().sorted();
    let codes: Vec<_> = findings.iter().map(|one| (one.file.as_str(), one.code.0)).collect();
    assert_eq!(codes, [("allowed_signers", "missing-file"), ("allowed_signers", "not-a-file")]);
}
