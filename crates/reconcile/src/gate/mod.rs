//! The gate: pure functions on values that say what is approved and what may go.
//!
//! Three questions, three rooms: whose word counts ([`accept`], beside the chain, which asks it again), whether `main` still says it ([`follow`]), and
//! whether it may be committed now ([`decide`]). None of them reads a clock, a repository or a node.

pub mod decide;
pub mod follow;

pub use bronzeward_state::accept;
