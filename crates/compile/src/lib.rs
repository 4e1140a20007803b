//! From intent to composed documents with provenance, to the plan, to the exact bytes for a node.
//!
//! Knows no node and no clock. Composition and planning need no secret; only [`artifact`] resolves references.

pub mod plan;
