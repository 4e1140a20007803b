//! Gate, dispatch, drift and recovery.

pub mod gate;
