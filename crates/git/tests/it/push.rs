//! The push: compare-and-swap, several refs at once, hooks, lost races.

use std::os::unix::fs::PermissionsExt;
use std::sync::Barrier;

use bronzeward_git::{GitRemote, Oid, PushError, RefUpdate, Remote, RemoteOptions, Repo};
use bronzeward_testkit::people::git;

use crate::{World, commit_on, write};

fn remote(world: &World) -> GitRemote {
    GitRemote::new(&world.url(), RemoteOptions::default()).unwrap()
}

fn update(name: &str, expected: Option<Oid>, new: Oid) -> RefUpdate {
    RefUpdate { name: name.to_owned(), expected, new }
}

#[test]
fn a_push_moves_the_ref_and_git_finds_the_repository_sound() {
    let world = World::new();
    let (repo, old) = (world.repo(), world.head());
    let new = commit_on(&repo, old, "deep/er/b.yaml", "b: 2\n", None);
    let report = remote(&world).push(&repo, &[update("refs/heads/main", Some(old), new)]).unwrap();
    assert_eq!(report.objects, 5, "a commit, three trees, a blob");
    assert_eq!(git(&world.remote, &["rev-parse", "main"]), new.to_string());
    git(&world.remote, &["fsck", "--strict"]);
    assert_eq!(git(&world.remote, &["show", "main:deep/er/b.yaml"]), "b: 2");
}

#[test]
fn a_stale_expectation_changes_nothing() {
    let world = World::new();
    let (repo, old) = (world.repo(), world.head());
    let new = commit_on(&repo, old, "b.yaml", "b: 2\n", None);
    let other = commit_on(&repo, old, "c.yaml", "c: 3\n", None);
    remote(&world).push(&repo, &[update("refs/heads/main", Some(old), other)]).unwrap();
    let lost = remote(&world).push(&repo, &[update("refs/heads/main", Some(old), new)]).unwrap_err();
    assert!(lost.lost_race(), "{lost}");
    let create = remote(&world).push(&repo, &[update("refs/heads/main", None, new)]).unwrap_err();
    assert!(create.lost_race(), "{create}");
    assert_eq!(git(&world.remote, &["rev-parse", "main"]), other.to_string());
}

#[test]
fn several_refs_move_together_or_not_at_all() {
    let world = World::new();
    let (repo, old) = (world.repo(), world.head());
    let new = commit_on(&repo, old, "b.yaml", "b: 2\n", None);
    let both = |expected| {
        [update("refs/heads/main", expected, new), update("refs/heads/bronzeward/approvals/x", None, new)]
    };
    let other = commit_on(&repo, old, "c.yaml", "c: 3\n", None);
    assert!(remote(&world).push(&repo, &both(Some(other))).unwrap_err().lost_race());
    assert_eq!(git(&world.remote, &["for-each-ref", "--format=%(refname)"]), "refs/heads/main");
    remote(&world).push(&repo, &both(Some(old))).unwrap();
    assert_eq!(git(&world.remote, &["rev-parse", "bronzeward/approvals/x"]), new.to_string());
}

#[test]
fn of_many_at_once_exactly_one_wins() {
    let world = World::new();
    let (repo, old) = (world.repo(), world.head());
    let news: Vec<Oid> =
        (0..8).map(|n| commit_on(&repo, old, "n.yaml", &format!("n: {n}\n"), None)).collect();
    let barrier = Barrier::new(news.len());
    let won: Vec<Oid> = std::thread::scope(|scope| {
        let pushes: Vec<_> = news
            .iter()
            .map(|new| {
                let (repo, remote, barrier) = (repo.clone(), remote(&world), &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    match remote.push(&repo, &[update("refs/heads/main", Some(old), *new)]) {
                        Ok(_) => Some(*new),
                        Err(err) => {
                            assert!(err.lost_race(), "only a lost race is expected: {err:?}");
                            None
                        }
                    }
                })
            })
            .collect();
        pushes.into_iter().filter_map(|push| push.join().unwrap()).collect()
    });
    assert_eq!(won.len(), 1);
    assert_eq!(git(&world.remote, &["rev-parse", "main"]), won[0].to_string());
}

#[test]
fn a_hook_that_refuses_is_a_rejection_with_its_words() {
    let world = World::new();
    let hook = world.remote.join("hooks/pre-receive");
    write(&hook, "#!/bin/sh\nprintf 'main is \\033[1mprotected\\n' >&2\nexit 1\n");
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (repo, old) = (world.repo(), world.head());
    let new = commit_on(&repo, old, "b.yaml", "b: 2\n", None);
    let err = remote(&world).push(&repo, &[update("refs/heads/main", Some(old), new)]).unwrap_err();
    let PushError::Rejected { name, reason } = &err else { panic!("{err:?}") };
    assert_eq!(name, "refs/heads/main");
    assert!(reason.contains("protected") && !reason.contains('\u{1b}'), "{reason:?}");
}

#[test]
fn a_fetch_says_where_the_remote_stands_and_a_missing_remote_is_unreachable() {
    let world = World::new();
    let cache = Repo::open_or_init_bare(&world.root.join("cache.git")).unwrap();
    let spec = ["+refs/heads/*:refs/remotes/config/*"];
    let fetched = remote(&world).fetch(&cache, &spec).unwrap();
    assert_eq!(fetched.refs["refs/heads/main"], world.head());
    assert_eq!(cache.read_ref("refs/remotes/config/main").unwrap(), Some(world.head()));
    let new = world.commit_file("b.yaml", "b: 2\n");
    git(&world.clone, &["push", "-q", "origin", "main"]);
    assert_eq!(remote(&world).fetch(&cache, &spec).unwrap().refs["refs/heads/main"], new);
    let again = Repo::open_or_init_bare(&world.root.join("cache.git")).unwrap();
    assert!(again.has(new));

    let gone = GitRemote::new("file:///nonexistent/x.git", RemoteOptions::default()).unwrap();
    assert!(gone.fetch(&cache, &spec).unwrap_err().to_string().contains("file:///nonexistent/x.git"));
    let push = gone.push(&cache, &[update("refs/heads/main", None, new)]).unwrap_err();
    assert!(matches!(push, PushError::Unreachable { .. }), "{push:?}");
}

#[test]
fn an_empty_remote_fetches_as_nothing() {
    let world = World::new();
    let empty = world.root.join("empty.git");
    bronzeward_testkit::people::succeed(
        bronzeward_testkit::people::hermetic("git").args(["init", "-q", "--bare"]).arg(&empty),
    );
    let cache = Repo::open_or_init_bare(&world.root.join("cache.git")).unwrap();
    let remote = GitRemote::new(&format!("file://{}", empty.display()), RemoteOptions::default()).unwrap();
    assert!(remote.fetch(&cache, &["+refs/heads/*:refs/remotes/config/*"]).unwrap().refs.is_empty());
    let repo = world.repo();
    remote.push(&repo, &[update("refs/heads/main", None, world.head())]).unwrap();
    assert_eq!(git(&empty, &["rev-parse", "main"]), world.head().to_string());
}

#[test]
fn credentials_never_show() {
    let remote =
        GitRemote::new("https://bot:hunter2@example.org/x.git?token=hunter2", RemoteOptions::default());
    assert_eq!(remote.unwrap().url(), "https://example.org/x.git");
}
