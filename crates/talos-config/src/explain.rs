//! Provenance: how each value of a configuration came to stand where it stands, and what of a patch was lost.

use std::collections::HashSet;
use std::fmt;

use crate::access::{Leaf, LeafValue, leaf, leaves_of};
use crate::config::{Config, Patch};
use crate::merge::{Surprise, SurpriseKind};
use crate::path::DocumentId;
use crate::value::{Origin, Rule};
use crate::walk::visit_held;

/// A value with its provenance, and that of the list element which holds it.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The value, where it was written, and what it took the place of.
    pub leaf: Leaf,
    /// How the innermost list element that was merged or appended, and that holds the value, came about.
    pub element: Option<ElementRule>,
    /// Where the list or mapping stood that a patch replaced as a whole by the one which holds the value.
    pub whole: Option<Origin>,
}

/// How a list element came to stand in its list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ElementRule {
    /// A patch put it behind those that were there.
    Appended,
    /// A patch merged into it, since both have the same value in one of these fields.
    MergedBy(Vec<String>),
}

impl ElementRule {
    fn of(rule: Rule, identity: &[String]) -> Self {
        match rule {
            Rule::Matched => ElementRule::MergedBy(identity.to_vec()),
            _ => ElementRule::Appended,
        }
    }
}

impl fmt::Display for ElementRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ElementRule::Appended => f.write_str("element appended"),
            ElementRule::MergedBy(keys) => write!(f, "element merged by {}", keys.join(" or ")),
        }
    }
}

/// A value of a patch that Talos' rules did something unexpected with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unexpected {
    /// The document.
    pub document: DocumentId,
    /// RFC 6901 pointer within the document.
    pub pointer: String,
    /// What happened.
    pub kind: SurpriseKind,
    /// Where the patch speaks of the value, or of what holds it.
    pub patch: Option<Origin>,
    /// Where the value that was there before was written.
    pub before: Option<Origin>,
}

impl Config {
    /// Every value that was written and is printed, empty mappings and nulls included, with its provenance, in the order of [`Config::leaves`].
    pub fn explain(&self) -> Vec<Explained> {
        let mut all = Vec::new();
        for doc in &self.docs {
            let shape = doc.shape(&self.tables);
            let tables = &self.tables;
            visit_held(tables, &doc.root, shape, &mut Vec::new(), &mut |path, shape, val, held| {
                if let Some(origin) = val.origin {
                    all.push(Explained {
                        leaf: leaf(tables, doc, path, shape, val, origin),
                        element: held.element.map(|(rule, identity)| ElementRule::of(rule, identity)),
                        whole: held.overrode.filter(|_| val.overrode.is_none()),
                    });
                }
            });
        }
        all
    }

    /// Applies a patch as [`Config::apply`] does, and tells what people do not expect of it: values that were
    /// erased or kept against what the patch seems to say, elements that stand twice, and values of the patch
    /// that are not in the result.
    ///
    /// # Errors
    /// As [`Config::apply`].
    pub fn apply_explained(
        &mut self,
        patch: &Patch,
    ) -> Result<(crate::Applied, Vec<Unexpected>), crate::MergeError> {
        let (applied, surprises) = self.apply_watched(patch)?;
        let mut all: Vec<Unexpected> = surprises.into_iter().map(|(document, s)| s.at(document)).collect();
        // what the same patch wrote over, or said twice, is not lost
        let (mut arrived, mut said) = (HashSet::new(), HashSet::new());
        for leaf in self.docs.iter().flat_map(|doc| leaves_of(&self.tables, doc)) {
            arrived.extend([Some(leaf.origin), leaf.overrode].into_iter().flatten());
            said.insert(without_places(leaf));
        }
        let known: HashSet<Option<Origin>> = all.iter().map(|known| known.patch).collect();
        for leaf in patch.written() {
            let origin = leaf.origin;
            if arrived.contains(&origin) || known.contains(&Some(origin)) {
                continue;
            }
            let (document, pointer) = (leaf.document.clone(), leaf.pointer.clone());
            if !said.contains(&without_places(leaf)) {
                let patch = Some(origin);
                all.push(Unexpected { document, pointer, kind: SurpriseKind::Lost, patch, before: None });
            }
        }
        Ok((applied, all))
    }
}

/// What a leaf says and in which field, whichever element of a list holds it.
fn without_places(leaf: Leaf) -> (DocumentId, String, LeafValue) {
    let number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let parts: Vec<&str> =
        leaf.pointer.split('/').map(|part| if number(part) { "*" } else { part }).collect();
    (leaf.document, parts.join("/"), leaf.value)
}

impl Surprise {
    fn at(self, document: DocumentId) -> Unexpected {
        Unexpected {
            document,
            pointer: crate::path::pointer(&self.segments),
            kind: self.kind,
            patch: self.patch,
            before: self.before,
        }
    }
}

impl SurpriseKind {
    /// A stable word for programs.
    pub fn code(self) -> &'static str {
        match self {
            SurpriseKind::Erased => "value-erased",
            SurpriseKind::ZeroKept => "zero-ignored",
            SurpriseKind::NullKept => "null-ignored",
            SurpriseKind::Repeated => "element-repeated",
            SurpriseKind::Lost => "value-lost",
        }
    }

    /// What one can do about it.
    pub fn way_out(self) -> &'static str {
        match self {
            SurpriseKind::Erased => "repeat the value in this patch, or set it in a later one",
            SurpriseKind::ZeroKept => "unset the field with '$patch: delete', or leave it out",
            SurpriseKind::NullKept => "use '$patch: delete', or leave it out",
            SurpriseKind::Repeated => "leave the element out: lists are appended, not compared",
            SurpriseKind::Lost => "leave it out, or set what it depends on",
        }
    }
}

impl fmt::Display for SurpriseKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SurpriseKind::Erased => {
                "the patch does not set this value, and Talos erases what was there: fields of this type are overwritten even by nothing"
            }
            SurpriseKind::ZeroKept => {
                "Talos takes this value for 'not set' and keeps what was there: zeros, empty texts and the first word of some enumerations do not overwrite"
            }
            SurpriseKind::NullKept => "null, an empty list and an empty map change nothing here: what was there stays",
            SurpriseKind::Repeated => "the list holds an equal element already, and now stands there twice",
            SurpriseKind::Lost => "the value is not in the result: Talos leaves it out",
        })
    }
}
