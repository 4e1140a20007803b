//! What differs between two configurations, value by value.

use std::collections::BTreeMap;

use crate::access::{LeafValue, leaf_value};
use crate::config::{Config, Doc};
use crate::path::DocumentId;
use crate::trail::pointer_of;
use crate::walk::visit;

/// How a value differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeKind {
    /// Only the old configuration has it.
    Removed,
    /// Both have it, with different values.
    Changed,
    /// Only the new configuration has it.
    Added,
}

/// One difference. List elements are compared by index. `Debug` shows no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The document.
    pub document: DocumentId,
    /// RFC 6901 pointer to the value; empty for a document that only one side has and that holds no value.
    pub pointer: String,
    /// How it differs.
    pub kind: ChangeKind,
    /// The old value.
    pub old: Option<LeafValue>,
    /// The new value.
    pub new: Option<LeafValue>,
}

/// Every difference from `old` to `new`: removals first, then changes, then additions; each group in the order
/// of documents and fields.
pub fn diff(old: &Config, new: &Config) -> Vec<Change> {
    let mut changes = Vec::new();
    for doc in &old.docs {
        let id = doc.id(&old.tables);
        let other = new.docs.iter().find(|d| d.id(&new.tables) == id);
        compare(&mut changes, &id, Some((old, doc)), other.map(|d| (new, d)));
    }
    for doc in &new.docs {
        let id = doc.id(&new.tables);
        if !old.docs.iter().any(|d| d.id(&old.tables) == id) {
            compare(&mut changes, &id, None, Some((new, doc)));
        }
    }
    changes.sort_by_key(|c| c.kind);
    changes
}

type Side<'a> = Option<(&'a Config, &'a Doc)>;

fn compare(changes: &mut Vec<Change>, id: &DocumentId, old: Side<'_>, new: Side<'_>) {
    let (before, after) = (values(old), values(new));
    let index: BTreeMap<&str, &LeafValue> = after.iter().map(|(p, v)| (p.as_str(), v)).collect();
    let past: BTreeMap<&str, &LeafValue> = before.iter().map(|(p, v)| (p.as_str(), v)).collect();
    let change = |pointer: &str, kind, old: Option<&LeafValue>, new: Option<&LeafValue>| Change {
        document: id.clone(),
        pointer: pointer.to_owned(),
        kind,
        old: old.cloned(),
        new: new.cloned(),
    };
    for (p, value) in &before {
        match index.get(p.as_str()) {
            None => changes.push(change(p, ChangeKind::Removed, Some(value), None)),
            Some(other) if *other != value => {
                changes.push(change(p, ChangeKind::Changed, Some(value), Some(other)));
            }
            Some(_) => {}
        }
    }
    for (p, value) in &after {
        if !past.contains_key(p.as_str()) {
            changes.push(change(p, ChangeKind::Added, None, Some(value)));
        }
    }
    if before.is_empty() && after.is_empty() && old.is_some() != new.is_some() {
        let kind = if old.is_some() { ChangeKind::Removed } else { ChangeKind::Added };
        changes.push(change("", kind, None, None));
    }
}

fn values(side: Side<'_>) -> Vec<(String, LeafValue)> {
    let mut out = Vec::new();
    if let Some((config, doc)) = side {
        let shape = doc.shape(&config.tables);
        visit(&config.tables, &doc.root, shape, &mut Vec::new(), &mut |path, shape, val| {
            out.push((pointer_of(path), leaf_value(&config.tables, shape, val)));
        });
    }
    out
}
