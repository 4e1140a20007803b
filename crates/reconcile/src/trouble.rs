//! Trouble, by what follows from it.

use bronzeward_git::GitError;
use bronzeward_git::remote::FetchError;
use bronzeward_state::chain::ChainError;
use bronzeward_state::{SnapshotError, StoreError};

use crate::disk::DiskError;

/// Why a tick did not end well.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// Somebody has to act; nothing is sent until then.
    #[error("{code}: {message}")]
    Halt {
        /// A stable code.
        code: &'static str,
        /// What to do.
        message: String,
    },
    /// It passes, or another tick finds it again.
    #[error("{0}")]
    Retry(String),
}

impl Trouble {
    /// A trouble for a person.
    pub fn halt(code: &'static str, message: impl Into<String>) -> Trouble {
        Trouble::Halt { code, message: message.into() }
    }
}

/// An error with its causes, in one line.
pub fn chain(err: &dyn std::error::Error) -> String {
    let mut out = err.to_string();
    let mut source = err.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        if !out.contains(&text) {
            out.push_str(&format!(": {text}"));
        }
        source = cause.source();
    }
    out
}

impl From<GitError> for Trouble {
    fn from(err: GitError) -> Trouble {
        Trouble::Retry(chain(&err))
    }
}

impl From<FetchError> for Trouble {
    fn from(err: FetchError) -> Trouble {
        Trouble::Retry(chain(&err))
    }
}

impl From<SnapshotError> for Trouble {
    fn from(err: SnapshotError) -> Trouble {
        Trouble::halt("state-untrusted", chain(&err))
    }
}

impl From<DiskError> for Trouble {
    fn from(err: DiskError) -> Trouble {
        Trouble::Retry(chain(&err))
    }
}

impl From<ChainError> for Trouble {
    fn from(err: ChainError) -> Trouble {
        let help = "nothing is sent until the branch is sound again: push back the last good commit";
        match &err {
            ChainError::Breach(_) => Trouble::halt("state-untrusted", format!("{}; {help}", chain(&err))),
            ChainError::Rewound { .. } => Trouble::halt("state-rewound", format!("{}; {help}", chain(&err))),
            ChainError::Governance { .. } => Trouble::halt("governance-unreadable", chain(&err)),
            ChainError::Git(_) => Trouble::Retry(chain(&err)),
        }
    }
}

impl From<StoreError> for Trouble {
    fn from(err: StoreError) -> Trouble {
        match err {
            StoreError::Missing { .. } => Trouble::halt("state-missing", err.to_string()),
            other => Trouble::Retry(chain(&other)),
        }
    }
}
