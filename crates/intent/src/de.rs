//! From a YAML node to a Rust type, keeping the place of what does not fit.

use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeOwned, IntoDeserializer, Visitor};
use talos_config::{Node, NodeKind, Pos, Style};

use crate::finding::{Code, codes};

/// What does not fit, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    pub(crate) pos: Option<Pos>,
    pub(crate) code: Code,
    pub(crate) message: String,
}

impl Misfit {
    fn new(pos: Pos, message: impl Into<String>) -> Misfit {
        Misfit { pos: Some(pos), code: codes::WRONG_VALUE, message: message.into() }
    }

    fn at(mut self, pos: Pos) -> Misfit {
        self.pos.get_or_insert(pos);
        self
    }
}

impl std::fmt::Display for Misfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Misfit {}

impl de::Error for Misfit {
    fn custom<T: std::fmt::Display>(message: T) -> Misfit {
        let mut text = message.to_string();
        if let Some(first) = text.get(..1) {
            text = first.to_uppercase() + &text[1..];
        }
        Misfit { pos: None, code: codes::WRONG_VALUE, message: text }
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Misfit {
        let known = expected.join(", ");
        Misfit {
            pos: None,
            code: codes::UNKNOWN_KEY,
            message: format!("Unknown key `{field}`; known are {known}"),
        }
    }

    fn missing_field(field: &'static str) -> Misfit {
        Misfit { pos: None, code: codes::WRONG_VALUE, message: format!("The key `{field}` is missing") }
    }
}

/// Reads a type from a node.
pub(crate) fn from_node<T: DeserializeOwned>(node: &Node) -> Result<T, Misfit> {
    if let Some(key) = node.duplicate_key() {
        let name = key.text().unwrap_or_default();
        let message = format!("The key `{name}` stands twice");
        return Err(Misfit { pos: Some(key.pos), code: codes::DUPLICATE, message });
    }
    T::deserialize(NodeDeserializer(node)).map_err(|misfit| misfit.at(node.pos))
}

#[derive(Clone, Copy)]
struct NodeDeserializer<'a>(&'a Node);

impl<'a> NodeDeserializer<'a> {
    /// The node itself, which must bear no tag: own files have no use for one.
    fn untagged(self) -> Result<&'a Node, Misfit> {
        let node = self.0.resolved();
        match &node.tag {
            Some(tag) => Err(Misfit::new(node.pos, format!("The tag `{tag}` is not allowed here"))),
            None => Ok(node),
        }
    }

    fn scalar(self, what: &str) -> Result<(&'a str, Style), Misfit> {
        let node = self.untagged()?;
        match &node.kind {
            NodeKind::Scalar { text, style } => Ok((text, *style)),
            _ => Err(Misfit::new(node.pos, format!("A {} stands where {what} must stand", node.kind_name()))),
        }
    }

    fn number<T: std::str::FromStr + ToString>(self) -> Result<T, Misfit> {
        let (text, style) = self.scalar("a whole number")?;
        let bad = || Misfit::new(self.0.pos, "A whole number must stand here, without quotes");
        // `010` and `+1` are read apart by different readers, so one notation is enough
        let number = text.parse::<T>().ok().filter(|number| number.to_string() == text);
        number.filter(|_| style == Style::Plain).ok_or_else(bad)
    }
}

macro_rules! numbers {
    ($($method:ident $visit:ident,)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
            visitor.$visit(self.number()?).map_err(|err: Misfit| err.at(self.0.pos))
        }
    )*};
}

impl<'de> de::Deserializer<'de> for NodeDeserializer<'_> {
    type Error = Misfit;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match &self.0.resolved().kind {
            NodeKind::Mapping(_) => self.deserialize_map(visitor),
            NodeKind::Sequence(_) => self.deserialize_seq(visitor),
            _ if self.0.is_null() => visitor.visit_unit(),
            _ => match self.scalar("a value")? {
                ("true", Style::Plain) => visitor.visit_bool(true),
                ("false", Style::Plain) => visitor.visit_bool(false),
                (text, Style::Plain) if text.parse::<u64>().is_ok_and(|n| n.to_string() == text) => {
                    visitor.visit_u64(self.number()?)
                }
                (text, Style::Plain) if text.parse::<i64>().is_ok_and(|n| n.to_string() == text) => {
                    visitor.visit_i64(self.number()?)
                }
                (text, _) => visitor.visit_str(text),
            },
        }
    }

    numbers! {
        deserialize_u8 visit_u8, deserialize_u16 visit_u16, deserialize_u32 visit_u32, deserialize_u64 visit_u64,
        deserialize_i8 visit_i8, deserialize_i16 visit_i16, deserialize_i32 visit_i32, deserialize_i64 visit_i64,
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.scalar("true or false")? {
            ("true", Style::Plain) => visitor.visit_bool(true),
            ("false", Style::Plain) => visitor.visit_bool(false),
            _ => Err(Misfit::new(self.0.pos, "`true` or `false` must stand here")),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        if self.0.is_null() {
            return Err(Misfit::new(self.0.pos, "A text must stand here, nothing stands"));
        }
        let (text, _) = self.scalar("a text")?;
        visitor.visit_str(text).map_err(|err: Misfit| err.at(self.0.pos))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        let node = self.untagged()?;
        let Some(elements) = node.elements() else {
            return Err(Misfit::new(
                node.pos,
                format!("A {} stands where a list must stand", node.kind_name()),
            ));
        };
        visitor.visit_seq(Elements(elements.iter())).map_err(|err: Misfit| err.at(node.pos))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        let node = self.untagged()?;
        let Some(entries) = node.entries() else {
            return Err(Misfit::new(
                node.pos,
                format!("A {} stands where a mapping must stand", node.kind_name()),
            ));
        };
        let access = Entries { rest: entries.iter(), value: None };
        visitor.visit_map(access).map_err(|err: Misfit| err.at(node.pos))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        let (text, _) = self.scalar("a word")?;
        if !variants.contains(&text) {
            let known = variants.join(", ");
            return Err(Misfit::new(self.0.pos, format!("`{text}` is none of {known}")));
        }
        let word: StrDeserializer<'_, Misfit> = text.into_deserializer();
        visitor.visit_enum(word)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        visitor.visit_newtype_struct(self)
    }

    serde::forward_to_deserialize_any! {
        f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct ignored_any
    }
}

struct Elements<'a>(std::slice::Iter<'a, Node>);

impl<'de> de::SeqAccess<'de> for Elements<'_> {
    type Error = Misfit;

    fn next_element_seed<T: de::DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Misfit> {
        let Some(node) = self.0.next() else { return Ok(None) };
        seed.deserialize(NodeDeserializer(node)).map(Some).map_err(|err| err.at(node.pos))
    }
}

struct Entries<'a> {
    rest: std::slice::Iter<'a, (Node, Node)>,
    value: Option<&'a Node>,
}

impl<'de> de::MapAccess<'de> for Entries<'_> {
    type Error = Misfit;

    fn next_key_seed<K: de::DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Misfit> {
        let Some((key, value)) = self.rest.next() else { return Ok(None) };
        self.value = Some(value);
        seed.deserialize(NodeDeserializer(key)).map(Some).map_err(|err| err.at(key.pos))
    }

    fn next_value_seed<V: de::DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Misfit> {
        let node = self.value.take().expect("BUG: serde asks for a key before its value");
        seed.deserialize(NodeDeserializer(node)).map_err(|err| err.at(node.pos))
    }
}
