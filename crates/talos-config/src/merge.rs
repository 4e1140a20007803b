//! Merging two values of one type by Talos' rules.

use std::collections::HashMap;

use crate::error::MergeReason;
use crate::tables::{Body, Codec, Merge, Refused, Shape, Tables};
use crate::value::{Data, Origin, Val};

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
    pub tables: &'a Tables,
    path: Vec<String>,
}

impl<'a> Merger<'a> {
    pub fn new(tables: &'a Tables) -> Self {
        Merger { tables, path: Vec::new() }
    }

    /// Merges `right` into `left`, both roots of documents of one kind.
    pub fn documents(&mut self, left: &mut Val, right: &Val, shape: &Shape) -> Result {
        self.merge(left, right, shape, How::default())
    }

    fn fail(&self, reason: MergeReason, right: &Val) -> Failure {
        Failure { reason, path: self.path.clone(), origin: right.origin }
    }

    fn merge(&mut self, left: &mut Val, right: &Val, shape: &Shape, how: How) -> Result {
        if matches!(left.data, Data::Opaque(_)) || matches!(right.data, Data::Opaque(_)) {
            return self.opaque(left, right, shape, how);
        }
        match shape {
            Shape::Ptr(inner) => match (&mut left.data, &right.data) {
                (Data::Ptr(l), Data::Ptr(r)) => self.merge(l, r, inner, How { overwrite: true, ..how }),
                (_, Data::Ptr(_)) => {
                    take(left, right);
                    Ok(())
                }
                _ => Ok(()),
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
                scalar(left, right, how);
                Ok(())
            }
            Shape::Type(id) => self.named(left, right, *id, how),
        }
    }

    fn named(&mut self, left: &mut Val, right: &Val, id: usize, how: How) -> Result {
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
                take(left, right);
                return Ok(());
            }
            Merge::Replace => {
                scalar(left, right, How::default());
                return Ok(());
            }
            Merge::Values => {
                self.values(left, right);
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
            Body::Struct(s) => {
                if how.replace {
                    if !right.is_go_zero() {
                        take(left, right);
                    }
                    return Ok(());
                }
                let zero = Val::default();
                let Some(fields) = left.fields_mut(s.fields.len()) else { return Ok(()) };
                for (i, (field, l)) in s.fields.iter().zip(fields).enumerate() {
                    let r = match &right.data {
                        Data::Struct(fields) => fields.get(i).unwrap_or(&zero),
                        _ => &zero,
                    };
                    if !field.inline {
                        self.path.push(field.key.clone());
                    }
                    self.merge(l, r, &field.shape, How { replace: field.replace, overwrite: false })?;
                    if !field.inline {
                        self.path.pop();
                    }
                }
                Ok(())
            }
            Body::Leaf(codec) => self.leaf(left, right, codec, how),
        }
    }

    fn leaf(&mut self, left: &mut Val, right: &Val, codec: &Codec, how: How) -> Result {
        match codec {
            Codec::Url => match (&mut left.data, &right.data) {
                (_, Data::Zero) => Ok(()),
                (Data::Url(l), Data::Url(r)) => {
                    if l.merge(r).is_err() {
                        return Err(self.fail(MergeReason::NotMergeable, right));
                    }
                    left.overrode = left.origin;
                    left.origin = right.origin;
                    Ok(())
                }
                _ => {
                    take(left, right);
                    Ok(())
                }
            },
            Codec::Size => {
                if let (Data::Size { percent: p, bytes: b }, Data::Size { percent, bytes }) =
                    (&mut left.data, &right.data)
                {
                    if percent.is_some() {
                        p.clone_from(percent);
                    }
                    if bytes.is_some() {
                        b.clone_from(bytes);
                    }
                    left.overrode = left.origin;
                    left.origin = right.origin;
                } else {
                    scalar(left, right, how);
                }
                Ok(())
            }
            _ => {
                scalar(left, right, how);
                Ok(())
            }
        }
    }

    fn list(&mut self, left: &mut Val, right: &Val, how: How) {
        match (&mut left.data, &right.data) {
            (_, Data::List(_)) if how.replace => take(left, right),
            (Data::List(l), Data::List(r)) => l.extend(r.iter().cloned()),
            (_, Data::List(_)) => take(left, right),
            _ => {}
        }
    }

    fn map(&mut self, left: &mut Val, right: &Val, inner: &Shape, how: How) -> Result {
        let Data::Map(entries) = &right.data else { return Ok(()) };
        if how.replace || !matches!(left.data, Data::Map(_)) {
            take(left, right);
            return Ok(());
        }
        let nils =
            matches!(self.tables.base(inner), Shape::Any | Shape::Ptr(_) | Shape::List(_) | Shape::Map(_));
        let Data::Map(lefts) = &mut left.data else { return Ok(()) };
        let index = key_index(lefts);
        for (key, r) in entries {
            match index.get(key).map(|i| &mut lefts[*i].1) {
                None => lefts.push((key.clone(), r.clone())),
                Some(l) if nils && matches!(l.data, Data::Zero) => take(l, r),
                Some(l) => {
                    self.path.push(key.clone());
                    self.merge(l, r, inner, How::default())?;
                    self.path.pop();
                }
            }
        }
        Ok(())
    }

    fn values(&mut self, left: &mut Val, right: &Val) {
        let Data::Map(entries) = &right.data else { return };
        if entries.is_empty() {
            return;
        }
        if !matches!(left.data, Data::Map(_)) {
            left.data = Data::Map(Vec::new());
            left.origin = right.origin;
        }
        let Data::Map(lefts) = &mut left.data else { return };
        let index = key_index(lefts);
        for (key, r) in entries {
            match index.get(key) {
                Some(i) => take(&mut lefts[*i].1, r),
                None => lefts.push((key.clone(), r.clone())),
            }
        }
    }

    /// Free-form values: the left one is neither absent nor null here.
    fn free(&mut self, left: &mut Val, right: &Val) -> Result {
        match (&mut left.data, &right.data) {
            (Data::Zero, _) => take(left, right),
            (_, Data::Zero) => return Err(self.fail(MergeReason::NullOverValue, right)),
            (Data::Text(_), Data::Text(_)) | (Data::Float(_), Data::Float(_)) => {
                scalar(left, right, How::default());
            }
            (Data::Int(l), Data::Int(r)) if i64::try_from(*l).is_ok() == i64::try_from(*r).is_ok() => {
                scalar(left, right, How::default());
            }
            (Data::Bool(_), Data::Bool(_)) => take(left, right),
            (Data::List(_), Data::List(_)) => self.list(left, right, How::default()),
            (Data::Map(_), Data::Map(_)) => return self.map(left, right, &Shape::Any, How::default()),
            _ => return Err(self.fail(MergeReason::TypeMismatch, right)),
        }
        Ok(())
    }

    fn keyed(&mut self, left: &mut Val, right: &Val, id: usize) -> Result {
        let Data::List(elements) = &right.data else { return Ok(()) };
        if elements.is_empty() {
            return Ok(());
        }
        let tables = self.tables;
        let ty = tables.ty(id);
        let Body::Is(Shape::List(element)) = &ty.body else {
            return Err(self.fail(MergeReason::NotMergeable, right));
        };
        let whole = ty.name.ends_with("ImageVerificationRules");
        let before = match &left.data {
            Data::List(l) => l.len(),
            _ => 0,
        };
        if before == 0 {
            left.data = Data::List(Vec::new());
            left.origin = right.origin;
        }
        for r in elements {
            let Data::List(lefts) = &mut left.data else { continue };
            // rules are looked up among those that were there before, the last one first
            let place = if whole {
                self.find(&lefts[..before], r, element, &ty.identity, true)?
            } else {
                self.find(lefts, r, element, &ty.identity, false)?
            };
            match place {
                None => lefts.push(r.clone()),
                Some(i) if whole => take(&mut lefts[i], r),
                Some(i) => {
                    self.path.push(i.to_string());
                    self.merge(&mut lefts[i], r, element, How::default())?;
                    self.path.pop();
                }
            }
        }
        Ok(())
    }

    /// The element of `lefts` that has the identity of `right`. With several identifying fields, the first one
    /// that the right side has set decides.
    fn find(
        &self,
        lefts: &[Val],
        right: &Val,
        element: &Shape,
        identity: &[String],
        last: bool,
    ) -> std::result::Result<Option<usize>, Failure> {
        if lefts.iter().chain([right]).any(|v| matches!(v.data, Data::Opaque(_))) {
            return Err(self.fail(MergeReason::OpaqueDependent, right));
        }
        let right_inner = right.pointee();
        if matches!(element, Shape::Ptr(_)) && matches!(right.data, Data::Zero) {
            return Err(self.fail(MergeReason::NullElement, right));
        }
        let several = identity.len() > 1;
        for key in identity {
            let want = self.part(right_inner, element, key);
            if contains_opaque(want)
                || lefts.iter().any(|l| contains_opaque(self.part(l.pointee(), element, key)))
            {
                return Err(self.fail(MergeReason::OpaqueDependent, right));
            }
            if several && want.is_none_or(Val::is_go_zero) {
                continue;
            }
            for l in lefts {
                if matches!(l.data, Data::Zero) && matches!(element, Shape::Ptr(_)) {
                    return Err(self.fail(MergeReason::NullElement, right));
                }
            }
            let same = |l: &Val| same_identity(self.part(l.pointee(), element, key), want);
            return Ok(if last { lefts.iter().rposition(same) } else { lefts.iter().position(same) });
        }
        Ok(None)
    }

    fn part<'v>(&self, val: &'v Val, element: &Shape, key: &str) -> Option<&'v Val> {
        let shape = match element {
            Shape::Ptr(inner) => inner,
            other => other,
        };
        let path = self.tables.as_struct(shape)?.keys.get(key)?;
        path.iter().try_fold(val, |v, i| match &v.data {
            Data::Struct(fields) => fields.get(*i),
            _ => None,
        })
    }

    /// Merges where at least one side is a reference, of which nothing is known but that it is not zero.
    fn opaque(&mut self, left: &mut Val, right: &Val, shape: &Shape, how: How) -> Result {
        let tables = self.tables;
        let base = match shape {
            Shape::Ptr(inner) => tables.base(inner),
            other => tables.base(other),
        };
        if let Shape::Type(id) = shape {
            let ty = tables.ty(*id);
            if ty.refused == Refused::Always {
                return Err(self.fail(MergeReason::NotMergeable, right));
            }
            if ty.merge == Merge::Erase {
                take(left, right);
                return Ok(());
            }
        }
        let codec = tables.codec(base);
        let structured = matches!(base, Shape::Map(_)) || tables.as_struct(base).is_some();
        if matches!(right.data, Data::Opaque(_)) {
            let unset = matches!(left.data, Data::Zero) || left.is_go_zero();
            if unset || how.replace {
                take(left, right);
                return Ok(());
            }
            return match codec {
                Some(Codec::Url | Codec::DiskSizeMatcher | Codec::Size) => {
                    Err(self.fail(MergeReason::OpaqueDependent, right))
                }
                _ if matches!(base, Shape::Any) && !matches!(left.data, Data::Text(_) | Data::Opaque(_)) => {
                    Err(self.fail(MergeReason::OverStructure, right))
                }
                _ if structured => Err(self.fail(MergeReason::OverStructure, right)),
                _ => {
                    take(left, right);
                    Ok(())
                }
            };
        }
        if matches!(base, Shape::Any) {
            return match &right.data {
                Data::Text(t) if t.is_empty() => Ok(()),
                Data::Text(_) => {
                    take(left, right);
                    Ok(())
                }
                Data::Zero => Err(self.fail(MergeReason::NullOverValue, right)),
                _ => Err(self.fail(MergeReason::IntoOpaque, right)),
            };
        }
        // a plain bool overwrites even when it is false; a pointer overwrites when it is set
        let wins = matches!(shape, Shape::Bool) || !right.is_go_zero();
        if !wins {
            let writes =
                structured && !matches!(shape, Shape::Ptr(_)) && !how.replace && self.always_writes(base);
            return if writes { Err(self.fail(MergeReason::OpaqueDependent, right)) } else { Ok(()) };
        }
        if structured && !how.replace {
            return Err(self.fail(MergeReason::IntoOpaque, right));
        }
        if matches!(codec, Some(Codec::Url | Codec::DiskSizeMatcher | Codec::Size)) {
            return Err(self.fail(MergeReason::OpaqueDependent, right));
        }
        take(left, right);
        Ok(())
    }

    /// Whether merging a zero value of this struct changes the left side or fails.
    fn always_writes(&self, shape: &Shape) -> bool {
        let Shape::Type(id) = shape else { return matches!(shape, Shape::Bool) };
        let ty = self.tables.ty(*id);
        match &ty.body {
            _ if ty.merge == Merge::Erase || ty.refused == Refused::Always => true,
            Body::Struct(s) => s.fields.iter().any(|f| self.always_writes(&f.shape)),
            Body::Is(inner) => self.always_writes(inner),
            Body::Leaf(_) => false,
        }
    }
}

/// Where each key stands, so that merging large maps stays linear. Keys of one side are unique.
fn key_index(entries: &[(String, Val)]) -> HashMap<String, usize> {
    entries.iter().enumerate().map(|(i, (key, _))| (key.clone(), i)).collect()
}

fn contains_opaque(val: Option<&Val>) -> bool {
    val.is_some_and(|v| match &v.data {
        Data::Opaque(_) => true,
        Data::Ptr(inner) => contains_opaque(Some(inner)),
        Data::Struct(fields) => fields.iter().any(|f| contains_opaque(Some(f))),
        _ => false,
    })
}

/// Go's `==` on identifying fields: structs field by field, and two set pointers inside them are never equal.
fn same_identity(left: Option<&Val>, right: Option<&Val>) -> bool {
    fn same(l: &Val, r: &Val, outer: bool) -> bool {
        match (&l.data, &r.data) {
            (Data::Ptr(a), Data::Ptr(b)) => outer && same(a, b, false),
            (Data::Struct(a), Data::Struct(b)) => a.iter().zip(b).all(|(x, y)| same(x, y, false)),
            _ => (l.is_go_zero() && r.is_go_zero()) || l.data == r.data,
        }
    }
    let zero = Val::default();
    same(left.unwrap_or(&zero), right.unwrap_or(&zero), true)
}

fn scalar(left: &mut Val, right: &Val, how: How) {
    if how.overwrite || !right.is_go_zero() {
        take(left, right);
    }
}

/// The right value takes the left one's place and remembers where that was.
fn take(left: &mut Val, right: &Val) {
    let before = if matches!(left.data, Data::Zero) { None } else { left.origin };
    *left = right.clone();
    if before.is_some() {
        left.overrode = before;
    }
}
