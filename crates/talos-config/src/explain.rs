//! Provenance: how each value of a configuration came to stand where it stands, and what of a patch was lost.

use std::collections::HashSet;
use std::fmt;

use crate::access::{Leaf, element, entry, leaf, leaves_of, visit};
use crate::config::{Config, Doc, Patch};
use crate::merge::{Surprise, SurpriseKind};
use crate::path::DocumentId;
use crate::tables::{Shape, Tables};
use crate::trail::Step;
use crate::value::{Data, Origin, Rule, Val};

/// A value with its provenance, and that of the list element which holds it.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The value, where it was written, and what it took the place of.
    pub leaf: Leaf,
    /// How the innermost list element that was merged or appended, and that holds the value, came about.
    pub element: Option<ElementRule>,
}

/// How a list element came to stand in its list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ElementRule {
    /// A patch put it behind those that were there.
    Appended,
    /// A patch merged into it, since both have the same value in one of these fields.
    MergedBy(Vec<String>),
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
    /// Every value that is set and printed, with its provenance, in the order of [`Config::leaves`].
    pub fn explain(&self) -> Vec<Explained> {
        let mut all = Vec::new();
        for doc in &self.docs {
            let shape = doc.shape(&self.tables);
            visit(&self.tables, &doc.root, shape, &mut Vec::new(), &mut |path, shape, val| {
                if let Some(origin) = val.origin {
                    let leaf = leaf(&self.tables, doc, path, shape, val, origin);
                    all.push(Explained { leaf, element: element_rule(&self.tables, doc, path) });
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
        let arrived: HashSet<Origin> =
            self.docs.iter().flat_map(|doc| leaves_of(&self.tables, doc)).map(|leaf| leaf.origin).collect();
        for leaf in patch.written().into_iter().filter(|leaf| !arrived.contains(&leaf.origin)) {
            if !all.iter().any(|known| known.patch == Some(leaf.origin)) {
                all.push(Unexpected {
                    document: leaf.document,
                    pointer: leaf.pointer,
                    kind: SurpriseKind::Lost,
                    patch: Some(leaf.origin),
                    before: None,
                });
            }
        }
        Ok((applied, all))
    }
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

/// How the innermost element on the way that a patch touched came about.
fn element_rule(tables: &Tables, doc: &Doc, path: &[Step<'_>]) -> Option<ElementRule> {
    let (mut val, mut shape): (&Val, &Shape) = (&doc.root, doc.shape(tables));
    let (mut found, mut identity) = (None, Vec::new());
    for step in path {
        (val, shape) = below(tables, val, shape, *step, &mut identity)?;
        if let Step::Index(_) = step {
            match val.rule {
                Rule::Appended => found = Some(ElementRule::Appended),
                Rule::Matched => found = Some(ElementRule::MergedBy(identity.clone())),
                _ => {}
            }
        }
    }
    found
}

/// One step down, through pointers and inline structs; `identity` is that of the last list's elements.
fn below<'v>(
    tables: &'v Tables,
    val: &'v Val,
    shape: &'v Shape,
    step: Step<'_>,
    identity: &mut Vec<String>,
) -> Option<(&'v Val, &'v Shape)> {
    if let Shape::Type(id) = shape {
        let of_list = &tables.ty(*id).identity;
        if !of_list.is_empty() {
            identity.clone_from(of_list);
        }
    }
    match (&val.data, tables.base(shape), step) {
        (Data::Ptr(inner), Shape::Ptr(s), _) => below(tables, inner, s, step, identity),
        (Data::List(items), base, Step::Index(i)) => Some((items.get(i)?, element(base))),
        (Data::Map(entries), base, Step::Key(key)) => {
            Some((&entries.iter().find(|(k, _)| **k == *key)?.1, entry(base)))
        }
        (Data::Struct(fields), base, Step::Key(key)) => {
            let s = tables.as_struct(base)?;
            s.fields.iter().zip(fields.iter()).find_map(|(field, v)| {
                if field.inline {
                    below(tables, v, &field.shape, step, identity)
                } else {
                    (field.key == key).then_some((v, &field.shape))
                }
            })
        }
        _ => None,
    }
}
