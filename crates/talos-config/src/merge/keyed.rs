//! Lists whose elements have an identity.

use std::sync::Arc;

use crate::digest::Identities;
use crate::error::MergeReason;
use crate::tables::{Body, Shape, Tables};
use crate::trail::Step;
use crate::value::{Data, Rule, Val};

use super::opaque::contains_opaque;
use super::{How, Merger, Result, appended, take};

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
        let mut known = Known::of(tables, element, &ty.identity, lefts);
        for r in elements.iter() {
            // rules are looked up among those that were there before, the last one first
            match known.find(lefts, r, whole).map_err(|reason| self.fail(reason, r))? {
                None => {
                    lefts.push(if before == 0 { r.clone() } else { appended(r) });
                    if !whole {
                        known.add(&lefts[lefts.len() - 1]);
                    }
                }
                Some(i) if whole => known.changing(i, &mut lefts[i], |l| {
                    take(l, r);
                    Ok(())
                })?,
                Some(i) => {
                    self.path.push(Step::Index(i));
                    known.changing(i, &mut lefts[i], |l| self.merge(l, r, element, How::default()))?;
                    self.path.pop();
                    lefts[i].rule = Rule::Matched;
                }
            }
        }
        Ok(())
    }
}

/// The elements of a list by their identity.
struct Known<'a> {
    tables: &'a Tables,
    element: &'a Shape,
    /// The identifying fields.
    keys: Vec<Key<'a>>,
    /// How many elements are known.
    count: usize,
    /// How many of them are references.
    references: usize,
    /// The first and the last null.
    nulls: Option<(usize, usize)>,
}

struct Key<'a> {
    name: &'a str,
    places: Identities,
    /// How many elements hold a reference in this field.
    references: usize,
}

impl<'a> Known<'a> {
    fn of(tables: &'a Tables, element: &'a Shape, identity: &'a [String], list: &[Val]) -> Self {
        let key = |name: &'a String| Key { name, places: Identities::default(), references: 0 };
        let keys = identity.iter().map(key).collect();
        let mut known = Known { tables, element, keys, count: 0, references: 0, nulls: None };
        list.iter().for_each(|val| known.add(val));
        known
    }

    fn add(&mut self, val: &Val) {
        self.references += usize::from(matches!(val.data, Data::Opaque(_)));
        if self.is_null(val) {
            self.nulls = Some((self.nulls.map_or(self.count, |(first, _)| first), self.count));
        }
        for key in &mut self.keys {
            let part = part(self.tables, val.pointee(), self.element, key.name);
            key.references += usize::from(contains_opaque(part));
            key.places.add(part, self.count);
        }
        self.count += 1;
    }

    fn is_null(&self, val: &Val) -> bool {
        matches!(self.element, Shape::Ptr(_)) && matches!(val.data, Data::Zero)
    }

    /// Changes the element at a place, and what is known of it.
    fn changing(&mut self, place: usize, val: &mut Val, change: impl FnOnce(&mut Val) -> Result) -> Result {
        for key in &mut self.keys {
            let part = part(self.tables, val.pointee(), self.element, key.name);
            key.references -= usize::from(contains_opaque(part));
            key.places.remove(part, place);
        }
        change(val)?;
        for key in &mut self.keys {
            let part = part(self.tables, val.pointee(), self.element, key.name);
            key.references += usize::from(contains_opaque(part));
            key.places.add(part, place);
        }
        Ok(())
    }

    /// The element that has the identity of `right`. With several identifying fields, the first one that the right
    /// side has set decides.
    fn find(&self, list: &[Val], right: &Val, last: bool) -> std::result::Result<Option<usize>, MergeReason> {
        if self.references > 0 || matches!(right.data, Data::Opaque(_)) {
            return Err(MergeReason::OpaqueDependent);
        }
        let several = self.keys.len() > 1;
        // one identifying field is only looked at beside another element's
        if self.is_null(right) && (several || self.count > 0) {
            return Err(MergeReason::NullElement);
        }
        for key in &self.keys {
            let want = part(self.tables, right.pointee(), self.element, key.name);
            if key.references > 0 || contains_opaque(want) {
                return Err(MergeReason::OpaqueDependent);
            }
            if several && want.is_none_or(Val::is_go_zero) {
                continue;
            }
            let at = |i: usize| part(self.tables, list[i].pointee(), self.element, key.name);
            let found = key.places.find(want, last, at);
            // Talos looks at one element after the other, and crashes at a null that comes before what it looks for
            let crashes = |(first, end): (usize, usize)| match found {
                Some(i) if last => i <= end,
                Some(i) => first <= i,
                None => true,
            };
            return if self.nulls.is_some_and(crashes) { Err(MergeReason::NullElement) } else { Ok(found) };
        }
        Ok(None)
    }
}

fn part<'v>(tables: &Tables, val: &'v Val, element: &Shape, key: &str) -> Option<&'v Val> {
    let shape = match element {
        Shape::Ptr(inner) => inner,
        other => other,
    };
    let path = tables.as_struct(shape)?.keys.get(key)?;
    path.iter().try_fold(val, |v, i| match &v.data {
        Data::Struct(fields) => fields.get(*i),
        _ => None,
    })
}
