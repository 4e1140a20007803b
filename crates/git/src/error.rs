//! What can go wrong with a local repository.

use crate::Oid;

/// A failure of an operation on the local object database or its refs.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// The folder holds no repository, or one that cannot be read.
    #[error("Cannot open the Git repository `{path}`: run the command inside a clone, or name one with `-C`")]
    Open {
        /// Where it was looked for.
        path: std::path::PathBuf,
        /// Git's own reason.
        source: Box<gix::Error>,
    },
    /// A new repository could not be made.
    #[error("Cannot make a bare Git repository at `{path}`")]
    Init {
        /// Where.
        path: std::path::PathBuf,
        /// Git's own reason.
        source: Box<gix::Error>,
    },
    /// A revision that was named does not exist.
    #[error("`{name}` names no commit in this repository")]
    NoSuchRevision {
        /// What was asked for.
        name: String,
    },
    /// An object is missing or is not of the expected type.
    #[error("Cannot read the {what} {id}")]
    Object {
        /// `commit`, `tree` or `blob`.
        what: &'static str,
        /// Its id.
        id: Oid,
        /// Git's own reason.
        source: Box<gix::Error>,
    },
    /// A commit has a message or a name that is not UTF-8.
    #[error("The commit {id} is not UTF-8 text: rewrite it with a UTF-8 message")]
    NotUtf8 {
        /// The commit.
        id: Oid,
    },
    /// A write to the object database or to a ref failed.
    #[error("Cannot write {what}")]
    Write {
        /// What was to be written.
        what: String,
        /// Git's own reason.
        source: Box<gix::Error>,
    },
    /// A ref is not where the caller saw it.
    #[error("The ref `{name}` moved meanwhile: expected {expected}, found {actual}")]
    RefMoved {
        /// The ref.
        name: String,
        /// The expected value, `none` for a ref that should not exist.
        expected: String,
        /// The value found.
        actual: String,
    },
    /// A walk over the history failed.
    #[error("Cannot walk the history from {from}")]
    Walk {
        /// Where the walk began.
        from: Oid,
        /// Git's own reason.
        source: Box<gix::Error>,
    },
    /// A merge could not be computed (a conflict is not an error: see [`crate::merge::Merged`]).
    #[error("Cannot merge {theirs} into {ours}")]
    Merge {
        /// The commit that is merged into.
        ours: Oid,
        /// The commit that is merged.
        theirs: Oid,
        /// Git's own reason.
        source: Box<gix::Error>,
    },
    /// A file is larger than it may be.
    #[error("`{path}` has {size} bytes, more than the {limit} that are read")]
    TooLarge {
        /// The file.
        path: String,
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// A path of a tree edit cannot stand in a Git tree.
    #[error("`{path}` cannot be a path in a Git tree")]
    BadPath {
        /// The path.
        path: String,
    },
    /// Making a signature failed.
    #[error("Cannot sign the commit")]
    Sign(#[from] crate::sign::SignError),
}

pub(crate) fn object(what: &'static str, id: Oid) -> impl FnOnce(gix::Error) -> GitError {
    move |source| GitError::Object { what, id, source: Box::new(source) }
}

pub(crate) fn write(what: impl Into<String>) -> impl FnOnce(gix::Error) -> GitError {
    let what = what.into();
    move |source| GitError::Write { what, source: Box::new(source) }
}
