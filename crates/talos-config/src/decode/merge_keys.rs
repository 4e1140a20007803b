//! What `<<` brings into a mapping.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::{Decoder, Result, Scalar, is_merge_key};
use crate::node::{Node, NodeKind};
use crate::scalar::Plain;
use crate::tables::Shape;

/// Keys and values: as they stand in a mapping, or gathered.
pub(super) enum Entries<'n> {
    Written(&'n [(Node, Node)]),
    Merged(Vec<(&'n Node, &'n Node)>),
}

impl<'n> Entries<'n> {
    pub fn iter(&self) -> impl Iterator<Item = (&'n Node, &'n Node)> + '_ {
        let (written, merged): (&'n [(Node, Node)], &[_]) = match self {
            Entries::Written(entries) => (entries, &[]),
            Entries::Merged(entries) => (&[], entries),
        };
        written.iter().map(|(key, value)| (key, value)).chain(merged.iter().copied())
    }
}

/// What a merge key may bring into a mapping, which depends on what the mapping is decoded to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Merging {
    /// A free-form value: mappings, and lists of them.
    All,
    /// A map of texts: aliases of mappings only.
    Aliases,
    /// Anything else.
    Nothing,
}

impl Merging {
    /// For a map whose values have this shape.
    pub fn into_map(inner: &Shape) -> Self {
        match inner {
            Shape::Any => Merging::All,
            Shape::Text => Merging::Aliases,
            _ => Merging::Nothing,
        }
    }
}

impl Decoder<'_> {
    /// The entries of a mapping, with what merge keys bring. Explicit keys win, then what comes first.
    pub(super) fn expanded<'n>(&self, entries: &'n [(Node, Node)], merging: Merging) -> Result<Entries<'n>> {
        // an alias of a merge key is none
        let merge = |key: &Node| key.tag.is_none() && is_merge_key(key);
        if !entries.iter().any(|(key, _)| merge(key)) {
            return Ok(Entries::Written(entries));
        }
        let mut out: Vec<_> = entries.iter().filter(|(key, _)| !merge(key)).map(|(k, v)| (k, v)).collect();
        let mut known: HashMap<Option<&'n str>, &'n Node> = out.iter().map(|(k, _)| (k.text(), *k)).collect();
        for (key, value) in entries.iter().filter(|(key, _)| merge(key)) {
            let refused = || self.not_handled(key.pos, "the merge key '<<'", "write the keys out");
            let target = value.resolved();
            let alias = !std::ptr::eq(value, target);
            if merging == Merging::Nothing || merging == Merging::Aliases && !alias {
                return Err(refused());
            }
            let parts = match &target.kind {
                NodeKind::Mapping(_) => std::slice::from_ref(target),
                NodeKind::Sequence(elements) if merging == Merging::All && !alias => elements,
                _ => return Err(self.misfit(target, "a mapping, or a list of mappings, after '<<:'")),
            };
            for part in parts {
                let NodeKind::Mapping(found) = &part.resolved().kind else {
                    return Err(self.misfit(part, "a mapping"));
                };
                for (k, v) in self.expanded(found, merging)?.iter() {
                    match known.entry(k.text()) {
                        Entry::Vacant(entry) => {
                            entry.insert(k);
                            out.push((k, v));
                        }
                        Entry::Occupied(entry) if self.is_text_key(entry.get()) && self.is_text_key(k) => {}
                        Entry::Occupied(_) => return Err(refused()),
                    }
                }
            }
        }
        Ok(Entries::Merged(out))
    }

    /// Whether a key is read as text, and as no number, boolean or null.
    fn is_text_key(&self, key: &Node) -> bool {
        matches!(self.scalar(key.resolved()), Ok(Scalar::Plain(Plain::Text, _) | Scalar::Quoted(_)))
    }
}
