//! Who may in, and what is said to those who may not.

use std::error::Error;

use bronzeward_git::remote::FetchError;
use bronzeward_git::{GitRemote, PushError, RefUpdate, Remote, RemoteOptions, Repo};
use bronzeward_testkit::people::git;

use crate::transport::{Transport, login};
use crate::{World, commit_on, write};

/// A fetch and a push with these options; both must be refused before anything happens. Gives what they say.
fn refused(world: &World, url: &str, options: &RemoteOptions) -> String {
    let remote = GitRemote::new(url, options.clone()).unwrap();
    let cache = Repo::open_or_init_bare(&world.root.join("cache.git")).unwrap();
    let old = world.head();
    let new = commit_on(&world.repo(), old, "b.yaml", "b: 2\n", None);
    let update = RefUpdate { name: "refs/heads/main".into(), expected: Some(old), new };
    let fetch = remote.fetch(&cache, &["+refs/heads/*:refs/remotes/config/*"]).unwrap_err();
    let push = remote.push(&world.repo(), &[update]).unwrap_err();
    assert!(matches!(push, PushError::Unreachable { .. }), "nothing was sent: {push:?}");
    assert_eq!(git(&world.remote, &["rev-parse", "main"]), old.to_string());
    let said = format!("{}\n{}\n{fetch:?}\n{push:?}", chain(&fetch), chain(&push));
    assert!(!said.contains("hunter2"), "the password is said: {said}");
    said
}

fn chain(err: &dyn Error) -> String {
    let mut out = err.to_string();
    let mut source = err.source();
    while let Some(cause) = source {
        out.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    out
}

#[test]
fn a_server_with_a_strangers_certificate_is_not_believed() {
    let (world, stranger) = (World::over(Transport::Https), World::over(Transport::Https));
    let other = RemoteOptions { ca_pem: Some(stranger.host.certificate()), ..Default::default() };
    for options in [other, RemoteOptions::default()] {
        assert!(refused(&world, &world.url(), &options).contains("is not trusted: name the CA bundle"));
    }
}

#[test]
fn a_file_that_holds_no_certificate_is_refused_at_once() {
    for pem in ["", "no certificate\n", "-----BEGIN CERTIFICATE-----\nnot base64\n"] {
        let options = RemoteOptions { ca_pem: Some(pem.into()), ..Default::default() };
        let err = GitRemote::new("https://bot:hunter2@example.org/x.git", options).unwrap_err();
        assert!(
            matches!(&err, FetchError::Ca { url } if url == "https://example.org/x.git"),
            "{pem:?}: {err:?}"
        );
    }
}

#[test]
fn a_wrong_login_and_none_are_refused_without_the_password_in_any_word() {
    let world = World::over(Transport::Login);
    let right = world.options();
    let none = RemoteOptions { credentials: None, ..right.clone() };
    assert!(refused(&world, &world.url(), &none).contains("refuses the login"));
    let wrong = ("bot".to_owned(), "hunter22".to_owned());
    let wrong = RemoteOptions { credentials: Some(wrong), ..right };
    assert!(refused(&world, &world.url(), &wrong).contains("refuses the login"));
}

#[test]
fn a_login_never_goes_in_clear() {
    let world = World::over(Transport::Login);
    let url = world.host.server().http_url("remote");
    let options = RemoteOptions { credentials: Some((login().user, login().password)), ..Default::default() };
    let said = refused(&world, &url, &options);
    assert!(said.contains("in clear"), "{said}");
}

#[test]
fn a_host_whose_key_is_not_known_is_not_believed() {
    let world = World::over(Transport::Ssh);
    let (known, key) = (world.root.join("nobody"), world.host.server().client_key());
    write(&known, "");
    let command = world.host.server().ssh_command();
    let theirs = world.host.server().known_hosts().display().to_string();
    let blind = command.replace(&theirs, &known.display().to_string());
    assert_ne!(command, blind);
    refused(&world, &world.url(), &RemoteOptions { ssh_command: Some(blind), ..Default::default() });
    let stranger = bronzeward_testkit::people::Person::new(&world.root, "eve@example.org", "ed25519");
    let eve = command.replace(&key.display().to_string(), &stranger.key.display().to_string());
    assert_ne!(command, eve);
    refused(&world, &world.url(), &RemoteOptions { ssh_command: Some(eve), ..Default::default() });
}
