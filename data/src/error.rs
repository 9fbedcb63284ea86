//! Errors that the user can put right.

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

/// Words of a file as a terminal can show them: no control characters, and nothing endless.
pub fn tame(text: &str) -> String {
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

/// The engine refuses what it was given; only a loss that runs away is not the user's doing.
fn is_refusal(error: &sumout::Error) -> bool {
    !matches!(error, sumout::Error::Diverged { .. })
}

/// Whether the user can put it right.
pub fn is_users(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.is::<Mistake>()
            || cause
                .downcast_ref::<sumout::Error>()
                .is_some_and(is_refusal)
    })
}
