//! Codes of findings that composition makes.

use bronzeward_intent::finding::Code;

/// A contract that this version cannot compose.
pub const CONTRACT: Code = Code("contract-unsupported");
/// A file that Talos would not load.
pub const TALOS: Code = Code("talos-refuses");
/// A fragment that Talos could not merge.
pub const MERGE: Code = Code("merge-refused");
/// Documents that Talos would damage when it prints them.
pub const ENCODE: Code = Code("encode-refused");
/// A literal in a field that Talos takes for secret.
pub const LITERAL: Code = Code("secret-literal");
/// A reference that cannot stand.
pub const REFERENCE: Code = Code("secret-reference");
/// A fragment that changed nothing.
pub const UNCHANGED: Code = Code("fragment-changed-nothing");
