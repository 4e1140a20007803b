//! Talos machine configuration documents: parse, merge, redact, diff, encode. No I/O.

pub mod node;
pub mod reader;

pub use node::{Node, NodeKind, Pos, Style};
pub use reader::{Comment, Limits, ReadError, YamlDocument, anchors, comments, read_stream};
