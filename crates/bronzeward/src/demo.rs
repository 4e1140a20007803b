//! The demo.
use anyhow::Result;
use crate::{cli::Demo, exit::Exit};
/// `demo`.
pub fn run(_args: &Demo) -> Result<Exit> { Err(crate::exit::refuse("not built yet")) }
