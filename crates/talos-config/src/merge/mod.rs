//! Merging two values of one type by Talos' rules.

mod keyed;
mod opaque;
mod surprise;

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::MergeReason;
use crate::tables::{Body, Codec, Merge, Refused, Shape, Struct, Tables, ZeroMerge};
use crate::trail::{Step, segments_of};
use crate::value::{Data, Entries, Origin, Rule, Val, ZERO};

pub(crate) use surprise::Surprise;
pub use surprise::SurpriseKind;

/// What went wrong, and where below the value that was merged.
pub(crate) struct Failure {
    pub reason: MergeReason,
    pub path: Vec<String>,
    pub origin: Option<Origin>,
}

type Result = std::result::Result<(), Failure>;

#[derive(Clone, Copy, Default)]
struct How {
    /// The right side takes the place of the left.
    replace: bool,
    /// Zero scalars overwrite too: set below a pointer, for the pointee itself only.
    overwrite: bool,
}

pub(crate) struct Merger<'a> {
    tables: &'a Tables,
    path: Vec<Step<'a>>,
    /// What people do not expect, noted only when somebody wants to know.
    surprises: Option<Vec<Surprise>>,
    /// Where the innermost part of the patch on the way was written.
    near: Option<Origin>,
}

impl<'a> Merger<'a> {
    pub fn new(tables: &'a Tables, watched: bool) -> Self {
        Merger { tables, path: Vec::new(), surprises: watched.then(Vec::new), near: None }
    }

    /// Merges `right` into `left`, both roots of documents of one kind. Gives the surprises that were noted.
    pub fn documents(
        mut self,
        left: &mut Val,
        right: &'a Val,
        shape: &'a Shape,
    ) -> std::result::Result<Vec<Surprise>, Failure> {
        self.merge(left, right, shape, How::default())?;
        Ok(self.surprises.unwrap_or_default())
    }

    fn fail(&self, reason: MergeReason, right: &Val) -> Failure {
        Failure { reason, path: segments_of(&self.path), origin: right.origin }
    }

    fn merge(&mut self, left: &mut Val, right: &'a Val, shape: &'a Shape, how: How) -> Result {
        if matches!(left.data, Data::Opaque(_)) || matches!(right.data, Data::Opaque(_)) {
            return self.opaque(left, right, shape, how);
        }
        match shape {
            Shape::Ptr(inner) => match (&mut left.data, &right.data) {
                (Data::Ptr(l), Data::Ptr(r)) => {
                    self.merge(Arc::make_mut(l), r, inner, How { overwrite: true, ..how })
                }
                (_, Data::Ptr(_)) => {
                    take(left, right);
                    Ok(())
                }
                _ => {
                    self.note_null(left, right);
                    Ok(())
                }
            },
            Shape::List(_) => {
                self.list(left, right, how);
                Ok(())
            }
            Shape::Map(inner) => self.map(left, right, inner, how),
            Shape::Any => self.free(left, right),
            Shape::Bool => {
                take(left, right);
                Ok(())
            }
            Shape::Int { .. } | Shape::Text => {
                self.scalar(left, right, how);
                Ok(())
            }
            Shape::Type(id) => self.named(left, right, *id, how),
        }
    }

    fn named(&mut self, left: &mut Val, right: &'a Val, id: usize, how: How) -> Result {
        let tables = self.tables;
        let ty = tables.ty(id);
        match ty.refused {
            Refused::Always if !matches!(ty.body, Body::Leaf(Codec::Url)) => {
                return Err(self.fail(MergeReason::NotMergeable, right));
            }
            _ => {}
        }
        match ty.merge {
            Merge::Erase => {
                self.note_erased(left, right);
                take(left, right);
                return Ok(());
            }
            Merge::Replace => {
                self.scalar(left, right, How::default());
                return Ok(());
            }
            Merge::Values => {
                values(left, right);
                return Ok(());
            }
            Merge::Keyed => return self.keyed(left, right, id),
            Merge::Custom => return Err(self.fail(MergeReason::NotMergeable, right)),
            Merge::General => {}
        }
        match &ty.body {
            Body::Is(shape) | Body::Leaf(Codec::InlineManifests(shape)) => {
                self.merge(left, right, shape, how)
            }
            Body::Struct(_) if how.replace => {
                if !right.is_go_zero() {
                    take(left, right);
                }
                Ok(())
            }
            Body::Struct(s) => self.fields(left, right, s, ty.zero_merge),
            Body::Leaf(codec) => self.leaf(left, right, codec, how),
        }
    }

    /// Field by field. A field that neither side has set, or that the right side has not set and that does not
    /// write zeros, is not visited: most are.
    fn fields(&mut self, left: &mut Val, right: &'a Val, s: &'a Struct, zero: ZeroMerge) -> Result {
        let rights: &'a [Val] = match &right.data {
            Data::Struct(fields) => fields,
            _ => {
                self.note_null(left, right);
                &[]
            }
        };
        if rights.is_empty() && skipped(zero, left) {
            return Ok(());
        }
        self.near = right.origin.or(self.near);
        let Some(fields) = left.fields_mut(s.fields.len()) else { return Ok(()) };
        for (i, (field, l)) in s.fields.iter().zip(fields).enumerate() {
            let r = rights.get(i).unwrap_or(&ZERO);
            if matches!(r.data, Data::Zero) && r.origin.is_none() && skipped(field.zero_merge, l) {
                continue;
            }
            if !field.inline {
                self.path.push(Step::Key(&field.key));
            }
            self.merge(l, r, &field.shape, How { replace: field.replace, overwrite: false })?;
            if !field.inline {
                self.path.pop();
            }
        }
        Ok(())
    }

    fn leaf(&mut self, left: &mut Val, right: &'a Val, codec: &Codec, how: How) -> Result {
        match codec {
            Codec::Url => match (&mut left.data, &right.data) {
                (_, Data::Zero) => Ok(()),
                (Data::Url(l), Data::Url(r)) => {
                    if Arc::make_mut(l).merge(r).is_err() {
                        return Err(self.fail(MergeReason::NotMergeable, right));
                    }
                    replaced(left, right);
                    Ok(())
                }
                _ => {
                    take(left, right);
                    Ok(())
                }
            },
            Codec::Size => {
                if let (Data::Size(l), Data::Size(r)) = (&mut left.data, &right.data) {
                    let l = Arc::make_mut(l);
                    if r.percent.is_some() {
                        l.percent.clone_from(&r.percent);
                    }
                    if r.bytes.is_some() {
                        l.bytes.clone_from(&r.bytes);
                    }
                    replaced(left, right);
                } else {
                    self.scalar(left, right, how);
                }
                Ok(())
            }
            Codec::Base64 { .. } | Codec::HardwareAddr => {
                self.note_erased(left, right);
                self.scalar(left, right, how);
                Ok(())
            }
            _ => {
                self.scalar(left, right, how);
                Ok(())
            }
        }
    }

    fn scalar(&mut self, left: &mut Val, right: &Val, how: How) {
        if how.overwrite || !right.is_go_zero() {
            take(left, right);
        } else {
            self.note_kept(left, right);
        }
    }

    fn list(&mut self, left: &mut Val, right: &'a Val, how: How) {
        match (&mut left.data, &right.data) {
            (_, Data::List(_)) if how.replace => take(left, right),
            (Data::List(l), Data::List(r)) if !r.is_empty() => {
                let before = l.len();
                Arc::make_mut(l).extend(r.iter().map(appended));
                self.note_repeated(left, before);
            }
            (Data::List(_), Data::List(_)) => self.note_kept(left, right),
            (_, Data::List(_)) => take(left, right),
            _ => self.note_null(left, right),
        }
    }

    fn map(&mut self, left: &mut Val, right: &'a Val, inner: &'a Shape, how: How) -> Result {
        let Data::Map(entries) = &right.data else {
            self.note_null(left, right);
            return Ok(());
        };
        if how.replace || !matches!(left.data, Data::Map(_)) {
            take(left, right);
            return Ok(());
        }
        if entries.is_empty() {
            self.note_kept(left, right);
            return Ok(());
        }
        let nils =
            matches!(self.tables.base(inner), Shape::Any | Shape::Ptr(_) | Shape::List(_) | Shape::Map(_));
        let Data::Map(lefts) = &mut left.data else { return Ok(()) };
        let lefts = Arc::make_mut(lefts);
        let index = Index::of(lefts, entries.len());
        for (key, r) in entries.iter() {
            match index.find(lefts, key) {
                None => lefts.push((Arc::clone(key), r.clone())),
                Some(i) if nils && matches!(lefts[i].1.data, Data::Zero) => take(&mut lefts[i].1, r),
                Some(i) => {
                    self.path.push(Step::Key(key));
                    self.merge(&mut lefts[i].1, r, inner, How::default())?;
                    self.path.pop();
                }
            }
        }
        Ok(())
    }

    /// Free-form values: the left one is neither absent nor null here.
    fn free(&mut self, left: &mut Val, right: &'a Val) -> Result {
        static ANY: Shape = Shape::Any;
        match (&mut left.data, &right.data) {
            (Data::Zero, _) => take(left, right),
            (_, Data::Zero) => return Err(self.fail(MergeReason::NullOverValue, right)),
            (Data::Text(_), Data::Text(_))
            | (Data::Float(_), Data::Float(_))
            | (Data::Int(_), Data::Int(_))
            | (Data::Big(_), Data::Big(_)) => self.scalar(left, right, How::default()),
            (Data::Bool(_), Data::Bool(_)) => take(left, right),
            (Data::List(_), Data::List(_)) => self.list(left, right, How::default()),
            (Data::Map(_), Data::Map(_)) => return self.map(left, right, &ANY, How::default()),
            _ => return Err(self.fail(MergeReason::TypeMismatch, right)),
        }
        Ok(())
    }
}

/// Whether merging an unset value changes nothing.
fn skipped(zero: ZeroMerge, left: &Val) -> bool {
    match zero {
        ZeroMerge::Keeps => true,
        ZeroMerge::Writes => matches!(left.data, Data::Zero),
        ZeroMerge::Refuses => false,
    }
}

fn values(left: &mut Val, right: &Val) {
    let Data::Map(entries) = &right.data else { return };
    if entries.is_empty() {
        return;
    }
    if !matches!(left.data, Data::Map(_)) {
        left.data = Data::Map(Arc::default());
        left.origin = right.origin;
    }
    let Data::Map(lefts) = &mut left.data else { return };
    let lefts = Arc::make_mut(lefts);
    let index = Index::of(lefts, entries.len());
    for (key, r) in entries.iter() {
        match index.find(lefts, key) {
            Some(i) => take(&mut lefts[i].1, r),
            None => lefts.push((Arc::clone(key), r.clone())),
        }
    }
}

/// Where each key stands, so that merging large maps stays linear. Keys of one side are unique.
struct Index(Option<HashMap<Arc<str>, usize>>);

impl Index {
    fn of(entries: &Entries, wanted: usize) -> Self {
        let large = entries.len() * wanted > 256;
        Index(large.then(|| entries.iter().enumerate().map(|(i, (key, _))| (Arc::clone(key), i)).collect()))
    }

    fn find(&self, entries: &Entries, key: &str) -> Option<usize> {
        match &self.0 {
            Some(index) => index.get(key).copied(),
            None => entries.iter().position(|(k, _)| **k == *key),
        }
    }
}

fn appended(right: &Val) -> Val {
    Val { rule: Rule::Appended, ..right.clone() }
}

/// The right value takes the left one's place and remembers where that was.
fn take(left: &mut Val, right: &Val) {
    let before = if matches!(left.data, Data::Zero) { None } else { left.origin };
    let rule = left.rule;
    *left = right.clone();
    if before.is_some() {
        left.overrode = before;
        left.rule = Rule::Replaced;
    }
    // an element stays an element that a patch added
    if rule == Rule::Appended {
        left.rule = rule;
    }
}

/// The left value was changed in place by the right one.
fn replaced(left: &mut Val, right: &Val) {
    left.overrode = left.origin;
    left.origin = right.origin;
    left.rule = Rule::Replaced;
}
