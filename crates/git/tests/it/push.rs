//! The push, over every transport: compare-and-swap, several refs at once, hooks, lost races, lost answers.

use std::os::unix::fs::PermissionsExt;
use std::sync::Barrier;

use bronzeward_git::{GitRemote, Oid, PushError, RefUpdate, Remote, RemoteOptions, Repo};
use bronzeward_testkit::people::git;

use crate::transport::{Transport, over_every_transport};
use crate::{World, commit_on, write};

over_every_transport!(
    a_push_moves_the_ref_and_git_finds_the_repository_sound,
    a_stale_expectation_changes_nothing,
    several_refs_move_together_or_not_at_all,
    of_many_at_once_exactly_one_wins,
    a_hook_that_refuses_is_a_rejection_with_its_words,
    an_answer_that_is_lost_is_unknown_and_a_fetch_tells,
    a_fetch_says_where_the_remote_stands,
    a_repository_that_is_not_there_is_unreachable,
    an_empty_remote_fetches_as_nothing,
    much_at_once_arrives_whole,
);

fn update(name: &str, expected: Option<Oid>, new: Oid) -> RefUpdate {
    RefUpdate { name: name.to_owned(), expected, new }
}

fn a_push_moves_the_ref_and_git_finds_the_repository_sound(transport: Transport) {
    let world = World::over(transport);
    let (repo, old) = (world.repo(), world.head());
    let new = commit_on(&repo, old, "deep/er/b.yaml", "b: 2\n", None);
    let report = world.reached().push(&repo, &[update("refs/heads/main", Some(old), new)]).unwrap();
    assert_eq!(report.objects, 5, "a commit, three trees, a blob");
    assert_eq!(git(&world.remote, &["rev-parse", "main"]), new.to_string());
    git(&world.remote, &["fsck", "--strict"]);
    assert_eq!(git(&world.remote, &["show", "main:deep/er/b.yaml"]), "b: 2");
}

fn a_stale_expectation_changes_nothing(transport: Transport) {
    let world = World::over(transport);
    let (repo, old) = (world.repo(), world.head());
    let new = commit_on(&repo, old, "b.yaml", "b: 2\n", None);
    let other = commit_on(&repo, old, "c.yaml", "c: 3\n", None);
    world.reached().push(&repo, &[update("refs/heads/main", Some(old), other)]).unwrap();
    let lost = world.reached().push(&repo, &[update("refs/heads/main", Some(old), new)]).unwrap_err();
    assert!(lost.lost_race(), "{lost}");
    let create = world.reached().push(&repo, &[update("refs/heads/main", None, new)]).unwrap_err();
    assert!(create.lost_race(), "{create}");
    assert_eq!(git(&world.remote, &["rev-parse", "main"]), other.to_string());
}

fn several_refs_move_together_or_not_at_all(transport: Transport) {
    let world = World::over(transport);
    let (repo, old) = (world.repo(), world.head());
    let new = commit_on(&repo, old, "b.yaml", "b: 2\n", None);
    let both = |expected| {
        [update("refs/heads/main", expected, new), update("refs/heads/bronzeward/approvals/x", None, new)]
    };
    let other = commit_on(&repo, old, "c.yaml", "c: 3\n", None);
    assert!(world.reached().push(&repo, &both(Some(other))).unwrap_err().lost_race());
    assert_eq!(git(&world.remote, &["for-each-ref", "--format=%(refname)"]), "refs/heads/main");
    world.reached().push(&repo, &both(Some(old))).unwrap();
    assert_eq!(git(&world.remote, &["rev-parse", "bronzeward/approvals/x"]), new.to_string());
}

fn of_many_at_once_exactly_one_wins(transport: Transport) {
    let world = World::over(transport);
    let (repo, old) = (world.repo(), world.head());
    let news: Vec<Oid> =
        (0..8).map(|n| commit_on(&repo, old, "n.yaml", &format!("n: {n}\n"), None)).collect();
    let barrier = Barrier::new(news.len());
    let won: Vec<Oid> = std::thread::scope(|scope| {
        let pushes: Vec<_> = news
            .iter()
            .map(|new| {
                let (repo, remote, barrier) = (repo.clone(), world.reached(), &barrier);
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

fn a_hook_that_refuses_is_a_rejection_with_its_words(transport: Transport) {
    let world = World::over(transport);
    hook(&world, "pre-receive", "printf 'main is \\033[1mprotected\\n' >&2\nexit 1\n");
    let (repo, old) = (world.repo(), world.head());
    let new = commit_on(&repo, old, "b.yaml", "b: 2\n", None);
    let err = world.reached().push(&repo, &[update("refs/heads/main", Some(old), new)]).unwrap_err();
    let PushError::Rejected { name, reason } = &err else { panic!("{err:?}") };
    assert_eq!(name, "refs/heads/main");
    assert!(reason.contains("protected") && !reason.contains('\u{1b}'), "{reason:?}");
}

fn an_answer_that_is_lost_is_unknown_and_a_fetch_tells(transport: Transport) {
    let world = World::over(transport);
    let (repo, old) = (world.repo(), world.head());
    let new = commit_on(&repo, old, "b.yaml", "b: 2\n", None);
    // the server dies after the ref has moved and before it says so
    hook(&world, "post-receive", "kill -9 $PPID\n");
    let err = world.reached().push(&repo, &[update("refs/heads/main", Some(old), new)]).unwrap_err();
    assert!(matches!(err, PushError::Unknown { .. }), "{err:?}");
    let fetched = world.reached().fetch(&repo, &["+refs/heads/*:refs/remotes/config/*"]).unwrap();
    assert_eq!(fetched.refs["refs/heads/main"], new);

    // it dies before: just as unknown, and the fetch tells the other thing
    hook(&world, "pre-receive", "kill -9 $PPID\n");
    let newer = commit_on(&repo, new, "b.yaml", "b: 3\n", None);
    let err = world.reached().push(&repo, &[update("refs/heads/main", Some(new), newer)]).unwrap_err();
    assert!(matches!(err, PushError::Unknown { .. }), "{err:?}");
    let fetched = world.reached().fetch(&repo, &["+refs/heads/*:refs/remotes/config/*"]).unwrap();
    assert_eq!(fetched.refs["refs/heads/main"], new);
}

fn hook(world: &World, name: &str, script: &str) {
    let hook = world.remote.join("hooks").join(name);
    write(&hook, &format!("#!/bin/sh\n{script}"));
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn a_fetch_says_where_the_remote_stands(transport: Transport) {
    let world = World::over(transport);
    let cache = Repo::open_or_init_bare(&world.root.join("cache.git")).unwrap();
    let spec = ["+refs/heads/*:refs/remotes/config/*"];
    let fetched = world.reached().fetch(&cache, &spec).unwrap();
    assert_eq!(fetched.refs["refs/heads/main"], world.head());
    assert_eq!(cache.read_ref("refs/remotes/config/main").unwrap(), Some(world.head()));
    let new = world.commit_file("b.yaml", "b: 2\n");
    git(&world.clone, &["push", "-q", "origin", "main"]);
    assert_eq!(world.reached().fetch(&cache, &spec).unwrap().refs["refs/heads/main"], new);
    let again = Repo::open_or_init_bare(&world.root.join("cache.git")).unwrap();
    assert!(again.has(new));
}

fn a_repository_that_is_not_there_is_unreachable(transport: Transport) {
    let world = World::over(transport);
    let cache = Repo::open_or_init_bare(&world.root.join("cache.git")).unwrap();
    let url = world.host.url("elsewhere");
    let gone = GitRemote::new(&url, world.options()).unwrap();
    let fetch = gone.fetch(&cache, &["+refs/heads/*:refs/remotes/config/*"]).unwrap_err();
    assert!(fetch.to_string().contains("elsewhere.git"), "{fetch}");
    let push = gone.push(&world.repo(), &[update("refs/heads/main", None, world.head())]).unwrap_err();
    assert!(matches!(push, PushError::Unreachable { .. }), "{push:?}");
}

fn much_at_once_arrives_whole(transport: Transport) {
    let world = World::over(transport);
    let (repo, old) = (world.repo(), world.head());
    // neither the pack nor a single blob fits into one packet line or one pipe
    let noise: String = (0..60_000u32).map(|n| format!("{:x}\n", n.wrapping_mul(2_654_435_761))).collect();
    let mut tip = old;
    for n in 0..40 {
        tip = commit_on(&repo, tip, &format!("many/{n}.yaml"), &format!("{n}\n{noise}"), None);
    }
    world.reached().push(&repo, &[update("refs/heads/main", Some(old), tip)]).unwrap();
    git(&world.remote, &["fsck", "--strict"]);
    assert_eq!(git(&world.remote, &["rev-parse", "main"]), tip.to_string());
    let cache = Repo::open_or_init_bare(&world.root.join("cache.git")).unwrap();
    world.reached().fetch(&cache, &["+refs/heads/*:refs/remotes/config/*"]).unwrap();
    let read = cache.tree_of(tip).unwrap().read("many/39.yaml").unwrap().unwrap();
    assert!(read.starts_with(b"39\n") && read.len() == noise.len() + 3);
}

fn an_empty_remote_fetches_as_nothing(transport: Transport) {
    let world = World::over(transport);
    let empty = world.host.create("empty");
    let cache = Repo::open_or_init_bare(&world.root.join("cache.git")).unwrap();
    let remote = GitRemote::new(&world.host.url("empty"), world.options()).unwrap();
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
