//! The rules outside of the types in which Talos' minors differ. The tables hold what the dumper found by trying.

use serde::Deserialize;

use super::TablesError;
use crate::yaml::Dialect;

/// One minor's rules. A rule that this engine does not know is an error when the tables are loaded.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Switches {
    /// The version of the YAML library.
    pub yaml: Yaml,
    /// Quotes around strings that YAML 1.1 took for something else.
    pub old_quote: OldQuote,
    /// A literal that begins with a line break gets an indentation hint.
    pub break_hint: bool,
    /// A string takes an unquoted timestamp.
    pub timestamp_text: bool,
    /// An integer takes `1.5` and truncates it.
    pub fraction_int: bool,
    /// A duration takes a bare `0`.
    pub zero_duration: bool,
    /// A duration takes `3.0` as nanoseconds.
    pub float_duration: bool,
    /// An alias may stand for a value that reads its own text.
    pub alias_text: bool,
    /// What a string makes of an unquoted `<<`.
    pub merge_text: Unquoted,
    /// What a free-form value makes of an unquoted `<<`.
    pub merge_any: Unquoted,
    /// An argument may be a list.
    pub list_args: bool,
    /// Sizes may be negative.
    pub signed_sizes: bool,
    /// One patch may hold the same document twice.
    pub patch_repeats: bool,
    /// In which order the documents of a patch work.
    pub patch_order: PatchOrder,
    /// What comes of a deletion in a document that is not there.
    pub missing_delete: MissingDelete,
    /// What a patch without documents is.
    pub empty_patch: EmptyPatch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) enum Yaml {
    #[serde(rename = "rc.3")]
    Rc3,
    #[serde(rename = "rc.4")]
    Rc4,
    #[serde(rename = "rc.5", alias = "rc.6")]
    Rc5,
    #[serde(other)]
    Other,
}

impl Yaml {
    /// How the library reads. Tables with another one are never loaded.
    pub(super) fn dialect(self) -> Dialect {
        match self {
            Yaml::Rc3 => Dialect::Rc3,
            Yaml::Rc4 => Dialect::Rc4,
            Yaml::Rc5 | Yaml::Other => Dialect::Rc5,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OldQuote {
    Single,
    Double,
    #[serde(other)]
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Unquoted {
    Text,
    Null,
    Refused,
    #[serde(other)]
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PatchOrder {
    /// The deletions in the v1alpha1 document, that document, then the others as written.
    Legacy,
    /// The deletions in the v1alpha1 document, then everything as written.
    File,
    #[serde(other)]
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MissingDelete {
    Ignored,
    /// The deletion itself becomes a stray document, or Talos crashes.
    Kept,
    #[serde(other)]
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EmptyPatch {
    /// An empty JSON patch.
    Json,
    Refused,
    #[serde(other)]
    Other,
}

impl Switches {
    /// Refuses findings that no version gave when this was written.
    pub(super) fn check(&self) -> Result<(), TablesError> {
        let known = [
            ("yaml", self.yaml != Yaml::Other),
            ("oldQuote", self.old_quote != OldQuote::Other),
            ("mergeText", self.merge_text != Unquoted::Other),
            ("mergeAny", self.merge_any != Unquoted::Other),
            ("patchOrder", self.patch_order != PatchOrder::Other),
            ("missingDelete", self.missing_delete != MissingDelete::Other),
            ("emptyPatch", self.empty_patch != EmptyPatch::Other),
        ];
        match known.iter().find(|(_, known)| !known) {
            None => Ok(()),
            Some((name, _)) => Err(TablesError::Switch { name }),
        }
    }
}
