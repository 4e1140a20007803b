//! Talos machine configuration documents: parse, merge, redact, diff, encode. No I/O.
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

mod access;
mod codec;
mod config;
mod decode;
mod delete;
mod diff;
mod emit;
mod encode;
mod error;
mod merge;
pub mod node;
pub mod path;
pub mod reader;
mod scalar;
mod secrets;
pub mod tables;
mod url;
mod value;

pub use access::{AccessError, Found, Leaf, LeafValue, Resolved};
pub use config::{Applied, Config, Options, Patch};
pub use diff::{Change, ChangeKind, diff};
pub use error::{ConfigError, EncodeError, MergeError, MergeReason, ResolveError};
pub use node::{Node, NodeKind, Pos, Style};
pub use path::{DocumentId, DocumentRef, Path, PathError};
pub use reader::{Comment, Limits, ReadError, YamlDocument, anchors, comments, read_stream};
pub use secrets::{OpaqueLeaf, SecretLeaf};
pub use tables::{Tables, TablesError};
pub use value::{FieldClass, Origin, SourceId};
