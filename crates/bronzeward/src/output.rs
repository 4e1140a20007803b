//! What goes to the terminal.

use std::io::{IsTerminal, Write};

use serde::Serialize;

/// Text for people, or JSON for programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// Prints a line on standard output. A closed pipe ends the output, not the command.
pub fn line(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// Prints bytes as they are.
pub fn bytes(bytes: &[u8]) {
    let _ = std::io::stdout().lock().write_all(bytes);
}

/// Prints on standard error.
pub fn complain(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Prints a value as JSON.
pub fn json<T: Serialize + ?Sized>(value: &T) {
    line(&serde_json::to_string_pretty(value).expect("BUG: our types serialize to JSON"));
}

/// Asks a question at a terminal. `None`: nobody can be asked.
pub fn ask(question: &str) -> Option<bool> {
    if !std::io::stdin().is_terminal() {
        return None;
    }
    let mut err = std::io::stderr().lock();
    let _ = write!(err, "{question} [y/N] ");
    let _ = err.flush();
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).ok()?;
    Some(matches!(answer.trim(), "y" | "Y" | "yes"))
}
