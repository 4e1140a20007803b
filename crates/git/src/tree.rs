//! Trees: reading them without a checkout, and writing changed ones.

use std::collections::BTreeMap;

use gix::objs::tree::EntryKind as GixKind;

use crate::error::{self, GitError};
use crate::{Oid, Repo};

/// What kind of thing a tree entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A regular file with the executable bit.
    Executable,
    /// A symbolic link.
    Link,
    /// A submodule.
    Submodule,
}

/// An entry that is not a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it is.
    pub kind: EntryKind,
    /// The blob (or the submodule's commit).
    pub id: Oid,
}

/// A change to one path of a tree: new bytes of a regular file, or its removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEdit {
    /// The path, segments joined by `/`.
    pub path: String,
    /// The new content; `None` removes the path.
    pub content: Option<Vec<u8>>,
}

impl TreeEdit {
    /// Writes a regular file.
    pub fn write(path: impl Into<String>, content: impl Into<Vec<u8>>) -> TreeEdit {
        TreeEdit { path: path.into(), content: Some(content.into()) }
    }

    /// Removes a file.
    pub fn remove(path: impl Into<String>) -> TreeEdit {
        TreeEdit { path: path.into(), content: None }
    }
}

/// One tree, read on demand.
#[derive(Clone, Debug)]
pub struct TreeView {
    repo: Repo,
    id: Oid,
}

impl TreeView {
    pub(crate) fn new(repo: Repo, id: Oid) -> TreeView {
        TreeView { repo, id }
    }

    /// The tree's own id.
    pub fn id(&self) -> Oid {
        self.id
    }

    /// The entry at a path, `None` when there is none or it is a folder.
    ///
    /// # Errors
    /// [`GitError::Object`] when an object is missing.
    pub fn entry(&self, path: &str) -> Result<Option<Entry>, GitError> {
        let repo = self.repo.local();
        let tree = repo.find_tree(self.id).map_err(error::object("tree", self.id))?;
        let found = tree.lookup_entry_by_path(path).map_err(error::object("tree", self.id))?;
        Ok(found
            .and_then(|entry| kind_of(entry.mode().kind()).map(|kind| Entry { kind, id: entry.object_id() })))
    }

    /// The bytes of a file, `None` when the path is no file.
    ///
    /// # Errors
    /// [`GitError::Object`] when an object is missing.
    pub fn read(&self, path: &str) -> Result<Option<Vec<u8>>, GitError> {
        match self.entry(path)? {
            Some(Entry { kind: EntryKind::File | EntryKind::Executable, id }) => self.blob(id).map(Some),
            _ => Ok(None),
        }
    }

    /// The bytes of a file that a stranger may have written: looked at before they are read.
    ///
    /// # Errors
    /// [`GitError::TooLarge`] beyond `limit` bytes, [`GitError::Object`] when an object is missing.
    pub fn read_at_most(&self, path: &str, limit: u64) -> Result<Option<Vec<u8>>, GitError> {
        let Some(entry) = self.entry(path)? else { return Ok(None) };
        let header = self.repo.local().find_header(entry.id).map_err(error::object("blob", entry.id))?;
        if header.size() > limit {
            return Err(GitError::TooLarge { path: path.to_owned(), size: header.size(), limit });
        }
        self.read(path)
    }

    /// The bytes of a blob.
    ///
    /// # Errors
    /// [`GitError::Object`] when it is missing.
    pub fn blob(&self, id: Oid) -> Result<Vec<u8>, GitError> {
        let repo = self.repo.local();
        let mut blob = repo.find_blob(id).map_err(error::object("blob", id))?;
        Ok(blob.take_data())
    }

    /// Every entry below a folder (`""` for all), by its full path.
    ///
    /// # Errors
    /// [`GitError::Object`] when an object is missing.
    pub fn list(&self, folder: &str) -> Result<BTreeMap<String, Entry>, GitError> {
        let repo = self.repo.local();
        let mut out = BTreeMap::new();
        let root = if folder.is_empty() {
            Some(self.id)
        } else {
            let tree = repo.find_tree(self.id).map_err(error::object("tree", self.id))?;
            tree.lookup_entry_by_path(folder)
                .map_err(error::object("tree", self.id))?
                .filter(|entry| entry.mode().is_tree())
                .map(|entry| entry.object_id())
        };
        if let Some(id) = root {
            let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
            collect(&repo, id, &prefix, &mut out)?;
        }
        Ok(out)
    }

    /// The names of the folders directly below a folder.
    ///
    /// # Errors
    /// [`GitError::Object`] when an object is missing.
    pub fn folders(&self, folder: &str) -> Result<Vec<String>, GitError> {
        let repo = self.repo.local();
        let root = repo.find_tree(self.id).map_err(error::object("tree", self.id))?;
        let tree = match folder {
            "" => root,
            _ => match root.lookup_entry_by_path(folder).map_err(error::object("tree", self.id))? {
                Some(entry) if entry.mode().is_tree() => {
                    let id = entry.object_id();
                    repo.find_tree(id).map_err(error::object("tree", id))?
                }
                _ => return Ok(Vec::new()),
            },
        };
        let mut names = Vec::new();
        for entry in tree.iter() {
            let entry = entry.map_err(error::object("tree", tree.id))?;
            if entry.mode().is_tree() {
                names.push(entry.filename().to_string());
            }
        }
        Ok(names)
    }
}

fn kind_of(kind: GixKind) -> Option<EntryKind> {
    match kind {
        GixKind::Tree => None,
        GixKind::Blob => Some(EntryKind::File),
        GixKind::BlobExecutable => Some(EntryKind::Executable),
        GixKind::Link => Some(EntryKind::Link),
        GixKind::Commit => Some(EntryKind::Submodule),
    }
}

fn collect(
    repo: &gix::Repository,
    id: Oid,
    prefix: &str,
    out: &mut BTreeMap<String, Entry>,
) -> Result<(), GitError> {
    let tree = repo.find_tree(id).map_err(error::object("tree", id))?;
    for entry in tree.iter() {
        let entry = entry.map_err(error::object("tree", id))?;
        // a name that is not UTF-8 stays visible, so that whoever checks paths can refuse it
        let path = format!("{prefix}{}", entry.filename());
        match kind_of(entry.mode().kind()) {
            Some(kind) => {
                out.insert(path, Entry { kind, id: entry.object_id() });
            }
            None => collect(repo, entry.object_id(), &format!("{path}/"), out)?,
        }
    }
    Ok(())
}

/// Which paths differ between two trees (added, removed or changed in bytes or mode).
///
/// # Errors
/// [`GitError::Object`] when an object is missing.
pub fn changed_paths(old: &TreeView, new: &TreeView) -> Result<Vec<String>, GitError> {
    let repo = new.repo.local();
    let mut out = Vec::new();
    diff(&repo, Some(old.id), Some(new.id), "", &mut out)?;
    out.sort();
    Ok(out)
}

type Level = BTreeMap<Vec<u8>, (GixKind, Oid)>;

fn level(repo: &gix::Repository, id: Option<Oid>) -> Result<Level, GitError> {
    let Some(id) = id else { return Ok(Level::new()) };
    let tree = repo.find_tree(id).map_err(error::object("tree", id))?;
    let mut out = Level::new();
    for entry in tree.iter() {
        let entry = entry.map_err(error::object("tree", id))?;
        out.insert(entry.filename().to_vec(), (entry.mode().kind(), entry.object_id()));
    }
    Ok(out)
}

fn diff(
    repo: &gix::Repository,
    old: Option<Oid>,
    new: Option<Oid>,
    prefix: &str,
    out: &mut Vec<String>,
) -> Result<(), GitError> {
    if old == new {
        return Ok(());
    }
    let (olds, news) = (level(repo, old)?, level(repo, new)?);
    let names: std::collections::BTreeSet<_> = olds.keys().chain(news.keys()).collect();
    for name in names {
        let (before, after) = (olds.get(name), news.get(name));
        if before == after {
            continue;
        }
        let path = format!("{prefix}{}", String::from_utf8_lossy(name));
        let folder = |side: Option<&(GixKind, Oid)>| {
            side.filter(|(kind, _)| *kind == GixKind::Tree).map(|(_, id)| *id)
        };
        let (old_folder, new_folder) = (folder(before), folder(after));
        if old_folder.is_some() || new_folder.is_some() {
            diff(repo, old_folder, new_folder, &format!("{path}/"), out)?;
        }
        let is_file = |side: Option<&(GixKind, Oid)>| side.is_some_and(|(kind, _)| *kind != GixKind::Tree);
        if is_file(before) || is_file(after) {
            out.push(path);
        }
    }
    Ok(())
}

impl Repo {
    /// Writes a tree: `base` (an empty tree when `None`) with the edits made. Objects only, no ref moves.
    ///
    /// # Errors
    /// [`GitError::BadPath`] for a path that Git could not hold, [`GitError::Write`] otherwise.
    pub fn write_tree(&self, base: Option<Oid>, edits: &[TreeEdit]) -> Result<TreeView, GitError> {
        let repo = self.local();
        let base = base.unwrap_or_else(|| Oid::empty_tree(repo.object_hash()));
        if base.is_empty_tree() {
            repo.write_object(gix::objs::Tree::empty()).map_err(error::write("the empty tree"))?;
        }
        let mut editor = repo.edit_tree(base).map_err(error::object("tree", base))?;
        for edit in edits {
            let sound = edit
                .path
                .split('/')
                .all(|part| !part.is_empty() && part != "." && part != ".." && part != ".git");
            if !sound {
                return Err(GitError::BadPath { path: edit.path.clone() });
            }
            let changed = match &edit.content {
                Some(bytes) => {
                    let blob = repo.write_blob(bytes).map_err(error::write(format!("`{}`", edit.path)))?;
                    editor.upsert(edit.path.as_str(), GixKind::Blob, blob).map(drop)
                }
                None => editor.remove(edit.path.as_str()).map(drop),
            };
            changed.map_err(error::write(format!("`{}`", edit.path)))?;
        }
        let id = editor.write().map_err(error::write("a tree"))?.detach();
        Ok(TreeView::new(self.clone(), id))
    }

    /// The view of a tree by its id.
    pub fn tree(&self, id: Oid) -> TreeView {
        TreeView::new(self.clone(), id)
    }
}
