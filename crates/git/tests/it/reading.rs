//! Trees, history and merges as `git` sees them.

use bronzeward_git::merge::Merged;
use bronzeward_git::tree::{EntryKind, changed_paths};
use bronzeward_git::{Repo, TreeEdit};
use bronzeward_testkit::people::git;

use crate::{World, commit_on};

#[test]
fn trees_are_read_and_written_without_a_checkout() {
    let world = World::new();
    std::os::unix::fs::symlink("a.yaml", world.clone.join("link")).unwrap();
    let head = world.commit_file("clusters/home/cluster.yaml", "name: home\n");
    let repo = world.repo();
    let tree = repo.tree_of(head).unwrap();
    assert_eq!(tree.read("clusters/home/cluster.yaml").unwrap().unwrap(), b"name: home\n");
    assert_eq!(tree.read("link").unwrap(), None, "a link is no file");
    assert_eq!(tree.entry("link").unwrap().unwrap().kind, EntryKind::Link);
    assert_eq!(tree.read("clusters").unwrap(), None);
    assert_eq!(tree.read_at_most("a.yaml", 5).unwrap().unwrap(), b"a: 1\n");
    let err = tree.read_at_most("a.yaml", 4).unwrap_err();
    assert_eq!(err.to_string(), "`a.yaml` has 5 bytes, more than the 4 that are read");
    assert_eq!(tree.read_at_most("gone", 4).unwrap(), None);
    assert_eq!(tree.folders("clusters").unwrap(), ["home"]);
    let names: Vec<String> = tree.list("").unwrap().into_keys().collect();
    assert_eq!(names, ["a.yaml", "clusters/home/cluster.yaml", "link"]);

    let edits = [TreeEdit::remove("a.yaml"), TreeEdit::write("x/y.yaml", "y: 1\n")];
    let edited = repo.write_tree(Some(tree.id()), &edits).unwrap();
    assert_eq!(changed_paths(&tree, &edited).unwrap(), ["a.yaml", "x/y.yaml"]);
    assert!(repo.write_tree(None, &[TreeEdit::write("../x", "")]).is_err());
    assert!(repo.write_tree(None, &[TreeEdit::write(".git/config", "")]).is_err());
}

#[test]
fn merges_are_clean_or_name_the_conflict_and_agree_with_git() {
    let world = World::new();
    let base = world.head();
    let repo = world.repo();
    let ours = commit_on(&repo, base, "b.yaml", "b: 2\n", None);
    let theirs = commit_on(&repo, base, "c.yaml", "c: 3\n", None);
    let Merged::Clean(tree) = repo.merge(ours, theirs).unwrap() else { panic!("no conflict expected") };
    let git_tree = git(&world.clone, &["merge-tree", "--write-tree", &ours.to_string(), &theirs.to_string()]);
    assert_eq!(tree.to_string(), git_tree);
    let clash = commit_on(&repo, base, "b.yaml", "b: 3\n", None);
    assert_eq!(repo.merge(ours, clash).unwrap(), Merged::Conflict(vec!["b.yaml".into()]));
    assert_eq!(repo.merge_base(ours, theirs), Some(base));
}

#[test]
fn history_knows_ancestors_first_parents_and_own_changes() {
    let world = World::new();
    let root = world.head();
    git(&world.clone, &["checkout", "-q", "-b", "draft"]);
    let draft = world.commit_file("b.yaml", "b: 2\n");
    git(&world.clone, &["checkout", "-q", "main"]);
    let main = world.commit_file("c.yaml", "c: 3\n");
    git(&world.clone, &["merge", "-q", "--no-ff", "-m", "Merge", "draft"]);
    let merge = world.head();
    let repo: Repo = world.repo();
    assert!(repo.is_ancestor(draft, merge).unwrap());
    assert!(!repo.is_ancestor(merge, draft).unwrap());
    assert!(!repo.is_ancestor(draft, main).unwrap());
    assert_eq!(repo.first_parents(Some(root), merge).unwrap(), Some(vec![main, merge]));
    assert_eq!(repo.first_parents(Some(draft), merge).unwrap(), None, "a draft is no first parent");
    assert_eq!(repo.commits_between(&[merge], &[main]).unwrap().len(), 2);
    assert!(repo.own_changes(&repo.commit(merge).unwrap()).unwrap().is_empty());
    assert_eq!(repo.own_changes(&repo.commit(draft).unwrap()).unwrap(), ["b.yaml"]);
    assert_eq!(repo.resolve("main~1").unwrap(), main);
    assert!(repo.resolve("nowhere").is_err());
}
