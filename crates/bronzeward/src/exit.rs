//! Exit codes: 0 fine, 1 findings or refused, 2 the tool could not do its work, 3 not confirmed, 10 changes.

use std::fmt;
use std::process::ExitCode;

/// How a command ended, when it did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Fine.
    Fine,
    /// Findings, or refused: said already.
    Findings,
    /// Nobody confirmed.
    NotConfirmed,
    /// `plan --exit-code`: something would be done.
    Changes,
}

/// A refusal: the tool works, and says no.
#[derive(Debug)]
pub struct Refused(pub String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

/// A refusal as an error.
pub fn refuse(message: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Refused(message.into()))
}

/// Prints an error with its causes and gives the exit code. Output that was lost is an error too.
pub fn report(result: anyhow::Result<Exit>) -> ExitCode {
    let lost = match crate::output::lost() {
        Some(err) => Err(anyhow::anyhow!("{err}").context("Cannot write to standard output")),
        None => Ok(()),
    };
    match result.and_then(|exit| lost.map(|()| exit)) {
        Ok(Exit::Fine) => ExitCode::SUCCESS,
        Ok(Exit::Findings) => ExitCode::from(1),
        Ok(Exit::NotConfirmed) => ExitCode::from(3),
        Ok(Exit::Changes) => ExitCode::from(10),
        Err(err) => {
            let mut said = String::new();
            for cause in err.chain() {
                let text = cause.to_string();
                if said.is_empty() {
                    said = format!("error: {text}");
                } else if !said.contains(&text) {
                    said.push_str(&format!("\n  because: {text}"));
                }
            }
            crate::output::complain(&said);
            ExitCode::from(if err.downcast_ref::<Refused>().is_some() { 1 } else { 2 })
        }
    }
}
