//! Errors. They name keys, paths, types and places, and never quote a value.

use thiserror::Error;

use crate::node::Pos;
use crate::path::one_line;
use crate::value::{Origin, SourceId};
use crate::yaml::ReadError;

/// Why a configuration or a patch cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// The stream cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// No document in the stream.
    #[error("The file holds no document; write one, or leave the file out")]
    NoDocuments,
    /// A patch without any document, or of comments only.
    #[error(
        "The patch holds no document that changes anything, and Talos takes that for no strategic merge patch; leave it out"
    )]
    EmptyPatch,
    /// A list at the root: a JSON patch (RFC 6902).
    #[error(
        "{pos}: This is a JSON patch (RFC 6902), which Talos takes only for a configuration of one document, and this program not at all; write the same change as a strategic merge patch: the keys down to the field, then the new value, or '$patch: delete'"
    )]
    Json6902 {
        /// Where the list begins.
        pos: Pos,
    },
    /// A document whose root is no mapping.
    #[error("{pos}: A document must be a mapping, this one is a {found}; write 'key: value' lines")]
    NotAMapping {
        /// Where.
        pos: Pos,
        /// What it is.
        found: &'static str,
    },
    /// `kind` is missing.
    #[error(
        "{pos}: The document has no kind; add 'kind:', or 'machine:' or 'cluster:' for the v1alpha1 document"
    )]
    MissingKind {
        /// Where the document begins.
        pos: Pos,
    },
    /// `apiVersion` is missing.
    #[error("{pos}: The document of kind {} has no apiVersion; add 'apiVersion: v1alpha1'", one_line(.kind))]
    MissingApiVersion {
        /// Where the document begins.
        pos: Pos,
        /// Its kind.
        kind: String,
    },
    /// A value that Talos mistakes for one of the keys that say what a document is.
    #[error(
        "{pos}: Talos takes this value '{word}' for the key, and what follows for its value; put it before apiVersion and kind, or use another name"
    )]
    HeaderWord {
        /// Where the value stands.
        pos: Pos,
        /// `kind` or `apiVersion`.
        word: &'static str,
    },
    /// A kind that this Talos minor does not have.
    #[error(
        "{pos}: Talos {minor} has no kind {} of this apiVersion; check the spelling and the cluster's version",
        one_line(.kind)
    )]
    UnknownKind {
        /// Where the document begins.
        pos: Pos,
        /// The kind.
        kind: String,
        /// The minor of the tables.
        minor: String,
    },
    /// A key twice in one mapping.
    #[error("{pos}: The key {key:?} stands here for the second time; remove one")]
    DuplicateKey {
        /// The second key.
        pos: Pos,
        /// The key.
        key: String,
    },
    /// A key that the type does not have.
    #[error("{pos}: {} has no field {key:?}{hint}", one_line(.path))]
    UnknownKey {
        /// The key.
        pos: Pos,
        /// Pointer to the mapping.
        path: String,
        /// The key.
        key: String,
        /// A way out, with its punctuation.
        hint: String,
    },
    /// A mapping where a list is needed, and so on.
    #[error("{pos}: {} must be {expected}, not a {found}; change it", one_line(.path))]
    WrongType {
        /// The value.
        pos: Pos,
        /// Pointer to it.
        path: String,
        /// What the field holds.
        expected: String,
        /// What stands there.
        found: &'static str,
    },
    /// A scalar that the field's type does not take.
    #[error("{pos}: The value of {} does not fit; write {expected}", one_line(.path))]
    Value {
        /// The value.
        pos: Pos,
        /// Pointer to it.
        path: String,
        /// What the field takes.
        expected: String,
    },
    /// Something that Talos may take but this engine cannot do exactly.
    #[error("{pos}: {what} at {} cannot be handled exactly as Talos does; {way_out}", one_line(.path))]
    NotHandled {
        /// Where.
        pos: Pos,
        /// Pointer to it.
        path: String,
        /// What it is.
        what: String,
        /// What to write instead.
        way_out: String,
    },
    /// A reference where none may stand.
    #[error("{pos}: A reference cannot stand for {what} at {}; write the value there", one_line(.path))]
    OpaquePlace {
        /// Where.
        pos: Pos,
        /// Pointer to it.
        path: String,
        /// What it would stand for.
        what: String,
    },
    /// The same document twice.
    #[error("{pos}: The document {} stands here for the second time; put both into one", one_line(.id))]
    DuplicateDocument {
        /// The second one.
        pos: Pos,
        /// Its identity.
        id: String,
    },
    /// Two documents that exclude each other.
    #[error("{pos}: {} cannot exist beside {}; remove one", one_line(.second), one_line(.first))]
    Conflict {
        /// The second one.
        pos: Pos,
        /// The first document.
        first: String,
        /// The second document.
        second: String,
    },
    /// A `$patch: delete` that Talos does not understand.
    #[error("{pos}: The '$patch: delete' at {} cannot work: {reason}", one_line(.path))]
    Delete {
        /// The mapping that is to be deleted.
        pos: Pos,
        /// Pointer to it.
        path: String,
        /// Why, and a way out.
        reason: &'static str,
    },
}

impl ConfigError {
    /// Where in the source the trouble is.
    pub fn pos(&self) -> Option<Pos> {
        match self {
            ConfigError::Read(e) => e.pos(),
            ConfigError::NoDocuments | ConfigError::EmptyPatch => None,
            ConfigError::Json6902 { pos }
            | ConfigError::NotAMapping { pos, .. }
            | ConfigError::MissingKind { pos }
            | ConfigError::MissingApiVersion { pos, .. }
            | ConfigError::UnknownKind { pos, .. }
            | ConfigError::HeaderWord { pos, .. }
            | ConfigError::DuplicateKey { pos, .. }
            | ConfigError::UnknownKey { pos, .. }
            | ConfigError::WrongType { pos, .. }
            | ConfigError::Value { pos, .. }
            | ConfigError::NotHandled { pos, .. }
            | ConfigError::OpaquePlace { pos, .. }
            | ConfigError::DuplicateDocument { pos, .. }
            | ConfigError::Conflict { pos, .. }
            | ConfigError::Delete { pos, .. } => Some(*pos),
        }
    }
}

/// Why a patch cannot be applied. [`MergeError::origin`] is the place in the patch.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}{}{}: {reason}", place(.origin), one_line(.document), behind(.path))]
pub struct MergeError {
    /// The document, as `kind/name`.
    pub document: String,
    /// Pointer into the document; empty for the whole document.
    pub path: String,
    /// The place in the patch.
    pub origin: Option<Origin>,
    /// What is wrong.
    pub reason: MergeReason,
}

fn place(origin: &Option<Origin>) -> String {
    origin.map(|o| format!("{}: In ", o.pos)).unwrap_or_else(|| "In ".to_owned())
}

/// The pointer behind the name of its document.
fn behind(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!(" {}", one_line(path)) }
}

/// What is wrong with a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MergeReason {
    /// The patch reaches into a reference.
    #[error(
        "a reference stands for the whole value, so nothing can be merged into it; replace the reference"
    )]
    IntoOpaque,
    /// A reference would take the place of a structure half-way.
    #[error("a reference cannot be merged over a structure that is already set; delete the structure first")]
    OverStructure,
    /// Two values whose merge depends on what a reference stands for.
    #[error(
        "the result would depend on what the reference stands for; write the value, or leave it out of one side"
    )]
    OpaqueDependent,
    /// Talos cannot merge two values of this type.
    #[error("Talos cannot merge two values of this type; set the value in one place only")]
    NotMergeable,
    /// Free-form values of different types.
    #[error("the two sides have different types; write both in the same type")]
    TypeMismatch,
    /// Null over an existing free-form value, which crashes Talos.
    #[error("null over an existing value crashes Talos; use '$patch: delete'")]
    NullOverValue,
    /// A null element where Talos crashes.
    #[error("the list holds a null element, which crashes Talos; remove it")]
    NullElement,
    /// A delete whose target is not there.
    #[error("there is nothing to delete here; remove the '$patch: delete'")]
    NothingToDelete,
    /// A delete in a document that does not exist.
    #[error(
        "the document does not exist, and Talos would write an empty document or crash; remove the '$patch: delete', or complete apiVersion, kind and name"
    )]
    NoSuchDocument,
    /// A delete that Talos cannot do or that crashes it.
    #[error(
        "this kind of element cannot be chosen for deletion; delete the whole list and write it anew in a second document"
    )]
    CannotDelete,
    /// The `v1alpha1` document as a whole.
    #[error("the v1alpha1 document cannot be deleted; delete its fields")]
    DeleteLegacyRoot,
    /// The document is there twice after the patch.
    #[error(
        "the patch makes the document exist twice; put both into one, or leave the field that names the document as it is"
    )]
    DuplicateDocument,
    /// A document that names the same link twice.
    #[error("both ends of the link would have one name; give one of them another")]
    OneLink,
    /// The document excludes another one.
    #[error("the patch adds a document that cannot exist beside another one of that name; delete the other")]
    Conflict,
}

/// Why a configuration cannot be printed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}{}: {reason}", one_line(.document), behind(.path))]
pub struct EncodeError {
    /// The document, as `kind/name`.
    pub document: String,
    /// Pointer to the value, or to the mapping that holds the key.
    pub path: String,
    /// Where it was written, if that is known.
    pub origin: Option<Origin>,
    /// What is wrong.
    pub reason: EncodeReason,
}

/// What is wrong with a value that cannot be printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EncodeReason {
    /// Talos' own output would not parse, or would read as something else.
    #[error(
        "Talos prints this text so that it reads as another one, or not at all (it begins with a blank or a tab, holds a line break that YAML does not keep, or is a name that Talos takes for the key 'kind' or 'apiVersion'); change the text"
    )]
    Lossy,
    /// A value of a type that the tables know and this engine does not.
    #[error("the value is of a type that this version does not know; update the program")]
    Unknown,
    /// A key that Talos prints in a form that this engine does not have.
    #[error("the key is longer than 128 bytes or holds a line break; use another key")]
    Key,
    /// A key whose place among the others is not certain.
    #[error(
        "it is not certain before which others Talos prints this key (19 digits and more in a row overflow there, and not every sign is known to be a letter or none); use another key"
    )]
    KeyOrder,
    /// A URL that Talos prints so that it is none, or another one.
    #[error(
        "Talos would print this URL, merged from parts or with signs in its zone, so that it is none, or has another host; write it whole in one place"
    )]
    Url,
}

impl EncodeReason {
    /// A path for a message, whose last key may be what cannot be printed.
    pub(crate) fn shown_path(self, mut path: Vec<String>) -> Vec<String> {
        if let (EncodeReason::Key | EncodeReason::KeyOrder, Some(key)) = (self, path.last_mut()) {
            *key = shown_key(key);
        }
        path
    }
}

/// Why a reference cannot be given its value.
#[derive(Debug, Error)]
pub enum ResolveError<E: std::error::Error + 'static> {
    /// The caller has no value.
    #[error("{}{}: The reference has no value", one_line(.document), behind(.path))]
    Missing {
        /// The document, as `kind/name`.
        document: String,
        /// Pointer to the reference.
        path: String,
        /// The caller's error.
        #[source]
        source: E,
    },
    /// The value does not fit the field.
    #[error("{}{}: The value of the reference does not fit the field; store another value", one_line(.document), behind(.path))]
    Unfit {
        /// The document, as `kind/name`.
        document: String,
        /// Pointer to the reference.
        path: String,
        /// What the decoder says; it quotes no value.
        #[source]
        source: Box<ConfigError>,
    },
    /// The value is empty or zero, which Talos treats like an absent one.
    #[error(
        "{}{}: The value of the reference is empty or zero, which Talos takes for unset; store another value",
        one_line(.document),
        behind(.path)
    )]
    Empty {
        /// The document, as `kind/name`.
        document: String,
        /// Pointer to the reference.
        path: String,
    },
}

/// A key for a message: what is no name any more may be a value that lost its colon.
pub(crate) fn shown_key(key: &str) -> String {
    let plain = |c: &char| c.is_alphanumeric() || "_-./$<".contains(*c);
    let mut shown: String = key.chars().take_while(plain).take(64).collect();
    if shown.len() < key.len() {
        shown.push('…');
    }
    shown
}

/// What is shown of a key that may be part of a value.
pub(crate) const HIDDEN_KEY: &str = "…";

pub(crate) fn origin(source: SourceId, pos: Pos) -> Origin {
    Origin { source, pos }
}
