//! Finding equal values among many without comparing each with each.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::mem::discriminant;

use crate::value::{Data, Val, ZERO};

/// Go's `==` on identifying fields: structs field by field, and two set pointers inside them are never equal.
pub(crate) fn same_identity(left: Option<&Val>, right: Option<&Val>) -> bool {
    fn same(l: &Val, r: &Val, outer: bool) -> bool {
        match (&l.data, &r.data) {
            (Data::Ptr(a), Data::Ptr(b)) => outer && same(a, b, false),
            (Data::Struct(a), Data::Struct(b)) => a.iter().zip(b.iter()).all(|(x, y)| same(x, y, false)),
            _ => (l.is_go_zero() && r.is_go_zero()) || l.data == r.data,
        }
    }
    same(left.unwrap_or(&ZERO), right.unwrap_or(&ZERO), true)
}

/// Hashes a value so that those which [`same_identity`] takes for equal get the same. `false`: it equals nothing.
fn identity(val: &Val, outer: bool, state: &mut impl Hasher) -> bool {
    if val.is_go_zero() {
        state.write_u8(0);
        return true;
    }
    match &val.data {
        Data::Ptr(inner) => {
            state.write_u8(1);
            outer && identity(inner, false, state)
        }
        Data::Struct(fields) => fields.iter().all(|field| identity(field, false, state)),
        data => {
            state.write_u8(2);
            whole(data, state);
            true
        }
    }
}

/// Hashes data so that equal data gets the same.
fn whole(data: &Data, state: &mut impl Hasher) {
    discriminant(data).hash(state);
    match data {
        Data::Zero => {}
        Data::Text(text) | Data::Opaque(text) => text.hash(state),
        Data::Bool(b) => b.hash(state),
        Data::Int(i) => i.hash(state),
        Data::Big(u) => u.hash(state),
        // both zeros are equal
        Data::Float(f) => (f + 0.0).to_bits().hash(state),
        Data::Bytes(bytes) => bytes.hash(state),
        Data::Size(size) => (&size.percent, &size.bytes).hash(state),
        Data::Url(url) => url.hash(state),
        Data::Ptr(inner) => whole(&inner.data, state),
        Data::List(items) | Data::Struct(items) => {
            items.len().hash(state);
            items.iter().for_each(|item| whole(&item.data, state));
        }
        Data::Map(entries) => {
            entries.len().hash(state);
            for (key, val) in entries.iter() {
                key.hash(state);
                whole(&val.data, state);
            }
        }
    }
}

/// The places of values in a list, by identity: what is found is checked, so a hash that meets another does no harm.
#[derive(Default)]
pub(crate) struct Identities {
    state: RandomState,
    places: BTreeSet<(u64, usize)>,
}

impl Identities {
    fn hash(&self, val: Option<&Val>) -> Option<u64> {
        let mut hasher = self.state.build_hasher();
        identity(val.unwrap_or(&ZERO), true, &mut hasher).then(|| hasher.finish())
    }

    pub fn add(&mut self, val: Option<&Val>, place: usize) {
        self.places.extend(self.hash(val).map(|hash| (hash, place)));
    }

    pub fn remove(&mut self, val: Option<&Val>, place: usize) {
        if let Some(hash) = self.hash(val) {
            self.places.remove(&(hash, place));
        }
    }

    /// The first or the last place of a value with this identity; `at` gives the value of a place.
    pub fn find<'v>(
        &self,
        wanted: Option<&Val>,
        last: bool,
        at: impl Fn(usize) -> Option<&'v Val>,
    ) -> Option<usize> {
        let hash = self.hash(wanted)?;
        let mut places = self.places.range((hash, 0)..=(hash, usize::MAX)).map(|(_, place)| *place);
        let same = |place: &usize| same_identity(at(*place), wanted);
        if last { places.rev().find(same) } else { places.find(same) }
    }
}

/// The first of each group of equal values.
pub(crate) struct Firsts<'v> {
    state: RandomState,
    seen: HashMap<u64, Vec<&'v Val>>,
}

impl<'v> Firsts<'v> {
    pub fn of(values: &'v [Val]) -> Self {
        let mut firsts = Firsts { state: RandomState::new(), seen: HashMap::with_capacity(values.len()) };
        for val in values {
            let met = firsts.seen.entry(firsts.hash(val)).or_default();
            if !met.contains(&val) {
                met.push(val);
            }
        }
        firsts
    }

    fn hash(&self, val: &Val) -> u64 {
        let mut hasher = self.state.build_hasher();
        whole(&val.data, &mut hasher);
        hasher.finish()
    }

    /// The first value that equals this one.
    pub fn get(&self, val: &Val) -> Option<&'v Val> {
        self.seen.get(&self.hash(val))?.iter().find(|one| **one == val).copied()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn val(data: Data) -> Val {
        Val { data, ..Val::default() }
    }

    fn of(fields: &[Data]) -> Data {
        Data::Struct(Arc::new(fields.iter().cloned().map(val).collect()))
    }

    fn ptr(data: Data) -> Data {
        Data::Ptr(Arc::new(val(data)))
    }

    /// Values of all forms that mean the same in different ways.
    fn forms() -> Vec<Val> {
        let text = |t: &str| Data::Text(t.into());
        let plain = [
            Data::Zero,
            text(""),
            text("a"),
            Data::Bool(false),
            Data::Bool(true),
            Data::Int(0),
            Data::Int(1),
            Data::Float(-0.0),
            Data::Float(0.5),
            Data::Bytes(Arc::from([])),
            Data::List(Arc::new(vec![val(ptr(Data::Bool(true)))])),
            Data::Opaque("a".into()),
        ];
        let mut all: Vec<Data> = plain.to_vec();
        for one in &plain {
            all.push(ptr(one.clone()));
            all.extend(plain.iter().map(|other| of(&[one.clone(), other.clone()])));
            all.push(of(&[ptr(one.clone()), Data::Zero]));
            all.push(of(&[of(&[one.clone()]), Data::Zero]));
        }
        all.into_iter().map(val).collect()
    }

    #[test]
    fn what_is_found_is_what_a_walk_finds() {
        let all = forms();
        let mut places = Identities::default();
        for (i, one) in all.iter().enumerate() {
            places.add(Some(one), i);
        }
        let firsts = Firsts::of(&all);
        for one in &all {
            let same = |other: &Val| same_identity(Some(other), Some(one));
            let at = |i: usize| all.get(i);
            assert_eq!(places.find(Some(one), false, at), all.iter().position(same));
            assert_eq!(places.find(Some(one), true, at), all.iter().rposition(same));
            let first = all.iter().find(|other| *other == one);
            assert!(std::ptr::eq(firsts.get(one).unwrap(), first.unwrap()));
        }
        assert_eq!(places.find(None, false, |i| all.get(i)), Some(0));
        places.remove(all.first(), 0);
        assert_eq!(places.find(None, false, |i| all.get(i)), Some(1), "an empty text is as good");
    }
}
