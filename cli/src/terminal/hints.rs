//! What to type instead: the crates below know nothing of the command line, so their errors and findings get their hints
//! here, by kind.

use sumout_data::findings::{Finding, FindingKind};
use sumout_data::notation::{Notation, OTHERS, Reading};
use sumout_data::{Error, ErrorKind, is_data_name};

/// What to type to get past an error, where numbers are read in this notation.
pub fn hint(error: &Error, notation: Notation) -> Option<String> {
    let column = error.column().map(quoted);
    let file = error.file().unwrap_or_default();
    Some(match (error.kind(), column) {
        (ErrorKind::NotANumber, Some(_)) => {
            format!("--na {} makes it missing", quoted(error.got()?))
        }
        (ErrorKind::UnknownCategory | ErrorKind::UnknownClass, Some(_)) => {
            "--unseen missing treats such a cell as missing".to_owned()
        }
        (ErrorKind::AbsentColumn, _) => {
            "--absent missing treats absent columns as missing".to_owned()
        }
        (ErrorKind::MixedColumn, Some(column)) => format!(
            "--categorical {column} treats all of them as categories, --na TEXT makes TEXT missing"
        ),
        (ErrorKind::OtherNotation, Some(column)) => {
            let categories = format!("--categorical {column} treats all of them as categories");
            match (notation_flags(error.got()?, notation), error.place()) {
                (flags, Some(_)) => return flags,
                (Some(flags), None) => format!("{flags}; {categories}"),
                (None, None) => categories,
            }
        }
        (ErrorKind::NotUtf8, _) => {
            "--encoding latin-1 or --encoding utf-16 reads other text".to_owned()
        }
        (ErrorKind::TooManyCategories, Some(column)) => ignore(&column),
        (ErrorKind::TooManyClasses, _) => {
            "a target names a class; --regression predicts a number".to_owned()
        }
        // A whole column; a single cell has a place.
        (ErrorKind::WrongType, Some(column)) if error.place().is_none() => ignore(&column),
        (ErrorKind::NamesAreNumbers, _) => {
            "if the first line is data already, use --no-header".to_owned()
        }
        (ErrorKind::NotFetched, _) => format!("`sumout data get {file}` downloads it"),
        (ErrorKind::NoCacheFolder, _) => "name one with --to".to_owned(),
        (ErrorKind::FormatOff, _) => "build it with `cargo build --release --features parquet`, \
             which takes a few minutes more, or use CSV"
            .to_owned(),
        (ErrorKind::PlanIsData, _) => given_as_data(file),
        (ErrorKind::NotAModel, _) => "`sumout train` writes one".to_owned(),
        _ => return None,
    })
}

/// The options that read a text as a number, beside those that are given: other cells may need these.
fn notation_flags(text: &str, given: Notation) -> Option<String> {
    if matches!(given.read(text), Reading::Number(_)) {
        return None; // they are for CSV, and this is text of another format
    }
    let mut fitting: Vec<Vec<(&str, char)>> = Vec::new();
    for other in OTHERS {
        let both = together(given, other);
        let is_sound = both.thousands != Some(both.decimal);
        let marks = added_marks(both, given);
        let reads = is_sound && matches!(both.read(text), Reading::Number(_));
        if reads && !marks.is_empty() && !fitting.contains(&marks) {
            fitting.push(marks);
        }
    }
    let in_text = |marks: &Vec<(&str, char)>| marks.iter().all(|(_, mark)| text.contains(*mark));
    if fitting.iter().any(in_text) {
        fitting.retain(in_text); // one that is not there says nothing about this text
    }
    let flags: Vec<String> = fitting.iter().map(|marks| flags_of(marks)).collect();
    match &flags[..] {
        [] => None,
        [flags] => Some(format!("{flags} reads it")),
        _ => Some(format!("{} reads it: choose one", flags.join(" or "))),
    }
}

/// A notation with what another one adds to it.
fn together(given: Notation, other: Notation) -> Notation {
    let is_plain = given.decimal == Notation::default().decimal;
    Notation {
        decimal: if is_plain {
            other.decimal
        } else {
            given.decimal
        },
        thousands: given.thousands.or(other.thousands),
    }
}

/// The marks of a notation that are not given, with their options.
fn added_marks(notation: Notation, given: Notation) -> Vec<(&'static str, char)> {
    let decimal = Some(notation.decimal).filter(|mark| *mark != given.decimal);
    let thousands = notation.thousands.filter(|_| given.thousands.is_none());
    let decimal = decimal.map(|mark| ("--decimal", mark));
    let thousands = thousands.map(|mark| ("--thousands", mark));
    decimal.into_iter().chain(thousands).collect()
}

fn flags_of(marks: &[(&str, char)]) -> String {
    let flag = |(option, mark): &(&str, char)| format!("{option} {}", quoted(&mark.to_string()));
    marks.iter().map(flag).collect::<Vec<_>>().join(" ")
}

/// A finding as a warning, with what to type about it.
pub fn warning(finding: &Finding) -> String {
    let hint = match finding.what {
        FindingKind::Codes { .. } => {
            let column = quoted(&finding.column);
            format!("--categorical {column} treats them as categories")
        }
        FindingKind::Dates { .. } | FindingKind::Identifier { .. } | FindingKind::RowNumbers => {
            ignore(&quoted(&finding.column))
        }
        FindingKind::LooksContinuous { .. } => {
            "--regression predicts it as a number, with mean and quantiles".to_owned()
        }
        FindingKind::DefaultNa { .. } => {
            let column = quoted(&finding.column);
            format!("--no-default-na {column} makes it a word")
        }
        FindingKind::Outlier { .. } => {
            "--na with the text of such a cell makes it missing".to_owned()
        }
        _ => return finding.to_string(),
    };
    format!("{finding}; {hint}")
}

fn ignore(column: &str) -> String {
    format!("--ignore {column} leaves it out")
}

/// What to type instead, where a file stands alone that should follow `--data`.
pub fn data_hint<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut before = "";
    let alone = words.find(|word| {
        let alone = is_data_name(word) && !before.starts_with("--");
        before = word;
        alone
    });
    alone.map(given_as_data)
}

fn given_as_data(file: &str) -> String {
    format!("hint: use `--data {file}`")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_a_shell() {
        assert_eq!(quoted("runs/a-1.sumout"), "runs/a-1.sumout");
        assert_eq!(quoted("my data.csv"), "'my data.csv'");
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
    }

    #[test]
    fn data_without_their_option() {
        let hint = |line: &str| data_hint(line.split(' '));
        assert_eq!(
            hint("train a.CSV --target y").unwrap(),
            "hint: use `--data a.CSV`"
        );
        assert_eq!(hint("predict --data a.csv --out b.csv"), None);
    }

    #[test]
    fn errors_get_their_hints_by_kind() {
        let hint = |error: &Error| hint(error, Notation::default());
        let says = |kind| hint(&Error::unexpected(kind, "x", "two words").in_column("a b"));
        assert_eq!(
            says(ErrorKind::NotANumber).unwrap(),
            "--na 'two words' makes it missing"
        );
        assert_eq!(
            says(ErrorKind::TooManyCategories).unwrap(),
            "--ignore 'a b' leaves it out"
        );
        assert_eq!(
            says(ErrorKind::UnknownClass).unwrap(),
            "--unseen missing treats such a cell as missing"
        );
        let class = Error::unexpected(ErrorKind::UnknownClass, "no, yes", "maybe");
        assert_eq!(hint(&class), None, "of an option, not of a cell");
        let notation = |text| {
            let error = Error::unexpected(ErrorKind::OtherNotation, "x", text);
            hint(&error.in_column("a")).unwrap()
        };
        let categories = "; --categorical a treats all of them as categories";
        for (text, flags) in [
            ("3,5", "--decimal , reads it"),
            ("1,065", "--decimal , or --thousands , reads it: choose one"),
            ("1.065,5", "--decimal , --thousands . reads it"),
            ("1 065", "--thousands ' ' reads it"),
            ("1.065.000", "--decimal , --thousands . reads it"),
        ] {
            assert_eq!(notation(text), format!("{flags}{categories}"));
        }
        assert_eq!(says(ErrorKind::NotFinite), None);
        let finding = Finding::new("id", FindingKind::RowNumbers);
        assert_eq!(
            warning(&finding),
            "column 'id' numbers the rows; --ignore id leaves it out"
        );
    }

    /// A hint that takes back an option would send a user to and fro.
    #[test]
    fn options_that_are_given_stay() {
        let comma = Notation {
            decimal: ',',
            thousands: None,
        };
        let groups = Notation {
            thousands: Some(','),
            ..Notation::default()
        };
        for (given, text, flags) in [
            (comma, "1.065", Some("--thousands . reads it")),
            (comma, "1 065,5", Some("--thousands ' ' reads it")),
            (comma, "3.5", None),
            (comma, "3,5", None),
            (comma, "1,065.5", None),
            (groups, "3,5", None),
        ] {
            assert_eq!(notation_flags(text, given).as_deref(), flags, "{text}");
        }
    }
}
