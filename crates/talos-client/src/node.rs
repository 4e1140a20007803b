//! A node as the reconciler knows it: a trait, so that the node is a parameter.

use std::net::IpAddr;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use zeroize::Zeroizing;

use crate::access::Access;
use crate::endpoint::Endpoint;
use crate::error::{ApplyError, NodeError};
use crate::text::NodeText;

/// Opens connections to nodes.
#[async_trait]
pub trait Dial: Send + Sync {
    /// Connects to the node at `endpoint`, and to that one: no forwarding through another node is ever asked
    /// for. An `Ok` has been answered by something that speaks Talos' API and accepts this access.
    async fn dial(&self, endpoint: &Endpoint, access: &Access) -> Result<Box<dyn Node>, NodeError>;
}

/// One connection to one node. It is never silently replaced by another: once it broke, every call says so
/// ([`NodeError::Unreachable`], [`ApplyError::Unreachable`]) and the caller dials again, to find out anew who
/// answers.
#[async_trait]
pub trait Node: Send + Sync {
    /// Who and what the node says it is. Works with `os:reader`.
    async fn facts(&self) -> Result<Facts, NodeError>;

    /// The configuration, exactly as the node holds it. Needs `os:admin`.
    async fn config(&self) -> Result<ConfigRead, NodeError>;

    /// Sends a configuration. The node's answer is awaited for at most `deadline`; see [`ApplyError`] for
    /// what is known afterwards. A dry run is validated like any other and answers with a diff in clear; it
    /// cancels a pending [`Mode::Try`], since Talos cancels the rollback before it looks at the flag.
    async fn apply(
        &self,
        bytes: &[u8],
        mode: Mode,
        dry_run: bool,
        deadline: Duration,
    ) -> Result<Applied, ApplyError>;

    /// Watches the configuration, active and persisted. Changes after the return are not missed as long as
    /// the connection holds. Needs `os:admin`.
    async fn watch_config(&self) -> Result<ConfigWatch, NodeError>;
}

/// How a configuration is taken. Talos' mode 0 (reboot) and AUTO (may reboot) cannot be expressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Activate and persist, without a reboot; up to Talos 1.13 refused when the change needs one.
    NoReboot,
    /// Persist only; the next boot activates it.
    Staged,
    /// Activate only; after this time the node goes back to what it had.
    Try(Duration),
}

/// The mode that a node says it used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppliedMode {
    /// Activated and persisted.
    NoReboot,
    /// Persisted.
    Staged,
    /// Activated for a while.
    Try,
    /// Another one, which was not asked for (its number in Talos' API; 0 is a reboot).
    Other(i32),
}

/// A node's OK to an apply. It says that the configuration was taken, not yet that it is on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// What the node did.
    pub mode: AppliedMode,
    /// Its warnings; redact before printing.
    pub warnings: Vec<NodeText>,
    /// Its summary; of a dry run a diff in clear. Redact before printing.
    pub details: NodeText,
}

/// The configuration as the node holds it.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigRead {
    /// The active configuration, byte for byte as it was sent.
    pub active: Zeroizing<Vec<u8>>,
    /// The active resource's version. Counts within one boot; compare for equality only.
    pub version: String,
    /// What the next boot will load, when this boot wrote it: differs from `active` after [`Mode::Staged`]
    /// and during [`Mode::Try`]. None after a boot from disk, when `active` is what the disk holds.
    pub persistent: Option<Zeroizing<Vec<u8>>>,
}

impl std::fmt::Debug for ConfigRead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConfigRead")
            .field("active", &format_args!("<{} bytes withheld>", self.active.len()))
            .field("version", &self.version)
            .field(
                "persistent",
                &self.persistent.as_ref().map(|bytes| format!("<{} bytes withheld>", bytes.len())),
            )
            .finish()
    }
}

/// What a node says about itself. All of it is the node's word; texts are cleaned and cut to 256 bytes.
/// What a node does not know yet (in maintenance, while booting) is absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Talos' own node id (`Identities/local`), made at the first boot and lost by a wipe.
    pub node_id: Option<String>,
    /// `Infos/current`.
    pub cluster_id: Option<String>,
    /// `Infos/current`; workers of old contracts do not know it.
    pub cluster_name: Option<String>,
    /// The SMBIOS UUID in lower case, where the platform has one: all zeros and all `f` are none.
    pub smbios_uuid: Option<String>,
    /// `MachineTypes/machine-type`.
    pub machine_type: Option<MachineType>,
    /// The running version, as `v1.13.9`.
    pub talos_version: String,
    /// `metal`, `aws`, `container`, …
    pub platform: Option<String>,
    /// The image factory's schematic, as the extension of that name tells it.
    pub schematic: Option<String>,
    /// What the machine is doing.
    pub stage: Stage,
    /// Whether Talos calls it ready; transiently false after an apply.
    pub ready: bool,
    /// Why not.
    pub unmet: Vec<Unmet>,
    /// The host name, with its domain if there is one.
    pub hostname: Option<String>,
    /// Changes at every boot. A resource from Talos 1.14 on, before that read with `os:admin`; else none.
    pub boot_id: Option<String>,
    /// `NodeAddresses/current`.
    pub addresses: Vec<IpAddr>,
}

/// The kind of machine that the active configuration makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MachineType {
    /// A control plane node of Talos' early days, which bootstraps by itself.
    Init,
    /// A control plane node.
    ControlPlane,
    /// A worker.
    Worker,
}

/// Talos' `MachineStatus` stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Not known, or new to this client.
    Unknown,
    /// Booting.
    Booting,
    /// Installing to disk.
    Installing,
    /// Waiting for a configuration.
    Maintenance,
    /// Running.
    Running,
    /// Going down for a reboot; also shown after fatal errors.
    Rebooting,
    /// Going down.
    ShuttingDown,
    /// Wiping itself.
    Resetting,
    /// Upgrading.
    Upgrading,
}

/// A condition for being ready that is not met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// Its name.
    pub name: String,
    /// The reason.
    pub reason: String,
}

/// Which of a node's configurations an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Which {
    /// The active one.
    Active,
    /// The persisted one.
    Persistent,
}

/// What a watch tells.
#[derive(Debug)]
pub enum ConfigEvent {
    /// This configuration exists in this version: at the start, when it changes, and again after the node
    /// made the watch start over. Equal versions of two boots can differ in content, so read it to know.
    Changed {
        /// Which one.
        which: Which,
        /// Its resource version.
        version: String,
    },
    /// The watch is over: dial again, watch again, and read, since changes may have been missed.
    Ended(NodeError),
}

/// A running watch; dropping it ends it. It starts over by itself when the node calls its bookmark invalid
/// (which it does after a reboot behind a connection that survived); it does not reconnect.
pub struct ConfigWatch {
    events: mpsc::Receiver<ConfigEvent>,
    task: Option<AbortHandle>,
}

impl ConfigWatch {
    /// A watch that tells what is sent into the channel; for nodes that are not dialled.
    pub fn new(events: mpsc::Receiver<ConfigEvent>) -> Self {
        Self { events, task: None }
    }

    pub(crate) fn running(events: mpsc::Receiver<ConfigEvent>, task: AbortHandle) -> Self {
        Self { events, task: Some(task) }
    }

    /// The next event; none after [`ConfigEvent::Ended`]. Cancel safe.
    pub async fn next(&mut self) -> Option<ConfigEvent> {
        self.events.recv().await
    }
}

impl Drop for ConfigWatch {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}
