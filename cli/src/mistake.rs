//! Whose fault an error is, and the exit code that says so: 2 for a user's mistake, 130 for Ctrl-C, 1 for the rest.

use crate::interrupt::{INTERRUPTED, Interrupted};
use std::fmt;
use std::io::{self, Write};
use std::path::Path;

/// Something the user can put right: a wrong argument, a file that is not there, data that cannot be read.
#[derive(Debug)]
pub struct Mistake(String);

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Mistake {}

/// A user's mistake, in words that say what was expected and what came.
pub fn mistake(message: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Mistake(message.into()))
}

/// A line to standard error that stops nothing. Nobody listening is no reason to stop either.
pub fn say(line: &str) {
    let _ = writeln!(io::stderr(), "warning: {}", tame(line));
}

/// A word as a shell reads it, for what is to be typed.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+:=@%,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// What the system said about a path that the user named. A full disk or a broken one is nobody's mistake.
pub fn file_error(doing: &str, path: &Path, error: io::Error) -> anyhow::Error {
    use io::ErrorKind::{
        IsADirectory, NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem,
    };
    let message = format!("cannot {doing} {}", path.display());
    match error.kind() {
        NotFound => mistake(format!("{message}: there is no such file or folder")),
        IsADirectory => mistake(format!("{message}: it is a folder")),
        PermissionDenied => mistake(format!("{message}: permission denied")),
        NotADirectory | ReadOnlyFilesystem => mistake(format!("{message}: {error}")),
        _ => anyhow::Error::new(error).context(message),
    }
}

/// Words of a file as a terminal can show them: no control characters, and nothing endless.
fn tame(text: &str) -> String {
    const LONGEST: usize = 120;
    let cut = |word: &str| match word.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &word[..at]),
        None => word.to_owned(),
    };
    let text: String = text.split(' ').map(cut).collect::<Vec<_>>().join(" ");
    let shown = |c: char| {
        if c.is_control() && c != '\n' {
            c.escape_default().to_string()
        } else {
            c.to_string()
        }
    };
    text.chars().map(shown).collect()
}

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

/// What to type instead, where a file stands alone that should follow `--data`.
pub fn data_hint<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<String> {
    let is_data = |word: &&str| {
        let name = word.to_ascii_lowercase();
        [
            ".csv", ".tsv", ".csv.gz", ".jsonl", ".parquet", ".npy", ".npz", ".png",
        ]
        .iter()
        .any(|end| name.ends_with(end))
    };
    let mut before = "";
    let alone = words.find(|word| {
        let alone = is_data(word) && !before.starts_with("--");
        before = word;
        alone
    });
    alone.map(|word| format!("hint: data are given as `--data {word}`"))
}

/// True when whoever read our output has stopped reading, as `head` does: no error at all.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let pipe = |e: &io::Error| e.kind() == io::ErrorKind::BrokenPipe;
    error
        .chain()
        .any(|cause| cause.downcast_ref::<io::Error>().is_some_and(pipe))
}

/// The engine refuses what it was given; only a loss that runs away is not the user's doing.
fn is_refusal(error: &sumout::Error) -> bool {
    !matches!(error, sumout::Error::Diverged { .. })
}

/// The exit code of an error.
pub fn exit_code(error: &anyhow::Error) -> u8 {
    let is_mistake = |cause: &(dyn std::error::Error + 'static)| {
        cause.is::<Mistake>()
            || cause
                .downcast_ref::<sumout::Error>()
                .is_some_and(is_refusal)
    };
    if is_closed_pipe(error) {
        0
    } else if error.is::<Interrupted>() {
        INTERRUPTED
    } else if error.chain().any(is_mistake) {
        2
    } else {
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
