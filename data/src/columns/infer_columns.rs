//! What a table holds: which columns are numbers and which are categories, and what is suspicious about them.
//!
//! A column is numeric if all its cells are numbers or all are dates, categorical if none is; a mixture is an error that
//! names the line, because one typing error would otherwise make categories of a thousand numbers.

use crate::error::{At, Error, ErrorKind, Place, Result};
use crate::rows::cells::{Cell, MissingTexts, NoDefaultNa, Records, is_default_na};
use crate::rows::dates::{DateStyle, style_of};
use crate::rows::findings::{Finding, FindingKind};
use crate::rows::layout::{Column, ColumnKind, sort_names};
use crate::rows::notation::{OTHERS, has_leading_zero, has_sign, is_date, notations_of};
use std::collections::HashSet;

/// A column with more names than this is an identifier, not a category.
const MAX_CATEGORIES: usize = 1000;

/// Rows that are read at once.
const BATCH: usize = 4096;

/// A column with at most this many different values is not suspicious.
const MIN_SUSPICIOUS: u64 = 20;

/// A cell, and where it is.
struct FirstCell {
    at: At,
    text: String,
}

/// Cells of one sort, and the first of them.
#[derive(Default)]
struct Counted {
    cells: u64,
    first: Option<String>,
}

impl Counted {
    fn note(&mut self, text: &str, belongs: bool) {
        if belongs {
            self.cells += 1;
            self.first.get_or_insert_with(|| text.to_owned());
        }
    }

    /// The first cell, if nearly all of `cells` are of this sort.
    fn of_nearly_all(&self, cells: u64) -> Option<String> {
        let nearly_all = cells > 0 && 10 * self.cells >= 9 * cells;
        self.first.clone().filter(|_| nearly_all)
    }
}

/// Cells that are numbers to people, and are not read as such or should not be.
#[derive(Default)]
struct OtherNumbers {
    /// In each of the other notations.
    notations: [Counted; OTHERS.len()],
    /// The cell that can be read in the fewest of them, and in how many.
    clearest: Option<(usize, FirstCell)>,
    signs: Counted,
    dates: Counted,
    /// Those that can be read as days, and whether one of them has a time.
    iso_dates: u64,
    has_times: bool,
    leading_zeros: Counted,
}

impl OtherNumbers {
    fn note(&mut self, at: At, text: &str, is_number: bool) {
        self.leading_zeros.note(text, has_leading_zero(text));
        if is_number {
            return;
        }
        self.signs.note(text, has_sign(text));
        self.dates.note(text, is_date(text));
        if let Some(style) = style_of(text) {
            self.iso_dates += 1;
            self.has_times |= style == DateStyle::Time;
        }
        let fits = notations_of(text);
        for (counted, &fits) in self.notations.iter_mut().zip(&fits) {
            counted.note(text, fits);
        }
        let count = fits.iter().filter(|fits| **fits).count();
        if count > 0
            && self
                .clearest
                .as_ref()
                .is_none_or(|(least, _)| count < *least)
        {
            let text = text.to_owned();
            self.clearest = Some((count, FirstCell { at, text }));
        }
    }
}

/// What has been seen of a column.
#[derive(Default)]
struct Seen {
    numbers: u64,
    texts: u64,
    other_numbers: OtherNumbers,
    first_text: Option<FirstCell>,
    first_number: Option<FirstCell>,
    names: HashSet<String>,
    /// Cells that hold a word such as NA and are missing, and the first such word.
    default_na: u64,
    first_default_na: Option<String>,
}

impl Seen {
    fn note(&mut self, at: At, cell: Cell<'_>, is_category: bool) {
        let Some(name) = cell.category() else { return };
        let is_number = cell.number().is_some();
        let (count, first) = if is_number {
            (&mut self.numbers, &mut self.first_number)
        } else {
            (&mut self.texts, &mut self.first_text)
        };
        *count += 1;
        self.other_numbers.note(at, &name, is_number);
        first.get_or_insert_with(|| FirstCell {
            at,
            text: name.clone(),
        });
        if (is_category || !is_number) && self.names.len() <= MAX_CATEGORIES {
            self.names.insert(name);
        }
    }

    /// Notes a cell of any kind.
    fn read(
        &mut self,
        place: Place<'_>,
        cell: Cell<'_>,
        reading: &Reading,
        missing: &MissingTexts,
    ) {
        match missing.known(cell, reading.default_na) {
            Cell::Missing => self.note_hole(cell),
            known => self.note(place.at, known, reading.is_category),
        }
    }

    /// Notes a cell that is missing.
    fn note_hole(&mut self, written: Cell<'_>) {
        let Cell::Text(text) = written else { return };
        if is_default_na(text.trim()) {
            self.default_na += 1;
            let first = || text.trim().to_owned();
            self.first_default_na.get_or_insert_with(first);
        }
    }

    /// Words such as None beside other words may be a category.
    fn looks_like_a_word(&self) -> Option<FindingKind> {
        let word = self.first_default_na.clone().filter(|_| self.texts > 0)?;
        let (cells, of) = (self.default_na, self.cells() + self.default_na);
        Some(FindingKind::DefaultNa { word, cells, of })
    }

    /// Cells that are not missing.
    fn cells(&self) -> u64 {
        self.numbers + self.texts
    }

    /// An error if numbers and text are mixed: about the first cell that is not like most of its column.
    fn check_mixture(&self) -> Result<()> {
        let (Some(text), Some(number)) = (&self.first_text, &self.first_number) else {
            return Ok(());
        };
        let (odd, wanted, others) = if self.numbers >= self.texts {
            (text, "a number", self.numbers)
        } else {
            (number, "text", self.texts)
        };
        let expected = format!("{wanted}, as in {others} other cells");
        let place = Place {
            file: "",
            at: odd.at,
        };
        Err(Error::unexpected(ErrorKind::MixedColumn, expected, &odd.text).at(place))
    }

    /// A class that comes only a few times and is a number is a measurement.
    fn looks_continuous(&self) -> Option<FindingKind> {
        let (rows, classes) = (self.cells(), self.names.len() as u64);
        let suspicious = self.texts == 0 && classes > MIN_SUSPICIOUS && rows < 10 * classes;
        suspicious.then_some(FindingKind::LooksContinuous { classes, rows })
    }

    /// An error if nearly all words are numbers in another notation, such as 3,5: they would be learned as words.
    fn check_notation(&self) -> Result<()> {
        let notations = &self.other_numbers.notations;
        let mut of_nearly_all = notations.iter().map(|seen| seen.of_nearly_all(self.texts));
        let (true, Some((_, example))) = (
            of_nearly_all.any(|example| example.is_some()),
            &self.other_numbers.clearest,
        ) else {
            return Ok(());
        };
        let kind = ErrorKind::OtherNotation;
        let error = Error::unexpected(kind, "numbers such as 1065.5", &example.text);
        // One cell among numbers has a place; a column of such cells has none.
        Err(if self.numbers >= self.texts {
            error.at(Place {
                file: "",
                at: example.at,
            })
        } else {
            error
        })
    }

    /// Numbers and dates that are read as words.
    fn looks_like_numbers(&self) -> Option<FindingKind> {
        let signs = self.other_numbers.signs.of_nearly_all(self.texts);
        let dates = self.other_numbers.dates.of_nearly_all(self.texts);
        let signs = signs.map(|example| FindingKind::SignedNumbers { example });
        signs.or(dates.map(|example| FindingKind::Dates { example }))
    }

    /// A column of nothing but dates, if it is one.
    fn date_style(&self) -> Option<DateStyle> {
        let seen = &self.other_numbers;
        let are_dates = self.numbers == 0 && self.texts > 0 && seen.iso_dates == self.texts;
        are_dates.then_some(if seen.has_times {
            DateStyle::Time
        } else {
            DateStyle::Day
        })
    }

    /// Numbers that begin with a zero are codes.
    fn looks_like_codes(&self) -> Option<FindingKind> {
        let example = self.other_numbers.leading_zeros.first.clone()?;
        Some(FindingKind::Codes { example })
    }

    /// Words that hardly ever come twice tell nothing about other rows.
    fn looks_like_names(&self) -> Option<FindingKind> {
        let (rows, words) = (self.cells(), self.names.len() as u64);
        let suspicious = words > MIN_SUSPICIOUS && 10 * words >= 9 * rows;
        suspicious.then_some(FindingKind::Identifier { words, rows })
    }

    /// The names in order, if there are not too many.
    fn categories(&self, kind: ErrorKind) -> Result<Vec<String>> {
        if self.names.len() > MAX_CATEGORIES {
            if let Some(FindingKind::SignedNumbers { example }) = self.looks_like_numbers() {
                let expected = "numbers without a sign of currency or percent";
                return Err(Error::unexpected(ErrorKind::WrongType, expected, &example));
            }
            let expected = format!("at most {MAX_CATEGORIES} categories");
            return Err(Error::expected(kind, expected, "more"));
        }
        let mut names: Vec<String> = self.names.iter().cloned().collect();
        sort_names(&mut names);
        Ok(names)
    }
}

/// A column of nothing but 0, 1, false or true can hold the other value too, even if it was not seen.
fn with_opposite(mut names: Vec<String>) -> Vec<String> {
    const PAIRS: [[&str; 2]; 4] = [
        ["0", "1"],
        ["false", "true"],
        ["False", "True"],
        ["FALSE", "TRUE"],
    ];
    if let [only] = &names[..] {
        let pair = PAIRS.into_iter().find(|pair| pair.contains(&only.as_str()));
        names = pair.map_or(names, |pair| pair.map(str::to_owned).to_vec());
    }
    names
}

/// Which columns are read.
pub struct Wanted<'a> {
    /// The columns, without the target.
    pub columns: &'a [String],
    /// The target.
    pub target: Option<&'a String>,
    /// Columns whose numbers are names of categories.
    pub categorical: &'a [String],
    /// Texts that are missing, besides the usual ones.
    pub na: &'a [String],
    /// Where the usual ones are not missing.
    pub no_default_na: &'a NoDefaultNa,
    /// Columns are known by their places: one with nothing in it keeps its place.
    pub by_place: bool,
}

/// What a table holds.
#[derive(Default)]
pub struct Found {
    /// Columns that hold something.
    pub columns: Vec<Column>,
    /// The names of the classes.
    pub classes: Vec<String>,
    /// Columns with nothing in them: there is nothing to learn from.
    pub empty: Vec<String>,
    /// What is worth a warning.
    pub findings: Vec<Finding>,
}

/// Reads all rows, which hold the cells of the columns and then the target, to see what they are.
pub fn infer(file: &str, rows: &mut dyn Records, wanted: &Wanted<'_>) -> Result<Found> {
    let (mut seen, any_rows) = read_all(rows, wanted)?;
    let mut found = Found::default();
    if let (Some(name), Some(seen)) = (wanted.target, wanted.target.and_then(|_| seen.pop())) {
        let classes = seen.categories(ErrorKind::TooManyClasses);
        found.classes = classes.map_err(|error| error.in_file(file).in_column(name))?;
        found.report(name, [seen.looks_like_a_word(), seen.looks_continuous()]);
    }
    let is_full = |seen: &Seen| !any_rows || seen.cells() > 0;
    for (name, seen) in wanted.columns.iter().zip(&seen) {
        if !wanted.by_place && !is_full(seen) {
            found.empty.push(name.to_owned());
            continue;
        }
        let forced = wanted.categorical.contains(name) && is_full(seen);
        let added = found.add(name, seen, forced);
        added.map_err(|error| error.in_file(file).in_column(name))?;
    }
    if !seen.iter().any(is_full) {
        let expected = "at least one column with something in it";
        return Err(Error::expected(ErrorKind::Empty, expected, "none").in_file(file));
    }
    Ok(found)
}

/// How the cells of a column are read.
struct Reading {
    is_category: bool,
    default_na: bool,
}

/// What was seen of every column, and whether there were rows at all.
fn read_all(rows: &mut dyn Records, wanted: &Wanted<'_>) -> Result<(Vec<Seen>, bool)> {
    let reading = |name: &String| Reading {
        is_category: wanted.categorical.contains(name) || Some(name) == wanted.target,
        default_na: !wanted.no_default_na.covers(name),
    };
    let all = wanted.columns.iter().chain(wanted.target);
    let all: Vec<Reading> = all.map(reading).collect();
    let missing = MissingTexts::and(wanted.na);
    let mut seen: Vec<Seen> = all.iter().map(|_| Seen::default()).collect();
    let mut note = |place: Place<'_>, cells: &[Cell<'_>], _| {
        let columns = seen.iter_mut().zip(cells).zip(&all);
        columns.for_each(|((seen, &cell), reading)| seen.read(place, cell, reading, &missing));
        Ok(())
    };
    let mut any_rows = false;
    while rows.fill(BATCH, &mut note)? > 0 {
        any_rows = true;
    }
    Ok((seen, any_rows))
}

impl Found {
    /// Adds what was found about a column.
    fn report(&mut self, name: &str, found: [Option<FindingKind>; 2]) {
        let findings = found.into_iter().flatten();
        let findings = findings.map(|what| Finding::new(name, what));
        self.findings.extend(findings);
    }

    /// Adds a column.
    fn add(&mut self, name: &str, seen: &Seen, forced: bool) -> Result<()> {
        if !forced {
            seen.check_notation()?;
            seen.check_mixture()?;
        }
        let date_style = seen.date_style().filter(|_| !forced);
        let kind = if let Some(style) = date_style {
            ColumnKind::Date(style)
        } else if forced || seen.texts > 0 {
            let odd = seen
                .looks_like_numbers()
                .or_else(|| seen.looks_like_names());
            self.report(name, [seen.looks_like_a_word(), odd]);
            let names = seen.categories(ErrorKind::TooManyCategories)?;
            ColumnKind::Categorical(with_opposite(names))
        } else {
            self.report(name, [seen.looks_like_codes(), None]);
            ColumnKind::Numeric
        };
        self.columns.push(Column {
            name: name.to_owned(),
            kind,
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_column_of_zeros_can_hold_ones() {
        let of =
            |names: &[&str]| with_opposite(names.iter().map(|name| name.to_string()).collect());
        assert_eq!(of(&["0"]), ["0", "1"]);
        assert_eq!(of(&["True"]), ["False", "True"]);
        assert_eq!(of(&["red"]), ["red"]);
        assert_eq!(of(&["1", "2"]), ["1", "2"]);
        assert!(of(&[]).is_empty());
    }
}
