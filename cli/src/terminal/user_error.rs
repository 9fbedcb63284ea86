//! Whose fault an error is, and the exit code that says so: 2 for a user's mistake, 130 for Ctrl-C, 1 for the rest.

use crate::terminal::interrupt::{INTERRUPTED, Interrupted};
use std::io;
use sumout_data::error::{is_users, tame};

/// An error and its causes in one line, without the system's numbers.
pub fn in_words(error: &anyhow::Error) -> String {
    let mut text = tame(&format!("{error:#}"));
    while let Some(start) = text.find(" (os error ") {
        let end = text[start..]
            .find(')')
            .map_or(text.len(), |length| start + length + 1);
        text.replace_range(start..end, "");
    }
    text
}

/// True when whoever read our output has stopped reading, as `head` does: no error at all.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let pipe = |e: &io::Error| e.kind() == io::ErrorKind::BrokenPipe;
    error
        .chain()
        .any(|cause| cause.downcast_ref::<io::Error>().is_some_and(pipe))
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
    use std::path::Path;
    use sumout_data::error::{data_hint, file_error, mistake, quoted};

    #[test]
    fn words_for_a_shell() {
        assert_eq!(quoted("runs/a-1.sumout"), "runs/a-1.sumout");
        assert_eq!(quoted("my data.csv"), "'my data.csv'");
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
    }

    use anyhow::{Context, anyhow};

    #[test]
    fn data_without_their_option() {
        let hint = |line: &str| data_hint(line.split(' '));
        assert_eq!(
            hint("train a.CSV --target y").unwrap(),
            "hint: data are given as `--data a.CSV`"
        );
        assert_eq!(hint("predict --data a.csv --out b.csv"), None);
    }

    #[test]
    fn codes_tell_mistakes_from_the_rest() {
        assert_eq!(exit_code(&mistake("no such column")), 2);
        assert_eq!(
            exit_code(
                &Err::<(), _>(mistake("no"))
                    .context("while reading")
                    .unwrap_err()
            ),
            2
        );
        assert_eq!(exit_code(&anyhow!("the network is down")), 1);
        let path = Path::new("x");
        assert_eq!(
            exit_code(&file_error("read", path, io::ErrorKind::NotFound.into())),
            2
        );
        assert_eq!(
            exit_code(&file_error(
                "write",
                path,
                io::ErrorKind::StorageFull.into()
            )),
            1
        );
        assert_eq!(exit_code(&sumout::Error::Empty { what: "row" }.into()), 2);
        assert_eq!(
            exit_code(
                &sumout::Error::Diverged {
                    step: 3,
                    loss: f64::NAN
                }
                .into()
            ),
            1
        );
        assert_eq!(exit_code(&Interrupted("stopped".into()).into()), 130);
        let closed =
            anyhow::Error::new(io::Error::from(io::ErrorKind::BrokenPipe)).context("writing");
        assert_eq!(exit_code(&closed), 0);
        let full = anyhow::Error::new(io::Error::from_raw_os_error(28)).context("cannot write x");
        assert_eq!(in_words(&full), "cannot write x: No space left on device");
        let nasty = mistake(format!("got '\u{1b}[2J\0 {}'", "9".repeat(1000)));
        assert_eq!(
            in_words(&nasty),
            format!("got '\\u{{1b}}[2J\\u{{0}} {}…", "9".repeat(120))
        );
    }
}
