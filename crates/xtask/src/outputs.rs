//! Files that are made and committed: written, or compared with what would be written.

use std::fs;
use std::path::Path;

use anyhow::Context;
use bronzeward_testkit::tools::workspace;

use crate::Outcome;

/// What to do with a file that is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Write it.
    Write,
    /// Compare it with what stands there.
    Check,
}

impl Mode {
    /// The mode that `--check` asks for.
    pub fn of(check: bool) -> Mode {
        if check { Mode::Check } else { Mode::Write }
    }
}

/// Writes or compares files, by path relative to the workspace.
pub fn settle(mode: Mode, files: &[(String, Vec<u8>)], chore: &str) -> anyhow::Result<Outcome> {
    settle_in(&workspace(), mode, files, chore)
}

fn settle_in(root: &Path, mode: Mode, files: &[(String, Vec<u8>)], chore: &str) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::Fine;
    for (path, bytes) in files {
        let full = root.join(path);
        let same = fs::read(&full).is_ok_and(|found| found == *bytes);
        match mode {
            _ if same => println!("{path}: as made"),
            Mode::Check => {
                println!("{path}: differs from what is made; run `cargo xtask {chore}` and commit it");
                outcome = Outcome::Wrong;
            }
            Mode::Write => {
                let folder = full.parent().expect("a path below the workspace has a folder");
                fs::create_dir_all(folder).with_context(|| format!("{path}: its folder cannot be made"))?;
                fs::write(&full, bytes).with_context(|| format!("{path} cannot be written"))?;
                println!("{path}: written");
            }
        }
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_writes_nothing_and_sees_every_difference() {
        let dir = tempfile::tempdir().unwrap();
        let files = vec![("a/b.json".to_owned(), b"{}\n".to_vec())];
        let settle = |mode| matches!(settle_in(dir.path(), mode, &files, "x").unwrap(), Outcome::Fine);
        assert!(!settle(Mode::Check), "a missing file differs");
        assert!(!dir.path().join("a").exists());
        assert!(settle(Mode::Write) && settle(Mode::Check));
        fs::write(dir.path().join("a/b.json"), "{} \n").unwrap();
        assert!(!settle(Mode::Check), "one byte differs");
    }
}
