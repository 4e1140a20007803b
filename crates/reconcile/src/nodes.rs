//! The nodes over the network: `talos-client` behind the reconciler's own trait.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use talos_client::{Access, ApplyError, Dial, Endpoint, MachineType, Mode, NodeError, Stage, Talosconfig};
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout};

use crate::ports::{NodeAccess, NodeAddress, Nodes, Seen, Sent, Unseen, Window};

/// Dials nodes with the access of their cluster.
pub struct NetworkNodes<D> {
    dial: D,
    runtime: Handle,
    parsed: Mutex<BTreeMap<String, Access>>,
}

impl<D: Dial> NetworkNodes<D> {
    /// Blocks on this runtime; must be used from threads that may block.
    pub fn new(dial: D, runtime: Handle) -> NetworkNodes<D> {
        NetworkNodes { dial, runtime, parsed: Mutex::default() }
    }

    fn access(&self, access: &NodeAccess) -> Result<Access, String> {
        // kept by a digest: the text itself stays where it is wiped
        let text = bronzeward_intent::canonical::sha256(access.0.expose().as_bytes());
        let mut parsed = self.parsed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = parsed.get(&text) {
            return Ok(found.clone());
        }
        let found = parse_access(access)?;
        parsed.insert(text, found.clone());
        Ok(found)
    }
}

/// The access that a stored talosconfig gives.
///
/// # Errors
/// A sentence without any of its content.
pub fn parse_access(access: &NodeAccess) -> Result<Access, String> {
    let config = Talosconfig::parse(access.0.expose()).map_err(|err| err.to_string())?;
    config.context(None).map(|context| context.access).map_err(|err| err.to_string())
}

/// An address of a plan as the client takes it.
///
/// # Errors
/// A sentence.
pub fn endpoint(at: &NodeAddress) -> Result<Endpoint, String> {
    at.endpoint.parse().map_err(|_| format!("`{}` is no address", at.endpoint))
}

impl<D: Dial> Nodes for NetworkNodes<D> {
    fn read(&self, at: &NodeAddress, access: &NodeAccess) -> Result<Seen, Unseen> {
        let access = self.access(access).map_err(Unseen)?;
        let endpoint = endpoint(at).map_err(Unseen)?;
        let read = async {
            let node = self.dial.dial(&endpoint, &access).await?;
            let facts = node.facts().await?;
            let config = node.config().await?;
            Ok::<_, NodeError>((facts, config))
        };
        let (facts, config) = self.runtime.block_on(read).map_err(|err| Unseen(chain(&err)))?;
        let pending = config.persistent.as_ref().is_some_and(|persistent| **persistent != *config.active);
        Ok(Seen {
            node_id: facts.node_id,
            uuid: facts.smbios_uuid,
            cluster_id: facts.cluster_id,
            role: facts.machine_type.map(|kind| match kind {
                MachineType::Worker => "worker",
                MachineType::Init | MachineType::ControlPlane => "controlplane",
            }),
            version: facts.talos_version,
            running: facts.stage == Stage::Running,
            ready: facts.ready,
            active: config.active,
            pending,
        })
    }

    fn send(&self, at: &NodeAddress, access: &NodeAccess, bytes: &[u8], window: Window) -> Sent {
        let (access, endpoint) = match (self.access(access), endpoint(at)) {
            (Ok(access), Ok(endpoint)) => (access, endpoint),
            (Err(err), _) | (_, Err(err)) => return Sent::NotSent(err),
        };
        let send = async {
            let started = Instant::now();
            let node = match timeout(window.begin, self.dial.dial(&endpoint, &access)).await {
                Ok(Ok(node)) => node,
                Ok(Err(err)) => return Sent::NotSent(chain(&err)),
                Err(_) => return Sent::NotSent("the connection took longer than `sendWithin` leaves".into()),
            };
            // the deadline on record covers the dial too: a later answer would outlive it
            let left = window.answer.saturating_sub(started.elapsed());
            match node.apply(bytes, Mode::NoReboot, false, left).await {
                Ok(_) => Sent::Accepted,
                Err(ApplyError::Rejected { .. }) => Sent::Rejected("the node's own validation refuses it"),
                Err(ApplyError::NeedsReboot { .. }) => {
                    Sent::Rejected("it needs a reboot, and would not have taken effect")
                }
                Err(ApplyError::Refused { .. }) => Sent::Rejected("the node refuses the call"),
                Err(ApplyError::TooLarge { .. }) => Sent::Rejected("it is larger than a node takes"),
                Err(ApplyError::Busy { .. }) => Sent::Busy,
                Err(err @ ApplyError::Unreachable { .. }) => Sent::NotSent(chain(&err)),
                Err(err) => Sent::Lost(chain(&err)),
            }
        };
        self.runtime.block_on(send)
    }
}

/// An error with its causes; the client's errors hold no words of a node.
fn chain(err: &dyn std::error::Error) -> String {
    let mut out = err.to_string();
    let mut source = err.source();
    while let Some(cause) = source {
        out.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    out
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use async_trait::async_trait;
    use bronzeward_secrets::SecretValue;
    use bronzeward_testkit::node::{Cluster, Role};
    use talos_client::Node;

    use super::*;

    /// Somebody who accepts the connection and never says a word.
    struct Mute;

    #[async_trait]
    impl Dial for Mute {
        async fn dial(&self, _: &Endpoint, _: &Access) -> Result<Box<dyn Node>, NodeError> {
            std::future::pending().await
        }
    }

    #[test]
    fn a_connection_that_takes_longer_than_the_window_sends_nothing() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let nodes = NetworkNodes::new(Mute, runtime.handle().clone());
        let access = NodeAccess(SecretValue::new(Cluster::local("home").talosconfig_text(Role::Admin)));
        let at = NodeAddress { cluster: "home".into(), endpoint: "127.0.0.1:1".into() };
        let window = Window { begin: Duration::from_millis(20), answer: Duration::from_secs(3600) };
        let sent = nodes.send(&at, &access, b"x", window);
        assert!(matches!(&sent, Sent::NotSent(why) if why.contains("sendWithin")), "{sent:?}");
    }
}
