//! Applying the deletions of a patch to a document: all that follow each other at once, so that many cost no more than
//! one look at what they choose among. The outcome is that of one after the other.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::codec::text_of;
use crate::config::{Config, Step};
use crate::error::{MergeError, MergeReason, origin};
use crate::header::LEGACY;
use crate::path::pointer;
use crate::tables::{Body, Codec, MissingDelete, Shape, Struct, Tables};
use crate::value::{Data, Entries, Val};

use super::Selector;

/// Field and text that choose a list element.
type Chosen<'s> = Option<&'s (String, String)>;

/// Deletions in one document, by their places.
#[derive(Default)]
struct Deletions<'s> {
    root: Place<'s>,
    count: usize,
}

/// A place, and what is to be deleted there and below.
#[derive(Default)]
struct Place<'s> {
    /// The deletions of this very place: their numbers, and what chooses an element.
    here: Vec<(usize, Chosen<'s>)>,
    below: Vec<(&'s str, Place<'s>)>,
    index: HashMap<&'s str, usize>,
}

/// A deletion that cannot be done, by its number.
type Failure = (usize, MergeReason);

impl<'s> Deletions<'s> {
    /// Adds one. `false`: it is not independent of one that is there, and must wait until that is done.
    fn add(&mut self, selector: &'s Selector) -> bool {
        let mut place = &mut self.root;
        for segment in &selector.path {
            if !place.here.is_empty() {
                return false;
            }
            let next = place.below.len();
            let at = *place.index.entry(segment).or_insert(next);
            if at == next {
                place.below.push((segment, Place::default()));
            }
            place = &mut place.below[at].1;
        }
        if !place.below.is_empty() {
            return false;
        }
        place.here.push((self.count, selector.element.as_ref()));
        self.count += 1;
        true
    }

    /// How many there are.
    fn len(&self) -> usize {
        self.count
    }

    /// Applies them below the root of their document.
    ///
    /// # Errors
    /// The number of the first that cannot be done, and why.
    fn apply(&self, tables: &Tables, root: &mut Val, shape: &Shape) -> Result<(), (usize, MergeReason)> {
        let mut run = Run { tables, failures: Vec::new() };
        let places: Vec<_> = self.root.below.iter().collect();
        run.below(&places, root, shape);
        run.failures.into_iter().min_by_key(|(number, _)| *number).map_or(Ok(()), Err)
    }
}

impl Place<'_> {
    fn numbers(&self, out: &mut Vec<usize>) {
        out.extend(self.here.iter().map(|(number, _)| *number));
        self.below.iter().for_each(|(_, place)| place.numbers(out));
    }
}

/// Places below a value that are to be visited.
type Places<'p, 's> = [&'p (&'s str, Place<'s>)];

struct Run<'t> {
    tables: &'t Tables,
    failures: Vec<Failure>,
}

impl Run<'_> {
    fn fail(&mut self, places: &Places<'_, '_>, reason: MergeReason) {
        let mut numbers = Vec::new();
        places.iter().for_each(|(_, place)| place.numbers(&mut numbers));
        self.failures.extend(numbers.into_iter().map(|number| (number, reason)));
    }

    fn below(&mut self, places: &Places<'_, '_>, val: &mut Val, shape: &Shape) {
        let tables = self.tables;
        if let Data::Opaque(_) = val.data {
            return self.fail(places, MergeReason::OpaqueDependent);
        }
        match tables.base(shape) {
            Shape::Ptr(inner) => match &mut val.data {
                Data::Ptr(v) => self.below(places, Arc::make_mut(v), inner),
                _ => self.fail(places, MergeReason::NothingToDelete),
            },
            Shape::Map(inner) => self.in_map(places, val, inner),
            Shape::Any => match &val.data {
                Data::Map(_) => self.in_map(places, val, &Shape::Any),
                Data::List(_) => self.fail(places, MergeReason::CannotDelete),
                _ => self.fail(places, MergeReason::NothingToDelete),
            },
            Shape::List(inner) => self.in_list(places, val, inner),
            Shape::Type(id) => match &tables.ty(*id).body {
                Body::Struct(s) => self.in_struct(places, val, s),
                _ => self.fail(places, MergeReason::NothingToDelete),
            },
            _ => self.fail(places, MergeReason::NothingToDelete),
        }
    }

    fn in_struct(&mut self, places: &Places<'_, '_>, val: &mut Val, s: &Struct) {
        // a zero struct is searched too: deleting an unset field is no error, as long as the way to it exists
        let Some(fields) = val.fields_mut(s.fields.len()) else {
            return self.fail(places, MergeReason::NothingToDelete);
        };
        for place in places {
            self.in_fields(place, fields, s);
        }
    }

    fn in_fields(&mut self, place: &(&str, Place<'_>), fields: &mut [Val], s: &Struct) {
        let (name, there) = place;
        for (field, v) in s.fields.iter().zip(fields) {
            if field.unnamed {
                continue;
            }
            if !field.inline && field.key == **name {
                if there.below.is_empty() {
                    *v = Val::default();
                } else {
                    self.below(&there.below.iter().collect::<Vec<_>>(), v, &field.shape);
                }
                return;
            }
            if field.inline {
                let mut inner = Run { tables: self.tables, failures: Vec::new() };
                inner.below(&[place], v, &field.shape);
                let mut all = Vec::new();
                there.numbers(&mut all);
                let nothing = |(_, reason): &Failure| *reason == MergeReason::NothingToDelete;
                // what is not there may stand in a later field
                if inner.failures.len() < all.len() || !inner.failures.iter().all(nothing) {
                    self.failures.extend(inner.failures);
                    return;
                }
            }
        }
        self.fail(&[place], MergeReason::NothingToDelete);
    }

    fn in_map(&mut self, places: &Places<'_, '_>, val: &mut Val, inner: &Shape) {
        let Data::Map(entries) = &mut val.data else {
            return self.fail(places, MergeReason::NothingToDelete);
        };
        let entries = Arc::make_mut(entries);
        let found = find_all(entries, places);
        // a value of a map cannot be changed in Go unless it is a pointer, a map or free-form
        let fixed = self.tables.as_struct(self.tables.base(inner)).is_some();
        let mut gone = vec![false; entries.len()];
        for (place, found) in places.iter().zip(found) {
            let Some(i) = found else {
                self.fail(&[place], MergeReason::NothingToDelete);
                continue;
            };
            let there = &place.1;
            if there.below.is_empty() {
                gone[i] = true;
                let again = there.here.iter().skip(1);
                self.failures.extend(again.map(|(number, _)| (*number, MergeReason::NothingToDelete)));
            } else if fixed {
                self.fail(&[place], MergeReason::CannotDelete);
            } else {
                self.below(&there.below.iter().collect::<Vec<_>>(), &mut entries[i].1, inner);
            }
        }
        keep(entries, &gone);
    }

    fn in_list(&mut self, places: &Places<'_, '_>, val: &mut Val, inner: &Shape) {
        let mut chosen = Vec::new();
        for place in places {
            if !place.1.below.is_empty() || !place.0.starts_with('[') {
                self.fail(&[place], MergeReason::CannotDelete);
            } else {
                chosen.extend(place.1.here.iter().copied());
            }
        }
        chosen.sort_by_key(|(number, _)| *number);
        let shape = match inner {
            Shape::Ptr(p) => p,
            other => other,
        };
        let Data::List(items) = &mut val.data else {
            let nothing = |(number, _): &(usize, Chosen<'_>)| (*number, MergeReason::NothingToDelete);
            return self.failures.extend(chosen.iter().map(nothing));
        };
        let mut list = Elements { tables: self.tables, shape, items, by: HashMap::new() };
        let mut gone = vec![false; list.items.len()];
        for (number, element) in chosen {
            let one = element.ok_or(MergeReason::NothingToDelete);
            match one.and_then(|(key, text)| list.choose(key, text, &gone)) {
                Ok(i) => gone[i] = true,
                Err(reason) => self.failures.push((number, reason)),
            }
        }
        if gone.contains(&true) {
            keep(Arc::make_mut(items), &gone);
        }
    }
}

fn keep<T>(all: &mut Vec<T>, gone: &[bool]) {
    let mut gone = gone.iter();
    all.retain(|_| !gone.next().is_some_and(|gone| *gone));
}

/// Where the keys of the places stand in a map; many of them are found by an index.
fn find_all(entries: &Entries, places: &Places<'_, '_>) -> Vec<Option<usize>> {
    if entries.len() * places.len() <= 256 {
        return places.iter().map(|(key, _)| entries.iter().position(|(k, _)| **k == **key)).collect();
    }
    let index: HashMap<&str, usize> = entries.iter().enumerate().map(|(i, (key, _))| (&**key, i)).collect();
    places.iter().map(|(key, _)| index.get(key).copied()).collect()
}

/// The elements of a list, by the texts of the fields that choose among them.
struct Elements<'l, 'k> {
    tables: &'l Tables,
    shape: &'l Shape,
    items: &'l [Val],
    by: HashMap<&'k str, Texts>,
}

#[derive(Default)]
struct Texts {
    places: HashMap<String, VecDeque<usize>>,
    /// Elements at which Talos, or what is known here, ends the search.
    ends: VecDeque<Failure>,
}

impl<'k> Elements<'_, 'k> {
    /// The first element whose field has the text, among those that are not gone.
    fn choose(&mut self, key: &'k str, text: &str, gone: &[bool]) -> Result<usize, MergeReason> {
        if !self.by.contains_key(key) {
            let texts = self.texts(key)?;
            self.by.insert(key, texts);
        }
        let texts = self.by.get_mut(key).ok_or(MergeReason::NothingToDelete)?;
        while texts.ends.front().is_some_and(|(i, _)| gone[*i]) {
            texts.ends.pop_front();
        }
        let places = texts.places.get_mut(text);
        let first = places.and_then(|places| {
            while places.front().is_some_and(|i| gone[*i]) {
                places.pop_front();
            }
            places.front().copied()
        });
        match (first, texts.ends.front()) {
            (Some(i), Some((end, _))) if i < *end => Ok(i),
            (_, Some((_, reason))) => Err(*reason),
            (Some(i), None) => Ok(i),
            (None, None) => Err(MergeReason::NothingToDelete),
        }
    }

    fn texts(&self, key: &str) -> Result<Texts, MergeReason> {
        let s = self.tables.as_struct(self.shape).ok_or(MergeReason::NothingToDelete)?;
        let index = s.fields.iter().position(|f| !f.inline && !f.unnamed && f.key == key);
        let index = index.ok_or(MergeReason::NothingToDelete)?;
        let mut texts = Texts::default();
        let unset = Val::default();
        for (i, item) in self.items.iter().enumerate() {
            if let Data::Opaque(_) = item.data {
                texts.ends.push_back((i, MergeReason::OpaqueDependent));
                continue;
            }
            let Data::Struct(fields) = &item.pointee().data else { continue };
            let field = fields.get(index).unwrap_or(&unset);
            match chosen_text(self.tables, field, &s.fields[index].shape) {
                Ok(Some(text)) => texts.places.entry(text).or_default().push_back(i),
                Ok(None) => {}
                Err(reason) => texts.ends.push_back((i, reason)),
            }
        }
        Ok(texts)
    }
}

/// The text that Talos compares a field by: its string, or what its `String` method gives.
fn chosen_text(tables: &Tables, val: &Val, shape: &Shape) -> Result<Option<String>, MergeReason> {
    if let Data::Opaque(_) = val.data {
        return Err(MergeReason::OpaqueDependent);
    }
    if let Shape::Type(id) = shape {
        let ty = tables.ty(*id);
        if ty.stringer {
            return match &ty.body {
                Body::Leaf(Codec::FileMode) => Ok(Some(format!("0o{:o}", val.data.as_int()))),
                // the String of an unset URL crashes Talos
                Body::Leaf(Codec::Url) if !matches!(val.data, Data::Url(_)) => Err(MergeReason::CannotDelete),
                Body::Leaf(Codec::PortRange) => Err(MergeReason::CannotDelete),
                Body::Leaf(Codec::Addr | Codec::AddrPort | Codec::Prefix) if val.is_go_zero() => Ok(None),
                Body::Leaf(codec) => Ok(Some(text_of(codec, &val.data).into_owned())),
                _ => Err(MergeReason::CannotDelete),
            };
        }
    }
    match (tables.base(shape), &val.data) {
        (Shape::Text, Data::Text(t)) => Ok(Some(t.to_string())),
        (Shape::Text, _) => Ok(Some(String::new())),
        (Shape::Ptr(inner), _) if matches!(inner.as_ref(), Shape::Type(_)) => Err(MergeReason::CannotDelete),
        _ => Ok(None),
    }
}

impl Config {
    /// Applies the first deletion, and those behind it that can be done together with it; says how many. `appended` are
    /// documents that the same patch added where Talos does not see them yet.
    pub(crate) fn delete(
        &mut self,
        steps: &[Step],
        appended: &[(usize, Option<String>)],
    ) -> Result<usize, MergeError> {
        let [Step::Delete(selector, source), ..] = steps else { return Ok(0) };
        let fail = |selector: &Selector, source, reason| MergeError {
            document: match &selector.name {
                Some(name) => format!("{}/{name}", selector.kind),
                None => selector.kind.clone(),
            },
            path: pointer(&selector.path),
            origin: Some(origin(source, selector.pos)),
            reason,
        };
        let kind = self.tables.kind(&selector.kind).map(|(i, _)| i);
        let found = self.docs.iter().position(|d| Some(d.kind) == kind && d.name == selector.name);
        let found = found.filter(|i| !appended.contains(&self.docs[*i].identity()));
        let Some(index) = found.filter(|i| self.docs[*i].api(&self.tables) == selector.api) else {
            return match self.tables.0.switches.missing_delete {
                MissingDelete::Ignored => Ok(1),
                _ => Err(fail(selector, *source, MergeReason::NoSuchDocument)),
            };
        };
        if selector.path.is_empty() {
            if selector.kind == LEGACY {
                return Err(fail(selector, *source, MergeReason::DeleteLegacyRoot));
            }
            self.docs.remove(index);
            return Ok(1);
        }
        let doc = &mut self.docs[index];
        let key = self.tables.0.kinds[doc.kind].name.clone();
        let names = |s: &Selector| key.is_some() && key.as_ref() == s.path.first();
        let mut deletions = Deletions::default();
        for step in steps {
            match step {
                Step::Delete(next, _)
                    if next.same_document(selector) && !next.path.is_empty() && deletions.add(next) =>
                {
                    if names(next) {
                        break;
                    }
                }
                _ => break,
            }
        }
        let count = deletions.len();
        let shape = doc.shape(&self.tables);
        deletions.apply(&self.tables, &mut doc.root, shape).map_err(|(i, reason)| match &steps[i] {
            Step::Delete(failed, source) => fail(failed, *source, reason),
            Step::Merge(_) => fail(selector, *source, reason),
        })?;
        // deleting the field that names the document changes its identity
        if let Some(Step::Delete(last, _)) = steps.get(count - 1)
            && names(last)
        {
            doc.name = Some(String::new());
        }
        Ok(count)
    }
}
