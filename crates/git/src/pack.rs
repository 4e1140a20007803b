//! Packs for a push: which objects the remote lacks, and their encoding (no deltas: our objects are small).

use std::collections::{HashMap, HashSet};
use std::io::Write;

use gix::objs::Kind;

use crate::error::{self, GitError};
use crate::{Oid, Repo};

/// The objects reachable from `tips` and not from `known`, which the remote has.
pub(crate) fn missing_objects(repo: &Repo, tips: &[Oid], known: &[Oid]) -> Result<Vec<Oid>, GitError> {
    let commits = repo.commits_between(tips, known)?;
    let repo = repo.local();
    let mut out = Vec::new();
    let mut seen = HashSet::new();
    for id in commits {
        out.push(id);
        let tree_of = |id: Oid| {
            let read = || repo.find_commit(id)?.tree_id().map(gix::Id::detach);
            read().map_err(error::object("commit", id))
        };
        let commit = repo.find_commit(id).map_err(error::object("commit", id))?;
        let parents = commit.parent_ids().map(|id| tree_of(id.detach())).collect::<Result<Vec<_>, _>>()?;
        let tree = tree_of(id)?;
        if !parents.contains(&tree) {
            add_tree(&repo, tree, &parents, &mut seen, &mut out)?;
        }
    }
    Ok(out)
}

/// Adds a tree and what is new in it against the trees at the same place in the parents.
fn add_tree(
    repo: &gix::Repository,
    id: Oid,
    olds: &[Oid],
    seen: &mut HashSet<Oid>,
    out: &mut Vec<Oid>,
) -> Result<(), GitError> {
    if !seen.insert(id) {
        return Ok(());
    }
    out.push(id);
    let mut before: HashMap<Vec<u8>, Vec<(Oid, bool)>> = HashMap::new();
    for old in olds {
        let tree = repo.find_tree(*old).map_err(error::object("tree", *old))?;
        for entry in tree.iter() {
            let entry = entry.map_err(error::object("tree", *old))?;
            let known = (entry.object_id(), entry.mode().is_tree());
            before.entry(entry.filename().to_vec()).or_default().push(known);
        }
    }
    let tree = repo.find_tree(id).map_err(error::object("tree", id))?;
    for entry in tree.iter() {
        let entry = entry.map_err(error::object("tree", id))?;
        let known = before.get(&entry.filename().to_vec()).map_or(&[][..], Vec::as_slice);
        if entry.mode().is_commit() || known.iter().any(|(id, _)| *id == entry.object_id()) {
            continue;
        }
        if entry.mode().is_tree() {
            let below: Vec<Oid> = known.iter().filter(|(_, is_tree)| *is_tree).map(|(id, _)| *id).collect();
            add_tree(repo, entry.object_id(), &below, seen, out)?;
        } else if seen.insert(entry.object_id()) {
            out.push(entry.object_id());
        }
    }
    Ok(())
}

/// Writes a version 2 pack of whole objects.
pub(crate) fn write_pack(repo: &Repo, ids: &[Oid], out: impl Write) -> std::io::Result<()> {
    let repo = repo.local();
    let mut pack = gix::hash::io::Write::new(out, repo.object_hash());
    let count = u32::try_from(ids.len()).map_err(std::io::Error::other)?;
    pack.write_all(b"PACK\0\0\0\x02")?;
    pack.write_all(&count.to_be_bytes())?;
    for id in ids {
        let object = repo.find_object(*id).map_err(std::io::Error::other)?;
        pack.write_all(&entry_header(object.kind, object.data.len() as u64))?;
        let mut deflate =
            gix::zlib::stream::deflate::Write::new(&mut pack, gix::zlib::Compression::BEST_SPEED);
        deflate.write_all(&object.data)?;
        deflate.flush()?;
    }
    let checksum = pack.hash.try_finalize().map_err(std::io::Error::other)?;
    pack.inner.write_all(checksum.as_slice())?;
    pack.inner.flush()
}

/// The type and the inflated size: four bits of size in the first byte, seven in each that follows.
fn entry_header(kind: Kind, mut size: u64) -> Vec<u8> {
    let kind: u8 = match kind {
        Kind::Commit => 1,
        Kind::Tree => 2,
        Kind::Blob => 3,
        Kind::Tag => 4,
    };
    let mut header = Vec::with_capacity(5);
    let mut byte = (kind << 4) | (size & 0x0f) as u8;
    size >>= 4;
    while size != 0 {
        header.push(byte | 0x80);
        byte = (size & 0x7f) as u8;
        size >>= 7;
    }
    header.push(byte);
    header
}
