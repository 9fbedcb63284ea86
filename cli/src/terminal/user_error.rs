//! Whose error it is, and the exit code that says so: 2 for a user's error, 130 for Ctrl-C, 1 for the rest.

use crate::terminal::hints;
use crate::terminal::interrupt::{INTERRUPTED, Interrupted};
use clap::error::ContextKind;
use std::error::Error as _;
use std::fmt;
use std::io::{self, Write};
use std::num::{IntErrorKind, ParseIntError};
use sumout_data::notation::Notation;

/// Something that the user can correct, such as a wrong option.
#[derive(Debug)]
pub struct UserError(String);

impl fmt::Display for UserError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UserError {}

/// A user's error, in words that say what was expected and what came.
pub fn user_error(message: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(UserError(message.into()))
}

/// Prints a warning in one line; write errors are ignored.
pub fn warn(line: &str) {
    let _ = writeln!(io::stderr(), "warning: {}", one_line(line));
}

/// Text of a file as a line of a terminal can show it.
pub fn one_line(text: &str) -> String {
    printable(text).replace('\n', "\\n")
}

/// Text of a file as a terminal can show it: no control characters, and no endless words.
pub fn printable(text: &str) -> String {
    const LONGEST: usize = 120;
    let cut = |word: &str| match word.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &word[..at]),
        None => word.to_owned(),
    };
    let text: String = text.split(' ').map(cut).collect::<Vec<_>>().join(" ");
    let shown = |c: char| match c {
        c if c.is_control() && c != '\n' => c.escape_default().to_string(),
        c => c.to_string(),
    };
    text.chars().map(shown).collect()
}

/// An error and its causes in one line, without the system's numbers, and with a hint if there is one. Numbers were read
/// in this notation.
pub fn in_words(error: &anyhow::Error, notation: Notation) -> String {
    let mut text = printable(&format!("{error:#}"));
    while let Some(start) = text.find(" (os error ") {
        let end = text[start..]
            .find(')')
            .map_or(text.len(), |length| start + length + 1);
        text.replace_range(start..end, "");
    }
    match of_data(error).and_then(|error| hints::hint(error, notation)) {
        Some(hint) => format!("{text}; {}", printable(&hint)),
        None => text,
    }
}

/// What is wrong with a whole number that was given to an option.
pub fn wrong_number(error: &clap::Error) -> Option<String> {
    let cause = error.source()?.downcast_ref::<ParseIntError>()?;
    let expected = match cause.kind() {
        IntErrorKind::PosOverflow => "a smaller whole number",
        _ => "a whole number from 0",
    };
    let option = error.get(ContextKind::InvalidArg)?;
    let got = error.get(ContextKind::InvalidValue)?;
    Some(one_line(&format!(
        "{option}: expected {expected}, got '{got}'"
    )))
}

/// The error about data among the causes.
fn of_data(error: &anyhow::Error) -> Option<&sumout_data::Error> {
    error.chain().find_map(|cause| cause.downcast_ref())
}

/// True when whoever read our output has stopped reading, as `head` does: no error at all.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let pipe = |e: &io::Error| e.kind() == io::ErrorKind::BrokenPipe;
    error
        .chain()
        .any(|cause| cause.downcast_ref::<io::Error>().is_some_and(pipe))
}

/// Whether the user can correct it. The engine refuses what it was given; only a loss that grows without bound is not
/// the user's doing.
fn is_users(error: &anyhow::Error) -> bool {
    let refused = |error: &sumout::Error| !matches!(error, sumout::Error::Diverged { .. });
    let of_data = |error: &sumout_data::Error| error.is_user_error();
    error.chain().any(|cause| {
        cause.is::<UserError>()
            || cause.downcast_ref().is_some_and(refused)
            || cause.downcast_ref().is_some_and(of_data)
    })
}

/// The exit code of an error.
pub fn exit_code(error: &anyhow::Error) -> u8 {
    if is_closed_pipe(error) {
        0
    } else if error.is::<Interrupted>() {
        INTERRUPTED
    } else if is_users(error) {
        2
    } else {
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{Context, anyhow};
    use std::path::Path;
    use sumout_data::error::file_error;
    use sumout_data::{Error, ErrorKind};

    #[test]
    fn codes_tell_user_errors_from_the_rest() {
        assert_eq!(exit_code(&user_error("no such column")), 2);
        let context = Err::<(), _>(user_error("no")).context("while reading");
        assert_eq!(exit_code(&context.unwrap_err()), 2);
        assert_eq!(exit_code(&anyhow!("the network is down")), 1);
        let of_file = |kind: io::ErrorKind| file_error("write", Path::new("x"), kind.into());
        assert_eq!(exit_code(&of_file(io::ErrorKind::NotFound).into()), 2);
        assert_eq!(exit_code(&of_file(io::ErrorKind::StorageFull).into()), 1);
        assert_eq!(exit_code(&of_file(io::ErrorKind::BrokenPipe).into()), 0);
        assert_eq!(exit_code(&sumout::Error::Empty { what: "row" }.into()), 2);
        let loss = f64::NAN;
        let diverged = sumout::Error::Diverged { step: 3, loss };
        assert_eq!(exit_code(&diverged.into()), 1);
        assert_eq!(exit_code(&Interrupted("stopped".into()).into()), 130);
        let closed =
            anyhow::Error::new(io::Error::from(io::ErrorKind::BrokenPipe)).context("writing");
        assert_eq!(exit_code(&closed), 0);
    }

    #[test]
    fn names_of_files_cannot_break_lines() {
        assert_eq!(one_line("a\nb\tc\u{1b}[2J"), "a\\nb\\tc\\u{1b}[2J");
    }

    #[test]
    fn messages_are_one_line_with_a_hint() {
        let full = anyhow::Error::new(io::Error::from_raw_os_error(28)).context("cannot write x");
        let in_words = |error| in_words(error, Notation::default());
        assert_eq!(in_words(&full), "cannot write x: No space left on device");
        let nasty = user_error(format!("got '\u{1b}[2J\0 {}'", "9".repeat(1000)));
        assert_eq!(
            in_words(&nasty),
            format!("got '\\u{{1b}}[2J\\u{{0}} {}…", "9".repeat(120))
        );
        let cell = Error::unexpected(ErrorKind::NotANumber, "a number", "old");
        let cell = anyhow::Error::from(cell.in_file("a.csv").in_column("age"));
        assert_eq!(
            in_words(&cell),
            "a.csv, column 'age': expected a number, got 'old'; --na old makes it missing"
        );
    }
}
