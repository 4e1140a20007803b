//! The files of one commit's tree, as bytes in memory.

use std::collections::BTreeMap;

use bronzeward_git::tree::EntryKind;
use bronzeward_git::{GitError, TreeView};

/// The files of one tree. Whatever is no regular file is kept by name, so that it can be refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    files: BTreeMap<String, Vec<u8>>,
    odd: BTreeMap<String, &'static str>,
}

impl Files {
    /// Reads a whole tree.
    ///
    /// # Errors
    /// When an object is missing.
    pub fn from_tree(tree: &TreeView) -> Result<Files, GitError> {
        let mut out = Files::default();
        for (path, entry) in tree.list("")? {
            match entry.kind {
                EntryKind::File | EntryKind::Executable => {
                    let bytes = tree.blob(entry.id)?;
                    out.files.insert(path, bytes);
                }
                EntryKind::Link => {
                    out.odd.insert(path, "a symbolic link");
                }
                EntryKind::Submodule => {
                    out.odd.insert(path, "a submodule");
                }
            }
        }
        Ok(out)
    }

    /// Files from memory.
    pub fn from_map(files: BTreeMap<String, Vec<u8>>) -> Files {
        Files { files, odd: BTreeMap::new() }
    }

    /// The bytes of a file.
    pub fn get(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(Vec::as_slice)
    }

    /// Every file, by path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice()))
    }

    /// The files below a folder, by path.
    pub fn below<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        self.files
            .range(folder.to_owned()..)
            .take_while(move |(path, _)| path.starts_with(folder))
            .filter(move |(path, _)| path[folder.len()..].starts_with('/'))
            .map(|(path, bytes)| (path.as_str(), bytes.as_slice()))
    }

    /// What is no regular file, and what it is instead.
    pub fn odd(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.odd.iter().map(|(path, what)| (path.as_str(), *what))
    }

    /// Puts a file in, replacing what was there.
    pub fn insert(&mut self, path: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.files.insert(path.into(), bytes.into());
    }
}
