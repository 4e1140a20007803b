//! The leak search: no secret in any Git object of any ref, in any log, in any file that was written.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// Where a secret was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leak {
    /// A file, or a repository and an object.
    pub place: String,
    /// Which of the secrets, by its number.
    pub secret: usize,
}

/// Searches a folder: every file as it is, and every object of every Git repository in it, inflated.
///
/// # Errors
/// When something cannot be read: what was not searched is not clean.
pub fn search(dir: &Path, secrets: &[String], but: &[PathBuf]) -> Result<Vec<Leak>> {
    let mut leaks = Vec::new();
    let mut folders = vec![dir.to_path_buf()];
    while let Some(folder) = folders.pop() {
        if folder.join("HEAD").is_file() && folder.join("objects").is_dir() {
            objects(&folder, secrets, &mut leaks)?;
        }
        for entry in
            std::fs::read_dir(&folder).with_context(|| format!("Cannot read {}", folder.display()))?
        {
            let path = entry?.path();
            let meta = path.symlink_metadata()?;
            if but.contains(&path) {
                continue;
            }
            if meta.is_dir() {
                folders.push(path);
            } else if meta.is_file() {
                let bytes =
                    std::fs::read(&path).with_context(|| format!("Cannot read {}", path.display()))?;
                hits(&bytes, secrets, &path.display().to_string(), &mut leaks);
            }
        }
    }
    Ok(leaks)
}

/// Every object, reachable or not.
fn objects(repository: &Path, secrets: &[String], leaks: &mut Vec<Leak>) -> Result<()> {
    let output = Command::new("git")
        .arg("--git-dir")
        .arg(repository)
        .args(["cat-file", "--batch", "--batch-all-objects", "--buffer"])
        .stdin(std::process::Stdio::null())
        .output()
        .context("git cannot be started")?;
    anyhow::ensure!(output.status.success(), "git cannot list the objects of {}", repository.display());
    let mut rest: &[u8] = &output.stdout;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let header = String::from_utf8_lossy(&rest[..end]).into_owned();
        let size: usize =
            header.rsplit(' ').next().and_then(|size| size.parse().ok()).context("An odd object")?;
        let body = rest.get(end + 1..end + 1 + size).context("A short object")?;
        hits(body, secrets, &format!("{} {header}", repository.display()), leaks);
        rest = rest.get(end + 2 + size..).unwrap_or_default();
    }
    Ok(())
}

fn hits(bytes: &[u8], secrets: &[String], place: &str, leaks: &mut Vec<Leak>) {
    for (number, secret) in secrets.iter().enumerate() {
        let needle = secret.as_bytes();
        if !needle.is_empty() && bytes.windows(needle.len()).any(|window| window == needle) {
            leaks.push(Leak { place: place.to_owned(), secret: number });
        }
    }
}
