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
mod trees;
pub mod trouble;
