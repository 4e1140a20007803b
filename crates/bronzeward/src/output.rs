//! What goes to the terminal.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

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

/// The first error of writing to standard output.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Prints a line on standard output.
pub fn line(text: &str) {
    bytes(format!("{}\n", plain(text)).as_bytes());
}

/// Prints bytes as they are. What cannot be written ends the output and not the command, which may be in the middle of
/// an act; [`lost`] tells of it in the end.
pub fn bytes(bytes: &[u8]) {
    if LOST.get().is_some() {
        return;
    }
    let mut out = io::stdout().lock();
    // what stays in the buffer would be lost without a word
    if let Err(err) = out.write_all(bytes).and_then(|()| out.flush()) {
        let _ = LOST.set(err);
    }
}

/// Why a part of the output was lost. A reader that went away has seen what it wanted to see.
pub fn lost() -> Option<&'static io::Error> {
    LOST.get().filter(|err| err.kind() != io::ErrorKind::BrokenPipe)
}

/// Prints on standard error.
pub fn complain(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", plain(text));
}

/// Prints a value as JSON.
pub fn json<T: Serialize + ?Sized>(value: &T) {
    line(&serde_json::to_string_pretty(value).expect("BUG: our types serialize to JSON"));
}

/// Text that moves no cursor: commit messages, names in trees and words of nodes are anybody's, and a terminal obeys
/// control characters and turns the direction of a line around.
fn plain(text: &str) -> Cow<'_, str> {
    let obeyed = |c: char| {
        c.is_control() && c != '\n' && c != '\t'
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(obeyed) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| if obeyed(c) { '\u{fffd}' } else { c }).collect())
}

/// Asks a question at a terminal. `None`: nobody can be asked.
pub fn ask(question: &str) -> Option<bool> {
    if !io::stdin().is_terminal() {
        return None;
    }
    let mut err = io::stderr().lock();
    let _ = write!(err, "{} [y/N] ", plain(question));
    let _ = err.flush();
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).ok()?;
    Some(matches!(answer.trim(), "y" | "Y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn nothing_that_a_terminal_obeys_is_printed() {
        assert_eq!(plain("one\n\ttwo é"), "one\n\ttwo é");
        assert_eq!(plain("a\u{1b}[2Jb\rc\u{9b}d\u{202e}e"), "a\u{fffd}[2Jb\u{fffd}c\u{fffd}d\u{fffd}e");
    }
}
