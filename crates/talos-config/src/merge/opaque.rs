//! Merges with references, of which nothing is known but that they are not zero.

use crate::error::MergeReason;
use crate::tables::{Codec, Merge, Refused, Shape, ZeroMerge};
use crate::value::{Data, Val};

use super::{How, Merger, Result, take};

impl Merger<'_> {
    /// Merges where at least one side is a reference, of which nothing is known but that it is not zero.
    pub(super) fn opaque(&mut self, left: &mut Val, right: &Val, shape: &Shape, how: How) -> Result {
        let tables = self.tables;
        let base = match shape {
            Shape::Ptr(inner) => tables.base(inner),
            other => tables.base(other),
        };
        if let Shape::Type(id) = shape {
            let ty = tables.ty(*id);
            if ty.refused == Refused::Always {
                return Err(self.fail(MergeReason::NotMergeable, right));
            }
            if ty.merge == Merge::Erase {
                take(left, right);
                return Ok(());
            }
        }
        let codec = tables.codec(base);
        let structured = matches!(base, Shape::Map(_)) || tables.as_struct(base).is_some();
        if matches!(right.data, Data::Opaque(_)) {
            let unset = matches!(left.data, Data::Zero) || left.is_go_zero();
            if unset || how.replace {
                take(left, right);
                return Ok(());
            }
            return match codec {
                Some(Codec::Url | Codec::DiskSizeMatcher | Codec::Size) => {
                    Err(self.fail(MergeReason::OpaqueDependent, right))
                }
                _ if matches!(base, Shape::Any) && !matches!(left.data, Data::Text(_) | Data::Opaque(_)) => {
                    Err(self.fail(MergeReason::OverStructure, right))
                }
                _ if structured => Err(self.fail(MergeReason::OverStructure, right)),
                _ => {
                    take(left, right);
                    Ok(())
                }
            };
        }
        if matches!(base, Shape::Any) {
            return match &right.data {
                Data::Text(t) if t.is_empty() => Ok(()),
                Data::Text(_) => {
                    take(left, right);
                    Ok(())
                }
                Data::Zero => Err(self.fail(MergeReason::NullOverValue, right)),
                _ => Err(self.fail(MergeReason::IntoOpaque, right)),
            };
        }
        // a plain bool overwrites even when it is false; a pointer overwrites when it is set
        let wins = matches!(shape, Shape::Bool) || !right.is_go_zero();
        if !wins {
            let writes = structured
                && !matches!(shape, Shape::Ptr(_))
                && !how.replace
                && tables.zero_merge(base) != ZeroMerge::Keeps;
            return if writes { Err(self.fail(MergeReason::OpaqueDependent, right)) } else { Ok(()) };
        }
        if structured && !how.replace {
            return Err(self.fail(MergeReason::IntoOpaque, right));
        }
        if matches!(codec, Some(Codec::Url | Codec::DiskSizeMatcher | Codec::Size)) {
            return Err(self.fail(MergeReason::OpaqueDependent, right));
        }
        take(left, right);
        Ok(())
    }
}

pub(super) fn contains_opaque(val: Option<&Val>) -> bool {
    val.is_some_and(|v| match &v.data {
        Data::Opaque(_) => true,
        Data::Ptr(inner) => contains_opaque(Some(inner)),
        Data::Struct(fields) => fields.iter().any(|f| contains_opaque(Some(f))),
        _ => false,
    })
}
