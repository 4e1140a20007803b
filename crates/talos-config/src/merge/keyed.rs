//! Lists whose elements have an identity.

use std::sync::Arc;

use crate::error::MergeReason;
use crate::tables::{Body, Shape};
use crate::trail::Step;
use crate::value::{Data, Rule, Val, ZERO};

use super::opaque::contains_opaque;
use super::{Failure, How, Merger, Result, appended, take};

impl<'a> Merger<'a> {
    pub(super) fn keyed(&mut self, left: &mut Val, right: &'a Val, id: usize) -> Result {
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
            left.data = Data::List(Arc::default());
            left.origin = right.origin;
        }
        let Data::List(lefts) = &mut left.data else { return Ok(()) };
        let lefts = Arc::make_mut(lefts);
        for r in elements.iter() {
            // rules are looked up among those that were there before, the last one first
            let place = if whole {
                self.find(&lefts[..before], r, element, &ty.identity, true)?
            } else {
                self.find(lefts, r, element, &ty.identity, false)?
            };
            match place {
                None if before == 0 => lefts.push(r.clone()),
                None => lefts.push(appended(r)),
                Some(i) if whole => take(&mut lefts[i], r),
                Some(i) => {
                    self.path.push(Step::Index(i));
                    self.merge(&mut lefts[i], r, element, How::default())?;
                    self.path.pop();
                    lefts[i].rule = Rule::Matched;
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
        let null = |v: &Val| matches!(element, Shape::Ptr(_)) && matches!(v.data, Data::Zero);
        let several = identity.len() > 1;
        // one identifying field is only looked at beside another element's
        if null(right) && (several || !lefts.is_empty()) {
            return Err(self.fail(MergeReason::NullElement, right));
        }
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
            let same = |l: &Val| same_identity(self.part(l.pointee(), element, key), want);
            let found = |l: &Val| null(l) || same(l);
            let place = if last { lefts.iter().rposition(found) } else { lefts.iter().position(found) };
            return match place {
                Some(i) if null(&lefts[i]) => Err(self.fail(MergeReason::NullElement, right)),
                place => Ok(place),
            };
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
}

/// Go's `==` on identifying fields: structs field by field, and two set pointers inside them are never equal.
fn same_identity(left: Option<&Val>, right: Option<&Val>) -> bool {
    fn same(l: &Val, r: &Val, outer: bool) -> bool {
        match (&l.data, &r.data) {
            (Data::Ptr(a), Data::Ptr(b)) => outer && same(a, b, false),
            (Data::Struct(a), Data::Struct(b)) => a.iter().zip(b.iter()).all(|(x, y)| same(x, y, false)),
            _ => (l.is_go_zero() && r.is_go_zero()) || l.data == r.data,
        }
    }
    same(left.unwrap_or(&ZERO), right.unwrap_or(&ZERO), true)
}
