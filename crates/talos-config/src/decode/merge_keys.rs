//! What `<<` brings into a mapping.

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

impl Decoder<'_> {
    /// The entries of a mapping whose values have this shape, with what merge keys bring: in free-form values all that
    /// can be merged, in maps of texts only aliases. Explicit keys win, then what comes first.
    pub(super) fn expanded<'n>(&self, entries: &'n [(Node, Node)], inner: &Shape) -> Result<Entries<'n>> {
        let merge = |key: &Node| key.resolved().tag.is_none() && is_merge_key(key.resolved());
        if !entries.iter().any(|(key, _)| merge(key)) {
            return Ok(Entries::Written(entries));
        }
        let mut out: Vec<_> = entries.iter().filter(|(key, _)| !merge(key)).map(|(k, v)| (k, v)).collect();
        for (key, value) in entries.iter().filter(|(key, _)| merge(key)) {
            let (target, free) = (value.resolved(), *inner == Shape::Any);
            let alias = !std::ptr::eq(value, target);
            if !(free || alias && *inner == Shape::Text) {
                return Err(self.not_handled(key.pos, "the merge key '<<'", "write the keys out"));
            }
            let parts = match &target.kind {
                NodeKind::Mapping(_) => std::slice::from_ref(target),
                NodeKind::Sequence(elements) if free => elements,
                _ => return Err(self.misfit(target, "a mapping, or a list of mappings, after '<<:'")),
            };
            for part in parts {
                let NodeKind::Mapping(found) = &part.resolved().kind else {
                    return Err(self.misfit(part, "a mapping"));
                };
                for (k, v) in self.expanded(found, inner)?.iter() {
                    match out.iter().find(|(known, _)| known.text() == k.text()) {
                        None => out.push((k, v)),
                        Some((known, _)) if self.is_text_key(known) && self.is_text_key(k) => {}
                        Some(_) => {
                            return Err(self.not_handled(
                                key.pos,
                                "the merge key '<<'",
                                "write the keys out",
                            ));
                        }
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
