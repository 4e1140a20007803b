//! A node's state, its handle, and what can be done to it from the same process.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::TcpListener;
use tokio::sync::{broadcast, watch};
use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};

use talos_client::proto::cosi::resource::state_server::StateServer;
use talos_client::proto::machine::machine_service_server::MachineServiceServer;

use crate::cluster::SimCluster;
use crate::documents::{self, Summary};
use crate::server::Api;
use crate::{SimError, server};

/// Talos' limit for a message, both ways.
const MESSAGE_LIMIT: usize = 32 << 20;

/// Changes that a slow watch may lag behind before it is ended.
const CHANGES: usize = 256;

/// What a machine is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimOptions {
    /// Its host name while its configuration has none.
    pub name: String,
    /// Talos' node id.
    pub node_id: String,
    /// SMBIOS UUID; empty is none.
    pub uuid: String,
    /// Image factory schematic; empty is none.
    pub schematic: String,
}

impl SimOptions {
    /// A machine of this name.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            node_id: format!("sim-{name}"),
            uuid: String::new(),
            schematic: String::new(),
        }
    }
}

/// An apply that a node took.
#[derive(Clone, PartialEq, Eq)]
pub struct Applied {
    /// The exact bytes.
    pub bytes: Vec<u8>,
}

impl std::fmt::Debug for Applied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Applied(<{} bytes withheld>)", self.bytes.len())
    }
}

/// A running simulated node; dropping it ends it.
pub struct SimNode {
    address: SocketAddr,
    machine: Arc<Machine>,
    /// While it lives, so do listener, connections and watches.
    _alive: watch::Sender<()>,
}

pub(crate) struct Machine {
    pub(crate) options: SimOptions,
    pub(crate) address: SocketAddr,
    pub(crate) boot_id: String,
    pub(crate) admin: Vec<u8>,
    pub(crate) changes: broadcast::Sender<Change>,
    pub(crate) alive: watch::Receiver<()>,
    /// Held by an apply from its start to its end, as Talos holds a lock.
    pub(crate) applying: Mutex<()>,
    state: Mutex<State>,
}

/// Which configuration changed, and whether there was one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) id: &'static str,
    pub(crate) created: bool,
}

#[derive(Clone)]
pub(crate) struct State {
    pub(crate) summary: Summary,
    pub(crate) active: Config,
    pub(crate) persistent: Option<Config>,
    pub(crate) applies: Vec<Applied>,
}

#[derive(Clone)]
pub(crate) struct Config {
    pub(crate) bytes: Vec<u8>,
    pub(crate) version: u64,
}

impl Machine {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Persists and activates a configuration, as Talos does without a reboot.
    pub(crate) fn activate(&self, bytes: &[u8], summary: Summary, applied: bool) {
        let mut state = self.state();
        let old = state.persistent.as_ref().map(|config| config.version);
        state.persistent = Some(Config { bytes: bytes.to_vec(), version: old.unwrap_or(0) + 1 });
        state.active = Config { bytes: bytes.to_vec(), version: state.active.version + 1 };
        state.summary = summary;
        if applied {
            state.applies.push(Applied { bytes: bytes.to_vec() });
        }
        // under the lock, so that a watch sees each change once; nobody may be watching
        let _ = self.changes.send(Change { id: "persistent", created: old.is_none() });
        let _ = self.changes.send(Change { id: "v1alpha1", created: false });
    }
}

impl SimNode {
    /// Starts a node with a configuration, at an address of its cluster; port 0 takes a free one.
    ///
    /// # Errors
    /// When the configuration is none, or the address cannot be served.
    pub async fn start(
        cluster: &mut SimCluster,
        listen: SocketAddr,
        config: &str,
        options: SimOptions,
    ) -> Result<Self, SimError> {
        let summary = documents::read(config.as_bytes()).map_err(SimError::Config)?;
        let files = cluster.server(&options.name, listen.ip())?;
        let refused = |source| SimError::Listen { address: listen, source };
        let listener = TcpListener::bind(listen).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let (sender, alive) = watch::channel(());
        let machine = Arc::new(Machine {
            boot_id: server::uuid(files.boot),
            admin: files.admin,
            changes: broadcast::channel(CHANGES).0,
            alive: alive.clone(),
            applying: Mutex::new(()),
            state: Mutex::new(State {
                summary,
                active: Config { bytes: config.as_bytes().to_vec(), version: 1 },
                persistent: None,
                applies: Vec::new(),
            }),
            options,
            address,
        });
        let tls = ServerTlsConfig::new()
            .identity(Identity::from_pem(files.certificate, files.key))
            .client_ca_root(Certificate::from_pem(files.authority));
        let api = Api(machine.clone());
        let router = Server::builder()
            .tls_config(tls)?
            .add_service(
                MachineServiceServer::new(api.clone())
                    .max_decoding_message_size(MESSAGE_LIMIT)
                    .max_encoding_message_size(MESSAGE_LIMIT),
            )
            .add_service(StateServer::new(api).max_encoding_message_size(MESSAGE_LIMIT));
        let incoming = tokio_stream::wrappers::TcpListenerStream::new(listener);
        tokio::spawn(async move {
            // a listener that fails leaves a node that does not answer
            let _ = router.serve_with_incoming_shutdown(incoming, gone(alive)).await;
        });
        Ok(Self { address, machine, _alive: sender })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes the configuration behind everybody's back, as another tool would: watches see it, it is no
    /// apply that counts.
    ///
    /// # Errors
    /// When the configuration is none.
    pub fn change_config(&self, config: &str) -> Result<(), SimError> {
        let summary = documents::read(config.as_bytes()).map_err(SimError::Config)?;
        self.machine.activate(config.as_bytes(), summary, false);
        Ok(())
    }

    /// The active configuration.
    pub fn config(&self) -> Vec<u8> {
        self.machine.state().active.bytes.clone()
    }

    /// Every apply that it took over the network, in order.
    pub fn applies(&self) -> Vec<Applied> {
        self.machine.state().applies.clone()
    }
}

/// Waits until the node's handle is dropped.
pub(crate) async fn gone(mut alive: watch::Receiver<()>) {
    // nothing is ever sent: the only news is that the sender went
    while alive.changed().await.is_ok() {}
}
