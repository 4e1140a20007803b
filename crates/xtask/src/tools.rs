//! The programs that must be there, and those that are built.

use std::path::Path;

use anyhow::bail;
use bronzeward_testkit::library::Library;
use bronzeward_testkit::tools::{Tool, tool};

use crate::Outcome;

/// Programs that tests start, and for what.
const NEEDED: [(&str, &str); 4] = [
    ("go", "builds Talos' own library as oracle and node"),
    ("git", "makes and checks the repositories of the tests"),
    ("ssh-keygen", "makes keys, makes and checks signatures"),
    ("python3", "drives what the scenarios need beside"),
];

/// Refuses with a list when a program is missing.
pub fn needed() -> anyhow::Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> = std::env::split_paths(&path).collect();
    let missing =
        missing(|name| folders.iter().any(|folder: &std::path::PathBuf| is_there(&folder.join(name))));
    if missing.is_empty() { Ok(()) } else { bail!("{}", missing.join("\n       ")) }
}

fn is_there(path: &Path) -> bool {
    path.is_file()
}

fn missing(there: impl Fn(&str) -> bool) -> Vec<String> {
    let absent = NEEDED.iter().filter(|(name, _)| !there(name));
    absent.map(|(name, why)| format!("`{name}` is not on the PATH; it {why}")).collect()
}

/// Builds every tool.
pub fn build() -> anyhow::Result<Outcome> {
    needed()?;
    for one in Tool::ALL {
        println!("building fixtures/{} (the first time takes a while)", one.name());
        let path = tool(one);
        println!("  {}", path.display());
    }
    for minor in Library::MINORS.into_iter().filter(|m| *m != "1.13") {
        for one in [Tool::Oracle, Tool::Tables] {
            println!("building fixtures/{} with the library of Talos {minor}", one.name());
            println!("  {}", Library::minor(minor).tool(one).display());
        }
    }
    Ok(Outcome::Fine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_each_missing_program_and_what_it_is_for() {
        assert!(missing(|_| true).is_empty());
        let words = missing(|name| name != "go" && name != "python3");
        assert_eq!(words.len(), 2);
        assert!(words[0].starts_with("`go` is not on the PATH; it builds"), "{words:?}");
        assert!(words[1].starts_with("`python3` "), "{words:?}");
    }
}
