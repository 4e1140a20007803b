//! Talos machine configuration documents: parse, merge, redact, diff, encode. No I/O.
//!
//! A configuration is loaded strictly into typed values ([`Config::load`]), patched by Talos' strategic merge
//! ([`Patch::load`], [`Config::apply`]) and printed ([`Config::encode`]) byte for byte as Talos' library of the same
//! minor prints it without comments. Every value keeps its origin ([`Config::leaves`]). A scalar with the tag of
//! [`Options::opaque_tag`] is a reference: a value that is not zero and otherwise unknown, until
//! [`Config::resolve`] gives it one.
//!
//! What cannot be done exactly as Talos does is refused with a message. Refused although Talos takes it:
//!
//! - tags that change what a value means (`!!int "7"`), and where references are used, every tag but the core's and
//!   the reference's; merge keys `<<`, and `<<` as a value where Talos takes it for null; keys that are no text;
//! - unquoted dates in free-form values, and keys of nested free-form mappings that are not read as text;
//! - URLs whose host is an IPv6 address with a zone, or that begin with `///`; a mapping or a list in the place of
//!   a text that is decoded by its type;
//! - text that Talos' encoder would damage (see [`EncodeError::Lossy`]), keys above 128 bytes or with line breaks;
//! - deletions in documents that do not exist, up to Talos 1.13, elements that cannot be chosen exactly, and
//!   whatever makes Talos crash (see [`MergeReason`]);
//! - empty patches and JSON patches (RFC 6902);
//! - what [`yaml::Refusal`] names, and what is beyond [`Limits`].
//!
//! Errors name keys, paths and places, never values; `Debug` forms of types that hold values do not show them.
//!
//! ```
//! use talos_config::{Config, Options, Patch, SourceId, Tables};
//!
//! let tables = Tables::v1_13();
//! let options = Options { opaque_tag: Some("!ref".to_owned()), ..Options::default() };
//! let mut config = Config::load(&tables, b"machine:\n  token: !ref t@1\n", SourceId(0), &options)?;
//! let patch = Patch::load(&tables, b"machine: {type: worker}", SourceId(1), &options)?;
//! assert!(config.apply(&patch)?.changed);
//! assert!(config.encode()?.starts_with(b"version: \"\"\nmachine:\n    type: worker\n    token: !ref t@1\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(missing_docs)]

mod access;
mod codec;
mod config;
mod decode;
mod delete;
mod diff;
mod emit;
mod encode;
mod error;
mod explain;
mod merge;
mod nearest;
pub mod node;
pub mod path;
mod scalar;
mod secrets;
pub mod tables;
mod trail;
mod url;
mod value;
pub mod yaml;

pub use access::{AccessError, Found, Leaf, LeafValue, Resolved};
pub use config::{Applied, Config, Options, Patch};
pub use diff::{Change, ChangeKind, diff};
pub use error::{ConfigError, EncodeError, MergeError, MergeReason, ResolveError};
pub use explain::{ElementRule, Explained, Unexpected};
pub use merge::SurpriseKind;
pub use node::{Node, NodeKind, Pos, Span, Style};
pub use path::{DocumentId, DocumentRef, Path, PathError};
pub use secrets::{OpaqueLeaf, SecretLeaf};
pub use tables::{Tables, TablesError};
pub use value::{FieldClass, Origin, Rule, SourceId};
pub use yaml::{Comment, Dialect, Limits, ReadError, YamlDocument, anchors, comments, excerpt, read_stream};
