//! What the reconciler needs of the world, as parameters: a clock, and nodes.

use std::time::Duration;

use jiff::Timestamp;
use zeroize::Zeroizing;

/// Two clocks: one for what is written down, one that only runs forward.
pub trait Clock: Send + Sync {
    /// The time of day.
    fn now(&self) -> Timestamp;

    /// Time since some fixed point, counted also while the machine is suspended.
    fn monotonic(&self) -> Duration;
}

/// Where and with whose access a node is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeAddress {
    /// The cluster, whose access is used.
    pub cluster: String,
    /// Address and port.
    pub endpoint: String,
}

/// What was read from a node. All of it is the node's word; it holds values, so it is not `Debug`.
#[derive(Clone)]
pub struct Seen {
    /// The Talos node id.
    pub node_id: Option<String>,
    /// The SMBIOS UUID.
    pub uuid: Option<String>,
    /// The Talos cluster id.
    pub cluster_id: Option<String>,
    /// `controlplane` or `worker`.
    pub role: Option<&'static str>,
    /// As in `v1.13.9`.
    pub version: String,
    /// Is the machine in the stage `running`?
    pub running: bool,
    /// Does it call itself ready?
    pub ready: bool,
    /// The active configuration, byte for byte.
    pub active: Zeroizing<Vec<u8>>,
    /// Does the next boot load something else (staged, or a trial)?
    pub pending: bool,
}

/// A node could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unseen(pub String);

/// What came of a send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The node accepted it.
    Accepted,
    /// The node refused it before it changed anything; the reason holds none of its words.
    Rejected(&'static str),
    /// The node was busy and changed nothing.
    Busy,
    /// No connection: nothing was sent.
    NotSent(String),
    /// No answer: it may have landed.
    Lost(String),
}

/// How long a send may take, from the call on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Until when the bytes may begin to leave: a connection that takes longer is given up, and nothing is sent.
    pub begin: Duration,
    /// Until when the answer is awaited, the connection included.
    pub answer: Duration,
}

/// The nodes, asked one by one.
pub trait Nodes: Send + Sync {
    /// Reads a node.
    ///
    /// # Errors
    /// [`Unseen`], in words without anything that the node said.
    fn read(&self, at: &NodeAddress, access: &NodeAccess) -> Result<Seen, Unseen>;

    /// Sends bytes in the mode "no reboot", within a window.
    fn send(&self, at: &NodeAddress, access: &NodeAccess, bytes: &[u8], window: Window) -> Sent;
}

/// A talosconfig, as the secret store holds it.
#[derive(Clone)]
pub struct NodeAccess(pub bronzeward_secrets::SecretValue);
