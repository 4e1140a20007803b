//! Which changes take effect only at a boot, up to Talos 1.13.
//!
//! Talos 1.13 compares the v1alpha1 document field by field and refuses a change outside of this list in the mode
//! "no reboot" (`CanApplyImmediate`); every other document takes effect at once.

use talos_config::Change;

/// Below these places of the v1alpha1 document a change takes effect at once.
const IMMEDIATE: [&str; 25] = [
    "/debug",
    "/cluster",
    "/machine/ca",
    "/machine/acceptedCAs",
    "/machine/time",
    "/machine/certSANs",
    "/machine/install",
    "/machine/network",
    "/machine/sysfs",
    "/machine/sysctls",
    "/machine/logging",
    "/machine/controlPlane",
    "/machine/kubelet",
    "/machine/kernel",
    "/machine/registries",
    "/machine/pods",
    "/machine/seccompProfiles",
    "/machine/nodeAnnotations",
    "/machine/nodeLabels",
    "/machine/nodeTaints",
    "/machine/features/kubernetesTalosAPIAccess",
    "/machine/features/kubePrism",
    "/machine/features/hostDNS",
    "/machine/features/imageCache",
    "/machine/features/nodeAddressSortAlgorithm",
];

/// The changed fields that need a boot, as pointers into the v1alpha1 document, sorted.
pub(crate) fn reasons(changes: &[Change]) -> Vec<String> {
    let mut out: Vec<String> = changes
        .iter()
        .filter(|change| change.document.kind == "v1alpha1" && !immediate(&change.pointer))
        .map(|change| change.pointer.clone())
        .collect();
    out.sort();
    out.dedup();
    out
}

fn immediate(pointer: &str) -> bool {
    let below = |place: &&str| {
        pointer.strip_prefix(*place).is_some_and(|rest| rest.is_empty() || rest.starts_with("/"))
    };
    IMMEDIATE.iter().any(below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compose::options;
    use talos_config::{Config, SourceId, Tables, diff};

    #[test]
    fn files_need_a_boot_and_labels_do_not() {
        let load =
            |text: &str| Config::load(&Tables::v1_13(), text.as_bytes(), SourceId(0), &options()).unwrap();
        let old = load("machine: {type: worker, nodeLabels: {a: b}}\n");
        let labels = load("machine: {type: worker, nodeLabels: {a: c}}\n");
        let files = load(
            "machine: {type: worker, nodeLabels: {a: b}, files: [{content: x, path: /var/x, op: create}]}\n",
        );
        assert!(reasons(&diff(&old, &labels)).is_empty());
        assert!(reasons(&diff(&old, &files)).iter().all(|reason| reason.starts_with("/machine/files/0")));
        assert!(!reasons(&diff(&old, &files)).is_empty());
    }
}
