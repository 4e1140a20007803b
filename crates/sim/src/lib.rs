//! A small simulated Talos node, for the demo.
//!
//! It speaks as much of Talos' API as Bronzeward does: mutual TLS with roles, the version, the resources that
//! tell who a node is, its configuration with a watch, and applying one without a reboot. Everything else is
//! refused. It checks of a configuration only that it reads as Talos documents with a v1alpha1 one; no
//! machine is behind it.
//!
//! A [`SimCluster`] makes the certificates, the talosconfigs and sample configurations; a [`SimNode`] serves
//! one of them. What tests trust is not this but the node of `fixtures/node`, on Talos' own library.

mod cluster;
mod documents;
mod machine;
mod pki;
mod resources;
mod sample;
mod server;

pub use cluster::{RandomBytes, Role, SimCluster};
pub use machine::{Applied, SimNode, SimOptions};

/// Why something cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// A certificate could not be made.
    #[error("A certificate of the simulated cluster cannot be made; report this")]
    Certificate(#[from] rcgen::Error),
    /// The port cannot be served.
    #[error(
        "The simulated node cannot listen at {address}; choose another address or stop what listens there"
    )]
    Listen {
        /// Where it was to listen.
        address: std::net::SocketAddr,
        /// The operating system's word.
        #[source]
        source: std::io::Error,
    },
    /// TLS cannot be set up.
    #[error("The simulated node cannot serve TLS; report this")]
    Tls(#[from] tonic::transport::Error),
    /// A configuration that a node would not take.
    #[error("The simulated node does not take this configuration: {0}")]
    Config(&'static str),
}
