//! What a simulated node looks at in a configuration.

use talos_config::{Dialect, Limits, Node, read_stream};

/// The few fields from which resources follow, and those that want a reboot when they change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) machine_type: String,
    pub(crate) cluster_id: String,
    pub(crate) cluster_name: String,
    pub(crate) hostname: String,
    token: String,
}

impl Summary {
    /// Whether Talos up to 1.13 would want a reboot to get from one to the other; of the fields that it asks
    /// about, these are the two that stand in every configuration.
    pub(crate) fn needs_reboot(&self, wanted: &Self) -> bool {
        self.machine_type != wanted.machine_type || self.token != wanted.token
    }
}

/// Reads a configuration, or says why a node would not take it.
pub(crate) fn read(bytes: &[u8]) -> Result<Summary, &'static str> {
    let documents =
        read_stream(bytes, Dialect::default(), &Limits::default()).map_err(|_| "it does not read as YAML")?;
    let mut summary = None;
    let mut hostname = String::new();
    for root in documents.iter().filter_map(|document| document.root.as_ref()) {
        root.entries().ok_or("a document is not a mapping")?;
        if root.duplicate_key().is_some() {
            return Err("a key stands twice in one mapping");
        }
        match (text(root, &["apiVersion"]), text(root, &["kind"])) {
            (None, None) if root.get("machine").is_some() || root.get("cluster").is_some() => {
                if summary.replace(v1alpha1(root)?).is_some() {
                    return Err("it has two v1alpha1 documents");
                }
            }
            (Some(_), Some(kind)) if kind == "HostnameConfig" => {
                hostname = text(root, &["hostname"]).unwrap_or_default();
            }
            (Some(_), Some(_)) => {}
            _ => return Err("a document has no apiVersion and kind"),
        }
    }
    let mut summary = summary.ok_or("it has no v1alpha1 document")?;
    if !hostname.is_empty() {
        summary.hostname = hostname;
    }
    Ok(summary)
}

fn v1alpha1(root: &Node) -> Result<Summary, &'static str> {
    for part in ["machine", "cluster"] {
        root.get(part).and_then(Node::entries).ok_or("machine and cluster must both be mappings")?;
    }
    // Talos calls a machine without a type a worker
    let machine_type = text(root, &["machine", "type"]).unwrap_or_else(|| "worker".into());
    if !matches!(machine_type.as_str(), "controlplane" | "worker") {
        return Err("machine.type is neither controlplane nor worker");
    }
    Ok(Summary {
        machine_type,
        cluster_id: text(root, &["cluster", "id"]).unwrap_or_default(),
        cluster_name: text(root, &["cluster", "clusterName"]).unwrap_or_default(),
        hostname: text(root, &["machine", "network", "hostname"]).unwrap_or_default(),
        token: text(root, &["machine", "token"]).unwrap_or_default(),
    })
}

fn text(root: &Node, path: &[&str]) -> Option<String> {
    let node = path.iter().try_fold(root, |node, key| node.get(key))?;
    node.text().filter(|_| !node.is_null()).map(str::to_owned)
}
