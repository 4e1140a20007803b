//! The reconciler against a whole small world: real Git objects and signatures, fake nodes, faults on order.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]
#![allow(clippy::disallowed_methods, reason = "the number of schedules comes from the environment")]

mod attacks;
mod fakes;
mod faults;
mod gate;
mod schedule;
mod story;
mod world;
