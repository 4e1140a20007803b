//! From nodes to typed values, strictly, by the tables.

mod fields;
mod merge_keys;

use std::collections::HashMap;
use std::sync::Arc;

use crate::codec::{self, Misfit};
use crate::error::{ConfigError, HIDDEN_KEY, shown_key};
use crate::nearest::nearest;
use crate::node::{Node, NodeKind, Pos, Style};
use crate::scalar::{Plain, old_bool, resolve};
use crate::tables::{Body, Codec, Shape, Struct, Tables, TypeId, Unquoted};
use crate::trail::{Step, pointer_of};
use crate::value::{Data, Origin, SourceId, Val};

use fields::{add_rest, fill_pem, slot};
pub(crate) use fields::{field_shape, trim_manifests};
use merge_keys::Merging;

type Result<T> = std::result::Result<T, ConfigError>;

pub(crate) struct Decoder<'a> {
    pub tables: &'a Tables,
    pub source: SourceId,
    pub opaque: Option<&'a str>,
    /// Keys and indexes from the document's root to the node at hand.
    pub path: Vec<Step<'a>>,
    /// The fields of structs of which nothing is set, which all share.
    unset: HashMap<*const Struct, Arc<Vec<Val>>>,
    /// Where the outermost alias stands, behind which the node at hand is.
    alias: Option<Pos>,
    /// Whether a free-form value is around the node at hand.
    free: bool,
}

static ANY: Shape = Shape::Any;
static TEXT: Shape = Shape::Text;

/// Above every number that a float can stand for here.
const TOO_LARGE: f64 = 3.0e19;

/// A scalar by what its style, tag and text say.
enum Scalar<'a> {
    Null,
    Plain(Plain, &'a str),
    Quoted(&'a str),
    /// Text with a tag of which Talos takes no notice: nothing but text.
    Foreign(&'a str),
}

impl<'a> Decoder<'a> {
    pub fn new(tables: &'a Tables, source: SourceId, opaque: Option<&'a str>) -> Self {
        Decoder { tables, source, opaque, path: Vec::new(), unset: HashMap::new(), alias: None, free: false }
    }

    fn origin(&self, node: &Node) -> Origin {
        Origin { source: self.source, pos: node.pos }
    }

    fn here(&self) -> String {
        match self.path.is_empty() {
            true => "the document".to_owned(),
            false => pointer_of(&self.path),
        }
    }

    pub fn value(&mut self, shape: &'a Shape, node: &'a Node) -> Result<Val> {
        let around = (self.alias, self.free);
        if matches!(node.kind, NodeKind::Alias { .. }) {
            self.alias = self.alias.or(Some(node.pos));
        }
        self.free |= matches!(shape, Shape::Any);
        let decoded = self.decoded(shape, node);
        (self.alias, self.free) = around;
        decoded
    }

    fn decoded(&mut self, shape: &'a Shape, node: &'a Node) -> Result<Val> {
        let origin = self.origin(node);
        let target = node.resolved();
        if self.is_opaque(target) {
            return self.opaque(shape, target, origin);
        }
        if target.is_null() {
            self.check_null(shape, node)?;
            return Ok(Val::new(Data::Zero, origin));
        }
        let data = match shape {
            Shape::Ptr(inner) => Data::Ptr(Arc::new(self.value(inner, node)?)),
            Shape::List(inner) => self.list(inner, target)?,
            Shape::Map(inner) => self.map(inner, target)?,
            Shape::Any => self.any(target)?,
            Shape::Bool => self.boolean(target)?,
            Shape::Int { bits, signed } => self.int(target, *bits, *signed)?,
            Shape::Text => self.text(target)?,
            Shape::Type(id) => return self.named(*id, node, origin),
        };
        Ok(Val::new(data, origin))
    }

    fn named(&mut self, id: TypeId, node: &'a Node, origin: Origin) -> Result<Val> {
        let target = node.resolved();
        let tables = self.tables;
        match &tables.ty(id).body {
            Body::Is(Shape::Text) if is_merge_key(target) => {
                Err(self.not_handled(target.pos, "an unquoted '<<'", "quote it"))
            }
            // not every minor takes no notice of the tag here
            Body::Is(Shape::Text) if matches!(self.scalar(target), Ok(Scalar::Foreign(_))) => {
                Err(self.not_handled(target.pos, "a tag", "remove the tag"))
            }
            Body::Is(shape) => self.value(shape, node),
            Body::Struct(s) => {
                let mut val = Val::new(self.structure(s, target)?, origin);
                if tables.ty(id).name.starts_with("x509.") {
                    fill_pem(&mut val, s);
                }
                Ok(val)
            }
            Body::Leaf(Codec::InlineManifests(shape)) => {
                let mut val = self.value(shape, node)?;
                trim_manifests(&mut val, tables, shape);
                Ok(val)
            }
            Body::Leaf(codec) => {
                self.check_alias(codec, node)?;
                Ok(Val::new(self.leaf(codec, id, target)?, origin))
            }
        }
    }

    /// Some minors take no alias where a type reads its own text.
    fn check_alias(&self, codec: &Codec, node: &Node) -> Result<()> {
        let alias = matches!(node.kind, NodeKind::Alias { .. }) && !self.tables.0.switches.alias_text;
        match alias && codec.reads_text() {
            true => Err(self.misfit(node, "the value itself; this minor takes no alias here")),
            false => Ok(()),
        }
    }

    /// The same for an alias of null.
    fn check_null(&self, shape: &Shape, node: &Node) -> Result<()> {
        let base = match self.tables.base(shape) {
            Shape::Ptr(inner) => self.tables.base(inner),
            other => other,
        };
        self.tables.codec(base).map_or(Ok(()), |codec| self.check_alias(codec, node))
    }

    fn is_opaque(&self, node: &Node) -> bool {
        self.opaque.is_some() && node.tag.as_deref() == self.opaque
    }

    fn opaque(&mut self, shape: &Shape, node: &Node, origin: Origin) -> Result<Val> {
        let refuse =
            |what: &str| ConfigError::OpaquePlace { pos: node.pos, path: self.here(), what: what.to_owned() };
        let base = match self.tables.base(shape) {
            Shape::Ptr(inner) => self.tables.base(inner),
            other => other,
        };
        let Some(text) = node.text() else { return Err(refuse("a value of its own")) };
        if text.is_empty() {
            return Err(refuse("anything without a name"));
        }
        if matches!(base, Shape::List(_)) {
            return Err(refuse("a list"));
        }
        Ok(Val::new(Data::Opaque(text.into()), origin))
    }

    fn structure(&mut self, s: &'a Struct, node: &'a Node) -> Result<Data> {
        let entries = self.entries(node, "a mapping")?;
        if entries.is_empty() {
            let unset = || Arc::new(vec![Val::default(); s.fields.len()]);
            return Ok(Data::Struct(Arc::clone(
                self.unset.entry(std::ptr::from_ref(s)).or_insert_with(unset),
            )));
        }
        let mut fields = vec![Val::default(); s.fields.len()];
        // a free-form value is a struct around a map
        let free = s.keys.is_empty() && s.rest.is_some();
        let merging = if free { Merging::All } else { Merging::Nothing };
        for (key, value) in self.expanded(entries, merging)?.iter() {
            let name = self.key(key)?;
            if let Some(path) = s.keys.get(name) {
                let shape = field_shape(self.tables, s, path);
                let decoded = self.below(Step::Key(name), shape, value)?;
                if let Some(slot) = slot(self.tables, &mut fields, s, path) {
                    *slot = decoded;
                }
            } else if let Some(path) = &s.rest {
                let Shape::Map(inner) = field_shape(self.tables, s, path) else { continue };
                let decoded = self.below(Step::Key(name), inner, value)?;
                if let Some(slot) = slot(self.tables, &mut fields, s, path) {
                    add_rest(slot, name, decoded, self.origin(node));
                }
            } else {
                return Err(self.unknown_key(key, name, value, s));
            }
        }
        Ok(Data::Struct(Arc::new(fields)))
    }

    fn below(&mut self, step: Step<'a>, shape: &'a Shape, node: &'a Node) -> Result<Val> {
        self.path.push(step);
        let decoded = self.value(shape, node)?;
        self.path.pop();
        Ok(decoded)
    }

    fn unknown_key(&self, key: &Node, name: &str, value: &Node, s: &Struct) -> ConfigError {
        let near = nearest(name, s.keys.names());
        let remnant = near.is_none() && value.is_absent();
        let shown = if remnant { HIDDEN_KEY.to_owned() } else { shown_key(name) };
        if let Some(alias) = self.alias {
            // Talos looks for unknown keys only where they are written
            let way_out = format!("write the value out without {shown:?}, which Talos drops there");
            return self.not_handled(alias, "an alias of a mapping with unknown keys", &way_out);
        }
        let hint = match near {
            Some(k) => format!("; did you mean {k:?}?"),
            None if remnant => {
                "; it has no value, so it may be part of one and is not shown: within braces, a text with a comma needs quotes".to_owned()
            }
            None => "; check the spelling, the indentation and the cluster's Talos version".to_owned(),
        };
        let path = if self.path.is_empty() { "The document".to_owned() } else { pointer_of(&self.path) };
        ConfigError::UnknownKey { pos: key.pos, path, key: shown, hint }
    }

    fn entries<'n>(&self, node: &'n Node, expected: &str) -> Result<&'n [(Node, Node)]> {
        match &node.kind {
            NodeKind::Mapping(entries) => {
                self.plain_tag(node, "tag:yaml.org,2002:map")?;
                Ok(entries)
            }
            _ => Err(self.wrong(node, expected)),
        }
    }

    fn plain_tag(&self, node: &Node, allowed: &str) -> Result<()> {
        match node.tag.as_deref() {
            None => Ok(()),
            Some(tag) if tag == allowed || self.is_foreign(tag) => Ok(()),
            Some(_) => Err(self.not_handled(node.pos, "a tag", "remove the tag")),
        }
    }

    /// Whether Talos takes no notice of a tag. Where references are used, a tag may be a misspelt one.
    fn is_foreign(&self, tag: &str) -> bool {
        const KNOWN: [&str; 9] =
            ["null", "bool", "str", "int", "float", "timestamp", "binary", "merge", "seq"];
        match tag.strip_prefix("tag:yaml.org,2002:") {
            Some(name) => self.opaque.is_none() && !KNOWN.contains(&name) && name != "map",
            None => tag == "!" || self.opaque.is_none(),
        }
    }

    /// What minors disagree about wherever it stands.
    fn merge_key(&self, node: &Node) -> Option<ConfigError> {
        if node.tag.as_deref() == Some("tag:yaml.org,2002:merge") {
            return Some(self.not_handled(node.pos, "a tag", "remove the tag"));
        }
        is_merge_key(node).then(|| self.not_handled(node.pos, "an unquoted '<<'", "quote it"))
    }

    fn wrong(&self, node: &Node, expected: &str) -> ConfigError {
        if let Some(error) = self.merge_key(node) {
            return error;
        }
        ConfigError::WrongType {
            pos: node.pos,
            path: self.here(),
            expected: expected.to_owned(),
            found: node.kind_name(),
        }
    }

    fn wrong_key(&self, key: &Node, expected: &str, found: &'static str) -> ConfigError {
        let path = format!("a key of {}", self.here());
        ConfigError::WrongType { pos: key.pos, path, expected: expected.to_owned(), found }
    }

    /// A refusal by name stays; any other error becomes one that names what is wanted.
    fn or_wrong(&self, error: ConfigError, node: &Node, expected: &str) -> ConfigError {
        match error {
            ConfigError::NotHandled { .. } => error,
            _ => self.wrong(node, expected),
        }
    }

    fn not_handled(&self, pos: Pos, what: &str, way_out: &str) -> ConfigError {
        ConfigError::NotHandled { pos, path: self.here(), what: what.to_owned(), way_out: way_out.to_owned() }
    }

    /// The text of a key. Merge keys, null keys and keys that are no scalars are refused.
    fn key<'n>(&self, key: &'n Node) -> Result<&'n str> {
        if self.is_opaque(key.resolved()) {
            return Err(ConfigError::OpaquePlace {
                pos: key.pos,
                path: self.here(),
                what: "a key".to_owned(),
            });
        }
        // Talos refuses aliases as keys, but looks for them neither behind an alias nor in free-form values
        if matches!(key.kind, NodeKind::Alias { .. }) && self.alias.is_none() && !self.free {
            return Err(self.wrong_key(key, "text", "alias"));
        }
        match self.scalar(key.resolved()) {
            Ok(Scalar::Plain(Plain::Timestamp, _)) if !self.tables.0.switches.timestamp_text => {
                Err(self.misfit(key, "quotes around a key that looks like a date"))
            }
            Ok(Scalar::Plain(Plain::Merge, _)) => {
                Err(self.not_handled(key.pos, "the merge key '<<'", "write the keys out"))
            }
            Ok(Scalar::Plain(_, text) | Scalar::Quoted(text)) => Ok(text),
            _ => Err(self.not_handled(key.pos, "a key that is no text", "write the key as text")),
        }
    }

    fn list(&mut self, inner: &'a Shape, node: &'a Node) -> Result<Data> {
        let NodeKind::Sequence(elements) = &node.kind else { return Err(self.wrong(node, "a list")) };
        self.plain_tag(node, "tag:yaml.org,2002:seq")?;
        let keeps_null =
            matches!(self.tables.base(inner), Shape::Ptr(_) | Shape::Any | Shape::List(_) | Shape::Map(_));
        let mut out = Vec::with_capacity(elements.len());
        for element in elements {
            if element.is_null() && !keeps_null {
                self.check_null(inner, element)?;
                continue;
            }
            out.push(self.below(Step::Index(out.len()), inner, element)?);
        }
        Ok(Data::List(Arc::new(out)))
    }

    fn map(&mut self, inner: &'a Shape, node: &'a Node) -> Result<Data> {
        let entries = self.entries(node, "a mapping")?;
        let mut out = Vec::with_capacity(entries.len());
        for (key, value) in self.expanded(entries, Merging::into_map(inner))?.iter() {
            let name = self.key(key)?;
            out.push((name.into(), self.below(Step::Key(name), inner, value)?));
        }
        Ok(Data::Map(Arc::new(out)))
    }

    /// A value whose type is its own. Keys of nested mappings must be strings.
    fn any(&mut self, node: &'a Node) -> Result<Data> {
        match &node.kind {
            NodeKind::Sequence(_) => self.list(&ANY, node),
            NodeKind::Mapping(entries) => {
                for (key, _) in self.expanded(entries, Merging::All)?.iter() {
                    if let Ok(Scalar::Plain(plain, _)) = self.scalar(key.resolved())
                        && plain != Plain::Text
                    {
                        return Err(self.not_handled(
                            key.pos,
                            "a key that is not read as text",
                            "quote the key",
                        ));
                    }
                }
                self.map(&ANY, node)
            }
            _ => match self.scalar(node)? {
                Scalar::Null => Ok(Data::Zero),
                Scalar::Quoted(text) | Scalar::Foreign(text) => Ok(Data::Text(text.into())),
                Scalar::Plain(plain, text) => match plain {
                    Plain::Null => Ok(Data::Zero),
                    Plain::Bool(b) => Ok(Data::Bool(b)),
                    Plain::Int(i) => Data::int(i).ok_or_else(|| self.misfit(node, "a smaller number")),
                    Plain::Float(f) => Ok(Data::Float(f)),
                    Plain::Text => Ok(Data::Text(text.into())),
                    Plain::Timestamp => Err(self.not_handled(node.pos, "an unquoted date", "quote it")),
                    Plain::Merge => match self.tables.0.switches.merge_any {
                        Unquoted::Text => Ok(Data::Text(text.into())),
                        // what holds it drops the value, or keeps a null
                        Unquoted::Null => Err(self.not_handled(node.pos, "an unquoted '<<'", "quote it")),
                        _ => Err(self.misfit(node, "another value than an unquoted '<<'")),
                    },
                },
            },
        }
    }

    fn scalar<'n>(&self, node: &'n Node) -> Result<Scalar<'n>> {
        let NodeKind::Scalar { text, style } = &node.kind else { return Err(self.wrong(node, "a scalar")) };
        let plain = match node.tag.as_deref() {
            None if *style == Style::Plain => resolve(text),
            None | Some("tag:yaml.org,2002:str") => return Ok(Scalar::Quoted(text)),
            Some(tag) if self.is_foreign(tag) => return Ok(Scalar::Foreign(text)),
            Some(tag) => tagged(tag, text, *style)
                .ok_or_else(|| self.not_handled(node.pos, "a tag", "remove the tag"))?,
        };
        Ok(if plain == Plain::Null { Scalar::Null } else { Scalar::Plain(plain, text) })
    }

    /// The raw text of a scalar, for strings and for leaf types that take any scalar.
    fn raw<'n>(&self, node: &'n Node, expected: &str) -> Result<&'n str> {
        if !matches!(node.kind, NodeKind::Scalar { .. }) {
            return Err(self.wrong(node, expected));
        }
        self.raw_of(node, self.scalar(node)?)
    }

    fn raw_of<'n>(&self, node: &Node, scalar: Scalar<'n>) -> Result<&'n str> {
        match scalar {
            Scalar::Null => Ok(""),
            Scalar::Plain(Plain::Merge, text) => match self.tables.0.switches.merge_text {
                Unquoted::Text => Ok(text),
                Unquoted::Null => Ok(""),
                _ => Err(self.misfit(node, "quotes around '<<'")),
            },
            Scalar::Plain(_, text) | Scalar::Quoted(text) | Scalar::Foreign(text) => Ok(text),
        }
    }

    /// As [`Self::raw`], where a date may not stand without quotes.
    fn string<'n>(&self, node: &'n Node, expected: &str) -> Result<&'n str> {
        if !matches!(node.kind, NodeKind::Scalar { .. }) {
            return Err(self.wrong(node, expected));
        }
        match self.scalar(node)? {
            Scalar::Plain(Plain::Timestamp, _) if !self.tables.0.switches.timestamp_text => {
                Err(self.misfit(node, "quotes around what looks like a date"))
            }
            scalar => self.raw_of(node, scalar),
        }
    }

    fn text(&self, node: &Node) -> Result<Data> {
        if node.tag.as_deref() == Some("tag:yaml.org,2002:binary") {
            let text = codec::binary_text(node.text().unwrap_or_default());
            return text.map(|t| Data::Text(t.into())).map_err(|misfit| self.unfit(node, misfit));
        }
        Ok(Data::Text(self.string(node, "text")?.into()))
    }

    fn unfit(&self, node: &Node, misfit: Misfit) -> ConfigError {
        match misfit {
            Misfit::Wants(want) => self.misfit(node, &want),
            Misfit::Unsupported(what) => self.not_handled(node.pos, &what, "write it in a plainer form"),
        }
    }

    fn misfit(&self, node: &Node, expected: &str) -> ConfigError {
        if let Some(error) = self.merge_key(node) {
            return error;
        }
        ConfigError::Value { pos: node.pos, path: self.here(), expected: expected.to_owned() }
    }

    fn boolean(&self, node: &Node) -> Result<Data> {
        let found = match self.scalar(node).map_err(|e| self.or_wrong(e, node, "true or false"))? {
            Scalar::Plain(Plain::Bool(b), _) => Some(b),
            Scalar::Plain(Plain::Text, text) | Scalar::Quoted(text) => old_bool(text),
            Scalar::Foreign(_) => return Err(self.not_handled(node.pos, "a tag", "remove the tag")),
            _ => None,
        };
        found.map(Data::Bool).ok_or_else(|| self.misfit(node, "true or false, without quotes"))
    }

    fn whole(&self, node: &Node) -> Result<Option<i128>> {
        Ok(match self.scalar(node)? {
            Scalar::Plain(Plain::Int(i), _) => Some(i),
            Scalar::Plain(Plain::Float(f), _)
                if (f.fract() == 0.0 || self.tables.0.switches.fraction_int) && f.abs() < TOO_LARGE =>
            {
                // towards zero, as Go converts
                Some(f as i128)
            }
            _ => None,
        })
    }

    fn int(&self, node: &Node, bits: u32, signed: bool) -> Result<Data> {
        let range = match signed {
            true => -(1i128 << (bits - 1))..=(1i128 << (bits - 1)) - 1,
            false => 0..=(1i128 << bits) - 1,
        };
        let found = self.whole(node).map_err(|e| self.or_wrong(e, node, "a whole number"))?;
        if bits == 64 && !found.is_some_and(|i| range.contains(&i)) && self.wraps(node, range.end() + 1) {
            let what = "a number that becomes another one, which depends on the processor,";
            return Err(self.not_handled(node.pos, what, "write a whole number that fits"));
        }
        found.filter(|i| range.contains(i)).and_then(Data::int).ok_or_else(|| {
            let want = format!("a whole number from {} to {}, without quotes", range.start(), range.end());
            self.misfit(node, &want)
        })
    }

    /// Whether Go converts a number with a point or an exponent although it does not fit: where fractions are cut
    /// off nothing but the upper end is looked at, and that only roughly.
    fn wraps(&self, node: &Node, above: i128) -> bool {
        let float = match self.scalar(node) {
            Ok(Scalar::Plain(Plain::Float(f), _)) => f,
            _ => return false,
        };
        self.tables.0.switches.fraction_int && float <= above as f64
    }

    fn leaf(&mut self, codec: &Codec, id: TypeId, node: &'a Node) -> Result<Data> {
        match codec {
            Codec::Unknown => {
                let what = format!("the type {}", self.tables.ty(id).name);
                Err(self.not_handled(node.pos, &what, "leave the field out"))
            }
            Codec::FileMode => self.int(node, 32, false),
            Codec::Duration => match self.scalar(node).map_err(|e| self.or_wrong(e, node, "a duration"))? {
                Scalar::Plain(Plain::Int(0), _) if self.tables.0.switches.zero_duration => Ok(Data::Int(0)),
                Scalar::Plain(Plain::Float(f), _)
                    if self.tables.0.switches.float_duration && f.fract() == 0.0 && f.abs() < 9.0e18 =>
                {
                    Ok(Data::Int(f as i64))
                }
                Scalar::Plain(Plain::Text, text) | Scalar::Quoted(text) => {
                    codec::duration(text).map_err(|misfit| self.unfit(node, misfit))
                }
                Scalar::Foreign(_) => Err(self.not_handled(node.pos, "a tag", "remove the tag")),
                _ => Err(self.misfit(node, "a duration such as 30s or 1h30m")),
            },
            Codec::ArgValue => match &node.kind {
                NodeKind::Sequence(_) if !self.tables.0.switches.list_args && self.alias.is_some() => {
                    let what = "an alias of a list, which this minor takes nowhere else,";
                    Err(self.not_handled(node.pos, what, "write one text"))
                }
                NodeKind::Sequence(_) if !self.tables.0.switches.list_args => {
                    Err(self.wrong(node, "text; this minor takes no lists here"))
                }
                NodeKind::Sequence(_) => self.list(&TEXT, node),
                _ => match self.text(node)? {
                    Data::Text(t) if t.is_empty() => Ok(Data::Zero),
                    data => Ok(data),
                },
            },
            Codec::PortRange => {
                let port =
                    self.whole(node).map_err(|e| self.or_wrong(e, node, "a port or a range of ports"))?;
                codec::port_range(port, self.raw(node, "a port")?).map_err(|misfit| self.unfit(node, misfit))
            }
            Codec::Url => {
                let text = self.string(node, "a URL")?;
                if text.is_empty() {
                    let endpoint = self.tables.ty(id).name.ends_with(".Endpoint");
                    return Ok(if endpoint { Data::Url(Arc::default()) } else { Data::Zero });
                }
                codec::decode_text(codec, text).map_err(|misfit| self.unfit(node, misfit))
            }
            Codec::HardwareAddr if matches!(node.kind, NodeKind::Sequence(_)) => {
                Err(self.not_handled(node.pos, "a list in the place of bytes", "write the address"))
            }
            Codec::ByteSize | Codec::Size | Codec::Raw | Codec::Addr | Codec::AddrPort | Codec::Prefix
                if matches!(node.kind, NodeKind::Mapping(_)) =>
            {
                Err(self.not_handled(node.pos, "a mapping in the place of a text", "write the text"))
            }
            _ => {
                let text = self.raw(node, "a scalar")?;
                let signed = matches!(codec, Codec::ByteSize | Codec::Size) && text.starts_with('-');
                if signed && !self.tables.0.switches.signed_sizes && !codec::is_negative_zero(text) {
                    return Err(self.misfit(node, "a size without a sign"));
                }
                codec::decode_text(codec, text).map_err(|misfit| self.unfit(node, misfit))
            }
        }
    }
}

fn is_merge_key(node: &Node) -> bool {
    matches!(&node.kind, NodeKind::Scalar { text, style: Style::Plain } if text == "<<")
}

/// The meaning of a plain scalar with a tag that says no more than the scalar itself.
fn tagged(tag: &str, text: &str, style: Style) -> Option<Plain> {
    if style != Style::Plain {
        return None;
    }
    match (tag.strip_prefix("tag:yaml.org,2002:")?, resolve(text)) {
        ("float", Plain::Int(i)) => Some(Plain::Float(i as f64)),
        ("int", plain @ Plain::Int(_))
        | ("float", plain @ Plain::Float(_))
        | ("bool", plain @ Plain::Bool(_))
        | ("null", plain @ Plain::Null)
        | ("timestamp", plain @ Plain::Timestamp) => Some(plain),
        _ => None,
    }
}
