//! What can go wrong with a node, classified by what follows from it.

use std::error::Error as StdError;
use std::io;

use tonic::Status;

use crate::dial::Gone;
use crate::endpoint::Endpoint;
use crate::text::NodeText;

/// gRPC's codes, as nodes answer them.
pub use tonic::Code;

/// Why a connection, or an answer, did not come about. Holds nothing that a node said in words.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The deadline that was passed in is over.
    #[error("No answer within the deadline")]
    Deadline,
    /// The operating system's word.
    #[error("The network said: {0}")]
    Io(io::ErrorKind),
    /// rustls' word, a node's refusal of the client certificate included.
    #[error("TLS failed")]
    Tls(#[source] rustls::Error),
    /// The connection was closed, or the answer cut off.
    #[error("The connection was closed")]
    Closed,
    /// A gRPC code that leaves open what was done.
    #[error("The answer was {0:?}, which leaves open what was done")]
    Unclear(Code),
    /// An answer came, and is not what Talos answers.
    #[error("The answer is not what Talos answers: {0}")]
    Answer(&'static str),
}

/// Why a question to a node, or the dial, has no answer.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// No connection, or one that broke before this was asked. Nothing was sent.
    #[error(
        "No connection to the node at {endpoint}; check address and network, and that the access is this \
             cluster's and still valid (a node does not tell these apart)"
    )]
    Unreachable {
        /// Where it was dialled.
        endpoint: Endpoint,
        /// What is known of it.
        #[source]
        cause: Cause,
    },
    /// The node's definite no.
    #[error(
        "The node at {endpoint} refused to {what} ({code:?}); check the roles of the access, and the \
             node's version"
    )]
    Refused {
        /// The node.
        endpoint: Endpoint,
        /// What it was asked to do.
        what: &'static str,
        /// Its code.
        code: Code,
        /// Its words; redact before printing.
        message: NodeText,
    },
    /// Asked, and no answer came.
    #[error("The node at {endpoint} was asked to {what} and did not answer; dial it again")]
    Lost {
        /// The node.
        endpoint: Endpoint,
        /// What it was asked to do.
        what: &'static str,
        /// What is known of it.
        #[source]
        cause: Cause,
    },
    /// Something answers there, and it is no Talos node.
    #[error("What answers at {endpoint} is no Talos node: {why}; check the address")]
    NotATalosNode {
        /// Where it was dialled.
        endpoint: Endpoint,
        /// What it lacks.
        why: &'static str,
    },
    /// A Talos node with an answer that this client does not understand.
    #[error(
        "The node at {endpoint} was asked to {what} and answered out of form: {why}; check that its Talos \
             version is supported"
    )]
    Protocol {
        /// The node.
        endpoint: Endpoint,
        /// What it was asked to do.
        what: &'static str,
        /// What is odd.
        why: &'static str,
    },
}

/// Why a configuration is not known to be applied.
///
/// Only [`ApplyError::Lost`] leaves open whether the node took it; after every other one, it did not.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The connection broke before the configuration was sent.
    #[error("No connection to the node at {endpoint}; nothing was sent, dial it again")]
    Unreachable {
        /// The node.
        endpoint: Endpoint,
        /// What is known of it.
        #[source]
        cause: Cause,
    },
    /// The node's validation says no.
    #[error("The node at {endpoint} rejects the configuration; correct what its message names")]
    Rejected {
        /// The node.
        endpoint: Endpoint,
        /// Its words, which quote the configuration; redact before printing.
        message: NodeText,
    },
    /// The change is sound and wants a reboot, which the mode does not allow (Talos up to 1.13).
    #[error("The node at {endpoint} can take this change only with a reboot; stage it")]
    NeedsReboot {
        /// The node.
        endpoint: Endpoint,
        /// Its words, with a diff of the configuration in clear; redact before printing.
        message: NodeText,
    },
    /// Another apply is under way.
    #[error("The node at {endpoint} is applying another configuration; observe it, then decide again")]
    Busy {
        /// The node.
        endpoint: Endpoint,
    },
    /// Another definite no, such as that of a role.
    #[error("The node at {endpoint} refused the apply ({code:?}); check the roles of the access")]
    Refused {
        /// The node.
        endpoint: Endpoint,
        /// Its code.
        code: Code,
        /// Its words; redact before printing.
        message: NodeText,
    },
    /// The configuration may have been sent and no clear answer came: it may be applied, now or in a moment.
    #[error(
        "The node at {endpoint} may have got the configuration and gave no clear answer; observe it \
             before anything else is sent"
    )]
    Lost {
        /// The node.
        endpoint: Endpoint,
        /// What is known of it.
        #[source]
        cause: Cause,
    },
    /// Larger than a node accepts; nothing was sent.
    #[error("The configuration has {size} bytes, and a node accepts {limit}; make it smaller")]
    TooLarge {
        /// Its size.
        size: usize,
        /// The node's limit.
        limit: usize,
    },
}

impl NodeError {
    /// The node's own words, if it said any; redact before printing.
    pub fn message(&self) -> Option<&NodeText> {
        match self {
            NodeError::Refused { message, .. } => Some(message),
            _ => None,
        }
    }
}

impl ApplyError {
    /// Whether the node may have taken the configuration all the same, or may yet take it.
    pub fn may_be_applied(&self) -> bool {
        matches!(self, ApplyError::Lost { .. })
    }

    /// The node's own words, if it said any; they quote the configuration, so redact before printing.
    pub fn message(&self) -> Option<&NodeText> {
        match self {
            ApplyError::Rejected { message, .. }
            | ApplyError::NeedsReboot { message, .. }
            | ApplyError::Refused { message, .. } => Some(message),
            _ => None,
        }
    }
}

/// How a call failed, before it is known what the call was for.
pub(crate) enum Failure {
    /// Certainly not sent.
    NotSent(Cause),
    /// The node's answer.
    Answered(Code, NodeText),
    /// Perhaps sent, no answer.
    Lost(Cause),
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        let mut source = status.source();
        if source.is_none() {
            return Failure::Answered(status.code(), NodeText::new(status.message()));
        }
        let mut found = None;
        while let Some(error) = source {
            if error.is::<Gone>() {
                return Failure::NotSent(Cause::Closed);
            }
            if let Some(io) = error.downcast_ref::<io::Error>() {
                found = Some(from_io(io));
            }
            source = error.source();
        }
        Failure::Lost(found.unwrap_or(Cause::Closed))
    }
}

/// rustls' errors travel inside those of the operating system.
pub(crate) fn from_io(error: &io::Error) -> Cause {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(tls) => Cause::Tls(tls.clone()),
        None => Cause::Io(error.kind()),
    }
}

impl Failure {
    /// What a failure means when something was only asked.
    pub(crate) fn asked(self, endpoint: Endpoint, what: &'static str) -> NodeError {
        match self {
            Failure::NotSent(cause) => NodeError::Unreachable { endpoint, cause },
            Failure::Answered(code @ (Code::Unavailable | Code::Cancelled | Code::DeadlineExceeded), _) => {
                NodeError::Lost { endpoint, what, cause: Cause::Unclear(code) }
            }
            Failure::Answered(code, message) => NodeError::Refused { endpoint, what, code, message },
            Failure::Lost(cause) => NodeError::Lost { endpoint, what, cause },
        }
    }

    /// What a failure means when a configuration was sent. Codes that a node gives only before it changes
    /// anything are definite; an `Internal` can come between persisting and activating, so it is not.
    pub(crate) fn applied(self, endpoint: Endpoint) -> ApplyError {
        match self {
            Failure::NotSent(cause) => ApplyError::Unreachable { endpoint, cause },
            Failure::Lost(cause) => ApplyError::Lost { endpoint, cause },
            Failure::Answered(code, message) => match code {
                Code::InvalidArgument if message.expose().contains("immediate mode") => {
                    ApplyError::NeedsReboot { endpoint, message }
                }
                Code::InvalidArgument => ApplyError::Rejected { endpoint, message },
                Code::FailedPrecondition if message.expose().contains("already in progress") => {
                    ApplyError::Busy { endpoint }
                }
                Code::FailedPrecondition
                | Code::PermissionDenied
                | Code::Unauthenticated
                | Code::Unimplemented => ApplyError::Refused { endpoint, code, message },
                code => ApplyError::Lost { endpoint, cause: Cause::Unclear(code) },
            },
        }
    }
}
