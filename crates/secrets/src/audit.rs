//! What can be said of the store without opening it: every version that a lock names is there, and says that it is it.

use bronzeward_intent::finding::Code;
use bronzeward_intent::{Files, Finding, Findings, Intent};
use talos_config::Pos;

use crate::age_file::{SecretHeader, read_header, secret_path};

/// A version that the lock names is not in the tree.
pub const MISSING: Code = Code("secret-missing");
/// A file says that it is another secret.
pub const MISPLACED: Code = Code("secret-misplaced");
/// An existing version changed.
pub const CHANGED: Code = Code("secret-version-changed");

/// Checks every version that a lock names.
pub fn check_store(intent: &Intent, files: &Files) -> Findings {
    let mut findings = Findings::default();
    let repository = &intent.governance.repository.id;
    for (cluster, of) in &intent.clusters {
        for (name, locked) in &of.lock.secrets {
            let path = secret_path(cluster.as_str(), name, locked.version);
            let Some(bytes) = files.get(&path) else {
                let message = format!(
                    "The lock names version {} of `{name}`, and its file is not there",
                    locked.version
                );
                let help = format!("restore {path} from the history: versions are never deleted");
                let lock = format!("clusters/{cluster}/secrets.lock.yaml");
                findings.push(Finding::error(
                    lock.clone(),
                    line_of(files, &lock, name),
                    MISSING,
                    message,
                    help,
                ));
                continue;
            };
            let wanted = SecretHeader {
                format: 1,
                repository: repository.clone(),
                cluster: cluster.to_string(),
                name: name.clone(),
                version: locked.version,
                kind: locked.kind.as_str().to_owned(),
            };
            let problem = match read_header(&path, bytes) {
                Ok((header, _)) if header == wanted => continue,
                Ok(_) => {
                    "The file's header names another secret, version, kind, cluster or repository".to_owned()
                }
                Err(err) => err.to_string(),
            };
            let help = "restore the file from the history";
            findings.push(Finding::error(path, Pos { line: 1, column: 1 }, MISPLACED, problem, help));
        }
    }
    findings
}

/// An existing version's value never changes: its digest in the lock stays what it was.
pub fn check_versions(old: &Intent, new: &Intent, files: &Files) -> Findings {
    let mut findings = Findings::default();
    for (cluster, of) in &new.clusters {
        let Some(before) = old.clusters.get(cluster) else { continue };
        for (name, locked) in &of.lock.secrets {
            let changed = before.lock.secrets.get(name).is_some_and(|old| {
                old.version == locked.version && (&old.value, old.kind) != (&locked.value, locked.kind)
            });
            if changed {
                let lock = format!("clusters/{cluster}/secrets.lock.yaml");
                let message =
                    format!("Version {} of `{name}` has another value than on main", locked.version);
                let help = "a new value is a new version: raise the version, and keep the old file";
                findings.push(Finding::error(
                    lock.clone(),
                    line_of(files, &lock, name),
                    CHANGED,
                    message,
                    help,
                ));
            }
        }
    }
    findings
}

/// The line of a secret in its lock: each stands on a line of its own.
fn line_of(files: &Files, lock: &str, name: &str) -> Pos {
    let text = files.get(lock).map(String::from_utf8_lossy).unwrap_or_default();
    let at = text.lines().position(|line| line.trim_start().trim_start_matches('"').starts_with(name));
    Pos { line: at.map_or(1, |at| at as u32 + 1), column: 1 }
}
