//! A client of a Talos node: talosconfig, mutual TLS, apply, observe, watch.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use talos_client::{Deadlines, Dial, Dialer, Talosconfig};
//!
//! let context = Talosconfig::parse(&std::fs::read_to_string("talosconfig")?)?.context(None)?;
//! let dialer = Dialer::new(Deadlines { connect: Duration::from_secs(5), request: Duration::from_secs(10) });
//! let node = dialer.dial(&"10.0.0.4".parse()?, &context.access).await?;
//! assert_eq!(node.facts().await?.hostname.as_deref(), Some("cp-1"));
//! # Ok(())
//! # }
//! ```
//!
//! A dial goes to one IP address, over TLS 1.3 with both sides' certificates; it never asks one node to
//! forward to another. What a node sends is bounded (32 MiB a message, lists and texts in number and length),
//! and its words are cleaned of control characters. Errors are classified by what follows from them; words of
//! a node, which can quote its configuration, are kept apart as [`NodeText`].

mod access;
mod client;
mod der;
mod dial;
mod endpoint;
mod error;
mod facts;
mod node;
pub mod proto;
mod talosconfig;
mod text;
mod watch;
mod yaml;

pub use access::{Access, AccessError};
pub use dial::{Deadlines, Dialer};
pub use endpoint::{DEFAULT_PORT, Endpoint, EndpointError};
pub use error::{ApplyError, Cause, Code, NodeError};
pub use node::{
    Applied, AppliedMode, ConfigEvent, ConfigRead, ConfigWatch, Dial, Facts, MachineType, Mode, Node, Stage,
    Unmet, Which,
};
pub use talosconfig::{Context, Talosconfig, TalosconfigError};
pub use text::NodeText;
pub use yaml::YamlError;
