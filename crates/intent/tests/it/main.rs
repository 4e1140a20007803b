//! The configuration repository, read strictly: what loads, in which order, and how everything else is refused.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod findings;
mod git;
mod governance;
mod round_trip;
mod sample;
mod selection;
