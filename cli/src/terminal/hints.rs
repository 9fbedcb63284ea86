//! What to type instead: the crates below know nothing of the command line, so their errors and findings get their hints
//! here, by kind.

use sumout_data::findings::{Finding, FindingKind};
use sumout_data::notation::{Notation, OTHERS, notations_of};
use sumout_data::{Error, ErrorKind, is_data_name};

/// What to type to get past an error.
pub fn hint(error: &Error) -> Option<String> {
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
            let flags = notation_flags(error.got()?);
            match error.place() {
                Some(_) => flags,
                None => format!("{flags}; --categorical {column} treats all of them as categories"),
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

/// The options that read a text as a number.
fn notation_flags(text: &str) -> String {
    let fits = notations_of(text);
    let has_marks = |notation: &Notation| {
        let decimal = Some(notation.decimal).filter(|mark| *mark != '.');
        let mut marks = decimal.into_iter().chain(notation.thousands);
        marks.all(|mark| text.contains(mark))
    };
    let fitting = OTHERS.iter().zip(fits).filter(|(_, fits)| *fits);
    let fitting = fitting.map(|(notation, _)| notation);
    let flags: Vec<String> = fitting.filter(|n| has_marks(n)).map(flags_of).collect();
    match &flags[..] {
        [] => "--thousands . reads it as thousands".to_owned(),
        [flags] => format!("{flags} reads it"),
        _ => format!("{} reads it: choose one", flags.join(" or ")),
    }
}

fn flags_of(notation: &Notation) -> String {
    let mut flags = Vec::new();
    if notation.decimal != '.' {
        flags.push(format!("--decimal {}", notation.decimal));
    }
    if let Some(mark) = notation.thousands {
        flags.push(format!("--thousands {}", quoted(&mark.to_string())));
    }
    flags.join(" ")
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
            ("1.065", "--thousands . reads it as thousands"),
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
}
