//! Signatures, both ways, against `git verify-commit` and `ssh-keygen -Y`.

use bronzeward_git::commit::CommitSignature;
use bronzeward_git::sign::{KeySigner, Signer, SshKeygen, parse_public};
use bronzeward_git::sshsig::{self, SigError};
use bronzeward_testkit::people::{Person, git, hermetic, ssh_keygen_verifies, text};

use crate::{World, commit_on, write};

#[test]
fn git_finds_our_signatures_good_and_we_find_gits() {
    let world = World::new();
    for kind in ["ed25519", "ecdsa", "rsa"] {
        let ann = Person::new(&world.root, "ann@example.org", kind);
        let signers = world.root.join(format!("signers-{kind}"));
        write(&signers, &ann.allowed());
        ann.use_in(&world.clone);
        git(&world.clone, &["config", "gpg.ssh.allowedSignersFile", &signers.display().to_string()]);
        let repo = world.repo();
        let in_process = KeySigner::read(&ann.key).unwrap();
        let by_program = SshKeygen::from_git(&world.clone).unwrap();
        for signer in [&in_process as &dyn Signer, &by_program] {
            let id = commit_on(&repo, world.head(), "s.yaml", kind, Some(signer));
            let output =
                hermetic("git").current_dir(&world.clone).args(["verify-commit", &id.to_string()]).output();
            let said = text(&output.unwrap());
            assert!(said.contains("Good \"git\" signature for ann@example.org"), "{kind}: {said}");
            let CommitSignature::By(key) = repo.commit(id).unwrap().signature else { panic!("not good") };
            assert_eq!(*key, *signer.public_key().key_data());
        }
        git(&world.clone, &["commit", "-q", "--allow-empty", "-S", "-m", "By git itself"]);
        let theirs = repo.commit(world.head()).unwrap();
        assert_eq!(theirs.signature.key(), Some(in_process.public_key().key_data()), "{kind}");
    }
}

#[test]
fn an_altered_commit_an_unsigned_one_and_a_foreign_namespace_count_as_nobody() {
    let world = World::new();
    let ann = Person::new(&world.root, "ann@example.org", "ed25519");
    let repo = world.repo();
    assert!(matches!(repo.commit(world.head()).unwrap().signature, CommitSignature::Unsigned));
    let signer = KeySigner::read(&ann.key).unwrap();
    let id = commit_on(&repo, world.head(), "s.yaml", "s: 1\n", Some(&signer));
    let altered = git(&world.clone, &["cat-file", "commit", &id.to_string()]).replace("A change", "A hange");
    write(&world.root.join("altered"), &(altered + "\n"));
    let path = world.root.join("altered").display().to_string();
    let altered = git(&world.clone, &["hash-object", "-t", "commit", "-w", &path]);
    assert!(matches!(repo.commit(altered.parse().unwrap()).unwrap().signature, CommitSignature::Bad));

    let other = ann.sign("bronzeward-approval", b"statement\n");
    let err = sshsig::verify_armoured(&other, "git", b"statement\n").unwrap_err();
    assert!(matches!(err, SigError::Namespace { .. }), "{err}");
    let err = sshsig::verify_armoured(&other, "bronzeward-approval", b"statement").unwrap_err();
    assert!(matches!(err, SigError::Mismatch), "{err}");
}

#[test]
fn a_blob_in_a_trailer_is_what_ssh_keygen_verifies() {
    let world = World::new();
    let ann = Person::new(&world.root, "ann@example.org", "ed25519");
    let payload = b"bronzeward approval x\nBronzeward-Format: 1\n";
    let armoured = KeySigner::read(&ann.key).unwrap().sign("bronzeward-approval", payload).unwrap();
    let blob = sshsig::armour_to_blob(&armoured).unwrap();
    let key = sshsig::verify_blob(&blob, "bronzeward-approval", payload).unwrap();
    assert_eq!(key, *parse_public(&ann.public()).unwrap().key_data());
    let again = sshsig::blob_to_armour(&blob).unwrap();
    let (signers, time) = (ann.allowed(), "20270101000000Z");
    let good = |namespace: &str, payload: &[u8]| {
        ssh_keygen_verifies(&world.root, &signers, "ann@example.org", namespace, time, &again, payload)
    };
    assert!(good("bronzeward-approval", payload));
    assert!(!good("git", payload));
    assert!(!good("bronzeward-approval", b"other"));
    let mut longer = blob;
    longer.push(0);
    assert!(matches!(
        sshsig::verify_blob(&longer, "bronzeward-approval", payload),
        Err(SigError::Malformed(_))
    ));
}

#[test]
fn gits_settings_decide_who_signs() {
    let world = World::new();
    let ann = Person::new(&world.root, "ann@example.org", "ed25519");
    git(&world.clone, &["config", "gpg.format", "openpgp"]);
    git(&world.clone, &["config", "user.signingKey", &ann.key.display().to_string()]);
    let err = SshKeygen::from_git(&world.clone).unwrap_err();
    assert!(err.to_string().contains("openpgp"), "{err}");
    git(&world.clone, &["config", "gpg.format", "ssh"]);
    assert_eq!(
        *SshKeygen::from_git(&world.clone).unwrap().public_key().key_data(),
        *parse_public(&ann.public()).unwrap().key_data()
    );
}
