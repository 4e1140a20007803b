//! Talos machine configuration documents, as Talos' own library reads, merges and prints them, for several Talos
//! minors in one program. No I/O.
//!
//! ```
//! use talos_config::{Config, Options, Patch, SourceId, Tables};
//!
//! let tables = Tables::embedded("v1.13").ok_or("unknown minor")?;
//! let options = Options::default();
//! let base = b"machine: {type: worker, certSANs: [10.0.0.1]}";
//! let mut config = Config::load(&tables, base, SourceId(0), &options)?;
//! let patch = Patch::load(&tables, b"machine: {certSANs: [10.0.0.1]}", SourceId(1), &options)?;
//! let (applied, unexpected) = config.apply_explained(&patch)?;
//! assert!(applied.changed && unexpected[0].kind.code() == "element-repeated");
//! let printed = String::from_utf8(config.encode()?)?;
//! assert!(printed.starts_with("version: \"\"\nmachine:\n    type: worker\n    token: \"\"\n"));
//! let second = config.explain().into_iter().find(|e| e.leaf.pointer == "/machine/certSANs/1");
//! assert_eq!(second.ok_or("not there")?.leaf.origin.source, SourceId(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What there is
//!
//! - [`Tables`]: all that differs between Talos minors, as data; part of the program, or loaded at run time.
//! - [`Config`]: documents, loaded strictly ([`Config::load`]), patched ([`Config::apply`]) and printed
//!   ([`Config::encode`]) byte for byte as Talos prints them without comments. Copies share what they have in common,
//!   so that many machines on one base cost what they differ in.
//! - [`Patch`]: a strategic merge patch with its `$patch: delete` statements, loaded once for any number of
//!   configurations.
//! - Provenance, which Talos does not have: where each value was written, what it took the place of and by which rule
//!   ([`Config::explain`]); and what a merge did that nobody expects ([`Config::apply_explained`]).
//! - Secrets: [`Config::redacted`] covers what any minor redacts. A scalar with the tag of [`Options::opaque_tag`] is
//!   a reference, a value that is not zero and otherwise unknown, until [`Config::resolve`] gives it one.
//! - [`diff`], value by value; [`yaml`], the reader below all this, and [`Node`], what it reads.
//!
//! # What is refused
//!
//! What cannot be done exactly as Talos does is refused with a message that says so. Refused although Talos takes it:
//!
//! - tags that change what a value means (`!!int "7"`), any tag of a boolean or a duration but the core's, and where
//!   references are used, every tag but the core's and the reference's; merge keys `<<`, and `<<` as a value where
//!   Talos takes it for null; keys that are no text; keys that an alias repeats, and where a minor takes no lists as
//!   arguments, aliases of lists;
//! - an alias of a mapping with keys that its place does not know, which Talos drops; documents that take their version
//!   from a value that happens to be `machine`;
//! - numbers that do not fit and become others, where a minor converts those with a point or an exponent;
//! - unquoted dates in free-form values, and keys of nested free-form mappings that are not read as text;
//! - a mapping or a list in the place of a text that is decoded by its type, percentages in hexadecimal digits, and
//!   text in base64 (`!!binary`) that is no UTF-8;
//! - text that Talos' encoder would damage (see [`EncodeReason::Lossy`]), keys above 128 bytes or with line breaks,
//!   keys whose place among the others is not certain (see [`EncodeReason::KeyOrder`]), and URLs that do not read as
//!   they were once they are printed (see [`EncodeReason::Url`]);
//! - beside deletions, aliases of what something is deleted from, and documents that are named twice;
//! - deletions in documents that do not exist, up to Talos 1.13, elements that cannot be chosen exactly, and
//!   whatever makes Talos crash (see [`MergeReason`]);
//! - empty patches and JSON patches (RFC 6902);
//! - what [`yaml::Refusal`] names, and what is beyond [`Limits`].
//!
//! Errors name keys, paths and places, never values; `Debug` forms of types that hold values do not show them.

#![deny(missing_docs)]

mod access;
mod codec;
mod config;
mod decode;
mod delete;
mod diff;
mod digest;
mod emit;
mod encode;
mod error;
mod explain;
mod header;
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
mod walk;
pub mod yaml;

pub use access::{AccessError, Found, Leaf, LeafValue, Resolved};
pub use config::{Applied, Config, Options, Patch};
pub use diff::{Change, ChangeKind, diff};
pub use error::{ConfigError, EncodeError, EncodeReason, MergeError, MergeReason, ResolveError};
pub use explain::{ElementRule, Explained, Unexpected};
pub use merge::SurpriseKind;
pub use node::{Node, NodeKind, Pos, Span, Style};
pub use path::{DocumentId, DocumentRef, Path, PathError};
pub use secrets::{OpaqueLeaf, SecretLeaf};
pub use tables::{Tables, TablesError};
pub use value::{FieldClass, Origin, Rule, SourceId};
pub use yaml::{Comment, Dialect, Limits, ReadError, YamlDocument, anchors, comments, excerpt, read_stream};
