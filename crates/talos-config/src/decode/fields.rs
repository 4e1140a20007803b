//! Places of decoded values among the fields of their types, and what decoding a type adds to them.

use std::sync::Arc;

use super::ANY;
use crate::tables::{Shape, Struct, Tables};
use crate::value::{Data, Origin, Val};

/// The shape of the field that a path of indexes leads to.
pub(crate) fn field_shape<'t>(tables: &'t Tables, s: &'t Struct, path: &[usize]) -> &'t Shape {
    let (mut current, mut shape) = (s, &ANY);
    for index in path {
        shape = &current.fields[*index].shape;
        if let Some(inner) = tables.as_struct(shape) {
            current = inner;
        }
    }
    shape
}

/// The place of a field among those of a struct, made on the way.
pub(super) fn slot<'v>(
    tables: &Tables,
    fields: &'v mut [Val],
    s: &Struct,
    path: &[usize],
) -> Option<&'v mut Val> {
    let (first, rest) = path.split_first()?;
    let field = fields.get_mut(*first)?;
    if rest.is_empty() {
        return Some(field);
    }
    let inner = tables.as_struct(&s.fields[*first].shape)?;
    slot(tables, field.fields_mut(inner.fields.len())?, inner, rest)
}

pub(super) fn add_rest(slot: &mut Val, name: &str, decoded: Val, origin: Origin) {
    match &mut slot.data {
        Data::Map(entries) => Arc::make_mut(entries).push((name.into(), decoded)),
        _ => *slot = Val::new(Data::Map(Arc::new(vec![(name.into(), decoded)])), origin),
    }
}

/// Certificates decode absent parts to empty bytes, which overwrite in a merge.
pub(super) fn fill_pem(val: &mut Val, s: &Struct) {
    let origin = val.origin;
    for field in val.fields_mut(s.fields.len()).into_iter().flatten() {
        if matches!(field.data, Data::Zero) {
            *field = Val { data: Data::Bytes(Arc::new([])), origin, ..Val::default() };
        }
    }
}

/// Talos strips these from the start of an inline manifest's contents when it decodes.
pub(crate) fn trim_manifests(val: &mut Val, tables: &Tables, shape: &Shape) {
    let Shape::List(element) = tables.base(shape) else { return };
    let Some(index) = tables.as_struct(element).and_then(|s| s.keys.get("contents")).and_then(|p| p.first())
    else {
        return;
    };
    let Data::List(list) = &mut val.data else { return };
    for manifest in Arc::make_mut(list) {
        if let Data::Struct(fields) = &mut manifest.data
            && let Some(Data::Text(text)) = Arc::make_mut(fields).get_mut(*index).map(|v| &mut v.data)
        {
            *text = text.trim_start_matches(['\t', '\n', '\u{b}', '\u{c}', '\r']).into();
        }
    }
}
