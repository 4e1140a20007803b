//! The state branch: one linear chain of signed commits, each one transaction, pushed by compare-and-swap.
//!
//! It is the only point of order, and its sequence number the only clock that orders. This room knows how the chain
//! is read, written and verified; what is written is decided in `reconcile`.

pub mod accept;
pub mod act;
pub mod approval;
pub mod chain;
pub mod kept;
pub mod log;
pub mod message;
pub mod model;
pub mod snapshot;
mod steps;
pub mod store;
pub mod transaction;

pub use act::{Act, Scope};
pub use approval::{Approval, ApprovalError, Basis};
pub use chain::{Breach, Chain};
pub use log::{LogEntry, LogKind};
pub use message::StateMessage;
pub use model::{
    Answer, Applied, Attempt, EntryState, Evidence, Installation, OpenDrift, Operation, OperationState,
    Owner, Release, ReleaseEntry, Status,
};
pub use snapshot::{Snapshot, SnapshotError};
pub use store::{StateStore, StoreError};
pub use transaction::{Committed, Transaction};

/// The name of the branch of a shard.
pub fn branch(shard: &str) -> String {
    format!("refs/heads/bronzeward/state/{shard}")
}

/// The folder of the approvals branches.
pub const APPROVALS: &str = "refs/heads/bronzeward/approvals";
