//! What can go wrong with data: a typed error that says where, what was expected, and what came instead.
//!
//! ```
//! use sumout_data::{Error, ErrorKind};
//! let error = Error::unexpected(ErrorKind::NotANumber, "a number", "old").in_file("pets.csv");
//! assert_eq!(error.to_string(), "pets.csv: expected a number, got 'old'");
//! assert_eq!((error.kind(), error.got()), (ErrorKind::NotANumber, Some("old")));
//! ```

use std::fmt;
use std::io;
use std::path::Path;

/// What a function of this crate gives.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of problem it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no such file, folder or data set.
    MissingFile,
    /// It is a folder, or something else that is not a file.
    NotAFile,
    /// The system does not allow it.
    PermissionDenied,
    /// The system failed: a full or broken disk, a closed pipe.
    Io,
    /// The bytes are not what the format says.
    Damaged,
    /// Text that is not UTF-8.
    NotUtf8,
    /// It is in none of the known formats.
    UnknownFormat,
    /// This build was made without that format.
    FormatOff,
    /// A data set that is known by name and was not fetched yet.
    NotFetched,
    /// There are no rows, or no columns.
    Empty,
    /// A column that is wanted is not there.
    MissingColumn,
    /// A column of the model is not there, but others are.
    AbsentColumn,
    /// Rows are of another width or shape than the model's.
    ModelMismatch,
    /// Two columns have the same name.
    DuplicateName,
    /// The first line holds numbers instead of names.
    NamesAreNumbers,
    /// A row has more or fewer cells than it should.
    CellCount,
    /// A row is too long to be held in memory.
    RowTooLong,
    /// Text where a number should be.
    NotANumber,
    /// A number in another notation, such as with a decimal comma.
    OtherNotation,
    /// An infinite number, or one too large for 32 bits.
    NotFinite,
    /// A number outside the bounds of its column.
    OutOfBounds,
    /// Text where a date should be.
    NotADate,
    /// A number that stands for no category.
    NotACode,
    /// A category that the model does not know.
    UnknownCategory,
    /// A class that the model does not know.
    UnknownClass,
    /// A label that is not the number of a class.
    NotAClass,
    /// A column of numbers with text in it, or the other way round.
    MixedColumn,
    /// A column with too many categories.
    TooManyCategories,
    /// A target with too many classes.
    TooManyClasses,
    /// A cell or column of a type that cannot be used.
    WrongType,
    /// Labels that do not match the rows.
    Labels,
    /// Results that the format cannot hold.
    Output,
    /// A file that the same command already uses.
    SameFile,
    /// A file that is not a model.
    NotAModel,
    /// A value that the caller gave and that cannot be used.
    Argument,
    /// A training plan that cannot be used.
    Plan,
    /// Data where a training plan should be.
    PlanIsData,
    /// A data set could not be fetched.
    Download,
    /// There is no folder for a cache.
    NoCacheFolder,
    /// The engine refused what it was given.
    Engine,
}

/// The line or row of a file, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// A line, for text.
    Line(u64),
    /// A row, where there are no lines.
    Row(u64),
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Row(row) => write!(f, "row {row}"),
        }
    }
}

/// Where a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The file; empty where there is none.
    pub file: &'a str,
    /// The line or row.
    pub at: At,
}

/// What the message says after the place.
#[derive(Debug)]
enum Words {
    /// "expected …, got …"; text of the data is shown in quotes.
    Expected {
        expected: String,
        got: String,
        quoted: bool,
    },
    /// A sentence of its own.
    Sentence(String),
    /// "cannot read FILE", with the reason if it is not in the cause.
    Cannot {
        doing: String,
        reason: Option<String>,
    },
}

/// Any other error that caused this one.
type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Something that is wrong with data or with a file.
#[derive(Debug)]
pub struct Error(Box<Details>);

#[derive(Debug)]
struct Details {
    kind: ErrorKind,
    file: String,
    at: Option<At>,
    column: Option<String>,
    words: Words,
    cause: Option<Cause>,
    engine: Option<sumout::Error>,
}

impl Error {
    fn with_words(kind: ErrorKind, words: Words) -> Self {
        Self(Box::new(Details {
            kind,
            file: String::new(),
            at: None,
            column: None,
            words,
            cause: None,
            engine: None,
        }))
    }

    /// An error in one sentence.
    pub fn new(kind: ErrorKind, sentence: impl Into<String>) -> Self {
        Self::with_words(kind, Words::Sentence(sentence.into()))
    }

    /// "expected X, got Y".
    pub fn expected(kind: ErrorKind, expected: impl Into<String>, got: impl fmt::Display) -> Self {
        let words = Words::Expected {
            expected: expected.into(),
            got: got.to_string(),
            quoted: false,
        };
        Self::with_words(kind, words)
    }

    /// "expected X, got 'text'", where the text is one of the data.
    pub fn unexpected(
        kind: ErrorKind,
        expected: impl Into<String>,
        text: impl Into<String>,
    ) -> Self {
        let words = Words::Expected {
            expected: expected.into(),
            got: text.into(),
            quoted: true,
        };
        Self::with_words(kind, words)
    }

    /// Bytes that are not what the format says.
    pub fn damaged(sentence: impl Into<String>) -> Self {
        Self::new(ErrorKind::Damaged, sentence)
    }

    /// "cannot read FILE: …".
    pub fn cannot(kind: ErrorKind, doing: &str, file: &str, reason: impl Into<String>) -> Self {
        let (doing, reason) = (doing.to_owned(), Some(reason.into()));
        Self::with_words(kind, Words::Cannot { doing, reason }).in_file(file)
    }

    /// The system failed while it was "reading FILE", "writing FILE".
    pub fn io(doing: &str, file: &str, error: io::Error) -> Self {
        let (doing, reason) = (doing.to_owned(), None);
        Self::with_words(ErrorKind::Io, Words::Cannot { doing, reason })
            .in_file(file)
            .because(error)
    }

    /// The same in this file, if no file was named yet.
    pub fn in_file(mut self, file: &str) -> Self {
        if self.0.file.is_empty() {
            file.clone_into(&mut self.0.file);
        }
        self
    }

    /// The same at this place.
    pub fn at(mut self, place: Place<'_>) -> Self {
        self.0.at = Some(place.at);
        self.in_file(place.file)
    }

    /// The same in this column, if none was named yet.
    pub fn in_column(mut self, name: &str) -> Self {
        self.0.column.get_or_insert_with(|| name.to_owned());
        self
    }

    /// The same with what caused it.
    pub fn because(mut self, cause: impl Into<Cause>) -> Self {
        self.0.cause = Some(cause.into());
        self
    }

    /// What kind of problem it is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The file, if one is known.
    pub fn file(&self) -> Option<&str> {
        Some(self.0.file.as_str()).filter(|file| !file.is_empty())
    }

    /// The line or row, if one is known.
    pub fn place(&self) -> Option<At> {
        self.0.at
    }

    /// The column, if it is about one.
    pub fn column(&self) -> Option<&str> {
        self.0.column.as_deref()
    }

    /// What was expected, where the message says so.
    pub fn wanted(&self) -> Option<&str> {
        match &self.0.words {
            Words::Expected { expected, .. } => Some(expected),
            _ => None,
        }
    }

    /// What came instead, where the message says so.
    pub fn got(&self) -> Option<&str> {
        match &self.0.words {
            Words::Expected { got, .. } => Some(got),
            _ => None,
        }
    }

    /// The error of the engine, if it is one.
    pub fn engine(&self) -> Option<&sumout::Error> {
        self.0.engine.as_ref()
    }

    /// Whether a user can correct it: a wrong name, a file that is not there, data that cannot be read. A full disk, a
    /// lost connection and a loss that grows without bound are not the user's errors.
    pub fn is_user_error(&self) -> bool {
        match self.kind() {
            ErrorKind::Io | ErrorKind::Download => false,
            _ => !matches!(self.engine(), Some(sumout::Error::Diverged { .. })),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Details {
            file,
            at,
            column,
            words,
            ..
        } = &*self.0;
        if let Words::Cannot { doing, reason } = words {
            let reason = reason.iter().map(|reason| format!(": {reason}"));
            return write!(f, "cannot {doing} {file}{}", reason.collect::<String>());
        }
        let place: Vec<String> = [Some(file.clone()), at.map(|at| at.to_string())]
            .into_iter()
            .flatten()
            .filter(|part| !part.is_empty())
            .collect();
        let column = column.iter().map(|name| format!("column '{name}'"));
        let place: Vec<String> = Some(place.join(" ")).into_iter().chain(column).collect();
        let place = place.join(", ");
        match place.trim_start_matches(", ") {
            "" => {}
            place => write!(f, "{place}: ")?,
        }
        match words {
            Words::Sentence(sentence) => f.write_str(sentence),
            Words::Expected {
                expected,
                got,
                quoted: true,
            } => {
                write!(f, "expected {expected}, got '{got}'")
            }
            Words::Expected { expected, got, .. } => write!(f, "expected {expected}, got {got}"),
            Words::Cannot { .. } => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let cause = self.0.cause.as_deref()?;
        Some(cause as &(dyn std::error::Error + 'static))
    }
}

impl From<sumout::Error> for Error {
    fn from(error: sumout::Error) -> Self {
        let mut wrapped = Self::new(ErrorKind::Engine, error.to_string());
        wrapped.0.engine = Some(error);
        wrapped
    }
}

/// What the system said about a path that the user named.
pub fn file_error(doing: &str, path: &Path, error: io::Error) -> Error {
    use io::ErrorKind::{
        IsADirectory, NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem,
    };
    let file = path.display().to_string();
    let (kind, reason) = match error.kind() {
        NotFound => (
            ErrorKind::MissingFile,
            "there is no such file or folder".to_owned(),
        ),
        IsADirectory => (ErrorKind::NotAFile, "it is a folder".to_owned()),
        PermissionDenied => (ErrorKind::PermissionDenied, "permission denied".to_owned()),
        NotADirectory => (ErrorKind::NotAFile, error.to_string()),
        ReadOnlyFilesystem => (ErrorKind::PermissionDenied, error.to_string()),
        _ => return Error::io(doing, &file, error),
    };
    Error::cannot(kind, doing, &file, reason)
}

/// An error while reading: bytes that make no sense are the file's fault, the rest is the machine's.
pub fn read_error(file: &str, error: io::Error) -> Error {
    use io::ErrorKind::{InvalidData, InvalidInput, IsADirectory, UnexpectedEof};
    match error.kind() {
        InvalidData | InvalidInput | UnexpectedEof | IsADirectory => {
            Error::damaged(format!("damaged: {error}")).in_file(file)
        }
        _ => Error::io("read", file, error),
    }
}

/// The beginning of a text of the data, for a message.
pub fn clip(text: &str) -> String {
    const LONGEST: usize = 120;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_where_and_what() {
        let place = Place {
            file: "a.csv",
            at: At::Line(3),
        };
        let error = || Error::unexpected(ErrorKind::UnknownCategory, "cat, dog", "cow");
        assert_eq!(error().to_string(), "expected cat, dog, got 'cow'");
        assert_eq!(
            error().in_column("kind").to_string(),
            "column 'kind': expected cat, dog, got 'cow'"
        );
        let whole = error().at(place).in_column("kind");
        assert_eq!(
            whole.to_string(),
            "a.csv line 3, column 'kind': expected cat, dog, got 'cow'"
        );
        assert_eq!(
            (whole.file(), whole.place(), whole.column()),
            (Some("a.csv"), Some(At::Line(3)), Some("kind"))
        );
        assert_eq!(
            (whole.wanted(), whole.got()),
            (Some("cat, dog"), Some("cow"))
        );
        let unnamed = Place {
            file: "",
            at: At::Row(1),
        };
        assert_eq!(
            error().at(unnamed).to_string(),
            "row 1: expected cat, dog, got 'cow'"
        );
    }

    #[test]
    fn only_the_machine_and_the_network_are_not_the_users() {
        let path = Path::new("x");
        assert!(file_error("read", path, io::ErrorKind::NotFound.into()).is_user_error());
        let full = file_error("write", path, io::ErrorKind::StorageFull.into());
        assert!(!full.is_user_error());
        assert_eq!(full.to_string(), "cannot write x");
        let cause = std::error::Error::source(&full).unwrap();
        assert!(cause.is::<io::Error>());
        assert!(Error::from(sumout::Error::Empty { what: "row" }).is_user_error());
        let loss = f64::NAN;
        let diverged = sumout::Error::Diverged { step: 3, loss };
        assert!(!Error::from(diverged).is_user_error());
    }
}
