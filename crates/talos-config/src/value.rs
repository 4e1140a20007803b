//! Typed values: what a document holds after decoding, shaped by the tables, with the origin of every part.

use std::fmt;
use std::sync::Arc;

use crate::node::Pos;
use crate::tables::{Body, Codec, Shape, Tables};
use crate::url::Url;

/// The caller's number for a source file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(pub u32);

/// Where a value was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The file.
    pub source: SourceId,
    /// The place in the file.
    pub pos: Pos,
}

/// A value and where it came from.
#[derive(Clone, Default)]
pub(crate) struct Val {
    pub data: Data,
    pub origin: Option<Origin>,
    /// Where the value stood that this one took the place of.
    pub overrode: Option<Origin>,
    /// How it came to stand here.
    pub rule: Rule,
}

/// How a value came to stand where it stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// It was written where nothing stood before.
    #[default]
    Set,
    /// It took the place of another value, which was set.
    Replaced,
    /// It is an element that a patch added behind those of a list.
    Appended,
    /// It is an element with the identity of one that was there; the two were merged.
    Matched,
}

/// The data of a value. Its shape is known from its place.
///
/// Everything that is not small is shared: a copy of a configuration costs a few counters, and a merge copies
/// only what lies on the way to what it changes.
#[derive(Clone, Default)]
pub(crate) enum Data {
    /// Go's zero value of whatever the shape is: nil, "", 0, false, the empty struct.
    #[default]
    Zero,
    /// Strings, and leaf types by their canonical text.
    Text(Arc<str>),
    Bool(bool),
    Int(i64),
    /// A whole number above the largest `i64`.
    Big(u64),
    Float(f64),
    /// Bytes that are set, maybe to nothing.
    Bytes(Arc<[u8]>),
    Size(Arc<Size>),
    Url(Arc<Url>),
    Ptr(Arc<Val>),
    List(Arc<Vec<Val>>),
    Map(Arc<Entries>),
    /// Fields by index.
    Struct(Arc<Vec<Val>>),
    /// A tagged text that stands for a value unknown here.
    Opaque(Arc<str>),
}

/// The entries of a map, in the order in which they came.
pub(crate) type Entries = Vec<(Arc<str>, Val)>;

/// A size has two slots that merge apart; the bytes are printed first.
#[derive(Clone, PartialEq)]
pub(crate) struct Size {
    pub percent: Option<Arc<str>>,
    pub bytes: Option<Arc<str>>,
}

impl PartialEq for Data {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Data::Zero, Data::Zero) => true,
            (Data::Text(a), Data::Text(b)) | (Data::Opaque(a), Data::Opaque(b)) => same(a, b),
            (Data::Bool(a), Data::Bool(b)) => a == b,
            (Data::Int(a), Data::Int(b)) => a == b,
            (Data::Big(a), Data::Big(b)) => a == b,
            (Data::Float(a), Data::Float(b)) => a == b,
            (Data::Bytes(a), Data::Bytes(b)) => same(a, b),
            (Data::Size(a), Data::Size(b)) => same(a, b),
            (Data::Url(a), Data::Url(b)) => same(a, b),
            (Data::Ptr(a), Data::Ptr(b)) => same(a, b),
            (Data::List(a), Data::List(b)) | (Data::Struct(a), Data::Struct(b)) => same(a, b),
            (Data::Map(a), Data::Map(b)) => same(a, b),
            _ => false,
        }
    }
}

/// Equality that does not look into what both sides share.
fn same<T: PartialEq + ?Sized>(a: &Arc<T>, b: &Arc<T>) -> bool {
    Arc::ptr_eq(a, b) || a == b
}

impl PartialEq for Val {
    fn eq(&self, other: &Self) -> bool {
        self.data == other.data
    }
}

impl fmt::Debug for Val {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Val(..)")
    }
}

impl Data {
    /// A whole number; nothing if it fits neither `i64` nor `u64`.
    pub fn int(number: i128) -> Option<Data> {
        match i64::try_from(number) {
            Ok(small) => Some(Data::Int(small)),
            Err(_) => u64::try_from(number).ok().map(Data::Big),
        }
    }

    /// The whole number, 0 for anything else.
    pub fn as_int(&self) -> i128 {
        match self {
            Data::Int(i) => i128::from(*i),
            Data::Big(u) => i128::from(*u),
            _ => 0,
        }
    }
}

/// A value that is not there.
pub(crate) static ZERO: Val = Val { data: Data::Zero, origin: None, overrode: None, rule: Rule::Set };

impl Val {
    pub fn new(data: Data, origin: Origin) -> Self {
        Val { data, origin: Some(origin), overrode: None, rule: Rule::Set }
    }

    /// Go's `reflect.Value.IsZero`.
    pub fn is_go_zero(&self) -> bool {
        match &self.data {
            Data::Zero => true,
            Data::Text(s) => s.is_empty(),
            Data::Bool(b) => !b,
            Data::Int(i) => *i == 0,
            Data::Big(_) => false,
            Data::Float(f) => *f == 0.0,
            Data::Size(size) => size.percent.is_none() && size.bytes.is_none(),
            Data::Struct(fields) => fields.iter().all(Val::is_go_zero),
            Data::Bytes(_) | Data::Url(_) | Data::Ptr(_) | Data::List(_) | Data::Map(_) | Data::Opaque(_) => {
                false
            }
        }
    }

    /// Whether `omitempty` drops the value.
    pub fn is_omitted(&self, shape: &Shape, tables: &Tables) -> bool {
        match &self.data {
            Data::Zero => true,
            Data::Bytes(b) => b.is_empty(),
            Data::List(l) => l.is_empty(),
            Data::Map(m) => m.is_empty(),
            Data::Struct(fields) => match tables.as_struct(tables.base(shape)) {
                Some(s) => s
                    .fields
                    .iter()
                    .zip(fields.iter())
                    .all(|(f, v)| f.ignored_zero || v.is_omitted(&f.shape, tables)),
                None => self.is_go_zero(),
            },
            _ => self.is_go_zero(),
        }
    }

    /// The fields of a struct value, made if the struct is still zero.
    pub fn fields_mut(&mut self, count: usize) -> Option<&mut Vec<Val>> {
        if matches!(self.data, Data::Zero) {
            self.data = Data::Struct(Arc::new(vec![Val::default(); count]));
        }
        match &mut self.data {
            Data::Struct(fields) => Some(Arc::make_mut(fields)),
            _ => None,
        }
    }

    /// Looks through a pointer.
    pub fn pointee(&self) -> &Val {
        match &self.data {
            Data::Ptr(inner) => inner.pointee(),
            _ => self,
        }
    }
}

/// What kind of value a field holds, as far as a caller must know to put a reference there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FieldClass {
    /// Any text.
    Text,
    /// Text of a certain form: an address, a size, a duration, a URL, one of several words.
    Form,
    /// Bytes in base64.
    Base64,
    /// A whole number.
    Integer,
    /// True or false.
    Boolean,
    /// Keys and values.
    Mapping,
    /// A list.
    List,
    /// Anything.
    Free,
}

impl FieldClass {
    /// Whether a secret text may stand there.
    pub fn takes_text(self) -> bool {
        matches!(self, FieldClass::Text | FieldClass::Form | FieldClass::Base64 | FieldClass::Free)
    }
}

/// The class of a shape.
pub(crate) fn class(shape: &Shape, tables: &Tables) -> FieldClass {
    match tables.base(shape) {
        Shape::Bool => FieldClass::Boolean,
        Shape::Int { .. } => FieldClass::Integer,
        Shape::Text => FieldClass::Text,
        Shape::Any => FieldClass::Free,
        Shape::Ptr(inner) => class(inner, tables),
        Shape::List(_) => FieldClass::List,
        Shape::Map(_) => FieldClass::Mapping,
        Shape::Type(id) => match &tables.ty(*id).body {
            Body::Struct(_) => FieldClass::Mapping,
            Body::Leaf(Codec::FileMode) => FieldClass::Integer,
            Body::Leaf(Codec::Raw | Codec::ArgValue) => FieldClass::Text,
            Body::Leaf(Codec::Base64 { .. }) => FieldClass::Base64,
            Body::Leaf(Codec::InlineManifests(_)) => FieldClass::List,
            Body::Leaf(_) => FieldClass::Form,
            Body::Is(inner) => class(inner, tables),
        },
    }
}
