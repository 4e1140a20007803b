//! From typed values to text: field order, `omitempty`, zero values, all into one buffer.

use std::borrow::Cow;

use crate::codec::{disk_size_text, text_of};
use crate::emit::{Quote, Writer, has_raw_break, quote, risky, sorted};
use crate::error::EncodeReason;
use crate::scalar::format_float;
use crate::tables::{Body, Codec, Shape, Struct, Tables};
use crate::trail::{Step, segments_of};
use crate::url::Url;
use crate::value::{Data, Entries, Val, ZERO};

/// What cannot be printed so that it reads as it was; the path leads to it.
#[derive(Debug)]
pub(crate) enum Damage {
    Lossy(Vec<String>),
    Key(Vec<String>),
    KeyOrder(Vec<String>),
    Url(Vec<String>),
    /// A value of a type that the tables know and this engine does not.
    Unknown(Vec<String>),
}

impl Damage {
    /// Why, and the path.
    pub fn parts(self) -> (EncodeReason, Vec<String>) {
        match self {
            Damage::Lossy(path) => (EncodeReason::Lossy, path),
            Damage::Key(path) => (EncodeReason::Key, path),
            Damage::KeyOrder(path) => (EncodeReason::KeyOrder, path),
            Damage::Url(path) => (EncodeReason::Url, path),
            Damage::Unknown(path) => (EncodeReason::Unknown, path),
        }
    }
}

type Result<T> = std::result::Result<T, Damage>;

/// The printed form of a leaf.
pub(crate) enum Printed<'v> {
    Null,
    /// Numbers and booleans, by their text.
    Plain(Cow<'v, str>),
    Text(Cow<'v, str>),
    /// Text of an argument: printed without regard for old booleans and sexagesimals.
    Arg(Cow<'v, str>),
    /// Several arguments.
    Args(&'v [Val]),
    /// A value of a type that this engine does not know.
    Unknown,
}

/// Where a value stands, and the column of what holds it.
#[derive(Clone, Copy)]
enum At {
    /// After a key and its colon.
    Key(usize),
    /// After a dash and a blank.
    Item(usize),
}

impl At {
    /// The column of what stands below.
    fn below(self) -> usize {
        match self {
            At::Key(column) => 4 * ((column + 4) / 4),
            At::Item(column) => column + 2,
        }
    }
}

pub(crate) struct Encoder<'a> {
    tables: &'a Tables,
    /// The tag that is printed before references.
    tag: &'a str,
    writer: Writer,
    path: Vec<Step<'a>>,
    risks: Vec<Vec<String>>,
}

static ANY: Shape = Shape::Any;
static TEXT: Shape = Shape::Text;

impl<'a> Encoder<'a> {
    pub fn new(tables: &'a Tables, tag: &'a str, out: String) -> Self {
        Encoder {
            tables,
            tag,
            writer: Writer::new(&tables.0.switches, out),
            path: Vec::new(),
            risks: Vec::new(),
        }
    }

    /// Prints the root of a document behind what is there.
    pub fn document(&mut self, val: &'a Val, shape: &'a Shape) -> Result<()> {
        let mut placed = true;
        if let Some(s) = self.tables.as_struct(self.tables.base(shape)) {
            self.fields(val, s, 0, &mut placed)?;
        }
        if placed {
            self.text("{}\n");
        }
        Ok(())
    }

    /// What was printed, and the places of texts of a form that go-yaml is known to damage.
    pub fn finish(self) -> (String, Vec<Vec<String>>) {
        (self.writer.out, self.risks)
    }

    pub fn text(&mut self, text: &str) {
        self.writer.out.push_str(text);
    }

    fn value(&mut self, val: &'a Val, shape: &'a Shape, at: At) -> Result<()> {
        let (mut val, mut shape) = (val, shape);
        loop {
            if let Data::Opaque(text) = &val.data {
                self.lead(at);
                self.writer.tagged(self.tag, text);
                self.text("\n");
                return Ok(());
            }
            match shape {
                Shape::Ptr(inner) => match &val.data {
                    Data::Ptr(v) => (val, shape) = (v, inner),
                    _ => return self.leaf(Printed::Null, at),
                },
                Shape::Type(id) => match &self.tables.ty(*id).body {
                    Body::Is(inner) | Body::Leaf(Codec::InlineManifests(inner)) => shape = inner,
                    Body::Struct(s) => return self.block(at, |e, column, p| e.fields(val, s, column, p)),
                    Body::Leaf(codec) => {
                        // an endpoint may be an empty URL, and is read as one
                        let endpoint = self.tables.ty(*id).name.ends_with(".Endpoint");
                        if let Data::Url(url) = &val.data
                            && !(endpoint && **url == Url::default() || url.survives())
                        {
                            return Err(Damage::Url(segments_of(&self.path)));
                        }
                        return self.leaf(printed(codec, &val.data), at);
                    }
                },
                Shape::List(inner) => return self.list(val, inner, at),
                Shape::Map(inner) => return self.map(val, inner, at),
                Shape::Any => match &val.data {
                    Data::List(_) => return self.list(val, &ANY, at),
                    Data::Map(_) => return self.map(val, &ANY, at),
                    data => return self.leaf(plain(data), at),
                },
                Shape::Bool | Shape::Int { .. } | Shape::Text => {
                    return self.leaf(basic(shape, &val.data), at);
                }
            }
        }
    }

    /// What stands between a key or dash and a value on the same line.
    fn lead(&mut self, at: At) {
        if let At::Key(_) = at {
            self.writer.out.push(' ');
        }
    }

    /// A mapping: what `entries` prints at the column, or `{}`. The flag says that the column is reached.
    fn block(
        &mut self,
        at: At,
        entries: impl FnOnce(&mut Self, usize, &mut bool) -> Result<()>,
    ) -> Result<()> {
        let mark = self.writer.out.len();
        let mut placed = matches!(at, At::Item(_));
        if let At::Key(_) = at {
            self.writer.out.push('\n');
        }
        let before = self.writer.out.len();
        entries(self, at.below(), &mut placed)?;
        if self.writer.out.len() == before {
            self.writer.out.truncate(mark);
            self.lead(at);
            self.text("{}\n");
        }
        Ok(())
    }

    fn map(&mut self, val: &'a Val, inner: &'a Shape, at: At) -> Result<()> {
        let Data::Map(entries) = &val.data else { return self.leaf_text("{}", at) };
        self.block(at, |e, column, placed| e.entries(entries, inner, column, placed))
    }

    fn place(&mut self, column: usize, placed: &mut bool) {
        if !*placed {
            self.writer.spaces(column);
        }
        *placed = false;
    }

    fn below(&self, key: &str) -> Vec<String> {
        let mut path = segments_of(&self.path);
        path.push(key.to_owned());
        path
    }

    fn entries(
        &mut self,
        entries: &'a Entries,
        inner: &'a Shape,
        column: usize,
        placed: &mut bool,
    ) -> Result<()> {
        let sorted = sorted(entries).map_err(|key| Damage::KeyOrder(self.below(key)))?;
        for (key, val) in sorted {
            if key.len() > 128 || key.contains(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']) {
                return Err(Damage::Key(self.below(key)));
            }
            self.place(column, placed);
            self.writer.key(key);
            self.writer.out.push(':');
            self.path.push(Step::Key(key));
            self.value(val, inner, At::Key(column))?;
            self.path.pop();
        }
        Ok(())
    }

    fn fields(&mut self, val: &'a Val, s: &'a Struct, column: usize, placed: &mut bool) -> Result<()> {
        let fields: &'a [Val] = match &val.data {
            Data::Struct(fields) => fields,
            _ => &[],
        };
        for (i, field) in s.fields.iter().enumerate() {
            let v = fields.get(i).unwrap_or(&ZERO);
            if field.inline {
                match (self.tables.as_struct(&field.shape), &field.shape, &v.data) {
                    (Some(inner), ..) => self.fields(v, inner, column, placed)?,
                    (None, Shape::Map(inner), Data::Map(entries)) => {
                        self.entries(entries, inner, column, placed)?;
                    }
                    _ => {}
                }
                continue;
            }
            if field.omitempty && v.is_omitted(&field.shape, self.tables) {
                continue;
            }
            self.place(column, placed);
            self.text(&field.printed);
            self.path.push(Step::Key(&field.key));
            self.value(v, &field.shape, At::Key(column))?;
            self.path.pop();
        }
        Ok(())
    }

    fn list(&mut self, val: &'a Val, inner: &'a Shape, at: At) -> Result<()> {
        let items: &'a [Val] = match &val.data {
            Data::List(items) if !items.is_empty() => items,
            _ => return self.leaf_text("[]", at),
        };
        self.items(items, at, |e, item, at| e.value(item, inner, at))
    }

    fn items(
        &mut self,
        items: &'a [Val],
        at: At,
        mut item: impl FnMut(&mut Self, &'a Val, At) -> Result<()>,
    ) -> Result<()> {
        let column = at.below();
        let mut placed = true;
        if let At::Key(_) = at {
            self.writer.out.push('\n');
            placed = false;
        }
        for (i, val) in items.iter().enumerate() {
            self.place(column, &mut placed);
            self.text("- ");
            self.path.push(Step::Index(i));
            item(self, val, At::Item(column))?;
            self.path.pop();
        }
        Ok(())
    }

    fn leaf_text(&mut self, text: &str, at: At) -> Result<()> {
        self.lead(at);
        self.text(text);
        self.text("\n");
        Ok(())
    }

    /// A scalar, with its line break.
    fn leaf(&mut self, value: Printed<'a>, at: At) -> Result<()> {
        let (text, style) = match &value {
            Printed::Null => return self.leaf_text("null", at),
            Printed::Plain(text) => return self.leaf_text(text, at),
            Printed::Args(items) => {
                return self.items(items, at, |e, item, at| e.leaf(argument(&item.data), at));
            }
            Printed::Text(text) => (text, self.writer.quote(text)),
            Printed::Arg(text) => (text, quote(text, None)),
            Printed::Unknown => return Err(Damage::Unknown(segments_of(&self.path))),
        };
        self.lead(at);
        // Talos takes such a name for the key when it looks for what the document is
        let header = self.path.len() == 1 && matches!(&**text, "kind" | "apiVersion");
        if header || risky(text, style) {
            self.risks.push(segments_of(&self.path));
        }
        match style {
            Quote::Literal => self.writer.literal(text, at.below()),
            Quote::Single if has_raw_break(text) => {
                self.writer.single_lines(text, at.below());
                self.text("\n");
            }
            style => {
                self.writer.scalar(text, style);
                self.text("\n");
            }
        }
        Ok(())
    }
}

fn argument(data: &Data) -> Printed<'_> {
    Printed::Arg(text(data).into())
}

/// The text of a string; empty for anything else.
fn text(data: &Data) -> &str {
    match data {
        Data::Text(t) => t,
        _ => "",
    }
}

fn flag(set: bool) -> Cow<'static, str> {
    Cow::Borrowed(if set { "true" } else { "false" })
}

/// A boolean, number or string of a known type.
fn basic<'v>(shape: &Shape, data: &'v Data) -> Printed<'v> {
    match shape {
        // what hides a value stands in its place as text
        Shape::Bool | Shape::Int { .. } if matches!(data, Data::Text(_)) => Printed::Text(text(data).into()),
        Shape::Bool => Printed::Plain(flag(matches!(data, Data::Bool(true)))),
        Shape::Int { .. } => Printed::Plain(data.as_int().to_string().into()),
        _ => Printed::Text(text(data).into()),
    }
}

/// A free-form scalar.
fn plain(data: &Data) -> Printed<'_> {
    match data {
        Data::Bool(b) => Printed::Plain(flag(*b)),
        Data::Int(_) | Data::Big(_) => Printed::Plain(data.as_int().to_string().into()),
        Data::Float(f) => Printed::Plain(format_float(*f).into()),
        Data::Text(t) => Printed::Text(Cow::Borrowed(t)),
        _ => Printed::Null,
    }
}

/// The printed form of a leaf type.
pub(crate) fn printed<'v>(codec: &'v Codec, data: &'v Data) -> Printed<'v> {
    match codec {
        Codec::FileMode | Codec::DiskSize if matches!(data, Data::Text(_)) => {
            Printed::Text(text(data).into())
        }
        Codec::FileMode => Printed::Plain(format!("0o{:o}", data.as_int()).into()),
        Codec::DiskSize => match disk_size_text(u64::try_from(data.as_int()).unwrap_or(0)) {
            (short, true) => Printed::Text(short.into()),
            (number, false) => Printed::Plain(number.into()),
        },
        Codec::ArgValue => match data {
            Data::List(items) if items.is_empty() => Printed::Plain("[]".into()),
            Data::List(items) => Printed::Args(items),
            Data::Text(t) if !t.is_empty() => argument(data),
            _ => Printed::Null,
        },
        Codec::PortRange => match text(data) {
            t if t.contains('-') => Printed::Text(t.into()),
            t => Printed::Plain(t.into()),
        },
        Codec::Unknown => Printed::Unknown,
        _ => Printed::Text(text_of(codec, data)),
    }
}

/// The printed text of a scalar value whose field has this shape; nothing for what is no scalar.
pub(crate) fn scalar_text<'v>(tables: &'v Tables, shape: &'v Shape, data: &'v Data) -> Option<Cow<'v, str>> {
    let printed = match (tables.codec(shape), data) {
        (Some(codec), _) => printed(codec, data),
        (None, Data::Text(_)) => basic(&TEXT, data),
        (None, data) => plain(data),
    };
    match printed {
        Printed::Plain(text) | Printed::Text(text) | Printed::Arg(text) => Some(text),
        Printed::Null | Printed::Args(_) | Printed::Unknown => None,
    }
}
