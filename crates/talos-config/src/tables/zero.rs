//! What merging an unset value does, found once for every type and field.

use super::{Body, Codec, Merge, Refused, Shape, Type, ZeroMerge};

/// Fills the `zero_merge` of types and fields. Pointers, lists and maps end the search, so it ends.
pub(super) fn settle_zero_merges(types: &mut [Type]) {
    for id in 0..types.len() {
        types[id].zero_merge = zero_merge(types, &Shape::Type(id));
        let Body::Struct(s) = &types[id].body else { continue };
        let of_fields: Vec<ZeroMerge> = s.fields.iter().map(|f| zero_merge(types, &f.shape)).collect();
        if let Body::Struct(s) = &mut types[id].body {
            for (field, zero) in s.fields.iter_mut().zip(of_fields) {
                field.zero_merge = zero;
            }
        }
    }
}

pub(super) fn zero_merge(types: &[Type], shape: &Shape) -> ZeroMerge {
    let id = match shape {
        Shape::Type(id) => *id,
        Shape::Bool => return ZeroMerge::Writes,
        // null over a free-form value is refused, but only if there is one: the merge itself must look
        Shape::Any => return ZeroMerge::Writes,
        _ => return ZeroMerge::Keeps,
    };
    let ty = &types[id];
    let refused = ty.refused == Refused::Always && !matches!(ty.body, Body::Leaf(Codec::Url));
    match (&ty.body, ty.merge) {
        _ if refused => ZeroMerge::Refuses,
        (_, Merge::Custom) => ZeroMerge::Refuses,
        (_, Merge::Erase) => ZeroMerge::Writes,
        (_, Merge::Replace | Merge::Values | Merge::Keyed) | (Body::Leaf(_), _) => ZeroMerge::Keeps,
        (Body::Is(inner), Merge::General) => zero_merge(types, inner),
        (Body::Struct(s), Merge::General) => {
            s.fields.iter().map(|f| zero_merge(types, &f.shape)).max().unwrap_or(ZeroMerge::Keeps)
        }
    }
}
