//! What the engine tells its surroundings: which nodes to watch, and where everything stands.

use talos_client::{Access, Endpoint};

use crate::engine::Engine;
use crate::nodes::{endpoint, parse_access};
use crate::ports::NodeAddress;
use crate::trouble::Trouble;

/// A node to watch.
#[derive(Clone, Debug)]
pub struct WatchTarget {
    /// The cluster.
    pub cluster: String,
    /// The machine.
    pub machine: String,
    /// Where it answers.
    pub endpoint: Endpoint,
    /// With whose access.
    pub access: Access,
}

impl Engine {
    /// Every adopted machine, at Applied's target.
    ///
    /// # Errors
    /// [`Trouble`] when the state cannot be read. A machine whose access cannot be read is left out: it is reported
    /// as unreachable when it is read.
    pub fn watch_targets(&self) -> Result<Vec<WatchTarget>, Trouble> {
        let snapshot = self.snapshot()?;
        let mut out = Vec::new();
        for status in snapshot.statuses.values() {
            let Some(applied) = &status.applied else { continue };
            let at =
                NodeAddress { cluster: status.cluster.clone(), endpoint: applied.target.endpoint.clone() };
            let Ok((access, _)) = self.access(&status.cluster) else { continue };
            if let (Ok(endpoint), Ok(access)) = (endpoint(&at), parse_access(&access)) {
                let (cluster, machine) = (status.cluster.clone(), status.machine.clone());
                out.push(WatchTarget { cluster, machine, endpoint, access });
            }
        }
        Ok(out)
    }

    /// When a machine was last read.
    pub fn last_read(&self, cluster: &str, machine: &str) -> Option<jiff::Timestamp> {
        self.read_at.get(&(cluster.to_owned(), machine.to_owned())).copied()
    }
}
