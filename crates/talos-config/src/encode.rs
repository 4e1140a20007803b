//! From typed values to what is printed: field order, `omitempty`, zero values.

use crate::codec::{disk_size_text, text_of};
use crate::emit::{Damage, Out, sort_keys};
use crate::scalar::format_float;
use crate::tables::{Body, Codec, Shape, Struct, Tables};
use crate::value::{Data, Val};

pub(crate) struct Encoder<'a> {
    pub tables: &'a Tables,
    /// The tag that is printed before references.
    pub tag: &'a str,
}

impl Encoder<'_> {
    pub fn value(&self, val: &Val, shape: &Shape, path: &mut Vec<String>) -> Result<Out, Damage> {
        if let Data::Opaque(text) = &val.data {
            return Ok(Out::Tagged(self.tag.to_owned(), text.clone()));
        }
        match shape {
            Shape::Ptr(inner) => match &val.data {
                Data::Ptr(v) => self.value(v, inner, path),
                _ => Ok(Out::Null),
            },
            Shape::List(inner) => match &val.data {
                Data::List(items) => {
                    let mut out = Vec::with_capacity(items.len());
                    for (i, item) in items.iter().enumerate() {
                        path.push(i.to_string());
                        out.push(self.value(item, inner, path)?);
                        path.pop();
                    }
                    Ok(Out::List(out))
                }
                _ => Ok(Out::List(Vec::new())),
            },
            Shape::Map(inner) => Ok(Out::Map(self.entries(val, inner, path)?)),
            Shape::Any => self.free(val, path),
            Shape::Bool => Ok(Out::Plain(matches!(val.data, Data::Bool(true)).to_string())),
            Shape::Int { .. } => Ok(Out::Plain(int(&val.data).to_string())),
            Shape::Text => Ok(Out::Text(text(&val.data))),
            Shape::Type(id) => match &self.tables.ty(*id).body {
                Body::Is(shape) | Body::Leaf(Codec::InlineManifests(shape)) => self.value(val, shape, path),
                Body::Struct(s) => {
                    let mut out = Vec::new();
                    self.fields(val, s, &mut out, path)?;
                    Ok(Out::Map(out))
                }
                Body::Leaf(codec) => Ok(leaf(codec, &val.data)),
            },
        }
    }

    fn entries(
        &self,
        val: &Val,
        inner: &Shape,
        path: &mut Vec<String>,
    ) -> Result<Vec<(String, Out)>, Damage> {
        let Data::Map(entries) = &val.data else { return Ok(Vec::new()) };
        let mut out = Vec::with_capacity(entries.len());
        for (key, v) in entries {
            path.push(key.clone());
            out.push((key.clone(), self.value(v, inner, path)?));
            path.pop();
        }
        sort_keys(&mut out).ok_or_else(|| Damage::Key(path.clone()))?;
        Ok(out)
    }

    fn fields(
        &self,
        val: &Val,
        s: &Struct,
        out: &mut Vec<(String, Out)>,
        path: &mut Vec<String>,
    ) -> Result<(), Damage> {
        let zero = Val::default();
        for (i, field) in s.fields.iter().enumerate() {
            let v = match &val.data {
                Data::Struct(fields) => fields.get(i).unwrap_or(&zero),
                _ => &zero,
            };
            if field.inline {
                match (self.tables.as_struct(&field.shape), &field.shape) {
                    (Some(inner), _) => self.fields(v, inner, out, path)?,
                    (None, Shape::Map(inner)) => out.extend(self.entries(v, inner, path)?),
                    _ => {}
                }
                continue;
            }
            if field.omitempty && v.is_omitted(&field.shape, self.tables) {
                continue;
            }
            path.push(field.key.clone());
            out.push((field.key.clone(), self.value(v, &field.shape, path)?));
            path.pop();
        }
        Ok(())
    }

    fn free(&self, val: &Val, path: &mut Vec<String>) -> Result<Out, Damage> {
        Ok(match &val.data {
            Data::Bool(b) => Out::Plain(b.to_string()),
            Data::Int(i) => Out::Plain(i.to_string()),
            Data::Float(f) => Out::Plain(format_float(*f)),
            Data::Text(t) => Out::Text(t.clone()),
            Data::List(_) => return self.value(val, &Shape::List(Box::new(Shape::Any)), path),
            Data::Map(_) => Out::Map(self.entries(val, &Shape::Any, path)?),
            _ => Out::Null,
        })
    }
}

fn int(data: &Data) -> i128 {
    match data {
        Data::Int(i) => *i,
        _ => 0,
    }
}

fn text(data: &Data) -> String {
    match data {
        Data::Text(t) => t.clone(),
        _ => String::new(),
    }
}

/// The printed form of a leaf type.
pub(crate) fn leaf(codec: &Codec, data: &Data) -> Out {
    match codec {
        Codec::FileMode => Out::Plain(format!("0o{:o}", int(data))),
        Codec::DiskSize => match disk_size_text(u64::try_from(int(data)).unwrap_or(0)) {
            (short, true) => Out::Text(short),
            (number, false) => Out::Plain(number),
        },
        Codec::ArgValue => match data {
            Data::List(items) => Out::List(items.iter().map(|v| Out::Arg(text(&v.data))).collect()),
            Data::Text(t) if !t.is_empty() => Out::Arg(t.clone()),
            _ => Out::Null,
        },
        Codec::PortRange => match text(data) {
            t if t.contains('-') => Out::Text(t),
            t => Out::Plain(t),
        },
        _ => Out::Text(text_of(codec, data)),
    }
}
