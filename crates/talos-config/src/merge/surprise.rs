//! What a merge does that people do not expect of it.

use crate::digest::Firsts;
use crate::trail::segments_of;
use crate::value::{Data, Origin, Val};

use super::Merger;

/// A rule of Talos' merge that worked against what the patch says, or did more than it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Surprise {
    /// What happened.
    pub kind: SurpriseKind,
    /// Keys and indexes from the document's root to the value, unescaped.
    pub segments: Vec<String>,
    /// Where the patch speaks of the value, or of what holds it.
    pub patch: Option<Origin>,
    /// Where the value that was there before was written.
    pub before: Option<Origin>,
}

/// The rules that surprise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum SurpriseKind {
    /// The patch does not set the value, yet it is gone: this type is overwritten even by nothing.
    Erased,
    /// The patch sets a zero (or the first word of an enumeration), which Talos takes for "not set".
    ZeroKept,
    /// The patch says null, an empty list or an empty map, which changes nothing here.
    NullKept,
    /// The list now holds two equal elements, since lists are appended.
    Repeated,
    /// A value of the patch is not in the result, for none of the other reasons.
    Lost,
}

impl Merger<'_> {
    fn note(&mut self, kind: SurpriseKind, patch: Option<Origin>, before: Option<Origin>) {
        let segments = segments_of(&self.path);
        if let Some(surprises) = &mut self.surprises {
            surprises.push(Surprise { kind, segments, patch: patch.or(self.near), before });
        }
    }

    /// Something was there, and the right side has nothing for it.
    pub(super) fn note_erased(&mut self, left: &Val, right: &Val) {
        let empty = |v: &Val| match &v.data {
            Data::Bytes(bytes) => bytes.is_empty(),
            _ => v.is_go_zero(),
        };
        let overwrites = !matches!(right.data, Data::Zero) || !matches!(left.data, Data::Bytes(_));
        if self.surprises.is_some() && overwrites && !empty(left) && empty(right) {
            self.note(SurpriseKind::Erased, right.origin, left.origin);
        }
    }

    /// The right side wrote a zero, and something was there, which stays.
    pub(super) fn note_kept(&mut self, left: &Val, right: &Val) {
        if self.surprises.is_none() || right.origin.is_none() || left.is_go_zero() {
            return;
        }
        let kind = match &right.data {
            Data::List(_) | Data::Map(_) => SurpriseKind::NullKept,
            _ => SurpriseKind::ZeroKept,
        };
        self.note(kind, right.origin, left.origin);
    }

    /// The right side wrote null, and something was there, which stays.
    pub(super) fn note_null(&mut self, left: &Val, right: &Val) {
        if self.surprises.is_some() && right.origin.is_some() && !left.is_go_zero() {
            self.note(SurpriseKind::NullKept, right.origin, left.origin);
        }
    }

    /// Elements from `before` on were appended; some may stand there already.
    pub(super) fn note_repeated(&mut self, list: &Val, before: usize) {
        let Data::List(items) = &list.data else { return };
        if self.surprises.is_none() {
            return;
        }
        let (old, new) = items.split_at(before);
        let firsts = Firsts::of(old);
        for item in new {
            if let Some(same) = firsts.get(item) {
                self.note(SurpriseKind::Repeated, item.origin, same.origin);
            }
        }
    }
}
