//! One file for each family of commands.

pub(crate) mod acts;
mod approve;
pub(crate) mod import;
mod init;
mod inspect;
mod machineconfig;
mod render;
mod scaffold;
pub(crate) mod status;
mod verify;

use anyhow::Result;
use jiff::Timestamp;

use crate::cli::{Cli, Command};
use crate::exit::Exit;

/// Runs a command.
pub fn run(cli: Cli) -> Result<Exit> {
    match &cli.command {
        Command::Demo(args) => crate::demo::run(args),
        Command::Init(args) => init::run(&cli, args),
        Command::Run(args) => crate::run::run(&cli, args),
        Command::Import(args) => import::import(&cli, args),
        Command::Adopt(args) => import::adopt(&cli, args),
        Command::New(args) => scaffold::run(&cli, args),
        Command::Check(args) => inspect::check(&cli, args),
        Command::Render(args) => render::run(&cli, args),
        Command::Machineconfig(args) => machineconfig::run(&cli, args),
        Command::Plan(args) => inspect::plan(&cli, args),
        Command::Diff(args) => inspect::diff(&cli, args),
        Command::Approve(args) => approve::approve(&cli, args),
        Command::Revert(args) => approve::revert(&cli, args),
        Command::Status(args) => status::status(&cli, args),
        Command::Log(args) => status::log(&cli, args),
        Command::Verify(args) => verify::run(&cli, args),
        Command::Settings => status::settings(&cli),
        Command::Freeze(args) => acts::freeze(&cli, args, true),
        Command::Unfreeze(args) => acts::freeze(&cli, args, false),
        Command::Revoke(args) => acts::revoke(&cli, args),
    }
}

/// The time, for what a person does now: whole seconds, as trailers write it.
pub(crate) fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

/// A time from now, as `24h`.
pub(crate) fn from_now(text: &str) -> Result<Timestamp> {
    let span: bronzeward_intent::Span = text.parse()?;
    let span = jiff::SignedDuration::try_from(span.as_duration())?;
    Ok(now().checked_add(span)?)
}
