//! Commits: reading them with their signature, and writing signed ones.

use gix::objs::WriteTo;

use crate::error::{self, GitError};
use crate::sign::Signer;
use crate::{Oid, Repo, sshsig};

/// Who, and when (seconds since the epoch, UTC offset in seconds), as Git writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ident {
    /// A name for people.
    pub name: String,
    /// An e-mail address; proves nothing.
    pub email: String,
    /// Seconds since 1970.
    pub seconds: i64,
    /// Offset of the local time from UTC, in seconds.
    pub offset: i32,
}

impl Ident {
    fn to_gix(&self) -> gix::actor::Signature {
        gix::actor::Signature {
            name: self.name.as_str().into(),
            email: self.email.as_str().into(),
            time: gix::date::Time { seconds: self.seconds, offset: self.offset },
        }
    }
}

/// A commit as it was read.
#[derive(Clone, Debug)]
pub struct CommitInfo {
    /// Its id.
    pub id: Oid,
    /// Its tree.
    pub tree: Oid,
    /// Its parents, first parent first.
    pub parents: Vec<Oid>,
    /// Who wrote the change.
    pub author: Ident,
    /// Who made the commit.
    pub committer: Ident,
    /// The whole message.
    pub message: String,
    /// What the commit's own signature says.
    pub signature: CommitSignature,
}

impl CommitInfo {
    /// The first line of the message.
    pub fn subject(&self) -> &str {
        self.message.lines().next().unwrap_or_default()
    }
}

/// A commit's signature, checked against its bytes but not against any list of signers.
#[derive(Clone, Debug)]
pub enum CommitSignature {
    /// There is none.
    Unsigned,
    /// OpenPGP, X.509 or a form that cannot be read: counts as nobody.
    Foreign,
    /// An SSH signature in another namespace, or one that does not fit the bytes.
    Bad,
    /// An SSH signature that fits, in the namespace `git`, by this key.
    By(Box<ssh_key::public::KeyData>),
}

impl CommitSignature {
    /// The key that signed, if there is a good SSH signature.
    pub fn key(&self) -> Option<&ssh_key::public::KeyData> {
        match self {
            CommitSignature::By(key) => Some(key),
            _ => None,
        }
    }
}

/// A commit to be written.
#[derive(Clone, Debug)]
pub struct NewCommit<'a> {
    /// Its tree.
    pub tree: Oid,
    /// Its parents, first parent first.
    pub parents: Vec<Oid>,
    /// Who wrote the change.
    pub author: Ident,
    /// Who makes the commit.
    pub committer: Ident,
    /// The whole message.
    pub message: &'a str,
}

impl Repo {
    /// Reads a commit and checks that its signature, if any, fits its bytes.
    ///
    /// # Errors
    /// [`GitError::Object`] when it is not here, [`GitError::NotUtf8`] when its text cannot be read.
    pub fn commit(&self, id: Oid) -> Result<CommitInfo, GitError> {
        let repo = self.local();
        let object = repo.find_object(id).map_err(error::object("commit", id))?;
        let hash = repo.object_hash();
        let read = || -> Result<CommitInfo, gix::Error> {
            let commit = gix::objs::CommitRef::from_bytes(&object.data, hash)?;
            let ident = |sig: gix::actor::SignatureRef<'_>| -> Result<Option<Ident>, gix::Error> {
                let time = sig.time()?;
                let (Ok(name), Ok(email)) = (std::str::from_utf8(sig.name), std::str::from_utf8(sig.email))
                else {
                    return Ok(None);
                };
                Ok(Some(Ident {
                    name: name.to_owned(),
                    email: email.to_owned(),
                    seconds: time.seconds,
                    offset: time.offset,
                }))
            };
            let unknown = || Ident { name: String::new(), email: String::new(), seconds: 0, offset: 0 };
            let message = String::from_utf8(commit.message.to_vec()).unwrap_or_else(|_| "\0".to_owned());
            Ok(CommitInfo {
                id,
                tree: commit.tree(),
                parents: commit.parents().collect(),
                author: ident(commit.author()?)?.unwrap_or_else(unknown),
                committer: ident(commit.committer()?)?.unwrap_or_else(unknown),
                message,
                signature: signature_of(&object.data, hash)?,
            })
        };
        let info = read().map_err(error::object("commit", id))?;
        if info.message == "\0" { Err(GitError::NotUtf8 { id }) } else { Ok(info) }
    }

    /// Writes a commit, signed in the namespace `git` when there is a signer. Objects only, no ref moves.
    ///
    /// # Errors
    /// [`GitError::Sign`] or [`GitError::Write`].
    pub fn write_commit(&self, new: &NewCommit<'_>, signer: Option<&dyn Signer>) -> Result<Oid, GitError> {
        let repo = self.local();
        let mut commit = gix::objs::Commit {
            tree: new.tree,
            parents: new.parents.iter().copied().collect(),
            author: new.author.to_gix(),
            committer: new.committer.to_gix(),
            encoding: None,
            message: new.message.into(),
            extra_headers: Vec::new(),
        };
        if let Some(signer) = signer {
            let mut bytes = Vec::new();
            commit.write_to(&mut bytes).map_err(|source| GitError::Write {
                what: "a commit".to_owned(),
                source: Box::new(gix::Error::from_error(source)),
            })?;
            let armoured = signer.sign(sshsig::GIT_NAMESPACE, &bytes)?;
            commit.extra_headers.push(("gpgsig".into(), armoured.trim_end().into()));
        }
        Ok(repo.write_object(&commit).map_err(error::write("a commit"))?.detach())
    }
}

fn signature_of(data: &[u8], hash: gix::hash::Kind) -> Result<CommitSignature, gix::Error> {
    let Some((signature, signed)) = gix::objs::CommitRefIter::signature(data, hash)? else {
        return Ok(CommitSignature::Unsigned);
    };
    let Ok(text) = std::str::from_utf8(&signature) else { return Ok(CommitSignature::Foreign) };
    if !text.trim_start().starts_with("-----BEGIN SSH SIGNATURE-----") {
        return Ok(CommitSignature::Foreign);
    }
    let payload = signed.to_bstring();
    Ok(match sshsig::verify_armoured(text, sshsig::GIT_NAMESPACE, &payload) {
        Ok(key) => CommitSignature::By(Box::new(key)),
        Err(_) => CommitSignature::Bad,
    })
}
