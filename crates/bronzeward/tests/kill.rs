//! The real reconciler, killed at every point of dispatch, and disturbed at every other place.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "stand/mod.rs"]
mod stand;

#[path = "kill/answers.rs"]
mod answers;
#[path = "kill/dispatch.rs"]
mod dispatch;
#[path = "kill/outcome.rs"]
mod outcome;
#[path = "kill/remotes.rs"]
mod remotes;
#[path = "kill/rivals.rs"]
mod rivals;
