//! Gate, dispatch, drift and recovery.

mod absorb;
mod act;
pub mod disk;
pub mod drift;
pub mod engine;
pub mod gate;
mod look;
pub mod nodes;
pub mod ports;
pub mod report;
mod trees;
pub mod trouble;

pub use engine::{Due, Engine, Outcome, Setup, World};
pub use look::{ACCESS, digests};
pub use report::WatchTarget;
pub use trouble::Trouble;
