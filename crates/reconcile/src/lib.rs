//! Gate, dispatch, drift and recovery.
