//! Against the real `git` and `ssh-keygen`.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod access;
mod push;
mod reading;
mod signatures;
mod signers;
mod transport;

use std::path::{Path, PathBuf};

use bronzeward_git::sign::Signer;
use bronzeward_git::{GitRemote, Ident, NewCommit, Oid, RemoteOptions, Repo, TreeEdit};
use bronzeward_testkit::people::{git, hermetic, succeed};

use crate::transport::{Host, Transport};

/// A bare repository as the remote, and a clone with one commit.
struct World {
    _dir: tempfile::TempDir,
    root: PathBuf,
    /// The bare repository on disk, whatever the transport.
    remote: PathBuf,
    clone: PathBuf,
    host: Host,
}

impl World {
    fn new() -> World {
        World::over(Transport::File)
    }

    fn over(transport: Transport) -> World {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_path_buf();
        let host = Host::start(transport, &root);
        let (remote, clone) = (host.create("remote"), root.join("clone"));
        succeed(hermetic("git").args(["init", "-q", "-b", "main"]).arg(&clone));
        git(&clone, &["config", "user.name", "ann"]);
        git(&clone, &["config", "user.email", "ann@example.org"]);
        git(&clone, &["remote", "add", "origin", &remote.display().to_string()]);
        let world = World { _dir: dir, root, remote, clone, host };
        world.commit_file("a.yaml", "a: 1\n");
        git(&world.clone, &["push", "-q", "origin", "main"]);
        world
    }

    fn commit_file(&self, path: &str, content: &str) -> Oid {
        write(&self.clone.join(path), content);
        git(&self.clone, &["add", "-A"]);
        git(&self.clone, &["commit", "-q", "-m", &format!("Change {path}")]);
        self.head()
    }

    fn head(&self) -> Oid {
        git(&self.clone, &["rev-parse", "HEAD"]).parse().unwrap()
    }

    fn repo(&self) -> Repo {
        Repo::open(&self.clone).unwrap()
    }

    /// The remote as the reconciler reaches it.
    fn reached(&self) -> GitRemote {
        GitRemote::new(&self.url(), self.options()).unwrap()
    }

    fn url(&self) -> String {
        self.host.url("remote")
    }

    fn options(&self) -> RemoteOptions {
        self.host.options()
    }
}

fn write(path: &Path, content: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

fn ident() -> Ident {
    Ident { name: "ann".into(), email: "ann@example.org".into(), seconds: 1_790_000_000, offset: 3600 }
}

/// A commit on top of `parent` that writes one file.
fn commit_on(repo: &Repo, parent: Oid, path: &str, content: &str, signer: Option<&dyn Signer>) -> Oid {
    let base = repo.commit(parent).unwrap().tree;
    let tree = repo.write_tree(Some(base), &[TreeEdit::write(path, content)]).unwrap();
    let new = NewCommit {
        tree: tree.id(),
        parents: vec![parent],
        author: ident(),
        committer: ident(),
        message: "A change\n\nKey: value\n",
    };
    repo.write_commit(&new, signer).unwrap()
}
