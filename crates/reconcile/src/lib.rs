//! Gate, dispatch, drift and recovery.

mod absorb;
mod act;
mod adopt;
mod approvals;
mod contributors;
pub mod disk;
mod dispatch;
pub mod drift;
pub mod engine;
mod follow;
pub mod gate;
mod look;
pub mod nodes;
pub mod ports;
pub mod report;
mod settle;
mod trees;
pub mod trouble;
mod words;

pub use engine::{Due, Engine, Outcome, Setup, World};
pub use look::{ACCESS, digests};
pub use report::WatchTarget;
pub use trouble::Trouble;
