//! Settings that this version reads and does not honour yet. What would be unsafe to ignore refuses, the rest warns.

use crate::files::Files;
use crate::finding::{Finding, Findings, codes};
use crate::governance::REPOSITORY_FILE;
use crate::intent::Intent;
use crate::place::place;
use crate::repository::StoreKind;

pub(crate) fn check(intent: &Intent, files: &Files, findings: &mut Findings) {
    let store = &intent.governance.repository.secrets;
    let server = [("address", &store.address), ("mount", &store.mount), ("transit", &store.transit)];
    let named = server.iter().find(|(_, value)| value.is_some()).map(|(key, _)| *key);
    let key = if store.store == StoreKind::Openbao { Some("store") } else { named };
    if let Some(key) = key {
        let pos = place(files, REPOSITORY_FILE, &["secrets", key]);
        let message =
            "The secret store `openbao` is not supported yet: this version keeps secrets in the repository";
        let help = "write `secrets: {store: age}`";
        findings.push(Finding::error(REPOSITORY_FILE, pos, codes::NOT_SUPPORTED, message, help));
    }
    for (name, cluster) in &intent.clusters {
        let path = format!("clusters/{name}/cluster.yaml");
        let cluster = &cluster.cluster;
        let ignored = [
            ("foreignOwned", !cluster.foreign_owned.is_empty(), "every difference is a drift"),
            ("lints", !cluster.lints.is_empty(), "there are no lints to set"),
            ("talos", cluster.talos.is_some(), "no running version or schematic is compared with it"),
        ];
        for (key, _, what) in ignored.into_iter().filter(|(_, written, _)| *written) {
            let message = format!("`{key}` is not honoured yet: {what}");
            let help = "leave it out, or keep it for a version that honours it";
            let pos = place(files, &path, &[key]);
            findings.push(Finding::warning(&path, pos, codes::NOT_SUPPORTED, message, help));
        }
    }
}
