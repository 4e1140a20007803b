//! From intent to composed documents with provenance, to the plan, to the exact bytes for a node.
//!
//! Knows no node and no clock. Composition and planning need no secret; only [`artifact`] resolves references.

pub mod artifact;
pub mod codes;
pub mod compose;
mod pin;
pub mod plan;
pub mod planner;
mod reboot;
pub mod view;

pub use artifact::{Artifact, ArtifactError};
pub use compose::{Composed, Composer, compose, compose_all, compose_base, compose_each, compose_explained};
pub use planner::{Planned, Planner};
