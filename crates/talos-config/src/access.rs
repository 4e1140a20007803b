//! Looking into a configuration: leaves with their origin, single places, references.

use std::sync::Arc;

use crate::codec::text_of;
use crate::config::{Config, Doc, text_node};
use crate::decode::{Decoder, trim_manifests};
use crate::encode::scalar_text;
use crate::error::{ConfigError, ResolveError};
use crate::header::no_duplicates;
use crate::node::{Node, Style};
use crate::path::{DocumentId, DocumentRef, Path, one_line, pointer};
use crate::tables::{Body, Codec, Shape, Tables};
use crate::trail::{Step, pointer_of, segments_of};
use crate::value::{Data, FieldClass, Origin, Rule, SourceId, Val, class};
use crate::walk::visit;
use thiserror::Error;

/// What stands at a leaf. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum LeafValue {
    /// A scalar, by the text that is printed for it (before quoting).
    Text(String),
    /// A reference, by its text without the tag.
    Opaque(String),
    /// An empty list or mapping that is set, or a null.
    Empty,
}

impl std::fmt::Debug for LeafValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            LeafValue::Text(_) => "Text(..)",
            LeafValue::Opaque(_) => "Opaque(..)",
            LeafValue::Empty => "Empty",
        })
    }
}

/// One value of a configuration that is printed, with its provenance.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// The document.
    pub document: DocumentId,
    /// RFC 6901 pointer within the document.
    pub pointer: String,
    /// Where the value was written.
    pub origin: Origin,
    /// Where the value stood that this one replaced, if it did.
    pub overrode: Option<Origin>,
    /// How it came to stand here.
    pub rule: Rule,
    /// What kind of field it is.
    pub class: FieldClass,
    /// The value.
    pub value: LeafValue,
}

/// What stands at a path.
#[derive(Clone, Debug)]
pub struct Found {
    /// What kind of field it is.
    pub class: FieldClass,
    /// Where it was written, if it was.
    pub origin: Option<Origin>,
    /// The value, if it is a scalar or a reference and set.
    pub value: Option<LeafValue>,
}

/// Why a place cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AccessError {
    /// The configuration has no such document.
    #[error("{}: There is no such document; check the kind and the name", one_line(.path))]
    NoDocument {
        /// The path.
        path: String,
    },
    /// The document has nothing there.
    #[error("{}: There is nothing at this place; check the pointer", one_line(.path))]
    Nothing {
        /// The path.
        path: String,
    },
    /// A reference may not stand there.
    #[error("{}: A reference cannot stand for {what}; choose a single value below or above it", one_line(.path))]
    NoReference {
        /// The path.
        path: String,
        /// What it would stand for.
        what: &'static str,
    },
}

/// The value of a reference.
#[derive(Clone)]
pub enum Resolved {
    /// Text, decoded as if it had stood there in quotes.
    Text(String),
    /// A number or a boolean, decoded as if it had stood there without quotes.
    Plain(String),
    /// A mapping or any other node.
    Node(Node),
}

static ANY: Shape = Shape::Any;
static TEXT: Shape = Shape::Text;

/// The shape of the elements of a list.
pub(crate) fn element(base: &Shape) -> &Shape {
    match base {
        Shape::List(inner) => inner,
        Shape::Any => &ANY,
        _ => &TEXT,
    }
}

/// The shape of the values of a map.
pub(crate) fn entry(base: &Shape) -> &Shape {
    match base {
        Shape::Map(inner) => inner,
        _ => &ANY,
    }
}

/// The text that is printed for a scalar value.
pub(crate) fn leaf_value(tables: &Tables, shape: &Shape, val: &Val) -> LeafValue {
    let base = tables.base(shape);
    match &val.data {
        Data::Opaque(text) => LeafValue::Opaque(text.to_string()),
        Data::Zero if tables.codec(base).is_none() => match base {
            Shape::Text => LeafValue::Text(String::new()),
            Shape::Bool => LeafValue::Text("false".to_owned()),
            Shape::Int { .. } => LeafValue::Text("0".to_owned()),
            _ => LeafValue::Empty,
        },
        Data::List(_) | Data::Map(_) | Data::Struct(_) => LeafValue::Empty,
        Data::Ptr(inner) => match base {
            Shape::Ptr(s) => leaf_value(tables, s, inner),
            _ => LeafValue::Empty,
        },
        data => scalar_text(tables, base, data)
            .map_or(LeafValue::Empty, |text| LeafValue::Text(text.into_owned())),
    }
}

/// Follows segments from a value; `f` gets the shape and the value there.
pub(crate) fn at<'v>(
    tables: &'v Tables,
    val: &'v Val,
    shape: &'v Shape,
    path: &[String],
) -> Option<(&'v Val, &'v Shape)> {
    if let (Data::Ptr(inner), Shape::Ptr(s)) = (&val.data, tables.base(shape))
        && !path.is_empty()
    {
        return at(tables, inner, s, path);
    }
    let Some((first, rest)) = path.split_first() else { return Some((val, shape)) };
    match (&val.data, tables.base(shape)) {
        (Data::List(items), base) => {
            at(tables, items.get(first.parse::<usize>().ok()?)?, element(base), rest)
        }
        (Data::Map(entries), base) => {
            at(tables, &entries.iter().find(|(k, _)| **k == **first)?.1, entry(base), rest)
        }
        (Data::Struct(fields), base) => {
            let s = tables.as_struct(base)?;
            for (field, v) in s.fields.iter().zip(fields.iter()) {
                if !field.inline && &field.key == first {
                    return at(tables, v, &field.shape, rest);
                }
                if field.inline
                    && let Some(found) = at(tables, v, &field.shape, path)
                {
                    return Some(found);
                }
            }
            None
        }
        _ => None,
    }
}

/// As [`at`], to change the value.
pub(crate) fn at_mut<'v>(
    tables: &'v Tables,
    val: &'v mut Val,
    shape: &'v Shape,
    path: &[String],
) -> Option<(&'v mut Val, &'v Shape)> {
    let Some((first, rest)) = path.split_first() else { return Some((val, shape)) };
    match (&mut val.data, tables.base(shape)) {
        (Data::Ptr(inner), Shape::Ptr(s)) => at_mut(tables, Arc::make_mut(inner), s, path),
        (Data::List(items), base) => {
            at_mut(tables, Arc::make_mut(items).get_mut(first.parse::<usize>().ok()?)?, element(base), rest)
        }
        (Data::Map(entries), base) => at_mut(
            tables,
            &mut Arc::make_mut(entries).iter_mut().find(|(k, _)| **k == **first)?.1,
            entry(base),
            rest,
        ),
        (Data::Struct(fields), base) => {
            let s = tables.as_struct(base)?;
            let (index, inline) = match s.keys.get(first) {
                Some(keys) => (*keys.first()?, keys.len() > 1),
                None => (*s.rest.as_ref()?.first()?, true),
            };
            let rest = if inline { path } else { rest };
            at_mut(tables, Arc::make_mut(fields).get_mut(index)?, &s.fields[index].shape, rest)
        }
        _ => None,
    }
}

impl Config {
    pub(crate) fn doc_index(&self, document: &DocumentRef) -> Option<usize> {
        match document {
            DocumentRef::Index(i) => (*i < self.docs.len()).then_some(*i),
            DocumentRef::Id { kind, name } => self.docs.iter().position(|d| {
                let id = d.id(&self.tables);
                id.kind == *kind && id.name == *name
            }),
        }
    }

    /// Every value that is set and printed, document by document in the order of fields, with where it came from.
    pub fn leaves(&self) -> impl Iterator<Item = Leaf> + '_ {
        self.docs.iter().flat_map(|doc| leaves_of(&self.tables, doc))
    }

    /// Every reference that is printed, as a leaf, in the order of [`Config::leaves`].
    pub fn references(&self) -> Vec<Leaf> {
        let mut found = Vec::new();
        for doc in &self.docs {
            let shape = doc.shape(&self.tables);
            visit(&self.tables, &doc.root, shape, &mut Vec::new(), &mut |path, shape, val| {
                if let (Data::Opaque(_), Some(origin)) = (&val.data, val.origin) {
                    found.push(leaf(&self.tables, doc, path, shape, val, origin));
                }
            });
        }
        found
    }

    /// The path of a place, by the place of its document in the encoded configuration: `doc[1]/name`.
    pub fn display_path(&self, path: &Path) -> Path {
        match self.doc_index(&path.document) {
            Some(i) => Path { document: DocumentRef::Index(i), segments: path.segments.clone() },
            None => path.clone(),
        }
    }

    /// The path of a place, by kind and name of its document, as marks are stored.
    pub fn stored_path(&self, path: &Path) -> Path {
        match self.doc_index(&path.document) {
            Some(i) => Path::of(&self.docs[i].id(&self.tables), &path.pointer()),
            None => path.clone(),
        }
    }

    /// What stands at a path. Nothing if the document or the place does not exist, or lies inside a reference.
    pub fn get(&self, path: &Path) -> Option<Found> {
        let doc = &self.docs[self.doc_index(&path.document)?];
        let shape = doc.shape(&self.tables);
        let (val, shape) = at(&self.tables, &doc.root, shape, &path.segments)?;
        let scalar =
            !matches!(val.pointee().data, Data::Zero | Data::Struct(_) | Data::List(_) | Data::Map(_));
        Some(Found {
            class: class(shape, &self.tables),
            origin: val.origin,
            value: scalar.then(|| leaf_value(&self.tables, shape, val)),
        })
    }

    /// Puts a reference in the place of a value that is set: a scalar, a mapping or a list element. The value's
    /// origin is kept.
    ///
    /// # Errors
    /// [`AccessError`] if there is nothing, or no reference may stand there.
    pub fn substitute(&mut self, path: &Path, opaque: &str) -> Result<(), AccessError> {
        let shown = path.to_string();
        let index =
            self.doc_index(&path.document).ok_or_else(|| AccessError::NoDocument { path: shown.clone() })?;
        if path.segments.is_empty() {
            return Err(AccessError::NoReference { path: shown, what: "a whole document" });
        }
        let tables = self.tables.clone();
        let doc = &mut self.docs[index];
        let identity = tables.0.kinds[doc.kind].name.as_deref();
        if let [only] = path.segments.as_slice()
            && (matches!(only.as_str(), "apiVersion" | "kind") || Some(only.as_str()) == identity)
        {
            return Err(AccessError::NoReference { path: shown, what: "an identity" });
        }
        let shape = doc.shape(&tables);
        let nothing = || AccessError::Nothing { path: shown.clone() };
        let (val, shape) = at_mut(&tables, &mut doc.root, shape, &path.segments).ok_or_else(nothing)?;
        if matches!(val.data, Data::Zero) {
            return Err(nothing());
        }
        if class(shape, &tables) == FieldClass::List || matches!(val.data, Data::List(_)) {
            return Err(AccessError::NoReference { path: shown, what: "a list" });
        }
        if opaque.is_empty() {
            return Err(AccessError::NoReference { path: shown, what: "anything without a name" });
        }
        val.data = Data::Opaque(opaque.into());
        Ok(())
    }

    /// Gives every reference its value and decodes it by the type of its field.
    ///
    /// `value` gets the reference's text, its place and where it was written.
    ///
    /// # Errors
    /// [`ResolveError`] if a value is missing, does not fit, or is empty or zero, which Talos takes for unset.
    pub fn resolve<E, F>(&self, mut value: F) -> Result<Config, ResolveError<E>>
    where
        E: std::error::Error + 'static,
        F: FnMut(&str, &Path, Option<Origin>) -> Result<Resolved, E>,
    {
        let mut config = self.clone();
        let tables = self.tables.clone();
        for doc in &mut config.docs {
            let id = doc.id(&tables);
            let shape = doc.shape(&tables);
            let mut places = Vec::new();
            visit(&tables, &doc.root, shape, &mut Vec::new(), &mut |path, _, val| {
                if let Data::Opaque(text) = &val.data {
                    places.push((segments_of(path), text.to_string(), val.origin));
                }
            });
            for (path, text, origin) in places {
                let (document, at_pointer) = (id.to_string(), pointer(&path));
                let resolved = value(&text, &Path::of(&id, &at_pointer), origin).map_err(|source| {
                    ResolveError::Missing { document: document.clone(), path: at_pointer.clone(), source }
                })?;
                let unfit = |source: ConfigError| ResolveError::Unfit {
                    document: document.clone(),
                    path: at_pointer.clone(),
                    source: Box::new(source),
                };
                let Some((slot, field)) = at_mut(&tables, &mut doc.root, shape, &path) else { continue };
                let source = slot.origin.map_or_else(SourceId::default, |o| o.source);
                let data = decode_resolved(&tables, field, resolved, source, &path).map_err(unfit)?;
                if is_empty(&data, field, &tables) {
                    return Err(ResolveError::Empty { document, path: at_pointer });
                }
                slot.data = data;
            }
            trim_all(&tables, &mut doc.root, shape);
        }
        Ok(config)
    }
}

fn decode_resolved(
    tables: &Tables,
    shape: &Shape,
    resolved: Resolved,
    source: SourceId,
    path: &[String],
) -> Result<Data, ConfigError> {
    let node = match resolved {
        Resolved::Text(text) => text_node(&text, Style::DoubleQuoted),
        Resolved::Plain(text) => text_node(&text, Style::Plain),
        Resolved::Node(node) => node,
    };
    let mut decoder = Decoder::new(tables, source, None);
    decoder.path = path.iter().map(|segment| Step::Key(segment)).collect();
    no_duplicates(&node)?;
    Ok(decoder.value(shape, &node)?.data)
}

/// Whether a resolved value counts as unset where it stands. Pointers and plain booleans keep their zero.
fn is_empty(data: &Data, shape: &Shape, tables: &Tables) -> bool {
    match tables.base(shape) {
        Shape::Bool => false,
        Shape::Ptr(inner) => match data {
            Data::Ptr(v) => matches!(tables.base(inner), Shape::Text) && v.is_go_zero(),
            other => matches!(other, Data::Zero),
        },
        _ => match data {
            Data::Bytes(b) => b.is_empty(),
            Data::Bool(_) => false,
            other => Val { data: other.clone(), ..Val::default() }.is_go_zero(),
        },
    }
}

/// Inline manifests are trimmed when they are decoded, so also when a reference in them gets its value.
fn trim_all(tables: &Tables, val: &mut Val, shape: &Shape) {
    if let Shape::Type(id) = shape
        && let Body::Leaf(Codec::InlineManifests(inner)) = &tables.ty(*id).body
    {
        trim_manifests(val, tables, inner);
        return;
    }
    match (&mut val.data, tables.base(shape)) {
        (Data::Ptr(inner), Shape::Ptr(s)) => trim_all(tables, Arc::make_mut(inner), s),
        (Data::Struct(fields), base) => {
            let Some(s) = tables.as_struct(base) else { return };
            for (field, v) in s.fields.iter().zip(Arc::make_mut(fields)) {
                trim_all(tables, v, &field.shape);
            }
        }
        _ => {}
    }
}

/// The leaves of one document.
pub(crate) fn leaves_of(tables: &Tables, doc: &Doc) -> Vec<Leaf> {
    let mut leaves = Vec::new();
    visit(tables, &doc.root, doc.shape(tables), &mut Vec::new(), &mut |path, shape, val| {
        if let Some(origin) = val.origin {
            leaves.push(leaf(tables, doc, path, shape, val, origin));
        }
    });
    leaves
}

pub(crate) fn leaf(
    tables: &Tables,
    doc: &Doc,
    path: &[Step<'_>],
    shape: &Shape,
    val: &Val,
    origin: Origin,
) -> Leaf {
    Leaf {
        document: doc.id(tables),
        pointer: pointer_of(path),
        origin,
        overrode: val.overrode,
        rule: val.rule,
        class: class(shape, tables),
        value: leaf_value(tables, shape, val),
    }
}

impl Tables {
    /// What kind of field stands at a pointer in a document of this kind, whether or not it is set. Nothing if
    /// the kind has no such field. List indexes and map keys may be anything.
    pub fn field_class(&self, kind: &str, segments: &[String]) -> Option<FieldClass> {
        let (_, info) = self.kind(kind)?;
        let mut shape = info.root.clone();
        for segment in segments {
            let base = match self.base(&shape) {
                Shape::Ptr(inner) => self.base(inner),
                other => other,
            };
            shape = match base {
                Shape::List(inner) | Shape::Map(inner) => inner.as_ref().clone(),
                Shape::Any => Shape::Any,
                other => {
                    let s = self.as_struct(other)?;
                    match (s.keys.get(segment), &s.rest) {
                        (Some(path), _) => crate::decode::field_shape(self, s, path).clone(),
                        (None, Some(_)) => Shape::Any,
                        _ => return None,
                    }
                }
            };
        }
        Some(class(&shape, self))
    }
}

/// The text of a leaf for comparing, whatever its type.
pub(crate) fn raw_text(tables: &Tables, shape: &Shape, val: &Val) -> Option<String> {
    match leaf_value(tables, shape, val) {
        LeafValue::Text(text) => Some(text),
        LeafValue::Opaque(_) => None,
        LeafValue::Empty => match (tables.codec(tables.base(shape)), &val.data) {
            (Some(codec), data @ Data::Bytes(_)) => Some(text_of(codec, data).into_owned()),
            _ => None,
        },
    }
}
