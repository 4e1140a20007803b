//! Typed values: what a document holds after decoding, shaped by the tables, with the origin of every part.

use std::fmt;

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
}

/// The data of a value. Its shape is known from its place.
#[derive(Clone, Default, PartialEq)]
pub(crate) enum Data {
    /// Go's zero value of whatever the shape is: nil, "", 0, false, the empty struct.
    #[default]
    Zero,
    /// Strings, and leaf types by their canonical text.
    Text(String),
    Bool(bool),
    Int(i128),
    Float(f64),
    /// Bytes that are set, maybe to nothing.
    Bytes(Vec<u8>),
    /// A size has two slots that merge apart; the bytes are printed first.
    Size {
        percent: Option<String>,
        bytes: Option<String>,
    },
    Url(Box<Url>),
    Ptr(Box<Val>),
    List(Vec<Val>),
    Map(Vec<(String, Val)>),
    /// Fields by index.
    Struct(Vec<Val>),
    /// A tagged text that stands for a value unknown here.
    Opaque(String),
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

impl Val {
    pub fn new(data: Data, origin: Origin) -> Self {
        Val { data, origin: Some(origin), overrode: None }
    }

    /// Go's `reflect.Value.IsZero`.
    pub fn is_go_zero(&self) -> bool {
        match &self.data {
            Data::Zero => true,
            Data::Text(s) => s.is_empty(),
            Data::Bool(b) => !b,
            Data::Int(i) => *i == 0,
            Data::Float(f) => *f == 0.0 && !f.is_sign_negative(),
            Data::Size { percent, bytes } => percent.is_none() && bytes.is_none(),
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
                Some(s) => {
                    s.fields.iter().zip(fields).all(|(f, v)| f.ignored_zero || v.is_omitted(&f.shape, tables))
                }
                None => self.is_go_zero(),
            },
            _ => self.is_go_zero(),
        }
    }

    /// The fields of a struct value, made if the struct is still zero.
    pub fn fields_mut(&mut self, count: usize) -> Option<&mut Vec<Val>> {
        if matches!(self.data, Data::Zero) {
            self.data = Data::Struct(vec![Val::default(); count]);
        }
        match &mut self.data {
            Data::Struct(fields) => Some(fields),
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
