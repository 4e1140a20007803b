//! `allowed_signers` against `ssh-keygen -Y verify`: whatever we accept, it accepts, and the other way round
//! for every file that our restrictions let through.

use bronzeward_git::allowed_signers::{AllowedSigners, Problem};
use bronzeward_git::sshsig;
use bronzeward_testkit::people::{Person, ssh_keygen_verifies};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

const OPTIONS: [&str; 22] = [
    "",
    "",
    "namespaces=\"git\"",
    "namespaces=\"file\"",
    "namespaces=\"file,git\"",
    "namespaces=\"g*\"",
    "NAMESPACES=\"git\"",
    "valid-after=\"20251009Z\"",
    "valid-after=\"20251010Z\"",
    "valid-before=\"20251009085320Z\"",
    "valid-before=\"20251009085319Z\"",
    "valid-before=\"202510090853Z\"",
    "valid-before=\"20251009085321Z\"",
    "valid-after=\"20251009\"",
    "namespaces=\"git\",valid-after=\"20240101Z\",valid-before=\"20300101Z\"",
    "valid-after=\"20300101Z\",valid-before=\"20240101Z\"",
    "cert-authority",
    "bogus",
    "namespaces=git",
    "namespaces=\"git\",namespaces=\"git\"",
    "namespaces=\"git\",",
    "valid-after=\"20251301Z\"",
];
const PRINCIPALS: [&str; 7] = [
    "ann@example.org",
    "bob@example.org",
    "*@example.org",
    "ann@example.org,bob",
    "\"ann@example.org\"",
    "!ann@example.org",
    "a?n@example.org",
];

#[test]
fn agrees_with_ssh_keygen_on_random_files() {
    let dir = tempfile::tempdir().unwrap();
    let people: Vec<Person> =
        ["ed25519", "ecdsa"].iter().map(|kind| Person::new(dir.path(), "ann@example.org", kind)).collect();
    let payload = b"payload\n";
    let signatures: Vec<String> = people.iter().map(|person| person.sign("git", payload)).collect();
    let line =
        (0..PRINCIPALS.len(), 0..OPTIONS.len(), 0..people.len(), prop::sample::select(vec![" ", "\t", "  "]));
    let files = (prop::collection::vec(line, 1..3), 0..people.len());
    let mut accepted = 0;
    let mut runner = TestRunner::new(Config { cases: 250, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&files, |(lines, who)| {
        let text: String = lines
            .iter()
            .map(|(principal, option, key, blank)| {
                let fields =
                    [PRINCIPALS[*principal], OPTIONS[*option], &people[*key].public()].map(str::to_owned);
                fields.into_iter().filter(|field| !field.is_empty()).collect::<Vec<_>>().join(blank) + "\n"
            })
            .collect();
        let Ok(signers) = AllowedSigners::parse(text.as_bytes()) else { return Ok(()) };
        let key = sshsig::verify_armoured(&signatures[who], "git", payload).unwrap();
        // 2025-10-09 08:53:20 UTC
        let ours = signers.principal(&key, "git", 1_760_000_000) == Some("ann@example.org");
        let time = "20251009085320Z";
        let theirs =
            ssh_keygen_verifies(dir.path(), &text, "ann@example.org", "git", time, &signatures[who], payload);
        prop_assert_eq!(ours, theirs, "{}", text);
        Ok(())
    });
    outcome.unwrap();
    // the comparison must have seen both answers: one file of each is checked by hand
    for (option, good) in [("", true), ("namespaces=\"file\" ", false)] {
        let text = format!("ann@example.org {option}{}\n", people[0].public());
        let signers = AllowedSigners::parse(text.as_bytes()).unwrap();
        let key = sshsig::verify_armoured(&signatures[0], "git", payload).unwrap();
        assert_eq!(signers.principal(&key, "git", 1_760_000_000).is_some(), good);
        accepted += usize::from(good);
    }
    assert_eq!(accepted, 1);
}

#[test]
fn what_openssh_allows_and_we_do_not_is_refused_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let (ann, bob) = (
        Person::new(dir.path(), "ann@example.org", "ed25519"),
        Person::new(dir.path(), "bob@example.org", "ed25519"),
    );
    let refused = |text: String| AllowedSigners::parse(text.as_bytes()).unwrap_err();
    let key = ann.public();
    assert!(matches!(refused(format!("*@example.org {key}")).problem, Problem::Principal(_)));
    assert!(matches!(refused(format!("root {key}")).problem, Problem::Principal(_)));
    assert!(matches!(refused(format!("a,b {key}")).problem, Problem::Principal(_)));
    assert_eq!(refused(format!("ann@example.org cert-authority {key}")).problem, Problem::CertAuthority);
    assert!(matches!(
        refused(format!("ann@example.org valid-after=\"20250101\" {key}")).problem,
        Problem::Time(_)
    ));
    assert!(matches!(
        refused(format!("ann@example.org valid-after=\"20250229Z\" {key}")).problem,
        Problem::Time(_)
    ));
    let cut = &key[..key.len() - 8];
    for unreadable in [cut.to_owned(), "ssh-ed25519".into(), format!("namespaces=\"git\" {cut}")] {
        assert_eq!(refused(format!("ann@example.org {unreadable}")).problem, Problem::Key, "{unreadable}");
    }
    let err = refused(format!("# people\n\nann@example.org {key}\nbob@example.org {key}\n"));
    assert_eq!((err.line, err.problem), (4, Problem::SameKey(3)));
    let rotated = format!(
        "ann@example.org valid-before=\"20270101Z\" {key}\nann@example.org valid-after=\"20270101Z\" {}\n",
        bob.public()
    );
    assert_eq!(AllowedSigners::parse(rotated.as_bytes()).unwrap().lines().len(), 2);
}
