//! The way from a document's root to the value at hand, without copies of its keys.

use crate::path::pointer;

/// One step down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

impl std::fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Step::Key(key) => f.write_str(key),
            Step::Index(i) => i.fmt(f),
        }
    }
}

/// Keys and indexes as they are written in a pointer, unescaped.
pub(crate) fn segments_of(trail: &[Step<'_>]) -> Vec<String> {
    trail.iter().map(Step::to_string).collect()
}

/// The RFC 6901 pointer.
pub(crate) fn pointer_of(trail: &[Step<'_>]) -> String {
    pointer(&segments_of(trail))
}
