//! The few Git verbs that Bronzeward needs: read trees, write commits, merge, verify and make SSH
//! signatures, push several refs with compare-and-swap.
//!
//! This crate never reads a user's Git configuration (but for [`sign::SshKeygen`], which signs as `git` would),
//! never checks anything out, and never runs a hook. Commit ids locate; what authorises is decided elsewhere.

pub mod allowed_signers;
pub mod commit;
pub mod error;
pub mod history;
pub mod merge;
mod pack;
pub mod program;
mod push;
pub mod remote;
pub mod repo;
pub mod sign;
pub mod sshsig;
pub mod trailers;
pub mod tree;

pub use commit::{CommitInfo, Ident, NewCommit};
pub use error::GitError;
pub use gix::ObjectId as Oid;
pub use program::GitProgram;
pub use push::{PushError, PushReport, RefUpdate};
pub use remote::{Fetched, GitRemote, Remote, RemoteOptions};
pub use repo::Repo;
pub use tree::{EntryKind, TreeEdit, TreeView};
