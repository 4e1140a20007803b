//! The story that the demo tells and that tests play against real parts.
//!
//! Everything else of this package is the program `bronzeward`; the libraries beside it are what to build on.

pub mod story;
