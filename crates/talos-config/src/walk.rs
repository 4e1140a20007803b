//! Walking through a document, value by value.

use crate::access::{element, entry};
use crate::tables::{Shape, Struct, Tables};
use crate::trail::Step;
use crate::value::{Data, Origin, Rule, Val};

/// A function that sees every leaf below a value: path, shape, value.
type Visit<'v, 'f> = dyn FnMut(&[Step<'v>], &'v Shape, &'v Val) + 'f;

/// As [`Visit`], with what holds the leaf.
type VisitHeld<'v, 'f> = dyn FnMut(&[Step<'v>], &'v Shape, &'v Val, Held<'v>) + 'f;

/// Calls `f` for every scalar, null, reference and empty collection that is set and printed.
pub(crate) fn visit<'v>(
    tables: &'v Tables,
    val: &'v Val,
    shape: &'v Shape,
    path: &mut Vec<Step<'v>>,
    f: &mut Visit<'v, '_>,
) {
    visit_held(tables, val, shape, path, &mut |path, shape, val, _| f(path, shape, val));
}

/// As [`visit`], with what is to be said of that which holds the value.
pub(crate) fn visit_held<'v>(
    tables: &'v Tables,
    val: &'v Val,
    shape: &'v Shape,
    path: &mut Vec<Step<'v>>,
    f: &mut VisitHeld<'v, '_>,
) {
    Walk { tables, printed: true, path, f }.value(val, shape, Held::default());
}

/// Calls `f` for every scalar and reference that is set, whether or not it would be printed.
pub(crate) fn visit_written<'v>(tables: &'v Tables, val: &'v Val, shape: &'v Shape, f: &mut Visit<'v, '_>) {
    let f: &mut VisitHeld<'v, '_> = &mut |path, shape, val, _| {
        let empty = match &val.data {
            Data::List(_) | Data::Map(_) => true,
            Data::Bytes(bytes) => bytes.is_empty(),
            Data::Ptr(_) => false,
            _ => val.is_go_zero(),
        };
        if !empty {
            f(path, shape, val);
        }
    };
    Walk { tables, printed: false, path: &mut Vec::new(), f }.value(val, shape, Held::default());
}

/// What holds a value, as far as a patch did something with it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Held<'v> {
    /// The identifying fields of the innermost list that has such.
    identity: &'v [String],
    /// How the innermost list element that a patch touched came about, and the identity of its list.
    pub element: Option<(Rule, &'v [String])>,
    /// Where the value stood whose place was taken as a whole.
    pub overrode: Option<Origin>,
}

struct Walk<'v, 'w, 'f> {
    tables: &'v Tables,
    printed: bool,
    path: &'w mut Vec<Step<'v>>,
    f: &'w mut VisitHeld<'v, 'f>,
}

impl<'v> Walk<'v, '_, '_> {
    /// Says whether anything was seen, or is printed without being set.
    fn value(&mut self, val: &'v Val, shape: &'v Shape, mut held: Held<'v>) -> bool {
        if let Shape::Type(id) = shape
            && let ty = self.tables.ty(*id)
            && !ty.identity.is_empty()
        {
            held.identity = &ty.identity;
        }
        let around = Held { overrode: val.overrode.or(held.overrode), ..held };
        match (&val.data, self.tables.base(shape)) {
            (Data::Zero, base) => {
                let empty = self.tables.as_struct(base).is_none_or(|s| prints_nothing(self.tables, s));
                return self.printed && val.origin.is_some() && empty && self.seen(val, shape, held);
            }
            (Data::Ptr(inner), Shape::Ptr(s)) => return self.value(inner, s, around),
            (Data::List(items), base) if !items.is_empty() => {
                for (i, item) in items.iter().enumerate() {
                    let touched = matches!(item.rule, Rule::Appended | Rule::Matched);
                    let by = if touched { Some((item.rule, held.identity)) } else { held.element };
                    self.below(Step::Index(i), item, element(base), Held { element: by, ..around });
                }
            }
            (Data::Map(entries), base) if !entries.is_empty() => {
                for (key, v) in entries.iter() {
                    self.below(Step::Key(key), v, entry(base), around);
                }
            }
            (Data::Struct(fields), base) => {
                let any = self.fields(fields, base, around);
                // a mapping of which `{}` is printed is a value too, unless it is the document
                let empty = self.printed && !any && val.origin.is_some() && !self.path.is_empty();
                return any || empty && self.seen(val, shape, held);
            }
            _ => return self.seen(val, shape, held),
        }
        true
    }

    fn seen(&mut self, val: &'v Val, shape: &'v Shape, held: Held<'v>) -> bool {
        (self.f)(self.path, shape, val, held);
        true
    }

    fn below(&mut self, step: Step<'v>, val: &'v Val, shape: &'v Shape, held: Held<'v>) {
        self.path.push(step);
        self.value(val, shape, held);
        self.path.pop();
    }

    fn fields(&mut self, fields: &'v [Val], base: &'v Shape, held: Held<'v>) -> bool {
        let Some(s) = self.tables.as_struct(base) else { return false };
        let mut any = false;
        for (field, v) in s.fields.iter().zip(fields) {
            if self.printed && field.omitempty && !field.inline && v.is_omitted(&field.shape, self.tables) {
                continue;
            }
            if matches!(v.data, Data::Zero) && v.origin.is_none() {
                let inner = self.tables.as_struct(&field.shape);
                any |=
                    if field.inline { inner.is_some_and(|s| !prints_nothing(self.tables, s)) } else { true };
                continue;
            }
            any |= match (&v.data, field.inline) {
                (Data::Struct(inner), true) => self.fields(inner, self.tables.base(&field.shape), held),
                (_, true) => self.value(v, &field.shape, held),
                (_, false) => {
                    self.below(Step::Key(&field.key), v, &field.shape, held);
                    true
                }
            };
        }
        any
    }
}

/// Whether `{}` is printed of a struct in which nothing is set.
fn prints_nothing(tables: &Tables, s: &Struct) -> bool {
    s.fields.iter().all(|field| match tables.as_struct(&field.shape) {
        Some(inner) if field.inline => prints_nothing(tables, inner),
        _ => field.inline || field.omitempty,
    })
}
